"""DataFrames of results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mvcca.machine.optional import optional


def frame_of(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> Any:
    """A pandas DataFrame with a row per line of the table."""
    pandas = optional("pandas", "to_frame", "pandas")
    return pandas.DataFrame([dict(zip(header, row, strict=True)) for row in rows])
