"""Fit and measure one method, fold by fold.

`Conditions.advance` takes a method one fold further: held-out rows are ranked under every setting,
each of which is fitted once, and values of their objects are kept for all goals. `Conditions.model`
fits the chosen setting again, for measures that the user names and for examples in reports. A
method that cannot be fitted is an outcome with a reason.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
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
from mvcca.comparison.protocol import Standing
from mvcca.comparison.texts import text_step
from mvcca.machine.deadline import NO_DEADLINE, Deadline, OutOfTime
from mvcca.machine.memory import PeakMemory
from mvcca.model_selection import Choice, Trials
from mvcca.model_selection.folds import Fold
from mvcca.model_selection.goals import Asked, Goal, RankedSample, Value
from mvcca.model_selection.questions import asks_questions
from mvcca.model_selection.space_search import SpaceSearch
from mvcca.model_selection.tuning import fit_chosen
from mvcca.retrieval import RetrievalTable, evaluate_retrieval
from mvcca.retrieval.evaluate import expected_at_random
from mvcca.retrieval.measure import Measure
from mvcca.retrieval.ranking import Ranking
from mvcca.views import Labels
from mvcca.views.labels_by_view import LabelsByView


@dataclass(eq=False)
class MethodRun:
    """One method on the folds so far.

    Attributes
    ----------
    trials : dict
        By goal, the values of its settings on the folds, which choose the best one.
    tables : dict
        By number of the fold, measures that the user names, of a method with a single setting.
    seconds, peak_bytes : dict
        By number of the fold, how long it took, and the memory; None where that is not known.
    warnings : dict
        Warnings of a method with a single setting; those of settings that are tried are silent.
    failure : str
        Why the method has no values; empty if it has.
    is_dropped : bool
        Whether it was not taken further because it cannot be the best one.
    search : SpaceSearch
        Values of all settings that were tried, without the rows that they were measured on.
    answered : dict
        Values of a model that solves every question for itself, by its settings and by number of
        the fold. A search ranks in the space that all views share.
    """

    trials: dict[Goal, Trials] = field(default_factory=dict)
    tables: dict[int, RetrievalTable] = field(default_factory=dict)
    seconds: dict[int, float] = field(default_factory=dict)
    peak_bytes: dict[int, int | None] = field(default_factory=dict)
    warnings: dict[str, None] = field(default_factory=dict)
    failure: str = ""
    is_dropped: bool = False
    search: SpaceSearch = field(default_factory=partial(SpaceSearch, by_heads=False))
    answered: dict[Any, dict[int, Value]] = field(default_factory=dict)

    @property
    def folds(self) -> list[int]:
        """Numbers of the folds that it has values of."""
        return list(self.seconds)

    def values(self, goal: Goal) -> dict[int, Value]:
        """Values of the best setting by fold, ranked as `refit` ranks."""
        trials = self.trials[goal]
        return trials.values[trials.best] | self.answered.get(_key(trials), {})

    def choice(self, goal: Goal, candidate: Candidate) -> Choice | None:
        """The best settings for a goal; None if there is nothing to choose."""
        trials = self.trials[goal]
        if candidate.is_tuned:
            assert self.search.space is not None
            return self.search.space.choice(trials, candidate.estimator)
        return trials.choose() if len(trials.settings) > 1 else None

    def finished(self) -> MethodRun:
        """Without the state of the search, whose values take memory."""
        trials = {}
        for goal, own in self.trials.items():
            kept = {v: {n: value[:2] for n, value in by.items()} for v, by in own.values.items()}
            trials[goal] = replace(own, values={**kept, own.best: own.values[own.best]})
        return replace(self, trials=trials, search=SpaceSearch(space=self.search.space))


def _key(trials: Trials) -> Any:
    """The goal and its best settings, whatever their place is among those that were tried."""
    return trials.goal, tuple(trials.chosen.items()), *trials.best[1:]


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
        start, memory = perf_counter(), PeakMemory()
        with warnings.catch_warnings(record=True) as caught, self.limit.enforced(), memory:
            warnings.simplefilter("always")
            try:
                if candidate.is_tuned:
                    self._search(candidate, run, n_folds)
                else:
                    self._fit(candidate, run, fold, report)
            except KeyboardInterrupt:
                raise
            except OutOfTime:
                return run
            except BaseException as error:  # SystemExit, too: other methods go on
                run.failure = self._reason(error, fold)
                return run
        run.seconds[fold.number] = perf_counter() - start
        run.peak_bytes[fold.number] = memory.n_bytes
        if not candidate.is_tuned and len(candidate.grid(self.settings)) == 1:
            run.warnings |= {" ".join(str(own.message).split()): None for own in caught}
        return run

    def _reason(self, error: BaseException, fold: Fold) -> str:
        where = f"fold {fold.number + 1} of {len(self.folds)} cannot be fitted and measured: "
        return f"{where if fold.number else ''}{_reason(error, self.data)}"

    def _search(self, candidate: Candidate, run: MethodRun, n_folds: int) -> None:
        """Search the settings of a tuned method on the first folds."""
        search = replace(run.search)  # its sources hold rows, which do not travel with a run
        for fold in self.folds[:n_folds]:
            views = self.data.views
            if candidate.method is not None and self.data.texts:
                views = text_step(views[fold.train]).fit(views[fold.train]).transform(views)
            everything = np.arange(len(views))
            search.hold_out(
                candidate.estimator,
                views,
                candidate.labels_of(self.data, everything),
                fold,
                replace(self.asked, goals=candidate.goals),
                self.data.relevant_labels,
            )
        run.search.space = search.space
        run.trials = search.choices()
        search.check_folds()
        for goal in run.trials:
            if asks_questions(candidate.estimator, self.data.views.widths, goal):
                self._answer(candidate, run, n_folds, goal)

    def _answer(self, candidate: Candidate, run: MethodRun, n_folds: int, goal: Goal) -> None:
        """Rank by what each question asks, with the best settings so far."""
        known = run.answered.setdefault(_key(run.trials[goal]), {})
        choice = run.choice(goal, candidate)
        for fold in self.folds[:n_folds]:
            if fold.number not in known:
                ranking = Ranking.of(self.model(candidate, fold.train, choice, goal=goal))
                known[fold.number] = self.sample(fold).values_by(ranking)[goal]

    def _fit(self, candidate: Candidate, run: MethodRun, fold: Fold, report: Report | None) -> None:
        """Fit the only setting, or each of a grid, and rank the held-out rows."""
        grid = candidate.grid(self.settings)
        for number, setting in enumerate(grid):
            ranking = Ranking.of(self.model(candidate, fold.train, setting, report))
            table = None
            if self.settings.by_measure(self.data) or not (
                self.settings.are_default or len(grid) > 1
            ):
                table = self.table(ranking, fold)
            if table is not None and len(grid) == 1:
                run.tables[fold.number] = table
            for goal, value in self._values(ranking, table, fold, candidate.goals).items():
                trials = run.trials.setdefault(goal, Trials(goal, list(grid), by_heads=False))
                trials.add(fold.number, value, number, str(ranking), None, goal)
        for trials in run.trials.values():
            vars(trials).pop("best", None)  # of fewer folds
            vars(trials).pop("_complete", None)

    def _values(
        self, ranking: Ranking, table: RetrievalTable | None, fold: Fold, goals: tuple[Goal, ...]
    ) -> dict[Goal, Value]:
        if table is not None and self.settings.by_measure(self.data):
            value = value_of_table(table, self.settings.measures[0], len(fold.test))
            return dict.fromkeys(goals, value)
        sample = self.sample(fold)
        return replace(sample, asked=replace(self.asked, goals=goals)).values_by(ranking)

    def sample(self, fold: Fold) -> RankedSample:
        """The held-out rows that are ranked."""
        labels = self.data.relevant_labels
        judged = None if labels is None else LabelsByView.of(self.data.views, labels)
        return RankedSample.of(self.data.views, judged, fold.test, asked=self.asked)

    def standing(self, run: MethodRun, goal: Goal) -> Standing:
        """Values of a method for a goal, at the settings that its folds choose."""
        values, data = run.values(goal), self.data
        by_measure = self.settings.by_measure(data)
        rows = {
            fold.number: fold.test if by_measure else self.asked.drawn(data.views, fold.test)
            for fold in self.folds
            if fold.number in values
        }
        return Standing.of(goal, values, rows, data.groups, by_measure)

    def model(
        self,
        candidate: Candidate,
        rows: np.ndarray,
        choice: Any,
        report: Report | None = None,
        goal: Goal | None = None,
    ) -> Any:
        """A method fitted to some objects, or a pipeline that first turns texts into numbers.

        `choice` is that of folds for a goal, or parameters of a method with a single setting.
        """
        views, y = self.data.views[rows], candidate.labels_of(self.data, rows)
        estimator, step = clone(candidate.estimator), None
        if candidate.method is not None and self.data.texts:  # others have a step
            step = text_step(views, getattr(estimator, "tokens", None) or ()).fit(views)
            views = step.transform(views)
        watching = nullcontext() if report is None else epochs_reported(estimator, report)
        with watching, _quiet_if_searching_ridges(self.settings):
            if candidate.is_tuned:
                fit_chosen(estimator, choice, views, y, goal)
            else:
                params = choice.params if isinstance(choice, Choice) else choice or {}
                estimator.set_params(**params).fit(views, y)
        model = getattr(estimator, "best_estimator_", estimator)
        return model if step is None else make_pipeline(step, model)

    def table(self, ranking: Ranking, fold: Fold) -> RetrievalTable:
        """Measures that the user names, of all held-out rows."""
        options = _options(self.settings, self.data.relevant_labels, fold.test)
        options["measures"] = self.settings.measures
        projected = ranking.project(self.data.views[fold.test])
        return evaluate_retrieval(projected, estimator=ranking, **options)


def value_of_table(table: RetrievalTable, measure: str, n_objects: int) -> Value:
    """A measure of held-out rows as a value; the larger, the better."""
    sign = Measure.parse(measure).sign
    score = sign * table.mean()[measure]
    of_objects = np.full((n_objects, len(table)), np.nan)
    for column, row in enumerate(table):
        if measure in row.per_query:
            of_objects[row.query_objects[measure], column] = sign * row.per_query[measure]
    return Value(score, score, of_objects, tuple(row.n_gallery for row in table))


def _prefixed(report: Report, where: str, message: str) -> None:
    report(f"{where}{message}")


def _quiet_if_searching_ridges(settings: Settings) -> AbstractContextManager[Any]:
    """Ignore warnings that a ridge of a search is too small for the rows: its folds judge that."""
    if "reg" not in settings.search:
        return nullcontext()
    return warnings.catch_warnings(action="ignore", category=DataDimensionalityWarning)


def _options(settings: Settings, labels: Labels | None, objects: np.ndarray) -> dict[str, Any]:
    """What an evaluation of some objects takes of the settings."""
    return {
        "labels": None if labels is None else labels[objects],
        "relevance": settings.relevance,
        "directions": settings.directions,
        "label_vectors": None if labels is None else settings.label_vectors,
    }


def by_chance(
    data: Data, fold: Fold, settings: Settings, measures: Sequence[str]
) -> RetrievalTable:
    """Exact expectation of measures if every query ranks its gallery in a random order."""
    options = _options(settings, data.relevant_labels, fold.test)
    return expected_at_random(data.views[fold.test], measures=measures, **options)


def _reason(error: BaseException, data: Data) -> str:
    """Why a method failed; cells are named by their place in all rows, not in those of a fold."""
    is_about_cells = isinstance(error, ValueError) and is_about_finite(error)
    found = data.not_finite() if is_about_cells else None
    return found or _in_one_line(error)


def _in_one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text if isinstance(error, ValueError) and text else f"{type(error).__name__}: {text}"
