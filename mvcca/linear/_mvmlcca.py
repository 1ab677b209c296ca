"""Multi-view multi-label CCA: every row of a view against all rows of the others, by labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from mvcca.base import Requirements
from mvcca.base.standardizing import in_told_units, note_units
from mvcca.linear.label_space import (
    in_label_space,
    in_solved_label_space,
    solving_is_cheap,
)
from mvcca.linear.label_statistic import LabelStatistic, pairs_of, shared_rows
from mvcca.linear.label_weighted import LabelWeightedEstimator
from mvcca.machine.warnings import warn
from mvcca.model_selection.goals import Goal
from mvcca.problem import Estimate, Problem, Rows
from mvcca.problem.precision import Exactness
from mvcca.similarity import LabelGram, Similarity
from mvcca.statistics import LabelSums, Moments


class MVMLCCA(LabelWeightedEstimator):
    r"""Multi-view multi-label canonical correlation analysis.

    Use it for label sets or label vectors, which may come from different vocabularies. For single
    classes, prefer `MLCCA`.

    Brings rows of different views together according to the similarity of their labels [1]_; rows
    need not be paired. With the label-weighted covariances of centred rows (eq. (4) of [1]_),

    .. math:: Ψ_{pq} = \frac{1}{m_p m_q} ∑_a ∑_b g(z_p^a, z_q^b) \, x_p^a (x_q^b)^⊤,

    the maps solve

    .. math::

        \max \; & ∑_{p≠q} w_p^⊤ Ψ_{pq} w_q \\
        \text{subject to} \; & ∑_p w_p^⊤ (B_p + r_p I) w_p = n_{views}, \\
        & ∑_{q≠p} Ψ_{pq} w_q = ρ (B_p + r_p I) w_p \quad \text{for every } p, \quad λ = 1 + ρ.

    Ψ_pp is in the constraint only, as B_p under ``within="label"``; then, and without a ridge, this
    is Σ_q Ψ_pq w_q = λ Ψ_pp w_p, eq. (3) of [1]_. By default, or with a ridge, λ is
    not an eigenvalue of that form. The official code adds its ridge to both sides of it, which
    amounts to the ridge in the constraint used here. Since g depends on label vectors only, Ψ is
    computed exactly, in one pass over the rows, from the sums of features per distinct label
    vector. The official code centres test rows by the mean of the test rows; here the training
    mean is used.

    Parameters
    ----------
    n_components : int or None, default=2
        Dimension of the shared space; None is all components that the data support.
    label_similarity : {"sqexp", "exp", "cosine", "equal"} or callable, default="sqexp"
        Label similarity g: see `mvcca.similarity`. "sqexp" is eq. (5) of [1]_. A callable gets two
        stacks of label vectors, must be symmetric, and returns a value per pair.
    sigma : float, default=1.0
        Bandwidth of the exponentials. (The official code for MS-COCO amounts to 0.5.)
    within : {"sample", "label"}, default="sample"
        The constraint B_p: "sample" is the ordinary covariance Σ_pp, "label" the paper's Ψ_pp,
        whose rank is at most the number of distinct label vectors; if there are more features,
        the ridge determines the rest. With little tuning, "sample" retrieves better on all data
        sets tried; with a ridge of 10 and ``power=4``, "label" does on captions, which have many
        label sets.
    reg : float, mapping of str to float, "auto", "oas" or "cv", default=1e-4
        Ridge on each view's constraint in units of its mean diagonal, so that rescaling a view
        changes nothing; "auto" and "oas" shrink it by what `MVCCA` estimates for the covariance
        of the rows.
        "cv" chooses the ridge, and how scores are ranked, by 5 folds; with
        ``n_components=None`` and a class goal also the number of components.
    reg_unit : {"relative", "absolute"}, default="relative"
        Unit of a numeric ridge: the mean diagonal of the constraint, or that of its entries.
    power : float, default=0.0
        Scores are multiplied by λ^power = (1 + ρ)^power, which changes little under
        ``within="sample"``, where ρ is often far below 1.
    cv_goal : {"object", "class", "correlation"} or None, default=None
        What ``reg="cv"`` maximizes on held-out folds: the mean reciprocal rank of the row of the
        same object, mAP@50 over rows that share a label, or the mean correlation of the scores.
        None is "class".
    label_features : {None, "fourier", "nystroem"}, default=None
        None is exact. If label vectors rarely repeat, as real-valued ones do, exact sums take O(n²)
        pairs; features Φ with Φ(z)ᵀΦ(z') ≈ g(z, z') use memory proportional to their number.
        "fourier" are random features of "sqexp" and "exp" with an error of order
        1 / √n_label_features; "nystroem" are similarities to landmark label vectors, for any
        positive semi-definite similarity, exact if all distinct label vectors are landmarks.
    n_label_features : int, default=500
        Fourier features (an even number), or landmarks; used with `label_features` only.
    random_state : int, RandomState or None, default=None
        Seed for frequencies, landmarks and the rows of `covariance_error_`; used with
        `label_features` only.
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
        One map per view, by name, with Σ_p w_pᵀ (B_p + r_p I) w_p = n_views.
        A dict: unpack it with ``weights_.values()``, since iterating over it gives names.
    means_ : dict of str to ndarray, shape (n_features,)
        Training means.
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
    query_views_used_ : dict of (tuple of str, str) to tuple of str
        Query views that count, by the query views and the target of every question that was asked
        so far; others made rankings of held-out rows worse. If questions are solved, see Notes.
    questions_ : Questions
        Covariances by which questions are solved, as of `MVCCA`; if questions are solved.
    n_components_ : int
        Number of components, fewer than requested if the data have no more.
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
        Rank of each view's constraint.
    view_names_ : tuple of str
        The views, in order.
    n_features_in_ : int
        Number of features of X, over all its views.

    See Also
    --------
    MLCCA : The constraint weighs rows by their labels.

    Notes
    -----
    Rows without labels count as one more label set: their similarity to each other is 1 under the
    exponentials; under "cosine" they are similar to no row. A warning gives their number.

    Scores and weights are those of the shared space, and so are rankings, with one exception. With
    ``reg="cv"``, a class goal, ``within="sample"`` and three views or more that all objects are
    seen in, retrieval solves each question, of some views about another, when it is first asked.
    Folds then choose by class, as `MVCCA` does by object, between this method for the query views
    side by side and the target, the sum of what each query view tells, and the shared space, and
    leave out query views that hurt (``benchmarks/defaults/any_query.py --labels``).

    References
    ----------
    .. [1] Sanghavi and Verma, "Multi-view Multi-label Canonical Correlation Analysis for
       Cross-modal Matching and Retrieval", CVPRW 2022.

    Examples
    --------
    Unpaired images and texts with labels in common:

    >>> from mvcca import MVMLCCA
    >>> from mvcca.datasets import load_digits_views
    >>> data = load_digits_views(labels="segments")
    >>> images, texts = data.views["left"][:800], data.views["right"][800:1500]
    >>> labels = data.labels
    >>> model = MVMLCCA(5).fit([images, texts], [labels[:800], labels[800:1500]])
    >>> model.weights_["view1"].shape
    (32, 5)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LabelWeightedEstimator._parameter_constraints,
        "within": [StrOptions({"label", "sample"})],
    }

    def __init__(
        self,
        n_components: int | None = 2,
        *,
        label_similarity: Similarity = "sqexp",
        sigma: float = 1.0,
        within: str = "sample",
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
        self.within = within
        self.reg = reg
        self.reg_unit = reg_unit
        self.power = power
        self.cv_goal = cv_goal
        self.label_features = label_features
        self.n_label_features = n_label_features
        self.random_state = random_state
        self.scale = scale

    sums: ClassVar = (LabelStatistic,)

    @property
    def question_goal(self) -> Goal | None:  # type: ignore[override]
        """Constraints by labels do not tell how the rows of query views vary together."""
        return "class" if self.within == "sample" else None

    @property
    def requires(self) -> Requirements:  # type: ignore[override]
        """Label-weighted covariances in the constraint are too ill-conditioned for float32."""
        return replace(super().requires, float64=self.within == "label")

    def statistic_of(self, rows: Rows) -> LabelStatistic:
        pairs = shared_rows(rows)
        moments: Mapping[str, Moments] = {}
        is_needed = self.within == "sample" or self.scale is not False  # by units
        if is_needed and isinstance(pairs, Moments):
            moments = {name: pairs.select([name]) for name in rows.views.names}
        elif is_needed:
            moments = rows.moments_of_each()
        if self._drawn is not None:
            return LabelStatistic(self._drawn.sums(rows), moments, pairs)
        sums = LabelSums.of(rows.views, rows.labels, rows.sample_weight)
        return LabelStatistic(sums, moments, pairs)

    def problem(self, rows: Rows, statistic: LabelStatistic) -> Problem:
        sums = statistic.sums
        if isinstance(sums, LabelSums):
            gram = LabelGram(sums.labels, self.label_similarity, self.sigma)
            Psi = sums.covariance(gram, dtype=rows.reading.products)
        else:
            Psi = sums.covariance()
        of_labels = self.within == "label"
        ranks = self._ranks_between(sums)
        for p, (name, n_features) in enumerate(rows.widths().items() if of_labels else ()):
            if isinstance(sums, LabelSums):
                rank, kind = int(np.count_nonzero(sums.counts[:, p])), "distinct label sets"
            else:
                rank, kind = len(sums.sums), "label features"
            if rank <= n_features:
                why = f"{name!r} has {n_features} features but only {rank} {kind}"
                ranks[name] = ranks[name]._replace(why=why)
        means = sums.mean()
        Sigma = {name: own.covariance() for name, own in statistic.moments.items()}
        if of_labels and Sigma:  # the units are those of the rows
            counts = {name: float(rows.sample_weight_of(name).sum()) for name in Sigma}
            rows = in_told_units(self, rows, means, Sigma, counts)
        exactness = Exactness(about_zero=True, of_features=of_labels)
        return Problem(
            rows,
            Estimate(means, pairs=pairs_of(statistic.pairs), exactness=exactness),
            between=Psi,
            within=Psi if of_labels else Sigma,
            is_joint=of_labels and not callable(self.label_similarity),
            ranks=ranks,
        )

    def _is_solved_in_label_space(self, rows: Rows) -> bool:
        return (
            self.label_features is None
            and super()._is_solved_in_label_space(rows)
            and (self.within == "label" or solving_is_cheap(rows))
        )

    def _learn_in_label_space(self, rows: Rows) -> None:
        if self.within == "sample":
            turned = in_solved_label_space(rows)
            self._learn(turned, self.statistic_of(turned))
            return
        statistic = self.statistic_of(rows)
        turned, sums = in_label_space(rows, statistic.sums)
        self._learn(turned, replace(statistic, sums=sums))

    def _learn(self, rows: Rows, statistic: LabelStatistic) -> None:
        if rows.labels is None:  # of batches, which may lack labels one by one
            counts = statistic.sums if isinstance(statistic.sums, LabelSums) else self._counts
            assert counts is not None
            self._check_labels(counts)
        problem = self.problem(rows, statistic)
        note_units(self, rows, problem.units)
        self._keep(problem.solve(rows.n_components).checked(rows.n_components))
        self.__dict__.pop("questions_", None)  # of an earlier fit; folds come later
        if isinstance(statistic.sums, LabelSums):
            self.n_label_vectors_ = len(statistic.sums.labels)
        lacking = [own.why for own in problem.ranks.values() if own.why is not None]
        if lacking:
            warn(
                f"View {', '.join(lacking)}: there are too few label sets for this many "
                'features, and results depend mostly on reg. Set within="sample", use MLCCA, or '
                "raise reg."
            )
