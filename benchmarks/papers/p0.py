"""Dorfer, Schlüter, Vall, Korzeniowski and Widmer, "End-to-End Cross-Modality Retrieval with CCA
Projections and Pairwise Ranking Loss", 2018: a CCA layer under a ranking loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline

from benchmarks.papers import plots
from benchmarks.papers import solvers as own
from benchmarks.papers.problems import CAPTIONS, mnist_halves, multi30k, nottingham
from benchmarks.papers.protocol import (
    Figure,
    Missing,
    Problem,
    Setting,
    Solver,
    Split,
    Table,
    Training,
)
from mvcca import CCA, PerView

_TRAINING = Training(max_epochs=150, patience=15, refinements=3)
_MEASURES = ("r@1", "r@5", "r@10", "mr", "mrr")
# Components and hidden layers; of Nottingham, channels of the convolutions.
_SIZES: dict[str, tuple[int, tuple[int, ...]]] = {
    "mnist-5000": (50, (256,)),
    "mnist-50000": (50, (256,)),
    "multi30k-10000": (100, (512,)),
    "captions": (50, (256,)),
    "nottingham-2000": (16, (4, 8, 16, 32)),
    "nottingham-200": (16, (4, 8, 16, 32)),
}


def _linear(n_components: int, problem: Problem) -> Solver:
    def build(setting: Setting, _: int) -> Any:
        model = CCA(**setting)
        if problem.name.startswith("nottingham"):  # 17,600 pixels
            return make_pipeline(PerView(PCA(199, random_state=0)), model)
        return model

    first = {"n_components": n_components, "reg": 1e-2}
    return Solver("CCA", build, first, {"reg": own.RIDGES})


def _deep(name: str, problem: Problem, grid: Mapping[str, Sequence[Any]]) -> Solver:
    n_components, sizes = _SIZES[problem.name]
    renders = problem.name.startswith("nottingham")

    def build(setting: Setting, seed: int) -> Any:
        from benchmarks.papers.nottingham import networks
        from mvcca import deep

        cls = getattr(deep, {"Learned": "LearnedRanking"}.get(name, name))
        if renders:
            nets = networks(n_components, sizes, seed, learned=name == "Learned")
            setting = setting | {"encoders": nets}
        if name == "CCAL":
            setting = {"memory": 0.0} | setting  # the published layer has none
        return cls(**setting, random_state=seed)

    first: Setting = {
        "n_components": n_components,
        "optimizer": "adam",
        "standardize": False,
        "batch_size": 1000,
        "learning_rate": 1e-3,
        "weight_decay": 0.0 if renders else 2e-4,
    }
    if not renders:
        first |= {"hidden_layer_sizes": list(sizes)}
    if name != "DCCA":
        first |= {"margin": 0.7 if renders else 0.5}
    batches = (50, 100) if renders else (250, 500, 1000)
    rates = (4e-3, 8e-3, 1.6e-2) if renders else (1e-3, 3e-3, 1e-2)
    grid = {"learning_rate": rates, "batch_size": batches, **grid}
    return Solver(name, build, first, grid, is_deep=True, keep=_correlations)


def _correlations(model: Any, split: Split) -> list[float]:
    """Canonical correlations of the scores of the test rows: figure 6."""
    scores = model.transform(split.test.views)
    rho = CCA(None, reg=0).fit(scores).canonical_correlations_
    return [round(float(value), 4) for value in rho]


def solvers(problem: Problem) -> list[Solver]:
    """CCA, deep CCA, learned projections and the CCA layer."""
    n_components, _ = _SIZES[problem.name]
    margins = (0.2, 0.5, 0.7)
    return [
        _linear(n_components, problem),
        _deep("DCCA", problem, {"reg": (1e-4, 1e-3, 1e-2)}),
        _deep("Learned", problem, {"margin": margins}),
        _deep("CCAL", problem, {"margin": margins, "memory": (0.0, 0.5, 0.9)}),
    ]


def _remembering(problem: Problem) -> list[Solver]:
    """The CCA layer with and without memory, at two learning rates; all else as by default."""
    n_components, sizes = _SIZES[problem.name]
    return [
        own.network(
            f"memory {memory:g}, rate {rate:g}",
            "CCAL",
            {
                "n_components": n_components,
                "hidden_layer_sizes": list(sizes),
                "standardize": "auto",
                "memory": memory,
                "learning_rate": rate,
            },
            {},
        )
        for rate in (1e-3, 5e-3)
        for memory in (0.0, 0.9)
    ]


def _rated(problem: Problem) -> list[Solver]:
    """Methods at several rates, and Corr-AE also with two weights of its codes' distance."""
    n_components, _ = _SIZES[problem.name]
    found = []
    for name, cls, rates, weights in (
        ("DCCA", "DCCA", (1e-3, 3e-3, 1e-2), (None,)),
        ("Learned", "LearnedRanking", (1e-3, 3e-3, 1e-2), (None,)),
        ("Corr-AE", "CorrAE", (3e-4, 1e-3, 3e-3), (0.8, 0.95)),
        ("Cross-Corr-AE", "CrossCorrAE", (3e-4, 1e-3, 3e-3), (0.2, 0.95)),
    ):
        for rate, weight in product(rates, weights):
            setting: Setting = {"n_components": n_components, "learning_rate": rate}
            setting |= {} if weight is None else {"correspondence": weight}
            setting["standardize"] = "auto"
            text = "" if weight is None else f", α {weight:g}"
            found.append(own.network(f"{name}, rate {rate:g}{text}", cls, setting, {}))
    return found


def _table(number: str, title: str, problems: list[Problem], **others: Any) -> Table:
    return Table(
        "p0",
        number,
        title,
        problems,
        solvers,
        _MEASURES,
        "mrr",
        training=_TRAINING,
        reference="CCAL",
        **others,
    )


TABLES = [
    _table(
        "table 2",
        "Images and texts, many pairs (IAPR TC-12)",
        [multi30k(10_000), mnist_halves(50_000)],
        published={
            "DCCA": "R@1 31.0 / 29.5, MR 3.6 / 4.0, MRR 43.9 / 42.7",
            "Learned": "R@1 22.3 / 21.6, MR 5.2 / 5.5, MRR 35.7 / 35.1",
            "CCAL": "R@1 31.6 / 29.6, MR 3.0 / 3.6, MRR 45.0 / 43.5",
        },
        remark="Other data: IAPR TC-12 has 17,000 training images.",
    ),
    _table(
        "table 3",
        "Images and texts, fewer pairs (Flickr30k)",
        [mnist_halves(5_000), CAPTIONS],
        published={
            "DCCA": "R@1 31.6 / 30.3, MR 3.3 / 3.8, MRR 44.2 / 43.1",
            "Learned": "R@1 23.7 / 23.6, MR 5.3 / 5.2, MRR 36.3 / 36.5",
            "CCAL": "R@1 32.0 / 29.9, MR 3.2 / 3.7, MRR 44.8 / 43.3",
        },
        remark="Other data: Flickr30k has 28,000 training images.",
    ),
    _table(
        "table 4",
        "Sheet music and audio",
        [nottingham(2_000)],
        published={
            "DCCA": "R@1 42.0 / 44.6, MR 2 / 2, MRR 62.2 / 63.5",
            "Learned": "R@1 40.7 / 41.4, MR 2 / 2, MRR 61.7 / 61.9",
            "CCAL": "R@1 44.1 / 44.5, MR 2 / 2, MRR 65.3 / 64.9",
        },
        remark="2,000 excerpts for 270,705, a quarter of the channels and half of the components.",
    ),
    _table(
        "table 5",
        "Sheet music and audio, a tenth of the pairs",
        [nottingham(200)],
        published={
            "DCCA": "R@1 20.0 / 22.7, MR 5 / 4, MRR 35.3 / 37.3",
            "Learned": "R@1 11.3 / 12.6, MR 12 / 12, MRR 23.0 / 23.7",
            "CCAL": "R@1 22.2 / 25.0, MR 4 / 4, MRR 38.8 / 40.4",
        },
        remark="200 excerpts for 27,000.",
    ),
    Table(
        "p0",
        "table memory",
        "What the CCA layer should remember by default (not in the paper)",
        [mnist_halves(5_000), CAPTIONS],
        _remembering,
        ("r@1", "mrr"),
        "mrr",
        training=_TRAINING,
        n_seeds=3,
        n_trials=1,
        reference="memory 0, rate 0.001",
    ),
    Table(
        "p0",
        "table rates",
        "Which learning rates should be the default (not in the paper)",
        [mnist_halves(5_000), CAPTIONS],
        _rated,
        ("r@1", "mrr"),
        "mrr",
        training=Training(max_epochs=60, patience=60),
        n_seeds=2,
        n_trials=1,
        remark="All that is not named, but for the number of epochs, is as by default.",
    ),
]
MISSING = [
    Missing("p0", "table 6", "zero-shot retrieval needs the images of CUB and Flowers"),
    Missing("p0", "table 7", "lists layers: `mvcca.deep.encoders.vgg`"),
    Missing("p0", "table 8", "lists layers: `mvcca.deep.encoders.WordCNN`, `WordCNNRNN`"),
]


def _kept(records: Mapping[str, list[Any]]) -> dict[str, list[float]] | None:
    """Canonical correlations of the scores of the test rows, by solver."""
    return {name: own[0]["kept"] for name, own in records.items() if own[0]["kept"]} or None


def _coefficients(kept: Mapping[str, list[float]]) -> str:
    shown = sorted({0, *range(9, max(map(len, kept.values())), 10)})
    lines = [f"| method | {' | '.join(f'ρ{i + 1}' for i in shown)} | sum |"]
    lines.append("|---" * (len(shown) + 2) + "|")
    for name, rho in kept.items():
        cells = [f"{rho[i]:.3f}" if i < len(rho) else "" for i in shown]
        lines.append(f"| {' | '.join([name, *cells])} | {sum(rho):.2f} |")
    return "\n".join(lines)


FIGURES = [
    Figure(
        "p0",
        "figure 6",
        f"Canonical coefficients, {table.number}",
        table,
        _kept,
        _coefficients,
        partial(plots.lines, x="component", y="canonical correlation of test rows"),
    )
    for table in TABLES[1:3]
]
