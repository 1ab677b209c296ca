"""The ranking of an estimator, as it declares it in `retrieval_ranking` or as a user asks for it.

A ranking is two functions, from projected rows to query vectors and to item vectors, and one inner
product. A weighting makes the rows to compare from the scores of each view, these are added over
views, and the similarity makes vectors of the sums. Evaluation, index, scorers, plots and the
command line all read the declaration here. A new weighting is a case of `_weighted_by`, with its
name in `WEIGHTINGS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from mvcca.blocks import as_block, namespace
from mvcca.measures import unit_rows
from mvcca.problem import LARGEST_CORRELATION, component_weights
from mvcca.retrieval.search.gallery import checked_rows
from mvcca.retrieval.similarity import (
    SIMILARITIES,
    Cosine,
    InnerProduct,
    Similarity,
    similarity_of,
)
from mvcca.views import Views, as_views

WEIGHTINGS = ("likelihood", "profile-likelihood", "likelihood-cosine", "correlation")
Weighting = str  # a name of WEIGHTINGS, "correlation^P", or "auto"

_DEFAULT = ("transform", "cosine")


@dataclass(frozen=True, eq=False)
class Projected:
    """Rows of views as an estimator projects them."""

    scores: Views  # before any weighting
    rows: Views  # to compare: the weighted scores
    empty: Mapping[str, np.ndarray]  # (n_rows,), rows in which it knows nothing, where some are


@dataclass(frozen=True, eq=False, kw_only=True)
class Ranking:
    """How rows of an estimator are compared."""

    similarity: InnerProduct  # of the rows of queries and items
    factors: np.ndarray | None = None  # (n_components,), of the scores
    steps: tuple[Any, ...] = ()  # fitted transformers and the model; none if rows are projected
    method: str = "transform"  # of the model, whose rows are compared
    name: str = ""  # of the weighting

    is_by_target: ClassVar[bool] = False  # whether queries depend on the views that they search

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
            return Ranking(similarity=similarity_of(similarity), steps=steps)
        if weighting == "auto":
            method, declared = getattr(model, "retrieval_ranking", _DEFAULT)
            if declared not in SIMILARITIES and getattr(model, "power", False):
                method, declared = _DEFAULT  # the power weights the components
            elif declared not in SIMILARITIES and (
                hasattr(model, "weights_") and not hasattr(model, "expected_correlations_")
            ):  # saved before estimators estimated correlations
                method, declared = "variates", "cosine"
        elif weighting is not None:
            checked_weighting(weighting)
            declared = weighting
        if declared in SIMILARITIES:
            return Ranking(similarity=similarity_of(declared), steps=steps, method=method)
        return _weighted_by(declared, steps)

    def project(self, X: Any, unpaired: bool = False) -> Projected:
        """Project the rows of a container of views, and note which are empty.

        Rows of a mapping or a list are those of the same objects unless they are `unpaired`.
        """
        *before, model = self.steps
        empty: dict[str, np.ndarray] = {}
        for step in before:
            if hasattr(step, "transform_noting_empty"):
                X, found = step.transform_noting_empty(X)
                empty |= {name: rows | empty.get(name, False) for name, rows in found.items()}
            else:
                X = step.transform(X)
        names = getattr(model, "view_names_", None)
        views = projected = as_views(X, names, unpaired=unpaired)
        if hasattr(model, "project"):
            scores = model.project(views, self.method)
        else:  # an estimator of another package
            projected = as_views(self._called(X), names, unpaired=unpaired)
            scores = {name: _numbers(block) for name, block in projected.items()}
        seen, ids = projected.seen, projected.ids
        rows = as_scores = Views.of({n: as_block(own) for n, own in scores.items()}, seen, ids)
        if self.name:
            compared = {n: as_block(self.of_view(n, own)) for n, own in scores.items()}
            rows = Views.of(compared, seen, ids)
        if empty or views.is_sparse or hasattr(model, "rows_without_words"):
            empty = _empty_rows(model, views, empty)
        return Projected(as_scores, rows, empty)

    def project_matrices(self, X: Any, *second: Any) -> list[Any]:
        """Rows to compare of one matrix without a name, or of two."""
        *before, model = self.steps
        for step in before:
            X = step.transform(X)
        scores = self._called(X, *second)
        matrices = scores if isinstance(scores, tuple) else (scores,)
        if not self.name:
            return list(matrices)
        named = zip(model.view_names_, matrices, strict=False)
        return [self.of_view(name, _numbers(own)) for name, own in named]

    def _called(self, *X: Any) -> Any:
        """What the method of the model returns."""
        model = self.steps[-1]
        if self.method == "variates":
            return getattr(model, "variates", model.transform)(*X)
        return getattr(model, self.method)(*X)

    def of_view(self, name: str, scores: Any) -> Any:
        """Rows of one view to compare, from its scores."""
        return scores if self.factors is None else scores * as_block(scores).placed(self.factors)

    def queries(
        self,
        rows: Mapping[str, np.ndarray],
        targets: tuple[str, ...],
        places: Mapping[str, np.ndarray] | None = None,
        n_queries: int | None = None,
        normalize: bool = False,
    ) -> np.ndarray:
        """Rows to query the given views with, as in `summed`, from rows of single views."""
        if len(rows) == 1 and places is None and not normalize:
            return next(iter(rows.values()))
        return summed(rows, places, n_queries, normalize)

    def items(self, rows: Mapping[str, np.ndarray], normalize: bool = False) -> np.ndarray:
        """Rows to rank, from rows of single views."""
        if len(rows) == 1 and not normalize:
            return next(iter(rows.values()))
        return summed(rows, normalize=normalize)

    @property
    def compares_scores(self) -> bool:
        """Whether it compares what `transform` returns, if only with other weights."""
        return self.method in ("transform", "variates")

    def __str__(self) -> str:
        if self.name:
            return self.name
        if self.compares_scores:
            return self.similarity.name
        return f"{self.similarity.name} ({self.method})"


@dataclass(frozen=True, eq=False, kw_only=True)
class LikelihoodRatio(Ranking):
    """Log-likelihood ratio of "these rows show the same object", if views are jointly Gaussian.

    With scores a of view p and b of view q in units of their standard deviations, and the
    correlations ρ of these two views, it is the inner product of the vectors

        query  (w a, e_p, -Σ_i v_i a_i² / 2 - Σ_i log(1 - ρ_i²) / 2),
        item   (b, (-Σ_i v_i b_i² / 2 for every view p), 1),

    w = ρ / (1 - ρ²), v = ρ² / (1 - ρ²). Item vectors do not depend on the view of the query, whose
    unit vector e_p selects the term of its correlations. Queries of several views are added, which
    adds their ratios; so does setting the vectors of several target views side by side.
    """

    views: tuple[str, ...]
    correlations: np.ndarray  # (n_views, n_views, k)
    deviations: Mapping[str, np.ndarray]  # (k,)

    is_by_target = True

    def of_view(self, name: str, scores: Any) -> Any:
        """Item vectors of a view's scores, (n_rows, k + n_views + 1)."""
        xp, deviations = namespace(scores), self.deviations[name]
        units = np.divide(1, deviations, out=np.zeros_like(deviations), where=deviations > 0)
        scores = scores * as_block(scores).placed(units)
        rho = self.correlations[self.views.index(name)]
        terms = (scores * scores) @ as_block(scores).placed((rho**2 / (1 - rho**2)).T / -2)
        return xp.concat([scores, terms, xp.ones_like(terms[:, :1])], axis=1)

    def queries(
        self,
        rows: Mapping[str, np.ndarray],
        targets: tuple[str, ...],
        places: Mapping[str, np.ndarray] | None = None,
        n_queries: int | None = None,
        normalize: bool = False,
    ) -> np.ndarray:
        """Query vectors from item vectors, added over the views of the queries."""
        vectors = {name: self._queries_of(name, own, targets) for name, own in rows.items()}
        return summed(vectors, places, n_queries, normalize)

    def items(self, rows: Mapping[str, np.ndarray], normalize: bool = False) -> np.ndarray:
        """Item vectors of all target views side by side."""
        return np.hstack(list(rows.values()))

    def _queries_of(self, name: str, rows: np.ndarray, targets: tuple[str, ...]) -> np.ndarray:
        p, n = self.views.index(name), len(self.views)
        parts = []
        for q in map(self.views.index, targets):
            rho = self.correlations[p, q]
            queries = np.zeros_like(rows)
            queries[:, : -n - 1] = rows[:, : -n - 1] * (rho / (1 - rho**2))
            queries[:, p - n - 1] = 1
            queries[:, -1] = rows[:, q - n - 1] - np.log1p(-(rho**2)).sum() / 2
            parts.append(queries)
        return np.hstack(parts)


def summed(
    rows: Mapping[str, np.ndarray],
    places: Mapping[str, np.ndarray] | None = None,
    n_objects: int | None = None,
    normalize: bool = False,
) -> np.ndarray:
    """Sum rows of each object over the views that show it, (n_objects, n_components)."""
    # Without `places`, the object of each row by view, row i of every view shows object i. Sums of
    # objects that no view shows are 0.
    widths = {name: block.shape[1] for name, block in rows.items()}
    if len(set(widths.values())) > 1:
        raise ValueError(f"Views must be projected into one space, got widths {widths}.")
    first = next(iter(rows.values()))
    n_objects = len(first) if places is None else n_objects
    total = np.zeros((n_objects or 0, first.shape[1]), np.result_type(*rows.values()))
    for name, block in rows.items():
        seen = slice(None) if places is None else places[name]
        total[seen] += unit_rows(block) if normalize else block
    return checked_rows(total, f"the sum of views {list(rows)}")


def _weighted_by(name: str, steps: tuple[Any, ...]) -> Ranking:
    """The ranking with a weighting by the correlations of a fitted model."""
    model = steps[-1]
    how: dict[str, Any] = {"steps": steps, "method": "variates", "name": name}
    needed = "expected_deviations_" if name == "likelihood" else "expected_correlations_"
    if not hasattr(model, needed):
        if hasattr(model, "fit"):
            check_is_fitted(model)
        raise ValueError(
            f"weighting={name!r} needs an estimator with correlations; {type(model).__name__} has "
            f"no {needed}. Leave weighting at 'auto', or fit CCA, MVCCA, KCCA or a deep estimator "
            "that ends in CCA."
        )
    if name == "likelihood":
        return LikelihoodRatio(
            similarity=InnerProduct(),
            views=model.view_names_,
            correlations=np.clip(model.expected_correlations_by_pair_, 0, LARGEST_CORRELATION),
            deviations=model.expected_deviations_,
            **how,
        )
    rho = model.expected_correlations_
    if name == "profile-likelihood":
        rho = np.minimum(rho, LARGEST_CORRELATION)
        return Ranking(similarity=Cosine(rho), factors=component_weights(rho), **how)
    power = None if name == "likelihood-cosine" else checked_weighting(name)
    factors = component_weights(rho) if power is None else rho**power
    return Ranking(similarity=Cosine(), factors=factors, **how)


def checked_weighting(name: str) -> float | None:
    """P of "correlation^P", 1 of "correlation"; None for another weighting.

    Raises
    ------
    ValueError
        If the name is unknown or the power no number of at least 0.
    """
    kind, hat, power = name.partition("^")
    if kind == "correlation":
        try:
            value = float(power) if hat else 1.0
        except ValueError:
            value = -1.0
        if 0 <= value < np.inf:
            return value
    elif not hat and kind in WEIGHTINGS:
        return None
    raise ValueError(
        f"Expected weighting to be 'auto', None, one of {list(WEIGHTINGS)} or 'correlation^P' with "
        f"a power P of at least 0, got {name!r}."
    )


def fitted_steps(estimator: Any) -> list[Any]:
    """Fitted steps of nested pipelines and searches, in order."""
    if hasattr(estimator, "best_estimator_"):
        return fitted_steps(estimator.best_estimator_)
    if not isinstance(estimator, Pipeline):
        return [estimator]
    parts = [part for _, part in estimator.steps if part not in (None, "passthrough")]
    return [step for part in parts for step in fitted_steps(part)]


def _numbers(block: Any) -> Any:
    """The numbers of a DataFrame; other blocks unchanged."""
    return block.to_numpy() if hasattr(block, "to_numpy") else block


def _empty_rows(
    model: Any, views: Views, before: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Rows of views that hold nothing a model knows, and those noted by earlier steps."""
    rows_without_words = getattr(model, "rows_without_words", None)
    empty = {}
    for name, block in views.blocks.items():
        noted = [before.get(name), block.empty_rows() if block.is_sparse else None]
        if rows_without_words is not None:
            noted.append(rows_without_words(name, block.matrix))
        found = [rows for rows in noted if rows is not None]
        if found and (rows := np.logical_or.reduce(found)).any():
            empty[name] = rows
    return empty
