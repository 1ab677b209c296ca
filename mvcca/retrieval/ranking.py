"""The ranking that an estimator declares in `retrieval_ranking`: a similarity or a weighting.

Evaluation, index, scorers, plots and the command line all read the declaration here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from mvcca.problem._expected import LARGEST_CORRELATION, component_weights
from mvcca.retrieval.empty_rows import Empty, empty_for, transformed
from mvcca.retrieval.joint import summed
from mvcca.retrieval.similarity import (
    SIMILARITIES,
    ProfileCosine,
    Similarity,
    checked_similarity,
)
from mvcca.retrieval.weighting import ComponentFactors, LikelihoodRatio, Weighting, power_of
from mvcca.views import Views

_DEFAULT = ("transform", "cosine")


@dataclass(frozen=True, eq=False)
class Ranking:
    """How a gallery is ranked: by the similarity that an estimator declares, or a given one."""

    estimator: Any  # an estimator, a pipeline, a finished search; None if rows are projected
    method: str  # of the last step, whose rows are compared
    similarity: Similarity
    weights: ComponentFactors | LikelihoodRatio | None = None  # applied to canonical variates
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
        if similarity is not None:
            if weighting not in ("auto", None):
                raise ValueError(
                    "similarity compares the scores of transform, and weighting the weighted "
                    f"ones; give one of them, got {similarity!r} and {weighting!r}."
                )
            return cls(estimator, "transform", checked_similarity(similarity))
        model: Any = fitted_steps(estimator)[-1]
        declared: Any
        method, declared = getattr(model, "retrieval_ranking", _DEFAULT)
        if weighting is None:
            return cls(estimator, "variates", "cosine")
        if weighting == "auto":
            if declared in SIMILARITIES:
                return cls(estimator, method, checked_similarity(declared))
            if getattr(model, "power", False):  # which weights the components
                return cls(estimator, "transform", "cosine")
            if hasattr(model, "weights_") and not hasattr(model, "expected_correlations_"):
                return cls(estimator, "variates", "cosine")  # saved before it estimated them
            weighting = declared
        return cls._weighted(estimator, model, weighting)

    @classmethod
    def _weighted(cls, estimator: Any, model: Any, weighting: str) -> Ranking:
        exponent = power_of(weighting)
        needed = "expected_deviations_" if weighting == "likelihood" else "expected_correlations_"
        if not hasattr(model, needed):
            if hasattr(model, "fit"):
                check_is_fitted(model)
            raise ValueError(
                f"weighting={weighting!r} needs an estimator with correlations; "
                f"{type(model).__name__} has no {needed}. Leave weighting at 'auto', or fit CCA, "
                "MVCCA, KCCA or a deep estimator that ends in CCA."
            )
        if weighting == "likelihood":
            ratio = LikelihoodRatio.of(model)
            return cls(estimator, "variates", "inner", ratio, weighting)
        rho, similarity = model.expected_correlations_, cast(Similarity, "cosine")
        if weighting == "profile-likelihood":
            similarity = ProfileCosine(np.minimum(rho, LARGEST_CORRELATION))
        factors = component_weights(rho) if exponent is None else rho**exponent
        return cls(estimator, "variates", similarity, ComponentFactors(factors), weighting)

    def project(self, X: Any, *second: Any) -> Any:
        """Rows to compare, in the container that `transform` returns.

        They are the items of a gallery; `queries` turns them into rows to query with.
        """
        *before, last = fitted_steps(self.estimator)
        for step in before:
            X = step.transform(X)
        return self._project(last, X, *second)

    def project_noting_empty(self, X: Any) -> tuple[Any, Empty]:
        """The same rows, and which rows of X are empty, view by view."""
        *before, last = fitted_steps(self.estimator)
        X, empty = transformed(before, X)
        return self._project(last, X), empty_for(last, X, empty)

    def _project(self, last: Any, X: Any, *second: Any) -> Any:
        if self.method != "variates":
            return getattr(last, self.method)(X, *second)
        if getattr(last, "power", 0):
            last = copy(last)
            last.power = 0.0
        scores = last.transform(X, *second)
        return scores if self.weights is None else _of_each(scores, last, self.weights.rows)

    def queries(
        self,
        rows: Mapping[str, np.ndarray],
        targets: tuple[str, ...],
        places: Mapping[str, np.ndarray] | None = None,
        n_queries: int | None = None,
        normalize: bool = False,
    ) -> np.ndarray:
        """Rows to query the given views with, from projected rows by view, as in `summed`."""
        if isinstance(self.weights, LikelihoodRatio):
            ratio = self.weights
            rows = {name: ratio.queries(name, block, targets) for name, block in rows.items()}
        return summed(rows, places, n_queries, normalize)

    def items(self, rows: Mapping[str, np.ndarray], normalize: bool = False) -> np.ndarray:
        """Rows to rank, from projected rows by view."""
        if isinstance(self.weights, LikelihoodRatio):
            return np.hstack(list(rows.values()))
        return summed(rows, normalize=normalize)

    @property
    def is_by_target(self) -> bool:
        """Whether queries depend on the views that they search."""
        return isinstance(self.weights, LikelihoodRatio)

    def __str__(self) -> str:
        if self.name:
            return self.name
        plain = self.method in ("transform", "variates")
        return str(self.similarity) if plain else f"{self.similarity} ({self.method})"


def _of_each(scores: Any, model: Any, function: Callable[[str, Any], Any]) -> Any:
    """`function` of the name and the scores of each view, in a container of the same type."""
    if isinstance(scores, Views):
        return scores.replace({name: function(name, block) for name, block in scores.items()})
    if isinstance(scores, Mapping):
        return {name: function(name, _array(block)) for name, block in scores.items()}
    if isinstance(scores, list | tuple):
        pairs = zip(model.view_names_, scores, strict=True)
        return type(scores)(function(name, _array(block)) for name, block in pairs)
    return function(model.view_names_[0], _array(scores))


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
