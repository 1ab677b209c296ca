"""Parametric tests give R's figures, and statsmodels' under McKeon's approximation."""

from __future__ import annotations

import numpy as np
import pytest
from r_data import LIFE_CYCLE_SAVINGS, MTCARS
from scipy import linalg
from sklearn.datasets import load_iris, load_linnerud
from sklearn.decomposition import PCA

from mvcca import CCA, Views
from mvcca.inspection import parametric_tests


def savings():
    return parametric_tests(LIFE_CYCLE_SAVINGS[:, [1, 2]], LIFE_CYCLE_SAVINGS[:, [0, 3, 4]])


def iris():
    X = load_iris().data
    return parametric_tests(X[:, :2], X[:, 2:])


def linnerud(**options):
    return parametric_tests(*load_linnerud(return_X_y=True), **options)


def cars():
    return parametric_tests(MTCARS[:, [1, 2, 3, 7]], MTCARS[:, [0, 4, 5, 6]])


def brain():
    from benchmarks.real import fetch_brain_cognition

    thickness, scores = (block for _, block in fetch_brain_cognition().views.items())
    reduced = PCA(svd_solver="full").fit(thickness)
    explained = np.cumsum(reduced.explained_variance_ratio_)
    k = int(np.argmax(explained >= 0.9)) + 1
    np.testing.assert_allclose((k, explained[k - 1]), (25, 0.901916), atol=1e-6)
    return parametric_tests(reduced.transform(thickness)[:, :k], scores)


# R 4.2 (cancor, manova), and statsmodels 0.15 for McKeon's approximation. Of the value, F, degrees
# of freedom and p-value, None was not published.
PUBLISHED = [
    (savings, "wilks", 0, (0.277052637024, 13.4977199935, 6, 90, 7.30034826867e-11)),
    (savings, "bartlett", 0, (0.277052637024, 59.0431972126, 6, None, None)),
    (savings, "wilks", 1, (0.866573333156, 3.54131983987, 2, 46, 0.0371126845979)),
    (savings, "pillai", 0, (0.813716116769, 10.5177020724, 6, 92, None)),
    (savings, "hotelling_lawley", 0, (2.28179964636, 16.7331974067, 6, 88, None)),
    (savings, "roy", 0, (2.12782921854, 32.6267146843, 3, 46, None)),
    (iris, "wilks", 0, (0.112817398523, 144.337576305, 4, 292, None)),
    (iris, "wilks", 1, (None, 2.29319581846, 1, 147, 0.132089316768)),
    (iris, "pillai", 0, (0.900783003792, 60.2315566509, None, None, None)),
    (linnerud, "wilks", 0, (0.350390533354, 2.04823353346, 9, 34.2229271236, 0.0635309381523)),
    (linnerud, "bartlett", 0, (0.350390533354, 16.2549575230, 9, None, None)),
    (linnerud, "wilks", 1, (None, 0.175782293083, 4, 30, None)),
    (linnerud, "wilks", 2, (None, 0.0847092598304, 1, 16, None)),
    (linnerud, "pillai", 0, (0.678481507445, 1.55870739402, 9, 48, None)),
    (linnerud, "hotelling_lawley", 0, (1.77194145971, 2.49384353589, 9, 38, None)),
    (linnerud, "roy", 0, (1.72473873545, 9.19860658909, 3, 16, None)),
    (cars, "wilks", 0, (0.0172479628722, 12.8371258532, 16, 73.9588372776, None)),
]
STUDY = [
    ("wilks", (0.419311342616, 1.07517385694, 100, 438.629170115, 0.309126947651)),
    ("pillai", (0.769899976200, 1.07734988600, 100, 452, 0.303915962469)),
    ("hotelling_lawley", (0.988880899620, None, None, None, None)),
]
CORRELATIONS = [
    (savings, (0.8247966112474, 0.3652761514851)),
    (iris, (0.9409689969757, 0.1239368812054)),
    (linnerud, (0.795608154420, 0.200556041107, 0.0725702862104)),
    (cars, (0.974142672310, 0.685586519569, 0.601820836038, 0.0197271520992)),
    pytest.param(
        brain,
        (0.544013815175, 0.448658301429, 0.390450808239, 0.346702812224),
        marks=pytest.mark.needs_data("brain_cognition.npz"),
    ),
]


def assert_published(test, step, figures):
    found = [getattr(test, name)[step] for name in ("value", "statistic", "df1", "df2", "p_value")]
    pairs = [(a, b) for a, b in zip(found, figures, strict=True) if b is not None]
    ours, published = zip(*pairs, strict=True)
    np.testing.assert_allclose(ours, published, rtol=1e-11)  # they are published to 12 digits


@pytest.mark.parametrize(("data", "correlations"), CORRELATIONS)
def test_correlations_are_those_of_r(data, correlations):
    np.testing.assert_allclose(data().correlations, correlations, rtol=1e-11)


@pytest.mark.parametrize(("data", "statistic", "step", "figures"), PUBLISHED)
def test_statistics_are_those_of_r(data, statistic, step, figures):
    assert_published(getattr(data(), statistic), step, figures)


@pytest.mark.needs_data("brain_cognition.npz")
def test_statistics_of_the_study_are_those_of_r():
    tests = brain()
    for statistic, figures in STUDY:
        assert_published(getattr(tests, statistic), 0, figures)


def test_the_approximation_of_hotelling_and_lawley_is_named():
    assert linnerud().hotelling_lawley.approximation == "F (R)"
    test = linnerud(approximation="mckeon").hotelling_lawley
    assert test.approximation == "F (McKeon)"
    assert_published(test, 0, (1.77194145971, 2.63968233916, 9, 19.0526315789, None))


def test_confounds_are_covariates_of_a_multivariate_analysis_of_variance():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(60, 3))
    X, Y = (
        Z @ rng.normal(size=(3, 4)) + rng.normal(size=(60, 4)),
        rng.normal(size=(60, 2)) + Z[:, :2],
    )
    Y[:, 0] += X[:, 0]
    twice = np.column_stack([Z, Z[:, 0]])  # of rank 3
    found = parametric_tests(X, Y, confounds=twice)
    ones = np.ones((60, 1))

    def left(*terms):
        residuals = Y - np.hstack(terms) @ linalg.lstsq(np.hstack(terms), Y)[0]
        return residuals.T @ residuals

    error, null = left(ones, Z, X), left(ones, Z)
    assert found.wilks.value[0] == pytest.approx(linalg.det(error) / linalg.det(null), abs=1e-12)
    assert found.pillai.value[0] == pytest.approx(np.trace(linalg.inv(null) @ (null - error)))
    # As many error degrees of freedom as rows less an intercept, confounds and features: 60 - 8.
    # With two columns in Y, Rao's F is exact: t = 2, df2 = 2 (52 - 1).
    assert found.n_rows == 57
    assert (found.wilks.df1[0], found.wilks.df2[0]) == (8, pytest.approx(102))


def test_a_view_may_hold_the_confounds():
    rng = np.random.default_rng(0)
    X, Y, Z = (rng.normal(size=(50, width)) for width in (3, 2, 2))
    found = parametric_tests(Views({"a": X, "b": Y, "age": Z}), confounds="age")
    expected = parametric_tests(X, Y, confounds=Z)
    np.testing.assert_allclose(found.wilks.p_value, expected.wilks.p_value, rtol=1e-10)


def test_integer_weights_are_repeated_rows():
    X, Y = load_linnerud(return_X_y=True)
    times = np.random.default_rng(0).integers(0, 4, size=20)
    found = parametric_tests(X, Y, sample_weight=times)
    expected = parametric_tests(np.repeat(X, times, axis=0), np.repeat(Y, times, axis=0))
    assert found.n_rows == times.sum()
    np.testing.assert_allclose(found.wilks.p_value, expected.wilks.p_value, rtol=1e-10)
    with pytest.raises(ValueError, match=r"whole numbers, got 0.5: tests and intervals"):
        parametric_tests(X, Y, sample_weight=np.full(20, 0.5))


def test_one_feature_is_the_f_test_of_a_regression():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    design = np.column_stack([np.ones(40), X])
    error = ((y - design @ linalg.lstsq(design, y)[0]) ** 2).sum()
    total = ((y - y.mean()) ** 2).sum()
    by_hand = (total - error) / 3 / (error / 36)
    found = parametric_tests(X, y)
    for test in (found.wilks, found.pillai, found.hotelling_lawley, found.roy):
        assert test.statistic[0] == pytest.approx(by_hand)
        assert (test.df1[0], test.df2[0]) == (3, pytest.approx(36))


def test_the_table_has_a_line_per_test():
    tests = savings()
    frame = tests.to_frame()
    assert frame["test"].tolist() == [
        *("Wilks", "Wilks", "Wilks (Bartlett)", "Wilks (Bartlett)"),
        *("Pillai", "Hotelling-Lawley", "Roy"),
    ]
    assert frame["p_value"][1] == pytest.approx(0.0371126845979)
    text = str(tests)
    assert len(text.splitlines()) == 9
    assert "Wilks             2           0.8666  F (Rao)" in text
    assert "Roy's largest root is a lower bound" in text


def test_correlations_of_one_are_certain():
    X = np.random.default_rng(0).normal(size=(30, 3))
    tests = parametric_tests(X, X @ np.diag([1, 2, 3]) + 5)
    assert tests.wilks.p_value[0] < 1e-200
    assert tests.hotelling_lawley.p_value[0] < 1e-100


def test_dependent_columns_do_not_count():
    X, Y = load_linnerud(return_X_y=True)
    with pytest.warns(UserWarning, match="View 'X': 5 columns have rank 3"):
        found = parametric_tests(np.column_stack([X, X[:, 0] - X[:, 1], np.ones(20)]), Y)
    np.testing.assert_allclose(found.wilks.p_value, linnerud().wilks.p_value)


def test_rows_that_cannot_be_tested_say_why():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(9, 4)), rng.normal(size=(9, 4))
    with pytest.raises(ValueError, match=r"more rows than p \+ q \+ 1, got 9 rows for 4 and 4"):
        parametric_tests(X, Y)
    X, Y, Z = X[:, :2], Y[:, :2], rng.normal(size=(9, 4))
    with pytest.raises(ValueError, match="9 rows less 4 confounds for 2 and 2"):
        parametric_tests(X, Y, confounds=Z)
    with pytest.raises(ValueError, match="Expected confounds of 9 objects, got 8 rows"):
        parametric_tests(X, Y, confounds=Z[1:])
    with pytest.raises(ValueError, match="explain view 'X' completely"):
        parametric_tests(X, Y, confounds=X)
    with pytest.raises(ValueError, match=r"confounds: .*NaN"):
        parametric_tests(X, Y, confounds=np.where(np.eye(9, 4) > 0, np.nan, Z))
    with pytest.raises(ValueError, match=r"more rows than p \+ q \+ 4 = 8"):
        parametric_tests(X[:8], Y[:8], approximation="mckeon")
    with pytest.raises(ValueError, match="'r' or 'mckeon', got 'sas'"):
        parametric_tests(X, Y, approximation="sas")
    with pytest.raises(TypeError, match="takes rows, not a model"):
        parametric_tests(CCA(1), X)
    with pytest.raises(ValueError, match="takes two paired views"):
        parametric_tests(Views({"a": X, "b": Y, "c": Z}))
