"""Arrays and tables in files, written block by block."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from typing import Any, BinaryIO

import numpy as np

from mvcca.cli.errors import CommandError

__all__ = ["check_parquet", "write_csv", "write_npy", "write_parquet"]

Table = Mapping[str, np.ndarray]  # columns of equal length, by name


def write_npy(
    file: BinaryIO, blocks: Iterable[np.ndarray], shape: tuple[int, int], dtype: np.dtype
) -> None:
    """Write a matrix whose rows come in blocks."""
    header = {
        "descr": np.lib.format.dtype_to_descr(dtype),
        "fortran_order": False,
        "shape": tuple(map(int, shape)),
    }
    np.lib.format.write_array_header_1_0(file, header)
    for block in blocks:
        file.write(np.ascontiguousarray(block, dtype=dtype).data)


def write_csv(file: BinaryIO, tables: Iterable[Table]) -> None:
    """Write tables with the same columns as one, below a line of their names."""
    for number, table in enumerate(tables):
        text = io.StringIO()
        lines = csv.writer(text, lineterminator="\n")
        if not number:
            lines.writerow(table)
        # As text a float has as many digits as its type, not those of a double.
        lines.writerows(zip(*(column.astype(str) for column in table.values()), strict=True))
        file.write(text.getvalue().encode())


def write_parquet(file: BinaryIO, tables: Iterable[Table]) -> None:
    """Write tables with the same columns as one, each a row group."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer: Any = None
    try:
        for table in tables:
            group = pa.table(dict(table))
            writer = writer or pq.ParquetWriter(file, group.schema)
            writer.write_table(group)
    finally:
        if writer is not None:
            writer.close()


def check_parquet() -> None:
    """Refuse to begin what cannot be written in the end.

    Raises
    ------
    CommandError
        If pyarrow is missing.
    """
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise CommandError("writing .parquet needs pyarrow: pip install 'mvcca[files]'") from error
