"""Columns of Arrow tables and Hugging Face datasets as views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mvcca.blocks import as_source
from mvcca.views import Views


def views_of_table(table: Any, columns: Mapping[str, str] | Sequence[str]) -> Views:
    """Take columns of embeddings as views, which are read in blocks of rows.

    Parameters
    ----------
    table : pyarrow.Table or datasets.Dataset
        One row per object. Rows selected or shuffled by `datasets` are those that are read.
    columns : mapping of str to str, or sequence of str
        The column of each view, or columns whose names the views take. A column holds lists of
        equal length (``FixedSizeList``, or lists that happen to be as long), or one number per row.

    Returns
    -------
    Views
        Paired views; nothing is read until it is used.

    Raises
    ------
    SourceError
        If a column is missing, its lists differ in length, or it does not hold numbers.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from mvcca.interop import views_of_table
    >>> table = pa.table({"id": ["a", "b"], "image": [[1.0, 2.0], [3.0, 4.0]], "size": [7, 8]})
    >>> views_of_table(table, {"pixels": "image", "size": "size"})
    Views(2 objects, pixels: 2, size: 1)
    """
    names = columns if isinstance(columns, Mapping) else {name: name for name in columns}
    select = table.select_columns if hasattr(table, "select_columns") else table.select
    known = table.column_names
    for column in names.values():
        if column not in known:
            raise ValueError(f"The table has no column {column!r}; its columns are {known}.")
    return Views({name: as_source(select([column])) for name, column in names.items()})
