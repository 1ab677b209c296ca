"""What does `mvcca.compare` cost beside the fits, projections and ranked lists that it needs?

    python -m benchmarks.scale.compare [--folds 5] [--repeats 3]

Both sides take the same methods and folds of the digits, and alternate in one process with one
thread. The floor fits every method to every training part, projects the training and the held-out
part once, and sorts the items of every held-out query by their inner products; it measures nothing.
"""

from __future__ import annotations

import argparse
import os
import warnings


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import numpy as np
from sklearn.base import clone

import mvcca
from benchmarks._measure import in_turns, machine
from mvcca.comparison import ComparisonResult
from mvcca.datasets import load_digits_views


def floor(result: ComparisonResult) -> None:
    """Fit, project and sort for every method and fold of a result."""
    data = result.data
    for fold in result.folds:
        train, test = data.views[fold.train], data.views[fold.test]
        for candidate in result.candidates:
            model = clone(candidate.estimator).fit(train, candidate.labels_of(data, fold.train))
            model.transform(train)
            scores = model.transform(test)
            for query in scores.names:
                for target in scores.names:
                    if query != target:
                        np.argsort(-(scores[query] @ scores[target].T), axis=1)


def main(options: argparse.Namespace) -> None:
    """Print CPU seconds of both sides and their ratio."""
    print(machine(1))
    warnings.simplefilter("ignore")
    data = load_digits_views()
    result = mvcca.compare("default", data.views, data.labels, cv=options.folds)  # warm
    sides = {
        "compare": lambda: mvcca.compare("default", data.views, data.labels, cv=options.folds),
        "floor": lambda: floor(result),
    }
    seconds = {name: min(one.cpu) for name, one in in_turns(sides, options.repeats).items()}
    print(
        f"default methods on the digits, {options.folds} folds: "
        f"{seconds['compare']:.2f} CPU seconds, floor {seconds['floor']:.2f}, "
        f"ratio {seconds['compare'] / seconds['floor']:.2f}"
    )


if __name__ == "__main__":
    main(OPTIONS)
