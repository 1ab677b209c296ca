"""Missing values and confounds on the command line: what is left out or filled in is said."""

from __future__ import annotations

import contextlib
import json

import numpy as np
import pandas as pd
import pytest

import mvcca
from mvcca.cli import main
from mvcca.inspection import study

N = 80
IDS = [f"S{k:03d}" for k in range(N)]


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """Two views, and confounds; rows 3 and 7 of a, and 5 and 9 of the confounds, miss values."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    shared = rng.normal(size=(N, 2))
    found = {
        name: pd.DataFrame(
            shared @ rng.normal(size=(2, 4)) + 0.5 * rng.normal(size=(N, 4)),
            index=IDS,
            columns=[f"{name}{j}" for j in range(4)],
        )
        for name in "ab"
    }
    found["a"].iloc[3, 1] = found["a"].iloc[7, 2] = found["a"].iloc[7, 3] = np.nan
    found["z"] = pd.DataFrame(
        {"age": rng.integers(20, 70, N).astype(float), "site": rng.choice(list("ABC"), N)},
        index=IDS,
    )
    found["z"].iloc[5, 0], found["z"].iloc[9, 1] = np.nan, None
    for name, frame in found.items():
        frame.to_csv(f"{name}.csv", index_label="id")
    return found


TEST = ["test", "a.csv", "b.csv", "--id", "id", "--confounds", "z.csv"]
TEST += ["--permutations", "19", "--json"]
FIT = ["fit", "--view", "a=a.csv", "--view", "b=b.csv", "--method", "cca", "--no-tune"]
FIT += ["--param", "reg=0.1", "-o", "m.mvcca", "--json"]


def out(capsys, *words):
    assert main([*words]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def mended(tables, how):
    """The tables as a user of Python would mend them."""
    a, b, z = tables["a"], tables["b"], tables.get("z")
    if how == "drop":
        kept = ~a.isna().any(axis=1)
        kept &= True if z is None else ~z.isna().any(axis=1)
        return a[kept], b[kept], None if z is None else z[kept]
    if z is None:
        return a.fillna(a.mean()), b, None
    return a.fillna(a.mean()), b, z.fillna({"age": z["age"].mean(), "site": "missing"})


SAID = {
    "drop": ["4 of 80 rows were left out: a value is missing in a.csv (2), z.csv (2)."],
    "mean": [
        "a.csv: 3 of 320 values were missing; the mean of their column stands for them.",
        "z.csv: 1 of 80 values of 'age' were missing; its mean stands for them.",
        "z.csv: 1 of 80 values of 'site' were missing; the level 'missing' stands for them.",
    ],
}


@pytest.mark.parametrize("how", SAID)
def test_a_study_of_mended_rows_is_that_of_python(how, tables, capsys):
    a, b, z = mended(tables, how)
    expected = study({"a": a, "b": b}, confounds=z, n_permutations=19, random_state=0).as_dict()
    found = out(capsys, *TEST, "--missing", how)
    assert found["steps"][1 : 1 + len(SAID[how])] == SAID[how]
    rows = [line["in_sample"] for line in found["components"]]
    np.testing.assert_allclose(rows, [line["in_sample"] for line in expected["components"]])
    assert found["confounds"] == expected["confounds"]
    n_levels = 2 if how == "drop" else 3
    assert found["confounds"][1] == f"site: {n_levels} columns, reference A"


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize("how", SAID)
def test_groups_follow_their_rows(how, capsys):
    (pd.Series(IDS).str[:3]).to_csv("g.txt", index=False, header=False)
    found = out(capsys, *TEST[:3], *TEST[5:], "--groups", "g.txt", "--missing", how, "--drop",
                "confounds=id")  # fmt: skip
    assert found["steps"][0].startswith(f"{N - 4 * (how == 'drop')} rows")


@pytest.mark.usefixtures("tables")
def test_columns_of_confounds_are_chosen_and_their_file_is_said(capsys):
    for words in (["--columns", "confounds=age"], ["--drop", "confounds=site"]):
        found = out(capsys, *TEST, "--missing", "mean", *words)
        assert found["confounds"] == ["age and its square"]
        assert found["read"][2].startswith("z.csv: read as a table: 80 rows, 1 column of numbers,")
    assert main([*TEST, "--missing", "mean", "--drop", "confounds=sit"]) == 1
    message = "z.csv: there is no column 'sit'; its columns are 'id', 'age', 'site'"
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("how", SAID)
def test_a_fit_to_mended_rows_is_that_of_python(how, tables, capsys):
    a, b, _ = mended({name: tables[name] for name in "ab"}, how)
    expected = mvcca.CCA(reg=0.1).fit({"a": a, "b": b})
    found = out(capsys, *FIT, "--missing", how)
    said = "2 of 80 rows were left out: a value is missing in a.csv (2)."
    assert found["missing"] == [said if how == "drop" else SAID["mean"][0]]
    np.testing.assert_allclose(mvcca.load("m.mvcca").weights_["a"], expected.weights_["a"])


def test_labels_and_blocks_of_a_file_follow_their_rows(tables, capsys, monkeypatch):
    monkeypatch.setattr("mvcca.blocks.sources._text._KEPT_BYTES", 100)
    labels = ["p", "q", "r", "s"] * (N // 4)
    pd.Series(labels).to_csv("y.csv", index=False, header=False)
    words = [word.replace("cca", "mvmlcca") if word == "cca" else word for word in FIT]
    out(capsys, *words, "--labels", "y.csv", "--missing", "drop")
    kept = ~tables["a"].isna().any(axis=1)
    expected = mvcca.MVMLCCA(reg=0.1).fit(
        {name: tables[name][kept] for name in "ab"}, np.array(labels)[kept]
    )
    weights = mvcca.load("m.mvcca").weights_["a"]
    np.testing.assert_allclose(weights, expected.weights_["a"], rtol=1e-6)


def test_confounds_of_a_fit_are_listed(tables, capsys):
    tables["z"][["age"]].fillna(40).to_csv("age.csv", index_label="id")
    more = ["--view", "z=age.csv", "--param", "confounds=z", "--missing", "mean"]
    assert out(capsys, *FIT, *more)["confounds"] == ["age"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (TEST, "a.csv: 3 of 320 values are missing, first in line 5 (S003), column 'a1'. Leave out "
               "the column or these rows: --missing drop, or keep them with --missing em"),
        ([*TEST, "--missing", "em"], "column 'age' misses 1 of 80 values, first in line 7 (S005). "
                                     "Leave out the column or these rows: --missing drop, or fill"),
        ([*TEST, "--missing", "drop", "--groups", "site"], "'site' misses 1 of 80 values, first"),
        ([*FIT, "--missing", "em", "--method", "kcca"], "--missing em: kcca learns from complete"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("tables")
def test_what_is_missing_is_named_with_the_option_that_helps(words, message, capsys):
    with contextlib.suppress(SystemExit):  # of a usage error
        assert main(words) == 1
    assert message in " ".join(capsys.readouterr().err.split())


@pytest.mark.usefixtures("tables")
def test_missing_em_is_the_parameter(capsys):
    out(capsys, *FIT, "--missing", "em")
    assert mvcca.load("m.mvcca").missing == "em"


def test_rows_that_all_miss_a_value_and_columns_without_one_are_refused(tables, capsys):
    a = tables["a"].copy()
    a["a0"] = np.nan
    a.to_csv("a.csv", index_label="id")
    for how, message in (("drop", "every row misses a value"), ("mean", "column 1 holds no value")):
        assert main([*FIT, "--missing", how]) == 1
        assert message in capsys.readouterr().err


@pytest.mark.parametrize("how", SAID)
def test_categories_among_confounds_of_a_fit_are_those_of_python(how, tables, capsys):
    a, b, z = mended(tables, how)
    expected = mvcca.CCA(reg=0.1, confounds="z").fit({"a": a, "b": b, "z": z})
    more = ["--view", "z=z.csv", "--param", "confounds=z", "--id", "id", "--missing", how]
    found = out(capsys, *FIT, *more)
    assert found["missing"] == SAID[how]
    n_levels = 2 if how == "drop" else 3
    assert found["confounds"] == ["age", f"site: {n_levels} columns, reference A"]
    model = mvcca.load("m.mvcca")
    np.testing.assert_allclose(model.weights_["a"], expected.weights_["a"], rtol=1e-7)
    new = {"a": a[:5], "z": z[:5]}  # the model knows the levels
    np.testing.assert_allclose(model.transform(new)["a"], expected.transform(new)["a"], rtol=1e-7)


def test_one_category_is_a_confound_of_a_fit(tables, capsys):
    tables["z"][["site"]].fillna("A").to_csv("site.csv", index=False)
    more = ["--view", "z=site.csv", "--param", "confounds=z", "--missing", "mean"]
    assert out(capsys, *FIT, *more)["confounds"] == ["site: 2 columns, reference A"]


def test_search_and_transform_take_confounds_beside_the_rows(tables, capsys):
    a, b, z = (own[10:] for own in tables.values())
    for name, frame in (("a", a), ("b", b), ("z", z[::-1])):
        frame.to_csv(f"{name}.csv", index_label="id")
    fit = [word for word in FIT if word != "--json"]
    z_view = ["--view", "z=z.csv"]
    assert main([*fit[:1], *z_view, *fit[1:], "--param", "confounds=z", "--id", "id"]) == 0
    hint = capsys.readouterr().out.partition("Next: mvcca ")[2].split()
    assert hint[2:10:2] == ["--gallery"] * 2 + ["--query"] * 2
    assert main([*hint, "-k", "3", "-o", "hits.csv"]) == 0
    model = mvcca.load("m.mvcca")
    index = mvcca.RetrievalIndex(model).add({"a": a, "z": z})
    scores, items = index.search({"b": b, "z": z}, k=3)
    hits = pd.read_csv("hits.csv")
    assert hits["item"].tolist() == a.index[items.ravel()].tolist()
    np.testing.assert_allclose(hits["score"], scores.ravel())

    both = ["transform", "m.mvcca", "--view", "a=a.csv", *z_view, "-o", "s.csv"]
    assert main([*both, "--id", "id"]) == 0
    found = pd.read_csv("s.csv", index_col="id")
    np.testing.assert_allclose(found, model.transform({"a": a, "z": z})["a"], rtol=1e-9)
    queries = ["--query", "b=b.csv", "--query", "z=z.csv"]
    search = ["search", "m.mvcca", *queries, "--gallery", "a=a.csv"]
    several = [*search, "--gallery", "b=b.csv", "--gallery", "z=z.csv"]
    for words, message in (
        (both, "row 1 is 'S010' in a.csv, and 'S079' in z.csv: match rows by their ids, --id id"),
        (search, "row 1 is 'S010' in b.csv, and 'S079' in z.csv"),
        ([*both[:2], *z_view, "-o", "s.csv"], "confounds have no scores"),
        (several, "several galleries have the same confounds only if they are searched as one"),
    ):
        with contextlib.suppress(SystemExit):  # of a usage error
            assert main(words) == 1
        assert message in " ".join(capsys.readouterr().err.split())
