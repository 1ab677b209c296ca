"""Migration of stored vectors, file to file, against its two floors: disk and matrix product.

Writes ROWS x 384 float32 vectors, and a sample of 1,000 rows of another model. In turns:

- `mvcca migrate`: reads the vectors, maps them and writes the result; start-up, the choice among
  18 ridges, the fit to the sample and its measure in a gallery of 100,000 rows are part of it;
- `mvcca transform`: maps the same vectors by a map that `mvcca migrate` has written;
- the same in a running process, without the start of Python and its imports;
- the disk floor: the same bytes read and written, and synchronized, by plain system calls;
- the GEMM floor: the products of the map alone, on rows in memory, by all BLAS threads.

The page cache is dropped for the file before each run. Peak memory is that of the command.

    python -m benchmarks.alignment.migration [--rows 1000000] [--repeats 3] [--directory DIR]
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--directory", type=Path, help="of the files (default: temporary)")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np
from threadpoolctl import threadpool_info

from benchmarks._measure import machine
from mvcca import open_matrix
from mvcca.interop.migration import Migration
from mvcca.machine.replacing import replacing
from mvcca.statistics.passes import ProjectedRows

WIDTH, SAMPLE = 384, 1_000
BLOCK = 10_000  # rows


def write_vectors(directory: Path, n_rows: int) -> None:
    rng = np.random.default_rng(0)
    mixing = rng.standard_normal((64, WIDTH), dtype=np.float32)
    rotation = np.linalg.qr(rng.standard_normal((WIDTH, WIDTH)))[0].astype(np.float32)
    header = {"descr": "<f4", "fortran_order": False, "shape": (n_rows, WIDTH)}
    numbers, sample = np.sort(rng.permutation(n_rows)[:SAMPLE]), []
    with open(directory / "old.npy", "wb") as file:  # a memory map would count as this process's
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, n_rows, BLOCK):
            rows = rng.standard_normal((min(BLOCK, n_rows - start), 64), dtype=np.float32) @ mixing
            rows = rows / 8 + rng.standard_normal(rows.shape, dtype=np.float32)
            file.write(rows.data)
            within = (numbers >= start) & (numbers < start + len(rows))
            sample.append(rows[numbers[within] - start])
    noise = rng.standard_normal((SAMPLE, WIDTH), dtype=np.float32)
    np.save(directory / "sample.npy", numbers)
    np.save(directory / "new.npy", np.concatenate(sample) @ rotation + 0.1 * noise)


def drop_from_cache(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def migrate(directory: Path, output: str = "migrated.npy") -> None:
    command = [sys.executable, "-m", "mvcca", "migrate", "old.npy", "new.npy"]
    options = ["--sample", "sample.npy", "-o", output]
    subprocess.run([*command, *options], cwd=directory, check=True, stdout=subprocess.DEVNULL)


def transform(directory: Path) -> None:
    command = [sys.executable, "-m", "mvcca", "transform", "map.mvcca", "--view", "old=old.npy"]
    options = ["-o", "migrated.npy"]
    subprocess.run([*command, *options], cwd=directory, check=True, stdout=subprocess.DEVNULL)


def mapped(directory: Path) -> None:
    """What `mvcca transform` does once it runs."""
    old = directory / "old.npy"
    project = Migration.load(directory / "map.mvcca").transform
    with replacing(directory / "migrated.npy") as file:
        ProjectedRows(project, {"old": open_matrix(old)}, str(old)).write(file, ".npy")


def disk(directory: Path) -> None:
    n_bytes = BLOCK * WIDTH * 4
    with open(directory / "old.npy", "rb", 0) as old, open(directory / "copy.npy", "wb", 0) as new:
        while block := old.read(n_bytes):
            new.write(block)
        os.fsync(new.fileno())


def product(n_rows: int) -> None:
    rows = np.ones((BLOCK, WIDTH), dtype=np.float32)
    weights = np.ones((WIDTH, WIDTH), dtype=np.float32)
    out = np.empty_like(rows)
    for _ in range(n_rows // BLOCK):
        np.matmul(rows, weights, out=out)


def cpu_seconds() -> float:
    """CPU time of this process and of the commands that it has run."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def main(options: argparse.Namespace) -> None:
    directory = Path(tempfile.mkdtemp(dir=options.directory))
    names = ("migrate", "transform", "mapped", "disk", "product")
    seconds: dict[str, list[float]] = {name: [] for name in names}
    cpu: dict[str, list[float]] = {name: [] for name in names}
    try:
        write_vectors(directory, options.rows)
        migrate(directory, "map.mvcca")
        for _ in range(options.repeats):
            runs = {
                "migrate": lambda: migrate(directory),
                "transform": lambda: transform(directory),
                "mapped": lambda: mapped(directory),
                "disk": lambda: disk(directory),
                "product": lambda: product(options.rows),
            }
            for name, run in runs.items():
                drop_from_cache(directory / "old.npy")
                for written in ("migrated.npy", "copy.npy"):
                    (directory / written).unlink(missing_ok=True)
                start, used = time.perf_counter(), cpu_seconds()
                run()
                seconds[name].append(time.perf_counter() - start)
                cpu[name].append(cpu_seconds() - used)
    finally:
        shutil.rmtree(directory)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3
    print(machine(max(library["num_threads"] for library in threadpool_info())))
    print(f"{options.rows:,} x {WIDTH} float32, medians of {options.repeats} runs in turns\n")
    for name, values in seconds.items():
        used = statistics.median(cpu[name])
        print(f"{name:9s} {statistics.median(values):6.1f} s wall {np.round(values, 1)}", end="")
        print(f" {used:6.1f} s CPU")
    for command in ("migrate", "transform", "mapped"):
        slower = map(max, seconds["disk"], seconds["product"])
        share = [floor / own for floor, own in zip(slower, seconds[command], strict=True)]
        print(f"{command}: {statistics.median(share):.0%} of the speed of the slower floor")
    print(f"peak memory of a command: {peak:,.0f} MB")


if __name__ == "__main__":
    main(OPTIONS)
