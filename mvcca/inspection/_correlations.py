"""Correlations of components and variables, and explained variance, on given rows."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from mvcca.blocks import Block
from mvcca.blocks.checks import check_same_rows, to_array
from mvcca.inspection._rows import views_of
from mvcca.machine.config import block_slices
from mvcca.measures import column_correlations
from mvcca.retrieval.ranking import fitted_steps
from mvcca.views import Views, as_views, holds_views
from mvcca.views.typing import MatrixLike, ViewsLike

_ROUNDING = 32 * np.finfo(float).eps  # relative deviation from the mean of a constant column


def component_correlations(
    estimator: Any, X: ViewsLike | MatrixLike, y: MatrixLike | None = None
) -> dict[tuple[str, str], np.ndarray]:
    """Correlation of each component between every pair of views, on given rows.

    On the training rows of CCA without ridge these are the canonical correlations; on held-out rows
    they show how much of the correlation is due to chance.

    Parameters
    ----------
    estimator : fitted estimator, or Views, mapping or list of matrices
        Any model whose ``transform`` maps `mvcca.views.Views` to `Views`; or the scores of X, where
        they were computed otherwise.
    X : Views, mapping, list of matrices, or matrix
        Rows of the fitted views, at least two of them.
    y : matrix, optional
        The second view, if the estimator was fitted on two matrices.

    Returns
    -------
    dict of (str, str) to ndarray, shape (n_components,)
        For every pair of views with at least two common objects, over these objects; 0 if a
        component is constant.

    Raises
    ------
    ValueError
        If no two views have two common objects.

    Examples
    --------
    >>> from mvcca import CCA
    >>> from mvcca.datasets import make_gaussian_views
    >>> from mvcca.inspection import component_correlations
    >>> views = make_gaussian_views(2000, random_state=0).views
    >>> model = CCA(3).fit(views[:1000])
    >>> component_correlations(model, views[1000:])["view0", "view1"].shape
    (3,)
    """
    _, scores = projected(estimator, X, y)
    correlations = {}
    for p, q in combinations(scores.names, 2):
        of_p, of_q = _shared_rows(scores, p, q)
        if of_p.sum() > 1:
            correlations[p, q] = column_correlations(scores[p][of_p], scores[q][of_q])
    if not correlations:
        raise ValueError(
            "Correlations need objects that are seen in two views, got "
            f"{sorted(set(scores.pattern.tolist()))}. Use mvcca.evaluate_retrieval for unpaired "
            "views."
        )
    return correlations


def loadings(
    estimator: Any,
    X: ViewsLike | MatrixLike,
    y: MatrixLike | None = None,
    *,
    variates: str | None = None,
) -> dict[str, np.ndarray]:
    """Correlations of the variables with the canonical variates (structure coefficients).

    With z_q = W_qᵀ (x_q - m_q) the canonical variates of view q, the loading of variable j of view
    p on component i is

        corr(x_pj, z_qi),

    over the objects seen in both views, less those in which the variable is missing (NaN). With
    q = p, the default, these are loadings; with q ≠ p, cross-loadings [1]_.

    Parameters
    ----------
    estimator : fitted estimator, or Views, mapping or list of matrices
        Any model whose ``transform`` maps `mvcca.views.Views` to `Views`; or the scores of X, where
        they were computed otherwise.
    X : Views, mapping, list of matrices, or matrix
        Rows of the fitted views. Sparse views stay sparse.
    y : matrix, optional
        The second view, if the estimator was fitted on two matrices.
    variates : str, optional
        The view q whose variates are used for all views; by default each view's own.

    Returns
    -------
    dict of str to ndarray, shape (n_features, n_components)
        By view name; 0 for constant variables and components.

    Raises
    ------
    ValueError
        If `variates` is not a view of X, or has fewer than two objects in common with a view.

    References
    ----------
    .. [1] Sherry and Henson, "Conducting and interpreting canonical correlation analysis in
       personality research: a user-friendly primer", J. Personality Assessment 84(1), 2005.
    """
    found = _correlated(*projected(estimator, X, y), variates)
    return {name: correlations for name, (correlations, _) in found.items()}


def explained_variance(
    estimator: Any,
    X: ViewsLike | MatrixLike,
    y: MatrixLike | None = None,
    *,
    variates: str | None = None,
    standardize: bool = True,
) -> dict[str, np.ndarray]:
    """Fraction of each view's variance explained by each component.

    This is the mean squared loading over the d_p non-constant variables of view p,

        1 / d_p Σ_j corr(x_pj, z_qi)².

    With the view's own variates (q = p, the default) this is the variance extracted; with those of
    another view it is the redundancy of view p given view q [1]_, the variance of p explained by a
    linear regression on component i of q. Where components are uncorrelated, as those of CCA
    without a ridge and of PLS with deflation, their fractions add up.

    Parameters
    ----------
    estimator : fitted estimator, or Views, mapping or list of matrices
        Any model whose ``transform`` maps `mvcca.views.Views` to `Views`; or the scores of X, where
        they were computed otherwise.
    X : Views, mapping, list of matrices, or matrix
        Rows of the fitted views.
    y : matrix, optional
        The second view, if the estimator was fitted on two matrices.
    variates : str, optional
        The view q of the explaining variates; by default each view's own. For PLS regression, the
        first view, ``"X"`` of two lone matrices: R's ``explvar``.
    standardize : bool, default=True
        Whether variables count alike; if not, each counts by its variance.

    Returns
    -------
    dict of str to ndarray, shape (n_components,)
        By view name, in [0, 1].

    Raises
    ------
    ValueError
        As for `loadings`, and if all rows of a view are equal.

    References
    ----------
    .. [1] Stewart and Love, "A general canonical correlation index", Psychological Bulletin 70(3),
       1968.
    """
    found = {}
    for name, (values, squares) in _correlated(*projected(estimator, X, y), variates).items():
        if not squares.any():
            raise ValueError(f"View {name!r} has no variance to explain: all its rows are equal.")
        counts = squares > 0 if standardize else squares
        found[name] = np.average(values**2, axis=0, weights=counts)
    return found


def projected(estimator: Any, X: Any, y: Any = None) -> tuple[Views, Views]:
    """Rows as Views in memory, and their scores, which may be given in place of the estimator."""
    if holds_views(estimator) and not hasattr(X, "transform"):
        scores = as_views(estimator).in_memory()
        views = views_of(X, y, scores.names)
        if len(views) != len(scores):
            raise ValueError(
                f"Expected scores of the {len(views)} objects of X, got {len(scores)}."
            )
        check_same_rows("the scores", scores.ids, "the views", views.ids)
        return views, scores
    fitted_steps(estimator)
    views = views_of(X, y, getattr(estimator, "view_names_", None))
    scores = estimator.transform(views)
    views = views.select(scores.names)  # without confounds
    return views, scores.replace({name: to_array(Z) for name, Z in scores.items()})


def _shared_rows(views: Views, p: str, q: str) -> tuple[np.ndarray, np.ndarray]:
    """Masks of the rows of view p and of view q whose objects are seen in both."""
    of_p, of_q = (views.seen[:, views.names.index(name)] for name in (p, q))
    return of_q[of_p], of_p[of_q]


def _correlated(
    views: Views, scores: Views, variates: str | None
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Correlations of every view's variables with scores, and centred squares of the variables."""
    if variates is not None and variates not in scores:
        raise ValueError(
            f"variates={variates!r} is not a view of X; the views are {list(scores.names)}."
        )
    found = {}
    for name, block in views.blocks.items():
        source = name if variates is None else variates
        of_block, of_scores = _shared_rows(views, name, source)
        if of_block.sum() < 2:
            pair = f"Views {name!r} and {source!r} have" if source != name else f"View {name!r} has"
            raise ValueError(f"{pair} fewer than two{' common' * (source != name)} objects.")
        rows = block if of_block.all() else block.take(np.flatnonzero(of_block))
        found[name] = _column_correlations(rows, to_array(scores[source], float)[of_scores])
    return found


def _column_correlations(X: Block, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Correlations (d, k) of the columns of X and Z, and centred sums of squares of X (d,).

    The squares of constant columns are 0.
    """
    mean = X.column_means()
    if np.isnan(mean).any():
        return _correlations_of_cells(X.dense().matrix.astype(float), Z)
    Z = Z - Z.mean(axis=0, dtype=float)
    cross, squares = np.zeros((len(mean), Z.shape[1])), np.zeros(len(mean))
    for rows in block_slices(len(Z), 16 * len(mean)):
        block = X.take(rows).promoted(np.dtype(np.float64))
        cross += block.centred_cross(Z[rows], mean)
        squares += block.centred_squares(mean)
    lengths = np.sqrt(squares), np.linalg.norm(Z, axis=0)
    varies = lengths[0] > _ROUNDING * np.sqrt(len(Z)) * np.abs(mean)
    scale = np.outer(np.where(varies, lengths[0], 0), lengths[1])
    correlations = np.divide(cross, scale, out=np.zeros_like(cross), where=scale > 0)
    return np.clip(correlations, -1, 1), np.where(varies, squares, 0)


def _correlations_of_cells(X: np.ndarray, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same, each column of X over the rows in which it is not NaN, as if all rows had it."""
    seen = ~np.isnan(X)
    mask, n = seen.astype(float), np.maximum(seen.sum(axis=0), 1)
    mean = np.where(seen, X, 0).sum(axis=0) / n
    centred = np.where(seen, X - mean, 0)
    Z = Z - Z.mean(axis=0, dtype=float)
    squares = mask.T @ Z**2 - (mask.T @ Z) ** 2 / n[:, None]
    lengths = np.linalg.norm(centred, axis=0)
    varies = lengths > _ROUNDING * np.sqrt(n) * np.abs(mean)
    scale = np.where(varies, lengths, 0)[:, None] * np.sqrt(np.maximum(squares, 0))
    cross = centred.T @ Z
    correlations = np.divide(cross, scale, out=np.zeros_like(cross), where=scale > 0)
    return np.clip(correlations, -1, 1), np.where(varies, lengths**2 * len(Z) / n, 0)
