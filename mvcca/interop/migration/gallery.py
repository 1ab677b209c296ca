"""Stored rows that queries search, and the rank of a query's own row among them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mvcca.blocks import as_block
from mvcca.blocks.checks import to_array
from mvcca.machine.threads import each

MOST_ROWS = 100_000  # of a gallery; more stored rows are represented by a random draw
_TILE_QUERIES, _TILE_ROWS = 128, 1_024  # their cosines stay in cache
_TIE = 8  # rounding errors by which equal cosines may differ

Ranks = tuple[np.ndarray, np.ndarray]  # number of other rows that score better, and the same
# Cosines of some rows, a slice or numbers, with a slice of the queries: (n_rows, n_queries).
Cosines = Callable[[Any, slice], np.ndarray]


@dataclass(frozen=True, eq=False)
class StoredRows:
    """Stored rows of the old model, with the places of the rows that belong to the queries.

    Equal stored rows are the same item to any map, and are kept once: a query whose own row fills
    half of them would be found without a map.
    """

    rows: np.ndarray  # (n_rows, n_features of the old model)
    n_stored: int  # rows that they were drawn from
    owner: np.ndarray  # (n_own,), query of each place, increasing
    place: np.ndarray  # (n_own,), rows that are a query's own

    @classmethod
    def of(cls, stored: Any, own: np.ndarray, rng: np.random.Generator) -> StoredRows:
        """The stored rows, or a random draw of them; own rows that are not among them are added."""
        n_stored, numbers = stored.shape[0], None
        if n_stored > MOST_ROWS:
            drawn = rng.choice(n_stored, MOST_ROWS - len(own), replace=False, shuffle=False)
            numbers = np.sort(drawn)
            stored = as_block(stored).take(numbers).matrix
        rows = to_array(as_block(stored).in_memory().matrix).astype(own.dtype, copy=False)
        if not (is_finite := np.isfinite(rows).all(axis=1)).all():
            place = int(np.argmin(is_finite))
            number = place if numbers is None else numbers[place]
            raise ValueError(f"Row {number:,} of the stored rows contains NaN or infinity.")
        n_rows, is_first = len(rows), first_of_equal(rows)
        rows = rows if is_first.all() else rows[is_first]
        places: dict[bytes, list[int]] = {_key(row): [] for row in own}
        same_start = np.flatnonzero(np.isin(rows[:, 0], own[:, 0]))  # few are compared whole
        for place in same_start.tolist():
            if (known := places.get(_key(rows[place]))) is not None:
                known.append(place)
        added: list[np.ndarray] = []
        for row in own:
            if not places[_key(row)]:
                places[_key(row)].append(len(rows) + len(added))
                added.append(row)
        of_each = [places[_key(row)] for row in own]
        return cls(
            np.concatenate([rows, added]) if added else rows,
            max(n_stored, n_rows + len(added)),
            np.repeat(np.arange(len(own)), [len(known) for known in of_each]),
            np.concatenate(of_each),
        )

    def ranks(self, queries: np.ndarray, cosines: Cosines) -> Ranks:
        """Ranks of the own rows of queries, which are positions in the order of the own rows."""
        found = [
            self._ranks(queries[start : start + _TILE_QUERIES], start, cosines)
            for start in range(0, len(queries), _TILE_QUERIES)
        ]
        better, equal = (np.concatenate(part) for part in zip(*found, strict=True))
        return better, equal

    def _ranks(self, queries: np.ndarray, start: int, cosines: Cosines) -> Ranks:
        """Ranks of the queries from one place on."""
        part = slice(start, start + len(queries))
        first, last = (np.searchsorted(self.owner, queries, side) for side in ("left", "right"))
        own = np.diagonal(cosines(self.place[first], part))
        margin = _TIE * np.finfo(own.dtype).eps

        def counts(rows: slice) -> tuple[np.ndarray, np.ndarray]:
            tile = cosines(rows, part)
            better = np.count_nonzero(tile > own + margin, axis=0)
            return better, np.count_nonzero(tile >= own - margin, axis=0)

        starts = range(0, len(self.rows), _TILE_ROWS)
        tiles = each(counts, (slice(a, a + _TILE_ROWS) for a in starts))
        better, as_good = np.sum(tiles, axis=0)
        return better, as_good - better - (last - first)


def first_of_equal(*matrices: np.ndarray) -> np.ndarray:
    """Which rows differ from all rows before them, (n_rows,) of bool."""
    is_first = np.ones(len(matrices[0]), dtype=bool)
    _, group, sizes = np.unique(matrices[0][:, 0], return_inverse=True, return_counts=True)
    known = set()
    for row in np.flatnonzero(sizes[group] > 1).tolist():  # few are compared whole
        key = b"".join(_key(matrix[row]) for matrix in matrices)
        is_first[row] = key not in known
        known.add(key)
    return is_first


def _key(row: np.ndarray) -> bytes:
    return (row + 0.0).tobytes()  # the same for 0.0 and -0.0
