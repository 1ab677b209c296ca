"""Studies of two sets of variables, in Python and by `mvcca test`, from tables to a report."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import real
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_score

from mvcca import CCA, Views, load, save
from mvcca.cli import main
from mvcca.datasets import make_gaussian_views
from mvcca.inspection import permutation_test, study


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
        assert study(X, Y, confounds=age, squares=False, **options).significant[0]


def test_what_is_left_without_confounds_is_found():
    X, Y, age = _cohort(effect=2.0)
    result = study(X, Y, confounds=age, n_permutations=99, random_state=0)
    np.testing.assert_array_equal(result.significant, [True, False, False, False])
    assert result.intervals.low[0] < result.held_out[0] < result.intervals.correlations[0]
    assert next(result.sorted_loadings())[:2] == ("X", "X 1")
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
    files = "brain.csv behaviour.csv --confounds confounds.csv --ids subject --groups family"
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
    assert "mvcca test brain.csv" in page


@pytest.mark.usefixtures("files")
def test_groups_are_a_column_of_the_confounds_or_a_file(capsys):
    arguments = ["test", "brain.csv", "behaviour.csv", "--confounds", "confounds.csv"]
    arguments += ["--ids", "subject", "--permutations", "49"]
    assert main([*arguments, "--groups", "family"]) == 0
    by_column = capsys.readouterr().out
    assert "significant" in by_column
    assert "one of each group" in by_column
    families = [f"f{i // 2}" for i in range(120)]
    table = Path("behaviour.csv").read_text().splitlines()[1:]
    measured = {line.split(",")[0] for line in table}
    kept = [family for i, family in enumerate(families) if f"s{i}" in measured]
    Path("families.txt").write_text("\n".join(kept))
    lines = Path("confounds.csv").read_text().splitlines()
    Path("confounds.csv").write_text("\n".join(line.rpartition(",")[0] for line in lines))
    assert main([*arguments, "--groups", "families.txt"]) == 0
    assert capsys.readouterr().out == by_column


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        ("brain.csv behaviour.csv", "the same subjects in the same order", 1),
        ("brain.csv confounds.csv --ids subject", "expected a number in row 1, column 'site'", 1),
        ("brain.csv behaviour.csv --ids name", "there is no column 'name'", 1),
        ("brain.csv behaviour.csv --ids subject --report r.txt", "ending in .html", 2),
        ("brain.csv behaviour.csv --ids subject --groups clinic", "'clinic' is no file", 2),
    ],
)
def test_bad_tables_are_refused(capsys, arguments, message, code):
    try:
        found = main(["test", *arguments.split()])
    except SystemExit as error:
        found = error.code
    assert found == code
    assert message in capsys.readouterr().err
