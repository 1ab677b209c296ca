"""Sparse CCA with numbers of features that folds choose: `RGCCA` with other defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from mvcca.base.statistic_estimator import check_memory
from mvcca.linear._rgcca import RGCCA, Posed, centred_rows, of_component
from mvcca.machine.warnings import warn
from mvcca.model_selection import SEARCHED, Trials, searched
from mvcca.model_selection.feature_counts import (
    FromCovariances,
    choose_counts,
    training_parts,
)
from mvcca.problem import Estimate, Rows, climb
from mvcca.problem.ascent import Limit
from mvcca.problem.block_covariances import CovarianceMatrix, CovarianceProducts
from mvcca.statistics import column_slices
from mvcca.views import Views
from mvcca.views.by_view import value_by_view

_LEAST_CORRELATION = 4.0  # of held-out rows, times the root of their number
_MOST_COMPONENTS = 10
_SEARCH_TOL = 1e-18  # squared relative change, which moves held-out correlations by about 1e-9


class SparseCCA(RGCCA):
    r"""Sparse CCA and sparse PLS of two or more views; folds choose how many features.

    Use it to find the few features of each view that vary together, as in tables of genes and
    metabolites. ``SparseCCA().fit(views)`` needs no settings.

    Finds one weight vector per view at a time, with few nonzero weights,

    .. math::

        \max \; ∑_{j≠k} (w_j^⊤ S_{jk} w_k)^2 \quad \text{subject to} \quad
        w_j^⊤ (τ I + (1 - τ) S_{jj}) w_j = 1, \quad ‖w_j‖_0 ≤ m_j,

    with the correlations S of the columns. τ = 1 maximizes covariance (sparse PLS), and a smaller
    τ correlation. The problem is solved by updating one view after the other, from 20 features of
    each linked pair, since singular vectors of S_jk lead to a wrong end if each view has a factor
    of its own, such as a batch.

    Parameters
    ----------
    n_components : int or "cv", default=1
        Number of components; fewer are found if views have no more in common. "cv" stops before
        the first one, of at most 10, whose correlation on held-out rows is not above 4 / √n for
        n rows, as the largest of many settings may be without anything in common. A first
        component with no more than that warns.
    n_features : int, sequence of int, mapping of str to these, or "cv", default="cv"
        m_j, the number of features of each view with weights, perhaps one for each component. "cv"
        chooses the numbers with the largest correlation of the scores of held-out rows, averaged
        over 5 folds and linked views: one for all views out of 2, 3, 5, 7, 10, 14, 20, 30, 50, 80,
        150, ... up to 1,000 and all, then view by view; for each component in turn.
    tau : float or "cv", default="cv"
        τ; "cv" chooses among 1, 0.5 and 0.1 with the numbers of features, of which those below 1
        take 50 at most.
    deflation : {"scores", "weights", "pmd"}, default="scores"
        How a component is removed before the next one; see `RGCCA`.
    n_starts : int, default=20
        Number of features of each pair of views to start from.
    random_state : int or None, default=None
        Seed of the folds. None always takes the same folds.
    confounds : str or None, default=None
        Name of a view that is removed from the others by linear regression; see `CCA`.
    missing : {"error", "pairwise", "em"}, default="error"
        What to do with missing cells (NaN); see `MVCCA`.

    Attributes
    ----------
    weights_, sparse_weights_, selected_, objective_, n_iter_, means_, ranks_, n_components_
        See `RGCCA`.
    n_features_ : dict of str to ndarray of int, shape (n_components_,)
        m_j of each component.
    tau_ : ndarray, shape (n_components_,)
        τ of each component.
    held_out_correlations_ : ndarray, shape (n_components_,)
        Mean correlation of the scores of held-out rows under the chosen settings; if folds chose
        any. Optimistic, as the largest of many.
    cv_results_ : dict of str to array
        Held-out correlations of all settings by component and fold, as in scikit-learn's searches.
    view_names_ : tuple of str
        The views, in order, without the confounds.
    n_features_in_ : int
        Number of features of X, over all its views.

    See Also
    --------
    RGCCA : The same under the names of R's packages, with designs, l1 and other schemes.
    CCA : All features have weights.

    Notes
    -----
    Folds are sums of moments, so that rows are read once, and hundreds of settings cost less than
    a few refits. The result is that of refits on the rows of each training part.

    References
    ----------
    .. [1] Lê Cao, Rossouw, Robert-Granié and Besse, "A sparse PLS for variable selection when
       integrating omics data", Statistical Applications in Genetics and Molecular Biology 2008.
    .. [2] Witten, Tibshirani and Hastie, "A penalized matrix decomposition, with applications to
       sparse principal components and canonical correlation analysis", Biostatistics 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from mvcca import SparseCCA
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.standard_normal((100, 50)), rng.standard_normal((100, 80))
    >>> shared = rng.standard_normal((100, 1))
    >>> X[:, :4] += shared
    >>> Y[:, :6] += shared
    >>> model = SparseCCA().fit([X, Y])
    >>> {name: own[0].tolist() for name, own in model.selected_.items()}
    {'view0': [0, 1, 2, 3, 21], 'view1': [0, 1, 2, 3, 4, 5, 78]}
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [*RGCCA._parameter_constraints["n_components"], StrOptions({SEARCHED})],
        "n_features": [
            Interval(Integral, 1, None, closed="left"),
            list,
            tuple,
            Mapping,
            StrOptions({SEARCHED}),
        ],
        "tau": [Interval(Real, 0, 1, closed="both"), StrOptions({SEARCHED})],
        "deflation": RGCCA._parameter_constraints["deflation"],
        "n_starts": [Interval(Integral, 1, None, closed="left")],
        "random_state": [Interval(Integral, 0, None, closed="left"), None],
        "confounds": RGCCA._parameter_constraints["confounds"],
        "missing": RGCCA._parameter_constraints["missing"],
    }
    # Parameters of RGCCA.
    l1 = design = None
    shrink = positive = superblock = scale_views = False
    scale = True
    scheme, start = "factorial", "columns"

    def __init__(
        self,
        n_components: int | str = 1,
        *,
        n_features: int | str | Sequence[int] | Mapping[str, Any] = "cv",
        tau: float | str = "cv",
        deflation: str = "scores",
        n_starts: int = 20,
        random_state: int | None = None,
        confounds: str | None = None,
        missing: str = "error",
    ) -> None:
        self.n_components = n_components
        self.n_features = n_features
        self.tau = tau
        self.deflation = deflation
        self.n_starts = n_starts
        self.random_state = random_state
        self.confounds = confounds
        self.missing = missing

    def _learn_posed(self, rows: Rows, posed: Posed) -> None:
        given = [self._given(posed, number) for number in range(int(self.n_components))]
        self._solve_settings(posed, given)

    def _learn_rows(self, rows: Rows) -> None:
        if searched(self):
            climb(self.in_basis(rows), self._learn_searched)
        else:
            super()._learn_rows(rows)

    def _bytes_of_matrices(self, views: Views) -> float:
        n_folds = 5 if searched(self) else 0
        return (1 + n_folds) * super()._bytes_of_matrices(views)

    def _learn_searched(self, rows: Rows) -> None:
        """Let folds choose the settings of each component, and learn from all rows with these."""
        by_products = self.takes_row_products(rows)
        if not by_products:
            check_memory(self, rows.views)
        posed, of_folds = training_parts(self, rows, self.random_state, by_products=by_products)
        method = replace(self._method(posed), tol=_SEARCH_TOL)
        source = FromCovariances(of_folds, method, partial(self._limits_of_setting, posed))
        widths = {name: int(np.count_nonzero(f)) for name, f in posed.factors.items()}
        trials: list[Trials] = []
        settings: list[Mapping[str, Any]] = []
        stops = self.n_components == SEARCHED
        least = _LEAST_CORRELATION / np.sqrt(posed.n_objects)
        for number in range(_MOST_COMPONENTS if stops else int(self.n_components)):
            if number:
                source = source.without(settings[-1])
            found = choose_counts(source, widths, self._given(posed, number))
            is_noise = found.value <= least
            if is_noise and stops and number:
                break
            trials.append(found)
            settings.append(found.chosen)
            if is_noise and not number:
                warn(
                    "Scores of held-out rows correlate no more than those of unrelated views may: "
                    f"{found.value:.3g} of {posed.n_objects:g} rows, where {least:.3g} may be "
                    "chance. The selected features may have nothing in common."
                )
            if is_noise and stops:
                break
        self._solve_settings(posed, settings)
        k = self.n_components_
        self.held_out_correlations_ = np.array([own.value for own in trials[:k]])
        self.cv_results_ = Trials.together(trials[:k], "component").cv_results()

    def _given(self, posed: Posed, number: int) -> dict[str, Any]:
        """Settings of one component that are given."""
        given: dict[str, Any] = {}
        if self.n_features != SEARCHED:
            counts = value_by_view("n_features", self.n_features, posed.factors)
            given["n_features"] = {n: of_component(own, n, number) for n, own in counts.items()}
        if self.tau != SEARCHED:
            given["tau"] = float(self.tau)
        return given

    def _limits_of_setting(self, posed: Posed, setting: Mapping[str, Any]) -> dict[str, Limit]:
        tau = dict.fromkeys(posed.factors, setting["tau"])
        return self._limits(posed, tau, setting["n_features"], 0)

    def _solve_settings(self, posed: Posed, settings: Sequence[Mapping[str, Any]]) -> None:
        limits = [self._limits_of_setting(posed, own) for own in settings]
        self._solve(posed, limits.__getitem__, len(limits))
        kept = settings[: self.n_components_]
        self.tau_ = np.array([own["tau"] for own in kept])
        self.n_features_ = {
            name: np.array([own["n_features"][name] for own in kept]) for name in posed.factors
        }

    def held_out_of(self, posed: Posed, statistic: Any) -> CovarianceMatrix:
        """Covariances of held-out rows, given a statistic of these.

        Parameters
        ----------
        posed : Posed
            The problem of the training rows, whose units and regression on confounds count.
        statistic
            What `statistic_of` returns of the held-out rows.
        """
        about = Estimate.of(statistic, columns=self._column_names)
        assert about.covariance is not None
        S, z = np.asarray(about.covariance[0]), posed.about.regression
        widths = {name: len(mean) for name, mean in about.means.items()}
        if z is not None:  # of residuals x - Bᵀz
            own = column_slices(widths)[z.name]
            others = np.delete(np.arange(len(S)), np.r_[own])
            widths = {name: width for name, width in widths.items() if name != z.name}
            B = np.hstack([z.coefficients[name] for name in widths])
            shared = B.T @ S[own, others]
            S = S[np.ix_(others, others)] - shared - shared.T + B.T @ S[own, own] @ B
        f = np.concatenate([posed.factors[name] for name in widths])
        return CovarianceMatrix(f[:, None] * S * f, column_slices(widths))

    def held_out_products(self, posed: Posed, rows: Rows) -> CovarianceProducts:
        """The same by products of the held-out rows."""
        return CovarianceProducts(centred_rows(rows), posed.factors)
