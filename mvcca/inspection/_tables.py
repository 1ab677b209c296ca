"""Text and DataFrames of results, and the axes that they are drawn on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mvcca.machine.axes import tidy_axes
from mvcca.machine.optional import optional
from mvcca.machine.printable import in_one_line

WIDTH = 80  # of a terminal


def text_table(
    header: Sequence[str], rows: Sequence[Sequence[Any]], width: int | None = None
) -> str:
    """Lines of aligned cells: numbers to the right, with four digits, and text to the left.

    Columns that do not fit into `width` characters follow in further tables below, which repeat the
    first column.
    """
    cells = [list(header), *([_cell(value) for value in row] for row in rows)]
    is_text = [any(isinstance(row[j], str) for row in rows) for j in range(len(header))]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    tables = []
    for columns in _parts(widths, width):
        lines = [
            "  ".join(
                line[j].ljust(widths[j]) if is_text[j] else line[j].rjust(widths[j])
                for j in columns
            )
            for line in cells
        ]
        tables.append("\n".join(line.rstrip() for line in lines))
    return "\n\n".join(tables)


def _parts(widths: Sequence[int], most: int | None) -> list[list[int]]:
    """Numbers of the columns of each table, each with the first column."""
    parts = [[0]]
    for j in range(1, len(widths)):
        n_characters = sum(widths[i] + 2 for i in parts[-1]) + widths[j]
        if most is not None and n_characters > most and len(parts[-1]) > 1:
            parts.append([0])
        parts[-1].append(j)
    return parts


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return in_one_line(value)
    if value is None or value != value:
        return ""
    return str(value) if isinstance(value, int) else f"{value:.4g}"


def frame_of(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> Any:
    """A pandas DataFrame with a row per line of the table."""
    pandas = optional("pandas", "to_frame", "pandas")
    return pandas.DataFrame([dict(zip(header, row, strict=True)) for row in rows])


def new_axes(ax: Any) -> Any:
    """The axes given, or new ones, as those of `mvcca.plotting`."""
    return tidy_axes(ax, grid="y")
