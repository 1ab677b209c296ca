"""`mvcca migrate`, judged by the library's maps on the same rows and by sorting all cosines."""

from __future__ import annotations

import os

import numpy as np
import pytest
from scipy import sparse

from mvcca import AffineMap, Procrustes
from mvcca.cli import main

N = 3000
SAMPLE = np.random.default_rng(5).permutation(N)[:400]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Vectors of two models that see the same 8 dimensions; the new one has embedded a sample."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((N, 8))
    old = shared @ rng.standard_normal((8, 12)) + 0.1 * rng.standard_normal((N, 12)) + 1
    new = shared @ rng.standard_normal((8, 9)) + 0.1 * rng.standard_normal((N, 9)) - 1
    np.save("old.npy", old.astype("f4"))
    np.save("all_new.npy", new.astype("f4"))
    np.save("new.npy", new[SAMPLE].astype("f4"))
    np.save("sample.npy", SAMPLE)
    return tmp_path


def run(capsys, *arguments):
    try:
        code = main(["migrate", *map(str, arguments)])
    except SystemExit as end:
        code = end.code
    out, err = capsys.readouterr()
    return code, out, err


MIGRATE = ("old.npy", "new.npy", "--sample", "sample.npy", "-o", "migrated.npy")


@pytest.mark.parametrize(
    ("options", "estimator"),
    [
        (("--reg", "0.1"), AffineMap(reg=0.1)),
        (("--reg", "0.1", "--n-components", "3"), AffineMap(3, reg=0.1)),
        (("--method", "procrustes"), Procrustes()),
    ],
)
def test_every_row_is_mapped_as_the_library_maps_it(capsys, options, estimator):
    code, out, _ = run(capsys, *MIGRATE, *options, "--block-rows", "700")
    assert code == 0
    old, new = np.load("old.npy").astype(float), np.load("new.npy").astype(float)
    expected = estimator.fit({"old": old[SAMPLE], "new": new}).predict({"old": old})
    migrated = np.load("migrated.npy")
    assert migrated.dtype == np.float32
    np.testing.assert_allclose(migrated, expected, rtol=0, atol=1e-5)
    assert "migrated.npy: 3,000 rows, 9 features" in out


def test_without_a_sample_the_first_rows_belong_together(capsys):
    np.save("first.npy", np.load("all_new.npy")[:300])
    assert run(capsys, "old.npy", "first.npy", "-o", "migrated.npy", "--reg", "0.1")[0] == 0
    old, new = np.load("old.npy"), np.load("first.npy")
    expected = AffineMap(reg=0.1).fit({"old": old[:300], "new": new}).predict({"old": old})
    np.testing.assert_allclose(np.load("migrated.npy"), expected, rtol=0, atol=1e-5)


def test_the_printed_figures_are_those_of_all_cosines_of_held_out_pairs(capsys):
    code, out, _ = run(capsys, *MIGRATE, "--reg", "0.1", "--test-size", "100", "--seed", "3")
    assert code == 0
    old, new = np.load("old.npy")[SAMPLE].astype(float), np.load("new.npy").astype(float)
    held_out = np.sort(np.random.default_rng(3).permutation(400)[:100])
    rest = np.setdiff1d(np.arange(400), held_out)
    model = AffineMap(reg=0.1).fit({"old": old[rest], "new": new[rest]})
    migrated, new = model.predict({"old": old[held_out]}), new[held_out]
    unit = [X / np.linalg.norm(X, axis=1, keepdims=True) for X in (new, migrated)]
    found, exact = (np.argsort(-unit[0] @ X.T, axis=1)[:, :10] for X in unit[::-1])
    own = np.mean(found[:, 0] == np.arange(100))
    kept = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(found, exact, strict=True)])
    assert "affine, reg=0.1: fitted to 300 pairs, measured on 100 held-out pairs" in out
    assert f"find their own migrated row first: {own:.3f}" in out
    assert f"still among the 10 nearest: {kept:.3f}" in out


def test_the_ridge_is_chosen_without_the_held_out_pairs(capsys):
    new = np.load("new.npy")
    held_out = np.sort(np.random.default_rng(0).permutation(400)[:80])
    chosen = run(capsys, *MIGRATE, "--reg", "1e-3", "1", "100")[1].splitlines()[0]
    new[held_out] = np.random.default_rng(1).permutation(new[held_out])
    np.save("new.npy", new)
    again = run(capsys, *MIGRATE, "--reg", "1e-3", "1", "100")[1].splitlines()[0]
    assert chosen == again
    assert "reg=100" not in chosen


def test_vectors_can_be_scaled_to_length_one(capsys):
    assert run(capsys, *MIGRATE, "--normalize")[0] == 0
    np.testing.assert_allclose(np.linalg.norm(np.load("migrated.npy"), axis=1), 1, rtol=1e-5)


def rows_of(*numbers):
    return lambda: np.save("sample.npy", np.array([*numbers, *range(100, 500 - len(numbers))]))


def sparse_new():
    sparse.save_npz("new.npz", sparse.csr_array(np.load("new.npy")))


def nan_in_old():
    old = np.load("old.npy")
    old[2000, 3] = np.nan
    np.save("old.npy", old)
    np.save("sample.npy", np.arange(400))


@pytest.mark.parametrize(
    ("spoil", "arguments", "code", "message"),
    [
        (rows_of(3, 3), MIGRATE, 1, "sample.npy: a row number is there twice"),
        (rows_of(3000), MIGRATE, 1, "sample.npy: expected row numbers from 0 to 2999"),
        (rows_of(0.5), MIGRATE, 1, "expected row numbers from 0 to 2999"),
        (lambda: np.save("sample.npy", np.arange(30)), MIGRATE, 1, "30 row numbers for the 400"),
        (lambda: np.save("sample.npy", np.eye(20)), MIGRATE, 1, "expected one row number per line"),
        (lambda: np.save("new.npy", np.eye(5)), ("old.npy", "new.npy", "-o", "o.npy"), 1, "5 p"),
        (sparse_new, ("old.npy", "new.npz", "-o", "o.npy"), 1, "new.npz: expected dense rows"),
        (nan_in_old, MIGRATE, 1, "old.npy, rows 0 to 3000: View 'old'"),
        (None, ("old.npy", "new.npy", "-o", "o.csv"), 1, "ending in .npy"),
        (None, ("old.npy", "new.npy", "-o", "old.npy"), 1, "an input of the command"),
        (None, (*MIGRATE, "--test-size", "399"), 1, "test_size 399: too few of 400 pairs"),
        (None, (*MIGRATE, "--reg", "-1"), 2, "expected a number of at least 0, got '-1'"),
        (None, ("new.npy", "old.npy", "-o", "o.npy"), 1, "3000 rows, but new.npy has only"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_writes_nothing(capsys, spoil, arguments, code, message):
    if spoil:
        spoil()
    found, _, err = run(capsys, *arguments)
    assert found == code
    assert message in err.replace("\n", " ")
    assert not {"migrated.npy", "o.npy", "o.csv"} & set(os.listdir())
