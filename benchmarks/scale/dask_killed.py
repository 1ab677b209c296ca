"""CCA of files on Dask workers of which one is killed: the bits of the maps, and the memory.

    python -m benchmarks.scale.dask_killed [--rows 2.7] [--workers 4] [--folder DIR]

Writes two float32 files of 256 and 128 columns (1.5 GB per million rows) and fits CCA on them twice
in two ways: with an active client, and as a map and a reduce of `Moments.of` with `fit_statistic`.
In the second fit of each, `kill -9` ends a worker after a third of the time that the first one
took. Claims: the maps of both fits are equal bit for bit, and above its start, a worker takes at
most two blocks of rows (with `Moments.of`, which reads ahead, four) and four times the sums, as the
user guide says. Linux only.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from operator import add
from pathlib import Path
from typing import Any


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=2.7, help="in millions")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--folder", help="where the files are written")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import dask
import numpy as np
from dask import delayed
from distributed import Client, LocalCluster

from benchmarks._measure import machine
from benchmarks.scale.out_of_core import WIDTHS, write
from mvcca import CCA, Views, open_matrix
from mvcca.statistics import Moments

PART_ROWS = 100_000
BLOCK_BYTES = 2**25  # of rows that a worker reads at a time, see the user guide
LIMIT = "1GB"  # above it, Dask ends a worker
KILLED_AFTER = 0.3  # of the time of the first fit, after which a worker is killed


def main(options: argparse.Namespace) -> None:
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    n_rows = int(options.rows * 1e6)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        write(Path(folder), n_rows)
        size = sum(path.stat().st_size for path in Path(folder).iterdir()) / 1e9
        print(machine(1))
        print(f"CCA(16) of {n_rows:,} rows, {size:.1f} GB, {options.workers} workers of {LIMIT}")
        for fit, in_memory in ((with_client, 2), (as_map_and_reduce, 4)):
            expected, seconds, peak = on_cluster(partial(fit, Path(folder)), options.workers)
            model, _, other = on_cluster(
                partial(fit, Path(folder)), options.workers, KILLED_AFTER * seconds
            )
            same = all(np.array_equal(model.weights_[n], expected.weights_[n]) for n in WIDTHS)
            print(f"claim {'holds' if same else 'FAILS'}: {fit.__name__}, equal bit for bit")
            limit = (in_memory * BLOCK_BYTES + 4 * 8 * sum(WIDTHS.values()) ** 2) / 1e6
            found = max(peak, other)
            print(
                f"claim {'holds' if found <= limit else 'FAILS'}: {fit.__name__}, at most "
                f"{found:.0f} MB above the start of a worker <= {limit:.0f}"
            )


def on_cluster(fit: Callable[[], CCA], n_workers: int, killed_after: float | None = None) -> Any:
    """The model, the seconds that it took, and the most MB that a worker took above its start."""
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "600s"}),  # of a busy machine
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, memory_limit=LIMIT, dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        client.run(warmed_up)
        first = client.run(os.getpid)
        if killed_after is not None:
            killer = threading.Timer(killed_after, os.kill, (min(first.values()), signal.SIGKILL))
            killer.start()
        start = time.perf_counter()
        model = fit()
        model.weights_  # noqa: B018
        seconds = time.perf_counter() - start
        if killed_after is not None:
            killer.join()
        # A worker that was started anew has imported the package in between.
        now = client.run(os.getpid)
        stayed = [address for address, pid in now.items() if pid in first.values()]
        assert len(stayed) == n_workers - (killed_after is not None)
        return model, seconds, max(client.run(above_start, workers=stayed).values())


def with_client(folder: Path) -> CCA:
    """A fit of files, which the active client's workers read."""
    return CCA(16).fit(opened(folder))


def as_map_and_reduce(folder: Path) -> CCA:
    """Moments of parts, added in pairs, as the user guide has it."""
    views = opened(folder)
    starts = range(0, len(views), PART_ROWS)
    parts = [delayed(moments_of)(folder, start) for start in starts]
    while len(parts) > 1:
        pairs = [delayed(add)(*parts[i : i + 2]) for i in range(0, len(parts) - 1, 2)]
        parts = pairs + parts[2 * len(pairs) :]
    (total,) = dask.compute(parts[0])
    return CCA(16).fit_statistic(total)


def moments_of(folder: Path, start: int) -> Moments:
    """Moments of some rows; a task opens the files itself."""
    return Moments.of(opened(folder)[start : start + PART_ROWS])


def opened(folder: Path) -> Views:
    return Views({name: open_matrix(folder / f"{name}.npy") for name in WIDTHS})


def warmed_up() -> None:
    """Import what a fit needs, and note the memory of this process from here on."""
    import mvcca.linear  # noqa: F401

    Moments.of(Views({name: np.eye(100, width) for name, width in WIDTHS.items()}))
    Path("/proc/self/clear_refs").write_text("5")
    os.environ["AT_START"] = str(memory("VmRSS"))


def above_start() -> float:
    """The most memory since then, in MB."""
    return (memory("VmHWM") - int(os.environ["AT_START"])) / 1e3


def memory(kind: str) -> int:
    """Of this process, in KB."""
    [line] = [x for x in Path("/proc/self/status").read_text().splitlines() if kind in x]
    return int(line.split()[1])


if __name__ == "__main__":
    main(OPTIONS)
