"""Frequencies in intervals and in the stability of components, judged by repeated rows."""

from __future__ import annotations

import numpy as np
import pytest

from mvcca import CCA
from mvcca.datasets import make_gaussian_views
from mvcca.inspection import (
    correlation_intervals,
    loading_intervals,
    stability,
    weight_intervals,
)

N = 120
VIEWS = make_gaussian_views(N, correlations=(0.9, 0.7), random_state=0).views
X, Y = (block for _, block in VIEWS.items())
Z = np.random.default_rng(1).standard_normal((N, 2))
TIMES = np.random.default_rng(2).integers(0, 4, N)
ROWS = np.repeat(np.arange(N), TIMES)
HALVES = np.array_split(np.random.default_rng(3).permutation(N), 3)
SPLITS = [(np.setdiff1d(np.arange(N), part), part) for part in HALVES]  # of the rows as given
EXPANDED = [tuple(np.flatnonzero(np.isin(ROWS, part)) for part in split) for split in SPLITS]


@pytest.mark.filterwarnings("ignore::UserWarning")  # of components near the noise edge
def test_frequencies_of_intervals_are_repetitions():
    found = correlation_intervals(X, Y, confounds=Z, cv=SPLITS, sample_weight=TIMES)
    expected = correlation_intervals(X[ROWS], Y[ROWS], confounds=Z[ROWS], cv=EXPANDED)
    for name in ("estimate", "low", "high", "held_out"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-10)
    assert found.n_rows == TIMES.sum() - 2
    options = {"n_resamples": 20, "random_state": 0}
    for function, own, repeated in (
        (weight_intervals, {}, {}),
        (
            loading_intervals,
            {"variables": {"X": X, "y": Y}},
            {"variables": {"X": X[ROWS], "y": Y[ROWS]}},
        ),
    ):
        found = function(X, Y, confounds=Z, sample_weight=TIMES, **own, **options)
        expected = function(X[ROWS], Y[ROWS], confounds=Z[ROWS], **repeated, **options)
        for name in found.low:
            np.testing.assert_allclose(found.low[name], expected.low[name], atol=1e-10)
            np.testing.assert_allclose(found.high[name], expected.high[name], atol=1e-10)


def test_frequencies_of_stability_are_repetitions():
    found = stability(CCA(2), {"a": X, "b": Y}, cv=SPLITS, sample_weight=TIMES)
    expected = stability(CCA(2), {"a": X[ROWS], "b": Y[ROWS]}, cv=EXPANDED)
    for name in "ab":
        np.testing.assert_allclose(found.weights[name], expected.weights[name], atol=1e-10)
        np.testing.assert_allclose(found.loadings[name], expected.loadings[name], atol=1e-10)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_frequency_zero_is_absence_in_folds():
    present = TIMES > 0
    weighted = correlation_intervals(X, Y, sample_weight=present, random_state=0)
    expected = correlation_intervals(X[present], Y[present], random_state=0)
    np.testing.assert_allclose(weighted.held_out, expected.held_out, atol=1e-10)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_groups_whose_rows_all_weigh_0_are_no_groups():
    groups = np.arange(N) // 10
    present = groups % 2 == 1
    found = correlation_intervals(X, Y, groups=groups, sample_weight=present, random_state=0)
    expected = correlation_intervals(X[present], Y[present], groups=groups[present], random_state=0)
    for name in ("low", "high", "held_out"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-10)


@pytest.mark.parametrize("function", [correlation_intervals, loading_intervals, weight_intervals])
def test_fractional_frequencies_are_refused(function):
    with pytest.raises(ValueError, match=r"whole numbers, got 0\.5: tests and intervals"):
        function(X, Y, sample_weight=np.full(N, 0.5))
    with pytest.raises(ValueError, match=r"whole numbers, got 0\.5: tests and intervals"):
        stability(CCA(1), [X, Y], sample_weight=np.full(N, 0.5))


def test_halves_have_as_many_components_as_the_least_of_them():
    views = {"a": X[:8, :3], "b": Y[:8, :3]}
    found = stability(CCA(None, reg=0.1), views, random_state=0)
    assert {own.shape for own in found.weights.values()} == {(20, 2)}
    with pytest.raises(ValueError, match="Halves need 4 rows or more, got 3"):
        stability(CCA(1, reg=0.1), [X[:3], Y[:3]])
