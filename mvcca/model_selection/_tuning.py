"""Choose ridge, ranking and number of components by how held-out rows are found.

Each fold is held out once. Models of the other folds are solved from statistics that add, for every
ridge from one decomposition; their held-out rows are ranked, and the settings with the largest mean
over the folds win.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils._param_validation import StrOptions

from mvcca.machine.progress import counting
from mvcca.model_selection._fold_statistics import (
    FoldStatistics,
    InnerFolds,
    Outer,
    naming_folds,
)
from mvcca.model_selection._goals import FoldScores, Goal, RankedSample, Value, goal_of, values_of
from mvcca.model_selection._products import FoldRows
from mvcca.problem import Rows, components_to_search
from mvcca.retrieval.bank import bank_of
from mvcca.retrieval.ranking import CORRECTED
from mvcca.views import Views

RIDGES = (1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # in units of the mean variance
LEAST_RIDGE = RIDGES[0]
_OF_VARIANTS = ("n_components", "ranking")  # which every search chooses beside its parameters


class Variant(NamedTuple):
    """One of the searched models, and how its scores are ranked."""

    setting: int  # position in the list of settings
    ranking: str
    n_components: int | None  # None for all


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
    """

    params: dict[str, Any]
    ranking: str
    n_components: int | None
    value: float
    cv_results: dict[str, Any]
    at_edge: tuple[str, ...] = ()

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
    goal : {"object", "class", "correlation"}
        What the values measure.
    settings : list of dict
        Searched parameters; of equal values, those of the last one win.
    values : dict
        By outer folds and variant, the value on each inner fold.
    prefers_all : bool
        Whether fewer components than all must win by a standard error.
    by_heads : bool
        Whether heads count, too: not if the gallery to be searched is as small as a fold.
    """

    goal: Goal
    settings: list[dict[str, Any]]
    values: dict[Outer, dict[Variant, dict[int, Value]]] = field(default_factory=dict)
    prefers_all: bool = True
    by_heads: bool = True

    def add(self, outer: Outer, fold: int, variant: Variant, value: Value) -> None:
        """Keep the value of a variant on a fold."""
        self.values.setdefault(outer, {}).setdefault(variant, {})[fold] = value

    def choose(self, outer: Outer = ()) -> Choice:
        """The variant with the largest mean of scores, and of heads if these count.

        If all components are preferred, fewer win only by more than one standard error of the
        differences between folds.
        """
        found = self.values[outer]
        n_folds = max(map(len, found.values()))
        complete = {
            variant: np.array([by_fold[fold] for fold in sorted(by_fold)])  # (n_folds, 2)
            for variant, by_fold in found.items()
            if len(by_fold) == n_folds
        }
        means = {
            variant: values.mean(axis=1) if self.by_heads else values[:, 0]
            for variant, values in complete.items()
        }
        whole = {v: values for v, values in means.items() if v.n_components is None}
        best = _largest(whole if whole and self.prefers_all else means)
        rival = _largest(means)
        gain = means[rival] - means[best]
        if gain.mean() > gain.std(ddof=1 if n_folds > 1 else 0) / np.sqrt(n_folds):
            best = rival
        chosen = self.settings[best.setting]
        return Choice(
            chosen,
            best.ranking,
            best.n_components,
            float(complete[best][:, 0].mean()),
            _cv_results(self.goal, self.settings, complete),
            tuple(n for n, own in chosen.items() if at_edge(own, (s[n] for s in self.settings))),
        )


def at_edge(value: Any, tried: Iterable[Any]) -> bool:
    """Whether a number is the smallest or largest of more than two that were tried."""
    numbers = {own for own in tried if isinstance(own, int | float)}
    return len(numbers) > 2 and value in (min(numbers), max(numbers))


def _largest(values: Mapping[Variant, np.ndarray]) -> Variant:
    """The variant with the largest mean; of equal ones, that with the last setting."""
    return max(values, key=lambda variant: (values[variant].mean(), variant.setting))


def _cv_results(
    goal: Goal, settings: Sequence[Mapping[str, Any]], values: Mapping[Variant, np.ndarray]
) -> dict[str, Any]:
    """Scores in scikit-learn's form, and mean heads if these are other ones."""
    table, heads = np.moveaxis(np.array(list(values.values())), 2, 0)  # (n_variants, n_folds)
    means = table.mean(axis=1)
    params = [
        {**settings[own.setting], "n_components": own.n_components, "ranking": own.ranking}
        for own in values
    ]
    results: dict[str, Any] = {
        f"param_{name}": np.array([own[name] for own in params], dtype=object) for name in params[0]
    }
    results |= {f"split{fold}_test_score": column for fold, column in enumerate(table.T)}
    return results | {
        "params": params,
        "mean_test_score": means,
        "std_test_score": table.std(axis=1),
        "rank_test_score": (means[:, None] < means).sum(axis=1) + 1,
        **({"mean_test_head": heads.mean(axis=1)} if goal == "class" else {}),
    }


# ---- what is searched ----------------------------------------------------------------------------


def rankings_for(goal: Goal, expected: Any, power: float = 0.0) -> list[str]:
    """Rankings to search; those by correlations only where these are known."""
    names = ["cosine"] if expected is None else ["profile-likelihood", "likelihood"]
    if power and expected is not None:
        names.append("cosine")
    if goal == "object":
        names += [f"{name}{CORRECTED}" for name in names]
    return names[:1] if goal == "correlation" else names


def numbers_of_components(n_components: int) -> list[int | None]:
    """1, 2, 3, 5, 8, 12, ... and all."""
    numbers: list[int | None] = []
    k = 1
    while 1.5 * k <= n_components:
        numbers.append(k)
        k = max(k + 1, int(1.5 * k + 0.5))
    return [*numbers, None]


def search_path(
    statistics: FoldStatistics | FoldRows,
    trials: Trials,
    ridges: Iterable[tuple[int, Mapping[str, float]]],
    n_components: int | None,
    *,
    outers: Collection[Outer] | None = None,
    most_components: int | None = None,
) -> None:
    """Add the values of models with different ridges to the trials.

    Parameters
    ----------
    statistics : FoldStatistics or FoldRows
        Of all folds.
    trials : Trials
        Where values are added.
    ridges : iterable of (int, mapping of str to float)
        Positions of settings, and their ridges by view. Those that fit the rows almost exactly may
        get no values, as may smaller ones.
    n_components : int or None
        Number of components; None searches them where the goal depends on it.
    outers : collection of tuple, optional
        The outer folds to add values for; by default all.
    most_components : int, optional
        Number of components above which none is searched.
    """
    ridges = list(ridges)
    if isinstance(statistics, FoldRows):  # the smallest may not be solved
        ridges.sort(key=lambda own: -max(own[1].values()))
    power = getattr(statistics.estimator, "power", 0.0)
    searches_all = n_components is None and trials.goal == "class"  # weights do it for objects
    models = statistics.folds.models(outers)
    with counting(len(models) * len(ridges), "Choosing settings", " models") as count:
        for left_out, served in models:
            try:
                path = statistics.path(left_out)
            except ValueError as error:  # more neighbours than rows, say
                raise naming_folds(error, statistics.folds, left_out) from error
            path.check({name: min(reg[name] for _, reg in ridges) for name in path.axes})
            rows = statistics.held_out(path, left_out, served, trials.goal)
            for number, (setting, reg) in enumerate(ridges):
                maps = path.solve(reg, most_components if n_components is None else n_components)
                if maps is None:  # so small a ridge that rows are fitted almost exactly
                    count(len(ridges) - number)
                    break
                rankings = rankings_for(trials.goal, maps.expected, power)
                for fold, projected in rows.projected(maps, power).items():
                    found = projected.n_components
                    numbers: list[int | None] = [None]
                    if searches_all:
                        numbers = numbers_of_components(found)
                    if n_components is None and found == most_components:
                        numbers[-1] = found
                    values = values_by_variant(
                        trials.goal, projected, statistics.samples[fold], rankings, numbers
                    )
                    for ranking, k, value in values:
                        trials.add(served[fold], fold, Variant(setting, ranking, k), value)
                count()


def values_by_variant(
    goal: Goal,
    projected: FoldScores,
    sample: RankedSample,
    rankings: Sequence[str],
    numbers: Sequence[int | None],
) -> Iterator[tuple[str, int | None, Value]]:
    """Values of one model on held-out rows, by ranking and number of components."""
    for k in numbers:
        n_components = projected.n_components if k is None else k
        values = values_of(goal, projected, sample, rankings, n_components)
        for ranking, value in values.items():
            yield ranking, k, value


# ---- tuned fits ----------------------------------------------------------------------------------


def tuned(estimator: Any, rows: Rows) -> Callable[[Rows], None]:
    """The function that fits to the same rows in any basis, with settings that folds choose.

    Parameters
    ----------
    estimator : StatisticEstimator
        Fitted by the function, with ``reg_``, ``ranking_`` and ``cv_results_``.
    rows : Rows
        Training rows as features.
    """
    goal = goal_of(estimator)
    check_goal(goal, estimator, rows)
    # Objects with equal confounds, such as those of one scanner, are no copies.
    folds = InnerFolds.of(rows.views.without(estimator.confounds), rows.labels)

    def learn(rows: Rows) -> None:
        statistics = FoldStatistics.of(estimator, rows, folds)
        choice = _searched_ridges(statistics, goal).choose()
        whole, statistic = statistics.parts.whole()
        estimator.learn(_with(choice, whole), statistic)
        _keep(choice, estimator)

    return learn


def tune_by_products(estimator: Any, rows: Rows, learn: Callable[[Rows], bool]) -> bool:
    """Fit CCA of wide views with settings that folds choose, if products with rows take less.

    Parameters
    ----------
    estimator : StatisticEstimator
        Fitted with ``reg_``, ``ranking_`` and ``cv_results_``.
    rows : Rows
        Training rows as features.
    learn : callable
        Fits to rows by products, and says whether they suffice.

    Returns
    -------
    bool
        Whether it is fitted. Too small a ridge may need matrices.
    """
    k = components_to_search(rows, len(RIDGES))
    if k is None:
        return False
    goal = goal_of(estimator)
    check_goal(goal, estimator, rows)
    folds = FoldRows.of(estimator, rows, InnerFolds.of(rows.views, rows.labels))
    trials = _searched_ridges(folds, goal, k)
    if not trials.values:  # all ridges fit the rows almost exactly
        return False
    choice = trials.choose()
    whole = _with(choice, replace(rows, n_components=k))
    if not learn(whole):
        return False
    _keep(choice, estimator)
    return True


def _with(choice: Choice, rows: Rows) -> Rows:
    """Rows for a fit with the settings that were chosen."""
    rows = replace(rows, reg=dict.fromkeys(rows.views.names, choice.params["reg"]))
    if choice.n_components is None:
        return rows
    return replace(rows, n_components=choice.n_components)


def _keep(choice: Choice, estimator: Any) -> None:
    """Set the attributes of a tuned fit."""
    estimator.reg_ = choice.params["reg"]
    estimator.ranking_ = choice.ranking
    estimator.cv_results_ = choice.cv_results


def tunable(estimator: Any, fixed: Collection[str] = ()) -> dict[str, Any] | None:
    """Values of parameters with which a fit searches all that it can, except the fixed ones.

    They are "cv" where that is allowed, and None for the number of components. The result is None
    if nothing would be searched.
    """
    found: dict[str, Any] = {}
    allowed = getattr(estimator, "_parameter_constraints", {})
    for name in estimator.get_params(deep=False).keys() - set(fixed):
        options = allowed.get(name, [])
        if any(isinstance(own, StrOptions) and "cv" in own.options for own in options):
            found[name] = "cv"
    if found and "n_components" not in {*found, *fixed} and None in allowed.get("n_components", []):
        found["n_components"] = None
    return found or None


def choice_of(estimator: Any) -> Choice | None:
    """The settings that a tuned estimator chose; None if it was not tuned.

    Parameters
    ----------
    estimator : fitted estimator

    Returns
    -------
    Choice or None
        With the number of components as it was fitted.
    """
    results = getattr(estimator, "cv_results_", None)
    if results is None or not hasattr(estimator, "ranking_"):  # of a search of scikit-learn
        return None
    names = [name.removeprefix("param_") for name in results if name.startswith("param_")]
    params = {name: getattr(estimator, f"{name}_") for name in names if name not in _OF_VARIANTS}
    chosen = params | {"ranking": estimator.ranking_, "n_components": estimator.n_components_}
    found = [i for i, own in enumerate(results["params"]) if _is_chosen(own, chosen)]
    if not found:
        return None
    best = max(found, key=lambda i: results["mean_test_score"][i])
    return Choice(
        params,
        estimator.ranking_,
        estimator.n_components_,
        float(results["mean_test_score"][best]),
        results,
        tuple(name for name, value in params.items() if at_edge(value, results[f"param_{name}"])),
    )


def _is_chosen(tried: Mapping[str, Any], chosen: Mapping[str, Any]) -> bool:
    """Whether a variant is the chosen one, whose number of components may be that of all."""
    return tried in (chosen, {**chosen, "n_components": None})


def fit_chosen(estimator: Any, choice: Choice, X: Views, y: Any) -> None:
    """Fit with the settings that folds chose, ranking included."""
    estimator.set_params(**choice.parameters).fit(X, y)
    estimator.ranking_ = choice.ranking
    if choice.ranking.endswith(CORRECTED):
        estimator.bank_ = bank_of(estimator, X)


def _searched_ridges(
    statistics: FoldStatistics | FoldRows, goal: Goal, most_components: int | None = None
) -> Trials:
    """Values of all ridges, the same for all views."""
    rows, trials = statistics.rows, Trials(goal, [{"reg": reg} for reg in RIDGES])
    ridges = [(i, dict.fromkeys(rows.views.names, reg)) for i, reg in enumerate(RIDGES)]
    k = rows.n_components
    search_path(statistics, trials, ridges, k, most_components=most_components)
    return trials


def check_goal(goal: Goal, estimator: Any, rows: Rows) -> None:
    """Refuse a goal that the rows cannot tell."""
    has_pairs = (rows.views.seen.sum(axis=1) > 1).any()
    if goal != "class" and not has_pairs:
        raise ValueError(
            f"cv_goal={goal!r} needs objects that are seen in two views; there are none. "
            'Use cv_goal="class".'
        )
    if goal == "class" and not (rows.labels is not None and rows.labels.distinct.are_sets):
        raise ValueError(
            f'cv_goal="class" of {type(estimator).__name__} needs classes or label sets as y: real '
            'label vectors do not say which items are relevant. Use cv_goal="object" for pairs.'
        )
