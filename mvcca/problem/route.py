"""Which way to solve CCA with a ridge, and PLS: by matrices over features or rows, or by products.

The cost of a route is how many numbers it moves between memory and cache, which takes longer than
what is computed with them. ``benchmarks/scale/routes.py`` compares choices with measured times.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from mvcca.blocks import Block
from mvcca.machine.config import get_config
from mvcca.machine.memory import WIDE, available_bytes
from mvcca.problem._krylov import EXTRA
from mvcca.problem._products import ProductPath
from mvcca.problem.dual import in_dual
from mvcca.problem.maps import Maps
from mvcca.problem.rows import Rows
from mvcca.views import Views

_REUSED = 64  # times that a product of matrices reuses a number: 64 x 64 of them fit in 32 KB
_SPARSE = 1.5  # a stored number and its index, of half the size
_READ = 3  # times that a number in a file crosses memory: it is read, decoded and copied
_STEPS, _PRODUCTS = 15, 6  # of preconditioned LOBPCG, and products in each of them
_TALL = 0.35  # power of rows per feature by which steps fall: noise of more rows correlates less
_PLAIN_STEPS = 80  # of LOBPCG without
_SHARE = 0.5  # of the memory that is free
_MOST_SEARCHED = 64  # components of a search that may take any number
_SOLUTIONS = 2.5  # by matrices, that cost as much as those of one fold for all ridges
_FEW_ROWS = 5_000  # of which matrices of 200 MB each fit, however products converge

# Of PLS: a Krylov space is tried first, and given up where it takes too many steps.
_STEPS_EXPECTED = 6


@dataclass(frozen=True)
class Route:
    """A way to solve a problem.

    Attributes
    ----------
    name : {"covariance", "row space", "operator"}
        Matrices over features; matrices over objects for the views with fewer of these; products.
    n_moved : float
        Estimate of the numbers that are moved between memory and cache.
    n_bytes : float
        Memory above that of the rows.
    reads_rows : bool
        Whether to read rows in files into memory first.
    """

    name: str
    n_moved: float
    n_bytes: float
    reads_rows: bool = False


def routes(views: Views, n_components: int) -> dict[str, Route]:
    """Estimated cost of each route for CCA of views with a ridge, by name."""
    matrices = _by_matrices(views)
    return {matrices.name: matrices, "operator": _by_products(views, n_components)}


def bytes_of_matrices(views: Views) -> float:
    """Memory of covariances of all views, over rows where these are fewer than features."""
    return _by_matrices(views).n_bytes


def _by_matrices(views: Views) -> Route:
    """Matrices over the features, or the objects if there are fewer, of each view."""
    dimensions = [min(X.shape) for X in views.blocks.values()]
    total, is_wide = sum(dimensions), any(n < d for n, d in map(_shape, views.blocks.values()))
    # Of two views, two thirds are read to make a matrix tridiagonal, which reuses no number.
    solving = 2.0 if len(views.names) == 2 else 4.0
    n_moved = _moved_by_matrices(views) + solving * total**3 / _REUSED
    return Route("row space" if is_wide else "covariance", n_moved, 8 * 3 * total**2)


def _moved_by_matrices(views: Views) -> float:
    """Numbers moved to multiply rows of views with each other."""
    n_moved, n_views = 0.0, len(views.names)
    for X in views.blocks.values():
        n, d = _shape(X)
        if X.is_sparse and n >= d:  # two numbers of a row are added to one that is read and written
            n_moved += n_views * (_SPARSE + 1) * _numbers(X) ** 2 / n + d**2
        else:
            n_moved += min(n, d) * n * d / _REUSED * (1 if n < d else n_views)
    return n_moved


def _moved_by_product(X: Block, size: int) -> float:
    """Numbers moved by a product of rows with a matrix of `size` columns."""
    if X.is_sparse:  # each number takes a row of the other matrix, a third as far, in a cache
        return _numbers(X) * (_SPARSE + size / 3)
    return _numbers(X) * (1 + 2 * size / _REUSED)


def _by_products(views: Views, n_components: int) -> Route:
    """LOBPCG; rows in files are read into memory if these fit."""
    size = n_components + max(4, n_components // 4)
    length = float(sum(views.widths.values()) + len(views) * len(views.names))
    blocks = views.blocks.values()
    pair = sum(2 * _moved_by_product(X, size) for X in blocks)  # with rows, and their transpose
    n_copied = sum(8 * _numbers(X) * (X.dtype.itemsize < 8) for X in blocks)
    n_read = sum(float(X.row_bytes) * X.shape[0] * X.is_lazy for X in blocks)
    n_bytes = 8 * 7 * length * size
    reads_rows = 0 < n_read <= _SHARE * available_bytes() - n_bytes - n_copied
    n_steps, n_products = float(_STEPS), _PRODUCTS
    if n_read and not reads_rows:
        n_steps, n_products = _PLAIN_STEPS, 1
        pair += _READ * n_read / 8
    elif not n_read or reads_rows:
        n_bytes += n_copied + n_read
    n_steps /= max(1.0, len(views) * len(views.names) / sum(views.widths.values())) ** _TALL
    per_step = n_products * (pair + 8 * length * size) + 24 * length * size**2 / _REUSED
    return Route("operator", n_steps * per_step, n_bytes, bool(reads_rows))


def _shape(X: Block) -> tuple[float, float]:
    return float(X.shape[0]), float(X.shape[1])


def _numbers(X: Block) -> float:
    """How many numbers rows store."""
    index_bytes = 4 if X.is_sparse else 0
    return float(X.row_bytes) * X.shape[0] / (X.dtype.itemsize + index_bytes)


def by_products(rows: Rows, *, with_patterns: bool = False) -> Maps | None:
    """The maps of ridge CCA of `rows`, if products are the way to find them; else None."""
    route = operator_route(rows)
    if route is None:
        return in_dual(rows, with_patterns=with_patterns)
    is_read = any(X.is_lazy for X in rows.views.blocks.values()) and not route.reads_rows
    if route.reads_rows:
        rows = replace(rows, views=rows.views.in_memory())
    # With too small a ridge, steps are many where few rows span few directions.
    rows = rows.standardized() if rows.reading.units else rows
    path = ProductPath(rows, with_patterns, not is_read, refuses=len(rows.views) <= _FEW_ROWS)
    maps = path.solve(rows.reg, rows.n_components)
    return maps if maps is None else maps.lifted(rows.reading.bases)


def operator_route(rows: Rows) -> Route | None:
    """The operator route if it is the one to take for ridge CCA of `rows`, else None."""
    views, k = rows.views, rows.n_components
    if k is None or not _may_take_products(views, k) or not all(rows.reg.values()):
        return None
    if any(views.blocks[name].is_lazy for name in rows.reading.units or {}):
        return None  # products would need a copy in other units
    found = routes(views, k)
    chosen = cheapest(found)
    of_each = (
        f"{own.name} {own.n_moved:.2g} numbers moved, {own.n_bytes / 1e9:.2g} GB"
        for own in found.values()
    )
    _say(views.names, f"{chosen.name} route, of {'; '.join(of_each)}")
    return chosen if chosen.name == "operator" else None


def components_to_search(rows: Rows, n_ridges: int) -> int | None:
    """How many components of CCA to search with several ridges by products; None for matrices.

    Only matrices give all components that the data support, which are searched in place of
    `_MOST_SEARCHED` ones if that costs no more.
    """
    views, k = rows.views, rows.n_components or _MOST_SEARCHED
    if not _may_take_products(views, k):
        return None
    matrices, products = routes(views, k).values()
    is_cheaper = _SOLUTIONS * matrices.n_moved <= n_ridges * products.n_moved
    return None if is_cheaper and matrices.n_bytes <= _SHARE * available_bytes() else k


def _may_take_products(views: Views, k: int) -> bool:
    """Whether LOBPCG finds so many components of these views."""
    if sum(views.widths.values()) < WIDE or len(views.names) < 2 or get_config().rows_device:
        return False
    if any(X.on_device for X in views.blocks.values()):
        return False
    return k <= min(min(views.widths.values()), len(views) - 1) / 8


def cheapest(found: Mapping[str, Route]) -> Route:
    """The cheapest route that fits in the memory that is free; else the smallest."""
    free = available_bytes()
    fitting = [route for route in found.values() if route.n_bytes <= _SHARE * free]
    if not fitting:
        return min(found.values(), key=lambda route: route.n_bytes)
    return min(fitting, key=lambda route: route.n_moved)


def steps_of_products(views: Views, k: int) -> int | None:
    """Steps of a Krylov space that PLS may try before other routes, 0 if too few are worth it.

    They cost at most as much as the other route. None if that takes more memory than there is.
    """
    n, n_features, blocks = len(views), sum(views.widths.values()), views.blocks.values()
    if all(n < X.shape[1] for X in blocks):
        name, needed = "row space", 8 * (2 * len(blocks) + 2) * n**2
    else:
        name, needed = "covariance", 3 * 8 * n_features**2
    n_steps: int | None = None
    if needed <= available_bytes():
        per_step = sum(
            2 * _moved_by_product(X, k + EXTRA) + 2 * _READ * _numbers(X) * X.is_lazy
            for X in blocks
        )
        n_steps = int(_moved_by_matrices(views) / max(1, per_step))
        is_copied = any(not X.is_sparse and X.dtype != np.float64 for X in blocks)
        if is_copied or n_steps < _STEPS_EXPECTED:
            n_steps = 0
    if n_features >= WIDE:
        of_other = f"{name} route, {needed / 1e9:.2g} GB"
        most = "" if n_steps is None else f"up to {n_steps} steps, "
        _say(views.names, of_other if n_steps == 0 else f"operator route, {most}before {of_other}")
    return n_steps


def _say(names: Iterable[str], what: str) -> None:
    """Print which route is taken for these views, if progress is to be shown."""
    if get_config().progress:
        from tqdm.auto import tqdm

        tqdm.write(f"{', '.join(names)}: {what}", file=sys.stderr)
