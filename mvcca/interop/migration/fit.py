"""Fit a map between the vectors of an old and a new embedding model, and measure it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from mvcca.base.unit_checks import warn_of_unlike_columns
from mvcca.blocks import as_block
from mvcca.blocks.checks import common_row_labels, finite_floats, to_array
from mvcca.interop.migration.assessed import PairSample, assess, held_out_neighbors
from mvcca.interop.migration.gallery import StoredRows, first_of_equal
from mvcca.interop.migration.maps import NEW, OLD
from mvcca.interop.migration.measured import found_shares
from mvcca.interop.migration.result import CurvePoint, Migration
from mvcca.machine.threads import threads_to_factorise
from mvcca.machine.warnings import warn
from mvcca.problem.rows import mean_and_variance

_LEAST_PAIRS = 10
_LEAST_OF_CURVE = 50
_MOST_QUERIES, _MOST_PERMUTED = 1_000, 200
_RIDGES = tuple(np.geomspace(1e-4, 30, 18))
_REGS = {"affine": _RIDGES, "local": _RIDGES, "cca": (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)}
_METHODS = {
    "items": ("affine", "local", "procrustes"),
    "queries": ("cca", "procrustes"),
    "both": ("cca",),
}
_UNIT = 1e-2  # deviation of lengths from 1 that storage in 8 bits explains


def fit_migration(
    old: Any,
    new: Any,
    *,
    stored: Any = None,
    direction: Literal["items", "queries", "both"] = "items",
    method: Literal["affine", "local", "procrustes", "cca"] | None = None,
    reg: float | Sequence[float] | None = None,
    normalize: bool | None = None,
    learning_curve: bool = False,
    random_state: int = 0,
) -> Migration:
    r"""Fit a map between the vectors of an old embedding model and those of a new one.

    There are three directions. *Items* maps stored rows x of the old model to the space of the new
    one, by the ridge regression of `mvcca.AffineMap`,

    .. math:: \min_B E ‖\bar y - \bar x B‖^2 + r ‖B‖^2,

    for all r from one eigendecomposition of the covariance of x. Of several r, the one with the
    smallest squared error of left-out pairs is chosen. *Queries* leaves the stored rows alone and
    maps a query y of the new model to the vector whose inner products with them rank,

    .. math:: q(y) = (\Sigma_{xx} + r_x I)^{-1} \Sigma_{xy} (\Sigma_{yy} + r_y I)^{-1} (y - \mu_y),

    which is :math:`A \operatorname{diag}(\rho) B^\top (y - \mu_y)` with the regularized canonical
    weights A, B and correlations ρ. *Both* maps rows and queries to the canonical variates, times
    the root of ρ. Of several r, these two choose the one with the largest mean reciprocal rank of
    left-out pairs.

    The map is measured in the gallery of all stored rows: the new vector of a pair searches them
    by a map that was fitted without this pair. For "affine" items and "cca" queries this
    leave-one-out has a closed form. Others are fitted to four fifths of the pairs, five times; a
    map of all pairs is slightly better than they are.

    Parameters
    ----------
    old, new : array-like, shape (n_pairs, n_features)
        Vectors of both models for the same items.
    stored : array-like or file of rows, shape (n_stored, n_features of old), optional
        All stored vectors of the old model, those of the pairs included; by default the pairs are
        all there is. Equal rows are the same item and count once. Of more than 100,000 rows, as
        many are drawn.
    direction : {"items", "queries", "both"}, default="items"
        What is mapped: the stored rows of the old model, new queries for an index that stays as it
        is, or both into a shared space.
    method : {"affine", "local", "cca", "procrustes"}, optional
        Any affine map (items), one per cluster of rows where that helps (local; items), the
        bilinear form of CCA (queries, both), or only rotations (items, queries). By default affine
        for items, cca otherwise. "local" adds a map of the residuals for each of at most 16
        clusters of old rows, if this lowers the error of left-out pairs, which takes 2,000 to 5,000
        pairs; it cannot be exported as one matrix. Rotations are those of `mvcca.Procrustes`.
    reg : float or sequence of float, optional
        Ridge in units of the mean variance of a model's vectors; of several, the one that maps
        left-out rows best. By default 18 values from 1e-4 to 30, or for cca 6 from 0.03 to 10.
    normalize : bool, optional
        Scale mapped rows to length 1, so that inner products rank as cosines; by default if the
        vectors of the space that they are mapped to have length 1, and always in a shared space.
    learning_curve : bool, default=False
        Also measure maps of a half, a quarter and an eighth of the pairs.
    random_state : int, default=0
        Seed of the folds, of the queries if there are more than 1,000 pairs, of the gallery and of
        permuted pairs.

    Returns
    -------
    Migration

    Raises
    ------
    ValueError
        If there are fewer than 10 different pairs, all rows of one model are equal, `old` and `new`
        differ in their rows, `old` and `stored` in their number of features, or a parameter is out
        of range.

    Warns
    -----
    UserWarning
        If pairs repeat others, which are left out; if the map finds no more rows than one of
        permuted pairs, or fewer than half of them; or if it keeps fewer neighbors than the old
        model has by itself; then also if columns of a model are in unlike units.

    See Also
    --------
    mvcca.AffineMap : The map of items with the methods of an estimator.
    mvcca.CCA : Search across both models.

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
    >>> migration.map_items(old).shape
    (1000, 16)
    >>> adapter = fit_migration(old[:500], new[:500], stored=old, direction="queries")
    >>> adapter.map_queries(new).shape
    (1000, 20)
    """
    kind, regs = _checked(direction, method, reg)
    common_row_labels({OLD: old, NEW: new})  # raises if they differ
    x, y = finite_floats(OLD, old), finite_floats(NEW, new)
    if len(x) != len(y):
        raise ValueError(
            f"Expected a row of both models for every pair, got {len(x)} rows of the old model and "
            f"{len(y)} of the new one."
        )
    x, y = _different(x, y)
    with threads_to_factorise(max(x.shape[1], y.shape[1])):
        found = _fitted(
            kind, direction, regs, x, y, stored, normalize, learning_curve, random_state
        )
    if not found.is_good:
        for name, rows in {OLD: x, NEW: y}.items():
            warn_of_unlike_columns(name, as_block(rows), None, "Standardize its columns")
        warn(found.verdict)
    return found


def _different(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The pairs without those that repeat others, which would measure the map that they taught."""
    for name, rows in ((OLD, x), (NEW, y)):
        mean_and_variance(name, rows)  # raises if these are no floats, or zero
    is_first = first_of_equal(x, y)
    n_different, which = int(is_first.sum()), "" if is_first.all() else " different"
    if n_different < _LEAST_PAIRS:
        raise ValueError(f"{n_different}{which} pairs, but at least {_LEAST_PAIRS} are needed")
    if not is_first.all():
        warn(f"{len(x) - n_different:,} of {len(x):,} pairs repeat others and were left out.")
        x, y = x[is_first], y[is_first]
    return x, y


def _fitted(
    kind: str,
    direction: str,
    regs: list[float],
    x: np.ndarray,
    y: np.ndarray,
    stored: Any,
    normalize: bool | None,
    learning_curve: bool,
    random_state: int,
) -> Migration:
    rng = np.random.default_rng(random_state)
    queries = np.sort(rng.permutation(len(x))[:_MOST_QUERIES])
    gallery = StoredRows.of(_stored(stored, x), x[queries], rng)
    sample = PairSample.of(x, y, queries, np.arange(len(queries)), gallery, rng)
    whole = assess(kind, direction, sample, regs)
    chosen = regs[:1] if whole.reg is None else (whole.reg,)
    permuted = assess(kind, direction, _permuted(sample, rng), chosen)
    curve = _curve(kind, direction, sample, regs, rng) if learning_curve else ()

    first, in_ten, error = found_shares(*whole.ranks)
    kept, before, share = held_out_neighbors(sample, whole)
    return Migration(
        direction=direction,
        method="affine" if kind == "local" and whole.is_exact else kind,
        reg=whole.reg,
        normalize=_normalized(direction, x, y) if normalize is None else normalize,
        found_first=first,
        found_first_error=error,
        found_first_permuted=found_shares(*permuted.ranks)[0],
        found_in_ten=in_ten,
        gallery_size=len(gallery.rows),
        n_stored=gallery.n_stored,
        n_pairs=len(x),
        n_queries=len(queries),
        neighbors_kept=kept,
        neighbors_kept_before=before,
        nearest_share=share,
        cosine=float(np.mean(whole.cosines)),
        cosine_deviation=float(np.std(whole.cosines)),
        learning_curve=curve,
        _items=whole.maps.items,
        _queries=whole.maps.queries,
    )


def _checked(
    direction: str, method: str | None, reg: float | Sequence[float] | None
) -> tuple[str, list[float]]:
    """The method and its ridges."""
    if direction not in _METHODS:
        raise ValueError(f"Expected direction to be one of {list(_METHODS)}, got {direction!r}.")
    known = _METHODS[direction]
    if method is not None and method not in known:
        having = " or ".join(f"direction={own!r}" for own, all in _METHODS.items() if method in all)
        raise ValueError(
            f"Expected method to be one of {list(known)} for direction={direction!r}, got "
            f"{method!r}{f', which is for {having}' if having else ''}."
        )
    method = method or known[0]
    if method == "procrustes":
        if reg is not None:
            raise ValueError(f"Expected no reg for method='procrustes', got {reg!r}.")
        return method, []
    regs = np.atleast_1d(_REGS[method] if reg is None else reg)
    if not len(regs) or regs.dtype.kind not in "iuf" or not ((regs >= 0) & (regs < np.inf)).all():
        raise ValueError(f"Expected reg to be a number or numbers of at least 0, got {reg!r}.")
    return method, regs.astype(float).tolist()


def _permuted(sample: PairSample, rng: np.random.Generator) -> PairSample:
    """The old rows with new rows of other pairs, and few of the queries."""
    some = np.sort(rng.permutation(len(sample.queries))[:_MOST_PERMUTED])
    new = sample.new[rng.permutation(len(sample.new))]
    queries, places = sample.queries[some], sample.places[some]
    return PairSample.of(sample.old, new, queries, places, sample.gallery, rng)


def _curve(
    method: str, direction: str, sample: PairSample, regs: list[float], rng: np.random.Generator
) -> tuple[CurvePoint, ...]:
    """Maps of parts of the pairs, searched by queries among them."""
    points = []
    others = np.setdiff1d(np.arange(len(sample.old)), sample.queries)
    order = np.concatenate([rng.permutation(len(sample.queries)), others])
    order[: len(sample.queries)] = sample.queries[order[: len(sample.queries)]]
    for n_pairs in (len(order) // 8, len(order) // 4, len(order) // 2):
        if n_pairs < _LEAST_OF_CURVE:
            continue
        pairs = np.sort(order[:n_pairs])
        queries = np.flatnonzero(np.isin(pairs, sample.queries))
        places = np.searchsorted(sample.queries, pairs[queries])
        x, y = sample.old[pairs], sample.new[pairs]
        part = PairSample.of(x, y, queries, places, sample.gallery, rng)
        found = assess(method, direction, part, regs)
        first, _, error = found_shares(*found.ranks)
        points.append(CurvePoint(n_pairs, first, error))
    return tuple(points)


def _normalized(direction: str, old: np.ndarray, new: np.ndarray) -> bool:
    """Whether the rows of the space that is mapped to have length 1."""
    if direction == "both":
        return True
    target = new if direction == "items" else old
    return bool((np.abs(np.linalg.norm(target, axis=1) - 1) < _UNIT).all())


def _stored(stored: Any, old: np.ndarray) -> Any:
    """Rows of the old model that will be mapped."""
    if stored is None:
        return old
    rows = stored if hasattr(stored, "shape") else to_array(stored)
    if len(rows.shape) != 2 or rows.shape[1] != old.shape[1]:
        raise ValueError(
            f"Expected stored rows with the {old.shape[1]} features of the old model, got a "
            f"matrix of shape {tuple(rows.shape)}."
        )
    return rows
