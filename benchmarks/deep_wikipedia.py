"""SAM, other deep methods that learn from labels, and MLCCA on Wikipedia articles.

    MVCCA_DATA=../shared/data python benchmarks/deep_wikipedia.py [--seeds 5] [--views deep+w2v ...]
        [--methods SAM "SAM, fixed margin" ...]
    MVCCA_DATA=../shared/data python benchmarks/deep_wikipedia.py --grid [--seeds 2] [--views ...]

Trains on 2,173 articles, chooses the epoch, and on the first seed the setting, by the mean average
precision of 231 rows of the test set, and measures that of whole lists for the other 462, as mean
and standard deviation over seeds, which also draw the 231 rows. This is the split of the paper on
SAM, which has its published settings. Views are standardized. With --grid, the mean average
precision of SAM by the share of the distance of rows in its adaptive margin, and by the share of
the epochs after which the margin adapts (figure 7 of the paper). Needs wikipedia.npz in the
directory MVCCA_DATA.
"""

from __future__ import annotations

import argparse


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--views", nargs="+", default=["deep+w2v", "deep+lda", "sift+lda"])
    parser.add_argument("--methods", nargs="+", help="all by default")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--grid", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np
import torch
from _arguments import names_in
from _deep import Method, Split, labelled_methods, qualities, report
from _measure import machine
from real import fetch_wikipedia
from sklearn.preprocessing import StandardScaler

from mvcca import PerView
from mvcca.deep import SAM

_SAM = {"n_components": 200, "optimizer": "sgd", "learning_rate": 5e-3}  # as published
_SHARES = (0.0, 0.1, 0.25, 0.75, 1.0)  # λ
_MIDPOINTS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)  # f_a


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


def report_grid(views: str, n_seeds: int) -> None:
    """Print the mean average precision of SAM on test and validation rows by λ and f_a."""
    print(f"\n| {views}, λ | {' | '.join(f'f_a {midpoint:g}' for midpoint in _MIDPOINTS)} |")
    print(f"|{'---|' * (len(_MIDPOINTS) + 1)}", flush=True)
    split, sam = splits(views), Method(SAM, _SAM)
    drawn = {seed: split(seed) for seed in range(n_seeds)}
    for share in _SHARES:
        cells = []
        for midpoint in _MIDPOINTS:
            setting = {"sample_share": share, "midpoint": midpoint}
            models = {seed: sam.fit(setting, seed, drawn[seed]) for seed in drawn}
            test, valid = (
                np.mean([qualities(models[s], getattr(drawn[s], part), ("map",)) for s in drawn])
                for part in ("test", "valid")
            )
            cells.append(f"{test:.3f} ({valid:.3f})")
        print(f"| {share:g} | {' | '.join(cells)} |", flush=True)


def main(options: argparse.Namespace) -> None:
    methods = labelled_methods(_SAM)
    torch.set_num_threads(1)
    print(f"{machine(1)}, torch {torch.__version__}, CPU; {options.seeds} seeds")
    chosen = {name: methods[name] for name in names_in(options.methods, methods)}
    for views in options.views:
        if options.grid:
            report_grid(views, options.seeds)
        else:
            report(views, chosen, splits(views), options.seeds, ("MLCCA", "SAM"))


if __name__ == "__main__":
    main(OPTIONS)
