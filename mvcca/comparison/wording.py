"""How measures, values and names are written in tables, figures, sentences and Markdown.

In Markdown, names and messages are shown as they are and never become markup.
"""

from __future__ import annotations

import re
from html import escape

import numpy as np

from mvcca.retrieval.measure import Measure

_ACTIVE = re.compile(r"([\\`*_{}\[\]|~#!])")
_PRETTY = {"map": "mAP", "p": "P", "r": "R", "mrr": "MRR", "mr": "median rank"}


def pretty(name: str) -> str:
    """Name of a measure as printed in papers: ``map@50`` is mAP@50."""
    kind = Measure.parse(name).kind
    return _PRETTY.get(kind, kind.replace("_", " ")) + name.removeprefix(kind)


def written(name: str, value: float) -> str:
    """Format a measure: ranks with one decimal, others with three."""
    return format(value, ".1f" if Measure.parse(name).kind in ("mr", "mean_rank") else ".3f")


def with_error(name: str, value: float, error: float) -> str:
    """Format a measure with its standard error: 0.407±.012."""
    if np.isnan(error):
        return written(name, value)
    return f"{written(name, value)}±{written(name, error).removeprefix('0')}"


def signed(text: str) -> str:
    """A share without the zero before its point."""
    return text.removeprefix("0") if text.startswith("0.") else text


def listed(names: list[str]) -> str:
    """Names in a sentence: ``A``, ``A and B``, ``A, B and C``."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def escaped(text: str) -> str:
    """Escape characters that have a meaning in Markdown or HTML, such as ``<``, ``*`` and ``|``."""
    return _ACTIVE.sub(r"\\\1", escape(text, quote=False))


def code(text: str) -> str:
    """A code span that holds any text, between more backticks than the text has in a row."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    padding = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{padding}{text}{padding}{fence}"
