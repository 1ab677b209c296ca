"""Semedo and Magalhães, "Cross-Modal Subspace Learning with Scheduled Adaptive Margin Constraints",
ACM MM 2019: SAM.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from benchmarks.papers import plots
from benchmarks.papers import solvers as own
from benchmarks.papers.problems import CAPTIONS, SPOKEN_DIGITS, wikipedia
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

_TRAINING = Training(max_epochs=100, patience=100, monitor="map")
_RATES = (3e-4, 1e-3, 3e-3)
_SAM: Setting = {
    "n_components": 200,
    "optimizer": "sgd",
    "learning_rate": 5e-3,
    "margin": 1.0,
    "sample_share": 0.05,
    "midpoint": 0.4,
}
_SAM_RATES = (2e-3, 5e-3, 2e-2)
_SHOWN = 10  # categories in figures 5 and 6, of the 80 of captions


def _margins(model: Any, _: Any) -> dict[str, Any]:
    """Margins by epoch, and those of the categories: figures 4 to 6."""
    by_epoch, by_category = model.history_, np.asarray(model.category_margins_by_epoch_)
    return {
        "margin": [round(float(value), 4) for value in by_epoch["margin"]],
        "adaptation": [round(float(value), 4) for value in by_epoch["adaptation"]],
        "categories": np.round(by_category[:, :_SHOWN, :_SHOWN], 3).tolist(),
        "best_epoch": int(model.best_epoch_),
    }


def solvers(_: Problem) -> list[Solver]:
    """The methods of table 1, and what figures 4 to 7 need."""
    net = {"hidden_layer_sizes": [1024], "n_components": 64, "batch_size": 200}
    return [
        own.cca(9, (5, 9, 20, 40)),
        own.cfa((9, 3, 5, 20, 40, 80)),
        own.kcca(9),
        own.lgcfl(),
        own.jrl(),
        own.cmolrs(9),
        own.mlcca(9, (5, 9), label_similarity="equal"),
        own.network(
            "Corr-AE",
            "CorrAE",
            net | {"correspondence": 0.8},
            {"correspondence": (0.2, 0.8, 0.95), "learning_rate": _RATES},
        ),
        own.network(
            "DCCA",
            "DCCA",
            net | {"n_components": 20, "batch_size": 500},
            {"n_components": (9, 20), "reg": (1e-4, 1e-2), "learning_rate": _RATES},
        ),
        own.network("CMDN", "CMDN", {"n_components": 64}, {"learning_rate": (1e-4, *_RATES)}),
        own.network(
            "Deep-SM",
            "DeepSM",
            {"hidden_layer_sizes": [1024]},
            {"learning_rate": _RATES, "weight_decay": (1e-5, 1e-3)},
        ),
        own.network(
            "ACMR",
            "ACMR",
            {"n_components": 40},
            {"learning_rate": (1e-4, *_RATES), "label_weight": (1.0, 10.0, 100.0)},
        ),
        own.network(
            "CCL", "CCL", {"n_components": 64}, {"learning_rate": _RATES, "batch_size": (80, 200)}
        ),
        own.network(
            "SAM, α = 1, λ = 1",
            "SAM",
            _SAM | {"margins": "adaptive", "sample_share": 1.0},
            {"learning_rate": _SAM_RATES, "dropout": (0.1, 0.3)},
        ),
        own.network(
            "SAM, fixed margin",
            "SAM",
            _SAM | {"margins": "fixed"},
            {"learning_rate": _SAM_RATES, "margin": (0.3, 0.6, 1.0)},
            note="not in the paper",
        ),
        own.network(
            "SAM",
            "SAM",
            _SAM,
            {"learning_rate": _SAM_RATES, "midpoint": (0.4, 0.6, 0.9)},
            keep=_margins,
        ),
    ]


_ARTICLES = [wikipedia("deep+lda"), wikipedia("deep+w2v"), wikipedia("sift+lda")]
_TABLE = Table(
    "p1",
    "table 1",
    "Methods that learn from labels",
    [*_ARTICLES, SPOKEN_DIGITS, CAPTIONS],
    solvers,
    ("map", "map@100"),
    "map",
    training=_TRAINING,
    n_trials=4,
    reference="SAM",
    published={
        "CCA": ".298 / .273",
        "CFA": ".319 / .316",
        "KCCA": ".438 / .389",
        "LGCFL": ".466 / .431",
        "JRL": ".479 / .428",
        "Corr-AE": ".442 / .429",
        "DCCA": ".445 / .399",
        "CMDN": ".487 / .427",
        "Deep-SM": ".478 / .422",
        "ACMR": ".468 / .412",
        "CCL": ".505 / .457",
        "SAM, α = 1, λ = 1": ".406 / .382",
        "SAM": ".518 / .457; mAP@100 .541, of CMOLRS .413",
    },
    remark="Other features: the paper has VGG-19 and 3,000 words. JRL, CMOLRS and ACMR are made to "
    "be ranked by propagated labels, inner products and Euclidean distance, which are their "
    "defaults; mAP@100 is divided by the relevant items, at most 100. Of captions, figures 5 and 6 "
    "show 10 of 80 categories.",
)


def _name(share: float, midpoint: float) -> str:
    return f"λ {share:g}, f {midpoint:g}"


def _grid(_: Problem, *, shares: tuple[float, ...], midpoints: tuple[float, ...]) -> list[Solver]:
    return [
        own.network(
            _name(share, midpoint),
            "SAM",
            _SAM | {"sample_share": share, "midpoint": midpoint},
            {},
        )
        for share in shares
        for midpoint in midpoints
    ]


_SHARES, _MIDPOINTS = (0.0, 0.1, 0.25, 0.75, 1.0), (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_GRID = Table(
    "p1",
    "table grid",
    "Share of the distance of rows (λ) and midpoint of the schedule (f), all cells of figure 7",
    [wikipedia("deep+w2v")],
    partial(_grid, shares=_SHARES, midpoints=_MIDPOINTS),
    ("map",),
    "map",
    rankings=("cosine",),
    training=_TRAINING,
    n_seeds=2,
    n_trials=1,
    remark="The paper draws Pascal Sentences; its best cell is λ .25, f .4.",
)


def _by_epoch(kept: Mapping[str, Any]) -> str:
    """Mean margin and share of the adaptive margin, every tenth epoch."""
    epochs = [0, *range(9, len(kept["margin"]), 10)]
    lines = ["| epoch | mean margin | α |", "|---|---|---|"]
    lines += [
        f"| {e + 1} | {kept['margin'][e]:.3f} | {kept['adaptation'][e]:.3f} |" for e in epochs
    ]
    return "\n".join(lines)


def _spread(kept: Mapping[str, Any]) -> str:
    """Smallest and largest distance of two categories by epoch."""
    lines = [
        "| epoch | nearest categories | distance | farthest | distance |",
        "|---|---|---|---|---|",
    ]
    n_epochs = len(kept["categories"])
    for epoch in sorted({e for e in (0, 9, 49, n_epochs - 1) if e < n_epochs}):
        distances = np.array(kept["categories"][epoch])
        upper = np.triu_indices(len(distances), 1)
        values = distances[upper]
        near, far = int(values.argmin()), int(values.argmax())
        pairs = [f"{upper[0][i]}-{upper[1][i]} | {values[i]:.3f}" for i in (near, far)]
        lines.append(f"| {epoch + 1} | {' | '.join(pairs)} |")
    return "\n".join(lines)


def _heat(kept: Mapping[str, Any]) -> str:
    """Distances of all categories in the chosen epoch."""
    distances = np.array(kept["categories"][kept["best_epoch"] - 1])
    numbers = range(len(distances))
    lines = [f"| class | {' | '.join(map(str, numbers))} |", "|---" * (len(distances) + 1) + "|"]
    lines += [f"| {i} | {' | '.join(f'{d:.2f}' for d in distances[i])} |" for i in numbers]
    return "\n".join(lines)


def _cells(records: Mapping[str, Any]) -> np.ndarray | None:
    """Mean mAP of every λ and f; NaN where it was not run."""
    found = np.full((len(_SHARES), len(_MIDPOINTS)), np.nan)
    for i, j in np.ndindex(*found.shape):
        if own := records.get(_name(_SHARES[i], _MIDPOINTS[j])):
            found[i, j] = np.mean([mean(record["test"], "cosine", "map") for record in own])
    return None if np.isnan(found).all() else found


def _matrix(cells: np.ndarray) -> str:
    lines = [f"| λ \\ f | {' | '.join(f'{f:g}' for f in _MIDPOINTS)} |"]
    lines.append("|---" * (len(_MIDPOINTS) + 1) + "|")
    for share, row in zip(_SHARES, cells, strict=True):
        lines.append(f"| {share:g} | {' | '.join(f'{value:.3f}' for value in row)} |")
    return "\n".join(lines)


def _draw_margins(ax: Any, kept: Mapping[str, Any]) -> None:
    curves = {"mean margin": kept["margin"], "α, share of the adaptive margin": kept["adaptation"]}
    plots.lines(ax, curves, "epoch", "")


def _draw_spread(ax: Any, kept: Mapping[str, Any]) -> None:
    distances = np.array(kept["categories"])
    curves = distances[:, *np.triu_indices(distances.shape[1], 1)].T
    named = {"nearest in the last epoch": int(curves[:, -1].argmin())}
    named["farthest"] = int(curves[:, -1].argmax())
    plots.fan(ax, curves, named, "epoch", "distance of two categories")


def _draw_heat(ax: Any, kept: Mapping[str, Any]) -> None:
    distances = np.maximum(kept["categories"][kept["best_epoch"] - 1], 0)  # in place of -0
    names = [str(number) for number in range(len(distances))]
    plots.heat(ax, distances, names, names, "category", "category")


def _draw_cells(ax: Any, cells: np.ndarray) -> None:
    rows, columns = ([f"{v:g}" for v in values] for values in (_SHARES, _MIDPOINTS))
    plots.heat(ax, cells, rows, columns, "midpoint f", "share λ")


_OF_SAM = kept_by("SAM")
TABLES = [_TABLE, _GRID]
FIGURES = [
    Figure("p1", "figure 4", "Margin by epoch", _TABLE, _OF_SAM, _by_epoch, _draw_margins),
    Figure(
        "p1", "figure 5", "Distances of categories by epoch", _TABLE, _OF_SAM, _spread, _draw_spread
    ),
    Figure(
        "p1", "figure 6", "Distances of all pairs of categories", _TABLE, _OF_SAM, _heat, _draw_heat
    ),
    Figure("p1", "figure 7", "mAP by λ and f", _GRID, _cells, _matrix, _draw_cells),
]
MISSING = [
    Missing("p1", "table 1, Pascal", "the features of Pascal Sentences cannot be had here"),
    Missing("p1", "table 1, NUS", "the features of NUS-WIDE and NUS-WIDE-10k cannot be had here"),
]
