"""Command line: the exit codes, one-line errors and signals of any Unix tool.

`commands` lists the commands, whose modules run them, and `options` their options, of which
`signatures` makes those that are parameters of a function; `parser` makes the help and the errors.
Modules that do the work are imported when a command runs.
"""

from __future__ import annotations

import gc
import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from types import ModuleType

from mvcca.cli.console import set_quiet, warnings_as_notes
from mvcca.cli.errors import CommandError, UsageError
from mvcca.cli.parser import parsed
from mvcca.cli.wording import as_typed
from mvcca.machine.printable import printable

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments after the program's name; by default those of the process.

    Returns
    -------
    int
        0 on success, 1 after an error, 130 after Ctrl-C, 141 if the reader of the output is gone.

    Raises
    ------
    SystemExit
        With 2 after a usage error, and with 0 after ``--help``.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if hasattr(sys.stdout, "reconfigure"):  # replace characters that the terminal lacks
        sys.stdout.reconfigure(errors="replace")
    words = partial(as_typed, arguments=arguments)
    try:
        options = parsed(arguments)
        options.arguments = arguments
        set_quiet(options.quiet)
        words = partial(words, parser=options.parser)
        with warnings_as_notes(words):
            if options.command is None:
                _print_version_or_help(options)
            else:
                _module_of(options.command, is_process=argv is None).run(options)
        sys.stdout.flush()
    except UsageError as error:
        options.parser.error(str(error))
    except CommandError as error:
        return _fail(words(str(error)))
    except MemoryError as error:
        return _fail(f"out of memory: {words(str(error))}" if str(error) else "out of memory")
    except KeyboardInterrupt as interrupt:
        advice = f": {interrupt}" if str(interrupt) else ""
        print(f"\nmvcca: interrupted{printable(advice)}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        _discard_stdout()
        return 141
    except OSError as error:
        if error.filename is not None:
            return _fail(f"{error.filename}: {error.strerror}")
        if error.errno is None:  # raised by the library
            return _fail(words(str(error)))
        _discard_stdout()
        return _fail(f"standard output cannot be written: {error.strerror or error}")
    except (ValueError, ImportError, RuntimeError) as error:  # others are bugs
        return _fail(words(" ".join(str(error).split())))
    return 0


def _module_of(command: str, *, is_process: bool) -> ModuleType:
    """Import the module of a command.

    A process that runs nothing else keeps all imported objects until it ends, so the garbage
    collector need not search them.
    """
    if not is_process:
        return import_module(f"mvcca.cli.{command}")
    gc.disable()
    module = import_module(f"mvcca.cli.{command}")
    gc.freeze()
    gc.enable()
    return module


def _print_version_or_help(options: Namespace) -> None:
    if options.version:
        print(f"mvcca {import_module('mvcca').__version__}")
    else:
        options.parser.print_help()


def _discard_stdout() -> None:
    """Redirect stdout to the null device, since Python's flush at exit would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str) -> int:
    print(f"mvcca: error: {printable(message)}", file=sys.stderr)
    return 1
