"""Procrustes and affine maps, judged by SciPy, scikit-learn and their problems written out."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy.linalg import eigh, orthogonal_procrustes
from scipy.optimize import minimize
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, Ridge

from mvcca import CCA, AffineMap, Procrustes, Views, load, save

RNG = np.random.default_rng(0)
N = 200
LATENT = RNG.normal(size=(N, 5))


def noisy(width, noise=0.3, seed=0):
    rng = np.random.default_rng(seed)
    return LATENT @ rng.normal(size=(5, width)) + noise * rng.normal(size=(N, width)) + 1


OLD, NEW, THIRD = noisy(6, seed=1), noisy(6, seed=2), noisy(4, seed=3)
ALIGNERS = [
    CCA(3, reg=0.01),
    Procrustes(),
    Procrustes(3, scale=False),
    AffineMap(),
    AffineMap(3, reg=0.0),
]
aligners = pytest.mark.parametrize("estimator", ALIGNERS, ids=repr)


def centred(X):
    return X - X.mean(axis=0)


# ---- Procrustes


def test_the_rotation_of_two_views_is_scipys():
    rotation, scale = orthogonal_procrustes(centred(OLD), centred(NEW))
    model = Procrustes().fit({"old": OLD, "new": NEW})
    ours = model.weights_["old"] @ model.weights_["new"].T
    np.testing.assert_allclose(ours, rotation, atol=1e-10)
    np.testing.assert_allclose(model.eigenvalues_.sum() * (N - 1), scale)


def test_rotation_and_scale_are_those_of_least_error():
    model = Procrustes().fit({"old": OLD, "new": NEW})
    rotation, _ = orthogonal_procrustes(centred(OLD), centred(NEW))

    def error(scale):
        return np.sum((scale * centred(OLD) @ rotation - centred(NEW)) ** 2)

    best = minimize(error, 1.0).x
    np.testing.assert_allclose(
        model.predict({"old": OLD}), best * centred(OLD) @ rotation + NEW.mean(axis=0), atol=1e-5
    )
    np.testing.assert_allclose(
        Procrustes(scale=False).fit({"old": OLD, "new": NEW}).predict({"old": OLD}),
        centred(OLD) @ rotation + NEW.mean(axis=0),
        atol=1e-10,
    )


def test_views_of_different_widths_agree_as_much_as_orthonormal_maps_allow():
    model = Procrustes().fit([OLD, THIRD])
    W, V = model.weights_.values()
    np.testing.assert_allclose(W.T @ W, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(V.T @ V, np.eye(4), atol=1e-12)
    cross = centred(OLD).T @ centred(THIRD)
    np.testing.assert_allclose(np.trace(W.T @ cross @ V), np.linalg.svd(cross)[1].sum())


def test_maps_of_three_views_cannot_be_improved_by_rotating_one_of_them():
    views = {"a": OLD, "b": NEW, "c": THIRD}
    model = Procrustes().fit(views)
    scores = model.transform(views)
    for name, own in scores.items():
        others = np.sum([block for other, block in scores.items() if other != name], axis=0)
        np.testing.assert_allclose(
            model.weights_[name].T @ model.weights_[name], np.eye(4), atol=1e-12
        )
        # The best rotation of a view towards the sum of the others is the one that it has.
        gain = np.linalg.svd(centred(views[name]).T @ others)[1].sum()
        np.testing.assert_allclose(np.sum(own * others), gain, rtol=1e-6)
    values = np.mean([np.sum(scores[p] * scores[q], 0) for p, q in permutations(views, 2)], axis=0)
    np.testing.assert_allclose(model.eigenvalues_, values / (N - 1), rtol=1e-8)
    assert np.all(np.diff(model.eigenvalues_) <= 0)


def test_three_rotated_copies_of_a_view_are_brought_together():
    turns = [np.linalg.qr(RNG.normal(size=(6, 6)))[0] for _ in range(3)]
    views = {name: OLD @ turn for name, turn in zip("abc", turns, strict=True)}
    model = Procrustes().fit(views)
    for source, target in permutations(views, 2):
        predicted = model.predict({source: views[source]}, target)
        np.testing.assert_allclose(predicted, views[target], atol=1e-8)


def test_a_wide_view_is_rotated_within_the_span_of_its_rows():
    few = slice(0, 15)
    wide = np.hstack([OLD, NEW, noisy(30, seed=4)])[few]
    model = Procrustes().fit({"wide": wide, "new": NEW[few]})
    cross = centred(wide).T @ centred(NEW[few])
    np.testing.assert_allclose(
        model.eigenvalues_ * (len(wide) - 1), np.linalg.svd(cross)[1][:6], rtol=1e-8
    )
    W = model.weights_["wide"]
    np.testing.assert_allclose(W.T @ W, np.eye(6), atol=1e-10)


# ---- affine maps


@pytest.mark.parametrize("reg", [0.0, 0.1, 3.0])
def test_the_map_of_full_rank_is_ridge_regression(reg):
    alpha = reg * centred(OLD).var(axis=0, ddof=1).mean() * (N - 1)
    peer = Ridge(alpha=alpha, solver="svd").fit(OLD, NEW)
    model = AffineMap(reg=reg).fit({"old": OLD, "new": NEW})
    np.testing.assert_allclose(model.predict({"old": OLD}), peer.predict(OLD), atol=1e-9)


def test_a_map_of_low_rank_is_the_best_of_its_rank():
    fitted = LinearRegression().fit(OLD, NEW).predict(OLD)
    left, sizes, right = np.linalg.svd(centred(fitted), full_matrices=False)
    for rank in (1, 3):
        # Izenman: the regression's fitted values, cut to the rank (Eckart and Young).
        best = left[:, :rank] * sizes[:rank] @ right[:rank] + NEW.mean(axis=0)
        model = AffineMap(rank, reg=0.0).fit({"old": OLD, "new": NEW})
        np.testing.assert_allclose(model.predict({"old": OLD}), best, atol=1e-9)
        explained = NEW.var(axis=0, ddof=1).sum() - np.sum((NEW - best) ** 2) / (N - 1)
        np.testing.assert_allclose(np.sum(model.eigenvalues_**2), explained)


def test_several_views_have_directions_of_the_target_in_common():
    views = {"a": OLD, "b": THIRD, "target": NEW}
    model = AffineMap(2, reg=0.0).fit(views)
    fits = {
        name: centred(LinearRegression().fit(views[name], NEW).predict(views[name]))
        for name in "ab"
    }
    total = sum(fit.T @ fit for fit in fits.values())
    values, vectors = eigh(total)
    V = vectors[:, -2:]
    for name in "ab":
        np.testing.assert_allclose(
            model.predict({name: views[name]}), fits[name] @ V @ V.T + NEW.mean(axis=0), atol=1e-9
        )
    np.testing.assert_allclose(model.eigenvalues_**2 * (N - 1), values[:-3:-1])


def test_cosines_in_the_shared_space_are_those_in_the_targets_space():
    model = AffineMap().fit({"old": OLD, "new": NEW})
    scores = model.transform({"old": OLD, "new": NEW})
    predicted = model.predict({"old": OLD}) - NEW.mean(axis=0)
    np.testing.assert_allclose(
        scores["old"] @ scores["new"].T, predicted @ centred(NEW).T, atol=1e-9
    )


def test_any_view_can_be_the_target():
    model = AffineMap(target="old", reg=0.0).fit({"old": OLD, "new": NEW})
    expected = LinearRegression().fit(NEW, OLD).predict(NEW)
    np.testing.assert_allclose(model.predict({"new": NEW}, target="old"), expected, atol=1e-9)


@pytest.mark.parametrize("reg", [0.0, 0.1])
def test_wide_views_have_the_ridge_solution(reg):
    few = slice(0, 15)
    wide, target = (
        np.hstack([OLD, noisy(30, seed=4)])[few],
        np.hstack([NEW, noisy(20, seed=5)])[few],
    )
    model = AffineMap(reg=reg).fit({"wide": wide, "target": target})
    if reg:
        alpha = reg * wide.var(axis=0, ddof=1).mean() * (len(wide) - 1)
        peer = Ridge(alpha=alpha, solver="svd").fit(wide, target)
    else:
        peer = LinearRegression().fit(wide, target)  # interpolates, as any solution does
    np.testing.assert_allclose(model.predict({"wide": wide}), peer.predict(wide), atol=1e-8)


def test_the_ridge_is_in_units_of_the_views_variance():
    small = AffineMap(reg=0.5).fit({"old": 1e-3 * OLD, "new": NEW}).predict({"old": 1e-3 * OLD})
    np.testing.assert_allclose(small, AffineMap(reg=0.5).fit([OLD, NEW]).predict({"view0": OLD}))


def test_a_ridge_can_be_given_for_the_views_that_are_mapped():
    model = AffineMap(reg={"old": 0.5}).fit({"old": OLD, "new": NEW})
    np.testing.assert_allclose(
        model.predict({"old": OLD}), AffineMap(reg=0.5).fit([OLD, NEW]).predict({"view0": OLD})
    )
    with pytest.raises(ValueError, match=r"reg names the views \['new'\], expected \['old'\]"):
        AffineMap(reg={"new": 0.5}).fit({"old": OLD, "new": NEW})


# ---- predict


@aligners
def test_batches_files_and_sparse_rows_predict_the_same(estimator, tmp_path):
    views = {"old": np.round(OLD), "new": np.round(NEW)}
    expected = estimator.fit(views).predict({"old": views["old"]}, target="new")
    np.save(tmp_path / "old.npy", views["old"])
    rows = np.load(tmp_path / "old.npy", mmap_mode="r")
    np.testing.assert_allclose(estimator.predict({"old": rows}), expected, atol=1e-12)
    np.testing.assert_allclose(estimator.predict({"old": csr_array(rows)}), expected, atol=1e-10)
    batches = type(estimator)(**estimator.get_params())
    for part in np.array_split(np.arange(N), 3):
        batches.partial_fit({name: block[part] for name, block in views.items()})
    np.testing.assert_allclose(batches.predict({"old": rows}), expected, atol=1e-8)


@aligners
def test_dask_rows_are_predicted_lazily(estimator):
    da = pytest.importorskip("dask.array")
    estimator.fit({"old": OLD, "new": NEW})
    lazy = estimator.predict({"old": da.from_array(OLD, chunks=(50, 6))})
    assert isinstance(lazy, da.Array)
    np.testing.assert_allclose(lazy.compute(), estimator.predict({"old": OLD}), atol=1e-12)


@aligners
def test_float32_rows_far_from_the_origin_lose_no_digits(estimator):
    views = {"old": (OLD + 1000).astype("f4"), "new": (NEW - 1000).astype("f4")}
    exact = {name: block.astype(float) for name, block in views.items()}
    expected = estimator.fit(exact).predict({"old": exact["old"]})
    found = estimator.fit(views).predict({"old": views["old"]})
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-3)  # of about 1000


@aligners
def test_two_lone_matrices_are_source_and_target(estimator):
    named = estimator.fit({"X": OLD, "y": NEW}).predict({"X": OLD}, target="y")
    np.testing.assert_array_equal(estimator.fit(OLD, NEW).predict(OLD), named)


@aligners
def test_a_prediction_that_makes_no_sense_is_refused(estimator):
    with pytest.raises(NotFittedError):
        type(estimator)().predict({"old": OLD})
    estimator.fit({"old": OLD, "new": NEW})
    with pytest.raises(ValueError, match=r"rows of one view, got \['old', 'new'\]"):
        estimator.predict({"old": OLD, "new": NEW})
    with pytest.raises(ValueError, match=r"from 'old' the views \['new'\]; got target='text'"):
        estimator.predict({"old": OLD}, target="text")
    with pytest.raises(ValueError, match="got target='old'"):
        estimator.predict({"old": OLD}, target="old")
    with pytest.raises(ValueError, match="Unknown view 'text'"):
        estimator.predict({"text": OLD}, target="new")
    with pytest.raises(ValueError, match="has 5 features"):
        estimator.predict({"old": OLD[:, :5]}, target="new")


@aligners
def test_a_predictor_predicts_what_predict_does(estimator):
    predict = estimator.fit({"old": OLD, "new": NEW}).predictor("old")
    np.testing.assert_array_equal(predict(OLD[:7]), estimator.predict({"old": OLD[:7]}))
    with pytest.raises(ValueError, match="NaN"):
        predict(np.full((2, 6), np.nan))
    with pytest.raises(ValueError, match=r"source must be one of \['old', 'new'\], got 'text'"):
        estimator.predictor("text")


def test_the_target_of_several_views_must_be_named():
    model = Procrustes().fit({"a": OLD, "b": NEW, "c": THIRD})
    with pytest.raises(ValueError, match=r"from 'a' the views \['b', 'c'\]; got target=None"):
        model.predict({"a": OLD})


def test_an_affine_map_predicts_its_target_only():
    model = AffineMap().fit({"old": OLD, "new": NEW})
    with pytest.raises(ValueError, match="predicts view 'new' from others"):
        model.predict({"new": NEW}, target="old")
    with pytest.raises(ValueError, match=r"target must be one of the views \['old', 'new'\]"):
        AffineMap(target="text").fit({"old": OLD, "new": NEW})


def test_partly_paired_views_are_aligned_over_the_rows_they_share():
    seen = np.arange(N)
    index = np.column_stack([seen, np.where(seen < 150, seen, -1)])
    model = Procrustes().fit(Views({"old": OLD, "new": NEW[:150]}, index))
    shared = slice(0, 150)
    rotation, _ = orthogonal_procrustes(centred(OLD[shared]), centred(NEW[shared]))
    ours = model.weights_["old"] @ model.weights_["new"].T
    np.testing.assert_allclose(ours, rotation, atol=1e-10)


def test_each_view_is_regressed_over_the_objects_that_it_shares_with_the_target():
    index = np.tile(np.arange(N)[:, None], 3)
    index[:60, 0] = index[40:100, 1] = index[150:, 2] = -1
    blocks = {"old": OLD, "third": THIRD, "new": NEW}
    model = AffineMap(reg=0.1).fit(Views(blocks, index))
    for name in ("old", "third"):
        pairs = Views(blocks, index).select([name, "new"])
        alone = AffineMap(reg=0.1).fit(pairs[pairs.seen.all(axis=1)])
        rows = {name: blocks[name]}
        moved = model.predict(rows, target="new") - alone.predict(rows, target="new")
        # The mean of the target is that of all its rows.
        np.testing.assert_allclose(centred(moved), 0, atol=1e-10)


def test_scales_are_of_the_objects_of_each_pair():
    index = np.tile(np.arange(N)[:, None], 3)
    index[:60, 0] = index[40:100, 1] = index[150:, 2] = -1
    model = Procrustes(4).fit(Views({"old": OLD, "third": THIRD, "new": NEW}, index))
    both = slice(100, N)
    a, b = (centred(X[both]) @ model.weights_[n] for n, X in (("old", OLD), ("third", THIRD)))
    assert model.scales_[0, 1] == pytest.approx((a * b).sum() / (a * a).sum())


def test_the_order_of_views_does_not_change_the_map_to_a_named_target():
    views = {"a": OLD, "b": THIRD, "target": NEW}
    model = AffineMap(3, target="target").fit(views)
    turned = AffineMap(3, target="target").fit(dict(reversed(views.items())))
    for name in "ab":
        np.testing.assert_allclose(
            turned.predict({name: views[name]}), model.predict({name: views[name]}), atol=1e-10
        )


@aligners
def test_rows_on_a_device_are_predicted_there(estimator):
    torch = pytest.importorskip("torch")
    expected = estimator.fit({"old": OLD, "new": NEW}).predict({"old": OLD})
    found = estimator.predict({"old": torch.asarray(OLD)})
    assert isinstance(found, torch.Tensor)
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-12)


@aligners
def test_a_loaded_model_predicts_the_same(estimator, tmp_path):
    expected = estimator.fit({"old": OLD, "new": NEW}).predict({"old": OLD}, target="new")
    save(estimator, tmp_path / "map.mvcca")
    np.testing.assert_array_equal(load(tmp_path / "map.mvcca").predict({"old": OLD}), expected)


# ---- CCA


@pytest.mark.parametrize("reg", [0.0, 0.3, "auto"])
@pytest.mark.parametrize("k", [1, 3, 6])
def test_cca_predicts_by_regression_on_canonical_variates(reg, k):
    model = CCA(k, reg=reg).fit({"old": OLD, "new": NEW})
    for source, target in (("old", "new"), ("new", "old")):
        views = {"old": OLD, "new": NEW}
        scores = model.transform({source: views[source]})[source]
        expected = LinearRegression().fit(scores, views[target]).predict(scores)
        found = model.predict({source: views[source]}, target=target)
        np.testing.assert_allclose(found, expected, atol=1e-9)


def test_all_canonical_variates_are_the_whole_regression():
    expected = LinearRegression().fit(OLD, NEW).predict(OLD)
    np.testing.assert_allclose(CCA(6).fit(OLD, NEW).predict(OLD), expected, atol=1e-9)


@pytest.mark.parametrize("reg", [0.1, "auto"])
def test_wide_views_predict_what_long_ones_do(reg):
    wide = np.hstack([OLD, noisy(30, seed=4)])[:20]
    views = {"wide": wide, "new": NEW[:20]}
    model = CCA(3, reg=reg).fit(views)
    for source, target in (("wide", "new"), ("new", "wide")):
        scores = model.transform({source: views[source]})[source]
        expected = LinearRegression().fit(scores, views[target]).predict(scores)
        np.testing.assert_allclose(model.predict({source: views[source]}), expected, atol=1e-8)
