"""Rows of a gallery, and their keys, that are searched while rows are added and removed.

They are values: a change gives a new one, and whoever holds the old one still sees the old rows.
Added rows are stored in spare capacity behind the rows of older values, and removed rows are only
marked, so that a change costs what the changed rows cost. Only one thread may change at a time, and
always the newest value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

CHUNK_ROWS = 8192  # a multiple of the width of the tiles that are searched
_PAD = 16  # capacity is a multiple of this


@dataclass(frozen=True, eq=False)
class ChunkedRows:
    """Rows in one chunk, or in chunks of `CHUNK_ROWS` rows, all full but the last.

    A chunk has the shape (capacity, ...); beyond the rows of this value it holds zeros, or rows of
    newer values.
    """

    chunks: tuple[np.ndarray, ...] = ()
    n: int = 0

    @classmethod
    def of_parts(cls, parts: Sequence[np.ndarray]) -> ChunkedRows:
        """Rows of consecutive parts; parts that fill a chunk are not copied."""
        n_whole = next((i for i, p in enumerate(parts) if len(p) != CHUNK_ROWS), len(parts))
        rows = cls(tuple(parts[:n_whole]), CHUNK_ROWS * n_whole)
        for part in parts[n_whole:]:
            rows = rows.plus(part)
        return rows

    @property
    def dtype(self) -> np.dtype:
        """Common type of all chunks."""
        return np.result_type(*{chunk.dtype for chunk in self.chunks})

    @property
    def parts(self) -> list[np.ndarray]:
        """Rows of each chunk."""
        if len(self.chunks) == 1:
            return [self.chunks[0][: self.n]]
        starts = range(0, self.n, CHUNK_ROWS)
        return [chunk[: self.n - start] for chunk, start in zip(self.chunks, starts, strict=True)]

    def parts_from(self, start: int) -> list[np.ndarray]:
        """Rows from `start` on, chunk by chunk."""
        ends = np.cumsum([len(part) for part in self.parts])
        return [
            part[max(0, len(part) - (end - start)) :]
            for part, end in zip(self.parts, ends, strict=True)
            if end > start
        ]

    def plus(self, added: np.ndarray) -> ChunkedRows:
        """Rows with more at the end. Only the last chunk is ever copied, to enlarge it."""
        chunks, n = list(self.chunks), self.n
        while len(added):
            fill = n - CHUNK_ROWS * (len(chunks) - 1)
            if not chunks or fill == CHUNK_ROWS:
                chunks.append(added[:0])
                fill = 0
            taken, added = np.split(added, [CHUNK_ROWS - fill])
            end, last = fill + len(taken), chunks[-1]
            dtype = np.result_type(last, taken)
            if end > len(last) or dtype != last.dtype:
                capacity = CHUNK_ROWS
                if len(chunks) == 1:  # it grows by doubling, so that a small index stays small
                    capacity = min(CHUNK_ROWS, max(2 * len(last), -(-end // _PAD) * _PAD))
                last = np.zeros((capacity, *taken.shape[1:]), dtype)
                last[:fill] = chunks[-1][:fill]
                chunks[-1] = last
            last[fill:end] = taken
            n += len(taken)
        return ChunkedRows(tuple(chunks), n)

    def take(self, positions: np.ndarray) -> np.ndarray:
        """Rows at the positions, of shape positions.shape + (...)."""
        if len(self.chunks) == 1:
            return self.chunks[0][positions]
        if positions.size > self.n:
            return np.concatenate(self.parts)[positions]
        taken = np.empty(positions.shape + self.chunks[0].shape[1:], self.dtype)
        chunk_of, place = np.divmod(positions, CHUNK_ROWS)
        for number in np.unique(chunk_of):
            here = chunk_of == number
            taken[here] = self.chunks[number][place[here]]
        return taken

    def subset(self, positions: np.ndarray) -> ChunkedRows:
        """Rows at ascending positions, copied chunk by chunk."""
        subset = ChunkedRows()
        starts = np.cumsum([0, *map(len, self.parts)])
        edges = np.searchsorted(positions, starts)
        for part, start, a, b in zip(self.parts, starts, edges, edges[1:], strict=False):
            subset = subset.plus(part[positions[a:b] - start])
        return subset


@dataclass(frozen=True, eq=False)
class RemovedRows:
    """Positions of rows that are no longer there, by chunk."""

    by_chunk: Mapping[int, np.ndarray] = field(default_factory=dict)  # sorted, within the chunk
    n: int = 0

    def plus(self, positions: np.ndarray) -> RemovedRows:
        """More positions, each of a row that was still there."""
        chunk_of, places = np.divmod(np.sort(positions), CHUNK_ROWS)
        numbers, starts = np.unique(chunk_of, return_index=True)
        by_chunk = dict(self.by_chunk)
        for number, new in zip(numbers.tolist(), np.split(places, starts[1:]), strict=True):
            by_chunk[number] = np.union1d(by_chunk.get(number, new[:0]), new)
        return RemovedRows(by_chunk, self.n + len(positions))

    def within(self, start: int, stop: int) -> np.ndarray:
        """Positions from `start` to `stop`, counted from `start`; the range is of one chunk."""
        number, first = divmod(start, CHUNK_ROWS)
        places = self.by_chunk.get(number)
        if places is None:
            return np.empty(0, dtype=np.intp)
        a, b = np.searchsorted(places, [first, first + stop - start])
        return places[a:b] - first

    def positions(self) -> np.ndarray:
        """All positions."""
        parts = [CHUNK_ROWS * number + places for number, places in self.by_chunk.items()]
        return np.concatenate([np.empty(0, dtype=np.intp), *parts])


@dataclass(frozen=True, eq=False)
class SortedKeys:
    """Keys and their positions, in sorted runs that get shorter; the last run with a key counts."""

    # Runs are pairs of sorted keys and positions; -1 takes the key of an earlier run back.

    runs: tuple[tuple[np.ndarray, np.ndarray], ...] = ()

    def positions(self, keys: np.ndarray) -> np.ndarray:
        """Positions of keys, -1 for unknown ones."""
        found = np.full(len(keys), -1, dtype=np.int64)
        for known, positions in self.runs:
            nearest = np.minimum(np.searchsorted(known, keys), len(known) - 1)
            is_known = known[nearest] == keys
            found[is_known] = positions[nearest[is_known]]
        return found

    def plus(self, keys: np.ndarray, positions: np.ndarray) -> SortedKeys:
        """Keys with more of them; each takes part in a logarithmic number of merges."""
        if not len(keys):
            return self
        runs = list(self.runs)
        merged: list[tuple[Any, Any]] = [(keys, positions)]
        while runs and len(runs[-1][0]) <= 2 * sum(len(part) for part, _ in merged):
            merged.insert(0, runs.pop())
        keys, positions = (np.concatenate(parts) for parts in zip(*merged, strict=True))
        order = np.argsort(keys, kind="stable")
        keys, positions = keys[order], positions[order]
        counts = np.append(keys[1:] != keys[:-1], True)  # the newest of equal keys
        return SortedKeys((*runs, (keys[counts], positions[counts])))

    def without(self, keys: np.ndarray) -> SortedKeys:
        """Keys without some that are known."""
        return self.plus(keys, np.full(len(keys), -1, dtype=np.int64))

    def moved(self, new_positions: np.ndarray) -> SortedKeys:
        """Keys whose rows have moved, row i to new_positions[i]; -1 is a row that is gone."""
        runs = []
        for keys, positions in self.runs:
            moved = np.where(positions < 0, -1, new_positions[positions])
            if (moved >= 0).any():
                runs.append((keys[moved >= 0], moved[moved >= 0]))
        return SortedKeys(tuple(runs))
