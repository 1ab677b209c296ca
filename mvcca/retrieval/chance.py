"""Lists in random order, of which the measures in `mvcca.measures.chance` have expectations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np

from mvcca.retrieval.ranked_lists import Judged

_CELLS = 2**22  # of a block of queries by the gallery


class RandomLists:
    """Lists in random order, of which measures have expectations."""

    def __init__(self, judged: Judged, n_gallery: int) -> None:
        self._judged, self._n_gallery = judged, n_gallery
        self._leaves_out_self = judged.exclude_self
        self.n_items: int = self._n_gallery - self._leaves_out_self
        # An item is found by all queries but its own.
        self.n_queries: int = len(self._judged.objects) - self._leaves_out_self

    @cached_property
    def n_relevant(self) -> np.ndarray:
        """Number of relevant items in each query's list."""
        parts = []
        for rows, own in self._blocks():
            hits, n_relevant = self._judged.relevance.of_items(rows, own)
            parts.append(n_relevant - hits.sum(axis=1))
        return np.concatenate([np.empty(0, dtype=int), *parts])

    def by_gains(self, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Values of all queries, from the gains of blocks; 0 for an item that is left out."""
        parts = []
        for rows, own in self._blocks():
            gains = np.array(self._judged.relevance.gains(rows))
            np.put_along_axis(gains, own, 0.0, axis=1)
            parts.append(function(gains))
        return np.concatenate([np.empty(0), *parts])

    def _blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Blocks of queries, and the items (n, 1) or (n, 0) left out of their lists."""
        n_queries, step = len(self._judged.objects), max(1, _CELLS // max(1, self._n_gallery))
        for start in range(0, n_queries, step):
            own = np.arange(start, min(start + step, n_queries))[:, None]
            yield slice(start, start + len(own)), own[:, : self._leaves_out_self]
