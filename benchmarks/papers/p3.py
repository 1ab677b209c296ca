"""Friedlander and Wolf, "Dynamically-Scaled Deep Canonical Correlation Analysis", 2022: DS-DCCA."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.papers import plots
from benchmarks.papers import solvers as own
from benchmarks.papers.capacity import n_parameters, widened
from benchmarks.papers.problems import MNIST, MNIST_FOLDS, mnist_halves, multi30k
from benchmarks.papers.protocol import (
    Figure,
    Missing,
    Problem,
    Setting,
    Solver,
    Table,
    Training,
    kept_by,
    mean,
)

_K = 50
_NET: Setting = {
    "n_components": _K,
    "hidden_layer_sizes": [800, 800],
    "batch_size": 750,
    "reg": 1e-4,
}
_REGS = (1e-6, 1e-4, 1e-2)
_WARM_UP = 10


def _correlated(_: Problem) -> list[Solver]:
    """The methods of tables 1 and 5."""
    net = _NET
    return [
        own.classical("CCA", own.CCA, {"n_components": _K, "reg": 1e-4}, {"reg": own.RIDGES}),
        own.approximate("FKCCA", _K, 1000),
        own.approximate("NKCCA", _K, 1000),
        own.network("DCCA", "DCCA", net, {"reg": _REGS}),
        own.network("DCCAE", "DCCAE", net | {"reconstruction": 1e-3}, {"reg": _REGS}),
        own.ncca(_K),
        own.network(
            "Soft-CCA",
            "SoftCCA",
            net | {"decorrelation": 7.5, "decay": 0.97},
            {"decorrelation": (2.5, 5.0, 7.5, 15.0), "decay": (0.9, 0.97)},
        ),
        own.network("Soft-HGR", "SoftHGR", net, {"learning_rate": (1e-3, 3e-4)}),
        own.network(
            "ℓ0-CCA",
            "L0CCA",
            net | {"gate_penalty": 0.01, "gate_sigma": 0.1},
            {"gate_penalty": (0.01, 0.1), "gate_sigma": (0.1, 0.5)},
        ),
        own.network(
            "DS-DCCA",
            "DSDCCA",
            net | {"scaling_layer_sizes": [128], "warm_up": _WARM_UP},
            {"reg": _REGS, "scaling_layer_sizes": ([128], [256, 128])},
            keep=_scales,
        ),
    ]


def _scales(model: Any, split: Any) -> dict[str, list[float]]:
    """Quantiles over the test rows of the scales of the last layer: figure 2."""
    import torch

    from mvcca.deep.layers import DynamicallyScaledLinear

    found = {}
    for name, network in model.encoders_.items():
        layer = next(m for m in network.modules() if isinstance(m, DynamicallyScaledLinear))
        caught: list[torch.Tensor] = []
        hook = layer.register_forward_hook(lambda _, given, __, to=caught: to.append(given[0]))
        with torch.no_grad():
            network(torch.as_tensor(np.asarray(split.test.views[name][:200], dtype="f4")))
            hook.remove()
            scales = layer.scales_of(caught[0])
        quantiles = np.quantile(scales.numpy(), (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99))
        found[name] = [round(float(q), 4) for q in quantiles]
    return found


_PUBLISHED = {
    "CCA": "28.88 ± .27",
    "FKCCA": "41.71 ± .07, rank 6,000",
    "NKCCA": "45.10 ± .04, rank 6,000",
    "DCCA": "46.76 ± .03",
    "DCCAE": "46.75 ± .02",
    "NCCA": "40.98 ± .12",
    "Soft-CCA": "44.55 ± .18",
    "Soft-HGR": "46.86 ± .04",
    "ℓ0-CCA": "47.17 ± .03",
    "DS-DCCA": "47.50 ± .03",
}
_CORRELATION = Table(
    "p3",
    "table 1",
    "Total correlation on seven folds",
    [MNIST_FOLDS],
    _correlated,
    ("correlation",),
    "correlation",
    rankings=("none",),
    training=Training(max_epochs=100, patience=15, monitor="correlation"),
    n_seeds=7,
    n_trials=1,
    reference="DCCA",
    published=_PUBLISHED,
    remark="MNIST halves. The first settings are those that the paper chose where it says so; "
    "kernel methods have rank 1,000 (single runs at 6,000 are in earlier.md), and DS-DCCA 10 "
    "epochs of warm-up, not 50.",
)
_SEEDS = replace(
    _CORRELATION,
    number="table 5",
    title="Total correlation of five seeds on the published split",
    problems=[MNIST],
    n_seeds=5,
    published={
        "DCCA": "46.70 ± .012 (46.72, 46.69)",
        "DCCAE": "46.71 ± .012 (46.73, 46.70)",
        "Soft-CCA": "44.59 ± .117 (44.71, 44.42)",
        "Soft-HGR": "46.81 ± .019 (46.83, 46.78)",
        "ℓ0-CCA": "47.09 ± .019 (47.12, 47.07)",
        "DS-DCCA": "47.49 ± .044 (47.56, 47.44)",
    },
)


# ---- ablations -----------------------------------------------------------------------------------

_SMALL, _SCALING = (256, 256), (64,)


def _ablations(_: Problem) -> list[Solver]:
    """The variants; all but DCCA and Global Scale have about as many parameters."""
    added = n_parameters(_SMALL[-1], _SCALING, _K * (_SMALL[-1] + 1))
    total = n_parameters(392, _SMALL, _K) + added
    of_outputs = widened(_SMALL[-1], _SCALING, _K, added)
    net = _NET | {"hidden_layer_sizes": list(_SMALL), "reg": 1e-2}
    regs = {"reg": (1e-4, 1e-2)}

    def wide(name: str, layers: tuple[int, ...]) -> Solver:
        sizes = list(widened(392, _SMALL, _K, total, layers))
        return own.network(name, "DCCA", net | {"hidden_layer_sizes": sizes}, regs)

    def scaled(name: str, keep: Any = None, **others: Any) -> Solver:
        given = {"scaling_layer_sizes": list(_SCALING), "warm_up": _WARM_UP, **others}
        return own.network(name, "DSDCCA", net | given, regs, keep=keep)

    return [
        own.network("DCCA", "DCCA", net, regs),
        wide("Wide 2", (-1,)),
        wide("Wide 1&2", (0, 1)),
        scaled("Global Scale", scaling="global"),
        scaled("scaling outputs", scaling="outputs", scaling_layer_sizes=list(of_outputs)),
        scaled("without θᶜ", scaling="generated"),
        scaled("no warm-up", warm_up=0),
        scaled("DS-DCCA", keep=_scales),
    ]


_ABLATION = Table(
    "p3",
    "table 2",
    "Parts of dynamic scaling, at equal numbers of parameters",
    [replace(mnist_halves(10_000), name="mnist-10000")],
    _ablations,
    ("correlation",),
    "correlation",
    rankings=("none",),
    training=Training(max_epochs=60, patience=15, monitor="correlation"),
    n_seeds=5,
    n_trials=2,
    reference="DS-DCCA",
    published={
        "DCCA": "46.71",
        "Wide 2": "46.90",
        "Wide 1&2": "46.86",
        "Global Scale": "46.70",
        "scaling outputs": "47.22",
        "without θᶜ": "47.42",
        "no warm-up": "47.36",
        "DS-DCCA": "47.56",
    },
    remark="10,000 images for 50,000, hidden layers of 256 for 800, scaling networks of 64.",
)


# ---- retrieval -----------------------------------------------------------------------------------


def _retrieving(problem: Problem) -> list[Solver]:
    """The methods of table 3."""
    k, hidden = (50, [256]) if problem.name.startswith("mnist") else (100, [128])
    net: Setting = {"n_components": k, "hidden_layer_sizes": hidden, "batch_size": 1024}
    rates = {"learning_rate": (1e-3, 3e-3), "batch_size": (512, 1024)}
    correlated = rates | {"reg": (1e-4, 1e-2)}
    layer = {"memory": 0.9, "margin": 0.5}
    ranked = rates | {"memory": (0.85, 0.9, 0.95), "margin": (0.4, 0.6, 0.8)}
    scaled = net | layer | {"scaling_layer_sizes": [64], "warm_up": 50, "scaling_start": "one"}
    scaled |= {"optimizer": "adam", "learning_rate": 5e-3}  # as R-CCA
    return [
        own.cca(k),
        own.approximate("FKCCA", k, 1000),
        own.approximate("NKCCA", k, 1000),
        own.network("DCCA", "DCCA", net, correlated),
        own.network("DCCAE", "DCCAE", net, correlated),
        own.ncca(k),
        own.network("Soft-CCA", "SoftCCA", net, rates | {"decorrelation": (2.5, 7.5)}),
        own.network("Soft-HGR", "SoftHGR", net, rates),
        own.network("ℓ0-CCA", "L0CCA", net, rates | {"gate_penalty": (0.01, 0.1)}),
        own.network("R-CCA", "CCAL", net | layer, ranked),
        *(
            own.network(f"DS-R, {sees}", "DSRankingCCA", scaled | {"sees": own_sees}, ranked)
            for sees, own_sees in (("z", "z"), ("x", "x"), ("z and x", "zx"))
        ),
    ]


_RETRIEVAL = Table(
    "p3",
    "table 3",
    "Retrieval with dynamic scaling",
    [mnist_halves(5_000), multi30k(10_000)],
    _retrieving,
    ("r@1", "r@5", "r@10", "mrr"),
    "mrr",
    training=Training(max_epochs=100, patience=15),
    n_seeds=5,
    n_trials=4,
    reference="R-CCA",
    published={
        "CCA": "Flickr8k R@1 27.3 / 24.5",
        "NKCCA": "27.0 / 26.5",
        "DCCA": "31.8 / 29.3",
        "R-CCA": "33.6 / 31.9",
        "DS-R, z": "33.7 / 33.1",
        "DS-R, x": "33.9 / 34.7",
        "DS-R, z and x": "35.3 / 34.4; 15 seeds (table 9): 35.6 / 33.7, of R-CCA 33.2 / 31.8",
    },
    remark="Other data: Flickr8k has 6,000 training images with vectors of words. As published, "
    "scaling starts after 50 epochs, but with scales close to 1: with the published start, small "
    "and random ones, MRR falls to a third, and training ends before it has recovered. Start, "
    "warm-up and first rate of DS-R were chosen after four fits, and two that were cut short, "
    "which looked at validation rows of seed 0, beside its trials; R-CCA had no such fits. In a "
    "first run of this table, with the published start, 10 epochs of warm-up and rates of 1e-3 "
    "and 3e-3, DS-R was behind R-CCA on halves (by 3 points by cosine, 8 by default; 3 seeds) and "
    "did not improve after its warm-up on sentences.",
)
_FIFTEEN = replace(
    _RETRIEVAL,
    number="table 9",
    title="Ranking with and without dynamic scaling, 15 seeds",
    solvers=lambda problem: [
        s for s in _retrieving(problem) if s.name in ("R-CCA", "DS-R, z and x")
    ],
    n_seeds=15,
    published={"DS-R, z and x": "Flickr8k R@1 35.6 / 33.7", "R-CCA": "33.2 / 31.8"},
    shares="p3-table-3",
)
TABLES = [_CORRELATION, _ABLATION, _RETRIEVAL, _SEEDS, _FIFTEEN]


def _of_scales(kept: Mapping[str, Any]) -> str:
    """Quantiles of the scales of the last layer over rows and weights."""
    lines = ["| view | 1 % | 10 % | 25 % | 50 % | 75 % | 90 % | 99 % |", "|---" * 8 + "|"]
    lines += [f"| {name} | {' | '.join(f'{q:.3f}' for q in own)} |" for name, own in kept.items()]
    return "\n".join(lines)


def _mrr(records: Mapping[str, list[Any]]) -> dict[str, list[float]] | None:
    """MRR of every seed, in percent."""
    return {
        name: [100 * mean(r["test"], "cosine", "mrr") for r in own_records]
        for name, own_records in records.items()
    } or None


def _extremes(values: Mapping[str, list[float]]) -> str:
    """Largest and smallest MRR over seeds."""
    lines = ["| method | largest | smallest |", "|---|---|---|"]
    lines += [f"| {name} | {max(own):.1f} | {min(own):.1f} |" for name, own in values.items()]
    return "\n".join(lines)


FIGURES = [
    *(
        Figure(
            "p3",
            "figure 2",
            f"Scales of the dynamic layer, {table.number}",
            table,
            kept_by("DS-DCCA"),
            _of_scales,
            partial(plots.spans, x="scale of a weight: 1 to 99, 10 to 90 and 25 to 75 %, median"),
        )
        for table in (_CORRELATION, _ABLATION)
    ),
    Figure("p3", "table 10", "Largest and smallest MRR over seeds", _FIFTEEN, _mrr, _extremes),
]
MISSING = [
    Missing("p3", "table 6", "the frames of XRMB cannot be had here"),
    Missing("p3", "table 7", "the features of Flickr8k cannot be had here"),
    Missing("p3", "table 8", "p-values, which stand beside the figures of tables 1, 2, 3 and 9"),
]
