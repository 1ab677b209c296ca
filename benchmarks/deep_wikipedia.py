"""SAM, other deep methods that learn from labels, and MLCCA on Wikipedia articles.

    MVCCA_DATA=../shared/data python benchmarks/deep_wikipedia.py [--seeds 5] [--views deep+w2v ...]
        [--methods SAM "SAM, fixed margin" ...]

Trains on 2,173 articles, chooses the epoch, and on the first seed the setting, by the mean average
precision of 231 rows of the test set, and measures that of whole lists for the other 462, as mean
and standard deviation over seeds, which also draw the 231 rows. This is the split of the paper on
SAM, which has its published settings. Views are standardized. Needs wikipedia.npz in the directory
MVCCA_DATA.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from _deep import Split, labelled_methods, report
from _measure import machine
from sklearn.preprocessing import StandardScaler

from mvcca import PerView
from mvcca.datasets import fetch_wikipedia

_SAM = {"n_components": 200}  # and the defaults of SAM


def splits(views: str):
    """The rows of each seed, for views such as deep+w2v."""
    data = fetch_wikipedia(views=views.split("+"))
    scaler = PerView(StandardScaler()).fit(data.train.views)
    train = scaler.transform(data.train.views), data.train.labels
    rows, labels = scaler.transform(data.test.views), data.test.labels

    def split(seed: int) -> Split:
        order = np.random.default_rng(seed).permutation(len(rows))
        valid, test = np.sort(order[:231]), np.sort(order[231:])
        return Split(train, (rows[valid], labels[valid]), (rows[test], labels[test]))

    return split


def main() -> None:
    methods = labelled_methods(_SAM)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--views", nargs="+", default=["deep+w2v", "deep+lda", "sift+lda"])
    parser.add_argument("--methods", nargs="+", default=list(methods), choices=list(methods))
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{machine(1)}, torch {torch.__version__}, CPU; {options.seeds} seeds")
    chosen = {name: methods[name] for name in options.methods}
    for views in options.views:
        report(views, chosen, splits(views), options.seeds, ("MLCCA", "SAM"))


if __name__ == "__main__":
    main()
