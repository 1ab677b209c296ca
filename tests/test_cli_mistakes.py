"""The commonest mistakes at the command line: one line each, with what to do."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
import pytest

from mvcca.cli import main

N = 60


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """Two views in several forms, in the current folder."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((N, 3))
    a = shared @ rng.standard_normal((3, 6)) + 0.2 * rng.standard_normal((N, 6))
    b = shared @ rng.standard_normal((3, 5)) + 0.2 * rng.standard_normal((N, 5))
    np.save("a.npy", a)
    np.save("b.npy", b)
    np.save("short.npy", b[:40])
    np.save("y.npy", np.arange(N) % 3)
    np.save("y40.npy", np.arange(40) % 3)
    holes = a.copy()
    holes[3, 2] = np.nan
    np.save("holes.npy", holes)
    write("a.csv", a, range(N - 10))  # some objects are missing from each
    write("b.csv", b, rng.permutation(np.arange(10, N)))
    write("holes.csv", holes, range(N))
    with open("y.csv", "w", newline="") as file:
        csv.writer(file).writerows([("name", "class"), *((f"n{i}", f"c{i % 3}") for i in range(N))])
    with open("text.csv", "w", newline="") as file:
        csv.writer(file).writerows([("u", "v"), (1, 2), (3, "four"), *([(5, 6)] * (N - 2))])


def write(name, rows, numbers):
    """A table with ids."""
    with open(name, "w", newline="") as file:
        header = ("name", *(f"{name[0]}{j}" for j in range(rows.shape[1])))
        csv.writer(file).writerows([header, *((f"n{i}", *rows[i]) for i in numbers)])


def fit(*views, method="cca", more=()):
    pairs = [part for view in views for part in ("--view", view)]
    return ["fit", *pairs, "--method", method, "-o", "model.mvcca", *more]


MISTAKES = {
    "ids as a column": (fit("a=a.csv", "b=b.csv"), "column names the rows, give it by --id COLUMN"),
    "text among numbers": (fit("a=a.npy", "b=text.csv"), "a number in row 3, column 2, got 'four'"),
    "different heights": (fit("a=a.npy", "b=short.npy"), "the same number of rows, got a 60 (a.np"),
    "a hole": (
        fit("a=holes.npy", "b=b.npy"),
        "first in row 3, column 2; 1 such value in 1 of 60 rows. Fill in",
    ),
    "a hole in a table": (
        fit("a=holes.csv", "b=b.csv", more=["--id", "name"]),
        "column 'h2' misses 1 of 60 values, first in row 4; leave out the column or these rows",
    ),
    "no labels": (fit("a=a.npy", "b=b.npy", method="mlcca"), "learns from labels; give --labels"),
    "labels of other length": (
        fit("a=a.npy", "b=b.npy", method="mlcca", more=["--labels", "y40.npy"]),
        "y40.npy: it contains labels of 40 objects, but the views have 60 rows",
    ),
    "one view": (fit("a=a.npy"), "--view must be given at least twice"),
    "an unknown method": (fit("a=a.npy", "b=b.npy", method="ccaa"), "did you mean 'cca'"),
    "no such file": (fit("a=a.npy", "b=c.npy"), "c.npy: no such file"),
    "no such column": (
        fit("a=a.csv", "b=b.csv", more=["--id", "nr"]),
        "a.csv: there is no column 'nr'; its columns are 'name'",
    ),
    "an unknown view": (
        ["search", "model.mvcca", "--gallery", "c=b.npy", "--query", "a=a.npy"],
        "Unknown view 'c'; CCA was fitted on the views ['a', 'b']",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_one_line_with_the_remedy(mistake, capsys):
    if mistake == "an unknown view":
        assert main(fit("a=a.npy", "b=b.npy")) == 0
        capsys.readouterr()
    command, remedy = MISTAKES[mistake]
    try:
        code = main(command)
    except SystemExit as usage:
        code = usage.code
    assert code in (1, 2)
    errors = [line for line in capsys.readouterr().err.splitlines() if "error" in line]
    assert len(errors) == 1
    assert remedy in errors[0]


def test_a_missing_extra_is_named(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    Path("b.h5").write_bytes(b"")
    assert main(fit("a=a.npy", "b=b.h5")) == 1
    assert "mvcca[files]" in capsys.readouterr().err


# ---- tables with ids ----------------------------------------------------------------------------


def test_rows_are_matched_by_id_and_hits_name_them(capsys):
    assert main(fit("a=a.csv", "b=b.csv", more=["--id", "name"])) == 0
    capsys.readouterr()
    command = ["search", "model.mvcca", "--gallery", "a=a.csv", "--query", "b=b.csv", "-k", "1"]
    assert main([*command, "--id", "name"]) == 0
    hits = [line.split(",") for line in capsys.readouterr().out.split()][1:]
    assert len(hits) == N - 10
    known = [(query, item) for query, _, item, _ in hits if int(query[1:]) < N - 10]
    assert np.mean([query == item for query, item in known]) > 0.6  # chance: .02
    with pytest.raises(SystemExit):
        main([*command, "--id", "name", "-o", "hits.npy"])
    assert "with --id write .csv, .parquet or .arrow" in capsys.readouterr().err


def test_labels_are_matched_by_id(capsys):
    more = ["--id", "name", "--labels", "y.csv"]
    assert main(fit("a=a.csv", "b=b.csv", method="mlcca", more=more)) == 0
    with open("y.csv", "w") as file:
        file.write("name,class\nn0,c0\n")
    assert main(fit("a=a.csv", "b=b.csv", method="mlcca", more=more)) == 1
    assert "59 of 60 objects have no label, such as 'n1'" in capsys.readouterr().err
    more = ["--id", "name", "--labels", "a=y.csv", "--labels", "b=y.csv"]
    with pytest.raises(SystemExit):
        main(fit("a=a.csv", "b=b.csv", method="mlcca", more=more))
    assert "--id pairs the rows of views; labels are one FILE then" in capsys.readouterr().err


def test_compare_takes_ids():
    command = ["compare", "--view", "a=a.csv", "--view", "b=b.csv", "--id", "name"]
    assert main([*command, "--methods", "mvcca", "--cv", "2", "-q"]) == 0
