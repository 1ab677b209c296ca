"""Figures of the page "Choosing a method": the default methods of `mvcca.compare`, and networks.

    python -m benchmarks.defaults.choosing [--data digits wikipedia scene captions] [--rows 2000]
        [--folds 5] [--methods default deep-sm sam ccal]

Five folds of each data set. Methods without networks are tuned by compare, for items that share a
label and, in a second comparison, for the same object; networks have their default settings.
"""

from __future__ import annotations

import argparse


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    known = ["digits", "wikipedia", "scene", "captions"]
    parser.add_argument("--data", nargs="+", choices=known, default=known)
    parser.add_argument("--rows", type=int, default=2000, help="of each data set, at most")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--methods", nargs="+", default=["default", "deep-sm", "sam", "ccal"])
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import mvcca
from benchmarks.defaults.compare import load

GOALS = {"the same label": ["map@50"], "the same object": ["mrr", "r@1"]}


def main(options: argparse.Namespace) -> None:
    for name in options.data:
        views, labels = load(name, options.rows)
        for goal, measures in GOALS.items():
            result = mvcca.compare(
                options.methods, views, labels, measures=measures, cv=options.folds
            )
            print(f"\n## {name}, {len(views)} objects: {goal}\n\n{result}", flush=True)


if __name__ == "__main__":
    main(OPTIONS)
