"""The table of `Views` in a notebook."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np

from mvcca.blocks import Block

_MOST_PATTERNS = 8


def html_table(blocks: Mapping[str, Block], seen: np.ndarray, pattern: np.ndarray) -> str:
    """One row per view; below it, how many objects are seen in which views."""
    header = "".join(
        f'<th scope="col">{name}</th>' for name in ("view", "rows", "features", "type", "storage")
    )
    lines = [
        f'<tr><th scope="row">{escape(name)}</th><td>{block.shape[0]:,}{_share(block, seen)}</td>'
        f"<td>{block.shape[1]:,}</td><td>{escape(_type(block.matrix))}</td>"
        f"<td>{escape(block.storage)}</td></tr>"
        for name, block in blocks.items()
    ]
    caption = f"<caption>Views of {len(seen):,} objects</caption>"
    table = f"<table>{caption}<thead><tr>{header}</tr></thead>{''.join(lines)}</table>"
    return table if seen.all() else table + _patterns(pattern)


def _share(block: Block, seen: np.ndarray) -> str:
    """Share of the objects that are seen in this view."""
    return "" if block.shape[0] == len(seen) else f" ({block.shape[0] / len(seen):.0%})"


def _type(matrix: Any) -> str:
    if hasattr(matrix, "dtypes"):  # a DataFrame has one per column
        return ", ".join(sorted({str(dtype) for dtype in matrix.dtypes}))
    return str(matrix.dtype).removeprefix("torch.")


def _patterns(pattern: np.ndarray) -> str:
    """Numbers of objects by the views they are seen in, most frequent first."""
    counts = Counter(pattern.tolist()).most_common()
    shown = [f"{escape(views)}: {count:,}" for views, count in counts[:_MOST_PATTERNS]]
    if len(counts) > _MOST_PATTERNS:
        rest = sum(count for _, count in counts[_MOST_PATTERNS:])
        shown.append(f"{len(counts) - _MOST_PATTERNS} other patterns: {rest:,}")
    return f"<p>Objects by views seen: {'; '.join(shown)}</p>"
