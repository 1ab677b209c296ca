"""Moments given confounds: what is left of views after their regression on one of them.

The residuals of paired rows on confounds z have the scatter

    S_ab·z = S_ab - S_az S_zz⁺ S_zb,

a Schur complement of the moments, so that confounds cost no pass over the rows, and sparse rows
stay sparse.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mvcca.blocks import Block, to_host
from mvcca.machine.config import block_slices
from mvcca.problem.precision import check_precision
from mvcca.problem.rows import Rows
from mvcca.problem.whitener import AnyWhitener, Scaling, Whitener, rounding_of
from mvcca.statistics import Moments, Regression, column_slices
from mvcca.views import Views

__all__ = ["given", "least_left", "regression_on", "rounding_given", "second_degree"]

_ULPS = 32  # share of a column's scatter that counts as explained, in units of the last place
_LEAST_LEFT = 1e-10  # share of a column's length that confounds leave, below which they explain it


def given(moments: Moments, name: str, rows: Rows | None = None) -> Moments:
    """Moments of the residuals of all other views on one of them, with their `Regression`.

    Constant and collinear confounds are left out. Columns that confounds explain but for rounding
    get no variance.

    Parameters
    ----------
    moments : Moments
        Of paired rows.
    name : str
        The view of the confounds.
    rows : Rows, optional
        The rows, to be asked whether they can be read more precisely.

    Returns
    -------
    Moments
        Of the other views.

    Raises
    ------
    DigitsLost
        If the confounds are ill-conditioned and `rows` can do better.
    ValueError
        If the confounds explain all rows, or a view completely.
    """
    rest, between, within = moments.split(name)
    mean = moments.mean()[name]
    W = _whitener(moments, name)
    if rows is not None and (name in rows.reading.improvable or np.isfinite(W.condition)):
        check_precision(rows, {name: W})
    explained, before = W.project(between), np.diag(rest.scatter)
    B, scatter = W.lift(explained), rest.scatter - explained.T @ explained
    lost = np.diag(scatter) <= _rounding(within) * before
    scatter[lost] = scatter[:, lost] = 0
    columns = column_slices(rest.widths)
    for other, own in columns.items():
        if lost[own].all() and before[own].any():
            raise ValueError(
                f"Confounds {name!r} explain view {other!r} completely, so that nothing of it is "
                "left to correlate. Check that the view does not repeat them."
            )
    coefficients = {other: B[:, own] for other, own in columns.items()}
    return replace(rest, scatter=scatter, regression=Regression(name, mean, coefficients, W.rank))


def regression_on(
    views: Views, name: str, weights: np.ndarray | None = None
) -> tuple[Regression, dict[str, np.ndarray], dict[str, int]]:
    """Regression of the rows of all other views on one of them.

    Each view is regressed over all objects that are seen in it, and a column with missing cells
    (NaN) over the rows that have it. Of wide views, `given` would need the scatter of all features;
    here memory is that of the coefficients, and of a scatter of the confounds per such column.

    Parameters
    ----------
    views : Views
        Every object is seen in the view of the confounds.
    name : str
        The view of the confounds.
    weights : ndarray, shape (n_objects,), optional
        Weight of each object.

    Returns
    -------
    Regression
    dict of str to ndarray, shape (n_features,)
        Prediction of each view at the mean of the confounds.
    dict of str to int
        Rank of the confounds over the rows of each view.

    Raises
    ------
    ValueError
        If the confounds explain all rows, or those that have a column.
    """
    coefficients, means, ranks = {}, {}, {}
    mean = Moments.of(views.select([name]), weights).mean()[name]
    for other, block in views.blocks.items():
        if other == name:
            continue
        Z = views.rows_beside(name, other)
        w = None if weights is None else weights[views.objects(other)]
        moments = Moments.of(Views({name: Z.matrix}), w)
        W, center = _whitener(moments, name), moments.mean()[name]
        means[other] = block.column_means(w)
        if np.isnan(to_host(means[other])).any():
            found = _regression_of_cells(other, block, Z, name, w)
            coefficients[other], means[other], ranks[other] = found
            means[other] -= (center - mean) @ coefficients[other]
            continue
        products = np.zeros((len(mean), block.shape[1]))
        for rows in block_slices(block.shape[0], 8 * (len(mean) + block.shape[1])):
            U = Z.take(rows).dense().matrix.astype(np.float64) - center
            U = U if w is None else w[rows, None] * U
            piece = block.take(rows).promoted(np.dtype(np.float64))
            products += piece.centred_cross(U, means[other]).T
        coefficients[other] = W.lift(W.project(products))
        means[other] = means[other] - (center - mean) @ coefficients[other]
        ranks[other] = W.rank
    rank = max(ranks.values(), default=0)
    return Regression(name, mean, coefficients, rank), means, ranks


def second_degree(Z: np.ndarray, mean: np.ndarray, *, products: bool) -> np.ndarray:
    """Squares of confounds about their mean, and `products` of all pairs: (n, n_terms).

    Those of a confound with two values, half of the rows each, are equal but for the rounding of
    the deviations. They are made constant: scaled to unit variance, rounding would be a confound.
    """
    d, deviations = Z.shape[1], Z - mean
    i, j = np.hstack([[range(d)] * 2, np.triu_indices(d, 1) if products else np.empty((2, 0), int)])
    terms = deviations[:, i] * deviations[:, j]

    def flat(rows: slice) -> np.ndarray:
        size = np.abs(deviations[rows]).max(axis=0, initial=0)
        far = np.abs(mean) + size
        rounding = _ULPS * np.finfo(float).eps * (size[i] * far[j] + size[j] * far[i]) / 2
        return np.asarray(np.ptp(terms[rows], axis=0) <= rounding)

    if len(Z) and flat(slice(64)).any():  # few rows nearly always show that no column is
        constant = flat(slice(None))
        terms[:, constant] = terms[0, constant]
    return terms


def least_left(
    spread: np.ndarray, mean: np.ndarray, dtype: np.dtype[Any] | type = np.float64
) -> np.ndarray:
    """Size up to which residuals of columns are rounding: of a regression, or of group means.

    Parameters
    ----------
    spread : ndarray, shape (d,)
        Size of the columns about their mean: standard deviation or largest deviation.
    mean : ndarray, shape (d,)
        Their mean.
    dtype : dtype, default=float64
        Precision in which residuals are computed.
    """
    rounding = _ULPS * float(np.finfo(dtype).eps)
    return np.maximum(max(_LEAST_LEFT, rounding) * spread, rounding * np.abs(mean))


def _regression_of_cells(
    other: str, block: Block, Z: Block, name: str, weights: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, int]:
    """Coefficients, values at the mean of the confounds, and rank, each column by its own rows."""
    sums = _CellSums.of(block, Z, weights)
    B, mean, ranks = np.zeros((Z.shape[1], block.shape[1])), np.zeros(block.shape[1]), [0]
    for j, n in enumerate(sums.counts):
        if not n > 1:
            raise ValueError(
                f"View {other!r}: column {j} is missing in all rows but {n:g}, which is too few to "
                f"remove {name!r}. Leave it out."
            )
        u, x = sums.confounds[j] / n, sums.columns[j] / n
        scatter = sums.scatter[j] - n * np.outer(u, u)
        counts, means = np.full((1, 1), n), (sums.center + u)[None]
        own = Moments({name: len(u)}, counts, means, np.zeros_like(means), scatter)
        try:
            W = _whitener(own, name)
        except ValueError as error:
            raise ValueError(f"View {other!r}, column {j}: {error}") from None
        B[:, j] = W.lift(W.project(sums.products[j][:, None] - n * np.outer(u, x)))[:, 0]
        mean[j] = sums.origin[j] + x - u @ B[:, j]
        ranks.append(W.rank)
    return B, mean, max(ranks)


@dataclass(frozen=True, eq=False)
class _CellSums:
    """Weighted sums over the rows that have a column, for each of d columns.

    Confounds u are about `center`, columns about `origin`.
    """

    center: np.ndarray  # (k,)
    origin: np.ndarray  # (d,)
    counts: np.ndarray  # (d,)
    confounds: np.ndarray  # (d, k), Σ w u
    scatter: np.ndarray  # (d, k, k), Σ w u uᵀ
    columns: np.ndarray  # (d,), Σ w x
    products: np.ndarray  # (d, k), Σ w u x

    @classmethod
    def of(cls, block: Block, Z: Block, weights: np.ndarray | None) -> _CellSums:
        """Sum up rows in blocks of bounded size."""
        (n, k), d = Z.shape, block.shape[1]
        center = to_host(Z.column_means(weights))
        shapes: list[tuple[int, ...]] = [(), (k,), (k, k), (), (k,)]
        origin, sums = np.zeros(d), [np.zeros((d, *shape)) for shape in shapes]
        is_new = np.ones(d, dtype=bool)
        for rows in block_slices(n, 8 * (k * k + 3 * d)):
            U = to_host(Z.take(rows).dense().matrix).astype(np.float64) - center
            X = to_host(block.take(rows).dense().matrix).astype(np.float64)
            seen = ~np.isnan(X)
            X[~seen] = 0
            first = X.sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
            origin = np.where(is_new, first, origin)  # products cancel less about it
            is_new &= ~seen.any(axis=0)
            w = seen * (1.0 if weights is None else weights[rows, None])
            X = w * (X - origin)
            pairs = (U[:, :, None] * U[:, None, :]).reshape(len(U), k * k)
            found = (
                w.sum(axis=0), w.T @ U, (w.T @ pairs).reshape(d, k, k), X.sum(axis=0), X.T @ U,
            )  # fmt: skip
            for total, part in zip(sums, found, strict=True):
                total += part
        return cls(center, origin, *sums)


def rounding_given(moments: Moments, name: str) -> dict[str, np.ndarray]:
    """Deviations that rounding can give to residuals on a view, from the moments before."""
    variances = np.diag(moments.scatter) / max(moments.counts[0, 0] - 1, 1)
    columns, means = column_slices(moments.widths), moments.mean()
    share = _rounding(moments.scatter[columns[name], columns[name]])
    return {
        other: np.maximum(np.sqrt(share * variances[own]), rounding_of(means[other]))
        for other, own in columns.items()
        if other != name
    }


def _whitener(moments: Moments, name: str) -> AnyWhitener:
    """The whitener of confounds, which must not explain all rows."""
    own, n_objects = column_slices(moments.widths)[name], moments.counts[0, 0]
    within = moments.scatter[own, own]
    W: AnyWhitener = Scaling.of(np.diag(within))
    if not W.rank:  # no confound varies
        return W
    W = Whitener.of(within, np.sqrt(n_objects) * rounding_of(moments.mean()[name]))
    if W.rank >= n_objects - 1:
        raise ValueError(
            f"Confounds {name!r} have {W.rank} independent columns for {n_objects:g} rows, which "
            "they explain completely. Give more rows, or fewer confounds."
        )
    return W


def _rounding(within: np.ndarray) -> Any:
    """Share of a variance that rounding may leave of what so many confounds explain."""
    return _ULPS * (1 + len(within)) * np.finfo(float).eps
