"""Retrieval measures as scikit-learn scorers, for searches, cross-validation and learning curves.

A scorer projects held-out rows with the estimator and evaluates retrieval between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

from mvcca.retrieval import evaluate_retrieval
from mvcca.retrieval.evaluate import Names
from mvcca.retrieval.hubs import CSLS
from mvcca.retrieval.measure import Measure
from mvcca.retrieval.ranking import (
    Ranking,
    Weighting,
    checked_weighting,
    fitted_steps,
    with_bank,
)
from mvcca.retrieval.relevance import RelevanceBy
from mvcca.retrieval.similarity import Similarity, similarity_of
from mvcca.retrieval.table import check_several_items
from mvcca.views import Views, as_views, holds_views
from mvcca.views.labels_by_view import is_per_view
from mvcca.views.typing import LabelsLike, MatrixLike, ViewsLike

__all__ = ["RetrievalScorer", "retrieval_scorer"]


def retrieval_scorer(
    measure: str = "map@50",
    query: str | Sequence[str] | None = None,
    target: str | Sequence[str] | None = None,
    *,
    relevance: RelevanceBy | None = None,
    similarity: Similarity | None = None,
    weighting: Weighting | None = "auto",
    hubness: str | CSLS | None = None,
    bank: ViewsLike | tuple[MatrixLike, MatrixLike] | None = None,
    label_vectors: Any = None,
) -> RetrievalScorer:
    """Make a scikit-learn scorer from a retrieval measure.

    Parameters
    ----------
    measure : str, default="map@50"
        Name of a measure; see `mvcca.retrieval.evaluate_retrieval`. Ranks (``mr``, ``mean_rank``)
        are negated, so that larger is better.
    query, target : str or sequence of str, optional
        Views of the queries and of the gallery; the projections of several views are added. By
        default the score is the mean over all ordered pairs of different views, or over those with
        the one view named. The same view twice, or a single view, is retrieval within that view.
    relevance : {"pairs", "labels"}, optional
        By default labels for ``map`` and ``p`` and pairs for ranks, if there are any.
    similarity : {"cosine", "euclidean", "inner"}, optional
        Similarity of the rows of ``transform``. By default the ranking that the fit chose
        (``ranking_``) or the class declares (``retrieval_ranking``), and cosine if there is none.
    weighting : str or None, default="auto"
        Weighting of the components by their correlations, as in
        `mvcca.retrieval.evaluate_retrieval`.
    hubness : {"csls"} or CSLS, optional
        Correction for hubs, as in `mvcca.retrieval.evaluate_retrieval`.
    bank : Views, mapping or list, or a pair of matrices (X, y), optional
        Rows that the correction compares with, projected by each estimator. They must not be among
        the rows to score: in a cross-validation, keep them out of all folds.
    label_vectors : array-like or mapping, optional
        Word vectors of the labels, for ``wmap``, as in `mvcca.retrieval.evaluate_retrieval`.

    Returns
    -------
    RetrievalScorer
        ``scorer(estimator, X, y) -> float``, to pass as ``scoring``. X is an argument of the
        estimator's `transform`. y is labels if X is a container of views or the estimator requires
        labels; for a single matrix X and an unsupervised estimator y is the second view.

    Raises
    ------
    ValueError
        If a name is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import GridSearchCV
    >>> from mvcca import CCA, Views, retrieval_scorer
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 4))
    >>> views = Views({"image": X, "text": X[:, :3] + 0.1 * rng.normal(size=(60, 3))})
    >>> search = GridSearchCV(CCA(2), {"reg": [0.1, 1.0]}, scoring=retrieval_scorer("mrr"))
    >>> bool(search.fit(views).best_score_ > 0.5)
    True
    """
    Measure.parse(measure)
    if similarity is not None:
        similarity_of(similarity)
    if weighting not in ("auto", None):
        checked_weighting(weighting)
    if relevance not in (None, "pairs", "labels"):
        raise ValueError(f"Expected relevance to be 'pairs', 'labels' or None, got {relevance!r}.")
    with_bank(weighting, hubness, bank)
    query, target = (
        name if isinstance(name, str | None) else tuple(name) for name in (query, target)
    )
    return RetrievalScorer(
        measure, query, target, relevance, similarity, hubness, bank, label_vectors, weighting
    )


@dataclass(frozen=True)
class RetrievalScorer:
    """A retrieval measure as ``scorer(estimator, X, y)``; made by `retrieval_scorer`.

    Attributes
    ----------
    measure, query, target, relevance, similarity, hubness, bank, label_vectors
    weighting
        As given to `retrieval_scorer`.
    """

    measure: str
    query: str | tuple[str, ...] | None
    target: str | tuple[str, ...] | None
    relevance: RelevanceBy | None
    similarity: Similarity | None
    hubness: str | CSLS | None = None
    bank: Any = None
    label_vectors: Any = None
    weighting: Weighting | None = "auto"

    def __call__(
        self,
        estimator: Any,
        X: ViewsLike | MatrixLike,
        y: LabelsLike | MatrixLike | None = None,
    ) -> float:
        """Project X and evaluate retrieval.

        Parameters
        ----------
        estimator : fitted estimator
            Anything with `transform`, a pipeline included.
        X : Views, mapping, list of matrices, or matrix
            Held-out rows.
        y : labels or matrix, optional
            Labels, or the second view.

        Returns
        -------
        float
            Larger is better.

        Raises
        ------
        ValueError
            If the views are unknown, nothing is relevant to anything, or every gallery holds one
            item.
        """
        views: Any
        bank = self.bank
        weighting, hubness = with_bank(self.weighting, self.hubness, bank)
        ranking: dict[str, Any] = {"similarity": self.similarity, "weighting": weighting}
        if holds_views(X):
            views, y = _unpaired(X, y) if y is not None and is_per_view(X, y) else (X, y)
            ranking["estimator"] = estimator
            bank = Views(dict(zip("Xy", bank, strict=True))) if isinstance(bank, tuple) else bank
        else:  # `transform` takes matrices that have no names
            projected = Ranking.of(estimator, **ranking)
            views, y = _projected(projected, X, y)
            ranking = {"estimator": replace(projected, steps=())}  # which projects no more
            if bank is not None:
                paired = isinstance(bank, tuple)
                if paired:
                    bank, _ = _projected(projected, *bank)
                else:
                    bank = projected.project(bank).rows
        table = evaluate_retrieval(
            views,
            y,
            measures=self.measure,
            relevance=self.relevance,
            directions=self._directions(_ranked_names(estimator, as_views(views, unpaired=True))),
            hubness=hubness,
            bank=bank,
            label_vectors=self.label_vectors,
            **ranking,
        )
        check_several_items(row.n_gallery for row in table)
        return Measure.parse(self.measure).sign * table.mean()[self.measure]

    def _directions(self, names: Sequence[str]) -> list[tuple[Names, Names]]:
        queries: Sequence[Names] = names if self.query is None else (self.query,)
        targets: Sequence[Names] = names if self.target is None else (self.target,)
        if len(names) == 1 or (self.query is not None and self.query == self.target):
            return [(query, target) for query in queries for target in targets]
        return [(query, target) for query in queries for target in targets if query != target]


def _ranked_names(estimator: Any, views: Views) -> list[str]:
    """Names of the views that get scores: confounds get none."""
    confounds = [getattr(step, "confounds", None) for step in fitted_steps(estimator)]
    return [name for name in views.names if name not in confounds]


def _unpaired(X: Any, y: Any) -> tuple[Views, Mapping[str, Any]]:
    """Views with labels for each, as `evaluate_retrieval` takes them."""
    views = as_views(X, unpaired=True)
    return views, y if isinstance(y, Mapping) else dict(zip(views.names, y, strict=True))


def _projected(ranking: Ranking, X: Any, y: Any) -> tuple[Views, Any]:
    """The projection of a single matrix X; y is the second view, or labels of X."""
    *before, model = ranking.steps
    takes_second = _takes_second_view(model)
    if takes_second and before:
        raise ValueError(
            "A pipeline transforms X alone, so the second view y cannot be projected. Pass both "
            "as Views, as in Views({'X': X, 'y': y})."
        )
    if takes_second and y is not None:
        first, second = ranking.project_matrices(X, y)
        return Views({"X": first, "y": second}), None
    return Views({"X": ranking.project_matrices(X)[0]}), y


def _takes_second_view(estimator: Any) -> bool:
    """Whether `transform` projects a second matrix, as in scikit-learn's cross decomposition."""
    names = getattr(estimator, "view_names_", None)
    if names is not None:  # a label-supervised estimator has the same signature
        return "y" in names
    return bool({"y", "Y"} & set(signature(estimator.transform).parameters))
