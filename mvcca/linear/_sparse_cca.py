"""Sparse CCA with numbers of features that folds choose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np

from mvcca.base.parameters import SHARE, at_least, constraints, one_of, parameter
from mvcca.linear.block_estimator import BlockEstimator, Posed
from mvcca.machine.warnings import warn
from mvcca.model_selection import Trials, search_folds, searched
from mvcca.model_selection.feature_counts import Part, choose_counts, over_folds
from mvcca.model_selection.fold_statistics import InnerFolds
from mvcca.model_selection.goals import Value
from mvcca.model_selection.search import Setting
from mvcca.model_selection.spaces import SEARCHED
from mvcca.problem import Estimate, Rows
from mvcca.problem.ascent import NothingShared, Solution
from mvcca.problem.expected import score_correlations
from mvcca.problem.shared_rows import SharedRows
from mvcca.statistics import OF_HOLES
from mvcca.statistics.pair_covariance import PairCovariance
from mvcca.views import Views

_LEAST_CORRELATION = 4.0  # of held-out rows, times the root of their number
_MOST_COMPONENTS = 10
# What the other folds leave after the components before, and rows of the held-out one.
Fold: TypeAlias = tuple[Posed, SharedRows | Sequence[PairCovariance]]
_SEARCH_TOL = 1e-18  # squared relative change, which moves held-out correlations by about 1e-9


class SparseCCA(BlockEstimator):
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

    n_components: int | str = field(
        default=1, kw_only=False, metadata=constraints(at_least(1), one_of(SEARCHED))
    )
    n_features: int | str | Sequence[int] | Mapping[str, Any] = parameter(
        SEARCHED, at_least(1), list, tuple, Mapping, one_of(SEARCHED)
    )
    tau: float | str = parameter(SEARCHED, SHARE, one_of(SEARCHED))
    deflation: str = parameter("scores", one_of("scores", "weights", "pmd"))
    n_starts: int = parameter(20, at_least(1))
    random_state: int | None = parameter(None, at_least(0), None)
    confounds: str | None = parameter(None, str, None)
    missing: str = parameter("error", one_of("error", *OF_HOLES))

    def _bytes_of_matrices(self, views: Views) -> float:
        n_folds = 5 if searched(self) else 0
        return (1 + n_folds) * super()._bytes_of_matrices(views)

    def _learn_all(self, rows: Rows) -> None:
        if not searched(self):
            super()._learn_all(rows)
            return
        folds = InnerFolds.of(
            rows.views.without(self.confounds), None, seed=self.random_state or 0, few=False
        )

        def of_fold(train: Part, test: Part) -> Fold:
            posed, (held_out, statistic) = self.posed_of(*train), test
            if statistic is None:
                return posed, SharedRows(held_out)
            pairs = Estimate.of(statistic, columns=self._column_names).by_pair()
            z = posed.about.regression
            return posed, pairs if z is None else z.residual(pairs)

        of_folds, whole = over_folds(self, rows, folds, of_fold)
        self._learn_searched(self.posed_of(*whole), of_folds)

    def _learn_searched(self, posed: Posed, folds: Sequence[Fold]) -> None:
        """Let folds choose the settings of each component, and learn from all rows with these."""
        widths = {name: int(np.count_nonzero(f)) for name, f in posed.factors.items()}
        trials: list[Trials] = []
        stops = self.n_components == SEARCHED
        least = _LEAST_CORRELATION / np.sqrt(posed.n_objects)
        for number in range(_MOST_COMPONENTS if stops else int(self.n_components)):
            if number:
                folds = [self._without(*own, trials[-1].chosen, number - 1) for own in folds]
            attempt = partial(self._tried, folds, number)
            found = choose_counts(attempt, widths, self._given(posed, number))
            is_noise = found.value <= least
            if is_noise and stops and number:
                break
            trials.append(found)
            if is_noise and not number:
                warn(
                    "Scores of held-out rows correlate no more than those of unrelated views may: "
                    f"{found.value:.3g} of {posed.n_objects:g} rows, where {least:.3g} may be "
                    "chance. The selected features may have nothing in common."
                )
            if is_noise and stops:
                break
        kept = trials[: len(self._learn_settings(posed, [own.chosen for own in trials]))]
        self.held_out_correlations_ = np.array([own.value for own in kept])
        self.cv_results_ = Trials.together(kept, "component").cv_results()

    def _tried(self, folds: Sequence[Fold], number: int, settings: Sequence[Setting]) -> Trials:
        """Mean correlations of the held-out scores of views, by setting of one component."""

        def values(fold: int, settings: Sequence[Setting]) -> Iterator[Value]:
            posed, pairs = folds[fold]
            found: list[Solution | None] = []
            for _, same in groupby(settings, itemgetter("tau")):
                found += self._best(posed, [*same], number)
            posed.covariances.forget()
            weights = {
                name: f[:, None] * posed.covariances.rotated(name, W).T
                for name, f in posed.factors.items()
                for W in [np.array([own.weights[name] if own else 0 * f for own in found])]
            }
            if isinstance(pairs, SharedRows):
                pairs = list(pairs.scores_by_pair(weights, posed.about.means))
                weights = dict.fromkeys(weights, np.eye(len(found)))
            signed = np.zeros(len(found))  # with the signs that training rows gave them
            for pair, R in zip(pairs, score_correlations(weights, pairs), strict=True):
                shared = [own.covariances[pair.names] if own else 0.0 for own in found]
                signed += np.copysign(1.0, shared) * R / len(pairs)
            yield from (Value(own, own) for own in signed.tolist())

        return search_folds(len(folds), settings, values, lambda value, _: value)

    def _best(
        self, posed: Posed, settings: Sequence[Setting], number: int
    ) -> list[Solution | None]:
        """The best solution of each setting; None if views have nothing more in common."""
        method = replace(self._method(posed), tol=_SEARCH_TOL)
        problems = [self._limits(posed, own) for own in settings]
        try:
            found = method.solve(posed.covariances, problems, number)
        except NothingShared:
            return [None] * len(settings)
        return [own[0] if own else None for own in found]

    def _without(self, posed: Posed, held_out: Any, setting: Setting, number: int) -> Fold:
        """A fold without a component."""
        (found,) = self._best(posed, [setting], number)
        if found is not None:
            left = self._method(posed).without(posed.covariances, found)
            posed = replace(posed, covariances=left)
        return posed, held_out

    def _learn_settings(
        self, posed: Posed, settings: Sequence[Mapping[str, Any]]
    ) -> list[Solution]:
        found = super()._learn_settings(posed, settings)
        kept = settings[: len(found)]
        self.tau_ = np.array([own["tau"] for own in kept], dtype=float)
        self.n_features_ = {
            name: np.array([own["n_features"][name] for own in kept]) for name in posed.factors
        }
        return found
