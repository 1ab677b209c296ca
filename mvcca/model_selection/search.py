"""The one loop that tries settings on held-out folds, and what it found.

A `ModelSource` has the models of every training part, and says how good each is on held-out rows.
`search` collects these values in `Trials`, which choose. Sources are in `sources`, beside the
searches of a grid (`FoldSearchCV`) and of other rooms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from mvcca.machine.progress import counting
from mvcca.model_selection.fold_statistics import Models
from mvcca.model_selection.goals import MEASURES, Goal, Value, goal_of

Setting = Mapping[str, Any]
DIGITS = 10  # of a mean over queries; the order of views and rows changes those after


class Variant(NamedTuple):
    """One of the searched models, and how its scores are ranked."""

    setting: int  # position in the list of settings
    ranking: str | None = None
    n_components: int | None = None  # None for all
    goal: Goal | None = None  # that its values measure, if there are several


class ModelSource(Protocol):
    """Models of training parts, and how good they are on held-out rows.

    A source decides what models of one training part share: all ridges are solved from one
    decomposition, say. It may skip settings that cannot be solved; these get no values.
    """

    @property
    def goal(self) -> Goal | None:
        """What values measure, if it is one of these."""

    def models(self) -> Models:
        """Folds that each model leaves out, and those it is scored on, as `InnerFolds.models`."""

    def solved(
        self, left_out: tuple[int, ...], settings: Sequence[Setting]
    ) -> Iterator[tuple[int, Any]]:
        """Positions of settings and their models, whatever `values` takes, in any order."""

    def values(self, model: Any, fold: int) -> Iterable[tuple[*tuple[Any, ...], Any]]:
        """Ranking, number of components, goal if there are several, and value of a model."""


def search(source: ModelSource, settings: Sequence[Setting]) -> Trials:
    """Try settings on all folds.

    Parameters
    ----------
    source : ModelSource
        The models.
    settings : sequence of mapping
        Parameters to try; of equally good ones, the last wins.

    Returns
    -------
    Trials
    """
    found = Trials(source.goal, [*settings])
    models = source.models()
    with counting(len(models) * len(settings), "Choosing settings", " models") as count:
        for left_out, served in models:
            n_left = len(settings)
            for number, model in source.solved(left_out, settings):
                for fold in served:
                    for *variant, value in source.values(model, fold):
                        found.add(fold, value, number, *variant)
                n_left -= 1
                count()
            if n_left:
                count(n_left)
    return found


@dataclass(frozen=True, eq=False)
class Choice:
    """The settings that a search chose.

    Attributes
    ----------
    params : dict
        Parameters of the estimator, such as its ridge.
    ranking : str
        How its scores are ranked.
    n_components : int or None
        Number of components; None for all that the data support.
    value : float
        Mean of the goal's measure over the folds. It is optimistic, as one of the largest of many.
    cv_results : dict of str to array
        Values of all variants, in scikit-learn's form.
    at_edge : tuple of str
        Parameters whose value is the smallest or largest of those that were searched.
    goal : {"object", "class", "correlation"} or None
        What was maximized.
    """

    params: dict[str, Any]
    ranking: str
    n_components: int | None
    value: float
    cv_results: dict[str, Any]
    at_edge: tuple[str, ...] = ()
    goal: Goal | None = None

    @classmethod
    def of(cls, estimator: Any) -> Choice | None:
        """The settings that a fitted estimator chose, with its number of components.

        None if it was not tuned.
        """
        results = getattr(estimator, "cv_results_", None)
        if results is None or not hasattr(estimator, "ranking_"):  # of a search of scikit-learn
            return None
        names = [name.removeprefix("param_") for name in results if name.startswith("param_")]
        own = [name for name in names if name not in ("n_components", "ranking")]
        params = {name: getattr(estimator, f"{name}_") for name in own}
        whole = params | {"ranking": estimator.ranking_}
        chosen = [whole | {"n_components": k} for k in (estimator.n_components_, None)]  # or all
        found = [i for i, own in enumerate(results["params"]) if own in chosen]
        if not found:
            return None
        edges = (name for name, own in params.items() if at_edge(own, results[f"param_{name}"]))
        return cls(
            params,
            estimator.ranking_,
            estimator.n_components_,
            float(max(results["mean_test_score"][i] for i in found)),
            results,
            tuple(edges),
            goal_of(estimator),
        )

    @property
    def measure(self) -> str:
        """Name of the measure of the goal."""
        return "" if self.goal is None else MEASURES[self.goal]

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of the estimator, the number of components included if it was chosen."""
        chosen = {} if self.n_components is None else {"n_components": self.n_components}
        return {**self.params, **chosen}

    @property
    def n_folds(self) -> int:
        """Number of folds of the search."""
        return sum(name.startswith("split") for name in self.cv_results)


@dataclass(frozen=True, eq=False)
class Trials:
    """Values of variants on held-out folds.

    Attributes
    ----------
    goal : {"object", "class", "correlation"} or None
        What the values measure.
    settings : list of mapping
        Searched parameters; of equal values, those of the last one win.
    values : dict
        By variant, the value on each fold.
    prefers_all : bool
        Whether fewer components than all must win by a standard error.
    by_heads : bool
        Whether heads count, too: not if the gallery to be searched is as small as a fold.
    """

    goal: Goal | None
    settings: list[Setting]
    values: dict[Variant, dict[int, Any]] = field(default_factory=dict)
    prefers_all: bool = True
    by_heads: bool = True

    def add(self, fold: int, value: Any, setting: int, *variant: Any) -> None:
        """Keep the value on a fold of a setting, given by its position, and of its `Variant`."""
        self.values.setdefault(Variant(setting, *variant), {})[fold] = value

    def extended(self, others: Iterable[Trials], order: Callable[[Setting], Any]) -> Trials:
        """These and other trials of the same goal, their settings in an order that ties follow."""
        every = [self, *others]
        found = [(setting, own, i) for own in every for i, setting in enumerate(own.settings)]
        found.sort(key=lambda one: order(one[0]))
        values = {
            variant._replace(setting=place): by_fold
            for place, (_, own, number) in enumerate(found)
            for variant, by_fold in own.values.items()
            if variant.setting == number
        }
        return replace(self, settings=[setting for setting, _, _ in found], values=values)

    @classmethod
    def together(cls, parts: Sequence[Trials], name: str) -> Trials:
        """Trials of several searches in one table, whose settings get the number of theirs."""
        empty = cls(parts[0].goal, [])
        numbered = [
            replace(own, settings=[{name: i, **setting} for setting in own.settings])
            for i, own in enumerate(parts)
        ]
        return empty.extended(numbered, lambda setting: setting[name])

    def among(self, are_wanted: Callable[[Setting], bool]) -> Trials:
        """The trials of some settings."""
        values = {v: own for v, own in self.values.items() if are_wanted(self.settings[v.setting])}
        return replace(self, values=values)

    def of(self, goal: Goal) -> Trials:
        """Values of one of several goals."""
        values = {variant: own for variant, own in self.values.items() if variant.goal == goal}
        return replace(self, goal=goal, values=values)

    def pooled(self, value: Callable[[list[Any]], float]) -> Trials:
        """Trials with one value of all folds, of a measure that is not a mean over them."""
        values = {}
        for variant, by_fold in self.values.items():
            pooled = float(value([by_fold[fold] for fold in sorted(by_fold)]))
            values[variant] = {0: Value(pooled, pooled)}
        return replace(self, values=values)

    @property
    def chosen(self) -> Setting:
        """The setting of the best variant."""
        return self.settings[self.best.setting]

    @property
    def value(self) -> float:
        """Mean of the goal's measure of the best variant over the folds."""
        return float(self._complete[self.best][:, 0].mean())

    @cached_property
    def best(self) -> Variant:
        """The variant with the largest mean of scores, and of heads if these count.

        If all components are preferred, fewer win only by more than one standard error of the
        differences between folds.
        """
        means = self._maximized
        whole = {v: values for v, values in means.items() if v.n_components is None}
        best = _largest(whole if whole and self.prefers_all else means)
        rival = _largest(means)
        if rival == best:
            return best
        gain = means[rival] - means[best]
        error = gain.std(ddof=1 if len(gain) > 1 else 0) / np.sqrt(len(gain))
        return rival if gain.mean() > error else best

    @property
    def on_folds(self) -> np.ndarray:
        """What is maximized, of the best variant, on each fold."""
        return self._maximized[self.best]

    def choose(self) -> Choice:
        """The best variant, with the values of all of them."""
        best = self.best
        return Choice(
            dict(self.chosen),
            str(best.ranking),
            best.n_components,
            self.value,
            self.cv_results(),
            self.at_edge(),
            self.goal,
        )

    def at_edge(self) -> tuple[str, ...]:
        """Parameters whose best value is the smallest or largest of those that were tried."""
        tried = self.settings
        return tuple(n for n, own in self.chosen.items() if at_edge(own, (s[n] for s in tried)))

    def cv_results(self) -> dict[str, Any]:
        """Scores in scikit-learn's form, and mean heads if these are other ones."""
        found = self._complete
        table, heads = np.moveaxis(np.array(list(found.values())), 2, 0)  # (n_variants, n_folds)
        means = table.mean(axis=1)
        params = [
            {**self.settings[own.setting], "n_components": own.n_components, "ranking": own.ranking}
            for own in found
        ]
        results: dict[str, Any] = {
            f"param_{n}": np.array([own[n] for own in params], dtype=object) for n in params[0]
        }
        results |= {f"split{fold}_test_score": column for fold, column in enumerate(table.T)}
        return results | {
            "params": params,
            "mean_test_score": means,
            "std_test_score": table.std(axis=1),
            "rank_test_score": (means[:, None] < means).sum(axis=1) + 1,
            **({"mean_test_head": heads.mean(axis=1)} if self.goal == "class" else {}),
        }

    @property
    def _maximized(self) -> dict[Variant, np.ndarray]:
        """Scores, or means of scores and heads if these count, of the same variants."""
        found = self._complete.items()
        return {variant: own.mean(axis=1) if self.by_heads else own[:, 0] for variant, own in found}

    @cached_property
    def _complete(self) -> dict[Variant, np.ndarray]:
        """Values of the variants that have one on every fold, (n_folds, 2)."""
        n_folds = max(map(len, self.values.values()))
        return {
            variant: np.array([by_fold[fold][:2] for fold in sorted(by_fold)])
            for variant, by_fold in self.values.items()
            if len(by_fold) == n_folds
        }


def _largest(values: Mapping[Variant, np.ndarray]) -> Variant:
    """The variant with the largest mean; of equal ones, that with the last setting."""
    return max(values, key=lambda own: (round(float(values[own].mean()), DIGITS), own.setting))


def at_edge(value: Any, tried: Iterable[Any]) -> bool:
    """Whether a number is the smallest or largest of more than two that were tried."""
    numbers = {own for own in tried if isinstance(own, int | float)}
    return len(numbers) > 2 and value in (min(numbers), max(numbers))
