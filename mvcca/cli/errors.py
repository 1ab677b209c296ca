"""Exceptions that end a command, and the conversion of library errors to one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class CommandError(Exception):
    """The command failed; the message is one line, and the exit code is 1."""


class UsageError(Exception):
    """The arguments are inconsistent; the exit code is 2."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, with advice on how to resume; the exit code is 130."""


@contextmanager
def in_one_line(prefix: str = "") -> Iterator[None]:
    """Convert errors of the library, the system and missing packages to a `CommandError`.

    Other exceptions are bugs and propagate unchanged.
    """
    try:
        yield
    except BrokenPipeError:  # the reader of the output is gone, which is not an error
        raise
    except (ValueError, OSError, ImportError, RuntimeError) as error:
        raise CommandError(prefix + " ".join(str(error).split())) from error
