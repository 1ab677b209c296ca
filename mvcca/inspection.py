"""Inspect fitted models: loadings, correlations, explained variance and a permutation test.

These functions only need a model's `transform`, so they also work with pipelines and searches, on
training or held-out rows. Plots are in `mvcca.plotting`, retrieval measures in `mvcca.measures`.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from scipy import linalg
from sklearn.utils import Bunch, check_array, check_random_state

from mvcca.blocks import Block
from mvcca.machine.config import block_slices
from mvcca.measures import column_correlations
from mvcca.problem import principal_components
from mvcca.views import Views, as_views, holds_views
from mvcca.views.typing import MatrixLike, ViewsLike

__all__ = [
    "component_correlations",
    "explained_variance",
    "loadings",
    "pairwise_correlations",
    "permutation_test",
    "variable_correlations",
]

RandomState = int | np.random.RandomState | None
_ROUNDING = 32 * np.finfo(float).eps  # relative deviation from the mean of a constant column


def component_correlations(
    estimator: Any, X: ViewsLike | MatrixLike, y: MatrixLike | None = None
) -> dict[tuple[str, str], np.ndarray]:
    """Correlation of each component between every pair of views, on given rows.

    On the training rows of CCA without ridge these are the canonical correlations; on held-out rows
    they show how much of the correlation is due to chance.

    Parameters
    ----------
    estimator : fitted estimator
        Any model whose ``transform`` maps `mvcca.views.Views` to `Views`.
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
    return pairwise_correlations(scores)


def pairwise_correlations(scores: ViewsLike) -> dict[tuple[str, str], np.ndarray]:
    """Correlation of each component between every pair of projected views.

    Parameters
    ----------
    scores : Views, mapping or list of matrices of shape (n_rows, n_components)
        Projected rows, at least two views of them.

    Returns
    -------
    dict of (str, str) to ndarray, shape (n_components,)
        As for `component_correlations`.

    Raises
    ------
    ValueError
        If no two views have two common objects.
    """
    scores = as_views(scores).in_memory()
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

    over the objects seen in both views. With q = p, the default, these are loadings; with q ≠ p,
    cross-loadings [1]_.

    Parameters
    ----------
    estimator : fitted estimator
        Any model whose ``transform`` maps `mvcca.views.Views` to `Views`.
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
    return variable_correlations(*projected(estimator, X, y), variates=variates)


def variable_correlations(
    X: ViewsLike, scores: ViewsLike, *, variates: str | None = None
) -> dict[str, np.ndarray]:
    """Correlations of the variables with projected rows: `loadings` without an estimator.

    Parameters
    ----------
    X : Views, mapping or list of matrices
        Rows of the views.
    scores : Views, mapping or list of matrices of shape (n_rows, n_components)
        The same rows, projected.
    variates : str, optional
        The view whose scores are used for all views; by default each view's own.

    Returns
    -------
    dict of str to ndarray, shape (n_features, n_components)
        By view name; 0 for constant variables and components.

    Raises
    ------
    ValueError
        If `variates` is not a view of X, or has fewer than two objects in common with a view.
    """
    found = _correlated(as_views(X).in_memory(), as_views(scores).in_memory(), variates)
    return {name: correlations for name, (correlations, _) in found.items()}


def explained_variance(
    estimator: Any,
    X: ViewsLike | MatrixLike,
    y: MatrixLike | None = None,
    *,
    variates: str | None = None,
) -> dict[str, np.ndarray]:
    """Fraction of each view's standardized variance explained by each component.

    This is the mean squared loading over the d_p non-constant variables of view p,

        1 / d_p Σ_j corr(x_pj, z_qi)².

    With the view's own variates (q = p, the default) this is the variance extracted; with those of
    another view it is the redundancy of view p given view q [1]_, the variance of p explained by a
    linear regression on component i of q.

    Parameters
    ----------
    estimator : fitted estimator
        Any model whose ``transform`` maps `mvcca.views.Views` to `Views`.
    X : Views, mapping, list of matrices, or matrix
        Rows of the fitted views.
    y : matrix, optional
        The second view, if the estimator was fitted on two matrices.
    variates : str, optional
        The view q of the explaining variates; by default each view's own.

    Returns
    -------
    dict of str to ndarray, shape (n_components,)
        By view name, in [0, 1].

    Raises
    ------
    ValueError
        As for `loadings`.

    References
    ----------
    .. [1] Stewart and Love, "A general canonical correlation index", Psychological Bulletin 70(3),
       1968.
    """
    return {
        name: (values[varies] ** 2).mean(axis=0)
        for name, (values, varies) in _correlated(*projected(estimator, X, y), variates).items()
    }


def permutation_test(
    X: ViewsLike | MatrixLike,
    y: MatrixLike | None = None,
    *,
    n_permutations: int = 999,
    random_state: RandomState = None,
) -> Bunch:
    """Test which canonical correlations of two views are significant, by permutation.

    Permuting the rows of one view breaks the pairing and nothing else. Component i is tested after
    removing the components before it: the canonical variates i, i + 1, ... of one view are
    permuted against those of the other, and the largest correlation is compared,

        p_i = max_{j ≤ i} (1 + #{permutations with ρ*_j ≥ ρ_j}) / (1 + n_permutations),

    the stepwise test of [1]_. Comparing ρ_i with the i-th correlation of permuted *rows* would be
    too liberal, since permutation spreads the strong components over all others.

    Parameters
    ----------
    X : Views, mapping, list of matrices, or matrix of shape (n_rows, n_features)
        Two paired views, or the first of them. Sparse views are converted to dense.
    y : matrix, optional
        The second view, if X is a single matrix.
    n_permutations : int, default=999
        Number of permutations; the smallest possible p-value is 1 / (1 + n_permutations).
    random_state : int, RandomState or None, default=None
        Seed for the permutations.

    Returns
    -------
    Bunch
        correlations : ndarray, shape (k,)
            All canonical correlations, without ridge; k is the smaller rank of the two views.
        p_values : ndarray, shape (k,)
            Non-decreasing; components with p-values below 0.05 are significant.
        permuted : ndarray, shape (n_permutations, k)
            Correlations ρ*_i of the permutations.

    Raises
    ------
    ValueError
        If there are not two paired views, or no more objects than independent features, in which
        case the correlations are 1 for any pairing.
    TypeError
        If X is an estimator.

    References
    ----------
    .. [1] Winkler, Renaud, Smith and Nichols, "Permutation inference for canonical correlation
       analysis", NeuroImage 220, 2020, algorithm 1 (without nuisance variables).

    Examples
    --------
    >>> from mvcca.datasets import make_gaussian_views
    >>> from mvcca.inspection import permutation_test
    >>> views = make_gaussian_views(300, correlations=(0.8, 0.5), random_state=0).views
    >>> test = permutation_test(views, random_state=0)
    >>> (test.p_values < 0.05).tolist()
    [True, True, False, False, False]
    """
    if hasattr(X, "fit"):
        raise TypeError(
            "The permutation test takes rows, not a model: permutation_test(X, Y) or "
            f"permutation_test(views). Got {type(X).__name__} as the first view."
        )
    if y is None and not holds_views(X):
        raise ValueError(
            "The permutation test takes two paired views, got one matrix. Pass the second matrix "
            "as y, or both as Views."
        )
    views = views_of(X, y)
    if len(views.names) != 2 or not views.is_paired:
        raise ValueError(
            f"The permutation test takes two paired views, got {views}, seen as "
            f"{sorted(set(views.pattern.tolist()))}. Select two views with views.select."
        )
    bases = [_orthonormal_basis(name, block) for name, block in views.items()]
    widths = [basis.shape[1] for basis in bases]
    if len(views) <= sum(widths) + 1:
        raise ValueError(
            f"With {len(views)} objects and {sum(widths)} independent features, correlations are 1 "
            "by construction. Reduce the views first, for example by PCA."
        )
    left, correlations, right = linalg.svd(bases[0].T @ bases[1])
    first, second = bases[0] @ left, bases[1] @ right.T  # canonical variates of unit length
    rng = check_random_state(random_state)
    permuted = np.empty((n_permutations, len(correlations)))
    for largest in permuted:
        chance = first[rng.permutation(len(first))].T @ second
        largest[:] = [linalg.norm(chance[i:, i:], 2) for i in range(len(correlations))]
    as_large = 1 + (permuted >= correlations - _ROUNDING).sum(axis=0)
    return Bunch(
        correlations=np.minimum(correlations, 1),
        p_values=np.maximum.accumulate(as_large / (1 + n_permutations)),
        permuted=np.minimum(permuted, 1),
    )


def views_of(X: Any, y: Any, names: tuple[str, ...] | None = None) -> Views:
    """Convert rows to in-memory Views; `names` are those of the views of a list."""
    if not holds_views(X):
        return Views({"X": X} if y is None else {"X": X, "y": _as_matrix(y)}).in_memory()
    if y is not None:
        raise ValueError("X is a container of views, so y, the second matrix, must be omitted.")
    return as_views(X, names).in_memory()


def _as_matrix(y: Any) -> Any:
    """A matrix, or a vector as a single column, with its row labels."""
    if np.ndim(y) != 1:
        return y
    return y.to_frame() if hasattr(y, "to_frame") else np.reshape(y, (-1, 1))


def projected(estimator: Any, X: Any, y: Any) -> tuple[Views, Views]:
    """Rows as Views, and their scores."""
    views = views_of(X, y, getattr(estimator, "view_names_", None))
    scores = estimator.transform(views)
    return views, scores.replace({name: np.asarray(Z) for name, Z in scores.items()})


def _shared_rows(views: Views, p: str, q: str) -> tuple[np.ndarray, np.ndarray]:
    """Masks of the rows of view p and of view q whose objects are seen in both."""
    of_p, of_q = (views.seen[:, views.names.index(name)] for name in (p, q))
    return of_q[of_p], of_p[of_q]


def _correlated(
    views: Views, scores: Views, variates: str | None
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Correlations of every view's variables with scores, and a mask of non-constant variables."""
    if variates is not None and variates not in scores:
        raise ValueError(
            f"variates={variates!r} is not a view of X; the views are {list(scores.names)}."
        )
    found = {}
    for name, block in views.blocks.items():
        source = name if variates is None else variates
        of_block, of_scores = _shared_rows(views, name, source)
        if of_block.sum() < 2:
            raise ValueError(f"Views {name!r} and {source!r} have fewer than two common objects.")
        rows = block if of_block.all() else block.take(np.flatnonzero(of_block))
        found[name] = _column_correlations(rows, scores[source][of_scores])
    return found


def _column_correlations(X: Block, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Correlations (d, k) of the columns of X and Z, and a mask of non-constant columns of X."""
    mean = X.column_means()
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
    return np.clip(correlations, -1, 1), varies


def _orthonormal_basis(name: str, X: Any) -> np.ndarray:
    """Orthonormal basis (n, rank) of the span of the centred columns of X."""
    X = check_array(X, accept_sparse=True, dtype=float, input_name=f"view {name!r}")
    rows = principal_components(X)[1]
    if not rows.shape[1]:
        raise ValueError(f"View {name!r} has no variance: all its rows are equal.")
    return rows / np.linalg.norm(rows, axis=0)
