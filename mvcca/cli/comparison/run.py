"""Fit methods to a case and measure each of them on the held-out objects.

All methods use the same rows. A method that cannot be fitted is an outcome with a reason; warnings
are stored with the outcome that caused them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from mvcca.cli import networks
from mvcca.cli.comparison.case import Case, split
from mvcca.cli.errors import CommandError, UsageError
from mvcca.cli.labels import Labels
from mvcca.cli.methods import METHODS, Method
from mvcca.cli.options import NETWORK_FLAGS
from mvcca.retrieval import Measure, RetrievalTable, evaluate_retrieval
from mvcca.retrieval.declared import Ranking
from mvcca.retrieval.similarity import Similarity
from mvcca.views import Views

REG = 0.1
Report = Callable[[str], None]  # shows progress


@dataclass(frozen=True)
class Settings:
    """Settings of a comparison.

    Attributes
    ----------
    methods : tuple of str
        Names in `METHODS`.
    options : dict
        Parameters for all estimators that have them.
    regs : tuple of float or str
        Ridges. Of several, each method uses the best on a fifth of the training objects. The
        default is `REG`, and that of `mvcca.cli.networks` for networks.
    measures : tuple of str
        Measures of `mvcca.retrieval.evaluate_retrieval`; the first one determines the best method.
    relevance : {"pairs", "labels"} or None
        Definition of relevant items; None is the default of each measure.
    seed : int
        Seed of random generators.
    """

    methods: tuple[str, ...]
    options: dict[str, Any]
    regs: tuple[float | str, ...]
    measures: tuple[str, ...]
    relevance: Any
    seed: int


@dataclass(frozen=True, eq=False)
class Fitted:
    """A method fitted to a case.

    Attributes
    ----------
    title : str
        Name of the method.
    learns_from : str
        Pairs, or the kind of labels.
    estimator : estimator
        The fitted estimator.
    seconds : float
        Duration of the fit.
    train, test : Views
        Projected training and held-out objects.
    ranking : Ranking
        The similarity that the method declares.
    ranked : Views
        Held-out objects as rows for this similarity; `test` for most methods.
    retrieval : RetrievalTable
        Measures on the held-out objects.
    warnings : tuple of str
        Distinct warnings of the fit.
    """

    title: str
    learns_from: str
    estimator: Any
    seconds: float
    train: Views
    test: Views
    ranking: Ranking
    ranked: Views
    retrieval: RetrievalTable
    warnings: tuple[str, ...]

    @property
    def name(self) -> str:
        """The method, with the labels it learned from."""
        return self.title if self.learns_from == "pairs" else f"{self.title} ({self.learns_from})"


@dataclass(frozen=True)
class Skipped:
    """A method that cannot be fitted to a case, and the reason."""

    title: str
    reason: str


Outcome = Fitted | Skipped


def check_settings(settings: Settings) -> None:
    """Raise for unknown measures, and for options that none of the methods has."""
    for name in settings.measures:
        try:
            Measure.parse(name)
        except ValueError as error:
            raise UsageError(str(error)) from error
    taken: set[str] = set().union(*(METHODS[name].takes() for name in settings.methods))
    for option in settings.options.keys() - taken - {"random_state"}:
        flag = NETWORK_FLAGS.get(option, "--" + option.replace("_", "-"))
        raise UsageError(f"{flag} is not a parameter of {', '.join(settings.methods)}")


def run_case(case: Case, settings: Settings, report: Report) -> list[Outcome]:
    """Fit and measure all methods; methods that learn from labels, once for each kind of labels."""
    _check_relevance(case, settings)
    outcomes = []
    for name, kind in _runs(case, settings):
        title = f"{case.title}: {METHODS[name].title}"
        report(title)
        outcomes.append(_run(METHODS[name], kind, case, settings, _prefixed(title, report)))
    skipped = [outcome for outcome in outcomes if isinstance(outcome, Skipped)]
    if len(skipped) == len(outcomes):
        reasons = dict.fromkeys(f"{outcome.title}: {outcome.reason}" for outcome in skipped)
        raise CommandError(f"no method could be fitted. {'; '.join(reasons)}")
    return outcomes


def at_random(case: Case, settings: Settings) -> RetrievalTable:
    """Measures of random scores, the chance level."""
    rng = np.random.default_rng(settings.seed)
    noise = {name: rng.standard_normal((X.shape[0], 8)) for name, X in case.test.items()}
    return _measure(case.test.replace(noise), "cosine", case.test_relevance, settings)


def best_of(fitted: Sequence[Fitted]) -> Fitted:
    """The method with the best first measure."""
    return max(fitted, key=lambda outcome: _goodness(outcome.retrieval))


def _runs(case: Case, settings: Settings) -> Iterator[tuple[str, str]]:
    for name in settings.methods:
        kinds = list(case.labels) if METHODS[name].learns_from != "pairs" else []
        yield from ((name, kind) for kind in kinds or [""])


def _run(method: Method, kind: str, case: Case, settings: Settings, report: Report) -> Outcome:
    if method.learns_from == "pairs" and not case.has_pairs:
        return Skipped(method.title, "needs objects seen in two views; these are unpaired")
    if method.learns_from != "pairs" and not kind:
        return Skipped(method.title, "needs labels")
    labels = case.labels.get(kind)
    y = None if labels is None else labels.vectors
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            parameters = _parameters(method, case, labels, settings, report)
            estimator = method.build(parameters)
            if not method.is_deep:
                _warm_up(method, estimator, case.train, y)
            caught.clear()
            start = perf_counter()
            with networks.epochs_reported(estimator, report):
                method.fit(estimator, case.train, y)
            seconds = perf_counter() - start
        except (ValueError, RuntimeError) as error:  # the estimator rejects the case
            return Skipped(method.title, " ".join(str(error).split()))
        train, test = estimator.transform(case.train), estimator.transform(case.test)
        ranking = Ranking.of(estimator)
        ranked = test if ranking.method == "transform" else ranking.project(case.test)
        retrieval = _measure(ranked, ranking.similarity, case.test_relevance, settings)
    return Fitted(
        method.title,
        _learns_from(method, kind, case),
        estimator,
        seconds,
        train,
        test,
        ranking,
        ranked,
        retrieval,
        tuple(dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught)),
    )


def _prefixed(title: str, report: Report) -> Report:
    """Report messages after a title."""
    return lambda message: report(f"{title}, {message}")


def _learns_from(method: Method, kind: str, case: Case) -> str:
    if method.learns_from == "labels as a view" and case.has_pairs:
        return f"pairs, {kind}" if kind else "pairs"
    return "pairs" if method.learns_from == "pairs" else kind


def _parameters(
    method: Method, case: Case, labels: Labels | None, settings: Settings, report: Report
) -> dict[str, Any]:
    """The user's parameters and the defaults, with the best of several ridges."""
    defaults = networks.defaults(method, settings.options, len(case.train))
    parameters = {"reg": REG, **defaults, **settings.options}
    if len(settings.regs) > 1 and "reg" in method.takes():
        fit, held_out = split(case.train, 0.2, settings.seed)
        relevance = None if case.train_relevance is None else case.train_relevance[held_out]
        y = None if labels is None else labels[fit].vectors

        def goodness(reg: float | str) -> float:
            estimator = method.build({**parameters, "reg": reg})
            with networks.epochs_reported(estimator, _prefixed(f"reg {reg}", report)):
                method.fit(estimator, case.train[fit], y)
            ranking = Ranking.of(estimator)
            rows = ranking.project(case.train[held_out])
            return _goodness(_measure(rows, ranking.similarity, relevance, settings))

        return {**parameters, "reg": max(settings.regs, key=goodness)}
    return {**parameters, **({"reg": settings.regs[0]} if settings.regs else {})}


def _warm_up(method: Method, estimator: Any, views: Views, y: Any) -> None:
    """Fit to few rows first, so that compilation and imports are not timed."""
    with suppress(ValueError):
        few = np.linspace(0, len(views) - 1, min(100, len(views)), dtype=int)
        method.fit(estimator, views[few], None if y is None else y[few])


def _measure(
    rows: Views, similarity: Similarity, relevance: Labels | None, settings: Settings
) -> RetrievalTable:
    labels = relevance.vectors if relevance is not None and relevance.are_sets else None
    return evaluate_retrieval(
        rows,
        labels,
        measures=settings.measures,
        similarity=similarity,
        relevance=settings.relevance,
    )


def _check_relevance(case: Case, settings: Settings) -> None:
    has_labels = case.relevance_vectors is not None
    if settings.relevance == "labels" and not has_labels:
        raise CommandError("--relevance labels needs classes or label sets; there are none")
    if settings.relevance == "pairs" and not case.has_pairs:
        raise CommandError("--relevance pairs needs objects seen in two views; there are none")
    if not (has_labels or case.has_pairs):
        raise CommandError(
            "no item is relevant to any query: the views are unpaired, and real label vectors do "
            "not define relevance. Give classes or label sets"
        )


def _goodness(retrieval: RetrievalTable) -> float:
    name, value = next(iter(retrieval.mean().items()))
    return -value if Measure.parse(name).smaller_is_better else value
