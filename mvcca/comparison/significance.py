"""Standard errors, intervals and paired tests of differences between methods."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy import stats

CONFIDENCE = 0.95
_N_RESAMPLES = 1000
_BATCH = 50  # resamples in memory at once


def corrected_t_test(differences: np.ndarray, test_share: float) -> float:
    """Two-sided p-value of the corrected resampled t-test of Nadeau and Bengio [1]_.

    With the differences d_j between two methods on J folds, mean m and variance s²,

        t = m / √((1/J + n_test/n_train) s²),   J - 1 degrees of freedom.

    The training parts of different folds overlap, so that the d_j are dependent; the term
    n_test/n_train accounts for it. The test assumes that they are normal and that their correlation
    is n_test / (n_test + n_train).

    Parameters
    ----------
    differences : ndarray, shape (n_folds,)
    test_share : float
        n_test / n_train.

    References
    ----------
    .. [1] Nadeau and Bengio, "Inference for the Generalization Error", Machine Learning 52, 2003,
       section 4.1.
    """
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


def bootstrap(values: np.ndarray, is_median: bool, random_state: int) -> stats._result_classes:
    """Percentile bootstrap over objects of the mean over directions.

    Parameters
    ----------
    values : ndarray, shape (n_objects, n_directions)
        Value of each object as a query in each direction; NaN where it is no query.
    is_median : bool
        Whether a direction's value is the median of its queries instead of their mean.
    random_state : int

    Returns
    -------
    BootstrapResult
        With `confidence_interval` and `standard_error`.
    """
    reduce = np.nanmedian if is_median else np.nanmean

    def statistic(objects: np.ndarray, axis: int) -> np.ndarray:
        assert axis == -1
        return reduce(values[objects], axis=-2).mean(axis=-1)

    return stats.bootstrap(
        (np.arange(len(values)),),
        statistic,
        n_resamples=_N_RESAMPLES,
        batch=_BATCH,
        vectorized=True,
        confidence_level=CONFIDENCE,
        method="percentile",
        random_state=random_state,
    )


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Adjust p-values of several comparisons by Holm's method."""
    adjusted, largest = {}, 0.0
    for rank, name in enumerate(sorted(p_values, key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[name]))
        adjusted[name] = largest
    return adjusted
