"""Base of sources in files: detects that a file has changed, and names it in every error."""

from __future__ import annotations

import os
import stat
import threading
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from hashlib import sha256
from itertools import chain, pairwise
from typing import Any

import numpy as np

from mvcca.blocks.sources._row_source import RowSource, SourceError
from mvcca.machine.optional import optional

__all__ = ["FileSource", "PerThread", "cut_tall", "library", "stamp"]

_TALL_BYTES = 64 * 2**20
_SAMPLES, _SAMPLE_BYTES = 64, 2**16  # read for the fingerprint of a file


class FileSource(RowSource):
    """A matrix in a file: `path`, and `key` if the file may hold several."""

    def __init__(self, path: str | os.PathLike[str], key: str | None = None) -> None:
        self.path = os.path.abspath(path)  # a worker may run in another directory
        self.key = key
        self._stamp = self._current_stamp()

    def _current_stamp(self) -> tuple[int, ...]:
        return stamp(self.path)

    def _identity(self) -> tuple[Any, ...]:
        return (self.path, self.key, self._stamp, self._sampled)

    @cached_property
    def _sampled(self) -> str:
        """Digest of blocks of bytes, evenly spaced over the files as if they were one."""
        with self._errors_named("cannot be read"):
            paths = self._stored_in()
            ends = np.cumsum([os.path.getsize(path) for path in paths])
            starts = np.linspace(0, max(0, ends[-1] - _SAMPLE_BYTES), _SAMPLES, dtype=np.int64)
            digest = sha256()
            for start in np.unique(starts):
                number = min(int(np.searchsorted(ends, start, side="right")), len(paths) - 1)
                with open(paths[number], "rb") as file:
                    file.seek(start - (ends[number - 1] if number else 0))
                    digest.update(file.read(_SAMPLE_BYTES))
            return digest.hexdigest()

    def _stored_in(self) -> list[str]:
        """Files that hold the numbers."""
        return [self.path]

    def _checked_key(self, shapes: Mapping[str | None, tuple[int, ...]]) -> str | None:
        """The key of an array among those of some shapes; by default that of the only matrix."""
        if None in shapes:  # the file is the array
            if self.key is not None:
                raise SourceError(f"{self.path} is one array; it has no {self.key!r}.")
            return None
        if self.key is None:
            matrices = [key for key, shape in shapes.items() if len(shape) == 2]
            if len(matrices) != 1:
                found = ", ".join(map(repr, matrices)) or f"none among {list(shapes)}"
                raise SourceError(
                    f"{self.path}: expected one matrix, found {found}. Name the one you mean: "
                    "open_matrix(path, key=...)."
                )
            return matrices[0]
        key = self.key.strip("/")
        if key not in shapes:
            raise SourceError(
                f"{self.path}: no array {key!r}; there are {sorted(map(str, shapes))}."
            )
        return key

    def _name(self) -> str:
        return self.path if self.key is None else f"{self.path}, {self.key!r}"

    def _read_runs(self, runs: Sequence[tuple[int, int]]) -> Iterator[Any]:
        with self._errors_named("cannot be read"):
            yield from self._read_file(runs)

    @abstractmethod
    def _read_file(self, runs: Sequence[tuple[int, int]]) -> Iterator[Any]:
        """Yield blocks of ranges of rows, opening the file once; any exception means damage."""

    @contextmanager
    def _errors_named(self, failure: str) -> Iterator[None]:
        """Turn any exception into a `SourceError` that names the file, or says that it changed."""
        try:
            yield
        except (SourceError, ImportError, MemoryError, Warning):
            raise
        except Exception as error:  # libraries raise anything for damaged files
            self._check_unchanged()
            reason = " ".join(str(error).split()) or type(error).__name__
            raise SourceError(f"{self._name()}: {failure}: {reason}") from error
        self._check_unchanged()

    def _check_unchanged(self) -> None:
        if self._current_stamp() != self._stamp:
            raise SourceError(
                f"{self.path} has changed since it was opened; rows read before and after would "
                "not belong together. Open it again."
            )


class PerThread(threading.local):
    """Thread-local attributes that are not pickled."""

    def __reduce__(self) -> tuple[type[PerThread], tuple[()]]:
        return (PerThread, ())


def stamp(path: str) -> tuple[int, ...]:
    """Size and modification time of a regular file or a folder.

    Other files are refused: a FIFO or a socket would be waited for, and a device never ends.
    """
    try:
        status = os.stat(path)
    except OSError as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else error.strerror
        raise SourceError(f"{path}: {reason}") from error
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        raise SourceError(f"{path}: not a regular file")
    return status.st_size, status.st_mtime_ns


def library(module: str, reader_of: str) -> Any:
    """Import the library that reads a format."""
    return optional(module, f"Reading {reader_of}", "'mvcca[files]'")


def cut_tall(edges: Sequence[int], row_bytes: int) -> tuple[int, ...]:
    """Boundaries with more of them inside chunks that are too tall to be one block.

    Such a chunk or row group is decoded several times or in parts; whole, it might not fit.
    """
    tall = max(1, _TALL_BYTES // max(1, row_bytes))
    pieces = (range(a, b, tall) for a, b in pairwise(edges))
    return (*chain.from_iterable(pieces), edges[-1])
