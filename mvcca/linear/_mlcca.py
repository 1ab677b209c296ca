"""Multi-label CCA, with Fast MLCCA, cluster-CCA and mean-CCA as choices of label weighting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from mvcca.base.standardizing import open_units
from mvcca.blocks import as_block
from mvcca.linear.label_space import in_label_space, label_counts, label_means
from mvcca.linear.label_statistic import LabelledRows, pairs_of, shared_rows
from mvcca.linear.label_weighted import LabelWeightedEstimator
from mvcca.linear.pairs import nearest_label_pairs, weighted_cross
from mvcca.machine.warnings import warn
from mvcca.model_selection.goals import Goal
from mvcca.problem import Estimate, Problem, Rows
from mvcca.problem.precision import Exactness
from mvcca.problem.shared_rows import SharedRows
from mvcca.problem.whitener import rounding_of
from mvcca.similarity import LabelGram, LabelKernel, Similarity
from mvcca.statistics import LabelSums, Moments, PairMoments
from mvcca.statistics.label_sums_by_feature import LabelFeatureSums
from mvcca.statistics.moments import ROUNDING
from mvcca.views import Views

_STRIP_ROWS = 128  # of a matrix that is changed while they are in cache
_NEVER_NEGATIVE = ("sqexp", "exp", "equal")


class MLCCA(LabelWeightedEstimator):
    r"""Multi-label canonical correlation analysis.

    Use it if labels, not pairs, relate the views: rows need no partner in another view.

    CCA over all pairs of rows of two views, each weighted by how alike its labels are [1]_:

    .. math::

        C_{xy} &= \tfrac{1}{N} ∑_i ∑_j f(z_i, z_j) \, x_i y_j^⊤, \\
        C_{xx} &= \tfrac{1}{N} ∑_i ∑_j f(z_i, z_j) \, x_i x_i^⊤, \\
        C_{yy} &= \tfrac{1}{N} ∑_i ∑_j f(z_i, z_j) \, y_j y_j^⊤,

    with centred rows and N = n_x n_y, so that views need no pairing. More than two views share one
    space through all pairs of views, each C_pp averaged over them. The sums over pairs are exact:
    they are taken over the distinct label vectors, which are few.

    Special cases: ``label_similarity="equal"`` is cluster-CCA [2]_ (all pairs within a class), with
    ``weighting="means"`` mean-CCA (CCA of the class means); ``n_neighbors=50`` is Fast MLCCA.

    Parameters
    ----------
    n_components : int or None, default=2
        Dimension of the shared space; None is all components that the data support.
    label_similarity : {"sqexp", "exp", "cosine", "equal"} or callable, default="sqexp"
        Label similarity f: see `mvcca.similarity`. The paper's dot-product similarity is "cosine";
        its squared exponential exp(-‖·‖²/σ) is "sqexp" with half its σ, and the official code's
        is "exp".
    sigma : float, default=1.0
        Bandwidth of the exponentials.
    weighting : {"pairs", "means"}, default="pairs"
        Whether every pair of rows counts, or every pair of label sets once, by its mean rows.
    n_neighbors : int or None, default=None
        Restrict the sums to pairs of a row and its nearest rows of the other view in label space
        (itself among them where rows are paired). Neighbours of the rows of x among those of y, and
        of y among x, count half each, so that the order of views does not matter; the official
        code takes the former only. Ties, common among label sets, are broken by a random
        permutation drawn with `random_state`.
    reg : float, mapping of str to float, "auto", "oas" or "cv", default=1e-4
        Ridge on each view's C_pp in units of its mean diagonal (0.25 in the official code); "auto"
        and "oas" shrink it by what `MVCCA` estimates for the covariance of the rows.
        "cv" chooses the ridge, and how scores are ranked, by 5 folds; with
        ``n_components=None`` and a class goal also the number of components.
    reg_unit : {"relative", "absolute"}, default="relative"
        Unit of a numeric ridge: the mean diagonal of C_pp, or that of its entries.
    power : float, default=0.0
        Scores are multiplied by λ^power = (1 + ρ)^power.
    cv_goal : {"object", "class", "correlation"} or None, default=None
        What ``reg="cv"`` maximizes on held-out folds: the mean reciprocal rank of the row of the
        same object, mAP@50 over rows that share a label, or the mean correlation of the scores.
        None is "class".
    label_features : {None, "fourier", "nystroem"}, default=None
        None is exact. If label vectors rarely repeat, as real-valued ones do, exact sums take O(n²)
        pairs; features Φ with Φ(z)ᵀΦ(z') ≈ f(z, z') use memory proportional to their number.
        "fourier" are random features of "sqexp" and "exp" with an error of order
        1 / √n_label_features; "nystroem" are similarities to landmark label vectors, for any
        positive semi-definite similarity, exact if all distinct label vectors are landmarks.
    n_label_features : int, default=500
        Fourier features (an even number), or landmarks; used with `label_features` only.
    random_state : int, RandomState or None, default=None
        Seed for ties, label features and the rows of `covariance_error_`. Used with `n_neighbors`
        and `label_features` only.
    scale : bool, mapping of str to bool, "auto" or "cv", default="auto"
        Whether to standardize the columns of each view, so that a ridge counts alike for columns in
        any units; weights stay in the units of the rows. "auto" standardizes views whose columns
        are in unlike units: their largest standard deviation is above 10 times the median one, and
        they correlate, which scores of a PCA do not. With ``reg="cv"`` folds choose, view by view,
        in place of this rule; "cv" lets them choose for ridges that are given, too. Without a ridge
        results do not depend on it.

    Attributes
    ----------
    weights_ : dict of str to ndarray, shape (n_features, n_components_)
        One map per view, by name.
        A dict: unpack it with ``weights_.values()``, since iterating over it gives names.
    means_ : dict of str to ndarray, shape (n_features,)
        Training means (plain, not weighted).
    eigenvalues_ : ndarray, shape (n_components_,)
        λ = 1 + ρ in decreasing order.
    expected_correlations_, expected_correlations_by_pair_, expected_deviations_
        As in `MVCCA`, if the views share objects.
    scale_ : dict of str to bool
        Which views were standardized.
    reg_ : float
        The chosen ridge; with ``reg="cv"`` only, as are the next three.
    ranking_ : str
        The chosen ranking of scores, which `mvcca.RetrievalIndex` and `mvcca.evaluate_retrieval`
        use: a weighting of components, followed by "+csls" if hubs are corrected for.
    bank_ : Views
        Scores of training rows that correct for hubs; if ``ranking_`` ends in "+csls".
    cv_results_ : dict of str to array
        Values of all ridges, rankings and numbers of components, as in scikit-learn's searches.
    n_components_ : int
        Number of components, fewer than requested if the data have no more; with c classes and
        "equal", c - 1.
    n_label_vectors_ : int
        Number of distinct label vectors; without `label_features` only.
    label_feature_map_ : FourierFeatures or LandmarkFeatures
        Φ, drawn from the first batch; with `label_features` only, as are the next two.
    n_label_features_ : int
        Number of features; landmarks that add nothing to the others are left out.
    covariance_error_ : float
        Error of Φ: ‖Ψ̃ - Ψ‖ / ‖Ψ‖ in the Frobenius norm between the label-weighted covariance by
        features (Ψ̃) and by pairs (Ψ), over up to 2000 rows of each view drawn from the first batch.
        Each view is scaled to ‖Ψ_pp‖ = 1, so that its units do not matter.
    ranks_ : dict of str to int
        Rank of each view.
    view_names_ : tuple of str
        The views, in order.
    n_features_in_ : int
        Number of features of X, over all its views.

    See Also
    --------
    MVMLCCA : The constraint is label-weighted, too.

    References
    ----------
    .. [1] Ranjan, Rasiwasia and Jawahar, "Multi-label Cross-modal Retrieval", ICCV 2015.
    .. [2] Rasiwasia, Mahajan, Mahadevan and Aggarwal, "Cluster Canonical Correlation Analysis",
       AISTATS 2014.

    Examples
    --------
    >>> from mvcca import MLCCA
    >>> from mvcca.datasets import load_digits_views
    >>> data = load_digits_views()
    >>> cluster_cca = MLCCA(9, label_similarity="equal").fit(data.views, data.labels)
    >>> cluster_cca.n_components_
    9
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LabelWeightedEstimator._parameter_constraints,
        "weighting": [StrOptions({"pairs", "means"})],
        "n_neighbors": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        n_components: int | None = 2,
        *,
        label_similarity: Similarity = "sqexp",
        sigma: float = 1.0,
        weighting: str = "pairs",
        n_neighbors: int | None = None,
        reg: float | str | Mapping[str, float] = 1e-4,
        reg_unit: str = "relative",
        power: float = 0.0,
        cv_goal: Goal | None = None,
        label_features: str | None = None,
        n_label_features: int = 500,
        random_state: Any = None,
        scale: bool | str | Mapping[str, bool | str] = "auto",
    ) -> None:
        self.n_components = n_components
        self.label_similarity = label_similarity
        self.sigma = sigma
        self.weighting = weighting
        self.n_neighbors = n_neighbors
        self.reg = reg
        self.reg_unit = reg_unit
        self.power = power
        self.cv_goal = cv_goal
        self.label_features = label_features
        self.n_label_features = n_label_features
        self.random_state = random_state
        self.scale = scale

    learns_from_rows = True
    sums: ClassVar = (LabelledRows,)

    def statistic_of(self, rows: Rows) -> LabelledRows:
        """The rows: the weight of a row in C_pp depends on the labels of all rows."""
        return LabelledRows(rows.views, rows.labels, rows.sample_weight)

    def problem(self, rows: Rows, statistic: LabelledRows) -> Problem:
        sums: LabelSums | LabelFeatureSums
        if self._drawn is not None:
            sums = self._drawn.sums(rows)
        else:
            sums = LabelSums.of(rows.views, rows.labels, rows.sample_weight)
        return self._problem_of(rows, sums, shared_rows(rows))

    def _problem_of(
        self,
        rows: Rows,
        sums: LabelSums | LabelFeatureSums,
        shared: SharedRows | Moments | PairMoments | None,
    ) -> Problem:
        """The problem of label sums, with rows that have the weights of their labels."""
        means = sums.mean()
        if self.weighting == "means":
            assert isinstance(sums, LabelSums)
            sums = sums.averaged()
            rows = label_means(sums, rows)
        between: Any
        if isinstance(sums, LabelFeatureSums):
            between, row_weights = self._all_pairs_by_features(sums, rows)
        elif self.n_neighbors is None:
            gram = LabelGram(sums.labels, self.label_similarity, self.sigma)
            between = sums.covariance(gram, means, rows.reading.products)
            row_weights = _row_weights(sums.row_weights(gram, rows.reading.products), rows)
        else:
            between, row_weights = self._nearest_pairs(means, rows)
        _check_weights(row_weights, exact=self._drawn is None)
        within = {
            name: _scatter_about(block, row_weights[name], means[name], rows.reading.products)
            for name, block in rows.views.items()
        }
        exactness = Exactness(
            about_zero=True,
            of_features=self.weighting == "means",
            rounding={
                name: np.sqrt(row_weights[name].sum()) * rounding_of(mean)
                for name, mean in means.items()
            },
        )
        return Problem(
            rows,
            Estimate(means, pairs=pairs_of(shared), exactness=exactness),
            between=between,
            within=within,
            is_joint=self.label_similarity in _NEVER_NEGATIVE and self._drawn is None,
            ranks={} if self.n_neighbors else self._ranks_between(sums),
        )

    def _learn(self, rows: Rows, statistic: LabelledRows) -> None:
        if rows.labels is None:  # of batches: learn from all rows, as `fit` does
            rows = Rows(statistic.views, statistic.sample_weight, statistic.labels)
            rows = rows.read(in_row_space=True)
            reg = self._ridges(rows, batch=False)
            rows = replace(rows, reg=reg, n_components=self.n_components)
            rows = open_units(self, rows, batch=False)
            self._check_labels(label_counts(rows))
            self._learn_rows(rows)
            return
        super()._learn(rows, statistic)
        if self._drawn is None:
            self.n_label_vectors_ = len(statistic.labels.distinct)

    def _is_solved_in_label_space(self, rows: Rows) -> bool:
        return (
            self.weighting == "means"
            and self.n_neighbors is None
            and super()._is_solved_in_label_space(rows)
        )

    def _learn_in_label_space(self, rows: Rows) -> None:
        sums = LabelSums.of(rows.views, rows.labels, rows.sample_weight)
        turned = in_label_space(rows, sums)
        problem = self._problem_of(*turned, shared_rows(rows))
        self._keep(problem.solve(rows.n_components).checked(rows.n_components))
        self.n_label_vectors_ = len(rows.labels.distinct)

    def _ridges(self, rows: Rows, batch: bool) -> dict[str, float]:
        return {} if batch else super()._ridges(rows, batch)  # see `_learn`

    def _validate_params(self) -> None:
        super()._validate_params()
        all_pairs = self.n_neighbors is None and self.weighting == "pairs"
        if self.n_neighbors is not None and self.weighting == "means":
            raise ValueError('n_neighbors chooses among rows: it needs weighting="pairs".')
        if self.label_features is not None and not all_pairs:
            raise ValueError(
                "label_features are for sums over all pairs of rows: they need n_neighbors=None "
                'and weighting="pairs".'
            )

    def _all_pairs_by_features(
        self, sums: LabelFeatureSums, rows: Rows
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """C over all pairs of rows by label features, and the weight of each row in its C_pp.

        Errors of the features may make weights negative.
        """
        assert self._drawn is not None
        row_weights = _row_weights(self._drawn.row_weights(sums, rows.labels.distinct), rows)
        if self.label_similarity in _NEVER_NEGATIVE:
            row_weights = _cut_at_zero(row_weights)
        return sums.covariance(), row_weights

    def _nearest_pairs(
        self, means: Mapping[str, np.ndarray], rows: Rows
    ) -> tuple[dict[tuple[str, str], np.ndarray], dict[str, np.ndarray]]:
        """The same over the pairs of a row and its nearest rows in label space."""
        views, names = rows.views, rows.views.names
        order = check_random_state(self.random_state).permutation(len(views))
        pairs = list(combinations(names, 2)) or [(names[0], names[0])]
        between = {}
        row_weights = {name: np.zeros(views[name].shape[0]) for name in names}
        for p, q in pairs:
            F = (self._shares(rows, p, q, order) + self._shares(rows, q, p, order).T) / 2
            between[p, q] = weighted_cross(views[p], F, views[q], means[p], means[q])
            share = max(1, len(names) - 1)
            row_weights[p] += F.sum(axis=1) / share
            if p != q:
                row_weights[q] += F.sum(axis=0) / share
        return between, row_weights

    def _shares(self, rows: Rows, p: str, q: str, order: np.ndarray) -> csr_array:
        """Weight of each pair of a row of p and a nearest row of q in the mean, (n_p, n_q)."""
        assert self.n_neighbors is not None
        ranks = {name: order[rows.views.objects(name)] for name in (p, q)}
        F = nearest_label_pairs(
            rows.labels.distinct.dense(),
            (rows.labels.codes[p], ranks[p]),
            (rows.labels.codes[q], ranks[q]),
            self.n_neighbors,
            LabelKernel(self.label_similarity, self.sigma),
        )
        weighted = F.multiply(rows.sample_weight_of(p)[:, None]).multiply(
            rows.sample_weight_of(q)[None, :]
        )
        return csr_array(weighted) / F.nnz


def _row_weights(likeness: np.ndarray, rows: Rows) -> dict[str, np.ndarray]:
    """Each row's share of its view times the mean similarity of its labels to the other views."""
    row_weights = {}
    for p, name in enumerate(rows.views.names):
        others = [q for q in range(likeness.shape[1]) if q != p] or [p]
        label_weight, own = likeness[:, others].mean(axis=1), rows.sample_weight_of(name)
        row_weights[name] = label_weight[rows.labels.codes[name]] * own / own.sum()
    return row_weights


def _cut_at_zero(row_weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Set negative weights, errors of the label features, to zero."""
    cut = {}
    for name, weights in row_weights.items():
        negative = weights < -1e-12 * weights.max()  # what is less is rounding
        if negative.any():
            share = -weights[negative].sum() / weights.sum()
            cut[name] = f"{np.count_nonzero(negative)} of {name!r} ({share:.1e} of all weight)"
    if cut:
        warn(
            f"Label features give rows a negative weight: {', '.join(cut.values())}. These rows "
            "are left out of the constraint; raise n_label_features to include them."
        )
    return {name: np.maximum(weights, 0) for name, weights in row_weights.items()}


def _check_weights(row_weights: Mapping[str, np.ndarray], exact: bool) -> None:
    """Refuse negative weights, and views without any; warn of rows without weight if `exact`."""
    for name, weights in row_weights.items():
        if (weights < 0).any():
            raise ValueError(
                f"Rows of view {name!r} get negative weights: the similarity is negative on "
                "average. Use one in [0, 1], such as sqexp."
            )
        if not weights.any():
            raise ValueError(
                f"The views have nothing in common: no labels of view {name!r} are like any of the "
                "other views. Check that labels mean the same in all views."
            )
    for name, weights in row_weights.items():
        if exact and (n_rows := int(np.count_nonzero(weights == 0))):
            warn(
                f"The labels of {n_rows} rows of view {name!r} are like none of the other views: "
                "these rows count for nothing."
            )


def _scatter_about(X: Any, weights: np.ndarray, mean: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Σ_i weight_i (x_i - mean)(x_i - mean)ᵀ."""
    moments = Moments.of(Views({"": X}), weights, dtype)
    shift = moments.means[0] - mean
    rounding = max(ROUNDING, 4 * len(weights) * np.finfo(as_block(X).dtype).eps ** 2)  # of a mean
    shift[np.abs(shift) <= rounding * np.abs(mean)] = 0  # a constant column has not moved
    scatter = moments.scatter  # of these rows only
    for start in range(0, len(shift), _STRIP_ROWS):
        own = slice(start, start + _STRIP_ROWS)
        scatter[own] += moments.counts[0, 0] * np.outer(shift[own], shift)
    return scatter
