"""Intervals of correlations, loadings and weights: formulas, coverage, and what they refuse."""

from __future__ import annotations

import warnings
from itertools import permutations

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from scipy import linalg
from scipy.sparse import csr_array
from scipy.stats import t
from sklearn.decomposition import PCA
from sklearn.model_selection import KFold, RepeatedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.defaults import interval_coverage
from mvcca import CCA, PerView, Views
from mvcca.datasets import make_gaussian_views
from mvcca.inspection import (
    correlation_intervals,
    loading_intervals,
    loadings,
    stability,
    weight_intervals,
)

mpl.use("Agg")
CELLS = [
    (n, p, rho)
    for n, p in [(1000, 5), (200, 5), (200, 10), (200, 20), (1000, 20)]
    for rho in (0.3, 0.5, 0.8)
]
NEAR = "ignore:Components .* within two standard errors"
OVERLAP = "ignore:Components .* intervals of their correlations overlap"


def planted(seed, n, p, rho, q=None, draw=None):
    """Views whose component i correlates at rho[i], and of which feature 0 has loading .6."""
    rng = np.random.default_rng(seed)
    X, Y = ((draw or rng.normal)(size=(n, width)) for width in (p, q or p))
    for i, r in enumerate(rho):
        Y[:, i] = r * X[:, i] + np.sqrt(1 - r**2) * Y[:, i]
    for V in (X, Y):  # the last feature has loading -.8 on the first component
        V[:, [0, -1]] = V[:, [0, -1]] @ np.array([[0.6, -0.8], [0.8, 0.6]])
    return X, Y


def study():
    from benchmarks.real import fetch_brain_cognition

    data = fetch_brain_cognition()
    thickness, scores = (
        pd.DataFrame(block, columns=data.feature_names[name]) for name, block in data.views.items()
    )
    return thickness, scores, PCA(25, svd_solver="full").fit_transform(thickness)


# ---- correlations -------------------------------------------------------------------------------


def test_the_interval_inverts_the_bias_of_sample_correlations():
    n, p, q = 150, 7, 4
    X, Y = planted(0, n, p, [0.8], q)
    found = correlation_intervals(X, Y, random_state=0)
    # By hand: CCA by SciPy's generalized eigenproblem, and the quadratic equation by np.roots.
    S = np.cov(X, Y, rowvar=False)
    left, right = S[:p, :p], S[p:, p:]
    values, vectors = linalg.eigh(S[p:, :p] @ linalg.solve(left, S[:p, p:]), right)
    r, b = np.sqrt(values[-1]), vectors[:, -1]
    u, v = X @ linalg.solve(left, S[:p, p:] @ b) / r, Y @ b
    u, v = ((z - z.mean()) / z.std() for z in (u, v))
    psi = u * v - r * (u**2 + v**2) / 2
    s = max(1 / np.sqrt(n - 3), np.sqrt(np.mean(psi**2) / n) / (1 - r**2))

    def inverse(r):
        c1, c2 = p / (n - 1), q / (n - 1)
        equation = ((1 - c1) * (1 - c2), c2 * (1 - c1) + c1 * (1 - c2) - r**2, c1 * c2)
        return np.sqrt(np.roots(equation).real.max())

    assert found.correlations[0] == pytest.approx(r)
    assert found.estimate[0] == pytest.approx(inverse(r))
    assert found.low[0] == pytest.approx(inverse(np.tanh(np.arctanh(r) - 1.6448536 * s)), abs=1e-3)
    assert found.high[0] == pytest.approx(inverse(np.tanh(np.arctanh(r) + 1.6448536 * s)), abs=1e-3)
    assert found.flags[0] == ""


def test_components_at_the_noise_edge_are_called_that():
    found = correlation_intervals(*planted(1, 200, 10, [0.8, 0.0]), random_state=0)
    noise = found.correlations <= found.edge
    np.testing.assert_array_equal(noise, [False] + 9 * [True])
    assert (found.estimate[noise] == 0).all()
    assert (found.low[noise] == 0).all()
    # Correlations below (c_1 c_2 / ((1 - c_1) (1 - c_2)))^(1/4) leave no trace.
    share = 10 / 199
    assert found.high[-1] == pytest.approx(np.sqrt(share / (1 - share)))
    assert set(found.flags[1:]) == {"not distinguishable from noise"}


def test_components_near_the_edge_warn():
    with pytest.warns(UserWarning, match=r"Components 1: .* within two standard errors"):
        found = correlation_intervals(*planted(4, 200, 20, [0.5]), random_state=0)
    assert found.flags[0] == "near the noise edge"


@pytest.mark.filterwarnings(NEAR)
def test_overlapping_intervals_are_flagged():
    found = correlation_intervals(*planted(0, 300, 5, [0.6, 0.55]), random_state=0)
    assert found.low[0] < found.high[1]
    assert {flag.split("; ")[-1] for flag in found.flags[:2]} == {
        "root mean square of components 1 to 2"
    }
    assert found.low[0] == found.low[1] < np.sqrt((0.6**2 + 0.55**2) / 2) < found.high[0]


@pytest.mark.filterwarnings(NEAR)
def test_rows_of_groups_count_as_independent_ones():
    rng = np.random.default_rng(0)
    groups = rng.permutation(np.repeat(np.arange(60), 4))  # in any order
    X, Y = rng.standard_normal((2, 60, 5))[:, groups] + rng.standard_normal((2, 240, 5))
    found = correlation_intervals(X, Y, groups=groups)
    plain = correlation_intervals(X, Y, random_state=0)
    assert found.n_effective == pytest.approx(240 / (1 + 3 * 0.5**2), rel=0.1)
    assert plain.n_effective == 240
    assert found.edge > plain.edge
    assert "worth" in str(found)
    np.testing.assert_array_equal(found.correlations, plain.correlations)
    Y[:, 0] += 3 * X[:, 0]
    copies = np.repeat(np.arange(60), 4)  # as good as one row of each
    same = correlation_intervals(X[:60][copies], Y[:60][copies], groups=copies)
    assert same.n_effective == pytest.approx(60, rel=0.02)
    loadings = loading_intervals(X[:60][copies], Y[:60][copies], groups=copies, random_state=0)
    alone = loading_intervals(X[:60], Y[:60], random_state=0)
    np.testing.assert_allclose(loadings.low["X"][:, 0], alone.low["X"][:, 0], atol=0.02)


def test_deviations_of_few_groups_are_those_of_a_t_distribution():
    X, Y = planted(0, 200, 3, [0.9])
    groups = np.arange(200) % 4
    widths = []
    for level in (0.5, 0.9):
        found = weight_intervals(X, Y, groups=groups, level=level, n_resamples=50, random_state=0)
        widths.append((found.high["X"] - found.low["X"])[:, 0])
    np.testing.assert_allclose(widths[1] / widths[0], t.ppf(0.95, 3) / t.ppf(0.75, 3))
    for intervals in (correlation_intervals, loading_intervals, weight_intervals):
        with pytest.raises(ValueError, match=r"needs 3 groups or more, since .* got 2"):
            intervals(X, Y, groups=groups // 2)


def test_rows_of_a_common_scale_warn_and_count_less():
    rng = np.random.default_rng(0)
    X, Y = planted(0, 300, 10, [0.8])
    scale = np.sqrt(3 / rng.chisquare(3, (300, 1)))
    with pytest.warns(UserWarning, match="300 rows are worth"):
        found = correlation_intervals(X * scale, Y * scale, random_state=0)
    assert found.n_effective < 200


def test_just_above_the_edge_the_interval_given_that_is_in_the_flag():
    found = correlation_intervals(*planted(0, 200, 10, [0.6]), random_state=0)
    low, high = map(float, found.flags[0].split(" given ")[0].split(" to "))
    assert 0 < low < found.low[0] < high


def test_held_out_correlations_are_pooled_over_folds_and_aligned():
    X, Y = planted(2, 120, 6, [0.8, 0.7], 4)
    splits = list(KFold(5).split(X))
    found = correlation_intervals(X, Y, cv=splits)
    whole, pooled = CCA(4).fit(X, Y), {"X": np.empty((120, 4)), "y": np.empty((120, 4))}
    reference = whole.transform(Views({"X": X, "y": Y}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folds = [(CCA(4).fit(X[train], Y[train]), test) for train, test in splits]
    for model, test in folds:
        scores = model.transform(Views({"X": X, "y": Y}))
        agreement = sum(
            np.corrcoef(reference[name], scores[name], rowvar=False)[:4, 4:] for name in "Xy"
        )
        best = max(
            (np.abs(agreement[range(4), order]).sum(), order)
            for order in map(list, permutations(range(4)))
        )[1]
        for name in "Xy":
            pooled[name][test] = scores[name][test][:, best] * np.sign(agreement[range(4), best])
    by_hand = [np.corrcoef(pooled["X"][:, i], pooled["y"][:, i])[0, 1] for i in range(4)]
    np.testing.assert_allclose(found.held_out, by_hand, atol=1e-10)


@pytest.mark.filterwarnings(NEAR)
def test_the_held_out_interval_is_that_of_new_rows():
    rows = Views(dict(zip("Xy", planted(999, 20_000, 10, [0.7]), strict=True)))
    covered = []
    for seed in range(60):
        X, Y = planted(seed, 200, 10, [0.7])
        found = correlation_intervals(X, Y, random_state=0)
        new = CCA(1).fit(X, Y).transform(rows)
        r = np.corrcoef(new["X"][:, 0], new["y"][:, 0])[0, 1]
        covered.append(found.held_out_low[0] <= r <= found.held_out_high[0])
    assert np.mean(covered) >= 0.85


def test_confounds_are_removed_and_cost_rows():
    rng = np.random.default_rng(3)
    X, Y = planted(3, 150, 5, [0.7])
    Z = rng.normal(size=(150, 4))
    X, Y = X + Z @ rng.normal(size=(4, 5)), Y + Z @ rng.normal(size=(4, 5))
    found = correlation_intervals(X, Y, confounds=np.column_stack([Z, Z[:, 0] + 1]), cv=KFold(5))
    design = np.column_stack([np.ones(150), Z])
    rest = [V - design @ linalg.lstsq(design, V)[0] for V in (X, Y)]
    plain = correlation_intervals(*rest, cv=KFold(5))
    np.testing.assert_allclose(found.correlations, plain.correlations, atol=1e-10)
    assert (found.n_rows, plain.n_rows) == (146, 150)
    assert found.edge > plain.edge
    # In folds the regression is that of the training rows.
    scores = []
    for train, test in KFold(5).split(X):
        B = linalg.lstsq(design[train], np.hstack([X, Y])[train])[0]
        left = np.hstack([X, Y]) - design @ B
        model = CCA(1).fit(left[train, :5], left[train, 5:])
        ours = model.transform(Views({"X": left[:, :5], "y": left[:, 5:]}))
        reference = CCA(1).fit(*rest).transform(Views({"X": rest[0], "y": rest[1]}))
        sign = np.sign((ours["X"] * reference["X"]).sum() + (ours["y"] * reference["y"]).sum())
        scores.append(np.hstack([ours["X"], ours["y"]])[test] * sign)
    pooled = np.corrcoef(np.concatenate(scores), rowvar=False)[0, 1]
    assert found.held_out[0] == pytest.approx(pooled, abs=1e-10)


def test_units_rotations_and_storage_of_the_features_do_not_matter():
    X, Y = planted(5, 150, 6, [0.8])
    rng = np.random.default_rng(0)
    expected = correlation_intervals(X, Y, cv=KFold(4))
    turned = X @ rng.normal(size=(6, 6)) + 100, 1e6 * Y
    for views in (turned, (csr_array(X), Y), ({"X": X, "y": pd.DataFrame(Y)}, None)):
        found = correlation_intervals(*views, cv=KFold(4))
        for name in ("low", "high", "held_out"):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-8)


# ---- loadings and weights -----------------------------------------------------------------------


@pytest.mark.filterwarnings(NEAR)
@pytest.mark.filterwarnings(OVERLAP)
def test_loadings_and_weights_are_those_of_cca():
    X, Y = planted(0, 200, 5, [0.8, 0.6], 4)
    model = CCA(4).fit(X, Y)
    scores = model.transform(Views({"X": X, "y": Y}))
    expected = loadings(scores, {"X": X, "y": Y})
    found = loading_intervals(X, Y, n_resamples=2, random_state=0)
    weights = weight_intervals(X, Y, n_resamples=2, random_state=0)
    for name in "Xy":
        np.testing.assert_allclose(np.abs(found.in_sample[name]), np.abs(expected[name]), atol=1e-9)
        unit = model.weights_[name] / scores[name].std(axis=0, ddof=1)
        np.testing.assert_allclose(np.abs(weights.in_sample[name]), np.abs(unit), atol=1e-9)
    assert (found.in_sample["X"].max(axis=0) == np.abs(found.in_sample["X"]).max(axis=0)).all()


def test_corrected_intervals_are_the_bootstrap_deviation_over_the_shrinkage():
    n, p = 150, 5
    X, Y = planted(6, n, p, [0.7])
    found = loading_intervals(X, Y, n_resamples=400, random_state=0)
    c, rho = p / (n - 1), correlation_intervals(X, Y).estimate[0]
    t, N = rho**2, rho**4 * (1 - c) ** 2 - c**2
    kappa = np.sqrt(N / ((t * (1 - c) + c) * ((1 - c) ** 2 * t - c**2)))
    sample = found.in_sample["X"][:, 0]
    np.testing.assert_allclose(found.estimate["X"][:, 0], np.clip(sample / kappa, -1, 1))
    rng, drawn = np.random.default_rng(1), []
    for _ in range(400):
        rows = rng.integers(n, size=n)
        model = CCA(1).fit(X[rows], Y[rows])
        views = Views({"X": X[rows], "y": Y[rows]})
        loading = loadings(model, views)["X"][:, 0]
        drawn.append(np.arctanh(loading * np.sign(loading @ sample)))
    half = 1.6448536 * np.std(drawn, axis=0, ddof=1)
    low, high = (
        np.clip(np.tanh(np.arctanh(sample) + side * half) / kappa, -1, 1) for side in (-1, 1)
    )
    np.testing.assert_allclose(found.low["X"][:, 0], low, atol=0.06)
    np.testing.assert_allclose(found.high["X"][:, 0], high, atol=0.06)


def test_of_noise_nothing_is_claimed():
    X, Y = np.random.default_rng(0).normal(size=(2, 100, 6))
    for of, least in ((loading_intervals, -1), (weight_intervals, -np.inf)):
        found = of(X, Y, random_state=0)
        assert set(found.flags) == {"not distinguishable from noise"}
        assert np.isnan(found.estimate["X"]).all()
        assert (found.low["X"] == least).all()
        assert (found.high["y"] == -least).all()
        assert "noise: components 1, 2, 3, 4, 5, 6" in str(found)


@pytest.mark.filterwarnings(NEAR)
def test_close_components_offer_their_subspace():
    views = planted(0, 300, 5, [0.6, 0.55])
    with pytest.warns(UserWarning, match=r"Components 1\+2: intervals of their correlations overl"):
        found = loading_intervals(*views, random_state=0)
    (part,) = found.subspaces
    assert part.components == (0, 1)
    # Rotating the two scores leaves the communality as it is; here it is a multiple R².
    scores = CCA(2).fit(*views).transform(Views(dict(zip("Xy", views, strict=True))))["X"]
    design = np.column_stack([np.ones(300), scores])
    left = views[0] - design @ linalg.lstsq(design, views[0])[0]
    explained = 1 - left.var(axis=0) / views[0].var(axis=0)
    shrinkage = part.estimate["X"][0] / explained[0]
    assert 1 < shrinkage < 1.2
    inside = part.estimate["X"] < 1
    np.testing.assert_allclose(part.estimate["X"][inside], shrinkage * explained[inside])
    assert "1+2" in str(found)


def test_weights_of_dependent_columns_are_refused():
    X, Y = planted(0, 100, 4, [0.8])
    X = np.column_stack([X, X.sum(axis=1)])
    with pytest.warns(UserWarning, match="5 columns have rank 4"):
        loading_intervals(X, Y, n_resamples=5, random_state=0)
    with (
        pytest.warns(UserWarning, match="5 columns have rank 4"),
        pytest.raises(ValueError, match=r"Weights of view 'X' are not unique: its 5 .* rank 4"),
    ):
        weight_intervals(X, Y)


# ---- coverage -----------------------------------------------------------------------------------


def of_correlation(n, p, rho, i=0, q=None, draw=None):
    """The interval of component i, of the rows of a seed."""

    def interval(seed):
        drawn = draw and draw(np.random.default_rng(seed))
        found = correlation_intervals(*planted(seed, n, p, rho, q, drawn), cv=2, random_state=0)
        shift = 0
        if "components" in found.flags[i]:  # it is of several
            first, last = map(int, found.flags[i].split("components ")[1].split(" to "))
            shift = np.sqrt(np.mean(np.square([*rho, 0, 0][first - 1 : last]))) - rho[i]
        return found.low[i] - shift, found.high[i] - shift

    return interval


def of_variable(intervals, n, p, rho, variable=0):
    """The interval of a loading or weight on the first component."""

    def interval(seed):
        found = intervals(*planted(seed, n, p, [rho]), n_resamples=100, random_state=0)
        low, high = found.low["X"][variable, 0], found.high["X"][variable, 0]
        # The largest loading is positive, and -.8 in the population.
        return (-high, -low) if found.in_sample["X"][-1, 0] > 0 else (low, high)

    return interval


def exponential(rng):
    return lambda size: rng.exponential(size=size) - 1


def heavy_tailed(rng):
    return lambda size: rng.standard_t(5, size=size) * np.sqrt(3 / 5)


# The interval of a seed, the truth, and the least share of 300 intervals that must hold it.
SIMULATED = {f"ρ {cell}": (of_correlation(*cell[:2], cell[2:]), cell[2], 0.88) for cell in CELLS}
SIMULATED |= {
    f"ρ_{i + 1} of several": (of_correlation(200, 5, (0.8, 0.5, 0.3), i), rho, least)
    for i, (rho, least) in enumerate([(0.8, 0.86), (0.5, 0.86), (0.3, 0.81)])
}
SIMULATED["ρ, unequal views"] = (of_correlation(200, 40, [0.5], q=3), 0.5, 0.88)
SIMULATED |= {
    f"ρ, {draw.__name__}": (of_correlation(500, 5, [0.8], draw=draw), 0.8, 0.85)
    for draw in (exponential, heavy_tailed)
}
SIMULATED |= {
    f"loading {cell}": (of_variable(loading_intervals, *cell), 0.6, 0.87) for cell in CELLS
}
for cell in (CELLS[4], CELLS[8], CELLS[13]):
    of_none = of_variable(loading_intervals, *cell, variable=1)
    SIMULATED[f"loading of 0 {cell}"] = of_none, 0.0, 0.87
    for truth, variable in ((0.6, 0), (0.0, 1)):
        of_weight = of_variable(weight_intervals, *cell, variable)
        SIMULATED[f"weight of {truth:g} {cell}"] = of_weight, truth, 0.86


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("name", "n_seeds"),
    # Of fewer seeds, .06 less will do: 1.6 standard deviations.
    [
        *((name, 60) for name in [own for own in SIMULATED if "1000" not in own][::3]),
        *(pytest.param(name, 300, marks=pytest.mark.long) for name in SIMULATED),
    ],
)
def test_intervals_cover_the_truth_as_often_as_they_say(name, n_seeds):
    interval, truth, least = SIMULATED[name]
    covered = [low <= truth <= high for low, high in map(interval, range(n_seeds))]
    assert np.mean(covered) >= least - (0.06 if n_seeds < 300 else 0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("n_seeds", [80, pytest.param(300, marks=pytest.mark.long)])
@pytest.mark.parametrize(("n", "p"), [(200, 5), (200, 10)])
def test_communalities_cover_what_close_components_explain(n, p, n_seeds):
    views = (planted(seed, n, p, [0.5, 0.4]) for seed in range(n_seeds))
    found = [loading_intervals(*own, n_resamples=100, random_state=0) for own in views]
    hits = [
        part.low["X"][0] <= 0.36 <= part.high["X"][0]
        for own in found
        for part in own.subspaces
        if part.components == (0, 1)
    ]
    assert len(hits) > n_seeds / 3
    assert np.mean(hits) >= 0.85 - (0.06 if n_seeds < 300 else 0)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("rows", "case"),
    [
        *((interval_coverage.of_families, own) for own in interval_coverage.FAMILIES),
        *((interval_coverage.of_common_scale, own) for own in interval_coverage.HEAVY),
    ],
    ids=str,
)
def test_intervals_of_rows_that_are_worth_fewer_cover_as_often_as_they_say(rows, case):
    """Families cover .71 to .77 if all rows count, and multivariate t with 20 features .80."""
    found = [interval_coverage.interval(*rows(seed, *case)) for seed in range(200)]
    covered = [low[0] <= case[-1] <= high[0] for low, high, *_ in found]
    assert np.mean(covered) >= 0.9 - 3 * np.sqrt(0.9 * 0.1 / 200)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("case", interval_coverage.TIES, ids=str)
def test_equal_correlations_share_one_interval_that_covers_them(case):
    """Of single ones, three of .6 were covered .70, .98 and .54 of the time.

    Of ten of .5, the smallest sample correlations lie in the noise.
    """
    n_known, covered, flagged = min(len(case[-1]), 3), [], []
    for seed in range(200):
        low, high, flags, _ = interval_coverage.interval(*interval_coverage.of_normal(seed, *case))
        flagged.append(
            all("root mean square of components 1 to" in flag for flag in flags[:n_known])
        )
        covered.append(low[0] <= case[-1][0] <= high[0])
        if flagged[-1]:
            assert len({*low[:n_known], *high[:n_known]}) == 2
    assert np.mean(flagged) >= 0.9
    assert np.mean(covered) >= 0.9 - 3 * np.sqrt(0.9 * 0.1 / 200)


# ---- the study ----------------------------------------------------------------------------------


@pytest.mark.needs_data("brain_cognition.npz")
def test_the_published_study_lies_below_the_noise_edge():
    _, scores, reduced = study()
    found = correlation_intervals(reduced, scores, random_state=0)
    assert found.correlations[0] == pytest.approx(0.544013815175, abs=1e-11)
    assert found.edge == pytest.approx(0.573474464778, abs=1e-11)
    assert (found.estimate == 0).all()
    assert set(found.flags) == {"not distinguishable from noise"}
    assert found.held_out[0] < 0.25
    assert np.isnan(loading_intervals(reduced, scores).estimate["y"]).all()


@pytest.mark.filterwarnings("ignore:Few rows")
@pytest.mark.needs_data("brain_cognition.npz")
def test_loadings_of_the_first_mode_are_the_published_ones():
    thickness, toolbox, reduced = study()
    found = loading_intervals(reduced, toolbox, n_resamples=2, random_state=0)
    own = found.in_sample["y"][:, 0]
    published = np.array([0.169585686881, -0.768011145714, -0.257871756755, 0.449942510517])
    sign = np.sign(own @ published)
    np.testing.assert_allclose(sign * own, published, rtol=1e-9)
    assert found.columns["y"] == ("flanker", "list.sort", "picture", "card.sort")
    model = CCA(1).fit(Views({"brain": reduced, "toolbox": toolbox}))
    scores = model.transform(Views({"brain": reduced, "toolbox": toolbox}))
    views = Views({"brain": thickness, "toolbox": toolbox})
    cross = loadings(scores, views, variates="brain")["toolbox"][:, 0]
    sign = np.sign(cross @ published)
    np.testing.assert_allclose(
        sign * cross,
        [0.092256956519, -0.417808673477, -0.140285798218, 0.244774941756],
        rtol=1e-9,
    )
    of_brain = sign * loadings(scores, views)["brain"][:, 0]
    of_regions = dict(zip(thickness, of_brain, strict=True))
    assert of_regions["lh_transversetemporal_thickness"] == pytest.approx(-0.517478870947)
    assert of_regions["rh_pericalcarine_thickness"] == pytest.approx(-0.384666042824)


# ---- stability ----------------------------------------------------------------------------------


def test_stability_is_the_cosine_of_weights_in_the_metric_of_the_covariance():
    X, Y = planted(0, 200, 4, [0.8, 0.5])
    halves = [(np.arange(100), np.arange(100, 200)), (np.arange(0, 200, 2), np.arange(1, 200, 2))]
    found = stability(CCA(2), X, Y, cv=halves)
    S = np.cov(X, rowvar=False)
    for i, split in enumerate(halves):
        models = [CCA(2).fit(X[half], Y[half]) for half in split]
        a, b = (model.weights_["X"] for model in models)
        cosines = np.diag(a.T @ S @ b) / np.sqrt(np.diag(a.T @ S @ a) * np.diag(b.T @ S @ b))
        np.testing.assert_allclose(found.weights["X"][i], np.abs(cosines), atol=1e-10)
        loadings = [
            [[np.corrcoef(x, z)[0, 1] for z in (X[half] @ m.weights_["X"]).T] for x in X[half].T]
            for m, half in zip(models, split, strict=True)
        ]
        for k in range(2):
            r = np.corrcoef(*(np.array(own)[:, k] for own in loadings))[0, 1]
            assert found.loadings["X"][i, k] == pytest.approx(abs(r), abs=1e-10)


def test_stability_takes_pipelines_and_splitters():
    views = make_gaussian_views(
        200, n_features=(3, 2), correlations=(0.8, 0.6), random_state=0
    ).views
    model = make_pipeline(PerView(StandardScaler()), CCA(2))
    found = stability(model, views, cv=RepeatedKFold(n_splits=2, n_repeats=3, random_state=0))
    assert found.weights["view0"].shape == (6, 2)
    assert np.isnan(found.loadings["view1"]).all()  # two variables agree by construction
    plain = stability(CCA(2), views, cv=RepeatedKFold(n_splits=2, n_repeats=3, random_state=0))
    np.testing.assert_allclose(found.weights["view0"], plain.weights["view0"], atol=1e-8)


# ---- tables, plots and errors -------------------------------------------------------------------


@pytest.mark.filterwarnings(NEAR)
@pytest.mark.filterwarnings(OVERLAP)
def test_results_are_tables_and_plots():
    X, Y = planted(0, 300, 3, [0.8, 0.6])
    frame = pd.DataFrame(X, columns=["age", "iq", "height"])
    results = {
        "correlations": correlation_intervals(X, Y, random_state=0),
        "loadings": loading_intervals(frame, Y, n_resamples=20, random_state=0),
        "weights": weight_intervals(frame, Y, n_resamples=20, random_state=0),
        "stability": stability(CCA(2), X, Y, cv=3, random_state=0),
    }
    lengths = {"correlations": 3, "loadings": 18, "weights": 18, "stability": 4}
    for name, result in results.items():
        table = result.to_frame()
        assert len(table) == lengths[name]
        assert str(result).split()[0] == table.columns[0]
        ax = result.plot()
        assert ax.get_xlabel()
        assert result.plot(ax) is ax
    table = results["loadings"].to_frame()
    assert table["variable"][:3].tolist() == ["age", "iq", "height"]
    assert table["variable"][3] == "y 0"
    assert [text.get_text() for text in results["loadings"].plot().get_yticklabels()][1] == "iq"
    mpl.pyplot.close("all")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X, Y: correlation_intervals(X, Y, level=90), "level between 0 and 1"),
        (lambda X, Y: loading_intervals(X, Y, level=1), "level between 0 and 1"),
        (lambda X, Y: correlation_intervals(X[:7], Y[:7]), "more rows than p . q . 1, got 7"),
        (
            lambda X, Y: correlation_intervals(X[:8], Y[:8], cv=2),
            r"Training parts of 4 rows are too few .* Use more folds",
        ),
        (lambda X, _: correlation_intervals(X), "got one matrix"),
    ],
)
def test_bad_input_says_what_to_do(call, message):
    X, Y = np.random.default_rng(0).normal(size=(2, 60, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match=message):
            call(X, Y)


def test_intervals_take_rows_not_models():
    X = np.random.default_rng(0).normal(size=(60, 3))
    for of in (correlation_intervals, loading_intervals, weight_intervals):
        with pytest.raises(TypeError, match="takes rows, not a model"):
            of(CCA(1), X)
