"""How estimators with correlations rank: a base with the expected correlations and questions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mvcca.base.estimator import MultiViewEstimator
from mvcca.base.projecting import scores_of
from mvcca.model_selection.questions import Questions
from mvcca.views import Views


class RankedByCorrelation(MultiViewEstimator):
    """Base of the estimators whose components are correlated across views.

    If views are jointly Gaussian, the log-likelihood ratio of "the rows x and y show the same
    object" against "they do not" is, with scores a and b of unit variance,

        Σ_i w_i a_i b_i - Σ_i v_i (a_i² + b_i²) / 2 + constant,
        w_i = ρ_i / (1 - ρ_i²),   v_i = ρ_i² / (1 - ρ_i²).

    Rows of real data differ in scale more than Gaussian ones do. If the scale of each row is
    unknown, its maximum-likelihood value makes the ratio an increasing function of

        Σ_i w_i a_i b_i / √(Σ_i v_i a_i² Σ_i v_i b_i²),

    the profile likelihood, by which they rank: the inner product of the vectors
    √w_i a_i / √(Σ_j v_j a_j²). For a joint query or target, a and b are sums of the scores of its
    views; sums of these vectors would fix a scale per view and rank worse. Plain scores give a
    component with correlation .1 the weight of one with .9. ρ is ``expected_correlations_``. If
    `power` is set, it weights the components instead, by the cosine of scores, which also ranks
    after a fit to unpaired views, which have no correlations.
    """

    expected_correlations_: np.ndarray
    expected_correlations_by_pair_: np.ndarray
    expected_deviations_: dict[str, np.ndarray]

    questions_: Questions

    @property
    def query_views_used_(self) -> dict[tuple[tuple[str, ...], str], tuple[str, ...]]:
        """Query views that count, by the query views and the target of each question so far."""
        if not hasattr(self, "questions_"):
            raise AttributeError(
                f"{type(self).__name__} ranks in the shared space, which uses all query views: "
                'MVCCA solves questions with solve="conditional", or reg="cv" of three views or '
                'more, MVMLCCA with reg="cv" and cv_goal="class".'
            )
        chosen = self.questions_.chosen.items()
        return {(query, "+".join(target)): own.query for (query, target, _), own in chosen}

    def _question_rows_of(self, views: Views) -> dict[str, Any]:
        """Rows of checked views in the coordinates of questions."""
        own, maps = self.questions_, self.maps_
        assert maps is not None
        maps = replace(maps, weights=own.weights, means=own.means, power=0.0)
        return scores_of(self, views, maps)
