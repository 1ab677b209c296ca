"""Output files: checked before the work, written in blocks, and complete or absent."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from mvcca import _replacing
from mvcca.cli.errors import CommandError

Table = Mapping[str, np.ndarray]  # columns of equal length, by name


def writable(name: str, inputs: Iterable[Path] = ()) -> Path:
    """Return the path of an output, if it can be written and is none of the inputs."""
    path = Path(name)
    if path.exists() and not path.is_file():
        kind = "a directory" if path.is_dir() else "not a regular file"
        raise CommandError(f"{path}: expected a file to write, this is {kind}")
    if not path.parent.is_dir():
        raise CommandError(f"{path}: its directory {path.parent} does not exist")
    if not os.access(path.parent, os.W_OK):
        raise CommandError(f"{path}: its directory {path.parent} is not writable")
    for other in inputs:
        if path.exists() and other.exists() and path.samefile(other):
            raise CommandError(f"{path}: this is an input of the command; write to another file")
    return path


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a new file that replaces `path` on success; see `mvcca._replacing`."""
    try:
        with _replacing.replacing(path) as file:
            yield file
    except OSError as error:
        raise CommandError(f"{path}: cannot be written: {error.strerror or error}") from error


def write_npy(
    file: BinaryIO, blocks: Iterable[np.ndarray], shape: tuple[int, int], dtype: np.dtype
) -> None:
    """Write a matrix given as blocks of rows."""
    header = {
        "descr": np.lib.format.dtype_to_descr(dtype),
        "fortran_order": False,
        "shape": tuple(map(int, shape)),
    }
    np.lib.format.write_array_header_1_0(file, header)
    with ThreadPoolExecutor(1, "mvcca-write") as writer:  # while the next block is computed
        written: Future[int] | None = None
        for block in blocks:
            rows = np.ascontiguousarray(block, dtype=dtype)
            if written is not None:
                written.result()
            written = writer.submit(file.write, rows.data)
        if written is not None:
            written.result()


def write_csv(file: BinaryIO, tables: Iterable[Table]) -> None:
    """Write tables with the same columns one after the other, below one header."""
    for number, table in enumerate(tables):
        text = io.StringIO()
        lines = csv.writer(text, lineterminator="\n")
        if not number:
            lines.writerow(table)
        # astype(str) writes as many digits as the dtype has, str(float) those of a double.
        lines.writerows(zip(*(column.astype(str) for column in table.values()), strict=True))
        file.write(text.getvalue().encode())


def write_trec_run(file: BinaryIO, tables: Iterable[Table]) -> None:
    """Write a run file in the format of TREC: query Q0 item rank score tag."""
    for table in tables:
        columns = (table[name].astype(str) for name in ("query", "item", "rank", "score"))
        lines = (f"{q} Q0 {i} {r} {s} mvcca\n" for q, i, r, s in zip(*columns, strict=True))
        file.write("".join(lines).encode())


def write_json_lines(file: BinaryIO, tables: Iterable[Table]) -> None:
    """Write the tables as JSON lines, one object per row."""
    for table in tables:
        columns = [column.tolist() for column in table.values()]
        lines = [
            json.dumps(dict(zip(table, row, strict=True))) for row in zip(*columns, strict=True)
        ]
        file.write("".join(f"{line}\n" for line in lines).encode())


def write_parquet(file: BinaryIO, tables: Iterable[Mapping[str, Any]]) -> None:
    """Write tables with the same columns, each as a row group."""
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


def write_arrow(file: BinaryIO, tables: Iterable[Mapping[str, Any]]) -> None:
    """Write tables with the same columns, each as a record batch of an Arrow IPC file."""
    import pyarrow as pa

    writer: Any = None
    try:
        for table in tables:
            group = pa.table(dict(table))
            writer = writer or pa.ipc.new_file(file, group.schema)
            writer.write_table(group)
    finally:
        if writer is not None:
            writer.close()


def lists_of_rows(rows: np.ndarray) -> Any:
    """A column of lists of fixed length, one for each row."""
    import pyarrow as pa

    return pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1])


def checked_suffix(name: str, content: str, suffixes: tuple[str, ...]) -> str:
    """Return the suffix of an output file, if it is supported and its library is installed."""
    suffix = Path(name).suffix.lower()
    if suffix not in suffixes:
        *others, last = suffixes
        known = f"{', '.join(others)} or {last}" if others else last
        raise CommandError(f"{name}: expected a file for {content} ending in {known}")
    if suffix in (".parquet", ".arrow"):
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError as error:
            raise CommandError(
                f"writing {suffix} needs pyarrow: pip install 'mvcca[files]'"
            ) from error
    return suffix
