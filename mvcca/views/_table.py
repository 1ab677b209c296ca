"""The table of `Views` in a notebook."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from mvcca.blocks import Block
from mvcca.machine.tables import Table

_MOST_PATTERNS = 8


def table_of(blocks: Mapping[str, Block], seen: np.ndarray, pattern: np.ndarray) -> Table:
    """One row per view; below it, how many objects are seen in which views."""
    rows = [
        (
            name,
            f"{block.shape[0]:,}{_share(block, seen)}",
            f"{block.shape[1]:,}",
            _type(block.matrix),
            block.storage,
        )
        for name, block in blocks.items()
    ]
    return Table.of(
        f"Views of {len(seen):,} objects",
        ("view", "rows", "features", "type", "storage"),
        rows,
        [] if seen.all() else [_patterns(pattern)],
        words=("view", "type", "storage"),
    )


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
    shown = [f"{views}: {count:,}" for views, count in counts[:_MOST_PATTERNS]]
    if len(counts) > _MOST_PATTERNS:
        rest = sum(count for _, count in counts[_MOST_PATTERNS:])
        shown.append(f"{len(counts) - _MOST_PATTERNS} other patterns: {rest:,}")
    return f"Objects by views seen: {'; '.join(shown)}"
