"""Work of linear methods."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import ceil
from typing import Any

import numpy as np

from mvcca.comparison.costs._shapes import Shapes, ViewShape
from mvcca.comparison.costs._steps import (
    CHOLESKY,
    SPARSE_PRODUCT,
    components,
    eigenpairs,
    in_row_space,
    lift,
    moments,
    neighbours,
    product,
    scatter,
    solve,
    top_singular,
)
from mvcca.comparison.costs._work import Work
from mvcca.linear.jrl_loss import (
    bytes_by_features,
    bytes_by_objects,
    flops_by_features,
    flops_by_objects,
)
from mvcca.linear.label_space import WIDE, saves_dimensions


def cca(estimator: Any, shapes: Shapes) -> Work:
    """Also MVCCA: moments of the rows, whitening and the leading directions."""
    return _covariance_problem(estimator, shapes, is_cca=True)


def gcca(estimator: Any, shapes: Shapes) -> Work:
    """As MVCCA of several views, of two as well."""
    views, work = in_row_space(shapes.views)
    k = components(estimator.n_components, views)
    work += moments(views) + solve([view.used for view in views], k, with_diagonal=True)
    return work + lift(shapes.views, k)


def affine_map(estimator: Any, shapes: Shapes) -> Work:
    return _covariance_problem(estimator, shapes, is_cca=False)


def _covariance_problem(estimator: Any, shapes: Shapes, is_cca: bool) -> Work:
    views, work = in_row_space(shapes.views)
    k = components(estimator.n_components, views)
    work += moments(views) + solve([view.used for view in views], k, is_cca=is_cca)
    return work + lift(shapes.views, k)


def with_labels_as_view(shapes: Shapes) -> Shapes:
    """The shapes that three-view CCA solves."""
    labels = ViewShape(shapes.n_rows, max(1, shapes.n_labels), 1, is_sparse=True)
    return replace(shapes, views=(*shapes.views, labels))


def three_view_cca(estimator: Any, shapes: Shapes) -> Work:
    return cca(estimator, with_labels_as_view(shapes))


def pls(estimator: Any, shapes: Shapes) -> Work:
    """Also CFA and Procrustes: singular vectors of the covariance between views."""
    views, work = in_row_space(shapes.views)
    k = components(estimator.n_components, views)
    work += moments(views) + lift(shapes.views, k)
    if getattr(estimator, "algorithm", "svd") != "svd":  # a singular vector per component
        steps = Work(passes=10 * sum(view.width for view in views) ** 2)
        return work + k * (top_singular(views[0].width, views[1].width, 1) + steps)
    if len(views) == 2:
        return work + top_singular(views[0].width, views[1].width, k)
    return work + eigenpairs(sum(view.width for view in views), k)


def _label_sums(views: tuple[ViewShape, ...], n_sets: int) -> Work:
    """Sums of features by label vector."""
    width = sum(view.width for view in views)
    passes = sum(view.n_rows * view.stored for view in views) + 2 * n_sets * width
    return Work(passes=passes, calls=200, n_bytes=2 * 8 * n_sets * width)


def _label_covariance(estimator: Any, views: tuple[ViewShape, ...], shapes: Shapes) -> Work:
    """Covariances over all pairs of rows, weighted by the similarity of their labels."""
    U, width = shapes.n_label_sets, sum(view.width for view in views)
    work = _label_sums(views, U)
    if estimator.label_features is not None or estimator.label_similarity in ("cosine", "equal"):
        m = min(U, estimator.n_label_features if estimator.label_features else shapes.n_labels)
        return work + product(m, U, width) + 0.5 * product(width, m, width)
    if estimator.label_similarity == "sqexp" and shapes.n_members < np.inf:
        sums = Work(passes=shapes.n_members * (0.6 * width + 40), n_bytes=24 * U * width)
        return work + sums + 0.5 * product(width, U, width)
    tiles = Work(passes=1.5 * U**2 * ceil(shapes.n_labels / 64), n_bytes=8 * 1024 * U)
    return work + tiles + 0.5 * product(U, U, width) + product(width, U, width)


def _label_space_is_small(shapes: Shapes) -> bool:
    return saves_dimensions(shapes.n_label_sets, [(v.n_rows, v.width) for v in shapes.views])


def _in_label_space(shapes: Shapes) -> tuple[tuple[ViewShape, ...], Work]:
    """The views in the space of their means by label, if it is small, else in that of their rows.

    As `mvcca.linear.label_space` decides for matrices that are made of label sums.
    """
    if not _label_space_is_small(shapes):
        return in_row_space(shapes.views)
    U = shapes.n_label_sets
    means, work = in_row_space(tuple(ViewShape(U, v.width, v.width) for v in shapes.views))
    pairs = zip(shapes.views, means, strict=True)
    views = tuple(ViewShape(view.n_rows, own.width, own.width) for view, own in pairs)
    return views, work + _label_sums(shapes.views, U)


def mlcca(estimator: Any, shapes: Shapes) -> Work:
    of_sums = estimator.weighting == "means" and isinstance(estimator.n_components, int)
    views, work = _in_label_space(shapes) if of_sums else in_row_space(shapes.views)
    work += _mlcca_covariances(estimator, views, shapes)
    work += _scores(estimator, shapes.views if of_sums else views)
    return work + _label_solution(estimator, views, shapes)


def mlcca_statistic(estimator: Any, views: tuple[ViewShape, ...], shapes: Shapes) -> Work:
    """Covariances between views and within them, and of the rows, which tell what to expect."""
    return _mlcca_covariances(estimator, views, shapes) + moments(views)


def _mlcca_covariances(estimator: Any, views: tuple[ViewShape, ...], shapes: Shapes) -> Work:
    """Covariances between views and within them, from views of no more features than rows."""
    if estimator.weighting == "means":
        means = [ViewShape(shapes.n_label_sets, view.width, view.width) for view in views]
        return _label_sums(views, shapes.n_label_sets) + moments(tuple(means))
    if estimator.n_neighbors is None:
        work = _label_covariance(estimator, views, shapes)
    else:
        work = _label_sums(views, shapes.n_label_sets) + _nearest_pairs(estimator, views, shapes)
    for view in views:  # the weighted scatter of each view
        work += Work(passes=4 * view.n_rows * view.stored) + scatter(view, view)
    return work


def _scores(estimator: Any, views: tuple[ViewShape, ...]) -> Work:
    """Moments of the scores of rows or, if these take less, of rows: they tell what to expect."""
    k, width = estimator.n_components, sum(view.width for view in views)
    if k is None or 2 * k * width + (k * len(views)) ** 2 >= width**2:
        return moments(views)
    work = moments(tuple(ViewShape(view.n_rows, k, k) for view in views))
    for view in views:
        rows = Work(sparse=view.n_rows * view.stored * k)
        work += rows if view.is_sparse else product(view.n_rows, view.width, k)
        work += Work(passes=view.n_rows * view.stored)
    return work


def _nearest_pairs(estimator: Any, views: tuple[ViewShape, ...], shapes: Shapes) -> Work:
    """Sums over the pairs of a row and its nearest rows in label space, of all pairs of views."""
    U, K, n = shapes.n_label_sets, estimator.n_neighbors, shapes.n_rows
    search = product(U, shapes.n_labels, U) + Work(calls=150 * U, sorts=4 * n * K, passes=5 * U**2)
    work = shapes.n_directions * search
    for p, q in combinations(views, 2):
        narrow, wide = sorted((p, q), key=lambda view: view.width)
        width = narrow.stored * (SPARSE_PRODUCT if narrow.is_sparse else 1)
        work += Work(sparse=2 * n * K * (width + 20)) + scatter(
            replace(narrow, is_sparse=False), replace(wide, is_sparse=False)
        )
    return work


def _label_solution(estimator: Any, views: tuple[ViewShape, ...], shapes: Shapes) -> Work:
    k = components(estimator.n_components, views)
    memory = Work(n_bytes=4 * 8 * sum(view.width for view in views) ** 2)
    return solve([view.used for view in views], k) + memory + lift(shapes.views, k)


def mvmlcca(estimator: Any, shapes: Shapes) -> Work:
    of_sums = isinstance(estimator.n_components, int) and estimator.label_features is None
    if estimator.within == "sample":
        of_sums &= all(view.is_sparse for view in shapes.views if view.width >= WIDE)
    views, work = _in_label_space(shapes) if of_sums else in_row_space(shapes.views)
    if of_sums and estimator.within == "sample" and _label_space_is_small(shapes):
        work += _solved(shapes)
    work += _label_covariance(estimator, views, shapes)
    work += _scores(estimator, shapes.views if of_sums else views)
    if estimator.within == "sample":
        for view in views:
            work += scatter(view, view)
    return work + _label_solution(estimator, views, shapes)


def _solved(shapes: Shapes) -> Work:
    """Label sums of sparse rows, multiplied by the inverse of the constraint of each view."""
    work = Work()
    for view in shapes.views:
        m = min(view.n_rows, view.width)
        work += Work(sparse=2 * view.n_rows * view.stored * m, passes=4 * m**2, n_bytes=16 * m**2)
        work += Work(products=CHOLESKY * 2 / 3 * m**3) + 2 * product(m, m, shapes.n_label_sets)
    return work


def mvmlcca_statistic(estimator: Any, views: tuple[ViewShape, ...], shapes: Shapes) -> Work:
    """Covariances between views and within them, from views of no more features than rows."""
    # By "sample", the moments of the rows are within views, too; else they tell correlations.
    return _label_covariance(estimator, views, shapes) + moments(views)


_GROUP_STEPS = 70  # reweighted least squares of LGCFL, whose `max_iter` is more
_JRL_STEPS = 23


def _group_sparse(width: int, d: int, m: int) -> Work:
    """A step for d features, perhaps in a basis of `width` of them, and m labels."""
    work = Work(products=CHOLESKY * 2 / 3 * width**3, passes=12 * width**2, calls=50)
    work += 2 * product(width, width, m)
    if width < d:
        work += product(width, d, width) + product(width, width, width)
    return work


def lgcfl(estimator: Any, shapes: Shapes) -> Work:
    views, work = in_row_space(shapes.views)
    work += _label_sums(views, shapes.n_label_sets)
    for given, view in zip(shapes.views, views, strict=True):
        step = _group_sparse(view.width, given.width, shapes.n_labels)
        work += scatter(view, view) + min(_GROUP_STEPS, estimator.max_iter) * step
        work += Work(n_bytes=6 * 8 * view.width**2)
    return work


def jrl(estimator: Any, shapes: Shapes) -> Work:
    views, work = shapes.views, Work()
    heights, widths = [view.n_rows for view in views], [view.width for view in views]
    is_paired = estimator.pairing > 0 and len(views) > 1
    n_steps = min(_JRL_STEPS, estimator.max_iter)
    by_objects = flops_by_objects(heights, widths, is_paired) < flops_by_features(heights, widths)
    for view in views:
        n, k = view.n_rows, min(estimator.n_neighbors, view.n_rows - 1)
        graph = 1.5 * k * n  # entries
        work += neighbours(view, n, k) + Work(sparse=150 * graph, n_bytes=100 * graph)
        if by_objects:
            work += _jrl_by_objects(view, shapes.n_labels, is_paired, n_steps)
        elif view.is_sparse:
            filled = min(view.width, 1.5 * k * view.stored)
            work += Work(sparse=SPARSE_PRODUCT * view.stored * (graph + n * filled))
            work += 2 * scatter(view, view)
        else:
            work += Work(sparse=graph * view.width) + 3 * product(view.width, n, view.width)
    work += Work(n_bytes=8 * sum(heights) * shapes.n_labels)
    if by_objects:
        shared = Work(products=CHOLESKY / 3 * max(heights) ** 3 if is_paired else 0)
        return work + n_steps * shared + Work(n_bytes=bytes_by_objects(heights, is_paired))
    for p, q in combinations(views, 2):
        work += scatter(p, q)
    step = _group_sparse(sum(widths), sum(widths), shapes.n_labels)
    return work + n_steps * step + Work(n_bytes=bytes_by_features(widths))


def _jrl_by_objects(view: ViewShape, n_labels: int, is_paired: bool, n_steps: int) -> Work:
    """What steps of JRL that solve for the rows of a view take."""
    n, d = view.n_rows, view.width
    gram = Work(products=n**2 * d, passes=3 * n * d)
    if view.is_sparse and (filled := SPARSE_PRODUCT * (n * view.stored) ** 2 / d) < n**2 * d:
        gram = Work(sparse=filled)
    step = gram + Work(products=CHOLESKY / 3 * n**3, passes=20 * n**2, calls=50)
    step += 2 * product(n, n, n_labels)
    if is_paired:  # triangular solves for the shared objects, and a symmetric product
        step += Work(products=(CHOLESKY + 1) * n**3)
    before = Work(products=(CHOLESKY * 7 / 3 + 2) * n**3)  # the inverse of the form, and its images
    return n_steps * step + before


def cmolrs(estimator: Any, shapes: Shapes) -> Work:
    n_steps = estimator.n_epochs * max(1, shapes.n_directions) * shapes.n_rows
    n_steps = ceil(n_steps / estimator.batch_size)
    taken = estimator.batch_size * (1 + 2 * estimator.n_triplets)
    mean_width = sum(view.stored for view in shapes.views) / len(shapes.views)
    k = components(estimator.n_components, shapes.views)
    step = Work(passes=5 * taken * mean_width, calls=350)
    if any(view.is_sparse for view in shapes.views):
        step += Work(sparse=2 * k * taken * mean_width, passes=10 * k * shapes.width, calls=1000)
    else:
        step += product(taken, mean_width, 2 * k)
    # A thin QR decomposition of twice as many columns, and a small eigendecomposition.
    step += 4 * product(shapes.width, 2 * k, 2 * k) + Work(factors=(2 * k) ** 3)
    return n_steps * step + Work(n_bytes=8 * (6 * shapes.width * k + 5 * taken * mean_width))


def project(_: Any, shapes: Shapes, n_rows: int, k: int) -> Work:
    """Linear maps."""
    work = Work(calls=300)
    for view in shapes.views:
        if view.is_sparse:
            work += Work(sparse=n_rows * view.stored * k, passes=2 * n_rows * k)
        else:
            work += view.share * product(n_rows, view.width, k) + Work(passes=2 * n_rows * k)
    return work


def project_by_labels(estimator: Any, shapes: Shapes, n_rows: int, k: int) -> Work:
    """JRL: labels of the nearest rows of all views in the shared space."""
    rows = ViewShape(sum(view.n_rows for view in shapes.views), k, k)
    nearest = neighbours(rows, n_rows, estimator.n_neighbors)
    nearest += Work(sparse=n_rows * estimator.n_neighbors * 30)
    return project(estimator, shapes, n_rows, k) + len(shapes.views) * nearest
