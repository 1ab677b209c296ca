"""One method fitted to pairs, and measured on pairs that it was not fitted to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

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
    LeftOutQueries,
    cosines_of,
    neighbors_kept,
    ranks_under,
)
from mvcca.interop.row_maps import LocalMaps
from mvcca.statistics import Moments
from mvcca.views import Views

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
        return _by_folds(sample, None, _of_sums(sample, lambda s: rotation(total(s), direction)))
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
    reg = regs[0] if len(regs) == 1 else min(regs, key=left_out.error)

    def fit(sums: Sequence[Moments]) -> RowMaps:
        return RowMaps(ridge_map(ridges_of(total(sums)), reg), None)

    if not left_out.exist(reg):
        return _by_folds(sample, reg, _of_sums(sample, fit))
    ranks = sample.gallery.ranks(sample.places, left_out.cosines(reg, sample.gallery.rows))
    maps, cosines = RowMaps(ridge_map(ridges, reg), None), left_out.own_cosines(reg)
    return Assessed(maps, reg, ranks, cosines, _of_sums(sample, fit), is_exact=True)


def _local(sample: PairSample, regs: Sequence[float]) -> Assessed:
    """Local maps if they help, else the ridge map."""
    left_out = LeftOut(
        ridges_of(total(sample.sums)), sample.old[sample.queries], sample.new[sample.queries]
    )
    reg = min(regs, key=left_out.error)

    def fit(left_out: int | None) -> RowMaps:
        kept = [k for k in range(len(sample.folds)) if k != left_out]
        rows = np.sort(np.concatenate([sample.folds[k] for k in kept]))
        ridges = ridges_of(total(sample.sums[k] for k in kept))
        found = local_maps(sample.old[rows], sample.new[rows], ridges, reg)
        return RowMaps(found or ridge_map(ridges, reg), None)

    if not isinstance(fit(None).items, LocalMaps):
        return _affine(sample, [reg])
    return _by_folds(sample, reg, fit)


def _bilinear(sample: PairSample, regs: Sequence[float]) -> Assessed:
    canonical = Canonical(total(sample.sums))
    left_out = LeftOutQueries(canonical, sample.old[sample.queries], sample.new[sample.queries])
    items = RowMaps(None, None).items_of(sample.gallery.rows)

    def ranks_with(reg: float) -> Ranks:
        queries = left_out.queries(reg).astype(items.dtype)
        return sample.gallery.ranks(sample.places, lambda rows, part: items[rows] @ queries[part].T)

    found = {reg: ranks_with(reg) for reg in regs}
    reg = max(found, key=lambda reg: reciprocal(found[reg]))

    def fit(sums: Sequence[Moments]) -> RowMaps:
        return Canonical(total(sums)).bilinear(reg)

    return Assessed(
        canonical.bilinear(reg),
        reg,
        found[reg],
        left_out.own_cosines(reg),
        _of_sums(sample, fit),
        is_exact=True,
    )


def _shared(sample: PairSample, regs: Sequence[float]) -> Assessed:
    @cache
    def canonical(left_out: int | None) -> Canonical:
        return Canonical(total(part for k, part in enumerate(sample.sums) if k != left_out))

    def found(reg: float) -> Assessed:
        return _by_folds(sample, reg, lambda left_out: canonical(left_out).shared(reg))

    return max(map(found, regs), key=lambda each: reciprocal(each.ranks))


def _of_sums(
    sample: PairSample, fit: Callable[[Sequence[Moments]], RowMaps]
) -> Callable[[int | None], RowMaps]:
    """The map of all folds but one, or of all, from their sums."""
    return lambda left_out: fit([part for k, part in enumerate(sample.sums) if k != left_out])


def _by_folds(
    sample: PairSample, reg: float | None, fit: Callable[[int | None], RowMaps]
) -> Assessed:
    """Queries of a fold search all rows under the map of the other folds."""
    ranks, cosines = [], []
    for k, fold in enumerate(sample.folds):
        maps, chosen = fit(k), np.isin(sample.queries, fold)
        if not chosen.any():
            continue
        old, new = (rows[sample.queries[chosen]] for rows in (sample.old, sample.new))
        ranks.append(ranks_under(maps, sample.gallery, sample.places[chosen], new))
        cosines.append(cosines_of(maps.queries_of(new), maps.items_of(old)))
    better, equal = map(np.concatenate, zip(*ranks, strict=True))
    return Assessed(fit(None), reg, (better, equal), np.concatenate(cosines), fit, is_exact=False)
