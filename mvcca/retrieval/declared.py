"""The similarity that an estimator declares for ranking, in `retrieval_ranking`.

Evaluation, index, scorers, plots and the command line all read the declaration here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.pipeline import Pipeline

from mvcca.retrieval.similarity import Similarity, checked_similarity

_DEFAULT = ("transform", "cosine")


@dataclass(frozen=True, eq=False)
class Ranking:
    """Similarity by which a fitted estimator ranks a gallery."""

    estimator: Any  # an estimator, a pipeline or a finished search
    method: str  # of the last step, whose rows are compared
    similarity: Similarity

    @classmethod
    def of(cls, estimator: Any, similarity: Similarity | None = None) -> Ranking:
        """Read ``retrieval_ranking`` of the estimator, or of the last step of a pipeline.

        Without a declaration it is the cosine of the rows of ``transform``. A `similarity` compares
        these rows, whatever is declared.
        """
        if similarity is not None:
            return cls(estimator, "transform", checked_similarity(similarity))
        return cls(estimator, *getattr(_steps(estimator)[-1], "retrieval_ranking", _DEFAULT))

    def project(self, *rows: Any) -> Any:
        """Rows to compare, in the container that `transform` returns."""
        if self.method == "transform":
            return self.estimator.transform(*rows)
        X, *second = rows
        *before, last = _steps(self.estimator)
        for step in before:
            X = step.transform(X)
        return getattr(last, self.method)(X, *second)

    def __str__(self) -> str:
        if self.method == "retrieval_scores":
            return f"weighted {self.similarity}"
        return (
            self.similarity if self.method == "transform" else f"{self.similarity} ({self.method})"
        )


def _steps(estimator: Any) -> list[Any]:
    """Fitted steps of nested pipelines and searches, in order."""
    if hasattr(estimator, "best_estimator_"):
        return _steps(estimator.best_estimator_)
    if not isinstance(estimator, Pipeline):
        return [estimator]
    parts = [part for _, part in estimator.steps if part not in (None, "passthrough")]
    return [step for part in parts for step in _steps(part)]
