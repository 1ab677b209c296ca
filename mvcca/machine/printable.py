"""Text that is safe to print: characters that control a terminal are shown as escape sequences."""

from __future__ import annotations

import json
import math
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
    """JSON with readable letters, in which control characters are JSON's own escapes.

    NaN and infinity, which JSON does not have, become null.
    """
    finite = _finite(value)
    text = json.dumps(finite, ensure_ascii=False, indent=indent)  # escapes newlines within strings
    return "".join(
        f"\\u{ord(character):04x}"
        if unicodedata.category(character) in _ESCAPED and character != "\n"
        else character
        for character in text
    )


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
