"""What a fitted model found: loadings, correlations and explained variance on given rows.

Everything here asks the model only to project rows, so that pipelines and searches can be inspected
too, and the rows may be training rows or held-out ones. Pictures of it are in `mvcca.plotting`,
measures of retrieval in `mvcca.measures`.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from scipy import linalg
from scipy.sparse import issparse
from sklearn.utils import Bunch, check_array, check_random_state

from mvcca.config import block_slices
from mvcca.measures import column_correlations
from mvcca.views import Views, as_views, holds_views

__all__ = [
    "component_correlations",
    "explained_variance",
    "loadings",
    "pairwise_correlations",
    "permutation_test",
    "variable_correlations",
]

_ROUNDING = 32 * np.finfo(float).eps  # a deviation this small against its mean is rounding


def component_correlations(
    estimator: Any, X: Any, y: Any = None
) -> dict[tuple[str, str], np.ndarray]:
    """Correlation of each component between every pair of views, on given rows.

    On the training rows of a CCA without ridge these are its canonical correlations; on held-out
    rows they say how much of that was chance.

    Parameters
    ----------
    estimator : fitted estimator
        Anything whose ``transform`` takes and gives `mvcca.views.Views`.
    X : Views, mapping, list of matrices, or matrix
        Rows of the fitted views, at least two of them.
    y : matrix, optional
        The second view, if the estimator was fitted on two lone matrices.

    Returns
    -------
    dict of (str, str) to ndarray, shape (n_components,)
        For every pair of views with at least two objects in common, over these objects; 0 where a
        component is constant.

    Raises
    ------
    ValueError
        If no two views have two objects in common.

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
    _, scores = _projected(estimator, X, y)
    return pairwise_correlations(scores)


def pairwise_correlations(scores: Any) -> dict[tuple[str, str], np.ndarray]:
    """Correlation of each component between every pair of projected views.

    Parameters
    ----------
    scores : Views, mapping or list of matrices of shape (n_rows, n_components)
        Projected rows, at least two views of them.

    Returns
    -------
    dict of (str, str) to ndarray, shape (n_components,)
        As `component_correlations` gives it for an estimator.

    Raises
    ------
    ValueError
        If no two views have two objects in common.
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
            f"{sorted(set(scores.pattern.tolist()))}. Compare unpaired views by retrieval "
            "(mvcca.evaluate_retrieval)."
        )
    return correlations


def loadings(
    estimator: Any, X: Any, y: Any = None, *, variates: str | None = None
) -> dict[str, np.ndarray]:
    """Correlations of the variables with the canonical variates (structure coefficients).

    With z_q = W_qᵀ (x_q - m_q) the canonical variates of view q, the loading of variable j of view
    p on component i is

        corr(x_pj, z_qi),

    over the objects seen in both views. With q = p, the default, these are loadings; with another
    q, cross-loadings [1]_.

    Parameters
    ----------
    estimator : fitted estimator
        Anything whose ``transform`` takes and gives `mvcca.views.Views`.
    X : Views, mapping, list of matrices, or matrix
        Rows of the fitted views. Sparse ones stay sparse.
    y : matrix, optional
        The second view, if the estimator was fitted on two lone matrices.
    variates : str, optional
        The view q whose variates all variables are correlated with. By default each view's own.

    Returns
    -------
    dict of str to ndarray, shape (n_features, n_components)
        By view name; 0 for a variable or a component that is constant.

    Raises
    ------
    ValueError
        If `variates` is no view of X, or shares no two objects with some view.

    References
    ----------
    .. [1] Sherry and Henson, "Conducting and interpreting canonical correlation analysis in
       personality research: a user-friendly primer", J. Personality Assessment 84(1), 2005.
    """
    return variable_correlations(*_projected(estimator, X, y), variates=variates)


def variable_correlations(
    X: Any, scores: Any, *, variates: str | None = None
) -> dict[str, np.ndarray]:
    """Correlations of the variables with projected rows: `loadings` without an estimator.

    Parameters
    ----------
    X : Views, mapping or list of matrices
        Rows of the views.
    scores : Views, mapping or list of matrices of shape (n_rows, n_components)
        The same rows, projected.
    variates : str, optional
        The view whose scores all variables are correlated with. By default each view's own.

    Returns
    -------
    dict of str to ndarray, shape (n_features, n_components)
        By view name; 0 for a variable or a component that is constant.

    Raises
    ------
    ValueError
        If `variates` is no view of X, or shares no two objects with some view.
    """
    found = _correlated(as_views(X).in_memory(), as_views(scores).in_memory(), variates)
    return {name: correlations for name, (correlations, _) in found.items()}


def explained_variance(
    estimator: Any, X: Any, y: Any = None, *, variates: str | None = None
) -> dict[str, np.ndarray]:
    """Share of each view's standardised variance that each component explains.

    The mean squared loading over the d_p variables of view p that vary,

        1 / d_p Σ_j corr(x_pj, z_qi)².

    With the variates of the view itself (q = p, the default) this is the variance extracted; with
    those of another view it is the redundancy of view p given view q [1]_: how much of p a linear
    regression on component i of q explains.

    Parameters
    ----------
    estimator : fitted estimator
        Anything whose ``transform`` takes and gives `mvcca.views.Views`.
    X : Views, mapping, list of matrices, or matrix
        Rows of the fitted views.
    y : matrix, optional
        The second view, if the estimator was fitted on two lone matrices.
    variates : str, optional
        The view q whose variates explain. By default each view's own.

    Returns
    -------
    dict of str to ndarray, shape (n_components,)
        By view name, in [0, 1].

    Raises
    ------
    ValueError
        As `loadings` does.

    References
    ----------
    .. [1] Stewart and Love, "A general canonical correlation index", Psychological Bulletin 70(3),
       1968.
    """
    return {
        name: (values[varies] ** 2).mean(axis=0)
        for name, (values, varies) in _correlated(*_projected(estimator, X, y), variates).items()
    }


def permutation_test(
    X: Any, y: Any = None, *, n_permutations: int = 999, random_state: Any = None
) -> Bunch:
    """How many canonical correlations of two views are more than chance.

    Permuting the rows of one view breaks the pairing and nothing else. Component i is tested after
    the components before it are taken out: the canonical variates i, i + 1, ... of one view are
    permuted against those of the other, and the largest correlation is compared,

        p_i = max_{j ≤ i} (1 + #{permutations with ρ*_j ≥ ρ_j}) / (1 + n_permutations),

    the stepwise test of [1]_. Comparing ρ_i with the i-th correlation of permuted *rows* instead
    counts chance as signal, since the strong components are spread over all others.

    Parameters
    ----------
    X : Views, mapping, list of matrices, or matrix of shape (n_rows, n_features)
        Two paired views, or the first of them. Sparse views become dense.
    y : matrix, optional
        The second view, if X is a lone matrix.
    n_permutations : int, default=999
        Number of permutations; no p-value is below 1 / (1 + n_permutations).
    random_state : int, RandomState or None, default=None
        Seed of the permutations.

    Returns
    -------
    Bunch
        correlations : ndarray, shape (k,)
            All canonical correlations, without ridge; k is the smaller rank of the two views.
        p_values : ndarray, shape (k,)
            Never falling; those below 0.05 belong to the components that are more than chance.

    Raises
    ------
    ValueError
        If there are not two paired views, or not more objects than independent features: then the
        correlations are 1 whatever the pairing is.
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
            "The permutation test takes rows and no model: permutation_test(X, Y) or "
            f"permutation_test(views). Got {type(X).__name__} as the first view."
        )
    if y is None and not holds_views(X):
        raise ValueError(
            "The permutation test takes two paired views, got one matrix. Pass the second one as "
            "y, or both as Views."
        )
    views = _views_of(X, y)
    if len(views.names) != 2 or not views.is_paired:
        raise ValueError(
            f"The permutation test takes two paired views, got {views}, seen as "
            f"{sorted(set(views.pattern.tolist()))}. Take a pair with views.select."
        )
    bases = [_orthonormal_basis(name, block) for name, block in views.items()]
    widths = [basis.shape[1] for basis in bases]
    if len(views) <= sum(widths) + 1:
        raise ValueError(
            f"{len(views)} objects against {sum(widths)} independent features: correlations are 1 "
            "by construction. Reduce the views first, for example by PCA."
        )
    left, correlations, right = linalg.svd(bases[0].T @ bases[1])
    first, second = bases[0] @ left, bases[1] @ right.T  # canonical variates of unit length
    rng = check_random_state(random_state)
    as_large = np.ones(len(correlations))
    for _ in range(n_permutations):
        chance = first[rng.permutation(len(first))].T @ second
        largest = [linalg.norm(chance[i:, i:], 2) for i in range(len(correlations))]
        as_large += largest >= correlations - _ROUNDING
    p_values = np.maximum.accumulate(as_large / (1 + n_permutations))
    return Bunch(correlations=np.minimum(correlations, 1), p_values=p_values)


def _views_of(X: Any, y: Any, names: tuple[str, ...] | None = None) -> Views:
    """Rows in any accepted container as Views; a list is named as it was in fit."""
    if not holds_views(X):
        return Views({"X": X} if y is None else {"X": X, "y": _as_matrix(y)}).in_memory()
    if y is not None:
        raise ValueError("y is the second of two lone matrices, but X holds views. Leave y out.")
    return as_views(X, names).in_memory()


def _as_matrix(y: Any) -> Any:
    """A second matrix, or a vector as its only column, with the row labels it has."""
    if np.ndim(y) != 1 or issparse(y):
        return y
    return y.to_frame() if hasattr(y, "to_frame") else np.reshape(y, (-1, 1))


def _projected(estimator: Any, X: Any, y: Any) -> tuple[Views, Views]:
    """Rows as views, and their scores."""
    views = _views_of(X, y, getattr(estimator, "view_names_", None))
    scores = estimator.transform(views)
    return views, scores.replace({name: np.asarray(Z) for name, Z in scores.items()})


def _shared_rows(views: Views, p: str, q: str) -> tuple[np.ndarray, np.ndarray]:
    """Which rows of view p, and which of view q, show objects seen in both."""
    of_p, of_q = (views.seen[:, views.names.index(name)] for name in (p, q))
    return of_q[of_p], of_p[of_q]


def _correlated(
    views: Views, scores: Views, variates: str | None
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Correlations of every view's variables with scores, and which of the variables vary."""
    if variates is not None and variates not in scores:
        raise ValueError(f"variates={variates!r} is no view of X; they are {list(scores.names)}.")
    found = {}
    for name, block in views.items():
        source = name if variates is None else variates
        of_block, of_scores = _shared_rows(views, name, source)
        if of_block.sum() < 2:
            raise ValueError(f"Views {name!r} and {source!r} share fewer than two objects.")
        rows = block if of_block.all() else Views({name: block})[of_block][name]
        found[name] = _column_correlations(rows, scores[source][of_scores])
    return found


def _column_correlations(X: Any, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Correlations (d, k) of the columns of X with those of Z, and which columns of X vary."""
    X = X if issparse(X) else np.asarray(X)
    mean = np.asarray(X.mean(axis=0, dtype=float)).ravel()
    Z = Z - Z.mean(axis=0, dtype=float)
    cross, squares = np.zeros((len(mean), Z.shape[1])), np.zeros(len(mean))
    for rows in block_slices(len(Z), 16 * len(mean)):
        products, deviations = _about_mean(X[rows], mean, Z[rows])
        cross += products
        squares += deviations
    lengths = np.sqrt(squares), np.linalg.norm(Z, axis=0)
    varies = lengths[0] > _ROUNDING * np.sqrt(len(Z)) * np.abs(mean)
    scale = np.outer(np.where(varies, lengths[0], 0), lengths[1])
    correlations = np.divide(cross, scale, out=np.zeros_like(cross), where=scale > 0)
    return np.clip(correlations, -1, 1), varies


def _about_mean(X: Any, mean: np.ndarray, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(X - mean)ᵀ Z and the squares Σ (X - mean)² of a block of rows."""
    if not issparse(X):
        centred = X - mean
        return centred.T @ Z, np.einsum("ij,ij->j", centred, centred)
    X = X.astype(float)  # centring would fill the zeros in
    stored = np.bincount(X.indices, minlength=len(mean))
    deviations = (X.data - mean[X.indices]) ** 2
    squares = np.bincount(X.indices, weights=deviations, minlength=len(mean))
    squares += (X.shape[0] - stored) * mean**2
    return X.T @ Z - np.outer(mean, Z.sum(axis=0)), squares


def _orthonormal_basis(name: str, X: Any) -> np.ndarray:
    """Orthonormal basis (n, rank) of the span of the centred columns of X."""
    X = check_array(X, accept_sparse=True, dtype=float, input_name=f"view {name!r}")
    X = X.toarray() if issparse(X) else X
    centred = X - X.mean(axis=0)
    lengths = np.linalg.norm(centred, axis=0)
    constant = lengths <= _ROUNDING * np.linalg.norm(X, axis=0)
    if constant.all():
        raise ValueError(f"View {name!r} has no variance: all its rows are the same.")
    centred = centred[:, ~constant] / lengths[~constant]
    left, values, _ = linalg.svd(centred, full_matrices=False)
    return left[:, values > max(X.shape) * np.finfo(float).eps * values[0]]
