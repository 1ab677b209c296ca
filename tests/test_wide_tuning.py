"""Settings of CCA of wide views are chosen by products as they are by matrices."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from sklearn.base import clone

from mvcca import CCA, MVCCA, RetrievalIndex
from mvcca.model_selection import tuning
from mvcca.problem import route as routing
from mvcca.problem.route import components_to_search
from mvcca.problem.rows import Rows
from mvcca.views import Views

N, K = 100, 4
RIDGES = (1e-4, 0.3, 1.0, 10.0)
FACTORS = np.random.default_rng(0).random((N, 6)) * 2.0 ** -np.arange(6)
LABELS = (FACTORS[:, 0] > 0.5) + 2 * (FACTORS[:, 1] > 0.25)


@pytest.fixture
def views():
    """Sparse counts that share a few factors, wider than high."""
    rng = np.random.default_rng(0)
    return {
        name: csr_array(rng.poisson(3 * FACTORS @ rng.random((6, width)) ** 8).astype(float))
        for name, width in {"x": 170, "y": 150, "z": 130}.items()
    }


@pytest.fixture
def by_products(monkeypatch):
    """Search by products, with up to `K` components, and count what they solve."""
    monkeypatch.setattr(routing, "WIDE", 0)
    monkeypatch.setattr("mvcca.base.statistic_estimator.WIDE", 0)
    monkeypatch.setattr(routing, "cheapest", lambda found: found["operator"])
    monkeypatch.setattr(tuning, "components_to_search", lambda rows, _: rows.n_components or K)


@pytest.fixture(autouse=True)
def _few_ridges(monkeypatch):
    monkeypatch.setattr(tuning, "RIDGES", RIDGES)


@pytest.mark.parametrize(
    ("names", "goal", "scale"),
    [
        ("xy", "object", False),
        ("xy", "class", False),
        ("xy", "correlation", True),  # deviations of folds, where matrices take those of all rows
        ("xyz", "object", False),
    ],
)
def test_folds_choose_what_they_choose_by_matrices(names, goal, scale, views, request):
    views = {name: views[name] for name in names}
    method = CCA if len(names) == 2 else MVCCA
    y = LABELS if goal == "class" else None
    weights = 1 + np.arange(N) % 2
    model = method(K, reg="cv", cv_goal=goal, scale=scale)
    other = clone(model).fit(views, y, weights)
    request.getfixturevalue("by_products")
    model.fit(views, y, weights)
    assert model.reg_ == other.reg_
    assert model.ranking_ == other.ranking_
    assert model.scale_ == other.scale_
    for name in names:
        assert_allclose(
            model.weights_[name],
            other.weights_[name],
            atol=1e-3 * np.abs(other.weights_[name]).max(),
        )
    values, expected = (
        {
            (own.get("scale"), own["reg"], own["ranking"], own["n_components"]): value
            for own, value in zip(results["params"], results["mean_test_score"], strict=True)
        }
        for results in (model.cv_results_, other.cv_results_)
    )
    assert values.keys() <= expected.keys()
    assert {reg for _, reg, _, _ in values} == {*RIDGES[1:]}  # the smallest fits noise
    atol = 0.03 if scale else 0.02  # ranks of near ties
    assert_allclose(list(values.values()), [expected[key] for key in values], atol=atol)


@pytest.mark.usefixtures("by_products")
def test_a_search_of_all_components_ends_with_few_and_its_model_retrieves(views):
    model = CCA(None, reg="cv").fit({name: views[name] for name in ("x", "y")})
    assert model.n_components_ == K
    index = RetrievalIndex(model).add({name: views[name] for name in ("x", "y")})
    _, found = index.search({"x": views["x"][:20]}, target="y", k=1)
    assert (np.asarray(found).ravel() == np.arange(20)).mean() > 0.2  # one of 160


def test_long_searches_and_large_matrices_take_products(monkeypatch):
    rng = np.random.default_rng(0)
    rows = csr_array((rng.random((2_000, 3)).ravel(), rng.integers(0, 9_000, 6_000),
                      np.arange(0, 6_001, 3)), shape=(2_000, 9_000))  # fmt: skip
    wide = Rows(Views({"x": rows, "y": rows}))
    narrow = Rows(Views({"x": rows[:, :400], "y": rows[:, :400]}))
    assert components_to_search(narrow, 9) is None
    assert components_to_search(wide, 9) is None  # matrices serve all ridges
    assert components_to_search(wide, 1) == routing._MOST_SEARCHED
    monkeypatch.setattr(routing, "available_bytes", lambda: 1e8)
    assert components_to_search(wide, 9) == routing._MOST_SEARCHED
    assert components_to_search(narrow, 9) is None
