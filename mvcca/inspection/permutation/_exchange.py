"""Rearrangements of rows that leave their distribution as it is under the null hypothesis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from scipy import linalg
from scipy.special import gammaln

from mvcca.inspection._rows import residuals
from mvcca.inspection.permutation._nuisance import Complement, Strata, Weighted, groups_by_size

_LEAST = 20  # distinct rearrangements: with fewer, no p-value is below 0.05
_ROUNDING = 1e-10  # of what confounds leave of a row


@dataclass(frozen=True, eq=False)
class Exchange:
    """Rows that may be exchanged.

    Attributes
    ----------
    blocks : tuple of ndarray of int, shape (n_blocks, size)
        Positions of the rows of each group; those of a block are of equal size, and are exchanged.
    within : bool
        Whether rows are exchanged within their group; if not, whole groups are.
    """

    blocks: tuple[np.ndarray, ...]
    within: bool

    @classmethod
    def of(
        cls,
        n_rows: int,
        groups: np.ndarray | None,
        outer: np.ndarray | None = None,
        *,
        within: bool = False,
    ) -> Exchange:
        """Exchange of rows, freely or as their groups, and the outer groups of these, allow."""
        if groups is None:
            return cls.in_strata([n_rows])
        return cls(tuple(chain(*groups_by_size(groups, outer))), within)

    @classmethod
    def in_strata(cls, sizes: Sequence[int]) -> Exchange:
        """Exchange of rows in each of several strata, which follow each other."""
        ends = np.cumsum(sizes)
        strata = np.split(np.arange(ends[-1]), ends[:-1])
        return cls(tuple(rows[None] for rows in strata if len(rows)), within=True)

    @property
    def log_count(self) -> float:
        """Logarithm of the number of distinct rearrangements."""
        shapes = [block.shape for block in self.blocks]
        return float(sum(n * gammaln(s + 1) if self.within else gammaln(n + 1) for n, s in shapes))

    def check(self) -> None:
        """Refuse designs with so few rearrangements that nothing can be significant."""
        if self.log_count > np.log(_LEAST) - 1e-9:
            return
        sizes = ", ".join(f"{len(block)} of {block.shape[1]}" for block in self.blocks)
        remedy = (
            "Use more groups."
            if self.within
            else "Only groups of equal size, in the same outer group, are exchanged: use groups of "
            "fewer sizes, or pass within=True if rows can be exchanged within their groups."
        )
        raise ValueError(_too_few(sizes, self.log_count, "permutations", remedy))

    def apply(self, rows: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        """Rearrange rows at random."""
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


@dataclass(frozen=True, eq=False)
class Flips:
    """Rows, or whole groups, whose signs may be flipped.

    Residuals are divided by 1 less their leverage and flipped; the confounds are removed again,
    and the products of columns restored, since flips change both.

    Attributes
    ----------
    codes : ndarray of int, shape (n_rows,)
        Group of each row, from 0.
    Z : ndarray, shape (n_rows, rank)
        Orthonormal basis of the confounds.
    """

    codes: np.ndarray
    Z: np.ndarray

    @property
    def log_count(self) -> float:
        """Logarithm of the number of distinct flips; all signs at once change nothing."""
        return float(self.codes.max() * np.log(2))

    def check(self) -> None:
        """Refuse so few groups that nothing can be significant."""
        if self.log_count <= np.log(_LEAST) - 1e-9:
            n = int(self.codes.max()) + 1
            raise ValueError(
                _too_few(f"{n}, all in all", self.log_count, "sign flips", "Use more groups.")
            )

    def apply(self, rows: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        """Flip signs at random; columns from i on still span the same rows, for all i."""
        signs = rng.choice([-1.0, 1.0], self.codes.max() + 1)[self.codes]
        left = 1 - (self.Z**2).sum(axis=1)
        scale = np.divide(signs, left, out=np.zeros_like(left), where=left > _ROUNDING)
        flipped = residuals(rows * scale[:, None], self.Z)
        new, lengths = linalg.qr(flipped[:, ::-1], mode="economic")
        (products,) = linalg.qr(rows[:, ::-1], mode="r")
        products = products[: rows.shape[1]] * np.sign(np.diag(products))[:, None]
        return np.asarray((new * np.sign(np.diag(lengths)) @ products)[:, ::-1])


def exchange_of(
    complement: Complement, groups: np.ndarray | None, outer: np.ndarray | None, *, within: bool
) -> Exchange | Flips:
    """What may be done to the rows that are left without confounds."""
    if isinstance(complement, Strata):
        return Exchange.in_strata(complement.sizes)
    kept = complement.kept
    codes = None if groups is None else np.unique(groups[kept], return_inverse=True)[1]
    if isinstance(complement, Weighted):
        return Flips(kept if codes is None else codes, complement.Z)
    return Exchange.of(len(kept), codes, outer, within=within)


def _too_few(sizes: str, log_count: float, what: str, remedy: str) -> str:
    return (
        f"Groups of these sizes (rows: {sizes}) allow {round(np.exp(log_count))} distinct {what}, "
        f"expected at least {_LEAST}: no p-value could be below {1 / _LEAST}. {remedy}"
    )
