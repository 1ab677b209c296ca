"""Text and DataFrames of results, and the axes that they are drawn on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mvcca.machine.axes import tidy_axes
from mvcca.machine.optional import optional
from mvcca.machine.printable import in_one_line


def text_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Lines of aligned cells: numbers to the right, with four digits, and text to the left."""
    cells = [list(header), *([_cell(value) for value in row] for row in rows)]
    is_text = [any(isinstance(row[j], str) for row in rows) for j in range(len(header))]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if text else cell.rjust(width)
            for cell, width, text in zip(line, widths, is_text, strict=True)
        )
        for line in cells
    ]
    return "\n".join(line.rstrip() for line in lines)


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
