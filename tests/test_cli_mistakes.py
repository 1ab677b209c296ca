"""The commonest mistakes at the command line: one line each, with what to do."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import without_reads

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
    write("whole.csv", a, range(N), prefix="")
    Path("numbered.csv").write_text(Path("whole.csv").read_text().replace("name", "item_id", 1))
    write("semicolons.csv", a, range(N), delimiter=";")
    write("decimals.csv", a, range(N), delimiter=";", decimal=",")
    write("twice.csv", a, [0, 1, 0])
    write("unnamed.csv", a, range(N), first="")
    Path("empty.csv").touch()
    Path("header.csv").write_text("name,a0,a1\n")
    Path("nameless.csv").write_text("name,a0\nn1,2\n,3\n")
    with open("bare.csv", "w", newline="") as file:
        csv.writer(file).writerows(np.where(np.isnan(holes), "", holes.astype(str)).tolist())
    with open("text.csv", "w", newline="") as file:
        csv.writer(file).writerows([("u", "v"), (1, 2), (3, "four"), *([(5, 6)] * (N - 2))])
    Path("folder").mkdir()


def write(name, rows, numbers, *, first="name", prefix="n", delimiter=",", decimal="."):
    """A table with ids."""
    with open(name, "w", newline="") as file:
        lines = csv.writer(file, delimiter=delimiter)
        lines.writerow((first, *(f"{name[0]}{j}" for j in range(rows.shape[1]))))
        for i in numbers:
            lines.writerow([f"{prefix}{i}", *(str(v).replace(".", decimal) for v in rows[i])])


def fit(*views, method="cca", more=()):
    pairs = [part for view in views for part in ("--view", view)]
    return ["fit", *pairs, "--method", method, "-o", "model.mvcca", *more]


ID = ["--id", "name"]
FILL_IN = "Fill in missing values, or leave out these rows: `mvcca fit` and test do so with"

MISTAKES = {
    # ---- the ten commonest
    "ids in another order": (
        fit("a=a.csv", "b=b.csv"),
        "row 1 is 'n0' in a.csv, and 'n49' in b.csv: match rows by their ids, --id name, or leave "
        "the ids out, --drop name",
    ),
    "text among numbers": (
        fit("a=a.npy", "b=text.csv"),
        "text.csv: expected a number in line 3, column 'v', got 'four'; correct it, or give "
        "--drop v",
    ),
    "an unknown view": (
        ["search", "model.mvcca", "--gallery", "c=b.npy", "--query", "a=a.npy"],
        "Unknown view 'c'; CCA was fitted on the views ['a', 'b']",
    ),
    "different heights": (
        fit("a=a.npy", "b=short.npy"),
        "the same number of rows, got a 60 (a.npy), b 40 (short.npy). If a column names the rows, "
        "give --id COLUMN",
    ),
    "a hole": (
        fit("a=holes.npy", "b=b.npy"),
        "first in row 3, column 2 of ",
        f"holes.npy; 1 such value in 1 of 60 rows. {FILL_IN}",
    ),
    "no labels": (fit("a=a.npy", "b=b.npy", method="mlcca"), "learns from labels; give --labels"),
    "labels of other length": (
        fit("a=a.npy", "b=b.npy", method="mlcca", more=["--labels", "y40.npy"]),
        "y40.npy: expected 60 rows, got 40",
    ),
    "one view": (fit("a=a.npy"), "--view must be given at least twice"),
    "a class as a method": (
        fit("a=a.npy", "b=b.npy", method="semantic-matching"),
        "unknown method 'semantic-matching'; here it is 'sm'",
    ),
    "an unknown method": (fit("a=a.npy", "b=b.npy", method="ccaa"), "did you mean 'cca'"),
    # a missing extra is below
    # ---- others
    "a hole in a table": (
        fit("a=holes.csv", "b=b.csv", more=ID),
        f"holes.csv: 1 of 360 values are missing, first in line 5 (n3), column 'h2'. {FILL_IN}",
    ),
    "an empty cell": (
        fit("a=bare.csv", "b=b.npy"),
        "values are missing, first in line 4, column 3. Fill in",
    ),
    "no such file": (fit("a=a.npy", "b=c.npy"), "c.npy: no such file"),
    "no such column": (
        fit("a=numbered.csv", "b=b.csv", more=["--id", "nr"]),
        "numbered.csv: there is no column 'nr'; its columns are 'item_id', 'w0', 'w1', ... (7 in "
        "all). Give --id COLUMN, a name or a number",
    ),
    "an id twice": (
        fit("a=twice.csv", "b=b.csv", more=ID),
        "twice.csv: id 'n0' is in line 2 and in line 4; keep one of them",
    ),
    "a row without an id": (
        fit("a=nameless.csv", "b=b.csv", more=ID),
        "nameless.csv: line 3 has no id; name it, or leave it out",
    ),
    "ids of another form": (
        fit("a=whole.csv", "b=b.csv", more=ID),
        "none of the 50 ids are in both whole.csv and b.csv; 50 would be if a beginning did not "
        "differ: '10' in whole.csv, 'n10' in b.csv. Give --match-ids beginning",
    ),
    "a file without ids": (
        fit("a=a.npy", "b=b.csv", more=ID),
        "a.npy: it has no ids 'name' of its rows; a .npz file may have",
        "np.savez('rows.npz', rows=X, ids=names)",
    ),
    "an empty file": (fit("a=empty.csv", "b=b.csv", more=ID), "empty.csv: ", "it is empty"),
    "a header alone": (
        fit("a=header.csv", "b=b.csv", more=ID),
        "header.csv: it has no rows under its header",
    ),
    "a header alone, without ids": (
        fit("a=header.csv", "b=b.npy"),
        "header.csv: it has no rows under its header",
    ),
    "an empty folder": (
        fit("a=folder", "b=b.csv", more=ID),
        "folder: expected a folder of .txt files, each one text; found none",
    ),
    "ids without a header": (
        fit("a=a.csv", "b=b.csv", more=[*ID, "--header", "no"]),
        "--id names a column of the header, but --header says that there is none",
    ),
    "a method for complete objects": (
        fit("a=a.csv", "b=b.csv", method="ncca", more=ID),
        "are seen in one view only. Keep the objects of all views: --id COLUMN --complete",
    ),
    "complete objects without ids": (
        fit("a=a.npy", "b=b.npy", more=["--complete"]),
        "--complete needs --id",
    ),
    "a table of layers": (
        ["similarity", "a.csv", "b.npy"],
        "a.csv: expected a .npy file with a row per object, got .csv; write one by np.save",
    ),
    "ids twice": (
        ["transform", "model.mvcca", "--view", "a=a.csv", *ID, "--ids", "b.csv", "-o", "s.csv"],
        "--id names the rows already; omit --ids",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_one_line_with_the_remedy(mistake, capsys):
    if mistake in ("an unknown view", "ids twice"):
        assert main(fit("a=a.npy", "b=b.npy")) == 0
        capsys.readouterr()
    command, *remedies = MISTAKES[mistake]
    try:
        code = main(command)
    except SystemExit as usage:
        code = usage.code
    assert code in (1, 2)
    errors = capsys.readouterr().err.splitlines()
    errors = [one for one in errors if ": read as " not in one]
    if code == 2:
        assert errors.pop(0).startswith("usage: ")
    errors = [one for one in errors if "objects by 'name'" not in one and ": read as " not in one]
    assert len(errors) == 1
    assert all(remedy in errors[0] for remedy in remedies), errors[0]


def test_a_missing_extra_is_named(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    Path("b.h5").write_bytes(b"")
    assert main(fit("a=a.npy", "b=b.h5")) == 1
    assert "pip install 'mvcca[files]'" in capsys.readouterr().err


def test_whole_numbers_that_look_like_ids_are_noted(capsys):
    assert main(fit("a=numbered.csv", "b=b.npy")) == 0
    assert without_reads(capsys.readouterr().err) == (
        "mvcca: warning: numbered.csv: column 'item_id' is used as a feature. If it names the "
        "rows, give --id item_id.\n"
    )


@pytest.mark.parametrize("file", ["semicolons.csv", "decimals.csv"])
def test_semicolons_separate_cells_too(file, capsys):
    assert main(fit(f"a={file}", "b=b.csv", more=ID)) == 0
    assert "60 objects by 'name': 50 in both views (a 60, b 50)" in capsys.readouterr().err


def test_holes_are_taken_by_methods_that_take_them(capsys):
    for file, more in {"holes.npy": [], "holes.csv": ID, "bare.csv": []}.items():
        other = "b=b.csv" if more else "b=b.npy"
        assert main(fit(f"a={file}", other, more=["--param", "missing=em", *more])) == 0
    out = capsys.readouterr().out
    assert out.count("missing='em'") == 3
