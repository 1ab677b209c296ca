"""CCA of files larger than memory: time per row, process memory, and the floors of both.

    python -m benchmarks.scale.out_of_core [--rows 1 3 10] [--folder DIR] [--threads 2]

Writes two float32 files of 256 and 128 columns (1.5 GB per million rows), fits CCA on them in a
separate process, and deletes them. The floors are symmetric products of as many in-memory blocks of
384 columns, and reading the files without the page cache. Linux only.
"""

from __future__ import annotations

import argparse
import mmap
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", nargs="+", type=float, default=[1, 3, 10], help="in millions")
    parser.add_argument("--folder", help="where the files are written: 15 GB for 10 million rows")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--fit", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np

from benchmarks._measure import machine

WIDTHS = {"image": 256, "text": 128}
BLOCK = 40_000


def write(folder: Path, n_rows: int) -> None:
    """Write files with ten common directions, in chunks."""
    rng = np.random.default_rng(0)
    mixing = {name: rng.standard_normal((10, d), dtype=np.float32) for name, d in WIDTHS.items()}
    noise = rng.standard_normal((BLOCK, max(WIDTHS.values())), dtype=np.float32)
    files = {}
    for name, width in WIDTHS.items():
        file = files[name] = (folder / f"{name}.npy").open("wb")
        header = {"descr": "<f4", "fortran_order": False, "shape": (n_rows, width)}
        np.lib.format.write_array_header_1_0(file, header)
    for start in range(0, n_rows, BLOCK):
        shared = rng.standard_normal((min(BLOCK, n_rows - start), 10), dtype=np.float32)
        for name, file in files.items():
            rows = np.roll(noise, int(rng.integers(BLOCK)), axis=0)[: len(shared), : WIDTHS[name]]
            file.write((shared @ mixing[name] + rows).tobytes())
    for file in files.values():
        file.flush()
        os.fsync(file.fileno())
        file.close()


def fit(folder: Path) -> None:
    """Fit in the separate process; returns seconds and peak memory."""
    from mvcca import CCA, open_matrix

    views = {name: open_matrix(folder / f"{name}.npy") for name in WIDTHS}
    start, cpu = time.perf_counter(), time.process_time()
    model = CCA(64).fit(views)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    print(seconds, cpu, peak, model.canonical_correlations_[:10].sum())


def seconds_of_products(n_rows: int) -> float:
    """Time of symmetric products of in-memory blocks, extrapolated from up to 1.2 million rows."""
    block = np.random.default_rng(0).standard_normal((BLOCK, 384), dtype=np.float32)
    n_blocks = min(30, n_rows // BLOCK)
    block.T @ block
    start = time.perf_counter()
    for _ in range(n_blocks):
        block.T @ block
    return (time.perf_counter() - start) * n_rows / (n_blocks * BLOCK)


def seconds_of_reading(folder: Path, n_rows: int) -> float:
    """Time to read the files without the page cache, extrapolated from up to 3 GB."""
    buffer = mmap.mmap(-1, 2**24)  # page-aligned, as O_DIRECT requires
    done, start = 0, time.perf_counter()
    for name in WIDTHS:
        file = os.open(folder / f"{name}.npy", os.O_RDONLY | os.O_DIRECT)
        while done < 3e9 and (n := os.readv(file, [buffer])) > 0:
            done += n
        os.close(file)
    return (time.perf_counter() - start) * n_rows * 4 * sum(WIDTHS.values()) / done


def drop_from_cache(folder: Path) -> None:
    for name in WIDTHS:
        file = os.open(folder / f"{name}.npy", os.O_RDONLY)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)


def measure(n_rows: int, parent: str | None, threads: int) -> None:
    with tempfile.TemporaryDirectory(dir=parent) as name:
        folder = Path(name)
        write(folder, n_rows)
        reading, products = seconds_of_reading(folder, n_rows), seconds_of_products(n_rows)
        drop_from_cache(folder)
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        command = [sys.executable, "-m", "benchmarks.scale.out_of_core", "--fit", name]
        answer = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        )
        seconds, cpu, peak, total = map(float, answer.stdout.split())
    floor = max(reading, products)
    print(
        f"| {n_rows / 1e6:g} million | {seconds:.1f} | {cpu:.1f} | {1e6 * seconds / n_rows:.2f} "
        f"| {peak:.2f} | {products:.1f} | {reading:.1f} | {floor / seconds:.0%} | {total:.4f} |",
        flush=True,
    )


def main(options: argparse.Namespace) -> None:
    if options.fit:
        fit(Path(options.fit))
        return
    print(machine(options.threads), end="\n\n")
    titles = ["rows", "fit, s", "CPU, s", "µs a row", "process memory, GB"]
    titles += ["products alone, s", "disk alone, s", "of the slower floor", "Σρ of 10"]
    print(f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}")
    for millions in options.rows:
        measure(int(millions * 1e6), options.folder, options.threads)


if __name__ == "__main__":
    main(OPTIONS)
