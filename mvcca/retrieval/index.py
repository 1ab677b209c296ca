"""An index: a fitted estimator and a gallery of projected rows, to ask with any of its views.

Exact search is `mvcca.retrieval.top_k`'s; approximate search is faiss's, if it is installed.
Everything about a query is checked here first: faiss answers a bad one with nonsense.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mvcca.measures import unit_rows
from mvcca.retrieval._blockwise import checked_k, search
from mvcca.retrieval.collection import joint_scores
from mvcca.retrieval.metrics import METRICS, Gallery, Metric, checked_rows
from mvcca.views import Views, as_views, holds_views

_FAISS_RANGE = 1e15  # of queries in units of the gallery: squares stay below float32's largest


class RetrievalIndex:
    """Gallery of one or several views that answers queries of any view the estimator knows.

    Parameters
    ----------
    estimator : fitted estimator
        Projects a mapping of view names to matrices with `transform`.
    metric : {"cosine", "euclidean", "inner"}, default="cosine"
        What is compared. The cosine with a zero row is 0.
    backend : str, default="exact"
        "exact", or "faiss" for approximate search in a graph, or "faiss:" and the description of
        another faiss index, such as "faiss:IVF256,Flat".

    Raises
    ------
    ValueError
        If the metric or the backend is unknown.
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
    >>> index = RetrievalIndex(CCA(2).fit(views), metric="euclidean").add(views)
    >>> scores, ids = index.search({"text": views["text"][:3]}, target="image", k=1)
    >>> ids.ravel()
    array([0, 1, 2])
    """

    def __init__(self, estimator: Any, metric: Metric = "cosine", backend: str = "exact") -> None:
        if metric not in METRICS:
            raise ValueError(f"Expected metric to be one of {list(METRICS)}, got {metric!r}.")
        kind, _, description = backend.partition(":")
        if kind not in ("exact", "faiss") or (kind == "exact" and description):
            raise ValueError(f"Expected backend to be 'exact' or 'faiss', got {backend!r}.")
        if kind == "faiss":
            _import_faiss()
        self.estimator = estimator
        self.metric = metric
        self.backend = backend
        self._rows: dict[str, np.ndarray] = {}
        self._ids: dict[str, np.ndarray] = {}
        self._n_added = 0
        self._shelves: dict[str | None, _Shelf] = {}

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
        scores = self._project(views)
        start = self._n_added
        ids = np.arange(start, start + len(scores)) if ids is None else np.asarray(ids)
        if ids.shape != (len(scores),):
            raise ValueError(f"Expected {len(scores)} ids, one per object, got {ids.shape}.")
        new_rows, new_ids = dict(self._rows), dict(self._ids)
        for name in scores.names:
            rows, own = checked_rows(scores[name], f"view {name!r}"), ids[scores.objects(name)]
            if name in self._rows:
                if own.dtype.kind != self._ids[name].dtype.kind:
                    raise ValueError(
                        f"ids of view {name!r} are {self._ids[name].dtype}, got {own.dtype}."
                    )
                rows = np.concatenate([self._rows[name], rows])
                own = np.concatenate([self._ids[name], own])
            values, counts = np.unique(own, return_counts=True)
            if (counts > 1).any():
                raise ValueError(
                    f"View {name!r} would hold several rows with the id {values[counts > 1][0]}; "
                    "an id names one object."
                )
            new_rows[name], new_ids[name] = rows, own
        self._rows, self._ids = new_rows, new_ids
        self._n_added += len(scores)
        self._shelves = {}
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
            Falling; distances of the metric "euclidean" are negative.
        ids : ndarray, shape (n_queries, k)
            The objects; of equal scores the one added first comes first.

        Raises
        ------
        ValueError
            If the index is empty, the view unknown, k larger than the number of objects, or a
            query has the wrong width or is not finite.
        """
        shelf = self._shelf(target)
        checked_k(k, shelf.n_objects)
        scores = self._project(queries)
        if not scores.is_paired:
            raise ValueError(
                "A joint query needs all its views: every object must be seen in each of "
                f"{list(scores.names)}."
            )
        rows = joint_scores(scores, scores.names, normalize)
        found, items = shelf.search(rows, min(k * shelf.n_views, len(shelf.gallery)))
        if shelf.n_views > 1:
            best = _first_of_each(shelf.objects[items], k)
            found, items = (np.take_along_axis(a, best, axis=1) for a in (found, items))
        return found, shelf.ids[items]

    def __repr__(self) -> str:
        held = ", ".join(f"{name}: {len(rows)}" for name, rows in self._rows.items()) or "empty"
        return f"RetrievalIndex({self.estimator!r}, {held})"

    def _project(self, X: Any) -> Views:
        if not holds_views(X):
            raise TypeError(
                "Expected Views, a mapping or a list of matrices; name the view of a lone matrix, "
                f"as in {{'text': X}}. Got {type(X).__name__}."
            )
        return as_views(self.estimator.transform(X)).in_memory()

    def _shelf(self, target: str | None) -> _Shelf:
        """One view's gallery, or all views' as one; prepared when it is first searched."""
        if not self._rows:
            raise ValueError("The index is empty; add a gallery first.")
        if target is not None and target not in self._rows:
            raise ValueError(f"The index holds no view {target!r}, only {list(self._rows)}.")
        if target not in self._shelves:
            names = list(self._rows) if target is None else [target]
            ids = np.concatenate([self._ids[name] for name in names])
            if len({self._ids[name].dtype.kind for name in names}) > 1:
                raise ValueError("To search all views their ids must be of one type.")
            gallery = Gallery(np.concatenate([self._rows[name] for name in names]), self.metric)
            objects = np.unique(ids, return_inverse=True)[1].reshape(-1)
            kind, _, description = self.backend.partition(":")
            graph = _faiss_index(gallery, description or "HNSW32") if kind == "faiss" else None
            self._shelves[target] = _Shelf(gallery, ids, objects, len(names), graph)
        return self._shelves[target]


@dataclass(frozen=True, eq=False)
class _Shelf:
    """A gallery that is ready to be searched."""

    gallery: Gallery
    ids: np.ndarray  # (n_rows,)
    objects: np.ndarray  # (n_rows,), equal for rows of equal id
    n_views: int
    graph: Any  # faiss's index, or None for exact search

    @property
    def n_objects(self) -> int:
        return int(self.objects.max()) + 1

    def search(self, rows: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        queries = self.gallery.queries(rows)
        if self.graph is None:
            return search(self.gallery, queries, k)
        if hasattr(self.graph, "hnsw"):
            self.graph.hnsw.efSearch = max(128, 2 * k)  # as many are visited before it stops
        _, items = self.graph.search(_queries_for_faiss(self.gallery, queries), k)
        short = (items < 0).any(axis=1)  # it gave up before it had k
        items[short] = search(self.gallery, queries[short], k)[1]
        products = np.einsum("ij,ikj->ik", queries, self.gallery.factor[items])
        scores = self.gallery.reported(queries, products, items)
        order = np.lexsort((items, -scores), axis=1)
        return np.take_along_axis(scores, order, axis=1), np.take_along_axis(items, order, axis=1)


def _import_faiss() -> Any:
    try:
        import faiss
    except ImportError as error:
        raise ImportError("backend='faiss' needs faiss: pip install mvcca[index]") from error
    return faiss


def _faiss_index(gallery: Gallery, description: str) -> Any:
    faiss = _import_faiss()
    rows = _for_faiss(gallery, gallery.factor[: len(gallery)])
    measure = faiss.METRIC_L2 if gallery.metric == "euclidean" else faiss.METRIC_INNER_PRODUCT
    index = faiss.index_factory(rows.shape[1], description, measure)
    index.train(rows)
    index.add(rows)
    return index


def _for_faiss(gallery: Gallery, rows: np.ndarray) -> np.ndarray:
    """Prepared rows as faiss takes them, without the column for norms.

    It computes in float32, whose range squares leave soon: the gallery's largest entry becomes 1.
    """
    return np.ascontiguousarray(rows[:, : gallery.n_components] / gallery.unit, dtype=np.float32)


def _queries_for_faiss(gallery: Gallery, queries: np.ndarray) -> np.ndarray:
    if gallery.metric != "euclidean":  # the length of a query does not change its order
        return _for_faiss(gallery, unit_rows(queries) * gallery.unit)
    largest = float(np.abs(queries[:, :-1]).max(initial=0)) / gallery.unit
    if largest > _FAISS_RANGE:
        raise ValueError(
            f"A query is {largest:.1g} times as large as the gallery, and faiss computes in "
            "float32. Rescale it, or use backend='exact'."
        )
    return _for_faiss(gallery, queries)


def _first_of_each(objects: np.ndarray, k: int) -> np.ndarray:
    """Positions of the first k different objects in each row."""
    order = np.argsort(objects, axis=1, kind="stable")
    ordered = np.take_along_axis(objects, order, axis=1)
    repeated = np.zeros(objects.shape, dtype=bool)
    np.put_along_axis(repeated, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
    return np.argsort(repeated, axis=1, kind="stable")[:, :k]
