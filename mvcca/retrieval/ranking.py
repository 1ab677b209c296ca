"""The ranking of an estimator, as it declares it in `retrieval_ranking` or as a user asks for it.

A ranking is two functions, from projected rows to query vectors and to item vectors, and one inner
product. `Weighted` applies to the views one by one and adds them, its similarity to the sums.
Evaluation, index, scorers, plots and the command line all read the declaration here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from mvcca.retrieval.empty_rows import Empty, empty_for, transformed
from mvcca.retrieval.similarity import SIMILARITIES, InnerProduct, Similarity, similarity_of
from mvcca.retrieval.weighting import Weighted, Weighting, weighting_of
from mvcca.views import Views

_DEFAULT = ("transform", "cosine")


@dataclass(frozen=True, eq=False)
class Ranking:
    """How rows of an estimator are compared."""

    weighted: Weighted
    steps: tuple[Any, ...] = ()  # fitted transformers and the model; none if rows are projected
    method: str = "transform"  # of the model, whose rows are compared
    name: str = ""  # of the weighting

    @classmethod
    def of(
        cls,
        estimator: Any,
        similarity: Similarity | None = None,
        weighting: Weighting | None = "auto",
    ) -> Ranking:
        """Read ``retrieval_ranking`` of the estimator, or of the last step of a pipeline.

        Without a declaration it is the cosine of the rows of ``transform``. A `similarity`, or the
        cosine for ``weighting=None``, compares these rows, whatever is declared.

        Raises
        ------
        ValueError
            If similarity or weighting is unknown, both are given, or the estimator has no
            correlations to weight by.
        """
        steps = tuple(fitted_steps(estimator))
        model, method, declared = steps[-1], "variates", "cosine"
        if similarity is not None:
            if weighting not in ("auto", None):
                raise ValueError(
                    "similarity compares the scores of transform, and weighting the weighted "
                    f"ones; give one of them, got {similarity!r} and {weighting!r}."
                )
            return cls(Weighted(similarity_of(similarity)), steps)
        if weighting == "auto":
            method, declared = getattr(model, "retrieval_ranking", _DEFAULT)
            if declared not in SIMILARITIES and getattr(model, "power", False):
                method, declared = _DEFAULT  # the power weights the components
            elif declared not in SIMILARITIES and _lacks_expectations(model):
                method, declared = "variates", "cosine"
        elif weighting is not None:
            declared = weighting
        if declared in SIMILARITIES:
            return cls(Weighted(similarity_of(declared)), steps, method)
        return cls(weighting_of(declared, model), steps, "variates", declared)

    @property
    def similarity(self) -> InnerProduct:
        """Similarity of the rows of queries and items."""
        return self.weighted.similarity

    @property
    def is_by_target(self) -> bool:
        """Whether queries depend on the views that they search."""
        return self.weighted.is_by_target

    @property
    def queries(self) -> Callable[..., np.ndarray]:
        """The function from projected rows by view to rows to query with; see `Weighted`."""
        return self.weighted.queries

    @property
    def items(self) -> Callable[..., np.ndarray]:
        """The function from projected rows by view to rows to rank; see `Weighted`."""
        return self.weighted.items

    def project(self, X: Any, *second: Any) -> Any:
        """Projected rows of every view, in the container that `transform` returns."""
        *before, model = self.steps
        for step in before:
            X = step.transform(X)
        return self.weighed(self._scores(model, X, *second))

    def project_noting_empty(self, X: Any) -> tuple[Any, Empty]:
        """The same rows, and which rows of X are empty, view by view."""
        scores, empty = self.scores_noting_empty(X)
        return self.weighed(scores), empty

    def scores_noting_empty(self, X: Any) -> tuple[Any, Empty]:
        """Rows as the model projects them, before any weighting, and which rows of X are empty."""
        *before, model = self.steps
        X, empty = transformed(before, X)
        return self._scores(model, X), empty_for(model, X, empty)

    def weighed(self, scores: Any) -> Any:
        """Projected rows from the model's scores."""
        return self._weighted_rows(scores, self.steps[-1]) if self.name else scores

    @property
    def compares_scores(self) -> bool:
        """Whether it compares what `transform` returns, if only with other weights."""
        return self.method in ("transform", "variates")

    def _scores(self, model: Any, X: Any, *second: Any) -> Any:
        if self.method != "variates":
            return getattr(model, self.method)(X, *second)
        return getattr(model, "variates", model.transform)(X, *second)

    def _weighted_rows(self, scores: Any, model: Any) -> Any:
        """Scores of views after the weighting, in a container of the same type."""
        of_view = self.weighted.of_view
        if isinstance(scores, Views):
            return scores.replace({name: of_view(name, own) for name, own in scores.items()})
        if isinstance(scores, Mapping):
            return {name: of_view(name, _array(own)) for name, own in scores.items()}
        if isinstance(scores, list | tuple):
            pairs = zip(model.view_names_, scores, strict=True)
            return type(scores)(of_view(name, _array(own)) for name, own in pairs)
        return of_view(model.view_names_[0], _array(scores))

    def __str__(self) -> str:
        if self.name:
            return self.name
        if self.compares_scores:
            return str(self.similarity)
        return f"{self.similarity} ({self.method})"


def _lacks_expectations(model: Any) -> bool:
    """Whether a fitted model was saved before estimators estimated correlations."""
    return hasattr(model, "weights_") and not hasattr(model, "expected_correlations_")


def _array(block: Any) -> Any:
    """The numbers of a DataFrame; other blocks unchanged."""
    return block.to_numpy() if hasattr(block, "to_numpy") else block


def fitted_steps(estimator: Any) -> list[Any]:
    """Fitted steps of nested pipelines and searches, in order."""
    if hasattr(estimator, "best_estimator_"):
        return fitted_steps(estimator.best_estimator_)
    if not isinstance(estimator, Pipeline):
        return [estimator]
    parts = [part for _, part in estimator.steps if part not in (None, "passthrough")]
    return [step for part in parts for step in fitted_steps(part)]
