"""Text that is safe to print: characters that control a terminal are shown as escape sequences."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

_ESCAPED = ("Cc", "Cs", "Zl", "Zp")  # control characters, undecodable bytes, line separators


def printable(text: str) -> str:
    r"""Escape characters that control a terminal, such as ``\x1b``; newlines stay."""
    return "".join(
        character.encode("unicode_escape").decode("ascii")
        if unicodedata.category(character) in _ESCAPED and character != "\n"
        else character
        for character in text
    )


def in_one_line(text: str) -> str:
    r"""The same for a name or a message that belongs on one line: newlines become ``\n``."""
    return printable(text).replace("\n", "\\n")


def printable_json(value: Any, indent: int | None = None) -> str:
    """JSON with readable letters, in which control characters are JSON's own escapes."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)  # escapes newlines within strings
    return "".join(
        f"\\u{ord(character):04x}"
        if unicodedata.category(character) in _ESCAPED and character != "\n"
        else character
        for character in text
    )
