"""Fits and searches on one GPU, with rows on the GPU and with rows streamed from host memory.

    MVCCA_DATA=../shared/data python -m benchmarks.scale.gpu [--library torch] [--rows 10000000]

Claims, warm, in float32 with TF32 off:

- MVMLCCA with the size of MS-COCO (82,783 rows of 2048 and 300 features, real labels, 18,956
  distinct sets), rows on the device: under 1 s;
- the top 50 of 40,504 queries in 40,504 rows of width 128, both on the device: under 0.5 s;
- CCA of 10 million rows of width 128 + 128 in host memory, copied to the device block by block: at
  least 70 % of the speed at which the library only copies the same blocks.

Without a GPU, the script prints so and exits.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import warnings


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", choices=["torch", "cupy"], help="default: what finds the GPU")
    parser.add_argument("--rows", type=int, default=10_000_000, help="of the streamed fit")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--any-device", help="try the script on torch:cpu; figures mean nothing")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np

from benchmarks._measure import machine
from benchmarks.real import fetch_coco_labels
from benchmarks.scale.label_covariance import planted_views
from mvcca import CCA, MVMLCCA, Views, config_context
from mvcca.blocks import to_host
from mvcca.machine.devices import check_device, mover
from mvcca.retrieval import top_k

COCO_SECONDS, RANKING_SECONDS, COPY_SHARE = 1.0, 0.5, 0.7
N_GALLERY, N_COMPONENTS, K = 40_504, 128, 50
STREAMED_WIDTH = 128
BLOCK_BYTES = 64 * 2**20


def median_seconds(function, repeats):
    """Median of warm runs, including the copy of the result to the host."""
    function()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def report(what, value, unit, holds):
    print(f"{what:64s} {value:9.2f} {unit:12s} {'holds' if holds else 'MISSED'}", flush=True)


def coco_fit(move, repeats):
    try:
        indicators = np.asarray(fetch_coco_labels().train.labels)
    except OSError as error:
        print(f"MVMLCCA of the size of MS-COCO: skipped, {error}")
        return
    views = planted_views(indicators)
    there = views.replace({name: move(block) for name, block in views.items()})

    def fit():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some rows of COCO have no labels
            MVMLCCA(64, within="label").fit(there, indicators)

    seconds = median_seconds(fit, repeats)
    report(
        "MVMLCCA of the size of MS-COCO, rows on the device", seconds, "s", seconds < COCO_SECONDS
    )


def ranking(move, repeats):
    rng = np.random.default_rng(0)
    queries, gallery = (
        move(rng.standard_normal((N_GALLERY, N_COMPONENTS), dtype=np.float32)) for _ in range(2)
    )
    seconds = median_seconds(lambda: top_k(queries, gallery, K), repeats)
    report("Top 50 of 40,504 x 40,504", seconds, "s", seconds < RANKING_SECONDS)


def streamed_fit(device, n_rows, repeats):
    rng = np.random.default_rng(0)
    sample = rng.standard_normal((100_000, 2 * STREAMED_WIDTH), dtype=np.float32)
    sample[:, STREAMED_WIDTH:] += sample[:, :STREAMED_WIDTH]
    copies = -(-n_rows // len(sample))
    halves = (sample[:, :STREAMED_WIDTH], sample[:, STREAMED_WIDTH:])
    views = Views([np.tile(half, (copies, 1))[:n_rows] for half in halves])
    gigabytes = sum(block.nbytes for _, block in views.items()) / 1e9
    height = BLOCK_BYTES // (4 * 2 * STREAMED_WIDTH)

    def copy():
        move = mover(device)
        for start in range(0, n_rows, height):
            for _, block in views.items():
                last = move(block[start : start + height])
        to_host(last[:1, :])

    def fit():
        with config_context(device=device):
            CCA(8).fit(views)

    speed = gigabytes / median_seconds(copy, repeats)
    share = gigabytes / median_seconds(fit, repeats) / speed
    what = f"CCA of {n_rows:,} host rows, of {speed:.1f} GB/s host to device"
    report(what, 100 * share, "% of copying", share >= COPY_SHARE)


def main(options: argparse.Namespace) -> None:
    device = (
        options.any_device or {"torch": "torch:cuda", "cupy": "cupy", None: "cuda"}[options.library]
    )
    try:
        check_device(device)
    except (ImportError, RuntimeError) as error:
        print(f"Nothing to measure here. {error}")
        sys.exit(0)
    print(f"{device}; {machine(1)}")
    move = mover(device)
    coco_fit(move, options.repeats)
    ranking(move, options.repeats)
    streamed_fit(device, options.rows, options.repeats)


if __name__ == "__main__":
    main(OPTIONS)
