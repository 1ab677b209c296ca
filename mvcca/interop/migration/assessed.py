"""One method fitted to pairs, and measured on pairs that it was not fitted to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from mvcca.interop.migration.gallery import Ranks, StoredRows
from mvcca.interop.migration.local import local_maps
from mvcca.interop.migration.maps import (
    NEW,
    OLD,
    Canonical,
    RowMaps,
    ridge_map,
    ridges_of,
    rotation,
    total,
)
from mvcca.interop.migration.measured import (
    LeftOut,
    best_ridge,
    cosines_of,
    given,
    left_out_queries,
    neighbors_kept,
    ranks_under,
)
from mvcca.interop.row_maps import LocalMaps
from mvcca.statistics import Moments
from mvcca.views import Views

Fit = Callable[[int | None, Any], RowMaps]  # without a fold, with a ridge

_N_FOLDS = 5
_MOST_HELD_OUT = 1_000


@dataclass(frozen=True, eq=False)
class PairSample:
    """Pairs, those of them whose new rows are queries, and the rows that these search."""

    old: np.ndarray
    new: np.ndarray
    queries: np.ndarray  # numbers of pairs, increasing
    places: np.ndarray  # numbers of the same queries in the gallery
    gallery: StoredRows
    folds: Sequence[np.ndarray]
    sums: Sequence[Moments]  # of the folds

    @classmethod
    def of(
        cls,
        old: np.ndarray,
        new: np.ndarray,
        queries: np.ndarray,
        places: np.ndarray,
        gallery: StoredRows,
        rng: np.random.Generator,
    ) -> PairSample:
        """The pairs in random folds."""
        folds = [np.sort(fold) for fold in np.array_split(rng.permutation(len(old)), _N_FOLDS)]
        views = Views({OLD: old, NEW: new})
        sums = [Moments.of(views[fold]) for fold in folds]
        return cls(old, new, queries, places, gallery, folds, sums)


@dataclass(frozen=True, eq=False)
class Assessed:
    """A fitted map, with the ranks and the cosines of left-out pairs."""

    maps: RowMaps
    reg: float | None
    ranks: Ranks
    cosines: np.ndarray  # of mapped rows of left-out pairs
    left_out: Callable[[int | None], RowMaps]  # the map without a fold, or of all pairs
    is_exact: bool  # leave-one-out, not folds


def assess(method: str, direction: str, sample: PairSample, regs: Sequence[float]) -> Assessed:
    """Fit a method, choose its ridge and measure it."""
    if method == "procrustes":
        fit = _of_sums(sample, lambda sums, _: rotation(total(sums), direction))
        return _by_folds(sample, [None], fit)
    if method == "affine":
        return _affine(sample, regs)
    if method == "local":
        return _local(sample, regs)
    if direction == "queries":
        return _bilinear(sample, regs)
    return _shared(sample, regs)


def reciprocal(ranks: Ranks) -> float:
    """Mean reciprocal rank, which unlike the share of first ranks still tells good maps apart."""
    better, equal = ranks
    return float(np.mean(1 / (1 + better + equal / 2)))


def held_out_neighbors(sample: PairSample, found: Assessed) -> tuple[float, float, float]:
    """Neighbours kept in one fold, or in all if the maps without them are fitted anyway."""
    kept = []
    for k, fold in enumerate(sample.folds[: 1 if found.is_exact else None]):
        rows = fold[:_MOST_HELD_OUT]
        kept.append(neighbors_kept(found.left_out(k), sample.old[rows], sample.new[rows]))
    with_map, before, share = np.mean(kept, axis=0).tolist()
    return with_map, before, share


def _affine(sample: PairSample, regs: Sequence[float]) -> Assessed:
    ridges = ridges_of(total(sample.sums))
    x, y = sample.old[sample.queries], sample.new[sample.queries]
    left_out = LeftOut(ridges, x, y)
    reg = _least_error(left_out, regs)
    fit = _of_sums(sample, lambda sums, reg: RowMaps(ridge_map(ridges_of(total(sums)), reg), None))
    if not left_out.exist(reg):
        return _by_folds(sample, [reg], fit)
    ranks = sample.gallery.ranks(sample.places, left_out.cosines(reg, sample.gallery.rows))
    maps, cosines = RowMaps(ridge_map(ridges, reg), None), left_out.own_cosines(reg)
    return Assessed(maps, reg, ranks, cosines, _with(fit, reg), is_exact=True)


def _local(sample: PairSample, regs: Sequence[float]) -> Assessed:
    """Local maps if they help, else the ridge map."""
    left_out = LeftOut(
        ridges_of(total(sample.sums)), sample.old[sample.queries], sample.new[sample.queries]
    )
    reg = _least_error(left_out, regs)

    def fit(left_out: int | None, reg: float) -> RowMaps:
        kept = [k for k in range(len(sample.folds)) if k != left_out]
        rows = np.sort(np.concatenate([sample.folds[k] for k in kept]))
        ridges = ridges_of(total(sample.sums[k] for k in kept))
        found = local_maps(sample.old[rows], sample.new[rows], ridges, reg)
        return RowMaps(found or ridge_map(ridges, reg), None)

    if not isinstance(fit(None, reg).items, LocalMaps):
        return _affine(sample, [reg])
    return _by_folds(sample, [reg], fit)


def _bilinear(sample: PairSample, regs: Sequence[float]) -> Assessed:
    canonical = Canonical(total(sample.sums))
    old, new = sample.old[sample.queries], sample.new[sample.queries]
    items = RowMaps(None, None).items_of(sample.gallery.rows)

    def ranks_with(reg: float, _: int) -> Ranks:
        queries = left_out_queries(canonical, reg, old, new).astype(items.dtype)
        return sample.gallery.ranks(sample.places, lambda rows, part: items[rows] @ queries[part].T)

    reg, [ranks] = best_ridge(regs, 1, given, ranks_with, lambda found: reciprocal(found[0]))
    fit = _of_sums(sample, lambda sums, reg: Canonical(total(sums)).bilinear(reg))
    cosines = cosines_of(left_out_queries(canonical, reg, old, new), old)
    return Assessed(canonical.bilinear(reg), reg, ranks, cosines, _with(fit, reg), is_exact=True)


def _shared(sample: PairSample, regs: Sequence[float]) -> Assessed:
    @cache
    def canonical(left_out: int | None) -> Canonical:
        return Canonical(total(part for k, part in enumerate(sample.sums) if k != left_out))

    return _by_folds(sample, regs, lambda left_out, reg: canonical(left_out).shared(reg))


def _of_sums(sample: PairSample, fit: Callable[[Sequence[Moments], Any], RowMaps]) -> Fit:
    """The map of all folds but one, or of all, from their sums."""
    return lambda left_out, reg: fit(
        [part for k, part in enumerate(sample.sums) if k != left_out], reg
    )


def _by_folds(sample: PairSample, regs: Sequence[Any], fit: Fit) -> Assessed:
    """Queries of a fold search all rows under the map of the other folds."""

    def found(maps: RowMaps, fold: int) -> tuple[Ranks, np.ndarray] | None:
        chosen = np.isin(sample.queries, sample.folds[fold])
        if not chosen.any():
            return None
        old, new = (rows[sample.queries[chosen]] for rows in (sample.old, sample.new))
        ranks = ranks_under(maps, sample.gallery, sample.places[chosen], new)
        return ranks, cosines_of(maps.queries_of(new), maps.items_of(old))

    reg, parts = best_ridge(
        regs, len(sample.folds), fit, found, lambda own: reciprocal(_joined(own))
    )
    cosines = np.concatenate([own for _, own in parts])
    ranks = _joined(parts)
    return Assessed(fit(None, reg), reg, ranks, cosines, _with(fit, reg), is_exact=False)


def _with(fit: Fit, reg: Any) -> Callable[[int | None], RowMaps]:
    return lambda left_out: fit(left_out, reg)


def _joined(parts: Sequence[tuple[Ranks, np.ndarray]]) -> Ranks:
    """Ranks of the queries of all folds."""
    better, equal = map(np.concatenate, zip(*(ranks for ranks, _ in parts), strict=True))
    return better, equal


def _least_error(left_out: LeftOut, regs: Sequence[float]) -> float:
    """The ridge of the least squared error of left-out pairs."""
    return best_ridge(regs, 1, given, lambda reg, _: left_out.error(reg), lambda own: -own[0])[0]
