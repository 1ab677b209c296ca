"""How messages name a cell or a row: the one place that knows how these are counted.

Rows and columns are numbered from 0, as in Python, and a header is no row. Names are given where
there are any: of a column, in place of its number; of a row, its id.
"""

from __future__ import annotations

from typing import Any


def row_in_words(row: int, name: Any = None) -> str:
    """A row, with its id, as in "row 3 (id 's3')"."""
    return f"row {row}" if name is None else f"row {row} (id {str(name)!r})"


def cell_in_words(row: int, column: int | str, name: Any = None) -> str:
    """A cell by its row and column, as in "row 3, column 'age'"."""
    return f"{row_in_words(row, name)}, column {column!r}"
