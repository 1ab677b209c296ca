"""Work of choosing ridge, ranking and number of components by fold statistics."""

from __future__ import annotations

from itertools import combinations
from math import comb

from mvcca.comparison.costs._shapes import ViewShape
from mvcca.comparison.costs._steps import (
    eigenpairs,
    product,
    top_singular,
    tridiagonal,
)
from mvcca.comparison.costs._work import Work
from mvcca.model_selection import HELD_OUT, Goal, are_one_fold


def models_of(n_rows: int, n_folds: int, nested: bool) -> tuple[int, int]:
    """Number of models of one setting, and of the folds that each is scored on."""
    if nested:
        return comb(n_folds, 2), 2
    if are_one_fold(n_folds * HELD_OUT, n_rows, n_folds):  # ranked rows are held out together
        return 1, n_folds
    return n_folds, 1


def ridge_search(
    views: tuple[ViewShape, ...],
    statistic: Work,
    k: int,
    goal: Goal,
    *,
    n_folds: int,
    n_ridges: int,
    n_weightings: int,
    nested: bool,
    with_numbers: bool,
    n_directions: int,
) -> Work:
    """Models of all left-out folds and ridges, for views of no more features than rows.

    Parameters
    ----------
    statistic : Work
        Of one model, beside the statistics of the folds.
    n_weightings : int
        Ways to weight components; with a goal of objects, each with and without CSLS.
    with_numbers : bool
        Whether the number of components is searched, too.
    n_directions : int
        Ordered pairs of views that are ranked.
    """
    n_models, n_held_out = models_of(views[0].n_rows, n_folds, nested)
    n_ranked = min(HELD_OUT, max(1, views[0].n_rows // n_folds))
    ranking = n_weightings * rankings(goal, k, n_ranked, with_numbers)
    ranking *= n_directions
    width = sum(view.used for view in views)
    solution = _solution(views, k) + n_held_out * ranking
    for view in views:
        solution += n_held_out * product(n_ranked + HELD_OUT, view.used, k)
    model = statistic + _decomposition(views, (1 + n_held_out) * HELD_OUT) + n_ridges * solution
    model += Work(passes=3 * n_folds * width**2)  # adding statistics up
    return n_models * model + Work(n_bytes=8 * (n_folds + 4) * width**2)


def _decomposition(views: tuple[ViewShape, ...], n_rows: int) -> Work:
    """Axes of the constraints, and everything in their coordinates."""
    work = Work(calls=1000)
    for view in views:
        d = view.used
        work += tridiagonal(d) + 2 * (len(views) - 1) * product(d, d, d)
        work += product(n_rows, min(view.stored, d), d) + Work(passes=10 * d**2)
    for p, q in combinations(views, 2):
        work += 2 * (product(p.used, p.used, q.used) + product(p.used, q.used, q.used))
    return work


def _solution(views: tuple[ViewShape, ...], k: int) -> Work:
    """Directions for one ridge, and the correlations to expect of them."""
    widths = [view.used for view in views]
    work = Work(calls=500, passes=6 * sum(widths) ** 2)
    for p, q in combinations(widths, 2):
        work += product(p, p, k) + product(q, q, k) + product(p, q, k)
    if len(widths) == 2:
        return work + top_singular(widths[0], widths[1], k)
    return work + eigenpairs(sum(widths), k)


def rankings(goal: Goal, k: int, n_rows: int, with_numbers: bool) -> Work:
    """Rankings of one model by one weighting, in one direction."""
    if goal == "correlation":
        return Work(calls=50, passes=10 * n_rows * k)
    work, number = Work(), 1 if with_numbers else k
    while number < 1.5 * k:  # 1, 2, 3, 5, 8, 12, ... and all
        used = min(number, k)
        scores = product(n_rows, used, n_rows) + Work(passes=10 * n_rows * used, calls=100)
        if goal == "class":
            scores += Work(sorts=0.3 * n_rows**2, passes=200 * n_rows)
        else:  # with and without CSLS
            scores += product(HELD_OUT, used, n_rows) + Work(passes=4 * n_rows**2)
            scores += Work(sorts=0.6 * HELD_OUT * n_rows)
        work += scores
        number = max(number + 1, int(1.5 * number + 0.5))
    return work
