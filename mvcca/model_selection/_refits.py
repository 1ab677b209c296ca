"""Choose settings of any method, by models that are fitted again for every setting and fold.

Parameters are searched one after another. Ridges that a method solves from one decomposition are
all tried at each value of the others, and so are the numbers of components of which the first are a
solution, too.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from sklearn.base import clone

from mvcca.machine.progress import counting
from mvcca.machine.warnings import warn
from mvcca.model_selection._fold_statistics import (
    FoldStatistics,
    InnerFolds,
    Outer,
    naming_folds,
)
from mvcca.model_selection._goals import (
    FoldScores,
    Goal,
    RankedSample,
    Scores,
    Value,
    bank_of_others,
    goal_of,
)
from mvcca.model_selection._products import FoldRows
from mvcca.model_selection._spaces import Space, searched
from mvcca.model_selection._tuning import (
    RIDGES,
    Choice,
    Trials,
    Variant,
    check_goal,
    numbers_of_components,
    search_path,
    values_by_variant,
)
from mvcca.problem import WIDE, Rows, components_to_search, reg_of_names
from mvcca.retrieval.ranking import CORRECTED
from mvcca.views import Labels, Views
from mvcca.views.labels_by_view import LabelsByView

Setting = Mapping[str, Any]
OF_RIDGES = Space({"reg": RIDGES}, solves_ridges=True, has_prefixes=True, prefers_all=True)

Key = tuple[tuple[str, Any], ...]  # of a setting

_MOST_STEPS = 4  # beyond the ends of a parameter's values


@dataclass(frozen=True, eq=False)
class TuningTask:
    """What to choose settings for.

    Attributes
    ----------
    estimator : estimator
        It is not fitted.
    views : Views
        Training rows.
    folds : InnerFolds
        Folds of the objects.
    goal : {"object", "class", "correlation"}
        What to maximize.
    labels : LabelsByView or None
        Labels to learn from.
    judged : LabelsByView or None
        Labels that define relevant items.
    sample_weight : ndarray, shape (n_objects,), or None
        How often each object counts.
    options : mapping
        Further arguments of `fit`.
    by_heads : bool
        As of `Trials`.
    """

    estimator: Any
    views: Views
    folds: InnerFolds
    goal: Goal
    labels: LabelsByView | None
    judged: LabelsByView | None
    sample_weight: np.ndarray | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    by_heads: bool = True

    @cached_property
    def samples(self) -> list[RankedSample]:
        """Rows of each fold to rank."""
        return self.folds.samples(self.views, self.judged)

    def without(self, left_out: Collection[int]) -> tuple[Views, LabelsByView | None, np.ndarray]:
        """Rows and labels of all other folds, and their numbers."""
        rest = self.folds.without(left_out)
        if len(rest) == len(self.views):  # no copy
            return self.views, self.labels, rest
        labels = None if self.labels is None else self.labels.take(self.views.rows_of(rest))
        return self.views[rest], labels, rest

    def model(self, setting: Setting) -> Any:
        """The estimator with a setting."""
        return clone(self.estimator).set_params(**setting)

    def fitted(self, setting: Setting, left_out: Collection[int]) -> Any:
        """The estimator, fitted with a setting to all other folds."""
        views, labels, rest = self.without(left_out)
        options = dict(self.options)
        if self.sample_weight is not None:
            options["sample_weight"] = self.sample_weight[rest]
        return self.model(setting).fit(views, labels, **options)


@dataclass(frozen=True, eq=False)
class RefitSearch:
    """Values of settings on held-out folds.

    Parameters are searched one after another, so that a setting may be of interest to some outer
    folds only. What is chosen for an outer fold depends on settings that it asked for itself.
    """

    task: TuningTask
    space: Space
    found: dict[Key, Trials] = field(default_factory=dict)
    failures: dict[tuple[int, ...], Exception] = field(default_factory=dict)  # by folds left out

    def choices(self) -> dict[Outer, Choice]:
        """The best setting for each outer fold."""
        outers = self.task.folds.outer
        best: dict[Outer, Setting] = dict.fromkeys(outers, self.space.start)
        asked = {outer: [_key(setting)] for outer, setting in best.items()}
        if not self.space.values:
            self._try(asked)
        for name, values in self.space.values.items():
            lines = {outer: list(values) for outer in outers}
            new = {outer: list(values) for outer in outers}
            while new:
                keys = {
                    outer: [_key({**best[outer], name: value}) for value in own]
                    for outer, own in new.items()
                }
                self._try(keys)
                for outer, own in keys.items():
                    asked[outer] = list(dict.fromkeys([*asked[outer], *own]))
                    best[outer] = self._best(outer, asked[outer])
                new = {
                    outer: [value]
                    for outer in new
                    if (value := self._beyond(name, best[outer][name], lines[outer])) is not None
                }
        found = {outer: self._trials(outer, keys).choose(outer) for outer, keys in asked.items()}
        self._warn_of_lost_folds()
        return found

    def _warn_of_lost_folds(self) -> None:
        """Say that a fold has no value of any setting, so that only other folds choose."""
        scored = {
            (outer, fold)
            for trials in self.found.values()
            for outer, by_variant in trials.values.items()
            for by_fold in by_variant.values()
            for fold in by_fold
        }
        for left_out, served in self.task.folds.models():
            lost = not all((outer, fold) in scored for fold, outer in served.items())
            if lost and left_out in self.failures:
                error = naming_folds(self.failures[left_out], self.task.folds, left_out)
                warn(f"Only the other folds choose settings. {error}")
                return

    def _best(self, outer: Outer, keys: Sequence[Key]) -> Setting:
        chosen = self._trials(outer, keys).choose(outer).params
        return {name: chosen[name] for name in self.space.values}

    def _beyond(self, name: str, best: Any, line: list[Any]) -> Any:
        """The value beyond the best one if that is at an end; it is added to the line."""
        step = self.space.beyond.get(name)
        if step is None or len(line) >= len(self.space.values[name]) + _MOST_STEPS:
            return None
        if best == line[0]:
            line.insert(0, step(best, False))
            return line[0]
        if best == line[-1]:
            line.append(step(best, True))
            return line[-1]
        return None

    def _trials(self, outer: Outer, keys: Sequence[Key]) -> Trials:
        """Values of some settings for an outer fold."""
        prefers_all, by_heads = self.space.prefers_all, self.task.by_heads
        merged = Trials(self.task.goal, [], prefers_all=prefers_all, by_heads=by_heads)
        values = merged.values.setdefault(outer, {})
        for key in keys:
            if (part := self.found.get(key)) is None:
                continue
            start = len(merged.settings)
            merged.settings.extend(part.settings)
            for variant, by_fold in part.values.get(outer, {}).items():
                values[variant._replace(setting=start + variant.setting)] = by_fold
        if not values:
            left_out, error = next(
                own for own in reversed(self.failures.items()) if {*outer} <= {*own[0]}
            )
            if len(self.failures) == len(self.task.folds.models()):  # no fold is the cause
                raise error
            raise naming_folds(error, self.task.folds, left_out) from error
        return merged

    # ---- values of one setting -------------------------------------------------------------------

    def _try(self, wanted: Mapping[Outer, Sequence[Key]]) -> None:
        """Find the values of settings that are not known yet."""
        groups: dict[Key, list[Key]] = {}  # solved together
        for key in dict.fromkeys(key for keys in wanted.values() for key in keys):
            self.found.setdefault(key, Trials(self.task.goal, [dict(key)]))
            groups.setdefault(self._base(key), []).append(key)
        for base, keys in groups.items():
            unknown = {
                key: {
                    outer
                    for outer, asked in wanted.items()
                    if key in asked and outer not in self.found[key].values
                }
                for key in keys
            }
            unknown = {key: outers for key, outers in unknown.items() if outers}
            outers = sorted(set().union(*unknown.values()))
            if not outers:
                continue
            trials = Trials(self.task.goal, [dict(key) for key in unknown])
            with warnings.catch_warnings(action="ignore"):  # of models that are not kept
                if self.space.leaves_one_out:
                    self._leave_one_out(base, trials, outers)
                elif self.space.solves_ridges:
                    self._solve_path(base, trials, outers)
                else:
                    self._refit(trials, outers)
            for outer, values in trials.values.items():
                for variant, by_fold in values.items():
                    of_key = self.found[[*unknown][variant.setting]].values
                    of_key.setdefault(outer, {})[variant._replace(setting=0)] = by_fold

    def _base(self, key: Key) -> Key:
        """The part of a setting that models have in common which are solved together."""
        together = self.space.solves_ridges or self.space.leaves_one_out
        return tuple(item for item in key if not (together and item[0] == "reg"))

    def _refit(self, trials: Trials, outers: Sequence[Outer]) -> None:
        """One model for each set of folds that is left out."""
        [setting] = trials.settings
        models = self.task.folds.models(outers)
        with counting(len(models), "Choosing settings", " models") as count:
            for left_out, served in models:
                try:
                    model = self.task.fitted({**setting, **self.space.components}, left_out)
                except (ValueError, np.linalg.LinAlgError) as error:  # too few rows, say
                    self.failures[left_out] = error
                    count()
                    continue
                bank: Scores = {}
                if self.task.goal == "object":  # whose rankings it corrects
                    bank = bank_of_others(self.task.samples, left_out, partial(_scores, model))
                for fold, outer in served.items():
                    sample = self.task.samples[fold]
                    projected = FoldScores(_scores(model, sample.views), bank, None)
                    for ranking, k, value in self._values(projected, sample):
                        trials.add(outer, fold, Variant(0, ranking, k), value)
                count()

    def _values(
        self, projected: FoldScores, sample: RankedSample
    ) -> Iterator[tuple[str, int | None, Value]]:
        """Values of one model by ranking and number of components."""
        goal, found = self.task.goal, projected.n_components
        ranking = self.task.estimator.retrieval_ranking[1]
        rankings = [ranking, f"{ranking}{CORRECTED}"] if goal == "object" else [ranking]
        numbers: list[int | None] = [None]
        if self.space.has_prefixes and goal != "correlation":
            numbers = numbers_of_components(found)
            if found == self.space.most_components:
                numbers[-1] = found
        yield from values_by_variant(goal, projected, sample, rankings, numbers)

    def _solve_path(self, base: Key, trials: Trials, outers: Sequence[Outer]) -> None:
        """All ridges, from statistics of the folds."""
        task = self.task
        all_components = {"n_components": None} if self.space.has_prefixes else {}
        model = task.model({**dict(base), **all_components, "cv_goal": None})
        rows = model.open_rows(task.views, task.labels, task.sample_weight)
        objects = np.asarray(rows.views.ids) - 1
        judged = task.judged
        if judged is not None:
            judged = judged.take(task.views.rows_of(objects))
        ridges = [
            (number, reg_of_names(setting.get("reg", model.reg), rows.views.names))
            for number, setting in enumerate(trials.settings)
        ]

        folds = task.folds.take(objects)

        def search(statistics: FoldStatistics | FoldRows, most_components: int | None) -> None:
            search_path(
                statistics,
                trials,
                ridges,
                rows.n_components,
                outers=outers,
                most_components=most_components,
            )

        k, is_wide = None, sum(rows.views.widths.values()) >= WIDE
        if is_wide and model.takes_products:
            k = components_to_search(rows, len(ridges))
        if k is not None:
            samples = folds.samples(rows.views, judged)
            search(FoldRows(model, rows, folds, samples), min(k, self.space.most_components or k))
        if not trials.values:
            names = task.views.without(model.confounds).names
            model.precisely(
                rows,
                lambda rows: search(
                    FoldStatistics.of(model, rows, folds, judged, names),
                    self.space.most_components,
                ),
            )

    def _leave_one_out(self, base: Key, trials: Trials, outers: Sequence[Outer]) -> None:
        """All ridges, each row scored by a model of all others; halves correct each other's."""
        task, ridges = self.task, [setting["reg"] for setting in trials.settings]
        for outer in outers:
            views, _, rest = task.without(outer)
            views = views.with_ids(np.arange(1, len(views) + 1))
            judged = None if task.judged is None else task.judged.take(task.views.rows_of(rest))
            order = np.random.RandomState(0).permutation(len(views))
            halves = [RankedSample.of(views, judged, half) for half in np.array_split(order, 2)]
            objects = [np.asarray(half.views.ids) - 1 for half in halves]
            weights = None if task.sample_weight is None else task.sample_weight[rest]
            model = task.model(dict(base))
            of_halves = [model.left_out_scores(views, weights, own, ridges) for own in objects]
            for number, scores in enumerate(zip(*of_halves, strict=True)):
                for fold, sample in enumerate(halves):
                    projected = FoldScores(scores[fold], scores[1 - fold], None)
                    for ranking, k, value in self._values(projected, sample):
                        trials.add(outer, fold, Variant(number, ranking, k), value)


def _scores(model: Any, views: Views) -> dict[str, np.ndarray]:
    """Rows as the declared ranking compares them."""
    found = model.project(views, model.retrieval_ranking[0])
    return {name: np.asarray(scores, dtype=float) for name, scores in found.items()}


def _key(setting: Setting) -> Key:
    return tuple(setting.items())


# ---- choices -------------------------------------------------------------------------------------


def search_refits(task: TuningTask) -> dict[Outer, Choice]:
    """Choose the settings of any estimator.

    Parameters
    ----------
    task : TuningTask
        The estimator, its training rows and their folds.

    Returns
    -------
    dict
        `Choice` by outer fold.
    """
    left_out = (0,) if task.folds.nested else ()  # the space is that of a final model
    space = space_of(task.estimator, *task.without(left_out)[:2]).of(task.estimator)
    found = RefitSearch(task, space).choices()
    asked = {*searched(task.estimator)} - space.values.keys()
    for outer, choice in found.items():
        more = {"n_components": choice.n_components} if "n_components" in asked else {}
        found[outer] = replace(choice, params={**choice.params, **more})
    return found


def space_of(estimator: Any, views: Views, labels: LabelsByView | None) -> Space:
    """What a search of an estimator tries on these rows."""
    if hasattr(estimator, "search_space"):
        return estimator.search_space(views, labels)
    return OF_RIDGES


def choices(
    estimator: Any,
    views: Views,
    y: Any,
    folds: InnerFolds,
    goal: Goal,
    labels: Labels | None = None,
) -> dict[Outer, Choice]:
    """Choose the settings of an estimator for held-out rows that are as many as those of a fold.

    Parameters
    ----------
    estimator : estimator
        It is not fitted. Parameters that are "cv" are searched, and the number of components if it
        is None.
    views : Views
        Training rows, in memory; ids number the objects from 1.
    y : labels or None
        Labels to learn from.
    folds : InnerFolds
        Folds of the objects.
    goal : {"object", "class", "correlation"}
        What to maximize.
    labels : Labels, optional
        Labels that define relevant items, for the goal "class".

    Returns
    -------
    dict
        `Choice` by outer fold, as in ``{(0,): ..., (1,): ...}``; if not nested, that of ``()``.
    """
    places = np.asarray(views.ids) - 1
    views = views.with_ids(np.arange(1, len(views) + 1))
    learned = LabelsByView.of(views, y) if estimator.requires.labels else None
    judged = None if labels is None else LabelsByView.of(views, labels[places])
    task = TuningTask(estimator, views, folds, goal, learned, judged, by_heads=False)
    return search_refits(task)


def chosen(
    estimator: Any,
    views: Views,
    labels: LabelsByView | None,
    sample_weight: np.ndarray | None,
    options: Mapping[str, Any],
) -> Choice:
    """Choose the settings of a fit to these rows, by folds of them."""
    views = views.with_ids(np.arange(1, len(views) + 1))
    goal = goal_of(estimator)
    check_goal(goal, estimator, Rows(views, labels=labels))
    folds = InnerFolds.of(views, labels, space_of(estimator, views, labels).n_folds)
    learned = labels if estimator.requires.labels else None
    task = TuningTask(estimator, views, folds, goal, learned, labels, sample_weight, options)
    return search_refits(task)[()]
