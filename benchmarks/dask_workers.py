"""Two Dask workers of one thread each against one: CCA of files and of Dask arrays, out of memory.

    python benchmarks/dask_workers.py [--rows 400000] [--rounds 3]

Goal: 1.8 times the throughput of one worker, and memory of a worker by the block, not by the rows.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import dask.array as da
import numpy as np
import zarr
from _measure import in_turns, machine, ratio
from distributed import Client, LocalCluster

from mvcca import CCA, open_matrix

WIDTHS = {"image": 512, "text": 256}
CHUNK_ROWS = 10_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    logging.getLogger("distributed").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        write(Path(folder), options.rows)
        clients = {n: stack.enter_context(workers(n)) for n in (1, 2)}
        for client in clients.values():
            stack.callback(client.cluster.close)
        print(machine(threads=1))
        print(f"CCA(64) of {options.rows:,} rows of {WIDTHS}, float32")
        print(
            f"{'source':12} {'1 worker':>14} {'2 workers':>14} {'throughput':>11} {'MB/worker':>10}"
        )
        for kind, views in sources(Path(folder)).items():
            runs = {str(n): partial(fit_on, client, views) for n, client in clients.items()}
            timings = in_turns(runs, options.rounds)
            one, two = (np.median(timings[n].wall) for n in ("1", "2"))
            gain = ratio(timings["1"], timings["2"]).partition(" wall")[0]
            rates = [f"{options.rows / seconds:,.0f} rows/s" for seconds in (one, two)]
            print(f"{kind:12} {rates[0]:>14} {rates[1]:>14} {gain:>11} {peak(clients[2]):10.0f}")


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


def workers(n: int) -> Client:
    """A client of a cluster of its own, which has imported all that a fit needs."""
    cluster = LocalCluster(
        n_workers=n, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.ERROR
    )
    client = Client(cluster, set_as_default=False)
    client.run(partial(__import__, "mvcca.linear"))
    return client


def fit_on(client: Client, views: dict[str, object]) -> None:
    with client.as_current():
        CCA(64).fit(views)


def peak(client: Client) -> float:
    """Most megabytes that a worker ever had (Linux)."""
    return max(client.run(_high_water).values()) / 1e3


def _high_water() -> int:
    [line] = [x for x in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in x]
    return int(line.split()[1])


if __name__ == "__main__":
    main()
