"""Base of sources in files: detects that a file has changed, and names it in every error."""

from __future__ import annotations

import os
import stat
import threading
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from hashlib import sha256
from itertools import chain, pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from mvcca.blocks.sources._row_source import RowSource, SourceError
from mvcca.machine.optional import optional

_TALL_BYTES = 64 * 2**20
_QUICK_BYTES = 2**30  # read in about a second, whatever they claim to be
_MOST_COMPRESSED = 10_000  # numbers per stored number: more than a matrix of use can be compressed
_SAMPLES, _SAMPLE_BYTES = 64, 2**16  # read for the fingerprint of a file


class FileSource(RowSource):
    """A matrix in a file: `path`, and `key` if the file may hold several."""

    def __init__(self, path: str | os.PathLike[str], key: str | None = None) -> None:
        self.shown = os.fspath(path)  # in messages
        self.path = os.path.abspath(path)  # a worker may run in another directory
        self.key = key or None
        self._stamp = self._current_stamp()
        with self._errors_named("cannot be opened"):
            self._open()

    @abstractmethod
    def _open(self) -> None:
        """Describe the matrix; any exception means damage."""

    @abstractmethod
    def _read_file(self, ranges: Sequence[tuple[int, int]]) -> Iterator[Any]:
        """As `blocks`; any exception means damage."""

    def blocks(self, ranges: Sequence[tuple[int, int]]) -> Iterator[Any]:
        with self._errors_named("cannot be read"):
            yield from self._read_file(ranges)

    @property
    def name(self) -> str:  # type: ignore[override]
        """The path, and the key if there is one."""
        return self.shown if self.key is None else f"{self.shown}, {self.key!r}"

    def identity(self) -> tuple[Any, ...]:
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

    def beside(self, name: str) -> np.ndarray:
        """Ids of the rows, which the file holds beside the matrix by this name."""
        raise SourceError(
            f"{self.shown}: it has no ids {name!r} of its rows; a .npz file may have, as "
            "np.savez('rows.npz', rows=X, ids=names) writes it"
        )

    def _stored_in(self) -> list[str]:
        """Files that hold the numbers."""
        return [self.path]

    def _links(self) -> str:
        """What links in the file lead to, as sentences that follow an error."""
        return ""

    def _choose(self, shapes: Mapping[str | None, tuple[int, ...]]) -> None:
        """Set the key to one of these arrays; by default to the only matrix."""
        if None in shapes:  # the file is the array
            if self.key is not None:
                raise SourceError(f"{self.shown} is one array; it has no {self.key!r}.")
        elif self.key is None:
            matrices = [key for key, shape in shapes.items() if len(shape) == 2]
            if len(matrices) != 1:
                found = ", ".join(map(repr, matrices)) or f"none among {list(shapes)}"
                raise SourceError(
                    f"{self.shown}: expected one matrix, found {found}. Name the one you mean: "
                    f"open_matrix(path, key=...).{self._links()}"
                )
            [self.key] = matrices
        elif (key := self.key.strip("/")) in shapes:
            self.key = key
        else:
            raise SourceError(
                f"{self.shown}: no array {key!r}; there are {sorted(map(str, shapes))}."
                f"{self._links()}"
            )

    def _check_claim(self, claimed: int, stored: int | None = None) -> None:
        """Raise if an array claims more bytes than its stored bytes can hold when compressed.

        Chunks that were never written read as a fill value, so a few bytes can claim any shape.
        """
        stored = self._stamp[0] if stored is None else stored
        if claimed > max(_QUICK_BYTES, _MOST_COMPRESSED * stored):
            raise SourceError(
                f"{self.name}: it claims {claimed:,} bytes of numbers, but {stored:,} bytes are "
                "stored, too few even if compressed; it is damaged or was never written."
            )

    def _errors_named(self, failure: str) -> AbstractContextManager[None]:
        """Errors name the file, or say that it has changed."""
        return errors_named(lambda: self.name, failure, self._check_unchanged)

    def _current_stamp(self) -> tuple[int, ...]:
        return stamp(self.path)

    def _check_unchanged(self) -> None:
        if self._current_stamp() != self._stamp:
            raise SourceError(
                f"{self.shown} has changed since it was opened; rows read before and after would "
                "not belong together. Open it again."
            )


class CsrFile(FileSource):
    """A sparse matrix by rows, in the arrays `data`, `indices` and `indptr` of a file."""

    is_sparse = True

    @abstractmethod
    def _arrays(self) -> AbstractContextManager[Mapping[str, Any]]:
        """The arrays by name, of which slices are read."""

    def _describe(self, shape: Sequence[int], arrays: Mapping[str, Any]) -> np.ndarray:
        """Describe the matrix of arrays that belong together, and return its row offsets."""
        data, indices, indptr = (arrays[name] for name in ("data", "indices", "indptr"))
        self.describe(shape, data.dtype)
        if data.shape != indices.shape or len(data.shape) != 1 or indices.dtype.kind not in "iu":
            raise SourceError(
                f"{self.name} is damaged: its data have the shape {data.shape}, its indices "
                f"{indices.shape} of {indices.dtype}."
            )
        n_entries = data.shape[0]
        entries = n_entries // max(1, len(self)) + 1
        self.row_bytes = entries * (self.dtype.itemsize + 4) + 4
        try:
            return checked_offsets(indptr, len(self), n_entries)
        except ValueError as error:
            raise SourceError(f"{self.name} is damaged: {error}.") from error

    def _read_file(self, ranges: Sequence[tuple[int, int]]) -> Iterator[csr_array]:
        with self._arrays() as arrays:
            for start, stop in ranges:
                ends = arrays["indptr"][start : stop + 1].astype(np.int64)
                entries = slice(int(ends[0]), int(ends[-1]))
                columns, data = arrays["indices"][entries], arrays["data"][entries]
                if columns.size and not 0 <= columns.min() <= columns.max() < self.shape[1]:
                    raise SourceError(
                        f"{self.name} is damaged: rows {start} to {stop} name columns "
                        f"{columns.min()} to {columns.max()} of {self.shape[1]}."
                    )
                parts = data.astype(self.dtype, copy=False), columns, ends - ends[0]
                yield csr_array(parts, shape=(stop - start, self.shape[1]))


class PerThread(threading.local):
    """Thread-local attributes that are not pickled."""

    def __reduce__(self) -> tuple[type[PerThread], tuple[()]]:
        return (PerThread, ())


# Some columns of a file: which, what is decoded of them next, the first row of the last piece, and
# this piece.
Columns = tuple[slice, Iterator[Any], int, np.ndarray]


class DecodedFile(FileSource):
    """Dense rows that are decoded in pieces, each of them once as long as ranges are in order.

    `_edges` are the rows at which decoding can begin, from 0 to their number. The place in the file
    is kept for the next call, of any thread; those that read at once have a place each.
    """

    _edges: list[int]

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._idle: list[tuple[int, int, list[Columns]]] = []
        super().__init__(path)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_idle": []}

    @abstractmethod
    def _decoded(self, number: int, stop: int) -> tuple[int, list[tuple[slice, Iterator[Any]]]]:
        """What is decoded from an edge on, piece by piece, for sets of columns.

        Returns a row, `stop` or an edge after it, at which the pieces end.
        """

    @abstractmethod
    def _rows(self, piece: Any, columns: slice, first: int) -> np.ndarray:
        """Rows of some columns in a decoded piece, whose first row is row `first`."""

    def _read_file(self, ranges: Sequence[tuple[int, int]]) -> Iterator[np.ndarray]:
        try:
            reached, end, parts = self._idle.pop()
        except IndexError:  # no place is kept, or other threads read on from all of them
            reached, end, parts = 0, 0, []
        for start, stop in ranges:
            block, row = np.empty((stop - start, self.shape[1]), dtype=self.dtype), start
            while row < stop:
                number = bisect_right(self._edges, row) - 1
                edge = self._edges[number]
                if row >= end or reached < edge or any(row < first for *_, first, _ in parts):
                    end, decoded = self._decoded(number, stop)
                    parts = [(*columns, edge, np.empty((0, 0))) for columns in decoded]
                reached = min(stop, end)
                own = block[row - start : reached - start]
                for _ in range(len(parts)):
                    part = self._filled(own, row, *parts.pop(0))
                    if reached < end:  # else its memory is for the next columns
                        parts.append(part)
                row = reached
            yield block
        if reached < end:  # not after an error
            self._idle.append((reached, end, parts))

    def _filled(
        self,
        block: np.ndarray,
        row: int,
        columns: slice,
        pieces: Iterator[Any],
        first: int,
        piece: np.ndarray,
    ) -> Columns:
        """Fill some columns of a block with the rows from `row` on, and say what comes next."""
        block = block[:, columns]
        while len(block):
            while row >= first + len(piece):
                first += len(piece)
                piece = self._rows(next(pieces), columns, first)
            rows = piece[row - first :][: len(block)]
            block[: len(rows)] = rows
            block, row = block[len(rows) :], row + len(rows)
        if row == first + len(piece):  # a view of no rows would keep the memory of all
            first, piece = row, piece[:0].copy()
        return columns, pieces, first, piece


def checked_offsets(indptr: Any, n_lines: int, n_entries: int) -> np.ndarray:
    """Offsets of rows, or of columns, which must rise from 0 to the number of entries."""
    if indptr.shape != (n_lines + 1,) or indptr.dtype.kind not in "iu":
        raise ValueError(
            f"its row offsets are {indptr.dtype} {indptr.shape}, expected {n_lines + 1} integers"
        )
    offsets: np.ndarray = indptr[:]
    ends_meet = offsets[0] == 0 and offsets[-1] == offsets.max() == n_entries
    if not ends_meet or (offsets[1:] < offsets[:-1]).any():
        raise ValueError("its row offsets are inconsistent")
    return offsets


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


@contextmanager
def errors_named(
    name: Callable[[], str], failure: str, check: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Turn any exception into a `SourceError` that names the file, which is checked at the end."""
    try:
        yield
    except (SourceError, ImportError, MemoryError, Warning):
        raise
    except Exception as error:  # libraries raise anything for damaged files
        check()
        reason = " ".join(str(error).split()) or type(error).__name__
        raise SourceError(f"{name()}: {failure}: {reason}") from error
    check()


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
