"""DataFrames of results, and the axes that they are drawn on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mvcca.machine.axes import tidy_axes
from mvcca.machine.optional import optional


def frame_of(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> Any:
    """A pandas DataFrame with a row per line of the table."""
    pandas = optional("pandas", "to_frame", "pandas")
    return pandas.DataFrame([dict(zip(header, row, strict=True)) for row in rows])


def new_axes(ax: Any) -> Any:
    """The axes given, or new ones, as those of `mvcca.plotting`."""
    return tidy_axes(ax, grid="y")
