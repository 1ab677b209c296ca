"""What was measured of every method on every fold, with its uncertainty."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from mvcca.blocks.checks import few
from mvcca.comparison.candidates import Candidate, Settings
from mvcca.comparison.data import Data, Presentation
from mvcca.comparison.fits import Failed, Measured, Outcome
from mvcca.comparison.significance import CONFIDENCE, OverFolds, OverObjects, holm, holm_level
from mvcca.machine.optional import optional
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
    outcomes: dict[tuple[str, int], Outcome] = field(repr=False)
    chance: Sequence[RetrievalTable] = field(repr=False)
    presentation: Presentation = field(default_factory=Presentation, repr=False)

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
        }

    @cached_property
    def failures(self) -> dict[str, str]:
        """Methods that failed on a fold or were not run, with the reason."""
        reasons: dict[str, str] = {}
        for name in self.methods:
            found = {fold.number: self.outcomes.get((name, fold.number)) for fold in self.folds}
            failed = {n: own.reason for n, own in found.items() if isinstance(own, Failed)}
            if failed:
                number, reasons[name] = next(iter(failed.items()))
                if len(failed) < len(found) or len({*failed.values()}) > 1:  # due to its rows
                    where = f"fold {number + 1} of {len(found)}"
                    reasons[name] = f"{where} cannot be fitted and measured: {reasons[name]}"
            if not self.measured(name):
                reasons.setdefault(name, "interrupted before it was measured")
        return reasons

    @property
    def successes(self) -> list[str]:
        """Methods that were measured on every fold, or on some before an interruption."""
        return [name for name in self.methods if name not in self.failures]

    @property
    def is_complete(self) -> bool:
        """Whether every method was run on every fold."""
        return len(self.outcomes) == len(self.methods) * len(self.folds)

    def measured(self, method: str) -> dict[int, Measured]:
        """What was measured of a method, by number of the fold."""
        return {
            fold.number: found
            for fold in self.folds
            if isinstance(found := self.outcomes.get((method, fold.number)), Measured)
        }

    def fits(self, method: str) -> list[Measured]:
        """What was measured of a method, in the order of the folds."""
        return list(self.measured(method).values())

    def fold_values(self, method: str, measure: str) -> np.ndarray:
        """Value of a measure on each fold, as the mean over directions."""
        self._check_measure(measure)
        found = self.fits(method)
        if not found:
            reason = self.failures.get(method, f"the methods are {few(self.methods)}")
            raise ValueError(f"There is no value of {method!r}: {reason}.")
        return np.array([one.table.mean()[measure] for one in found])

    def _check_measure(self, measure: str) -> None:
        if measure not in self.measures:
            raise ValueError(f"{measure!r} is not one of the measures {list(self.measures)}.")

    def mean(self, method: str, measure: str) -> float:
        """Mean of a measure over folds."""
        return float(np.mean(self.fold_values(method, measure)))

    def by_direction(self, method: str, measure: str) -> list[float]:
        """Mean of a measure over folds, in each direction."""
        values = [[row.values[measure] for row in found.table] for found in self.fits(method)]
        return np.mean(values, axis=0).tolist()

    def chance_level(self, measure: str) -> float:
        """Mean of a measure of random scores over folds."""
        return float(np.mean([table.mean()[measure] for table in self.chance]))

    @cached_property
    def best(self) -> str:
        """The method with the best first measure."""
        return self.best_by(self.measures[0])

    def best_by(self, measure: str) -> str:
        """The method with the best mean of a measure."""
        if not self.successes:
            reasons = dict.fromkeys(f"{name}: {text}" for name, text in self.failures.items())
            raise ValueError(f"No method could be fitted. {'; '.join(reasons)}")
        sign = -1 if Measure.parse(measure).smaller_is_better else 1
        return max(self.successes, key=lambda name: sign * self.mean(name, measure))

    @property
    def questions(self) -> dict[str, tuple[str, str]]:
        """The first measure of each kind of right items, and the best method by it.

        With pairs and labels there are two questions, which different methods may answer best:
        which items show the same object, and which are of the same class.

        Returns
        -------
        dict of str to (measure, method)
            By description of the right items, those of the same object first.
        """
        if not self.successes:
            return {}
        asked: dict[str, str] = {}
        for measure in self.measures:
            if not Measure.parse(measure).is_of_gallery:
                asked.setdefault(self.right_items(measure), measure)
        asked = asked or {self.right_items(self.measures[0]): self.measures[0]}
        order = sorted(asked.items(), key=lambda item: item[0] != self.presentation.same)
        return {what: (measure, self.best_by(measure)) for what, measure in order}

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
        values = dict(zip(self.measured(method), self.fold_values(method, measure), strict=True))
        parsed = Measure.parse(measure)
        if not self.is_one_split or parsed.is_of_gallery:
            shares = [len(fold.test) / len(fold.train) for fold in self.folds]
            return OverFolds(values, float(np.mean(shares)))
        (fold,), (found,), groups = self.folds, self.fits(method), self.data.groups
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
                for row in found.table:
                    direction = f"{row.query} -> {row.target}"
                    for measure in self.measures:
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
            for number, found in self.measured(name).items()
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
        values["value on inner folds"] = found.choice.value
    return {name: value for name, value in values.items() if not np.isnan(value)}


def mean_correlation(correlations: Any) -> float:
    """Mean over components and pairs of views; NaN without pairs."""
    if correlations is None:
        return np.nan
    return float(np.mean(list(correlations.values())))
