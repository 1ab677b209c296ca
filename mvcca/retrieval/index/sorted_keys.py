"""Positions of the ids of an index, as a value that grows at a logarithmic cost per id."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


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
