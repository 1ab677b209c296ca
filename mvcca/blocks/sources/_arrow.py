"""Tables of numbers: Arrow tables, Hugging Face data sets, Parquet, Arrow, and lines of JSON.

A column holds a number per row, or a list of numbers of equal length, as embeddings are stored.
Files are decoded a few columns at a time, which a cache holds until they are copied to rows. The
place in a file is kept between reads, so that blocks read in order decode every row once.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from json import dumps
from typing import Any

import numpy as np

from mvcca.blocks.checks import few, repeated
from mvcca.blocks.sources._dialect import ReadOptions
from mvcca.blocks.sources._file import DecodedFile, cut_tall, library
from mvcca.blocks.sources._file_rows import (
    FileRows,
    NamedColumns,
    as_ids,
    as_strings,
    no_column,
    places_of_columns,
)
from mvcca.blocks.sources._row_source import RowSource, SourceError
from mvcca.blocks.sources._stream import bytes_of

_COLUMNS_AT_ONCE = 16  # one cache line of a row
_BATCH_BYTES = 2**20  # of the columns that are decoded together
_BUFFER_BYTES = 2**16  # read ahead of each column
_JSON_BYTES = 2**26  # of a block, at least as long as the longest line
_MOST_FEATURES = 2**20  # of a list, unless the file is larger


class ArrowRows(RowSource):
    """Columns of Arrow tables as one matrix.

    Lists without a fixed length must all be as long as the one in the first row.
    """

    @abstractmethod
    def _first_row(self) -> Any:
        """The first row as a table, if there is one."""

    def _describe_columns(self, schema: Any, names: Sequence[str], n_rows: int) -> None:
        kinds = {name: self._kind_of(schema, name) for name in names}
        self._widths = {name: width for name, (width, _) in kinds.items()}
        self._reject_lists_beside_others()
        features: list[str] = []
        for name, width in self._widths.items():
            features += [name] if width is None else [f"{name}[{j}]" for j in range(width)]
        dtypes = [dtype for _, dtype in kinds.values()]
        self.columns = tuple(features)
        self.describe((n_rows, len(features)), np.result_type(*dtypes) if dtypes else np.float64)

    def _kind_of(self, schema: Any, name: str) -> tuple[int | None, np.dtype]:
        """The length of the lists in a column, None for plain numbers; and the type of these."""
        kind, width = schema.field(name).type, None
        if hasattr(kind, "value_type") and hasattr(kind, "value_field"):
            width = getattr(kind, "list_size", None) or self._length(name)
            kind = kind.value_type
        try:
            dtype = np.dtype(kind.to_pandas_dtype())
        except (NotImplementedError, TypeError):
            dtype = np.dtype(object)
        if dtype.kind not in "biuf":
            raise SourceError(
                f"{self.name}: expected columns of numbers or of lists of numbers, got "
                f"{schema.field(name).type} in {name!r}. Write categories as columns of 0 and 1, "
                f"or give drop={name!r}, or id={name!r} if it names the rows."
            )
        return width, dtype

    def _length(self, name: str) -> int:
        first = self._first_row()
        if not len(first) or not first.column(name)[0].is_valid:
            raise SourceError(f"{self.name}: the length of the lists in {name!r} is unknown.")
        return len(first.column(name)[0])

    def _reject_lists_beside_others(self) -> None:
        """Raise unless a column of lists is the only one: the others need not belong to it."""
        lists = [name for name, width in self._widths.items() if width is not None]
        if lists and len(self._widths) > 1:
            plain = [name for name, width in self._widths.items() if width is None]
            others = f"{few(lists)} beside {few(plain)}" if plain else few(lists)
            of_ids = f" If {plain[0]!r} names the rows, give id={plain[0]!r}." if plain else ""
            raise SourceError(
                f"{self.name}: expected columns of numbers, or one column of lists, got lists in "
                f"{others}. Name the one you mean, as in FILE:{lists[0]} or key={lists[0]!r}; from "
                f"a table in memory, select it.{of_ids}"
            )

    def _sets(self) -> Iterator[tuple[slice, list[str]]]:
        """Features and their columns, as many as are copied to rows together."""
        names = list(self._widths)
        for at in range(0, len(names), _COLUMNS_AT_ONCE):
            own = names[at : at + _COLUMNS_AT_ONCE]
            yield slice(at, at + (self._widths[own[0]] or len(own))), own

    def _matrix(self, table: Any, names: Sequence[str], start: int) -> np.ndarray:
        """Some columns of a table or a record batch, whose first row is row `start`."""
        width, parts = self._widths[names[0]], [self._values(table, name, start) for name in names]
        return np.array(parts, self.dtype).T if width is None else parts[0].reshape(-1, width)

    def _values(self, table: Any, name: str, start: int) -> np.ndarray:
        """The numbers of a column, row after row."""
        width, column = self._widths[name], table.column(name)
        if hasattr(column, "combine_chunks"):
            column = column.combine_chunks()
        numbers = column if width is None else column.flatten()
        # pandas writes NaN as a missing value, which becomes NaN again: estimators name it.
        if column.null_count and not (width is None and self.dtype.kind == "f"):
            raise self._misses(name, start + np.argmax(column.is_null()))
        if width is not None and len(numbers) != width * len(table):
            lengths = np.asarray(column.value_lengths())
            row = int((lengths != width).argmax())
            raise SourceError(
                f"{self.name}: expected lists of {width} numbers in column {name!r}, as in "
                f"row 0; row {start + row} has {lengths[row]}; shorten it, or leave it out."
            )
        if width is not None and numbers.null_count:
            raise self._misses(name, start + np.argmax(numbers.is_null()) // width)
        return numbers.to_numpy(zero_copy_only=False)

    def _misses(self, name: str, row: int | np.integer) -> SourceError:
        return SourceError(
            f"{self.name}: values are missing in column {name!r}, first in row {row}. Fill them "
            "in, or leave out these rows."
        )


class ArrowTable(ArrowRows):
    """A `pyarrow.Table`, decoded slice by slice."""

    def __init__(self, table: Any, name: str | None = None) -> None:
        self.table = table
        self.name = name or f"Arrow table of {', '.join(map(repr, table.column_names))}"
        self._describe_columns(table.schema, table.column_names, table.num_rows)

    def _slice(self, start: int, stop: int) -> Any:
        return self.table.slice(start, stop - start)

    def _first_row(self) -> Any:
        return self._slice(0, 1)

    def blocks(self, ranges: Sequence[tuple[int, int]]) -> Iterator[np.ndarray]:
        for start, stop in ranges:
            block = np.empty((stop - start, self.shape[1]), self.dtype)
            table = self._slice(start, stop)
            for features, names in self._sets():
                block[:, features] = self._matrix(table, names, start)
            yield block

    def identity(self) -> tuple[Any, ...]:
        places = np.linspace(0, max(0, len(self) - 1), 64, dtype=int)
        sample = b"".join(self.read(row, row + 1).tobytes() for row in np.unique(places).tolist())
        return (str(self.table.schema), sample)


class HuggingFaceRows(ArrowTable):
    """A `datasets.Dataset`, with its selection and order of rows."""

    def __init__(self, dataset: Any) -> None:
        self.table = dataset.with_format("arrow")
        self.name = f"data set of {', '.join(map(repr, dataset.column_names))}"
        schema = dataset.features.arrow_schema
        self._describe_columns(schema, schema.names, len(dataset))

    def _slice(self, start: int, stop: int) -> Any:
        return self.table[start : min(stop, len(self.table))]

    def identity(self) -> tuple[Any, ...]:
        return (self.table._fingerprint,)


# ---- files ---------------------------------------------------------------------------------------


def opened(path: str | os.PathLike[str], metadata: Any = None) -> Any:
    """An open Parquet file, or an Arrow file or lines of JSON in its words.

    `metadata` saves reading the footer of Parquet.
    """
    with open(path, "rb") as file:
        begin = file.read(6)
    if begin[:4] != b"PAR1":
        return _IpcFile(path) if begin == b"ARROW1" else _JsonLines(os.fspath(path))
    return library("pyarrow.parquet", ".parquet").ParquetFile(
        path,
        metadata=metadata,
        buffer_size=_BUFFER_BYTES,
        pre_buffer=False,
        page_checksum_verification=True,  # where pages have checksums
    )


class _IpcFile:
    """An Arrow IPC file, also known as Feather, in the words of a Parquet file.

    Its record batches are row groups.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._pyarrow = library("pyarrow", ".arrow")
        self._mapped = self._pyarrow.memory_map(os.fspath(path))
        self._file = self._pyarrow.ipc.open_file(self._mapped)
        self.metadata, self.row_group = self, self._file.get_batch
        self.schema_arrow, self.num_row_groups = self._file.schema, self._file.num_record_batches

    def close(self) -> None:
        self._mapped.close()

    def iter_batches(
        self, height: int, groups: Iterable[int], names: list[str], **_: Any
    ) -> Iterator[Any]:
        places = [self.schema_arrow.get_field_index(name) for name in names]
        options = self._pyarrow.ipc.IpcReadOptions(included_fields=places, use_threads=False)
        file = self._pyarrow.ipc.open_file(self._mapped, options=options)
        for batch in map(file.get_batch, groups):  # their columns are decompressed whole
            yield from (batch.slice(start, height) for start in range(0, batch.num_rows, height))

    def read(self, names: list[str] | None) -> Any:
        return self._file.read_all().select(names or self.schema_arrow.names)


class _JsonLines:
    """JSON objects, one in each line, in the words of a Parquet file; they are in memory."""

    def __init__(self, path: str) -> None:
        self._path = path
        table = self._read()
        # Texts that may be dates, such as ids, are read again as they are spelled.
        pyarrow = library("pyarrow", ".jsonl")
        dates = [one.name for one in table.schema if pyarrow.types.is_timestamp(one.type)]
        if dates:
            texts = pyarrow.schema([(name, pyarrow.string()) for name in dates])
            table = self._read(explicit_schema=texts)
        self._table, self.schema_arrow = table, table.schema

    def _read(self, **parsing: Any) -> Any:
        json = library("pyarrow.json", ".jsonl")
        how = json.ReadOptions(use_threads=False, block_size=_JSON_BYTES)
        with bytes_of(self._path) as lines:
            return json.read_json(lines, how, json.ParseOptions(**parsing))

    def close(self) -> None:
        """Nothing is open."""

    def read(self, names: list[str] | None) -> Any:
        return self._table.select(names or self.schema_arrow.names)


class TableFile(DecodedFile, ArrowRows):
    """Columns of a Parquet or Arrow file."""

    def __init__(self, path: str | os.PathLike[str], columns: Sequence[str]) -> None:
        self._fields = tuple(columns)
        super().__init__(path)

    def _open(self) -> None:
        with closing(opened(self.path)) as file:
            schema, groups = file.schema_arrow, range(file.num_row_groups)
            heights = [file.metadata.row_group(number).num_rows for number in groups]
            self._metadata = file.metadata
        for name in self._fields:  # before the features of lists of a fixed length are named
            width = getattr(schema.field(name).type, "list_size", 0)
            if width > max(_MOST_FEATURES, self._stamp[0]):
                raise SourceError(
                    f"{self.shown}: column {name!r} claims lists of {width:,} numbers in a file of "
                    f"{self._stamp[0]:,} bytes; it is damaged."
                )
        self._edges = np.cumsum([0, *heights]).tolist()  # of row groups, empty ones too
        self._describe_columns(schema, self._fields, self._edges[-1])
        self._check_claim(len(self) * self.row_bytes)
        self.starts = tuple(sorted({*self._edges[:-1]} - {self._edges[-1]}))
        self.boundaries = cut_tall(sorted({0, *self._edges}), self.row_bytes)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_metadata": None}

    def identity(self) -> tuple[Any, ...]:
        return (*super().identity(), *self._fields)

    def _first_row(self) -> Any:
        if not self._edges[-1]:
            return ()
        groups = [bisect_right(self._edges, 0) - 1]
        with closing(opened(self.path)) as file:
            return next(file.iter_batches(1, groups, list(self._fields), use_threads=False))

    def _decoded(self, number: int, stop: int) -> tuple[int, list[tuple[slice, Iterator[Any]]]]:
        file = opened(self.path, self._metadata)
        groups, sets = range(number, bisect_left(self._edges, stop)), []
        for features, names in self._sets():
            row_bytes = (features.stop - features.start) * self.dtype.itemsize
            height = max(1, _BATCH_BYTES // row_bytes)
            batches = file.iter_batches(height, groups, names, use_threads=False)
            sets.append((features, batches))
        return self._edges[groups.stop], sets

    def _rows(self, piece: Any, columns: slice, first: int) -> np.ndarray:
        return self._matrix(piece, self._fields[columns], first)


def index_columns(schema: Any) -> list[Any]:
    """The index columns that pandas wrote: names, or ranges."""
    return list((schema.pandas_metadata or {}).get("index_columns", []))


def features_of(schema: Any) -> tuple[str, ...]:
    """Names of the columns that are not an index of pandas."""
    index = index_columns(schema)
    names = tuple(name for name in schema.names if name not in index)
    if names_twice := repeated(names):
        raise ValueError(f"several columns are named {few(names_twice)}")
    return names


# ---- rows of files, with ids ---------------------------------------------------------------------


def table_in_arrow(file: str, path: str, key: str | None, reading: ReadOptions) -> FileRows:
    """The rows of a file with their ids; a list column stands for all others."""
    with closing(opened(path)) as table:
        schema, names = table.schema_arrow, features_of(table.schema_arrow)
        column = _column_of_ids(schema, reading.id)
        ids = None if column is None else as_ids(table.read([column]).column(column).to_pylist())
        # Texts that repeat are categories, unless they are named as ids.
        if ids is None or (reading.id is None and len(np.unique(ids)) < len(ids)):
            column = ids = None
        wanted = [key] if key is not None else list(reading.columns)
        for one in [*wanted, *reading.drop]:
            if one not in names and one != column:
                raise no_column(file, one, names)
        rest = wanted or [name for name in names if name not in {*reading.drop, column}]
        are_lists = [name for name in rest if hasattr(schema.field(name).type, "value_field")]
        lists = [name for name in are_lists if not _is_tags(schema, name)]
        unread = [name for name in rest if lists and name not in lists]
        if len(lists) > 1:
            raise SourceError(
                f"{file}: columns {few(lists)} hold lists; name the one you mean: "
                f"columns={lists[0]!r}"
            )
        if not (rest := lists or rest):
            raise SourceError(f"{file}: expected columns of numbers beside {column!r}")
        if len(rest) == 1 and (_is_text(schema, rest[0]) or _is_tags(schema, rest[0])):
            texts = table.read(rest).column(rest[0]).to_pylist()
            matrix: Any = np.array(list(map(_in_words, texts)), dtype=object)[:, None]
            what = f"{len(matrix):,} texts in column {rest[0]!r}"
        else:
            plain = file.removesuffix(f":{key}")
            is_read = isinstance(table, _JsonLines)
            matrix = ArrowTable(table.read(rest), plain) if is_read else TableFile(plain, rest)
            n_rows, n_columns = matrix.shape
            what = f"{n_rows:,} rows, {n_columns:,} column{'s' * (n_columns != 1)} of numbers"
            what += f" in the lists of {rest[0]!r}" if lists else ""
    what += "" if column is None else f", ids in column {column!r}"
    what += f"; left out: {few(unread)}" if unread else ""
    name = "id" if column is None or column.startswith("__index_level") else column
    took = f"{file}: read as a table: {what}"
    return FileRows(file, matrix, ids, took, name, are_lists=bool(lists))


def cells_in_arrow(file: str, path: str, reading: ReadOptions) -> FileRows:
    """All columns as texts, an unnamed index of pandas as ""; a missing value is empty."""
    with closing(opened(path)) as table:
        features_of(table.schema_arrow)
        rows = table.read(None)
    lists = [field.name for field in rows.schema if hasattr(field.type, "value_field")]
    if lists := [name for name in lists if not _is_tags(rows.schema, name)]:
        raise ValueError(f"columns {few(lists)} hold lists, expected numbers and texts")
    index = {one for one in index_columns(rows.schema) if str(one).startswith("__index_level")}
    names = ["" if one in index else one for one in rows.schema.names]
    took = f"{file}: read as a table: {len(rows):,} rows, {len(names):,} columns"

    def texts(place: int) -> np.ndarray:
        values = rows.column(place).to_pylist()
        return as_strings(list(map(_in_words, values)))

    ids, left = None, []
    if reading.id is not None:
        own = _column_of_ids(rows.schema, reading.id)
        place = rows.schema.names.index(own)
        left = [j for j, name in enumerate(names) if name == "" or j == place]
        ids, took = texts(place), f"{took}, ids in column {own!r}"
    places = places_of_columns(file, reading, names, len(names), left)
    matrix = np.column_stack([np.empty((len(rows), 0), dtype=str), *map(texts, places)])
    return FileRows(file, NamedColumns.of(matrix, tuple(names[j] for j in places)), ids, took)


def _column_of_ids(schema: Any, ids: str | None) -> str | None:
    """The named column; else the index of pandas, the id of a vector store, or first strings."""
    if ids in schema.names:
        return ids
    names = features_of(schema)
    index = [name for name in index_columns(schema) if isinstance(name, str)]  # others are ranges
    if len(index) == 1:
        return index[0]
    if "id" in names and any(hasattr(field.type, "value_field") for field in schema):
        return "id"
    texts = [name for name in names if _is_text(schema, name)]
    if texts and len(names) > 1 and not index:
        return texts[0]
    if ids is not None:
        raise ValueError(
            f"there is no column {ids!r}; its columns are {few(schema.names)}. Give id='COLUMN'"
        )
    return None


def _is_text(schema: Any, name: str) -> bool:
    kind = schema.field(name).type
    return not hasattr(kind, "value_field") and _is_string(getattr(kind, "value_type", kind))


def _is_tags(schema: Any, name: str) -> bool:
    """Whether a column holds lists of texts, such as labels."""
    kind = schema.field(name).type
    return hasattr(kind, "value_field") and _is_string(kind.value_type)


def _is_string(kind: Any) -> bool:
    return str(kind) in ("string", "large_string", "string_view")


def _in_words(value: Any) -> str:
    """A value as text, and a list of texts as JSON; one that is missing is empty."""
    if isinstance(value, list):
        return dumps(value, ensure_ascii=False)
    return "" if value is None else str(value)
