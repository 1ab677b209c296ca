"""Fit one method to the training part of a fold and measure it on the held-out part.

A method that cannot be fitted is an outcome with a reason; warnings are stored with the outcome
that caused them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from mvcca.comparison.data import Data
from mvcca.comparison.folds import Fold
from mvcca.comparison.progress import epochs_reported
from mvcca.comparison.registry import Method
from mvcca.comparison.texts import text_step, text_views
from mvcca.compose import PerView
from mvcca.inspection import pairwise_correlations
from mvcca.machine.memory import PeakMemory
from mvcca.retrieval import Measure, RetrievalTable, evaluate_retrieval
from mvcca.retrieval.chance import expected_at_random
from mvcca.retrieval.evaluate import Directions
from mvcca.retrieval.ranking import Ranking
from mvcca.retrieval.relevance import RelevanceBy
from mvcca.views import Views, as_views

CURVE_LENGTH = 50  # of the recall curve
SEARCH_FOLDS = 3  # within the training part
_FEW_ROWS = 100
RANKS = "mr"  # measure whose values of queries are ranks

Correlations = dict[tuple[str, str], np.ndarray]
Report = Callable[[str], None]  # shows progress


@dataclass(frozen=True, eq=False)
class Candidate:
    """A method to compare.

    Attributes
    ----------
    name : str
        Name in results.
    estimator : estimator
        It is cloned before it is fitted.
    learns_from : str
        Pairs, labels, or both.
    method : Method or None
        Entry of the registry, if it was selected by name.
    """

    name: str
    estimator: Any
    learns_from: str
    method: Method | None = None

    @property
    def is_deep(self) -> bool:
        """Whether it trains networks."""
        return hasattr(self.estimator, "callbacks")


@dataclass(frozen=True)
class Settings:
    """Settings common to all methods.

    Attributes
    ----------
    measures : tuple of str
        The first one determines the best method and the best hyper-parameters.
    relevance : {"pairs", "labels"} or None
    search : mapping of str to sequence
        Values of hyper-parameters.
    params : mapping of str to object
        Parameters of methods selected by name, where they have them.
    random_state : int
    directions : {"cross", "within", "all"} or iterable of (query, target)
    label_vectors : ndarray or None
        Word vectors of the labels that define relevance.
    """

    measures: tuple[str, ...]
    relevance: RelevanceBy | None
    search: Mapping[str, Sequence[Any]]
    params: Mapping[str, Any]
    random_state: int
    directions: Directions = "cross"
    label_vectors: np.ndarray | None = None

    def evaluate(
        self, X: Views, labels: Any, measures: Sequence[str], estimator: Any = None
    ) -> RetrievalTable:
        """Retrieval of views projected by an estimator, or of scores."""
        return evaluate_retrieval(
            X,
            labels,
            measures=measures,
            relevance=self.relevance,
            directions=self.directions,
            estimator=estimator,
            label_vectors=None if labels is None else self.label_vectors,
        )


@dataclass(frozen=True, eq=False)
class Measured:
    """A method fitted and measured on one fold.

    Attributes
    ----------
    table : RetrievalTable
        Measures of each direction, with the values of all queries.
    ranked_by : str
        Similarity that the method declares, in words.
    similarity : {"cosine", "euclidean", "inner"}
        Similarity of the rows in `shown`.
    curves : dict of (query, target) to ndarray
        Recall at 1, 2, ...; empty if neither pairs nor shared labels define it.
    train_correlations, test_correlations : dict of (str, str) to ndarray, or None
        Correlation of each component between pairs of views; None for unpaired views.
    fit_seconds, query_seconds : float
        Duration of the fit, without the search, and of ranking all held-out rows.
    peak_bytes : int or None
        Memory that the fit took.
    chosen : dict
        Hyper-parameters that the search chose.
    estimator : estimator
        Not fitted, with these hyper-parameters.
    n_components : int or None
    warnings : tuple of str
    shown : Views or None
        Held-out rows as they are compared, kept for the first fold.
    """

    table: RetrievalTable
    ranked_by: str
    similarity: Any
    curves: dict[tuple[str, str], np.ndarray]
    train_correlations: Correlations | None
    test_correlations: Correlations | None
    fit_seconds: float
    query_seconds: float
    peak_bytes: int | None
    chosen: dict[str, Any]
    estimator: Any
    n_components: int | None
    warnings: tuple[str, ...]
    shown: Views | None


@dataclass(frozen=True)
class Failed:
    """A method that could not be fitted or measured, and the reason."""

    reason: str


Outcome = Measured | Failed


def run_fold(
    candidate: Candidate, data: Data, fold: Fold, settings: Settings, report: Report | None = None
) -> Outcome:
    """Fit a method and measure it."""
    if "labels" in candidate.learns_from and data.y is None:
        return Failed("needs labels")
    if "labels" not in candidate.learns_from and not data.has_pairs:
        return Failed("needs objects seen in two views; these are unpaired")
    step = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            if candidate.method is not None:  # other estimators have a step for texts
                words = getattr(candidate.estimator, "tokens", None) or ()
                step = _fitted_text_step(data.views[fold.train], words)
            with threadpool_limits(1 if data.is_small else None):
                return _measured(candidate, data, fold, settings, report, caught, step)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit, too: other methods go on
            return Failed(_in_one_line(error))


def _fitted_text_step(train: Views, words: Collection[str]) -> PerView | None:
    """The step that turns texts into numbers, fitted to the training rows; None without texts."""
    return text_step(train, words).fit(train) if text_views(train) else None


def searching(candidate: Candidate, data: Data, rows: np.ndarray, settings: Settings) -> Any:
    """The estimator, within a search on `rows` if it has parameters with several values."""
    estimator = clone(candidate.estimator)
    grid = {k: list(v) for k, v in settings.search.items() if k in estimator.get_params()}
    if not grid:
        return estimator
    folds = data.folds(SEARCH_FOLDS, settings.random_state, rows)
    return GridSearchCV(
        estimator,
        grid,
        scoring=_OnObjects(settings, data.relevance_vectors),
        cv=[(fold.train, fold.test) for fold in folds],
        error_score="raise",  # the reason why the method has no values
    )


@dataclass(frozen=True)
class _OnObjects:
    """A scorer that looks up the labels that define relevance by the ids of the objects.

    They are not always the labels that a search splits and fits to.
    """

    settings: Settings
    labels: Any

    def __call__(self, estimator: Any, X: Views, y: Any = None) -> float:
        labels = None if self.labels is None else self.labels[np.asarray(X.ids) - 1]
        measure = self.settings.measures[0]
        value = self.settings.evaluate(X, labels, [measure], estimator).mean()[measure]
        return -value if Measure.parse(measure).smaller_is_better else value


def _measured(
    candidate: Candidate,
    data: Data,
    fold: Fold,
    settings: Settings,
    report: Report | None,
    caught: list[warnings.WarningMessage],
    step: PerView | None,
) -> Measured:
    held_out = data.views[fold.test]  # with texts
    if step is not None:
        data = replace(data, views=step.transform(data.views))
    train, test = data.views[fold.train], data.views[fold.test]
    estimator = searching(candidate, data, fold.train, settings)
    _warm_up(candidate, data, fold.train)
    y = data.labels_to_learn_from(fold.train)
    caught.clear()
    start = perf_counter()
    with PeakMemory() as memory, epochs_reported(estimator, report):
        estimator.fit(train, y)
    fit_seconds = getattr(estimator, "refit_time_", perf_counter() - start)
    start = perf_counter()
    has_ranks = data.has_pairs or settings.label_vectors is None
    measures = dict.fromkeys([*settings.measures, *([RANKS] if has_ranks else [])])
    whole = estimator if step is None else make_pipeline(step, estimator)
    table = settings.evaluate(held_out, data.relevance_of(fold.test), list(measures), whole)
    query_seconds = perf_counter() - start
    ranking = Ranking.of(estimator)
    fitted = getattr(estimator, "best_estimator_", estimator)
    return Measured(
        table,
        str(ranking),
        ranking.similarity,
        recall_curves(table),
        _correlations(estimator, train),
        _correlations(estimator, test),
        fit_seconds,
        query_seconds,
        memory.n_bytes,
        dict(getattr(estimator, "best_params_", {})),
        clone(fitted),
        getattr(fitted, "n_components_", None),
        tuple(dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught)),
        _shown(ranking, test) if fold.number == 0 else None,
    )


def _shown(ranking: Ranking, views: Views) -> Views:
    """Rows to compare; if queries depend on the target, those of the first two views."""
    rows = as_views(ranking.project(views))
    if not ranking.is_by_target:
        return rows
    source, target, *_ = rows.names
    queries = ranking.queries({source: rows[source]}, (target,))
    return rows.replace({source: queries, target: ranking.items({target: rows[target]})})


def by_chance(
    data: Data, fold: Fold, settings: Settings, measures: Sequence[str]
) -> RetrievalTable:
    """Exact expectation of measures if every query ranks its gallery in a random order."""
    labels = data.relevance_of(fold.test)
    return expected_at_random(
        data.views[fold.test],
        labels,
        measures=measures,
        relevance=settings.relevance,
        directions=settings.directions,
        label_vectors=None if labels is None else settings.label_vectors,
    )


def recall_curves(table: RetrievalTable) -> dict[tuple[str, str], np.ndarray]:
    """Share of ranks up to 1, 2, ... in each direction; empty without ranks."""
    lengths = np.arange(1, CURVE_LENGTH + 1)
    return {
        (row.query, row.target): (row.per_query[RANKS][:, None] <= lengths).mean(axis=0)
        for row in table
        if RANKS in row.per_query
    }


def _correlations(estimator: Any, views: Views) -> Correlations | None:
    """Correlations between projected views; None if no two views share objects."""
    shared = views.seen.T.astype(int) @ views.seen
    if (shared[~np.eye(len(shared), dtype=bool)] > 1).any():
        return pairwise_correlations(estimator.transform(views))
    return None


_warm: set[type] = set()


def _warm_up(candidate: Candidate, data: Data, rows: np.ndarray) -> None:
    """Fit to few rows first, so that compilation and imports are not timed."""
    kind = type(candidate.estimator)
    if kind in _warm or candidate.is_deep:
        return
    _warm.add(kind)
    with suppress(Exception, SystemExit):
        few = rows[np.linspace(0, len(rows) - 1, min(_FEW_ROWS, len(rows)), dtype=int)]
        clone(candidate.estimator).fit(data.views[few], data.labels_to_learn_from(few))


def _in_one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text if isinstance(error, ValueError) and text else f"{type(error).__name__}: {text}"
