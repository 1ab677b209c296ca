"""Fit a method to the training part of a fold and measure it on the held-out part.

Held-out rows are projected once; measures, correlations, curves and examples are read from these
rows. A method that cannot be fitted is an outcome with a reason; warnings are stored with the
outcome that caused them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import DataDimensionalityWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from mvcca.blocks.checks import is_about_finite
from mvcca.comparison.candidates import Candidate, Settings
from mvcca.comparison.data import Data
from mvcca.comparison.progress import Report, epochs_reported
from mvcca.comparison.texts import text_step
from mvcca.comparison.tuning import choice_within, choices_of_folds, is_nested
from mvcca.inspection import pairwise_correlations
from mvcca.machine.deadline import NO_DEADLINE, Deadline, OutOfTime, in_words
from mvcca.machine.memory import PeakMemory
from mvcca.model_selection import Choice, choice_of, fit_chosen
from mvcca.model_selection.folds import Fold
from mvcca.retrieval import Measure, RetrievalTable, evaluate_retrieval
from mvcca.retrieval.collection import Projected
from mvcca.retrieval.evaluate import expected_at_random
from mvcca.retrieval.ranking import Ranking
from mvcca.retrieval.table import check_several_items
from mvcca.views import Labels, Views

CURVE_LENGTH = 50  # of the recall curve
SEARCH_FOLDS = 3  # within the training part
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


@dataclass(frozen=True)
class Failed:
    """A method that could not be fitted or measured, and the reason."""

    reason: str


@dataclass(frozen=True)
class Omitted(Failed):
    """A method that the time limit left out."""

    needs: float | None = None  # seconds of a limit that includes it, where that was measured


Outcome = Measured | Failed
Outcomes = dict[tuple[str, int], Outcome]


class Begun(NamedTuple):
    """A method that was measured on its first fold."""

    candidate: Candidate  # at default settings, if its search took too long
    outcomes: Outcomes  # of the first fold; of all folds, if a search failed or no time was left
    chosen: Mapping[int, Choice]  # by fold, where one search serves all
    seconds: float  # of the first fold, without such a search


@dataclass(frozen=True, eq=False)
class Conditions:
    """What all methods of a comparison have in common; the deadline is checked at every tick."""

    data: Any  # `Data`; None on the way to another process
    folds: Sequence[Fold]
    settings: Settings
    deadline: Deadline = NO_DEADLINE

    def begin(self, candidate: Candidate, share: Deadline, report: Report | None = None) -> Begun:
        """Measure a method on the first fold; at default settings if its search takes too long.

        `share` is the time that the search may take, for all folds.
        """
        reason = candidate.lacks(self.data)
        if reason is not None:
            return self._none(candidate, Failed(reason))
        if not self.deadline.allows(0):
            return self._none(candidate, self.left_out())
        begun = self._begun(candidate, share, report)
        is_omitted = any(isinstance(own, Omitted) for own in begun.outcomes.values())
        if candidate.is_tuned and is_omitted and self.deadline.allows(0):
            return self._begun(candidate.at_default_settings(), self.deadline, report)
        return begun

    def _begun(self, candidate: Candidate, limit: Deadline, report: Report | None) -> Begun:
        """Choose the settings if one search serves all folds, and measure the first fold."""
        clock, chosen, within = self.deadline.clock, {}, self
        start = clock()
        try:
            with limit.enforced(), warnings.catch_warnings(action="ignore"):
                if candidate.is_tuned and not is_nested(self.data, self.folds, candidate):
                    within = replace(self, deadline=limit.part(1 / len(self.folds)))
                elif candidate.is_tuned:
                    if report is not None:
                        report(f"{candidate.name}, choosing settings")
                    chosen = choices_of_folds(candidate, self.data, self.folds, self.settings)
        except KeyboardInterrupt:
            raise
        except OutOfTime:
            return self._none(candidate, self.left_out(clock() - start))
        except BaseException as error:  # SystemExit, too: other methods go on
            return self._none(candidate, Failed(_reason(error, self.data)))
        start = clock()
        outcomes = within.measure(candidate, self.folds[0], chosen, report)
        return Begun(candidate, outcomes, chosen, clock() - start)

    def _none(self, candidate: Candidate, why: Failed) -> Begun:
        return Begun(candidate, {(candidate.name, f.number): why for f in self.folds}, {}, 0.0)

    def measure(
        self,
        candidate: Candidate,
        fold: Fold,
        chosen: Mapping[int, Choice],
        report: Report | None = None,
    ) -> Outcomes:
        """Fit a method on one fold and measure it."""
        start, choice = self.deadline.clock(), chosen.get(fold.number)
        if report is not None and (candidate.is_tuned or candidate.is_deep):
            where = f"{candidate.name}, fold {fold.number + 1} of {len(self.folds)}, "
            report = partial(_prefixed, report, where)
        with warnings.catch_warnings(record=True) as caught, self.deadline.enforced():
            warnings.simplefilter("always")
            try:
                self.deadline.check()
                found: Outcome = _measured(
                    candidate, self.data, fold, self.settings, choice, report, caught
                )
            except KeyboardInterrupt:
                raise
            except OutOfTime:
                found = self.left_out(self.deadline.clock() - start)
            except BaseException as error:  # SystemExit, too: other methods go on
                found = Failed(_reason(error, self.data))
        return {(candidate.name, fold.number): found}

    def left_out(self, spent: float | None = None) -> Omitted:
        """The outcome of a method that was stopped after some seconds, or never began."""
        budget = f"budget={self.settings.budget!r}"
        why = f"no time of {budget} was left for it"
        if spent is not None:
            why = f"stopped after {in_words(spent)}, when no time of {budget} was left"
        return Omitted(f"left out: {why}. Pass a larger budget, or budget=None, to include it")


def _prefixed(report: Report, where: str, message: str) -> None:
    report(f"{where}{message}")


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
        scoring=partial(_score, settings, data.relevant_labels),
        cv=[(fold.train, fold.test) for fold in folds],
        error_score="raise",  # the reason why the method has no values
    )


def quiet_if_searching_ridges(settings: Settings) -> AbstractContextManager[Any]:
    """Ignore warnings that a ridge of a search is too small for the rows: its folds judge that."""
    if "reg" not in settings.search:
        return nullcontext()
    return warnings.catch_warnings(action="ignore", category=DataDimensionalityWarning)


def _score(
    settings: Settings, labels: Labels | None, estimator: Any, X: Views, _: Any = None
) -> float:
    """Score by the labels that define relevance, which are looked up by the ids of the objects.

    They are not always the labels that a search splits and fits to.
    """
    measure = settings.measures[0]
    options = _options(settings, labels, np.asarray(X.ids) - 1, [measure])
    table = evaluate_retrieval(X, estimator=estimator, **options)
    check_several_items(table)
    value = table.mean()[measure]
    return -value if Measure.parse(measure).smaller_is_better else value


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


def _measured(
    candidate: Candidate,
    data: Data,
    fold: Fold,
    settings: Settings,
    choice: Choice | None,
    report: Report | None,
    caught: list[warnings.WarningMessage],
) -> Measured:
    held_out, step = data.views[fold.test], None
    if candidate.method is not None and data.texts:  # others have a step
        words = getattr(candidate.estimator, "tokens", None) or ()
        step = text_step(data.views[fold.train], words).fit(data.views[fold.train])
        data = replace(data, views=step.transform(data.views))
    if candidate.is_tuned and choice is None:
        choice = choice_within(candidate, data, fold.train, settings)
    train, estimator = data.views[fold.train], clone(candidate.estimator)
    if settings.search:
        estimator = searching(candidate, data, fold.train, settings)
    _warm_up(candidate, data, fold.train)
    y = candidate.labels_of(data, fold.train)
    caught.clear()
    watching = nullcontext() if report is None else epochs_reported(estimator, report)
    start = perf_counter()
    with PeakMemory() as memory, watching, quiet_if_searching_ridges(settings):
        if choice is None:
            estimator.fit(train, y)
        else:
            fit_chosen(estimator, choice, train, y, settings.goal(data))
    fit_seconds = getattr(estimator, "refit_time_", perf_counter() - start)
    start = perf_counter()
    ranking = Ranking.of(estimator if step is None else make_pipeline(step, estimator))
    projected = ranking.project(held_out)
    has_ranks = data.has_pairs or settings.label_vectors is None
    measures = list(dict.fromkeys([*settings.measures, *([RANKS] if has_ranks else [])]))
    options = _options(settings, data.relevant_labels, fold.test, measures)
    table = evaluate_retrieval(projected, estimator=ranking, **options)
    query_seconds = perf_counter() - start
    scores, transformed = projected.scores, Ranking.of(estimator, "cosine")
    if not ranking.compares_scores:
        scores = transformed.project(data.views[fold.test]).scores
    fitted = getattr(estimator, "best_estimator_", estimator)
    choice = choice or choice_of(fitted)  # of an estimator that tunes itself
    chosen = {} if choice is None else choice.params
    return Measured(
        table,
        str(ranking),
        _correlations(train, lambda views: transformed.project(views).scores),
        _correlations(held_out, lambda _: scores),
        fit_seconds,
        query_seconds,
        memory.n_bytes,
        choice,
        {**getattr(estimator, "best_params_", {}), **chosen},
        clone(getattr(estimator, "best_estimator_", candidate.estimator)),
        getattr(fitted, "n_components_", None),
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
