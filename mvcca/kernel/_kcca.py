"""Kernel CCA, exact or approximate: MVCCA of explicit kernel features."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from mvcca.base import RankedByCorrelation, Requirements, StatisticEstimator
from mvcca.base.standardizing import STANDARDIZED, column_factors
from mvcca.base.tuned_fits import setting_by_view
from mvcca.blocks import as_block, namespace, stack
from mvcca.blocks.checks import of_view
from mvcca.kernel.exact import exact_maps
from mvcca.kernel.held_out import HeldOut, HeldOutFeatures, features_of, with_expected
from mvcca.kernel.kernels import (
    NAMES,
    Kernel,
    factored,
    features_at,
    greedy_landmarks,
    landmarks_at,
    median_gamma,
    origin_for,
    seed_of_views,
)
from mvcca.linear.features import FeatureMap, FourierFeatures
from mvcca.machine.memory import available_bytes
from mvcca.model_selection import Space, searched
from mvcca.model_selection.goals import Goal
from mvcca.model_selection.spaces import AUTOMATIC, SEARCHED
from mvcca.problem import Maps, Problem, Rows
from mvcca.problem.precision import Exactness, KnownRank
from mvcca.statistics import Moments, PairMoments
from mvcca.statistics.passes import accumulate
from mvcca.views import Views

_MOST_OF_CLASSES = 100  # components that are searched for a goal of classes


def _factor(gamma: str) -> float:
    """The number before the median."""
    factor, _, median = gamma.rpartition("*")
    try:
        value = float(factor or 1)
    except ValueError:
        value = 0.0
    if median.strip() != "median" or not 0 < value < np.inf:
        raise ValueError(f"Expected 'median' or a multiple such as '0.5*median', got {gamma!r}.")
    return value


class _MultipleOfMedian(StrOptions):
    """Constraint of a parameter: an option, or a multiple of the median such as "0.5*median"."""

    def is_satisfied_by(self, val: Any) -> bool:
        if not isinstance(val, str) or val in self.options:
            return super().is_satisfied_by(val)
        with suppress(ValueError):
            return _factor(val) > 0
        return False

    def __str__(self) -> str:
        return f"{super().__str__()} or a multiple such as '0.5*median'"


def _has_approximation(estimator: Any) -> bool:
    """Exact KCCA needs all rows at once, so it has no `partial_fit`."""
    return estimator.approximation is not None


class KCCA(RankedByCorrelation, StatisticEstimator):
    r"""Kernel canonical correlation analysis of two or more views, exact or approximate.

    Use it as `CCA`, if the relation between the views is not linear. Beyond a few thousand rows,
    set ``approximation="nystroem"``.

    Finds one function of every view, f_p(x) = Σ_j α_pj k_p(x, z_j) less its training mean, under
    which the views of an object agree. With K_p the centred kernel matrix of the training rows, the
    problem of two views is [1]_

    .. math::

        \max \; & α_x^⊤ K_x K_y α_y \\
        \text{subject to} \; & α_p^⊤ (K_p^2 / (n - 1) + r_p K_p) α_p = 1
        \quad \text{for both views},

    the canonical ridge in the space of the kernel's features: scores of unit variance but for
    r_p ‖f_p‖². In Hardoon's constraint, αᵀ((1-κ) K² + κ K) α, that is r = κ / ((1-κ)(n-1)). More
    views are joined as in `MVCCA`. Rows are centred by the training rows' column means, so new rows
    are centred as exactly as the training rows are.

    Everything is linear (MV)CCA on explicit features φ with φ(x)ᵀφ(x') = k(x, x'), from a pivoted
    Cholesky decomposition of k(Z, Z). Exact KCCA takes all rows as the landmarks Z. For two views
    and a ridge it solves the dual problem of their kernel matrices, which takes memory for two or
    three such matrices and no features. The approximations take few features, whose moments are all
    that `fit` computes from the rows:

    - "nystroem" (NKCCA): the landmarks are rows drawn at random;
    - "cholesky": the landmarks are the pivots of an incomplete Cholesky decomposition, each the
      row that those before it explain least. Choosing needs n_rows x n_landmarks numbers in memory;
    - "fourier" (FKCCA): random features cos(wᵀx + b) of the Gaussian kernel [2]_, in the precision
      of the rows.

    Parameters
    ----------
    n_components : int or None, default=2
        Dimension of the shared space; None is all components that the data support.
    kernel : {"rbf", "linear", "poly", "cosine", "precomputed"}, callable, or mapping, default="rbf"
        As in `sklearn.metrics.pairwise.pairwise_kernels`; a callable gets two rows. A mapping names
        one for every view. Rows of a precomputed view are their kernel values with all training
        rows.
    gamma : float, "auto", "median", None, "cv", or mapping of str to these, default="auto"
        γ of "rbf", exp(-γ ‖x - x'‖²), and of "poly", (γ xᵀx' + coef0)^degree; other kernels have
        none. "median", for "rbf" alone, is 1 / median ‖x - x'‖² over the pairs of up to 1000 rows,
        drawn by `random_state` from the first batch, repeated rows once; "0.5*median" is half of
        it. None is scikit-learn's 1 / n_features. "cv" chooses by 5 folds: half or twice the
        median, and on from there while it improves; for "poly", it is None. "auto" is "cv" if
        ``reg="cv"``, else "median" for "rbf" and None for "poly".
    degree : float, default=3
        Exponent of the kernel "poly".
    coef0 : float, default=1
        Constant of the kernel "poly".
    reg : float, mapping of str to float, or "cv", default=1e-2
        r in units of the mean variance of a view's features φ, as everywhere: with r_p = reg x
        trace(K_p) / ((n-1) n_features) a linear kernel gives CCA with the same reg. Exact KCCA
        wants much (0.01 to 1), a few features of many rows little (1e-6 to 1e-3). "cv" chooses by
        5 folds; with ``n_components=None`` and a class goal also the number of components.
    scale : bool, mapping of str to bool, "auto" or "cv", default="auto"
        Whose columns to divide by their standard deviations, as in `CCA`, before the kernel and its
        width are computed; those of the first batch. Precomputed kernels have none.
    approximation : {None, "nystroem", "fourier", "cholesky"}, default=None
        None is exact and takes n x n matrices.
    n_landmarks : int, default=500
        Landmarks or pivots of every view, at most all rows, or Fourier features; not used by exact
        KCCA.
    random_state : int, RandomState or None, default=None
        Seed for landmarks, frequencies and the rows of the median. All views use the same seed, so
        that their order does not matter and landmarks of paired views are the same objects. None
        draws anew, unless the kernel is exact.
    cv_goal : {"object", "class", "correlation"} or None, default=None
        What "cv" maximizes on held-out folds: the mean reciprocal rank of the row of the same
        object, mAP@50 over rows that share a label, or the mean correlation of the scores. None is
        "object"; a class goal needs labels as y.

    Attributes
    ----------
    weights_ : dict of str to ndarray, shape (n_features, n_components_)
        α of the landmarks, in the order of ``feature_maps_[name].landmarks``; weights of the
        Fourier features.
        A dict: unpack it with ``weights_.values()``, since iterating over it gives names.
    means_ : dict of str to ndarray, shape (n_features,)
        Training means of k(x, z_j), or of the Fourier features.
    feature_maps_ : dict of str to LandmarkFeatures or FourierFeatures
        Maps from rows to features.
    canonical_correlations_ : ndarray, shape (n_components_,)
        ρ, decreasing, of two views.
    expected_correlations_ : ndarray, shape (n_components_,)
        Correlations of the scores to expect on new rows, averaged over pairs of views: those of
        held-out objects, see the notes. Rankings weight components by them.
    expected_correlations_by_pair_, expected_deviations_
        See `MVCCA`; of held-out objects, too.
    eigenvalues_ : ndarray, shape (n_components_,)
        λ = 1 + ρ, as in `MVCCA`.
    scale_ : dict of str to bool
        Which views were standardized.
    reg_, gamma_
        Chosen values of the parameters that are "cv"; only then, like the next three.
    ranking_ : str
        The chosen ranking, as in `CCA`.
    bank_ : Views
        Scores of training rows that correct for hubs; if ``ranking_`` ends in "+csls".
    cv_results_ : dict of str to array
        Values of all settings on the folds, as in scikit-learn's searches.
    n_components_ : int
        Components found.
    ranks_ : dict of str to int
        Dimension of the features, centred, of each view.
    view_names_ : tuple of str
        The views, in order.
    n_features_in_ : int
        Number of features of X, over all its views.

    See Also
    --------
    MVCCA : The same with linear functions.

    Notes
    -----
    Without a ridge and with an invertible kernel matrix, all training correlations are 1 and mean
    nothing; fitting warns of this.

    Expected correlations are measured, since kernel methods have about as many degrees of freedom
    as rows. One to five folds hold out a fifth of the objects each, until about 250 have been held
    out; of more than 5,000 objects, one fold holds out 500 to 1,000. For each fold the problem is
    solved once more. Objects are chosen by a hash of their numbers, so that batches choose the same
    ones, and repeated objects are held out together. Landmarks are held out only if nearly all rows
    are landmarks.

    References
    ----------
    .. [1] Hardoon, Szedmak and Shawe-Taylor, "Canonical Correlation Analysis: An Overview with
       Application to Learning Methods", Neural Computation 2004, section 4.
    .. [2] Lopez-Paz, Sra, Smola, Ghahramani and Schölkopf, "Randomized Nonlinear Component
       Analysis", ICML 2014.

    Examples
    --------
    >>> from mvcca import CCA, KCCA
    >>> from mvcca.datasets import make_nonlinear_views
    >>> views = make_nonlinear_views(300, random_state=0).views
    >>> CCA(1).fit(views).score(views) < 0.1, KCCA(1).fit(views).score(views) > 0.99
    (True, True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": StatisticEstimator._parameter_constraints["n_components"],
        "kernel": [StrOptions(set(NAMES)), callable, Mapping],
        "gamma": [
            Interval(Real, 0, None, closed="neither"),
            _MultipleOfMedian({"median", SEARCHED, AUTOMATIC}),
            None,
            Mapping,
        ],
        "degree": [Interval(Real, 0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "reg": [Interval(Real, 0, None, closed="left"), Mapping, StrOptions({SEARCHED})],
        "scale": StatisticEstimator._parameter_constraints["scale"],
        "approximation": [StrOptions({"nystroem", "fourier", "cholesky"}), None],
        "n_landmarks": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "cv_goal": StatisticEstimator._parameter_constraints["cv_goal"],
    }
    retrieval_ranking = ("transform", "profile-likelihood")

    sums: ClassVar = ()  # features are drawn from rows
    draws_from_rows = True  # landmarks and the median
    nests_components = True
    # What "auto" of gamma is depends on the kernel.
    automatic: ClassVar[Mapping[str, Any]] = {"gamma": AUTOMATIC, **STANDARDIZED}

    feature_maps_: dict[str, FeatureMap]
    _n_before: float  # objects in earlier batches

    def __init__(
        self,
        n_components: int | None = 2,
        *,
        kernel: str | Callable[[Any, Any], float] | Mapping[str, Any] = "rbf",
        gamma: float | str | Mapping[str, Any] | None = AUTOMATIC,
        degree: float = 3,
        coef0: float = 1,
        reg: float | str | Mapping[str, float] = 1e-2,
        scale: bool | str | Mapping[str, bool] = AUTOMATIC,
        approximation: str | None = None,
        n_landmarks: int = 500,
        random_state: Any = None,
        cv_goal: Goal | None = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.reg = reg
        self.scale = scale
        self.approximation = approximation
        self.n_landmarks = n_landmarks
        self.random_state = random_state
        self.cv_goal = cv_goal

    def search_space(self, rows: Rows) -> Space:
        """Ridges, widths in multiples of the median, and numbers of components."""
        kernels = setting_by_view(self, "kernel", rows.views.names).values()
        takes_widths = "rbf" in kernels and "poly" not in kernels
        widths = tuple(map(_multiple, (0.5, 1, 2))) if takes_widths else (AUTOMATIC,)
        return Space(
            {"reg": (1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0), "gamma": widths},
            solves_ridges=True,
            has_prefixes=True,
            prefers_all=True,
            most_components=_MOST_OF_CLASSES if self.cv_goal == "class" else None,
            beyond={"gamma": _next_multiple} if takes_widths else {},
            scales=rows.views.names,
        )

    @available_if(_has_approximation)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add a batch of rows to the moments of the features; see `CCA.partial_fit`.

        Landmarks, frequencies and median are drawn from the first batch; from there on batches give
        what `fit` gives with the same features. Not for exact KCCA, which needs all rows at once.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As in `fit`; also if a batch lacks a view that earlier batches had, and for a
            precomputed kernel.
        """
        return super().partial_fit(X, y, sample_weight)

    def _open_rows(self, X: Any, y: Any, sample_weight: Any, *, batch: bool = False) -> Rows:
        """Checked rows with their weights, labels and ridge."""
        rows = super()._open_rows(X, y, sample_weight, batch=batch)
        is_first = not batch or self._statistic is None
        self._n_before = 0.0 if is_first else self._statistic.n_objects
        if is_first and len(rows.views):
            self.draw(rows)
        return rows

    def draw(self, rows: Rows) -> None:
        """Draw the features of every view."""
        state = self.random_state
        if self.approximation is None:
            heights = [block.shape[0] for _, block in rows.views.items()]
            _check_memory(heights, 4 * max(heights) ** 2)
            state = state or 0  # nothing is drawn but the rows of the median
        seed = seed_of_views(state)
        kernels = setting_by_view(self, "kernel", rows.views.names)
        gammas = setting_by_view(self, "gamma", rows.views.names)
        factors = column_factors(self, rows)
        self.feature_maps_ = {}
        for name, block in rows.views.items():
            try:
                rng = np.random.RandomState(seed)
                self.feature_maps_[name] = self._draw_map(
                    kernels[name], gammas[name], factors[name], block, rng
                )
            except ValueError as error:
                raise of_view(name, error) from error

    def statistic_of(self, rows: Rows) -> HeldOut:
        """Moments of the features of all rows, of which a block at a time is in memory."""
        if self.approximation is None:
            self._factor()
        maps, views, weights = self.feature_maps_, rows.views, rows.sample_weight
        widths = {name: features.n_features for name, features in maps.items()}
        moments_of = partial(
            Moments.of_features,
            partial(features_of, maps),
            on_device=all(isinstance(features, FourierFeatures) for features in maps.values()),
            dtype=rows.reading.products,
        )
        total: Moments | PairMoments
        if views.is_paired:
            total = moments_of(views, widths, weights)
        else:

            def of_pair(views: Views, weights: np.ndarray | None) -> Moments:
                return moments_of(views, {name: widths[name] for name in views.names}, weights)

            total = PairMoments.of(views, weights, of_pair, widths)
        n_objects = float(max(len(views), 0 if weights is None else weights.sum()))
        is_exact = self.approximation is None
        sample_of = partial(HeldOutFeatures.of, maps, self._n_before + n_objects, is_exact)
        none = views[:0].in_memory()
        none = none.replace({name: block.on_host() for name, block in none.blocks.items()})
        sample = accumulate(sample_of, sample_of(none, None), views, weights)
        return HeldOut(total, n_objects, sample)

    def problem(self, rows: Rows, statistic: HeldOut) -> Problem:
        problem = self._problem_of(rows, statistic.total)
        # What to expect of all components is wrong by as much here as of the leading ones alone.
        assert problem.about.covariance is not None
        between, within = problem.about.covariance
        about = replace(
            problem.about,
            covariance=None,
            pairs=problem.about.by_pair(),
            features_of=partial(features_of, self.feature_maps_),
        )
        return replace(problem, about=about, between=between, within=within, is_joint=True)

    def _problem_of(self, rows: Rows, moments: Moments | PairMoments) -> Problem:
        """That of CCA of the features."""
        heights = (
            {} if rows.reading.dtype is None else {n: X.shape[0] for n, X in rows.views.items()}
        )
        ranks = {
            name: KnownRank(why=f"centred features of {height} rows have rank {height - 1} at most")
            for name, height in heights.items()
            if height <= moments.widths[name]
        }
        problem = super().problem(rows, moments)
        about = replace(problem.about, exactness=Exactness(of_features=True))
        return replace(problem, about=about, ranks=ranks)

    def _learn_rows(self, rows: Rows) -> None:
        if self.approximation is None and not searched(self):
            maps = exact_maps(self.feature_maps_, rows)
            if maps is not None:
                self._keep(maps.checked(rows.n_components))
                return
        super()._learn_rows(rows)

    def _learn(self, rows: Rows, statistic: HeldOut) -> None:
        maps = self._problem_of(rows, statistic.total).solve(rows.n_components)
        assert maps.values is not None
        with warnings.catch_warnings(action="ignore"):  # the same as of all rows
            expected = statistic.expected(partial(self._problem_of, rows), len(maps.values))
        maps = with_expected(maps, expected)
        assert maps.variances is not None
        # MVCCA of the features, and its weights as weights of the kernel values:
        weights, means, sizes = {}, {}, {}
        for name, features in self.feature_maps_.items():
            own = maps.weights[name], maps.means[name], maps.variances[name]
            weights[name], means[name], sizes[name] = features.in_basis(*own)
        maps = replace(maps, weights=weights, means=means, variances=sizes)
        self._keep(maps.checked(rows.n_components))

    # ---- feature maps ---------------------------------------------------------------------------

    def _depends_on_units(self, name: str) -> bool:
        kernel = self.kernel.get(name) if isinstance(self.kernel, Mapping) else self.kernel
        return kernel != "precomputed"

    def _factor(self) -> None:
        """Factorise the kernel matrix of each view, which its features take and kernels do not."""
        maps: dict[str, Any] = self.feature_maps_
        n = [own.n_features for own in maps.values()]
        _check_memory(n, 5 * sum(n) ** 2 + 2 * sum(own**2 for own in n))
        for name, own in maps.items():
            try:
                maps[name] = factored(own)
            except ValueError as error:
                raise of_view(name, error) from error

    def _draw_map(
        self,
        name: Any,
        gamma: Any,
        factors: np.ndarray | None,
        X: Any,
        rng: np.random.RandomState,
    ) -> FeatureMap:
        if isinstance(gamma, str) and gamma == AUTOMATIC:
            gamma = "median" if name == "rbf" else None
        if name == "poly" and isinstance(gamma, str):
            raise ValueError(
                f'gamma="{gamma}" is a width of kernel="rbf", got kernel="poly". Give gamma a '
                "number, or None for 1 / n_features."
            )
        if isinstance(gamma, str):
            factor = _factor(gamma)
            gamma = factor * median_gamma(X, rng, factors) if name == "rbf" else None
        if self.approximation == "fourier":
            if name != "rbf":
                raise ValueError(
                    f'approximation="fourier" is for kernel="rbf", got kernel={name!r}. Use '
                    '"nystroem" or "cholesky".'
                )
            gamma = 1 / X.shape[1] if gamma is None else gamma
            origin = origin_for(Kernel(name), X)
            shape = X.shape[1], self.n_landmarks
            return FourierFeatures.of_rbf(gamma, *shape, rng, origin, factors)
        kernel = Kernel(name, gamma, self.degree, self.coef0, factors)
        if name == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"A precomputed kernel has a column for every training row, got {X.shape[0]} rows "
                f"and {X.shape[1]} columns (rows of weight 0 do not count). Batches of a "
                "precomputed kernel cannot be fitted."
            )
        if self.approximation is None:
            at = features_at if name == "precomputed" else landmarks_at
            return at(kernel, X, np.arange(X.shape[0]))
        return features_at(kernel, X, self._choose_landmarks(kernel, X, rng))

    def _choose_landmarks(self, kernel: Kernel, X: Any, rng: np.random.RandomState) -> np.ndarray:
        n_rows = X.shape[0]
        if self.approximation == "cholesky":
            return greedy_landmarks(kernel, X, min(self.n_landmarks, n_rows))
        return rng.permutation(n_rows)[: self.n_landmarks]

    @property
    def requires(self) -> Requirements:  # type: ignore[override]
        """Scikit-learn computes kernels with landmarks on the host."""
        return Requirements(host=self.approximation != "fourier", features=True)

    def _projection(self, name: str, maps: Maps | None) -> Callable[[Any], Any]:
        assert maps is not None
        return partial(_project, self.feature_maps_[name], maps, name)


def _multiple(factor: float) -> str:
    return "median" if factor == 1 else f"{factor:g}*median"


def _next_multiple(gamma: str, upward: bool) -> str:
    """Twice or half the width."""
    return _multiple(_factor(gamma) * (2 if upward else 0.5))


def _project(features: FeatureMap, maps: Maps, name: str, block: Any) -> Any:
    """Scores of rows, whose features are in memory by blocks."""
    if not block.shape[0]:  # scikit-learn computes no kernel of no rows
        return as_block(block).placed(np.empty((0, maps.weights[name].shape[1])))
    parts = as_block(block).in_pieces(8 * features.n_features)
    scores = stack(maps.project(name, features.basis(rows.matrix)) for rows in parts)
    return namespace(scores).astype(scores, block.dtype, copy=False)


def _check_memory(heights: Sequence[int], n_numbers: int) -> None:
    """Refuse an exact fit whose matrices are larger than the memory that is free.

    Those of the dual problem are of one view at a time. Features have moments of as many features
    as rows, beside those of the rows that are not held out, and a factor for each view.
    """
    needed, available = 8 * n_numbers, available_bytes()
    if needed > available:
        raise MemoryError(
            f"Exact KCCA of {max(heights):,} rows needs about {needed:,} bytes "
            f"({needed / 1e9:.1f} GB) and {available / 1e9:.1f} GB are available. Use "
            'approximation="nystroem", "fourier" or "cholesky", whose memory is by n_landmarks.'
        )
