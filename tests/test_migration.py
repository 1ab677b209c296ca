"""Maps from an old model to a new one, judged by the library's estimators, refits and real data."""

from __future__ import annotations

import warnings
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from benchmarks.real import fetch_multi30k_encoders
from mvcca import CCA, AffineMap, Procrustes
from mvcca.interop import affine_map, to_linear
from mvcca.interop.alignment import align_unpaired
from mvcca.interop.migration import Migration, fit_migration, gallery
from mvcca.interop.migration.maps import Canonical, ridges_of
from mvcca.interop.migration.measured import LeftOut, left_out_queries
from mvcca.persistence import ModelFileError
from mvcca.statistics import Moments
from mvcca.views import Views

of_little_use = pytest.mark.filterwarnings("ignore:Only 0", "ignore:Of the nearest")


def old_and_new(n_rows=300, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((n_rows, 6))
    old = shared @ rng.standard_normal((6, 9)) + noise * rng.standard_normal((n_rows, 9)) + 5
    return old, shared @ rng.standard_normal((6, 7)) + noise * rng.standard_normal((n_rows, 7)) - 2


def unit(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


# ---- the map ------------------------------------------------------------------------------------


@of_little_use
@pytest.mark.parametrize("reg", [0.0, 1e-2, 3.0])
def test_a_migration_is_the_affine_map_of_all_pairs(reg):
    old, new = old_and_new()
    expected = AffineMap(reg=reg).fit({"old": old, "new": new}).predict({"old": old})
    found = fit_migration(old, new, reg=reg).map_items(old)
    np.testing.assert_allclose(found, expected, atol=1e-10)
    np.testing.assert_allclose(found.mean(axis=0), new.mean(axis=0), atol=1e-10)


@of_little_use
def test_a_rotation_is_that_of_procrustes():
    old, new = old_and_new()
    expected = Procrustes().fit({"old": old, "new": new}).predict({"old": old})
    found = fit_migration(old, new, method="procrustes")
    assert found.reg is None
    np.testing.assert_allclose(found.map_items(old), expected, atol=1e-10)


def test_constant_and_repeated_features_of_the_old_model_are_no_obstacle():
    old, new = old_and_new()
    wide = np.column_stack([old, old[:, :2], np.ones(len(old))])
    expected = fit_migration(old, new, reg=0.0)
    found = fit_migration(wide, new, reg=0.0)
    np.testing.assert_allclose(found.map_items(wide), expected.map_items(old), atol=1e-9)
    assert found.found_first == expected.found_first


def test_rows_are_scaled_to_length_one_where_those_of_the_new_model_are():
    old, new = old_and_new()
    plain = fit_migration(old, new, reg=0.1)
    assert not plain.normalize
    scaled = fit_migration(old, new, reg=0.1, normalize=True).map_items(old)
    np.testing.assert_allclose(scaled, unit(plain.map_items(old)), rtol=1e-12)
    rounded = unit(new).astype(np.float16)
    of_length_one = fit_migration(old, rounded).map_items(old)
    np.testing.assert_allclose(np.linalg.norm(of_length_one, axis=1), 1, rtol=1e-12)
    assert not fit_migration(old, rounded, normalize=False).normalize


def test_a_migration_of_what_cannot_be_is_refused():
    old, new = old_and_new()
    with pytest.raises(ValueError, match="9 pairs, but at least 10 are needed"):
        fit_migration(old[:9], new[:9])
    with pytest.raises(ValueError, match=r"one of .*'local'.* for direction='items', got 'linear'"):
        fit_migration(old, new, method="linear")
    with pytest.raises(ValueError, match=r"the 9 features of the old model, got .* \(300, 7\)"):
        fit_migration(old, new, stored=new)
    for wrong in ({"reg": -1.0}, {"reg": [0.1, np.nan]}, {"reg": ()}, {"reg": "cv"}):
        with pytest.raises(ValueError, match="Expected reg to be"):
            fit_migration(old, new, **wrong)
    with pytest.raises(ValueError, match="one row per object, got csr_array"):
        fit_migration(csr_array(old), new)
    for factor in (1e200, 1e-200):
        for direction in ("items", "queries", "both"):
            with pytest.raises(ValueError, match=r"iew 'old' (overflows|has no variance)"):
                fit_migration(factor * old, new, direction=direction)
    for rows in (np.ones_like(old), np.tile(old[0], (len(old), 1))):
        with pytest.raises(ValueError, match="view 'old' has no variance"):
            fit_migration(rows, new, method="procrustes")
    spoilt = old.copy()
    spoilt[5, 2] = np.nan
    with pytest.raises(ValueError, match="'old' contains NaN"):
        fit_migration(spoilt, new)
    with pytest.raises(ValueError, match="Row 5 of the stored rows contains NaN"):
        fit_migration(old[10:], new[10:], stored=spoilt)
    with pytest.raises(ValueError, match="'old' contains NaN"):
        fit_migration(old, new).map_items(spoilt)


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
    ridges = ridges_of(Moments.of(Views({"old": old, "new": new})))
    cosines = LeftOut(ridges, old, new).cosines(reg, rows)(slice(None), slice(None)).T
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
    with pytest.warns(UserWarning, match="of the queries find|Of the nearest"):
        assert fit_migration(old, new, reg=regs).reg == regs[np.argmin(errors)]


@of_little_use
def test_rotations_are_measured_by_folds_in_the_whole_gallery():
    rows, new = old_and_new(200, noise=0.1)
    old, new = rows[:50], new[:50]
    found = fit_migration(old, new, stored=rows, method="procrustes")
    rng = np.random.default_rng(0)
    rng.permutation(50)  # of the queries
    is_first = []
    for fold in np.array_split(rng.permutation(50), 5):
        rest = np.setdiff1d(np.arange(50), fold)
        model = Procrustes().fit({"old": old[rest], "new": new[rest]})
        mapped = unit(model.predict({"old": rows}, target="new"))
        is_first.extend(np.argmax(unit(new[fold]) @ mapped.T, axis=1) == fold)
    assert found.found_first == np.mean(is_first)
    assert found.gallery_size == 200


def test_a_map_that_interpolates_its_pairs_is_not_taken_for_a_good_one():
    rng = np.random.default_rng(0)
    old, new = rng.standard_normal((40, 60)), rng.standard_normal((40, 30))
    with pytest.warns(UserWarning, match="of the queries find their own row first among 40"):
        found = fit_migration(old, new, reg=0.0)
    np.testing.assert_allclose(found.map_items(old), new, atol=1e-9)
    assert found.found_first < 0.2


@of_little_use
def test_pairs_among_the_stored_rows_count_once():
    rows, new = old_and_new(200, noise=0.1)
    old, new = rows[:50], new[:50]
    among, apart, repeated = (
        fit_migration(old, new, stored=stored, reg=0.1)
        for stored in (rows, rows[50:], np.vstack([rows, old]))
    )
    assert among.found_first == apart.found_first == repeated.found_first > 0.5
    assert among.gallery_size == apart.gallery_size == repeated.gallery_size == 200
    assert repeated.n_stored == 250


@pytest.mark.parametrize("direction", ["items", "queries", "both"])
@pytest.mark.parametrize("value", [0.0, 0.1, 1.0])
def test_rows_that_are_all_equal_are_refused(direction, value):
    old, new = old_and_new(50)
    for wrong in ((np.full_like(old, value), new), (old, np.full_like(new, value))):
        with pytest.raises(ValueError, match=r"view '(old|new)' has no variance"):
            fit_migration(*wrong, direction=direction)
        with pytest.raises(ValueError, match=r"view '(x|y)' has no variance"):
            align_unpaired(*wrong, pairs=[(i, i) for i in range(20)])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("direction", ["items", "queries", "both"])
@pytest.mark.parametrize("n_different", [2, 5, 10, 40])
def test_equal_rows_make_no_map_look_better(direction, n_different):
    rng = np.random.default_rng(0)
    same = np.arange(200) % n_different
    old, new = (rng.standard_normal((n_different, d))[same] for d in (5, 6))
    if n_different < 10:
        with pytest.raises(ValueError, match=f"{n_different} different pairs, but at least 10"):
            fit_migration(old, new, direction=direction)
    else:
        repeated = fit_migration(old, new, direction=direction)
        once = fit_migration(old[:n_different], new[:n_different], direction=direction)
        assert repeated.as_dict() == once.as_dict()
    found = fit_migration(old, rng.standard_normal((200, 6)), direction=direction)
    assert found.gallery_size == n_different
    assert f"among {n_different} different rows of 200: " in str(found)
    assert found.found_first == pytest.approx(1 / n_different, abs=0.12)


def test_pairs_that_repeat_others_are_left_out_and_said():
    old, new = old_and_new(60, noise=0.1)
    with pytest.warns(UserWarning, match="60 of 120 pairs repeat others and were left out"):
        found = fit_migration(np.vstack([old, old]), np.vstack([new, new]), reg=0.1)
    assert found.n_pairs == 60


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_map_to_a_single_point_finds_rows_by_chance_only(dtype):
    old, new = (X.astype(dtype) for X in old_and_new(50))
    with pytest.warns(UserWarning, match="Only 0.020"):
        found = fit_migration(old, new, reg=1e300)
    assert found.found_first == pytest.approx(1 / 50)
    assert found.found_in_ten == pytest.approx(10 / 50)


@of_little_use
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
    rng = np.random.default_rng(0)
    rng.permutation(400)  # of the queries
    fold = np.sort(np.array_split(rng.permutation(400), 5)[0])
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


# ---- queries, and both into one space -----------------------------------------------------------


@of_little_use
def test_queries_are_mapped_by_the_bilinear_form_of_cca():
    old, new = old_and_new()
    model = CCA(None, reg=0.3).fit(old, new)
    A, B = model.weights_.values()
    rho = model.eigenvalues_ - 1
    expected = (new - new.mean(axis=0)) @ B * rho @ A.T
    found = fit_migration(old, new, direction="queries", reg=0.3)
    np.testing.assert_allclose(unit(found.map_queries(new)), unit(expected), atol=1e-8)
    assert found.map_items(old) is old


@of_little_use
def test_a_shared_space_is_that_of_canonical_variates_times_the_root_of_their_correlation():
    old, new = old_and_new()
    model = CCA(None, reg=0.3).fit(old, new)
    rho = model.eigenvalues_ - 1
    a, b = (unit(rows * np.sqrt(rho)) for rows in model.transform(old, new))
    found = fit_migration(old, new, direction="both", reg=0.3)
    cosines = found.map_items(old) @ found.map_queries(new).T
    np.testing.assert_allclose(cosines, a @ b.T, atol=1e-8)


@pytest.mark.parametrize("reg", [0.01, 0.3, 3.0])
@pytest.mark.parametrize("n_pairs", [8, 40])
def test_left_out_queries_are_those_of_refits_without_them(n_pairs, reg):
    old, new = old_and_new(n_pairs)
    moments = Moments.of(Views({"old": old, "new": new}))
    found = left_out_queries(Canonical(moments), reg, old, new)
    centred = [rows - rows.mean(axis=0) for rows in (old, new)]
    ridges = [reg * np.sum(rows**2) / rows.shape[1] * np.eye(rows.shape[1]) for rows in centred]
    for i in range(n_pairs):
        rest = np.delete(np.arange(n_pairs), i)
        x, y = (rows[rest] - rows[rest].mean(axis=0) for rows in (old, new))
        query = np.linalg.solve(y.T @ y + ridges[1], new[i] - new[rest].mean(axis=0))
        query = np.linalg.solve(x.T @ x + ridges[0], x.T @ (y @ query))
        np.testing.assert_allclose(found[i], query / np.linalg.norm(query), atol=1e-9)


@of_little_use
def test_queries_by_a_rotation_get_no_mean_of_the_old_rows():
    old, new = old_and_new()
    u, _, vt = np.linalg.svd((old - old.mean(axis=0)).T @ (new - new.mean(axis=0)), False)
    found = fit_migration(old, new, direction="queries", method="procrustes")
    expected = (new - new.mean(axis=0)) @ vt.T @ u.T
    np.testing.assert_allclose(found.map_queries(new), expected, atol=1e-9)


def test_a_direction_takes_only_its_methods():
    old, new = old_and_new()
    with pytest.raises(ValueError, match=r"direction to be one of .*, got 'back'"):
        fit_migration(old, new, direction="back")
    with pytest.raises(
        ValueError, match=r"one of \['cca', 'procrustes'\] for direction='queries', got"
    ):
        fit_migration(old, new, direction="queries", method="affine")
    with pytest.raises(ValueError, match="no reg for method='procrustes'"):
        fit_migration(old, new, method="procrustes", reg=0.1)


# ---- files, exports, checks ---------------------------------------------------------------------


@of_little_use
@pytest.mark.parametrize("direction", ["items", "queries", "both"])
def test_a_loaded_migration_maps_and_reports_the_same(direction, tmp_path):
    old, new = old_and_new(noise=0.1)
    found = fit_migration(old, new, direction=direction, learning_curve=True)
    found.save(tmp_path / "map.mvcca")
    loaded = Migration.load(tmp_path / "map.mvcca")
    assert loaded.as_dict() == found.as_dict()
    assert [point.n_pairs for point in loaded.learning_curve] == [75, 150]
    np.testing.assert_array_equal(loaded.map_items(old), found.map_items(old))
    np.testing.assert_array_equal(loaded.map_queries(new), found.map_queries(new))


@of_little_use
def test_a_migration_prints_lists_and_draws_its_figures():
    old, new = old_and_new(noise=0.1)
    found = fit_migration(old, new, learning_curve=True)
    assert "array" not in repr(found)
    assert str(found).count("\n") == 4
    assert f"first among 300 rows: {found.found_first:.3f} ± " in str(found)
    frame = found.to_frame()
    assert frame["n_pairs"].to_list() == [75, 150, 300]
    assert frame["found_first"].iloc[-1] == found.found_first
    ax = found.plot()
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), frame["found_first"])
    plt.close(ax.figure)


def test_pairs_must_be_matrices_of_numbers():
    old, new = old_and_new()
    with pytest.raises(ValueError, match=r"old to be a matrix of numbers.* shape \(300,\)"):
        fit_migration(old[:, 0], new)
    with pytest.raises(ValueError, match="new to be a matrix of numbers"):
        fit_migration(old, new.astype(str))


@of_little_use
@pytest.mark.parametrize("method", ["affine", "local"])
def test_a_single_vector_is_not_taken_for_rows(method):
    old, new = old_and_new()
    found = fit_migration(old, new, method=method)
    with pytest.raises(ValueError, match=r"shape \(n_rows, 9\), got shape \(9,\).*vector\[None\]"):
        found.map_items(old[0])
    with pytest.raises(ValueError, match=r"got shape \(300, 7\)"):
        found.map_items(new)
    np.testing.assert_array_equal(found.map_items(old[:1].tolist()), found.map_items(old[:1]))


def test_other_files_are_not_taken_for_a_migration(tmp_path):
    from mvcca import save

    save(CCA(2, reg=0.1).fit(*old_and_new()), tmp_path / "model.mvcca")
    with pytest.raises(ModelFileError, match="does not hold a migration"):
        Migration.load(tmp_path / "model.mvcca")


@of_little_use
def test_maps_are_exported_as_those_of_estimators():
    old, new = old_and_new()
    found = fit_migration(old, new, direction="queries", normalize=False)
    W, b = affine_map(found, "new")
    np.testing.assert_allclose(new @ W + b, found.map_queries(new), atol=1e-10)
    with pytest.raises(ValueError, match="leaves rows of the old model as they are"):
        affine_map(found, "old")
    with pytest.raises(ValueError, match="Unknown view 'text'"):
        affine_map(found, "text")


@of_little_use
def test_transform_takes_views_by_name():
    old, new = old_and_new()
    found = fit_migration(old, new, direction="both")
    for views in ({"old": old, "new": new[:5]}, [old, new[:5]]):
        mapped = found.transform(views)
        np.testing.assert_array_equal(mapped["old"], found.map_items(old))
        np.testing.assert_array_equal(mapped["new"], found.map_queries(new[:5]))
    with pytest.raises(TypeError, match="name the view of a single matrix"):
        found.transform(old)
    with pytest.raises(ValueError, match="Unknown view 'text'"):
        found.transform({"text": old})


@of_little_use
def test_maps_are_exported_to_torch():
    torch = pytest.importorskip("torch")
    old, new = old_and_new()
    found = fit_migration(old, new, normalize=False)
    with torch.no_grad():
        mapped = to_linear(found, "old")(torch.from_numpy(old)).numpy()
    np.testing.assert_allclose(mapped, found.map_items(old), atol=1e-10)


@pytest.mark.parametrize("direction", ["items", "queries", "both"])
def test_a_map_of_permuted_pairs_is_of_no_use(direction):
    old, new = old_and_new(noise=0.1)
    new = np.random.default_rng(1).permutation(new)
    with pytest.warns(UserWarning, match="learned nothing that the pairs share"):
        found = fit_migration(old, new, direction=direction)
    assert not found.is_useful


@of_little_use
def test_a_few_rows_more_than_by_chance_are_told_from_chance():
    found = fit_migration(*old_and_new())
    for n_found, n_by_chance, is_useful in (
        (9, 1, True),
        (5, 0, True),
        (3, 1, False),
        (5, 4, False),
    ):
        share = n_found / 200
        own = replace(
            found,
            n_queries=200,
            found_first=share,
            found_first_error=np.sqrt(share * (1 - share) / 200),
            found_first_permuted=n_by_chance / 200,
        )
        assert own.is_useful == is_useful


@of_little_use
@pytest.mark.parametrize("direction", ["items", "queries", "both"])
def test_drift_is_seen_in_pairs_of_another_model_and_not_in_pairs_of_the_same(direction):
    old, new = old_and_new(1000, noise=0.1)
    found = fit_migration(old[:500], new[:500], direction=direction)
    same = found.drift(old[500:], new[500:])
    assert abs(same.z) < 3
    assert not same.has_drifted
    assert found.drift(old[500:], new[500:, ::-1]).has_drifted
    with pytest.raises(ValueError, match="at least 2 pairs"):
        found.drift(old[:3], new[:2])


ENCODERS = [("en_wordllama", "en_minilm"), ("en_minilm", "de_e5")]


@pytest.mark.needs_data("multi30k_encoders.npz")
@pytest.mark.filterwarnings("ignore:Of the nearest")
@pytest.mark.parametrize(
    ("before", "after", "n_pairs", "direction"),
    [
        (*ENCODERS[0], 500, "items"),
        (*ENCODERS[1], 500, "queries"),
        *(
            pytest.param(*names, n_pairs, direction, marks=pytest.mark.long)
            for names in ENCODERS
            for n_pairs in (500, 1000)
            for direction in ("items", "queries")
            if n_pairs == 1000 or (names is ENCODERS[0]) == (direction == "queries")
        ),
    ],
)
def test_the_share_found_is_that_of_new_queries_in_the_whole_corpus(
    before, after, n_pairs, direction
):
    data = fetch_multi30k_encoders()
    parts = [data[part].views for part in ("train", "valid", "test")]
    stored, new = (np.concatenate([part[name] for part in parts]) for name in (before, after))
    rows = np.random.default_rng(0).permutation(10_000)[:n_pairs]
    found = fit_migration(stored[rows], new[rows], stored=stored, direction=direction)
    queries = np.arange(len(stored) - 1000, len(stored))
    mapped = found.map_items(stored)
    assert found.normalize
    true = np.mean(np.argmax(found.map_queries(new[queries]) @ mapped.T, axis=1) == queries)
    assert (found.n_stored, found.gallery_size) == (12_014, len(np.unique(stored, axis=0)))
    assert abs(found.found_first - true) < 2 * found.found_first_error


# ---- local maps ---------------------------------------------------------------------------------


def bent(n_rows, seed=0):
    """New rows that are another linear map of the old ones in each of three clusters."""
    rng = np.random.default_rng(seed)
    cluster = rng.integers(3, size=n_rows)
    old = 8 * np.eye(3, 8)[cluster] + rng.standard_normal((n_rows, 8))
    maps = np.random.default_rng(7).standard_normal((3, 8, 6))
    new = np.einsum("ij,ijk->ik", old, maps[cluster])
    return old, new + 0.05 * rng.standard_normal(new.shape)


@of_little_use
def test_local_maps_learn_what_bends_and_keep_more():
    old, new = bent(900)
    flat = fit_migration(old, new, normalize=False)
    found = fit_migration(old, new, method="local", normalize=False)
    assert (flat.method, found.method) == ("affine", "local")
    later, truth = bent(500, seed=1)
    errors = [np.mean((each.map_items(later) - truth) ** 2) for each in (flat, found)]
    assert errors[1] < 0.02 * errors[0]
    assert found.found_first > flat.found_first
    np.testing.assert_allclose(
        np.vstack([found.map_items(part) for part in np.array_split(later, 7)]),
        found.map_items(later),
        atol=1e-12,
    )


@of_little_use
def test_local_maps_are_dropped_where_one_affine_map_is_enough():
    old, new = old_and_new(900)
    flat, found = fit_migration(old, new), fit_migration(old, new, method="local")
    assert (found.method, found.found_first) == ("affine", flat.found_first)
    np.testing.assert_array_equal(found.map_items(old), flat.map_items(old))
    few = bent(250)  # too few for two clusters
    assert fit_migration(*few, method="local").method == "affine"


def test_local_maps_are_saved_and_not_exported(tmp_path):
    old, new = bent(900)
    found = fit_migration(old, new, method="local")
    found.save(tmp_path / "local.mvcca")
    loaded = Migration.load(tmp_path / "local.mvcca")
    np.testing.assert_array_equal(loaded.map_items(old), found.map_items(old))
    assert loaded.map_items(old.astype(np.float32)).dtype == np.float32
    with pytest.raises(ValueError, match=r"not one affine map.*method='affine' to export"):
        affine_map(found, "old")
    with pytest.raises(ValueError, match="NaN, infinity"):
        found.map_items(np.full((1, 8), 1e308))


@pytest.mark.parametrize("direction", ["items", "queries"])
def test_a_column_in_larger_units_is_named_if_the_map_fails(direction):
    old, new = old_and_new()
    n_said = 0
    for rows in (old, new):
        spoilt = {"old": old, "new": new}
        name = "old" if rows is old else "new"
        spoilt[name] = rows * np.where(np.arange(rows.shape[1]) == 2, 1e4, 1)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = fit_migration(**spoilt, direction=direction)
        said = [str(own.message) for own in caught if "Unlike units" in str(own.message)]
        assert len(said) == (not found.is_good)
        n_said += len(said)
        assert all(f"column 2 of view '{name}' has over 1" in one for one in said)
        assert all("Standardize its columns, or results depend" in one for one in said)
    assert n_said
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Only .* of the queries")
        fit_migration(old, new, direction=direction)
