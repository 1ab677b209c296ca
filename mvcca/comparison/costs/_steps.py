"""Work of the steps that fits share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, combinations_with_replacement
from typing import Any

from mvcca.comparison.costs._shapes import ViewShape
from mvcca.comparison.costs._work import Work

# Costs relative to those of the operations that are measured, on the machine of benchmarks/RESULTS:
SPARSE_PRODUCT = 25.0  # of a multiply-add of two sparse matrices, to one with a dense matrix
CHOLESKY = 1.4  # of an operation of a Cholesky factorization or a triangular solve, to a product's
_PIVOTING = 12.0  # of n³ of a QR decomposition with pivoting, to operations of a product
_SEARCH_BYTES = 2 * 2**30  # of distances to sparse rows, which scikit-learn computes in parts
_FEW_COLUMNS = 15  # up to which scikit-learn searches neighbours by a tree


def product(m: float, k: float, n: float) -> Work:
    """A product of an m x k and a k x n matrix."""
    return Work(products=2 * m * k * n)


def eigenpairs(n: float, k: float) -> Work:
    """The k leading eigenpairs of a symmetric n x n matrix."""
    share = min(1, k / n)
    return Work(
        factors=n**3 * (0.125 + 0.29 * share), passes=n**2 * (22 + 45 * share), n_bytes=16 * n**2
    )


def tridiagonal(n: float) -> Work:
    """A symmetric n x n matrix in tridiagonal form, and the basis in which it has it."""
    return eigenpairs(n, 0) + Work(products=CHOLESKY * 4 / 3 * n**3)


def top_singular(m: float, n: float, k: float) -> Work:
    """The k leading singular triplets, as `mvcca.problem.linalg.top_singular` finds them."""
    few, many = min(m, n), max(m, n)
    if few > 128 and 4 * k < few:
        return product(few, many, few) + eigenpairs(few, k) + product(many, few, k)
    by_qr = 2 * product(few, many - few, few)
    memory = 8 * (2 * many * few + 2 * few**2)
    return by_qr + Work(factors=0.95 * few**3, passes=110 * few**2, n_bytes=memory)


def _whiten(d: float) -> Work:
    """Cholesky factor, its inverse and its condition number."""
    return Work(products=CHOLESKY * 2 / 3 * d**3, passes=25 * d**2)


def solve(
    widths: Sequence[float], k: float, *, is_cca: bool = False, with_diagonal: bool = False
) -> Work:
    """Whitening and the leading directions of all views.

    What to expect of the correlations of two views depends on all of them.
    """
    work = Work(passes=6 * sum(widths) ** 2)
    for d in widths:
        work += _whiten(d)
    for p, q in combinations(widths, 2):
        work += Work(products=CHOLESKY * p * q * (p + q))
    if len(widths) > 2 or with_diagonal:
        return work + eigenpairs(sum(widths), k)
    if is_cca:
        work += product(widths[0], widths[1], min(widths))
        for d in widths:  # lifted, and their variances
            work += (1 + CHOLESKY / 2) * product(d, d, min(widths))
    return work + top_singular(widths[0], widths[1], k)


def scatter(p: ViewShape, q: ViewShape) -> Work:
    """Products of the rows of two views, or of a view with itself."""
    n = min(p.n_rows, q.n_rows)
    if p.is_sparse and q.is_sparse:
        madds = SPARSE_PRODUCT * n * p.stored * q.stored
        return Work(sparse=madds, passes=10 * p.width * q.width)
    if p.is_sparse or q.is_sparse:
        return Work(sparse=n * min(p.stored * q.width, q.stored * p.width))
    symmetric = 0.5 if p is q else 1  # half of the numbers
    return product(p.width, n, q.width) * (symmetric * max(p.share, q.share))


def moments(views: tuple[ViewShape, ...]) -> Work:
    """Means and covariances of all views."""
    work = Work(n_bytes=4 * 8 * sum(view.width for view in views) ** 2)
    for view in views:
        work += Work(passes=3 * view.n_rows * view.stored, calls=100)
    for p, q in combinations_with_replacement(views, 2):
        work += scatter(p, q)
    return work


def in_row_space(views: tuple[ViewShape, ...]) -> tuple[tuple[ViewShape, ...], Work]:
    """The views, those with more features than rows in a basis of their rows."""
    found, work = [], Work()
    for view in views:
        n, d = view.n_rows, view.width
        if n < d:
            work += Work(products=n**2 * d + CHOLESKY * n**3 / 3, passes=8 * n * d + 25 * n**2)
            if view.used < n:  # rows are dependent: they are decomposed, with pivoting
                work += 3 * product(n, d, n) + Work(products=_PIVOTING * n**3)
            view = ViewShape(n, view.rank, view.rank)
        found.append(view)
    return tuple(found), work


def lift(views: tuple[ViewShape, ...], k: float) -> Work:
    """Weights of the features of wide views, from those in a basis of their rows."""
    work = Work(passes=4 * k * sum(view.width for view in views))
    for view in views:
        if view.n_rows < view.width:
            work += 2 * product(view.n_rows, view.width, k)
    return work


def components(n_components: int | None, views: tuple[ViewShape, ...]) -> int:
    """Number of components found: all, without a number."""
    widths = sorted(view.rank for view in views)
    most = widths[0] if len(widths) < 3 else sum(widths[:-1])
    return most if n_components is None else min(n_components, most)


def neighbours(index: ViewShape, n_queries: float, k: float) -> Work:
    """The k nearest rows of queries."""
    n = index.n_rows
    pairs = n * n_queries
    if index.is_sparse:
        memory = min(16 * pairs, _SEARCH_BYTES)
        return Work(sparse=pairs * (30 + 3 * index.stored), n_bytes=memory)
    if index.width > _FEW_COLUMNS or 2 * k > n:
        return product(n, index.width, n_queries) + Work(sorts=(0.4 + 0.003 * k) * pairs)
    return Work(sorts=1.2 * n_queries * min(n, 60 * k))


def largest(value: Any) -> float:
    """A parameter that may be a mapping by view."""
    return float(max(value.values()) if isinstance(value, Mapping) else value)


def class_among(estimator: Any, known: Mapping[str, Any]) -> str | None:
    """The class of the package that an estimator is of, among some."""
    ours = (kind for kind in type(estimator).__mro__ if kind.__module__.startswith("mvcca."))
    return next((kind.__name__ for kind in ours if kind.__name__ in known), None)
