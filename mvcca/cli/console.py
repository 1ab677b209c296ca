"""Messages on standard error: notes, warnings and progress."""

from __future__ import annotations

import sys
import unicodedata
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

_ESCAPED = ("Cc", "Cs", "Zl", "Zp")  # control characters, undecodable bytes, line separators


def printable(text: str) -> str:
    r"""Escape characters that control a terminal, such as ``\x1b``; newlines stay."""
    return "".join(
        character.encode("unicode_escape").decode("ascii")
        if unicodedata.category(character) in _ESCAPED and character != "\n"
        else character
        for character in text
    )


def note(message: str) -> None:
    """Print a note on one line."""
    print(f"mvcca: {printable(' '.join(message.split()))}", file=sys.stderr, flush=True)


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Print each distinct warning once, as a note without its code location."""

    def show(message: Any, *_: Any, **__: Any) -> None:
        note(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("once", UserWarning)
        warnings.showwarning = show
        yield


class Progress:
    """Progress messages, shown only if standard error is a terminal."""

    def __init__(self) -> None:
        self._is_shown = sys.stderr.isatty()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def update(self, message: str) -> None:
        """Replace the progress line."""
        if self._is_shown:
            print(f"\r\x1b[K{printable(message)} ...", end="", file=sys.stderr, flush=True)

    def log(self, message: str) -> None:
        """Replace the progress line by a permanent line."""
        self.clear()
        if self._is_shown:
            print(printable(message), file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Erase the progress line."""
        if self._is_shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
