"""What a migration keeps: stored rows, queries or both mapped, by the number of pairs.

Multi30K embedded by WordLlama (W), MiniLM (M) and the German e5 (E). Pairs are drawn from the
10,000 training sentences, once per seed; the 1,000 test sentences search all 12,014 rows. Printed
are the share that find their own row first and, after a slash, the share of a query's 10 nearest
rows in the new model, its own row excluded, that are still among the 10 nearest; then the estimate
of `fit_migration`, from the pairs alone, and how many of its standard errors it is off.

With ``--choices``: the same figures of ridge regression on pairs that were chosen, not drawn, and
what a mix of re-embedded and migrated rows keeps.

    MVCCA_DATA=../shared/data python -m benchmarks.alignment.migration_tables [--seeds 2]
        [--pairs 200 ...] [--choices]
"""

from __future__ import annotations

import argparse


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--pairs", type=int, nargs="+", default=[200, 500, 1000, 5000])
    parser.add_argument("--choices", action="store_true", help="compare choices of pairs instead")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import time
import warnings

import numpy as np
from sklearn.cluster import KMeans

from benchmarks._measure import machine
from benchmarks.real import fetch_multi30k_encoders
from mvcca.interop.migration import Migration, fit_migration
from mvcca.retrieval import top_k

CHANGES = (("W-M", "en_wordllama", "en_minilm"), ("M-E", "en_minilm", "de_e5"))
MAPS = (
    ("items", "affine"), ("items", "local"), ("items", "procrustes"),
    ("queries", "cca"), ("queries", "procrustes"), ("both", "cca"),
)  # fmt: skip


def nearest(queries: np.ndarray, items: np.ndarray, own: np.ndarray) -> tuple[float, np.ndarray]:
    """Share of queries that find their own row first, and their 10 nearest other rows."""
    _, found = top_k(queries, items, k=11)
    others = [row[row != mine][:10] for row, mine in zip(found, own, strict=True)]
    return float(np.mean(found[:, 0] == own)), np.array(others)


def shared(rows: np.ndarray, others: np.ndarray) -> float:
    """Share of each row that is in the other."""
    pairs = zip(rows, others, strict=True)
    return float(np.mean([len(np.intersect1d(a, b)) / a.size for a, b in pairs]))


def truth(
    migration: Migration, old: np.ndarray, new: np.ndarray, own: np.ndarray, kept: np.ndarray
) -> tuple[float, float]:
    """R@1 and the share of neighbors kept, of queries among all rows."""
    items = old if migration.direction == "queries" else migration.map_items(old)
    queries = new[own] if migration.direction == "items" else migration.map_queries(new[own])
    first, found = nearest(queries, items, own)
    return first, shared(found, kept)


# ---- which pairs --------------------------------------------------------------------------------


def at_random(rows: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.choice(len(rows), n, replace=False)


def nearest_to_centres(rows: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    seed = int(rng.integers(2**31))
    centres = KMeans(n, n_init=1, max_iter=50, random_state=seed).fit(rows).cluster_centers_
    return np.unique(top_k(centres, rows, 1, "euclidean")[1])


def by_leverage(rows: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    left = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)[0]
    leverages = np.einsum("ij,ij->i", left, left, dtype=float)
    return rng.choice(len(rows), n, replace=False, p=leverages / leverages.sum())


def farthest_point(rows: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    chosen = [int(rng.integers(len(rows)))]
    squares = np.einsum("ij,ij->i", rows, rows)
    distances = np.full(len(rows), np.inf)
    while len(chosen) < n:
        own = chosen[-1]
        distances = np.minimum(distances, squares - 2 * rows @ rows[own] + squares[own])
        chosen.append(int(np.argmax(distances)))
    return np.array(chosen)


def d_optimal(rows: np.ndarray, n: int, _: np.random.Generator) -> np.ndarray:
    """Greedily the row that adds most to log det (Σ x xᵀ + r I), r of .01 of the mean variance."""
    centred = (rows - rows.mean(axis=0)).astype(float)
    gains = np.einsum("ij,ij->i", centred, centred)
    scaled = centred / (0.01 * gains.mean() / rows.shape[1])  # rows times the inverse
    gains /= 0.01 * gains.mean() / rows.shape[1]
    chosen: list[int] = []
    while len(chosen) < n:
        own = int(np.argmax(gains))
        chosen.append(own)
        products = scaled @ centred[own]
        scaled -= np.outer(products / (1 + gains[own]), scaled[own])
        gains = np.einsum("ij,ij->i", centred, scaled)
        gains[chosen] = -np.inf
    return np.array(chosen)


CHOICES = (at_random, nearest_to_centres, by_leverage, farthest_point, d_optimal)


def choices(
    title: str,
    old: np.ndarray,
    new: np.ndarray,
    own: np.ndarray,
    n_train: int,
    options: argparse.Namespace,
) -> None:
    """Ridge regression on pairs that were chosen by their old rows."""
    _, kept = nearest(new[own], new, own)
    for n_pairs in options.pairs:
        for choose in CHOICES:
            rows = []
            for seed in range(options.seeds):
                chosen = choose(old[:n_train], n_pairs, np.random.default_rng(seed))
                with warnings.catch_warnings(action="ignore"):
                    found = fit_migration(old[chosen], new[chosen], stored=old)
                rows.append(truth(found, old, new, own, kept))
            first, neighbors = np.mean(rows, axis=0)
            print(
                f"  {title}, {n_pairs:,} pairs, {choose.__name__}: {first:.3f} / {neighbors:.3f}",
                flush=True,
            )
    drawn = np.random.default_rng(0).choice(n_train, 5_000, replace=False)
    mapped = fit_migration(old[drawn], new[drawn], stored=old).map_items(old)
    mixed = mapped.copy()
    mixed[drawn] = new[drawn]
    for name, items in (("migrated rows", mapped), ("5,000 of them re-embedded", mixed)):
        first, found = nearest(new[own], items, own)
        print(f"  {title}, {name}: {first:.3f} / {shared(found, kept):.3f}", flush=True)


def main(options: argparse.Namespace) -> None:
    print(machine(1))
    data = fetch_multi30k_encoders()
    n_train, n_test = len(data.train.views), len(data.test.views)
    for title, source, target in CHANGES:
        old, new = (
            np.concatenate([data[part].views[name] for part in ("train", "valid", "test")])
            for name in (source, target)
        )
        own = np.arange(len(old) - n_test, len(old))
        if options.choices:
            choices(title, old, new, own, n_train, options)
            continue
        _, kept = nearest(new[own], new, own)
        print(f"{title}: staying keeps {shared(nearest(old[own], old, own)[1], kept):.3f}")
        for n_pairs in options.pairs:
            for direction, method in MAPS:
                rows, seconds = [], time.process_time()
                for seed in range(options.seeds if n_pairs < 5_000 else 1):
                    drawn = np.random.default_rng(seed).choice(n_train, n_pairs, replace=False)
                    with warnings.catch_warnings(action="ignore"):  # of few pairs
                        found = fit_migration(
                            old[drawn], new[drawn], stored=old, direction=direction, method=method
                        )
                    figures = truth(found, old, new, own, kept)
                    rows.append((*figures, found.found_first, found.found_first_error))
                first, neighbors, estimate, error = np.mean(rows, axis=0)
                off = [(own[2] - own[0]) / max(own[3], 1e-9) for own in rows]
                print(
                    f"  {n_pairs:,} pairs, {direction}, {method}: {first:.3f} / {neighbors:.3f}; "
                    f"estimate {estimate:.3f} ± {error:.3f}, off by "
                    f"{', '.join(f'{z:+.1f}' for z in off)}; "
                    f"{time.process_time() - seconds:.1f} s CPU",
                    flush=True,
                )


if __name__ == "__main__":
    main(OPTIONS)
