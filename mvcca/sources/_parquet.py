"""Parquet tables of numbers, decoded by row groups.

A group is decoded as a whole, since decoding all columns side by side takes megabytes for each of
them. Each thread keeps the group that its last read ended within, so that blocks of any height read
in order decode every group once.
"""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mvcca._warnings import warn
from mvcca.sources._file import FileSource, PerThread, cut_tall, optional
from mvcca.sources._row_source import SourceError

__all__ = ["ParquetTable"]

_COLUMNS_AT_ONCE = 16
_LARGE_GROUP_BYTES = 2**30


class ParquetTable(FileSource):
    """The columns of a Parquet file, all numbers, without the index that pandas may have added."""

    columns: tuple[str, ...]

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        self._here = PerThread()
        with self._errors_named("cannot be opened"), self._opened() as file:
            schema, metadata = file.schema_arrow, file.metadata
            names = _columns(schema)
            kinds = [self._kind(schema.field(name)) for name in names]
            heights = [metadata.row_group(g).num_rows for g in range(metadata.num_row_groups)]
            self._edges = np.cumsum([0, *heights]).tolist()  # of row groups, empty ones too
            self._describe(
                (metadata.num_rows, len(names)),
                np.result_type(*kinds) if kinds else np.float64,
                columns=names,
            )
            tallest = max(heights, default=0) * self.row_bytes
            if tallest > _LARGE_GROUP_BYTES:
                warn(
                    f"{self.path} has row groups of {tallest / 1e9:.1f} GB in memory, which are "
                    "decoded as a whole. Write it again with a smaller row_group_size."
                )
            self.boundaries = cut_tall(sorted({0, *self._edges}), self.row_bytes)

    def _opened(self) -> Any:
        parquet = optional("pyarrow.parquet", ".parquet")
        return parquet.ParquetFile(self.path)

    def _kind(self, field: Any) -> np.dtype:
        """The NumPy type of a column of numbers."""
        types = optional("pyarrow.types", ".parquet")
        kind = field.type
        if types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind):
            return np.dtype(kind.to_pandas_dtype())
        raise SourceError(
            f"{self.path}: expected columns of numbers, got {kind} in {field.name!r}. Write the "
            "columns of numbers to a file of their own."
        )

    def _read_file(self, runs: Sequence[tuple[int, int]]) -> Iterator[np.ndarray]:
        kept = vars(self._here).pop("group", None)  # its number and its rows
        for start, stop in runs:
            block = np.empty((stop - start, self.shape[1]), dtype=self.dtype)
            for group in self._groups(start, stop):
                first, end = self._edges[group], self._edges[group + 1]
                begin, upto = max(start, first), min(stop, end)
                part = block[begin - start : upto - start]
                if (begin, upto) == (first, end):
                    self._decode(group, part)
                    continue
                if kept is None or kept[0] != group:
                    del kept  # before there is another
                    kept = (
                        group,
                        self._decode(group, np.empty((end - first, self.shape[1]), self.dtype)),
                    )
                part[:] = kept[1][begin - first : upto - first]
                if upto == end:
                    kept = None
            yield block
        self._here.group = kept

    def _groups(self, start: int, stop: int) -> range:
        """The row groups that hold a range of rows."""
        if start == stop:
            return range(0)
        return range(bisect_right(self._edges, start) - 1, bisect_left(self._edges, stop))

    def _decode(self, group: int, block: np.ndarray) -> np.ndarray:
        """Fill a block with a row group, a few columns at a time: each comes with its buffers."""
        with self._opened() as file:
            for j in range(0, len(self.columns), _COLUMNS_AT_ONCE):
                names = list(self.columns[j : j + _COLUMNS_AT_ONCE])
                table = file.read_row_group(group, columns=names, use_threads=False)
                columns = [self._complete(table.column(name), name, group) for name in names]
                block[:, j : j + len(names)] = np.stack(columns).T
        return block

    def _complete(self, column: Any, name: str, group: int) -> np.ndarray:
        if column.null_count:
            rows = f"rows {self._edges[group]} to {self._edges[group + 1]}"
            raise SourceError(f"{self.path}: values are missing in column {name!r}, {rows}.")
        return column.to_numpy()


def _columns(schema: Any) -> tuple[str, ...]:
    """Names of the columns that are not an index of pandas."""
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    names = tuple(name for name in schema.names if name not in index)
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"several columns are named {', '.join(twice)}")
    return names
