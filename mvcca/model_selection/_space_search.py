"""Search a space of parameters, one after another.

Ridges that a method solves from one decomposition are all tried at each value of the others, and so
are the numbers of components of which the first are a solution, too.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from mvcca.machine.warnings import warn
from mvcca.model_selection._fold_statistics import Outer, naming_folds
from mvcca.model_selection._search import Choice, Setting, Trials, search
from mvcca.model_selection._sources import FromProducts, FromRefits, FromStatistic
from mvcca.model_selection._spaces import Scales
from mvcca.problem import WIDE, Rows, components_to_search

Key = tuple[tuple[str, Any], ...]  # of a setting

_MOST_STEPS = 4  # beyond the ends of a parameter's values


@dataclass(frozen=True, eq=False)
class SpaceSearch:
    """Trials of the settings of a space.

    Parameters are searched one after another, so that a setting may be of interest to some outer
    folds only. What is chosen for an outer fold depends on settings that it asked for itself.

    Attributes
    ----------
    source : FromRefits
        The estimator and its rows.
    by_heads : bool
        As of `Trials`.
    found : dict
        Trials of one setting each, by outer fold and setting.
    """

    source: FromRefits
    by_heads: bool = True
    found: dict[Outer, dict[Key, Trials]] = field(default_factory=dict)

    def choices(self) -> dict[Outer, Choice]:
        """The best setting for each outer fold."""
        space, outers = self.source.space, self.source.folds.outer
        best: dict[Outer, dict[str, Any]] = {outer: dict(space.start) for outer in outers}
        asked = {outer: [_key(setting)] for outer, setting in best.items()}
        if not space.values:
            self._try(asked)
        if space.scales:
            self._compare_scalings(best, asked)
        for name, values in space.values.items():
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
                    chosen = self._trials(outer, asked[outer]).chosen
                    best[outer] |= {name: chosen[name] for name in space.values}
                new = {
                    outer: [value]
                    for outer in new
                    if (value := self._beyond(name, best[outer][name], lines[outer])) is not None
                }
        found = {}
        for outer, tried in asked.items():
            trials, scaling = self._trials(outer, tried), best[outer].get("scale")
            choice = trials.among(partial(_has_scaling, scaling)).choose()
            found[outer] = replace(choice, cv_results=trials.cv_results())
        self._warn_of_lost_folds()
        return found

    def _compare_scalings(
        self, best: dict[Outer, dict[str, Any]], asked: dict[Outer, list[Key]]
    ) -> None:
        """Put the best way to scale the columns into the best settings."""
        space = self.source.space
        names, ridges = space.scales, [{"reg": reg} for reg in space.first_ridges] or [{}]
        groups: dict[Outer, list[Scales]] = {outer: Scales.first(names) for outer in best}
        for name in [None, *(names if len(names) > 2 else ())]:
            if name is not None:
                groups = {outer: [of["scale"].flipped(name)] for outer, of in best.items()}
            keys = {
                outer: [
                    _key({**best[outer], "scale": scaling, **ridge})
                    for scaling in group
                    for ridge in ridges
                ]
                for outer, group in groups.items()
            }
            self._try(keys)
            for outer, added in keys.items():
                asked[outer] = list(dict.fromkeys([*asked[outer], *added]))
                best[outer]["scale"] = self._trials(outer, asked[outer]).chosen["scale"]

    def _warn_of_lost_folds(self) -> None:
        """Say that a fold has no value of any setting, so that only other folds choose."""
        folds, failures = self.source.folds, self.source.failures
        scored = {
            (outer, fold)
            for outer, by_key in self.found.items()
            for trials in by_key.values()
            for by_fold in trials.values.values()
            for fold in by_fold
        }
        for left_out, served in folds.models():
            lost = not all((outer, fold) in scored for fold, outer in served.items())
            if lost and left_out in failures:
                error = naming_folds(failures[left_out], folds, left_out)
                warn(f"Only the other folds choose settings. {error}")
                return

    def _beyond(self, name: str, best: Any, line: list[Any]) -> Any:
        """The value beyond the best one if that is at an end; it is added to the line."""
        space = self.source.space
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

    def _trials(self, outer: Outer, keys: Sequence[Key]) -> Trials:
        """Values of some settings for an outer fold."""
        known, folds, failures = self.found[outer], self.source.folds, self.source.failures
        prefers_all = self.source.space.prefers_all
        trials = Trials(self.source.goal, [], prefers_all=prefers_all, by_heads=self.by_heads)
        for part in sorted((known[key] for key in keys if key in known), key=_order):
            trials.settings.extend(part.settings)
            place = len(trials.settings) - 1
            trials.values.update({v._replace(setting=place): own for v, own in part.values.items()})
        if not trials.values:
            left_out, error = next(
                own for own in reversed(failures.items()) if {*outer} <= {*own[0]}
            )
            if len(failures) == len(folds.models()):  # no fold is the cause
                raise error
            raise naming_folds(error, folds, left_out) from error
        return trials

    # ---- values of settings ----------------------------------------------------------------------

    def _try(self, wanted: Mapping[Outer, Sequence[Key]]) -> None:
        """Find the values of settings that are not known yet."""
        groups: dict[Key, dict[Key, set[Outer]]] = {}  # solved together
        for outer, keys in wanted.items():
            for key in keys:
                known = self.found.setdefault(outer, {})
                trials = known.setdefault(key, Trials(self.source.goal, [dict(key)]))
                if not trials.values:
                    groups.setdefault(self._base(key), {}).setdefault(key, set()).add(outer)
        for unknown in groups.values():
            outers = sorted(set().union(*unknown.values()))
            with warnings.catch_warnings(action="ignore"):  # of models that are not kept
                found = self._solved([dict(key) for key in unknown], outers)
            for outer, trials in found.items():
                for variant, by_fold in trials.values.items():
                    key = [*unknown][variant.setting]
                    own = self.found[outer].setdefault(key, Trials(trials.goal, [dict(key)]))
                    own.values[variant._replace(setting=0)] = by_fold

    def _base(self, key: Key) -> Key:
        """The part of a setting that models have in common which are solved together."""
        space = self.source.space
        together = space.solves_ridges or space.leaves_one_out
        return tuple(item for item in key if not (together and item[0] == "reg"))

    def _solved(self, settings: Sequence[Setting], outers: Sequence[Outer]) -> dict[Outer, Trials]:
        """Trials of settings that have all but ridges in common."""
        source = self.source
        if not source.space.solves_ridges:
            return search(source, settings, outers)
        base = {name: own for name, own in settings[0].items() if name != "reg"}
        all_components = {"n_components": None} if source.space.has_prefixes else {}
        model = source.model({**base, **all_components, "cv_goal": None})
        rows = model.open_rows(source.views, source.labels, source.sample_weight)
        objects = np.asarray(rows.views.ids) - 1
        judged = source.judged
        if judged is not None:
            judged = judged.take(source.views.rows_of(objects))
        folds, most = source.folds.take(objects), source.space.most_components
        ranked = source.views.without(model.confounds).names  # rows may have a view of labels
        task = folds, source.goal, judged, ranked
        is_wide = sum(rows.views.widths.values()) >= WIDE
        if is_wide and model.takes_products:
            k = components_to_search(rows, len(settings))
            if k is not None:
                products = FromProducts.of(model, rows, *task, most_components=min(k, most or k))
                found = search(products, settings, outers)
                if any(trials.values for trials in found.values()):
                    return found

        def searched(rows: Rows) -> dict[Outer, Trials]:
            sums = FromStatistic.of(model, rows, *task, most_components=most)
            return search(sums, settings, outers)

        return model.precisely(rows, searched)


def _key(setting: Setting) -> Key:
    return tuple(setting.items())


def _order(trials: Trials) -> int:
    """Place of the trials of one setting, of which the last wins a tie."""
    scaling = trials.settings[0].get("scale")
    return 0 if scaling is None else scaling.order


def _has_scaling(scaling: Scales | None, setting: Setting) -> bool:
    return setting.get("scale") == scaling
