"""Fit a map from the vectors of an old embedding model to those of a new one, and measure it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mvcca.blocks.checks import common_row_labels
from mvcca.interop.migration.gallery import Gallery
from mvcca.interop.migration.maps import NEW, OLD, Map, ridge_map, ridges_of, rotation
from mvcca.interop.migration.measured import LeftOut, found_shares, neighbors_kept, ranks_under
from mvcca.machine.warnings import warn
from mvcca.measures import unit_rows
from mvcca.statistics import Moments
from mvcca.views import Views

_LEAST_PAIRS = 10
_N_FOLDS = 5
_MOST_QUERIES = 1_000
_REGS = tuple(np.geomspace(1e-4, 30, 18))
_UNIT = 1e-2  # deviation of lengths from 1 that storage in 8 bits explains


@dataclass(frozen=True, eq=False)
class Migration:
    """A map from vectors of an old model to those of a new one, with what it keeps.

    All figures compare by cosine and are of pairs that the map was not fitted to.

    Attributes
    ----------
    method : {"affine", "procrustes"}
        Kind of the map.
    reg : float or None
        Ridge of the affine map, chosen if several were given.
    normalize : bool
        Whether mapped rows are scaled to length 1.
    found_first : float
        Share of vectors of the new model that find their own migrated row first in the gallery.
    found_first_error : float
        Standard error of `found_first`, never zero: two hits and two misses are added for it.
    found_in_ten : float
        Share of vectors of the new model that find their own migrated row among the first 10.
    gallery_size : int
        Number of stored rows that each of them was compared with.
    n_stored : int
        Number of stored rows; the gallery is a random draw if it is smaller.
    n_pairs, n_queries : int
        Number of pairs, and of those whose new vectors were the queries.
    neighbors_kept : float
        Share of the nearest rows of a new vector, under the new model, that are also the nearest
        migrated ones. Measured among held-out pairs: of the 10 nearest among many more rows, fewer
        stay, and few pairs do not tell how many.
    neighbors_kept_before : float
        The same share for the old model, whose vectors are both queries and rows.
    nearest_share : float
        Share of rows that count as nearest for these two figures.
    """

    method: str
    reg: float | None
    normalize: bool
    found_first: float
    found_in_ten: float
    found_first_error: float
    gallery_size: int
    n_stored: int
    n_pairs: int
    n_queries: int
    neighbors_kept: float
    neighbors_kept_before: float
    nearest_share: float
    _map: Map

    @property
    def is_useful(self) -> bool:
        """Whether at least half of the queries find their own row first."""
        return self.found_first >= 0.5

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
        mapped = self._map(rows)
        return unit_rows(mapped) if self.normalize else mapped


def fit_migration(
    old: Any,
    new: Any,
    *,
    stored: Any = None,
    method: Literal["affine", "procrustes"] = "affine",
    n_components: int | None = None,
    reg: float | Sequence[float] | None = None,
    normalize: bool | None = None,
    random_state: int = 0,
) -> Migration:
    r"""Fit a map from the vectors of an old embedding model to those of a new one.

    The affine map is the ridge regression of `mvcca.AffineMap`,

    .. math:: \min_B E ‖\bar y - \bar x B‖^2 + r ‖B‖^2,

    for all r from one eigendecomposition of the covariance of x. Of several r, the one with the
    smallest squared error of left-out pairs is chosen. The map is fitted to all pairs.

    It is measured in the gallery of all stored rows: the new vector of a pair searches them, mapped
    by a map that was fitted without this pair. For the affine map this leave-one-out has a closed
    form. Rotations and maps of a given rank are fitted to four fifths of the pairs, five times; a
    map of all pairs is slightly better than they are.

    Parameters
    ----------
    old, new : array-like, shape (n_pairs, n_features)
        Vectors of both models for the same items.
    stored : array-like or file of rows, shape (n_stored, n_features of old), optional
        All vectors of the old model that will be mapped, those of the pairs included; by default
        the pairs are all there is. Rows equal to the row of a query count as its own. Of more than
        100,000 rows, as many are drawn.
    method : {"affine", "procrustes"}, default="affine"
        Any affine map, or only rotations, which need fewer pairs; see `mvcca.Procrustes`.
    n_components : int, optional
        Rank of the map; by default not restricted.
    reg : float or sequence of float, optional
        Ridge of the affine map in units of the mean variance of the old vectors; by default chosen
        among 18 values from 1e-4 to 30.
    normalize : bool, optional
        Whether to scale mapped rows to length 1, so that inner products rank as cosines; by default
        if the new vectors have length 1.
    random_state : int, default=0
        Seed of the folds, of the queries if there are more than 1,000 pairs, and of the gallery.

    Returns
    -------
    Migration

    Raises
    ------
    ValueError
        If there are fewer than 10 pairs, `old` and `new` differ in their rows, `old` and `stored`
        in their number of features, or a parameter is out of range.

    Warns
    -----
    UserWarning
        If fewer than half of the queries find their own row first.

    See Also
    --------
    mvcca.AffineMap : The same map with the methods of an estimator.

    Examples
    --------
    >>> import numpy as np
    >>> from mvcca.interop.migration import fit_migration
    >>> rng = np.random.default_rng(0)
    >>> old = rng.standard_normal((1000, 20))
    >>> new = old @ rng.standard_normal((20, 16)) + 0.1 * rng.standard_normal((1000, 16))
    >>> migration = fit_migration(old[:500], new[:500], stored=old)
    >>> migration.found_first, migration.gallery_size
    (1.0, 1000)
    >>> migration.predict(old).shape
    (1000, 16)
    """
    if method not in ("affine", "procrustes"):
        raise ValueError(f"Expected method to be 'affine' or 'procrustes', got {method!r}.")
    regs = np.atleast_1d(_REGS if reg is None else reg).astype(float).tolist()
    if not regs or not all(0 <= value < np.inf for value in regs):
        raise ValueError(f"Expected reg to be numbers of at least 0, got {reg!r}.")
    if n_components is not None and n_components < 1:
        raise ValueError(f"Expected n_components to be at least 1 or None, got {n_components!r}.")
    common_row_labels({OLD: old, NEW: new})  # raises if they differ
    pairs = Views({OLD: _floats(OLD, old), NEW: _floats(NEW, new)})
    n_pairs = len(pairs)
    if n_pairs < _LEAST_PAIRS:
        raise ValueError(f"{n_pairs} pairs, but at least {_LEAST_PAIRS} are needed")
    rng = np.random.default_rng(random_state)
    folds = [np.sort(fold) for fold in np.array_split(rng.permutation(n_pairs), _N_FOLDS)]
    sums = [Moments.of(pairs[fold]) for fold in folds]
    queries = _some(np.arange(n_pairs), rng)
    x, y = (pairs[name][queries] for name in (OLD, NEW))
    gallery = Gallery.of(_stored(stored, pairs[OLD]), x, rng)

    chosen, ranks = None, []
    if method == "affine":
        ridges = ridges_of(sums)
        left_out = LeftOut(ridges, x, y)
        chosen = regs[0] if len(regs) == 1 else min(regs, key=left_out.error)
        whole = ridge_map(ridges, chosen, n_components)
        if n_components is None and left_out.exist(chosen):
            ranks = [left_out.ranks(chosen, gallery)]
    else:
        whole = rotation(sums, n_components)
    kept, needs_folds = [], not ranks
    for k, fold in enumerate(folds if needs_folds else folds[:1]):
        predict = _fitted([part for j, part in enumerate(sums) if j != k], chosen, n_components)
        held_out = pairs[_some(fold, rng)]
        kept.append(neighbors_kept(predict, held_out[OLD], held_out[NEW]))
        if needs_folds:
            in_fold = np.flatnonzero(np.isin(queries, fold))
            ranks.append(ranks_under(predict, gallery, in_fold, y))

    if normalize is None:
        normalize = bool((np.abs(np.linalg.norm(pairs[NEW], axis=1) - 1) < _UNIT).all())
    first, in_ten, error = found_shares(*map(np.concatenate, zip(*ranks, strict=True)))
    with_map, before, share = np.mean(kept, axis=0).tolist()
    found = Migration(
        method=method,
        reg=chosen,
        normalize=normalize,
        found_first=first,
        found_first_error=error,
        found_in_ten=in_ten,
        gallery_size=len(gallery.rows),
        n_stored=gallery.n_stored,
        n_pairs=n_pairs,
        n_queries=len(queries),
        neighbors_kept=with_map,
        neighbors_kept_before=before,
        nearest_share=share,
        _map=whole,
    )
    if not found.is_useful:
        warn(
            f"Only {first:.3f} of the queries find their own migrated row first among "
            f"{found.gallery_size:,} rows: the map keeps too little to search with. Check that "
            "rows of both models show the same items, or embed more pairs."
        )
    return found


def _fitted(sums: list[Moments], reg: float | None, rank: int | None) -> Map:
    """A ridge regression, or a rotation without a ridge."""
    return rotation(sums, rank) if reg is None else ridge_map(ridges_of(sums), reg, rank)


def _floats(name: str, rows: Any) -> np.ndarray:
    """Finite numbers in float32 or float64."""
    rows = np.asarray(rows)
    rows = rows.astype(np.float32 if rows.dtype == np.float32 else np.float64, copy=False)
    if not np.isfinite(rows).all():
        raise ValueError(f"View {name!r} contains NaN or infinity.")
    return rows


def _stored(stored: Any, old: np.ndarray) -> Any:
    """Rows of the old model that will be mapped."""
    if stored is None:
        return old
    rows = stored if hasattr(stored, "shape") else np.asarray(stored)
    if len(rows.shape) != 2 or rows.shape[1] != old.shape[1]:
        raise ValueError(
            f"Expected stored rows with the {old.shape[1]} features of the old model, got a "
            f"matrix of shape {tuple(rows.shape)}."
        )
    return rows


def _some(numbers: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """At most 1,000 of the numbers, in order."""
    return np.sort(rng.permutation(numbers)[:_MOST_QUERIES])
