"""Retrieval index: a fitted estimator and a gallery of projected rows to search from any view.

Queries are checked here: faiss returns nonsense for invalid ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from threading import Lock
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from mvcca.config import block_slices
from mvcca.retrieval._growing_arrays import CHUNK_ROWS
from mvcca.retrieval.collection import joint_scores
from mvcca.retrieval.contents import Contents
from mvcca.retrieval.declared import Ranking
from mvcca.retrieval.faiss_search import FaissIndex, import_faiss
from mvcca.retrieval.gallery import Gallery
from mvcca.retrieval.search import checked_k, search
from mvcca.retrieval.similarity import Similarity
from mvcca.typing import ViewsLike
from mvcca.views import Views, as_views, holds_views, in_same_container

# (view name, gallery, queries, k) -> scores, items
SearchView = Callable[[str, Gallery, np.ndarray, int], tuple[np.ndarray, np.ndarray]]


class RetrievalIndex:
    """Search index: a gallery of one or several views, for queries of any view of an estimator.

    Parameters
    ----------
    estimator : fitted estimator
        Projects a mapping of view names to matrices with `transform`.
    similarity : {"cosine", "euclidean", "inner"}, optional
        Similarity of the rows of `transform`. The cosine with a zero row is 0. By default the
        similarity that the estimator declares (``retrieval_ranking``), and cosine if it has none.
    backend : str, default="exact"
        "exact", "faiss" for approximate search in a graph, or "faiss:" and the description of
        another faiss index, such as "faiss:IVF256,Flat".

    Raises
    ------
    ValueError
        If the similarity or the backend is unknown.
    ImportError
        If the backend is faiss and it is not installed.

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
            import_faiss()
        self.estimator = estimator
        self.similarity = similarity
        self.backend = backend
        self._contents = Contents(ranking.similarity)
        self._adding = Lock()  # held by writers; a search reads `_contents` once, and keeps it
        self._faiss: dict[str, FaissIndex] = {}
        self._using_faiss = Lock()  # faiss cannot be searched while rows are added

    def add(self, views: ViewsLike, ids: ArrayLike | None = None) -> Self:
        """Project objects and add them to the gallery, in every view in which they are seen.

        Parameters
        ----------
        views : Views, mapping or list
            Objects, as for the estimator's `transform`.
        ids : array-like, shape (n_objects,), optional
            Ids that `search` returns; by default consecutive numbers. The views of an object may be
            added one after another, under the same id.

        Returns
        -------
        RetrievalIndex
            This index.

        Raises
        ------
        ValueError
            If there is not one id per object, a view already holds an id, or a projection is not
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
        self, queries: ViewsLike, target: str | None = None, k: int = 10, normalize: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Find the k best objects for every query.

        Parameters
        ----------
        queries : Views, mapping or list, of n_queries rows per view
            Queries of one view, or joint queries of several, whose projections are summed.
        target : str, optional
            The view to search. By default all views are searched, and an object counts once, with
            its best view.
        k : int, default=10
            Number of objects to find per query.
        normalize : bool, default=False
            Scale each view's projected query to length 1 before summing.

        Returns
        -------
        scores : ndarray, shape (n_queries, k)
            Descending; "euclidean" gives negative distances.
        ids : ndarray, shape (n_queries, k)
            Ids of the objects; of equal scores the one added first comes first.

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
        if self.backend == "exact":
            return _best(self._contents, target, rows, k, self._search_exactly)
        with self._using_faiss:  # then its indexes hold no more rows than the contents
            return _best(self._contents, target, rows, k, self._search_with_faiss)

    def __repr__(self) -> str:
        views = self._contents.views.items()
        held = ", ".join(f"{name}: {len(view)}" for name, view in views) or "empty"
        return f"RetrievalIndex({self.estimator!r}, {held})"

    def _project(self, X: Any) -> Views:
        _check_container(X)
        return as_views(Ranking.of(self.estimator, self.similarity).project(X)).in_memory()

    def _search_exactly(
        self, _: str, gallery: Gallery, rows: np.ndarray, k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        return search(gallery, gallery.queries(rows), k)

    def _search_with_faiss(
        self, name: str, gallery: Gallery, rows: np.ndarray, k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        index = self._faiss.get(name)
        if index is None or index.is_outdated(gallery):
            index = FaissIndex.of(gallery, self.backend.partition(":")[2] or "HNSW32")
        else:
            index = index.grown(gallery)
        self._faiss[name] = index
        return index.search(gallery, rows, k)

    def __getstate__(self) -> dict[str, Any]:  # without locks and faiss indexes
        parameters = {name: getattr(self, name) for name in ("estimator", "similarity", "backend")}
        return parameters | self._contents.state()

    def __setstate__(self, state: dict[str, Any]) -> None:
        similarity = state["metric"] if "metric" in state else state["similarity"]  # early files
        self.__init__(state["estimator"], similarity, state["backend"])  # type: ignore[misc]
        self._contents = Contents.of_state(self._contents.similarity, state)


def _check_container(X: Any) -> None:
    if not holds_views(X):
        raise TypeError(
            "Expected Views, a mapping or a list of matrices; name the view of a single matrix, "
            f"as in {{'text': X}}. Got {type(X).__name__}."
        )


def _in_blocks(X: Any, views: Views) -> Iterator[tuple[slice, Any]]:
    """Blocks of the objects of X, which was opened as `views`, in the same container as X."""
    row_bytes = max(8 * width for width in views.widths.values())
    blocks = list(block_slices(len(views), row_bytes, at_least=CHUNK_ROWS))
    if len(blocks) < 2:
        yield slice(0, len(views)), X
        return
    for rows in blocks:
        block = views[rows]
        block = block.select([name for name in block.names if len(block.objects(name))])
        yield rows, in_same_container(X, block, dict(block.items()))


def _best(
    contents: Contents, target: str | None, rows: np.ndarray, k: int, search_view: SearchView
) -> tuple[np.ndarray, np.ndarray]:
    """Scores and ids of the k best objects; one found in several views counts once."""
    found = []
    for name in contents.searched(target)[0]:
        view = contents.views[name]
        scores, items = search_view(name, view.gallery, rows, min(k, len(view)))
        found.append((scores, view.ids.take(items), view.objects.take(items)))
    if len(found) == 1:
        return found[0][:2]
    # An object among the k best of all is among the k best of its best view.
    scores, ids, objects = (np.hstack(parts) for parts in zip(*found, strict=True))
    order = np.argsort(-scores, axis=1, kind="stable")
    first = _first_of_each(np.take_along_axis(objects, order, axis=1), k)
    best = np.take_along_axis(order, first, axis=1)
    return np.take_along_axis(scores, best, axis=1), np.take_along_axis(ids, best, axis=1)


def _first_of_each(objects: np.ndarray, k: int) -> np.ndarray:
    """Positions of the first k distinct objects in each row."""
    order = np.argsort(objects, axis=1, kind="stable")
    ordered = np.take_along_axis(objects, order, axis=1)
    repeated = np.zeros(objects.shape, dtype=bool)
    np.put_along_axis(repeated, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
    return np.argsort(repeated, axis=1, kind="stable")[:, :k]
