"""What a migration keeps: stored rows, queries or both mapped, by the number of pairs.

Multi30K embedded by WordLlama (W), MiniLM (M) and the German e5 (E). Pairs are drawn from the
10,000 training sentences, once per seed; the 1,000 test sentences search all 12,014 rows. Printed
are the share that find their own row first and, after a slash, the share of a query's 10 nearest
rows in the new model, its own row excluded, that are still among the 10 nearest; then the estimate
of `fit_migration`, from the pairs alone, and how many of its standard errors it is off.

    MVCCA_DATA=../shared/data python benchmarks/migration_tables.py [--seeds 2] [--pairs 200 ...]
"""

from __future__ import annotations

import argparse


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--pairs", type=int, nargs="+", default=[200, 500, 1000, 5000])
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import time
import warnings

import numpy as np
from _measure import machine
from real import fetch_multi30k_encoders

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
