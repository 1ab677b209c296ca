"""What do calls and commands cost beside bare algebra of the same rows, and beside imports?

    python -m benchmarks.scale.calls [--rows 100000] [--columns 768] [-k 64] [--batches 10]
        [--objects 1000] [--repeats 5] [--parts transform batches parquet kernels commands]

Rows are float32, with means of .3 deviations. Claims, by minima of CPU time with one BLAS thread:
`CCA.transform` of a view takes at most 1.2 times as long as the product of its rows with the
weights, and memory for the result and 16 MB; `CCA.partial_fit` of batches of 4,096 rows takes at
most 1.7 times as long as their products, the maps included; a fit to Parquet files takes as long as
one to .npy files of the same rows, and 1.8 times their decoding by pyarrow; exact `KCCA` of two
views at most 1.4 times as long as the dual problem of their kernel matrices, solved for all rows
and for the four fifths that each fold leaves. In a fresh process whose modules are compiled, as
where a package is installed, `mvcca search` and `mvcca transform` of 500 rows by a linear model
take at most .5 times as long as importing scikit-learn, `mvcca info` .2 times.
"""

from __future__ import annotations

import argparse
import os


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=768)
    parser.add_argument("-k", type=int, default=64)
    parser.add_argument("--batches", type=int, default=10)
    parser.add_argument("--objects", type=int, default=1_000, help="rows of exact KCCA")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--parts", nargs="+", default=["transform", "batches", "parquet", "kernels", "commands"]
    )
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import resource
import shlex
import subprocess
import sys
import tempfile
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import linalg
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks._measure import in_turns, machine
from mvcca import CCA, KCCA, open_matrix

BATCH_ROWS = 4096
LIMIT_TRANSFORM, LIMIT_MEGABYTES, LIMIT_BATCHES, LIMIT_KERNELS = 1.2, 16.0, 1.7, 1.4
PARQUET_ROWS, PARQUET_WIDTHS, GROUP_ROWS, LIMIT_PARQUET = 40_000, {"x": 512, "y": 256}, 20_000, 1.8


def say(what: str, ratio: float, limit: float) -> None:
    """Print a ratio and whether it keeps its limit."""
    print(f"claim {'holds' if ratio <= limit else 'FAILS'}: {what} {ratio:.2f} <= {limit}")


def transform(options: argparse.Namespace, rng: np.random.Generator) -> None:
    """Time and memory of projecting a view in memory."""
    rows = rng.standard_normal((options.rows, options.columns), dtype=np.float32) + np.float32(0.3)
    some = rows[: 8 * options.columns]
    noise = rng.standard_normal((len(some), options.k), dtype=np.float32)
    model = CCA(options.k, reg=1e-2).fit({"x": some, "y": some[:, : options.k] + noise})
    weights = np.ascontiguousarray(model.weights_["x"], dtype=np.float32)
    sides = {"product": lambda: rows @ weights, "transform": lambda: model.transform({"x": rows})}
    seconds = {name: min(own.cpu) for name, own in in_turns(sides, options.repeats).items()}
    tracemalloc.start()
    result = model.transform({"x": rows})["x"]
    above = (tracemalloc.get_traced_memory()[1] - result.nbytes) / 1e6
    tracemalloc.stop()
    print(f"transform: {seconds['transform']:.3f} s, product {seconds['product']:.3f} s")
    say("transform / product", seconds["transform"] / seconds["product"], LIMIT_TRANSFORM)
    say("MB beside the result", above, LIMIT_MEGABYTES)


def batches(options: argparse.Namespace, rng: np.random.Generator) -> None:
    """Time of fitting batch by batch, and reading the weights."""
    width, own = options.columns, 2 * options.columns // 3
    joint = [
        rng.standard_normal((BATCH_ROWS, width), dtype=np.float32) + np.float32(0.3)
        for _ in range(options.batches)
    ]
    parts = [{"x": J[:, :own].copy(), "y": J[:, own:] + J[:, : width - own]} for J in joint]

    def fit() -> None:
        model = CCA(16)
        for part in parts:
            model.partial_fit(part)
        model.weights_  # noqa: B018

    sides = {"products": lambda: sum((J.T @ J).astype(float) for J in joint), "partial_fit": fit}
    seconds = {name: min(own.cpu) for name, own in in_turns(sides, options.repeats).items()}
    print(f"partial_fit: {seconds['partial_fit']:.3f} s, products {seconds['products']:.3f} s")
    say("partial_fit / products", seconds["partial_fit"] / seconds["products"], LIMIT_BATCHES)


def parquet(options: argparse.Namespace, rng: np.random.Generator) -> None:
    """Time of a fit to Parquet files, beside one to .npy files and decoding by itself."""
    shared = rng.standard_normal((PARQUET_ROWS, 20), dtype=np.float32)
    with tempfile.TemporaryDirectory() as folder:
        for name, width in PARQUET_WIDTHS.items():
            own = shared @ rng.standard_normal((20, width), dtype=np.float32)
            own += rng.standard_normal(own.shape, dtype=np.float32)
            np.save(Path(folder, f"{name}.npy"), own)
            table = pa.table({f"{name}{j}": column for j, column in enumerate(own.T)})
            pq.write_table(table, Path(folder, f"{name}.parquet"), row_group_size=GROUP_ROWS)

        def fit(ending: str) -> None:
            files = {name: Path(folder, f"{name}{ending}") for name in PARQUET_WIDTHS}
            CCA(20).fit({name: open_matrix(file) for name, file in files.items()})

        def decode() -> None:
            for name in PARQUET_WIDTHS:
                file = pq.ParquetFile(Path(folder, f"{name}.parquet"))
                for group in range(file.num_row_groups):
                    file.read_row_group(group, use_threads=False)

        sides = {"npy": lambda: fit(".npy"), "parquet": lambda: fit(".parquet"), "decoding": decode}
        seconds = {name: min(own.cpu) for name, own in in_turns(sides, options.repeats).items()}
    print("fits: " + ", ".join(f"{name} {own:.3f} s" for name, own in seconds.items()))
    above = seconds["parquet"] - seconds["npy"]
    say("(Parquet - .npy) / decoding", above / seconds["decoding"], LIMIT_PARQUET)


def kernels(options: argparse.Namespace, rng: np.random.Generator) -> None:
    """Time and memory of exact kernel CCA with 10 components."""
    n = options.objects
    latent = rng.standard_normal((n, 5))
    views = {
        name: np.tanh(latent @ rng.standard_normal((5, width))) + rng.normal(0, 0.3, (n, width))
        for name, width in (("x", 30), ("y", 20))
    }
    model = KCCA(10, reg=1e-2, random_state=0).fit(views)

    def solve(kernels: list[np.ndarray]) -> None:
        """Without centring, which takes n² operations."""
        shares = []
        for K in kernels:
            diagonal, ridge = np.diag_indices_from(K), 1e-2 * np.trace(K) / n
            K[diagonal] += ridge
            factor, _ = linalg.lapack.dpotrf(K.T, lower=1)
            shares.append(linalg.lapack.dpotri(factor, lower=1)[0] * -ridge)
            shares[-1][diagonal] += 1
        root = linalg.lapack.dpotrf(shares[0], lower=1, clean=1)[0]
        T, _ = linalg.lapack.dsygst(shares[1], root, itype=2, lower=1)
        linalg.eigh(T, subset_by_index=(len(T) - 10, len(T) - 1))

    def dual() -> None:
        widths = {name: own.kernel.gamma for name, own in model.feature_maps_.items()}
        kernels = [rbf_kernel(X, gamma=widths[name]) for name, X in views.items()]
        for _ in range(min(5, -(-5 * 250 // n))):
            solve([K[n // 5 :, n // 5 :].copy() for K in kernels])
        solve(kernels)

    sides = {"dual": dual, "KCCA": lambda: KCCA(10, reg=1e-2, random_state=0).fit(views)}
    seconds = {name: min(own.cpu) for name, own in in_turns(sides, options.repeats).items()}
    tracemalloc.start()
    KCCA(10, reg=1e-2, random_state=0).fit(views)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    print(f"KCCA of {n} rows: {seconds['KCCA']:.3f} s, {peak:.0f} MB; dual {seconds['dual']:.3f} s")
    say("KCCA / dual problem", seconds["KCCA"] / seconds["dual"], LIMIT_KERNELS)


def commands(options: argparse.Namespace, rng: np.random.Generator) -> None:
    """CPU time of commands on small files, each in its own process."""
    with tempfile.TemporaryDirectory() as folder:
        latent = rng.standard_normal((500, 8))
        for name, width in (("x", 40), ("y", 30)):
            noise = rng.standard_normal((500, width))
            rows = latent @ rng.standard_normal((8, width)) + noise
            np.save(f"{folder}/{name}.npy", rows)
        lines = {
            "scikit-learn": "-c 'import sklearn.base'",
            "fit": "-m mvcca fit --view x=x.npy --view y=y.npy --method cca -o m.mvcca",
            "info": "-m mvcca info m.mvcca",
            "transform": "-m mvcca transform m.mvcca --view x=x.npy -o s.npy",
            "search": "-m mvcca search m.mvcca --gallery x=x.npy --query y=y.npy -o h.csv",
        }
        seconds = dict.fromkeys(lines, np.inf)
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "PYTHONPYCACHEPREFIX": f"{folder}/compiled",  # by the first run
            "PYTHONDONTWRITEBYTECODE": "",
        }
        for _ in range(options.repeats):
            for name, line in lines.items():
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                run = [sys.executable, *shlex.split(line)]
                subprocess.run(run, cwd=folder, env=environment, check=True, capture_output=True)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                own = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
                seconds[name] = min(seconds[name], own)
    print("commands: " + ", ".join(f"{name} {own:.2f} s" for name, own in seconds.items()))
    for name, limit in (("info", 0.2), ("transform", 0.5), ("search", 0.5)):
        say(f"{name} / import of scikit-learn", seconds[name] / seconds["scikit-learn"], limit)


if __name__ == "__main__":
    print(machine(1))
    for part in (transform, batches, parquet, kernels, commands):
        if part.__name__ in OPTIONS.parts:
            part(OPTIONS, np.random.default_rng(0))
