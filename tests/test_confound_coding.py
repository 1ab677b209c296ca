"""Confounds in tables: encoded in the same way by every function, estimator and command."""

from __future__ import annotations

import datetime as dt
import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import mvcca
from mvcca import CCA, MVCCA, FoldSearchCV, Views, load
from mvcca.cli import main
from mvcca.compose import Deconfound
from mvcca.inspection import (
    correlation_intervals,
    loading_intervals,
    parametric_tests,
    permutation_test,
    study,
    weight_intervals,
)
from mvcca.views.coding import coded, coding_in_words, coding_of

N = 120
RNG = np.random.default_rng(0)
SITE = np.array(list("ABCD"))[RNG.integers(0, 4, N)]
AGE = RNG.integers(20, 80, N)
_EFFECT = np.array([{"A": 0, "B": 3, "C": -2, "D": 5}[one] for one in SITE])[:, None]
_SHARED = RNG.normal(size=(N, 1)) + _EFFECT
X = _SHARED + RNG.normal(size=(N, 4))
Y = _SHARED + RNG.normal(size=(N, 3))
ENCODED = np.column_stack([AGE, *(level == SITE for level in "BCD")]).astype(float)
FRAME = pd.DataFrame({"age": AGE, "site": SITE})

TABLES = {
    "pandas": FRAME,
    "object": FRAME.astype({"site": object}),
    "string": FRAME.astype({"site": "string"}),
    "category": FRAME.astype({"site": "category"}),
    "bytes": {"age": AGE, "site": SITE.astype("S1")},
    "polars": pl.DataFrame({"age": AGE, "site": SITE}),
    "polars category": pl.DataFrame({"age": AGE, "site": SITE}).with_columns(
        pl.col("site").cast(pl.Categorical)
    ),
    "strings": np.column_stack([AGE.astype(str), SITE]),
    "objects": np.column_stack([AGE.astype(object), SITE]),
    "mapping": {"age": AGE, "site": SITE},
    "file": {"age": AGE.astype(str), "site": SITE},
    "spaces": FRAME.assign(site=[f"{one} " if k % 3 else one for k, one in enumerate(SITE)]),
}


@pytest.mark.parametrize("table", TABLES)
def test_every_container_gives_the_same_numbers(table):
    np.testing.assert_array_equal(coded(TABLES[table]), ENCODED)
    words = coding_in_words(TABLES[table], coding_of(TABLES[table]), degree=2)
    assert words[0].endswith(" and its square")
    assert words[1].endswith(": 3 columns, reference A")


NUMBERS = [ENCODED, AGE, AGE.tolist(), pd.DataFrame(ENCODED), pd.Series(AGE), ENCODED > 1]


@pytest.mark.parametrize("table", NUMBERS, ids=lambda table: type(table).__name__)
def test_numbers_stay_as_they_are(table):
    assert coded(table) is table


OTHERS = {
    "category in its order": (
        {"site": pd.Series(pd.Categorical(SITE, categories=[*"DBAC", "unused"]))},
        ("site: 3 columns, reference D",),
    ),
    "two levels": ({"sex": np.array(["m", "f"])[AGE % 2]}, ("sex: 1 column, reference f",)),
    "one level": (
        {"site": np.full(N, "A"), "age": AGE},
        ("site: left out, all rows are A", "age and its square"),
    ),
    "yes and no": (pd.DataFrame({"smoker": AGE > 50}), ("smoker",)),
    "unnamed numbers": (ENCODED, ("4 columns of numbers and their squares",)),
    "a vector": (AGE, ("a column of numbers and its square",)),
    "lists": (ENCODED.tolist(), ("4 columns of numbers and their squares",)),
    "codes": ({"site": np.array([1, 2, "A", "B"] * 30, object)}, ("site: 3 columns, reference 1",)),
}


@pytest.mark.parametrize("what", OTHERS)
def test_the_coding_is_said(what):
    table, expected = OTHERS[what]
    assert coding_in_words(table, coding_of(table), degree="squares") == expected


DAYS = pd.date_range("2020-01-01", periods=N)
REFUSED = {
    "dates": ({"d": DAYS}, "'d' holds dates or times"),
    "a column of dates": (pd.DataFrame({"d": DAYS}), "'d' holds dates or times"),
    "with a time zone": (pd.DataFrame({"d": DAYS.tz_localize("UTC")}), "holds dates"),
    "periods": (pd.DataFrame({"d": DAYS.to_period("D")}), "holds dates"),
    "durations": (pd.DataFrame({"d": DAYS - DAYS[0]}), "holds dates or times"),
    "numpy dates": (np.arange(N).astype("datetime64[D]"), "holds dates"),
    "dates of Python": ({"d": np.array([dt.date(2020, 1, 1)] * N)}, "holds dates"),
    "polars dates": (pl.DataFrame({"d": [dt.date(2020, 1, 1)] * N}), "holds dates"),
    "dates as text": ({"d": DAYS.strftime("%Y-%m-%d").to_numpy(str)}, "holds dates"),
    "German dates": (pd.DataFrame({"d": DAYS.strftime("%d.%m.%Y")}), "holds dates"),
    "ids": ({"id": np.array([f"s{k}" for k in range(N)])}, "'id' has 120 levels in 120 rows"),
    "nearly ids": ({"id": np.array([f"s{k // 1.5:.0f}" for k in range(N)])}, "pass it as groups"),
    "a missing level": (FRAME.assign(site=[None, *SITE[1:]]), "'site' misses 1 of 120 .* in row 0"),
    "NA": (FRAME.assign(site=pd.array([pd.NA, *SITE[1:]])), "'site' misses 1 of 120"),
    "an empty level": ({"site": np.array(["", *SITE[1:]])}, "'site' misses 1 of 120"),
    "numbers as text": (FRAME.astype({"age": str}), "'age' holds numbers as text"),
    "a bad number": (
        {"age": np.array(["unknown", *AGE[1:].astype(str)])},
        "but 'unknown' in row 0",
    ),
    "constant": ({"site": np.full(N, "A")}, "do not vary"),
    "a name twice": (pd.DataFrame(ENCODED, columns=list("abca")), "two columns have the name 'a'"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_confound_is_refused(what):
    table, message = REFUSED[what]
    for function in (coded, lambda Z: permutation_test(X, Y, confounds=Z, n_permutations=19)):
        with pytest.raises(ValueError, match=message) as caught:
            function(table)
        assert "Tfidf" not in str(caught.value)


@pytest.mark.parametrize(
    "table",
    [
        {"family": np.array([f"f{k // 3}" for k in range(N)])},
        pd.DataFrame({"family": np.arange(N) // 3}),
        pd.DataFrame({"subject_id": np.arange(N) + 1000}),
    ],
)
def test_ids_and_families_are_noted(table):
    with pytest.warns(UserWarning, match="pass it as groups"):
        coded(table)


# ---- the doors ----------------------------------------------------------------------------------

FUNCTIONS = {
    "permutation_test": lambda Z: (
        permutation_test(X, Y, confounds=Z, n_permutations=19, random_state=0).p_values
    ),
    "permutation_test, confounds_y": lambda Z: (
        permutation_test(
            X, Y, confounds=Z, confounds_y=Z, n_permutations=19, random_state=0
        ).p_values
    ),
    "correlation_intervals": lambda Z: correlation_intervals(X, Y, confounds=Z).low,
    "loading_intervals": lambda Z: loading_intervals(X, Y, confounds=Z, random_state=0).low["X"],
    "parametric_tests": lambda Z: parametric_tests(X, Y, confounds=Z).wilks.p_value,
    "study": lambda Z: study(X, Y, confounds=Z, n_permutations=19, cv=2, random_state=0).held_out,
}


@pytest.mark.parametrize("table", ["pandas", "category", "polars", "strings", "mapping"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_encode_tables(function, table):
    run = FUNCTIONS[function]
    np.testing.assert_allclose(run(TABLES[table]), run(ENCODED), atol=1e-9)


_SEED = {"random_state": 0}
RESULTS = {
    "permutation_test": lambda *X, **o: permutation_test(*X, n_permutations=19, **_SEED, **o),
    "parametric_tests": parametric_tests,
    "correlation_intervals": correlation_intervals,
    "loading_intervals": lambda *X, **o: loading_intervals(*X, n_resamples=19, **_SEED, **o),
    "weight_intervals": lambda *X, **o: weight_intervals(*X, n_resamples=19, **_SEED, **o),
    "study's test": lambda *X, **o: study(*X, degree=1, n_permutations=19, cv=2, **_SEED, **o).test,
    "study's intervals": lambda *X, **o: (
        study(*X, degree=1, n_permutations=19, cv=2, **_SEED, **o).intervals
    ),
}


@pytest.mark.filterwarnings("ignore:Components? .*:UserWarning")
@pytest.mark.parametrize("result", RESULTS)
def test_every_result_lists_the_coding_of_its_confounds(result):
    found = RESULTS[result](X, Y, confounds=FRAME)
    assert found.coding == ("age", "site: 3 columns, reference A")
    note = "Confounds: age; site: 3 columns, reference A."
    assert str(found).count(note) == found._repr_html_().count(note) == 1
    assert "Confounds: 4 columns of numbers." in str(RESULTS[result](X, Y, confounds=ENCODED))
    without = RESULTS[result](X, Y)
    assert without.coding == ()
    assert "Confounds" not in str(without) + without._repr_html_()


@pytest.mark.filterwarnings("ignore:Components? .*:UserWarning")
@pytest.mark.parametrize("result", ["permutation_test", "parametric_tests", "weight_intervals"])
def test_levels_are_listed_with_control_characters_escaped(result):
    found = RESULTS[result](X, Y, confounds={"site": np.where(SITE == "A", "A\x1b[2J", SITE)})
    assert r"reference A\x1b[2J." in str(found)
    assert "\x1b" not in str(found) + found._repr_html_()


def test_confounds_of_a_view_by_name_and_of_one_view_are_listed():
    views = Views({"x": X, "y": Y, "z": FRAME})
    by_name = permutation_test(views, confounds="z", n_permutations=19)
    assert by_name.coding == ("age", "site: 3 columns, reference A")
    both = permutation_test(X, Y, confounds=FRAME[["age"]], confounds_y=SITE, n_permutations=19)
    second = "confounds_y: 3 columns, reference A (second view)"
    assert both.coding == ("age (first view)", second)
    alone = permutation_test(X, Y, confounds_y=FRAME[["site"]], n_permutations=19)
    assert alone.coding == ("site: 3 columns, reference A (second view)",)


@pytest.mark.parametrize("table", ["pandas", "category", "polars", "objects"])
@pytest.mark.parametrize(
    "estimator",
    [
        CCA(2, confounds="z"),
        CCA(2, reg="cv", confounds="z"),
        MVCCA(2, reg=0.1, confounds="z"),
        Deconfound("z"),
        Deconfound("z", degree="squares"),
        GridSearchCV(CCA(1, confounds="z"), {"reg": [0.1, 1.0]}, cv=3),
        FoldSearchCV(CCA(1, confounds="z"), {"reg": [0.1, 1.0]}, cv=3),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_estimators_encode_views_of_confounds(estimator, table, tmp_path):
    views = {"x": X, "y": Y, "z": TABLES[table]}
    model = clone(estimator).fit(Views(views))
    expected = clone(estimator).fit(Views({**views, "z": ENCODED}))
    new = TABLES[table][:5]
    projected = model.transform({"x": X[:5], "z": new})["x"]
    same = expected.transform({"x": X[:5], "z": ENCODED[:5]})["x"]
    np.testing.assert_allclose(projected, same, atol=1e-9)
    if isinstance(estimator, CCA | MVCCA):
        mvcca.save(model, tmp_path / "model.mvcca")
        loaded = mvcca.load(tmp_path / "model.mvcca")
        np.testing.assert_array_equal(loaded.transform({"x": X[:5], "z": new})["x"], projected)


@pytest.mark.parametrize("model", [CCA(1, confounds="z"), Deconfound("z")])
def test_levels_that_were_not_fitted_are_refused(model):
    model = clone(model).fit(Views({"x": X, "y": Y, "z": FRAME}))
    with pytest.raises(ValueError, match="'site' has levels that were not fitted: 'Q'"):
        model.transform({"x": X[:5], "z": FRAME[:5].assign(site="Q")})
    with pytest.raises(ValueError, match="column 'site' is missing"):
        model.transform({"x": X[:5], "z": FRAME[["age"]][:5]})


def test_batches_keep_the_levels_of_the_first():
    views = Views({"x": X, "y": Y, "z": FRAME})
    model = CCA(1, confounds="z").partial_fit(views[:60]).partial_fit(views[60:])
    expected = CCA(1, confounds="z").fit(views)
    np.testing.assert_allclose(np.abs(model.weights_["x"]), np.abs(expected.weights_["x"]))


def test_a_study_and_the_command_line_encode_and_say_the_same(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    variables = [f"v{j}" for j in range(4)]
    pd.DataFrame(X, columns=variables).to_csv("x.csv", index=False)
    pd.DataFrame(Y, columns=[f"w{j}" for j in range(3)]).to_csv("y.csv", index=False)
    FRAME.to_csv("z.csv", index=False)
    command = ["test", "x.csv", "y.csv", "--confounds", "z.csv", "--permutations", "19", "--json"]
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)
    tables = (pd.read_csv(f"{name}.csv") for name in "xyz")
    with warnings.catch_warnings(action="ignore"):
        x, y, z = tables
        result = study({"x": x, "y": y}, confounds=z, n_permutations=19, random_state=0)
    assert result.coding == ("age and its square", "site: 3 columns, reference A")
    assert "Confounds: age and its square; site: 3 columns, reference A." in found["steps"]
    expected = json.loads(json.dumps(result.as_dict()))
    assert (found["steps"], found["conclusions"]) == (expected["steps"], expected["conclusions"])
    for one, other in zip(found["components"], expected["components"], strict=True):
        assert one == pytest.approx(other, abs=1e-9)
    FRAME.assign(day=DAYS).to_csv("z.csv", index=False)
    assert main(command) == 1
    assert "column 'day' holds dates or times" in capsys.readouterr().err


def _write(folder, table, by_id):
    """x.csv, y.csv and the table as z.csv; with ids, its rows are in reversed order."""
    for name, rows in {"x": X, "y": Y, "z": table}.items():
        frame = pd.DataFrame(rows).rename(columns=lambda column, name=name: f"{name}{column}")
        if by_id:
            frame.insert(0, "id", [f"s{k}" for k in range(N)])
        step = -1 if by_id and name == "z" else 1
        frame[::step].to_csv(folder / f"{name}.csv", index=False)


BAD_FILES = {
    "a bad number": (
        FRAME.assign(age=["unknown" if k == 7 else one for k, one in enumerate(AGE)]),
        "column 'zage' holds numbers, but 'unknown' in {place}. Expected only numbers.",
    ),
    "a missing level": (
        FRAME.assign(site=[None if k == 7 else one for k, one in enumerate(SITE)]),
        "column 'zsite' misses 1 of 120 values, first in {place}. ",
    ),
    "dates": (FRAME.assign(day=DAYS), "column 'zday' holds dates or times."),
    "ids": (FRAME.assign(key=[f"s{k}" for k in range(N)]), "column 'zkey' has 120 levels"),
}


@pytest.mark.parametrize("by_id", [False, True])
@pytest.mark.parametrize("what", BAD_FILES)
def test_bad_confounds_of_the_command_line_are_named_with_file_and_line(
    what, by_id, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    table, message = BAD_FILES[what]
    _write(tmp_path, table, by_id)
    command = ["test", "x.csv", "y.csv", "--confounds", "z.csv", "--permutations", "19"]
    assert main(command + (["--id", "id"] if by_id else [])) == 1
    place = "line 114 (s7)" if by_id else "line 9"
    assert f"error: z.csv: {message.format(place=place)}" in capsys.readouterr().err


def test_families_among_the_confounds_are_noted_once(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    _write(tmp_path, FRAME.assign(_family=np.arange(N) // 3), by_id=False)
    assert main(["test", "x.csv", "y.csv", "--confounds", "z.csv", "--permutations", "19"]) == 0
    assert capsys.readouterr().err.count("'z_family' is used as a number") == 1


@pytest.mark.parametrize("file", ["z.csv", "z.parquet", "z.txt", "z.csv by id"])
def test_fit_codes_confounds_in_files(file, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    file, by, _ = file.partition(" by id")
    _write(tmp_path, FRAME, bool(by))
    FRAME.to_parquet("z.parquet")
    FRAME[["site"]].to_csv("z.txt", index=False, header=False)
    command = ["fit", "--view", "x=x.csv", "--view", "y=y.csv", "--view", f"z={file}"]
    command += ["--method", "cca", "--param", "confounds=z", "--no-tune", "-o", "m.mvcca"]
    assert main(command + (["--id", "id"] if by else [])) == 0
    assert f": {len(set(SITE)) - 1} columns, reference" in capsys.readouterr().out
    table = FRAME[["site"]] if file == "z.txt" else FRAME
    expected = CCA(confounds="z").fit({"x": X, "y": Y, "z": table})
    for name, W in load("m.mvcca").weights_.items():
        np.testing.assert_allclose(W, expected.weights_[name], atol=1e-10)
