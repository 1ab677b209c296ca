"""Aligning frozen text encoders, by the number of pairs: CCA, CSA, Procrustes and affine maps.

R@1 on the 1,000 test sentences of Multi30K, mean of both directions. The pairs are drawn at random
from the 10,000 training sentences, once per seed; ridge, rank and the number of components of each
method are chosen on the 1,014 validation sentences.

- CCA: 200 components, with the default ranking (profile likelihood), the cosine of vectors weighted
  by the likelihood, and the plain cosine;
- CSA (Li, Chinchali and Topcu, ICLR 2025), as we read it: the same CCA with the similarity
  Σ ρ_i a_i b_i / (‖a‖ ‖b‖) of canonical variates a, b, with training correlations ρ;
- Procrustes: the rotation; affine: ridge regression of the second encoder on the first; low rank:
  the same with at most 64, 128 or 192 components. Both are ranked by cosine.

    MVCCA_DATA=../shared/data python benchmarks/alignment.py [--seeds 5] [--pairs 100 300 ...]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--pairs", type=int, nargs="+", default=[100, 300, 1000, 3000, 10_000])
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np
from _measure import machine
from real import fetch_multi30k_encoders

from mvcca import CCA, AffineMap, Procrustes, Views, evaluate_retrieval

ENCODERS = (("en_minilm", "de_e5"), ("en_wordllama", "de_e5"), ("en_wordllama", "en_minilm"))
CCA_RIDGES = (1e-2, 1e-1, 1.0, 10.0)
MAP_RIDGES = (1e-3, 1e-2, 1e-1, 1.0)
RANKS = (64, 128, 192)


def recall(model: Any, views: Views, **ranking: Any) -> float:
    """R@1, mean of both directions."""
    table = evaluate_retrieval(views, estimator=model, measures="r@1", **ranking)
    return float(table.mean()["r@1"])


def canonical_similarity(model: CCA, views: Views) -> float:
    """R@1 under Σ ρ_i a_i b_i / (‖a‖ ‖b‖): an inner product of weighted unit vectors."""
    scores = model.transform(views)
    roots = np.sqrt(model.canonical_correlations_)
    unit = {
        name: roots * (rows.T / np.linalg.norm(rows, axis=1)).T for name, rows in scores.items()
    }
    table = evaluate_retrieval(Views(unit), measures="r@1", similarity="inner")
    return float(table.mean()["r@1"])


def figures(train: Views, valid: Views, test: Views) -> dict[str, float]:
    """R@1 of each method, its settings chosen on the validation rows."""
    ccas = [CCA(200, reg=reg).fit(train) for reg in CCA_RIDGES]
    maps = [AffineMap(reg=reg).fit(train) for reg in MAP_RIDGES]
    affine = max(maps, key=lambda model: recall(model, valid))
    low = [AffineMap(rank, reg=affine.reg).fit(train) for rank in RANKS]

    def best(models: list[Any], measured: Callable[..., float], **ranking: Any) -> float:
        chosen = max(models, key=lambda model: measured(model, valid, **ranking))
        return measured(chosen, test, **ranking)

    return {
        "CCA": best(ccas, recall),
        "CCA, likelihood-cosine": best(ccas, recall, weighting="likelihood-cosine"),
        "CCA, cosine": best(ccas, recall, weighting=None),
        "CSA": best(ccas, canonical_similarity),
        "Procrustes": best([Procrustes().fit(train)], recall),
        "affine": best([affine], recall),
        "low rank": best(low, recall),
    }


def main(options: argparse.Namespace) -> None:
    print(machine(1), "\n")
    warnings.simplefilter("ignore")
    data = fetch_multi30k_encoders()
    for pair in ENCODERS:
        train, valid, test = (data[part].views.select(pair) for part in ("train", "valid", "test"))
        print(f"\n{pair[0]} and {pair[1]}\n")
        for number, n_pairs in enumerate(options.pairs):
            found: dict[str, list[float]] = {}
            # All pairs are the same pairs for every seed.
            for seed in range(options.seeds if n_pairs < len(train) else 1):
                rows = np.sort(np.random.default_rng(seed).permutation(len(train))[:n_pairs])
                for name, value in figures(train[rows], valid, test).items():
                    found.setdefault(name, []).append(value)
            if not number:
                print(f"| pairs | {' | '.join(found)} |\n|---{'|---' * len(found)}|")
            cells = (
                f"{np.mean(v):.3f}" + (f" ± {np.std(v, ddof=1):.3f}" if len(v) > 1 else "")
                for v in found.values()
            )
            print(f"| {n_pairs:,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(OPTIONS)
