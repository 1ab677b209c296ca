"""What a map keeps, measured on pairs that it was not fitted to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mvcca.interop.migration.gallery import Cosines, Ranks, StoredRows
from mvcca.interop.migration.maps import NEW, OLD, Canonical, RowMaps, ridge_map
from mvcca.linear.ridges import LEAST_REMAINING, Ridges
from mvcca.measures import unit_rows
from mvcca.model_selection import search_folds
from mvcca.retrieval import top_k

NEAREST = 10


def found_shares(better: np.ndarray, equal: np.ndarray) -> tuple[float, float, float]:
    """Shares of queries whose row is first and among the first 10; standard error of the first."""
    # A tie is broken at random. For the error two hits and two misses are added (Agresti and Coull,
    # The American Statistician 1998), so that a share of 1 in few queries is not taken for certain.
    ties = equal + 1
    first = float(np.mean((better == 0) / ties))
    in_ten = float(np.mean(np.clip(NEAREST - better, 0, ties) / ties))
    n_queries = len(better) + 4
    share = (first * len(better) + 2) / n_queries
    return first, in_ten, float(np.sqrt(share * (1 - share) / n_queries))


# ---- the ridge of the best value ----------------------------------------------------------------


def best_ridge(
    regs: Sequence[Any],
    found: Callable[[Any, int], Any],
    measure: Callable[[list[Any]], float],
    *,
    n_folds: int = 1,
    fit: Callable[[int, Any], Any] = lambda _, reg: reg,
) -> tuple[Any, list[Any]]:
    """The ridge for which a measure of what is found on all folds is largest, and what is found.

    `found` gets what is fitted without a fold: by default the ridge itself, where a closed form
    leaves out each pair.
    """
    settings = [{"reg": reg} for reg in reversed(regs)]  # of equal ones, the first

    def maps(fold: int, settings: Sequence[Mapping[str, float]]) -> Iterator[Any]:
        return (fit(fold, setting["reg"]) for setting in settings)

    trials = search_folds(n_folds, settings, maps, found)
    measured = trials.pooled(measure)
    return measured.chosen["reg"], [*trials.values[measured.best].values()]


# ---- one pair left out, in closed form ----------------------------------------------------------


class LeftOut:
    """Ridge regressions without one of their pairs, for each of some pairs."""

    def __init__(self, ridges: Ridges, old: np.ndarray, new: np.ndarray) -> None:
        self._ridges, self._new = ridges, new
        self._coordinates = ridges.coordinates(old)

    def exist(self, reg: float) -> bool:
        """Whether the closed form holds: no old row is the only one in its direction."""
        return bool((self._remaining(reg) > LEAST_REMAINING).all())

    def error(self, reg: float) -> float:
        """Sum of squared distances of new rows to their predictions; infinite if undefined."""
        if not self.exist(reg):
            return np.inf
        residuals = self._residuals(reg) / self._remaining(reg)[:, None]
        return float(np.einsum("ij,ij->", residuals, residuals))

    def own_cosines(self, reg: float) -> np.ndarray:
        """Cosines of new rows with their predictions."""
        left_out = self._new - self._residuals(reg) / self._remaining(reg)[:, None]
        return cosines_of(left_out, self._new)

    def cosines(self, reg: float, rows: np.ndarray) -> Cosines:
        """Cosines of all mapped rows with the new rows, each under the map without its pair.

        With c_j = h_ji / (1 - h_ii), the row f(x_j) - c_j e_i has with y_i the inner product
        f(x_j)·y_i - c_j e_i·y_i, and the squared length ‖f(x_j)‖² - 2 c_j f(x_j)·e_i + c_j² ‖e_i‖².
        """
        dtype = np.result_type(rows, self._new)
        remaining = self._remaining(reg)[:, None]
        duals = self._ridges.duals(reg, self._coordinates) / remaining
        constants = 1 / self._ridges.n_pairs / remaining - duals @ self._ridges.means[OLD][:, None]
        mapped = ridge_map(self._ridges, reg).apply(rows, OLD).astype(dtype, copy=False)
        largest = max(mapped.max(), -mapped.min()) or 1  # its square may overflow
        mapped /= largest
        lengths = np.einsum("ij,ij->i", mapped, mapped)[:, None]
        queries, e = unit_rows(self._new.astype(dtype)), self._residuals(reg) / largest
        products, squares = (np.einsum("ij,ij->i", left, e) for left in (queries, e))
        duals, constants, doubled, products, squares = (
            part.astype(dtype) for part in (duals, constants[:, 0], -2 * e, products, squares)
        )
        least = np.finfo(dtype).eps * lengths + np.finfo(dtype).tiny  # what rounding leaves of 0

        def cosines(some: Any, chosen: slice) -> np.ndarray:
            x, f = rows[some], mapped[some]
            c = x @ duals[chosen].T
            c += constants[chosen]
            scores = c * squares[chosen]
            squared = f @ doubled[chosen].T
            squared += scores
            squared *= c
            squared += lengths[some]
            np.sqrt(np.maximum(squared, least[some], out=squared), out=squared)
            np.matmul(f, queries[chosen].T, out=scores)
            scores -= np.multiply(c, products[chosen], out=c)
            return np.divide(scores, squared, out=scores)

        return cosines

    def _residuals(self, reg: float) -> np.ndarray:
        """Residuals under the regression on all pairs."""
        return self._ridges.residuals(reg, self._coordinates, self._new)

    def _remaining(self, reg: float) -> np.ndarray:
        """1 - h_ii."""
        return 1 - self._ridges.leverages(reg, self._coordinates)


def left_out_queries(
    canonical: Canonical, reg: float, old: np.ndarray, new: np.ndarray
) -> np.ndarray:
    """New rows mapped by query adapters of CCA, each without the row's own pair, to length 1.

    With centred rows u and v of the pair, P and Q the inverses of the covariances with a ridge that
    is kept, c = n / (n - 1), h_v = vᵀQv and h_u = uᵀPu (all of sums, not of means), two rank-one
    updates of the inverses give the query of the adapter without this pair up to its length:

        w = S_xy Q v - c h_v u,   q = P w + c (uᵀPw) / (1 - c h_u) P u.
    """
    degrees = canonical.n_pairs - 1
    u, v = old - canonical.means[OLD], new - canonical.means[NEW]
    P, Q = (own.inverse(reg) / degrees for own in (canonical.of_old, canonical.of_new))
    c = canonical.n_pairs / degrees
    Pu, Qv = u @ P, v @ Q
    w = Qv @ canonical.between.T * degrees
    w -= c * np.einsum("ij,ij->i", v, Qv)[:, None] * u
    remaining = np.maximum(1 - c * np.einsum("ij,ij->i", u, Pu), LEAST_REMAINING)
    growth = c * np.einsum("ij,ij->i", w, Pu) / remaining
    return unit_rows((w @ P + growth[:, None] * Pu).astype(new.dtype))


def cosines_of(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Cosines of rows with the same number."""
    return np.asarray(np.einsum("ij,ij->i", unit_rows(a), unit_rows(b)))


# ---- a fold left out ----------------------------------------------------------------------------


def ranks_under(maps: RowMaps, gallery: StoredRows, places: np.ndarray, new: np.ndarray) -> Ranks:
    """Ranks of the own rows of the queries `places` of the gallery; `new` are their new rows."""
    items, queries = maps.items_of(gallery.rows), maps.queries_of(new)
    return gallery.ranks(places, lambda rows, part: items[rows] @ queries[part].T)


def neighbors_kept(maps: RowMaps, old: np.ndarray, new: np.ndarray) -> tuple[float, float, float]:
    """Share of the nearest rows among held-out pairs that stay so, with the map and before it.

    The last number is the share of the pairs that count as nearest, at most a tenth.
    """
    k = max(1, min(NEAREST, len(new) // 10))
    exact = _nearest(new, new, k)
    with_map = _shared(_nearest(maps.queries_of(new), maps.items_of(old), k), exact)
    return with_map, _shared(_nearest(old, old, k), exact), k / len(new)


def _shared(found: np.ndarray, exact: np.ndarray) -> float:
    return float((found[:, :, None] == exact[:, None, :]).any(axis=2).mean())


def _nearest(queries: np.ndarray, rows: np.ndarray, k: int) -> np.ndarray:
    """The rows with the largest cosines, best first, (n_queries, k)."""
    return top_k(queries, rows, k)[1]
