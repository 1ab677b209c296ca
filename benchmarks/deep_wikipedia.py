"""SAM with scheduled, adaptive and fixed margins on Wikipedia articles, split as in its paper.

    MVCCA_DATA=../shared/data python benchmarks/deep_wikipedia.py [--seeds 5] [--views deep+w2v ...]

Trains on 2,173 articles, chooses the epoch by the mean average precision of 231 validation rows,
and prints the mean average precision of whole lists for the other 462 rows of the test set: mean
and standard deviation over seeds, which also draw the 231 rows. The midpoint of the schedule, and
the ridge of MLCCA, the linear reference, are chosen once, by the validation rows of the first seed.
Needs wikipedia.npz in the directory MVCCA_DATA.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
import torch
from _measure import machine
from sklearn.preprocessing import StandardScaler

from mvcca import MLCCA, PerView, Views, evaluate_retrieval
from mvcca.datasets import fetch_wikipedia
from mvcca.deep import SAM

Labelled = tuple[Views, np.ndarray]

_SAM: dict[str, Any] = {"n_components": 200, "device": "cpu"}  # else the published settings
_MIDPOINTS = (0.2, 0.4, 0.6, 0.8)
METHODS: dict[str, list[dict[str, Any]]] = {  # settings to choose from by validation rows
    "MLCCA": [{"reg": reg} for reg in (1e-3, 1e-2, 1e-1, 1.0)],
    "SAM, fixed margin": [{"margins": "fixed"}],
    "SAM, α = 1, λ = 1": [{"margins": "adaptive", "sample_share": 1.0}],
    "SAM": [{"midpoint": midpoint} for midpoint in _MIDPOINTS],
}


def splits(views: str, seed: int) -> list[Labelled]:
    """Training, validation and test rows, standardized."""
    data = fetch_wikipedia(views=views.split("+"))
    scaler = PerView(StandardScaler()).fit(data.train.views)
    order = np.random.default_rng(seed).permutation(len(data.test.views))
    valid, test = np.sort(order[:231]), np.sort(order[231:])
    rows = scaler.transform(data.test.views)
    return [
        (scaler.transform(data.train.views), data.train.labels),
        (rows[valid], data.test.labels[valid]),
        (rows[test], data.test.labels[test]),
    ]


def mean_precisions(model: Any, rows: Labelled) -> np.ndarray:
    """mAP of whole lists, image to text and text to image."""
    table = evaluate_retrieval(model.transform(rows[0]), rows[1], measures="map")
    return np.array([row.values["map"] for row in table])


def fitted(method: str, settings: dict[str, Any], seed: int, rows: list[Labelled]) -> Any:
    """A model of the training rows; the validation rows choose its epoch."""
    train, valid, _ = rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # more components than labels
        if method == "MLCCA":
            return MLCCA(10, label_similarity="equal", **settings).fit(*train)
        model = SAM(random_state=seed, **_SAM, **settings)
        return model.fit(*train, X_val=valid[0], y_val=valid[1])


def measure(method: str, views: str, n_seeds: int) -> tuple[np.ndarray, dict[str, Any], list[int]]:
    """Test figures by seed; the setting is the best one for the validation rows of the first."""
    rows = splits(views, 0)
    models = [fitted(method, settings, 0, rows) for settings in METHODS[method]]
    best = int(np.argmax([mean_precisions(model, rows[1]).mean() for model in models]))
    figures, epochs = [], []
    for seed in range(n_seeds):
        rows = splits(views, seed)
        model = fitted(method, METHODS[method][best], seed, rows) if seed else models[best]
        figures.append(mean_precisions(model, rows[2]))
        epochs.append(getattr(model, "best_epoch_", 0))
    return np.array(figures), METHODS[method][best], epochs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--views", nargs="+", default=["deep+w2v", "deep+lda", "sift+lda"])
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{machine(1)}, torch {torch.__version__}, CPU; {options.seeds} seeds", end="\n\n")
    print("| views | method | image to text | text to image | mean | settings; epochs | minutes |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for views in options.views:
        for method in options.methods:
            start = time.perf_counter()
            figures, settings, epochs = measure(method, views, options.seeds)
            minutes = (time.perf_counter() - start) / 60
            columns = [*figures.T, figures.mean(axis=1)]
            cells = [f"{column.mean():.3f} ± {column.std(ddof=1):.3f}" for column in columns]
            described = f"{settings}; {', '.join(map(str, epochs))}"
            row = " | ".join([views, method, *cells, described, f"{minutes:.0f}"])
            print(f"| {row} |", flush=True)


if __name__ == "__main__":
    main()
