"""Tables of numbers in Parquet and Arrow files, decoded batch by batch.

A column holds a number per row, or a list of numbers of equal length, as embeddings are stored.
Each thread keeps its place between reads, so that blocks read in order decode every row once.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from mvcca.blocks.checks import few, repeated
from mvcca.blocks.sources._claims import check_claim
from mvcca.blocks.sources._columns import Columns
from mvcca.blocks.sources._file import FileSource, PerThread, cut_tall, library
from mvcca.blocks.sources._row_source import RowSource, SourceError
from mvcca.blocks.sources._text import UNNAMED, as_strings

__all__ = ["ArrowFile", "ParquetTable", "cells_of_columns", "open_beside", "read_text_column"]

_BATCH_BYTES = 8 * 2**20
_BUFFER_BYTES = 2**16  # read ahead of each column
_MOST_FEATURES = 2**20  # of a list, unless the file is larger


class _TableFile(FileSource):
    """One or all columns of a table, without the index that pandas may have added.

    `without` is a column of ids that is left out, too.
    """

    columns: tuple[str, ...]

    def __init__(
        self, path: str | os.PathLike[str], key: str | None = None, without: str | None = None
    ) -> None:
        super().__init__(path, key)
        self._here = PerThread()
        with self._errors_named("cannot be opened"):
            schema, heights = self._schema_and_heights()
            self._fields = tuple(name for name in names_of_columns(schema) if name != without)
            if not self._fields:
                raise SourceError(f"{self.path}: expected columns of numbers beside {without!r}.")
            self._check_widths(schema)
            if key is not None:
                if key not in self._fields:
                    raise SourceError(
                        f"{self.path}: no column {key!r}; there are {', '.join(self._fields)}."
                    )
                self._fields = (key,)
            self._without = without
            self._edges = np.cumsum([0, *heights]).tolist()  # of row groups, empty ones too
            self._columns = Columns(self._name(), schema, self._fields, self._first_row)
            shape = self._edges[-1], len(self._columns.features)
            self._describe(shape, self._columns.dtype, columns=self._columns.features)
            check_claim(self._name(), len(self) * self.row_bytes, self._stamp[0])
            self.boundaries = cut_tall(sorted({0, *self._edges}), self.row_bytes)

    def _identity(self) -> tuple[Any, ...]:
        left_out = () if self._without is None else (self._without,)
        return (*super()._identity(), *left_out)

    @abstractmethod
    def _schema_and_heights(self) -> tuple[Any, list[int]]:
        """The schema of the file, and the rows of each row group."""

    @abstractmethod
    def _tables(self, group: int, height: int) -> Iterator[Any]:
        """A row group in record batches of at most about `height` rows."""

    def _check_widths(self, schema: Any) -> None:
        """Check the widths that lists of fixed length claim, before their features are named."""
        widths = {name: getattr(schema.field(name).type, "list_size", 0) for name in self._fields}
        for name, width in widths.items():
            if width > max(_MOST_FEATURES, self._stamp[0]):
                raise SourceError(
                    f"{self.path}: column {name!r} claims lists of {width:,} numbers in a file of "
                    f"{self._stamp[0]:,} bytes; it is damaged."
                )

    def _first_row(self) -> Any:
        if not self._edges[-1]:
            return ()
        return next(self._tables(bisect_right(self._edges, 0) - 1, 1))

    def _read_file(self, runs: Sequence[tuple[int, int]]) -> Iterator[np.ndarray]:
        group = vars(self._here).pop("group", None)
        for start, stop in runs:
            block = np.empty((stop - start, self.shape[1]), dtype=self.dtype)
            row = start
            while row < stop:
                number = bisect_right(self._edges, row) - 1
                first, end = self._edges[number], min(stop, self._edges[number + 1])
                if group is None or group.number != number or group.row > row - first:
                    group = _RowGroup(number, self._batches(number))
                group.fill(block[row - start : end - start], row - first)
                row = end
            yield block
        self._here.group = group

    def _batches(self, group: int) -> Iterator[np.ndarray]:
        """The rows of a row group, decoded batch by batch."""
        height = max(1, _BATCH_BYTES // max(1, self.row_bytes))
        rows = f"rows {self._edges[group]} to {self._edges[group + 1]}"
        for batch in self._tables(group, height):
            yield self._columns.matrix(batch, rows)


class ParquetTable(_TableFile):
    """Columns of a Parquet file."""

    def _schema_and_heights(self) -> tuple[Any, list[int]]:
        with self._opened() as file:
            metadata = file.metadata
            groups = map(metadata.row_group, range(metadata.num_row_groups))
            return file.schema_arrow, [group.num_rows for group in groups]

    def _tables(self, group: int, height: int) -> Iterator[Any]:
        with self._opened() as file:
            yield from file.iter_batches(height, [group], list(self._fields), use_threads=False)

    def _opened(self) -> Any:
        return _parquet_file(self.path)


class ArrowFile(_TableFile):
    """Columns of an Arrow IPC file, also known as Feather; its record batches are row groups."""

    def _schema_and_heights(self) -> tuple[Any, list[int]]:
        with self._opened() as file:
            batches = map(file.get_batch, range(file.num_record_batches))
            return file.schema, [batch.num_rows for batch in batches]

    def _tables(self, group: int, height: int) -> Iterator[Any]:
        with self._opened() as file:
            batch = file.get_batch(group)  # decompressed whole, if it is compressed
            for start in range(0, batch.num_rows, height):
                yield batch.slice(start, height)

    def _opened(self) -> AbstractContextManager[Any]:
        return _arrow_file(self.path)


class _RowGroup:
    """Place within a row group whose batches are being decoded."""

    def __init__(self, number: int, batches: Iterator[np.ndarray]) -> None:
        self.number, self.row = number, 0
        self._batches, self._rest = batches, np.empty(0)

    def fill(self, block: np.ndarray, start: int) -> None:
        """Fill a block with the rows from `start` on, after skipping those before."""
        while self.row < start + len(block):
            if not len(self._rest):
                self._rest = next(self._batches)
            at = self.row - start
            n_rows = min(len(self._rest), -at if at < 0 else len(block) - at)
            if at >= 0:
                block[at : at + n_rows] = self._rest[:n_rows]
            self._rest = self._rest[n_rows:]
            self.row += n_rows


def read_text_column(path: str | os.PathLike[str], key: str | None) -> np.ndarray | None:
    """The named or only column as strings, (n_rows, 1); None if it does not hold text."""
    name = os.fspath(path)
    if name.lower().endswith(".parquet"):
        with _parquet_file(name) as file:
            return _text_in(name, file.schema_arrow, key, lambda names: file.read(names))
    with _arrow_file(name) as file:
        return _text_in(name, file.schema, key, lambda names: file.read_all().select(names))


def open_beside(
    path: str | os.PathLike[str], ids: str, key: str | None = None
) -> tuple[RowSource | np.ndarray, list[Any]]:
    """The other columns of numbers, or the other column of texts; and the values of a column.

    The index that pandas has added may be the column, by its name or as "index".
    """
    name = os.fspath(path)
    if name.lower().endswith(".parquet"):
        with _parquet_file(name) as file:
            schema = file.schema_arrow
            column = _column_of_ids(schema, ids)
            found = file.read([column]).column(column).to_pylist()
    else:
        with _arrow_file(name) as file:
            schema = file.schema
            column = _column_of_ids(schema, ids)
            found = file.read_all().column(column).to_pylist()
    rest = [one for one in names_of_columns(schema) if one != column]
    if key is None and len(rest) == 1 and (text := read_text_column(name, rest[0])) is not None:
        return text, found
    if key is not None and (text := read_text_column(name, key)) is not None:
        return text, found
    kind = ParquetTable if name.lower().endswith(".parquet") else ArrowFile
    return kind(name, key, column), found


def cells_of_columns(path: str | os.PathLike[str]) -> dict[str, np.ndarray] | None:
    """All columns as texts by name, an unnamed index of pandas as ""; None if one holds lists.

    A missing value is an empty text.
    """
    name = os.fspath(path)
    if name.lower().endswith(".parquet"):
        with _parquet_file(name) as file:
            table = file.read()
    else:
        with _arrow_file(name) as file:
            table = file.read_all()
    names_of_columns(table.schema)
    if any(hasattr(field.type, "value_type") for field in table.schema):
        return None
    unnamed = {one for one in _index_columns(table.schema) if str(one).startswith("__index_level")}
    return {
        "" if column in unnamed else column: as_strings(
            ["" if value is None else str(value) for value in table.column(column).to_pylist()]
        )
        for column in table.schema.names
    }


def _column_of_ids(schema: Any, ids: str) -> str:
    if ids in schema.names:
        return ids
    index = [name for name in _index_columns(schema) if isinstance(name, str)]  # others are ranges
    if ids == UNNAMED and len(index) == 1:
        return index[0]
    raise ValueError(f"there is no column {ids!r}; its columns are {few(schema.names)}")


def _index_columns(schema: Any) -> list[Any]:
    return list((schema.pandas_metadata or {}).get("index_columns", []))


def _text_in(
    path: str, schema: Any, key: str | None, read: Callable[[list[str]], Any]
) -> np.ndarray | None:
    types = library("pyarrow.types", os.path.splitext(path)[1])
    names = names_of_columns(schema) if key is None else (key,)
    if len(names) != 1 or names[0] not in schema.names:
        return None
    kind = schema.field(names[0]).type
    if not (types.is_string(kind) or types.is_large_string(kind)):
        return None
    column = read(list(names)).column(names[0])
    if column.null_count:
        raise ValueError(f"values are missing in the column {names[0]!r}")
    return as_strings(column.to_pylist())[:, None]


def _parquet_file(path: str) -> Any:
    parquet = library("pyarrow.parquet", ".parquet")
    return parquet.ParquetFile(
        path,
        buffer_size=_BUFFER_BYTES,
        pre_buffer=False,
        page_checksum_verification=True,  # where pages have checksums
    )


@contextmanager
def _arrow_file(path: str) -> Iterator[Any]:
    pyarrow = library("pyarrow", ".arrow")
    with pyarrow.memory_map(path) as mapped, pyarrow.ipc.open_file(mapped) as file:
        yield file


def names_of_columns(schema: Any) -> tuple[str, ...]:
    """Names of the columns that are not an index of pandas."""
    index = _index_columns(schema)
    names = tuple(name for name in schema.names if name not in index)
    if names_twice := repeated(names):
        raise ValueError(f"several columns are named {few(names_twice)}")
    return names
