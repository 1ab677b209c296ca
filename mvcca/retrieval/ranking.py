"""The ranking of an estimator: as its fit chose it, as its class declares it, or as a user asks.

A ranking is two functions, from projected rows to query vectors and to item vectors, and one inner
product. A weighting makes the rows to compare from the scores of each view, these are added over
views, and the similarity makes vectors of the sums. A correction for hubs then appends components
to the vectors. Evaluation, index, scorers, plots and the command line all get their ranking from
`Ranking.of`, which reads `ranking_` and `bank_` of a tuned estimator and `retrieval_ranking` of any
other. A new weighting is a case of `_weighted_by`, with its name in `WEIGHTINGS`.
"""

from __future__ import annotations

from collections.abc import Collection as Names
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from mvcca.blocks import as_block, namespace
from mvcca.problem.expected import LARGEST_CORRELATION, Expected, component_weights
from mvcca.problem.question import LIKELIHOOD, PROFILE, RatioSum
from mvcca.retrieval.collection import Collection, Projected, summed
from mvcca.retrieval.empty_rows import without_words
from mvcca.retrieval.hubs import (
    CSLS,
    Bank,
    BankOfViews,
    check_bank,
    checked_correction,
    corrected,
)
from mvcca.retrieval.question_gallery import gallery_of_question
from mvcca.retrieval.search import Gallery
from mvcca.retrieval.similarity import (
    SIMILARITIES,
    Cosine,
    InnerProduct,
    Similarity,
    similarity_of,
)
from mvcca.views import Views, as_views

WEIGHTINGS = ("likelihood", "profile-likelihood", "likelihood-cosine", "correlation")
Weighting = str  # a name of WEIGHTINGS or "correlation^P", with "+csls" or without; or "auto"

_DEFAULT = ("transform", "cosine")
CORRECTED = "+csls"  # ends the name of a ranking that corrects for hubs


@dataclass(frozen=True, eq=False, kw_only=True)
class Ranking:
    """How rows of an estimator are compared."""

    similarity: InnerProduct  # of the rows of queries and items
    factors: np.ndarray | None = None  # (n_components,), of the scores
    steps: tuple[Any, ...] = ()  # fitted transformers and the model; none if rows are projected
    method: str = "transform"  # of the model, whose rows are compared
    name: str = ""  # of the weighting
    hubs: BankOfViews | None = None  # correction for hubs, with the rows that it compares with

    is_by_target: ClassVar[bool] = False  # whether queries depend on the views that they search
    is_by_question: ClassVar[bool] = False  # whether items depend on the views of the query, too

    @classmethod
    def of(
        cls,
        estimator: Any = None,
        similarity: Similarity | None = None,
        weighting: Weighting | None = "auto",
        hubness: str | CSLS | None = None,
        bank: Any = None,
    ) -> Ranking:
        """The ranking that was chosen for the estimator, or for the last step of a pipeline.

        That is ``ranking_`` of a tuned estimator, with CSLS against its ``bank_`` if the name ends
        in "+csls"; ``retrieval_ranking`` of the class otherwise; and the cosine of the rows of
        ``transform`` without either. A `similarity`, or the cosine for ``weighting=None``, compares
        these rows instead. A correction with its own bank replaces that of the estimator and keeps
        the weighting.

        An `estimator` that is a `Ranking` is returned as it is, but for the correction; without an
        estimator, rows are compared as they are.

        Raises
        ------
        ValueError
            If a name is unknown, similarity and weighting are both given, the estimator has no
            correlations to weight by, or there is no bank for the correction.
        """
        if hubness is not None or bank is not None:
            weighting, hubness = with_bank(weighting, hubness, bank)
        corrects = False
        if isinstance(estimator, Ranking):
            ranking = estimator
        elif estimator is None:
            ranking = _of_scores(similarity, weighting)
        elif similarity is not None:
            ranking = _by_similarity(estimator, similarity, weighting)
        else:
            steps = tuple(fitted_steps(estimator))
            if _asks_questions(steps[-1], weighting):
                return Conditional.of_model(steps, weighting or "auto").with_hubs(hubness, bank)
            method, name = chosen_ranking(steps[-1], weighting)
            corrects, name = name.endswith(CORRECTED), name.removesuffix(CORRECTED)
            if name in SIMILARITIES:
                ranking = Ranking(similarity=similarity_of(name), steps=steps, method=method)
            else:
                ranking = _weighted_by(name, steps)
        if hubness is not None:
            return ranking.with_hubs(hubness, bank)
        return _with_stored_bank(ranking, weighting) if corrects else ranking

    def with_hubs(self, hubness: str | CSLS | None, bank: Any) -> Self:
        """The ranking with a correction for hubs, if one is given."""
        if hubness is None:
            return self
        if not isinstance(bank, BankOfViews):  # else that of an index that was stored
            rows = Collection.of(bank, self.project)
            bank = BankOfViews(checked_correction(hubness), rows)
        return replace(self, hubs=bank)

    def of_several_targets(self) -> Ranking:
        """The ranking for a search of several views at once, whose scores are comparable."""
        return self

    @property
    def widths(self) -> Mapping[str, int]:
        """Numbers of columns of the rows to compare, of views that have no common space."""
        return {}

    def project(self, X: Any, unpaired: bool = False) -> Projected:
        """Project the rows of a container of views, and note which are empty.

        Rows of a mapping or a list are those of the same objects unless they are `unpaired`.
        Without an estimator, rows are compared as they are.
        """
        if not self.steps:
            views = as_views(X, unpaired=unpaired)
            return Projected(views, views, {})
        *before, model = self.steps
        empty: dict[str, np.ndarray] = {}
        for step in before:
            if hasattr(step, "transform_noting_empty"):
                X, found = step.transform_noting_empty(X)
                empty |= {name: rows | empty.get(name, False) for name, rows in found.items()}
            else:
                X = step.transform(X)
        names = getattr(model, "view_names_", None)
        if getattr(model, "confounds", None) is not None:
            views = as_views(X, tuple(model._widths))  # confounds stay paired with their rows
            scores = model.project(views, self.method)
            projected = views.select(list(scores))
        elif hasattr(model, "project"):
            views = projected = as_views(X, names, unpaired=unpaired)
            scores = model.project(views, self.method)
        else:  # an estimator of another package
            views = as_views(X, names, unpaired=unpaired)
            projected = as_views(model.transform(X), names, unpaired=unpaired)
            scores = {name: _numbers(block) for name, block in projected.items()}
        seen, ids = projected.seen, projected.ids
        rows = as_scores = Views.of({n: as_block(own) for n, own in scores.items()}, seen, ids)
        if self.name:
            compared = {n: as_block(self.of_view(n, own)) for n, own in scores.items()}
            rows = Views.of(compared, seen, ids)
        if empty or views.is_sparse or hasattr(model, "n_words_"):
            empty = _empty_rows(model, views, empty)
        return Projected(as_scores, rows, empty, in_one_space=not self.is_by_question)

    def project_matrices(self, X: Any, *second: Any) -> list[Any]:
        """Rows to compare of one matrix without a name, or of two."""
        *before, model = self.steps
        for step in before:
            X = step.transform(X)
        if not hasattr(model, "project"):  # an estimator of another package
            scores = model.transform(X, *second)
            return list(scores) if isinstance(scores, tuple) else [scores]
        columns = [np.reshape(y, (-1, 1)) if np.ndim(y) == 1 else y for y in second]
        scores = model.project(as_views(dict(zip("Xy", (X, *columns), strict=False))), self.method)
        return [self.of_view(name, own) for name, own in scores.items()]

    def of_view(self, name: str, scores: Any) -> Any:
        """Rows of one view to compare, from its scores."""
        return scores if self.factors is None else scores * as_block(scores).placed(self.factors)

    def queries(
        self,
        rows: Mapping[str, np.ndarray],
        targets: tuple[str, ...],
        places: Mapping[str, np.ndarray] | None = None,
        n_queries: int | None = None,
        normalize: bool = False,
    ) -> np.ndarray:
        """Rows to query the given views with, as in `summed`, from rows of single views."""
        if len(rows) == 1 and places is None and not normalize:
            return next(iter(rows.values()))
        return summed(rows, places, n_queries, normalize)

    def items(self, rows: Mapping[str, np.ndarray], normalize: bool = False) -> np.ndarray:
        """Rows to rank, from rows of single views."""
        if self.is_by_target:  # queries have a part for each
            return np.hstack(list(rows.values()))
        if len(rows) == 1 and not normalize:
            return next(iter(rows.values()))
        return summed(rows, normalize=normalize)

    def gallery(
        self, rows: Mapping[str, np.ndarray], query: tuple[str, ...], target: tuple[str, ...]
    ) -> Gallery:
        """Rows of the target views as a gallery, corrected for hubs among queries of others."""
        return self.corrected(Gallery.of(self.items(rows), self.similarity), query, target)

    def corrected(
        self,
        gallery: Gallery,
        query: tuple[str, ...],
        target: tuple[str, ...],
        normalize_query: bool = False,
        normalize_target: bool = False,
        before: Any = None,
    ) -> Gallery:
        """The gallery of one direction corrected for hubs; `before` is an earlier one to extend.

        `normalize_*` scales each view's rows to length 1.
        """
        if self.hubs is None or not self.hubs.suffices(query, target):
            return gallery
        of_query, of_target = self.hubs.rows_between(query, target)
        queries = self.queries(of_query, target, normalize=normalize_query)
        items = self.items(of_target, normalize_target)
        return corrected(gallery, Bank(self.hubs.correction, queries, items), before)

    def notes(self, query: tuple[str, ...], target: tuple[str, ...]) -> list[str]:
        """What else to say of a direction."""
        return []

    @property
    def compares_scores(self) -> bool:
        """Whether it compares what `transform` returns, if only with other weights."""
        return self.method in ("transform", "variates")

    def __str__(self) -> str:
        text = self.name or self.similarity.name
        if not self.name and not self.compares_scores:
            text += f" ({self.method})"
        return text if self.hubs is None else f"{text}, {self.hubs.correction}"


@dataclass(frozen=True, eq=False, kw_only=True)
class LikelihoodRatio(Ranking):
    """Log-likelihood ratio of "these rows show the same object", if views are jointly Gaussian.

    With scores a of view p and b of view q in units of their standard deviations, and the
    correlations ρ of these two views, it is the inner product of the vectors

        query  (w a, e_p, -Σ_i v_i a_i² / 2 - Σ_i log(1 - ρ_i²) / 2),
        item   (b, (-Σ_i v_i b_i² / 2 for every view p), 1),

    w = ρ / (1 - ρ²), v = ρ² / (1 - ρ²). Item vectors do not depend on the view of the query, whose
    unit vector e_p selects the term of its correlations. Queries of several views are added, which
    adds their ratios; so does setting the vectors of several target views side by side.
    """

    views: tuple[str, ...]
    correlations: np.ndarray  # (n_views, n_views, k)
    deviations: Mapping[str, np.ndarray]  # (k,)

    is_by_target = True

    def of_view(self, name: str, scores: Any) -> Any:
        """Item vectors of a view's scores, (n_rows, k + n_views + 1)."""
        xp, deviations = namespace(scores), self.deviations[name]
        units = np.divide(1, deviations, out=np.zeros_like(deviations), where=deviations > 0)
        scores = scores * as_block(scores).placed(units)
        rho = self.correlations[self.views.index(name)]
        terms = (scores * scores) @ as_block(scores).placed((rho**2 / (1 - rho**2)).T / -2)
        return xp.concat([scores, terms, xp.ones_like(terms[:, :1])], axis=1)

    def queries(
        self,
        rows: Mapping[str, np.ndarray],
        targets: tuple[str, ...],
        places: Mapping[str, np.ndarray] | None = None,
        n_queries: int | None = None,
        normalize: bool = False,
    ) -> np.ndarray:
        """Query vectors from item vectors, added over the views of the queries."""
        vectors = {name: self._queries_of(name, own, targets) for name, own in rows.items()}
        return summed(vectors, places, n_queries, normalize)

    def _queries_of(self, name: str, rows: np.ndarray, targets: tuple[str, ...]) -> np.ndarray:
        p, n = self.views.index(name), len(self.views)
        parts = []
        for q in map(self.views.index, targets):
            rho = self.correlations[p, q]
            queries = np.zeros_like(rows)
            queries[:, : -n - 1] = rows[:, : -n - 1] * (rho / (1 - rho**2))
            queries[:, p - n - 1] = 1
            queries[:, -1] = rows[:, q - n - 1] - np.log1p(-(rho**2)).sum() / 2
            parts.append(queries)
        return np.hstack(parts)


@dataclass(frozen=True, eq=False, kw_only=True)
class Conditional(Ranking):
    """Each question, of some views about another, ranked as it was solved by itself.

    Rows to compare are coordinates of the views, (n_rows, r_v), from which every question makes its
    query and item vectors; see `mvcca.problem.question`.
    """

    questions: Any  # `Questions` of the model
    asked: str = ""  # a ranking by name; by default the best one of each question
    in_shared_space: bool = False

    is_by_target = True
    is_by_question = True

    @classmethod
    def of_model(cls, steps: tuple[Any, ...], weighting: Weighting) -> Self:
        """That of a model with questions, with the rows of its folds as a bank."""
        questions = steps[-1].questions_
        asked = "" if weighting == "auto" else weighting
        if asked.endswith(CORRECTED) and not questions.samples:
            raise ValueError(
                f"weighting={weighting!r} compares with a bank of training rows, of which a model "
                "with a given ridge stores none. Pass bank=, or fit with reg='cv'."
            )
        return cls(
            similarity=InnerProduct(),
            steps=steps,
            method="question_rows",
            hubs=_bank_of_samples(questions.samples),
            questions=questions,
            asked=asked,
        )

    @property
    def widths(self) -> Mapping[str, int]:
        """Numbers of coordinates of the views."""
        widths: Mapping[str, int] = self.questions.gaussian.widths
        return widths

    def of_several_targets(self) -> Conditional:
        """The ranking in the shared space, whose scores of different targets are comparable."""
        return replace(self, in_shared_space=True)

    def answer(self, query: Names[str], target: tuple[str, ...]) -> RatioSum:
        """What ranks items of the target for rows of these query views."""
        if self.in_shared_space:
            return self.questions.in_shared_space(query, target)
        return self.questions.answer(query, target, self.asked)

    def queries(
        self,
        rows: Mapping[str, np.ndarray],
        targets: tuple[str, ...],
        places: Mapping[str, np.ndarray] | None = None,
        n_queries: int | None = None,
        normalize: bool = False,
    ) -> np.ndarray:
        """Query vectors; a view that tells nothing of a query counts as its mean."""
        if places is not None:
            whole = {
                n: np.zeros((n_queries or 0, own.shape[1]), own.dtype) for n, own in rows.items()
            }
            for name, own in rows.items():
                whole[name][places[name]] = own
            rows = whole
        vectors = self.answer(rows, targets).query_vectors(rows)
        return vectors.astype(np.result_type(*rows.values()), copy=False)

    def corrected(
        self,
        gallery: Gallery,
        query: tuple[str, ...],
        target: tuple[str, ...],
        normalize_query: bool = False,
        normalize_target: bool = False,
        before: Any = None,
    ) -> Gallery:
        """The gallery of one question; `before` is an earlier one to extend."""
        answer = self.answer(query, target)
        used = tuple({name: None for ratio in answer.ratios for name in ratio.query})
        bank, hubs = None, self.hubs
        is_corrected = answer.ranking.endswith(CORRECTED) or (hubs is not None and hubs.is_asked)
        if is_corrected and hubs is not None and hubs.suffices(used, target):
            of_query, of_target = hubs.rows_between(used, target)
            items = np.hstack([of_target[name] for name in target])
            bank = Bank(hubs.correction, answer.query_vectors(of_query), items)
        return gallery_of_question(gallery, answer, bank, before)

    def notes(self, query: tuple[str, ...], target: tuple[str, ...]) -> list[str]:
        """Query views that do not count."""
        used = {name for ratio in self.answer(query, target).ratios for name in ratio.query}
        left_out = [name for name in query if name not in used]
        if not left_out:
            return []
        names = "+".join(query), "+".join(target)
        return [
            f"{names[0]} -> {names[1]}: without {', '.join(left_out)}, which made held-out "
            "rankings worse"
        ]

    def __str__(self) -> str:
        text = f"conditional {self.asked}".rstrip()
        return f"{text}, {self.hubs.correction}" if self.hubs and self.hubs.is_asked else text


def _asks_questions(model: Any, weighting: Weighting | None) -> bool:
    """Whether a model ranks each question by itself, under this weighting."""
    questions = getattr(model, "questions_", None)
    if questions is None or weighting is None:
        return False
    plain = weighting.removesuffix(CORRECTED)
    return weighting == "auto" or (questions.is_given and plain in (LIKELIHOOD, PROFILE))


def _bank_of_samples(samples: Sequence[Views]) -> BankOfViews | None:
    """Rows of folds as a bank."""
    if not samples:
        return None
    rows, objects, start = {}, {}, np.cumsum([0, *map(len, samples)])
    for name in samples[0].names:
        rows[name] = np.concatenate([own[name] for own in samples])
        objects[name] = np.concatenate(
            [first + own.objects(name) for first, own in zip(start, samples, strict=False)]
        )
    fewest = max(1, min(map(len, rows.values())))
    correction = CSLS(min(CSLS.n_neighbors, fewest))
    return BankOfViews(correction, Collection(rows, objects), is_asked=False)


def with_bank(
    weighting: Weighting | None, hubness: str | CSLS | None, bank: Any
) -> tuple[Weighting | None, str | CSLS | None]:
    """Weighting and correction of a user, whose bank may be for the "+csls" of the weighting."""
    if weighting is None or not weighting.endswith(CORRECTED):
        check_bank(hubness, bank)
        return weighting, hubness
    if bank is None:
        check_bank(hubness, bank)
        return weighting, None
    return weighting.removesuffix(CORRECTED), hubness or CSLS.name


def _of_scores(similarity: Similarity | None, weighting: Weighting | None) -> Ranking:
    """The ranking of rows that are projected already."""
    if weighting not in ("auto", None):
        raise ValueError(
            f"weighting={weighting!r} needs the correlations of an estimator: pass estimator= and "
            "the views to project."
        )
    return Ranking(similarity=similarity_of(similarity or "cosine"))


def _by_similarity(estimator: Any, similarity: Similarity, weighting: Weighting | None) -> Ranking:
    """The ranking by a similarity of the rows of `transform`."""
    if weighting not in ("auto", None):
        raise ValueError(
            "similarity compares the scores of transform, and weighting the weighted ones; give "
            f"one of them, got {similarity!r} and {weighting!r}."
        )
    return Ranking(similarity=similarity_of(similarity), steps=tuple(fitted_steps(estimator)))


def chosen_ranking(model: Any, weighting: Weighting | None = "auto") -> tuple[str, str]:
    """Method and name of the ranking that a user or a fit chose, or that the class declares."""
    if weighting != "auto":
        if weighting is not None:
            checked_weighting(weighting)
        return "variates", weighting or "cosine"
    method, declared = getattr(model, "retrieval_ranking", _DEFAULT)
    name: str = getattr(model, "ranking_", declared)
    plain = name.removesuffix(CORRECTED)
    if not hasattr(model, "ranking_") and name not in SIMILARITIES:
        if getattr(model, "power", False):
            return _DEFAULT  # the power weights the components
        if hasattr(model, "weights_") and not hasattr(model, "expected_correlations_"):
            return "variates", "cosine"  # fitted to unpaired views
    if plain not in SIMILARITIES:
        return "variates", name
    return method if plain == declared else _DEFAULT[0], name


def _with_stored_bank(ranking: Ranking, weighting: Weighting | None) -> Ranking:
    """The ranking with CSLS against the training rows that a tuned model stores."""
    model = ranking.steps[-1]
    if not hasattr(model, "bank_") or chosen_ranking(model)[0] != ranking.method:
        raise ValueError(
            f"weighting={weighting!r} compares with a bank of training rows, of which "
            f"{type(model).__name__} stores none for it. Pass bank=, or fit with reg='cv', which "
            "stores a bank if the correction ranks held-out rows better."
        )
    stored = as_views(model.bank_)
    missing = [name for name in getattr(model, "view_names_", ()) if name not in stored]
    if missing and len(stored.names) < 2:  # others, such as labels as a view, are never ranked
        raise ValueError(f"bank_ of {type(model).__name__} has no rows of the views {missing}.")
    rows = stored.replace({name: ranking.of_view(name, own) for name, own in stored.items()})
    fewest = min(block.shape[0] for block in stored.blocks.values())
    correction = CSLS(min(CSLS.n_neighbors, fewest))
    return replace(ranking, hubs=BankOfViews(correction, Collection.of(rows), is_asked=False))


def _weighted_by(name: str, steps: tuple[Any, ...]) -> Ranking:
    """The ranking with a weighting by the correlations of a fitted model."""
    model = steps[-1]
    how: dict[str, Any] = {"steps": steps, "method": "variates"}
    needed = "expected_deviations_" if name == "likelihood" else "expected_correlations_"
    if not hasattr(model, needed):
        if hasattr(model, "fit"):
            from sklearn.utils.validation import check_is_fitted

            check_is_fitted(model)
        raise ValueError(
            f"weighting={name!r} needs an estimator with correlations; {type(model).__name__} has "
            f"no {needed}. Leave weighting at 'auto', or fit CCA, MVCCA, KCCA or a deep estimator "
            "that ends in CCA."
        )
    correlations = model.expected_correlations_
    by_pair = getattr(model, "expected_correlations_by_pair_", correlations)
    expected = Expected(correlations, by_pair, getattr(model, "expected_deviations_", {}))
    return ranking_by(name, model.view_names_, expected, **how)


def ranking_by(name: str, views: tuple[str, ...], expected: Expected | None, **how: Any) -> Ranking:
    """The ranking with this weighting of scores of `views`, or by a similarity."""
    if name in SIMILARITIES:
        return Ranking(similarity=similarity_of(name), **how)
    assert expected is not None
    how["name"] = name
    if name == "likelihood":
        return LikelihoodRatio(
            similarity=InnerProduct(),
            views=views,
            correlations=np.clip(expected.correlations, 0, LARGEST_CORRELATION),
            deviations=expected.deviations,
            **how,
        )
    rho = expected.mean
    if name == "profile-likelihood":
        rho = np.minimum(rho, LARGEST_CORRELATION)
        return Ranking(similarity=Cosine(rho), factors=component_weights(rho), **how)
    power = None if name == "likelihood-cosine" else checked_weighting(name)
    factors = component_weights(rho) if power is None else rho**power
    return Ranking(similarity=Cosine(), factors=factors, **how)


def checked_weighting(name: str) -> float | None:
    """P of "correlation^P", 1 of "correlation"; None for another weighting, "+csls" or not.

    Raises
    ------
    ValueError
        If the name is unknown or the power no number of at least 0.
    """
    kind, hat, power = name.removesuffix(CORRECTED).partition("^")
    if kind == "correlation":
        try:
            value = float(power) if hat else 1.0
        except ValueError:
            value = -1.0
        if 0 <= value < np.inf:
            return value
    elif not hat and kind in WEIGHTINGS:
        return None
    raise ValueError(
        f"Expected weighting to be 'auto', None, one of {list(WEIGHTINGS)} or 'correlation^P' with "
        f"a power P of at least 0, with or without '+csls' at the end; got {name!r}."
    )


def fitted_steps(estimator: Any) -> list[Any]:
    """Fitted steps of nested pipelines and searches, in order.

    Raises
    ------
    TypeError
        If a step, or what is given, is no estimator.
    """
    if hasattr(estimator, "best_estimator_"):
        return fitted_steps(estimator.best_estimator_)
    if not hasattr(estimator, "named_steps"):  # of a pipeline
        if not (hasattr(estimator, "transform") or hasattr(estimator, "project")):
            kind = type(estimator).__name__
            raise TypeError(f"Expected a fitted estimator before the rows, got {kind}.")
        return [estimator]
    parts = [part for _, part in estimator.steps if part not in (None, "passthrough")]
    return [step for part in parts for step in fitted_steps(part)]


def _numbers(block: Any) -> Any:
    """The numbers of a DataFrame; other blocks unchanged."""
    return block.to_numpy() if hasattr(block, "to_numpy") else block


def _empty_rows(
    model: Any, views: Views, before: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Rows of views that hold nothing a model knows, and those noted by earlier steps."""
    n_words, empty = getattr(model, "n_words_", {}), {}
    for name, block in views.blocks.items():
        noted = [before.get(name), block.empty_rows() if block.is_sparse else None]
        if name in n_words:
            noted.append(without_words(block.matrix, n_words[name]))
        found = [rows for rows in noted if rows is not None]
        if found and (rows := np.logical_or.reduce(found)).any():
            empty[name] = rows
    return empty
