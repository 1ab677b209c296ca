"""The table of `Views` in a notebook."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np
from scipy.sparse import issparse

_MOST_PATTERNS = 8


def html_table(blocks: Mapping[str, Any], seen: np.ndarray, pattern: np.ndarray) -> str:
    """One row per view; below it, how many objects are seen in which views."""
    header = "".join(
        f'<th scope="col">{name}</th>' for name in ("view", "rows", "features", "type", "storage")
    )
    lines = [
        f'<tr><th scope="row">{escape(name)}</th><td>{block.shape[0]:,}{_share(block, seen)}</td>'
        f"<td>{block.shape[1]:,}</td><td>{escape(_type(block))}</td>"
        f"<td>{escape(_storage(block))}</td></tr>"
        for name, block in blocks.items()
    ]
    caption = f"<caption>Views of {len(seen):,} objects</caption>"
    table = f"<table>{caption}<thead><tr>{header}</tr></thead>{''.join(lines)}</table>"
    return table if seen.all() else table + _patterns(pattern)


def _share(block: Any, seen: np.ndarray) -> str:
    """Share of the objects that are seen in this view."""
    return "" if block.shape[0] == len(seen) else f" ({block.shape[0] / len(seen):.0%})"


def _type(block: Any) -> str:
    if hasattr(block, "dtypes"):  # a DataFrame has one per column
        return ", ".join(sorted({str(dtype) for dtype in block.dtypes}))
    return str(block.dtype).removeprefix("torch.")


def _storage(block: Any) -> str:
    library = type(block).__module__.partition(".")[0]
    if issparse(block):
        return f"sparse {block.format}"
    if library == "mvcca":  # rows that are read when they are needed
        return {"DaskRows": "Dask array"}.get(type(block).__name__, "file")
    if hasattr(block, "iloc"):
        return f"{library} DataFrame"
    device = getattr(block, "device", "cpu")
    return f"{library} array" if str(device) == "cpu" else f"{library} array on {device}"


def _patterns(pattern: np.ndarray) -> str:
    """Numbers of objects by the views they are seen in, most frequent first."""
    counts = Counter(pattern.tolist()).most_common()
    shown = [f"{escape(views)}: {count:,}" for views, count in counts[:_MOST_PATTERNS]]
    if len(counts) > _MOST_PATTERNS:
        rest = sum(count for _, count in counts[_MOST_PATTERNS:])
        shown.append(f"{len(counts) - _MOST_PATTERNS} other patterns: {rest:,}")
    return f"<p>Objects by views seen: {'; '.join(shown)}</p>"
