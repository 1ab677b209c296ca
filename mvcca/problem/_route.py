"""Which way to solve CCA with a ridge, and PLS: by matrices over features or rows, or by products.

Times are computed from numbers of multiplications and their speed on one core; memory is counted.
The constants of CCA are fitted by ``benchmarks/scale/routes.py``, those of PLS by
``wide_pls.py`` beside it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from mvcca.blocks import Block
from mvcca.machine.config import get_config
from mvcca.machine.memory import available_bytes
from mvcca.problem._dual import in_dual
from mvcca.problem._krylov import EXTRA
from mvcca.problem._maps import Maps
from mvcca.problem._products import ProductPath
from mvcca.problem._rows import Rows
from mvcca.views import Views

WIDE = 1_000  # features of all views, below which matrices are small
_MATRIX = 50e9  # multiplications and additions a second, of large matrices
_FACTORISE = 40e9  # the same of decompositions
_PAIRS = 2.5e8  # a second, of stored numbers of the same row
_NUMBER, _NUMBER_COLUMN = 4e-9, 0.5e-9  # seconds for a number of sparse rows, and a column of it
_COLUMN, _DENSE = 6e8, 18e9  # operations on dense rows a second: per column, and at most
_BYTES = 8e9  # a second, of vectors
_READ = 1e9  # bytes a second, of files
_STEPS, _PRODUCTS = 15, 6  # of preconditioned LOBPCG, and products in each of them
_TALL = 0.35  # power of rows per feature by which steps fall: noise of more rows correlates less
_PLAIN_STEPS = 80  # of LOBPCG without
_SHARE = 0.5  # of the memory that is free
_MOST_SEARCHED = 64  # components of a search that may take any number
_SOLUTIONS = 2.5  # by matrices, that take as long as those of one fold for all ridges
_LONG = 60.0  # seconds of a fold of a search
_FEW_ROWS = 5_000  # of which an n x n matrix is cheap, however the problem converges

# Of PLS: a Krylov space is tried first, and given up where it takes too many steps. Time of a
# multiply-add is compared with that of dense rows.
_STEPS_EXPECTED = 6
_IN_VAIN = 0.5  # of the time of other routes that may be spent before
_SPARSE_SLOWER = 10  # of sparse rows and dense vectors
_READ_SLOWER = 3  # of rows that are read from files
_SPARSE_BY_SPARSE = 100  # of two sparse matrices
_FILLED = 50  # of an entry of their dense product, whatever it takes to fill it in


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
        if X.is_sparse:
            per_number = _NUMBER + _NUMBER_COLUMN * size
        else:
            per_number = 2 * size / min(_COLUMN * size, _DENSE)
        pair += 2 * per_number * _numbers(X)
        n_copied += 8 * _numbers(X) * (X.dtype.itemsize < 8)
        n_read += float(X.row_bytes) * X.shape[0] * X.is_lazy
    n_bytes = 8 * 7 * length * size
    reads_rows = 0 < n_read <= _SHARE * available_bytes() - n_bytes - n_copied
    n_steps, n_products = float(_STEPS), _PRODUCTS
    if n_read and not reads_rows:
        n_steps, n_products = _PLAIN_STEPS, 1
        pair += n_read / _READ
    elif not n_read or reads_rows:
        n_bytes += n_copied + n_read
    n_steps /= max(1.0, len(views) * len(views.names) / sum(views.widths.values())) ** _TALL
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
    of_each = (f"{r.name} {r.seconds:.2g} s, {r.n_bytes / 1e9:.2g} GB" for r in found.values())
    _say(views.names, f"{chosen.name} route, of {'; '.join(of_each)}")
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


def steps_of_products(views: Views, k: int) -> int | None:
    """Steps of a Krylov space that PLS may try before other routes, 0 if too few are worth it.

    None if the memory of other routes is not available. Multiply-adds are counted as dense ones.
    """
    n, n_features = len(views), sum(views.widths.values())
    blocks = views.blocks.values()
    stored = sum(map(_numbers, blocks))
    if all(n < X.shape[1] for X in blocks):
        name, needed, others = (
            "row space",
            8 * (2 * len(blocks) + 2) * n**2,
            float(n**2 * n_features),
        )
    else:
        name, needed, others = "covariance", 3 * 8 * n_features**2, float(n * n_features**2)
        if views.is_sparse:
            others = min(others, _SPARSE_BY_SPARSE * stored**2 / n + _FILLED * n_features**2)
    n_steps: int | None = None
    if needed <= available_bytes():
        slower = (_SPARSE_SLOWER if views.is_sparse else 1) * (_READ_SLOWER if views.is_lazy else 1)
        n_steps = int(_IN_VAIN * others / (4 * (k + EXTRA) * stored * slower))
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
