"""Ridge CCA of wide sparse views by products, beside dense row spaces and SciPy's `lobpcg`.

Views look like texts (`_text_like`). Up to --exact rows, correlations are compared with a dense
solution in the space of the objects, `lobpcg` of the same operators, unpreconditioned, and the
route of this package by matrices are timed as well. For more rows the bound of the error is that of
the residuals, of which a warning would tell. Memory is that above the data; the limit is eight
times that of weights and scores of k + 20 components. With --files, rows are read block by block in
each of a counted number of passes, as if they did not fit in memory.

    python -m benchmarks.scale.wide [--rows 3000] [--features 5000] [--components 10 64] [--reg 1]
    python -m benchmarks.scale.wide --rows 20000 --features 60000
    python -m benchmarks.scale.wide --rows 1000000 --features 100000 --words 27 --components 10
        --files
"""

from __future__ import annotations

import argparse


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=3_000)
    parser.add_argument("--features", type=int, default=5_000)
    parser.add_argument("--views", type=int, default=2)
    parser.add_argument("--components", type=int, nargs="+", default=[10, 64])
    parser.add_argument("--reg", type=float, nargs="+", default=[1.0])
    parser.add_argument("--words", type=int, default=50, help="draws of a row of a view")
    parser.add_argument("--exact", type=int, default=4_000, help="most rows of dense solutions")
    parser.add_argument("--files", action="store_true", help="also from .npz files, in passes")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import resource
import tempfile
import time
import warnings
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, lobpcg

from benchmarks._measure import machine, peak_memory
from benchmarks._text_like import text_like
from mvcca import CCA, MVCCA, open_matrix
from mvcca.problem import _lobpcg, _pencil, _products, route
from mvcca.problem.centred_rows import CentredRows


def exact(X: list[sp.csr_array], reg: float) -> np.ndarray:
    """All ρ of two views: singular values of H_x^½ H_y^½ over the objects."""
    roots = []
    for rows in X:
        Z = rows.toarray()
        Z -= Z.mean(axis=0)
        Z /= np.sqrt(len(Z) - 1)
        values, vectors = linalg.eigh(Z @ Z.T)
        values = np.maximum(values, 0)
        ridge = reg * values.sum() / Z.shape[1]
        roots.append((vectors, np.sqrt(values / (values + ridge))))
    (U, a), (V, b) = roots
    return linalg.svdvals(a[:, None] * (U.T @ V) * b)


def by_scipy(X: list[sp.csr_array], reg: float, k: int) -> np.ndarray:
    """The same by SciPy, with B as an operator and no preconditioner."""
    n, widths = X[0].shape[0], [rows.shape[1] for rows in X]
    means = [np.asarray(rows.mean(axis=0)).ravel() for rows in X]
    square = [np.asarray(rows.multiply(rows).mean(axis=0)).ravel() for rows in X]
    units = [(s - m**2).mean() * n / (n - 1) for s, m in zip(square, means, strict=True)]
    ends = np.cumsum([0, *widths])

    def scores(p: int, W: np.ndarray) -> np.ndarray:
        own = W[ends[p] : ends[p + 1]]
        return (X[p] @ own - means[p] @ own) / np.sqrt(n - 1)

    def back(p: int, S: np.ndarray) -> np.ndarray:
        return (X[p].T @ S - np.outer(means[p], S.sum(axis=0))) / np.sqrt(n - 1)

    def times_A(W: np.ndarray) -> np.ndarray:
        return np.vstack([back(0, scores(1, W)), back(1, scores(0, W))])

    def times_B(W: np.ndarray) -> np.ndarray:
        own = [back(p, scores(p, W)) + reg * units[p] * W[ends[p] : ends[p + 1]] for p in range(2)]
        return np.vstack(own)

    shape = (ends[-1],) * 2
    A, B = (
        LinearOperator(shape, matvec=lambda v, of=of: of(v.reshape(-1, 1)), matmat=of, dtype=float)
        for of in (times_A, times_B)
    )
    start = times_A(np.random.default_rng(0).standard_normal((ends[-1], k + max(4, k // 4))))
    values, _ = lobpcg(A, start, B, tol=1e-3, maxiter=100)
    return np.sort(values)[::-1][:k]


def fitted(views: dict[str, Any], k: int, reg: float) -> np.ndarray:
    """ρ of this package, whose time, memory and steps are printed."""
    model = (CCA if len(views) == 2 else MVCCA)(k, reg=reg)
    steps: list[_lobpcg.Leading] = []

    def watched(*args: Any, **options: Any) -> _lobpcg.Leading:
        steps.append(_lobpcg.leading(*args, **options))
        return steps[-1]

    with ExitStack() as stack:
        stack.enter_context(patch.object(_products, "leading", watched))
        warned = stack.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        memory = stack.enter_context(peak_memory())
        started = time.process_time()
        model.fit(views)
        seconds = time.process_time() - started
    n, total = next(iter(views.values())).shape[0], sum(X.shape[1] for X in views.values())
    limit = 8 * (total + len(views) * n) * (k + 20) * 8 / 1e6
    found = f"  k = {k}, reg = {reg:g}: {seconds:.2f} s CPU, {memory['MB']:.0f} MB of {limit:.0f}"
    if steps:
        found += (
            f"; {steps[-1].n_steps} steps, residual {steps[-1].residual:.0e}, "
            f"error at most {steps[-1].error:.0e}"
        )
    rho = model.eigenvalues_ - 1
    print(f"{found}; ρ {rho[0]:.4f} to {rho[-1]:.4f}", flush=True)
    for warning in warned:
        print(f"    {warning.category.__name__}: {warning.message}")
    return rho


def measure(X: list[sp.csr_array], k: int, reg: float, is_small: bool) -> np.ndarray:
    views = {f"view {i}": rows for i, rows in enumerate(X)}
    rho = fitted(views, k, reg)
    if not is_small:
        return rho
    with patch.object(route, "cheapest", lambda routes: next(iter(routes.values()))):
        started = time.process_time()
        other = (CCA if len(X) == 2 else MVCCA)(k, reg=reg).fit(views).eigenvalues_ - 1
        seconds = time.process_time() - started
    print(f"    by matrices: {seconds:.2f} s CPU, difference {np.abs(rho - other).max():.0e}")
    if len(X) == 2:
        started = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            peer = by_scipy(X, reg, k)
        seconds = time.process_time() - started
        reference = exact(X, reg)[:k]
        print(
            f"    scipy lobpcg: {seconds:.2f} s CPU, error {np.abs(peer - reference).max():.0e}; "
            f"error of this package {np.abs(rho - reference).max():.0e}"
        )
    return rho


def from_files(views: dict[str, Any], k: int, reg: float, expected: np.ndarray) -> None:
    """The same by passes over rows in files."""
    passes = [0.0]

    def counted(stack: ExitStack, owner: Any, name: str, share: float) -> None:
        of = getattr(owner, name)

        def call(*args: Any, **options: Any) -> Any:
            passes[0] += share
            return of(*args, **options)

        stack.enter_context(patch.object(owner, name, call))

    with ExitStack() as stack:
        stack.enter_context(patch.object(route, "available_bytes", lambda: 0.0))
        counted(stack, _pencil.Pencil, "_images_in_one_pass", 1)
        for name in ("forward", "backward"):
            counted(stack, CentredRows, name, 1 / len(views))
        rho = fitted(views, k, reg)
    print(
        f"    from files: mean and variances in 2 passes, then {passes[0]:g}; "
        f"difference {np.abs(rho - expected).max():.0e}"
    )


def main(options: argparse.Namespace) -> None:
    print(machine(1))
    X = text_like(options.rows, [options.features] * options.views, n_words=options.words)
    print(f"{options.views} views of {X[0].shape}, {sum(rows.nnz for rows in X):,} entries")
    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for i, rows in enumerate(X if options.files else ()):
            sp.save_npz(Path(folder) / f"{i}.npz", rows, compressed=False)
            files[f"view {i}"] = open_matrix(Path(folder) / f"{i}.npz")
        settings = [(k, reg) for reg in options.reg for k in options.components]
        found = [measure(X, k, reg, options.rows <= options.exact) for k, reg in settings]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(f"  peak of the process, with the data: {peak:.2f} GB")
        del X
        if files:
            for (k, reg), rho in zip(settings, found, strict=True):
                from_files(files, k, reg, rho)


if __name__ == "__main__":
    main(OPTIONS)
