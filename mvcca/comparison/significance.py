"""Standard errors, intervals and paired tests of differences between methods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import stats

CONFIDENCE = 0.95
_N_RESAMPLES = 1000
_BATCH = 50  # resamples in memory at once


@dataclass(frozen=True, eq=False)
class OverFolds:
    """Values of one method on several folds, and the tests of their differences.

    With a single fold, nothing is known of their uncertainty.
    """

    values: Mapping[int, float]  # by number of the fold
    test_share: float  # n_test / n_train

    @property
    def _array(self) -> np.ndarray:
        return np.array(list(self.values.values()))

    def standard_error(self) -> float:
        """S / √J, without a correction for training parts that overlap."""
        n = len(self.values)
        return float(np.std(self._array, ddof=1) / np.sqrt(n)) if n > 1 else np.nan

    def interval(self) -> tuple[float, float]:
        """Interval of the mean that goes with the test."""
        if len(self.values) < 2:
            return np.nan, np.nan
        return corrected_interval(self._array, self.test_share)

    def behind(self, best: OverFolds) -> np.ndarray:
        """Differences from another method, one for each fold in common."""
        return np.array([best.values[j] - self.values[j] for j in best.values if j in self.values])

    def p_value(self, differences: np.ndarray) -> float:
        """P-value without correction for several methods."""
        return corrected_t_test(differences, self.test_share) if len(differences) > 1 else np.nan

    def detectable(self, differences: np.ndarray, level: float) -> float:
        """Smallest difference that the test finds at this level."""
        return detectable_over_folds(differences, self.test_share, level)


@dataclass(frozen=True, eq=False)
class OverObjects:
    """Values of one method on the held-out objects of one split, and the tests of differences."""

    values: np.ndarray  # (n_objects, n_directions), NaN where an object is no query
    groups: np.ndarray  # (n_objects,), int
    is_median: bool
    random_state: int

    @cached_property
    def _resampled(self) -> Any:
        is_query = np.isfinite(self.values).any(axis=1)
        values, groups = self.values[is_query], self.groups[is_query]
        return bootstrap(values, groups, self.is_median, self.random_state)

    def standard_error(self) -> float:
        """Standard error of the bootstrap over groups of objects."""
        return float(self._resampled.standard_error)

    def interval(self) -> tuple[float, float]:
        """Percentiles of the bootstrap."""
        low, high = self._resampled.confidence_interval
        return float(low), float(high)

    def behind(self, best: OverObjects) -> np.ndarray:
        """Differences from another method, one for each group, as means over directions."""
        differences = best.values - self.values
        differences[~np.isfinite(differences)] = np.nan
        is_query = np.isfinite(differences).any(axis=1)
        return by_group(np.nanmean(differences[is_query], axis=1), self.groups[is_query])

    def p_value(self, differences: np.ndarray) -> float:
        """P-value without correction for several methods."""
        return paired_test(differences, self.is_median) if len(differences) > 1 else np.nan

    def detectable(self, differences: np.ndarray, level: float) -> float:
        """Smallest difference that the test finds; NaN for Wilcoxon's test of medians."""
        if self.is_median and np.any(differences):
            return np.nan
        return detectable_over_objects(differences, level)


def corrected_t_test(differences: np.ndarray, test_share: float) -> float:
    """Two-sided p-value of the corrected resampled t-test of differences (n_folds,)."""
    # The test of Nadeau and Bengio, "Inference for the Generalization Error", Machine Learning 52,
    # 2003, section 4.1. With the differences d_j between two methods on J folds, mean m and
    # variance s²,
    #
    #     t = m / √((1/J + n_test/n_train) s²),   J - 1 degrees of freedom.
    #
    # The training parts of different folds overlap, so that the d_j are dependent; the term
    # n_test/n_train, `test_share`, accounts for it. The test assumes that they are normal and that
    # their correlation is n_test / (n_test + n_train).
    n, mean = len(differences), float(np.mean(differences))
    variance = (1 / n + test_share) * float(np.var(differences, ddof=1))
    if variance == 0:
        return 1.0 if mean == 0 else 0.0
    return float(2 * stats.t.sf(abs(mean) / np.sqrt(variance), n - 1))


def corrected_interval(values: np.ndarray, test_share: float) -> tuple[float, float]:
    """Interval of the mean over folds that goes with `corrected_t_test`."""
    n = len(values)
    error = np.sqrt((1 / n + test_share) * np.var(values, ddof=1))
    reach = stats.t.ppf((1 + CONFIDENCE) / 2, n - 1) * error
    return float(np.mean(values) - reach), float(np.mean(values) + reach)


def detectable_over_folds(differences: np.ndarray, test_share: float, level: float) -> float:
    """Smallest difference that `corrected_t_test` finds at this level, at this spread of folds."""
    n = len(differences)
    error = np.sqrt((1 / n + test_share) * np.var(differences, ddof=1))
    return float(stats.t.isf(level / 2, n - 1) * error)


def paired_test(differences: np.ndarray, is_median: bool = False) -> float:
    """Two-sided p-value of a paired t-test over objects; of Wilcoxon's test for medians.

    It compares two fitted models on independent objects; that other training objects would give
    other models is not taken into account.
    """
    if not np.any(differences):
        return 1.0
    if is_median:
        return float(stats.wilcoxon(differences).pvalue)
    if np.ptp(differences) == 0:
        return 0.0
    return float(stats.ttest_1samp(differences, 0).pvalue)


def detectable_over_objects(differences: np.ndarray, level: float) -> float:
    """Smallest difference that the paired t-test finds at this level, at this spread."""
    n = len(differences)
    if np.ptp(differences) == 0:
        return 0.0
    error = np.std(differences, ddof=1) / np.sqrt(n)
    return float(stats.t.isf(level / 2, n - 1) * error)


def by_group(differences: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Differences of objects as one value per group, with the same mean.

    Objects of a group depend on each other, the sums of groups do not. Groups of one object each
    leave the differences as they are.
    """
    sums = np.bincount(groups, differences)[np.unique(groups)]
    return sums * (len(sums) / len(differences))


def bootstrap(
    values: np.ndarray, groups: np.ndarray, is_median: bool, random_state: int
) -> stats._result_classes:
    """Percentile bootstrap over groups of objects of the mean over directions."""
    # `values` (n_objects, n_directions) are those of each object as a query, NaN where it is none;
    # `is_median` says that a direction's value is the median of its queries instead of their mean.
    _, groups = np.unique(groups, return_inverse=True)
    n_groups = int(groups.max()) + 1
    reduce = _weighted_medians if is_median else _weighted_means

    def statistic(drawn: np.ndarray, axis: int) -> np.ndarray:
        assert axis == -1
        places = np.atleast_2d(drawn) + n_groups * np.arange(np.atleast_2d(drawn).shape[0])[:, None]
        times = np.bincount(places.ravel(), minlength=places.shape[0] * n_groups)
        weights = times.reshape(-1, n_groups)[:, groups]  # of each object in each resample
        means = reduce(values, weights).mean(axis=-1)
        return means if drawn.ndim > 1 else means[0]

    return stats.bootstrap(
        (np.arange(n_groups),),
        statistic,
        n_resamples=_N_RESAMPLES,
        batch=_BATCH,
        vectorized=True,
        confidence_level=CONFIDENCE,
        method="percentile",
        random_state=random_state,
    )


def _weighted_means(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Mean of each column without NaN, for each row of weights, (n_resamples, n_columns)."""
    weights = weights.astype(np.float64)
    total = weights @ np.where(np.isfinite(values), values, 0.0)
    total[weights @ np.isinf(values) > 0] = np.inf  # a rank of a query without relevant items
    return total / (weights @ ~np.isnan(values))


def _weighted_medians(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Median of each column without NaN, in which row i occurs ``weights[:, i]`` times."""
    medians = []
    for column in values.T:
        order = np.argsort(column)[: np.sum(~np.isnan(column))]  # NaN is sorted last
        seen = np.cumsum(weights[:, order], axis=1)
        total = seen[:, -1:]
        middle = [(seen <= place).sum(axis=1) for place in ((total - 1) // 2, total // 2)]
        medians.append((column[order][middle[0]] + column[order][middle[1]]) / 2)
    return np.stack(medians, axis=1)


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Adjust p-values of several comparisons by Holm's method."""
    adjusted, largest = {}, 0.0
    for rank, name in enumerate(sorted(p_values, key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[name]))
        adjusted[name] = largest
    return adjusted


def holm_level(others: Iterable[float], level: float) -> float:
    """The level at which Holm's method tests one more hypothesis beside others with these p-values.

    It is rejected if its own p-value is smaller.
    """
    p_values = sorted(others)
    for n_rejected, p_value in enumerate(p_values):
        tested_at = level / (1 + len(p_values) - n_rejected)
        if p_value >= tested_at:
            return tested_at
    return level
