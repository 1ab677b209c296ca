"""Cells that are missing at random: moments by pair of features, mean imputation, and EM.

- Two views of 10 features, each made of two factors and noise, of which 30 % of the cells are
  missing. The first canonical correlation is compared with that of the complete rows, and the first
  scores of complete new rows are correlated. Means over seeds.
- Ridges: the same with three factors and noise of .7, or independent features, the first of which
  correlate at .8. The first correlation in the training rows, and on complete new ones.
- Three views of handwritten digits (Fourier, Karhunen-Loeve and Zernike features, 187 in all) of
  1,500 objects, each view of which is missing with a probability; MVCCA with 30 components and a
  ridge of 0.1. R@1 on the other 500 objects, mean of six directions, and the first eigenvalue.

    MVCCA_DATA=../shared/data python -m benchmarks.defaults.missing_cells
        [--parts cells ridges views] [--seeds 200]
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--parts",
        nargs="+",
        choices=["cells", "ridges", "views"],
        default=["cells", "ridges", "views"],
    )
    parser.add_argument("--seeds", type=int, default=200, help="of cells")
    parser.add_argument("--rows", type=int, nargs="+", default=[100, 200, 250, 1000, 4000])
    parser.add_argument("--draws", type=int, default=3, help="of the views that are missing")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np
from sklearn.impute import SimpleImputer

from benchmarks._measure import machine
from benchmarks.real import fetch_mfeat
from mvcca import CCA, MVCCA, Views, evaluate_retrieval

N_FEATURES, N_FACTORS, SHARED, NOISE = 10, 2, 0.8, 0.6
N_NEW = 20_000
MOST_EM = 1000  # rows, above which EM has nothing left to win
METHODS: dict[str, dict[str, Any]] = {
    "pairwise": {"missing": "pairwise"},
    "pairwise, ridge .1": {"missing": "pairwise", "reg": 0.1},
    "mean imputed": {},
    "EM": {"missing": "em"},
    "EM, ridge .1": {"missing": "em", "reg": 0.1},
}

KINDS = ("factors", "independent")
SIZES = [(200, 0.3), (100, 0.3), (1000, 0.3), (200, 0.4), (200, 0.1)]  # rows, share of the cells


def draw(
    rng: np.random.Generator, loadings: np.ndarray, n_rows: int, noise: float = NOISE
) -> dict[str, np.ndarray]:
    """Rows of two views, whose first factors correlate."""
    shared, views = rng.standard_normal(n_rows), {}
    for name, A in zip("xy", loadings, strict=True):
        factors = rng.standard_normal((n_rows, len(A)))
        factors[:, 0] = np.sqrt(SHARED) * shared + np.sqrt(1 - SHARED) * factors[:, 0]
        views[name] = factors @ A + noise * rng.standard_normal((n_rows, A.shape[1]))
    return views


def figures_of_cells(seed: int, n_rows: int) -> dict[str, tuple[float, float]]:
    """Error of the first correlation, and correlation on new rows, by method."""
    rng = np.random.default_rng(seed)
    loadings = rng.standard_normal((2, N_FACTORS, N_FEATURES))
    rows, new = draw(rng, loadings, n_rows), draw(rng, loadings, N_NEW)
    holes = {n: np.where(rng.random(X.shape) < 0.3, np.nan, X) for n, X in rows.items()}
    imputed = {name: SimpleImputer().fit_transform(X) for name, X in holes.items()}
    complete = CCA(1).fit(rows)
    found = {"complete": (0.0, complete.score(new))}
    for name, parameters in METHODS.items():
        if name.startswith("EM") and n_rows > MOST_EM:
            continue
        model = CCA(1, **parameters).fit(holes if "missing" in parameters else imputed)
        error = model.canonical_correlations_ - complete.canonical_correlations_
        found[name] = float(abs(error[0])), model.score(new)
    return found


def report_cells(n_each: list[int], n_seeds: int) -> None:
    print(f"Absolute error of the first correlation / correlation on new rows, {n_seeds} seeds\n")
    print(f"| rows | complete | {' | '.join(METHODS)} |\n|---{'|---' * (len(METHODS) + 1)}|")
    for n_rows in n_each:
        found = [figures_of_cells(seed, n_rows) for seed in range(n_seeds)]
        cells = []
        for name in ("complete", *METHODS):
            if name not in found[0]:
                cells.append("-")
                continue
            values = np.array([own[name] for own in found])
            error, score = values.mean(axis=0)
            of_score = values[:, 1].std(ddof=1) / np.sqrt(n_seeds) if n_seeds > 1 else 0
            shown = "" if name == "complete" else f"{error:.3f} / "
            cells.append(f"{shown}{score:.3f} ± {of_score:.3f}")
        print(f"| {n_rows:,} | {' | '.join(cells)} |", flush=True)


def report_ridges(n_each: list[int], n_seeds: int) -> None:
    ways = {**METHODS, "pairwise, oas": {"missing": "pairwise", "reg": "oas"}}
    ways |= {"EM, oas": {"missing": "em", "reg": "oas"}}
    ways |= {"pairwise, cv": {"missing": "pairwise", "reg": "cv"}}
    ways |= {"EM, cv": {"missing": "em", "reg": "cv"}}
    cases = [(name, *own) for name in KINDS for own in SIZES if own[0] in n_each]
    print(f"\nFirst correlation in training rows / on new rows, {n_seeds} seeds\n")
    print(f"| features, rows, missing | {' | '.join(ways)} |\n|---{'|---' * len(ways)}|")
    for kind, n_rows, share in cases:
        found = []
        for seed in range(n_seeds):
            rng = np.random.default_rng(seed)
            maps, noise = np.array([np.eye(N_FEATURES)] * 2), 0.0
            if kind == "factors":
                maps, noise = rng.standard_normal((2, 3, N_FEATURES)), 0.7
            rows, new = (draw(rng, maps, n, noise) for n in (n_rows, N_NEW))
            holes = {n: np.where(rng.random(X.shape) < share, np.nan, X) for n, X in rows.items()}
            imputed = {name: SimpleImputer().fit_transform(X) for name, X in holes.items()}
            models = [CCA(1, **own).fit(holes if own else imputed) for own in ways.values()]
            found.append(
                [(float(own.canonical_correlations_[0]), own.score(new)) for own in models]
            )
        cells = (f"{r:.3f} / {new:.3f}" for r, new in np.mean(found, axis=0))
        print(f"| {kind}, {n_rows}, {share:.0%} | {' | '.join(cells)} |", flush=True)


def report_views(n_draws: int) -> None:
    order = np.random.default_rng(0).permutation(2000)
    views = fetch_mfeat().views.select(("fou", "kar", "zer"))[order]
    train, test = views[:1500], views[1500:]
    print("\nR@1 / first eigenvalue, views that are missing with a probability\n")
    names = ["complete objects", "pairs of views", "pairwise", "EM"]
    print(f"| probability | complete objects | {' | '.join(names)} |\n|---{'|---' * 5}|")

    def figures(rows: Views, missing: str = "error") -> tuple[float, float]:
        model = MVCCA(30, reg=0.1, missing=missing).fit(rows)
        table = evaluate_retrieval(test, estimator=model, measures="r@1")
        return float(table.mean()["r@1"]), float(model.eigenvalues_[0])

    recall, eigenvalue = figures(train)
    print(f"| 0 | 1500 | {recall:.3f} / {eigenvalue:.3f} |{' |' * 3}")
    for share in (0.3, 0.5, 0.7):
        found = []
        for seed in range(n_draws):
            seen = np.random.default_rng(seed).random((1500, 3)) >= share
            index = np.where(seen, np.arange(1500)[:, None], -1)
            partly = Views(dict(train.items()), index)
            whole = train[seen.all(axis=1)]
            models = [figures(whole), figures(partly)]
            models += [figures(partly, missing) for missing in ("pairwise", "em")]
            found.append([(len(whole), 0.0), *models])
        (n_whole, _), *cells = np.mean(found, axis=0)
        shown = " | ".join(f"{recall:.3f} / {value:.3f}" for recall, value in cells)
        print(f"| {share:g} | {n_whole:.0f} | {shown} |", flush=True)


def main(options: argparse.Namespace) -> None:
    print(machine(1), "\n")
    warnings.simplefilter("ignore")
    if "cells" in options.parts:
        report_cells(options.rows, options.seeds)
    if "ridges" in options.parts:
        report_ridges(options.rows, options.seeds)
    if "views" in options.parts:
        report_views(options.draws)


if __name__ == "__main__":
    main(OPTIONS)
