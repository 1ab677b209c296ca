"""An index: a fitted estimator and a gallery of projected rows, to ask with any of its views.

Exact search is `mvcca.retrieval.top_k`'s; approximate search is faiss's, if it is installed.
Everything about a query is checked here first: faiss answers a bad one with nonsense.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Self

import numpy as np

from mvcca.config import block_slices
from mvcca.measures import unit_rows
from mvcca.retrieval._blockwise import checked_k, search
from mvcca.retrieval._contents import Contents, Shelf
from mvcca.retrieval._growing import CHUNK_ROWS
from mvcca.retrieval.collection import joint_scores
from mvcca.retrieval.declared import Ranking
from mvcca.retrieval.similarity import Gallery, Similarity
from mvcca.views import Views, as_views, holds_views, in_same_container

_FAISS_RANGE = 1e15  # of queries in units of the gallery: squares stay below float32's largest


class RetrievalIndex:
    """Gallery of one or several views that answers queries of any view the estimator knows.

    Parameters
    ----------
    estimator : fitted estimator
        Projects a mapping of view names to matrices with `transform`.
    similarity : {"cosine", "euclidean", "inner"}, optional
        Similarity of the rows of `transform`. The cosine with a zero row is 0. By default the
        similarity that the estimator declares (``retrieval_ranking``), and cosine if it has none.
    backend : str, default="exact"
        "exact", or "faiss" for approximate search in a graph, or "faiss:" and the description of
        another faiss index, such as "faiss:IVF256,Flat".

    Raises
    ------
    ValueError
        If the similarity or the backend is unknown.
    ImportError
        If faiss is asked for and not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from mvcca import CCA
    >>> from mvcca.retrieval import RetrievalIndex
    >>> rng = np.random.default_rng(0)
    >>> shared = rng.normal(size=(100, 2))
    >>> views = {"image": shared @ rng.normal(size=(2, 5)), "text": shared}
    >>> views["image"] += 0.01 * rng.normal(size=(100, 5))
    >>> index = RetrievalIndex(CCA(2).fit(views), similarity="euclidean").add(views)
    >>> scores, ids = index.search({"text": views["text"][:3]}, target="image", k=1)
    >>> ids.ravel()
    array([0, 1, 2])
    """

    def __init__(
        self, estimator: Any, similarity: Similarity | None = None, backend: str = "exact"
    ) -> None:
        ranking = Ranking.of(estimator, similarity)
        kind, _, description = backend.partition(":")
        if kind not in ("exact", "faiss") or (kind == "exact" and description):
            raise ValueError(f"Expected backend to be 'exact' or 'faiss', got {backend!r}.")
        if kind == "faiss":
            _import_faiss()
        self.estimator = estimator
        self.similarity = similarity
        self.backend = backend
        self._contents = Contents(ranking.similarity)
        self._adding = Lock()  # of writers; a search reads `_contents` once, and keeps it
        self._graphs: dict[str, _Graph] = {}
        self._using_graphs = Lock()  # faiss can be searched, or added to

    def add(self, views: Any, ids: Any = None) -> Self:
        """Project objects and add them to the gallery, in all the views they are seen in.

        Parameters
        ----------
        views : Views, mapping or list
            Objects, as for the estimator's `transform`.
        ids : array-like, shape (n_objects,), optional
            What `search` answers with; by default running numbers. An object may be added view by
            view, under the same id.

        Returns
        -------
        RetrievalIndex
            The index itself.

        Raises
        ------
        ValueError
            If there is not one id per object, an id is in a view already, or a projection is not
            finite.
        """
        _check_container(views)
        opened = as_views(views)
        n_objects = len(opened)
        ids = None if ids is None else np.asarray(ids)
        if ids is not None and ids.shape != (n_objects,):
            raise ValueError(f"Expected {n_objects} ids, one per object, got {ids.shape}.")
        with self._adding:
            before = contents = self._contents
            if ids is None:
                ids = np.arange(before.n_added, before.n_added + n_objects)
            for objects, block in _in_blocks(views, opened):
                scores = self._project(block)
                for name in scores.names:
                    first = contents.height(name) - before.height(name)
                    own = ids[objects][scores.objects(name)]
                    contents = contents.plus(name, scores[name], own, first)
            self._contents = replace(contents, n_added=before.n_added + n_objects)
        return self

    def search(
        self, queries: Any, target: str | None = None, k: int = 10, normalize: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Find the k best objects for every query.

        Parameters
        ----------
        queries : Views, mapping or list, of n_queries rows per view
            Queries of one view, or of several: those are joined by summing their projections.
        target : str, optional
            The view to search. By default all of them; an object then counts once, with its best
            view.
        k : int, default=10
            How many to find.
        normalize : bool, default=False
            Scale each view's projected query to length 1 before summing.

        Returns
        -------
        scores : ndarray, shape (n_queries, k)
            Descending; "euclidean" gives negative distances.
        ids : ndarray, shape (n_queries, k)
            The objects; of equal scores the one added first comes first.

        Raises
        ------
        ValueError
            If the index is empty, the view unknown, k larger than the number of objects, or a
            query has the wrong width or is not finite.
        """
        checked_k(k, self._contents.searched(target)[1])  # contents only grow
        scores = self._project(queries)
        if not scores.is_paired:
            raise ValueError(
                "A joint query needs all its views: every object must be seen in each of "
                f"{list(scores.names)}."
            )
        rows = joint_scores(scores, scores.names, normalize)
        if self._faiss is None:
            return _best(self._contents, target, rows, k, _exactly)
        with self._using_graphs:  # which then hold no more than the contents
            return _best(self._contents, target, rows, k, self._by_graph)

    def __repr__(self) -> str:
        shelves = self._contents.shelves.items()
        held = ", ".join(f"{name}: {len(shelf)}" for name, shelf in shelves) or "empty"
        return f"RetrievalIndex({self.estimator!r}, {held})"

    def _project(self, X: Any) -> Views:
        _check_container(X)
        return as_views(Ranking.of(self.estimator, self.similarity).project(X)).in_memory()

    @property
    def _faiss(self) -> str | None:
        """What faiss calls the index asked for; None for exact search."""
        kind, _, description = self.backend.partition(":")
        return (description or "HNSW32") if kind == "faiss" else None

    def _by_graph(
        self, name: str, shelf: Shelf, rows: np.ndarray, k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        assert self._faiss is not None
        graph = self._graphs.get(name)
        if graph is None or graph.is_outdated(shelf):
            graph = _Graph.of(shelf, self._faiss)
        else:
            graph = graph.grown(shelf)
        self._graphs[name] = graph
        return graph.search(shelf.gallery, rows, k)

    # Locks and faiss's graphs stay behind.

    def __getstate__(self) -> dict[str, Any]:
        made_with = {
            "estimator": self.estimator,
            "similarity": self.similarity,
            "backend": self.backend,
        }
        return made_with | self._contents.state()

    def __setstate__(self, state: dict[str, Any]) -> None:
        similarity = state["metric"] if "metric" in state else state["similarity"]  # early files
        self.__init__(state["estimator"], similarity, state["backend"])  # type: ignore[misc]
        self._contents = Contents.of_state(self._contents.similarity, state)


def _check_container(X: Any) -> None:
    if not holds_views(X):
        raise TypeError(
            "Expected Views, a mapping or a list of matrices; name the view of a lone matrix, "
            f"as in {{'text': X}}. Got {type(X).__name__}."
        )


def _in_blocks(X: Any, views: Views) -> Iterator[tuple[slice, Any]]:
    """Blocks of objects of X, which was opened as `views`, in the container that X is."""
    row_bytes = max(8 * width for width in views.widths.values())
    blocks = list(block_slices(len(views), row_bytes, at_least=CHUNK_ROWS))
    if len(blocks) < 2:
        yield slice(0, len(views)), X
        return
    for rows in blocks:
        block = views[rows]
        block = block.select([name for name in block.names if len(block.objects(name))])
        yield rows, in_same_container(X, block, dict(block.items()))


Search = Callable[[str, Shelf, np.ndarray, int], tuple[np.ndarray, np.ndarray]]


def _exactly(_: str, shelf: Shelf, rows: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    gallery = shelf.gallery
    return search(gallery, gallery.queries(rows), k)


def _best(
    contents: Contents, target: str | None, rows: np.ndarray, k: int, search_in: Search
) -> tuple[np.ndarray, np.ndarray]:
    """Scores and ids of the k best objects; one that is found in several views counts once."""
    found = []
    for name in contents.searched(target)[0]:
        shelf = contents.shelves[name]
        scores, items = search_in(name, shelf, rows, min(k, len(shelf)))
        found.append((scores, shelf.ids.take(items), shelf.objects.take(items)))
    if len(found) == 1:
        return found[0][:2]
    # An object among the k best of all is among the k best of the view that it is best in.
    scores, ids, objects = (np.hstack(parts) for parts in zip(*found, strict=True))
    order = np.argsort(-scores, axis=1, kind="stable")
    best = np.take_along_axis(
        order, _first_of_each(np.take_along_axis(objects, order, axis=1), k), axis=1
    )
    return np.take_along_axis(scores, best, axis=1), np.take_along_axis(ids, best, axis=1)


@dataclass(frozen=True, eq=False)
class _Graph:
    """Index of faiss's over the first rows of a shelf."""

    index: Any
    n_rows: int
    origin: np.ndarray | None
    unit: float  # that rows are divided by: faiss computes in float32, whose range squares leave
    n_trained: int | None  # rows it was trained on, if it needs training

    @classmethod
    def of(cls, shelf: Shelf, description: str) -> _Graph:
        faiss, gallery = _import_faiss(), shelf.gallery
        measure = faiss.METRIC_L2 if shelf.similarity == "euclidean" else faiss.METRIC_INNER_PRODUCT
        index = faiss.index_factory(gallery.n_components, description, measure)
        trains = not index.is_trained
        unit = _largest_entry(gallery, 0) or 1.0
        empty = cls(index, 0, shelf.origin, unit, len(shelf) if trains else None)
        if trains:
            index.train(empty._scaled(gallery, np.concatenate(shelf.rows.parts)))
        return empty.grown(shelf)

    def is_outdated(self, shelf: Shelf) -> bool:
        """Whether rows moved, are twice as many as it was trained on, or too large for its unit."""
        grew = self.n_trained is not None and len(shelf) >= 2 * self.n_trained
        too_large = _largest_entry(shelf.gallery, self.n_rows) > _FAISS_RANGE * self.unit
        return grew or too_large or self.origin is not shelf.origin

    def grown(self, shelf: Shelf) -> _Graph:
        """With the rows that were added to the shelf since."""
        gallery, n_rows = shelf.gallery, 0
        for part in shelf.rows.parts:
            new = part[max(0, self.n_rows - n_rows) :]
            if len(new):
                self.index.add(self._scaled(gallery, new))
            n_rows += len(part)
        return replace(self, n_rows=n_rows)

    def search(self, gallery: Gallery, rows: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        queries = gallery.queries(rows)
        if hasattr(self.index, "hnsw"):
            self.index.hnsw.efSearch = max(128, 2 * k)  # as many are visited before it stops
        _, items = self.index.search(self._scaled_queries(gallery, queries), k)
        short = (items < 0).any(axis=1)  # it gave up before it had k
        items[short] = search(gallery, queries[short], k)[1]
        products = np.einsum("ij,ikj->ik", queries, gallery.prepared.take(items))
        scores = gallery.reported(queries, products, items)
        order = np.lexsort((items, -scores), axis=1)
        return np.take_along_axis(scores, order, axis=1), np.take_along_axis(items, order, axis=1)

    def _scaled(self, gallery: Gallery, rows: np.ndarray) -> np.ndarray:
        """Prepared rows as faiss takes them, without the column for norms."""
        return np.ascontiguousarray(rows[:, : gallery.n_components] / self.unit, dtype=np.float32)

    def _scaled_queries(self, gallery: Gallery, queries: np.ndarray) -> np.ndarray:
        if gallery.similarity != "euclidean":  # the length of a query does not change its order
            return self._scaled(gallery, unit_rows(queries) * self.unit)
        largest = float(np.abs(queries[:, :-1]).max(initial=0)) / self.unit
        if largest > _FAISS_RANGE:
            raise ValueError(
                f"A query is {largest:.1g} times as large as the gallery, and faiss computes in "
                "float32. Rescale it, or use backend='exact'."
            )
        return self._scaled(gallery, queries)


def _import_faiss() -> Any:
    try:
        import faiss
    except ImportError as error:
        raise ImportError("backend='faiss' needs faiss: pip install mvcca[index]") from error
    return faiss


def _largest_entry(gallery: Gallery, start: int) -> float:
    """The largest entry, in size, of the prepared rows from `start` on."""
    largest, first = 0.0, 0
    for part in gallery.prepared.parts:
        new = part[max(0, start - first) :, : gallery.n_components]
        largest, first = max(largest, float(np.abs(new).max(initial=0))), first + len(part)
    return largest


def _first_of_each(objects: np.ndarray, k: int) -> np.ndarray:
    """Positions of the first k different objects in each row."""
    order = np.argsort(objects, axis=1, kind="stable")
    ordered = np.take_along_axis(objects, order, axis=1)
    repeated = np.zeros(objects.shape, dtype=bool)
    np.put_along_axis(repeated, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
    return np.argsort(repeated, axis=1, kind="stable")[:, :k]
