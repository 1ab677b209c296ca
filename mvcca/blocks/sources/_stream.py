"""What a file holds, told by its bytes, and its text as a stream.

The ending of a name decides only where the bytes do not. Compressed files, other encodings and
workbooks become the same stream, so that one reader serves all of them.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import lzma
import os
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from io import TextIOWrapper
from typing import Any, BinaryIO

from mvcca.blocks.checks import few
from mvcca.blocks.sources._file import library
from mvcca.blocks.sources._row_source import SourceError
from mvcca.blocks.sources._word_vectors import holds_word_vectors

_PACKED: dict[bytes, Callable[[str], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\0": lzma.open,
    b"\x28\xb5\x2f\xfd": lambda path: library("pyarrow", ".zst").input_stream(path),
}
_MAGIC = {
    b"PAR1": ".parquet",
    b"ARROW1": ".arrow",
    b"\x89HDF\r\n\x1a\n": ".h5",
    b"\x93NUMPY": ".npy",
    b"MATLAB 5.0": ".mat",
    b"MATLAB 7.3": ".mat",
    b"PK\x03\x04": ".npz",
}
_NO_DATA = {  # by its first bytes in any case, what a file is in place of data, and what to do
    rb"\xd0\xcf\x11\xe0": "an old workbook; save it as .xlsx, or a sheet as .csv",
    rb"\xff{4}": "an Arrow stream, as Hugging Face stores data sets; write it as .parquet",
    rb"%pdf-": "a PDF document; save its table as .csv",
    rb"<!doctype html|<html": "a web page; download the file itself",
    rb"<\?xml": "an XML document; save its table as .csv",
    rb"\s*\[\s*[\[{]|\{\s*\n": "one JSON document; write an item in each line, as jq -c '.[]' does",
    rb"@relation\s": "an ARFF file; save its table as .csv",
    rb"!(series|sample|platform)_\w+\t": "a series matrix of GEO; leave out the lines that begin "
    "with !, as grep -v '^!' does",
    rb"[-+.\d,e]+ +(qid:\d+ +)?(\d+:[-+.\de]+ *)+\r?\n": "in svmlight format; read it by "
    "sklearn.datasets.load_svmlight_file, and write it by scipy.sparse.save_npz",
    rb"\x80[\x02-\x05]": "a pickle, which is never loaded; save the array by numpy.save",
    rb"[\s\S]{4}\0{4}\{\"": "a safetensors file; save the tensor by numpy.save",
    rb"sqlite format 3\0": "an SQLite database; write its table as .csv or .parquet",
    rb"rd[ax][23]\n|x\n\0\0\0": "a file of R; write its table by write.csv",
    rb"\$fl[23]": "a file of SPSS; save it as .csv",
    rb"<stata_dta>|[l-s][\x01\x02]\x01\0": "a file of Stata; save it as .csv",
    rb"fcs[23]\.\d +\d": "a file of flow cytometry; save its events as .csv",
    rb"\x5c\x01\0\0|\0\0\x01\x5c": "an image of a brain; save a row of values for each person",
    rb"\x89png|\xff\xd8\xff|gif8[79]a": "an image; save a row of features for each object",
    rb"riff.{4}wave|oggs\0|id3[\x02-\x04]\0": "a sound; save a row of features for each object",
}
_MARKS = {  # byte-order marks, the longer ones first
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
    codecs.BOM_UTF8: "utf-8-sig",
}
_BINARY = (".npy", ".npz", ".h5", ".hdf5", ".h5ad", ".mat", ".parquet", ".arrow")
_PIECE = 2**20
_PROBE = 4096  # bytes that tell a kind of file
_MOST_EMPTY = 10**6  # cells of a worksheet, and ten for each that is not empty
_MOST_STRINGS = 2**29  # bytes of the strings of a workbook
_IN_MEMORY = 2**25  # of a worksheet as text; more is in a temporary file


Text = tuple[str, str, str, str | None]  # absolute path; file in messages; encoding; worksheet


def text_of(path: str, encoding: str | None = None, sheet: str | None = None) -> Text:
    """The text in a file, whose encoding its first bytes tell if it is not given."""
    full = os.path.abspath(path)  # a worker may run in another directory
    if is_workbook(path):
        return full, path, "utf-8", sheet
    if sheet is not None:
        raise SourceError(f"{path}: it has no sheet {sheet!r}, since it is no workbook")
    with bytes_of(full) as file:
        begin = file.read(_PROBE)
    return full, path, encoding or _encoding_of(begin), None


def is_packed(text: Text) -> bool:
    """Whether a place in a text is reached from its beginning only."""
    path, _, encoding, _ = text
    return encoding not in ("utf-8", "utf-8-sig") or _opener(path) is not None


def open_text(text: Text, place: int = 0) -> TextIOWrapper:
    """A text as a stream from a place on: a byte, or a character if it is packed.

    Ends of lines are as they are, and bytes that are no UTF-8 are escaped.
    """
    path, shown, encoding, sheet = text
    file: Any = _sheet_as_csv(path, shown, sheet) if is_workbook(path) else bytes_of(path)
    if not is_packed(text):
        file.seek(place)
        place = 0
    is_utf8 = encoding.startswith("utf-8")
    stream = TextIOWrapper(
        file,
        "utf-8" if is_utf8 else encoding,
        "surrogateescape" if is_utf8 else "strict",
        newline="",
    )
    while place > 0:
        piece = stream.read(min(_PIECE, place))
        if not piece:
            raise EOFError("it ends before its last row")
        place -= len(piece)
    return stream


def bytes_of(path: str) -> Any:
    return (_opener(path) or partial(open, mode="rb"))(path)


def content_of(path: str) -> str:
    """The format of a file as an ending: that of its bytes, else of its name; ".xlsx" and "text".

    Raises
    ------
    SourceError
        If the file holds nothing that can be read.
    """
    suffix = os.path.splitext(path.rstrip("/\\"))[1].lower()
    if os.path.isdir(path):
        return ".zarr" if suffix == ".zarr" else "folder"
    if suffix == ".zarr":
        raise SourceError(f"{path}: expected a folder, got a file")
    with open(path, "rb") as file:
        begin = file.read(_PROBE)
    if holds_word_vectors(begin):
        return ".word2vec"
    found = _magic(_MAGIC, begin)
    if found == ".npz":
        return _kind_of_archive(path)
    if found == ".h5":
        return suffix if suffix in (".h5ad", ".hdf5", ".mat") else _kind_of_hdf5(path)
    if _is_json(path, begin):
        return ".json"
    if found is not None:
        return found
    if suffix in _BINARY:
        return suffix  # whose reader says what is wrong
    if _opener(path) is not None:
        with bytes_of(path) as file:
            begin = file.read(_PROBE)
        if kind := _magic(_MAGIC, begin):
            raise SourceError(f"{path}: it is a compressed {kind} file; unpack it")
        if _is_json(path, begin):
            return ".json"
    if suffix == ".xlsx":
        raise SourceError(f"{path}: cannot be read as .xlsx: it is no workbook, or cut off")
    return "text"


def _is_json(path: str, begin: bytes) -> bool:
    """Whether a file holds lines of JSON objects; one that holds no data is refused."""
    for mark, what in _NO_DATA.items():
        if re.match(mark, begin, re.IGNORECASE | re.DOTALL):
            raise SourceError(f"{path}: it is {what}")
    encoding = _encoding_of(begin)
    if not begin.decode(encoding, "replace").startswith('{"'):
        return False
    if encoding not in ("utf-8", "utf-8-sig"):
        raise SourceError(f"{path}: lines of JSON are in UTF-8, got {encoding}; convert it")
    return True


def _kind_of_hdf5(path: str) -> str:
    """An HDF5 file by any other name: ".h5ad" if it has the parts of AnnData."""
    with library("h5py", ".h5").File(path, "r") as file:
        return ".h5ad" if {"X", "obs", "var"} <= set(file) else ".h5"


def _opener(path: str) -> Callable[[str], Any] | None:
    with open(path, "rb") as file:
        begin = file.read(8)
    return _magic(_PACKED, begin)


def _magic(known: Mapping[bytes, Any], begin: bytes) -> Any:
    """What the first bytes of a file stand for; None if they are unknown."""
    return next((found for mark, found in known.items() if begin.startswith(mark)), None)


def _encoding_of(begin: bytes) -> str:
    """The encoding that a byte-order mark names, or UTF-16 by its zero bytes; else UTF-8."""
    if marked := _magic(_MARKS, begin):
        return marked
    even, odd = (part.count(0) / max(1, len(part)) for part in (begin[::2], begin[1::2]))
    if max(even, odd) < 0.8 or min(even, odd) > 0.2:  # every other byte of Latin letters is zero
        return "utf-8"
    return "utf-16-le" if odd > even else "utf-16-be"


# ---- workbooks -----------------------------------------------------------------------------------


def is_workbook(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(4) == b"PK\x03\x04" and _kind_of_archive(path) == ".xlsx"


def _kind_of_archive(path: str) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except zipfile.BadZipFile:  # cut off: its reader says so
        return ".xlsx" if path.lower().endswith((".xlsx", ".xlsm")) else ".npz"
    if "xl/workbook.xml" in names:
        return ".xlsx"
    if any(name.endswith("/data.pkl") for name in names):
        raise SourceError(f"{path}: it is a file of PyTorch; save the tensor by numpy.save")
    if names and not any(name.endswith(".npy") for name in names):
        raise SourceError(f"{path}: it is an archive of {few(names)}; unpack it")
    return ".npz"


def _sheet_as_csv(path: str, shown: str, name: str | None) -> BinaryIO:
    """The cells of a worksheet as CSV, a line per row; empty rows and columns at the end fall."""
    openpyxl = library("openpyxl", ".xlsx")
    with zipfile.ZipFile(path) as archive:
        sizes = {one.filename: one.file_size for one in archive.infolist()}
    if sizes.get("xl/sharedStrings.xml", 0) > max(_MOST_STRINGS, 100 * os.path.getsize(path)):
        raise SourceError(f"{shown}: its strings claim {sizes['xl/sharedStrings.xml']:,} bytes")
    with (
        open(path, "rb") as opened,
        closing(openpyxl.load_workbook(opened, read_only=True, data_only=True)) as book,
        tempfile.TemporaryFile("w+", encoding="utf-8", newline="") as narrow,
    ):
        write, widths = csv.writer(narrow, lineterminator="\n").writerow, []
        for row in _rows_of(shown, _sheet(shown, book, name)):
            write(row)
            widths.append(len(row))
        narrow.seek(0)
        width = max(widths, default=0)
        found: Any = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115
        for line, own in zip(narrow, widths, strict=True):  # no cell holds the end of a line
            found.write(f"{line[:-1]}{',' * (width - own) * (own > 0)}\n".encode())
    found.seek(0)
    return found


def _sheet(path: str, book: Any, name: str | None) -> Any:
    names = [sheet.title for sheet in book.worksheets]
    if name is None and len(names) > 1:
        raise SourceError(f"{path}: it has the sheets {few(names)}; give sheet={names[0]!r}")
    if name is not None and name not in names:
        raise SourceError(f"{path}: it has no sheet {name!r}; there are {names}")
    if not names:
        raise SourceError(f"{path}: it has no sheet of cells")
    return book[name or names[0]]


def _rows_of(path: str, sheet: Any) -> Iterator[list[str]]:
    sheet.reset_dimensions()  # which a file may claim at will
    n_cells, n_empty = 0, 0
    for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
        cells = list(map(_as_text, row))
        while cells and not cells[-1]:
            cells.pop()
        filled = sum(map(bool, cells))
        n_cells, n_empty = n_cells + filled, n_empty + max(1, len(cells) - filled)
        if cells and n_empty - 10 * n_cells > _MOST_EMPTY:
            raise SourceError(
                f"{path}: the cells up to row {number:,}, column {len(cells):,}, are nearly all "
                "empty; delete those beyond the table"
            )
        yield cells


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return re.sub(r"\s+", " ", str(value))
