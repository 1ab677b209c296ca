"""Nonparametric CCA: the functions of two views that correlate most, from nearest neighbours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_array, diags_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from mvcca.base import MultiViewEstimator, Requirements, all_or_nothing
from mvcca.base.inputs import open_repeated
from mvcca.base.standardizing import STANDARDIZED, column_factors
from mvcca.base.tuned_fits import fit_searched, setting_by_view
from mvcca.kernel.smoothing import Smoother, sinkhorn, top_triplets
from mvcca.machine.warnings import warn
from mvcca.model_selection import Space, searched
from mvcca.model_selection.goals import Goal
from mvcca.model_selection.spaces import AUTOMATIC, SEARCHED
from mvcca.problem import Maps, Rows
from mvcca.problem.directions import fixed_signs
from mvcca.problem.maps import warn_of_fewer_components

# Lanczos works on MᵀM, so that singular values are precise to half the digits only.
_ROUNDING = 1e-7
# A correlation this close to 1 is that of a function that is constant on parts of the graph.
_CERTAIN = 1 - 1e-6

_MOST_SEARCHED = 60  # components


class NCCA(MultiViewEstimator):
    r"""Nonparametric canonical correlation analysis of two views.

    Use it for two views of up to some tens of thousands of rows and few dimensions, if their
    relation is not linear.

    Finds the functions, of any form, of two views that correlate most [1]_,

    .. math::

        \max \; ∑_i E \, f_i(x) g_i(y) \quad \text{subject to} \quad
        E \, f_i f_j = E \, g_i g_j = δ_{ij},

    which are the singular functions of s(x, y) = p(x, y) / p(x) p(y). A kernel density estimate of
    s at n pairs is D_x D_yᵀ, with rows of D_x (and D_y) that add up to 1,

    .. math::

        D_x[i, l] ∝ \exp(-‖x_i - x_l‖^2 / 2h^2)
        \quad \text{for the } K \text{ nearest } x_l \text{ of } x_i,

    where the neighbours of x_i include x_i. Sinkhorn iterations scale it to M = diag(a) D_x D_yᵀ
    diag(b), whose rows and columns add up to 1. Then M = U Σ Vᵀ with σ_0 = 1 for the constant
    functions, and the next singular vectors are the scores f = √n U and g = √n V of the
    training rows. The scores of a new row follow from those of the training rows near it,

    .. math::

        f(x) = \frac{\sqrt n \; ∑_l w_l(x) \, (D_y^⊤ \operatorname{diag}(b) V)_l}
        {σ \; ∑_l w_l(x) \, (D_y^⊤ b)_l},

    and g(y) likewise: a Nyström extension that returns the training scores at training rows (unless
    more than K of them are equal) and is constant where f is. M itself, n x n, is never made.

    Parameters
    ----------
    n_components : int or None, default=2
        Number of functions of each view. None is all that the data support, which takes the n x n
        matrix; if folds choose another parameter, they also choose this number, up to 60.
    n_neighbors : int, mapping of str to int, "auto" or "cv", default="auto"
        K, of every view or by name. A number larger than that of the rows takes all of them, with a
        warning. "cv" chooses by 3 folds. "auto" is "cv" if ``bandwidth="cv"``, else 20 or all rows.
    bandwidth : float, mapping of str to float, "auto" or "cv", default="auto"
        h, of every view or by name, in units of a view's root mean square distance from its mean.
        "cv" chooses by 3 folds. "auto" is "cv" if ``n_neighbors="cv"``, else 0.5.
    scale : bool, mapping of str to bool, "auto" or "cv", default="auto"
        Whose columns to standardize before distances are taken, as in `CCA`.
    reducer : transformer, mapping of str to transformer or None, or None, default=None
        Applied to a view before distances are taken, such as ``PCA(0.8)``: neighbours mean little
        in many dimensions.
    n_iter : int, default=50
        Most iterations of the scaling: Sinkhorn's, from the 16th on each with a Newton step. The
        published 15 can leave scores of correlated views with means far from zero.
    tol : float, default=1e-6
        Stop when all rows and columns of M add up to 1 within `tol`; a warning says where `n_iter`
        iterations were too few.
    random_state : int, RandomState or None, default=None
        Seed of the start of the Lanczos iteration. None always takes the same start.
    cv_goal : {"object", "class", "correlation"} or None, default=None
        What "cv" maximizes on held-out folds: the mean reciprocal rank of the row of the same
        object, mAP@50 over rows that share a label, or the mean correlation of the scores. None is
        "object"; a class goal needs labels as y.

    Attributes
    ----------
    weights_ : dict of str to ndarray, shape (n_objects, n_components_)
        √n (D_yᵀ diag(b) V) / σ of the first view, √n (D_xᵀ diag(a) U) / σ of the second.
        A dict: unpack it with ``weights_.values()``, since iterating over it gives names.
    normalizers_ : dict of str to ndarray, shape (n_objects,)
        D_yᵀ b of the first view, D_xᵀ a of the second.
    smoothers_ : dict of str to Smoother
        Maps from rows to w(x).
    canonical_correlations_ : ndarray, shape (n_components_,)
        σ_1, σ_2, ..., decreasing.
    scale_ : dict of str to bool
        Which views were standardized.
    n_neighbors_, bandwidth_
        Chosen values of the parameters that are "cv"; only then, like the next two.
    ranking_ : str
        The chosen ranking, "cosine" or "cosine+csls".
    cv_results_ : dict of str to array
        Values of all settings on the folds, as in scikit-learn's searches.
    n_components_ : int
        Number of components, fewer than requested if the data have no more.
    view_names_ : tuple of str
        The views, in order.
    n_features_in_ : int
        Number of features of X, over all its views.

    See Also
    --------
    KCCA : Functions that a kernel makes, with a ridge.

    Notes
    -----
    If there are too few neighbours, or the bandwidth is too small, the graph is disconnected:
    functions that are constant on each part correlate perfectly, which says nothing about new
    rows. Fitting warns of this; choose K and h on held-out pairs.

    References
    ----------
    .. [1] Michaeli, Wang and Livescu, "Nonparametric Canonical Correlation Analysis", ICML 2016.

    Examples
    --------
    >>> from mvcca import CCA, NCCA
    >>> from mvcca.datasets import make_nonlinear_views
    >>> views = make_nonlinear_views(300, random_state=0).views
    >>> CCA(1).fit(views).score(views) < 0.1, NCCA(1, bandwidth=0.1).fit(views).score(views) > 0.99
    (True, True)
    """

    requires = Requirements(views=(2, 2), dense=True, host=True)
    automatic: ClassVar[Mapping[str, Any]] = {"n_neighbors": 20, "bandwidth": 0.5, **STANDARDIZED}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": MultiViewEstimator._parameter_constraints["n_components"],
        "n_neighbors": [
            Interval(Integral, 1, None, closed="left"),
            Mapping,
            StrOptions({SEARCHED, AUTOMATIC}),
        ],
        "bandwidth": [
            Interval(Real, 0, None, closed="neither"),
            Mapping,
            StrOptions({SEARCHED, AUTOMATIC}),
        ],
        "scale": MultiViewEstimator._parameter_constraints["scale"],
        "reducer": [HasMethods(["fit", "transform"]), Mapping, None],
        "n_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
        "cv_goal": MultiViewEstimator._parameter_constraints["cv_goal"],
    }

    weights_: dict[str, np.ndarray]
    normalizers_: dict[str, np.ndarray]
    smoothers_: dict[str, Smoother]

    def __init__(
        self,
        n_components: int | None = 2,
        *,
        n_neighbors: int | str | Mapping[str, int] = AUTOMATIC,
        bandwidth: float | str | Mapping[str, float] = AUTOMATIC,
        scale: bool | str | Mapping[str, bool] = AUTOMATIC,
        reducer: Any = None,
        n_iter: int = 50,
        tol: float = 1e-6,
        random_state: Any = None,
        cv_goal: Goal | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.bandwidth = bandwidth
        self.scale = scale
        self.reducer = reducer
        self.n_iter = n_iter
        self.tol = tol
        self.random_state = random_state
        self.cv_goal = cv_goal

    def search_space(self, rows: Rows) -> Space:
        """Neighbours, bandwidths and numbers of components."""
        values = {"n_neighbors": (5, 10, 20, 40, 80), "bandwidth": (0.25, 0.5, 1.0)}
        return Space(
            values,
            has_prefixes=True,
            most_components=_MOST_SEARCHED,
            n_folds=3,
            scales=rows.views.names,
        )

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the neighbours of every row in its view, and the functions.

        Parameters
        ----------
        X : Views, mapping, list of matrices, or matrix of shape (n_rows, n_features)
            Two views, paired. A lone matrix is the first of two views.
        y : matrix, optional
            The second view, if X is a lone matrix; ignored otherwise (labels in a pipeline).
        sample_weight : array-like of int, shape (n_objects,), optional
            How often each object counts: its rows are repeated.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a view holds NaN or infinity, never varies, or differs in rows from the other; if
            an object is seen in one view only; if weights are not whole numbers.
        """
        self._validate_params()
        if searched(self):
            return fit_searched(self, X, y, sample_weight)
        views = open_repeated(self, X, y, sample_weight).views.in_memory()
        if not views.is_paired:
            raise ValueError(
                f"NCCA learns from pairs, but {np.sum(~views.seen.all(axis=1))} of {len(views)} "
                "objects are seen in one view only. Fit views[views.seen.all(axis=1)]."
            )
        names = views.names
        n_neighbors = setting_by_view(self, "n_neighbors", names)
        bandwidths = setting_by_view(self, "bandwidth", names)
        reducers = setting_by_view(self, "reducer", names)
        smoothers = {}
        factors = column_factors(self, Rows(views))
        for name, block in views.items():
            if self.n_neighbors != AUTOMATIC and n_neighbors[name] > len(views):
                warn(
                    f"n_neighbors={n_neighbors[name]} is more than the {len(views)} rows of view "
                    f"{name!r}: all of them are neighbours."
                )
            own = reducers[name], n_neighbors[name], bandwidths[name], factors[name]
            smoothers[name] = Smoother.fit(name, block, *own)
        D_x, D_y = (smoothers[name](block, fitted=True) for name, block in views.items())
        a, b, error = sinkhorn(D_x, D_y, self.n_iter, self.tol)
        if error > self.tol:
            warn(
                f"Sinkhorn scaling has not converged in n_iter={self.n_iter} iterations: columns "
                f"add up to 1 within {error:.1e} only, not tol={self.tol:g}, and scores may have "
                "means other than 0. Raise n_iter; or raise n_neighbors or bandwidth, where the "
                "graph of neighbours almost falls apart.",
                ConvergenceWarning,
            )
        A, B = diags_array(a) @ D_x, diags_array(b) @ D_y
        U, sigma, V = self._singular_triplets(A, B)
        root = np.sqrt(len(views))
        ones = np.ones(len(views))
        maps = (root * (B.T @ V) / sigma, root * (A.T @ U) / sigma)
        weights = dict(zip(views.names, maps, strict=True))
        signs = fixed_signs(weights, dict.fromkeys(views.names, ones))
        self.normalizers_ = dict(zip(views.names, (B.T @ ones, A.T @ ones), strict=True))
        self.weights_ = {name: W * signs for name, W in weights.items()}
        self.smoothers_ = smoothers
        self.canonical_correlations_ = sigma
        self.n_components_ = len(sigma)
        return self

    def _projection(self, name: str, maps: Maps | None = None) -> Callable[[Any], Any]:
        values = self.smoothers_[name], self.weights_[name], self.normalizers_[name]
        return partial(_project, *values)

    def _singular_triplets(
        self, A: csr_array, B: csr_array
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """U, σ and V of A Bᵀ without the constant first triplet, as many as there are to find."""
        wanted = A.shape[0] if self.n_components is None else self.n_components + 1
        U, sigma, V = top_triplets(A, B, wanted, self.random_state)
        n_parts = int(np.sum(sigma > _CERTAIN))
        if n_parts > 1:
            warn(
                f"The graph of neighbours falls apart: {n_parts - 1} correlations are 1 because a "
                "function may be constant on each part, which says nothing about new rows. Raise "
                "n_neighbors or bandwidth."
            )
        found = int(np.sum(sigma[1:] > _ROUNDING))
        if not found:
            raise ValueError(
                "The views have nothing in common: no function of one correlates with a function "
                "of the other. Check that rows correspond, or lower n_neighbors or bandwidth."
            )
        if self.n_components is not None and found < self.n_components:
            warn_of_fewer_components(self.n_components, found)
        kept = slice(1, found + 1)
        return U[:, kept], sigma[kept], V[:, kept]


def _project(
    smoother: Smoother, weights: np.ndarray, normalizers: np.ndarray, block: Any
) -> np.ndarray:
    """Scores of rows, from those of their nearest training rows."""
    D = smoother(block)
    scores = (D @ weights) / (D @ normalizers)[:, None]
    return scores.astype(block.dtype, copy=False)
