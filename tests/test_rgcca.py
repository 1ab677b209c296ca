"""RGCCA: R's figures, what it equals with no limits, and what it refuses."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.pipeline import make_pipeline

from benchmarks.real import data_home
from mvcca import CCA, GCCA, MVCCA, PLS, RGCCA, SparseDiscriminant, Views
from mvcca.compose import Deconfound
from mvcca.statistics import Moments

C = [[0, 0, 1], [0, 0, 1], [1, 1, 0]]  # the third view is linked to the first two


def russett():
    data = np.load(data_home() / "russett.npz")
    table = pd.DataFrame(data["X"], columns=data["names"])
    blocks = {
        "agriculture": ["gini", "farm", "rent"],
        "industry": ["gnpr", "labo"],
        "politics": ["inst", "ecks", "death", "demostab", "dictator"],
    }
    return {name: table[columns] for name, columns in blocks.items()}


def planted(n=150, widths=(12, 9, 7), seed=0):
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((n, 3))
    return {
        f"view {i}": rng.standard_normal((n, p)) + shared @ rng.standard_normal((3, p)) + i
        for i, p in enumerate(widths)
    }


def inner_ave(model, views, design):
    """Mean squared correlation of the scores of linked views, R's AVE_inner."""
    scores = [own[:, 0] for own in model.transform(views).values()]
    R = np.corrcoef(scores)
    pairs = [(j, k) for j in range(len(R)) for k in range(j) if design[j][k]]
    return np.mean([R[pair] ** 2 for pair in pairs])


# ---- figures of R --------------------------------------------------------------------------------

FULL = np.ones((3, 3)) - np.eye(3)
FIGURES = {
    "covariances": (
        RGCCA(design=C),
        [0.65978120, 0.74536995, 0.09545892],
        0.385888321779,
        0.707564194690,
    ),
    "centroid": (
        RGCCA(design=FULL, tau=0.5, scheme="centroid"),
        [0.68395855, 0.88067901, -0.21501844],
        0.310790586195,
        2.488568867253,
    ),
    "horst, correlations": (
        RGCCA(design=C, tau=0.0, scheme="horst"),
        [1.88446774, -3.53214764, 1.39905764],
        0.482796494055,
        2.771237538220,
    ),
    "estimated tau": (
        RGCCA(design=C, tau="auto"),
        [0.48505707, 1.32682896, -0.63393528],
        0.432362976283,
        1.512905416739,
    ),
}


@pytest.mark.needs_data("russett.npz")
@pytest.mark.parametrize("start", ["columns", "svd", "own"])
@pytest.mark.parametrize(("model", "weights", "ave", "objective"), FIGURES.values(), ids=FIGURES)
def test_rgcca_of_russetts_countries(model, weights, ave, objective, start):
    views = russett()
    model = RGCCA(**{**model.get_params(), "start": start}).fit(views)
    found = model.sparse_weights_["agriculture"][:, 0]
    assert_allclose(found * np.sign(found[0] * weights[0]), weights, atol=5e-9)
    assert inner_ave(model, views, model.design) == pytest.approx(ave, abs=5e-13)
    assert model.objective_[0] == pytest.approx(objective, abs=5e-13)
    if model.tau == "auto":
        expected = [0.0885321611557, 0.0270325565573, 0.0842256628703]
        assert_allclose(list(model.tau_.values()), expected, atol=5e-13)


@pytest.mark.needs_data("russett.npz")
def test_rgcca_with_a_superblock_of_russetts_countries():
    views = russett()
    model = RGCCA(superblock=True, tau=0.0).fit(views)
    assert model.objective_[0] == pytest.approx(4.519879700653, abs=5e-13)
    assert model.objective_[0] / 6 == pytest.approx(0.753313283442, abs=5e-13)  # AVE_inner


@pytest.mark.needs_data("russett.npz")
def test_sgcca_of_russetts_countries():
    views = russett()
    l1 = dict(zip(views, (0.8, 0.8, 0.7), strict=True))
    model = RGCCA(l1=l1, design=C).fit(views)
    weights = model.sparse_weights_["politics"][:, 0]
    expected = [0, 0.02618751, 0.24978197, -0.87464358, 0.41463452]
    assert_allclose(weights * np.sign(weights[1]), expected, atol=5e-9)
    assert inner_ave(model, views, C) == pytest.approx(0.400553109975, abs=5e-13)
    assert model.selected_["politics"][0].tolist() == ["ecks", "death", "demostab", "dictator"]


@pytest.mark.needs_data("nutrimouse.npz")
def test_pma_of_lipids_and_genes():
    data = np.load(data_home() / "nutrimouse.npz")
    views = {"lipid": data["lipid"], "gene": data["gene"]}
    options = {"scheme": "horst", "deflation": "pmd", "scale_views": False}
    model = RGCCA(2, l1=0.7, start="svd", **options).fit(views)
    assert_allclose(39 * model.objective_ / 2, [312.268664, 288.973566], atol=5e-7)
    x, y = model.transform(views).values()
    correlations = [np.corrcoef(x[:, i], y[:, i])[0, 1] for i in range(2)]
    assert_allclose(correlations, [0.7060628, 0.7405662], atol=5e-8)
    counts = [[len(own) for own in names] for names in model.selected_.values()]
    assert counts == [[13, 19], [83, 92]]

    of_few = RGCCA(2, l1=0.3, start="svd", **options).fit(views)
    assert_allclose(39 * of_few.objective_ / 2, [104.188385, 115.447744], atol=5e-7)
    x, y = of_few.transform(views).values()
    assert np.corrcoef(x[:, 0], y[:, 0])[0, 1] == pytest.approx(0.8802204, abs=1e-6)
    columns = RGCCA(2, l1=0.3, **options).fit(views)  # find the larger one first
    assert_allclose(39 * columns.objective_ / 2, [115.447744, 104.188385], atol=5e-7)


# ---- without limits ------------------------------------------------------------------------------


def assert_same_up_to_sign(found, expected, tolerance=1e-10):
    for name, W in expected.items():
        signs = np.sign((found[name] * W).sum(axis=0))
        scale = np.abs(W).max(axis=0)
        assert_allclose(found[name] * signs / scale, W / scale, atol=tolerance)


@pytest.mark.parametrize("scale", [True, False])
def test_covariances_of_two_views_are_those_of_pls(scale):
    views = planted(widths=(12, 9))
    found = RGCCA(4, scale=scale, scale_views=False).fit(views)
    expected = PLS(4, algorithm="canonical", scale=scale).fit(views)
    assert_same_up_to_sign(found.weights_, expected.weights_)
    assert_allclose(np.sqrt(found.objective_ / 2), expected.eigenvalues_, rtol=1e-10)


def test_correlations_of_two_views_are_those_of_cca():
    views = planted(widths=(12, 9))
    found, expected = RGCCA(4, tau=0.0).fit(views), CCA(4).fit(views)
    assert_same_up_to_sign(found.weights_, expected.weights_)
    correlations = expected.canonical_correlations_
    assert_allclose(np.sqrt(found.objective_ / 2), correlations, rtol=1e-10)


def test_a_superblock_with_correlations_is_generalized_cca():
    views = planted()
    found, expected = RGCCA(3, tau=0.0, superblock=True).fit(views), GCCA(3, reg=0).fit(views)
    assert_same_up_to_sign(
        {n: U / U.std(axis=0) for n, U in found.transform(views).items()},
        {n: U / U.std(axis=0) for n, U in expected.transform(views).items()},
        1e-8,
    )
    assert_allclose(found.objective_ / 2, expected.eigenvalues_, rtol=1e-10)


def test_the_first_component_of_three_views_is_near_that_of_mvcca():
    views = planted()
    found = RGCCA(tau=0.0, scheme="horst").fit(views)
    scores = np.array([own[:, 0] for own in found.transform(views).values()])
    best = MVCCA(1, reg=0).fit(views).transform(views).values()
    others = np.array([own[:, 0] / own.std(ddof=1) for own in best])
    # RGCCA's scores have unit variance each, which those of MVCCA have on average.
    assert (np.corrcoef(scores).sum() - 3) >= np.corrcoef(others).sum() - 3 - 1e-12


# ---- rows, however they come ---------------------------------------------------------------------

MODELS = {
    "count": RGCCA(2, n_features=4),
    "by component": RGCCA(2, n_features=(3, 5), deflation="weights"),
    "l1": RGCCA(2, l1=0.6, scheme="centroid"),
    "shrunk": RGCCA(2, n_features=4, shrink=True, start="svd"),
    "least angles": RGCCA(2, tau=0.3, n_features=4),
    "ridge": RGCCA(2, tau=0.3, design=C),
    "superblock": RGCCA(2, tau=0.5, superblock=True),
    "columns as they are": RGCCA(2, n_features=4, scale=False, scale_views=False),
}


@pytest.mark.filterwarnings("ignore:Unlike units")
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_batches_moments_files_and_sparse_rows_are_the_rows(model, tmp_path):
    views = planted()
    expected = model.fit(views).weights_
    cuts = Views(views)[:33], Views(views)[33:]
    batches = RGCCA(**model.get_params())
    for part in cuts:
        batches.partial_fit(part)
    moments = Moments.of(cuts[0]) + Moments.of(cuts[1])
    paths = {}
    for name, X in views.items():
        np.save(paths.setdefault(name, tmp_path / f"{name}.npy"), X)
    files = {name: np.load(path, mmap_mode="r") for name, path in paths.items()}
    sparse = {name: sp.csr_array(X) for name, X in views.items()}
    again = RGCCA(**model.get_params())
    others = [
        batches.weights_,
        again.fit_statistic(moments).weights_,
        RGCCA(**model.get_params()).fit(files).weights_,
        RGCCA(**model.get_params()).fit(sparse).weights_,
    ]
    for found in others:
        for name, W in expected.items():
            assert_allclose(found[name], W, atol=1e-10 * np.abs(W).max())


def test_weights_of_rows_are_repeated_rows():
    views, weights = planted(), np.random.default_rng(1).integers(0, 4, 150)
    repeated = Views(views)[np.repeat(np.arange(150), weights)]
    found = RGCCA(2, n_features=4).fit(views, sample_weight=weights)
    expected = RGCCA(2, n_features=4).fit(repeated)
    for name, W in expected.weights_.items():
        assert_allclose(found.weights_[name], W, atol=1e-10 * np.abs(W).max())
    both = RGCCA(tau="auto"), RGCCA(tau="auto")
    both[0].fit(views, sample_weight=weights)
    both[1].fit(repeated)
    assert both[0].tau_ == pytest.approx(both[1].tau_, rel=1e-10)


def test_confounds_are_residuals():
    views, z = planted(), np.random.default_rng(2).standard_normal((150, 2))
    blocks = {name: X + z @ np.ones((2, X.shape[1])) for name, X in views.items()}
    model = RGCCA(2, n_features=4, confounds="z").fit({**blocks, "z": z})
    Z = np.column_stack([np.ones(150), z])
    residuals = {n: X - Z @ np.linalg.lstsq(Z, X, rcond=None)[0] for n, X in blocks.items()}
    expected = RGCCA(2, n_features=4).fit(residuals)
    for name, W in expected.weights_.items():
        assert_allclose(model.weights_[name], W, atol=1e-10 * np.abs(W).max())
    scores = model.transform({**blocks, "z": z})
    for name, own in expected.transform(residuals).items():
        assert_allclose(scores[name], own, atol=1e-9)


@pytest.mark.parametrize("missing", ["pairwise", "em"])
def test_cells_may_be_missing(missing):
    views, rng = planted(n=400), np.random.default_rng(3)
    complete = RGCCA(n_features=4).fit(views)
    holed = {n: np.where(rng.random(X.shape) < 0.05, np.nan, X) for n, X in views.items()}
    model = RGCCA(n_features=4, missing=missing).fit(holed)
    for name, W in complete.sparse_weights_.items():
        assert np.abs(model.sparse_weights_[name][:, 0] @ W[:, 0]) > 0.9
    assert np.isfinite(model.transform(holed)["view 0"]).all()


# ---- what holds of every fit ---------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_columns_may_change_places(model):
    views, rng = planted(), np.random.default_rng(4)
    orders = {name: rng.permutation(X.shape[1]) for name, X in views.items()}
    moved = {name: X[:, orders[name]] for name, X in views.items()}
    expected, found = model.fit(views).weights_, RGCCA(**model.get_params()).fit(moved).weights_
    for name, W in expected.items():
        assert_allclose(found[name], W[orders[name]], atol=1e-8 * np.abs(W).max())


@pytest.mark.parametrize("tau", [1.0, 0.3])
def test_deflated_scores_are_uncorrelated(tau):
    views = planted()
    scores = RGCCA(4, tau=tau, n_features=4).fit(views).transform(views)
    for own in scores.values():
        assert_allclose(np.corrcoef(own, rowvar=False), np.eye(4), atol=1e-12)


def test_sparse_weights_have_as_many_features_as_asked():
    n_features = {"view 0": (3, 2), "view 1": 4, "view 2": None}
    model = RGCCA(2, n_features=n_features).fit(planted())
    counts = {n: [len(own) for own in names] for n, names in model.selected_.items()}
    assert counts == {"view 0": [3, 2], "view 1": [4, 4], "view 2": [7, 7]}


def test_constant_columns_are_never_selected():
    views = {name: np.array(X) for name, X in planted().items()}
    for X in views.values():
        X[:, 2] = 5.0
    for model in MODELS.values():
        found = RGCCA(**model.get_params()).fit(views).weights_
        assert all((W[2] == 0).all() and np.isfinite(W).all() for W in found.values())


def test_units_of_columns_do_not_matter():
    views, rng = planted(), np.random.default_rng(5)
    factors = {name: 10.0 ** rng.integers(-6, 7, X.shape[1]) for name, X in views.items()}
    scaled = {name: X * factors[name] for name, X in views.items()}
    expected = RGCCA(2, n_features=4).fit(views).transform(views)
    found = RGCCA(2, n_features=4).fit(scaled).transform(scaled)
    for name, own in expected.items():
        assert_allclose(found[name], own, atol=1e-9)


def test_more_components_than_views_share_are_not_made_up():
    rng = np.random.default_rng(6)
    x = rng.standard_normal((50, 3))
    with pytest.warns(UserWarning, match="n_components=5 is more than these data have; fitted 3"):
        model = RGCCA(5).fit([x, x @ rng.standard_normal((3, 6))])
    assert model.n_components_ == 3


@pytest.mark.parametrize("deflation", ["scores", "weights"])
@pytest.mark.parametrize("limits", [{}, {"scheme": "horst"}, {"n_features": 2}])
@pytest.mark.parametrize("tau", [0.0, 1e-3, 0.2, 1.0])
def test_components_end_with_the_narrowest_view(tau, limits, deflation):
    if limits.get("n_features") and tau == 0:
        limits = {}  # selected features of a singular covariance are refused
    with pytest.warns(UserWarning, match="n_components=4 is more than these data have; fitted 2"):
        RGCCA(4, tau=tau, deflation=deflation, **limits).fit(planted(80, (9, 8, 2)))


def test_components_that_tell_classes_apart_end_with_the_narrowest_view():
    views = planted(80, (9, 8, 2))
    labels = (views["view 0"][:, 0] > 0) + 2 * (views["view 1"][:, 0] > 1)
    with pytest.warns(UserWarning, match="fitted 2"):
        found = SparseDiscriminant(4, n_features=2).fit(views, labels)
    assert [len(own) for own in found.selected_.values()] == [2, 2, 2]


@pytest.mark.parametrize("tau", [0.0, 0.3, 1.0])
def test_weights_are_orthogonal_where_weights_are_removed(tau):
    views = {name: X * np.logspace(0, 1, X.shape[1]) for name, X in planted().items()}
    model = RGCCA(4, tau=tau, deflation="weights", scale=False).fit(views)
    for W in model.weights_.values():
        W = W / np.linalg.norm(W, axis=0)
        assert_allclose(W.T @ W, np.eye(4), atol=1e-10)


WRONG = {
    "l1 below the least": (RGCCA(l1=0.1), r"l1 of view 'view 0' with 12 features must be from"),
    "l1 and a count": (RGCCA(l1=0.9, n_features=3), "Give either n_features or l1"),
    "signs and tau": (RGCCA(positive=True, tau=0.5), "positive needs tau=1, got tau=0.5"),
    "l1 and tau": (RGCCA(l1=0.9, tau=0.5), "l1 needs tau=1, got tau=0.5"),
    "too few counts": (RGCCA(2, n_features=[3]), "has 1 numbers, one for each component"),
    "no count": (RGCCA(n_features=[0]), "whole numbers from 1 up, got 0"),
    "one matrix": (RGCCA(design=[[0, 1], [1, 0]]), "a row and a column for each of the 3 views"),
    "no symmetry": (RGCCA(design=[[0, 1, 1], [0, 0, 1], [1, 1, 0]]), "symmetric"),
    "no link": (RGCCA(design=[[0, 1, 0], [1, 0, 0], [0, 0, 0]]), r"no other view to \['view 2'\]"),
    "design of all": (RGCCA(design=C, superblock=True), "leave design out"),
    "pmd": (RGCCA(deflation="pmd"), r"no superblock, got \['view 0', 'view 1', 'view 2'\]"),
    "pmd of a superblock": (
        RGCCA(2, deflation="pmd", superblock=True),
        "takes 2 views and no superblock, got superblock=True",
    ),
    "tau by name": (RGCCA(tau={"view 0": 1}), "tau names the views"),
    "confounded tau": (RGCCA(tau="auto", confounds="view 2"), 'tau="auto" looks at the rows'),
}


@pytest.mark.parametrize(("model", "message"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_is_refused(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(planted())


@pytest.mark.parametrize("limit", [{}, {"n_features": 3}, {"l1": 0.5}], ids=repr)
def test_weights_that_must_not_be_negative_are_the_best_such(limit):
    rng, views = np.random.default_rng(0), planted(widths=(6, 5))
    model = RGCCA(positive=True, scheme="horst", **limit).fit(views)
    x, y = (own[:, 0] for own in model.sparse_weights_.values())
    assert min(x.min(), y.min()) >= 0
    S = np.corrcoef(*views.values(), rowvar=False)[:6, 6:]
    found = x @ S @ y
    assert found > 0.1
    free = RGCCA(scheme="horst", **limit).fit(views)
    assert found <= free.objective_[0] / 2 * np.sqrt(30) + 1e-12  # views count by 1 / √p
    for _ in range(3_000):  # no such weights do better
        u, v = (np.maximum(rng.standard_normal(p), 0) for p in (6, 5))
        u, v = np.maximum(S @ v, 0) if not limit else u, v
        if not (u.any() and v.any()):
            continue
        count = limit.get("n_features")
        for w in (u, v) if count else ():
            w[np.argsort(-w)[count:]] = 0
        u, v = u / np.linalg.norm(u), v / np.linalg.norm(v)
        if "l1" in limit and (u.sum() > 0.5 * np.sqrt(6) or v.sum() > 0.5 * np.sqrt(5)):
            continue
        assert u @ S @ v <= found + 1e-9


def test_views_that_share_nothing_positive_are_refused():
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((100, 1))
    views = {"x": shared + 0.1 * rng.standard_normal((100, 3)), "y": -shared}
    with pytest.raises(ValueError, match="no positive covariance with the views"):
        RGCCA(positive=True, scheme="horst").fit(views)
    only_x = RGCCA(positive={"x": True, "y": False}, scheme="horst").fit(views)
    assert only_x.sparse_weights_["x"].min() > 0 > only_x.sparse_weights_["y"].max()


def test_ties_at_the_largest_covariance_refuse_a_small_l1():
    x = np.random.default_rng(7).standard_normal((40, 1))
    views = [np.hstack([x] * 4 + [x**2]), np.hstack([x, x**3])]
    with pytest.raises(ValueError, match="4 features share the largest covariance"):
        RGCCA(l1=0.75).fit(views)


def test_estimated_tau_needs_all_rows():
    with pytest.raises(ValueError, match='tau="auto" looks at all rows at once'):
        RGCCA(tau="auto").partial_fit(planted())
    with pytest.raises(ValueError, match='tau="auto" looks at single rows'):
        RGCCA(tau="auto").fit_statistic(Moments.of(Views(planted())))


def test_estimated_tau_is_that_of_residuals_after_a_step_that_removes_confounds():
    views, z = planted(widths=(12, 9)), np.random.default_rng(2).standard_normal((150, 1))
    mixed = {name: X + z for name, X in views.items()} | {"z": z}
    with pytest.raises(ValueError, match=r"put compose\.Deconfound before it in a pipeline"):
        RGCCA(tau="auto", confounds="z").fit(mixed)
    model = make_pipeline(Deconfound("z"), RGCCA(tau="auto")).fit(mixed)[-1]
    Z = np.column_stack([np.ones(150), z])
    residuals = {n: mixed[n] - Z @ np.linalg.lstsq(Z, mixed[n], rcond=None)[0] for n in views}
    assert model.tau_ == pytest.approx(RGCCA(tau="auto").fit(residuals).tau_, rel=0.02)


@pytest.mark.parametrize("tau", [0.0, 0.5, 1.0])
def test_a_view_of_one_column_has_one_component(tau):
    views = planted()
    name = next(iter(views))
    views[name] = views[name][:, :1]
    with pytest.warns(UserWarning, match="n_components=2 is more than"):
        model = RGCCA(2, tau=tau).fit(views)
    assert model.n_components_ == 1
