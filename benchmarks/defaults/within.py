"""Which constraint should MVMLCCA have by default? Both, as they are and tuned, on three data sets.

    python -m benchmarks.defaults.within [--problems captions wikipedia-deep+w2v mnist-5000]

Prints mAP of the test rows by the default ranking, mean of both directions, of `within="sample"`
and "label" with nothing else set but the number of components, and with the ridge and the power of
a grid that suit the validation rows best. Real data are read from the directory MVCCA_DATA.
"""

from __future__ import annotations

import argparse
import warnings
from itertools import product


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", nargs="+", help="all by default")
    parser.add_argument("--rows", type=int, help="of each part, for a trial")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

from threadpoolctl import threadpool_limits

from benchmarks._arguments import names_in
from benchmarks._measure import machine
from benchmarks.papers.problems import CAPTIONS, mnist_halves, wikipedia
from benchmarks.papers.protocol import Part
from mvcca import MVMLCCA, evaluate_retrieval

PROBLEMS = {p.name: p for p in (CAPTIONS, wikipedia("deep+w2v"), mnist_halves(5000))}
N_COMPONENTS = {"captions": 50, "wikipedia-deep+w2v": 9, "mnist-5000": 9}
RIDGES, POWERS = (1e-4, 1e-2, 0.1, 1.0, 10.0, 100.0, 1000.0), (0.0, 2.0, 4.0)


def quality(model: MVMLCCA, part: Part) -> float:
    """Mean average precision of the rows of a part."""
    table = evaluate_retrieval(part.views, part.labels, estimator=model, measures="map")
    return float(table.mean()["map"])


def main(options: argparse.Namespace) -> None:
    warnings.simplefilter("ignore")  # of fewer label sets than features
    with threadpool_limits(1):
        print(machine(1), end="\n\n")
        print("| data | within | default | tuned | ridge | power |")
        print("|---" * 6 + "|")
        for name in names_in(options.problems, PROBLEMS):
            split = PROBLEMS[name].split(0, options.rows)
            for within in ("sample", "label"):
                models = {
                    (reg, power): MVMLCCA(N_COMPONENTS[name], within=within, reg=reg, power=power)
                    for reg, power in product(RIDGES, POWERS)
                }
                for model in models.values():
                    model.fit(split.train.views, split.train.labels)
                valid = {own: quality(model, split.valid) for own, model in models.items()}
                reg, power = max(valid, key=lambda own: valid[own])
                tested = [quality(models[own], split.test) for own in ((1e-4, 0.0), (reg, power))]
                cells = [name, within, *(f"{value:.3f}" for value in tested)]
                print(f"| {' | '.join([*cells, f'{reg:g}', f'{power:g}'])} |", flush=True)


if __name__ == "__main__":
    main(OPTIONS)
