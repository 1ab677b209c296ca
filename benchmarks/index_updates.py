"""Adding to a large index: time and memory, alone and while other threads search.

    python benchmarks/index_updates.py [--rows 1000000] [--columns 128] [--added 1000] [--adds 200]

Claims: `RetrievalIndex.add` of 1,000 rows to 1,000,000 x 128 takes less than 20 ms on average, the
first search afterwards is as fast as any other, and memory stays below 1.5 times the gallery,
without the caller's rows. The floor is a copy of the added rows; the alternative is a concatenation
of the gallery, which an index of a single array needs for every addition. Finally, eight threads
search while one adds.
"""

from __future__ import annotations

import argparse
import threading
import time

import numpy as np
from _measure import in_turns, machine, peak_memory, ratio
from threadpoolctl import threadpool_limits

from mvcca import RetrievalIndex

LIMIT_MS, LIMIT_MEMORY, SEARCHERS = 20.0, 1.5, 8


class Projected:
    """Model of rows that are already projected, so that only the index is measured."""

    def transform(self, X):
        return X


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=128)
    parser.add_argument("--added", type=int, default=1_000)
    parser.add_argument("--adds", type=int, default=200)
    parser.add_argument("--similarity", default="cosine")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    print(machine(options.threads))
    with threadpool_limits(options.threads):
        measure(options)


def measure(options):
    rng = np.random.default_rng(0)
    shape = (options.rows, options.columns)
    rows = rng.standard_normal(shape, dtype=np.float32)
    added = rng.standard_normal((options.added, options.columns), dtype=np.float32)
    query = {"a": rows[:1]}
    index = RetrievalIndex(Projected(), options.similarity)
    claims = {}
    with peak_memory() as memory:
        start = time.perf_counter()
        index.add({"a": rows})
        print(f"index of {shape[0]:,} x {shape[1]}: {time.perf_counter() - start:.2f} s")
        index.search(query)  # compiles
        turns = in_turns(
            {
                "search": lambda: index.search(query),
                "add": lambda: index.add({"a": added}),
                "search after add": lambda: index.search(query),
                "copy of the added rows": lambda: added.copy(),
            },
            options.adds,
        )
    claims["memory / gallery"] = memory["MB"] * 1e6 / rows.nbytes, LIMIT_MEMORY
    peer = in_turns({"concatenation": lambda: np.concatenate([rows, added])}, 3)["concatenation"]
    for name, timing in (turns | {"concatenation": peer}).items():
        mean, worst = np.mean(timing.wall), np.max(timing.wall)
        print(f"{name:24} {1e3 * mean:9.3f} ms on average, {1e3 * worst:9.3f} ms at most")
    print(f"add / copy of the added rows: {ratio(turns['add'], turns['copy of the added rows'])}")
    print(f"search after add / search: {ratio(turns['search after add'], turns['search'])}")
    print(f"add / concatenation: {np.mean(turns['add'].wall) / np.mean(peer.wall):.5f} x wall")
    claims["ms per add"] = 1e3 * np.mean(turns["add"].wall), LIMIT_MS
    beside_searches(index, query, added, options)
    for name, (value, limit) in claims.items():
        print(f"claim {'holds' if value <= limit else 'FAILS'}: {name} {value:.2f} <= {limit}")


def beside_searches(index, query, added, options):
    done, counts = threading.Event(), [0] * SEARCHERS

    def search(number):
        while not done.is_set():
            index.search(query)
            counts[number] += 1

    searchers = [threading.Thread(target=search, args=(i,)) for i in range(SEARCHERS)]
    for searcher in searchers:
        searcher.start()
    start = time.perf_counter()
    for _ in range(options.adds):
        index.add({"a": added})
    seconds = time.perf_counter() - start
    done.set()
    for searcher in searchers:
        searcher.join()
    print(
        f"{SEARCHERS} threads searching: {1e3 * seconds / options.adds:.2f} ms per add, "
        f"{sum(counts) / seconds:.1f} searches per second meanwhile"
    )


if __name__ == "__main__":
    main()
