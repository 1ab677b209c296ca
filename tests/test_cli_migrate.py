"""`mvcca migrate`, judged by the library's maps on the same rows and by sorting all cosines."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import commands
import numpy as np
import pytest
from scipy import sparse

from mvcca import AffineMap, Procrustes
from mvcca.cli import main
from mvcca.interop.migration import Migration, fit_migration

N = 3000
SAMPLE = np.random.default_rng(5).permutation(N)[:400]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Vectors of two models that see the same 8 dimensions; the new one has embedded a sample."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((N, 8))
    old = shared @ rng.standard_normal((8, 12)) + 0.01 * rng.standard_normal((N, 12)) + 1
    new = shared @ rng.standard_normal((8, 9)) + 0.01 * rng.standard_normal((N, 9)) - 1
    np.save("old.npy", old.astype("f4"))
    np.save("all_new.npy", new.astype("f4"))
    np.save("new.npy", new[SAMPLE].astype("f4"))
    np.save("sample.npy", SAMPLE)
    return tmp_path


def run(capsys, *arguments):
    return commands.run(capsys, "migrate", *arguments)


MIGRATE = ("old.npy", "new.npy", "--sample", "sample.npy", "-o", "migrated.npy")


@pytest.mark.parametrize(
    ("options", "estimator"),
    [
        (("--reg", "0.1"), AffineMap(reg=0.1)),
        (("--method", "procrustes"), Procrustes()),
    ],
)
def test_every_row_is_mapped_as_the_library_maps_it(capsys, options, estimator):
    code, out, _ = run(capsys, *MIGRATE, *options, "--block-rows", "700", "--force")
    assert code == 0
    old, new = np.load("old.npy").astype(float), np.load("new.npy").astype(float)
    expected = estimator.fit({"old": old[SAMPLE], "new": new}).predict({"old": old})
    migrated = np.load("migrated.npy")
    assert migrated.dtype == np.float32
    np.testing.assert_allclose(migrated, expected, rtol=0, atol=1e-5)
    assert "migrated.npy: 3,000 rows, 9 features" in out


@pytest.mark.parametrize("direction", ["items", "queries"])
def test_a_report_is_a_page_with_the_figures_and_the_curve(capsys, direction):
    pytest.importorskip("matplotlib")
    options = ("--direction", direction, "--reg", "0.1", "--report", "page.html")
    code, out, err = run(capsys, *MIGRATE[:-1], "map.mvcca", *options)
    assert code == 0
    assert "report: page.html" in err
    page = Path("page.html").read_text()
    found = Migration.load("map.mvcca")
    assert [point.n_pairs for point in found.learning_curve] == [50, 100, 200]
    for text in (
        found.verdict,
        f"own row found first among {found.gallery_in_words}",
        f"{found.found_first:.3f} ± {2 * found.found_first_error:.3f}",
        f"{found.neighbors_kept:.3f}",
        "If the curve still rises, embed more pairs",
        "Maps of fewer pairs",
    ):
        assert text in unescape(page)
    assert "<svg" in page
    code, out, _ = commands.run(capsys, "info", "map.mvcca")
    view, n = {"items": ("old", 12), "queries": ("new", 9)}[direction]
    assert f"`mvcca transform` maps --view {view}=FILE ({n} features)" in out
    assert json.loads(commands.run(capsys, "info", "map.mvcca", "--json")[1])["views"] == {view: n}


def test_a_report_that_is_no_page_or_an_input_is_refused(capsys):
    for name in ("page.pdf", "old.npy"):
        with pytest.raises(SystemExit):
            main(["migrate", *MIGRATE, "--report", name])
        assert "expected a name ending in .html" in capsys.readouterr().err


def test_without_a_sample_files_of_the_same_height_are_paired(capsys):
    assert run(capsys, "old.npy", "all_new.npy", "-o", "migrated.npy", "--reg", "0.1")[0] == 0
    old, new = np.load("old.npy"), np.load("all_new.npy")
    expected = AffineMap(reg=0.1).fit({"old": old, "new": new}).predict({"old": old})
    np.testing.assert_allclose(np.load("migrated.npy"), expected, rtol=0, atol=1e-5)


def test_the_printed_figures_are_those_of_the_library_among_all_stored_rows(capsys):
    code, out, _ = run(capsys, *MIGRATE, "--reg", "0.1", "--seed", "3")
    assert code == 0
    old, new = np.load("old.npy"), np.load("new.npy")
    found = fit_migration(old[SAMPLE], new, stored=old, reg=0.1, random_state=3)
    first, error = found.found_first, 2 * found.found_first_error
    assert "affine, reg=0.1: fitted to 400 pairs; the figures are of pairs left out" in out
    assert (
        f"own migrated row found first among 3,000 rows: {first:.3f} ± {error:.3f} (400 queries)"
        in out
    )
    assert (
        f"nearest 10.0% of rows that are still nearest: {found.neighbors_kept:.3f} "
        f"(old model: {found.neighbors_kept_before:.3f})"
    ) in out
    facts = json.loads(run(capsys, *MIGRATE, "--reg", "0.1", "--seed", "3", "--json")[1])
    assert (facts["gallery_size"], facts["found_first"]) == (N, first)


def test_the_report_says_that_the_gallery_is_a_draw(capsys, monkeypatch):
    monkeypatch.setattr("mvcca.interop.migration.gallery.MOST_ROWS", 1000)
    _, out, _ = run(capsys, *MIGRATE, "--reg", "0.1")
    assert re.search(r"first among (1,000|9\d\d) different rows of 3,000: ", out)


def shuffle_new():
    np.save("new.npy", np.random.default_rng(1).permutation(np.load("new.npy")))


def test_a_useless_map_is_written_by_force_only(capsys):
    shuffle_new()
    code, out, err = run(capsys, *MIGRATE)
    assert code == 1
    assert "own migrated row found first among 3,000 rows: 0.0" in out
    assert "migrated.npy: not written, since the map finds no more rows than one of perm" in err
    assert "--force writes it" in err
    assert not os.path.exists("migrated.npy")
    code, out, err = run(capsys, *MIGRATE, "--force")
    assert code == 0
    assert "mvcca: warning: Only 0.0" in err
    assert np.load("migrated.npy").shape == (N, 9)


def test_the_ridge_of_least_error_is_chosen(capsys):
    out = run(capsys, *MIGRATE, "--reg", "1e-3", "1", "100")[1]
    assert "\naffine, reg=0.001: " in out


def test_vectors_are_scaled_to_length_one_on_request_or_as_those_of_the_new_model(capsys):
    def is_scaled(*options):
        assert run(capsys, *MIGRATE, *options)[0] == 0
        return np.allclose(np.linalg.norm(np.load("migrated.npy"), axis=1), 1, rtol=1e-5)

    assert is_scaled("--normalize")
    assert not is_scaled()
    new = np.load("new.npy")
    np.save("new.npy", new / np.linalg.norm(new, axis=1, keepdims=True))
    assert is_scaled()
    assert not is_scaled("--no-normalize")


@pytest.mark.filterwarnings("ignore:Only 0")
def test_a_map_of_queries_is_written_and_no_stored_row_changes(capsys):
    arguments = ("--direction", "queries", "--reg", "0.1", "--learning-curve")
    code, out, _ = run(capsys, *MIGRATE[:-1], "queries.mvcca", *arguments)
    assert code == 0
    assert "cca, reg=0.1: fitted to 400 pairs" in out
    assert "own row found first among 3,000 rows: " in out
    assert "with 100 pairs: own row first " in out
    assert "queries.mvcca: map of queries" in out
    old, new = np.load("old.npy"), np.load("new.npy")
    expected = fit_migration(old[SAMPLE], new, stored=old, direction="queries", reg=0.1)
    found = Migration.load("queries.mvcca")
    np.testing.assert_allclose(found.map_queries(new), expected.map_queries(new), rtol=1e-6)
    code, _, err = run(capsys, *MIGRATE, "--direction", "queries")
    assert code == 1
    assert "leaves the rows of old.npy as they are" in " ".join(err.split())


def rows_of(*numbers):
    return lambda: np.save("sample.npy", np.array([*numbers, *range(100, 500 - len(numbers))]))


def few_pairs():
    np.save("sample.npy", np.arange(5))
    np.save("new.npy", np.eye(5))


def sparse_new():
    sparse.save_npz("new.npz", sparse.csr_array(np.load("new.npy")))


def nan_in_old():
    old = np.load("old.npy")
    old[2000, 3] = np.nan
    np.save("old.npy", old)
    np.save("sample.npy", np.arange(400))


def test_a_saved_map_maps_files(capsys):
    assert run(capsys, *MIGRATE)[0] == 0
    assert run(capsys, "old.npy", "new.npy", "--sample", "sample.npy", "-o", "map.mvcca")[0] == 0
    command = ["transform", "map.mvcca", "--view"]
    assert main([*command, "old=old.npy", "-o", "again.npy"]) == 0
    np.testing.assert_array_equal(np.load("again.npy"), np.load("migrated.npy"))
    assert main([*command, "left=old.npy", "-o", "other.npy"]) == 1
    assert "Unknown view 'left'; the views are ['old', 'new']" in capsys.readouterr().err
    assert main(["search", "map.mvcca", "--gallery", "old=old.npy", "--query", "new=new.npy"]) == 1
    assert "contains a migration; `mvcca transform` maps rows by it" in capsys.readouterr().err


def test_a_saved_map_is_described_and_needs_no_scikit_learn(capsys):
    assert run(capsys, *MIGRATE[:-1], "map.mvcca")[0] == 0
    assert main(["info", "map.mvcca"]) == 0
    found = Migration.load("map.mvcca")
    assert capsys.readouterr().out == (
        "map.mvcca: migration of items; `mvcca transform` maps --view old=FILE (12 features)\n"
        f"{found}\n"
    )
    assert main(["info", "map.mvcca", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["found_first"] == found.found_first
    program = (
        "import sys\nfrom mvcca.cli import main\n"
        "main(['transform', 'map.mvcca', '--view', 'old=old.npy', '-o', 'o.npy', '-q'])\n"
        "assert not {'sklearn', 'numba', 'pandas', 'joblib'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    ("spoil", "arguments", "code", "message"),
    [
        (rows_of(3, 3), MIGRATE, 1, "sample.npy: a row number is there twice"),
        (rows_of(3000), MIGRATE, 1, "sample.npy: expected row numbers from 0 to 2999"),
        (rows_of(0.5), MIGRATE, 1, "expected row numbers from 0 to 2999"),
        (lambda: np.save("sample.npy", np.arange(30)), MIGRATE, 1, "30 row numbers for the 400"),
        (lambda: np.save("sample.npy", np.eye(20)), MIGRATE, 1, "expected one row number per line"),
        (few_pairs, MIGRATE, 1, "5 pairs, but at least 10 are needed"),
        (sparse_new, ("old.npy", "new.npz", *MIGRATE[2:]), 1, "new.npz: expected dense rows"),
        (nan_in_old, MIGRATE, 1, "Row 2,000 of the stored rows contains NaN"),
        (None, ("old.npy", "new.npy", "-o", "o.txt"), 1, "vectors ending in .npy, .npz,"),
        (None, ("old.npy", "new.npy", "-o", "old.npy"), 1, "an input of the command"),
        (None, (*MIGRATE, "--reg", "-1"), 2, "expected a number of at least 0, got '-1'"),
        (None, ("new.npy", "old.npy", "-o", "o.npy"), 1, "has 3,000 rows and new.npy 400; name"),
        (None, ("old.npy", "new.npy", "-o", "o.npy"), 1, "has 400 rows and old.npy 3,000; name"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_writes_nothing(capsys, spoil, arguments, code, message):
    if spoil:
        spoil()
    found, _, err = run(capsys, *arguments)
    assert found == code
    assert message in err.replace("\n", " ")
    assert not {"migrated.npy", "o.npy", "o.csv"} & set(os.listdir())
