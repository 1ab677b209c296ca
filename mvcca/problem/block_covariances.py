"""Covariances of blocks of features as operators, from which components are removed one by one.

Removing a component turns the rows of a block into X_j - Σ_q X_q w_q p_jqᵀ, which takes matrices of
rank one from the covariances: no rows are needed. The methods that use them are ascents on
covariances, `mvcca.problem.ascent`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeAlias

import numpy as np

from mvcca.problem._centring import reciprocal
from mvcca.problem.centred_rows import CentredRows
from mvcca.problem.whitened import Whitened

Vectors = Mapping[str, np.ndarray]  # (n_features,) by block, or many as rows, (n, n_features)
_LEFT = 1e-12  # share of a variance below which components have left rounding of it
_WELL_CONDITIONED = 1e-4  # variances of principal axes, which a Gram matrix tells to 12 digits
_CACHED_BYTES = 2**23  # of covariances that are looked at together
LADDER = (1, 2, 3, 5, 7, 10, 14, 20, 30, 50, 80, 150, 260, 440, 750, 1280)  # numbers of features
Factors = Sequence[tuple[np.ndarray, np.ndarray]]  # of matrices of rank one, a bᵀ
Covariances: TypeAlias = "CovarianceMatrix | CovarianceProducts"  # in the units of the columns


@dataclass(frozen=True, eq=False)
class CovarianceMatrix:
    """Covariances as parts of one matrix in memory.

    Attributes
    ----------
    matrix : ndarray, shape (D, D)
        Covariances of all features.
    places : mapping of str to slice
        Where the features of each block are; blocks may overlap.
    """

    matrix: np.ndarray
    places: Mapping[str, slice]
    n_rows = 0  # products are taken of none

    @property
    def sizes(self) -> dict[str, int]:
        """Number of features of each block."""
        return {name: own.stop - own.start for name, own in self.places.items()}

    def image(self, j: str, k: str, v: np.ndarray) -> np.ndarray:
        """S_jk v, from the rows of S_kj of features with weights if these are few."""
        S, used = self.matrix[self.places[k], self.places[j]], _used(v)
        return np.asarray(v[..., used] @ S[used] if 4 * len(used) < len(S) else v @ S)

    def columns(self, j: str, k: str) -> Iterator[np.ndarray]:
        """S_jk."""
        yield self.matrix[self.places[j], self.places[k]]

    def squared_correlations(self, j: str) -> float:
        """Σ r_ab² over all features a and b of a block."""
        (S,) = self.columns(j, j)
        v = reciprocal(np.maximum(S.diagonal(), 0))
        return float(np.einsum("ab,ab,b->a", S, S, v) @ v)


@dataclass(frozen=True, eq=False)
class CovarianceProducts:
    """Covariances as products of the rows, for blocks too wide for a matrix over all features.

    Attributes
    ----------
    rows : mapping of str to CentredRows
        Of every block, paired and in the units of the covariances.
    """

    rows: Mapping[str, CentredRows]

    @property
    def sizes(self) -> dict[str, int]:
        """Number of features of each block."""
        return {name: own.n_features for name, own in self.rows.items()}

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return next(iter(self.rows.values())).n_rows

    def image(self, j: str, k: str, v: np.ndarray) -> np.ndarray:
        """S_jk v."""
        return self.rows[j].backward(self.rows[k].of_few(v.T)).T

    def columns(self, j: str, k: str) -> Iterator[np.ndarray]:
        """S_jk, as many columns at a time as stay in the cache."""
        size, width = self.sizes[k], max(1, _CACHED_BYTES // (8 * self.sizes[j]))
        for start in range(0, size, width):
            yield self.image(j, k, np.eye(min(width, size - start), size, start)).T

    def root(self, j: str) -> np.ndarray:
        """F with S_jj = FᵀF, (n_rows, n_features)."""
        return self.rows[j].backward(np.eye(self.n_rows)).T

    def squared_correlations(self, j: str) -> float:
        """Σ r_ab² over all features a and b of a block, ‖FFᵀ‖² of correlations FᵀF."""
        F = self.root(j)
        F *= reciprocal(np.linalg.norm(F, axis=0))
        return float(np.sum((F @ F.T) ** 2))


def in_own_order(base: Covariances) -> Covariances:
    """The same with blocks by squared correlations, smallest first, whatever their order was."""
    names = sorted(base.sizes, key=base.squared_correlations)
    if isinstance(base, CovarianceMatrix):
        return replace(base, places={name: base.places[name] for name in names})
    return replace(base, rows={name: base.rows[name] for name in names})


@dataclass(frozen=True, eq=False)
class BlockCovariances:
    """Covariances of blocks from which components were removed.

    Attributes
    ----------
    base : Covariances
        Those of the rows.
    removed : mapping of str to sequence of (w, p)
        A_j = I - w pᵀ by which each component changed the rows of a block, in order.
    less : mapping of (str, str) to sequence of (a, b)
        Matrices a bᵀ of rank one that are subtracted from S_jk.
    known : dict
        Matrices, columns and factors that were found already; they take memory.
    learned : dict
        Ends of ascents and the columns with the largest sums, which take little.
    """

    base: Covariances
    removed: Mapping[str, Factors] = field(default_factory=dict)
    less: Mapping[tuple[str, str], Factors] = field(default_factory=dict)
    known: dict[Any, Any] = field(default_factory=dict)
    learned: dict[Any, Any] = field(default_factory=dict)

    def image(self, j: str, k: str, v: np.ndarray) -> np.ndarray:
        """S_jk v, (n_features of j,), of one vector or many as rows.

        The columns of few features of k are held, which is less to read than the rows of j.
        """
        used = _used(v)
        if j != k and 2 * len(used) < self.base.n_rows:
            held, place = self.held_columns(j, k, used)
            return np.asarray(v[..., used] @ held[place[used]])
        return self._image(j, k, v)

    def _image(self, j: str, k: str, v: np.ndarray) -> np.ndarray:
        u = self.base.image(j, k, v)
        for a, b in self.less.get((j, k), ()):
            u = u - np.multiply.outer(v @ b, a)
        return u

    def rotated(self, j: str, w: np.ndarray) -> np.ndarray:
        """Weights of the rows that give the scores of w on what is left of them, A_1 A_2 … w."""
        for own, p in reversed(self.removed.get(j, ())):
            w = w - np.multiply.outer(w @ p, own)
        return w

    def matrix(self, j: str, k: str) -> np.ndarray:
        """S_jk; that of a block within itself is kept."""
        if (j, k) not in self.known:
            found = np.hstack(list(self.columns(j, k)))
            if j != k:
                return found
            taken = sum(a * b for a, b in self.less.get((j, j), ()))
            gone = found.diagonal() <= _LEFT * (found.diagonal() + taken)
            found[gone] = found[:, gone] = 0
            self.known[j, k] = found
        return np.asarray(self.known[j, k])

    def columns(self, j: str, k: str) -> Iterator[np.ndarray]:
        """S_jk, some columns at a time."""
        start = 0
        for part in self.base.columns(j, k):
            rows, start = slice(start, start + part.shape[1]), start + part.shape[1]
            for a, b in self.less.get((j, k), ()):
                part = part - np.outer(a, b[rows])
            yield part

    def row_space(self, j: str) -> Whitened:
        """Principal axes of a block that is known by its rows."""
        assert isinstance(self.base, CovarianceProducts)
        F = self.base.root(j)
        before = np.sum(F**2, axis=0)
        for w, p in self.removed.get(j, ()):
            F = F - np.outer(F @ w, p)
        F[:, np.sum(F**2, axis=0) <= _LEFT * before] = 0
        own = Whitened.of_covariance(F @ F.T)
        if own.values[-1:] ** 2 > _WELL_CONDITIONED * own.values[:1] ** 2:
            axes = F.T @ own.weights
            return Whitened(own.values, axes, axes / own.values, len(axes.T), own.axes)
        return Whitened.of_rows(F, equilibrate=False, center=False)

    def held_columns(self, j: str, k: str, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Columns of S_jk that were asked for, and now those of the features `wanted` of k.

        Returns
        -------
        held : ndarray, shape (n, n_features of j)
            The columns, as rows.
        place : ndarray, shape (n_features of k,)
            Which of them is that of each feature; -1 for none.
        """
        sizes = self.base.sizes
        empty = np.empty((0, sizes[j])), np.full(sizes[k], -1)
        held, place = self.known.get(("columns", j, k), empty)
        new, n = wanted[place[wanted] < 0], place.max() + 1
        if len(new):
            chosen = new[:, None] == np.arange(sizes[k])
            if n + len(new) > len(held):
                held = np.concatenate([held, np.empty((max(n, len(new)), sizes[j]))])
            held[n : n + len(new)] = self._image(j, k, chosen.astype(float))
            place[new] = np.arange(n, n + len(new))
            self.known["columns", j, k] = held, place
        return held, place

    def largest_columns(self, j: str, k: str, count: int, n_columns: int) -> np.ndarray:
        """Columns of S_jk with the largest sums of their `count` largest squares, best first.

        Counts are those of a ladder, the nearest below, so that columns are sorted once.
        """
        size = self.base.sizes[j]
        ladder = [n for n in LADDER if n < size]
        if (j, k) not in self.learned:
            sums, least = [], size - ladder[-1] if ladder else 0
            for part in self.columns(j, k):
                squares = np.ascontiguousarray(part.T) ** 2
                squares.partition(least, axis=1)
                largest = np.sort(squares[:, least:])[:, ::-1].cumsum(axis=1)
                every = largest[:, -1] + squares[:, :least].sum(axis=1)
                sums.append(np.column_stack([largest[:, [n - 1 for n in ladder]], every]))
            self.learned[j, k] = np.vstack(sums).T
        step = int(np.searchsorted(ladder, count, side="right")) - (count < size)
        return np.argsort(-self.learned[j, k][step], kind="stable")[:n_columns]

    def without(self, weights: Vectors, deflation: str, response: str | None = None) -> Self:
        """Remove one component.

        Parameters
        ----------
        weights : mapping of str to ndarray, shape (n_features,)
            w_j of each block to deflate; of both blocks for "pmd".
        deflation : {"scores", "weights", "pmd"}
            Remove what the scores explain, p = S_jj w / wᵀS_jj w; or the direction of the weights,
            p = w / wᵀw; or σ w_1 w_2ᵀ from the covariance S_12 of two blocks.
        response : str, optional
            A block that is not deflated by its scores, but by the mean over the other
            blocks of what their scores explain of it.
        """
        less = defaultdict(list, {pair: [*factors] for pair, factors in self.less.items()})
        if deflation == "pmd":
            (j, w), (k, v) = weights.items()
            size = float(w @ self.image(j, k, v))
            less[j, k].append((size * w, v))
            less[k, j].append((v, size * w))
            return replace(self, less=less, known={}, learned={})
        own, blocks = {q: w for q, w in weights.items() if q != response}, self.base.sizes
        S = {(j, q): self.image(j, q, w) for j in blocks for q, w in own.items()}
        P = {}  # blocks become X_j - Σ_q X_q w_q p_jqᵀ
        for q, w in own.items():
            along = S[q, q] if deflation == "scores" else w
            P[q, q] = along / (w @ along)
            if response is not None:
                P[response, q] = S[response, q] / (w @ S[q, q]) / len(own)
        for (j, q), p in P.items():
            for k in blocks:
                both = [P[k, r] * (w @ S[r, q]) for r, w in own.items() if (k, r) in P]
                less[j, k].append((p, S[k, q]))
                less[k, j].append((S[k, q] - sum(both), p))
        removed = {q: (*self.removed.get(q, ()), (w, P[q, q])) for q, w in own.items()}
        return replace(self, removed={**self.removed, **removed}, less=less, known={}, learned={})


def _used(v: np.ndarray) -> np.ndarray:
    """Features with weights in one vector or any of many as rows."""
    return np.flatnonzero(v if v.ndim == 1 else v.any(axis=0))
