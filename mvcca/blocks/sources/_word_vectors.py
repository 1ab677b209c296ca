"""Word vectors in word2vec's binary format: a line of two counts, then words and their numbers."""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator, Sequence

import numpy as np

from mvcca.blocks.sources._file import FileSource
from mvcca.blocks.sources._row_source import SourceError

_HEADER = re.compile(rb"(\d{1,12}) (\d{1,7})[ \r]*\n")
_LONGEST_WORD = 10_000
_BYTES = 4  # of a number


def holds_word_vectors(begin: bytes) -> bool:
    """Whether the first bytes of a file are those of binary word vectors: numbers are no text."""
    header = _HEADER.match(begin)
    if header is None:
        return False
    space = begin.find(b" ", header.end())
    numbers = begin[space + 1 : space + 1 + _BYTES * int(header[2])]
    return space > 0 and re.search(rb"[^\t\n\r -~]", numbers) is not None and int(header[2]) > 0


class WordVectors(FileSource):
    """The vectors of the words, each after its word and a space; a new line may follow.

    Attributes
    ----------
    words : list of str
        In the order of the rows. Bytes that are no UTF-8 are escaped.
    """

    def _open(self) -> None:
        with open(self.path, "rb") as file, _mapped(file) as content:
            header = _HEADER.match(content[:64])
            if header is None:
                raise SourceError(f"{self.shown}: expected the numbers of words and of dimensions")
            n, width = int(header[1]), int(header[2])
            claimed = n * (_BYTES * width + 2)
            if claimed > len(content):
                raise SourceError(
                    f"{self.shown}: it claims {n:,} vectors of {width:,} numbers, {claimed:,} "
                    f"bytes, and has {len(content):,}; it is cut off or damaged"
                )
            self.words, starts, place = [], np.empty(n, dtype=np.int64), header.end()
            for row in range(n):
                end = content.find(b" ", place, place + _LONGEST_WORD)
                if end < 0 or end + 1 + _BYTES * width > len(content):
                    raise SourceError(f"{self.shown}: it ends or is damaged in word {row + 1:,}")
                self.words.append(
                    content[place:end].lstrip(b"\n").decode(errors="backslashreplace")
                )
                starts[row], place = end + 1, end + 1 + _BYTES * width
        self._starts = starts
        self.describe((n, width), np.float32)

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "words": None}

    def beside(self, _: str) -> np.ndarray:
        """The words, whatever their name."""
        return np.array(self.words, dtype=object)

    def _read_file(self, ranges: Sequence[tuple[int, int]]) -> Iterator[np.ndarray]:
        width = self.shape[1]
        with open(self.path, "rb") as file, _mapped(file) as content:
            for start, stop in ranges:
                block = np.empty((stop - start, width), dtype=np.float32)
                for row, place in enumerate(self._starts[start:stop].tolist()):
                    block[row] = np.frombuffer(content[place : place + _BYTES * width], dtype="<f4")
                yield block


def _mapped(file: object) -> mmap.mmap:
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)  # type: ignore[attr-defined]
