"""Arrow tables and Hugging Face datasets whose columns hold numbers, or lists of numbers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mvcca.sources._row_source import RowSource, SourceError

__all__ = ["ArrowTable", "HuggingFaceRows"]


class _ArrowRows(RowSource):
    """Rows of Arrow tables, decoded slice by slice.

    Lists without a fixed length must all be as long as the first one.
    """

    def _describe_columns(self, schema: Any, n_rows: int) -> None:
        first = self._slice(0, min(1, n_rows))
        self._widths, kinds, columns = {}, [], []
        for field in schema:
            kind, width = field.type, None
            if hasattr(kind, "value_type") and hasattr(kind, "value_field"):
                width = getattr(kind, "list_size", None) or self._length(first, field.name)
                kind = kind.value_type
            try:
                dtype = np.dtype(kind.to_pandas_dtype())
            except (NotImplementedError, TypeError):
                dtype = np.dtype(object)
            if dtype.kind not in "biuf":
                raise SourceError(
                    f"{self._name()}: expected columns of numbers or of lists of numbers, got "
                    f"{field.type} in {field.name!r}. Select the columns of numbers."
                )
            self._widths[field.name] = width
            kinds.append(dtype)
            columns += (
                [field.name] if width is None else [f"{field.name}[{j}]" for j in range(width)]
            )
        dtype = np.result_type(*kinds) if kinds else np.dtype(np.float64)
        self._describe((n_rows, len(columns)), dtype, columns=tuple(columns))

    def _length(self, table: Any, name: str) -> int:
        if not len(table) or not table[name][0].is_valid:
            raise SourceError(f"{self._name()}: the length of the lists in {name!r} is unknown.")
        return len(table[name][0])

    @abstractmethod
    def _slice(self, start: int, stop: int) -> Any:
        """Rows as an Arrow table."""

    def _read_runs(self, runs: Sequence[tuple[int, int]]) -> Iterator[np.ndarray]:
        for start, stop in runs:
            table = self._slice(start, stop)
            block = np.empty((stop - start, self.shape[1]), dtype=self.dtype)
            at = 0
            for name, width in self._widths.items():
                column = table[name].combine_chunks()
                numbers = column if width is None else self._flat(column, name, width, start, stop)
                if column.null_count or numbers.null_count:
                    raise SourceError(
                        f"{self._name()}: values are missing in column {name!r}, rows {start} to "
                        f"{stop}."
                    )
                values = numbers.to_numpy(zero_copy_only=False).reshape(stop - start, width or 1)
                block[:, at : at + values.shape[1]] = values
                at += values.shape[1]
            yield block

    def _flat(self, column: Any, name: str, width: int, start: int, stop: int) -> Any:
        numbers = column.flatten()
        is_fixed = hasattr(column.type, "list_size")
        lengths = None if is_fixed else column.value_lengths()
        if len(numbers) != width * len(column) or not (
            lengths is None or np.all(np.asarray(lengths) == width)
        ):
            raise SourceError(
                f"{self._name()}: expected lists of {width} numbers in column {name!r}, as in row "
                f"0; rows {start} to {stop} hold others."
            )
        return numbers


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
