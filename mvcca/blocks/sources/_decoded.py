"""Open text files in UTF-8, and say what a file is that is not one."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from shlex import quote
from typing import TextIO

__all__ = ["decoded_lines", "not_a_text", "open_text"]

_UNPACK = "is compressed by {0}; unpack it: {0} -d {1}"
_BEGINNINGS = {  # of files that are no text, and what to do with them
    b"\x1f\x8b": ("gzip", _UNPACK),
    b"BZh": ("bzip2", _UNPACK),
    b"\xfd7zXZ\0": ("xz", _UNPACK),
    b"\x28\xb5\x2f\xfd": ("zstd", _UNPACK),
    b"PAR1": (".parquet", ""),
    b"ARROW1": (".arrow", ""),
    b"\x89HDF": (".h5", ""),
    b"\x93NUMPY": (".npy", ""),
    b"PK\x03\x04": ("", "is a workbook or a .npz file; save a sheet as .csv, or rename it to .npz"),
    b"\xd0\xcf\x11\xe0": ("", "is an old workbook; save a sheet as .csv"),
}
_WIDE = {  # byte-order marks, the longer ones first
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
_PIECE = 2**12  # bytes that tell a kind of file


def decoded_lines(path: Path) -> list[str]:
    """The lines of a text in UTF-8, without their ends."""
    content = path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(not_a_text(path)) from None
    if "\0" in text:
        raise ValueError(not_a_text(path))
    # str.splitlines would split at more characters, such as U+2028 within a text.
    return [line.rstrip("\n") for line in StringIO(text, newline=None)]


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    """An open text in UTF-8, as `csv.reader` takes it."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        try:
            yield file
        except UnicodeDecodeError:
            raise ValueError(not_a_text(path)) from None


def not_a_text(path: Path) -> str:
    """What a file is that is not text in UTF-8 without zero bytes, and what to do."""
    content = path.read_bytes()
    for beginning, (kind, advice) in _BEGINNINGS.items():
        if content.startswith(beginning):
            advice = advice or "is a {0} file; give it a name that ends in {0}"
            return "it " + advice.format(kind, quote(str(path)))
    marked = (name for mark, name in _WIDE.items() if content.startswith(mark))
    wide = next(marked, _wide_without_mark(content[:_PIECE]))
    if wide is not None:
        return f"expected text in UTF-8, got {wide}; convert it: {_converted(path, wide)}"
    try:
        content.decode("utf-8-sig")
        place, advice = (
            content.find(b"\0"),
            f"remove zero bytes: tr -d '\\000' < {quote(str(path))} > NEW",
        )
    except UnicodeDecodeError as error:
        place = error.start
        advice = f"convert it, for example by {_converted(path, 'WINDOWS-1252')}"
    line = content.count(b"\n", 0, place) + 1
    return f"expected text in UTF-8, got the byte {content[place]:#04x} in line {line}; {advice}"


def _wide_without_mark(content: bytes) -> str | None:
    """Which UTF-16 Latin letters are in, every other byte of which is zero."""
    even, odd = (part.count(0) / max(1, len(part)) for part in (content[::2], content[1::2]))
    if max(even, odd) < 0.8 or min(even, odd) > 0.2:
        return None
    return "UTF-16LE" if odd > even else "UTF-16BE"


def _converted(path: Path, encoding: str) -> str:
    return f"iconv -f {encoding} -t UTF-8 {quote(str(path))} > NEW"
