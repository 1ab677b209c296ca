"""Rearrangements of rows that leave their distribution as it is under the null hypothesis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

_LEAST = 20  # distinct rearrangements: with fewer, no p-value is below 0.05


@dataclass(frozen=True, eq=False)
class Exchange:
    """Rows that may be exchanged, or whose signs may be flipped.

    Attributes
    ----------
    blocks : tuple of ndarray of int, shape (n_blocks, size)
        Positions of the rows of each group, groups of equal size together.
    within : bool
        Whether rows are exchanged within their group; if not, whole groups are.
    flips : bool
        Whether signs of whole groups are flipped, in place of permutations.
    """

    blocks: tuple[np.ndarray, ...]
    within: bool
    flips: bool = False

    @classmethod
    def of(
        cls, n_rows: int, groups: np.ndarray | None, *, within: bool = False, flips: bool = False
    ) -> Exchange:
        """Exchange of rows, freely or as their groups allow."""
        if groups is None:
            rows = np.arange(n_rows)
            return cls((rows[:, None] if flips else rows[None],), not flips, flips)
        sizes = np.bincount(groups)
        members = np.split(np.argsort(groups, kind="stable"), np.cumsum(sizes)[:-1])
        by_size = (
            np.array([rows for rows in members if len(rows) == size])
            for size in np.unique(sizes[sizes > 0])
        )
        return cls(tuple(by_size), within, flips)

    @property
    def log_count(self) -> float:
        """Logarithm of the number of distinct rearrangements."""
        if self.flips:  # all signs at once change nothing
            return (sum(map(len, self.blocks)) - 1) * np.log(2)
        shapes = [block.shape for block in self.blocks]
        return float(sum(n * gammaln(s + 1) if self.within else gammaln(n + 1) for n, s in shapes))

    def check(self) -> None:
        """Refuse designs with so few rearrangements that nothing can be significant."""
        if self.log_count > np.log(_LEAST) - 1e-9:
            return
        sizes = ", ".join(f"{len(block)} of {block.shape[1]}" for block in self.blocks)
        remedy = (
            "Use more groups."
            if self.flips or self.within
            else "Only groups of equal size are exchanged: use groups of fewer sizes, or pass "
            "within=True if rows can be exchanged within their groups."
        )
        raise ValueError(
            f"Groups of these sizes (rows: {sizes}) allow {round(np.exp(self.log_count))} distinct "
            f"{'sign flips' if self.flips else 'permutations'}, expected at least {_LEAST}: no "
            f"p-value could be below {1 / _LEAST}. {remedy}"
        )

    def apply(self, rows: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        """Rearrange rows at random."""
        if self.flips:
            return rows * self._signs(len(rows), rng)[:, None]
        return rows[self._order(len(rows), rng)]

    def _order(self, n_rows: int, rng: np.random.RandomState) -> np.ndarray:
        order = np.arange(n_rows)
        for block in self.blocks:
            n, size = block.shape
            if not self.within:
                order[block] = block[rng.permutation(n)]
            elif n == 1:
                order[block[0]] = rng.permutation(block[0])
            else:
                moved = np.argsort(rng.random_sample((n, size)), axis=1)
                order[block] = np.take_along_axis(block, moved, axis=1)
        return order

    def _signs(self, n_rows: int, rng: np.random.RandomState) -> np.ndarray:
        signs = np.empty(n_rows)
        for block in self.blocks:
            signs[block] = rng.choice([-1.0, 1.0], (len(block), 1))
        return signs
