"""How estimators with correlations rank: a base with the expected correlations and the vectors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mvcca.base.estimator import MultiViewEstimator
from mvcca.base.projecting import scores_of
from mvcca.base.projection import projected
from mvcca.model_selection.questions import Questions
from mvcca.problem.expected import profile_vectors
from mvcca.views import Views


class RankedByCorrelation(MultiViewEstimator):
    """Base of the estimators whose components are correlated across views."""

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

    def retrieval_scores(self, X: Any, y: Any = None) -> Any:
        r"""Project rows to the vectors whose inner product ranks best.

        If views are jointly Gaussian, the log-likelihood ratio of "the rows x and y show the same
        object" against "they do not" is, with scores a and b of unit variance,

            Σ_i w_i a_i b_i - Σ_i v_i (a_i² + b_i²) / 2 + constant,
            w_i = ρ_i / (1 - ρ_i²),   v_i = ρ_i² / (1 - ρ_i²).

        Rows of real data differ in scale more than Gaussian ones do. If the scale of each row is
        unknown, its maximum-likelihood value makes the ratio an increasing function of

            Σ_i w_i a_i b_i / √(Σ_i v_i a_i² Σ_i v_i b_i²),

        the profile likelihood: the inner product of the vectors √w_i a_i / √(Σ_j v_j a_j²). For a
        joint query or target, a and b are sums of the scores of its views; sums of these vectors
        would fix a scale per view and rank worse. Plain
        scores give a component with correlation .1 the weight of one with .9. ρ is
        ``expected_correlations_``. If `power` is set, it weights the components instead, and these
        are the scores of `transform`, as they are after a fit to unpaired views, which have no
        correlations.

        Parameters
        ----------
        X, y
            As for `transform`.

        Returns
        -------
        vectors : same container as X
            As `transform` gives them.

        See Also
        --------
        mvcca.evaluate_retrieval : Other rankings by name, with its parameter `weighting`.
        """
        return projected(self, X, y, "retrieval_scores")

    def _question_rows_of(self, views: Views) -> dict[str, Any]:
        """Rows of checked views in the coordinates of questions."""
        own, maps = self.questions_, self.maps_
        assert maps is not None
        maps = replace(maps, weights=own.weights, means=own.means, power=0.0)
        return scores_of(self, views, maps)

    def _retrieval_scores_of(self, views: Views) -> dict[str, Any]:
        """The vectors of checked views."""
        maps, rho = self.maps_, getattr(self, "expected_correlations_", None)
        scores = scores_of(self, views, maps)
        if rho is None or (maps is not None and maps.power):
            return scores
        return {name: profile_vectors(U, rho) for name, U in scores.items()}
