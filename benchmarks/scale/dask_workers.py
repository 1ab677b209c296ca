"""Throughput of two single-threaded Dask workers relative to one: CCA of files and Dask arrays.

    python -m benchmarks.scale.dask_workers [--rows 400000] [--rounds 15] [--monitored]

Goals: 1.8 times the throughput of one worker, and a memory of workers that depends on the block
size, not on the number of rows. Each worker is pinned to a core, and a single worker is measured on
each core in turn, because the speed of shared cores differs. For comparison, the script measures
plain processes that only multiply, and that read, center and multiply. Scheduler and client share
the two cores, unlike on a cluster. Most of their time monitors workers, so Dask's profiler and
ticks are off unless `--monitored` is given.
"""

from __future__ import annotations

import argparse
import logging
import os
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from multiprocessing import SimpleQueue, get_context
from pathlib import Path


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--monitored", action="store_true", help="leave Dask's profiler on")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import dask
import dask.array as da
import numpy as np
import zarr
from distributed import Client, LocalCluster

from benchmarks._measure import in_turns, machine
from mvcca import CCA, open_matrix

WIDTHS = {"image": 512, "text": 256}
CHUNK_ROWS = 10_000
LANE_ROWS = 4 * CHUNK_ROWS
PLACES = {"one here": [0], "one there": [1], "two": [0, 1]}  # cores
UNWATCHED = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
}


def main(options: argparse.Namespace) -> None:
    logging.getLogger("distributed").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        write(Path(folder), options.rows)
        stack.enter_context(dask.config.set({} if options.monitored else UNWATCHED))
        clients = {name: stack.enter_context(workers(on)) for name, on in PLACES.items()}
        for client in clients.values():
            stack.callback(client.cluster.close)
        pools = {name: stack.enter_context(processes(on)) for name, on in PLACES.items()}
        print(machine(threads=1))
        print(f"CCA(64) of {options.rows:,} rows of {WIDTHS}, float32, {options.rounds} rounds")
        print(f"{'rows/s':16} {'one':>10} {'two':>10} {'throughput':>11} {'MB/worker':>10}")
        lanes = range(0, options.rows, LANE_ROWS)
        for label, done in (
            ("products alone", multiply),
            ("plain processes", partial(read_and_multiply, Path(folder))),
        ):
            runs = {
                name: lambda pool=pool, done=done: list(pool.map(done, lanes))
                for name, pool in pools.items()
            }
            print(compared(label, runs, options))
        for kind, views in sources(Path(folder)).items():
            fits = {name: partial(fit_on, client, views) for name, client in clients.items()}
            print(compared(kind, fits, options), f"{peak(clients['two']):10.0f}")


def compared(label: str, runs: dict[str, Callable[[], object]], options: argparse.Namespace) -> str:
    """Rows per second of one worker, averaged over both cores, and of two, over all rounds."""
    timings = in_turns(runs, options.rounds)
    rates = {name: options.rows / np.mean(timings[name].wall) for name in runs}
    one, two = (rates["one here"] + rates["one there"]) / 2, rates["two"]
    return f"{label:16} {one:10,.0f} {two:10,.0f} {two / one:9.2f} x"


def write(folder: Path, n_rows: int) -> None:
    """Two views of 32 common sources, chunk by chunk, as .npy and as zarr."""
    rng = np.random.default_rng(0)
    maps = {name: rng.normal(size=(32, width)) for name, width in WIDTHS.items()}
    stores = {
        name: (
            np.lib.format.open_memmap(
                folder / f"{name}.npy", "w+", np.float32, (n_rows, width)
            ),
            zarr.create_array(
                folder / f"{name}.zarr", shape=(n_rows, width), chunks=(CHUNK_ROWS, width),
                dtype=np.float32, compressors=None,
            ),
        )
        for name, width in WIDTHS.items()
    }  # fmt: skip
    for start in range(0, n_rows, CHUNK_ROWS):
        rows = slice(start, min(start + CHUNK_ROWS, n_rows))
        common = rng.normal(size=(rows.stop - start, 32))
        for name, width in WIDTHS.items():
            block = common @ maps[name] + rng.normal(size=(rows.stop - start, width))
            for store in stores[name]:
                store[rows] = block


def sources(folder: Path) -> dict[str, dict[str, object]]:
    """The same views as files that workers open, and as Dask arrays over zarr."""
    return {
        "files": {name: open_matrix(folder / f"{name}.npy") for name in WIDTHS},
        "Dask arrays": {name: da.from_zarr(str(folder / f"{name}.zarr")) for name in WIDTHS},
    }


def workers(cores: list[int]) -> Client:
    """Client of a cluster with one worker per core, after importing everything that a fit needs."""
    cluster = LocalCluster(
        n_workers=len(cores), threads_per_worker=1, dashboard_address=":0",
        silence_logs=logging.ERROR,
    )  # fmt: skip
    client = Client(cluster, set_as_default=False)
    client.run(partial(__import__, "mvcca.linear"))
    for core, address in zip(cores, client.scheduler_info()["workers"], strict=True):
        client.run(stay_on, core, workers=[address])
    return client


def processes(cores: list[int]) -> ProcessPoolExecutor:
    """One process per core, taking tasks from a common queue."""
    context = get_context("spawn")
    free = context.SimpleQueue()
    for core in cores:
        free.put(core)
    return ProcessPoolExecutor(len(cores), context, stay_on_next, [free])


def stay_on_next(cores: SimpleQueue[int]) -> None:
    stay_on(cores.get())


def stay_on(core: int) -> None:
    """Pin all threads of this process to a core (Linux)."""
    for thread in Path("/proc/self/task").iterdir():
        os.sched_setaffinity(int(thread.name), {core})


def fit_on(client: Client, views: dict[str, object]) -> None:
    with client.as_current():
        CCA(64).fit(views)


def multiply(_: int) -> None:
    """Multiply a lane of rows that are in memory."""
    X = np.ones((CHUNK_ROWS, sum(WIDTHS.values())), dtype=np.float32)
    for _ in range(LANE_ROWS // CHUNK_ROWS):
        X.T @ X


def read_and_multiply(folder: Path, start: int) -> None:
    """Read, center and multiply a lane of blocks, the minimum work of a fit."""
    views = [np.load(folder / f"{name}.npy", mmap_mode="r") for name in WIDTHS]
    stop = min(start + LANE_ROWS, len(views[0]))
    for row in range(start, stop, CHUNK_ROWS):
        X = np.hstack([view[row : min(row + CHUNK_ROWS, stop)] for view in views])
        X -= X.mean(axis=0)
        X.T @ X


def peak(client: Client) -> float:
    """Peak memory of a worker in megabytes (Linux)."""
    return max(client.run(_high_water).values()) / 1e3


def _high_water() -> int:
    [line] = [x for x in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in x]
    return int(line.split()[1])


if __name__ == "__main__":
    main(OPTIONS)
