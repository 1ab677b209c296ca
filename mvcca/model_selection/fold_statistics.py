"""Folds that choose settings: what each model leaves out, and the statistics of the others.

Statistics add, so that one pass over the rows gives the model of every training part of a
cross-validation: rows are read once, however many folds and settings there are.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from mvcca.machine.memory import available_bytes
from mvcca.machine.progress import counting
from mvcca.model_selection.folds import make_folds, number_of_folds
from mvcca.model_selection.goals import Asked, Goal, RankedSample, drawn
from mvcca.model_selection.groups import Groups
from mvcca.problem import Rows
from mvcca.problem.units import units_of_rows
from mvcca.statistics import Moments, PairMoments
from mvcca.statistics.pair_covariance import PairCovariance
from mvcca.views import Views
from mvcca.views.labels_by_view import LabelsByView

N_FOLDS = 5
NO_FOLD = -1

_LEAST_ROWS = 500  # copied at a time; at least as many as features, since adding sums takes time

_SEED = 0

# Folds that models do not see, and those that they are scored on.
Models = list[tuple[tuple[int, ...], tuple[int, ...]]]


def are_one_fold(n_held_out: int, n_objects: int, n_folds: int) -> bool:
    """Whether the objects to hold out are no more than one of the folds."""
    return n_held_out * n_folds <= n_objects


@dataclass(frozen=True, eq=False)
class InnerFolds:
    """Folds of the objects of a training set.

    Attributes
    ----------
    codes : ndarray of int, shape (n_objects,)
        Fold of each object, from 0; -1 for objects that every model learns from. If there are any,
        one model leaves out all folds, and is scored on each.
    asked : Asked or None
        What is asked of the held-out rows beside the mean of the source's goal.
    """

    codes: np.ndarray
    asked: Asked | None = None

    @classmethod
    def of(
        cls,
        views: Views,
        labels: LabelsByView | None,
        n_folds: int = N_FOLDS,
        *,
        seed: Any = None,
        few: bool = True,
    ) -> InnerFolds:
        """Folds at random: stratified by class if views agree on it, copies of an object together.

        Without a seed, they are the same at every fit. With `few`, those of the objects that are
        ranked only, as of `of_ranked`.
        """
        of_objects = None if labels is None else labels.if_agreed(views)
        groups = None if views.is_lazy else Groups.found_in(views, of_objects)
        of_copies = None if groups is None else groups.codes
        codes = np.zeros(len(views), dtype=int)
        n_folds, seed = number_of_folds(n_folds, len(views)), _SEED if seed is None else seed
        for fold in make_folds(views, of_objects, n_folds, seed, of_copies, are_given=False):
            codes[fold.test] = fold.number
        return cls(codes).of_ranked(views, of_copies) if few else cls(codes)

    def of_ranked(self, views: Views, groups: np.ndarray | None = None) -> InnerFolds:
        """Folds of the objects that are ranked only, if these are less than one fold together.

        Of many rows, few are ranked. All others can then teach one model that is scored on every
        fold, in place of one model per fold that learns from fewer rows.
        """
        parts = (np.flatnonzero(self.codes == fold) for fold in range(self.n_folds))
        ranked = np.concatenate([drawn(views, part) for part in parts])
        known = np.arange(len(self.codes)) if groups is None else groups
        held_out = np.isin(known, known[ranked])  # with their copies
        if not are_one_fold(held_out.sum(), len(self.codes), self.n_folds):
            return self
        return InnerFolds(np.where(held_out, self.codes, NO_FOLD))

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return int(self.codes.max()) + 1

    @property
    def are_one_part(self) -> bool:
        """Whether all folds are left out together."""
        return bool((self.codes == NO_FOLD).any())

    def goals(self, goal: Goal) -> tuple[Goal, ...]:
        """What is measured of every model: the goal, or all that are asked for."""
        return (goal,) if self.asked is None else self.asked.goals

    def take(self, objects: np.ndarray) -> InnerFolds:
        """The same of some objects."""
        return InnerFolds(self.codes[objects], self.asked)

    def samples(
        self,
        views: Views,
        labels: LabelsByView | None,
        ranked: tuple[str, ...] | None = None,
    ) -> list[RankedSample]:
        """Rows of each fold to rank, then those of objects of no fold, if there are any."""
        numbers = [*range(self.n_folds), *([NO_FOLD] if self.are_one_part else [])]
        parts = (np.flatnonzero(self.codes == number) for number in numbers)
        return [RankedSample.of(views, labels, part, ranked, self.asked) for part in parts]

    def without(self, left_out: Collection[int]) -> np.ndarray:
        """The objects of no fold, and of the folds that are not left out."""
        return np.flatnonzero(~np.isin(self.codes, list(left_out)))

    def models(self) -> Models:
        """Folds that models do not see, and are scored on: one at a time, or all together."""
        if self.are_one_part:
            everything = tuple(range(self.n_folds))
            return [(everything, everything)]
        return one_left_out(self.n_folds)


def one_left_out(n_folds: int) -> Models:
    """Models that each leave out one fold and are scored on it."""
    return [((fold,), (fold,)) for fold in range(n_folds)]


def naming_folds(error: Exception, folds: InnerFolds, left_out: Collection[int]) -> Exception:
    """The error of a model that does not see some folds, with these folds named."""
    if folds.asked is not None:  # a comparison names them
        return error
    which = "all folds"
    if not folds.are_one_part:
        names = " and ".join(map(str, sorted(left_out)))
        which = f"fold{'s' if len(left_out) > 1 else ''} {names} of {folds.n_folds} (from 0)"
    return ValueError(
        f"A model that learns from fewer rows, to choose settings, fails without {which}: {error} "
        'Give values in place of "cv"; a comparison has them with tune=False.'
    )


def _check_memory(rows: Rows, n_cells: int) -> None:
    """Refuse matrices over the features of all views that do not fit, for so many cells."""
    needed, available = 8.0 * n_cells * sum(rows.widths().values()) ** 2, available_bytes()
    if needed > available:
        raise MemoryError(
            f"Covariances of {n_cells} more parts of the rows need about {needed / 1e9:.1f} GB, "
            f"and {available / 1e9:.1f} GB are available. Use fewer folds, or give values in "
            'place of "cv"; a comparison has them with tune=False.'
        )


@dataclass(frozen=True, eq=False)
class Parts:
    """Statistics of training parts, as sums of those of disjoint cells.

    Attributes
    ----------
    model : StatisticEstimator
        Whose statistics they are.
    rows : Rows
        All rows.
    trains : list of ndarray of int
        Positions of the objects of each training part.
    cells : list
        Statistics of objects that are in the same training parts; empty if they do not add.
    codes : ndarray of int, shape (n_objects,)
        Cell of each object.
    in_part : ndarray of bool, shape (n_parts, n_cells)
        Whether a training part holds a cell.
    redraws : bool
        Whether what a statistic draws from rows is drawn from those of each part.
    """

    model: Any
    rows: Rows
    trains: Sequence[np.ndarray]
    cells: list[Any]
    codes: np.ndarray
    in_part: np.ndarray
    redraws: bool = False

    @classmethod
    def of(
        cls, model: Any, rows: Rows, trains: Sequence[np.ndarray], *, redraws: bool = False
    ) -> Parts:
        """Sum up the cells, unless they are many more than the parts."""
        seen = np.zeros((len(trains), len(rows.views)), dtype=bool)
        for part, train in enumerate(trains):
            seen[part, train] = True
        in_part, codes = np.unique(seen, axis=1, return_inverse=True)
        codes, n_cells = codes.ravel(), in_part.shape[1]
        is_repeated = any(own.sum() < len(train) for own, train in zip(seen, trains, strict=True))
        adds = not (model.learns_from_rows or (redraws and model.draws_from_rows))
        if not adds or is_repeated or n_cells > len(trains) + 1:
            return cls(model, rows, trains, [], codes, in_part, redraws)
        least = max(_LEAST_ROWS, *rows.views.widths.values())
        cells = []
        with counting(len(rows.views), "Summing up folds", " rows", scale=True) as count:
            for cell in range(n_cells):
                objects = np.flatnonzero(codes == cell)
                first, *others = np.array_split(objects, max(1, len(objects) // least))
                total = model.statistic_of(rows.take(first))
                count(len(first))
                for block in others:  # `reduce` would keep the last two terms
                    total = total + model.statistic_of(rows.take(block))
                    count(len(block))
                cells.append(total)
                if cell == 0 and isinstance(total, Moments | PairMoments):
                    _check_memory(rows, n_cells - 1)
        return cls(model, rows, trains, cells, codes, in_part, redraws)

    def __getitem__(self, part: int) -> tuple[Rows, Any]:
        """Rows of a training part, or all where these do not matter, and its statistic."""
        self._check_labels(self.trains[part])
        if self.cells:
            units = self._units_of(part)
            return self.rows.read(units=units), self._sum(self.in_part[part])
        rows = self.rows.take(self.trains[part])
        return self._read(rows.read(units=self._units_of(part)))

    def left_out(self, part: int) -> Any:
        """The statistic of the objects that are not in a training part."""
        return self._sum(~self.in_part[part])

    def _units_of(self, part: int) -> Any:
        """Units of a training part, of its rows where its statistic does not tell deviations."""
        units, bases = self.rows.reading.units, self.rows.reading.bases
        narrow = {name: True for name in units or {} if name not in bases}
        is_lazy = any(self.rows.views.blocks[name].is_lazy for name in narrow)
        waits = is_lazy and not self.model.learns_from_rows  # else rows are read anyway
        if not narrow or waits or not self.model.requires.labels:
            return units
        rows = self.rows.take(self.trains[part])
        return {**(units or {}), **units_of_rows(rows, narrow, pairs=False)}

    def _check_labels(self, train: np.ndarray) -> None:
        """Refuse a training part of one class, as `fit` would."""
        rows = self.rows
        if rows.labels is None or not self.model.requires.labels:
            return
        labels = rows.labels.take(rows.views.rows_of(train))
        if len(np.unique(np.concatenate(list(labels.codes.values())))) < 2:
            raise ValueError("All training rows have the same labels, which distinguish nothing.")

    def whole(self) -> tuple[Rows, Any]:
        """All rows, and their statistic."""
        if self.cells:
            return self.rows, reduce(operator.add, self.cells)
        return self._read(self.rows)

    def pairs_of(self, objects: np.ndarray) -> list[PairCovariance]:
        """Covariances, or multiples of them, of each two views over some objects.

        There are none if the cells are not made of these objects, or have no moments.
        """
        if not self.cells or not isinstance(self.cells[0], Moments | PairMoments):
            return []
        counts = np.bincount(self.codes[objects], minlength=len(self.cells))
        is_whole = counts == np.bincount(self.codes)
        if not counts.any() or not all(is_whole | (counts == 0)):
            return []
        found = self._sum(counts > 0)
        # The scatter of a cell is in memory; its covariance would be another statistic.
        return list(found.by_pair(found.scatter if isinstance(found, Moments) else None))

    def _sum(self, chosen: np.ndarray) -> Any:
        """The statistic of some cells."""
        return reduce(operator.add, (self.cells[cell] for cell in np.flatnonzero(chosen)))

    def _read(self, rows: Rows) -> tuple[Rows, Any]:
        if self.redraws and self.model.draws_from_rows:
            self.model.draw(rows)
        return rows, self.model.statistic_of(rows)
