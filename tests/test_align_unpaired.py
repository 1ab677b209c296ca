"""Alignment by few pairs or none, judged by planted items, unrelated sets and real encoders."""

from __future__ import annotations

import json
import os

import matplotlib.pyplot as plt
import numpy as np
import pytest

from benchmarks.real import fetch_multi30k_encoders
from mvcca import CCA, RetrievalIndex, Views, evaluate_retrieval, load
from mvcca.cli import main
from mvcca.interop.alignment import align_unpaired
from mvcca.retrieval import mutual_neighbors


def planted(n_rows, noise, seed=0, widths=(30, 35)):
    """Items in clusters of different sizes, in two spaces."""
    rng = np.random.default_rng(seed)
    centres, shares = 2 * rng.standard_normal((25, 12)), rng.dirichlet(np.ones(25))
    items = centres[rng.choice(25, n_rows, p=shares)] + 0.7 * rng.standard_normal((n_rows, 12))
    return [
        items @ np.linalg.qr(rng.standard_normal((width, 12)))[0].T
        + noise * rng.standard_normal((n_rows, width))
        for width in widths
    ]


def recall(model, x, y):
    return evaluate_retrieval({"x": x, "y": y}, estimator=model, measures="r@1").mean()["r@1"]


@pytest.fixture(scope="module")
def halves():
    """12 pairs, 300 rows of other items in each space, and test items."""
    x, y = planted(900, noise=0.35)
    return x[:312], np.concatenate([y[:12], y[312:612]]), (x[612:], y[612:])


@pytest.fixture(scope="module")
def aligned(halves):
    return align_unpaired(*halves[:2], pairs=PAIRS)


PAIRS = np.tile(np.arange(12)[:, None], 2)


@pytest.mark.parametrize("method", ["cca", "procrustes"])
def test_pseudo_pairs_find_more_than_few_known_pairs(halves, aligned, method):
    x, y, test = halves
    alone = CCA(None, reg="cv").fit({"x": x[:12], "y": y[:12]})
    found = aligned if method == "cca" else align_unpaired(x, y, pairs=PAIRS, method=method)
    assert found.used_pseudo_pairs
    assert found.gain > found.gain_error
    assert recall(found.model, *test) > recall(alone, *test) + 0.15
    assert not set(found.pairs[:, 0]) & set(range(12))  # rows of known pairs keep their partner
    assert len(found.pairs) == found.steps[-1].n_pairs - 12


@pytest.mark.slow
def test_many_pairs_need_no_pseudo_pairs():
    x, y = planted(700, noise=0.35)
    pairs = np.tile(np.arange(400)[:, None], 2)
    found = align_unpaired(x[:550], np.concatenate([y[:400], y[550:]]), pairs=pairs)
    assert not found.used_pseudo_pairs
    assert found.gain <= found.gain_error
    expected = CCA(None, reg="cv").fit({"x": x[:400], "y": y[:400]})
    np.testing.assert_allclose(
        found.model.transform({"x": x})["x"], expected.transform({"x": x})["x"]
    )


def test_the_share_of_left_out_pairs_tells_that_of_new_ones(halves, aligned):
    assert aligned.gallery_size >= 300
    first = recall(aligned.model, *halves[2])
    assert abs(aligned.found_first - first) < 3 * aligned.found_first_error


@pytest.mark.parametrize("factor", [1.0, 1000.0])
def test_left_out_pairs_are_searched_as_the_model_searches(factor):
    """The ranking that the fit chose, not one by its training correlations."""
    rng = np.random.default_rng(1)
    items = rng.standard_normal((200, 8)) ** 3  # for which pseudo-pairs do not help
    x, y = (items @ rng.standard_normal((8, p)) + rng.standard_normal((200, p)) for p in (12, 10))
    x[:, 0] *= factor
    found = align_unpaired(x, y, pairs=np.tile(np.arange(60)[:, None], 2))
    assert not found.used_pseudo_pairs
    shares = []
    for fold in np.array_split(np.random.default_rng(0).permutation(60), 5):
        kept = np.setdiff1d(np.arange(60), fold)
        model = CCA(None, reg="cv").fit({"x": x[kept], "y": y[kept]})
        rows = np.concatenate([fold, np.arange(60, 200)])
        gallery = {"x": x[rows], "y": y[rows]}
        for query, target in (("x", "y"), ("y", "x")):
            index = RetrievalIndex(model).add({target: gallery[target]})
            own = {query: gallery[query][: len(fold)]}
            hits = index.search(own, target=target, k=1)[1][:, 0]
            shares.append((hits == np.arange(len(fold))).mean())
    assert abs(found.found_first - np.mean(shares)) < 0.08


@pytest.mark.slow
def test_wrong_pairs_are_said_to_have_failed():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((400, 20)), rng.standard_normal((400, 20))
    with pytest.warns(UserWarning, match="The alignment failed: of 30 known pairs"):
        found = align_unpaired(x, y, pairs=np.tile(np.arange(30)[:, None], 2))
    assert found.has_failed


@pytest.mark.slow
def test_the_same_items_are_found_without_pairs():
    x, y = planted(600, noise=0.1)
    order = np.random.default_rng(0).permutation(600)
    found = align_unpaired(x, y[order])
    assert not found.has_failed
    assert found.retraced > 0.9
    assert recall(found.model, x, y) > 0.9
    assert (order[found.pairs[:, 1]] == found.pairs[:, 0]).mean() > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("kind", [pytest.param("normal", marks=pytest.mark.long), "clusters"])
def test_unrelated_sets_are_said_to_have_failed(kind):
    x = planted(600, noise=0.1)[0]
    y = planted(600, noise=0.1, seed=7)[1]
    if kind == "normal":
        y = np.random.default_rng(0).standard_normal(y.shape)
    with pytest.warns(UserWarning, match="The alignment failed: started again"):
        assert align_unpaired(x, y).has_failed


def test_an_alignment_is_a_model_for_an_index_a_table_and_a_plot(halves, aligned):
    x, y = halves[2]
    hits = RetrievalIndex(aligned.model).add({"y": y}).search({"x": x}, target="y", k=1)[1][:, 0]
    assert (hits == np.arange(len(hits))).mean() > 0.5
    frame = aligned.to_frame()
    assert list(frame.columns) == ["step", "stage", "n_pairs"]
    assert list(frame["stage"].unique()) == ["known pairs", "rotation", "cca"]
    ax = aligned.plot()
    assert [line.get_label() for line in ax.lines] == ["known pairs", "rotation", "cca"]
    plt.close(ax.figure)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pairs": [[0, 1, 2]]}, "row numbers of x and y, integers of shape"),
        ({"pairs": [("a", "b")]}, "<U1 of shape .*not all whole numbers"),
        ({"pairs": PAIRS > 3}, "bool of shape .*not all whole numbers"),
        ({"pairs": np.where(PAIRS > 3, np.nan, PAIRS)}, "not all whole numbers"),
        ({"pairs": [[0, 999]]}, "row numbers of y from 0 to 311"),
        ({"pairs": [(0, j) for j in range(12)]}, "The pairs form 1 groups that share rows"),
        ({"method": "pls"}, "'cca' or 'procrustes', got 'pls'"),
        ({"pseudo_pairs": "never"}, "'auto' or 'always', got 'never'"),
        ({"reg": 0}, "positive number, got 0"),
        ({"pairs": None}, "at least 500 rows of x .* got 312"),
        ({"x": np.full((9, 2), np.nan)}, "'x' contains NaN"),
        ({"x": np.ones(9)}, "Expected x to be a matrix"),
    ],
)
def test_errors_say_what_was_expected(halves, changes, message):
    arguments = {"x": halves[0], "y": halves[1], "pairs": PAIRS} | changes
    with pytest.raises(ValueError, match=message):
        align_unpaired(arguments.pop("x"), arguments.pop("y"), **arguments)


def test_mutual_neighbors_correct_for_hubs():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((60, 5)), rng.standard_normal((70, 5))
    pairs, _ = mutual_neighbors(x, y, 1, hubness="csls")
    x, y = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (x, y))
    cosines = x @ y.T
    near_x = np.sort(cosines, axis=1)[:, -10:].mean(axis=1)
    near_y = np.sort(cosines, axis=0)[-10:].mean(axis=0)
    csls = 2 * cosines - near_x[:, None] - near_y
    expected = [(i, j) for i, j in enumerate(csls.argmax(axis=1)) if csls[:, j].argmax() == i]
    assert [tuple(pair) for pair in pairs.tolist()] == expected


# ---- command line -------------------------------------------------------------------------------


def run(capsys, *arguments):
    try:
        code = main(["align", *map(str, arguments)])
    except SystemExit as end:
        code = end.code
    return code, *capsys.readouterr()


def test_the_command_writes_a_model(capsys, halves, aligned, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x, y, test = halves
    np.save("x.npy", x)
    np.save("y.npy", y)
    np.savetxt("pairs.csv", PAIRS, "%d", ",")
    code, out, err = run(capsys, "x.npy", "y.npy", "--pairs", "pairs.csv", "-o", "m.mvcca")
    assert code == 0, err
    assert f"pseudo-pairs: {len(aligned.pairs):,}" in out
    assert f"first among {aligned.gallery_size:,} rows: {aligned.found_first:.3f}" in out
    found = load("m.mvcca").transform({"x": test[0]})["x"]
    np.testing.assert_allclose(found, aligned.model.transform({"x": test[0]})["x"])


@pytest.mark.slow
def test_the_command_writes_no_failed_model_without_force(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name in "xy":
        np.save(f"{name}.npy", rng.standard_normal((300, 20)))
    np.savetxt("pairs.csv", np.tile(np.arange(30)[:, None], 2), "%d", ",")
    arguments = ("x.npy", "y.npy", "--pairs", "pairs.csv", "-o", "m.mvcca")
    code, _, err = run(capsys, *arguments)
    assert code == 1
    assert "m.mvcca: not written, since the alignment failed; --force writes it" in err
    assert not os.path.exists("m.mvcca")
    code, out, _ = run(capsys, *arguments, "--force", "--json")
    assert code == 0
    assert json.loads(out)["failed"]
    np.savetxt("pairs.csv", np.arange(30), "%d")
    assert "pairs.csv: expected two columns" in run(capsys, *arguments)[2]


# ---- real encoders ------------------------------------------------------------------------------


@pytest.mark.needs_data("multi30k_encoders.npz")
@pytest.mark.parametrize(
    ("n_rows", "n_pairs", "expected", "uses"),
    [
        (800, 20, 0.37, True),
        pytest.param(8000, 20, 0.80, True, marks=pytest.mark.long),
        pytest.param(8000, 1000, 0.956, False, marks=pytest.mark.long),
    ],
)
def test_pseudo_pairs_of_two_encoders(n_rows, n_pairs, expected, uses):
    data = fetch_multi30k_encoders()
    names = ("en_minilm", "de_e5")
    order = np.random.default_rng(0).permutation(8000)[:n_rows]
    known, rest = order[:n_pairs], order[n_pairs:]
    train, test = (
        [np.asarray(data[part].views[own]) for own in names] for part in ("train", "test")
    )
    halves = np.array_split(rest, 2)
    x, y = (own[np.concatenate([known, half])] for own, half in zip(train, halves, strict=True))
    found = align_unpaired(x, y, pairs=np.tile(np.arange(n_pairs)[:, None], 2))
    assert found.used_pseudo_pairs == uses
    assert recall(found.model, *test) > expected - 0.03  # steps add up rounding
    assert isinstance(found.model, CCA)
    assert len(Views.unpaired({"x": x, "y": y})) == len(x) + len(y)


# ---- dictionaries: repeated pairs, and rows in several -------------------------------------------


def dictionary(n=240):
    """Two spaces; words 0 to 59 of x have two translations, one of them with more noise."""
    rng = np.random.default_rng(3)
    meaning = rng.standard_normal((n, 10)) ** 3
    more = meaning[:60] + 0.8 * rng.standard_normal((60, 10))
    x = meaning @ rng.standard_normal((10, 16)) + 0.2 * rng.standard_normal((n, 16))
    y = np.concatenate([meaning, more]) @ rng.standard_normal((10, 14))
    y += 0.2 * rng.standard_normal(y.shape)
    pairs = np.concatenate([np.tile(np.arange(n)[:, None], 2), [(i, n + i) for i in range(60)]])
    return x, y, pairs


@pytest.fixture(scope="module")
def once():
    x, y, pairs = dictionary()
    return align_unpaired(x, y, pairs=pairs)


def test_repeated_pairs_count_once(once):
    x, y, pairs = dictionary()
    twice = align_unpaired(x, y, pairs=np.tile(pairs, (2, 1)))
    assert once.as_dict() == twice.as_dict()
    np.testing.assert_array_equal(once.model.weights_["x"], twice.model.weights_["x"])


@pytest.mark.parametrize("swapped", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_pairs_of_a_row_with_several_partners_share_its_weight(once, swapped):
    x, y, pairs = dictionary()
    if swapped:
        x, y, pairs = y, x, pairs[:, ::-1]
    found = align_unpaired(x, y, pairs=pairs) if swapped else once
    assert not found.used_pseudo_pairs  # no row is free
    weights = np.ones(len(pairs))
    weights[:60] = weights[240:] = 0.5
    rows = {"x": x[pairs[:, 0]], "y": y[pairs[:, 1]]}
    expected = CCA(None, reg="cv").fit(rows, sample_weight=weights)
    np.testing.assert_array_equal(found.model.weights_["x"], expected.weights_["x"])
    assert found.found_first > 0.8


@pytest.mark.slow
def test_any_partner_is_right_and_pairs_that_share_a_row_are_left_out_together():
    x, y, pairs = dictionary()
    y[240:] = y[:60] + 1e-3 * np.random.default_rng(0).standard_normal((60, 14))
    found = align_unpaired(x, y, pairs=pairs)
    one = align_unpaired(x, y[:240], pairs=pairs[:240])
    assert found.found_first > one.found_first - 0.05  # the twin of a translation is no error
    from mvcca.interop.alignment.fit import _folds

    folds = _folds(pairs, np.random.default_rng(0))
    assert sorted(np.concatenate(folds)) == list(range(len(pairs)))
    for fold in folds:
        assert not {*pairs[fold, 0]} & {*np.delete(pairs, fold, axis=0)[:, 0]}
