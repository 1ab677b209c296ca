"""Work of commands that are no fits of one estimator: searches, alignments, migrations, tests.

Constants were fitted to CPU times of 6 to 9 problems each (`benchmarks/scale/command_times.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from mvcca.comparison.costs._shapes import ViewShape
from mvcca.comparison.costs._steps import moments, product, solve
from mvcca.comparison.costs._work import Work

_SINGLE = 0.5  # of the time of products in double precision
_COMPARED = 5_000  # rows of each set, at most, that are matched in an alignment
_GALLERY, _QUERIES = 100_000, 1_000  # at most, of a migration
_DRAWS = 20  # of random bases


def projection_work(rows: Mapping[str, ViewShape], n_components: int) -> Work:
    """Linear maps of rows, read from files and written to one."""
    work = Work(calls=300)
    for view in rows.values():
        work += view.share * product(view.n_rows, view.stored, n_components)
        work += Work(passes=view.n_rows * (10 * view.stored + 40 * n_components))
    return work


def hits_work(
    galleries: Mapping[str, ViewShape],
    queries: Mapping[str, ViewShape],
    n_components: int,
    *,
    corrects: bool = False,
) -> Work:
    """Projection of both sides and the best items of each query; `corrects`, if hubs are."""
    from mvcca.retrieval.bank import BANK_ROWS  # with scikit-learn, which takes a second

    n_items = sum(view.n_rows for view in galleries.values())
    n_queries = max(view.n_rows for view in queries.values())

    n_rows = n_queries + (BANK_ROWS if corrects else 0)
    work = projection_work(galleries, n_components) + projection_work(queries, n_components)
    work += _SINGLE * product(n_rows, n_components, n_items) + Work(sorts=0.8 * n_rows * n_items)
    return work + Work(n_bytes=16 * n_items * n_components)


def alignment_work(x: ViewShape, y: ViewShape, n_pairs: int, *, method: str = "cca") -> Work:
    """Pseudo-pairs and models in turn, from known pairs or from clusters of the rows."""
    n = min(_COMPARED, x.n_rows, y.n_rows)
    width = max(x.width, y.width)
    match = 6 * _SINGLE * product(n, width, n) + Work(sorts=4 * n**2)
    rows = ViewShape(n, x.width, x.width), ViewShape(n, y.width, y.width)
    model = moments(rows) + solve([x.width, y.width], min(x.width, y.width), is_cca=True)
    tuned = 40 * model if method == "cca" else model
    clusters = 60 * (10 * product(n, width, 20) + Work(calls=20_000))
    refined = 60 * (_SINGLE * product(1000, width, n) + Work(sorts=1000 * n))
    start = clusters + refined
    if n_pairs >= 10:
        n_starts = int(n_pairs <= 100)
        n_matches, folds = 31 + 16 * n_starts, 5 * tuned
    else:
        n_starts, n_matches, folds = 3, 54, Work()
    work = n_matches * (match + model) + n_starts * start + folds
    return work + Work(n_bytes=8 * (x.n_rows * x.width + y.n_rows * y.width))


def migration_work(
    old: ViewShape, new: ViewShape, *, direction: str = "items", n_regs: int = 6, writes: bool
) -> Work:
    """A map fitted to pairs and measured among stored rows; all of these mapped, if it writes.

    The rows of `new` are the pairs.
    """
    pairs = ViewShape(new.n_rows, old.width, old.width), new
    n_items, n_queries = min(_GALLERY, old.n_rows), min(_QUERIES, new.n_rows)
    search = product(n_queries, max(old.width, new.width), n_items)
    search += product(n_items, old.width, new.width) + Work(passes=6 * n_queries * n_items)
    model = solve([old.width, new.width], min(old.width, new.width), is_cca=True)
    n_models = 1 if direction == "items" else n_regs
    work = moments(pairs) + 4 * n_models * model + (1 + n_models / 3) * search
    if writes:
        work += projection_work({"old": old}, new.width)
    return work + Work(n_bytes=8 * (n_items + new.n_rows) * (old.width + new.width))


def similarity_work(
    layers: Collection[ViewShape],
    other: Collection[ViewShape] | None,
    measures: Collection[str],
    *,
    calibrates: bool = True,
    has_intervals: bool = False,
) -> Work:
    """Measures of all pairs of layers."""
    others = layers if other is None else other
    share = 0.5 if other is None else 1.0  # pairs in both orders are one
    work = Work()
    if "mutual_knn" in measures:
        for view in layers if other is None else (*layers, *others):
            n = view.n_rows
            work += _SINGLE * product(n, view.width, n) + Work(sorts=0.8 * n**2)
    for first in layers:
        for second in others:
            n, p, q = first.n_rows, first.width, second.width
            pair = product(p, n, q) + Work(passes=35 * n * (p + q))
            for name in measures:
                if name == "mutual_knn":
                    pair += Work(passes=300 * n)
                elif not name.startswith("cka"):
                    n_bases = _DRAWS if calibrates else 1
                    pair += Work(factors=n_bases * p * q * min(p, q), passes=25 * n_bases * p * q)
            work += share * pair
    return (11 if has_intervals else 1) * work + Work(
        n_bytes=8 * sum(view.width for view in (*layers, *others)) ** 2
    )


def study_work(
    x: ViewShape, y: ViewShape, n_permutations: int, *, n_components: int | None = None
) -> Work:
    """Permutations, folds and intervals of a study of two tables."""
    n = min(x.n_rows, y.n_rows)
    widths = [min(view.width, n_components or max(1, n // 10)) for view in (x, y)]
    folds = 12 * (moments((x, y)) + Work(passes=60 * n * (x.width + y.width)))
    return folds + Work(
        calls=300_000,
        passes=14 * n_permutations * n * sum(widths),
        n_bytes=64 * n * (x.width + y.width),
    )
