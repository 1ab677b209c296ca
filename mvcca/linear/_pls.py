"""Partial least squares: maps under which views covary, where CCA has them correlate.

The three ways of PLS differ in what becomes of a component once it is found. All of it happens to
covariance matrices: a row that has been added to the moments is not looked at again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from scipy import linalg
from sklearn.utils._param_validation import StrOptions

from mvcca.base import StatisticEstimator
from mvcca.linalg import Directions, Scaling, _top_singular, canonical_directions
from mvcca.problem import Basis, Identity, Rows, Solution, check_variance
from mvcca.problem._rows import takes_float32_products
from mvcca.statistics import Moments, column_slices
from mvcca.views import Views


class PLS(StatisticEstimator):
    """Partial least squares, by one decomposition or by deflation.

    Finds directions of two views that covary as much as they can [1]_,

        max wᵀ Σ_xy v   subject to   wᵀw = vᵀv = 1,

    the leading singular vectors of the cross-covariance, and components after the first by

    - "svd": the next singular vectors. Weights of a view are orthonormal;
    - "canonical": the same problem on what is left of both views after regression on their own
      scores t = X̄w and u = Ȳv. Scores of a view are uncorrelated (mode A of [1]_);
    - "regression": the same on what is left of both after regression on t, the scores of the
      first view, which is to predict the second (PLS2 [2]_).

    Deflation is done on covariances. With σ = wᵀ Σ_xy v and p = Σ_xx w / wᵀΣ_xx w, the coefficients
    of X on t (q of Y on u likewise), what is left after a component is

        Σ_xx - (wᵀΣ_xx w) p pᵀ,   Σ_xy - σ p vᵀ ("regression"),
        Σ_xy - σ (p vᵀ + w qᵀ - p qᵀ) ("canonical").

    So all three take rows in batches, sparse rows, and rows with weights. More than two views, for
    "svd" alone, solve

        max Σ_{p≠q} w_pᵀ Σ_pq w_q   subject to   Σ_p w_pᵀ w_p = n_views,

    the top eigenvectors of the covariance matrix with nothing in its diagonal blocks: the weights
    are orthogonal over all views together, no longer view by view.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the shared space.
    algorithm : {"svd", "canonical", "regression"}, default="svd"
        scikit-learn's `PLSSVD`, `PLSCanonical` and `PLSRegression`.
    scale : bool, default=False
        Whether columns are divided by their standard deviation first, as scikit-learn does unless
        told otherwise. Covariance depends on the units of the columns, correlation does not.

    Attributes
    ----------
    weights_ : dict of str to ndarray, shape (n_features, n_components_)
        What centred rows are multiplied by to give scores, scaling included; where views are
        deflated these are the *rotations* W (PᵀW)⁺ of the literature. Of the second view under
        "regression" they are Q (QᵀQ)⁺: its scores are the least squares solution T of Ȳ ≈ T Qᵀ.
        A dict: unpack it with ``weights_.values()``, since iterating over it gives names.
    means_ : dict of str to ndarray, shape (n_features,)
        Training means.
    eigenvalues_ : ndarray, shape (n_components_,)
        σ, the singular value of what was left of Σ_xy; of more views the eigenvalue.
    n_components_ : int
        Components found: fewer than asked for where the data cannot give them.
    ranks_ : dict of str to int
        Number of features of a view that vary; of a view with fewer rows than features its rank.
    view_names_ : tuple of str
        The views, in order.
    n_features_in_ : int
        Number of features of X, over all its views.

    See Also
    --------
    CFA : The same weights by another name.
    CCA : Correlation in place of covariance.

    References
    ----------
    .. [1] Wegelin, "A Survey of Partial Least Squares (PLS) Methods, with Emphasis on the Two-Block
       Case", 2000, section 4.1.
    .. [2] Rosipal and Krämer, "Overview and Recent Advances in Partial Least Squares", 2006.

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from mvcca import PLS
    >>> X, Y = load_linnerud(return_X_y=True)
    >>> model = PLS(n_components=2, algorithm="canonical", scale=True).fit(X, Y)
    >>> model.eigenvalues_.round(3)
    array([1.128, 0.102])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": StatisticEstimator._parameter_constraints["n_components"],
        "algorithm": [StrOptions({"svd", "canonical", "regression"})],
        "scale": ["boolean"],
    }

    def __init__(
        self, n_components: int = 2, *, algorithm: str = "svd", scale: bool = False
    ) -> None:
        self.n_components = n_components
        self.algorithm = algorithm
        self.scale = scale

    def _fit_rows(self, rows: Rows) -> None:
        # Scaling moves the weights out of the span of the rows, into that of equilibrated rows.
        rows = rows.in_row_space(equilibrate=self.scale)
        # Deflation divides by the variance of scores; the SVD alone divides by nothing.
        if self.algorithm == "svd" and takes_float32_products(rows.views):
            rows = replace(rows, products=np.dtype(np.float32))
        all_wide = len(rows.bases) == len(rows.views.names)
        if self.algorithm == "svd" and rows.views.is_paired and all_wide:
            self._learn_wide(rows)
        else:
            self._learn_problem(rows, self._statistic_of(rows))

    def _statistic_of(self, rows: Rows) -> Moments:
        return rows.moments()

    def _learn_problem(self, rows: Rows, statistic: Moments) -> None:
        covariance, columns = statistic.covariance(), column_slices(statistic.widths)
        within = {name: covariance[c, c] for name, c in columns.items()}
        for name, B in within.items():
            check_variance(name, np.diag(B) if np.isfinite(B).all() else B)
        pairs = list(combinations(columns, 2))
        between = {(p, q): covariance[columns[p], columns[q]] for p, q in pairs}
        variances = {
            name: rows.basis(name).variances(B, of_rows=True) for name, B in within.items()
        }
        self._solve(rows, statistic.mean(), variances, between, within)

    def _learn_wide(self, rows: Rows) -> None:
        """Learn from views that are all in bases of their rows: n x n products between them.

        With n rows of d and e features, the bases take n² (d + e) / 2 + n³ / 3 multiply-adds, the
        product and its Gram matrix 3/2 n³, and its leading eigenvectors 2/3 n³.
        """
        blocks = dict(rows.views.items())
        n_rows = len(rows.views) if rows.weights is None else rows.weights.sum()
        between = {}
        for p, q in combinations(blocks, 2):
            X = blocks[p] if rows.weights is None else rows.weights[:, None] * blocks[p]
            between[p, q] = X.T @ blocks[q]
            between[p, q] /= n_rows - 1
        variances = {
            name: rows.basis(name).variances(block, of_rows=True) for name, block in blocks.items()
        }
        for name, variance in variances.items():
            check_variance(name, variance)
        means = {name: np.zeros(block.shape[1]) for name, block in blocks.items()}
        self._solve(rows, means, variances, between, {})

    def _solve(
        self,
        rows: Rows,
        means: Mapping[str, np.ndarray],
        variances: Mapping[str, np.ndarray],
        between: Mapping[tuple[str, str], np.ndarray],
        within: Mapping[str, np.ndarray],
    ) -> None:
        units = {
            name: self._units(variances[name], rows.basis(name), len(mean))
            for name, mean in means.items()
        }
        if self.algorithm == "svd":
            found = canonical_directions(
                between, units, self.n_components, rows.eps, is_joint=False
            )
        else:
            found = _by_deflation(
                within, between, units, self.n_components, self.algorithm, rows.eps
            )
        self._learn(
            Solution(
                found.values,
                found.values,
                found.weights,
                {name: means[name] for name in found.weights},
                dict(variances),
                found.bound,
                found.ranks,
            ).lifted(rows.bases)
        )

    def _units(self, variances: np.ndarray, basis: Basis, rank: int) -> Scaling:
        """W of wᵀBw = 1, where B is the identity, or variances where columns are scaled.

        Zero for constant columns. The basis of a wide view is orthogonal under B.
        """
        diagonal = variances if self.scale else (variances > 0).astype(float)
        if not isinstance(basis, Identity):
            diagonal = np.full(rank, diagonal @ basis.lift(np.eye(rank, 1))[:, 0] ** 2)
        return Scaling.of(diagonal)

    def _check_number_of_views(self, views: Views) -> None:
        super()._check_number_of_views(views)
        if self.algorithm != "svd" and len(views.names) > 2:
            raise ValueError(
                f"PLS with algorithm={self.algorithm!r} takes 2 views, got {len(views.names)}: "
                f'{list(views.names)}. Use algorithm="svd" for more.'
            )


class CFA(PLS):
    """Cross-modal factor analysis: rotations that bring the views of an object together.

    Of all orthonormal maps of two views, those that minimise the distance of the pairs [1]_,

        min ‖X̄A - ȲB‖²_F   subject to   AᵀA = I and BᵀB = I.

    Rotations keep lengths, so that this is max tr(Aᵀ X̄ᵀȲ B), and A and B are the left and right
    singular vectors of X̄ᵀȲ, of which the leading `n_components` are kept: the weights of `PLS` with
    algorithm="svd". What sets CFA apart is its reading: scores are compared as they are, by
    distance or by cosine, in the one space of both views.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the shared space.

    Attributes
    ----------
    weights_ : dict of str to ndarray, shape (n_features, n_components_)
        A and B, by view name ("X" and "y" where two lone matrices were fitted); more views are
        joined as in `PLS`.
        A dict: unpack it with ``weights_.values()``, since iterating over it gives names.
    means_ : dict of str to ndarray, shape (n_features,)
        Training means.
    eigenvalues_ : ndarray, shape (n_components_,)
        Singular values of X̄ᵀȲ / (n - 1), decreasing.
    n_components_ : int
        Components found: fewer than asked for where the data cannot give them.
    ranks_ : dict of str to int
        As in `PLS`.
    view_names_ : tuple of str
        The views, in order.
    n_features_in_ : int
        Number of features of X, over all its views.

    See Also
    --------
    PLS : With deflation, and with scaled columns.

    References
    ----------
    .. [1] Li, Dimitrova, Li and Sethi, "Multimedia Content Processing through Cross-Modal
       Association", ACM Multimedia 2003, section 3.2.

    Examples
    --------
    >>> from mvcca import CFA
    >>> from mvcca.datasets import load_digits_views
    >>> views = load_digits_views().views
    >>> CFA(n_components=3).fit(views).weights_["left"].shape
    (32, 3)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": PLS._parameter_constraints["n_components"]
    }
    algorithm = "svd"  # parameters of PLS, not of CFA
    scale = False

    def __init__(self, n_components: int = 2) -> None:
        self.n_components = n_components


def _by_deflation(
    within: Mapping[str, np.ndarray],
    between: Mapping[tuple[str, str], np.ndarray],
    units: Mapping[str, Scaling],
    n_components: int,
    algorithm: str,
    precision: float,
) -> Directions:
    """Singular vectors of a cross-covariance from which each component is taken off when found."""
    x, y = units
    C_xx, C_yy = (_in_units(within[name], units[name], units[name]) for name in units)
    C_xy = _in_units(between[x, y], units[x], units[y])
    ranks = {name: unit.rank for name, unit in units.items()}
    limit = ranks[x] if algorithm == "regression" else min(ranks.values())
    values: list[float] = []
    columns: list[tuple[np.ndarray, ...]] = []
    for _ in range(min(n_components, limit)):
        left, sizes, right = _top_singular(C_xy, 1)
        sigma, w, v = sizes[0], left[:, 0], right[:, 0]
        if sigma <= 10 * max(ranks.values()) * precision * (values[0] if values else 0):
            break
        p, variance = _coefficients(C_xx, w)
        if algorithm == "regression":
            C_xy = C_xy - sigma * np.outer(p, v)
            v = q = sigma / variance * v  # coefficients of Y on t, which take the place of weights
        else:
            q, variance_y = _coefficients(C_yy, v)
            C_xy = C_xy - sigma * (np.outer(p, v) + np.outer(w - p, q))
            C_yy = C_yy - variance_y * np.outer(q, q)
        C_xx = C_xx - variance * np.outer(p, p)
        values.append(sigma)
        columns.append((w, p, v, q))
    bound = len(values) if len(values) < n_components else limit
    if not values:
        return Directions(np.empty(0), {}, 0, ranks)
    W, P, V, Q = (np.column_stack(vectors) for vectors in zip(*columns, strict=True))
    weights = {x: units[x].lift(_rotations(W, P)), y: units[y].lift(_rotations(V, Q))}
    return Directions(np.array(values), weights, bound, ranks)


def _in_units(C: np.ndarray, of_rows: Scaling, of_columns: Scaling) -> np.ndarray:
    return of_columns.project(of_rows.project(C).T).T


def _coefficients(C: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, float]:
    """Regression of features of covariance C on the scores of w, and the variance of these."""
    image = C @ w
    variance = float(w @ image)
    return image / variance, variance


def _rotations(W: np.ndarray, P: np.ndarray) -> np.ndarray:
    """W (PᵀW)⁺: weights of the rows as they came, for the scores of what was left of them."""
    return W @ linalg.pinv(P.T @ W)
