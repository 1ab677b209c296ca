"""Hits of queries in files: ranked lists computed block by block, as tables or run files."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np

from mvcca.machine.tables import ShownAsTables, Table
from mvcca.machine.warnings import warn
from mvcca.machine.written_files import write_npy, write_table
from mvcca.retrieval import RetrievalIndex
from mvcca.retrieval.empty_rows import note_on
from mvcca.retrieval.runs import strictly_descending
from mvcca.statistics.passes import row_blocks, watched
from mvcca.views import Views

_SHOWN_QUERIES, _SHOWN_RANKS = 3, 5  # in notebooks
Block = tuple[int, np.ndarray, np.ndarray]  # first query, scores and items (n, k)


class Hits(ShownAsTables):
    """The best items of galleries for queries, searched in blocks as they are written.

    A notebook shows the first hits of the first queries.

    Parameters
    ----------
    index : RetrievalIndex
        Empty; rows of the galleries are added to it.
    galleries : mapping of str to matrix or RowSource
        Rows to search, by view. A row is an item with its number, from 0.
    queries : mapping of str to matrix or RowSource
        Rows of one view; or of several, which show the same objects and are added.
    k : int
        Number of items to find for each query.
    joint : bool, default=False
        Search several galleries as one: rows with the same number are one item, the sum of their
        projections. Otherwise every row of every gallery is a separate item.
    item_ids, query_ids : mapping of str to array of str, optional
        Ids of the rows of galleries and queries, by view, for the columns ``item`` and ``query`` of
        tables and runs; by default the numbers of rows.
    confounds : mapping of str to matrix or RowSource, optional
        Confounds of the rows of one gallery, or of galleries searched as one, for an estimator that
        removes them, under the name of their view. Those of queries are among the queries.

    Attributes
    ----------
    shape : tuple of int
        (n_queries, k).

    Raises
    ------
    ValueError
        If queries of several views, or galleries searched as one or with confounds, differ in
        their rows; if there are fewer than k items, or a row cannot be projected.

    Examples
    --------
    >>> import io
    >>> from mvcca import CCA, RetrievalIndex
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.interop import Hits
    >>> views = load_digits_views().views
    >>> index = RetrievalIndex(CCA(n_components=None, reg="cv").fit(views[:1200]))
    >>> gallery, queries = {"right": views["right"][1200:]}, {"left": views["left"][1200:1203]}
    >>> file = io.BytesIO()
    >>> Hits(index, gallery, queries, k=2).write(file, ".csv")
    >>> file.getvalue().decode().splitlines()[0]
    'query,rank,item,score'
    """

    def __init__(
        self,
        index: RetrievalIndex,
        galleries: Mapping[str, Any],
        queries: Mapping[str, Any],
        k: int,
        joint: bool = False,
        item_ids: Mapping[str, np.ndarray] | None = None,
        query_ids: Mapping[str, np.ndarray] | None = None,
        confounds: Mapping[str, Any] | None = None,
    ) -> None:
        beside = confounds or {}
        _check_heights("queries in several views", queries)
        if joint or beside:
            what = "galleries searched as one" if joint else "galleries and their confounds"
            _check_heights(what, {**galleries, **beside})
        heights = [rows.shape[0] for rows in galleries.values()]
        self._index, self._queries = index, Views(queries)
        self._names = ["items"] if joint else list(galleries)
        self._target = list(galleries) if joint else None
        self._starts = np.cumsum([0, *(heights[:1] if joint else heights)])
        if k > self._starts[-1]:
            raise ValueError(f"k {k}: there are only {self._starts[-1]} items")
        self.shape = len(self._queries), k
        self._query_ids = None if query_ids is None else _one_of("queries", query_ids)
        self._item_ids = None  # of the concatenated galleries
        if item_ids is not None:
            of_galleries = [item_ids[name] for name in galleries]
            if joint:
                of_galleries = [_one_of("galleries searched as one", item_ids)]
            self._item_ids = np.concatenate(of_galleries)
        for number, (name, rows) in enumerate(galleries.items()):
            views, first = Views({name: rows, **beside}), 0 if joint else self._starts[number]
            slices = list(row_blocks(views))
            for block in watched(iter(slices), views, slices):
                with _named(f"gallery {name!r}"):
                    index.add(views[block], ids=np.arange(first + block.start, first + block.stop))

    def write(self, file: BinaryIO, suffix: str) -> None:
        """Search and write the hits.

        Parameters
        ----------
        file : file
            Open for writing bytes.
        suffix : {".csv", ".jsonl", ".parquet", ".arrow", ".trec", ".npy", ".npz"}
            Tables and runs have a line per hit. ``.npz`` holds the arrays ``items`` and ``scores``
            of shape (n_queries, k), ``.npy`` only the items. With several galleries, tables and
            ``.npz`` name the view of each item, and runs name items ``view:row``. A query in which
            the model knows nothing has no lines, and in arrays items -1 and scores NaN. Ids are
            written unchanged, also those that a spreadsheet takes for formulas, such as ``=1+1``.
        """
        for ids in (self._item_ids, self._query_ids) if suffix == ".trec" else ():
            spaced = [] if ids is None else [one for one in ids.tolist() if len(one.split()) > 1]
            if spaced:
                raise ValueError(
                    "a .trec file separates columns by spaces, so ids must not contain any, such "
                    f"as {spaced[0]!r}; write .csv or .parquet"
                )
        if suffix == ".npy":
            found = (items for _, _, items in self._blocks())
            write_npy(file, found, self.shape, np.dtype(np.int64))
        elif suffix == ".npz":
            _, scores, items = zip(*self._blocks(), strict=True)
            views, rows = self._view_and_row(np.concatenate(items))
            which = {"views": views} if len(self._names) > 1 else {}
            np.savez(file, items=rows, scores=np.concatenate(scores), **which)  # type: ignore[arg-type]
        else:
            write_table(file, suffix, self._tables(is_run=suffix == ".trec"))
        if self._n_empty:
            warn(f"{note_on(self._n_empty, len(self._queries))}: no hits")

    def _blocks(self) -> Iterator[Block]:
        slices, self._n_empty = list(row_blocks(self._queries)), 0
        for block in watched(map(self._find, slices), self._queries, slices):
            self._n_empty += int((block[2][:, 0] < 0).sum())
            yield block

    def _find(self, rows: slice) -> Block:
        with _named(f"queries {rows.start} to {rows.stop}"), warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*: no hits")  # `write` warns of all
            return rows.start, *self._index.search(self._queries[rows], self._target, self.shape[1])

    def _tables(self, is_run: bool) -> Iterator[dict[str, np.ndarray]]:
        """Tables with one line per hit, one table per block of queries.

        Those of a run have names of items, and scores that differ for each item of a query.
        """
        for start, scores, items in self._blocks():
            yield self._table(start, scores, items, is_run)

    def _table(
        self, start: int, scores: np.ndarray, items: np.ndarray, is_run: bool = False
    ) -> dict[str, np.ndarray]:
        """Columns of a line per hit of a block of queries."""
        k, several = self.shape[1], len(self._names) > 1
        queries = start + np.flatnonzero(items[:, 0] >= 0)  # those with hits
        scores, items = scores[queries - start], items[queries - start]
        views, rows = self._view_and_row(items.ravel())
        if self._item_ids is not None:
            rows = self._item_ids[items.ravel()]
        if is_run:
            scores, rows = strictly_descending(scores), rows.astype(str)
            rows = np.char.add(np.char.add(views, ":"), rows) if several else rows
        return {
            "query": np.repeat(queries if self._query_ids is None else self._query_ids[queries], k),
            "rank": np.tile(np.arange(1, k + 1), len(items)),
            **({"view": views} if several and not is_run else {}),
            "item": rows,
            "score": scores.ravel(),
        }

    def tables(self) -> list[Table]:
        """Return the table that notebooks show: the first hits of the first queries."""
        n_queries, k = self.shape
        shown = self._table(*self._find(slice(0, min(n_queries, _SHOWN_QUERIES))))
        kept = shown["rank"] <= _SHOWN_RANKS
        columns = [column[kept].tolist() for column in shown.values()]
        few = n_queries > _SHOWN_QUERIES or k > _SHOWN_RANKS
        caption = f"{'First hits' if few else 'Hits'} of {n_queries:,} queries, {k} each"
        return [Table.of(caption, list(shown), zip(*columns, strict=True))]

    def _view_and_row(self, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """View and row of every item of the concatenated galleries; "" and -1 of no item."""
        which = np.searchsorted(self._starts, items, side="right") - 1
        views = np.where(items < 0, "", np.array(self._names)[which])
        return views, np.where(items < 0, -1, items - self._starts[which])


@contextmanager
def _named(rows: str) -> Iterator[None]:
    """Name the rows in errors."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{rows}: {error}") from error


def _check_heights(what: str, rows: Mapping[str, Any]) -> None:
    heights = {name: block.shape[0] for name, block in rows.items()}
    if len(set(heights.values())) > 1:
        found = ", ".join(f"{name} {height}" for name, height in heights.items())
        raise ValueError(f"{what} must have the same number of rows, got {found}")


def _one_of(what: str, ids: Mapping[str, np.ndarray]) -> np.ndarray:
    """The ids of the rows of several views, which must be the same in the same order."""
    first, *others = ids.values()
    if not all(np.array_equal(first, other) for other in others):
        raise ValueError(f"{what} in several views must have the same ids in the same order")
    return first
