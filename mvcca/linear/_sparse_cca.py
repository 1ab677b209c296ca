"""Sparse CCA with numbers of features that folds choose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import TypeAlias

import numpy as np

from mvcca.base.parameters import SHARE, at_least, constraints, one_of, parameter
from mvcca.linear._rgcca import BlockEstimator, Counts, Part, Posed
from mvcca.machine.warnings import warn
from mvcca.model_selection import Trials, search_folds, searched
from mvcca.model_selection.fold_statistics import N_FOLDS, InnerFolds
from mvcca.model_selection.goals import Value
from mvcca.model_selection.search import Setting
from mvcca.model_selection.spaces import SEARCHED
from mvcca.problem import Estimate, Rows
from mvcca.problem.ascent import NothingShared, Solution, counts_to_try
from mvcca.problem.expected import score_correlations
from mvcca.problem.shared_rows import SharedRows
from mvcca.statistics import OF_HOLES
from mvcca.statistics.pair_covariance import PairCovariance
from mvcca.views import Views

_TAUS = (1.0, 0.5, 0.1)
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
        150, ... up to 1,000 and all, then view by view, in an order that the data give; for each
        component in turn.
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
    n_features: Counts | str = parameter(
        SEARCHED, at_least(1), list, tuple, Mapping, one_of(SEARCHED)
    )
    tau: float | str = parameter(SEARCHED, SHARE, one_of(SEARCHED))
    deflation: str = parameter("scores", one_of("scores", "weights", "pmd"))
    n_starts: int = parameter(20, at_least(1))
    random_state: int | None = parameter(None, at_least(0), None)
    confounds: str | None = parameter(None, str, None)
    missing: str = parameter("error", one_of("error", *OF_HOLES))

    def _bytes_of_matrices(self, views: Views) -> float:
        n_parts = 1 + (N_FOLDS if searched(self) else 0)
        return n_parts * super()._bytes_of_matrices(views)

    def _learn_all(self, rows: Rows) -> None:
        if not searched(self):
            super()._learn_all(rows)
            return
        views = rows.views.without(self.confounds)
        folds = InnerFolds.of(views, None, seed=self.random_state, few=False)

        def of_fold(train: Part, test: Part) -> Fold:
            posed, (held_out, statistic) = self.posed_of(*train), test
            # Training rows take memory, and are not looked at again.
            ascent = replace(posed.ascent, tol=_SEARCH_TOL)
            posed = replace(posed, rows=held_out, ascent=ascent)
            if statistic is None:
                return posed, SharedRows(held_out)
            pairs = Estimate.of(statistic, columns=self._column_names).by_pair()
            z = posed.about.regression
            return posed, pairs if z is None else z.residual(pairs)

        of_folds, whole = self._over_folds(rows, folds, of_fold)
        self._learn_searched(self.posed_of(*whole), of_folds)

    def _learn_searched(self, posed: Posed, folds: Sequence[Fold]) -> None:
        """Let folds choose the settings of each component, and learn from all rows with these."""
        trials: list[Trials] = []
        stops = self.n_components == SEARCHED
        least = _LEAST_CORRELATION / np.sqrt(posed.n_objects)
        for number in range(_MOST_COMPONENTS if stops else int(self.n_components)):
            if number:
                folds = [self._without(own, trials[-1].chosen, number - 1) for own in folds]
            found = self._chosen(posed, folds, number)
            is_noise = found.value <= least
            if not (is_noise and stops and number):
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

    def _chosen(self, posed: Posed, folds: Sequence[Fold], number: int) -> Trials:
        """Try numbers of features and τ of one component; the largest mean correlation is best.

        One number for all views is tried first, then one view at a time, twice, in the order of
        `in_own_order`. Of equally good settings, the one with the fewest features is taken.
        """
        attempt, given = partial(self._tried, folds, number), self._given(posed, number)
        widths = {name: posed.widths[name] for name in posed.ascent.covariances.base.sizes}
        taus = (given["tau"],) if "tau" in given else _TAUS
        if "n_features" in given:
            return attempt([{**given, "tau": tau} for tau in sorted(taus)])
        settings = [
            {"n_features": {name: min(count, width) for name, width in widths.items()}, "tau": tau}
            for tau in taus
            for count in counts_to_try(max(widths.values()), tau)
        ]
        trials = attempt(settings).extended([], _order)
        for name in [*widths] * 2 if len(widths) > 1 else ():
            best, tau = trials.chosen["n_features"], trials.chosen["tau"]
            others = [{**best, name: count} for count in counts_to_try(widths[name], tau)]
            new = [{"n_features": counts, "tau": tau} for counts in others]
            if new := [own for own in new if own not in trials.settings]:
                trials = trials.extended([attempt(new)], _order)
        return trials

    def _tried(self, folds: Sequence[Fold], number: int, settings: Sequence[Setting]) -> Trials:
        """Mean correlations of the held-out scores of views, by setting of one component."""

        def values(fold: int, settings: Sequence[Setting]) -> Iterator[Value]:
            posed, pairs = folds[fold]
            found: list[Solution] = []
            for tau in dict.fromkeys(own["tau"] for own in settings):
                same = [own for own in settings if own["tau"] == tau]
                found += self._best(posed, same, number)
            posed.ascent.covariances.known.clear()
            weights = posed.weights(found)
            if isinstance(pairs, SharedRows):
                pairs = list(pairs.scores_by_pair(weights, posed.about.means))
                weights = dict.fromkeys(weights, np.eye(len(found)))
            signed = np.zeros(len(found))  # with the signs that training rows gave them
            for pair, R in zip(pairs, score_correlations(weights, pairs), strict=True):
                shared = [own.covariances.get(pair.names, 0.0) for own in found]
                signed += np.copysign(1.0, shared) * R / len(pairs)
            yield from (Value(own, own) for own in signed.tolist())

        return search_folds(len(folds), settings, values, lambda value, _: value)

    def _best(self, posed: Posed, settings: Sequence[Setting], number: int) -> list[Solution]:
        """The best solution of each setting; weights of 0 if views have nothing more in common."""
        problems = [self._limits(posed, own) for own in settings]
        zeros = {name: np.zeros(size) for name, size in posed.sizes.items()}
        nothing = Solution(zeros, (), rotated=zeros)
        try:
            ends = posed.ascent.solve(problems, number)
        except NothingShared:
            return [nothing] * len(settings)
        return [own[0] if own else nothing for own in ends]

    def _without(self, fold: Fold, setting: Setting, number: int) -> Fold:
        """A fold without a component."""
        posed, held_out = fold
        (found,) = self._best(posed, [setting], number)
        if found.n_steps:
            posed = replace(posed, ascent=posed.ascent.without(found))
        return posed, held_out

    def _learn_settings(self, posed: Posed, settings: Sequence[Setting]) -> list[Solution]:
        found = super()._learn_settings(posed, settings)
        kept = settings[: len(found)]
        self.tau_ = np.array([own["tau"] for own in kept], dtype=float)
        self.n_features_ = {
            name: np.array([own["n_features"][name] for own in kept]) for name in posed.factors
        }
        return found


def _order(setting: Setting) -> tuple[float, float]:
    """Place among equally good settings, of which the last wins: fewest features, largest τ."""
    return -float(sum(setting["n_features"].values())), setting["tau"]
