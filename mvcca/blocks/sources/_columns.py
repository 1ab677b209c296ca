"""Columns of Arrow tables that hold numbers, or lists of numbers of equal length, as a matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mvcca.blocks.checks import few
from mvcca.blocks.sources._row_source import SourceError

__all__ = ["Columns"]


class Columns:
    """Columns of a table as one matrix.

    Lists without a fixed length must all be as long as the one in the first row, which `first`
    reads; `table` names the table in errors.
    """

    def __init__(
        self, table: str, schema: Any, names: Sequence[str], first: Callable[[], Any]
    ) -> None:
        self._table = table
        self._widths: dict[str, int | None] = {}  # None for plain numbers
        dtypes, features = [], []
        for name in names:
            kind, width = schema.field(name).type, None
            if hasattr(kind, "value_type") and hasattr(kind, "value_field"):
                width = getattr(kind, "list_size", None) or self._length(first(), name)
                kind = kind.value_type
            try:
                dtype = np.dtype(kind.to_pandas_dtype())
            except (NotImplementedError, TypeError):
                dtype = np.dtype(object)
            if dtype.kind not in "biuf":
                raise SourceError(
                    f"{table}: expected columns of numbers or of lists of numbers, got "
                    f"{schema.field(name).type} in {name!r}. Select the columns of numbers, "
                    f"write categories as columns of 0 and 1, or give --id {name} if it names the "
                    "rows."
                )
            self._widths[name] = width
            dtypes.append(dtype)
            features += [name] if width is None else [f"{name}[{j}]" for j in range(width)]
        self._reject_lists_beside_others()
        self.dtype = np.result_type(*dtypes) if dtypes else np.dtype(np.float64)
        self.features = tuple(features)

    def _reject_lists_beside_others(self) -> None:
        """Raise unless a column of lists is the only one: the others need not belong to it."""
        lists = [name for name, width in self._widths.items() if width is not None]
        if lists and len(self._widths) > 1:
            plain = [name for name, width in self._widths.items() if width is None]
            others = f"{few(lists)} beside {few(plain)}" if plain else few(lists)
            of_ids = f" If {plain[0]!r} names the rows, give --id {plain[0]}." if plain else ""
            raise SourceError(
                f"{self._table}: expected columns of numbers, or one column of lists, got lists in "
                f"{others}. Name the one you mean, as in FILE:{lists[0]} or key={lists[0]!r}; from "
                f"a table in memory, select it.{of_ids}"
            )

    def _length(self, table: Any, name: str) -> int:
        if not len(table) or not table.column(name)[0].is_valid:
            raise SourceError(f"{self._table}: the length of the lists in {name!r} is unknown.")
        return len(table.column(name)[0])

    def matrix(self, table: Any, rows: str) -> np.ndarray:
        """The numbers of a table or a record batch; `rows` names them in errors."""
        block = np.empty((len(table), len(self.features)), dtype=self.dtype)
        at = 0
        for name, width in self._widths.items():
            column = table.column(name)
            if hasattr(column, "combine_chunks"):
                column = column.combine_chunks()
            numbers = column if width is None else column.flatten()
            # pandas writes NaN as a missing value, which becomes NaN again: estimators name it.
            holds_nan = width is None and self.dtype.kind == "f"
            if (column.null_count or numbers.null_count) and not holds_nan:
                raise SourceError(
                    f"{self._table}: values are missing in column {name!r}, {rows}. Fill them in, "
                    "or leave out these rows."
                )
            if width is not None and not self._are_of_length(column, width):
                raise SourceError(
                    f"{self._table}: expected lists of {width} numbers in column {name!r}, as in "
                    f"row 0; {rows} hold others."
                )
            values = numbers.to_numpy(zero_copy_only=False).reshape(len(table), width or 1)
            block[:, at : at + values.shape[1]] = values
            at += values.shape[1]
        return block

    def _are_of_length(self, column: Any, width: int) -> bool:
        if hasattr(column.type, "list_size"):
            return True
        return bool(np.all(np.asarray(column.value_lengths()) == width))
