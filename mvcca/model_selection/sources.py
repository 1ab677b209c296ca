"""Sources of models for a search whose held-out rows are ranked by their scores.

Models of all ridges are solved from statistics of the folds, or by products with their rows; any
others are fitted anew, and some predict every row without it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from mvcca.model_selection.fold_statistics import (
    InnerFolds,
    Models,
    Parts,
    naming_folds,
    one_left_out,
)
from mvcca.model_selection.goals import (
    FoldScores,
    Goal,
    RankedSample,
    Scores,
    Value,
    bank_of_others,
    values_of,
)
from mvcca.model_selection.search import Setting, Trials, search
from mvcca.model_selection.spaces import Space
from mvcca.problem import Maps, MatrixPath, ProductPath, Rows
from mvcca.problem.ridge import reg_of_names
from mvcca.problem.rows import check_rows_vary
from mvcca.retrieval.ranking import CORRECTED
from mvcca.views import Views
from mvcca.views.labels_by_view import LabelsByView

HeldOut = tuple[FoldScores, RankedSample]  # held-out rows, and their scores under a model
Solved = Iterator[tuple[int, Mapping[int, HeldOut]]]  # by position of a setting, and by fold
Values = Iterator[tuple[str, int | None, Goal, Value]]  # by ranking and number of components


def rankings_for(goal: Goal, expected: Any, power: float = 0.0) -> list[str]:
    """Rankings to search; those by correlations only where these are known."""
    names = ["cosine"] if expected is None else ["profile-likelihood", "likelihood"]
    if power and expected is not None:
        names.append("cosine")
    if goal == "object":
        names += [f"{name}{CORRECTED}" for name in names]
    return names[:1] if goal == "correlation" else names


# ---- models of all ridges ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, kw_only=True)
class _OfRidges:
    """Models of one estimator for many ridges.

    Attributes
    ----------
    estimator : StatisticEstimator
        Whose problem is solved.
    rows : Rows
        All training rows.
    folds : InnerFolds
        Folds of the objects.
    goal : {"object", "class", "correlation"}
        What to maximize.
    samples : sequence of RankedSample
        Rows of each fold, no more than it takes to choose settings.
    most_components : int or None
        Number of components above which none is searched.
    """

    estimator: Any
    rows: Rows
    folds: InnerFolds
    goal: Goal
    samples: Sequence[RankedSample]
    most_components: int | None = None

    @classmethod
    def of(
        cls,
        estimator: Any,
        rows: Rows,
        folds: InnerFolds,
        goal: Goal,
        labels: LabelsByView | None = None,
        ranked: tuple[str, ...] | None = None,
        **more: Any,
    ) -> Self:
        """Draw the rows to score; `labels` define relevant items among those of `ranked` views."""
        labels = rows.labels if labels is None else labels
        if ranked is None:
            ranked = rows.views.without(estimator.confounds).names
        if "samples" not in more:
            more["samples"] = folds.samples(rows.views, labels, ranked)
        return cls(estimator=estimator, rows=rows, folds=folds, goal=goal, **more)

    def models(self) -> Models:
        """As of the folds."""
        return self.folds.models()

    def values(self, model: Mapping[int, HeldOut], fold: int) -> Values:
        """Values of a model by ranking, and by number of components where it matters."""
        is_fixed = self.rows.n_components is not None
        for goal in self.goals:
            yield from _values(
                goal,
                model[fold],
                rankings_for(goal, model[fold][0].expected, self.estimator.power),
                searches=goal == "class" and not is_fixed,  # weights do it for objects
                most_components=None if is_fixed else self.most_components,
            )

    @property
    def goals(self) -> tuple[Goal, ...]:
        """What is measured of every model."""
        return self.folds.goals(self.goal)

    @property
    def n_components(self) -> int | None:
        """Number of components to solve for."""
        k = self.rows.n_components
        return self.most_components if k is None else k

    def _ridges(self, settings: Sequence[Setting]) -> list[dict[str, float]]:
        """Ridges of each setting by view."""
        names, given = self.rows.views.names, dict(self.rows.reg)
        return [
            reg_of_names(setting["reg"], names) if "reg" in setting else given
            for setting in settings
        ]

    def _held_out(
        self, scores: Mapping[int, Scores], bank: Scores, maps: Maps
    ) -> dict[int, HeldOut]:
        return {
            fold: (FoldScores.of(own, bank, maps, self.estimator.power), self.samples[fold])
            for fold, own in scores.items()
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class FromStatistic(_OfRidges):
    """Models that are solved for all ridges from one decomposition of the sums of their folds.

    Attributes
    ----------
    parts : Parts
        Statistics of what each model learns from.
    reductions : dict
        Reduced constraints by training part, which sources of the same sums share.
    recovered : dict
        Moments of rows with holes by training part, shared alike.
    """

    parts: Parts
    reductions: dict[int, Any] = field(default_factory=dict)
    recovered: dict[int, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, estimator: Any, rows: Rows, folds: InnerFolds, *task: Any, **more: Any) -> Self:
        """Sum up every fold."""
        trains = [folds.without(left_out) for left_out, _ in folds.models()]
        parts = Parts.of(estimator, rows, trains, redraws=True)
        return super().of(estimator, rows, folds, *task, parts=parts, **more)

    def solved(self, left_out: tuple[int, ...], settings: Sequence[Setting]) -> Solved:
        """Models of all ridges; their scores are products of rows in the axes of one path."""
        part, ridges = self.models().index((left_out, left_out)), self._ridges(settings)
        try:
            own, statistic = self.parts[part]
            problem = self.estimator.problem(own, self.recovered.get(part, statistic))
            if problem.about.recovered is not None:
                self.recovered[part] = problem.about.recovered
            path = MatrixPath.of(problem, known=self.reductions.setdefault(part, {}))
        except ValueError as error:  # more neighbours than rows, say
            check_rows_vary(self.rows.views)
            raise naming_folds(error, self.folds, left_out) from error
        path.check(ridges)
        rows = {fold: path.coordinates(self.samples[fold].views) for fold in left_out}
        bank: Scores = {}
        if "object" in self.goals:  # whose rankings it corrects
            bank = bank_of_others(self.samples, left_out, path.coordinates)
        for number, reg in enumerate(ridges):
            maps = path.solve(reg, self.n_components)
            found = {fold: _scores_of(own, maps) for fold, own in rows.items()}
            yield number, self._held_out(found, _scores_of(bank, maps), maps)


def _scores_of(coordinates: Scores, maps: Maps) -> Scores:
    return {n: (Y - maps.means[n]) @ maps.weights[n] for n, Y in coordinates.items()}


@dataclass(frozen=True, eq=False, kw_only=True)
class FromProducts(_OfRidges):
    """Models of CCA of wide views, each found by products with the rows.

    Matrices over features or rows, of which `FromStatistic` makes all models, would take more.
    """

    def solved(self, left_out: tuple[int, ...], settings: Sequence[Setting]) -> Solved:
        """Models of ridges, the largest first, down to one that fits the rows almost exactly."""
        rows = self.rows.take(self.folds.without(left_out))
        rows = rows.standardized() if rows.reading.units else rows  # in the units of all rows
        path = ProductPath(rows, refuses=True)
        ridges = enumerate(self._ridges(settings))
        for number, reg in sorted(ridges, key=lambda own: -max(own[1].values())):
            maps = path.solve(reg, self.n_components)
            if maps is None:
                return
            maps = maps.lifted(rows.reading.bases)
            project = partial(_projected, maps)
            bank: Scores = {}
            if "object" in self.goals:
                bank = bank_of_others(self.samples, left_out, project)
            found = {fold: project(self.samples[fold].views) for fold in left_out}
            yield number, self._held_out(found, bank, maps)


def _projected(maps: Maps, views: Views) -> Scores:
    return {
        name: np.asarray(block.project(maps.means[name], maps.weights[name]))
        for name, block in views.blocks.items()
    }


# ---- models of any estimator ---------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FromRefits:
    """Any estimator, fitted anew for every setting and training part.

    Attributes
    ----------
    estimator : estimator
        It is not fitted.
    rows : Rows
        Training rows, with the labels to learn from.
    folds : InnerFolds
        Folds of the objects.
    goal : {"object", "class", "correlation"}
        What to maximize.
    judged : LabelsByView or None
        Labels that define relevant items.
    options : mapping
        Further arguments of `fit`.
    failures : dict
        The last error by the folds that its model leaves out.
    shared_space : Space or None
        What is searched, if that is decided by the rows of another source.
    """

    estimator: Any
    rows: Rows
    folds: InnerFolds
    goal: Goal
    judged: LabelsByView | None
    options: Mapping[str, Any] = field(default_factory=dict)
    failures: dict[tuple[int, ...], Exception] = field(default_factory=dict)
    shared_space: Space | None = None

    @cached_property
    def space(self) -> Space:
        """What is searched."""
        if self.shared_space is not None:
            return self.shared_space
        if self.folds.asked is None:
            return Space.offered_by(self.estimator, self.rows).of(self.estimator)
        space = Space.offered_by(self.estimator, self.without((0,))).of(self.estimator)
        return replace(space, leaves_one_out=False)  # the same gallery for all methods

    @property
    def goals(self) -> tuple[Goal, ...]:
        """What is measured of every model."""
        return self.folds.goals(self.goal)

    @cached_property
    def samples(self) -> list[RankedSample]:
        """Rows of each fold to rank."""
        views, confounds = self.rows.views, getattr(self.estimator, "confounds", None)
        return self.folds.samples(views, self.judged, views.without(confounds).names)

    def models(self) -> Models:
        """As of the folds; one model if each row is left out, for both halves."""
        if self.space.leaves_one_out:
            return [((), (0, 1))]
        return self.folds.models()

    def without(self, left_out: Collection[int]) -> Rows:
        """Rows of all other folds."""
        rest = self.folds.without(left_out)
        is_whole = len(rest) == len(self.rows.views)  # no copy
        return self.rows if is_whole else self.rows.take(rest)

    def model(self, setting: Setting) -> Any:
        """The estimator with a setting."""
        return clone(self.estimator).set_params(**setting)

    def solved(self, left_out: tuple[int, ...], settings: Sequence[Setting]) -> Solved:
        """Models of all settings that can be fitted, or the ridges that predict left-out rows."""
        if self.space.leaves_one_out:
            yield from enumerate(self._left_out(settings))
            return
        for number, setting in enumerate(settings):
            try:
                model = self._fitted({**setting, **self.space.components}, left_out)
            except (ValueError, np.linalg.LinAlgError) as error:  # too few rows, say
                self.failures[left_out] = error
                continue
            bank: Scores = {}
            if "object" in self.goals:  # whose rankings it corrects
                bank = bank_of_others(self.samples, left_out, partial(_ranked, model))
            samples = {fold: self.samples[fold] for fold in left_out}
            found = {
                n: FoldScores(_ranked(model, own.views), bank, None) for n, own in samples.items()
            }
            yield number, {fold: (own, samples[fold]) for fold, own in found.items()}

    def _fitted(self, setting: Setting, left_out: Collection[int]) -> Any:
        rows, options = self.without(left_out), dict(self.options)
        if rows.sample_weight is not None:
            options["sample_weight"] = rows.sample_weight
        return self.model(setting).fit(rows.views, rows.labels, **options)

    def _left_out(self, settings: Sequence[Setting]) -> Iterator[Mapping[int, HeldOut]]:
        """Scores of left-out rows of two halves by ridge, which correct each other's hubs."""
        views = self.rows.views.with_ids(np.arange(1, len(self.rows.views) + 1))
        rows = replace(self.rows, views=views)
        order = np.random.RandomState(0).permutation(len(views))
        halves = [RankedSample.of(views, self.judged, half) for half in np.array_split(order, 2)]
        objects = [np.asarray(half.views.ids) - 1 for half in halves]
        model = self.model({name: own for name, own in settings[0].items() if name != "reg"})
        ridges = [setting["reg"] for setting in settings]
        of_halves = (model.left_out_scores(rows, own, ridges) for own in objects)
        for first, second in zip(*of_halves, strict=True):
            yield {
                0: (FoldScores(first, second, None), halves[0]),
                1: (FoldScores(second, first, None), halves[1]),
            }

    def values(self, model: Mapping[int, HeldOut], fold: int) -> Values:
        """Values of a model under the rankings of the space, or the one that is declared."""
        declared = [*(self.space.rankings or self.estimator.retrieval_ranking[1:])]
        for goal in self.goals:
            corrected = [f"{own}{CORRECTED}" for own in declared] if goal == "object" else []
            rankings = [*declared, *corrected]
            searches = self.space.has_prefixes and goal != "correlation"
            most = self.space.most_components if searches else None
            yield from _values(goal, model[fold], rankings, searches=searches, most_components=most)


def _ranked(model: Any, views: Views) -> Scores:
    """Rows as the declared ranking compares them."""
    found = model.project(views, model.retrieval_ranking[0])
    return {name: np.asarray(scores, dtype=float) for name, scores in found.items()}


def _values(
    goal: Goal,
    held_out: HeldOut,
    rankings: Sequence[str],
    *,
    searches: bool,
    most_components: int | None,
) -> Values:
    """Values of one model on held-out rows; of several numbers of components if it `searches`."""
    scores, sample = held_out
    found = scores.n_components
    numbers: list[int | None] = Space.numbers_of_components(found) if searches else [None]
    if found == most_components:
        numbers[-1] = found
    for k in numbers:
        by_ranking = values_of(goal, scores, sample, rankings, found if k is None else k)
        for ranking, value in by_ranking.items():
            yield ranking, k, goal, value


# ---- models that functions give ------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FromFolds:
    """Models and values from two functions, as of `search_folds`."""

    n_folds: int
    fit: Callable[[int, Sequence[Setting]], Iterable[Any]]
    value: Callable[[Any, int], Any]
    goal = None  # the caller knows what values are

    def models(self) -> Models:
        """One fold is left out at a time."""
        return one_left_out(self.n_folds)

    def solved(
        self, left_out: tuple[int, ...], settings: Sequence[Setting]
    ) -> Iterator[tuple[int, Any]]:
        """Models in the order of the settings."""
        return enumerate(self.fit(left_out[0], settings))

    def values(self, model: Any, fold: int) -> Iterator[tuple[None, None, Any]]:
        """The value on the fold, if there is one."""
        if (value := self.value(model, fold)) is not None:
            yield None, None, value


def search_folds(
    n_folds: int,
    settings: Sequence[Setting],
    fit: Callable[[int, Sequence[Setting]], Iterable[Any]],
    value: Callable[[Any, int], Any],
) -> Trials:
    """Try settings with each fold held out once.

    Parameters
    ----------
    n_folds : int
        Number of folds.
    settings : sequence of mapping
        Parameters to try; of equally good ones, the last wins.
    fit : callable
        Takes the fold to leave out and the settings, and returns an iterable of their models.
    value : callable
        Takes a model and the fold, and returns the value; None if there is none on this fold.

    Returns
    -------
    Trials
    """
    return search(FromFolds(n_folds, fit, value), settings)
