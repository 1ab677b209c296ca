"""Fits and searches on one GPU, with rows on the GPU and with rows streamed from host memory.

    MVCCA_DATA=../shared/data python -m benchmarks.scale.gpu [--library torch] [--rows 4000000]

Claims, warm, in float32 with TF32 off:

- MVMLCCA with the size of MS-COCO (82,783 rows of 2048 and 300 features, real labels, 18,956
  distinct sets), rows on the device: under 0.3 s, and so MLCCA, CCA, and MVCCA of three views;
- the top 50 of 40,504 queries in 40,504 rows of width 128, both on the device: under 0.5 s;
- CCA of 4 million rows of width 128 + 128 in host memory, copied to the device block by block: at
  least 1.5 times as fast as the library copies the same blocks from memory that is not pinned;
- an epoch of DCCA, LearnedRanking, CCAL and MSDS, 50,000 rows on the device: at most 1.1 times that
  of a bare loop (torch).

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
    parser.add_argument("--rows", type=int, default=4_000_000, help="of the streamed fit")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--coco-rows", type=int, help="of MS-COCO; by default all 82,783")
    parser.add_argument("--epoch-rows", type=int, default=50_000, help="of networks")
    parser.add_argument("--any-device", help="try the script on torch:cpu; figures mean nothing")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np

from benchmarks._measure import machine
from benchmarks.real import fetch_coco_labels
from benchmarks.scale.label_covariance import planted_views
from mvcca import CCA, MLCCA, MVCCA, MVMLCCA, Views, config_context
from mvcca.blocks import namespace, to_host
from mvcca.machine.devices import check_device, mover
from mvcca.retrieval import top_k

COCO_SECONDS, RANKING_SECONDS, COPY_RATIO, EPOCH_RATIO = 0.3, 0.5, 1.5, 1.1
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


def coco_fits(move, n_rows, repeats):
    try:
        indicators = np.asarray(fetch_coco_labels().train.labels)[:n_rows]
    except OSError as error:
        print(f"Fits of the size of MS-COCO: skipped, {error}")
        return
    views = planted_views(indicators)
    there = views.replace({name: move(block) for name, block in views.items()})
    two = dict(there.items())
    three = two | {"half": two["image"][:, :1024]}
    fits = {
        'MVMLCCA(within="label")': lambda: MVMLCCA(64, within="label").fit(there, indicators),
        "MVMLCCA": lambda: MVMLCCA(64).fit(there, indicators),
        "MLCCA": lambda: MLCCA(64).fit(there, indicators),
        "CCA": lambda: CCA(64).fit(there),
        "MVCCA of three views": lambda: MVCCA(64, reg=0.1).fit(three),
    }
    for name, fit in fits.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some rows of COCO have no labels
            seconds = median_seconds(fit, repeats)
        what = f"{name} of the size of MS-COCO, rows on the device"
        report(what, seconds, "s", seconds < COCO_SECONDS)


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

    copied = plainly(device)

    def copy():
        for start in range(0, n_rows, height):
            for _, block in views.items():
                last = copied(block[start : start + height])
        to_host(last[:1, :])

    def fit():
        with config_context(device=device):
            CCA(8).fit(views)

    speed = gigabytes / median_seconds(copy, repeats)
    ratio = gigabytes / median_seconds(fit, repeats) / speed
    what = f"CCA of {n_rows:,} host rows, of {speed:.1f} GB/s of pageable copies"
    report(what, ratio, "x copying", ratio >= COPY_RATIO)


def plainly(device):
    """A function that copies rows to a device as its library does by itself."""
    like = mover(device)(np.zeros((1, 1), np.float32))
    return lambda rows: namespace(like).asarray(rows, device=like.device)


def epochs(device, n_rows, repeats):
    from benchmarks.scale.deep_epoch import METHODS, on_device

    rng = np.random.default_rng(0)
    X = {name: rng.random((n_rows, 392), dtype=np.float32) for name in "ab"}
    for name in ("dcca", "ranking", "ccal", "msds"):
        bare, trainer = on_device(METHODS[name], X, device, repeats)
        what = f"Epoch of {name}, of {bare:.2f} s in a bare loop"
        report(what, trainer / bare, "x bare", trainer / bare <= EPOCH_RATIO)


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
    coco_fits(move, options.coco_rows, options.repeats)
    ranking(move, options.repeats)
    streamed_fit(device, options.rows, options.repeats)
    if "torch" in type(move(np.zeros((1, 1)))).__module__ and not options.any_device:
        epochs("cuda", options.epoch_rows, options.repeats)


if __name__ == "__main__":
    main(OPTIONS)
