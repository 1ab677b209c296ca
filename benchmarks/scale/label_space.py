"""MVMLCCA, and MLCCA of label means, on wide sparse views with few distinct label sets.

Rows are text-like (Zipf words, tf-idf), with sets of 8 labels that words of a view decide. One run
compares the fit in the space of label sums, or of solutions, with the fit in the row space;
``--large`` shapes are fitted in the former only.

    python -m benchmarks.scale.label_space [--repeats 3] [--large 20000 60000]
"""

from __future__ import annotations

import argparse
import warnings
from unittest.mock import patch


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--features", type=int, default=5000)
    parser.add_argument("--large", type=int, nargs=2, help="rows and features of each view")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks._measure import in_turns, machine, peak_memory, ratio
from benchmarks._text_like import text_like
from mvcca import MLCCA, MVMLCCA, Views
from mvcca.linear import label_space

MODELS = {
    "MVMLCCA": MVMLCCA(10, reg=0.1),
    "MVMLCCA label": MVMLCCA(10, reg=0.1, within="label"),
    "MLCCA of means": MLCCA(10, reg=0.1, weighting="means"),
}


def labelled(n_rows: int, width: int) -> tuple[Views, np.ndarray]:
    """Two views, and indicators of 8 labels: whether random projections of the first are large."""
    X, Y = text_like(n_rows, (width, width))
    projected = X @ np.random.default_rng(0).standard_normal((width, 8))
    return Views({"text": X, "tags": Y}), (projected > projected.mean(axis=0)).astype(int)


def main(options: argparse.Namespace) -> None:
    warnings.simplefilter("ignore")  # there are fewer label sets than features
    with threadpool_limits(1):
        print(machine(1))
        views, labels = labelled(options.rows, options.features)
        n_sets = len(np.unique(labels, axis=0))
        print(f"{options.rows} x {options.features} and as much, {n_sets} label sets")
        for name, model in MODELS.items():

            def fit(model: MVMLCCA | MLCCA = model) -> np.ndarray:
                return model.fit(views, labels).eigenvalues_

            def by_rows(fit=fit) -> np.ndarray:
                with patch.object(label_space, "_LABEL_SHARE", 0):
                    return fit()

            error = np.abs(fit() - by_rows()).max()
            timings = in_turns({"label sums": fit, "rows": by_rows}, options.repeats)
            for route, timing in timings.items():
                print(f"  {name:15s} by {route:11s}{timing}")
            print(f"    ratio {ratio(*timings.values())}; eigenvalues apart by {error:.1e}")
        if options.large:
            views, labels = labelled(*options.large)
            print("{} x {} and as much".format(*options.large))
            for name, model in MODELS.items():
                with peak_memory() as memory:
                    timing = in_turns({"": lambda m=model: m.fit(views, labels)}, 1)[""]
                print(f"  {name:15s}{timing}  + {memory['MB']:.0f} MB")


if __name__ == "__main__":
    main(OPTIONS)
