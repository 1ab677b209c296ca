"""Every public estimator with every default: fit, transform, rank, save and load.

The estimators are read from the modules, so that a new one cannot be forgotten.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import mvcca.kernel
import mvcca.linear
from mvcca import MLCCA, RetrievalIndex, Views, evaluate_retrieval, load, save

try:
    import mvcca.deep
    from mvcca.deep.objectives import TraceNormLoss
except ImportError:  # without torch the others are still tried
    DEEP: tuple[str, ...] = ()
    REQUIRED: dict[str, Any] = {}
else:
    DEEP = tuple(mvcca.deep.__all__)
    REQUIRED = {"objective": TraceNormLoss()}  # which have no default

pytestmark = pytest.mark.filterwarnings("ignore")  # of few rows, more components than classes
MODULES = [mvcca.linear, mvcca.kernel, *([mvcca.deep] if DEEP else [])]
ESTIMATORS = {
    name: getattr(module, name)
    for module in MODULES
    for name in module.__all__
    if inspect.isclass(getattr(module, name)) and issubclass(getattr(module, name), BaseEstimator)
}
N, N_CLASSES = 90, 3


def with_defaults(cls: type, **parameters: Any) -> Any:
    known = inspect.signature(cls).parameters
    parameters |= REQUIRED
    return cls(**{name: value for name, value in parameters.items() if name in known})


def few_rows() -> tuple[Views, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.arange(N) % N_CLASSES
    Z = np.eye(N_CLASSES)[y] @ rng.normal(size=(N_CLASSES, 4)) + 0.3 * rng.normal(size=(N, 4))
    blocks = {name: 10 * Z @ rng.normal(size=(4, 6)) + 3 for name in ("image", "text")}
    return Views({n: X + rng.normal(size=X.shape) for n, X in blocks.items()}), y


def hits_of(model: Any, views: Views) -> Any:
    index = RetrievalIndex(model).add(Views({"text": views["text"]}))
    return index.search({"image": views["image"]}, target="text", k=5)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name in DEEP[1:] else ()) for name in ESTIMATORS],
)
def test_defaults_fit_transform_rank_save_and_load(name, tmp_path):
    views, y = few_rows()
    model = with_defaults(ESTIMATORS[name]).fit(views, y)
    scores = model.transform(views)
    assert {X.shape for _, X in scores.items()} == {(N, model.n_components_)}
    assert all(np.isfinite(X).all() and X.std() > 0 for _, X in scores.items())
    found, ids = hits_of(model, views)
    assert np.isfinite(found).all()
    assert (np.diff(found) <= 0).all()
    assert all(len({*row}) == 5 for row in ids)
    save(model, tmp_path / "model.mvcca")
    back = load(tmp_path / "model.mvcca")
    for n, X in back.transform(views).items():
        np.testing.assert_array_equal(X, scores[n])
    for one, other in zip(hits_of(back, views), (found, ids), strict=True):
        np.testing.assert_array_equal(one, other)


# What is computed is drawn itself: landmarks, and the triplets of stochastic gradients.
DRAWN = ("CMOLRS", "LabelRegression", "SemanticMatching", *DEEP)


@pytest.mark.parametrize("name", sorted({*ESTIMATORS} - {*DRAWN}))
def test_fits_with_defaults_are_the_same_every_time(name):
    rng = np.random.default_rng(0)
    y = np.arange(1100) % 3  # more rows than those whose median distance a kernel takes
    blocks = {name: rng.normal(size=(len(y), 12)) for name in ("image", "text")}
    blocks["image"][:, :6] += 0.3 * rng.normal(size=(3, 6))[y]
    blocks["text"][:, :6] += 0.3 * rng.normal(size=(3, 6))[y]
    blocks["text"][:, 0] += blocks["image"][:, 0]
    found = [ESTIMATORS[name]().fit(blocks, y).transform(blocks)["text"] for _ in range(2)]
    np.testing.assert_array_equal(*found)


# ---- defaults of networks learn what is planted --------------------------------------------------

OF_LABELS = {name for name in DEEP if getattr(mvcca.deep, name).requires.labels}
OF_PAIRS = [name for name in DEEP if name not in OF_LABELS]
MAP_OF_MLCCA = 0.93


def _observed(Z: np.ndarray, rng: np.random.Generator, standard: bool) -> Views:
    """Views of 20 and 15 features of 8 shared ones, with standard deviations near 10, or 1."""
    blocks = {
        name: 10 * (Z @ rng.normal(size=(8, width)) / 8**0.5 + 0.1 * rng.normal(size=(1000, width)))
        for name, width in (("image", 20), ("text", 15))
    }
    if standard:
        blocks = {n: (X - X[:800].mean(0)) / X[:800].std(0) for n, X in blocks.items()}
    return Views(blocks)


def pairs(standard: bool) -> Views:
    rng = np.random.default_rng(0)
    return _observed(rng.normal(size=(1000, 8)), rng, standard)


def classes(standard: bool) -> tuple[Views, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, 1000)
    Z = 2.5 * rng.normal(size=(10, 8))[y] + rng.normal(size=(1000, 8))
    return _observed(Z, rng, standard), y


def first_hits(model: Any, views: Views) -> list[float]:
    """Share of queries whose first hit is their own object, by direction."""
    shares = []
    for query, target in (views.names, views.names[::-1]):
        index = RetrievalIndex(model).add(Views({target: views[target]}))
        _, ids = index.search({query: views[query]}, target=target, k=1)
        shares.append(np.mean(ids[:, 0] == np.arange(len(views))))
    return shares


# Networks that CI trains; make test-long trains all, some for half a minute.
SAMPLE = {"CCAL", "DCCA", "DeepSM", "L0CCA", "MSDS", "SAM"}


def sampled(names: Iterable[str]) -> list[Any]:
    """Names of networks as values of a parameter."""
    return [pytest.param(own, marks=() if own in SAMPLE else pytest.mark.long) for own in names]


@pytest.mark.slow
@pytest.mark.parametrize("standard", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", sampled(OF_PAIRS))
def test_defaults_learn_from_pairs(name, standard):
    views = pairs(standard)
    model = with_defaults(ESTIMATORS[name], n_components=8, random_state=0)
    model.fit(views[:500])
    assert min(first_hits(model, views[800:])) >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("standard", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", sampled(sorted({*OF_LABELS, "TwoBranch"} & {*DEEP})))
def test_defaults_learn_from_labels_at_least_what_mlcca_does(name, standard):
    views, y = classes(standard)
    train, test = (views[:800], y[:800]), (views[800:], y[800:])

    def quality(model: Any) -> float:
        table = evaluate_retrieval(*test, estimator=model, measures="map", relevance="labels")
        return table.mean()["map"]

    reference = quality(MLCCA(8).fit(*train))
    assert reference == pytest.approx(MAP_OF_MLCCA, abs=0.02)
    model = with_defaults(ESTIMATORS[name], n_components=8, random_state=0)
    assert quality(model.fit(*train)) >= reference
