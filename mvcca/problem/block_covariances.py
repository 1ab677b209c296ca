"""Covariances of blocks of features as operators, from which components are removed one by one.

Removing a component maps covariances, S_jk ← A_jᵀ S_jk A_k with A_j = I - w_j p_jᵀ, so that no rows
are needed. The maps are kept as factors of rank one. The methods that use them are ascents on
covariances, `mvcca.problem.ascent`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeAlias

import numpy as np

from mvcca.problem._centring import reciprocal
from mvcca.problem.centred_rows import CentredRows
from mvcca.problem.whitened import Whitened
from mvcca.statistics import column_slices

Vectors = Mapping[str, np.ndarray]  # (n_features,) by block, or many as rows, (n, n_features)
_LEFT = 1e-12  # share of a variance below which components have left rounding of it
_WELL_CONDITIONED = 1e-4  # variances of principal axes, which a Gram matrix tells to 12 digits
_CACHED_BYTES = 2**23  # of covariances that are looked at together
_LADDER = (1, 2, 3, 5, 7, 10, 14, 20, 30, 50, 80, 150, 260, 440, 750, 1280)
Factors = tuple[tuple[np.ndarray, np.ndarray], ...]  # of matrices of rank one, a bᵀ
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

    @classmethod
    def of(cls, S: np.ndarray, factors: Vectors, superblock: str | None = None) -> Self:
        """Covariances of columns that are multiplied by factors; a superblock is all of them."""
        f = np.concatenate(list(factors.values()))
        places = column_slices({name: len(own) for name, own in factors.items()})
        if superblock is not None:
            places = {**places, superblock: slice(0, len(f))}
        return cls(f[:, None] * S * f, places)

    @property
    def sizes(self) -> dict[str, int]:
        """Number of features of each block."""
        return {name: own.stop - own.start for name, own in self.places.items()}

    def image(self, j: str, k: str, v: np.ndarray) -> np.ndarray:
        """S_jk v."""
        return _image(self.matrix[self.places[k], self.places[j]], v)

    def columns(self, j: str, k: str) -> Iterator[np.ndarray]:
        """S_jk."""
        yield self.matrix[self.places[j], self.places[k]]

    def squared_correlations(self, j: str) -> float:
        """Σ r_ab² over all features a and b of a block."""
        (S,) = self.columns(j, j)
        f = reciprocal(np.sqrt(np.maximum(S.diagonal(), 0)))
        return float(np.sum((f[:, None] * S * f) ** 2))


@dataclass(frozen=True, eq=False)
class CovarianceProducts:
    """Covariances as products of the rows, for blocks too wide for a matrix over all features.

    Attributes
    ----------
    rows : mapping of str to CentredRows
        Of every view, paired and in the units of the covariances.
    superblock : str or None
        Name of the block of all features.
    """

    rows: Mapping[str, CentredRows]
    superblock: str | None = None

    @classmethod
    def of(
        cls, rows: Mapping[str, CentredRows], factors: Vectors, superblock: str | None = None
    ) -> Self:
        """Covariances of columns that are multiplied by factors, of the views that have some."""
        return cls({name: rows[name].in_units(f) for name, f in factors.items()}, superblock)

    @property
    def sizes(self) -> dict[str, int]:
        """Number of features of each block."""
        sizes = {name: own.n_features for name, own in self.rows.items()}
        return sizes if self.superblock is None else sizes | {self.superblock: sum(sizes.values())}

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return next(iter(self.rows.values())).n_rows

    def image(self, j: str, k: str, v: np.ndarray) -> np.ndarray:
        """S_jk v."""
        return self._back(j, self._scores(k, v))

    def columns(self, j: str, k: str) -> Iterator[np.ndarray]:
        """S_jk, as many columns at a time as stay in the cache."""
        size, width = self.sizes[k], max(1, _CACHED_BYTES // (8 * self.sizes[j]))
        for start in range(0, size, width):
            yield self.image(j, k, np.eye(min(width, size - start), size, start)).T

    def root(self, j: str) -> np.ndarray:
        """F with S_jj = FᵀF, (n_rows, n_features)."""
        return self._back(j, np.eye(self.n_rows))

    def squared_correlations(self, j: str) -> float:
        """Σ r_ab² over all features a and b of a block, ‖FFᵀ‖² of correlations FᵀF."""
        F = self.root(j)
        F *= reciprocal(np.linalg.norm(F, axis=0))
        return float(np.sum((F @ F.T) ** 2))

    def _rows_of(self, block: str) -> list[CentredRows]:
        return [*self.rows.values()] if block == self.superblock else [self.rows[block]]

    def _scores(self, k: str, v: np.ndarray) -> np.ndarray:
        rows = self._rows_of(k)
        parts = np.split(v, np.cumsum([own.n_features for own in rows[:-1]]), axis=-1)
        return np.asarray(sum(own.of_few(w.T) for own, w in zip(rows, parts, strict=True)))

    def _back(self, j: str, scores: np.ndarray) -> np.ndarray:
        found = [own.backward(scores).T for own in self._rows_of(j)]
        return found[0] if len(found) == 1 else np.concatenate(found, axis=-1)


@dataclass(frozen=True, eq=False)
class BlockCovariances:
    """Covariances of blocks from which components were removed.

    Attributes
    ----------
    base : Covariances
        Those of the rows.
    removed : mapping of str to sequence of (w, p)
        Factors of A_j = I - w pᵀ of each block, in the order of the components.
    less : mapping of (str, str) to sequence of (a, b)
        Matrices a bᵀ that are subtracted from S_jk besides.
    known : dict
        Matrices, columns and factors that were found already.
    """

    base: Covariances
    removed: Mapping[str, Factors] = field(default_factory=dict)
    less: Mapping[tuple[str, str], Factors] = field(default_factory=dict)
    known: dict[Any, Any] = field(default_factory=dict)

    def image(self, j: str, k: str, v: np.ndarray) -> np.ndarray:
        """S_jk v, (n_features of j,), of one vector or many as rows.

        The columns of few features of k are held, which is less to read than the rows of j.
        """
        used = np.flatnonzero(v if v.ndim == 1 else v.any(axis=0))
        if j != k and 2 * len(used) < self.base.n_rows:
            held, place = self.held_columns(j, k, used)
            return np.asarray(v[..., used] @ held[place[used]])
        return self._image(j, k, v)

    def _image(self, j: str, k: str, v: np.ndarray) -> np.ndarray:
        u = self.base.image(j, k, self.rotated(k, v))
        for w, p in self.removed.get(j, ()):
            u = u - np.multiply.outer(u @ w, p)
        for a, b in self.less.get((j, k), ()):
            u = u - np.multiply.outer(v @ b, a)
        return u

    def forget(self) -> None:
        """Drop what takes memory, to be found again when it is asked for."""
        kept = {key: own for key, own in self.known.items() if key[0] in ("sums", "ends")}
        self.known.clear()
        self.known.update(kept)

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
            if self.removed.get(j):
                before = np.hstack(list(self.base.columns(j, j))).diagonal()
                gone = found.diagonal() <= _LEFT * before
                found[gone] = found[:, gone] = 0
            self.known[j, k] = found
        return np.asarray(self.known[j, k])

    def columns(self, j: str, k: str) -> Iterator[np.ndarray]:
        """S_jk, some columns at a time."""
        if not (self.removed.get(j) or self.removed.get(k) or self.less.get((j, k))):
            yield from self.base.columns(j, k)
            return
        # S A_k = S - (S w) pᵀ, of which S w is that of the components before.
        pairs = []
        for i, (w, p) in enumerate(self.removed.get(k, ())):
            for own, before in reversed(self.removed[k][:i]):
                w = w - own * (before @ w)
            pairs.append((self.base.image(j, k, w), p))
        start = 0
        for part in self.base.columns(j, k):
            rows, start = slice(start, start + part.shape[1]), start + part.shape[1]
            part = part.copy()
            for image, p in pairs:
                part -= np.outer(image, p[rows])
            for w, p in self.removed.get(j, ()):
                part -= np.outer(p, w @ part)
            for a, b in self.less.get((j, k), ()):
                part -= np.outer(a, b[rows])
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
            chosen = np.zeros((len(new), sizes[k]))
            chosen[np.arange(len(new)), new] = 1
            if n + len(new) > len(held):
                held = np.concatenate([held, np.empty((max(n, len(new)), sizes[j]))])
            held[n : n + len(new)] = self._image(j, k, chosen)
            place[new] = np.arange(n, n + len(new))
            self.known["columns", j, k] = held, place
        return held, place

    def largest_columns(self, j: str, k: str, count: int, n_columns: int) -> np.ndarray:
        """Columns of S_jk with the largest sums of their `count` largest squares, best first.

        Counts are those of a ladder, the nearest below, so that columns are sorted once.
        """
        size = self.base.sizes[j]
        ladder = [n for n in _LADDER if n < size]
        if ("sums", j, k) not in self.known:
            sums, least = [], size - ladder[-1] if ladder else 0
            for part in self.columns(j, k):
                squares = np.ascontiguousarray(part.T) ** 2
                squares.partition(least, axis=1)
                largest = np.sort(squares[:, least:])[:, ::-1].cumsum(axis=1)
                every = largest[:, -1] + squares[:, :least].sum(axis=1)
                sums.append(np.column_stack([largest[:, [n - 1 for n in ladder]], every]))
            self.known["sums", j, k] = np.vstack(sums).T
        step = int(np.searchsorted(ladder, count, side="right")) - (count < size)
        return np.argsort(-self.known["sums", j, k][step], kind="stable")[:n_columns]

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
        if deflation == "pmd":
            (j, w), (k, v) = weights.items()
            size = float(w @ self.image(j, k, v))
            less = dict(self.less)
            less[j, k] = (*less.get((j, k), ()), (size * w, v))
            less[k, j] = (*less.get((k, j), ()), (v, size * w))
            return replace(self, less=less, known={})
        own = {name: w for name, w in weights.items() if name != response}
        less = self._less_explained(own, response) if response is not None else dict(self.less)
        removed, new = dict(self.removed), {}
        for name, w in own.items():
            p = self.image(name, name, w) if deflation == "scores" else w
            new[name] = (w, p / (w @ p))
            removed[name] = (*removed.get(name, ()), new[name])
        for (j, k), factors in less.items():
            less[j, k] = tuple((_through(new, j, a), _through(new, k, b)) for a, b in factors)
        return replace(self, removed=removed, less=less, known={})

    def _less_explained(self, weights: Vectors, y: str) -> dict[tuple[str, str], Factors]:
        """Y less the mean of T_q d_qᵀ over the other blocks, d_q = S_Yq w_q / w_qᵀS_qq w_q."""
        less, share = dict(self.less), 1 / len(weights)
        images = {q: self.image(y, q, w) for q, w in weights.items()}
        within = {(j, q): self.image(j, q, weights[q]) for j in weights for q in weights}
        explained = {q: c / (weights[q] @ within[q, q]) for q, c in images.items()}

        def add(j: str, k: str, pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> None:
            less[j, k] = (*less.get((j, k), ()), *pairs)

        for j in weights:
            pairs = [(share * within[j, q], d) for q, d in explained.items()]
            add(j, y, pairs)
            add(y, j, [(d, a) for a, d in pairs])
        for q, d in explained.items():
            both = sum(share**2 * (weights[r] @ within[r, q]) * explained[r] for r in weights)
            add(y, y, [(share * images[q], d), (d, share * images[q]), (-both, d)])
        return less


def _through(new: Mapping[str, tuple[np.ndarray, np.ndarray]], j: str, a: np.ndarray) -> np.ndarray:
    """Aᵀa of the component that is removed."""
    if j not in new:
        return a
    w, p = new[j]
    return np.asarray(a - p * (w @ a))


def _image(S: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Sᵀv of one vector or many as rows, from the rows of S of features with weights if few are."""
    used = np.flatnonzero(v if v.ndim == 1 else v.any(axis=0))
    return np.asarray(v[..., used] @ S[used] if 4 * len(used) < len(S) else v @ S)
