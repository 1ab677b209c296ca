"""Every deep method finds what is planted: where linear CCA does, and where it cannot."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import mvcca.deep  # noqa: E402
from mvcca import CCA, Views, evaluate_retrieval  # noqa: E402
from mvcca.deep.functional import info_nce  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Batches of")


def contrast(scores, batch):  # noqa: ARG001, the signature of objectives
    return info_nce(*scores.values(), temperature=0.1)


# Views, networks and epochs are small, and learning rates large to match: 6 steps an epoch.
TRAINED = {
    "batch_size": 100,
    "learning_rate": 1e-2,
    "optimizer": "adam",
    "weight_decay": 0.0,
    "random_state": 0,
}
NET = {"hidden_layer_sizes": (64,), "max_epochs": 30, **TRAINED}
LONG = NET | {"max_epochs": 80}
RANDOM = NET | {"start": "random"}
K = 5
METHODS = {
    "DCCA": {"n_components": K, **RANDOM},
    "DCCAE": {"n_components": K, **RANDOM},
    "DSDCCA": {"n_components": K, "warm_up": 20, "scaling_layer_sizes": (8,), **NET},
    "L0CCA": {"n_components": K, "gate_penalty": 0.01, "gate_sigma": 0.1, **NET},
    "SoftCCA": {"n_components": K, **RANDOM},
    "SoftHGR": {"n_components": K, **RANDOM},
    "EncoderCCA": {"n_components": K, "objective": contrast, **RANDOM},
    "CorrNet": {"n_components": 48, **TRAINED, "max_epochs": 100},
    "LearnedRanking": {"n_components": 16, **RANDOM},
    "CCAL": {"n_components": K, **RANDOM},
    "CLIP": {"n_components": 16, "dropout": 0.0, **RANDOM},
    "DSRankingCCA": {"n_components": K, "warm_up": 20, "scaling_layer_sizes": (8,), **NET},
    "TwoBranch": {"n_components": 16, "dropout": 0.0, **RANDOM},
    "DeViSE": {**TRAINED, "max_epochs": 150, "learning_rate": 3e-2},
    "SAM": {"n_components": 16, "dropout": 0.0, "margin": 0.3, "margins": "fixed", **LONG},
    "MSDS": {"n_components": 16, "n_negatives": 20, "gamma": 10.0, **RANDOM},
    "CorrAE": {"n_components": 16, "correspondence": 0.95, **LONG},
    "CrossCorrAE": {"n_components": 16, "correspondence": 0.9, **LONG},
    "ACMR": {"n_components": 8, **NET},
    "CMDN": {"n_components": 8, "width": 64, "pretraining_epochs": 30, "max_epochs": 30, **TRAINED},
    "CCL": {"n_components": 8, **LONG},
    "DeepSM": NET,
}
OF_CLASSES = {"ACMR", "CMDN", "CCL", "DeepSM"}  # which learn to find the class, not the object
LINEAR = {"DeViSE"}
# CMDN's first stages reconstruct views and see no other. Its fits of 30 epochs find .76 to .92, and
# rounding on another processor makes one fit another: the mean of three is judged.
LEAST = {"CMDN": 0.75}  # others 0.9
SEEDS = {"CMDN": (0, 1, 2)}  # others one


def linear_relation(n, seed):
    """Noisy linear maps of the same latent vector, and the class of its prototype."""
    fixed = np.random.default_rng(7)
    A, B = fixed.standard_normal((5, 8)), fixed.standard_normal((5, 7))
    prototypes = 2 * fixed.standard_normal((4, 5))
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, n)
    Z = prototypes[y] + rng.standard_normal((n, 5))
    blocks = {"image": Z @ A, "text": Z @ B}
    return Views({k: X + 0.05 * rng.standard_normal(X.shape) for k, X in blocks.items()}), y


def nonlinear_relation(n, seed):
    """Waves of the same latent vector in other directions, which are hardly correlated."""
    A, B = (np.random.default_rng(s).standard_normal((2, 3)) for s in (1, 2))
    Z = np.random.default_rng(seed).uniform(-1, 1, (n, 2))
    blocks = {
        name: np.hstack([np.cos(3 * Z @ W), np.sin(3 * Z @ W)])
        for name, W in (("image", A), ("text", B))
    }
    return Views(blocks), 2 * (Z[:, 0] > 0) + (Z[:, 1] > 0)


def trained(name, views, y, **options):
    if name not in OF_CLASSES:  # every object is a separate class
        y = np.arange(len(views))
    return getattr(mvcca.deep, name)(**METHODS[name] | options).fit(views, y)


def recall(model, views, y, name):
    relevance = "labels" if name in OF_CLASSES else "pairs"
    table = evaluate_retrieval(views, y, estimator=model, measures="r@1", relevance=relevance)
    return table.mean()["r@1"]


def test_no_method_is_forgotten():
    assert set(METHODS) == set(mvcca.deep.__all__)


QUICK = {"DCCA", "TwoBranch", "DeepSM"}  # of pairs, of a ranking, of classes
SELDOM = [pytest.mark.slow, pytest.mark.long]
# CMDN trains in stages; the others differ from DCCA, CCAL or CorrAE by a term or a layer.
TWINS = {"CMDN", "DCCAE", "DSDCCA", "L0CCA", "DSRankingCCA", "CrossCorrAE"}


def linear_marks(name):
    """What finds waves finds lines: CI tries the harder relation where a method has both."""
    return () if name in QUICK else pytest.mark.slow if name in LINEAR else SELDOM


@pytest.mark.parametrize("name", [pytest.param(n, marks=linear_marks(n)) for n in METHODS])
def test_the_first_of_nine_lists_in_ten_is_right_where_linear_cca_does_as_well(name):
    (train, y), (test, classes) = linear_relation(600, 1), linear_relation(60, 2)
    assert recall(CCA(5).fit(train), test, classes, name) >= 0.9
    models = [trained(name, train, y, random_state=seed) for seed in SEEDS.get(name, (0,))]
    found = [recall(model, test, classes, name) for model in models]
    assert np.mean(found) >= LEAST.get(name, 0.9), found


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=SELDOM if n in TWINS else pytest.mark.slow)
        for n in sorted(METHODS.keys() - LINEAR)
    ],
)
def test_networks_find_what_linear_cca_cannot(name):
    (train, y), (test, classes) = nonlinear_relation(600, 1), nonlinear_relation(60, 2)
    model = trained(name, train, y)
    linear = recall(CCA(5).fit(train), test, classes, name)
    assert recall(model, test, classes, name) > linear + 0.1
