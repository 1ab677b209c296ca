"""Retrieval index: a fitted estimator and a gallery of projected rows to search from any view.

Queries are checked here: faiss returns nonsense for invalid ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from numbers import Number
from threading import Lock
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from mvcca.blocks.checks import reject_masks, reject_missing_ids
from mvcca.machine.config import block_slices
from mvcca.machine.memory import readable
from mvcca.machine.printable import printable
from mvcca.machine.tables import ShownAsTables, Table
from mvcca.machine.warnings import warn
from mvcca.retrieval.empty_rows import note_on, without_empty
from mvcca.retrieval.hubs import CSLS, BankOfViews
from mvcca.retrieval.index.contents import Contents, IndexedView, JointTarget, Searched, Target
from mvcca.retrieval.index.faiss_search import FaissIndex, import_faiss
from mvcca.retrieval.index.stored_ids import no_ids
from mvcca.retrieval.ranking import Ranking, Weighting
from mvcca.retrieval.search import Gallery, checked_k, checked_rows, search
from mvcca.retrieval.search.gallery import CHUNK_ROWS
from mvcca.retrieval.similarity import Similarity
from mvcca.views import Views, as_views, in_same_container
from mvcca.views.typing import ViewsLike

_PARAMETERS = ("estimator", "similarity", "backend", "weighting")  # those that are stored


class RetrievalIndex(ShownAsTables):
    """Search index: a gallery of one or several views, for queries of any view of an estimator.

    `mvcca.save` and `mvcca.load` store an index whole; ``load(path, mmap=True)`` leaves the gallery
    in the file. Threads may search while others add, update and remove: every answer is that of
    the index before or after a change.

    Parameters
    ----------
    estimator : fitted estimator
        Projects a mapping of view names to matrices with `transform`.
    similarity : {"cosine", "euclidean", "inner"}, optional
        Similarity of projected rows. By default that of the method: the ranking that the fit chose
        (``ranking_``) or the class declares (``retrieval_ranking``), and cosine if there is none.
        The cosine with a zero row is 0.
    backend : str, default="exact"
        "exact", "faiss" for approximate search in a graph, or "faiss:" and the description of
        another faiss index, such as "faiss:IVF256,Flat".
    hubness : {"csls"} or CSLS, optional
        Correct for hubs, items that are near to many queries, with the rows of `bank`. By default
        as the model was tuned: by the correction of its ``ranking_``, if there is one. See
        `mvcca.retrieval.evaluate_retrieval`.
        The first search from a view to another one multiplies all rows with the bank, and so takes
        as long as a search for as many queries as the bank has rows; it keeps a copy of the gallery
        with the results. Later searches only add those of rows added since. Search once before
        serving queries, also after loading an index.
    bank : Views, mapping or list, optional
        Rows that the correction compares with, for the estimator's `transform`: training rows, or
        rows of the gallery that have the views of the queries, too. Only their projections are
        kept.
    weighting : str or None, default="auto"
        Weighting of the components by their correlations, as in
        `mvcca.retrieval.evaluate_retrieval`. Scores of "likelihood" are log-likelihood ratios,
        those of joint queries the sum of their views' ratios.

    Raises
    ------
    ValueError
        If the similarity, the weighting, the backend or the correction is unknown, or there is a
        correction without a bank.
    ImportError
        If the backend is faiss and it is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from mvcca import CCA, RetrievalIndex
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
        self,
        estimator: Any,
        similarity: Similarity | None = None,
        backend: str = "exact",
        hubness: str | CSLS | None = None,
        bank: ViewsLike | None = None,
        weighting: Weighting | None = "auto",
    ) -> None:
        self._ranking = ranking = Ranking.of(estimator, similarity, weighting, hubness, bank)
        kind, _, description = backend.partition(":")
        if kind not in ("exact", "faiss") or (kind == "exact" and description):
            raise ValueError(f"Expected backend to be 'exact' or 'faiss', got {backend!r}.")
        if kind == "faiss":
            import_faiss()
        self.estimator = estimator
        self.similarity = similarity
        self.backend = backend
        self.weighting = weighting
        self.hubness = hubness
        self._given_hubs = None if bank is None else ranking.hubs  # that a user chose
        self._corrected: dict[tuple[tuple[str, ...], bool, Searched, bool], Gallery] = {}
        self._contents = Contents(ranking.similarity, widths=ranking.widths)
        self._changing = Lock()  # held by writers; a search reads `_contents` once, and keeps it
        self._faiss: dict[Any, FaissIndex] = {}
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
            If there is not one id per object, an id is missing (None, NaN), a view already holds an
            id, or a projection is not finite.
        """
        opened = as_views(views)
        n_objects = len(opened)
        ids = None if ids is None else _checked_ids(ids, n_objects)
        with self._changing:
            n_added = self._contents.n_added
            if ids is None:
                ids = np.arange(n_added, n_added + n_objects)
            contents = self._with_rows(views, opened, ids, replaces=False)
            self._contents = replace(contents, n_added=n_added + n_objects)
        return self

    def update(self, views: ViewsLike, ids: ArrayLike) -> Self:
        """Replace rows of objects that are in the index.

        Views in which an object is not passed keep its row, and a view that had none gets one. Of
        equal scores, an updated row comes after those that were there before.

        Parameters
        ----------
        views : Views, mapping or list
            Objects, as for `add`.
        ids : array-like, shape (n_objects,)
            Their ids in the index.

        Returns
        -------
        RetrievalIndex
            This index.

        Raises
        ------
        ValueError
            If an id is not in the index or repeated, or as for `add`; the index is unchanged then.
        """
        opened = as_views(views)
        ids = _checked_ids(ids, len(opened))
        with self._changing:
            self._contents.check_known(ids)
            self._contents = self._with_rows(views, opened, ids, replaces=True)
        return self

    def remove(self, ids: ArrayLike) -> Self:
        """Remove objects from all views.

        Removed rows are skipped, and their memory is freed once they are a quarter of a view.

        Parameters
        ----------
        ids : array-like, shape (n_objects,)
            Ids of the objects.

        Returns
        -------
        RetrievalIndex
            This index.

        Raises
        ------
        ValueError
            If an id is not in the index, which is unchanged then.
        """
        ids = _checked_ids(ids)
        with self._changing:
            self._contents = self._contents.without(ids)
        return self

    def search(
        self,
        queries: ViewsLike,
        target: str | Sequence[str] | None = None,
        k: int = 10,
        normalize: bool = False,
    ) -> tuple[Any, Any]:
        """Find the k best objects for every query.

        Parameters
        ----------
        queries : Views, mapping or list, of n_queries rows per view
            Queries of one view, or joint queries of several, whose projections are summed, or which
            the model answers as one question (`MVCCA`). In partly paired `Views`, a query consists
            of the views in which it is seen. Queries in
            Dask arrays give lazy Dask arrays, of the index as it is now.
        target : str or sequence of str, optional
            The view to search, or several that are searched as one: an object is then the sum of
            its projections from those of the views in which it is seen [1]_. By default all views
            are searched, and an object counts once, with its best view.
        k : int, default=10
            Number of objects to find per query.
        normalize : bool, default=False
            Scale each view's projections to length 1 before summing. Not for the likelihood, whose
            ratios are summed.

        Returns
        -------
        scores : ndarray, shape (n_queries, k)
            Descending; "euclidean" gives negative distances, and `hubness` the scores of its
            formula. A query in which the estimator knows nothing, such as a text of unknown words
            or a sparse row of zeros, has no hits: its scores are NaN, and a warning is given.
        ids : ndarray, shape (n_queries, k)
            Ids of the objects; of equal scores the one added first comes first. Without hits -1,
            or "" if ids are strings.

        Raises
        ------
        ValueError
            If the index is empty, the view unknown, k larger than the number of objects, or a
            query has the wrong width, is seen in no view or is not finite; if views are searched
            as one, or `normalize` is set, with the likelihood.

        References
        ----------
        .. [1] Remark (b) of Sanghavi and Verma, "Multi-view Multi-label Canonical Correlation
           Analysis for Cross-modal Matching and Retrieval", CVPRW 2022.
        """
        self._searched(target, k, normalize)  # refuses before the queries are projected
        as_views(queries)  # refuses a single matrix, even if a pipeline could split it
        projected = self._ranking.project(queries)
        rows = projected.rows
        if rows.is_lazy:
            if rows.is_paired and any(block.deferred() for block in rows.blocks.values()):
                return self._search_lazily(rows, target, k, normalize)
            rows = rows.in_memory()
        are_asked = np.any(rows.seen, axis=1)
        if not are_asked.all():
            nowhere = np.flatnonzero(~are_asked)[0]
            raise ValueError(f"Query {nowhere} is seen in no view; at least one is needed.")
        if projected.empty:
            rows = without_empty(rows, projected.empty)
            are_asked = np.any(rows.seen, axis=1)
        if are_asked.all():
            return self._answer(rows, target, k, normalize)
        warn(f"{note_on(int((~are_asked).sum()), len(rows))}: no hits")
        return self._answer_some(rows, are_asked, target, k, normalize)

    def _answer_some(
        self, scores: Views, are_asked: np.ndarray, target: Target, k: int, normalize: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Answers of some queries; those of others are NaN and no id."""
        dtype, of_ids = _dtypes(self._searched(target, k, normalize))
        scores_of_all = np.full((len(scores), k), np.nan, dtype)
        ids_of_all = no_ids((len(scores), k), of_ids)
        if are_asked.any():
            found, ids = self._answer(scores[are_asked], target, k, normalize)
            scores_of_all[are_asked], ids_of_all[are_asked] = found, ids
        return scores_of_all, ids_of_all

    def _searched(self, target: Target, k: int, normalize: bool) -> Mapping[Searched, IndexedView]:
        """The views to search, as they are now; several as one are summed the first time."""
        contents = self._contents
        searched = contents.searched(target, normalize)
        is_joint = isinstance(joint := searched[0], JointTarget)
        ranking = self._ranking
        if ranking.is_by_target and (normalize or (is_joint and not ranking.is_by_question)):
            raise ValueError(
                "The likelihood weights components by the correlations of each pair of views, so "
                "that its scores can neither be normalized nor summed over views, and questions "
                "that are solved by themselves have no common space to normalize in. Search one "
                "view, or all with target=None, without normalize; or rank by "
                "weighting='profile-likelihood'."
            )
        if isinstance(joint, JointTarget) and joint not in contents.joints:
            with self._changing:
                self._contents.searched(target, normalize)  # still there?
                self._contents = contents = self._contents.with_joint(joint)
        views: Mapping[Any, IndexedView] = contents.joints if is_joint else contents.views
        checked_k(k, contents.n_objects if len(searched) > 1 else views[joint].n_ranked)
        return {name: views[name] for name in searched}

    def _answer(
        self, scores: Views, target: Target, k: int, normalize: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Scores and ids of the k best objects for projected queries."""
        if self._ranking.is_by_question and not scores.is_paired:
            return self._answer_patterns(scores, target, k, normalize)
        rows = {
            name: checked_rows(block, f"view {name!r}") for name, block in scores.blocks.items()
        }
        places = None if scores.is_paired else {name: scores.objects(name) for name in rows}
        found = []
        # A faiss index holds no more rows than the views if these are read while it is locked.
        with nullcontext() if self.backend == "exact" else self._using_faiss:
            views = self._searched(target, k, normalize)
            ranking = self._ranking.of_several_targets() if len(views) > 1 else self._ranking
            for searched, view in views.items():
                names = searched.names if isinstance(searched, JointTarget) else (searched,)
                of_target = ranking.queries(rows, names, places, len(scores), normalize)
                key: Any = searched
                gallery: Gallery = view
                if ranking.hubs is not None or ranking.is_by_question:
                    key = scores.names, normalize, searched, len(views) > 1
                    gallery = self._corrected_gallery(ranking, key, view)
                hits = min(k, view.n_ranked)
                if self.backend == "exact":
                    products, items = search(gallery, gallery.queries(of_target), hits)
                else:
                    products, items = self._search_with_faiss(key, gallery, of_target, hits)
                found.append((products, items, view))
        if len(found) > 1:
            return _best(found, k)
        return products, view.ids.take(items)

    def _answer_patterns(
        self, scores: Views, target: Target, k: int, normalize: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Answers of queries that are seen in different views, each of which is a question."""
        patterns, codes = np.unique(scores.seen, axis=0, return_inverse=True)
        dtype, of_ids = _dtypes(self._searched(target, k, normalize))
        found = np.empty((len(scores), k), dtype), no_ids((len(scores), k), of_ids)
        for number, pattern in enumerate(patterns):
            own = np.flatnonzero(codes.ravel() == number)
            names = [name for name, is_seen in zip(scores.names, pattern, strict=True) if is_seen]
            answers = self._answer(scores[own].select(names), target, k, normalize)
            for of_all, answer in zip(found, answers, strict=True):
                of_all[own] = answer
        return found

    def _corrected_gallery(
        self, ranking: Ranking, key: tuple[tuple[str, ...], bool, Searched, bool], gallery: Gallery
    ) -> Gallery:
        """The gallery of one direction, from that of an earlier search."""
        before: Any = self._corrected.get(key)
        if before is not None and getattr(before, "base", before) is gallery:
            return before
        query, normalize, searched, _ = key
        joint = searched if isinstance(searched, JointTarget) else JointTarget((searched,), False)
        self._corrected[key] = found = ranking.corrected(
            gallery, query, joint.names, normalize, joint.normalize, before
        )
        return found

    def _search_lazily(
        self, scores: Views, target: Target, k: int, normalize: bool
    ) -> tuple[Any, Any]:
        """Lazy Dask arrays of scores and ids, with the row chunks of the first view."""
        import dask.array as da
        from dask.delayed import delayed

        views = self._searched(target, k, normalize)
        index = type(self).__new__(type(self))  # which later changes leave as it is
        vars(index).update(
            vars(self),
            _contents=self._contents,
            _changing=Lock(),
            _corrected={},
            _faiss={},
            _using_faiss=Lock(),
        )
        arrays = {name: block.as_dask() for name, block in scores.blocks.items()}
        heights = next(iter(arrays.values())).chunks[0]
        blocks = {
            name: array.rechunk({0: heights, 1: -1}).to_delayed().ravel()
            for name, array in arrays.items()
        }
        answer = delayed(index._answer_block, pure=False, nout=2)
        answers = [
            answer({name: parts[i] for name, parts in blocks.items()}, target, k, normalize)
            for i in range(len(heights))
        ]
        dtypes = _dtypes(views)
        scores_and_ids = [
            da.concatenate(
                [
                    da.from_delayed(found[part], (height, k), dtype=dtype)
                    for found, height in zip(answers, heights, strict=True)
                ]
            )
            for part, dtype in enumerate(dtypes)
        ]
        return scores_and_ids[0], scores_and_ids[1]

    def _answer_block(
        self, blocks: dict[str, np.ndarray], target: Target, k: int, normalize: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        return self._answer(Views(blocks), target, k, normalize)

    def _with_rows(self, views: Any, opened: Views, ids: np.ndarray, replaces: bool) -> Contents:
        """Contents with projected rows, block by block."""
        before = contents = self._contents
        first: Counter[str] = Counter()  # rows of earlier blocks, by view
        row_bytes = max(8 * width for width in opened.widths.values())
        for part in block_slices(len(opened), row_bytes, at_least=CHUNK_ROWS):
            rows, objects = views, ids
            if part.stop - part.start < len(opened):
                rows, objects = _of_objects(views, opened, part), ids[part]
            scores = self._ranking.project(rows).rows
            for (name, block), is_seen in zip(scores.blocks.items(), scores.seen.T, strict=True):
                own = objects[is_seen]
                contents = contents.plus(name, block, own, first[name], replaces)
                first[name] += len(own)
        return contents.with_joined(ids) if before.joints else contents

    def __repr__(self) -> str:
        views = self._contents.views.items()
        held = ", ".join(f"{name}: {view.n_ranked}" for name, view in views) or "empty"
        return printable(f"RetrievalIndex({self.estimator!r}, {held})")

    def tables(self) -> list[Table]:
        """Return the table that notebooks show: a line per view."""
        views = self._contents.views
        rows = [
            (
                name,
                f"{view.n_ranked:,}",
                view.n_components,
                str(view.dtype),
                readable(view.rows.n_bytes + view.ids.n_bytes),
            )
            for name, view in views.items()
        ]
        model = " ".join(str(self.estimator).split())
        table = Table.of(
            f"Index of {len(views)} views" if views else "Index, empty: add rows with index.add",
            ("view", "rows", "components", "type", "size"),
            rows,
            [f"{model}; ranked by {self._ranking}; {self.backend} search"],
            words=("view", "type"),
        )
        return [table]

    def _search_with_faiss(
        self, key: Any, gallery: Gallery, rows: np.ndarray, k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        index = self._faiss.get(key)
        if index is None or index.is_outdated(gallery):
            index = FaissIndex.of(gallery, self.backend.partition(":")[2] or "HNSW32")
        else:
            index = index.grown(gallery)
        self._faiss[key] = index
        return index.search(gallery, rows, k)

    def __getstate__(self) -> dict[str, Any]:  # without locks and faiss indexes
        parameters = {name: getattr(self, name) for name in _PARAMETERS}
        bank = {} if self._given_hubs is None else {"hubs": self._given_hubs.state()}
        return parameters | bank | self._contents.state()

    def __setstate__(self, state: dict[str, Any]) -> None:
        parameters = {name: state[name] for name in _PARAMETERS}
        if "hubs" in state:
            hubs = BankOfViews.of_state(state["hubs"])
            parameters |= {"hubness": hubs.correction, "bank": hubs}
        self.__init__(**parameters)  # type: ignore[misc]
        empty = self._contents
        self._contents = Contents.of_state(empty.similarity, state, empty.widths)


def _of_objects(views: Any, opened: Views, objects: slice) -> Any:
    """Some objects of views in the views' container, without views in which none is seen."""
    block = opened[objects]
    block = block.select([name for name in block.names if len(block.objects(name))])
    return in_same_container(views, block, dict(block.items()))


def _checked_ids(ids: Any, n_objects: int | None = None) -> np.ndarray:
    """Ids as a one-dimensional array, one per object if their number is given."""
    reject_masks(ids)
    given, ids = ids, np.atleast_1d(np.asarray(ids))
    reject_missing_ids(ids)
    _check_one_type(given)
    if n_objects is not None and ids.shape != (n_objects,):
        raise ValueError(f"Expected {n_objects} ids, one per object, got {ids.shape}.")
    if ids.ndim != 1:
        raise ValueError(f"Expected ids of shape (n_objects,), got {ids.shape}.")
    if ids.dtype.kind in "OT" and all(isinstance(value, str) for value in ids):
        return ids.astype(str)
    return ids


def _check_one_type(ids: Any) -> None:
    """Raise for ids that cannot be ordered; NumPy would turn numbers beside text into text."""
    ids = ids if isinstance(ids, list | tuple) else np.asarray(ids)
    if isinstance(ids, np.ndarray) and (ids.dtype.kind not in "OT" or ids.ndim != 1):
        return
    names = {"str_": "str", "bytes_": "bytes"}  # of NumPy
    found = {"number" if isinstance(one, Number) else type(one).__name__ for one in ids}
    if len(kinds := sorted({names.get(name, name) for name in found})) > 1:
        raise ValueError(
            f"ids must be of one type, got {' and '.join(kinds)}. Convert them, for example to "
            "strings."
        )


def _dtypes(views: Mapping[Searched, IndexedView]) -> tuple[np.dtype, np.dtype]:
    """Types of the scores and ids that a search of some views finds."""
    return (
        np.result_type(*(view.dtype for view in views.values())),
        np.result_type(*(view.ids.dtype for view in views.values())),
    )


def _best(
    found: Sequence[tuple[np.ndarray, np.ndarray, IndexedView]], k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Scores and ids of the k best objects; one found in several views counts once."""
    # An object among the k best of all is among the k best of its best view.
    scores = np.hstack([own for own, _, _ in found])
    ids = np.hstack([view.ids.take(items) for _, items, view in found])
    objects = np.hstack([view.objects.take(items) for _, items, view in found])
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
