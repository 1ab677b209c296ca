"""Text as a terminal shows it: names from files cannot move its cursor, colour or clear it."""

from __future__ import annotations

import unicodedata

__all__ = ["printable"]

_ESCAPED = ("Cc", "Cs", "Zl", "Zp")  # control characters, bytes that are no text, line separators


def printable(text: str) -> str:
    r"""Write characters that control a terminal as escapes, such as ``\x1b``; newlines stay."""
    return "".join(
        character.encode("unicode_escape").decode("ascii")
        if unicodedata.category(character) in _ESCAPED and character != "\n"
        else character
        for character in text
    )
