"""Stored rows that queries search, and the rank of a query's own row among them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mvcca.blocks import as_block
from mvcca.machine.threads import each

MOST_ROWS = 100_000  # of a gallery; more stored rows are represented by a random draw
_TILE_SIZE = 2**22  # scores of one thread

Ranks = tuple[np.ndarray, np.ndarray]  # number of other rows that score better, and the same


@dataclass(frozen=True, eq=False)
class Gallery:
    """Stored rows of the old model, with the places of the rows that belong to the queries.

    Stored rows that are equal to a query's own row are the same item to any map, and count as its
    own.
    """

    rows: np.ndarray  # (n_rows, n_features of the old model)
    n_stored: int  # rows that they were drawn from
    owner: np.ndarray  # (n_own,), query of each place, increasing
    place: np.ndarray  # (n_own,), rows that are a query's own

    @classmethod
    def of(cls, stored: Any, own: np.ndarray, rng: np.random.Generator) -> Gallery:
        """The stored rows, or a random draw of them; own rows that are not among them are added."""
        n_stored, numbers = stored.shape[0], None
        if n_stored > MOST_ROWS:
            drawn = rng.choice(n_stored, MOST_ROWS - len(own), replace=False, shuffle=False)
            numbers = np.sort(drawn)
            stored = as_block(stored).take(numbers).matrix
        rows = np.asarray(as_block(stored).in_memory().matrix).astype(own.dtype, copy=False)
        if not (is_finite := np.isfinite(rows).all(axis=1)).all():
            place = int(np.argmin(is_finite))
            number = place if numbers is None else numbers[place]
            raise ValueError(f"Row {number:,} of the stored rows contains NaN or infinity.")
        places: dict[bytes, list[int]] = {_key(row): [] for row in own}
        for place, row in enumerate(rows):
            if (known := places.get(_key(row))) is not None:
                known.append(place)
        added: list[np.ndarray] = []
        for row in own:
            if not places[_key(row)]:
                places[_key(row)].append(len(rows) + len(added))
                added.append(row)
        of_each = [places[_key(row)] for row in own]
        return cls(
            np.concatenate([rows, added]) if added else rows,
            max(n_stored, len(rows) + len(added)),
            np.repeat(np.arange(len(own)), [len(known) for known in of_each]),
            np.concatenate(of_each),
        )

    def ranks(self, queries: np.ndarray, scores: Callable[[slice], np.ndarray]) -> Ranks:
        """Ranks of the own rows of queries, from their scores of all rows.

        `queries` are positions in the order of the own rows; `scores` returns a new array for a
        slice of `queries`.
        """
        size = max(1, _TILE_SIZE // len(self.rows))

        def ranks_of(part: slice) -> Ranks:
            chosen = queries[part]
            tile = scores(part)
            first, last = (np.searchsorted(self.owner, chosen, side) for side in ("left", "right"))
            own = tile[np.arange(len(chosen)), self.place[first]][:, None]
            for row, a, b in zip(tile, first, last, strict=True):
                row[self.place[a:b]] = -np.inf
            return (tile > own).sum(axis=1), (tile == own).sum(axis=1)

        parts = each(ranks_of, (slice(a, a + size) for a in range(0, len(queries), size)))
        better, equal = (np.concatenate(part) for part in zip(*parts, strict=True))
        return better, equal


def _key(row: np.ndarray) -> bytes:
    return (row + 0.0).tobytes()  # the same for 0.0 and -0.0
