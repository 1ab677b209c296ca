"""The same task for each package: a function of (views, task) that returns a projection.

Packages are imported when called, since each runs in a separate environment. Ridges are those of
mvcca (in mean variances of a view), converted to the units of the package if it has a ridge.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.peers.tasks import Task

Views = list[np.ndarray]
Projection = Callable[[Views], Views]


def mvcca(views: Views, task: Task) -> Projection:
    from mvcca import CCA, MVCCA, PLS

    if task.is_pls:
        return PLS(task.k).fit(views).transform
    method = CCA if len(views) == 2 else MVCCA
    return method(task.k, reg=task.reg).fit(views).transform


def floor(views: Views, task: Task) -> Projection:
    """Minimum work: the products of the views and the small solve, without centering.

    One product per pair of views (NumPy saves half of that of a view with itself), a Cholesky
    factorisation per view, the top k of the smaller Gram matrix of the whitened cross product, or
    of the whole whitened matrix. Two views wider than long are solved by their Gram matrices.
    """
    from scipy.linalg import block_diag, eigh

    if task.is_pls:
        return _pls_by_operator(views, task)
    ridge = [task.reg * np.vdot(X, X) / X.shape[1] for X in views]
    if task.is_wide:
        return _in_dual(views, ridge, task.k)
    S = {(p, q): _product(views, p, q) for q in range(len(views)) for p in range(q + 1)}
    L = [_factor(S[p, p], r) for p, r in enumerate(ridge)]
    white = {(p, q): _solve(L[q], _solve(L[p], S[p, q]).T).T for p, q in S if p != q}
    if len(views) == 2:
        T = white[0, 1]
        squares, V = eigh(T.T @ T, subset_by_index=[T.shape[1] - task.k, T.shape[1] - 1])
        U = [T @ V / np.sqrt(squares), V]
    else:
        whole = block_diag(*[np.zeros_like(factor) for factor in L])
        ends = np.cumsum([0, *map(len, L)])
        for (p, q), block in white.items():
            whole[ends[p] : ends[p + 1], ends[q] : ends[q + 1]] = block
        _, V = eigh(whole, lower=False, subset_by_index=[ends[-1] - task.k, ends[-1] - 1])
        U = np.split(V, ends[1:-1])
    weights = [_solve(factor, u, trans="T") for factor, u in zip(L, U, strict=True)]
    return lambda rows: [A @ w for A, w in zip(rows, weights, strict=True)]


def _in_dual(views: Views, ridge: list[float], k: int) -> Projection:
    """Ridge CCA of two views by K (K + c I)⁻¹ = I - c (K + c I)⁻¹ of each, and one eigenproblem."""
    from scipy.linalg import cho_solve, eigh, lapack

    factors, shares = [], []
    for X, c in zip(views, ridge, strict=True):
        factors.append(_factor(X @ X.T, c))
        inverse, _ = lapack.dpotri(factors[-1], lower=1)
        shares.append(-c * inverse)
        shares[-1][np.diag_indices_from(inverse)] += 1
    root = _factor(shares[0])
    T, _ = lapack.dsygst(shares[1], root, itype=2, lower=1)
    _, V = eigh(T, subset_by_index=[len(T) - k, len(T) - 1])
    a = root @ V
    b = cho_solve((factors[1], True), a)
    duals = [cho_solve((factors[0], True), a - ridge[1] * b), b]
    weights = [X.T @ own for X, own in zip(views, duals, strict=True)]
    return lambda rows: [A @ w for A, w in zip(rows, weights, strict=True)]


def _pls_by_operator(views: Views, task: Task) -> Projection:
    """SciPy's `svds` of the operator v -> Xᵀ(Y v): 2 n (d + e) multiply-adds per step."""
    from scipy.sparse.linalg import LinearOperator, svds

    X, Y = views
    operator = LinearOperator(
        task.widths,
        matvec=lambda v: X.T @ (Y @ v),
        rmatvec=lambda u: Y.T @ (X @ u),
        dtype=X.dtype,
    )
    left, _, right = svds(operator, task.k)
    return lambda rows: [A @ w for A, w in zip(rows, (left, right.T), strict=True)]


def cca_zoo(views: Views, task: Task) -> Projection:
    from cca_zoo.linear import CCA, MCCA, RidgeCCA

    if len(views) > 2:
        return MCCA(task.k).fit(views).transform
    if not task.reg:
        return CCA(task.k).fit(views).transform
    shrinkages = _shrinkages(views, task, of_covariance=True)
    return RidgeCCA(task.k, shrinkage=shrinkages).fit(views).transform


def mvlearn(views: Views, task: Task) -> Projection:
    """Wide views through 100 principal components each: without, 9,000 features take 100 s."""
    from mvlearn.embed import CCA, MCCA

    method = CCA if len(views) == 2 else MCCA
    if task.is_wide:
        ranks = [min(100, len(X) - 1) for X in views]
        return method(task.k, signal_ranks=ranks).fit(views).transform
    regs = _shrinkages(views, task) if task.reg else None
    return method(task.k, regs=regs).fit(views).transform


def pyrcca(views: Views, task: Task) -> Projection:
    """Wide views by linear kernels, whose ridge is another: of kernels of largest eigenvalue 1."""
    import rcca

    reg = 1e-2 if task.is_wide else task.reg * np.mean([np.vdot(X, X) / X.shape[1] for X in views])
    model = rcca.CCA(kernelcca=task.is_wide, reg=reg, numCC=task.k, verbose=False).train(views)
    return lambda rows: [A @ w for A, w in zip(rows, model.ws, strict=True)]


def statsmodels(views: Views, task: Task) -> Projection:
    from statsmodels.multivariate.cancorr import CanCorr

    model = CanCorr(views[1], views[0])
    weights = [model.x_cancoef[:, : task.k], model.y_cancoef[:, : task.k]]
    return lambda rows: [A @ w for A, w in zip(rows, weights, strict=True)]


def scikit_learn(views: Views, task: Task) -> Projection:
    from sklearn.cross_decomposition import CCA

    model = CCA(task.k).fit(*views)
    return lambda rows: list(model.transform(*rows))


PACKAGES: dict[str, Callable[[Views, Task], Projection]] = {
    "mvcca": mvcca,
    "floor": floor,
    "cca-zoo": cca_zoo,
    "mvlearn": mvlearn,
    "pyrcca": pyrcca,
    "statsmodels": statsmodels,
    "scikit-learn": scikit_learn,
}
TWO_VIEWS_ONLY = {"statsmodels", "scikit-learn"}


def _product(sides: Views, p: int, q: int) -> np.ndarray:
    return np.asarray(sides[p].T @ sides[q], dtype=float)


def _factor(S: np.ndarray, ridge: float = 0.0) -> np.ndarray:
    """Lower Cholesky factor of S with a ridge, in place; a trace of it keeps pivots from zero."""
    from scipy.linalg import cholesky

    S[np.diag_indices_from(S)] += ridge + 1e-14 * np.trace(S)
    return cholesky(S, lower=True, overwrite_a=True, check_finite=False)


def _solve(L: np.ndarray, B: np.ndarray, trans: str = "N") -> np.ndarray:
    from scipy.linalg import solve_triangular

    return solve_triangular(L, B, trans=trans, lower=True, check_finite=False)


def _shrinkages(views: Views, task: Task, of_covariance: bool = False) -> list[float]:
    """c such that (1 - c) S + c I is S with our ridge, up to a factor; S = XᵀX or a covariance."""
    ridges = [task.reg * np.square(X - X.mean(axis=0)).sum() / X.shape[1] for X in views]
    if of_covariance:
        ridges = [r / (len(X) - 1) for r, X in zip(ridges, views, strict=True)]
    return [float(r / (1 + r)) for r in ridges]
