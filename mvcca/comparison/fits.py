"""Fit and measure one method, fold by fold.

`Conditions.advance` takes a method one fold further: held-out rows are ranked under every setting,
each of which is fitted once, and values of their objects are kept for all goals. `measured` fits
the chosen setting for what only reports show: other measures, correlations, costs and examples. A
method that cannot be fitted is an outcome with a reason.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import DataDimensionalityWarning
from sklearn.pipeline import make_pipeline

from mvcca.blocks.checks import is_about_finite
from mvcca.comparison.candidates import Candidate, Settings
from mvcca.comparison.data import Data
from mvcca.comparison.progress import Report, epochs_reported
from mvcca.comparison.texts import text_step
from mvcca.inspection import pairwise_correlations
from mvcca.machine.deadline import NO_DEADLINE, Deadline, OutOfTime
from mvcca.machine.memory import PeakMemory
from mvcca.model_selection import (
    Asked,
    Choice,
    Goal,
    RankedSample,
    Space,
    SpaceSearch,
    Trials,
    Value,
    Variant,
    choice_of,
    choice_with_components,
    fit_chosen,
    held_out_source,
    values_by_ranking,
)
from mvcca.model_selection.folds import Fold
from mvcca.retrieval import RetrievalTable, evaluate_retrieval
from mvcca.retrieval.collection import Projected
from mvcca.retrieval.evaluate import expected_at_random
from mvcca.retrieval.ranking import Ranking
from mvcca.views import Labels, Views
from mvcca.views.labels_by_view import LabelsByView

CURVE_LENGTH = 50  # of the recall curve
_FEW_ROWS = 100
RANKS = "mr"  # measure whose values of queries are ranks

Correlations = dict[tuple[str, str], np.ndarray]


@dataclass(frozen=True, eq=False)
class Shown:
    """Held-out rows for figures, and how they are ranked."""

    projected: Projected
    ranking: Ranking  # of projected rows
    scores: Views  # of `transform`, before any weighting

    @property
    def in_one_space(self) -> Views:
        """Rows to draw together; query and item vectors of the likelihood are not comparable."""
        return self.scores if self.ranking.is_by_target else self.projected.rows


@dataclass(frozen=True, eq=False)
class Measured:
    """A method fitted and measured on one fold."""

    table: RetrievalTable  # of each direction, with the values of all queries
    ranked_by: str  # as the fit chose it or the method declares it, in words
    train_correlations: Correlations | None  # of each component by pair of views; None if unpaired
    test_correlations: Correlations | None
    fit_seconds: float  # without the search
    query_seconds: float  # of ranking all held-out rows
    peak_bytes: int | None  # that the fit took
    choice: Choice | None  # of a tuned method
    chosen: dict[str, Any]  # hyper-parameters that tuning or the search chose
    estimator: Any  # not fitted; parameters that folds chose are "cv"
    n_components: int | None
    warnings: tuple[str, ...]
    shown: Shown | None  # of the first fold

    @property
    def curves(self) -> list[np.ndarray]:
        """Recall at 1, 2, ... in each direction; empty if neither pairs nor labels define it."""
        lengths = np.arange(1, CURVE_LENGTH + 1)
        ranks = [row.per_query[RANKS] for row in self.table if RANKS in row.per_query]
        return [(of_queries[:, None] <= lengths).mean(axis=0) for of_queries in ranks]


@dataclass(eq=False)
class MethodRun:
    """One method on the folds so far.

    Attributes
    ----------
    trials : dict
        By goal, the values of its settings on the folds, which choose the best one.
    measured : dict
        By number of the fold, what else was measured of a method with a single setting.
    seconds : dict
        By number of the fold, how long it took.
    failure : str
        Why the method has no values; empty if it has.
    is_dropped : bool
        Whether it was not taken further because it cannot be the best one.
    space, found, tried
        What is searched, and the state of the search.
    """

    trials: dict[Goal, Trials] = field(default_factory=dict)
    measured: dict[int, Measured] = field(default_factory=dict)
    seconds: dict[int, float] = field(default_factory=dict)
    failure: str = ""
    is_dropped: bool = False
    space: Space | None = None
    found: dict[Any, Trials] = field(default_factory=dict)
    tried: set[Any] = field(default_factory=set)

    @property
    def folds(self) -> list[int]:
        """Numbers of the folds that it has values of."""
        return list(self.seconds)

    def values(self, goal: Goal) -> dict[int, Value]:
        """Values of the best setting by fold."""
        return self.trials[goal].values[self.trials[goal].best]

    def choice(self, goal: Goal, candidate: Candidate) -> Choice | None:
        """The best settings for a goal; None if there is nothing to choose."""
        trials = self.trials[goal]
        if candidate.is_tuned:
            assert self.space is not None
            return choice_with_components(trials, candidate.estimator, self.space)
        return trials.choose() if len(trials.settings) > 1 else None

    def finished(self) -> MethodRun:
        """Without the state of the search, whose values take memory."""
        trials = {}
        for goal, own in self.trials.items():
            kept = {v: {n: value[:2] for n, value in by.items()} for v, by in own.values.items()}
            trials[goal] = replace(own, values={**kept, own.best: own.values[own.best]})
        return replace(self, trials=trials, found={}, tried=set())


@dataclass(frozen=True, eq=False)
class Conditions:
    """What all methods of a comparison have in common; `limit` stops fits at its next tick."""

    data: Any  # `Data`; None on the way to another process
    folds: Sequence[Fold]
    settings: Settings
    asked: Asked
    limit: Deadline = NO_DEADLINE

    def advance(
        self, candidate: Candidate, run: MethodRun, n_folds: int, report: Report | None = None
    ) -> MethodRun:
        """Take a method on to so many folds; the run is changed and returned."""
        reason = candidate.lacks(self.data)
        if reason is not None:
            return replace(run, failure=reason)
        fold = self.folds[n_folds - 1]
        if report is not None:
            where = f"{candidate.name}, fold {n_folds} of {len(self.folds)}, "
            report = partial(_prefixed, report, where)
        start = perf_counter()
        with warnings.catch_warnings(record=True) as caught, self.limit.enforced():
            warnings.simplefilter("always")
            try:
                if candidate.is_tuned:
                    self._search(candidate, run, n_folds)
                else:
                    self._fit(candidate, run, fold, report, caught)
            except KeyboardInterrupt:
                raise
            except OutOfTime:
                return run
            except BaseException as error:  # SystemExit, too: other methods go on
                run.failure = self._reason(error, fold)
                return run
        run.seconds[fold.number] = perf_counter() - start
        return run

    def _reason(self, error: BaseException, fold: Fold) -> str:
        where = f"fold {fold.number + 1} of {len(self.folds)} cannot be fitted and measured: "
        return f"{where if fold.number else ''}{_reason(error, self.data)}"

    def _search(self, candidate: Candidate, run: MethodRun, n_folds: int) -> None:
        """Search the settings of a tuned method on the first folds."""
        sources = []
        for fold in self.folds[:n_folds]:
            views = self.data.views
            if candidate.method is not None and self.data.texts:
                views = text_step(views[fold.train]).fit(views[fold.train]).transform(views)
            everything = np.arange(len(views))
            source = held_out_source(
                candidate.estimator,
                views,
                candidate.labels_of(self.data, everything),
                fold.train,
                fold.test,
                replace(self.asked, goals=candidate.goals),
                self.data.relevant_labels,
                run.space,
            )
            run.space = source.space
            sources.append(source)
        search = SpaceSearch(sources, by_heads=False, found=run.found, tried=run.tried)
        run.trials = search.choices()
        search.check_folds()

    def _fit(
        self,
        candidate: Candidate,
        run: MethodRun,
        fold: Fold,
        report: Report | None,
        caught: list[warnings.WarningMessage],
    ) -> None:
        """Fit the only setting, or each of a grid, and rank the held-out rows."""
        grid = candidate.grid(self.settings)
        data, step = _with_numbers(candidate, self.data, fold)
        for number, setting in enumerate(grid):
            fitted = _fitted(candidate, data, fold, self.settings, setting, report, caught)
            ranking = Ranking.of(
                fitted.estimator if step is None else make_pipeline(step, fitted.estimator)
            )
            table = None
            if len(grid) == 1 or self.settings.by_measure(self.data):
                held_out = self.data.views[fold.test]
                found = _measured(data, held_out, fold, self.settings, fitted, ranking, caught)
                table = found.table
                run.measured[fold.number] = found
            values = self._values(ranking, table, fold, candidate.goals)
            for goal, value in values.items():
                trials = run.trials.setdefault(goal, Trials(goal, list(grid), by_heads=False))
                trials.add(fold.number, Variant(number, str(ranking), None, goal), value)
        if len(grid) > 1:
            run.measured.clear()
        for trials in run.trials.values():
            vars(trials).pop("best", None)  # of fewer folds
            vars(trials).pop("_complete", None)

    def _values(
        self, ranking: Ranking, table: RetrievalTable | None, fold: Fold, goals: tuple[Goal, ...]
    ) -> dict[Goal, Value]:
        if table is not None and self.settings.by_measure(self.data):
            return dict.fromkeys(goals, _value_of_table(table, self.settings, fold))
        sample = self.sample(fold)
        return values_by_ranking(ranking, replace(sample, asked=replace(self.asked, goals=goals)))

    def sample(self, fold: Fold) -> RankedSample:
        """The held-out rows that are ranked."""
        labels = self.data.relevant_labels
        judged = None if labels is None else LabelsByView.of(self.data.views, labels)
        return RankedSample.of(self.data.views, judged, fold.test, asked=self.asked)

    def measure(self, candidate: Candidate, fold: Fold, choice: Choice | None) -> Measured:
        """Fit a method with its chosen settings and measure all that reports show."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            data, step = _with_numbers(candidate, self.data, fold)
            fitted = _fitted(candidate, data, fold, self.settings, choice, None, caught)
            model = fitted.estimator
            ranking = Ranking.of(model if step is None else make_pipeline(step, model))
            held_out = self.data.views[fold.test]
            return _measured(data, held_out, fold, self.settings, fitted, ranking, caught)


def _value_of_table(table: RetrievalTable, settings: Settings, fold: Fold) -> Value:
    """The first measure as a value; the larger, the better."""
    name = settings.measures[0]
    sign = settings.sign
    score = sign * table.mean()[name]
    of_objects = np.full((len(fold.test), len(table)), np.nan)
    for column, row in enumerate(table):
        if name in row.per_query:
            of_objects[row.query_objects[name], column] = sign * row.per_query[name]
    return Value(score, score, of_objects, tuple(row.n_gallery for row in table))


def _prefixed(report: Report, where: str, message: str) -> None:
    report(f"{where}{message}")


def quiet_if_searching_ridges(settings: Settings) -> AbstractContextManager[Any]:
    """Ignore warnings that a ridge of a search is too small for the rows: its folds judge that."""
    if "reg" not in settings.search:
        return nullcontext()
    return warnings.catch_warnings(action="ignore", category=DataDimensionalityWarning)


def _options(
    settings: Settings, labels: Labels | None, objects: np.ndarray, measures: Sequence[str]
) -> dict[str, Any]:
    """What an evaluation of some objects takes of the settings."""
    return {
        "labels": None if labels is None else labels[objects],
        "measures": measures,
        "relevance": settings.relevance,
        "directions": settings.directions,
        "label_vectors": None if labels is None else settings.label_vectors,
    }


def _with_numbers(candidate: Candidate, data: Data, fold: Fold) -> tuple[Data, Any]:
    """Data with numbers in place of texts for methods by name, and the step that makes them."""
    if candidate.method is None or not data.texts:  # others have a step
        return data, None
    words = getattr(candidate.estimator, "tokens", None) or ()
    step = text_step(data.views[fold.train], words).fit(data.views[fold.train])
    return replace(data, views=step.transform(data.views)), step


@dataclass(frozen=True)
class _Fitted:
    estimator: Any
    choice: Choice | None
    chosen: dict[str, Any]
    seconds: float
    peak_bytes: int | None


def _fitted(
    candidate: Candidate,
    data: Data,
    fold: Fold,
    settings: Settings,
    choice: Any,
    report: Report | None,
    caught: list[warnings.WarningMessage],
) -> _Fitted:
    """A method fitted with a choice of folds, or with the parameters of a mapping."""
    train, estimator = data.views[fold.train], clone(candidate.estimator)
    _warm_up(candidate, data, fold.train)
    y = candidate.labels_of(data, fold.train)
    params = choice.params if isinstance(choice, Choice) else choice or {}
    caught.clear()
    watching = nullcontext() if report is None else epochs_reported(estimator, report)
    start = perf_counter()
    with PeakMemory() as memory, watching, quiet_if_searching_ridges(settings):
        if candidate.is_tuned:
            fit_chosen(estimator, choice, train, y)
        else:
            estimator.set_params(**params).fit(train, y)
    seconds = getattr(estimator, "refit_time_", perf_counter() - start)
    return _Fitted(
        estimator,
        choice if candidate.is_tuned else None,
        {**getattr(estimator, "best_params_", {}), **params},
        seconds,
        memory.n_bytes,
    )


def _measured(
    data: Data,
    held_out: Views,
    fold: Fold,
    settings: Settings,
    fitted: _Fitted,
    ranking: Ranking,
    caught: list[warnings.WarningMessage],
) -> Measured:
    estimator, start = fitted.estimator, perf_counter()
    projected = ranking.project(held_out)
    has_ranks = data.has_pairs or settings.label_vectors is None
    measures = list(dict.fromkeys([*settings.measures, *([RANKS] if has_ranks else [])]))
    options = _options(settings, data.relevant_labels, fold.test, measures)
    table = evaluate_retrieval(projected, estimator=ranking, **options)
    query_seconds = perf_counter() - start
    train, scores = data.views[fold.train], projected.scores
    transformed = Ranking.of(estimator, "cosine")
    if not ranking.compares_scores:
        scores = transformed.project(data.views[fold.test]).scores
    best = getattr(estimator, "best_estimator_", estimator)
    choice = fitted.choice or choice_of(best)  # of an estimator that tunes itself
    chosen = {} if choice is None else choice.params
    return Measured(
        table,
        str(ranking),
        _correlations(train, lambda views: transformed.project(views).scores),
        _correlations(held_out, lambda _: scores),
        fitted.seconds,
        query_seconds,
        fitted.peak_bytes,
        choice,
        {**fitted.chosen, **chosen},
        clone(getattr(estimator, "best_estimator_", estimator)),
        getattr(best, "n_components_", None),
        tuple(dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught)),
        Shown(projected, replace(ranking, steps=()), scores) if fold.number == 0 else None,
    )


def by_chance(
    data: Data, fold: Fold, settings: Settings, measures: Sequence[str]
) -> RetrievalTable:
    """Exact expectation of measures if every query ranks its gallery in a random order."""
    options = _options(settings, data.relevant_labels, fold.test, measures)
    return expected_at_random(data.views[fold.test], **options)


def _correlations(views: Views, project: Callable[[Views], Any]) -> Correlations | None:
    """Correlations between projected views; None if no two views share objects."""
    shared = views.seen.T.astype(int) @ views.seen
    if (shared[~np.eye(len(shared), dtype=bool)] > 1).any():
        return pairwise_correlations(project(views))
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
        clone(candidate.estimator).fit(data.views[few], candidate.labels_of(data, few))


def _reason(error: BaseException, data: Data) -> str:
    """Why a method failed; cells are named by their place in all rows, not in those of a fold."""
    is_about_cells = isinstance(error, ValueError) and is_about_finite(error)
    found = data.not_finite() if is_about_cells else None
    return found or _in_one_line(error)


def _in_one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text if isinstance(error, ValueError) and text else f"{type(error).__name__}: {text}"
