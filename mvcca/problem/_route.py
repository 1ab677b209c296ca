"""Which way to solve CCA with a ridge: by matrices over features or objects, or by products.

Times are computed from numbers of multiplications and their speed on one core; memory is counted.
The constants are fitted by ``benchmarks/routes.py``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace

from mvcca.blocks import Block
from mvcca.machine.config import get_config
from mvcca.machine.memory import available_bytes
from mvcca.problem._by_products import Overfit, solve_by_products
from mvcca.problem._maps import Maps
from mvcca.problem._rows import Rows
from mvcca.views import Views

WIDE = 1_000  # features of all views, below which matrices are small
_MATRIX = 50e9  # multiplications and additions a second, of large matrices
_FACTORISE = 40e9  # the same of decompositions
_PAIRS = 2.5e8  # a second, of stored numbers of the same row
_SPARSE, _SPARSE_LARGE = (
    2.5e9,
    1.2e9,
)  # operations on sparse rows and a few columns, in cache or not
_CACHE = 2**21  # bytes
_COLUMN, _DENSE = 4e8, 18e9  # the same on dense rows: per column, and at most
_BYTES = 8e9  # a second, of vectors
_READ = 1e9  # bytes a second, of files
_STEPS, _PRODUCTS = 15, 6  # of preconditioned LOBPCG, and products in each of them
_PLAIN_STEPS = 80  # of LOBPCG without
_SHARE = 0.5  # of the memory that is free
_MOST_SEARCHED = 64  # components of a search that may take any number
_SOLUTIONS = 2.5  # by matrices, that take as long as those of one fold for all ridges
_LONG = 60.0  # seconds of a fold of a search
_FEW_ROWS = 5_000  # of which an n x n matrix is cheap, however the problem converges


@dataclass(frozen=True)
class Route:
    """A way to solve a problem.

    Attributes
    ----------
    name : {"covariance", "row space", "operator"}
        Matrices over features; matrices over objects for the views with fewer of these; products.
    seconds : float
        Estimated time on one core.
    n_bytes : float
        Memory above that of the rows.
    reads_rows : bool
        Whether to read rows in files into memory first.
    """

    name: str
    seconds: float
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
    seconds, total, n_views = 0.0, 0.0, len(views.names)
    is_wide = False
    for X in views.blocks.values():
        n_rows, n_features = map(float, X.shape)
        if n_rows < n_features:
            is_wide = True
            seconds += n_rows**2 * n_features / _MATRIX
        elif X.is_sparse:  # with those of the other views
            seconds += n_views * _numbers(X) ** 2 / n_rows / _PAIRS
        else:
            seconds += n_views * n_rows * n_features**2 / _MATRIX
        total += min(n_rows, n_features)
    solving = 1.5 if n_views == 2 else 4.0
    seconds += solving * total**3 / _FACTORISE
    return Route("row space" if is_wide else "covariance", seconds, 8 * 3 * total**2)


def _by_products(views: Views, n_components: int) -> Route:
    """LOBPCG; rows in files are read into memory if these fit."""
    size = n_components + max(4, n_components // 4)
    length = float(sum(views.widths.values()) + len(views) * len(views.names))
    pair, n_copied, n_read = 0.0, 0.0, 0.0
    for X in views.blocks.values():  # a product with the rows and one with their transpose
        rate = min(_COLUMN * size, _DENSE)
        if X.is_sparse:
            rate = _SPARSE if 8 * X.shape[1] * size <= _CACHE else _SPARSE_LARGE
        pair += 4 * _numbers(X) * size / rate
        n_copied += 8 * _numbers(X) * (X.dtype.itemsize < 8)
        n_read += float(X.row_bytes) * X.shape[0] * X.is_lazy
    n_bytes = 8 * 7 * length * size
    reads_rows = 0 < n_read <= _SHARE * available_bytes() - n_bytes - n_copied
    n_steps, n_products = _STEPS, _PRODUCTS
    if n_read and not reads_rows:
        n_steps, n_products = _PLAIN_STEPS, 1
        pair += n_read / _READ
    elif not n_read or reads_rows:
        n_bytes += n_copied + n_read
    per_step = n_products * (pair + 64 * length * size / _BYTES) + 24 * length * size**2 / _MATRIX
    return Route("operator", n_steps * per_step, n_bytes, bool(reads_rows))


def _numbers(X: Block) -> float:
    """How many numbers rows store."""
    index_bytes = 4 if X.is_sparse else 0
    return float(X.row_bytes) * X.shape[0] / (X.dtype.itemsize + index_bytes)


def by_products(rows: Rows, *, with_patterns: bool = False) -> Maps | None:
    """The maps of ridge CCA of `rows`, if products are the way to find them; else None."""
    route = operator_route(rows)
    if route is None:
        return None
    is_read = any(X.is_lazy for X in rows.views.blocks.values()) and not route.reads_rows
    if route.reads_rows:
        rows = replace(rows, views=rows.views.in_memory())
    try:
        return solve_by_products(
            rows,
            with_patterns=with_patterns,
            preconditioned=not is_read,
            refuse=len(rows.views) <= _FEW_ROWS,
        )
    except Overfit:  # many steps, where few rows span few directions
        return None


def operator_route(rows: Rows) -> Route | None:
    """The operator route if it is the one to take for ridge CCA of `rows`, else None."""
    views, k = rows.views, rows.n_components
    if k is None or not _may_take_products(views, k) or not all(rows.reg.values()):
        return None
    found = routes(views, k)
    chosen = cheapest(found)
    if get_config().progress:
        from tqdm.auto import tqdm

        of_each = (f"{r.name} {r.seconds:.2g} s, {r.n_bytes / 1e9:.2g} GB" for r in found.values())
        tqdm.write(
            f"{', '.join(views.names)}: {chosen.name} route, of {'; '.join(of_each)}",
            file=sys.stderr,
        )
    return chosen if chosen.name == "operator" else None


def components_to_search(rows: Rows, n_ridges: int) -> int | None:
    """How many components of CCA to search with several ridges by products; None for matrices.

    Only matrices give all components that the data support, which are searched in place of
    `_MOST_SEARCHED` ones if that takes no longer than about a minute for each fold.
    """
    views, k = rows.views, rows.n_components or _MOST_SEARCHED
    if not _may_take_products(views, k):
        return None
    matrices, products = routes(views, k).values()
    of_matrices = _SOLUTIONS * matrices.seconds
    longest = _LONG if rows.n_components is None else n_ridges * products.seconds
    fits = matrices.n_bytes <= _SHARE * available_bytes()
    return None if fits and of_matrices <= longest else k


def _may_take_products(views: Views, k: int) -> bool:
    """Whether LOBPCG finds so many components of these views."""
    if sum(views.widths.values()) < WIDE or len(views.names) < 2 or get_config().device:
        return False
    if any(X.on_device for X in views.blocks.values()):
        return False
    return k <= min(min(views.widths.values()), len(views) - 1) / 8


def cheapest(found: Mapping[str, Route]) -> Route:
    """The fastest route that fits in the memory that is free; else the smallest."""
    free = available_bytes()
    fitting = [route for route in found.values() if route.n_bytes <= _SHARE * free]
    if not fitting:
        return min(found.values(), key=lambda route: route.n_bytes)
    return min(fitting, key=lambda route: route.seconds)
