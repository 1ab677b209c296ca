"""The base of MLCCA and MVMLCCA, which weigh pairs of rows by the similarity of their labels."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from mvcca.base import RankedByCorrelation, Requirements
from mvcca.base.label_checks import check_bandwidth, check_label_vectors
from mvcca.base.standardizing import STANDARDIZED
from mvcca.linear._rescaled import RescaledEstimator
from mvcca.linear.label_features import DrawnLabelFeatures, draw_label_features
from mvcca.linear.label_space import label_counts, label_space_is_small
from mvcca.problem import Rows
from mvcca.problem.precision import KnownRank
from mvcca.similarity import LabelKernel, Similarity
from mvcca.statistics import LabelSums
from mvcca.statistics.digits_lost import DigitsLost
from mvcca.statistics.label_sums_by_feature import LabelFeatureSums


class LabelWeightedEstimator(RankedByCorrelation, RescaledEstimator):
    """Base of estimators whose covariances weigh pairs of rows by label similarity.

    Views that share objects tell how their scores correlate, which is what rankings weight by.
    """

    retrieval_ranking = ("transform", "profile-likelihood")

    requires = Requirements(views=(1, None), labels=True, many_rows=True)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{
            name: allowed
            for name, allowed in RescaledEstimator._parameter_constraints.items()
            if name != "center"  # sums by label are about the mean
        },
        "label_similarity": [StrOptions({"sqexp", "exp", "cosine", "equal"}), callable],
        "sigma": [Interval(Real, 0, None, closed="neither")],
        "label_features": [StrOptions({"fourier", "nystroem"}), None],
        "n_label_features": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    automatic: ClassVar = STANDARDIZED

    label_similarity: Similarity
    sigma: float
    label_features: str | None
    n_label_features: int
    random_state: Any

    _drawn: DrawnLabelFeatures | None = None
    _counts: LabelSums | None = None  # until labels differ, which label features do not tell
    keeps_solutions = True  # `_learn` only adds notes

    def _open_rows(self, X: Any, y: Any, sample_weight: Any, *, batch: bool = False) -> Rows:
        """Checked rows with their weights, labels and ridge."""
        rows = super()._open_rows(X, y, sample_weight, batch=batch)
        if not batch:
            self._check_labels(label_counts(rows))
            if self.label_features is not None:  # which are drawn from the rows
                rows = rows.in_row_space()
        if not batch or self._statistic is None:
            self._drawn = self._counts = None
            if self.label_features is not None and len(rows.views):
                self._drawn = draw_label_features(
                    rows,
                    LabelKernel(self.label_similarity, self.sigma),
                    self.label_features,
                    self.n_label_features,
                    self.random_state,
                )
                self.label_feature_map_ = self._drawn.features
                self.n_label_features_ = self._drawn.features.n_features
                self.covariance_error_ = self._drawn.error
        if batch and self._drawn is not None and len(rows.views):
            counts = self._counts
            if counts is None or len(counts.labels) < 2:
                more = label_counts(rows)
                self._counts = more if counts is None else counts + more
        return rows

    def _learn_rows(self, rows: Rows) -> None:
        """Fit to all rows at once, in the space of their means by label if that is much smaller."""
        if self._is_solved_in_label_space(rows):
            try:
                self._learn_in_label_space(rows.read(improvable=frozenset(rows.views.names)))
                return
            except DigitsLost:  # rows are decomposed
                pass
        super()._learn_rows(rows)

    def _is_solved_in_label_space(self, rows: Rows) -> bool:
        """Whether solutions lie in the span of label sums, and that has few dimensions."""
        return self.reg != "cv" and label_space_is_small(rows)

    def _learn_in_label_space(self, rows: Rows) -> None:
        """Fit in the space of solutions."""
        raise NotImplementedError

    def _check_labels(self, sums: LabelSums) -> None:
        check_label_vectors(sums)
        check_bandwidth(sums.labels, self.label_similarity, self.sigma, sums.dtype)

    def _ranks_between(self, sums: LabelSums | LabelFeatureSums) -> dict[str, KnownRank]:
        """Upper bounds of the ranks of a view's label-weighted covariances with other views.

        Sums of a view about its mean are linearly dependent, so that c label vectors leave c - 1.
        """
        if not isinstance(sums, LabelSums):
            return dict.fromkeys(sums.widths, KnownRank(len(sums.sums)))
        n_labels = sums.labels.n_labels if self.label_similarity == "cosine" else len(sums.labels)
        present = np.count_nonzero(sums.counts, axis=0)
        return {
            name: KnownRank(min(int(n) - 1, n_labels))
            for name, n in zip(sums.widths, present, strict=True)
        }
