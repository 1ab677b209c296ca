"""What does it cost to open tables in text, beside NumPy's bare parser?

    python -m benchmarks.scale.reading [--megabytes 9] [--repeats 5]

Three shapes of about as many bytes: wide (80 x 10,000), square (8,000 x 100) and long
(200,000 x 4), with a header, with ids in the first column and without. The floor is
`numpy.loadtxt` of the same open file, which names no rows and checks nothing. Claim, by minima of
CPU time: `read_table` takes at most 3 times as long as the floor in every shape.
"""

from __future__ import annotations

import argparse
import os


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=9, help="size of each file")
    parser.add_argument("--repeats", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import tempfile
from pathlib import Path

import numpy as np

from benchmarks._measure import in_turns, machine
from mvcca.blocks import read_table

SHAPES = {"wide": (80, 10_000), "square": (8_000, 100), "long": (200_000, 4)}
LIMIT = 3.0


def written(path: Path, shape: tuple[int, int], megabytes: float, ids: bool) -> int:
    """Write a table of decimals, whose rows are repeated or cut to the size; returns its width."""
    rows = max(3, round(shape[0] * megabytes / 9))
    X = np.random.default_rng(0).normal(size=(rows, shape[1])).round(7)
    with open(path, "w", encoding="utf-8") as file:
        file.write(",".join([*(["sample"] if ids else []), *(f"g{j}" for j in range(shape[1]))]))
        for number, row in enumerate(X.tolist()):
            name = [f"S{number:06d}"] if ids else []
            file.write("\n" + ",".join([*name, *map(repr, row)]))
        file.write("\n")
    return shape[1]


def main(options: argparse.Namespace) -> None:
    print(machine("1"))
    print(f"{'shape':8}{'ids':6}{'MB':>6}{'floor s':>9}{'read s':>9}{'ratio':>7}")
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for name, shape in SHAPES.items():
            for ids in (True, False):
                path = Path(folder) / f"{name}{ids}.csv"
                width = written(path, shape, options.megabytes, ids)
                columns = range(ids, width + ids)
                sides = {
                    "floor": lambda p=path, c=columns: np.loadtxt(
                        p, delimiter=",", skiprows=1, usecols=c
                    ),
                    "read": lambda p=path: read_table(p),
                }
                seconds = {one: min(t.cpu) for one, t in in_turns(sides, options.repeats).items()}
                ratio = seconds["read"] / seconds["floor"]
                worst = max(worst, ratio)
                print(
                    f"{name:8}{'yes' if ids else 'no':6}{path.stat().st_size / 1e6:6.1f}"
                    f"{seconds['floor']:9.3f}{seconds['read']:9.3f}{ratio:7.2f}",
                    flush=True,
                )
    print(f"claim {'holds' if worst <= LIMIT else 'FAILS'}: worst ratio {worst:.2f} <= {LIMIT}")


if __name__ == "__main__":
    main(OPTIONS)
