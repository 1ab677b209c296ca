"""Changing a large index: time and memory, alone and while other threads search; loading it mapped.

    python -m benchmarks.scale.index_updates [--rows 1000000] [--columns 128] [--added 1000]
        [--adds 200]

Claims: `RetrievalIndex.add` of 1,000 rows to 1,000,000 x 128 takes less than 20 ms on average, the
first search afterwards is as fast as any other, and memory stays below 1.5 times the gallery,
without the caller's rows. The floor is a copy of the added rows; the alternative is a concatenation
of the gallery, which an index of a single array needs for every addition. Removing and updating
1,000 rows takes less than a 20th of building the index again; the compaction that frees removed
rows, once they are a quarter, is timed beside them. A search that skips removed rows takes less
than 1.5 times one that has none. Eight threads search while one adds, updates and removes. Finally,
the index is saved, and loaded whole and mapped: without checksums, that takes less than a quarter
of the time, for the ids, and hardly any memory.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from pathlib import Path


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=128)
    parser.add_argument("--added", type=int, default=1_000)
    parser.add_argument("--adds", type=int, default=200)
    parser.add_argument("--similarity", default="cosine")
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks._measure import in_turns, machine, peak_memory, ratio
from mvcca import CCA, RetrievalIndex, load, save

LIMIT_MS, LIMIT_MEMORY, SEARCHERS = 20.0, 1.5, 8
LIMIT_REBUILD, LIMIT_SKIPPING, LIMIT_MAPPED = 0.05, 1.5, 0.25


class Projected:
    """Model of rows that are already projected, so that only the index is measured."""

    def transform(self, X):
        return X


def main(options: argparse.Namespace) -> None:
    print(machine(options.threads))
    with threadpool_limits(options.threads):
        measure(options)


def measure(options):
    rng = np.random.default_rng(0)
    shape = (options.rows, options.columns)
    rows = rng.standard_normal(shape, dtype=np.float32)
    added = rng.standard_normal((options.added, options.columns), dtype=np.float32)
    query = {"a": rows[:1]}
    claims = adding(rows, added, query, options)
    claims |= changes(rows, added, query, options)
    claims |= loading(rows, query, options)
    for name, (value, limit) in claims.items():
        print(f"claim {'holds' if value <= limit else 'FAILS'}: {name} {value:.2f} <= {limit}")


def adding(rows, added, query, options):
    index = RetrievalIndex(Projected(), options.similarity)
    claims = {}
    with peak_memory() as memory:
        start = time.perf_counter()
        index.add({"a": rows})
        print(f"index of {len(rows):,} x {rows.shape[1]}: {time.perf_counter() - start:.2f} s")
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
    return claims


def changes(rows, added, query, options):
    """Remove and update at random, and compare with building the index again."""
    rng = np.random.default_rng(1)
    build = in_turns({"build": lambda: made(rows, options)}, 2)["build"]
    whole, index = made(rows, options), made(rows, options)
    ids = iter(rng.permutation(options.rows).reshape(-1, options.added))
    n_turns = min(options.adds, options.rows // options.added // 10)
    turns = in_turns(
        {
            "remove": lambda: index.remove(next(ids)),
            "update": lambda: index.update({"a": added}, next(ids)),
        },
        n_turns,
    )
    searches = in_turns(
        {"removed": lambda: index.search(query), "whole": lambda: whole.search(query)}, 20
    )
    share = index._contents.views["a"].removed.n / options.rows
    compacted = in_turns({"compaction": index._contents.views["a"].compacted}, 2)["compaction"]
    for name, timing in (turns | {"build": build, "compaction": compacted}).items():
        mean, worst = np.mean(timing.wall), np.max(timing.wall)
        print(f"{name:24} {1e3 * mean:9.3f} ms on average, {1e3 * worst:9.3f} ms at most")
    seconds = np.mean(build.wall)
    skipping = np.median(searches["removed"].wall) / np.median(searches["whole"].wall)
    print(f"search with {share:.0%} of the rows removed / without: {skipping:.2f} x wall")
    beside_searches(index, query, added, ids, options)
    return {
        "remove / build": (np.mean(turns["remove"].wall) / seconds, LIMIT_REBUILD),
        "update / build": (np.mean(turns["update"].wall) / seconds, LIMIT_REBUILD),
        "search with removed rows / without": (skipping, LIMIT_SKIPPING),
    }


def made(rows, options):
    return RetrievalIndex(Projected(), options.similarity).add({"a": rows})


def beside_searches(index, query, added, ids, options):
    done, counts = threading.Event(), [0] * SEARCHERS

    def search(number):
        while not done.is_set():
            index.search(query)
            counts[number] += 1

    searchers = [threading.Thread(target=search, args=(i,)) for i in range(SEARCHERS)]
    for searcher in searchers:
        searcher.start()
    start, n_changes = time.perf_counter(), max(1, options.adds // 10)
    for _ in range(n_changes):
        index.add({"a": added})
        index.update({"a": added}, next(ids))
        index.remove(next(ids))
    seconds = time.perf_counter() - start
    done.set()
    for searcher in searchers:
        searcher.join()
    print(
        f"{SEARCHERS} threads searching: {1e3 * seconds / n_changes:.2f} ms for an add, an update "
        f"and a removal, {sum(counts) / seconds:.1f} searches per second meanwhile"
    )


def loading(rows, query, options):
    """Load an index whole and mapped; a model that is stored stands in for `Projected`."""
    width = options.columns
    few = {name: rows[: 4 * width].astype(np.float64) for name in "ab"}
    index = RetrievalIndex(CCA(width, reg=0.1).fit(few), options.similarity)
    index.add({"a": rows})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index.mvcca"
        start = time.perf_counter()
        save(index, path)
        print(f"save: {time.perf_counter() - start:.2f} s, {path.stat().st_size / 1e6:.0f} MB")
        del index
        ways = {
            "load": {},
            "load mapped": {"mmap": True},
            "load mapped, unverified": {"mmap": True, "verify": False},
        }
        memory, timings = {}, {}
        for name, arguments in ways.items():
            with peak_memory() as memory[name]:
                timings[name] = in_turns({name: lambda kw=arguments: load(path, **kw)}, 1)[name]
            print(f"{name:24} {timings[name].wall[0]:6.2f} s, {memory[name]['MB']:6.0f} MB")
        loaded, mapped = load(path), load(path, mmap=True, verify=False)
        turns = in_turns(
            {"load": lambda: loaded.search(query), "mapped": lambda: mapped.search(query)}, 10
        )
        print(f"search mapped / in memory: {ratio(turns['mapped'], turns['load'])}")
    lazily = timings["load mapped, unverified"].wall[0] / timings["load"].wall[0]
    return {"load mapped, unverified / load": (lazily, LIMIT_MAPPED)}


if __name__ == "__main__":
    main(OPTIONS)
