"""CCA of single cells from disk, beside svds on the operator in memory.

    python -m benchmarks.scale.single_cells
    python -m benchmarks.scale.single_cells --cells 1000000 --skip-svds

Planted cells with about 200 stored counts among 2,000 genes, log-normalised, are written block by
block to two ``.h5ad`` files, of half of the cells each, which are removed at the end. The passes of
`mvcca.linear.cell_cca` are timed one by one, then all of it as users call it.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=100_000, help="of both files together")
    parser.add_argument("--genes", type=int, default=2000)
    parser.add_argument("--components", type=int, default=30)
    parser.add_argument("--skip-svds", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import h5py
import numpy as np
from scipy.sparse import csr_array, vstack
from scipy.sparse.linalg import LinearOperator, svds
from threadpoolctl import threadpool_limits

from benchmarks._measure import machine, peak_memory
from mvcca import open_matrix
from mvcca.blocks import as_block
from mvcca.linear import cell_cca
from mvcca.linear.cell_rows import FeatureMoments, PreparedRows, StandardizedRows

_BLOCK, _TYPES, _MARKERS, _DEPTH = 8192, 10, 40, 260


def blocks(n_cells: int, shares: np.ndarray, rng: np.random.Generator) -> Any:
    """Log-normalised counts of cells of random types."""
    n_genes = shares.shape[1]
    for start in range(0, n_cells, _BLOCK):
        n = min(_BLOCK, n_cells - start)
        types = rng.integers(_TYPES, size=n)
        sums = np.maximum(rng.poisson(_DEPTH * np.exp(0.3 * rng.standard_normal(n))), 1)
        draws, cells = rng.random(sums.sum()), np.repeat(types, sums)
        genes = np.empty(len(draws), dtype=np.int32)
        for kind, share in enumerate(shares):
            own = cells == kind
            genes[own] = np.searchsorted(np.cumsum(share), draws[own])
        genes = np.minimum(genes, n_genes - 1)
        ones = np.ones(len(draws), np.float32)
        rows = csr_array((ones, genes, np.append(0, np.cumsum(sums))), shape=(n, n_genes))
        rows.sum_duplicates()
        factors = np.repeat(1e4 / sums, np.diff(rows.indptr))
        rows.data = np.log1p(rows.data * factors).astype(np.float32)
        yield rows


def write(path: Path, n_cells: int, shares: np.ndarray, rng: np.random.Generator) -> None:
    n_genes = shares.shape[1]
    with h5py.File(path, "w") as file:
        group = file.create_group("X")
        group.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0"})
        group.attrs["shape"] = (n_cells, n_genes)
        options: dict[str, Any] = {"shape": (0,), "maxshape": (None,), "chunks": (2**18,)}
        data = group.create_dataset("data", dtype=np.float32, **options)
        indices = group.create_dataset("indices", dtype=np.int32, **options)
        offsets = [np.zeros(1, np.int64)]
        for rows in blocks(n_cells, shares, rng):
            end = len(data)
            for stored, new in ((data, rows.data), (indices, rows.indices)):
                stored.resize((end + len(new),))
                stored[end:] = new
            offsets.append(rows.indptr[1:] + end)
        group["indptr"] = np.concatenate(offsets)


def planted(n_genes: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Expected shares of genes by type, of two experiments."""
    types = np.tile(np.exp(rng.standard_normal(n_genes)), (_TYPES, 1))
    for share in types:
        share[rng.permutation(n_genes)[:_MARKERS]] *= 8
    found = [types * np.exp(0.5 * rng.standard_normal(n_genes)) for _ in range(2)]
    return [shares / shares.sum(axis=1, keepdims=True) for shares in found]


def timed(title: str, function: Callable[[], Any]) -> Any:
    with peak_memory() as peak:
        wall, cpu = time.perf_counter(), time.process_time()
        result = function()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"{title:<52} {wall:7.2f} s wall {cpu:7.2f} s CPU, + {peak['MB']:6.0f} MB", flush=True)
    return result


def by_svds(matrices: list[csr_array], k: int) -> np.ndarray:
    """Singular values of the correlations between cells, by products with sparse rows."""
    products = []
    for X in matrices:
        n_genes = X.shape[1]
        mean = X.sum(axis=1) / n_genes
        inverse = 1 / np.sqrt(X.multiply(X).sum(axis=1) - n_genes * mean**2)
        D = csr_array(X.multiply(inverse[:, None]))
        products.append((D, csr_array(D.T), mean * inverse))
    (X, Xt, a), (Y, Yt, b) = products

    def onto(D: Any, m: np.ndarray, w: np.ndarray) -> np.ndarray:
        return D @ w - m * w.sum()

    def back(Dt: Any, m: np.ndarray, u: np.ndarray) -> np.ndarray:
        return Dt @ u - m @ u

    operator = LinearOperator(
        (len(a), len(b)),
        matvec=lambda v: onto(X, a, back(Yt, b, v.ravel())),
        rmatvec=lambda u: onto(Y, b, back(Xt, a, u.ravel())),
        dtype=np.float64,
    )
    return np.sort(svds(operator, k, return_singular_vectors=False, random_state=0))[::-1]


def main(options: argparse.Namespace, folder: Path) -> None:
    print(machine(1))
    rng = np.random.default_rng(options.seed)
    n, k = options.cells // 2, options.components
    paths = [folder / "reference.h5ad", folder / "query.h5ad"]
    for path, shares in zip(paths, planted(options.genes, rng), strict=True):
        write(path, n, shares, rng)
    sources = [open_matrix(path) for path in paths]
    size = sum(path.stat().st_size for path in paths)
    print(f"2 x {n:,} cells x {options.genes:,} genes, {size / 1e9:.2f} GB on disk")

    def sums() -> None:
        for source in sources:
            rows = as_block(source).checked(None, "cells")
            StandardizedRows.of(rows, PreparedRows.of("cells", rows, None, None))

    cell_cca(*(source[:2000] for source in sources), 3)  # compiles
    timed("means of genes (pass 1 of scaled genes)", lambda: [
        FeatureMoments.of(as_block(source).checked(None, "cells")) for source in sources
    ])  # fmt: skip
    timed("K of both (pass 1)", sums)
    shared = timed("cell_cca, genes as they are", lambda: cell_cca(*sources, k, max_z=None))
    scaled = timed("cell_cca, genes scaled", lambda: cell_cca(*sources, k))
    print(f"components beyond noise: {shared.n_shared}, scaled {scaled.n_shared}")
    names = ("reference", "query")
    timed("scores of both (last pass)", lambda: [
        shared.transform(source, name) for source, name in zip(sources, names, strict=True)
    ])  # fmt: skip
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"largest memory of the process: {largest:.2f} GB")
    if options.skip_svds:
        return
    matrices = [
        vstack([source.read(i, min(i + _BLOCK, n)) for i in range(0, n, _BLOCK)]).astype(float)
        for source in sources
    ]
    sigma = timed("svds on the operator, rows in memory", lambda: by_svds(matrices, k))
    error = np.abs(shared.singular_values / sigma - 1).max()
    print(f"largest relative difference of singular values: {error:.1e}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
        main(OPTIONS, Path(folder))
