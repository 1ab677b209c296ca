"""Maps from an old model to a new one, judged by the library's estimators, refits and real data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from real import fetch_multi30k_encoders

from mvcca import AffineMap, Procrustes
from mvcca.interop.migration import fit_migration, gallery
from mvcca.interop.migration.maps import ridges_of
from mvcca.interop.migration.measured import LeftOut
from mvcca.statistics import Moments
from mvcca.views import Views

of_little_use = pytest.mark.filterwarnings("ignore:Only 0")


def old_and_new(n_rows=300, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((n_rows, 6))
    old = shared @ rng.standard_normal((6, 9)) + noise * rng.standard_normal((n_rows, 9)) + 5
    return old, shared @ rng.standard_normal((6, 7)) + noise * rng.standard_normal((n_rows, 7)) - 2


def unit(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


# ---- the map ------------------------------------------------------------------------------------


@of_little_use
@pytest.mark.parametrize("rank", [None, 2, 7])
@pytest.mark.parametrize("reg", [0.0, 1e-2, 3.0])
def test_a_migration_is_the_affine_map_of_all_pairs(reg, rank):
    old, new = old_and_new()
    expected = AffineMap(rank, reg=reg).fit({"old": old, "new": new}).predict({"old": old})
    found = fit_migration(old, new, reg=reg, n_components=rank).predict(old)
    np.testing.assert_allclose(found, expected, atol=1e-10)
    np.testing.assert_allclose(found.mean(axis=0), new.mean(axis=0), atol=1e-10)


@of_little_use
@pytest.mark.parametrize("rank", [None, 3])
def test_a_rotation_is_that_of_procrustes(rank):
    old, new = old_and_new()
    expected = Procrustes(rank).fit({"old": old, "new": new}).predict({"old": old})
    found = fit_migration(old, new, method="procrustes", n_components=rank)
    assert found.reg is None
    np.testing.assert_allclose(found.predict(old), expected, atol=1e-10)


def test_constant_and_repeated_features_of_the_old_model_are_no_obstacle():
    old, new = old_and_new()
    wide = np.column_stack([old, old[:, :2], np.ones(len(old))])
    expected = fit_migration(old, new, reg=0.0)
    found = fit_migration(wide, new, reg=0.0)
    np.testing.assert_allclose(found.predict(wide), expected.predict(old), atol=1e-9)
    assert found.found_first == expected.found_first


def test_rows_are_scaled_to_length_one_where_those_of_the_new_model_are():
    old, new = old_and_new()
    plain = fit_migration(old, new, reg=0.1)
    assert not plain.normalize
    scaled = fit_migration(old, new, reg=0.1, normalize=True).predict(old)
    np.testing.assert_allclose(scaled, unit(plain.predict(old)), rtol=1e-12)
    rounded = unit(new).astype(np.float16)
    of_length_one = fit_migration(old, rounded).predict(old)
    np.testing.assert_allclose(np.linalg.norm(of_length_one, axis=1), 1, rtol=1e-12)
    assert not fit_migration(old, rounded, normalize=False).normalize


def test_a_migration_of_what_cannot_be_is_refused():
    old, new = old_and_new()
    with pytest.raises(ValueError, match="9 pairs, but at least 10 are needed"):
        fit_migration(old[:9], new[:9])
    with pytest.raises(ValueError, match="'affine' or 'procrustes', got 'linear'"):
        fit_migration(old, new, method="linear")
    with pytest.raises(ValueError, match=r"the 9 features of the old model, got .* \(300, 7\)"):
        fit_migration(old, new, stored=new)
    for wrong in ({"reg": -1.0}, {"reg": [0.1, np.nan]}, {"reg": ()}, {"n_components": 0}):
        with pytest.raises(ValueError, match=f"Expected {next(iter(wrong))} to be"):
            fit_migration(old, new, **wrong)
    spoilt = old.copy()
    spoilt[5, 2] = np.nan
    with pytest.raises(ValueError, match="'old' contains NaN"):
        fit_migration(spoilt, new)
    with pytest.raises(ValueError, match="Row 5 of the stored rows contains NaN"):
        fit_migration(old[10:], new[10:], stored=spoilt)
    with pytest.raises(ValueError, match="'old' contains NaN"):
        fit_migration(old, new).predict(spoilt)


def test_rows_are_not_paired_by_position_against_their_labels():
    old, new = old_and_new()
    frames = (pd.DataFrame(X, index=[f"item {i}" for i in range(300)]) for X in (old, new))
    old, new = frames
    with pytest.raises(
        ValueError, match="paired by position, but old and new have the same labels"
    ):
        fit_migration(old, new.iloc[::-1])
    assert fit_migration(old, new).n_pairs == 300


# ---- leave-one-out in the gallery ---------------------------------------------------------------


def refitted(old, new, ridge):
    """Ridge regression with an intercept, by least squares of rows and ridge stacked."""
    x, y = old - old.mean(axis=0), new - new.mean(axis=0)
    stacked = np.vstack([x, np.sqrt(ridge) * np.eye(x.shape[1])])
    targets = np.vstack([y, np.zeros((x.shape[1], y.shape[1]))])
    B = np.linalg.lstsq(stacked, targets, rcond=None)[0]
    return lambda rows: (rows - old.mean(axis=0)) @ B + new.mean(axis=0)


def left_out(old, new, reg):
    """The regression without each pair, whose ridge is that of all pairs."""
    centred = old - old.mean(axis=0)
    ridge = reg * np.sum(centred**2) / old.shape[1]
    for i in range(len(old)):
        rest = np.delete(np.arange(len(old)), i)
        yield refitted(old[rest], new[rest], ridge)


@pytest.mark.parametrize(
    ("n_pairs", "reg"),  # more and fewer pairs than features
    [(40, 0.0), (40, 1e-3), (40, 0.1), (40, 10.0), (8, 1e-3), (8, 0.1)],
)
def test_cosines_of_left_out_pairs_are_those_of_refits_without_them(n_pairs, reg):
    rows, new = old_and_new(100)
    old, new = rows[:n_pairs], new[:n_pairs]
    ridges = ridges_of([Moments.of(Views({"old": old, "new": new}))])
    cosines = LeftOut(ridges, old, new).cosines(reg, rows)(np.arange(n_pairs))
    expected = [
        unit(new[i : i + 1]) @ unit(predict(rows)).T
        for i, predict in enumerate(left_out(old, new, reg))
    ]
    np.testing.assert_allclose(cosines, np.vstack(expected), rtol=0, atol=1e-11)


@of_little_use
@pytest.mark.parametrize("reg", [1e-3, 0.1, 1.0])
def test_shares_found_are_those_of_refits_in_the_whole_gallery(reg):
    rows, new = old_and_new(200, noise=0.1)
    old, new = rows[:50], new[:50]
    found = fit_migration(old, new, stored=rows, reg=reg)
    ranks = []
    for i, predict in enumerate(left_out(old, new, reg)):
        scores = unit(predict(rows)) @ unit(new[i : i + 1])[0]
        ranks.append(np.sum(scores > scores[i]))
    assert found.found_first == np.mean(np.array(ranks) == 0)
    assert found.found_in_ten == np.mean(np.array(ranks) < 10)
    assert (found.gallery_size, found.n_stored, found.n_pairs, found.n_queries) == (
        200,
        200,
        50,
        50,
    )
    share = (found.found_first * 50 + 2) / 54
    assert found.found_first_error == pytest.approx(np.sqrt(share * (1 - share) / 54))


def test_the_ridge_has_the_smallest_error_of_refits_without_each_pair():
    old, new = old_and_new(40, noise=1.0)
    regs = [1e-3, 1e-2, 0.1, 1.0, 10.0]
    errors = [
        sum(
            np.sum((new[i] - predict(old[i])) ** 2)
            for i, predict in enumerate(left_out(old, new, reg))
        )
        for reg in regs
    ]
    assert 0 < np.argmin(errors) < 4
    with pytest.warns(UserWarning, match="keeps too little"):
        assert fit_migration(old, new, reg=regs).reg == regs[np.argmin(errors)]


@of_little_use
@pytest.mark.parametrize(
    ("options", "estimator"),
    [
        ({"method": "procrustes"}, Procrustes()),
        ({"reg": 0.1, "n_components": 3}, AffineMap(3, reg=0.1)),
    ],
)
def test_other_maps_are_measured_by_folds_in_the_whole_gallery(options, estimator):
    rows, new = old_and_new(200, noise=0.1)
    old, new = rows[:50], new[:50]
    found = fit_migration(old, new, stored=rows, **options)
    is_first = []
    for fold in np.array_split(np.random.default_rng(0).permutation(50), 5):
        rest = np.setdiff1d(np.arange(50), fold)
        model = estimator.fit({"old": old[rest], "new": new[rest]})
        mapped = unit(model.predict({"old": rows}, target="new"))
        is_first.extend(np.argmax(unit(new[fold]) @ mapped.T, axis=1) == fold)
    assert found.found_first == np.mean(is_first)
    assert found.gallery_size == 200


def test_a_map_that_interpolates_its_pairs_is_not_taken_for_a_good_one():
    rng = np.random.default_rng(0)
    old, new = rng.standard_normal((40, 60)), rng.standard_normal((40, 30))
    with pytest.warns(
        UserWarning, match="of the queries find their own migrated row first among 40"
    ):
        found = fit_migration(old, new, reg=0.0)
    np.testing.assert_allclose(found.predict(old), new, atol=1e-9)
    assert found.found_first < 0.2


def test_pairs_among_the_stored_rows_count_once():
    rows, new = old_and_new(200, noise=0.1)
    old, new = rows[:50], new[:50]
    among, apart, repeated = (
        fit_migration(old, new, stored=stored, reg=0.1)
        for stored in (rows, rows[50:], np.vstack([rows, old]))
    )
    assert among.found_first == apart.found_first == repeated.found_first > 0.5
    assert among.gallery_size == apart.gallery_size == 200


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_map_to_a_single_point_finds_rows_by_chance_only(dtype):
    old, new = (X.astype(dtype) for X in old_and_new(50))
    with pytest.warns(UserWarning, match="Only 0.020"):
        found = fit_migration(old, new, reg=1e300)
    assert found.found_first == pytest.approx(1 / 50)
    assert found.found_in_ten == pytest.approx(10 / 50)


def test_many_stored_rows_are_represented_by_a_draw(monkeypatch):
    monkeypatch.setattr(gallery, "MOST_ROWS", 120)
    rows, new = old_and_new(1000, noise=0.1)
    found = fit_migration(rows[:50], new[:50], stored=rows, reg=0.1)
    assert found.n_stored == 1000
    assert 110 < found.gallery_size <= 120
    assert found.found_first > 0.5


def test_neighbors_are_those_of_a_fifth_held_out():
    old, new = old_and_new(400)
    found = fit_migration(old, new, reg=0.1)
    fold = np.sort(np.array_split(np.random.default_rng(0).permutation(400), 5)[0])
    rest = np.setdiff1d(np.arange(400), fold)
    model = AffineMap(reg=0.1).fit({"old": old[rest], "new": new[rest]})
    mapped = model.predict({"old": old[fold]}, target="new")
    nearest = [
        np.argsort(-unit(queries) @ unit(rows).T, axis=1)[:, :8]
        for queries, rows in ((new[fold], new[fold]), (new[fold], mapped), (old[fold], old[fold]))
    ]
    kept, before = (
        np.mean([len(set(a) & set(b)) / 8 for a, b in zip(nearest[0], other, strict=True)])
        for other in nearest[1:]
    )
    assert found.nearest_share == 8 / 80
    assert found.neighbors_kept == pytest.approx(kept)
    assert found.neighbors_kept_before == pytest.approx(before)


@of_little_use
def test_scales_and_offsets_of_the_old_vectors_change_no_figure():
    old, new = old_and_new(100, noise=0.1)
    expected = fit_migration(old, new, reg=0.1)
    for scale, offset in ((1e-12, 0), (1e15, 0), (1, 1e6)):
        found = fit_migration(scale * (old + offset), scale * new, reg=0.1)
        assert found.found_first == expected.found_first
        assert found.neighbors_kept == pytest.approx(expected.neighbors_kept)


@pytest.mark.needs_data("multi30k_encoders.npz")
@pytest.mark.parametrize("n_pairs", [500, 1000])
@pytest.mark.parametrize(
    ("before", "after"), [("en_wordllama", "en_minilm"), ("en_minilm", "de_e5")]
)
def test_the_share_found_is_that_of_new_queries_in_the_whole_corpus(before, after, n_pairs):
    data = fetch_multi30k_encoders()
    parts = [data[part].views for part in ("train", "valid", "test")]
    stored, new = (np.concatenate([part[name] for part in parts]) for name in (before, after))
    rows = np.random.default_rng(0).permutation(10_000)[:n_pairs]
    found = fit_migration(stored[rows], new[rows], stored=stored)
    queries = np.arange(len(stored) - 1000, len(stored))
    mapped = found.predict(stored)
    assert found.normalize
    true = np.mean(np.argmax(new[queries] @ mapped.T, axis=1) == queries)
    assert found.gallery_size == 12_014
    assert abs(found.found_first - true) < 2 * found.found_first_error
