"""Searches over everything that only the solution of a problem depends on, from one pass.

Rows are summed up in a statistic that adds, so that all models of a cross-validation are solved
from statistics of its parts: rows are read once, however many folds and settings there are. Scorers
then get estimators, which project held-out rows as any fitted ones do; the mean correlation of
paired views, their default, takes only the moments of these rows.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import DataDimensionalityWarning
from sklearn.metrics._scorer import _PassthroughScorer
from sklearn.model_selection import ParameterGrid
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.validation import _check_method_params, _num_samples

from mvcca.blocks import is_mapping, to_host
from mvcca.blocks.checks import check_same_rows, row_labels
from mvcca.machine.warnings import warn
from mvcca.model_selection.fold_statistics import Models, Parts, one_left_out
from mvcca.model_selection.folds import splits_by
from mvcca.model_selection.search import Setting, Variant, search
from mvcca.model_selection.spaces import SEARCHED, searched
from mvcca.problem import MatrixPath, Rows, climb
from mvcca.retrieval.bank import bank_of, bank_rows
from mvcca.retrieval.ranking import CORRECTED, checked_weighting
from mvcca.retrieval.similarity import SIMILARITIES
from mvcca.statistics.digits_lost import DigitsLost
from mvcca.statistics.pair_covariance import PairCovariance
from mvcca.views import Views, as_views, holds_views
from mvcca.views.labels_by_view import LabelsByView

__all__ = ["FoldSearchCV"]

_SEARCHED = ("n_components", "power", "reg", "sigma")  # parameters that only the solve sees
_RANKING = "ranking"  # searched, too, though no parameter of an estimator
_BY_COMPONENT = (  # fitted attributes, whose last axis they are
    "weights_",
    "patterns_",
    "own_patterns_",
    "eigenvalues_",
    "canonical_correlations_",
    "expected_correlations_",
    "expected_correlations_by_pair_",
    "expected_deviations_",
)
_FLOAT64 = np.dtype(np.float64)


class FoldSearchCV(BaseSearchCV):
    """Grid search over ridges, numbers of components and rankings, from one pass over the rows.

    It finds what `sklearn.model_selection.GridSearchCV` finds on the same folds, scores included,
    without fitting each candidate to each training part: rows are summed up once per fold, sums of
    the other folds are merged, and all candidates are solved from these. It takes the estimators
    whose statistic adds, those with ``partial_fit`` and a closed form: `CCA`, `MVCCA`, `MLCCA`,
    `MVMLCCA`, `PLS`, `CFA`, `AffineMap`, `Procrustes`, `LGCFL`, and `KCCA` with an
    approximation.

    Parameters
    ----------
    estimator : estimator
        Cloned for every model.
    grid : dict or list of dict
        Lists of values by parameter, of those that only the solution depends on:

        - ``reg``, numbers or mappings from view names to numbers, a ridge per view;
        - ``n_components``, of which smaller numbers are the leading ones of one solution;
        - ``power`` of scores, and ``sigma`` of label similarities;
        - ``ranking``, how the models rank: the name of a weighting or similarity, as in
          `mvcca.evaluate_retrieval`, followed by "+csls" if hubs are corrected by rows of the
          training part. It becomes ``ranking_`` of the models, and these rows ``bank_``, which
          `mvcca.retrieval_scorer` and `mvcca.RetrievalIndex` use.

        A list of dicts is searched one after the other.
    cv : int, splitter or iterable of (train, test), default=5
        As in `GridSearchCV`. Each training part is a sum of parts that splits have in common, as
        those of folds are; if they have none, the rows are read once per split.
    scoring : str, callable, list, dict or None, default=None
        As in `GridSearchCV`, such as `mvcca.retrieval_scorer`; None is ``score`` of the estimator.
    refit : bool, str or callable, default=True
        Whether to solve for the best parameters with all rows, or the name of the measure that
        chooses them, if there are several; or a function that returns ``best_index_`` from
        ``cv_results_``.

    Attributes
    ----------
    cv_results_ : dict of str to array
        Parameters, scores and times of all candidates, as of `GridSearchCV`. Time that candidates
        share is divided equally.
    best_estimator_ : estimator
        Fitted with ``best_params_`` to all rows.
    best_score_ : float
        Mean score of the best candidate over the splits. It is optimistic, as the largest of many.
    best_params_ : dict
        Parameters of the best candidate.
    best_index_ : int
        Its position in ``cv_results_``.
    scorer_ : callable or dict
        The scorers.
    n_splits_ : int
        Number of splits.
    refit_time_ : float
        Seconds for the solution with all rows.
    multimetric_ : bool
        Whether there are several measures.
    n_features_in_ : int
        Number of features of X, over all its views.

    See Also
    --------
    mvcca.CCA : ``reg="cv"`` chooses ridge and ranking without a grid.

    Notes
    -----
    Scores equal those of `GridSearchCV` but for rounding (1e-8 with float64 rows). Landmarks and
    random features, of `KCCA` and of ``label_features``, are drawn once from all rows, where
    `GridSearchCV` draws them from each training part: scores are equal for given ones only, and
    slightly optimistic. Candidates without a ridge, and those with too small a one for
    ill-conditioned views, are solved from the rows of each training part instead, which are then
    read once for all of them. ``scale="auto"`` is decided once, by all rows, where `GridSearchCV`
    decides it anew by each training part.

    A candidate that cannot be fitted raises an error, which names the split: there is no
    ``error_score``.

    Examples
    --------
    >>> from mvcca import CCA, FoldSearchCV, retrieval_scorer
    >>> from mvcca.datasets import load_digits_views
    >>> grid = {
    ...     "reg": [1e-3, 0.01, 0.1, 1.0],
    ...     "n_components": [5, 10, 20],
    ...     "ranking": ["profile-likelihood", "likelihood"],
    ... }
    >>> search = FoldSearchCV(CCA(), grid, scoring=retrieval_scorer("mrr"))
    >>> search.fit(load_digits_views().views).best_params_["n_components"]
    20
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit"])],
        "grid": [dict, list],
        "cv": ["cv_object"],
        "scoring": BaseSearchCV._parameter_constraints["scoring"],
        "refit": BaseSearchCV._parameter_constraints["refit"],
    }
    return_train_score = False  # parameters of other searches, which their methods read
    error_score = "raise"

    def __init__(
        self,
        estimator: Any,
        grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]],
        *,
        cv: Any = 5,
        scoring: Any = None,
        refit: bool | str | Callable[..., int] = True,
    ) -> None:
        self.estimator = estimator
        self.grid = grid
        self.cv = cv
        self.scoring = scoring
        self.refit = refit

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Score all candidates, and fit the best to all rows.

        Parameters
        ----------
        X, y
            As in `fit` of the estimator; y is split like X.
        **params
            ``sample_weight`` of `fit`, one per object, and ``groups`` of the splitter.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the solution of the estimator is not all that a parameter changes, or its statistic
            does not add; use `GridSearchCV` for these.
        """
        self._validate_params()
        candidates = [dict(own) for own in ParameterGrid(self.grid)]
        settings = _settings(self.estimator, candidates)
        scorer, measure = self._get_scorers()
        X = as_views(X).checked_once() if holds_views(X) else X
        X, y = indexable(X, y)
        routed = self._get_routed_params_for_fit(_check_method_params(X, params))
        split_params = routed.splitter.split
        splits = splits_by(self.cv, X, y, **split_params)
        if unknown := set(routed.estimator.fit) - {"sample_weight"}:
            raise TypeError(f"FoldSearchCV.fit takes sample_weight and groups, got {unknown}.")
        data = _FitArguments(X, y, **routed.estimator.fit)
        evaluation = _CandidateEvaluation(data, settings, splits, scorer, routed.scorer.score)
        with _each_warning_once():
            evaluation.run()
            results = self._format_results(candidates, len(splits), evaluation.trials)
            scores = evaluation.trials[0]["test_scores"]
            self.multimetric_ = isinstance(scores, dict)
            if callable(self.scoring) and self.multimetric_:
                self._check_refit_for_multimetric(scores)
                measure = self.refit
            if self.refit or not self.multimetric_:
                self.best_index_ = self._select_best_index(self.refit, measure, results)
                self.best_params_ = candidates[self.best_index_]
                if not callable(self.refit):
                    self.best_score_ = results[f"mean_test_{measure}"][self.best_index_]
            if self.refit:
                start = time.perf_counter()
                self.best_estimator_ = evaluation.refit(self.best_index_)
                self.refit_time_ = time.perf_counter() - start
        self.n_splits_, self.cv_results_ = len(splits), results
        self.scorer_ = getattr(scorer, "_scorers", scorer)
        return self


# ---- what is searched ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Setting:
    """Parameters of a model, and the candidates with these parameters, which differ in ranking."""

    params: dict[str, Any]
    unfitted: Any  # the estimator with these parameters
    rankings: dict[int, str | None]  # by number of the candidate; None is the estimator's own

    @property
    def reg(self) -> Any:
        """The ridge, or ridges by view."""
        return getattr(self.unfitted, "reg", 0.0)

    @property
    def least_ridge(self) -> float:
        """The smallest ridge of a view."""
        return float(min(self.reg.values()) if is_mapping(self.reg) else self.reg)

    @property
    def views_without_ridge(self) -> Any:
        """What a basis of the rows depends on."""
        is_by_view = is_mapping(self.reg)
        return {n for n, own in self.reg.items() if not own} if is_by_view else not self.reg

    def of(self, opened: Any) -> Any:
        """An estimator with these parameters and what `opened` has learned."""
        model = clone(self.unfitted)
        own = vars(model)
        own.update({name: value for name, value in vars(opened).items() if name not in own})
        return model

    def ranked_by(self, ranking: str | None, model: Any, bank: Views | None) -> Any:
        """The model itself, or one that ranks in another way."""
        if ranking is None:
            return model
        model = self.of(model)
        model.ranking_ = ranking
        if _corrects(ranking):
            assert bank is not None
            model.bank_ = bank_of(model, bank)
        return model


def _settings(estimator: Any, candidates: Sequence[Mapping[str, Any]]) -> list[_Setting]:
    """Settings of the estimator's parameters, each with the candidates that have them."""
    _check_estimator(estimator)
    settings: list[_Setting] = []
    for number, candidate in enumerate(candidates):
        params = {name: value for name, value in candidate.items() if name != _RANKING}
        ranking = candidate.get(_RANKING)
        if ranking is not None and ranking.removesuffix(CORRECTED) not in SIMILARITIES:
            checked_weighting(ranking)
        same = [own for own in settings if own.params == params]
        if not same:
            same = [_Setting(params, _with_params(estimator, params), {})]
            settings += same
        same[0].rankings[number] = ranking
    return settings


def _check_estimator(estimator: Any) -> None:
    name = type(estimator).__name__
    if not hasattr(estimator, "statistic_of"):
        raise ValueError(
            f"FoldSearchCV solves from statistics that add, and {name} has none. Use GridSearchCV, "
            "or search the last step of a pipeline within it."
        )
    if not hasattr(estimator, "partial_fit"):  # exact KCCA
        raise ValueError(
            f"FoldSearchCV needs a statistic that adds; that of {name} with approximation=None is "
            'as large as the rows. Use GridSearchCV, or set approximation="nystroem".'
        )


def _with_params(estimator: Any, params: Mapping[str, Any]) -> Any:
    """The estimator with parameters and values of which only the solution depends."""
    name, known = type(estimator).__name__, estimator.get_params()
    offered = [own for own in _SEARCHED if own in known] + [_RANKING]
    for own in params:
        if own not in offered:
            what = "change more than the solution" if own in known else "are not its parameters"
            raise ValueError(
                f"FoldSearchCV searches {', '.join(offered)} of {name}; values of {own!r} {what}. "
                "Use GridSearchCV, whose estimator may be a FoldSearchCV."
            )
    if "sigma" in params and known.get("label_features") is not None:
        raise ValueError(
            f"label_features={known['label_features']!r} are drawn for one sigma, so that it "
            "changes more than the solution. Use GridSearchCV, or label_features=None."
        )
    model = clone(estimator).set_params(**params)
    model._validate_params()
    names = dict.fromkeys(["reg", "tau", *searched(model)])
    for own in sorted(names, key=lambda name: getattr(model, name, None) != SEARCHED):
        if isinstance(value := getattr(model, own, None), str):
            raise ValueError(
                f"FoldSearchCV needs values of {own}, got {value!r}, which chooses one from the "
                "rows. Use GridSearchCV."
            )
    return model


def _corrects(ranking: str | None) -> bool:
    return ranking is not None and ranking.endswith(CORRECTED)


# ---- rows and their statistics -------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _FitArguments:
    """What `fit` takes."""

    X: Any
    y: Any = None
    sample_weight: Any = None

    def __len__(self) -> int:
        return int(_num_samples(self.X))

    @property
    def rows(self) -> tuple[Any, ...]:
        """Arguments of a scorer."""
        return (self.X,) if self.y is None else (self.X, self.y)

    def views(self, model: Any) -> Views:
        """The views that a model is fitted to, as it calls them."""
        if holds_views(self.X):
            return self.X
        if model.requires.labels:
            return as_views({"X": self.X})
        y = self.y if np.ndim(self.y) == 2 else np.asarray(to_host(self.y))[:, None]
        return as_views({"X": self.X, "y": y})

    def take(self, objects: np.ndarray) -> _FitArguments:
        """The same of some objects."""
        parts = (self.X, self.y, self.sample_weight)
        return _FitArguments(
            *(part if part is None else _safe_indexing(part, objects) for part in parts)
        )

    def opened_by(self, model: Any) -> tuple[Rows, np.ndarray]:
        """Rows that a model learns from, and the positions of their objects."""
        X, y, weights = self.X, self.y, self.sample_weight
        if not holds_views(X):
            rows = model._open_rows(X, y, weights)
            return rows, np.arange(len(self)) if weights is None else np.flatnonzero(weights)
        if model.requires.labels and y is not None:
            y = LabelsByView.of(X, y)
        if weights is not None:
            check_same_rows("sample_weight", row_labels(weights), "the views", X.ids)
            weights = np.asarray(weights)
        numbered = X.with_ids(np.arange(1, len(X) + 1))  # those from 0 are lost by a selection
        rows = model._open_rows(numbered, y, weights)
        return rows, np.asarray(rows.views.ids) - 1


# ---- models of one training part -----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _TrainingPart:
    """What models of a training part are learned from.

    Attributes
    ----------
    opened : estimator
        What opened the rows: it holds what models of them have in common.
    rows : Rows
        The rows, or all rows where those of the part do not matter.
    statistic
        The statistic of the part.
    held_out : sequence of PairCovariance
        Of the held-out rows, if only correlations of their scores are asked for; in any unit.
    """

    opened: Any
    rows: Rows
    statistic: Any
    held_out: Sequence[PairCovariance] = ()

    def learned(self, setting: _Setting) -> Any:
        """A model, learned from the statistic as by `fit`."""
        model = setting.of(self.opened)
        reg, asked = self._ridges(model), self.rows.reading.asked
        rows = replace(self.rows, reg=reg, n_components=model.n_components)
        rows = rows.read(asked={n: model._depends_on_units(n) and own for n, own in asked.items()})
        model._learn(rows, self.statistic)
        return model

    def each_learned(self, settings: list[_Setting]) -> Iterator[tuple[_Setting, Any]]:
        """Models of all settings; with fewer components, one is the first of another's."""
        for alike in _grouped(settings, lambda own: own.params | {"n_components": None}):
            widest = max(alike, key=lambda own: own.params.get("n_components") or 0)
            model = self.learned(widest)
            nests = model.keeps_solutions or model.nests_components
            for setting in alike:
                k = setting.params.get("n_components")
                if setting is widest:
                    yield setting, model
                elif nests and k is not None and k <= model.n_components_:
                    yield setting, _first_components(setting.of(model), k)
                else:
                    yield setting, self.learned(setting)

    def solved(self, settings: list[_Setting]) -> Iterator[tuple[list[_Setting], list[Any]]]:
        """Models that are solutions with a ridge, by setting; none that rounding would spoil.

        If correlations are all that is asked for, their means come instead.
        """
        for problem in _grouped(settings, lambda own: own.params.get("sigma")):
            model = problem[0].of(self.opened)
            path = MatrixPath.of(model.problem(self.rows, self.statistic), exact=True)
            z = path.regression
            pairs = self.held_out if path.problem.between is None else ()
            pairs = pairs if z is None else z.residual(pairs)
            for own in _grouped(problem, lambda own: own.params.get("reg")):
                try:
                    yield own, self._with_ridge(path, own, pairs)
                except DigitsLost:
                    yield own, []

    def _with_ridge(
        self, path: MatrixPath, settings: list[_Setting], pairs: Sequence[PairCovariance]
    ) -> list[Any]:
        """The models that differ in the number of components and in the power of their scores."""
        models = [setting.of(self.opened) for setting in settings]
        predicts = hasattr(self.opened, "predict")
        reg, numbers = self._ridges(models[0]), [model.n_components for model in models]
        path.check([reg])
        widest = max((k for k in numbers if k is not None), default=None)
        solutions = {k: path.solve(reg, k, expected=not pairs) for k in {*numbers} & {None, widest}}
        solution_of = {k: None if k is None else widest for k in numbers}
        if pairs:
            for k, of_widest in solution_of.items():
                solutions[of_widest].checked(k, signs=False)
            found = {k: path.correlations(maps, pairs) for k, maps in solutions.items()}
            return [float(found[solution_of[k]][:, :k].mean()) for k in numbers]
        lifted = {k: path.lifted(maps, patterns=predicts) for k, maps in solutions.items()}
        for model, k in zip(models, numbers, strict=True):
            maps = lifted[solution_of[k]]
            if k is not None:
                maps = maps.leading(k)
            model._keep(maps.checked(k))
        return models

    def _ridges(self, model: Any) -> dict[str, float]:
        """Ridges of a model that holds what opening the rows has set, such as their units."""
        return dict(model._ridges(self.rows, False))


def _first_components(model: Any, k: int) -> Any:
    """The same model with the first k components."""
    for name in _BY_COMPONENT:
        if hasattr(model, name):
            value = getattr(model, name)
            is_by_view = is_mapping(value)
            first = {view: own[..., :k] for view, own in value.items()} if is_by_view else None
            setattr(model, name, first if is_by_view else value[..., :k])
    model.n_components_ = k
    return model


def _grouped(settings: Sequence[_Setting], key: Callable[[_Setting], Any]) -> list[list[_Setting]]:
    """Settings with equal keys."""
    groups: list[list[_Setting]] = []
    for setting in settings:
        same = [own for own in groups if key(own[0]) == key(setting)]
        if same:
            same[0].append(setting)
        else:
            groups.append([setting])
    return groups


# ---- the search ----------------------------------------------------------------------------------


class _CandidateEvaluation:
    """Source of models of all settings and splits, and their scores.

    Parameters
    ----------
    data : _FitArguments
        All objects.
    settings : list of _Setting
        What is searched.
    splits : list of (train, test)
        Positions of objects.
    score : callable
        Takes a model, X, perhaps y, and arguments with a value per object.
    score_params : dict
        These arguments.

    Attributes
    ----------
    trials : list of dict
        Score and times by candidate and split, candidate by candidate.
    """

    goal = None  # scorers know it

    def __init__(
        self,
        data: _FitArguments,
        settings: list[_Setting],
        splits: list[tuple[np.ndarray, np.ndarray]],
        score: Any,
        score_params: Mapping[str, Any],
    ) -> None:
        # Rows are opened for the smallest ridge, since those without a ridge may need other bases.
        self.settings = sorted(settings, key=lambda own: (own.least_ridge == 0, own.least_ridge))
        self.data, self.splits = data, splits
        self.score, self.score_params = score, score_params
        self.trials: list[dict[str, Any]] = []
        self._seconds = [0.0] * len(splits)  # that models take
        self._is_read_again: set[int] = set()  # settings, by their position
        # What the mean correlation of the scores of all rows needs is in their moments.
        self._asks_correlations = (
            isinstance(score, _PassthroughScorer)
            and data.sample_weight is None
            and not score_params
            and not any(ranking for own in settings for ranking in own.rankings.values())
        )

    def run(self) -> None:
        """Score all candidates."""
        first = self.settings[0]
        self._opened = clone(first.unfitted)
        rows, kept = self.data.opened_by(self._opened)
        self._in_other_units = self._opened_in_other_units(first)
        place = np.full(len(self.data), -1)
        place[kept] = np.arange(len(kept))
        trains, self._tests = (
            [place[part][place[part] >= 0] for part in parts]
            for parts in zip(*self.splits, strict=True)
        )

        def score(rows: Rows) -> None:
            self._parts = Parts.of(self._opened, rows, trains)
            self._seconds = [0.0] * len(self.splits)
            n_candidates = sum(len(own.rankings) for own in self.settings)
            found = search(self, [{}] * n_candidates)
            self.trials = [
                {**found.values[Variant(candidate)][split], "fit_time": seconds / n_candidates}
                for candidate in range(n_candidates)
                for split, seconds in enumerate(self._seconds)
            ]

        climb(rows, score)

    def _opened_in_other_units(self, first: _Setting) -> list[_Setting]:
        """Settings whose rows would be scaled in another way than those of the first.

        Views whose squares leave the range of floats are scaled by column without a ridge, as a
        whole with one.
        """
        units_of = getattr(self._opened, "_exponents_of", None)
        others = [
            own for own in self.settings if own.views_without_ridge != first.views_without_ridge
        ]
        if units_of is None or not others:
            return []
        views = self.data.views(self._opened)
        units = _as_lists(units_of(views))
        return [own for own in others if _as_lists(own.unfitted._exponents_of(views)) != units]

    def refit(self, candidate: int) -> Any:
        """The model of a candidate, fitted to all rows."""
        number = next(i for i, own in enumerate(self.settings) if candidate in own.rankings)
        setting, model = self.settings[number], None
        if number not in self._is_read_again:
            with suppress(DigitsLost):
                whole = _TrainingPart(self._opened, *self._parts.whole())
                model = whole.learned(setting)
                model._statistic = None  # as after `fit`
        if model is None:
            model = clone(setting.unfitted)
            with warnings.catch_warnings(action="ignore", category=DataDimensionalityWarning):
                model.fit(self.data.X, self.data.y, self.data.sample_weight)  # folds chose no ridge
        ranking = setting.rankings[candidate]
        bank = bank_rows(self.data.views(model)) if _corrects(ranking) else None
        return setting.ranked_by(ranking, model, bank)

    def models(self) -> Models:
        """One model of each setting per split."""
        return one_left_out(len(self.splits))

    def solved(
        self, left_out: tuple[int, ...], settings: Sequence[Setting]
    ) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """By candidate, the model of a training part, or its score, and what scores it."""
        [split] = left_out
        train, test = self.splits[split]
        held_out = bank = None
        corrects = any(_corrects(own) for each in self.settings for own in each.rankings.values())
        with _naming(split, len(self.splits)):
            start = time.perf_counter()
            for setting, model in self._models(split):
                self._seconds[split] += time.perf_counter() - start
                if held_out is None and not isinstance(model, float):
                    held_out = self.data.take(test)
                if bank is None and corrects:
                    bank = bank_rows(self.data.take(train).views(model))
                for candidate, ranking in setting.rankings.items():
                    yield candidate, (setting, ranking, model, bank, held_out)
                start = time.perf_counter()

    def values(
        self, model: tuple[Any, ...], fold: int
    ) -> Iterator[tuple[None, None, dict[str, Any]]]:
        """Score and time of a candidate."""
        setting, *of_model, held_out = model
        value, test = of_model[1], self.splits[fold][1]
        with _naming(fold, len(self.splits)):
            params = _check_method_params(self.data.X, params=self.score_params, indices=test)
            start = time.perf_counter()
            if held_out is not None:
                value = self.score(setting.ranked_by(*of_model), *held_out.rows, **params)
        yield None, None, {"test_scores": value, "score_time": time.perf_counter() - start}

    def _models(self, split: int) -> Iterator[tuple[_Setting, Any]]:
        """The model of each setting for the training part of a split."""
        asks = self._asks_correlations
        held_out = self._parts.pairs_of(self._tests[split]) if asks else ()
        part = _TrainingPart(self._opened, *self._parts[split], held_out)
        is_in_float64 = part.rows.reading.products == _FLOAT64
        solved, learned, from_rows = self._routes(split)
        for settings, models in part.solved(solved):
            if not models and not is_in_float64:
                raise DigitsLost(part.rows.views.names)
            from_rows += settings if not models else []
            yield from zip(settings, models, strict=False)
        try:
            yield from part.each_learned(learned)
        except DigitsLost:  # of any: views do not differ between settings
            if not is_in_float64:
                raise
            from_rows += learned
        self._is_read_again |= {self.settings.index(own) for own in from_rows}
        del part  # a statistic that those that follow do not need
        yield from self._from_rows(split, from_rows)

    def _routes(self, split: int) -> tuple[list[_Setting], list[_Setting], list[_Setting]]:
        """Settings to solve by a path of ridges, to learn as `fit` does, and to read rows for.

        Without a ridge, weights are unique only in views with more training rows than features; in
        others they depend on the basis that the rows of the training part themselves give.
        """
        rows, train = self._parts.rows, self._parts.trains[split]
        heights, widths = rows.views.seen[train].sum(axis=0), rows.views.widths.values()
        is_tall = not rows.reading.bases and all(heights >= list(widths))
        may_learn = is_tall or self._opened.requires.features
        routes: tuple[list[_Setting], ...] = [], [], []
        for setting in self.settings:
            if setting in self._in_other_units:
                routes[2].append(setting)
                continue
            is_solved = setting.least_ridge > 0 and self._opened.keeps_solutions
            routes[0 if is_solved else 1 if may_learn else 2].append(setting)
        return routes[0], routes[1], routes[2]

    def _from_rows(self, split: int, settings: list[_Setting]) -> Iterator[tuple[_Setting, Any]]:
        """Models that are learned from the rows of the training part, read once for all of them."""
        data = self.data.take(self.splits[split][0]) if settings else self.data
        ascending = sorted(settings, key=lambda own: own.least_ridge)
        for alike in _grouped(ascending, lambda own: own.views_without_ridge):
            opened = clone(alike[0].unfitted)
            rows, _ = data.opened_by(opened)

            def learned(
                rows: Rows, opened: Any = opened, alike: list[_Setting] = alike
            ) -> list[tuple[_Setting, Any]]:
                part = _TrainingPart(opened, rows, opened.statistic_of(rows))
                return list(part.each_learned(alike))

            yield from climb(rows, learned)


def _as_lists(exponents: Mapping[str, np.ndarray]) -> dict[str, list[int]]:
    return {name: own.tolist() for name, own in exponents.items()}


@contextmanager
def _naming(split: int, n_splits: int) -> Iterator[None]:
    """Name the split in errors about its rows."""
    try:
        yield
    except ValueError as error:
        if type(error) is not ValueError:
            raise
        raise ValueError(
            f"Split {split} of {n_splits} (from 0) cannot be fitted and scored: {error} If the "
            "rows of that split are the cause, divide the objects in another way (cv=)."
        ) from error


@contextmanager
def _each_warning_once() -> Iterator[None]:
    """Repeat no warning that several models give."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
    finally:
        distinct = {(str(own.message), own.category): None for own in caught}
        for message, category in distinct:
            warn(message, category)
