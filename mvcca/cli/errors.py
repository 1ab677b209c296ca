"""The ways a command ends early: it was asked wrongly, it cannot be done, or it was interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["CommandError", "Interrupted", "UsageError", "in_one_line"]


class CommandError(Exception):
    """What was asked cannot be done; the message is one line, and the exit code is 1."""


class UsageError(Exception):
    """The arguments do not go together; the exit code is 2."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, with a word on how to go on; the exit code is 130."""


@contextmanager
def in_one_line(where: str = "") -> Iterator[None]:
    """Make an error of the command of what the library raises when it cannot do something.

    Parameters
    ----------
    where : str
        What the line begins with.

    Raises
    ------
    CommandError
        In place of errors of value, of the system and of missing libraries. Others are mistakes in
        the program and stay what they are.
    """
    try:
        yield
    except BrokenPipeError:  # the reader of the output went away, which is no error
        raise
    except (ValueError, OSError, ImportError, RuntimeError) as error:
        raise CommandError(where + " ".join(str(error).split())) from error
