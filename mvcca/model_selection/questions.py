"""Questions of any views about another: which evidence ranks the items of held-out rows best.

A question is solved when it is first asked. Its candidates are CCA of all query views side by side,
the sum of what each tells by itself, and the space that all views share.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from mvcca.model_selection.fold_statistics import Models
from mvcca.model_selection.goals import BANK_ROWS, Goal, Value, hub_terms, mean_over_queries
from mvcca.model_selection.search import DIGITS, Setting, search
from mvcca.model_selection.sources import FromStatistic
from mvcca.model_selection.spaces import RIDGES, SEARCHED, Space
from mvcca.problem import Maps, Problem
from mvcca.problem.question import (
    LIKELIHOOD,
    PROFILE,
    JointGaussian,
    Ratio,
    RatioSum,
    SharedSpace,
    coordinates_of,
    rows_in_coordinates,
)
from mvcca.retrieval.ranking import CORRECTED, chosen_ranking
from mvcca.views import Views
from mvcca.views.labels_by_view import LabelsByView

MOST_FEATURES = 3000  # of all views, above which covariances of folds are not kept unasked
JOINT, PAIRS, SHARED = "joint", "pairs", "shared"
_GAIN = 0.005  # in what is missing to a value of 1, for which a view is kept

Names = tuple[str, ...]
Ridges = tuple[float, ...]
Rows = dict[str, np.ndarray]  # (n_rows, r_v) by view
Ratios = Mapping[str, tuple[Ratio, ...]]  # by ranking
# Rows of a question that a training part does not know: sides by fold, with what is relevant, and
# others that correct for hubs, if there are some.
_Sides = tuple[Rows, np.ndarray, Any]
_HeldOut = tuple[dict[int, _Sides], Rows | None]
# What evidence of one training part compares, rankings to try, and the rows that it ranks.
_Model = tuple[Ratios, list[str], _HeldOut]


@dataclass(frozen=True, eq=False)
class TrainingCovariance:
    """What the rows outside some folds say, in the coordinates of all rows.

    Attributes
    ----------
    left_out : tuple of int
        The folds.
    gaussian : JointGaussian
        Covariances of the rows, in float32.
    means : dict of str to ndarray, shape (r_v,)
        Means of the rows.
    shared : SharedSpace
        The shared space that these rows give.
    """

    left_out: tuple[int, ...]
    gaussian: JointGaussian
    means: dict[str, np.ndarray]
    shared: SharedSpace


@dataclass(frozen=True, eq=False)
class Evidence:
    """What ranks the items of a target, and how good it is on held-out rows.

    Attributes
    ----------
    query : tuple of str
        The query views that count.
    kind : {"joint", "pairs", "shared"}
        One model of the query views side by side, each query view by itself, or the shared space.
    reg : dict of str to float
        Ridge that goes with each query view; none for the shared space.
    ranking : str
        How items are ranked, as ``ranking_`` of estimators.
    value : float
        What the goal maximizes, averaged over the folds.
    n_components : int or None
        How many components rank; None for all.
    """

    query: Names
    kind: str
    reg: dict[str, float]
    ranking: str = ""
    value: float = float("nan")
    n_components: int | None = None


@dataclass(frozen=True, eq=False)
class Questions:
    """Any views as a query, any other as the target: solved from the covariance of all views.

    Attributes
    ----------
    weights, means : dict of str to ndarray
        Affine maps from the features of each view to the coordinates of everything below.
    gaussian : JointGaussian
        Covariances of all rows.
    reg : dict of str to float
        Ridge of each view, where folds choose none.
    shared : SharedSpace
        The space that all views share.
    ranking : str
        How it ranks.
    parts : tuple of TrainingCovariance
        Training parts of folds, to choose by; none if the ridge was given.
    samples : tuple of Views
        Coordinates of rows of each fold, in float32; they also correct for hubs.
    is_given : bool
        Whether a user asked for questions to be solved, so that the shared space is no candidate.
    chosen : dict
        What was chosen, by query views and target views.
    goal : {"object", "class"}
        What the folds maximize.
    labels : tuple of LabelsByView
        Labels of the rows of `samples`, by which items are relevant; for a class goal.
    n_components : int or None
        How many components rank for a class goal; None lets folds choose.
    related : tuple of str
        Views that are correlated with another one beyond chance.
    """

    weights: dict[str, np.ndarray]
    means: dict[str, np.ndarray]
    gaussian: JointGaussian
    reg: dict[str, float]
    shared: SharedSpace
    ranking: str
    parts: tuple[TrainingCovariance, ...] = ()
    samples: tuple[Views, ...] = ()
    is_given: bool = False
    chosen: dict[tuple[Names, Names, str], Evidence] = field(default_factory=dict)
    goal: Goal = "object"
    labels: tuple[LabelsByView, ...] = ()
    n_components: int | None = None
    related: Names = ()
    _searches: dict[tuple[Names, Names, str, Ridges], list[Evidence]] = field(
        default_factory=dict, init=False, repr=False
    )
    _answers: dict[tuple[Names, Names, str], RatioSum] = field(
        default_factory=dict, init=False, repr=False
    )

    @classmethod
    def of(cls, estimator: Any, problem: Problem, source: FromStatistic | None = None) -> Self:
        """Questions to a solved problem, with the training parts of folds to choose by.

        It is one that `JointGaussian` takes. Ridges, and the number of components of the shared
        space, are those of its rows.
        """
        maps, back, ridges = coordinates_of(problem)
        rows, about = problem.rows, problem.about
        shared = _shared_space(estimator, problem, back)
        to_rows = Maps(maps, {n: about.means[n] for n in maps})
        of_features = to_rows.lifted(rows.reading.bases)
        if exponents := getattr(estimator, "_exponents", {}):  # of views that a fit has scaled
            of_features = of_features.rescaled(exponents)
        parts: list[TrainingCovariance] = []
        samples: dict[int, Views] = {}
        labels: tuple[LabelsByView, ...] = ()
        if source is not None and source.goal == "class":
            labels = tuple(own.labels for own in source.samples if own.labels is not None)
        for number, (left_out, _) in enumerate([] if source is None else source.folds.models()):
            assert source is not None
            own_rows, statistic = source.parts[number]
            own_rows = replace(own_rows, reg=rows.reg, n_components=rows.n_components)
            own = estimator.problem(own_rows, statistic)
            gaussian = JointGaussian.of(own, maps, ridges).in_float32()
            shifts = {n: (own.about.means[n] - about.means[n]) @ W for n, W in maps.items()}
            parts.append(
                TrainingCovariance(left_out, gaussian, shifts, _shared_space(estimator, own, back))
            )
            others = range(source.folds.n_folds, len(source.samples))  # of no fold
            for fold in [*left_out, *others]:
                views = source.samples[fold].views
                found = rows_in_coordinates(own, views, maps)
                blocks = {n: (Y + shifts[n]).astype(np.float32) for n, Y in found.items()}
                samples[fold] = views.select(list(maps)).replace(blocks)
        return cls(
            of_features.weights,
            of_features.means,
            JointGaussian.of(problem, maps, ridges),
            dict(rows.reg),
            shared,
            chosen_ranking(estimator)[1],
            tuple(parts),
            tuple(samples[fold] for fold in sorted(samples)),
            getattr(estimator, "solve", None) == "conditional",
            goal=estimator.question_goal,
            labels=labels,
            n_components=estimator.n_components if labels else None,
            related=tuple(sorted(problem.related)),
        )

    @property
    def views(self) -> Names:
        """The views, in order."""
        return tuple(self.weights)

    def check(self, n_features: Mapping[str, int]) -> None:
        """Raise ValueError unless the arrays fit together, and the views have so many features."""
        widths = self.gaussian.widths
        if not widths.keys() == self.weights.keys() == self.means.keys() == n_features.keys():
            raise ValueError(f"questions between {list(widths)} are not those of the views")
        total = sum(widths.values())
        shapes: list[tuple[Any, Any]] = [
            (self.weights[n].shape, (n_features[n], r)) for n, r in widths.items()
        ]
        shapes += [(self.means[n].shape, (n_features[n],)) for n in widths]
        for own in (self.gaussian, *(part.gaussian for part in self.parts)):
            shapes.append((own.covariance.shape, (total, total)))
            if own.by_labels is not None:
                shapes.append((own.by_labels.shape, (total, total)))
            shapes += [(own.ridges[n].shape, (r, r)) for n, r in widths.items()]
        for space in (self.shared, *(part.shared for part in self.parts)):
            k = len(space.mean)
            shapes += [(space.weights[n].shape, (r, k)) for n, r in widths.items()]
        shapes += [(views[n].shape[1:], (r,)) for views in self.samples for n, r in widths.items()]
        if any(found != expected for found, expected in shapes):
            raise ValueError("arrays of questions_ do not fit together")

    # ---- answers ---------------------------------------------------------------------------------

    def answer(self, query: Collection[str], target: Sequence[str], ranking: str = "") -> RatioSum:
        """How items of the target are ranked for rows of the query, in any order of its views.

        A view that is asked about itself, and several target views, are compared in the shared
        space. `ranking` names one to use, by default the best on held-out rows.
        """
        asked = tuple(name for name in self.views if name in query)
        key = asked, tuple(target), ranking
        if key not in self._answers:
            self._answers[key] = self._solved(*key)
        return self._answers[key]

    def in_shared_space(self, query: Collection[str], target: Sequence[str]) -> RatioSum:
        """How the shared space ranks them, whatever is better."""
        asked = [name for name in self.views if name in query]
        return RatioSum(self.shared.ratios(asked, target, self.ranking), self.ranking)

    def _solved(self, query: Names, target: Names, ranking: str) -> RatioSum:
        if len(target) > 1 or target[0] in query:
            return self.in_shared_space(query, target)
        choice = self.choice(query, target, ranking)
        if choice is None:
            name = ranking or PROFILE
            of_likelihood, of_profile = self.gaussian.solve(query, target, self.reg)
            ratio = of_likelihood if name.startswith(LIKELIHOOD) else of_profile
            return RatioSum((ratio,), name)
        of_all = self.ratios(self.gaussian, self.shared, choice, target)
        return RatioSum(of_all[choice.ranking.removesuffix(CORRECTED)], choice.ranking)

    def ratios(
        self, gaussian: JointGaussian, shared: SharedSpace, evidence: Evidence, target: Names
    ) -> Ratios:
        """What evidence compares, by ranking without its correction for hubs."""
        query, k = evidence.query, evidence.n_components
        if evidence.kind == SHARED:
            name = self.ranking.removesuffix(CORRECTED)
            return {name: tuple(own.leading(k) for own in shared.ratios(query, target, name))}
        sides = [query] if evidence.kind == JOINT else [(name,) for name in query]
        found = [
            gaussian.solve(side, target, dict.fromkeys(self.views, evidence.reg[side[0]]))
            for side in sides
        ]
        by_ranking = zip((LIKELIHOOD, PROFILE), zip(*found, strict=True), strict=True)
        return {name: tuple(own.leading(k) for own in ratios) for name, ratios in by_ranking}

    # ---- what folds choose -----------------------------------------------------------------------

    def choice(self, query: Names, target: Names, ranking: str = "") -> Evidence | None:
        """What folds choose, query views that hurt left out; None if there are none to choose by.

        Views that are correlated with no other one beyond chance are left out first, unless that
        takes .005 from the mean over the folds. Others are left out one after another, while the
        mean is at most half a percent further from 1 than the largest one. What is left is first
        tried with three ridges: the best one before, and those beside it.
        """
        key = query, target, ranking
        if key in self.chosen or not self.parts:
            return self.chosen.get(key)
        best = self._best(query, target, ranking)
        related = tuple(name for name in query if name in self.related)
        if best is not None and 0 < len(related) < len(query):
            other = self._best(related, target, ranking)
            best = other if other is not None and other.value > best.value - _GAIN else best
        most = -np.inf if best is None else best.value
        while best is not None and len(best.query) > 1:
            fewer = [tuple(n for n in best.query if n != name) for name in best.query]
            near = self._neighbours(best.query, target, ranking)
            found = [self._best(own, target, ranking, near) for own in fewer]
            rival = max((own for own in found if own is not None), key=_value, default=best)
            if rival is best or rival.value < most - _GAIN * (1 - most):
                break
            best = self._best(rival.query, target, ranking)
            most = max(most, rival.value)
        if best is not None:
            self.chosen[key] = best
        return best

    def _best(
        self, query: Names, target: Names, ranking: str, ridges: Ridges = RIDGES
    ) -> Evidence | None:
        """The best evidence of all of these query views; None if folds hold no such objects."""
        found = self.best_of_each_kind(query, target, ranking, ridges)
        return max(found, key=_value, default=None)

    def _neighbours(self, query: Names, target: Names, ranking: str) -> Ridges:
        """The best ridge of these query views side by side, and those beside it."""
        found = {own.kind: own for own in self.best_of_each_kind(query, target, ranking)}
        if JOINT not in found:
            return RIDGES
        place = RIDGES.index(found[JOINT].reg[query[0]])
        return RIDGES[max(place - 1, 0) : place + 2]

    def best_of_each_kind(
        self, query: Names, target: Names, ranking: str = "", ridges: Ridges = RIDGES
    ) -> list[Evidence]:
        """The best evidence of each kind; of equally good kinds, the first is better."""
        # One view alone is searched with all ridges: several questions ask for it.
        ridges = ridges if len(query) > 1 else RIDGES
        key = query, target, ranking, ridges
        if key not in self._searches:
            evidence = [Evidence(query, JOINT, dict.fromkeys(query, reg)) for reg in ridges]
            if len(query) > 1:
                of_each = [self.best_of_each_kind((name,), target, ranking) for name in query]
                if all(of_each):
                    reg = {own[0].query[0]: own[0].reg[own[0].query[0]] for own in of_each}
                    evidence.append(Evidence(query, PAIRS, reg))
            if not self.is_given:
                evidence.append(Evidence(query, SHARED, {}))
            self._searches[key] = self._search(evidence, target, ranking)
        return self._searches[key]

    def _search(self, evidence: list[Evidence], target: Names, ranking: str) -> list[Evidence]:
        settings = [{"evidence": own} for own in evidence]
        trials = search(_FromQuestions(self, target, ranking), settings)
        found: list[Evidence] = []
        n_folds = max(map(len, trials.values.values()), default=1)
        for kind in dict.fromkeys(own.kind for own in evidence):

            def is_wanted(setting: Setting, kind: str = kind) -> bool:
                return bool(setting["evidence"].kind == kind)

            of_kind = trials.among(is_wanted)
            if any(len(own) == n_folds for own in of_kind.values.values()):
                best, own = of_kind.best, evidence[of_kind.best.setting]
                own = replace(own, ranking=str(best.ranking), n_components=best.n_components)
                found.append(replace(own, value=round(float(of_kind.on_folds.mean()), DIGITS)))
        return found


def asks_questions(estimator: Any, widths: Mapping[str, int], goal: Goal | None) -> bool:
    """Whether an estimator solves questions between views of these widths.

    `goal` is what folds maximize; None if there are none.
    """
    own, solve = getattr(estimator, "question_goal", None), getattr(estimator, "solve", "auto")
    if own is None or solve == "shared" or goal not in (None, own):
        return False
    if len(widths) < 3:  # two views are the same either way
        return False
    return solve == "conditional" or (goal == own and sum(widths.values()) <= MOST_FEATURES)


def keep_questions(estimator: Any, problem: Problem, source: FromStatistic | None = None) -> None:
    """Keep what any views tell of any other in ``questions_``, for methods that answer questions.

    Parameters
    ----------
    estimator : estimator
        A fitted one.
    problem : Problem
        The problem that it has solved, of all rows.
    source : FromStatistic, optional
        The training parts of folds, by which questions are answered. Without them, nothing is kept
        if folds are to choose the ridge.
    """
    vars(estimator).pop("questions_", None)
    if estimator.reg == SEARCHED and source is None:
        return  # folds come later
    if problem.between is not None and not problem.rows.views.seen.all():
        return  # of sums by label, no covariance by pairs of views is known
    widths = {name: len(mean) for name, mean in problem.about.means.items()}
    if asks_questions(estimator, widths, None if source is None else source.goal):
        estimator.questions_ = Questions.of(estimator, problem, source)


def _value(evidence: Evidence) -> tuple[float, Names]:
    """By which the best evidence is found, the same in any order of the views."""
    return evidence.value, tuple(sorted(evidence.query))


@dataclass(frozen=True, eq=False)
class _FromQuestions:
    """Evidence that is learned from the training part of each fold."""

    questions: Questions
    target: Names
    ranking: str

    @property
    def goal(self) -> Goal:
        """What values measure."""
        return self.questions.goal

    def models(self) -> Models:
        """As of the folds."""
        parts = self.questions.parts
        return [(part.left_out, part.left_out) for part in parts]

    def solved(
        self, left_out: tuple[int, ...], settings: Sequence[Setting]
    ) -> Iterator[tuple[int, _Model]]:
        """What each evidence compares, but evidence of views that share no rows."""
        questions = self.questions
        [part] = [own for own in questions.parts if own.left_out == left_out]
        held_out = self._held_out(part, settings[0]["evidence"].query)
        for number, setting in enumerate(settings):
            evidence: Evidence = setting["evidence"]
            try:
                ratios = questions.ratios(part.gaussian, part.shared, evidence, self.target)
            except ValueError:  # no two objects of this part show both
                continue
            names = [*ratios]
            if self.goal == "object":
                names += [f"{plain}{CORRECTED}" for plain in ratios]
            if evidence.kind == SHARED:
                names = [questions.ranking]
            if self.ranking:
                names = [name for name in names if name == self.ranking]
            yield number, (ratios, names, held_out)

    def _held_out(self, part: TrainingCovariance, query: Names) -> _HeldOut:
        """Rows of query views and the target, less the means of a training part."""
        samples, means, labels = self.questions.samples, part.means, self.questions.labels
        sides = {
            fold: _sides(samples[fold], query, self.target, means, labels[fold] if labels else None)
            for fold in part.left_out
        }
        others = [own for n, own in enumerate(samples) if n not in part.left_out]
        others = others if self.goal == "object" else []  # whose rankings they correct
        each = -(-BANK_ROWS // max(len(others), 1))
        rows = [_rows_of(own[:each], query, means) for own in others]
        return sides, {n: np.concatenate([own[n] for own in rows]) for n in query} if rows else None

    def values(self, model: _Model, fold: int) -> Iterator[tuple[str, int | None, Value]]:
        """Values by ranking, and for a class goal by number of components.

        There are none on a fold without objects that show all of the views.
        """
        by_ranking, rankings, (sides, bank) = model
        if not len(next(iter(sides[fold][0].values()))):
            return
        for plain, ratios in by_ranking.items():
            names = [name for name in rankings if name.removesuffix(CORRECTED) == plain]
            for k in self._numbers_of_components(ratios):
                answer = RatioSum(tuple(ratio.leading(k) for ratio in ratios), plain)
                for name, value in self._values(answer, names, sides[fold], bank):
                    yield name, k, value

    def _numbers_of_components(self, ratios: tuple[Ratio, ...]) -> list[int | None]:
        questions = self.questions
        if self.goal == "object":  # weights do it
            return [None]
        if questions.n_components is not None:
            return [questions.n_components]
        return Space.numbers_of_components(max(len(ratio.squares) for ratio in ratios))

    def _values(
        self, answer: RatioSum, names: list[str], sides: _Sides, bank: Rows | None
    ) -> Iterator[tuple[str, Value]]:
        """Values of one answer on the rows of a fold."""
        (queries, items, relevant), plain = sides, answer.ranking
        if names:
            vectors = _single(answer.item_vectors(items, answer.item_terms(items))).T
            similarities = _single(answer.query_vectors(queries)) @ vectors
            if plain in names:
                yield plain, mean_over_queries(self.goal, similarities, relevant)
            if f"{plain}{CORRECTED}" in names and bank is not None:
                terms = hub_terms(_single(answer.query_vectors(bank)) @ vectors)
                if terms is not None:
                    value = mean_over_queries(self.goal, similarities - terms, relevant)
                    yield f"{plain}{CORRECTED}", value


def _shared_space(estimator: Any, problem: Problem, back: Mapping[str, np.ndarray]) -> SharedSpace:
    """The shared space of a problem, in the coordinates whose maps lead `back` to its rows."""
    with warnings.catch_warnings(action="ignore"):  # the fit has given them
        maps = problem.solve(problem.rows.n_components, lift=False)
    maps = maps.lifted(problem.units) if problem.units else maps
    return SharedSpace.of(maps, back, estimator.power)


def _rows_of(views: Views, names: Sequence[str], means: Mapping[str, np.ndarray]) -> Rows:
    """Centred rows of the objects that are seen in all of some views."""
    objects = np.flatnonzero(views.select(names).seen.all(axis=1))
    return _rows_at(views, names, objects, means)


def _rows_at(
    views: Views, names: Sequence[str], objects: np.ndarray, means: Mapping[str, np.ndarray]
) -> Rows:
    places = {n: np.searchsorted(views.objects(n), objects) for n in names}
    return {n: views[n][places[n]] - means[n] for n in names}


def _sides(
    views: Views,
    query: Names,
    target: Names,
    means: Mapping[str, np.ndarray],
    labels: LabelsByView | None,
) -> _Sides:
    """Rows of the queries that have an item, those of all items, and what is relevant."""
    seen = dict(zip(views.names, views.seen.T, strict=True))
    items = np.flatnonzero(np.all([seen[name] for name in target], axis=0))
    asked = np.flatnonzero(np.all([seen[name] for name in (*query, *target)], axis=0))
    own = _rows_at(views, target, items, means)
    relevant: Any = np.arange(len(asked)), np.searchsorted(items, asked)
    if labels is not None:
        vectors = labels.distinct.dense()
        of_items, of_queries = (  # as their first views are labelled
            labels.codes[name][np.searchsorted(views.objects(name), objects)]
            for name, objects in ((target[0], items), (query[0], asked))
        )
        is_shared = (vectors @ vectors.T > 0)[np.ix_(of_queries, of_items)]
        relevant = is_shared, relevant
    return _rows_at(views, query, asked, means), np.hstack([own[n] for n in target]), relevant


def _single(vectors: np.ndarray) -> np.ndarray:
    return vectors.astype(np.float32)
