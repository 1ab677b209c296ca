"""Table of an evaluation: one row per direction, printed with the meaning of each measure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from mvcca.machine.result import Result
from mvcca.machine.tables import Table
from mvcca.retrieval.runs import QrelsDict, Run, RunDict


@dataclass(frozen=True)
class Direction:
    """Measures of one query view (or several, joined) against one target view.

    Attributes
    ----------
    query : str
        The query view; names joined by "+" if there are several.
    target : str
        The view whose rows are ranked.
    n_queries : int
        Rows of the query view.
    n_paired : int
        Rows whose object is seen in the target view, too. With relevance by pairs only these are
        queries.
    n_gallery : int
        Rows of the target view.
    values : dict of str to float
        Values by the names of the measures.
    per_query : dict of str to ndarray
        The value of each query, by the names of the measures: a rank, a reciprocal rank, a
        precision, or 1 for a hit and 0 for a miss.
    query_objects : dict of str to ndarray of int
        The objects of these queries, by the names of the measures.
    runs : dict of str to Run
        With ``keep_run``, the ranked lists by the kind of relevance that the measures used.
    """

    query: str
    target: str
    n_queries: int
    n_paired: int
    n_gallery: int
    values: dict[str, float]
    per_query: dict[str, np.ndarray] = field(default_factory=dict, repr=False, compare=False)
    query_objects: dict[str, np.ndarray] = field(default_factory=dict, repr=False, compare=False)
    runs: dict[str, Run] = field(default_factory=dict, repr=False, compare=False)


def check_several_items(sizes: Iterable[int]) -> None:
    """Raise ValueError if every gallery holds one item, which any model finds first."""
    if max(sizes) < 2:
        raise ValueError(
            "Any model finds the only item of a gallery first: expected galleries of two items or "
            "more to score or compare models, got one. Leave out several objects at a time, as "
            "cv=5 does, and not one, as LeaveOneOut does."
        )


@dataclass(frozen=True)
class RetrievalTable(Result):
    """Retrieval measures in several directions.

    ``to_frame`` is indexed by query and target, with a column per measure.

    Attributes
    ----------
    rows : tuple of Direction
        One per direction, in the order they were evaluated.
    notes : tuple of str
        Meaning of the measures: divisor, ties and relevance.
    """

    rows: tuple[Direction, ...]
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Direction]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, direction: tuple[str, str]) -> dict[str, float]:
        """Measures of a direction, ``table["image", "text"]``."""
        return self._row(direction).values

    def recall_curves(self, k: int = 50) -> dict[tuple[str, str], np.ndarray]:
        """Recall at 1, ..., k in every direction, to plot.

        Parameters
        ----------
        k : int, default=50
            Length of the longest list.

        Returns
        -------
        dict of (query, target) to ndarray, shape (k,)
            Share of queries with a relevant item among the first 1, ..., k.

        Raises
        ------
        ValueError
            If no measure of the table is a rank, such as "mr", or "mr:optimistic" for other ties.
        """
        name = next(filter(_is_rank, self.rows[0].values), None)
        if name is None:
            raise ValueError('Curves need the ranks of queries: pass measures="mr".')
        lengths = np.arange(1, k + 1)
        return {
            (row.query, row.target): (row.per_query[name][:, None] <= lengths).mean(axis=0)
            for row in self.rows
        }

    def to_run(
        self, query: str | None = None, target: str | None = None, relevance: str | None = None
    ) -> RunDict:
        """Ranked lists of a direction as a nested dict, as ranx, ir-measures and pytrec-eval take.

        Parameters
        ----------
        query, target : str, optional
            The direction; unnecessary if there is only one.
        relevance : {"pairs", "labels", "gains"}, optional
            Kind of relevance, unnecessary if all measures used the same. By pairs, only objects
            seen in both views are queries.

        Returns
        -------
        dict of str to dict of str to float
            For each query, the scores of the first ``keep_run`` items, best first. Queries and
            items are named by their rows in their views, from "0". Scores are rounded to float32,
            and lowered by the least amount where two are equal: tools sort by score and break ties
            in different ways.

        Raises
        ------
        ValueError
            If the table was made without ``keep_run``, or the choice is ambiguous.
        KeyError
            If the direction is unknown.
        """
        return self._run(query, target, relevance).to_run()

    def to_qrels(
        self, query: str | None = None, target: str | None = None, relevance: str | None = None
    ) -> QrelsDict:
        """Relevant items of a direction as a nested dict, to judge the lists of `to_run`.

        Parameters
        ----------
        query, target, relevance
            As in `to_run`.

        Returns
        -------
        dict of str to dict of str to int
            For each query, the grades of the relevant items of the whole gallery: 1 by pairs, the
            number of shared labels by labels, or the given gains. A query without relevant items
            has one item of grade 0, since tools leave out queries without judgements.

        Raises
        ------
        ValueError
            As for `to_run`, or if gains are not integers.
        KeyError
            If the direction is unknown.
        """
        return self._run(query, target, relevance).to_qrels()

    def _row(self, direction: tuple[str, str]) -> Direction:
        for row in self.rows:
            if (row.query, row.target) == direction:
                return row
        known = [(row.query, row.target) for row in self.rows]
        raise KeyError(f"no direction {direction!r}; the directions are {known}")

    def _run(self, query: str | None, target: str | None, relevance: str | None) -> Run:
        if query is not None and target is not None:
            row = self._row((query, target))
        elif len(self.rows) == 1 and query is None and target is None:
            (row,) = self.rows
        else:
            known = [(row.query, row.target) for row in self.rows]
            raise ValueError(f"Expected a query and a target, one of {known}.")
        if not row.runs:
            raise ValueError("Ranked lists were not kept. Pass keep_run=100 to evaluate_retrieval.")
        if relevance is None and len(row.runs) == 1:
            return next(iter(row.runs.values()))
        if relevance not in row.runs:
            raise ValueError(
                f"Expected relevance to be one of {sorted(row.runs)}, got {relevance!r}."
            )
        return row.runs[relevance]

    def mean(self) -> dict[str, float]:
        """Each measure averaged over the directions."""
        names = self.rows[0].values
        return {name: float(np.mean([row.values[name] for row in self.rows])) for name in names}

    def tables(self) -> list[Table]:
        """Return the measures, and the directions with, if there are several, their mean."""
        measures = [(row.query, row.target, *row.values.values()) for row in self.rows]
        rows: list[tuple[str, ...]] = [
            (row.query, row.target, str(row.n_queries), str(row.n_gallery), *_formatted(row.values))
            for row in self.rows
        ]
        if len(self.rows) > 1:
            rows.append(("mean", "", "", "", *_formatted(self.mean())))
        direction, names = ("query", "target"), tuple(self.rows[0].values)
        columns, caption = (*direction, "queries", "gallery", *names), "Retrieval across views"
        return [
            Table.of("Measures", (*direction, *names), measures, index=2, shown=()),
            Table.of(caption, columns, rows, self.notes, words=direction),
        ]


def _is_rank(name: str) -> bool:
    """Whether a measure is a rank of each query."""
    return name.split(":")[0] in ("mr", "mean_rank")


def _formatted(values: dict[str, float]) -> list[str]:
    """Ranks with one decimal, shares with four."""
    return [f"{v:.1f}" if _is_rank(name) else f"{v:.4f}" for name, v in values.items()]
