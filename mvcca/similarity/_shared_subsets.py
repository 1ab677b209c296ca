"""Products with the squared exponential of label sets, by the label subsets that sets share.

For sets z and z', the similarity is a sum over the subsets s that they share,

    g(z, z') = t^|z Δ z'| = t^|z| t^|z'| (1 + c)^|z ∩ z'| = t^|z| t^|z'| Σ_{s ⊆ z ∩ z'} c^|s|,

with t = exp(-1 / 2σ) and c = t⁻² - 1. All terms are positive. A subset of one set only adds to the
diagonal, which is known to be 1. Subsets that at least two sets share are found by depth-first
search; real label sets share few, so that a product with G takes far less than U² operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from mvcca.machine.threads import stop_if_abandoned
from mvcca.views import Labels

Subsets: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]  # members, their ends, weights
Search: TypeAlias = Callable[[], Iterator[Subsets]]

# A member of a subset takes as long as these entries of a tile, measured by
# `benchmarks/scale/label_covariance.py`.
_ENTRIES_PER_MEMBER = 40
_LARGEST_EXPONENT = 600.0  # of the weights of subsets, so that they and their inverses are floats
_MEMBERS_AT_ONCE = 2**23  # less than a second's work, between which an interrupt is noticed
_KEPT_BYTES = 2**29  # of subsets; if there are more, they are searched for again for each product
_COLUMNS = 64  # of a product at a time


@dataclass(frozen=True, eq=False)
class SharedSubsets:
    """The label subsets that at least two of U label sets share.

    Attributes
    ----------
    order : ndarray of int, shape (U,)
        The label sets in an order in which sets that share frequent labels are neighbours.
    scale : ndarray, shape (U,)
        t^|z| of the sets in this order.
    rest : ndarray, shape (U,)
        What subsets of a single set add to the diagonal of G.
    n_members : int
        Number of sets that contain a subset, summed over all subsets.
    """

    order: np.ndarray
    scale: np.ndarray
    rest: np.ndarray
    n_members: int
    _search: Search
    _kept: list[Subsets] | None

    @classmethod
    def of(cls, labels: Labels, sigma: float, at_most: float | None = None) -> SharedSubsets | None:
        """Find the shared subsets; None if tiles of G are cheaper, or if 1 + c is too large.

        Parameters
        ----------
        labels : Labels
            The U distinct label sets.
        sigma : float
            Bandwidth.
        at_most : float, optional
            Largest number of members; by default that for which tiles take as long.
        """
        sets = labels.vectors
        U = sets.shape[0]
        sizes = np.diff(sets.indptr)
        at_most = U**2 / _ENTRIES_PER_MEMBER if at_most is None else at_most
        if not U or at_most < U or sizes.max() > _LARGEST_EXPONENT * sigma:
            return None
        order, search = _prepared(sets, float(np.expm1(1 / sigma)))
        diagonal, n_members = np.zeros(U), 0
        kept: list[Subsets] | None = []
        for members, ends, weights in search():
            n_members += len(members)
            if n_members > at_most:
                return None
            np.add.at(diagonal, members, np.repeat(weights, np.diff(ends, prepend=0)))
            if kept is not None:
                kept.append((members.copy(), ends.copy(), weights.copy()))
                if _bytes_of(kept) > _KEPT_BYTES:
                    kept = None
        scale = np.exp(-sizes[order] / (2 * sigma))
        return cls(order, scale, 1 - scale**2 * diagonal, n_members, search, kept)

    @property
    def n_bytes(self) -> int:
        """Memory of the subsets, and of a product beside its factors."""
        subsets = _KEPT_BYTES if self._kept is None else _bytes_of(self._kept)
        return subsets + 3 * 8 * _COLUMNS * len(self.order)

    def __iter__(self) -> Iterator[Subsets]:
        """Yield subsets, some at a time, in arrays that may be used again."""
        yield from self._search() if self._kept is None else self._kept

    def times(self, S: np.ndarray) -> np.ndarray:
        """GS in float64 for S of shape (U, d)."""
        from mvcca.machine.compiled_subsets import add_sums_of_subsets

        product = np.empty(S.shape)
        for start in range(0, S.shape[1], _COLUMNS):
            columns = slice(start, start + _COLUMNS)
            block = S[self.order, columns].astype(np.float64)
            sums, scaled = np.zeros(block.shape), block * self.scale[:, None]
            for subsets in self:
                add_sums_of_subsets(*subsets, scaled, sums)
                stop_if_abandoned()
            sums *= self.scale[:, None]
            block *= self.rest[:, None]
            sums += block
            product[self.order, columns] = sums
        return product


def _bytes_of(parts: list[Subsets]) -> int:
    return sum(array.nbytes for subsets in parts for array in subsets)


def _shared_subsets(
    labels: np.ndarray, owners: np.ndarray, starts: np.ndarray, odds: float
) -> Iterator[Subsets]:
    """Search depth first; yield subsets, some at a time, in arrays that are used again.

    `labels` and `owners` have the labels of each set, rare ones first and ended by -1, and the set
    to which each belongs; `starts` says where the labels of each set start; `odds` are c.
    """
    from mvcca.machine.compiled_subsets import walk_shared_subsets

    n_sets = len(starts)
    members = np.empty(max(_MEMBERS_AT_ONCE, n_sets), np.int32)
    ends, weights = np.empty(len(members) // 2, np.int64), np.empty(len(members) // 2)
    state: Any = (starts.copy(), np.array([[0, n_sets]]), np.ones(1), 1)
    while state[-1]:
        *state, n = walk_shared_subsets(labels, owners, odds, *state, members, ends, weights)
        yield members[: ends[n - 1]], ends[:n], weights[:n]


def _prepared(sets: csr_array, odds: float) -> tuple[np.ndarray, Search]:
    """Order sets by their most frequent labels, and number labels from rare to frequent."""
    from mvcca.machine.compiled_loops import pack_label_sets

    U, n_labels = sets.shape
    ranks = np.empty(n_labels, np.int32)
    frequencies = np.bincount(sets.indices, minlength=n_labels)
    ranks[np.argsort(frequencies, kind="stable")] = np.arange(n_labels)
    sets = csr_array((sets.data, ranks[sets.indices], sets.indptr), sets.shape)
    order = np.lexsort(pack_label_sets(sets))
    sets = sets[order]
    sets.sort_indices()
    starts = sets.indptr[:-1].astype(np.int64) + np.arange(U)
    labels = np.insert(sets.indices, sets.indptr[1:], -1).astype(np.int32)
    owners = np.repeat(np.arange(U, dtype=np.int32), np.diff(sets.indptr) + 1)
    return order, partial(_shared_subsets, labels, owners, starts, odds)
