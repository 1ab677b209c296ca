"""MSDS and correspondence autoencoders on Multi30k: German sentences find English ones.

    MVCCA_DATA=../shared/data python benchmarks/deep_multi30k.py [--methods ...] [--seeds 5]

Trains on 29,000 pairs, chooses the epoch by the mean reciprocal rank of 1,014 validation pairs, and
prints the recall at k of the 1,000 test pairs, German to English, as mean and standard deviation
over seeds. Features are TF-IDF vectors reduced to 300 dimensions, or with "words" the sequences of
words of the English side, which get a convolutional network. CCA is the linear reference. Needs
multi30k.npz and multi30k_tokens.npz in the directory MVCCA_DATA.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
import torch
from _measure import machine
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mvcca import CCA, PerView, Views, evaluate_retrieval
from mvcca.datasets import fetch_multi30k, get_data_home
from mvcca.deep import MSDS, CorrAE, CrossCorrAE

_RANKS = (1, 2, 4, 10, 20, 40, 100)  # of the published tables
_TRAINED = {"n_components": 300, "device": "cpu", "max_epochs": 20}
_MSDS = {"optimizer": "adam", "learning_rate": 1e-3, "weight_decay": 0.0, **_TRAINED}
METHODS: dict[str, tuple[type, dict[str, Any]]] = {
    "CCA": (CCA, {"n_components": 200, "reg": 1e-2}),
    "MSDS-v1, published loss": (MSDS, _MSDS),
    "MSDS-v1, γ = 10, 50 other items": (MSDS, {"gamma": 10.0, "n_negatives": 50, **_MSDS}),
    "MSDS-v2, published loss": (MSDS, {"tokens": "words", **_MSDS}),
    "MSDS-v2, γ = 10, 50 other items": (
        MSDS,
        {"tokens": "words", "gamma": 10.0, "n_negatives": 50, **_MSDS},
    ),
    "Corr-AE": (CorrAE, {"correspondence": 0.95, **_TRAINED}),
    "Cross-Corr-AE": (CrossCorrAE, {"correspondence": 0.5, **_TRAINED}),
}


def sentences() -> dict[str, Views]:
    """Features of both languages and the English words, by part."""
    data = fetch_multi30k()
    to_features = PerView(
        make_pipeline(
            TfidfTransformer(sublinear_tf=True), TruncatedSVD(300, random_state=0), StandardScaler()
        )
    )
    parts = {name: data[name].views.select(["en", "de"]) for name in ("train", "valid", "test")}
    to_features.fit(parts["train"])
    with np.load(get_data_home() / "multi30k_tokens.npz") as file:
        words = {
            name: padded(file[f"en_{key}_tokens"], file[f"en_{key}_length"])
            for name, key in (("train", "train"), ("valid", "val"), ("test", "test"))
        }
    return {
        name: to_features.transform(views).add("words", words[name])
        for name, views in parts.items()
    }


def padded(tokens: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Sequences that are concatenated, as rows of a matrix; 0 is padding."""
    rows = np.zeros((len(lengths), lengths.max()), dtype=np.int32)
    rows[np.arange(rows.shape[1]) < lengths[:, None]] = tokens
    return rows


def measure(method: str, parts: dict[str, Views], seed: int) -> tuple[np.ndarray, int]:
    """Recall at each rank of test pairs, German to the other side, and the chosen epoch."""
    cls, settings = METHODS[method]
    names = ["words" if "tokens" in settings else "en", "de"]
    train, valid, test = (parts[part].select(names) for part in ("train", "valid", "test"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if cls is CCA:
            model = CCA(**settings).fit(train)
        else:
            model = cls(random_state=seed, **settings).fit(train, X_val=valid)
    measures = [f"r@{k}" for k in _RANKS]
    table = evaluate_retrieval(
        test, estimator=model, measures=measures, directions=[("de", names[0])]
    )
    return np.array([table.mean()[name] for name in measures]), getattr(model, "best_epoch_", 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    parts = sentences()
    print(f"{machine(1)}, torch {torch.__version__}, CPU; {options.seeds} seeds", end="\n\n")
    print(f"| method | {' | '.join(f'R@{k}' for k in _RANKS)} | epochs | minutes |")
    print(f"|{'---|' * (len(_RANKS) + 3)}", flush=True)
    for method in options.methods:
        start = time.perf_counter()
        n_seeds = 1 if METHODS[method][0] is CCA else options.seeds
        found = [measure(method, parts, seed) for seed in range(n_seeds)]
        minutes = (time.perf_counter() - start) / 60
        figures = np.array([row[0] for row in found])
        spread = figures.std(axis=0, ddof=1) if n_seeds > 1 else np.zeros(len(_RANKS))
        cells = [f"{m:.3f} ± {s:.3f}" for m, s in zip(figures.mean(axis=0), spread, strict=True)]
        epochs = ", ".join(str(epoch) for _, epoch in found)
        print(f"| {method} | {' | '.join(cells)} | {epochs} | {minutes:.0f} |", flush=True)


if __name__ == "__main__":
    main()
