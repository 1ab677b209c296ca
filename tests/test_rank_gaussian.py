"""`RankGaussian` against SciPy, value by value."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from sklearn.pipeline import make_pipeline

from mvcca import CCA, PerView, load, save
from mvcca.compose import RankGaussian

RNG = np.random.default_rng(0)


def _blom(column):
    return stats.norm.ppf((stats.rankdata(column) - 3 / 8) / (len(column) + 1 / 4))


def test_training_values_become_normal_scores():
    X = np.column_stack([RNG.exponential(size=50), RNG.integers(0, 4, 50), np.ones(50)])
    scores = RankGaussian().fit_transform(X)
    np.testing.assert_allclose(scores[:, :2], np.apply_along_axis(_blom, 0, X[:, :2]), atol=1e-12)
    np.testing.assert_allclose(scores[:, 2], 0, atol=1e-12)


def test_monotone_transforms_change_nothing():
    X = RNG.standard_normal((40, 3))
    np.testing.assert_array_equal(
        RankGaussian().fit_transform(X), RankGaussian().fit_transform(np.exp(3 * X))
    )


def test_new_values_lie_between_those_of_their_neighbours():
    step = RankGaussian().fit(np.array([[1.0], [2.0], [4.0]]))
    low, middle, high = step.transform([[1.0], [2.0], [4.0]]).ravel()
    new = step.transform([[-9.0], [1.5], [3.0], [99.0]]).ravel()
    np.testing.assert_allclose(new, [low, (low + middle) / 2, (middle + high) / 2, high])


def test_missing_values_stay_missing_and_count_for_nothing():
    X = RNG.standard_normal((30, 2))
    holes = X.copy()
    holes[:7, 1] = np.nan
    scores = RankGaussian().fit_transform(holes)
    assert np.isnan(scores[:7, 1]).all()
    np.testing.assert_array_equal(scores[7:, 1], RankGaussian().fit_transform(X[7:])[:, 1])


def test_what_it_does_not_take():
    with pytest.raises(ValueError, match="Column 1 has no value: all are missing"):
        RankGaussian().fit([[1, np.nan], [2, np.nan]])
    with pytest.raises(TypeError, match="Sparse data was passed"):
        RankGaussian().fit(sparse.eye_array(3).tocsr())
    with pytest.raises(ValueError, match="infinity"):
        RankGaussian().fit([[1.0], [np.inf]])


def test_it_is_a_step_of_pipelines_that_are_saved(tmp_path):
    X = pd.DataFrame(RNG.exponential(size=(60, 3)), columns=list("abc"))
    rows = [X, X**2 + RNG.exponential(size=(60, 3))]
    model = make_pipeline(PerView(RankGaussian()), CCA(2)).fit(rows)
    save(model, tmp_path / "model.mvcca")
    again = load(tmp_path / "model.mvcca")
    for own, stored in zip(model.transform(rows), again.transform(rows), strict=True):
        np.testing.assert_array_equal(own, stored)


def test_weighted_ranks_are_those_of_repeated_rows():
    X, weights = (
        np.random.default_rng(0).normal(size=(40, 2)).round(1),
        np.random.default_rng(1).integers(0, 4, 40),
    )
    weighted = RankGaussian().fit(X, sample_weight=weights)
    repeated = RankGaussian().fit(np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(weighted.transform(X), repeated.transform(X), atol=1e-12)
