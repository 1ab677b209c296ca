"""Arrow tables and Hugging Face datasets whose columns hold numbers, or lists of numbers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from mvcca.blocks.sources._columns import Columns
from mvcca.blocks.sources._row_source import RowSource

__all__ = ["ArrowTable", "HuggingFaceRows"]


class _ArrowRows(RowSource):
    """Rows of Arrow tables, decoded slice by slice."""

    def _describe_columns(self, schema: Any, n_rows: int) -> None:
        first = partial(self._slice, 0, min(1, n_rows))
        self._columns = Columns(self._name(), schema, schema.names, first)
        shape = n_rows, len(self._columns.features)
        self._describe(shape, self._columns.dtype, columns=self._columns.features)

    @abstractmethod
    def _slice(self, start: int, stop: int) -> Any:
        """Rows as an Arrow table."""

    def _read_runs(self, runs: Sequence[tuple[int, int]]) -> Iterator[np.ndarray]:
        for start, stop in runs:
            yield self._columns.matrix(self._slice(start, stop), f"rows {start} to {stop}")


class ArrowTable(_ArrowRows):
    """A `pyarrow.Table`."""

    def __init__(self, table: Any) -> None:
        self.table = table
        self._describe_columns(table.schema, table.num_rows)

    def _slice(self, start: int, stop: int) -> Any:
        return self.table.slice(start, stop - start)

    def _identity(self) -> tuple[Any, ...]:
        places = np.linspace(0, max(0, len(self) - 1), 64, dtype=int)
        sample = b"".join(self.read(row, row + 1).tobytes() for row in np.unique(places).tolist())
        return (str(self.table.schema), sample)

    def _name(self) -> str:
        return f"Arrow table of {', '.join(map(repr, self.table.column_names))}"


class HuggingFaceRows(_ArrowRows):
    """A `datasets.Dataset`, with its selection and order of rows."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset.with_format("arrow")
        self._describe_columns(dataset.features.arrow_schema, len(dataset))

    def _slice(self, start: int, stop: int) -> Any:
        return self._dataset[start:stop]

    def _identity(self) -> tuple[Any, ...]:
        return (self._dataset._fingerprint,)

    def _name(self) -> str:
        return f"data set of {', '.join(map(repr, self._dataset.column_names))}"
