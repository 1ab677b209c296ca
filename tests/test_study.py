"""Studies of two sets of variables, in Python and by `mvcca test`, from tables to a report."""

from __future__ import annotations

import html
import json
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_score

from benchmarks import real
from mvcca import CCA, Views, load, save
from mvcca.cli import main
from mvcca.datasets import make_gaussian_views
from mvcca.inspection import permutation_test, study
from mvcca.inspection._intervals import NOISE
from mvcca.model_selection import required_correlation
from mvcca.problem.bias import SampleBias


def _cohort(n_rows: int = 300, effect: float = 0.0, seed: int = 0, curved: float = 0.0):
    """Two views that depend on age, by `curved` on its square, and by `effect` on each other."""
    rng = np.random.default_rng(seed)
    age = rng.standard_normal((n_rows, 1))
    shared = rng.standard_normal((n_rows, 1))
    X = 2 * age + curved * age**2 + rng.standard_normal((n_rows, 6))
    Y = age + curved * age**2 + rng.standard_normal((n_rows, 4))
    X[:, :1] += effect * shared
    Y[:, :1] += effect * shared
    return X, Y, age


@pytest.mark.filterwarnings("ignore:Rows that are large in one view")  # by age squared
@pytest.mark.parametrize("curved", [0.0, 1.0])
def test_confounds_alone_are_not_found(curved):
    X, Y, age = _cohort(curved=curved)
    options = {"rank_gaussian": not curved, "n_permutations": 99, "random_state": 0}
    assert study(X, Y, **options).significant[0]
    result = study(X, Y, confounds=age, **options)
    assert not result.significant.any()
    assert result.n_confounds == 2
    assert abs(result.held_out[0]) < 0.2
    if curved:
        assert study(X, Y, confounds=age, degree=1, **options).significant[0]


def test_products_of_confounds_are_not_found_either():
    rng = np.random.default_rng(0)
    age, sex = rng.standard_normal(300), rng.integers(0, 2, 300)
    product = 1.5 * age * (2 * sex - 1)
    X, Y = product[:, None] + rng.standard_normal((2, 300, 4))
    options = {"confounds": {"age": age, "sex": sex}, "n_permutations": 99, "random_state": 0}
    result = study(X, Y, **options)
    assert not result.significant.any()
    assert result.coding == ("age and its square", "sex", "products of all pairs")
    assert result.n_confounds == 4
    assert max(result.residual_dependence.values()) < 0.05
    assert "nothing that both views share is left" in str(result)
    without = study(X, Y, degree="squares", **options)
    assert without.significant[0]
    assert min(without.residual_dependence.values()) > 0.1
    assert "may be due to confounds" in str(without)
    many = {f"z{i}": column for i, column in enumerate(rng.standard_normal((30, 300)))}
    assert study(X, Y, **options | {"confounds": many, "cv": 2}).n_confounds == 60  # no products


def test_what_is_left_without_confounds_is_found():
    X, Y, age = _cohort(effect=2.0)
    result = study(X, Y, confounds=age, n_permutations=99, random_state=0)
    np.testing.assert_array_equal(result.significant, [True, False, False, False])
    assert result.intervals.low[0] < result.held_out[0] < result.intervals.correlations[0]
    assert next(result.sorted_loadings())[:2] == ("X", "X 0")
    low, high = result.loading_ends["X"][:, 0, 0]
    assert low < result.loadings["X"][0, 0] < high


def test_without_steps_it_is_cca_and_its_test():
    views = make_gaussian_views(200, correlations=(0.6,), random_state=1).views
    result = study(views, rank_gaussian=False, n_permutations=99, random_state=3)
    model = CCA(None).fit(views)
    rho = model.canonical_correlations_
    np.testing.assert_allclose(result.intervals.correlations, rho, atol=1e-10)
    test = permutation_test(views, statistic="roy", n_permutations=99, random_state=3)
    np.testing.assert_array_equal(result.test.p_values, test.p_values)


@pytest.mark.parametrize("rank_gaussian", [True, False])
def test_data_frames_name_the_variables_and_change_nothing_else(rank_gaussian):
    X, Y, age = _cohort(100, effect=2.0)
    options = {"rank_gaussian": rank_gaussian, "n_permutations": 19, "random_state": 0}
    options["n_components"] = {"X": 3, "y": 4}
    frames = pd.DataFrame(X, columns=list("abcdef")), pd.DataFrame(Y, columns=list("uvwx"))
    expected = study(X, Y, confounds=age, **options)
    result = study(*frames, confounds=pd.DataFrame(age, columns=["age"]), **options)
    assert result.variables == {"X": tuple("abcdef"), "y": tuple("uvwx")}
    assert str(result) != str(expected)
    for name, values in result.columns().items():
        np.testing.assert_allclose(values, expected.columns()[name], atol=1e-12)
    new = {"X": frames[0], "y": frames[1], "confounds": pd.DataFrame(age, columns=["age"])}
    scores = result.model.transform(new)  # warnings are errors
    same = expected.model.transform({"X": X, "y": Y, "confounds": age})
    np.testing.assert_allclose(scores["X"], same["X"], atol=1e-10)


def test_held_out_rows_take_part_in_no_step():
    """Their correlation is what a loop over folds finds, with every step fitted to the others."""
    X, Y, age = _cohort(150, effect=2.0)
    result = study(X, Y, confounds=age, n_permutations=19, cv=3, random_state=0)
    views, pooled = Views({"X": X, "y": Y, "confounds": age}), []
    for train, test in KFold(3, shuffle=True, random_state=0).split(X):
        scores = clone(result.model).fit(views[train]).transform(views[test])
        full = result.model.transform(views[test])
        sign = np.sign(np.corrcoef(scores["X"][:, 0], full["X"][:, 0])[0, 1])
        pooled.append(sign * np.column_stack([scores["X"][:, 0], scores["y"][:, 0]]))
    expected = np.corrcoef(np.vstack(pooled).T)[0, 1]
    assert result.held_out[0] == pytest.approx(expected, abs=1e-12)


def test_groups_are_kept_together():
    """Copies of a subject in both parts would be recognised."""
    rng = np.random.default_rng(1)
    X, Y = np.repeat(rng.standard_normal((2, 40, 8)), 5, axis=1)
    X, Y = X + 0.01 * rng.standard_normal(X.shape), Y + 0.01 * rng.standard_normal(Y.shape)
    groups = np.repeat(np.arange(40), 5)
    options = {"n_components": 8, "n_permutations": 99, "random_state": 0}
    naive, honest = study(X, Y, **options), study(X, Y, groups=groups, **options)
    assert naive.significant[0]
    assert naive.held_out[0] > 0.5
    assert not honest.significant.any()
    assert honest.held_out[0] < 0.3


def test_a_report_has_what_a_reviewer_asks_for(tmp_path):
    X, Y, age = _cohort(effect=2.0)
    long_name = "a variable whose name is longer than a line of the figure allows it to be"
    frame = pd.DataFrame(X, columns=[long_name, *"bcdef"])
    options = {"confounds": {"age": age[:, 0]}, "n_permutations": 99, "random_state": 0}
    result = study({"brain": frame, "tests": Y}, **options)
    text = result.methods()
    for part in ("300 subjects", "age and its square", "99 permutations", "seed 0", "10 folds"):
        assert part in text
    table = result.loadings_frame().set_index("variable")
    assert table.loc[long_name, "p_value"] == 0.01
    assert table.loc[list("bcdef"), "p_value"].min() > 0.05
    assert result.stability["brain"].shape == (5, 4)
    assert np.median(result.stability["brain"][:, 0]) > 0.8
    axes = result.plot(figure="Loadings of brain")
    shown = [label.get_text().replace("\n", " ") for label in axes.get_yticklabels()]
    assert long_name in shown
    assert result.plot(figure="Rows needed").lines[1].get_ydata()[0] == 298
    axes = result.plot()
    assert axes.get_ylim()[0] < result.held_out.min()
    pages = [tmp_path / name for name in ("one.html", "two.html")]
    for page in pages:
        study({"brain": frame, "tests": Y}, **options).save_page(page)
    assert pages[0].read_bytes() == pages[1].read_bytes()
    assert html.escape(text, quote=False) in pages[0].read_text()


def test_every_significant_component_has_loadings_intervals_p_values_and_stability(tmp_path):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((300, 5)), rng.standard_normal((300, 4))
    for i, r in enumerate((0.8, 0.6)):
        Y[:, i] = r * X[:, i] + np.sqrt(1 - r**2) * Y[:, i]
    names = {"X": [f"region_{i}" for i in range(5)], "y": [f"score {i}" for i in range(4)]}
    views = {v: pd.DataFrame(Z, columns=names[v]) for v, Z in (("X", X), ("y", Y))}
    result = study(views, n_permutations=99, random_state=0)
    assert result.significant.tolist() == [True, True, False, False]
    text, page = str(result), tmp_path / "study.html"
    result.save_page(page)
    for i in (1, 2):
        table = result.loadings_frame(i).set_index("variable")
        assert table.loc[[f"region_{i - 1}", f"score {i - 1}"], "p_value"].max() == 0.01
        assert (table["high"] - table["low"]).between(0, 0.5, inclusive="neither").all()
        for shown in (text, page.read_text()):
            assert f"oadings of component {i}" in shown
        assert f"Loadings of component {i} of two halves correlate at" in text
        name = f"Loadings of X{', component 2' * (i == 2)}"
        lengths = [bar.get_width() for bar in result.plot(figure=name).patches]
        np.testing.assert_allclose(lengths, table[table["view"] == "X"]["loading"])
    assert "component 3" not in text
    assert "Stability of loadings" in page.read_text()
    assert "P-values are those of cross-loadings of all variables" in text
    assert text.startswith("2 components are significant (p ≤ 0.01, corrected for 4 tested).")


def test_a_significant_component_below_the_noise_edge_is_of_unknown_size():
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((80, 1))
    views = {name: shared + rng.standard_normal((80, 30)) for name in ("brain", "tests")}
    result = study(views, n_permutations=99, random_state=0)
    assert "component with" not in str(result)
    reason = "(at most one per 10 rows or groups, less confounds)"
    assert result.n_components == {"brain": 8, "tests": 8}
    share = f"{result.explained['brain']:.0%} of the variance {reason}"
    assert f"brain: 30 variables, 8 principal components with {share}" in result.remarks()[0]
    assert "below the noise edge" not in " ".join(result.remarks())
    flags, intervals = (NOISE, *result.intervals.flags[1:]), result.intervals
    estimate = np.where(np.arange(8) > 0, intervals.estimate, 0)
    weak = replace(result, intervals=replace(intervals, estimate=estimate, flags=flags))
    assert "Component 1: significant, but below the noise edge" in " ".join(weak.remarks())
    assert "of unknown size in the population" in weak.sentences()[0]


def test_long_names_break_between_words():
    X, Y, _ = _cohort(effect=2.0)
    long = "right_lateralorbitofrontal_cortex_thickness"
    frame = pd.DataFrame(X, columns=[long, *"bcdef"])
    result = study({"X": frame, "y": Y}, n_permutations=19, cv=2, random_state=0)
    labels = result.plot(figure="Loadings of X").get_yticklabels()
    assert "right_lateralorbitofrontal_cortex_\nthickness" in [own.get_text() for own in labels]


def test_the_model_projects_new_rows_and_is_saved(tmp_path):
    X, Y, age = _cohort(effect=2.0)
    result = study(X[:200], Y[:200], confounds=age[:200], n_permutations=19, random_state=0)
    new = Views({"X": X[200:], "y": Y[200:], "confounds": age[200:]})
    scores = result.model.transform(new)
    assert np.corrcoef(scores["X"][:, 0], scores["y"][:, 0])[0, 1] > 0.5
    save(result.model, tmp_path / "study.mvcca")
    again = load(tmp_path / "study.mvcca").transform(new)
    np.testing.assert_array_equal(again["X"], scores["X"])
    assert np.isfinite(cross_val_score(result.model, new, cv=3)).all()


@pytest.mark.needs_data("brain_cognition.npz")
def test_the_published_study_of_brain_and_cognition():
    views = real.fetch_brain_cognition().views
    result = study(
        views, rank_gaussian=False, n_components={"thickness": 25, "toolbox": 4}, random_state=0
    )
    expected = [0.544013815175, 0.448658301429, 0.390450808239, 0.346702812224]
    np.testing.assert_allclose(result.intervals.correlations, expected, atol=1e-10)
    assert result.explained["thickness"] == pytest.approx(0.901916, abs=1e-6)
    assert result.intervals.edge == pytest.approx(0.573474464778, abs=1e-10)
    assert not result.significant.any()
    assert result.test.p_values[0] == pytest.approx(0.288, abs=0.04)
    assert result.intervals.estimate[0] == 0
    loadings = np.abs(result.loadings["toolbox"][:, 0])
    expected = [0.169585686881, 0.768011145714, 0.257871756755, 0.449942510517]
    np.testing.assert_allclose(loadings, expected, atol=1e-10)
    assert "lies below it" in str(result)
    readme = " ".join((Path(__file__).parent.parent / "README.md").read_text().split())
    for sentence in result.sentences()[:2]:
        assert sentence in readme


# ---- groups: dependent rows ----------------------------------------------------------------------


def _families(n_groups=40, size=4, effect=0.7, seed=0):
    """Rows of which half of the variance is a family's, with an effect between two variables."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), size)
    X, Y = rng.standard_normal((2, n_groups, 6))[:, groups]
    X, Y = X + rng.standard_normal(X.shape), Y + rng.standard_normal(Y.shape)
    shared = effect * rng.standard_normal(len(groups))
    X[:, 0] += 3 * shared
    Y[:, 0] += 3 * shared
    return X, Y, groups


@pytest.mark.parametrize("effect", [0.0, 0.7])
@pytest.mark.parametrize("arranged", ["whole", "within", "confounds"])
def test_no_sentence_compares_figures_of_different_rows(effect, arranged):
    X, Y, groups = _families(effect=effect)
    options = {"groups": groups, "n_permutations": 99, "random_state": 0}
    options["within"] = arranged == "within"
    if arranged == "confounds":
        # Confounds of 4 rows per family: the test drops whole families, more rows than confounds.
        options |= {
            "confounds": np.random.default_rng(9).standard_normal((160, 2)),
            "degree": 1,
        }
    result = study(X, Y, **options)
    verdict, generalization, power = result.sentences()
    tested, found = result.test.correlations[0], result.intervals
    assert f"is {tested:.2f} in th" in verdict
    r = result.in_sample[0]
    np.testing.assert_allclose(found.correlations, result.in_sample, atol=1e-10)
    assert f"at {found.edge:.3f} (the noise edge); the first correlation, {r:.3f}, lies" in (
        generalization
    )
    assert (r > found.edge) == (f"{r:.3f}, lies above" in generalization)
    assert result.tests_these_rows == (arranged == "whole")
    if not result.tests_these_rows:
        assert f"exceed {result.chance[0]:.2f}" in verdict
        assert "population" not in verdict
        assert f"the first correlation is {r:.3f}, and" in generalization
    assert ("tested" in result.columns()) != result.tests_these_rows
    text = str(result)
    in_words = f"count {found.n_rows} rows as {found.n_effective:.0f} independent ones"
    assert (in_words in text) == ("independent rows" in power) == (arranged != "within")
    assert (found.n_effective < 150) == (arranged != "within")
    assert ('belong to the correlations "tested"' in text) != result.tests_these_rows


@pytest.mark.filterwarnings("ignore:Rows that are large in one view")
@pytest.mark.parametrize("effect", [0.0, 0.9])
@pytest.mark.parametrize("rank_gaussian", [False, True])
def test_rows_of_a_common_scale_count_alike_in_every_sentence(effect, rank_gaussian):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((2, 200, 5))
    Y[:, 0] = effect * X[:, 0] + np.sqrt(1 - effect**2) * Y[:, 0]
    X, Y = np.array([X, Y]) * np.sqrt(3 / rng.chisquare(3, (200, 1)))
    options = {"rank_gaussian": rank_gaussian, "n_permutations": 99, "random_state": 0}
    result = study(X, Y, **options)
    verdict, generalization, power = result.sentences()
    found, r = result.intervals, result.in_sample[0]
    n = found.n_effective
    assert n < 160
    assert f"is {r:.2f} in these 200 rows" in verdict
    assert found.edge == pytest.approx(SampleBias(n, found.ranks).edge)
    assert f"correlate at {found.edge:.3f} (the noise edge)" in generalization
    assert (r > found.edge) == ("lies above it" in generalization)
    least = required_correlation(int(n), (5, 5), decay=tuple(result.decay.values()))
    of_rows = f"{n:.0f} independent rows estimate correlations from {least:.2f}"
    if least >= 1:
        of_rows = f"No correlation could be estimated reliably from only {n:.0f} independent rows"
    assert of_rows in power
    text = str(result)
    assert f"count 200 rows as {n:.0f} independent ones, since rows that are large" in text
    assert f"worth {n:.0f} independent rows" in result.methods()


def test_a_study_without_groups_counts_all_rows():
    X, Y, age = _cohort(effect=2.0)
    result = study(X, Y, confounds=age, n_permutations=99, random_state=0)
    verdict, generalization, _ = result.sentences()
    assert "in these 300 rows and about" in verdict
    assert f"the first correlation, {result.in_sample[0]:.3f}, lies above it" in generalization
    assert "tested" not in result.columns()
    assert {line[-1] for line in result.table()[1]} <= {"", "not distinguishable from noise"}


def test_groups_leave_as_many_components_with_confounds_as_their_number():
    X, Y, groups = _families()
    Z = np.random.default_rng(9).standard_normal((160, 2))
    options = {"groups": groups, "n_permutations": 19, "random_state": 0, "degree": 1}
    result = study(X, Y, confounds=Z, **options)
    assert result.n_components == {"X": 3, "y": 3}  # ten rows of (40 - 2) for each
    more = study(X, Y, confounds=Z, n_components=6, **options)
    assert np.isfinite(more.test.permuted).all()
    assert result.test.n_rows == 40 - 3 + 120 - 2  # between and within 40 families of 4


def test_confounds_that_do_not_vary_within_groups_are_removed():
    X, Y, groups = _families(80, 2)
    income = np.random.default_rng(1).standard_normal(80)[groups][:, None]
    options = {"groups": groups, "within": True, "n_permutations": 19, "random_state": 0}
    result = study(X, Y, confounds=income, **options)  # does not vary within groups
    assert result.n_confounds == 2


# ---- confounds of two values, and one variable ---------------------------------------------------


@pytest.mark.parametrize("n", [30, 42, 102, 118, 122])  # at these, ranks round, too
@pytest.mark.parametrize("rank_gaussian", [True, False])
def test_a_balanced_confound_has_no_square(n, rank_gaussian):
    """Its square is constant but for rounding, at some n; that is no direction."""
    rng = np.random.default_rng(n)
    X, Y = rng.standard_normal((n, 4)), rng.standard_normal((n, 3))
    sex = (0.1 + 0.2 * (np.arange(n) % 2))[:, None]
    options = {"rank_gaussian": rank_gaussian, "n_permutations": 1, "cv": 2, "random_state": 0}
    with warnings.catch_warnings(action="ignore"):
        result = study(X, Y, confounds=sex, **options)
        plain = study(X, Y, confounds=sex, degree=1, **options)
    assert result.n_confounds == plain.n_confounds == 1
    np.testing.assert_allclose(result.in_sample, plain.in_sample, atol=1e-8)
    np.testing.assert_allclose(result.test.correlations, plain.in_sample, atol=1e-8)


@pytest.mark.filterwarnings("ignore:View 'X' has constant columns")
@pytest.mark.parametrize("rank_gaussian", [True, False])
@pytest.mark.parametrize("power", [1, 2])
def test_a_variable_that_confounds_explain_is_none(rank_gaussian, power):
    """Rounding that a regression leaves of it, scaled to unit variance, would be a variable."""
    if rank_gaussian and power == 2:
        return  # ranks of squares are no squares of ranks
    X, Y, age = _cohort(120, effect=2.0)
    options = {"n_permutations": 19, "random_state": 0, "rank_gaussian": rank_gaussian}
    expected = study(X, Y, confounds=age, **options)
    with_age = study(np.hstack([X, 2 * age**power + 3]), Y, confounds=age, **options)
    assert with_age.intervals.ranks == expected.intervals.ranks
    np.testing.assert_allclose(with_age.in_sample, expected.in_sample, atol=1e-8)
    np.testing.assert_allclose(with_age.test.correlations, expected.in_sample, atol=1e-8)


SINGLE = [(5, 1), (1, 4), (1, 1)]
WAYS = [{}, {"confounds": True}, {"groups": np.repeat(np.arange(60), 2)}, {"missing": "em"}]


@pytest.mark.parametrize(
    ("sizes", "options"),  # all sizes in one way, one size in all ways
    [
        pytest.param(
            sizes, way, marks=() if not way or sizes == SINGLE[i - 1] else pytest.mark.long
        )
        for sizes in SINGLE
        for i, way in enumerate(WAYS)
    ],
    ids=str,
)
def test_one_variable_leaves_out_only_the_rows_to_plan(sizes, options, tmp_path):
    rng = np.random.default_rng(2)
    X, Y = rng.standard_normal((120, sizes[0])), rng.standard_normal((120, sizes[1]))
    X[:, 0] += Y[:, 0]
    options = options | (
        {"confounds": rng.standard_normal((120, 1))} if "confounds" in options else {}
    )
    result = study({"brain": X, "score": Y}, n_permutations=39, random_state=0, **options)
    assert result.significant[0]
    assert np.isfinite(result.to_frame().iloc[0, 1:-1].astype(float)).all()
    single = [name for name, size in zip(("brain", "score"), sizes, strict=True) if size == 1]
    reason = f"and {' and '.join(single)} ha{'ve' if len(single) > 1 else 's'} one."
    assert result.sentences()[2].endswith(reason)
    assert reason in str(result)
    assert reason in result.as_dict()["conclusions"][2]
    result.save_page(tmp_path / "page.html")
    assert reason in (tmp_path / "page.html").read_text()
    for planned in (lambda: result.rows_needed(0.5), lambda: result.smallest_correlation):
        with pytest.raises(ValueError, match="number of rows that such a study needs is left out"):
            planned()
    assert [name for name, decay in result.decay.items() if decay is None] == single


# ---- holes ---------------------------------------------------------------------------------------

HOW = pytest.mark.parametrize("missing", ["pairwise", "em"])


def _with_holes(views, share=0.1, seed=0):
    """The same without a share of the cells, drawn at random."""
    rng = np.random.default_rng(seed)
    return {n: np.where(rng.random(X.shape) < share, np.nan, X) for n, X in dict(views).items()}


def _assert_same_study(found, expected, atol=1e-8):
    """The same figures; components of either may have the other sign."""
    for name, values in expected.columns().items():
        np.testing.assert_allclose(found.columns()[name], values, atol=atol)
    assert found.n_components == expected.n_components
    for of in ("loadings", "cross_loadings"):
        for name, values in getattr(expected, of).items():
            own = getattr(found, of)[name]
            signs = np.where((own * values).sum(axis=0) < 0, -1, 1)
            np.testing.assert_allclose(own * signs, values, atol=atol)
    for name in expected.variables:
        widths = np.diff(expected.loading_ends[name], axis=0)
        np.testing.assert_allclose(np.diff(found.loading_ends[name], axis=0), widths, atol=atol)
        assert found.decay[name] == pytest.approx(expected.decay[name], abs=atol)
        assert found.explained[name] == pytest.approx(expected.explained[name], abs=atol)


@HOW
@pytest.mark.parametrize("confounds", [False, True])
def test_without_holes_it_is_the_study_of_complete_rows(missing, confounds):
    X, Y, age = _cohort(150, effect=2.0)
    options = {"n_components": {"X": 3, "y": 4}, "n_permutations": 49, "random_state": 0}
    options["confounds"] = age if confounds else None
    expected = study(X, Y, **options)
    found = study(X, Y, missing=missing, **options)
    _assert_same_study(found, expected)
    assert "Missing" not in str(found)


TABLES = {
    "pandas": pd.DataFrame,
    "nullable": lambda X: pd.DataFrame(X).add_prefix("v").convert_dtypes(),
    "polars": lambda X: pl.DataFrame(X, orient="row").fill_nan(None),
}


@pytest.mark.parametrize("form", TABLES)
@pytest.mark.parametrize("rank_gaussian", [True, False])
def test_holes_are_holes_in_any_table(form, rank_gaussian):
    holes = _with_holes(dict(zip("Xy", _cohort(100, effect=2.0)[:2], strict=True)))
    options = {"missing": "pairwise", "rank_gaussian": rank_gaussian, "n_permutations": 19}
    options["random_state"] = 0
    expected = study(holes, **options)
    found = study({name: TABLES[form](X) for name, X in holes.items()}, **options)
    assert found.n_missing == expected.n_missing
    _assert_same_study(found, expected, 1e-10)


@HOW
def test_held_out_rows_with_holes_take_part_in_no_step(missing):
    """Fits to the others do not know them; their holes are filled by moments of the others."""
    X, Y, age = _cohort(150, effect=2.0)
    holes = _with_holes({"X": X, "y": Y}, 0.2)
    options = {"missing": missing, "n_permutations": 19, "cv": 3, "random_state": 0}
    result = study(holes, confounds=age, **options)
    views, pooled = Views({**holes, "confounds": age}), []
    for train, test in KFold(3, shuffle=True, random_state=0).split(X):
        scores = clone(result.model).fit(views[train]).transform(views[test])
        full = result.model.transform(views[test])
        sign = np.sign(np.corrcoef(scores["X"][:, 0], full["X"][:, 0])[0, 1])
        pooled.append(sign * np.column_stack([scores["X"][:, 0], scores["y"][:, 0]]))
    expected = np.corrcoef(np.vstack(pooled).T)[0, 1]
    assert result.held_out[0] == pytest.approx(expected, abs=1e-10)
    assert result.held_out is result.intervals.held_out


@pytest.mark.filterwarnings("ignore:Rows that are large in one view")  # by age squared
@HOW
def test_an_effect_is_found_through_holes_and_confounds_are_not(missing):
    X, Y, age = _cohort(effect=2.0, curved=1.0)
    options = {"missing": missing, "n_permutations": 99, "random_state": 0}
    expected = study(X, Y, confounds=age, n_permutations=99, random_state=0)
    result = study(_with_holes({"X": X, "y": Y}), confounds=age, **options)
    np.testing.assert_array_equal(result.significant, expected.significant)
    assert abs(result.in_sample[0] - expected.in_sample[0]) < 0.08
    assert result.in_sample[0] == pytest.approx(result.test.correlations[0], abs=1e-10)
    for name, values in expected.loadings.items():
        np.testing.assert_allclose(np.abs(result.loadings[name][0, 0]), values[0, 0], atol=0.1)
        ends = result.loading_ends[name][:, 0, 0]
        np.testing.assert_allclose(ends, expected.loading_ends[name][:, 0, 0], atol=0.1)
    nothing = _with_holes(dict(zip("Xy", _cohort(curved=1.0)[:2], strict=True)))
    options |= {"rank_gaussian": False}
    assert study(nothing, **options).significant[0]
    assert not study(nothing, confounds=age, **options).significant.any()


@pytest.mark.needs_data("brain_cognition.npz")
@pytest.mark.filterwarnings("ignore:The correlations of pairs")
def test_brain_and_cognition_with_a_tenth_of_the_cells_missing(tmp_path):
    """The published pipeline for tables with holes, without its defects."""
    views = real.fetch_brain_cognition().views
    rng = np.random.default_rng(0)
    age = rng.standard_normal((len(views), 1))
    holes = _with_holes(views)
    options = {"n_permutations": 199, "random_state": 0}
    result = study(holes, missing="pairwise", confounds=age, **options)
    whole = study(views, confounds=age, **options)
    assert result.n_missing == {n: int(np.isnan(X).sum()) for n, X in holes.items()}
    assert not result.significant.any()
    assert result.in_sample[0] == pytest.approx(whole.in_sample[0], abs=0.05)
    assert result.test.p_values[0] == pytest.approx(whole.test.p_values[0], abs=0.2)
    for of, least in (("loadings", 0.8), ("cross_loadings", 0.75)):
        for name in views.names:
            agreement = np.corrcoef(getattr(result, of)[name][:, 0], getattr(whole, of)[name][:, 0])
            assert abs(agreement[0, 1]) > least
    # Loadings are correlations with the original variables over the rows that have them.
    rows = Views({**holes, "confounds": age})
    prepared, scores = result.model[:2].transform(rows), result.model.transform(rows)
    table = pd.DataFrame(prepared["thickness"])
    expected = table.corrwith(pd.Series(scores["thickness"][:, 0]))
    np.testing.assert_allclose(result.loadings["thickness"][:, 0], expected, atol=0.01)
    # New subjects, also with holes, have scores.
    save(result.model, tmp_path / "study.mvcca")
    new = load(tmp_path / "study.mvcca").transform(rows[:5])
    np.testing.assert_allclose(new["toolbox"], scores["toolbox"][:5], atol=1e-12)
    text, page = str(result), tmp_path / "study.html"
    count = result.n_missing["thickness"]
    assert f"Missing: {count:,} of 9,452 cells of thickness ({count / 9452:.1%})" in text
    result.save_page(page)
    assert "from the rows that have both" in page.read_text()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Rows that are large in one view")  # of 1 data set in 100
@pytest.mark.parametrize("n_seeds", [20, pytest.param(150, marks=pytest.mark.long)])
@HOW
def test_p_values_are_uniform_if_there_is_nothing_to_find_through_holes(missing, n_seeds):
    p_values = []
    for seed in range(n_seeds):
        rng = np.random.default_rng([3, seed])
        Z = rng.standard_normal((80, 2))
        views = {n: rng.standard_normal((80, 4)) + Z @ rng.standard_normal((2, 4)) for n in "xy"}
        holes = _with_holes(views, 0.15, seed)
        kept = ~np.any([np.isnan(X).all(axis=1) for X in holes.values()], axis=0)
        rows, Z = {n: X[kept] for n, X in holes.items()}, Z[kept]
        options = {"missing": missing, "degree": 1, "n_permutations": 19, "cv": 2}
        found = study(rows, confounds=Z, random_state=seed, **options)
        p_values.append(found.test.p_values[0] - rng.uniform() / 20)
    assert stats.kstest(p_values, "uniform").pvalue > 0.01


def _table(change):
    X, Y, age = _cohort(60)
    X, Y, age = change(X.copy(), Y.copy(), age.copy())
    return {"brain": X, "behaviour": Y}, age


def _nothing_in(X, rows, columns):
    X[rows, columns] = np.nan
    return X


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (
            lambda X, Y, Z: (_nothing_in(X, 3, 1), Y, Z),
            {},
            r"'brain': Input contains NaN: first in row 3, column 1; .* missing=\"em\" or \"pair",
        ),
        (
            lambda X, Y, Z: (_nothing_in(X, slice(12, None), 1), Y, Z),
            {"missing": "em"},
            "'brain': too few rows have 'brain 1': expected at least 15 in the training rows",
        ),
        (
            lambda X, Y, Z: (X, _nothing_in(Y, [4, 9], slice(None)), Z),
            {"missing": "pairwise"},
            "'behaviour': all cells are missing in rows 4, 9. Leave these subjects out",
        ),
        (
            lambda X, Y, Z: (X, Y, _nothing_in(Z, 7, 0)),
            {"missing": "em"},
            "'confounds': Input contains NaN: first in row 7",
        ),
        (lambda X, Y, Z: (X, Y, Z), {"missing": "mean"}, "missing to be 'error', 'pairwise' or"),
    ],
)
def test_holes_that_cannot_be_dealt_with(change, options, message):
    views, age = _table(change)
    with pytest.raises(ValueError, match=message):
        study(views, confounds=np.hstack([age] * 6), n_permutations=19, **options)


def test_few_rows_are_held_out_one_by_one():
    X, Y = np.random.default_rng(0).normal(size=(2, 6, 2))
    assert str(study({"a": X, "b": Y[:, :1]}, n_permutations=19, random_state=0)).startswith("No ")
    with pytest.raises(ValueError, match="two folds or more of two groups or more, got 10 of 1"):
        study({"a": X, "b": Y}, groups=np.zeros(6), n_permutations=19)
    with pytest.raises(ValueError, match="expected at least 2, got 1"):
        study({"a": X[:2], "b": Y[:2]}, n_permutations=19)
    no_variance = pytest.raises(ValueError, match="View 'a' has no variance: all its rows are eq")
    with warnings.catch_warnings(action="error"), no_variance:
        study({"a": X[[0] * 6], "b": Y}, n_permutations=19)


@pytest.mark.parametrize("missing", ["error", "em"])
def test_components_are_as_many_as_training_rows_have(missing):
    X, Y = np.random.default_rng(0).normal(size=(2, 15, 20))
    options = {"n_permutations": 19, "random_state": 0, "missing": missing}
    with pytest.raises(ValueError, match="n_components of view 'a' to be at most 12, the pri"):
        study({"a": X, "b": Y}, n_components=14, **options)
    for wrong in (0, 1.5):
        with pytest.raises(ValueError, match=f"a whole number from 1 up, got {wrong}"):
            study({"a": X, "b": Y}, n_components=wrong, **options)
    # Halves of 4 rows have fewer components than all 8.
    found = study({"a": X[:8, :3], "b": Y[:8, :2]}, n_components=2, **options)
    assert {own.shape[1] for own in found.stability.values()} == {1}


# ---- mvcca test ----------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Tables of subjects, those of the second in another order, with a family and an age."""
    monkeypatch.chdir(tmp_path)
    X, Y, age = _cohort(120, effect=3.0)
    subjects = [f"s{i}" for i in range(120)]

    def write(name, rows, columns, order):
        lines = [",".join(["subject", *columns])]
        lines += [",".join([subjects[i], *map(str, rows[i])]) for i in order]
        Path(name).write_text("\n".join(lines) + "\n")

    order = np.random.default_rng(0).permutation(120)
    write("brain.csv", X, [f"region {j}" for j in range(6)], range(120))
    write("behaviour.csv", Y, [f"score {j}" for j in range(4)], order[:110])
    site = [[age[i, 0], "AB"[i % 2], f"f{i // 2}"] for i in range(120)]
    write("confounds.csv", site, ["age", "site", "family"], order)
    return tmp_path


@pytest.mark.usefixtures("files")
def test_from_tables_to_a_report(capsys):
    files = "brain.csv behaviour.csv --confounds confounds.csv --id subject --groups family"
    options = "--json --permutations 99 --report r.html"
    assert main(["test", *files.split(), *options.split()]) == 0
    captured = capsys.readouterr()
    assert "110 of 120 subjects are in all files" in captured.err
    found = json.loads(captured.out)
    assert found["components"][0]["p_value"] <= 0.02
    assert found["loadings"][0]["view"] == "brain"
    assert found["loadings"][0]["variable"] == "region 0"
    page = Path("r.html").read_text()
    assert found["conclusions"][0] in page
    assert "region 0" in page
    assert "10 of 120 subjects were left out: not in all files." in page
    assert "mvcca test brain.csv" in page


@pytest.mark.usefixtures("files")
def test_columns_of_a_view_called_confounds_are_no_groups(capsys):
    pd.read_csv("confounds.csv")[["subject", "age"]].to_csv("confounds.csv", index=False)
    command = ["test", "confounds.csv", "brain.csv", "--id", "subject"]
    with pytest.raises(SystemExit):
        main([*command, "--groups", "age"])
    assert "--groups: 'age' is no file\n" in capsys.readouterr().err


@pytest.mark.usefixtures("files")
def test_groups_are_a_column_of_the_confounds_or_a_file(capsys):
    arguments = ["test", "brain.csv", "behaviour.csv", "--confounds", "confounds.csv"]
    arguments += ["--id", "subject", "--permutations", "49"]
    assert main([*arguments, "--groups", "family"]) == 0
    by_column = capsys.readouterr().out
    assert "significant" in by_column
    assert 'correlations "tested"' in by_column
    families = [f"f{i // 2}" for i in range(120)]
    table = Path("behaviour.csv").read_text().splitlines()[1:]
    measured = {line.split(",")[0] for line in table}
    kept = [family for i, family in enumerate(families) if f"s{i}" in measured]
    Path("families.txt").write_text("\n".join(kept))
    lines = Path("confounds.csv").read_text().splitlines()
    Path("confounds.csv").write_text("\n".join(line.rpartition(",")[0] for line in lines))
    assert main([*arguments, "--groups", "families.txt"]) == 0
    assert capsys.readouterr().out == by_column
    lines = [f"s{i},{family}" for i, family in enumerate(families)]
    Path("families.csv").write_text("\n".join(["subject,family", *lines[::-1]]))
    assert main([*arguments, "--groups", "families.csv"]) == 0
    assert capsys.readouterr().out == by_column


@pytest.mark.usefixtures("files")
def test_families_in_sites_and_confounds_of_each_table(capsys):
    table = pd.read_csv("confounds.csv").set_index("subject")
    table["site"] = np.where(table["family"].str[1:].astype(int) % 3, "A", "B")
    table.to_csv("confounds.csv")
    motion = np.random.default_rng(3).standard_normal(len(table))
    scanned = pd.DataFrame({"motion": motion, "coil": list("PQR" * 40)}, index=table.index)
    scanned[::-1].to_csv("scan.csv")
    arguments = "test behaviour.csv brain.csv --confounds confounds.csv --confounds-y scan.csv"
    options = " --id subject --permutations 19 --json --seed 0 --groups site --groups family"
    assert main((arguments + options).split()) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(" ".join(one.split()[:1]), one.split()[-1]) for one in found["confounds"]] == [
        ("age", "(behaviour)"),
        ("motion", "(brain)"),
        ("coil:", "(brain)"),
        ("products", "(brain)"),
    ]
    assert "groups, in two strata of each of 2 outer groups" in found["methods"]
    with pytest.raises(SystemExit):
        main([*(arguments + options).split(), "--groups", "age"])
    assert "expected one or two levels" in capsys.readouterr().err


def test_confounds_of_each_view_are_removed_from_that_view_only():
    X, Y, age = _cohort(effect=1.0)
    motion = np.random.default_rng(8).standard_normal((300, 1))
    Y = Y + 3 * motion
    options = {"n_permutations": 19, "random_state": 0, "degree": 1, "rank_gaussian": False}
    found = study(X, Y, confounds=age, confounds_y=motion, **options)

    def less(A, Z):
        design = np.column_stack([np.ones(len(Z)), Z])
        return A - design @ np.linalg.lstsq(design, A)[0]

    expected = CCA(4).fit(less(X, age), less(Y, motion)).canonical_correlations_
    np.testing.assert_allclose(found.in_sample, expected, atol=1e-8)
    np.testing.assert_allclose(found.test.correlations, expected, atol=1e-8)
    assert found.tests_these_rows
    assert found.n_confounds == 1
    assert set(found.residual_dependence) == {"X", "y"}
    new = found.model.transform({"X": X, "y": Y, "confounds": age, "confounds_y": motion})
    assert abs(np.corrcoef(new["X"][:, 0], age[:, 0])[0, 1]) < 1e-8
    assert abs(np.corrcoef(new["y"][:, 0], motion[:, 0])[0, 1]) < 1e-8
    assert abs(np.corrcoef(new["y"][:, 0], age[:, 0])[0, 1]) > 0.01
    alone = study(X, Y, confounds_y=motion, **options)
    expected = CCA(4).fit(X, less(Y, motion)).canonical_correlations_
    np.testing.assert_allclose(alone.in_sample, expected, atol=1e-8)
    assert set(alone.residual_dependence) == {"y"}
    with pytest.raises(ValueError, match="confounds_y needs views without missing values"):
        study(X, Y, confounds_y=motion, missing="em", **options)


def test_families_are_studied_within_their_sites():
    X, Y, _ = _cohort(effect=2.0, n_rows=240)
    groups = np.column_stack([np.arange(240) // 80, np.arange(240) // 4])
    shift = 10 * np.random.default_rng(1).standard_normal((3, 1))[groups[:, 0]]
    options = {"n_permutations": 19, "random_state": 0, "rank_gaussian": False}
    found = study(X + shift, Y + shift, groups=groups, **options)
    assert "(60 groups, within 3 outer groups)" in found.methods()
    assert "240 rows less the means of outer groups" in str(found)
    expected = permutation_test(
        X, Y, groups=groups, statistic="roy", n_permutations=19, random_state=0
    )
    np.testing.assert_allclose(found.test.correlations, expected.correlations, atol=1e-8)


@pytest.mark.usefixtures("files")
def test_many_regions_and_one_score(capsys):
    for file, kept in (("behaviour.csv", 2), ("brain.csv", 2)):
        lines = [",".join(line.split(",")[:kept]) for line in Path(file).read_text().splitlines()]
        Path(file).write_text("\n".join(lines))
        arguments = [
            "test",
            "brain.csv",
            "behaviour.csv",
            "--id",
            "subject",
            "--permutations",
            "19",
        ]
        assert main([*arguments, "--report", "report.html"]) == 0
        assert "The number of rows that such a study needs is left out" in capsys.readouterr().out
        assert "The number of rows that such a study needs" in Path("report.html").read_text()


@pytest.mark.usefixtures("files")
def test_missing_values_are_treated_if_asked_for(capsys):
    lines = Path("brain.csv").read_text().splitlines()
    for row, blank in ((3, ""), (17, "NA"), (40, "nan")):
        cells = lines[row].split(",")
        lines[row] = ",".join([*cells[:2], blank, *cells[3:]])
    Path("brain.csv").write_text("\n".join(lines))
    arguments = ["test", "brain.csv", "behaviour.csv", "--id", "subject", "--permutations", "19"]
    assert main(arguments) == 1
    message = capsys.readouterr().err
    assert "3 of 720 values are missing, first in line 4 (s2), column 'region 1'" in message
    assert "--missing em" in message
    for missing in ("pairwise", "em"):
        assert main([*arguments, "--missing", missing, "--report", "report.html"]) == 0
        assert f"of {110 * 6} cells of brain" in capsys.readouterr().out
        assert "cells of brain" in Path("report.html").read_text()
    assert main([*arguments, "--missing", "em", "--confounds", "brain.csv"]) == 1
    assert "or fill them in: --missing mean" in capsys.readouterr().err


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        ("brain.csv behaviour.csv", "the same subjects in the same order", 1),
        (
            "brain.csv confounds.csv --id subject",
            "expected a number in line 2 (s101), column 'site'",
            1,
        ),
        ("brain.csv behaviour.csv --id subject --report r.txt", "ending in .html", 2),
        ("brain.csv behaviour.csv --id subject --groups clinic", "'clinic' is no file", 2),
    ],
)
def test_bad_tables_are_refused(capsys, arguments, message, code):
    try:
        found = main(["test", *arguments.split()])
    except SystemExit as error:
        found = error.code
    assert found == code
    assert message in capsys.readouterr().err
