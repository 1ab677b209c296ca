"""Are the probabilities of `calibrate_matches` right on real data?

CCA of MNIST halves and of frozen text encoders; calibration on validation rows. The test rows are
searched twice: with all items in the gallery (share 1), and with half of them (share 0.5). For
groups of searches by the predicted probability of the best item: number of searches, mean
prediction, and share whose best item was right.

    MVCCA_DATA=../shared/data python -m benchmarks.defaults.match_probability
        [--data "MNIST halves" ...]
"""

from __future__ import annotations

import argparse
from itertools import pairwise


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", help="all by default")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np

from benchmarks._arguments import names_in
from benchmarks._measure import machine
from benchmarks.defaults.ranking_quality import CASES, Case
from mvcca import CCA, RetrievalIndex
from mvcca.retrieval import calibrate_matches

TITLES = ("MNIST halves", "MiniLM-e5, 1,000 pairs")
WEIGHTINGS = ("likelihood", "profile-likelihood", "likelihood-cosine", None)
EDGES = (0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.01)


def searched(case: Case, weighting: str | None) -> tuple[float, np.ndarray, np.ndarray]:
    """Area under the ROC; probability of the best item of each search, and whether it is right."""
    model = CCA(case.n_components, reg=0.1).fit(case.train)
    query, target = case.train.names
    options = {"estimator": model, "weighting": weighting}
    calibration = calibrate_matches(case.valid, query, target, **options)
    n = len(case.test)
    probabilities, is_right = [], []
    for n_items, share in ((n, 1.0), (n // 2, 0.5)):
        index = RetrievalIndex(model, weighting=weighting).add(case.test[:n_items])
        scores, ids = index.search({query: case.test[query]}, target, k=20)
        probabilities.append(calibration.probability(scores, n_items, share)[:, 0])
        is_right.append(ids[:, 0] == np.arange(n))
    return calibration.auc, np.concatenate(probabilities), np.concatenate(is_right)


def main(options: argparse.Namespace) -> None:
    print(machine(1), "\n")
    groups = [f"{low:g}-{min(high, 1):g}" for low, high in pairwise(EDGES)]
    print(f"| data | weighting | AUC | {' | '.join(groups)} |")
    print("|---" * (3 + len(groups)) + "|")
    for title in names_in(options.data, TITLES):
        case = CASES[title](np.random.default_rng(0))
        for weighting in WEIGHTINGS:
            auc, p, is_right = searched(case, weighting)
            cells = []
            for low, high in pairwise(EDGES):
                inside = (p >= low) & (p < high)
                cells.append(
                    f"{inside.sum()}: {p[inside].mean():.2f}, {is_right[inside].mean():.2f}"
                    if inside.any()
                    else "0"
                )
            name = weighting or "cosine"
            print(f"| {title} | {name} | {auc:.4f} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(OPTIONS)
