"""What was measured of every method on every fold, with its uncertainty."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from mvcca._containers import few
from mvcca.comparison import significance
from mvcca.comparison.data import Data, Presentation
from mvcca.comparison.folds import Fold
from mvcca.comparison.one_fold import (
    Candidate,
    Failed,
    Measured,
    Outcome,
    Settings,
)
from mvcca.retrieval import Measure, RetrievalTable

LEVEL = 1 - significance.CONFIDENCE


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

    @cached_property
    def failures(self) -> dict[str, str]:
        """Methods that failed on a fold or were not run, with the reason."""
        reasons: dict[str, str] = {}
        for name in self.methods:
            for fold in self.folds:
                outcome = self.outcomes.get((name, fold.number))
                if isinstance(outcome, Failed):
                    reasons.setdefault(name, outcome.reason)
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
        if self._is_single_value(measure):
            return np.nan
        if self.is_one_split:
            return float(self._resampled(method, measure).standard_error)
        values = self.fold_values(method, measure)
        return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan

    def interval(self, method: str, measure: str) -> tuple[float, float]:
        """95 % confidence interval of a measure.

        With several folds it is the interval of the corrected resampled t-test; with one split, the
        percentile bootstrap over held-out objects. NaN where `standard_error` is.
        """
        if self._is_single_value(measure):
            return np.nan, np.nan
        if self.is_one_split:
            low, high = self._resampled(method, measure).confidence_interval
            return float(low), float(high)
        values = self.fold_values(method, measure)
        if len(values) < 2:
            return np.nan, np.nan
        return significance.corrected_interval(values, self._test_share)

    def p_values(self, measure: str) -> dict[str, float]:
        """P-value of the difference between each method and the best one, with Holm's correction.

        Returns
        -------
        dict of str to float
            1 for the best method. With fewer than two folds in common, NaN; with one split, also
            for measures without values of queries, such as ``hubness@10``.
        """
        best = self.best_by(measure)
        others = {n: self._p_value(n, best, measure) for n in self.successes if n != best}
        known = {name: p for name, p in others.items() if not np.isnan(p)}
        return {best: 1.0, **others, **significance.holm(known)}

    def not_worse(self, measure: str) -> set[str]:
        """The best method, and all that are not significantly worse at the 5 % level."""
        return {name for name, p in self.p_values(measure).items() if not p < LEVEL}

    @property
    def _test_share(self) -> float:
        """Held-out objects per training object."""
        return float(np.mean([len(fold.test) / len(fold.train) for fold in self.folds]))

    def _is_single_value(self, measure: str) -> bool:
        """Whether there is one value of a method, so that its uncertainty is unknown."""
        return self.is_one_split and Measure.parse(measure).is_of_gallery

    def _p_value(self, first: str, second: str, measure: str) -> float:
        if self._is_single_value(measure):
            return np.nan
        if self.is_one_split:
            of_first, of_second = (self._by_object(name, measure) for name in (first, second))
            differences = np.nanmean(of_first - of_second, axis=1)
            is_median = Measure.parse(measure).kind == "mr"
            return significance.paired_test(differences[np.isfinite(differences)], is_median)
        a, b = self.measured(first), self.measured(second)
        differences = np.array(
            [a[j].table.mean()[measure] - b[j].table.mean()[measure] for j in a if j in b]
        )
        if len(differences) < 2:
            return np.nan
        return significance.corrected_t_test(differences, self._test_share)

    def _by_object(self, method: str, measure: str) -> np.ndarray:
        """Value of each held-out object of the split in each direction; NaN if it is no query."""
        (found,) = self.fits(method)
        values = np.full((len(self.folds[0].test), len(found.table)), np.nan)
        for column, row in enumerate(found.table):
            values[row.query_objects[measure], column] = row.per_query[measure]
        return values[np.isfinite(values).any(axis=1)]

    def _resampled(self, method: str, measure: str) -> Any:
        if (method, measure) not in self._bootstraps:
            self._bootstraps[method, measure] = significance.bootstrap(
                self._by_object(method, measure),
                Measure.parse(measure).kind == "mr",
                self.settings.random_state,
            )
        return self._bootstraps[method, measure]

    @cached_property
    def _bootstraps(self) -> dict[tuple[str, str], Any]:
        return {}

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

    def to_frame(self) -> Any:
        """All values as a tidy pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
            Columns method, fold, direction, measure and value. Rows without a direction are mean
            correlations, seconds, and bytes of memory.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        return _pandas().DataFrame(
            list(self.records()), columns=["method", "fold", "direction", "measure", "value"]
        )

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
        pd = _pandas()
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
    return {name: value for name, value in values.items() if not np.isnan(value)}


def mean_correlation(correlations: Any) -> float:
    """Mean over components and pairs of views; NaN without pairs."""
    if correlations is None:
        return np.nan
    return float(np.mean(list(correlations.values())))


def _pandas() -> Any:
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("Data frames need pandas: pip install pandas") from error
    return pd
