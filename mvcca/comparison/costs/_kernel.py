"""Work of kernel methods and of methods of nearest neighbours."""

from __future__ import annotations

from math import ceil
from typing import Any

from mvcca.comparison.costs._shapes import Shapes, ViewShape
from mvcca.comparison.costs._steps import CHOLESKY, largest, neighbours, product, solve
from mvcca.comparison.costs._work import Work

MOST_FUNCTIONS = 60  # of nonparametric CCA that a search tries


def _kernel_values(view: ViewShape, n_rows: float, n_landmarks: float, fourier: bool) -> Work:
    """Kernel values of rows with landmarks, or Fourier features."""
    values = n_rows * n_landmarks
    if view.is_sparse:
        return Work(sparse=values * view.stored, passes=12 * values)
    return product(n_rows, view.width, n_landmarks) + Work(passes=(14 if fourier else 6) * values)


def n_features(estimator: Any, view: ViewShape) -> int:
    """Number of kernel features of a view."""
    if estimator.approximation is None:
        return view.n_rows
    if estimator.approximation == "fourier":
        return int(estimator.n_landmarks)
    return min(estimator.n_landmarks, view.n_rows)


def features(estimator: Any, shapes: Shapes) -> tuple[tuple[ViewShape, ...], Work]:
    """Shapes of the kernel features of all rows, and the work of computing them."""
    fourier, work, views = estimator.approximation == "fourier", Work(), []
    for view in shapes.views:
        m = n_features(estimator, view)
        work += _kernel_values(view, view.n_rows, m, fourier)
        work += Work(passes=2e7)  # the median of distances
        if not fourier:
            work += Work(products=CHOLESKY * (m**3 + view.n_rows * m**2))
        if estimator.approximation == "cholesky":  # a column at a time
            work += Work(passes=view.n_rows * m**2 / 2)
        views.append(ViewShape(view.n_rows, m, m))
    return tuple(views), work


def kcca(estimator: Any, shapes: Shapes) -> Work:
    views, work = features(estimator, shapes)
    widths, n = [view.width for view in views], shapes.n_rows
    work += Work(n_bytes=8 * (5 * sum(widths) ** 2 + 2 * sum(m**2 for m in widths)))
    work += 0.5 * product(sum(widths), n, sum(widths))
    # Correlations of held-out rows solve the problem again for one to five folds of 250 rows.
    n_folds, k = min(5, ceil(1250 / n)), estimator.n_components or min(widths)
    again = solve(widths, k) + Work(passes=8 * sum(widths) ** 2)
    again += 0.5 * product(sum(widths), n / 5, sum(widths))
    return work + solve(widths, k, is_cca=True) + n_folds * again


def ncca(estimator: Any, shapes: Shapes) -> Work:
    work, K = Work(), largest(estimator.n_neighbors)
    k = estimator.n_components or MOST_FUNCTIONS
    for view in shapes.views:
        work += neighbours(view, view.n_rows, K) + Work(passes=10 * view.n_rows * K)
    # Sinkhorn, conjugate gradients and Lanczos: products of both graphs with vectors.
    entries, n_products = 4 * shapes.n_rows * min(K, shapes.n_rows), 200 + 3 * k
    basis = Work(passes=2 * n_products * shapes.n_rows * k)
    memory = Work(n_bytes=40 * entries + 8 * shapes.n_rows * 4 * k)
    return work + n_products * Work(sparse=2.5 * entries, calls=50) + basis + memory


def project_by_kernel(estimator: Any, shapes: Shapes, n_rows: int, k: int) -> Work:
    work, fourier = Work(calls=500), estimator.approximation == "fourier"
    for view in shapes.views:
        m = n_features(estimator, view)
        work += _kernel_values(view, n_rows, m, fourier) + product(n_rows, m, k)
        work += Work(n_bytes=8 * n_rows * m)
    return work


def project_by_neighbours(estimator: Any, shapes: Shapes, n_rows: int, k: int) -> Work:
    work, K = Work(calls=500), largest(estimator.n_neighbors)
    for view in shapes.views:
        work += neighbours(view, n_rows, K) + Work(sparse=n_rows * K * (k + 10))
    return work
