"""Exceptions that end a command."""


class CommandError(Exception):
    """The command failed; the message is one line, and the exit code is 1."""


class UsageError(Exception):
    """The arguments are inconsistent; the exit code is 2."""
