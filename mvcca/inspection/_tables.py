"""DataFrames of results, and what results say of confounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mvcca.machine.optional import optional
from mvcca.machine.printable import in_one_line


def frame_of(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> Any:
    """A pandas DataFrame with a row per line of the table."""
    pandas = optional("pandas", "to_frame", "pandas")
    return pandas.DataFrame([dict(zip(header, row, strict=True)) for row in rows])


def of_confounds(coding: Sequence[str]) -> list[str]:
    """The note that says how confounds were encoded; none without confounds."""
    return [in_one_line(f"Confounds: {'; '.join(coding)}.")] if coding else []
