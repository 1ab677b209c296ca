"""One method fitted to pairs, and measured on pairs that it was not fitted to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, reduce
from operator import add
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
    rotation,
)
from mvcca.interop.migration.measured import (
    LeftOut,
    best_ridge,
    cosines_of,
    left_out_queries,
    neighbors_kept,
    ranks_under,
)
from mvcca.interop.row_maps import LocalMaps
from mvcca.linear.ridges import Ridges
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

    def without(self, fold: int | None) -> Moments:
        """Moments of the pairs without those of a fold, or of all."""
        return reduce(add, (own for k, own in enumerate(self.sums) if k != fold))

    def ridges(self, left_out: int | None) -> Ridges:
        """The regressions of new rows on old ones."""
        return Ridges.of(self.without(left_out), OLD, NEW)

    def canonical(self, left_out: int | None) -> Canonical:
        """CCA of both models."""
        return Canonical(self.without(left_out))


@dataclass(frozen=True, eq=False)
class Assessed:
    """A fitted map, with the ranks and the cosines of left-out pairs."""

    fit: Fit
    reg: Any  # a ridge, or None
    ranks: Ranks
    cosines: np.ndarray  # of mapped rows of left-out pairs
    is_exact: bool  # leave-one-out, not folds

    @cached_property
    def maps(self) -> RowMaps:
        """The map of all pairs."""
        return self.fit(None, self.reg)


def assess(method: str, direction: str, sample: PairSample, regs: Sequence[float]) -> Assessed:
    """Fit a method, choose its ridge and measure it."""
    if method == "procrustes":
        return _by_folds(sample, [None], lambda k, _: rotation(sample.without(k), direction))
    if method in ("affine", "local"):
        return _ridge(sample, regs, local=method == "local")
    if direction == "queries":
        return _bilinear(sample, regs)
    canonical = cache(sample.canonical)
    return _by_folds(sample, regs, lambda k, reg: canonical(k).shared(reg))


def reciprocal(ranks: Ranks) -> float:
    """Mean reciprocal rank, which unlike the share of first ranks still tells good maps apart."""
    better, equal = ranks
    return float(np.mean(1 / (1 + better + equal / 2)))


def held_out_neighbors(sample: PairSample, found: Assessed) -> tuple[float, float, float]:
    """Neighbours kept in one fold, or in all if the maps without them are fitted anyway."""
    kept = []
    for k, fold in enumerate(sample.folds[: 1 if found.is_exact else None]):
        rows = fold[:_MOST_HELD_OUT]
        maps = found.fit(k, found.reg)
        kept.append(neighbors_kept(maps, sample.old[rows], sample.new[rows]))
    with_map, before, share = np.mean(kept, axis=0).tolist()
    return with_map, before, share


def _ridge(sample: PairSample, regs: Sequence[float], *, local: bool) -> Assessed:
    """The ridge map, or local maps if they help."""
    ridges = cache(sample.ridges)
    left_out = LeftOut(ridges(None), sample.old[sample.queries], sample.new[sample.queries])
    reg, _ = best_ridge(regs, lambda reg, _: left_out.error(reg), lambda own: -own[0])

    def fit(k: int | None, reg: float) -> RowMaps:
        return RowMaps(ridge_map(ridges(k), reg), None)

    def fit_locally(k: int | None, reg: float) -> RowMaps:
        rows = np.sort(np.concatenate([own for j, own in enumerate(sample.folds) if j != k]))
        found = local_maps(sample.old[rows], sample.new[rows], ridges(k), reg)
        return fit(k, reg) if found is None else RowMaps(found, None)

    if local and isinstance(fit_locally(None, reg).items, LocalMaps):
        return _by_folds(sample, [reg], fit_locally)
    if not left_out.exist(reg):
        return _by_folds(sample, [reg], fit)
    ranks = sample.gallery.ranks(sample.places, left_out.cosines(reg, sample.gallery.rows))
    return Assessed(fit, reg, ranks, left_out.own_cosines(reg), is_exact=True)


def _bilinear(sample: PairSample, regs: Sequence[float]) -> Assessed:
    canonical = cache(sample.canonical)
    old, new = sample.old[sample.queries], sample.new[sample.queries]
    items = RowMaps(None, None).items_of(sample.gallery.rows)

    def found(reg: float, _: int) -> tuple[Ranks, np.ndarray]:
        queries = left_out_queries(canonical(None), reg, old, new)
        own = queries.astype(items.dtype)
        ranks = sample.gallery.ranks(sample.places, lambda rows, part: items[rows] @ own[part].T)
        return ranks, cosines_of(queries, old)

    reg, [(ranks, cosines)] = best_ridge(regs, found, lambda own: reciprocal(own[0][0]))
    return Assessed(lambda k, reg: canonical(k).bilinear(reg), reg, ranks, cosines, is_exact=True)


def _by_folds(sample: PairSample, regs: Sequence[Any], fit: Fit) -> Assessed:
    """Queries of a fold search all rows under the map of the other folds."""

    def found(maps: RowMaps, fold: int) -> tuple[Ranks, np.ndarray] | None:
        chosen = np.isin(sample.queries, sample.folds[fold])
        if not chosen.any():
            return None
        old, new = (rows[sample.queries[chosen]] for rows in (sample.old, sample.new))
        ranks = ranks_under(maps, sample.gallery, sample.places[chosen], new)
        return ranks, cosines_of(maps.queries_of(new), maps.items_of(old))

    n_folds = len(sample.folds)
    reg, parts = best_ridge(
        regs, found, lambda own: reciprocal(_joined(own)), n_folds=n_folds, fit=fit
    )
    cosines = np.concatenate([own for _, own in parts])
    return Assessed(fit, reg, _joined(parts), cosines, is_exact=False)


def _joined(parts: Sequence[tuple[Ranks, np.ndarray]]) -> Ranks:
    """Ranks of the queries of all folds."""
    better, equal = map(np.concatenate, zip(*(ranks for ranks, _ in parts), strict=True))
    return better, equal
