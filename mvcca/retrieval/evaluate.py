"""Evaluation of retrieval between all pairs of views, by measures given by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from typing import Any, Literal

import numpy as np

from mvcca.measures.arrays import one_of, positive
from mvcca.measures.lists import NoRelevant
from mvcca.retrieval.collection import Collection, Projected
from mvcca.retrieval.empty_rows import note_on
from mvcca.retrieval.hubs import CSLS
from mvcca.retrieval.measure import JudgedBy, Measure
from mvcca.retrieval.ranking import Weighting
from mvcca.retrieval.relevance import RelevanceBy
from mvcca.retrieval.similarity import Similarity
from mvcca.retrieval.table import RetrievalTable
from mvcca.retrieval.task import Task, asked_ranking
from mvcca.views import Views
from mvcca.views.typing import LabelsLike, ViewsLike

Names = str | Sequence[str]
Directions = Literal["cross", "within", "all"] | Iterable[tuple[Names, Names]]

DEFAULT_MEASURES = ("map@50", "r@1", "r@10", "mrr")


def evaluate_retrieval(
    scores: ViewsLike | Projected,
    labels: LabelsLike | None = None,
    *,
    measures: str | Sequence[str] = DEFAULT_MEASURES,
    similarity: Similarity | None = None,
    weighting: Weighting | None = "auto",
    relevance: RelevanceBy | None = None,
    directions: Directions = "cross",
    exclude_self: bool = True,
    no_relevant: NoRelevant = "zero",
    estimator: Any = None,
    hubness: str | CSLS | None = None,
    bank: ViewsLike | None = None,
    label_vectors: Any = None,
    gains: Any = None,
    keep_run: int | None = None,
) -> RetrievalTable:
    """Evaluate retrieval from every view to every other one.

    =====================  ===================================================================
    name                   measure
    =====================  ===================================================================
    ``map``, ``map@K``     mean average precision of the whole list, or of the first K. A variant
                           names the divisor: ``:relevant`` (default of ``map``), ``:cutoff``,
                           ``:hits`` or ``:min`` (default of ``map@K``), as in
                           `mvcca.measures.average_precision`.
    ``ndcg``, ``ndcg@K``   normalized discounted cumulative gain. Gains are the numbers of shared
                           labels, or `gains`; ``:exponential`` takes 2^gain - 1, ``:binary`` 1.
    ``wmap``, ``wmap@K``   weighted average precision: each of the first K items counts by the
                           similarity of its labels to the query's, from their `label_vectors`.
                           ``:weighted`` is the second reading of the formula, as in
                           `mvcca.measures.weighted_average_precision`.
    ``p@K``                mean precision of the first K; ``:class_means`` queries with the mean of
                           each class, which zero-shot retrieval calls AP@50
    ``recall@K``           mean share of the relevant items that are among the first K
    ``r@K``                share of queries with a relevant item in the first K
    ``mr``, ``mean_rank``  median and mean rank of the first relevant item
    ``mrr``                mean reciprocal rank of the first relevant item
    ``hubness@K``          skewness of the number of queries that have an item among their first
                           K, over all items (`mvcca.measures.hubness`)
    =====================  ===================================================================

    Ranks take a variant for ties, ``:average`` (default), ``:optimistic`` or ``:pessimistic``.

    An item is relevant by *pairs* if it shows the query's object, and by *labels* if it shares at
    least one label with the query. ``map``, ``ndcg``, ``p`` and ``recall`` use labels if there are
    any, and pairs otherwise; ``r``, ``mr``, ``mean_rank`` and ``mrr`` use pairs if the two views
    share objects, and labels otherwise. The notes of the table say which was used. By pairs, only
    objects seen in both views are queries; the gallery is always all rows of the target.

    With an `estimator`, queries in which it knows nothing (texts of unknown words, sparse rows of
    zeros) count as not found: their ranks are infinite, and a note gives their number.

    Parameters
    ----------
    scores : Views, mapping or list of matrices, each of shape (n_rows, n_components)
        Projected rows, as `transform` returns them, or with an `estimator` the views to project.
        In a mapping whose numbers of rows differ, but are multiples of the smallest, consecutive
        rows show one object (five captions of an image).
    labels : array-like or mapping of str to array-like, optional
        Classes, label sets, indicators or `Labels`: one per object, or in a mapping by view name
        one per row. With such a mapping, rows of a plain mapping or list are not paired.
    measures : str or sequence of str
        Names of measures, from the table above.
    similarity : {"cosine", "euclidean", "inner"}, optional
        Similarity used for ranking, of the rows of the estimator's ``transform``. By default the
        `estimator` ranks as its fit chose or its class declares, and scores without an estimator
        are compared by the cosine.
    weighting : str or None, default="auto"
        How an `estimator` with correlations weights its components. "auto" is the ranking that a
        tuned fit chose (``ranking_``), or else the one that the class declares, usually
        "profile-likelihood".

        - "likelihood": the log-likelihood ratio of "the same object" for jointly Gaussian views;
        - "profile-likelihood": the same if the scale of each row is unknown, for data with longer
          tails than Gaussian ones;
        - "likelihood-cosine": the cosine of scores times √(ρ / (1 - ρ²));
        - "correlation" or "correlation^P": the cosine of scores times ρ or ρ^P;
        - None: the cosine of canonical variates.

        ρ is ``expected_correlations_``, in "likelihood" that of each pair of views. With "+csls" at
        the end, as in "likelihood+csls", hubs are corrected with the training rows that a tuned
        estimator stores, or with the `bank`.
    relevance : {"pairs", "labels", "gains"}, optional
        Relevance for all measures but ``wmap`` and class means; by gains, items with a gain above 0
        are relevant.
    directions : {"cross", "within", "all"} or iterable of (query, target), default="cross"
        Between different views, within each view, or both; or the directions themselves. Several
        view names, as in ``(("image", "text"), "sound")``, are a joint query or a joint target:
        their projections are added [1]_, for the objects seen in all of them. Weights apply before
        the sum, and lengths and the profile likelihood's scale are those of the sum. `MVCCA` with
        ``reg="cv"`` solves each question of some views about another instead, and a note says which
        query views it leaves out.
    exclude_self : bool, default=True
        Within a view, or the same views joined, leave the query itself out of its ranked list.
        False gives it rank 1, as in some published figures.
    no_relevant : {"zero", "skip", "nan"}, default="zero"
        Average precision of a query without any relevant item.
    estimator : fitted estimator, optional
        Projects `scores`, and ranks as its ``ranking_`` or ``retrieval_ranking`` says, by default
        by the cosine.
    hubness : {"csls"} or CSLS, optional
        Correction for hubs, items near to many queries: its name, or an instance of `CSLS` with
        another number of neighbours. It replaces that of a tuned `estimator`.
    bank : Views, mapping or list, optional
        Rows that the correction compares with, in the form of `scores`: training rows, or other
        rows that are not evaluated. Their views need not be paired.
    label_vectors : array-like or mapping, optional
        Word vectors of the labels, for views whose labels have different names: a mapping from
        label to vector; a matrix (n_labels, n_dims) in the order of the indicator columns, or of
        the sorted names; or one of these for each view, in a mapping by view name.
    gains : array-like, sparse matrix or callable, optional
        Gain of each object as an answer to each other object, for ``ndcg``: a matrix (n_objects,
        n_objects), or a function of two arrays of objects (int), those of queries and those of the
        gallery, that returns the matrix of their gains.
    keep_run : int, optional
        Keep the first `keep_run` items of every ranked list, for `RetrievalTable.to_run` and
        `RetrievalTable.to_qrels`.

    Returns
    -------
    RetrievalTable
        Measures, one row per direction.

    Raises
    ------
    ValueError
        If a name is unknown, a direction has neither pairs nor labels, sizes do not fit, or a
        value is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from mvcca import evaluate_retrieval
    >>> scores = {"image": np.eye(3), "text": np.eye(3)[[0, 2, 1]]}
    >>> print(evaluate_retrieval(scores, measures=["r@1", "mr"]))
    query  target  queries  gallery     r@1   mr
    image  text          3        3  0.3333  2.5
    text   image         3        3  0.3333  2.5
    mean                             0.3333  2.5
    r@1, mr: first item of the same object, ties averaged; cosine

    References
    ----------
    .. [1] Sanghavi and Verma, "Multi-view Multi-label Canonical Correlation Analysis for
       Cross-modal Matching and Retrieval", CVPRW 2022, remark (b).
    """
    wanted = parsed(measures)
    one_of(no_relevant, ("zero", "skip", "nan"), "no_relevant")
    if keep_run is not None:
        positive(keep_run, "keep_run")
    ranking = asked_ranking(scores, estimator, similarity, weighting, hubness, bank)
    collection = Collection.of(scores, ranking.project, labels, label_vectors, gains)
    tasks = tasks_of(collection, directions, exclude_self)
    used = {task.title: {own: task.choose(own, relevance) for own in wanted} for task in tasks}
    rows = [task.as_row(used[task.title], ranking, no_relevant, keep_run) for task in tasks]
    notes = notes_on(used, str(ranking))
    if (
        collection.labels_by_view
        and any("labels" in by.values() for by in used.values())
        and any(own.vocabulary is None for own in collection.labels.values())
    ):
        notes.append("labels: columns without names, matched by position in all views")
    notes += [text for task in tasks for text in ranking.notes(task.query, task.target)]
    empty = {"+".join(task.query): task.queries.are_empty for task in tasks}
    for query, own in empty.items():
        if own is not None:
            notes.append(f"{query}: {note_on(int(own.sum()), len(own))}, counted as not found")
    return RetrievalTable(tuple(rows), tuple(notes))


def expected_at_random(
    views: Views,
    labels: Any = None,
    *,
    measures: Sequence[str],
    relevance: RelevanceBy | None = None,
    directions: Directions = "cross",
    label_vectors: Any = None,
) -> RetrievalTable:
    """Exact expectation of measures under random rankings, with options of `evaluate_retrieval`."""
    # A query without relevant items counts 0. If the query view is also the target, each query is
    # excluded from its own list. Formulas are in `mvcca.measures.chance`; hubness@K is the skewness
    # of the distribution of counts.
    nothing = {name: np.zeros((block.shape[0], 1)) for name, block in views.items()}
    collection = Collection.of(views.replace(nothing), None, labels, label_vectors)
    wanted, tasks, rows = parsed(measures), tasks_of(collection, directions), []
    used = {task.title: {own: task.choose(own, relevance) for own in wanted} for task in tasks}
    for task in tasks:
        by = used[task.title]
        lists = {kind: task.in_random_order(kind) for kind in set(by.values())}
        expected = {measure.name: measure.expected(lists[kind]) for measure, kind in by.items()}
        rows.append(
            task.direction(
                {
                    name: float(np.mean(values)) if np.size(values) else float("nan")
                    for name, values in expected.items()
                }
            )
        )
    return RetrievalTable(tuple(rows), tuple(notes_on(used, "random order")))


def parsed(names: str | Sequence[str]) -> list[Measure]:
    """Measures by their names."""
    found = [Measure.parse(name) for name in ([names] if isinstance(names, str) else names)]
    if not found:
        raise ValueError("Expected at least one measure, got none.")
    return found


def tasks_of(
    collection: Collection, directions: Directions, exclude_self: bool = True
) -> list[Task]:
    """The directions to evaluate."""
    views: list[tuple[str, ...]] = [(name,) for name in collection.rows]
    cross, within = list(permutations(views, 2)), [(view, view) for view in views]
    if isinstance(directions, str):
        known = {"cross": cross, "within": within, "all": [*cross, *within]}
        if directions not in known:
            raise ValueError(
                f"Expected directions to be one of {list(known)} or (query, target) pairs, got "
                f"{directions!r}."
            )
        chosen = known[directions]
    else:
        chosen = [(_names(query), _names(target)) for query, target in directions]
    if not chosen:
        raise ValueError(
            f"There is no direction to evaluate between the views {list(collection.rows)}. "
            'Use directions="within" for a single view.'
        )
    return [Task(collection, query, target, exclude_self) for query, target in chosen]


def _names(views: Names) -> tuple[str, ...]:
    return (views,) if isinstance(views, str) else tuple(views)


def notes_on(used: Mapping[str, Mapping[Measure, JudgedBy]], similarity: str) -> list[str]:
    """Meaning of the measures, one line for those with the same meaning.

    `used` is the kind of relevance that each measure uses, by the title of the direction.
    """
    meanings: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for measure in next(iter(used.values())):
        titles: dict[JudgedBy, list[str]] = {}
        for title, by in used.items():
            titles.setdefault(by[measure], []).append(title)
        for relevance, where in titles.items():
            everywhere = len(titles) == 1
            key = measure.describe(relevance, similarity), () if everywhere else tuple(where)
            meanings.setdefault(key, []).append(measure.name)
    return [
        f"{', '.join(names)}: {meaning}" + (f" ({', '.join(where)})" if where else "")
        for (meaning, where), names in meanings.items()
    ]
