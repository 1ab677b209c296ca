"""Residuals of confounds that can be rearranged: maps Q with QᵀZ = 0.

Z holds the confounds and a column of ones. Residuals R_Z X depend on each other, and permuting them
rejects too often. The rows of QᵀX, of which there are fewer, do not. Q is semi-orthogonal but in
`Weighted`, whose rows have their signs flipped. Each kind of Q has

- ``kept``: positions of the rows that are left, if these keep their identity, else numbers;
- ``reduce(X)``: QᵀX, of shape (m, d);
- ``lift(U)``: QU, of shape (n_rows, d).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import linalg

from mvcca.inspection._rows import orthonormal, residuals
from mvcca.problem import Whitened

_ROUNDING = 1e-10  # of the length of a unit vector
_WORK = 65 * 64  # workspace of LAPACK's blocks of reflectors


@dataclass(frozen=True, eq=False)
class Centred:
    """No confounds: centred rows are exchangeable as they are, so that Q is the identity."""

    n_rows: int

    @property
    def kept(self) -> np.ndarray:
        """All rows."""
        return np.arange(self.n_rows)

    def reduce(self, X: np.ndarray) -> np.ndarray:
        """Centred rows."""
        return X - X.mean(axis=0)

    def lift(self, U: np.ndarray) -> np.ndarray:
        """The rows themselves."""
        return U


@dataclass(frozen=True, eq=False)
class HuhJhun:
    """Any orthonormal basis of the complement of Z, here the other columns of its QR [1]_.

    Attributes
    ----------
    Z : ndarray, shape (n_rows, rank)
        Orthonormal basis of the confounds.

    References
    ----------
    .. [1] Huh and Jhun, "Random permutation testing in multiple linear regression", Communications
       in Statistics 30(10), 2001.
    """

    Z: np.ndarray

    @property
    def kept(self) -> np.ndarray:
        """Rows are rotated, and stand for no row of the data."""
        return np.arange(max(len(self.Z) - self.Z.shape[1], 0))

    @cached_property
    def _reflectors(self) -> tuple[np.ndarray, np.ndarray]:
        reflectors, _ = linalg.qr(self.Z, mode="raw")
        return reflectors

    def reduce(self, X: np.ndarray) -> np.ndarray:
        return self._times("T", X)[self.Z.shape[1] :]

    def lift(self, U: np.ndarray) -> np.ndarray:
        return self._times("N", np.vstack([np.zeros((self.Z.shape[1], U.shape[1])), U]))

    def _times(self, trans: str, X: np.ndarray) -> np.ndarray:
        """The square Q of the QR decomposition times X, without forming it."""
        if not self.Z.shape[1]:
            return X
        product, _, _ = linalg.lapack.dormqr(
            "L", trans, *self._reflectors, X, _WORK + 64 * X.shape[1]
        )
        return np.ascontiguousarray(product)


@dataclass(frozen=True, eq=False)
class Theil:
    r"""Residuals that keep their rows, those of some rows less [1]_.

    With S selecting the other rows and R_Z = I - ZZᵀ,

        Q = R_Z S (Sᵀ R_Z S)^(-1/2).

    The symmetric root makes QᵀX the closest to the residuals SᵀR_Z X, so that row i of it may be
    exchanged as row i of X may be.

    Attributes
    ----------
    Z : ndarray, shape (n_rows, rank)
        Orthonormal basis of the confounds.
    kept : ndarray of int
        Rows that S selects. Those of Z in the others must have full rank.

    References
    ----------
    .. [1] Theil, "The analysis of disturbances in regression analysis", JASA 60, 1965; section
       2.6 of Winkler et al., NeuroImage 220, 2020.
    """

    Z: np.ndarray
    kept: np.ndarray

    def reduce(self, X: np.ndarray) -> np.ndarray:
        return self._whitened(residuals(X, self.Z)[self.kept])

    def lift(self, U: np.ndarray) -> np.ndarray:
        whole = np.zeros((len(self.Z), U.shape[1]))
        whole[self.kept] = self._whitened(U)
        return residuals(whole, self.Z)

    @cached_property
    def _root(self) -> tuple[np.ndarray, np.ndarray]:
        """V and c with (I - SᵀZZᵀS)^(-1/2) = I + V diag(c) Vᵀ, for orthonormal V."""
        rows = Whitened.of_rows(self.Z[self.kept], equilibrate=False, center=False)
        return rows.basis, 1 / np.sqrt((1 - rows.values) * (1 + rows.values)) - 1

    def _whitened(self, rows: np.ndarray) -> np.ndarray:
        vectors, scale = self._root
        return rows + vectors @ (scale[:, None] * (vectors.T @ rows))


@dataclass(frozen=True, eq=False)
class Strata:
    """Groups as two strata, between and within them, each less the confounds in it.

    Groups of m rows are rotated by an orthonormal matrix whose first column is constant, which
    gives a row between groups and m - 1 within them. Errors that are exchangeable within groups
    are independent and of equal variance in each stratum, but not across the two, so that rows are
    exchanged in each stratum only. Groups of each size have a stratum of rows between them, since
    the variance of these depends on the size, and all groups share the stratum within. Each outer
    group has its own strata, which leaves it its mean and its variance.

    Attributes
    ----------
    Z : ndarray, shape (n_rows, rank)
        Orthonormal basis of the confounds and ones.
    members : list of lists of ndarray of int, shape (n_groups, size)
        By outer group, rows of the groups of each size.
    parts : list of HuhJhun
        What removes the confounds of each stratum; in each outer group, the one within groups last.
    """

    Z: np.ndarray
    members: list[list[np.ndarray]]
    parts: list[HuhJhun]

    @classmethod
    def of(cls, Z: np.ndarray, groups: np.ndarray, outer: np.ndarray | None = None) -> Strata:
        """Strata of groups, and of the outer groups that hold them, numbered from 0."""
        members = groups_by_size(groups, outer)
        rows = _in_strata(Z, members)
        return cls(Z, members, [HuhJhun(_range_of(own)) for own in rows])

    @property
    def sizes(self) -> list[int]:
        """Number of rows that are left of each stratum."""
        return [len(part.kept) for part in self.parts]

    @property
    def kept(self) -> np.ndarray:
        """Rows are rotated, and stand for no row of the data."""
        return np.arange(sum(self.sizes))

    def reduce(self, X: np.ndarray) -> np.ndarray:
        strata = _in_strata(X, self.members)
        return np.vstack([part.reduce(own) for part, own in zip(self.parts, strata, strict=True)])

    def lift(self, U: np.ndarray) -> np.ndarray:
        parts = zip(self.parts, np.split(U, np.cumsum(self.sizes)[:-1]), strict=True)
        return self._rows(part.lift(own) for part, own in parts)

    @property
    def shares(self) -> np.ndarray:
        """Share of the variance that the confounds of all strata leave of each row, (n_rows,)."""
        removed = linalg.block_diag(*(part.Z for part in self.parts))
        ends = np.cumsum([len(part.Z) for part in self.parts])[:-1]
        lifted = self._rows(np.split(removed, ends))
        return np.maximum(1 - (lifted**2).sum(axis=1), 0)

    def _rows(self, strata: Iterable[np.ndarray]) -> np.ndarray:
        """The rows of all groups, from those of their strata."""
        strata = list(strata)
        found, left = np.empty((len(self.Z), strata[0].shape[1])), iter(strata)
        for members in self.members:
            between, within = [next(left) for _ in members], next(left)
            for means, rows in zip(between, members, strict=True):
                n_groups, size = rows.shape
                own, within = np.split(within, [n_groups * (size - 1)])
                rest = own.reshape(n_groups, size - 1, own.shape[1])
                whole = np.concatenate([means[:, None], rest], axis=1)
                found[rows] = np.einsum("ms,gsd->gmd", linalg.helmert(size, full=True).T, whole)
        return found


def _in_strata(X: np.ndarray, members: list[list[np.ndarray]]) -> list[np.ndarray]:
    """By outer group, rows between the groups of each size, and rows within all of them."""
    found = []
    for by_size in members:
        within = []
        for rows in by_size:
            turned = np.einsum("sm,gmd->gsd", linalg.helmert(rows.shape[1], full=True), X[rows])
            found.append(turned[:, 0])
            within.append(turned[:, 1:].reshape(rows.size - len(rows), X.shape[1]))
        found.append(np.vstack(within))
    return found


def _range_of(Z: np.ndarray) -> np.ndarray:
    """Orthonormal basis of columns, of which some may be zero but for rounding."""
    if not len(Z):
        return Z[:, :0]
    found = Whitened.of_rows(Z, equilibrate=False, center=False)
    return np.asarray(found.basis)[:, found.values > _ROUNDING]


@dataclass(frozen=True, eq=False)
class Weighted:
    """Residuals of rows that are divided by their length, for errors of unlike variance.

    Views, confounds and the mean are divided alike before the regression. Lengths are those of
    the residuals of both views, and do not depend on how the views are related.

    Attributes
    ----------
    Z : ndarray, shape (n_rows, rank)
        Orthonormal basis of the confounds and ones, divided.
    lengths : ndarray, shape (n_rows, 1)
    """

    Z: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of(cls, Z: np.ndarray, lengths: np.ndarray) -> Weighted:
        """Divide an orthonormal basis of confounds and ones."""
        return cls(linalg.qr(Z / lengths, mode="economic")[0], lengths)

    @property
    def kept(self) -> np.ndarray:
        """All rows."""
        return np.arange(len(self.Z))

    def reduce(self, X: np.ndarray) -> np.ndarray:
        return residuals(X / self.lengths, self.Z)

    def lift(self, U: np.ndarray) -> np.ndarray:
        return U * self.lengths


def lengths_of(bases: Sequence[np.ndarray]) -> np.ndarray:
    """Root of the mean leverage of each row over views, in units of its mean: (n_rows, 1)."""
    squares = sum((U**2).sum(axis=1) * len(U) / U.shape[1] for U in bases)
    return np.sqrt(np.maximum(squares / len(bases), _ROUNDING))[:, None]


Complement = Centred | HuhJhun | Theil | Strata | Weighted


def groups_by_size(groups: np.ndarray, outer: np.ndarray | None = None) -> list[list[np.ndarray]]:
    """By outer group, the rows of the groups of each size, (n_groups, size), in their order."""
    outer = np.zeros_like(groups) if outer is None else outer
    members = np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1])
    found: dict[int, dict[int, list[np.ndarray]]] = {}
    for rows in members:
        if len(rows):
            found.setdefault(outer[rows[0]], {}).setdefault(len(rows), []).append(rows)
    return [
        [np.array(own) for _, own in sorted(sizes.items())] for _, sizes in sorted(found.items())
    ]


def kept_rows(Z: np.ndarray, groups: np.ndarray | None = None) -> np.ndarray:
    """Rows that `Theil` keeps: all but rows, or groups of rows, in which Z has full rank."""
    rank = Z.shape[1]
    if groups is None:
        dropped = linalg.qr(Z.T, mode="r", pivoting=True)[1][:rank]
        return np.setdiff1d(np.arange(len(Z)), dropped)
    members = [np.flatnonzero(groups == group) for group in range(groups.max() + 1)]
    rest, kept = Z.copy(), np.ones(len(Z), dtype=bool)
    while kept.any() and np.linalg.matrix_rank(Z[~kept], _ROUNDING) < rank:
        rows = max((own for own in members if kept[own].all()), key=lambda own: _gain(rest[own]))
        kept[rows] = False
        own = Whitened.of_rows(rest[rows], equilibrate=False, center=False)
        seen = own.axes[:, own.values > _ROUNDING]
        rest -= (rest @ seen) @ seen.T
    return np.flatnonzero(kept)


def _gain(Z: np.ndarray) -> tuple[float, float]:
    """How much rank a row of a group adds, and if equal, how much length."""
    return float(np.linalg.matrix_rank(Z, _ROUNDING) / len(Z)), float((Z**2).sum() / len(Z))


def orthonormal_with_ones(name: str, Z: np.ndarray | None, n_rows: int) -> np.ndarray:
    """An orthonormal basis of confounds and a column of ones, (n_rows, rank)."""
    ones = np.full((n_rows, 1), 1 / np.sqrt(n_rows))
    return ones if Z is None else np.hstack([ones, orthonormal(name, Z)])


def residuals_of(Z: np.ndarray, projection: str, groups: np.ndarray | None) -> Theil | HuhJhun:
    """The residuals that may be permuted, freely or within groups, by their name."""
    if projection == "huh-jhun" or (projection == "auto" and groups is None):
        return HuhJhun(Z)
    kept = kept_rows(Z, groups)
    if len(kept) < 2:
        raise ValueError(
            "Theil's residuals leave out whole groups until the confounds have full rank in them, "
            f"which leaves {len(kept)} rows. Use fewer confounds, or smaller groups."
        )
    return Theil(Z, kept)
