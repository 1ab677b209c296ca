"""Text in Markdown: names and messages are shown as they are and never become markup."""

from __future__ import annotations

import re
from html import escape

_ACTIVE = re.compile(r"([\\`*_{}\[\]|~#!])")


def escaped(text: str) -> str:
    """Escape characters that have a meaning in Markdown or HTML, such as ``<``, ``*`` and ``|``."""
    return _ACTIVE.sub(r"\\\1", escape(text, quote=False))


def code(text: str) -> str:
    """A code span that holds any text, between more backticks than the text has in a row."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    padding = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{padding}{text}{padding}{fence}"
