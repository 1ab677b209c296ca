"""Deep methods with and without validation rows: label mAP of test rows on three data sets.

    MVCCA_DATA=../shared/data python -m benchmarks.defaults.deep_validation [--seeds 2]
        [--methods ...]

Prints a table for RESULTS.md with a row per data set and method: mean average precision of cosine
ranking, averaged over both directions and seeds, without validation rows, and with 10 % of the rows
held out to choose the best epoch by loss, by correlation or by mean reciprocal rank (the parameter
`monitor`), and the chosen epochs. On digits the seed also determines the split. On captions an item
is relevant if its image and that of the query have a common object. Wikipedia and captions need
wikipedia.npz and coco_val2017_captions.npz in the directory MVCCA_DATA.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", help="all by default")
    parser.add_argument("--methods", nargs="+", help="all by default")
    parser.add_argument("--seeds", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np
import torch
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks._arguments import names_in
from benchmarks._measure import machine
from benchmarks.real import fetch_coco_captions, fetch_wikipedia
from mvcca import PerView, Views, evaluate_retrieval
from mvcca.datasets import load_digits_views
from mvcca.deep import DCCA, DCCAE, DSDCCA, L0CCA, CorrNet, SoftCCA, SoftHGR

Split = tuple[Views, Views, np.ndarray]  # training rows, test rows, labels of these

_NETWORKS = {"hidden_layer_sizes": (128, 128), "batch_size": 128, "standardize": False}
_CORRNET = {"correlation": 2.0, "optimizer": "rmsprop", "learning_rate": 1e-2}
METHODS: dict[str, tuple[type, dict[str, Any]]] = {
    "Soft-CCA": (SoftCCA, {"decorrelation": 1.0, **_NETWORKS}),
    "DCCA": (DCCA, _NETWORKS),
    "DCCAE": (DCCAE, _NETWORKS),
    "Soft-HGR": (SoftHGR, _NETWORKS),
    "ℓ0-CCA": (L0CCA, {"gate_penalty": 0.01, "gate_sigma": 0.1, **_NETWORKS}),
    "CorrNet": (CorrNet, {"standardize": False, **_CORRNET}),
    "DS-DCCA": (DSDCCA, {"scaling_layer_sizes": (32,), "scaling_start": "one", **_NETWORKS}),
}
WAYS: dict[str, dict[str, Any]] = {
    "none": {},
    "loss": {"validation_fraction": 0.1, "monitor": "valid_loss"},
    "correlation": {"validation_fraction": 0.1, "monitor": "valid_correlation"},
    "mrr": {"validation_fraction": 0.1, "monitor": "valid_mrr"},
}


def digits() -> Callable[[int], Split]:
    data = load_digits_views("halves")

    def split(seed: int) -> Split:
        train, test = train_test_split(
            np.arange(len(data.views)), test_size=597, random_state=seed, stratify=data.labels
        )
        return data.views[train], data.views[test], data.labels[test]

    return split


def wikipedia() -> Callable[[int], Split]:
    data = fetch_wikipedia()
    return lambda _: (data.train.views, data.test.views, data.test.labels)


def captions() -> Callable[[int], Split]:
    data = fetch_coco_captions()
    to_vectors = PerView(
        make_pipeline(TfidfTransformer(sublinear_tf=True), TruncatedSVD(100, random_state=0))
    )
    train = to_vectors.fit_transform(data.train.views.select(["cap0", "cap1"]))
    test = to_vectors.transform(data.test.views.select(["cap0", "cap1"]))
    return lambda _: (train, test, data.test.labels)


DATA = {  # rows, components, epochs
    "digits": (digits, 10, 60),
    "wikipedia": (wikipedia, 7, 30),
    "captions": (captions, 16, 30),
}


def measure(method: str, n_components: int, way: str, data: Split, epochs: int, seed: int) -> Any:
    """Mean average precision over both directions, and the chosen epoch."""
    train, test, labels = data
    cls, settings = METHODS[method]
    if cls is DSDCCA:
        settings = {**settings, "warm_up": epochs // 2}
    model = cls(
        n_components,
        max_epochs=epochs,
        random_state=seed,
        **settings,
        **WAYS[way],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # small batches for 20 components
        model.fit(train)
    table = evaluate_retrieval(model.transform(test), labels, measures="map")
    return np.mean([row.values["map"] for row in table]), model.best_epoch_


def main(options: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    print(f"{machine(1)}, torch {torch.__version__}, CPU; {options.seeds} seeds", end="\n\n")
    print(
        "| data | method | no validation | by loss | by correlation | by MRR | MRR / none "
        "| epochs by loss | epochs by correlation | epochs by MRR | s |"
    )
    print("|---" * 11 + "|")
    for name in names_in(options.data, DATA):
        prepare, n_components, n_epochs = DATA[name]
        split, scaler = prepare(), PerView(StandardScaler())
        splits = [split(seed) for seed in range(options.seeds)]
        splits = [
            (scaler.fit_transform(train), scaler.transform(test), y) for train, test, y in splits
        ]
        for method in names_in(options.methods, METHODS):
            start = time.perf_counter()
            found = {
                way: np.array(
                    [
                        measure(method, n_components, way, data, n_epochs, seed)
                        for seed, data in enumerate(splits)
                    ]
                )
                for way in WAYS
            }
            figures = {way: rows[:, 0].mean() for way, rows in found.items()}
            kept = {way: ", ".join(f"{n:.0f}" for n in rows[:, 1]) for way, rows in found.items()}
            print(
                f"| {name} | {method} | {' | '.join(f'{v:.3f}' for v in figures.values())} "
                f"| {figures['mrr'] / figures['none']:.3f} | {kept['loss']} "
                f"| {kept['correlation']} | {kept['mrr']} | {time.perf_counter() - start:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main(OPTIONS)
