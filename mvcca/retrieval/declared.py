"""How the rows that an estimator projects are ranked: the similarity that its class declares.

This is the only place that reads the declaration. Evaluation, index, scorers, plots and the command
line ask here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.pipeline import Pipeline

from mvcca.retrieval.similarity import SIMILARITIES, Similarity

_USUAL = ("transform", "cosine")


@dataclass(frozen=True, eq=False)
class Ranking:
    """The similarity by which a fitted estimator ranks a gallery.

    Attributes
    ----------
    estimator : estimator
        An estimator, a pipeline or a finished search.
    method : str
        The method of the last step whose rows are compared.
    similarity : {"cosine", "euclidean", "inner"}
        How two of these rows are compared.
    """

    estimator: Any
    method: str
    similarity: Similarity

    @classmethod
    def of(cls, estimator: Any, similarity: Similarity | None = None) -> Ranking:
        """Read ``retrieval_ranking`` of the estimator, or of the last step of a pipeline.

        Parameters
        ----------
        estimator : estimator
            Without a declaration, it is the cosine of the rows that ``transform`` gives.
        similarity : {"cosine", "euclidean", "inner"}, optional
            Compares the rows of ``transform`` instead, whatever is declared.
        """
        if similarity is not None:
            return cls(estimator, "transform", checked_similarity(similarity))
        return cls(estimator, *getattr(_steps(estimator)[-1], "retrieval_ranking", _USUAL))

    def project(self, *rows: Any) -> Any:
        """Rows to be compared, in the container that `transform` takes and gives."""
        if self.method == "transform":
            return self.estimator.transform(*rows)
        X, *second = rows
        *before, last = _steps(self.estimator)
        for step in before:
            X = step.transform(X)
        return getattr(last, self.method)(X, *second)

    def __str__(self) -> str:
        return (
            self.similarity if self.method == "transform" else f"{self.similarity} ({self.method})"
        )


def checked_similarity(similarity: Similarity) -> Similarity:
    """Refuse an unknown similarity."""
    if similarity not in SIMILARITIES:
        raise ValueError(
            f"Expected similarity to be one of {list(SIMILARITIES)}, got {similarity!r}."
        )
    return similarity


def _steps(estimator: Any) -> list[Any]:
    """The fitted steps of nested pipelines and searches, first to last."""
    if hasattr(estimator, "best_estimator_"):
        return _steps(estimator.best_estimator_)
    if not isinstance(estimator, Pipeline):
        return [estimator]
    parts = [part for _, part in estimator.steps if part not in (None, "passthrough")]
    return [step for part in parts for step in _steps(part)]
