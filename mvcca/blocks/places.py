"""How messages name a cell, a row or a line: the one place that knows how these are counted.

Rows and columns are numbered from 0, as in Python, and a header is no row. Lines of text files are
numbered from 1, as editors show them. Names are given where there are any: of a column, in place of
its number; of a row, its id.
"""

from __future__ import annotations

from typing import Any


def row_in_words(row: int, *, line: int | None = None, name: Any = None) -> str:
    """A row, with its line in a text file and its id, as in "row 3 (id 's3', line 5)"."""
    known = [] if name is None else [f"id {str(name)!r}"]
    known += [] if line is None else [f"line {line}"]
    return f"row {row} ({', '.join(known)})" if known else f"row {row}"


def column_in_words(column: int | str) -> str:
    """A column by its name, or else by its number."""
    return f"column {column!r}" if isinstance(column, str) else f"column {int(column)}"


def cell_in_words(row: int, column: int | str, *, line: int | None = None, name: Any = None) -> str:
    """A cell by its row and column, as in "row 3 (line 5), column 'age'"."""
    return f"{row_in_words(row, line=line, name=name)}, {column_in_words(column)}"
