"""Migration of stored vectors: a map from an old embedding model to a new one, and what it keeps.

A sample of items that both models embedded gives the map. Its quality is measured on pairs that are
held out from the fit; all regressions share the sums of products of a few parts of the sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, Literal

import numpy as np
from scipy.linalg import eigh

from mvcca._threads import each
from mvcca.measures import descending_order, unit_rows
from mvcca.statistics import Moments, column_slices
from mvcca.views import Views

__all__ = ["Migration", "fit_migration"]

_OLD, _NEW = "old", "new"
_NEAREST = 10
_LEAST = 10  # pairs
_TILE_ROWS = 512  # stay in cache between centring, product and check
_PART_ROWS = 4 * _TILE_ROWS  # of one thread
_TILE_QUERIES = 1024

Map = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class Migration:
    """A map from vectors of an old model to those of a new one, with its figures on held-out pairs.

    Attributes
    ----------
    method : {"affine", "procrustes"}
        Kind of the map.
    reg : float or None
        Ridge of the affine map, chosen if several were given.
    found_first : float
        Share of held-out vectors of the new model that find their own migrated row first.
    neighbors_kept : float
        Share of their 10 nearest rows, under the new model, that are also among the 10 nearest
        migrated ones.
    n_fitted, n_held_out : int
        Number of pairs that the map was fitted to for these figures, and of those held out.
    """

    method: str
    reg: float | None
    found_first: float
    neighbors_kept: float
    n_fitted: int
    n_held_out: int
    _map: Map

    def predict(self, rows: np.ndarray) -> np.ndarray:
        """Map vectors of the old model.

        Parameters
        ----------
        rows : ndarray, shape (n_rows, n_features)
            Vectors of the old model.

        Returns
        -------
        ndarray, shape (n_rows, n_features of the new model)
            In the precision of `rows`.

        Raises
        ------
        ValueError
            If a number is NaN or infinite.
        """
        return self._map(rows)


def fit_migration(
    old: Any,
    new: Any,
    *,
    method: Literal["affine", "procrustes"] = "affine",
    n_components: int | None = None,
    reg: float | Sequence[float] = (1e-3, 1e-2, 1e-1, 1.0),
    test_size: float | int = 0.2,
    random_state: int = 0,
) -> Migration:
    r"""Fit a map from the vectors of an old embedding model to those of a new one.

    The affine map is the ridge regression of `mvcca.AffineMap`,

    .. math:: \min_B E ‖\bar y - \bar x B‖^2 + r ‖B‖^2,

    for all r from one eigendecomposition of the covariance of x. Of several, the r is chosen under
    which most pairs of a fifth of the fitted ones find each other. The map is measured on the
    held-out pairs and then fitted to all.

    Parameters
    ----------
    old, new : array-like, shape (n_pairs, n_features)
        Vectors of both models for the same items.
    method : {"affine", "procrustes"}, default="affine"
        Any affine map, or only rotations, which need fewer pairs; see `mvcca.Procrustes`.
    n_components : int, optional
        Rank of the map; by default not restricted.
    reg : float or sequence of float, default=(1e-3, 1e-2, 1e-1, 1.0)
        Ridge of the affine map in units of the mean variance of the old vectors.
    test_size : float or int, default=0.2
        Fraction or number of held-out pairs.
    random_state : int, default=0
        Seed of the draw of the held-out pairs.

    Returns
    -------
    Migration

    Raises
    ------
    ValueError
        If there are fewer than 10 pairs, or too few are left to fit.

    See Also
    --------
    mvcca.AffineMap : The same map with the methods of an estimator.

    Examples
    --------
    >>> import numpy as np
    >>> from mvcca.migration import fit_migration
    >>> rng = np.random.default_rng(0)
    >>> old = rng.standard_normal((1000, 20))
    >>> new = old @ rng.standard_normal((20, 16)) + 0.1 * rng.standard_normal((1000, 16))
    >>> migration = fit_migration(old[:500], new[:500])
    >>> migration.found_first
    1.0
    >>> migration.predict(old[500:]).shape
    (500, 16)
    """
    if method not in ("affine", "procrustes"):
        raise ValueError(f"Expected method to be 'affine' or 'procrustes', got {method!r}.")
    pairs = Views({_OLD: _floats(_OLD, old), _NEW: _floats(_NEW, new)})
    if len(pairs) < _LEAST:
        raise ValueError(f"{len(pairs)} pairs, but at least {_LEAST} are needed")
    rng = np.random.default_rng(random_state)
    fitted, held_out = _split(pairs, test_size, rng)
    maps, regs = _affine_maps, np.atleast_1d(np.asarray(reg, dtype=float)).tolist()
    if method == "procrustes":
        maps, regs = _rotations, [None]
    parts = list(_split(fitted, 0.2, rng)) if len(regs) > 1 else [fitted]
    sums = [Moments.of(part) for part in parts]
    chosen = regs[0]
    if len(regs) > 1:
        fit, judge = maps(sums[:1], n_components), _Judge(parts[1])
        chosen = max(regs, key=lambda value: judge(fit(value)))
    figures = _Judge(held_out)(maps(sums, n_components)(chosen))
    whole = maps([*sums, Moments.of(held_out)], n_components)(chosen)
    return Migration(method, chosen, *figures, len(fitted), len(held_out), whole)


def _floats(name: str, rows: Any) -> np.ndarray:
    """Finite numbers in float32 or float64."""
    rows = np.asarray(rows)
    rows = rows.astype(np.float32 if rows.dtype == np.float32 else np.float64, copy=False)
    if not np.isfinite(rows).all():
        raise ValueError(f"View {name!r} contains NaN or infinity.")
    return rows


def _split(pairs: Views, size: float | int, rng: np.random.Generator) -> tuple[Views, Views]:
    """Pairs to fit, and pairs held out."""
    n_pairs = len(pairs)
    n_held_out = size if isinstance(size, int) else max(2, round(size * n_pairs))
    if n_held_out > n_pairs - 2:
        raise ValueError(f"test_size {size}: too few of {n_pairs} pairs are left to fit")
    order = rng.permutation(n_pairs)
    return pairs[np.sort(order[n_held_out:])], pairs[np.sort(order[:n_held_out])]


def _affine_maps(sums: Iterable[Moments], rank: int | None) -> Callable[[Any], Map]:
    """Ridge regressions by their ridge, from sums of products of parts of the sample."""
    covariance, between, means = _covariances(sums)
    values, Q = eigh(covariance, driver="evd", check_finite=True)
    cross = Q.T @ between
    least = values[-1] * len(values) * np.finfo(float).eps

    def fit(reg: float) -> Map:
        damped = values + reg * values.mean()
        inverse = np.divide(1, damped, where=values > least, out=np.zeros_like(damped))
        B = inverse[:, None] * cross
        if rank is not None and rank < min(B.shape):
            top = eigh(cross.T @ B, subset_by_index=(B.shape[1] - rank, B.shape[1] - 1))[1]
            B = B @ top @ top.T
        return _mapping(Q @ B, means)

    return fit


def _rotations(sums: Iterable[Moments], rank: int | None) -> Callable[[Any], Map]:
    """The scaled rotation that maps the old vectors closest to the new ones."""
    covariance, between, means = _covariances(sums)
    left, values, right = np.linalg.svd(between, full_matrices=False)
    left, right = left[:, :rank], right[:rank]
    variance = np.einsum("ik,ik->", left, covariance @ left)
    scale = values[:rank].sum() / variance if variance > 0 else 0.0
    return lambda _: _mapping(scale * left @ right, means)


def _covariances(
    sums: Iterable[Moments],
) -> tuple[np.ndarray, np.ndarray, Mapping[str, np.ndarray]]:
    """Covariance of the old vectors, that between old and new ones, and the means."""
    moments = reduce(add, sums)
    columns, covariance = column_slices(moments.widths), moments.covariance()
    old = columns[_OLD]
    return covariance[old, old], covariance[old, columns[_NEW]], moments.mean()


def _mapping(weights: np.ndarray, means: Mapping[str, np.ndarray]) -> Map:
    """The affine map with these weights of centred rows, in the precision of the rows."""
    in_precision = {
        np.dtype(kind): tuple(part.astype(kind) for part in (weights, means[_OLD], means[_NEW]))
        for kind in (np.float32, np.float64)
    }

    def predict(rows: np.ndarray) -> np.ndarray:
        dtype = np.dtype(np.float32 if rows.dtype == np.float32 else np.float64)
        W, before, after = in_precision[dtype]
        mapped = np.empty((len(rows), W.shape[1]), dtype=dtype)

        def fill(part: slice) -> None:
            centred = np.empty((_TILE_ROWS, len(W)), dtype=dtype)
            for start in range(part.start, part.stop, _TILE_ROWS):
                tile = mapped[start : start + _TILE_ROWS]
                np.subtract(rows[start : start + _TILE_ROWS], before, out=centred[: len(tile)])
                np.matmul(centred[: len(tile)], W, out=tile)
                tile += after
                with np.errstate(over="ignore", invalid="ignore"):
                    length = np.vdot(tile, tile)  # the fastest look at all numbers
                if not (np.isfinite(length) or np.isfinite(tile).all()):  # it may overflow
                    raise ValueError("View 'old' contains NaN, infinity or numbers that overflow.")

        each(
            fill,
            (slice(a, min(a + _PART_ROWS, len(rows))) for a in range(0, len(rows), _PART_ROWS)),
        )
        return mapped

    return predict


class _Judge:
    """How well new vectors of some pairs find the migrated ones: found first, neighbors kept."""

    def __init__(self, pairs: Views) -> None:
        self._old, self._new = np.asarray(pairs[_OLD]), np.asarray(pairs[_NEW])
        self._exact = _nearest(self._new, self._new)

    def __call__(self, predict: Map) -> tuple[float, float]:
        found = _nearest(self._new, predict(self._old))
        own = found[:, 0] == np.arange(len(found))
        shared = (found[:, :, None] == self._exact[:, None, :]).any(axis=2)
        return float(own.mean()), float(shared.mean())


def _nearest(queries: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The rows with the largest cosines, best first, (n_queries, 10 or fewer)."""
    k = min(_NEAREST, len(rows))
    queries, rows = unit_rows(queries), unit_rows(rows)
    found = np.empty((len(queries), k), dtype=np.int64)
    for start in range(0, len(queries), _TILE_QUERIES):
        tile = slice(start, start + _TILE_QUERIES)
        found[tile] = descending_order(queries[tile] @ rows.T, k)
    return found
