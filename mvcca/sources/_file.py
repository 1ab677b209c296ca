"""What sources in files share: the file must stay as it was opened, and every error names it."""

from __future__ import annotations

import os
import threading
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from hashlib import sha256
from importlib import import_module
from itertools import chain, pairwise
from typing import Any

import numpy as np

from mvcca.sources._row_source import RowSource, SourceError

__all__ = [
    "FileSource",
    "PerThread",
    "chunk_edges",
    "cut_tall",
    "optional",
    "sample_of",
    "stamp",
    "the_only_matrix",
]


_TALL_BYTES = 64 * 2**20
_SAMPLES, _SAMPLE_BYTES = 64, 2**16  # of a file, for its fingerprint


class FileSource(RowSource):
    """A matrix in a file: `path`, and `key` where the file holds several."""

    def __init__(self, path: str | os.PathLike[str], key: str | None = None) -> None:
        self.path = os.path.abspath(path)  # the process that reads may work in another folder
        self.key = key
        self._stamp = self._current_stamp()

    def _current_stamp(self) -> tuple[int, ...]:
        return stamp(self.path)

    def _identity(self) -> tuple[Any, ...]:
        return (self.path, self.key, self._stamp, self._sampled)

    @cached_property
    def _sampled(self) -> str:
        """Digest of blocks of bytes, evenly spaced from the beginning to the end of the file."""
        with self._errors_named("cannot be read"):
            return sample_of(self._stored_in())

    def _stored_in(self) -> list[str]:
        """The files that hold the numbers."""
        return [self.path]

    def _name(self) -> str:
        return self.path if self.key is None else f"{self.path}, {self.key!r}"

    def _read_runs(self, runs: Sequence[tuple[int, int]]) -> Iterator[Any]:
        with self._errors_named("cannot be read"):
            yield from self._read_file(runs)

    @abstractmethod
    def _read_file(self, runs: Sequence[tuple[int, int]]) -> Iterator[Any]:
        """Blocks of ranges of rows, from one opening of the file; all it raises means damage."""

    @contextmanager
    def _errors_named(self, failure: str) -> Iterator[None]:
        """Whatever goes wrong inside becomes one error that names the file, or says it changed."""
        try:
            yield
        except (SourceError, ImportError, MemoryError):
            raise
        except Exception as error:  # damaged files raise whatever their library thinks of
            self._check_unchanged()
            reason = " ".join(str(error).split()) or type(error).__name__
            raise SourceError(f"{self._name()}: {failure}: {reason}") from error
        self._check_unchanged()

    def _check_unchanged(self) -> None:
        if self._current_stamp() != self._stamp:
            raise SourceError(
                f"{self.path} has changed since it was opened; what was read before and after does "
                "not belong together. Open it again."
            )


class PerThread(threading.local):
    """Attributes that each thread has for itself, and that a pickle leaves behind."""

    def __reduce__(self) -> tuple[type[PerThread], tuple[()]]:
        return (PerThread, ())


def stamp(path: str) -> tuple[int, ...]:
    """Size and time of change of a file."""
    try:
        status = os.stat(path)
    except OSError as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else error.strerror
        raise SourceError(f"{path}: {reason}") from error
    return status.st_size, status.st_mtime_ns


def sample_of(paths: Sequence[str]) -> str:
    """Digest of blocks of bytes, evenly spaced over files as if these were one."""
    ends = np.cumsum([os.path.getsize(path) for path in paths])
    starts = np.linspace(0, max(0, ends[-1] - _SAMPLE_BYTES), _SAMPLES, dtype=np.int64)
    digest = sha256()
    for start in np.unique(starts):
        number = int(np.searchsorted(ends, start, side="right"))
        with open(paths[min(number, len(paths) - 1)], "rb") as file:
            file.seek(start - (ends[number - 1] if number else 0))
            digest.update(file.read(_SAMPLE_BYTES))
    return digest.hexdigest()


def optional(library: str, reader_of: str) -> Any:
    """An imported library that is not among the dependencies."""
    try:
        return import_module(library)
    except ImportError as error:
        name = library.partition(".")[0]
        raise ImportError(
            f"Reading {reader_of} needs {name}: pip install 'mvcca[files]'"
        ) from error


def chunk_edges(n_rows: int, chunk_rows: int) -> tuple[int, ...]:
    """Boundaries of chunks of equal height."""
    return (*range(0, n_rows, chunk_rows), n_rows)


def cut_tall(edges: Sequence[int], row_bytes: int) -> tuple[int, ...]:
    """Boundaries with more between those that are too far apart for a block in memory.

    A chunk (or row group) cut like this is decoded more than once, or bit by bit; a block of all
    its rows might not fit.
    """
    tall = max(1, _TALL_BYTES // max(1, row_bytes))
    pieces = (range(a, b, tall) for a, b in pairwise(edges))
    return (*chain.from_iterable(pieces), edges[-1])


def the_only_matrix(path: str, shapes: dict[str, tuple[int, ...]]) -> str:
    """The key of the one matrix among arrays of some shapes."""
    matrices = [key for key, shape in shapes.items() if len(shape) == 2]
    if len(matrices) == 1:
        return matrices[0]
    found = ", ".join(repr(key) for key in matrices) or f"none among {list(shapes)}"
    raise SourceError(
        f"{path}: expected one matrix, found {found}. Name the one you mean: "
        "open_matrix(path, key=...)."
    )
