"""Files written in blocks, and checks made before the work that fills them."""

from __future__ import annotations

import csv
import io
import json
import os
import zipfile
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from mvcca.machine.optional import optional
from mvcca.machine.printable import in_one_line

_FORMULA = tuple("=+-@＝＋－＠")  # with which a spreadsheet's formulas begin

Table = Mapping[str, np.ndarray]  # columns of equal length, by name


def check_writable(path: Path, inputs: Iterable[Path] = ()) -> Path:
    """Check that a file can be written and is none of the inputs."""
    if path.exists() and not path.is_file():
        kind = "a directory" if path.is_dir() else "not a regular file"
        raise ValueError(f"{path}: expected a file to write, this is {kind}")
    if not path.parent.is_dir():
        raise ValueError(f"{path}: its directory {path.parent} does not exist")
    if not os.access(path.parent, os.W_OK):
        raise ValueError(f"{path}: its directory {path.parent} is not writable")
    for other in inputs:
        if path.exists() and other.exists() and path.samefile(other):
            raise ValueError(f"{path}: this is an input of the command; write to another file")
    return path


def check_format(name: str, content: str, suffixes: tuple[str, ...]) -> str:
    """Return the suffix of an output file, if it is supported and its library is installed."""
    suffix = Path(name).suffix.lower()
    if suffix not in suffixes:
        *others, last = suffixes
        known = f"{', '.join(others)} or {last}" if others else last
        raise ValueError(f"{name}: expected a file for {content} ending in {known}")
    if suffix in (".parquet", ".arrow"):
        optional("pyarrow.parquet", f"writing {suffix}", "'mvcca[files]'")
    return suffix


def write_npy(
    file: BinaryIO, blocks: Iterable[np.ndarray], shape: tuple[int, int], dtype: np.dtype
) -> None:
    """Write a matrix given as blocks of rows; one is written while the next is computed."""

    def write(rows: np.ndarray) -> None:
        start = file.tell()
        file.write(rows.data)
        _start_storing(file, start)

    np.lib.format.write_array_header_1_0(file, _header(shape, dtype))
    file.flush()
    with ThreadPoolExecutor(1, "mvcca-write") as writer:  # while the next block is computed
        written: Future[None] | None = None
        for block in blocks:
            rows = np.ascontiguousarray(block, dtype=dtype)
            if written is not None:
                written.result()
            written = writer.submit(write, rows)
        if written is not None:
            written.result()


def write_npz(
    file: BinaryIO,
    blocks: Iterable[np.ndarray],
    shape: tuple[int, int],
    dtype: np.dtype,
    ids: np.ndarray | None = None,
) -> None:
    """Write a matrix given as blocks of rows as "rows" of an archive, beside its "ids"."""
    with zipfile.ZipFile(file, "w") as archive:
        with archive.open("rows.npy", "w", force_zip64=True) as member:
            np.lib.format.write_array_header_1_0(member, _header(shape, dtype))
            for block in blocks:
                member.write(np.ascontiguousarray(block, dtype=dtype).data)
        if ids is not None:
            with archive.open("ids.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, ids, allow_pickle=False)


def _header(shape: tuple[int, int], dtype: np.dtype) -> dict[str, Any]:
    return {
        "descr": np.lib.format.dtype_to_descr(dtype),
        "fortran_order": False,
        "shape": tuple(map(int, shape)),
    }


def _start_storing(file: BinaryIO, start: int) -> None:
    """Let the disk store what was written from a place on, while the rest is computed."""
    if hasattr(os, "posix_fadvise"):
        # Linux starts to store pages that it is told to drop, and drops none before it has.
        os.posix_fadvise(file.fileno(), start, file.tell() - start, os.POSIX_FADV_DONTNEED)


def write_table(file: BinaryIO, suffix: str, tables: Iterable[Table]) -> None:
    """Write tables with the same columns one after the other, in the format of a suffix.

    .parquet and .arrow write each table as a row group, and rows of a matrix as lists of fixed
    length; .trec writes the columns query, item, rank and score.
    """
    _WRITERS[suffix](file, tables)


def csv_text(rows: Iterable[Iterable[Any]], *, for_people: bool = False) -> str:
    """Rows in CSV.

    Cells are written as they are, since programs match ids by them: a spreadsheet runs an id such
    as "=1+1". In tables `for_people`, text that a spreadsheet takes for a formula begins with an
    apostrophe, and control characters are escaped.
    """
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    if for_people:
        rows = ([_for_people(cell) for cell in row] for row in rows)
    lines.writerows(rows)
    return text.getvalue()


def _for_people(cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    text = in_one_line(cell)
    return f"'{text}" if text.startswith(_FORMULA) else text


def _write_csv(file: BinaryIO, tables: Iterable[Table]) -> None:
    for number, table in enumerate(tables):
        # astype(str) writes as many digits as the dtype has, str(float) those of a double.
        rows = zip(*(column.astype(str) for column in table.values()), strict=True)
        file.write(csv_text(rows if number else chain([table], rows)).encode())


def _write_trec_run(file: BinaryIO, tables: Iterable[Table]) -> None:
    for table in tables:
        columns = (table[name].astype(str) for name in ("query", "item", "rank", "score"))
        lines = (f"{q} Q0 {i} {r} {s} mvcca\n" for q, i, r, s in zip(*columns, strict=True))
        file.write("".join(lines).encode())


def _write_json_lines(file: BinaryIO, tables: Iterable[Table]) -> None:
    for table in tables:
        rows = zip(*(column.tolist() for column in table.values()), strict=True)
        lines = (json.dumps(dict(zip(table, row, strict=True))) for row in rows)
        file.write("".join(f"{line}\n" for line in lines).encode())


def _write_parquet(file: BinaryIO, tables: Iterable[Table]) -> None:
    import pyarrow.parquet as pq

    _write_groups(tables, lambda schema: pq.ParquetWriter(file, schema))


def _write_arrow(file: BinaryIO, tables: Iterable[Table]) -> None:
    import pyarrow as pa

    _write_groups(tables, lambda schema: pa.ipc.new_file(file, schema))


def _write_groups(tables: Iterable[Table], open_writer: Callable[[Any], Any]) -> None:
    import pyarrow as pa

    with ExitStack() as opened:
        writer: Any = None
        for table in tables:
            group = pa.table({name: _arrow_column(column) for name, column in table.items()})
            writer = writer or opened.enter_context(open_writer(group.schema))
            writer.write_table(group)


def _arrow_column(values: np.ndarray) -> Any:
    """Values, or rows of a matrix as lists of fixed length."""
    import pyarrow as pa

    flat = pa.array(values.ravel())
    return flat if values.ndim == 1 else pa.FixedSizeListArray.from_arrays(flat, values.shape[1])


_WRITERS: dict[str, Callable[[BinaryIO, Iterable[Table]], None]] = {
    ".csv": _write_csv,
    ".jsonl": _write_json_lines,
    ".trec": _write_trec_run,
    ".parquet": _write_parquet,
    ".arrow": _write_arrow,
}
