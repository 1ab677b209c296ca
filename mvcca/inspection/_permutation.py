"""Permutation tests of canonical correlations."""

from __future__ import annotations

import numpy as np
from scipy import linalg
from sklearn.utils import Bunch, check_random_state

from mvcca.inspection._two_views import orthonormal_basis, two_paired_views
from mvcca.views.typing import MatrixLike, ViewsLike

RandomState = int | np.random.RandomState | None
_ROUNDING = 32 * np.finfo(float).eps  # of a correlation of 1


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
    views = two_paired_views(X, y, "The permutation test")
    bases = [orthonormal_basis(name, block) for name, block in views.items()]
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
