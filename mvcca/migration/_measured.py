"""What a map keeps, measured on pairs that it was not fitted to."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mvcca.measures import descending_order, unit_rows
from mvcca.migration._gallery import Gallery, Ranks
from mvcca.migration._maps import OLD, Map, Ridges

NEAREST = 10
_TILE_QUERIES = 1024
_LEAST_REMAINING = 1e-6  # of 1 - h_ii, whose rounding is about 1e-12


def found_shares(better: np.ndarray, equal: np.ndarray) -> tuple[float, float, float]:
    """Shares of queries whose own row is first and among the first 10; standard error of the first.

    A tie is broken at random. For the error two hits and two misses are added [1]_, so that a share
    of 1 in few queries is not taken for certain.

    References
    ----------
    .. [1] Agresti and Coull, "Approximate is better than exact for interval estimation of binomial
       proportions", The American Statistician 1998.
    """
    ties = equal + 1
    first = float(np.mean((better == 0) / ties))
    in_ten = float(np.mean(np.clip(NEAREST - better, 0, ties) / ties))
    n_queries = len(better) + 4
    share = (first * len(better) + 2) / n_queries
    return first, in_ten, float(np.sqrt(share * (1 - share) / n_queries))


# ---- one pair left out, in closed form ----------------------------------------------------------


def can_leave_out(ridges: Ridges, reg: float, old: np.ndarray) -> bool:
    """Whether the closed form holds: no old row is the only one in its direction."""
    leverages = ridges.leverages(reg, ridges.coordinates(old))
    return bool((1 - leverages > _LEAST_REMAINING).all())


def left_out_error(ridges: Ridges, reg: float, old: np.ndarray, new: np.ndarray) -> float:
    """Sum of squared distances of new rows to predictions without them; infinite if undefined."""
    if not can_leave_out(ridges, reg, old):
        return np.inf
    coordinates = ridges.coordinates(old)
    remaining = 1 - ridges.leverages(reg, coordinates)
    residuals = ridges.residuals(reg, coordinates, new) / remaining[:, None]
    return float(np.einsum("ij,ij->", residuals, residuals))


def left_out_cosines(
    ridges: Ridges, reg: float, rows: np.ndarray, old: np.ndarray, new: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    """Cosines of new rows with all mapped rows, under the map without the pair.

    With c_j = h_ji / (1 - h_ii), the row f(x_j) - c_j e_i has with y_i the inner product
    f(x_j)·y_i - c_j e_i·y_i, and the squared length ‖f(x_j)‖² - 2 c_j f(x_j)·e_i + c_j² ‖e_i‖².
    """
    dtype = np.result_type(rows, new)
    coordinates = ridges.coordinates(old)
    remaining = 1 - ridges.leverages(reg, coordinates)
    duals = (ridges.duals(reg, coordinates) / remaining[:, None]).astype(dtype)
    constants = (1 / ridges.n_pairs / remaining).astype(dtype)
    centred = (rows - ridges.means[OLD].astype(rows.dtype)).astype(dtype, copy=False)
    mapped = ridges.fit(reg)(rows).astype(dtype, copy=False)
    largest = np.abs(mapped).max() or 1  # its square may overflow
    mapped /= largest
    residuals = (ridges.residuals(reg, coordinates, new) / largest).astype(dtype)
    queries = unit_rows(new.astype(dtype))
    lengths = np.einsum("ij,ij->i", mapped, mapped)
    products = np.einsum("ij,ij->i", queries, residuals)[:, None]
    squares = np.einsum("ij,ij->i", residuals, residuals)[:, None]

    def cosines(chosen: np.ndarray) -> np.ndarray:
        c = duals[chosen] @ centred.T + constants[chosen, None]
        scores = queries[chosen] @ mapped.T - c * products[chosen]
        squared = lengths - c * (2 * (residuals[chosen] @ mapped.T) - c * squares[chosen])
        return np.divide(scores, np.sqrt(np.maximum(squared, 0)), out=scores, where=squared > 0)

    return cosines


def left_out_ranks(
    ridges: Ridges, reg: float, gallery: Gallery, old: np.ndarray, new: np.ndarray
) -> Ranks:
    """Ranks of the own rows of pairs, each under the regression without this pair."""
    scores = left_out_cosines(ridges, reg, gallery.rows, old, new)
    return gallery.ranks(np.arange(len(old)), scores)


# ---- a fold left out ----------------------------------------------------------------------------


def ranks_under(predict: Map, gallery: Gallery, queries: np.ndarray, new: np.ndarray) -> Ranks:
    """Ranks of the own rows of some queries under one map; `new` are the rows of all queries."""
    mapped, wanted = unit_rows(predict(gallery.rows)), unit_rows(new)
    return gallery.ranks(queries, lambda chosen: wanted[chosen] @ mapped.T)


def neighbors_kept(predict: Map, old: np.ndarray, new: np.ndarray) -> tuple[float, float, float]:
    """Share of the nearest rows among held-out pairs that stay so, with the map and before it.

    The last number is the share of the pairs that count as nearest, at most a tenth.
    """
    k = max(1, min(NEAREST, len(new) // 10))
    exact = _nearest(new, new, k)
    with_map = _shared(_nearest(new, predict(old), k), exact)
    return with_map, _shared(_nearest(old, old, k), exact), k / len(new)


def _shared(found: np.ndarray, exact: np.ndarray) -> float:
    return float((found[:, :, None] == exact[:, None, :]).any(axis=2).mean())


def _nearest(queries: np.ndarray, rows: np.ndarray, k: int) -> np.ndarray:
    """The rows with the largest cosines, best first, (n_queries, k)."""
    queries, rows = unit_rows(queries), unit_rows(rows)
    found = np.empty((len(queries), k), dtype=np.int64)
    for start in range(0, len(queries), _TILE_QUERIES):
        tile = slice(start, start + _TILE_QUERIES)
        found[tile] = descending_order(queries[tile] @ rows.T, k)
    return found
