"""Similarity of representations, judged by Gram matrices, permutations and published figures."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from textwrap import dedent

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import sparse

from benchmarks.real import fetch_multi30k_encoders
from mvcca import CCA, Procrustes
from mvcca.cli import main
from mvcca.interop.representations import MEASURES, LayerSums, compare_representations
from mvcca.interop.representations._measures import random_correlations

WITHOUT_ROWS = [name for name in MEASURES if name != "mutual_knn"]


def two_layers(n=120, p=9, q=14, seed=0, offset=3.0):
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((n, 4))
    x = shared @ rng.standard_normal((4, p)) + rng.standard_normal((n, p)) + offset
    return x, shared @ rng.standard_normal((4, q)) + rng.standard_normal((n, q)) - offset


def compared(x, y, measures=MEASURES, **options):
    return compare_representations({"x": x}, other={"y": y}, measures=measures, **options)


def raw(x, y, measure):
    return compared(x, y, measure, calibrate=False).raw[measure][0, 0]


def gram_hsic(K, L):
    """HSIC₁ of two Gram matrices, Song et al. (2012), eq. 5."""
    n = len(K)
    K, L = K - np.diag(np.diag(K)), L - np.diag(np.diag(L))
    cross = (K @ L).sum()
    whole = np.trace(K @ L) + K.sum() * L.sum() / ((n - 1) * (n - 2)) - 2 * cross / (n - 2)
    return whole / (n * (n - 3))


def random_rotation(width, seed=1):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((width, width)))[0]


# ---- values -------------------------------------------------------------------------------------


def test_each_layer_of_one_network_is_compared_with_each_of_another():
    (x, y), (v, w) = two_layers(), two_layers(seed=1)
    found = compare_representations({"x": x, "y": y}, other={"v": v, "w": w}, measures="cka")
    expected = [[raw(own, other, "cka") for other in (v, w)] for own in (x, y)]
    np.testing.assert_allclose(found.raw["cka"], expected, rtol=1e-12)


def test_both_cka_are_those_of_gram_matrices():
    x, y = two_layers()
    K, L = x @ x.T, y @ y.T
    unbiased = gram_hsic(K, L) / np.sqrt(gram_hsic(K, K) * gram_hsic(L, L))
    assert raw(x, y, "cka_unbiased") == pytest.approx(unbiased, rel=1e-12)
    H = np.eye(len(x)) - 1 / len(x)
    K, L = H @ K @ H, H @ L @ H
    cka = np.vdot(K, L) / np.linalg.norm(K) / np.linalg.norm(L)
    assert raw(x, y, "cka") == pytest.approx(cka, rel=1e-12)


def test_far_from_zero_digits_are_kept():
    x, y = two_layers()
    for measure in ("cka_unbiased", "mean_correlation"):
        near, far = raw(x, y, measure), raw(x + 1e4, y - 1e4, measure)
        assert far == pytest.approx(near, rel=1e-9)


def test_correlations_are_those_of_cca():
    x, y = two_layers()
    rho = CCA(None, reg=0.0).fit({"x": x, "y": y}).canonical_correlations_
    assert raw(x, y, "mean_correlation") == pytest.approx(rho.mean(), rel=1e-10)
    assert raw(x, y, "mean_squared_correlation") == pytest.approx((rho**2).mean(), rel=1e-10)


@pytest.mark.parametrize("reg", [0.1, 3.0])
def test_correlations_with_a_ridge_are_those_of_regularized_covariances(reg):
    x, y = two_layers()
    centred = [X - X.mean(axis=0) for X in (x, y)]
    roots = []
    for X in centred:
        values, axes = np.linalg.eigh(X.T @ X)
        roots.append(axes / np.sqrt(values + reg * values.mean()) @ axes.T)
    rho = np.linalg.svd(roots[0] @ centred[0].T @ centred[1] @ roots[1], compute_uv=False)
    names = ("mean_correlation", "mean_squared_correlation")
    found = compared(x, y, names, reg=reg)
    expected = {"mean_correlation": rho.mean(), "mean_squared_correlation": (rho**2).mean()}
    for name in names:
        assert found.raw[name][0, 0] == pytest.approx(expected[name], rel=1e-10)


def test_a_ridge_tells_layers_wider_than_the_rows_apart():
    x, y = two_layers(n=60, p=100, q=120)
    unrelated = np.random.default_rng(1).permutation(y)
    with pytest.warns(UserWarning, match=r"a ridge \(reg\)"):
        assert compared(x, unrelated, "mean_correlation").raw["mean_correlation"] > 0.999
    z = [compared(x, Y, "mean_correlation", reg=0.3).z["mean_correlation"] for Y in (y, unrelated)]
    assert z[0] > 6
    assert abs(z[1]) < 4


def test_procrustes_is_the_fit_of_the_best_rotation():
    x, y = (X - X.mean(axis=0) for X in two_layers(p=9, q=9))
    x, y = x / np.linalg.norm(x), y / np.linalg.norm(y)
    rotated = Procrustes(scale=False).fit({"x": x, "y": y}).predict({"x": x})
    distance = np.linalg.norm(rotated - y) ** 2
    assert raw(x, y, "procrustes") == pytest.approx(1 - distance / 2, rel=1e-10)


def test_predictivity_is_the_r2_of_least_squares():
    x, y = (X - X.mean(axis=0) for X in two_layers())
    left = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    assert raw(x, y, "predictivity") == pytest.approx(1 - np.vdot(left, left) / np.vdot(y, y))


def test_pwcca_weighs_variates_by_their_inner_products_with_neurons():
    x, y = (X - X.mean(axis=0) for X in two_layers())
    of_x, of_y = (np.linalg.svd(X, full_matrices=False)[0] for X in (x, y))
    left, rho, _ = np.linalg.svd(of_x.T @ of_y, full_matrices=False)
    weights = np.zeros(len(rho))
    for i, variate in enumerate((of_x @ left).T):
        for neuron in x.T:
            weights[i] += abs(variate @ neuron)
    assert raw(x, y, "pwcca") == pytest.approx(weights @ rho / weights.sum(), rel=1e-10)


def test_neighbors_are_those_of_sorted_cosines():
    x, y = two_layers()

    def nearest(X):
        X = X / np.linalg.norm(X, axis=1, keepdims=True)
        cosines = X @ X.T - 9 * np.eye(len(X))
        return np.argsort(-cosines, axis=1)[:, :10]

    both = [len(set(a) & set(b)) / 10 for a, b in zip(nearest(x), nearest(y), strict=True)]
    assert raw(x, y, "mutual_knn") == pytest.approx(np.mean(both))
    assert raw(x, x, "mutual_knn") == 1


# ---- invariances --------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", [name for name in WITHOUT_ROWS if name != "pwcca"])
def test_rotation_scale_and_shift_change_nothing(measure):
    x, y = two_layers()
    moved = 7 * x @ random_rotation(x.shape[1]) + 5
    assert raw(moved, y, measure) == pytest.approx(raw(x, y, measure), rel=1e-10)
    assert raw(x, moved, measure) == pytest.approx(1, rel=1e-10)


@pytest.mark.parametrize(
    ("measure", "sides"),
    [
        ("mean_correlation", "xy"),
        ("mean_squared_correlation", "xy"),
        ("predictivity", "x"),
        ("pwcca", "y"),
    ],
)
def test_invertible_maps_change_nothing(measure, sides):
    x, y = two_layers()
    mapped = {
        name: X @ (random_rotation(X.shape[1]) * np.linspace(0.3, 3, X.shape[1]))
        for name, X in (("x", x), ("y", y))
    }
    for side in "xy":
        pair = (mapped["x"], y) if side == "x" else (x, mapped["y"])
        is_same = np.isclose(raw(*pair, measure), raw(x, y, measure), rtol=1e-9)
        assert is_same == (side in sides)


def test_pwcca_depends_on_the_rotation_of_its_own_neurons():
    x, y = two_layers()
    turned = raw(x @ random_rotation(x.shape[1]), y, "pwcca")
    assert abs(turned - raw(x, y, "pwcca")) > 1e-3


# ---- calibration --------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", ["cka", "cka_unbiased"])
def test_moments_of_cka_are_those_of_permutations(measure):
    x, y = two_layers(n=25, p=6, q=11)
    rng = np.random.default_rng(0)
    drawn = [raw(x, y[rng.permutation(len(y))], measure) for _ in range(700)]
    table = compared(x, y, measure)
    error = table.deviation[measure][0, 0] / np.sqrt(len(drawn))
    assert table.expected[measure][0, 0] == pytest.approx(np.mean(drawn), abs=4 * error)
    assert table.deviation[measure][0, 0] == pytest.approx(np.std(drawn), rel=0.1)


@pytest.mark.parametrize("measure", WITHOUT_ROWS[2:])
def test_moments_of_the_other_measures_are_near_those_of_permutations(measure):
    x, y = two_layers(n=60, p=6, q=11)
    rng = np.random.default_rng(0)
    drawn = [raw(x, y[rng.permutation(len(y))], measure) for _ in range(60)]
    table = compared(x, y, measure)
    assert table.expected[measure][0, 0] == pytest.approx(np.mean(drawn), abs=0.02)
    assert 0.4 < table.deviation[measure][0, 0] / np.std(drawn) < 2.5


@pytest.mark.parametrize("size", [11, 14, 40])
def test_random_correlations_are_those_of_random_bases(size):
    rng = np.random.default_rng(0)
    drawn = [random_correlations(10, 4, size, rng) for _ in range(1000)]
    explicit = [np.linalg.qr(rng.standard_normal((size, 4)))[0][:10] for _ in range(1000)]

    def means(bases):
        return np.mean([np.linalg.svd(T, compute_uv=False) for T in bases], axis=0)

    np.testing.assert_allclose(means(drawn), means(explicit), atol=0.015)


@pytest.mark.parametrize("width", [8, 64, 512, 4096])
def test_unrelated_layers_score_zero_at_every_width(width):
    rng = np.random.default_rng(width)
    x, y = rng.standard_normal((200, width)), rng.standard_normal((200, width))
    found = compared(x, y, ("cka_unbiased", "cka"))
    assert abs(found.z["cka_unbiased"][0, 0]) < 3
    assert abs(found["cka"][0, 0]) < 0.02
    if width == 4096:
        assert found.raw["cka"][0, 0] > 0.9


@pytest.mark.parametrize(
    ("width", "published"),
    [
        (8, (0.015, -0.001, 0.101, 0.100, 0.015)),
        (32, (0.062, 0.004, 0.220, 0.217, 0.066)),
        (128, (0.199, -0.002, 0.436, 0.412, 0.250)),
        (400, (0.439, -0.001, 0.835, 0.685, 0.782)),
    ],
)
def test_figures_of_independent_normal_rows(width, published):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((512, width)), rng.standard_normal((512, width))
    names = ("cka", "cka_unbiased", "mean_correlation", "procrustes", "predictivity")
    found = compared(x, y, names, calibrate=False)
    np.testing.assert_allclose([found.raw[name][0, 0] for name in names], published, atol=6e-4)


def test_equal_layers_score_one():
    x, _ = two_layers()
    for measure, values in compared(x, x).raw.items():
        assert values[0, 0] == pytest.approx(1), measure
        assert compared(x, x, measure)[measure][0, 0] == pytest.approx(1)


def test_intervals_cover_the_value_of_many_rows():
    x, y = two_layers(n=40_000)
    truth = raw(x, y, "cka_unbiased")
    covered = 0
    for part in range(40):
        rows = slice(200 * part, 200 * (part + 1))
        found = compared(x[rows], y[rows], "cka_unbiased", level=0.9)
        covered += (
            abs(found["cka_unbiased"] - truth)[0, 0] <= found.half_width["cka_unbiased"][0, 0]
        )
    assert covered >= 31  # .9 of 40, less two and a half standard errors


# ---- sums of batches ----------------------------------------------------------------------------


def batches(x, y, sizes):
    edges = np.cumsum([0, *sizes])
    for start, stop in pairwise(edges):
        yield {"x": x[start:stop], "y": y[start:stop]}


def test_sums_of_batches_and_merged_sums_are_those_of_all_rows():
    x, y = two_layers(offset=1000.0)
    whole = compare_representations({"x": x, "y": y}, measures=WITHOUT_ROWS)
    first, second, empty = LayerSums(), LayerSums(), LayerSums()
    for number, batch in enumerate(batches(x, y, (7, 50, 1, 62))):
        (first if number < 2 else second).update(batch)
    merged = empty.merge(first).merge(second)
    streamed = compare_representations(merged, measures=WITHOUT_ROWS)
    assert merged.n_rows == streamed.n_rows == len(x)
    for name in WITHOUT_ROWS:
        np.testing.assert_allclose(streamed.raw[name], whole.raw[name], rtol=1e-10)
        # Random bases are rotated by signs of eigenvectors, which are not unique.
        tolerance = 1e-8 if name.startswith("cka") else 0.02
        np.testing.assert_allclose(streamed.expected[name], whole.expected[name], tolerance)


def test_two_sketches_estimate_unbiased_cka_without_bias():
    x, y = two_layers(n=300, p=80, q=120)
    truth = raw(x, y, "cka_unbiased")
    found = []
    for seed in range(40):
        sums = LayerSums(sketch=16, random_state=seed).update({"x": x, "y": y})
        found.append(compare_representations(sums)["cka_unbiased"][0, 1])
    assert np.mean(found) == pytest.approx(truth, abs=4 * np.std(found) / np.sqrt(len(found)))
    assert np.std(found) < 0.15


def test_narrow_layers_are_not_sketched():
    x, y = two_layers()
    sums = LayerSums(sketch=16).update({"x": x, "y": y})
    found = compare_representations(sums, measures=WITHOUT_ROWS)
    np.testing.assert_allclose(found.raw["cka"][0, 1], raw(x, y, "cka"), rtol=1e-10)


# ---- where all layers agree ---------------------------------------------------------------------

CERTAIN = ["predictivity", "mean_correlation", "mean_squared_correlation", "pwcca"]
WIDE = [(8, 64, 64), (64, 64, 64), (65, 64, 64), (60, 128, 128), (12, 11, 2), (12, 12, 40)]


def noise(n, p, q, seed=0):
    rng = np.random.default_rng(seed)
    return {"x": rng.standard_normal((n, p)), "y": rng.standard_normal((n, q))}


@pytest.mark.parametrize("through", ["rows", "sums"])
@pytest.mark.parametrize(("n", "p", "q"), WIDE)
def test_a_measure_that_is_one_for_any_layers_is_undefined(n, p, q, through):
    layers = noise(n, p, q)
    source = layers if through == "rows" else LayerSums().update(layers)
    with pytest.warns(UserWarning, match=r"a ridge \(reg\) for the mean correlations, or cka_unb"):
        found = compare_representations(source, measures=WITHOUT_ROWS)
    frame = found.to_frame()
    for name in CERTAIN:
        assert np.isnan(found[name][0, 1])
        assert np.isnan(found.z[name][0, 1])
        assert found.raw[name][0, 1] == pytest.approx(1, abs=1e-6)
        row = frame.query(f"layer == 'x' and other == 'y' and measure == '{name}'")
        assert np.isnan(row["value"].item())
        assert np.isnan(row["z"].item())
        for shown in (str(found), found._repr_html_()):
            assert f"{name} cannot be calibrated for" in shown
    for name in ("cka", "cka_unbiased", "procrustes"):
        assert np.isfinite(found[name]).all()
        assert abs(found[name][0, 1]) < 0.5
        assert found[name][0, 0] == pytest.approx(1)
    ax = found.plot(figure="mean_correlation")
    assert np.ma.getmaskarray(ax.images[0].get_array())[0, 1]
    plt.close(ax.figure)


@pytest.mark.filterwarnings("ignore:.*calibrated")
@pytest.mark.parametrize(
    "sizes",
    [
        (5, 12, 20, 24, 33, 34, 65, 66),
        pytest.param((*range(7, 26, 2), 35, 63, 67), marks=pytest.mark.long),
    ],
    ids=str,
)
def test_figures_of_noise_stay_small_or_are_undefined_at_every_number_of_rows(sizes):
    for n in sizes:
        for p, q in ((1, 1), (4, 9), (19, 5), (32, 32), (64, 3)):
            found = compare_representations(noise(n, p, q), measures=WITHOUT_ROWS)
            for name in WITHOUT_ROWS:
                value, margin = found[name], 1 - found.expected[name]
                spread = found.deviation[name] / np.where(margin > 0, margin, np.nan)
                assert (np.isnan(value) | (spread <= 0.5)).all()
                assert not np.isinf(value).any()
                if n > p + q:
                    assert np.isfinite(value).all() or n < 12


def test_raw_measures_that_are_one_for_any_layers_say_so():
    layers = noise(60, 128, 128)
    with pytest.warns(UserWarning, match="mean_correlation is 1 for 4 of 4 pairs of layers"):
        found = compare_representations(layers, measures="mean_correlation", calibrate=False)
    assert found["mean_correlation"] == pytest.approx(1)
    assert "whatever the layers" in str(found)
    narrow = compare_representations(noise(60, 3, 3), measures="mean_correlation", calibrate=False)
    assert not narrow.notes


def test_intervals_that_leave_out_too_many_rows_are_undefined():
    layers = noise(70, 64, 64)  # 63 rows without a tenth
    with pytest.warns(UserWarning, match="no intervals where it is undefined without a tenth"):
        found = compare_representations(layers, measures="mean_correlation", level=0.9)
    assert np.isfinite(found["mean_correlation"]).all()
    assert np.isnan(found.half_width["mean_correlation"]).all()


def test_the_command_says_what_is_undefined(capsys, tmp_path):
    files = []
    for name, rows in noise(60, 128, 128).items():
        files.append(str(tmp_path / f"{name}.npy"))
        np.save(files[-1], rows)
    code, out, err = run(capsys, *files, "--measures", "mean_correlation")
    assert code == 0, err
    assert "mean_correlation cannot be calibrated for 4 of 4 pairs of layers" in out
    assert "1.000" not in out
    code, out, err = run(capsys, *files, "--measures", "mean_correlation", "--json")
    assert code == 0, err
    assert {line["value"] for line in json.loads(out)} == {None}


@pytest.mark.parametrize("measure", ["cka", "cka_unbiased"])
@pytest.mark.parametrize("value", [0.0, 0.1, 1e80])
def test_layers_without_variance_are_refused_by_every_measure(measure, value):
    layers = noise(40, 3, 3) | {"x": np.full((40, 3), value)}
    for source in (layers, LayerSums().update(layers)):
        with pytest.raises(ValueError, match="Layer 'x' has no variance"):
            compare_representations(source, measures=measure)


# ---- columns and layers of any scale ------------------------------------------------------------


def standardized(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def random_problem(seed):
    rng = np.random.default_rng(seed)
    n, p, q = int(rng.integers(30, 200)), *rng.integers(1, 9, 2)
    shared = rng.standard_normal((n, 3))
    x, y = (shared @ rng.standard_normal((3, d)) + rng.standard_normal((n, d)) for d in (p, q))
    most = rng.choice([2, 4, 6])
    return x, y, *(X * 10 ** rng.uniform(-most, most, X.shape[1]) for X in (x, y))


@pytest.mark.filterwarnings("ignore:Few rows")
@pytest.mark.parametrize(
    "seeds", [range(60), pytest.param(range(60, 260), marks=pytest.mark.long)], ids=str
)
def test_scales_of_columns_drop_no_direction(seeds):
    """Scales of columns from 1e-6 to 1e6, against CCA and plain formulas."""
    for seed in seeds:
        x, y, in_units, other_units = random_problem(seed)
        views, k = {"x": standardized(x), "y": standardized(y)}, min(x.shape[1], y.shape[1])
        rho = CCA(n_components=k).fit(views).canonical_correlations_
        X, Y = (rows - rows.mean(axis=0) for rows in (in_units, other_units))
        bases = [np.linalg.qr(rows)[0] for rows in views.values()]
        left = np.linalg.svd(bases[0].T @ bases[1])[0]
        weights = np.abs((bases[0] @ left[:, :k]).T @ X).sum(axis=1)
        fitted = bases[0] @ (bases[0].T @ Y)
        expected = {
            "mean_correlation": rho.mean(),
            "mean_squared_correlation": (rho**2).mean(),
            "pwcca": weights @ rho / weights.sum(),
            "predictivity": np.sum(fitted**2) / np.sum(Y**2),
            "procrustes": np.linalg.norm(X.T @ Y, "nuc") / np.linalg.norm(X) / np.linalg.norm(Y),
        }
        options = {"measures": list(expected), "calibrate": False}
        found = compare_representations({"x": in_units}, other={"y": other_units}, **options)
        sums = LayerSums()
        for start in range(0, len(x), 40):
            part = slice(start, start + 40)
            sums.update({"x": in_units[part], "y": other_units[part]})
        streamed = compare_representations(sums, **options)
        for name, value in expected.items():
            assert found.raw[name][0, 0] == pytest.approx(value, abs=1e-9), (seed, name)
            assert streamed.raw[name][0, 1] == pytest.approx(value, abs=1e-9), (seed, name)


def test_a_column_in_large_units_hides_no_other():
    rng = np.random.default_rng(0)
    x, wide = rng.standard_normal((100, 2)), 1e5 * rng.standard_normal(100)
    y = np.column_stack([wide, x[:, 0]])
    for name in ("mean_correlation", "mean_squared_correlation", "svcca", "pwcca"):
        if name != "svcca":  # the principal components by variance depend on units
            assert raw(y, x, name) == pytest.approx(
                raw(y / [1e5, 1], x, name), abs=1e-9 if name != "pwcca" else 1
            )
    assert raw(x, y, "mean_correlation") > 0.5


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e-80, 1e-20, 1e20, 1e80, 1e150, 1e300])
def test_the_scale_of_a_layer_changes_nothing(scale):
    x, y = two_layers()
    small, large = min(scale, 1 / scale), max(scale, 1 / scale)
    for X, Y in ((x * scale, y), (x * small, y * large), (x * scale, y * scale)):
        found = compared(X, Y, MEASURES, calibrate=False)
        sums = LayerSums()
        for start, stop in pairwise((0, 7, 57, 120)):
            sums.merge(LayerSums().update({"x": X[start:stop], "y": Y[start:stop]}))
        streamed = compare_representations(sums, measures=WITHOUT_ROWS, calibrate=False)
        for name in MEASURES:
            expected = raw(x, y, name)
            assert found.raw[name][0, 0] == pytest.approx(expected, rel=1e-9)
            if name in WITHOUT_ROWS:
                assert streamed.raw[name][0, 1] == pytest.approx(expected, rel=1e-9)
        expected = compared(x, y, "cka")
        scaled = compared(X, Y, "cka")
        assert scaled["cka"] == pytest.approx(expected["cka"], rel=1e-9)
        assert scaled.z["cka"] == pytest.approx(expected.z["cka"], rel=1e-9)


def test_batches_of_any_scale_are_one_layer():
    x, y = two_layers(offset=0.0)
    scales = np.repeat([0.0, 1e-80, 0.0, 1.0, 1e-70, 1e60], 20)[:, None]
    whole = compare_representations({"x": x * scales, "y": y}, measures="cka", calibrate=False)
    sums, parts = LayerSums(), [LayerSums() for _ in range(6)]
    for k in range(6):
        batch = {"x": (x * scales)[20 * k : 20 * k + 20], "y": y[20 * k : 20 * k + 20]}
        sums.update(batch)
        parts[k].update(batch)
    merged = LayerSums()
    for part in reversed(parts):
        merged.merge(part)
    for source in (sums, merged):
        found = compare_representations(source, measures="cka", calibrate=False)
        assert found.raw["cka"][0, 1] == pytest.approx(whole.raw["cka"][0, 1], rel=1e-9)


# ---- the table ----------------------------------------------------------------------------------


def test_a_table_lists_pairs_and_draws_a_heat_map():
    x, y = two_layers()
    found = compare_representations([x, y], measures=("pwcca", "cka"), level=0.9)
    frame = found.to_frame()
    assert list(frame["layer"][:4]) == ["layer0", "layer0", "layer1", "layer1"]
    assert (frame["low"] <= frame["value"]).all()
    row = frame.query("layer == 'layer1' and other == 'layer0' and measure == 'pwcca'")
    assert row["raw"].item() == pytest.approx(raw(y, x, "pwcca"))
    width = found.half_width["cka"][0, 1]
    for shown in (str(found), found._repr_html_()):
        assert "cka, calibrated, 90% intervals, 120 rows" in shown
        assert f"{found['cka'][0, 1]:.3f} ± {width:.3f}" in shown
    ax = found.plot(figure="cka")
    assert [text.get_text() for text in ax.get_xticklabels()] == ["layer0", "layer1"]
    np.testing.assert_array_equal(ax.images[0].get_array(), found["cka"])
    plt.close(ax.figure)
    with pytest.raises(KeyError, match="pwcca, cka"):
        found["svcca"]


def test_layers_of_two_networks_keep_their_names(tmp_path):
    x, y = two_layers()
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    found = compare_representations({"1": mapped, "2": y}, other={"1": y})
    assert (found.names, found.other) == (("1", "2"), ("1",))
    assert found["cka_unbiased"].shape == (2, 1)
    assert found["cka_unbiased"][1, 0] == pytest.approx(1)


@pytest.mark.parametrize(
    ("layers", "options", "message"),
    [
        ({"x": np.ones((9, 2, 2))}, {}, "Flatten or average"),
        ({"x": sparse.eye_array(9)}, {}, "one row per object, got"),
        ({"x": np.full((9, 2), np.nan)}, {}, "'x' contains NaN"),
        ({"x": np.ones((9, 2))}, {"measures": "svcca"}, "'x' has no variance"),
        ({"x": np.eye(9), "y": np.eye(8)}, {}, "as many rows each"),
        ({"x": np.eye(4)}, {}, "at least 5 rows"),
        ({"x": np.eye(9)}, {"measures": "rsa"}, "Unknown measure 'rsa'"),
        ({"x": np.eye(9)}, {"measures": "mutual_knn"}, "over 11 rows"),
        ({"x": np.eye(9)}, {"level": 0.9}, "need 20 rows"),
        ({"x": np.eye(9)}, {"level": 2}, "between 0 and 1"),
        ({"x": np.eye(9)}, {"reg": -1}, "reg to be a number of at least 0, got -1"),
        ({}, {}, "at least one layer"),
    ],
)
def test_errors_say_what_was_expected(layers, options, message):
    with pytest.raises(ValueError, match=message):
        compare_representations(layers, **options)


def test_sums_refuse_what_they_do_not_tell():
    x, y = two_layers(p=40)
    sums = LayerSums(sketch=4).update({"x": x, "y": y})
    with pytest.raises(ValueError, match="need rows"):
        compare_representations(sums, measures="mutual_knn")
    with pytest.raises(ValueError, match="only cka_unbiased, got cka"):
        compare_representations(sums, measures="cka")
    with pytest.raises(ValueError, match="same batches"):
        compare_representations(sums, other={"y": y})
    with pytest.raises(ValueError, match="got none: call update"):
        LayerSums().cross(0, 0)
    with pytest.raises(ValueError, match="Expected layers of widths"):
        sums.update({"x": x})
    with pytest.raises(ValueError, match="Expected sums of"):
        sums.merge(LayerSums().update({"x": x, "y": y}))


# ---- command line -------------------------------------------------------------------------------


def run(capsys, *arguments):
    try:
        code = main(["similarity", *map(str, arguments)])
    except SystemExit as end:
        code = end.code
    return code, *capsys.readouterr()


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Two networks of three layers and of one layer."""
    monkeypatch.chdir(tmp_path)
    x, y = two_layers()
    for name, rows in {"a/l10": x, "a/l2": y, "a/l9": x @ random_rotation(9), "b/l2": y}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        np.save(f"{name}.npy", rows)
    return x, y


def test_the_command_compares_folders_of_layers(capsys, folders):
    code, out, err = run(capsys, "a", "--other", "b", "--measures", "cka,pwcca", "--json")
    assert code == 0, err
    lines = json.loads(out)
    assert [line["layer"] for line in lines[:3]] == ["l2", "l9", "l10"]
    expected = compared(*folders, ("cka", "pwcca"))
    by_measure = {line["measure"]: line["value"] for line in lines if line["layer"] == "l10"}
    assert by_measure["cka"] == pytest.approx(expected["cka"][0, 0])
    assert by_measure["pwcca"] == pytest.approx(expected["pwcca"][0, 0], abs=0.02)


@pytest.mark.usefixtures("folders")
def test_the_command_prints_a_table_and_draws_it(capsys, tmp_path):
    code, out, err = run(capsys, "a", "--plot", "map.png", "--level", "0.9")
    assert code == 0, err
    assert out.startswith("cka_unbiased, calibrated, 90% intervals, 120 rows\n")
    assert "0 of 9 pairs are no more alike than unrelated layers (z < 2)" in out
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("folders")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a", "--measures", "rsa"), "unknown measure 'rsa'; choose from cka_unbiased"),
        (("a", "b"), "also in a/l2.npy; to compare two networks, name the files of the second"),
        (("empty",), "expected .npy files of layers, found none"),
        (("a/l2.npy", "--other", "none.npy"), "none.npy: expected a .npy file"),
        (("a", "--plot", "a/l2.npy"), "a/l2.npy"),
    ],
)
def test_the_command_refuses_what_it_does_not_understand(capsys, arguments, message):
    Path("empty").mkdir()
    code, _, err = run(capsys, *arguments)
    assert code
    assert message in err


# ---- real encoders ------------------------------------------------------------------------------


def test_tensors_are_taken_as_they_are():
    torch = pytest.importorskip("torch")
    x, y = two_layers()
    tensors = {"x": torch.tensor(x, requires_grad=True), "y": torch.tensor(y)}
    found = compare_representations(LayerSums().update(tensors))
    assert found["cka_unbiased"][0, 1] == pytest.approx(raw(x, y, "cka_unbiased"))


def test_the_recipe_with_hooks_sums_up_what_the_layers_return():
    torch = pytest.importorskip("torch")
    page = Path(__file__).parents[1] / "docs" / "user_guide" / "representations.rst"
    recipe = page.read_text(encoding="utf-8").rpartition(".. code-block:: python")[2]

    torch.manual_seed(0)
    names = {"LayerSums": LayerSums, "compare_representations": compare_representations}
    exec(dedent(recipe), names)
    plt.close("all")
    model, loader = names["model"], names["loader"]
    with torch.no_grad():
        first = torch.cat([model[0](tokens).mean(dim=1) for tokens in loader])
        second = torch.cat([model(tokens).mean(dim=1) for tokens in loader])
    found = compare_representations(names["sums"])["cka_unbiased"][0, 1]
    assert found == pytest.approx(raw(first.numpy(), second.numpy(), "cka_unbiased"), rel=1e-5)
    assert not model[0]._forward_hooks


@pytest.mark.needs_data("multi30k_encoders.npz")
def test_figures_of_two_encoders_are_those_computed_elsewhere():
    test = fetch_multi30k_encoders()["test"].views.select(["en_minilm", "en_wordllama"])
    published = {
        "cka": 0.7454,
        "cka_unbiased": 0.7267,
        "mean_correlation": 0.7267,  # .7261 without a column of deviation 4e-9, as elsewhere
        "procrustes": 0.743,
        "pwcca": 0.799,
        "predictivity": 0.7538,  # .7534
        "mutual_knn": 0.481,
    }
    found = compare_representations(test, measures=published)
    for name, value in published.items():
        assert found.raw[name][0, 1] == pytest.approx(value, abs=6e-4), name
    assert found["predictivity"][0, 1] == pytest.approx(0.599, abs=5e-3)  # adjusted R²
