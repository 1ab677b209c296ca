"""Captions of an image find each other: deep methods that learn from label sets, CCA and MLCCA.

    MVCCA_DATA=../shared/data python benchmarks/deep_captions.py [--methods ...] [--seeds 5]
        [--epochs 30] [--patience 5]

Two captions of each of 4,000 images of MS-COCO: TF-IDF, SVD to 200 dimensions, standardized. Each
seed draws the initial weights and 500 images that choose the epoch and, on the first seed, the
setting. The figures are of 1,000 test images, as mean and standard deviation over seeds: mean
average precision of whole lists, in which captions are relevant if their images share a label, and
recall at k of the other caption. Needs coco_val2017_captions.npz in the directory MVCCA_DATA.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import cache


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="+", help="all by default")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--patience", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np
import torch
from _arguments import names_in
from _deep import Method, Split, labelled_methods, report
from _measure import machine
from real import fetch_coco_captions
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mvcca import CCA, MLCCA, PerView

_RIDGES = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
_SAM = {"n_components": 64, "hidden_layer_sizes": (256,)}


def main(options: argparse.Namespace) -> None:
    data = fetch_coco_captions()
    train, test = (part.views.select(["cap0", "cap1"]) for part in (data.train, data.test))

    @cache
    def split(seed: int) -> Split:
        order = np.random.default_rng(seed).permutation(len(train))
        kept, held_out = np.sort(order[500:]), np.sort(order[:500])
        to_features = PerView(
            make_pipeline(TfidfTransformer(), TruncatedSVD(200, random_state=0), StandardScaler())
        ).fit(train[kept])
        labels = data.train.labels
        return Split(
            (to_features.transform(train[kept]), labels[kept]),
            (to_features.transform(train[held_out]), labels[held_out]),
            (to_features.transform(test), data.test.labels),
        )

    linear = {
        "CCA": Method(
            CCA, grid=tuple({"n_components": k, "reg": reg} for k in (50, 150) for reg in _RIDGES)
        ),
        "MLCCA": Method(
            MLCCA,
            {"n_components": 50},
            tuple({"reg": reg, "power": p} for reg in _RIDGES for p in (0, 1)),
        ),
    }
    methods = linear | {
        name: method
        for name, method in labelled_methods(_SAM, n_correlated=50).items()
        if name not in linear
    }
    training = {"max_epochs": options.epochs, "patience": options.patience}
    chosen = {
        name: methods[name]
        if name in linear
        else replace(methods[name], settings=methods[name].settings | training)
        for name in names_in(options.methods, methods)
    }
    torch.set_num_threads(1)
    print(f"{machine(1)}, torch {torch.__version__}, CPU; {options.seeds} seeds")
    measures = ("map", "r@1", "r@5", "r@10")
    report("cap0 to cap1", chosen, split, options.seeds, ("CCA", "MLCCA"), measures)


if __name__ == "__main__":
    main(OPTIONS)
