"""The command line: from arguments to an exit code.

What stands here is what any Unix tool does: one-line errors, exit codes, interrupts and broken
pipes. The commands are in `parser`, a file of its name each, and what they may be told in
`arguments_of_comparisons`, `arguments_of_files`, `arguments_of_networks` and `words`.

`demo` and `compare` make cases, which `run` fits methods to, and `table` and `report` show what
came of it. `fit`, `transform`, `search` and `info` go from files to files: `inputs`, `files` and
`labels` read, `output` and `writing` write, `running` and `checkpoint` see to long work. How deep
methods are trained, in all of them, is in `networks`. Everything that does the work is imported
when there is work to do.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from mvcca.cli.errors import CommandError, UsageError
from mvcca.cli.parser import build_parser
from mvcca.cli.terminal import printable

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments after the program's name; those of the process by default.

    Returns
    -------
    int
        0 if all went well, 1 after an error of the run, 130 after Ctrl-C, 141 if the reader of the
        output went away.

    Raises
    ------
    SystemExit
        With 2 after a usage error, and with 0 after ``--help`` and ``--version``.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if hasattr(sys.stdout, "reconfigure"):  # a terminal that lacks a letter is no reason to stop
        sys.stdout.reconfigure(errors="replace")
    try:
        options = build_parser().parse_args(arguments)
        options.arguments = arguments
        options.run(options)
        sys.stdout.flush()
    except UsageError as error:
        options.parser.error(str(error))
    except CommandError as error:
        return _fail(str(error))
    except MemoryError as error:
        return _fail(f"out of memory: {error}" if str(error) else "out of memory")
    except KeyboardInterrupt as interrupt:
        advice = f": {interrupt}" if str(interrupt) else ""
        print(f"\nmvcca: interrupted{printable(advice)}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        _give_up_stdout()
        return 141
    except OSError as error:  # those of files are errors of the command already
        _give_up_stdout()
        return _fail(f"standard output cannot be written: {error.strerror or error}")
    return 0


def _give_up_stdout() -> None:
    """Python flushes stdout once more at exit, which would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str) -> int:
    print(f"mvcca: error: {printable(message)}", file=sys.stderr)
    return 1
