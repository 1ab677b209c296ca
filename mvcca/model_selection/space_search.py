"""Search a space of parameters, one after another.

Ridges that a method solves from one decomposition are all tried at each value of the others, and so
are the numbers of components of which the first are a solution, too.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mvcca.machine.memory import WIDE
from mvcca.machine.warnings import warn
from mvcca.model_selection.fold_statistics import NO_FOLD, InnerFolds, naming_folds
from mvcca.model_selection.folds import Fold
from mvcca.model_selection.goals import Asked, Goal
from mvcca.model_selection.search import DIGITS, Setting, Trials, search
from mvcca.model_selection.sources import FromProducts, FromRefits, FromStatistic
from mvcca.model_selection.spaces import Scales, Space
from mvcca.problem import Rows, climb
from mvcca.problem.route import components_to_search
from mvcca.views import Labels, Views
from mvcca.views.labels_by_view import LabelsByView

Key = tuple[tuple[str, Any], ...]  # of a setting

_MOST_STEPS = 4  # beyond the ends of a parameter's values


@dataclass(eq=False)
class SpaceSearch:
    """Trials of the settings of a space.

    Parameters are searched one after another, so that a setting may be of interest to some goals
    only. What is chosen for a goal depends on settings that it asked for itself; each is fitted
    once for all goals.

    Attributes
    ----------
    sources : sequence of FromRefits
        The estimator and its rows: one source with several folds, or several with one each.
    by_heads : bool
        As of `Trials`.
    found : dict
        Trials of one setting each, for all goals, by setting.
    tried : set
        Settings with the numbers of the sources whose models were fitted.
    space : Space or None
        What is searched of sources that `hold_out` adds, once there is one.
    """

    sources: tuple[FromRefits, ...] = ()
    by_heads: bool = True
    found: dict[Key, Trials] = field(default_factory=dict)
    tried: set[tuple[Key, int]] = field(default_factory=set)
    space: Space | None = None

    def hold_out(
        self,
        estimator: Any,
        views: Views,
        y: Any,
        fold: Fold,
        asked: Asked,
        labels: Labels | None = None,
    ) -> None:
        """Add a source of models that learn from a training part and rank the held-out one.

        Parameters
        ----------
        estimator : estimator
            It is not fitted. Parameters that are "cv" are searched, and the number of components if
            it is None.
        views : Views
            All rows, in memory.
        y : labels or None
            Labels of all objects to learn from.
        fold : Fold
            Positions of the objects to learn from, and of those to rank.
        asked : Asked
            What is measured.
        labels : Labels, optional
            Labels of all objects that define relevant items, for the goal "class".
        """
        objects = np.sort(np.concatenate([fold.train, fold.test]))
        codes = np.where(np.isin(objects, fold.test), 0, NO_FOLD)
        learned = LabelsByView.of(views, y) if estimator.requires.labels else None
        judged = None if labels is None else LabelsByView.of(views, labels)
        if len(objects) < len(views):
            of_views = views.rows_of(objects)
            learned, judged = (
                None if own is None else own.take(of_views) for own in (learned, judged)
            )
            views = views[objects]
        views = views.with_ids(np.arange(1, len(views) + 1))
        folds, goal = InnerFolds(codes, asked), asked.goals[0]
        rows = Rows(views, labels=learned)
        source = FromRefits(estimator, rows, folds, goal, judged, shared_space=self.space)
        self.sources, self.space = (*self.sources, source), source.space

    def choices(self) -> dict[Goal, Trials]:
        """Trials that choose for each goal, of the settings that it asked for."""
        space, goals = self.sources[0].space, self.sources[0].goals
        best: dict[Goal, dict[str, Any]] = {goal: dict(space.start) for goal in goals}
        asked: dict[Goal, list[Key]] = {goal: _keys(own, [{}]) for goal, own in best.items()}
        chosen: dict[Goal, Setting] = {}
        for names, keys in self._rounds(space, best, chosen):
            self._try(keys)
            for goal, own in keys.items():
                asked[goal] = list(dict.fromkeys([*asked[goal], *own]))
                chosen[goal] = self._trials(goal, asked[goal]).chosen
                best[goal] |= {name: chosen[goal][name] for name in names}
        return {goal: self._trials(goal, keys) for goal, keys in asked.items()}

    def _rounds(
        self, space: Space, best: dict[Goal, dict[str, Any]], chosen: dict[Goal, Setting]
    ) -> Iterator[tuple[Iterable[str], dict[Goal, list[Key]]]]:
        """Parameters to choose, and the settings to try, by goal.

        `best` are the best values so far, and `chosen` the best settings of the last round.
        """
        if not space.values:
            yield (), {goal: _keys(own, [{}]) for goal, own in best.items()}
        if space.scales:
            ridges = [{"reg": reg} for reg in space.first_ridges] or [{}]
            scalings = [{"scale": own} for own in Scales.first(space.scales)]
            first = [own | reg for own in scalings for reg in ridges]
            yield ["scale"], {goal: _keys(own, first) for goal, own in best.items()}
            if len(space.scales) > 2:  # one view otherwise each, then all that are better so
                starts = {
                    goal: own | {n: chosen[goal][n] for n in ("scale", "reg") if n in chosen[goal]}
                    for goal, own in best.items()
                }

                def but(goal: Goal, *names: str) -> Key:
                    start = starts[goal]
                    return _keys(start, [{"scale": start["scale"].flipped(*names)}])[0]

                def is_better(goal: Goal, name: str) -> bool:
                    return self._value(goal, but(goal, name)) > self._value(goal, but(goal))

                yield ["scale"], {g: [but(g, name) for name in space.scales] for g in starts}
                better = {g: [n for n in space.scales if is_better(g, n)] for g in starts}
                yield ["scale"], {g: [but(g, *own)] for g, own in better.items() if len(own) > 1}
        for name, values in space.values.items():
            lines = {goal: list(values) for goal in best}
            new = {goal: list(values) for goal in best}
            while new:
                changes = {goal: [{name: value} for value in own] for goal, own in new.items()}
                yield space.values, {goal: _keys(best[goal], own) for goal, own in changes.items()}
                new = {
                    goal: [value]
                    for goal in new
                    if (value := self._beyond(name, best[goal][name], lines[goal])) is not None
                }

    def _value(self, goal: Goal, key: Key) -> float:
        """The best value of a setting that was tried; -inf if it has none."""
        known = self.found.get(key)
        return round(known.of(goal).value, DIGITS) if known and known.of(goal).values else -np.inf

    def warn_of_lost_folds(self) -> None:
        """Say that a fold has no value of any setting, so that only other folds choose."""
        for source in self.sources:
            lost = self._lost(source)
            if lost is not None:
                error = naming_folds(source.failures[lost], source.folds, lost)
                warn(f"Only the other folds choose settings. {error}")
                return

    def check_folds(self) -> None:
        """Raise the last error of a source that has no value of any setting."""
        for number, source in enumerate(self.sources):
            values = (own for trials in self.found.values() for own in trials.values.values())
            if source.failures and not any(number in by_fold for by_fold in values):
                raise [*source.failures.values()][-1]

    def _lost(self, source: FromRefits) -> tuple[int, ...] | None:
        """Folds of a model without which every setting failed, if there is one."""
        scored = {
            fold
            for trials in self.found.values()
            for by_fold in trials.values.values()
            for fold in by_fold
        }
        for left_out, served in source.folds.models():
            if left_out in source.failures and not scored.issuperset(served):
                return left_out
        return None

    def _beyond(self, name: str, best: Any, line: list[Any]) -> Any:
        """The value beyond the best one if that is at an end; it is added to the line."""
        space = self.sources[0].space
        step = space.beyond.get(name)
        if step is None or len(line) >= len(space.values[name]) + _MOST_STEPS:
            return None
        if best == line[0]:
            line.insert(0, step(best, False))
            return line[0]
        if best == line[-1]:
            line.append(step(best, True))
            return line[-1]
        return None

    def _trials(self, goal: Goal, keys: Sequence[Key]) -> Trials:
        """Values of some settings for a goal."""
        prefers_all = self.sources[0].space.prefers_all
        trials = Trials(goal, [], prefers_all=prefers_all, by_heads=self.by_heads)
        known = sorted((self.found[key] for key in keys if key in self.found), key=_order)
        for part in (own.of(goal) for own in known):
            trials.settings.extend(part.settings)
            place = len(trials.settings) - 1
            trials.values.update({v._replace(setting=place): own for v, own in part.values.items()})
        if not trials.values:
            source = next(own for own in self.sources if own.failures)
            left_out, error = [*source.failures.items()][-1]
            if len(source.failures) == len(source.folds.models()):  # no fold is the cause
                raise error
            raise naming_folds(error, source.folds, left_out) from error
        return trials

    # ---- values of settings ----------------------------------------------------------------------

    def _try(self, wanted: Mapping[Goal, Sequence[Key]]) -> None:
        """Find the values of settings that are not known yet, from every source."""
        keys = dict.fromkeys(key for own in wanted.values() for key in own)
        for number, source in enumerate(self.sources):
            groups: dict[Key, list[Key]] = {}  # solved together
            for key in keys:
                if (key, number) not in self.tried:
                    groups.setdefault(self._base(key), []).append(key)
                    self.tried.add((key, number))
            for unknown in groups.values():
                with warnings.catch_warnings(action="ignore"):  # of models that are not kept
                    trials = _solved(source, [dict(key) for key in unknown])
                for variant, by_fold in trials.values.items():
                    key = unknown[variant.setting]
                    own = self.found.setdefault(key, Trials(source.goal, [dict(key)]))
                    known = own.values.setdefault(variant._replace(setting=0), {})
                    known.update({number + fold: value for fold, value in by_fold.items()})

    def _base(self, key: Key) -> Key:
        """The part of a setting that models have in common which are solved together."""
        space = self.sources[0].space
        together = space.solves_ridges or space.leaves_one_out
        return tuple(item for item in key if not (together and item[0] == "reg"))


def _solved(source: FromRefits, settings: Sequence[Setting]) -> Trials:
    """Trials of settings that have all but ridges in common."""
    if not source.space.solves_ridges:
        return search(source, settings)
    base = {name: own for name, own in settings[0].items() if name != "reg"}
    all_components = {"n_components": None} if source.space.has_prefixes else {}
    model = source.model({**base, **all_components, "cv_goal": None})
    given = source.rows
    rows = model._open_rows(given.views, given.labels, given.sample_weight)
    objects = np.asarray(rows.views.ids) - 1
    judged = source.judged
    if judged is not None:
        judged = judged.take(given.views.rows_of(objects))
    folds, most = source.folds.take(objects), source.space.most_components
    ranked = given.views.without(model.confounds).names  # rows may have a view of labels
    task = folds, source.goal, judged, ranked
    # Objects that the method cannot learn from are queries and items like those of other methods.
    is_partial = source.folds.asked is not None and len(objects) < len(given.views)
    more: dict[str, Any] = {"samples": source.samples} if is_partial else {}
    is_wide = sum(rows.views.widths.values()) >= WIDE
    if is_wide and model.takes_products:
        k = components_to_search(rows, len(settings))
        if k is not None:
            more["most_components"] = min(k, most or k)
            products = FromProducts.of(model, rows, *task, **more)
            found = search(products, settings)
            if found.values:
                return found
    more["most_components"] = most
    return climb(rows, lambda own: search(FromStatistic.of(model, own, *task, **more), settings))


def _keys(setting: Setting, changes: Iterable[Setting]) -> list[Key]:
    """Settings that differ from one in some parameters."""
    return [tuple({**setting, **own}.items()) for own in changes]


def _order(trials: Trials) -> Any:
    """Place of the trials of one setting, of which the last wins a tie."""
    scaling = trials.settings[0].get("scale")
    return () if scaling is None else scaling.order
