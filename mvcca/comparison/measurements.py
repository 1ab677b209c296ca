"""What was measured of every method on every fold."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone

from mvcca.blocks.checks import few
from mvcca.comparison.candidates import Candidate, Settings
from mvcca.comparison.data import Data, Presentation
from mvcca.comparison.fits import Conditions, MethodRun, by_chance, value_of_table
from mvcca.comparison.protocol import Standing, chance_precision
from mvcca.model_selection import Choice
from mvcca.model_selection.folds import Fold
from mvcca.model_selection.goals import Goal
from mvcca.retrieval import RetrievalTable
from mvcca.retrieval.ranking import Ranking

RECORD = ("method", "fold", "direction", "measure", "value")  # columns of all values


@dataclass(frozen=True, eq=False)
class Measurements:
    """Values of all methods on all folds, by goal and by measure."""

    candidates: Sequence[Candidate]
    data: Data
    settings: Settings
    folds: Sequence[Fold]
    runs: Mapping[str, MethodRun]
    chance: Sequence[RetrievalTable] = ()  # of measures that are asked for
    presentation: Presentation = field(default_factory=Presentation)
    is_complete: bool = True

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of all methods."""
        return tuple(candidate.name for candidate in self.candidates)

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of the measures."""
        return self.settings.measures

    @property
    def has_named(self) -> bool:
        """Whether methods were selected by name, so that ``params`` are theirs."""
        return any(candidate.method is not None for candidate in self.candidates)

    @property
    def conditions(self) -> dict[str, Any]:
        """Values that are equal if methods of two results can be compared with each other."""
        settings = self.settings
        return {
            **self.data.contents,
            "folds": [(fold.train, fold.test) for fold in self.folds],
            "measures": settings.measures,
            "relevance": settings.relevance,
            "directions": settings.directions,
            "word vectors of the labels": settings.label_vectors,
            "search": {name: list(values) for name, values in settings.search.items()},
            "params": settings.params,
            "random_state": settings.random_state,
            "gallery size": settings.gallery_size,
        }

    @property
    def conditions_of_fits(self) -> Conditions:
        """What all methods have in common."""
        asked = self.settings.asked(self.data)
        return Conditions(self.data, self.folds, self.settings, asked)

    @property
    def failures(self) -> dict[str, str]:
        """Methods that failed on a fold or were not run, with the reason."""
        return {name: self.runs[name].failure for name in self.methods if self.runs[name].failure}

    @property
    def successes(self) -> list[str]:
        """Methods that were measured, if only on some folds."""
        return [name for name in self.methods if not self.runs[name].failure]

    @property
    def dropped(self) -> list[str]:
        """Methods that two folds showed not to be the best ones for any goal."""
        return [name for name in self.successes if self.runs[name].is_dropped]

    def candidate(self, method: str) -> Candidate:
        """The entry of a method."""
        if method not in self.methods:
            raise ValueError(f"There is no {method!r}: the methods are {few(self.methods)}.")
        return next(own for own in self.candidates if own.name == method)

    def choice(self, method: str, goal: Goal | None = None) -> Choice | None:
        """The settings that the folds chose for a goal, by default the one it is best for."""
        candidate = self.candidate(method)
        return self.runs[method].choice(goal or self._goal(method), candidate)

    def _goal(self, method: str) -> Goal:
        """The first goal that a method is the best one for, or that it is measured for."""
        goals = self.candidate(method).goals
        best = [goal for goal in goals if self.best_for(goal) == method]
        return [*best, *goals][0]

    # ---- goals and measures ---------------------------------------------------------------------

    @property
    def goals(self) -> tuple[Goal, ...]:
        """What methods are measured for: finding the same object, or the same class."""
        return self.settings.goals(self.data)

    @property
    def by_measure(self) -> bool:
        """Whether the first measure decides in place of a goal."""
        return self.settings.by_measure(self.data)

    @property
    def first_goal(self) -> Goal:
        """The goal of the first measure."""
        return self.settings.goal_of(self.measures[0], self.data)

    @property
    def gallery_size(self) -> int:
        """Number of items that the user will search."""
        return self.settings.asked(self.data).gallery_size

    def standing(self, method: str, what: Any) -> Standing:
        """Values of a method on held-out objects, at the settings that the folds chose.

        Parameters
        ----------
        method : str
            Its name.
        what : {"object", "class"} or str
            A goal, or one of `measures`. Measures are those of all held-out rows, at the settings
            for their goal.
        """
        if (method, what) not in self._standings:
            if what in ("object", "class"):
                found = self.conditions_of_fits.standing(self.runs[method], what)
            else:
                found = self._standing_by(method, what)
            self._standings[method, what] = found
        return self._standings[method, what]

    @cached_property
    def _standings(self) -> dict[tuple[str, str], Standing]:
        return {}

    def _standing_by(self, method: str, measure: str) -> Standing:
        tables = self._tables(method, measure)
        rows = {number: self.folds[number].test for number in tables}
        values = {n: value_of_table(own, measure, len(rows[n])) for n, own in tables.items()}
        return Standing.of(measure, values, rows, self.data.groups, by_measure=True)

    def _tables(self, method: str, measure: str) -> dict[int, RetrievalTable]:
        """Measures of a method by number of the fold, at its settings for the goal of a measure.

        A method whose settings were chosen is fitted with them when it is first asked for.
        """
        if measure not in self.measures:
            raise ValueError(f"{measure!r} is not one of the measures {list(self.measures)}.")
        if method not in self.successes:
            reason = self.failures.get(method, f"the methods are {few(self.methods)}")
            raise ValueError(f"There is no value of {method!r}: {reason}.")
        run, candidate = self.runs[method], self.candidate(method)
        if run.tables:
            return run.tables
        goal = self.settings.goal_of(measure, self.data)
        goal = goal if goal in candidate.goals else self._goal(method)
        if (method, goal) not in self._found:
            fits, choice = self.conditions_of_fits, run.choice(goal, candidate)
            with warnings.catch_warnings(action="ignore"):  # the first fits gave them
                self._found[method, goal] = {
                    fold.number: fits.table(
                        Ranking.of(fits.model(candidate, fold.train, choice, goal=goal)), fold
                    )
                    for fold in self.folds
                    if fold.number in run.folds
                }
        return self._found[method, goal]

    @cached_property
    def _found(self) -> dict[tuple[str, Goal], dict[int, RetrievalTable]]:
        return {}

    def ranked_for(self, what: str) -> list[str]:
        """Methods that are measured for a goal or by a measure, best first; dropped ones last."""
        goal = what in ("object", "class")
        names = [name for name in self.successes if not goal or what in self.runs[name].trials]
        return sorted(
            names,
            key=lambda n: (goal and self.runs[n].is_dropped, -self.standing(n, what).value),
        )

    def best_for(self, what: str) -> str | None:
        """The best method for a goal or by a measure; None if none was measured for it."""
        return next(iter(self.ranked_for(what)), None)

    def is_worse(self, method: str, what: str) -> bool:
        """Whether a method was found worse than the best one for a goal or by a measure.

        By the corrected resampled t-test over folds or, with one split, a paired t-test over
        objects, both at the 5 % level; or because two folds showed that it cannot be the best.
        """
        best = self.ranked_for(what)[0]
        if what in self.goals and self.runs[method].is_dropped:
            return method != best
        share = float(np.mean([len(fold.test) / len(fold.train) for fold in self.folds]))
        own = self.standing(method, what)
        return method != best and own.is_worse(self.standing(best, what), share)

    @cached_property
    def chance_of_goals(self) -> dict[Goal, float]:
        """R@1 in the gallery that it is told of, or mean average precision, of random scores."""
        if self.by_measure:
            return {self.goals[0]: self.chance_level(self.measures[0])}
        fits = self.conditions_of_fits
        found: dict[Goal, float] = {}
        if best := self.best_for("object"):
            found["object"] = self.standing(best, "object").chance(self.gallery_size)
        if "class" in self.goals:
            found["class"] = chance_precision([fits.sample(fold) for fold in self.folds])
        return found

    def chance_level(self, measure: str) -> float:
        """Mean of a measure of random scores over folds."""
        tables = self.chance or [
            by_chance(self.data, fold, self.settings, self.measures) for fold in self.folds
        ]
        return float(np.mean([table.mean()[measure] for table in tables]))

    def fold_values(self, method: str, measure: str) -> np.ndarray:
        """Value of a measure on each fold, as the mean over directions."""
        return np.array([own.mean()[measure] for own in self._tables(method, measure).values()])

    def mean(self, method: str, measure: str) -> float:
        """Mean of a measure over folds."""
        return float(np.mean(self.fold_values(method, measure)))

    @property
    def best(self) -> str:
        """The best method for the goal of the first measure."""
        if not self.successes:
            reasons = dict.fromkeys(f"{name}: {text}" for name, text in self.failures.items())
            raise ValueError(f"No method could be fitted. {'; '.join(reasons)}")
        return self.best_for(self.first_goal) or self.successes[0]

    def right_items(self, goal: Goal) -> str:
        """Description of the items that are right for a goal."""
        if self.by_measure:
            relevance = self.settings.relevance
            if self.data.relevance_by(self.measures[0], relevance) == "words":
                return "labels with similar word vectors"
        if goal == "object":
            return self.presentation.same
        are_classes = self.data.labels is not None and self.data.labels.are_classes
        return self.presentation.like or ("the same class" if are_classes else "a label in common")

    @property
    def names_measures(self) -> bool:
        """Whether values are those of measures that the user names, or that directions need."""
        return not self.settings.are_default or self.by_measure

    @property
    def is_one_split(self) -> bool:
        """Whether there is a single held-out part, so that tests are over objects, not folds."""
        return len(self.folds) == 1

    # ---- values ---------------------------------------------------------------------------------

    def estimators(self, method: str) -> list[Any]:
        """The estimators of a method with the settings for each goal, not fitted."""
        candidate, found = self.candidate(method), []
        for goal in self.runs[method].trials:
            choice = self.choice(method, goal)
            estimator = clone(candidate.estimator)
            found.append(estimator.set_params(**(choice.parameters if choice else {})))
        return found

    def records(self) -> Iterator[dict[str, Any]]:
        """All values as dictionaries: method, fold, direction, measure, value."""
        for name in self.successes:
            run = self.runs[name]
            for number in run.folds:
                key = {"method": name, "fold": number}
                for direction, measure, value in self._values(name, number):
                    yield {**key, "direction": direction, "measure": measure, "value": value}
                for measure, value in self._of_fit(name, number).items():
                    yield {**key, "direction": "", "measure": measure, "value": value}

    def _values(self, method: str, number: int) -> Iterator[tuple[str, str, float]]:
        """Direction, measure and value of a method on a fold."""
        if self.names_measures:
            for measure in self.measures:
                for row in self._tables(method, measure)[number]:
                    yield f"{row.query} -> {row.target}", measure, row.values[measure]
            return
        for goal in self.runs[method].trials:
            sample = self.conditions_of_fits.sample(self.folds[number])
            directions = sample.directions_for(goal)
            for measure, by_fold in self.standing(method, goal).by_direction().items():
                for (p, q), value in zip(directions, by_fold[number], strict=True):
                    yield f"{p} -> {q}", measure, float(value)

    def _of_fit(self, method: str, number: int) -> dict[str, float]:
        """Costs of a method on a fold, and chosen settings that are numbers."""
        run, choice = self.runs[method], self.choice(method)
        found: dict[str, Any] = {"seconds": run.seconds[number]}
        if (peak := run.peak_bytes[number]) is not None:
            found["peak bytes"] = peak
        if choice is not None:
            found |= {f"chosen {name}": value for name, value in choice.parameters.items()}
        return {name: float(own) for name, own in found.items() if isinstance(own, int | float)}
