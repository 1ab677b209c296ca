"""Rows of Parquet and Arrow files: which columns are ids, numbers, lists of numbers or texts."""

from __future__ import annotations

from typing import Any

import numpy as np

from mvcca.blocks.checks import few
from mvcca.blocks.sources._arrow import TableFile, features_of, index_columns, opened
from mvcca.blocks.sources._dialect import ReadOptions
from mvcca.blocks.sources._file_rows import FileRows, as_ids, no_column
from mvcca.blocks.sources._row_source import SourceError
from mvcca.blocks.sources._text import as_strings


def table_in_arrow(file: str, path: str, key: str | None, reading: ReadOptions) -> FileRows:
    """The rows of a file with their ids; a list column stands for all others."""
    with opened(path) as table:
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
        lists = [name for name in rest if hasattr(schema.field(name).type, "value_field")]
        unread = []
        if len(lists) == 1 and len(rest) > 1:
            unread, rest = [name for name in rest if name not in lists], lists
        if len(lists) > 1:
            raise SourceError(
                f"{file}: columns {few(lists)} hold lists; name the one you mean: "
                f"columns={lists[0]!r}"
            )
        if not rest:
            raise SourceError(f"{file}: expected columns of numbers beside {column!r}")
        texts = None
        if len(rest) == 1 and _is_text(schema, rest[0]):
            texts = table.read(rest).column(rest[0]).to_pylist()
    if texts is not None:
        matrix: Any = np.array([one or "" for one in texts], dtype=object)[:, None]
        what = f"{len(matrix):,} texts in column {rest[0]!r}"
    else:
        matrix = TableFile(file.removesuffix(f":{key}"), rest)
        what = f"{matrix.shape[0]:,} rows, {matrix.shape[1]:,} columns of numbers"
        what += f" in the lists of {rest[0]!r}" if lists else ""
    what += "" if column is None else f", ids in column {column!r}"
    what += f"; left out: {few(unread)}" if unread else ""
    name = "id" if column is None or column.startswith("__index_level") else column
    return FileRows(file, matrix, ids, f"{file}: read as a table: {what}", name)


def cells_in_arrow(file: str, path: str, reading: ReadOptions) -> FileRows:
    """All columns as texts, an unnamed index of pandas as ""; a missing value is empty."""
    with opened(path) as table:
        features_of(table.schema_arrow)
        rows = table.read(None)
    if lists := [field.name for field in rows.schema if hasattr(field.type, "value_type")]:
        raise ValueError(f"columns {few(lists)} hold lists, expected numbers and texts")
    index = {one for one in index_columns(rows.schema) if str(one).startswith("__index_level")}
    cells = {
        "" if column in index else column: as_strings(
            ["" if value is None else str(value) for value in rows.column(column).to_pylist()]
        )
        for column in rows.schema.names
    }
    took = f"{file}: read as a table: {len(rows):,} rows, {len(cells):,} columns"
    ids = None
    if reading.id is not None:
        name, unnamed = _column_of_ids(rows.schema, reading.id) or "", cells.pop("", None)
        ids, took = cells.pop(name, unnamed), f"{took}, ids in column {name!r}"
    return FileRows(file, None, ids, took, cells=cells)


def _column_of_ids(schema: Any, ids: str | None) -> str | None:
    """The named column; else the index of pandas, or a first column of strings beside others."""
    if ids in schema.names:
        return ids
    names = features_of(schema)
    index = [name for name in index_columns(schema) if isinstance(name, str)]  # others are ranges
    if len(index) == 1:
        return index[0]
    texts = [name for name in names if _is_text(schema, name)]
    if texts and len(names) > 1 and not index:
        return texts[0]
    if "id" in names and any(hasattr(field.type, "value_field") for field in schema):
        return "id"  # of a vector store
    if ids is not None:
        raise ValueError(
            f"there is no column {ids!r}; its columns are {few(schema.names)}. Give id='COLUMN'"
        )
    return None


def _is_text(schema: Any, name: str) -> bool:
    kind = schema.field(name).type
    if hasattr(kind, "value_field"):
        return False
    return str(getattr(kind, "value_type", kind)) in ("string", "large_string", "string_view")
