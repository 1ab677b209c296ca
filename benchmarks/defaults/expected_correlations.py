"""How close are `expected_correlations_` to the correlations of new rows, on real data?

CCA with all components, without a ridge and with three; the first 50 are shown: mean correlation of
the training rows, mean that is expected, mean of the test rows, and root mean square of expected
minus test.

    MVCCA_DATA=../shared/data python -m benchmarks.defaults.expected_correlations
        [--data digits ...]
"""

from __future__ import annotations

import argparse
import warnings


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", help="all by default")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np

from benchmarks._arguments import names_in
from benchmarks._measure import machine
from benchmarks.defaults.ranking_quality import CASES, encoders
from mvcca import CCA, Views

RIDGES = (0.0, 1e-3, 0.1, 1.0)
N_SHOWN = 50
DATA = {
    "MiniLM-e5, 200 pairs": encoders(200),
    **{name: CASES[name] for name in ("MiniLM-e5, 1,000 pairs", "Multi30k en-de", "digits")},
    **{name: CASES[name] for name in ("mfeat fou-kar", "Wikipedia", "scene u-v")},
}


def correlations(model: CCA, views: Views) -> np.ndarray:
    x, y = (np.asarray(block.matrix) for block in model.transform(views).blocks.values())
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    return (x * y).mean(axis=0) / (x.std(axis=0) * y.std(axis=0))


def main(options: argparse.Namespace) -> None:
    warnings.simplefilter("ignore")
    print(machine(1), "\n")
    print(
        "| data | reg | training | expected | test | error |\n|---|---|---|---|---|---|", flush=True
    )
    for title in names_in(options.data, tuple(DATA)):
        case = DATA[title](np.random.default_rng(0))
        new = Views.concatenate([case.valid, case.test])
        for reg in RIDGES:
            model = CCA(min(case.train.widths.values()), reg=reg).fit(case.train)
            training, test = correlations(model, case.train), correlations(model, new)
            expected = model.expected_correlations_
            shown = [found[:N_SHOWN] for found in (training, expected, test)]
            error = np.sqrt(np.mean((shown[1] - shown[2]) ** 2))
            means = " | ".join(f"{found.mean():.3f}" for found in shown)
            print(f"| {title} | {reg:g} | {means} | {error:.3f} |", flush=True)


if __name__ == "__main__":
    main(OPTIONS)
