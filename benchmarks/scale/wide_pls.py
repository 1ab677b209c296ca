"""PLS of views with many features, dense and sparse, beside ARPACK and the present other route.

Dense views are 1,500 x 4,000 with 20 planted factors. Sparse ones look like texts (`_text_like`).
The floor is `scipy.sparse.linalg.svds` of V ↦ X̄ᵀ(ȲV), which has the weights but neither patterns,
nor checks. With --files, sparse rows are read from disk, block by block.

    python -m benchmarks.scale.wide_pls [--rows 20000] [--features 60000] [--repeats 3] [--files]
    python -m benchmarks.scale.wide_pls --rows 1000000 --features 100000 --words 27 --repeats 1
        --files
"""

from __future__ import annotations

import argparse


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=60_000)
    parser.add_argument("--components", type=int, default=10)
    parser.add_argument("--words", type=int, default=50, help="draws of a row of a sparse view")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--files", action="store_true", help="also from .npz files")
    parser.add_argument("--dense", type=int, nargs=2, default=(1_500, 4_000))
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, svds

from benchmarks._measure import in_turns, machine, peak_memory, ratio
from benchmarks._text_like import text_like
from mvcca import PLS, Views, open_matrix
from mvcca.problem.centred_rows import CentredRows


def dense_views(n_rows: int, n_features: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    z = rng.standard_normal((n_rows, 20))
    shape = (20, n_features)
    return [
        z @ rng.standard_normal(shape) + 3 * rng.standard_normal((n_rows, n_features))
        for _ in range(2)
    ]


def arpack(X: Any, Y: Any, k: int) -> np.ndarray:
    """Singular values of X̄ᵀȲ / (n - 1), by products with one vector at a time."""
    if sp.issparse(X):
        XT, YT = X.T.tocsr(), Y.T.tocsr()
        means = [np.asarray(M.mean(axis=0)).ravel() for M in (X, Y)]
    else:
        X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
        XT, YT, means = X.T, Y.T, [np.zeros(X.shape[1]), np.zeros(Y.shape[1])]

    def product(A: Any, BT: Any, mean: np.ndarray, other: np.ndarray, v: np.ndarray) -> Any:
        scores = A @ v.ravel() - mean @ v.ravel()
        return (BT @ scores - other * scores.sum()) / (len_rows - 1)

    len_rows = X.shape[0]
    operator = LinearOperator(
        (X.shape[1], Y.shape[1]),
        matvec=partial(product, Y, XT, means[1], means[0]),
        rmatvec=partial(product, X, YT, means[0], means[1]),
        dtype=float,
    )
    return svds(operator, k, random_state=0, return_singular_vectors=True)[1][::-1]


def compare(title: str, X: Any, Y: Any, k: int, repeats: int) -> None:
    found: dict[str, np.ndarray] = {}

    def ours() -> None:
        found["ours"] = PLS(k).fit(X, Y).eigenvalues_

    def floor() -> None:
        found["svds"] = arpack(X, Y, k)

    ours()
    with peak_memory() as memory:
        ours()
    timings = in_turns({"PLS": ours, "svds": floor}, repeats)
    error = np.abs(found["ours"] / found["svds"] - 1).max()
    print(
        f"  {title}, k = {k}:{timings['PLS']}; svds{timings['svds']}; PLS / svds "
        f"{ratio(timings['PLS'], timings['svds'])}; error {error:.0e}; {memory['MB']:.0f} MB"
    )


def from_files(X: Any, Y: Any, k: int) -> None:
    calls: list[str] = []
    for name in ("forward", "backward"):
        of = getattr(CentredRows, name)

        def counted(own: CentredRows, V: np.ndarray, of: Any = of, name: str = name) -> np.ndarray:
            calls.append(name)
            return of(own, V)

        setattr(CentredRows, name, counted)
    with tempfile.TemporaryDirectory() as folder:
        for name, block in {"X": X, "y": Y}.items():
            sp.save_npz(Path(folder) / f"{name}.npz", block, compressed=False)
        views = Views([open_matrix(Path(folder) / f"{name}.npz") for name in ("X", "y")])
        found: list[np.ndarray] = []
        with peak_memory() as memory:  # pages of the files count while they are mapped
            timing = in_turns({"": lambda: found.append(PLS(k).fit(views).eigenvalues_)}, 1)[""]
    calls_of_files = len(calls)
    expected = PLS(k).fit(Views([X, Y])).eigenvalues_
    print(
        f"  from files:{timing}; {calls_of_files / 2:g} passes over both; {memory['MB']:.0f} MB; "
        f"difference {np.abs(found[0] / expected - 1).max():.0e}"
    )


def main(options: argparse.Namespace) -> None:
    print(machine(1))
    X, Y = dense_views(*options.dense)
    for k in (5, 10, 64):
        compare(f"dense {X.shape}", X, Y, min(k, len(X) // 4), options.repeats)
    X, Y = text_like(options.rows, [options.features] * 2, n_words=options.words)
    k = options.components
    compare(f"sparse {X.shape}, {X.nnz + Y.nnz:,} entries", X, Y, k, options.repeats)
    if options.files:
        from_files(X, Y, k)


if __name__ == "__main__":
    main(OPTIONS)
