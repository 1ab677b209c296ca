"""The two ways a command ends early: it was asked wrongly, or it cannot be done."""

from __future__ import annotations

__all__ = ["CommandError", "UsageError"]


class CommandError(Exception):
    """What was asked cannot be done; the message is one line, and the exit code is 1."""


class UsageError(Exception):
    """The arguments do not go together; the exit code is 2."""
