"""What was measured of every method on every fold, with its uncertainty."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from mvcca.blocks.checks import few
from mvcca.comparison.candidates import Candidate, Settings
from mvcca.comparison.data import Data, Presentation
from mvcca.comparison.fits import Conditions, Measured, MethodRun
from mvcca.comparison.protocol import Standing, chance_precision
from mvcca.comparison.schedule import standing
from mvcca.comparison.significance import CONFIDENCE, OverFolds, OverObjects, holm, holm_level
from mvcca.machine.optional import optional
from mvcca.model_selection import Choice, Goal
from mvcca.model_selection.folds import Fold
from mvcca.retrieval import Measure, RetrievalTable

LEVEL = 1 - CONFIDENCE
RECORD = ("method", "fold", "direction", "measure", "value")  # columns of all values


@dataclass(frozen=True)
class Difference:
    """How a method compares with the best one by a measure.

    Attributes
    ----------
    behind : float
        Mean difference from the best method, over folds or held-out objects.
    p_value : float
        With Holm's correction; NaN if differences cannot be tested.
    smallest_detectable : float
        The smallest difference that the test would have found significant, given the spread of the
        differences and the other methods' p-values. NaN for Wilcoxon's test of median ranks.
    """

    behind: float
    p_value: float = np.nan
    smallest_detectable: float = np.nan

    @property
    def decision(self) -> Literal["best", "undecided", "worse"]:
        """Whether the method is the best one or equal to it, worse, or the test cannot tell."""
        if self.p_value < LEVEL and self.behind > 0:
            return "worse"
        return "best" if self.smallest_detectable <= self.behind else "undecided"


@dataclass(frozen=True, eq=False)
class Measurements:
    """Outcomes of all methods on all folds, and statistics of them."""

    candidates: Sequence[Candidate] = field(repr=False)
    data: Data = field(repr=False)
    settings: Settings = field(repr=False)
    folds: Sequence[Fold] = field(repr=False)
    runs: Mapping[str, MethodRun] = field(repr=False)
    chance: Sequence[RetrievalTable] = field(repr=False)
    presentation: Presentation = field(default_factory=Presentation, repr=False)
    is_complete: bool = True

    # ---- what was measured ----------------------------------------------------------------------

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

    def measured(self, method: str, goal: Goal | None = None) -> dict[int, Measured]:
        """All that reports show of a method, by number of the fold, at its settings for a goal.

        A method whose settings were chosen is fitted with them when it is first asked for.
        """
        if method not in self.successes:
            return {}
        run, candidate = self.runs[method], self.candidate(method)
        if run.measured:
            return run.measured
        goal = goal if goal in candidate.goals else self._goal(method)
        if (method, goal) not in self._details:
            fits, choice = self.conditions_of_fits, run.choice(goal, candidate)
            self._details[method, goal] = {
                fold.number: fits.measure(candidate, fold, choice)
                for fold in self.folds
                if fold.number in run.folds
            }
        return self._details[method, goal]

    @cached_property
    def _details(self) -> dict[tuple[str, Goal], dict[int, Measured]]:
        return {}

    def fits(self, method: str, goal: Goal | None = None) -> list[Measured]:
        """What was measured of a method, in the order of the folds."""
        return list(self.measured(method, goal).values())

    # ---- goals ----------------------------------------------------------------------------------

    @property
    def goals(self) -> tuple[Goal, ...]:
        """What methods are measured for: finding the same object, or the same class."""
        return self.settings.goals(self.data)

    @property
    def gallery_size(self) -> int:
        """Number of items that the user will search."""
        return self.settings.asked(self.data).gallery_size

    def standing(self, method: str, goal: Goal) -> Standing:
        """Values of a method for a goal on held-out objects, at the settings chosen for it."""
        if (method, goal) not in self._standings:
            found = standing(self.runs[method], goal, self.conditions_of_fits)
            self._standings[method, goal] = found
        return self._standings[method, goal]

    @cached_property
    def _standings(self) -> dict[tuple[str, Goal], Standing]:
        return {}

    def ranked_for(self, goal: Goal) -> list[str]:
        """Methods that are measured for a goal, the best one first; dropped ones last."""
        names = [name for name in self.successes if goal in self.runs[name].trials]
        return sorted(
            names,
            key=lambda n: (self.runs[n].is_dropped, -self.standing(n, goal).value),
        )

    def best_for(self, goal: Goal) -> str | None:
        """The best method for a goal; None if none was measured for it."""
        return next(iter(self.ranked_for(goal)), None)

    def is_worse(self, method: str, goal: Goal) -> bool:
        """Whether a test finds a method worse than the best one for a goal, at the 5 % level."""
        best = self.ranked_for(goal)[0]
        share = float(np.mean([len(fold.test) / len(fold.train) for fold in self.folds]))
        own = self.standing(method, goal)
        return method != best and own.is_worse(self.standing(best, goal), share)

    @cached_property
    def chance_of_goals(self) -> dict[Goal, float]:
        """R@1 in the gallery of the user, or mean average precision, of random scores."""
        if self.settings.by_measure(self.data):
            return {self.goals[0]: self.chance_level(self.measures[0])}
        fits = self.conditions_of_fits
        found: dict[Goal, float] = {"object": 1 / self.gallery_size}
        if "class" in self.goals:
            found["class"] = chance_precision([fits.sample(fold) for fold in self.folds])
        return found

    def fold_values(self, method: str, measure: str) -> np.ndarray:
        """Value of a measure on each fold, as the mean over directions."""
        self._check_measure(measure)
        found = self._fits_by(method, measure)
        if not found:
            reason = self.failures.get(method, f"the methods are {few(self.methods)}")
            raise ValueError(f"There is no value of {method!r}: {reason}.")
        return np.array([one.table.mean()[measure] for one in found])

    def _fits_by(self, method: str, measure: str) -> list[Measured]:
        """What was measured of a method at its settings for the goal of a measure."""
        return self.fits(method, self.settings.goal_of(measure, self.data))

    def _check_measure(self, measure: str) -> None:
        if measure not in self.measures:
            raise ValueError(f"{measure!r} is not one of the measures {list(self.measures)}.")

    def mean(self, method: str, measure: str) -> float:
        """Mean of a measure over folds."""
        return float(np.mean(self.fold_values(method, measure)))

    def by_direction(self, method: str, measure: str) -> list[float]:
        """Mean of a measure over folds, in each direction."""
        values = [
            [row.values[measure] for row in found.table] for found in self._fits_by(method, measure)
        ]
        return np.mean(values, axis=0).tolist()

    def chance_level(self, measure: str) -> float:
        """Mean of a measure of random scores over folds."""
        return float(np.mean([table.mean()[measure] for table in self.chance]))

    @property
    def best(self) -> str:
        """The best method for the goal of the first measure."""
        self._check_successes()
        goal = self.settings.goal_of(self.measures[0], self.data)
        return self.best_for(goal) or self.successes[0]

    def best_by(self, measure: str) -> str:
        """The method with the best mean of a measure."""
        self._check_successes()
        sign = -1 if Measure.parse(measure).smaller_is_better else 1
        return max(self.successes, key=lambda name: sign * self.mean(name, measure))

    def _check_successes(self) -> None:
        if not self.successes:
            reasons = dict.fromkeys(f"{name}: {text}" for name, text in self.failures.items())
            raise ValueError(f"No method could be fitted. {'; '.join(reasons)}")

    @property
    def questions(self) -> dict[str, tuple[str, str]]:
        """The best method for each kind of right items, and a measure of it.

        With pairs and labels there are two questions, which different methods may answer best:
        which items show the same object, and which are of the same class.

        Returns
        -------
        dict of str to (measure, method)
            By description of the right items, those of the same object first.
        """
        found = {}
        for goal in self.goals:
            best = self.best_for(goal)
            if best is not None:
                found[self.right_items(self.measure_of(goal))] = (self.measure_of(goal), best)
        return found

    def measure_of(self, goal: Goal) -> str:
        """The first measure of a goal."""
        by_goal = [m for m in self.measures if self.settings.goal_of(m, self.data) == goal]
        known = [m for m in by_goal if not Measure.parse(m).is_of_gallery]
        return [*known, *by_goal][0]

    def right_items(self, measure: str) -> str:
        """Description of the items that a measure counts as right."""
        if Measure.parse(measure).kind == "wmap":
            return "labels with similar word vectors"
        if self.data.relevance_by(measure, self.settings.relevance) == "pairs":
            return self.presentation.same
        are_classes = self.data.labels is not None and self.data.labels.are_classes
        return self.presentation.like or ("the same class" if are_classes else "a label in common")

    # ---- uncertainty ----------------------------------------------------------------------------

    @property
    def is_one_split(self) -> bool:
        """Whether there is a single held-out part, so that objects are resampled and not folds."""
        return len(self.folds) == 1

    def standard_error(self, method: str, measure: str) -> float:
        """Standard error of the mean over folds or, with one split, over held-out objects.

        Over folds it is s / √J, without a correction for training parts that overlap. For one split
        it is estimated by the bootstrap of `interval`. NaN with one split for measures without
        values of queries, such as ``hubness@10``.
        """
        return self._values(method, measure).standard_error()

    def interval(self, method: str, measure: str) -> tuple[float, float]:
        """95 % confidence interval of a measure.

        With several folds it is the interval of the corrected resampled t-test; with one split, the
        percentile bootstrap over held-out objects. NaN where `standard_error` is.
        """
        return self._values(method, measure).interval()

    def p_values(self, measure: str) -> dict[str, float]:
        """P-value of the difference between each method and the best one, with Holm's correction.

        Returns
        -------
        dict of str to float
            1 for the best method. With fewer than two folds in common, NaN; with one split, also
            for measures without values of queries, such as ``hubness@10``.
        """
        return {name: found.p_value for name, found in self.against_best(measure).items()}

    def against_best(self, measure: str) -> dict[str, Difference]:
        """Compare each method with the best one by a measure.

        Returns
        -------
        dict of str to Difference
            How far each method is behind, its p-value, and the smallest difference that the test
            could have detected. The best method comes first.
        """
        if measure not in self._compared:
            self._compared[measure] = self._compare_with(self.best_by(measure), measure)
        return self._compared[measure]

    def _compare_with(self, best: str, measure: str) -> dict[str, Difference]:
        sign = -1.0 if Measure.parse(measure).smaller_is_better else 1.0
        of_best: Any = self._values(best, measure)
        behind = {
            name: sign * self._values(name, measure).behind(of_best)
            for name in self.successes
            if name != best
        }
        raw = {name: of_best.p_value(values) for name, values in behind.items()}
        known = {name: p for name, p in raw.items() if not np.isnan(p)}
        corrected = holm(known)
        found = {best: Difference(0.0, 1.0, 0.0)}
        for name, values in behind.items():
            if name not in known:
                found[name] = Difference(float(np.mean(values)) if len(values) else np.nan)
                continue
            level = holm_level((p for n, p in known.items() if n != name), LEVEL)
            detectable = of_best.detectable(values, level)
            found[name] = Difference(float(np.mean(values)), corrected[name], detectable)
        return found

    @cached_property
    def _compared(self) -> dict[str, dict[str, Difference]]:
        return {}

    def not_worse(self, measure: str) -> set[str]:
        """The best method, and all that are not significantly worse at the 5 % level."""
        return {n for n, found in self.against_best(measure).items() if found.decision != "worse"}

    def undecided(self, measure: str) -> set[str]:
        """Methods whose difference from the best one is too small for the test to detect."""
        compared = self.against_best(measure).items()
        return {name for name, found in compared if found.decision == "undecided"}

    def _values(self, method: str, measure: str) -> OverFolds | OverObjects:
        """Values whose spread is tested: those of the folds or, with one split, of its objects."""
        if (method, measure) not in self._tested:
            self._tested[method, measure] = self._values_to_test(method, measure)
        return self._tested[method, measure]

    @cached_property
    def _tested(self) -> dict[tuple[str, str], OverFolds | OverObjects]:
        return {}

    def _values_to_test(self, method: str, measure: str) -> OverFolds | OverObjects:
        values = dict(zip(self.runs[method].folds, self.fold_values(method, measure), strict=True))
        parsed = Measure.parse(measure)
        if not self.is_one_split or parsed.is_of_gallery:
            shares = [len(fold.test) / len(fold.train) for fold in self.folds]
            return OverFolds(values, float(np.mean(shares)))
        (fold,), (found,), groups = self.folds, self._fits_by(method, measure), self.data.groups
        of_objects = np.full((len(fold.test), len(found.table)), np.nan)
        for column, row in enumerate(found.table):
            of_objects[row.query_objects[measure], column] = row.per_query[measure]
        codes = np.arange(len(fold.test)) if groups is None else groups.codes[fold.test]
        return OverObjects(of_objects, codes, parsed.kind == "mr", self.settings.random_state)

    # ---- tables ---------------------------------------------------------------------------------

    def records(self) -> Iterator[dict[str, Any]]:
        """All values as dictionaries: method, fold, direction, measure, value."""
        for name in self.methods:
            for number, found in self.measured(name).items():
                key = {"method": name, "fold": number}
                for measure in self.measures:
                    goal = self.settings.goal_of(measure, self.data)
                    for row in self.measured(name, goal)[number].table:
                        direction = f"{row.query} -> {row.target}"
                        value = row.values[measure]
                        yield {**key, "direction": direction, "measure": measure, "value": value}
                for measure, value in _of_fit(found).items():
                    yield {**key, "direction": "", "measure": measure, "value": value}

    def per_query(self, measure: str) -> Any:
        """Value of a measure for every query.

        Parameters
        ----------
        measure : str
            One of the measures that were compared.

        Returns
        -------
        pandas.DataFrame
            Columns method, fold, direction, object (its position in the data) and value.

        Raises
        ------
        ValueError
            If the measure was not compared, or has no values of queries.
        ImportError
            If pandas is not installed.
        """
        self._check_measure(measure)
        if Measure.parse(measure).is_of_gallery:
            raise ValueError(f"{measure!r} describes all items and has no values of queries.")
        pd = optional("pandas", "per_query", "pandas")
        parts = [
            pd.DataFrame(
                {
                    "method": name,
                    "fold": number,
                    "direction": f"{row.query} -> {row.target}",
                    "object": self.folds[number].test[row.query_objects[measure]],
                    "value": row.per_query[measure],
                }
            )
            for name in self.methods
            for number, found in self.measured(
                name, self.settings.goal_of(measure, self.data)
            ).items()
            for row in found.table
        ]
        return pd.concat(parts, ignore_index=True)


def _of_fit(found: Measured) -> dict[str, float]:
    """What was measured of a fit, beside retrieval."""
    values = {
        "train correlation": mean_correlation(found.train_correlations),
        "held-out correlation": mean_correlation(found.test_correlations),
        "fit seconds": found.fit_seconds,
        "query seconds": found.query_seconds,
        "peak bytes": np.nan if found.peak_bytes is None else float(found.peak_bytes),
    }
    if found.choice is not None:
        chosen = {**found.choice.params, "n_components": found.n_components}
        numbers = {k: float(v) for k, v in chosen.items() if isinstance(v, int | float)}
        values |= {f"chosen {name}": value for name, value in numbers.items()}
        values["value on the folds"] = found.choice.value
    return {name: value for name, value in values.items() if not np.isnan(value)}


def mean_correlation(correlations: Any) -> float:
    """Mean over components and pairs of views; NaN without pairs."""
    if correlations is None:
        return np.nan
    return float(np.mean(list(correlations.values())))
