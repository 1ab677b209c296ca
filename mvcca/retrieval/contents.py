"""Contents of an index: for each view its gallery, with the ids and objects of the rows.

Contents are values: adding rows gives new contents, at the cost of the added rows, and a search in
progress keeps those it started with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mvcca.retrieval._growing_arrays import ChunkedRows, SortedKeys
from mvcca.retrieval.gallery import Gallery
from mvcca.retrieval.similarity import Similarity, checked_rows


@dataclass(frozen=True, eq=False)
class IndexedView:
    """Gallery of one view, with the id and the object of each row."""

    gallery: Gallery
    ids: ChunkedRows = field(default_factory=ChunkedRows)
    objects: ChunkedRows = field(default_factory=ChunkedRows)  # equal for equal ids of any view
    rows_by_id: SortedKeys = field(default_factory=SortedKeys)

    def __len__(self) -> int:
        return len(self.ids)

    def plus(self, gallery: Gallery, ids: np.ndarray, objects: np.ndarray) -> IndexedView:
        """View whose gallery has grown by rows with these ids and objects."""
        rows = np.arange(len(self), len(self) + len(ids))
        return IndexedView(
            gallery, self.ids.plus(ids), self.objects.plus(objects), self.rows_by_id.plus(ids, rows)
        )


@dataclass(frozen=True, eq=False)
class Contents:
    """Galleries of all views."""

    similarity: Similarity
    views: Mapping[str, IndexedView] = field(default_factory=dict)
    n_objects: int = 0  # different ids
    n_added: int = 0  # objects as they were passed

    def plus(self, name: str, rows: Any, ids: np.ndarray, first: int = 0) -> Contents:
        """Contents with rows added to a view; errors number the rows from `first`."""
        rows = checked_rows(rows, f"view {name!r}", first=first)
        if not len(rows):
            return self
        view, objects = self._view_for(name, ids)
        if len(view) and rows.shape[1] != view.gallery.n_components:
            raise ValueError(
                f"View {name!r} has {view.gallery.n_components} components, got rows of "
                f"{rows.shape[1]}."
            )
        return self._with(name, view.plus(view.gallery.plus(rows), ids, objects), objects)

    def _view_for(self, name: str, ids: np.ndarray) -> tuple[IndexedView, np.ndarray]:
        """A view, and the objects with these ids, which must be new to it."""
        view = self.views.get(name, IndexedView(Gallery(self.similarity)))
        if len(view) and view.ids.dtype.kind != ids.dtype.kind:
            raise ValueError(f"ids of view {name!r} are {view.ids.dtype}, got {ids.dtype}.")
        values, counts = np.unique(ids, return_counts=True)
        repeated = values[(counts > 1) | (view.rows_by_id.positions(values) >= 0)]
        if len(repeated):
            raise ValueError(
                f"View {name!r} would hold several rows with the id {repeated[0]}; "
                "an id names one object."
            )
        objects = np.full(len(ids), -1, dtype=np.int64)
        for other in self.views.values():
            if other.ids.dtype.kind == ids.dtype.kind:
                rows = other.rows_by_id.positions(ids)
                objects[rows >= 0] = other.objects.take(rows[rows >= 0])
        new = np.flatnonzero(objects < 0)
        objects[new] = np.arange(self.n_objects, self.n_objects + len(new))
        return view, objects

    def _with(self, name: str, view: IndexedView, added: np.ndarray) -> Contents:
        n_objects = max(self.n_objects, int(added.max()) + 1)
        return replace(self, views={**self.views, name: view}, n_objects=n_objects)

    def height(self, name: str) -> int:
        """Number of rows of a view."""
        return len(self.views.get(name, ()))

    def searched(self, target: str | None) -> tuple[list[str], int]:
        """The views to search, and the number of objects in them."""
        if not self.views:
            raise ValueError("The index is empty; add a gallery first.")
        if target is not None:
            if target not in self.views:
                raise ValueError(f"The index holds no view {target!r}, only {list(self.views)}.")
            return [target], len(self.views[target])
        if len({view.ids.dtype.kind for view in self.views.values()}) > 1:
            raise ValueError("To search all views their ids must be of one type.")
        return list(self.views), self.n_objects

    # ---- in a file or a pickle ------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Plain values from which `of_state` restores the contents."""
        views = {
            name: {
                "rows": view.gallery.rows.parts,
                "ids": np.concatenate(view.ids.parts),
                "origin": view.gallery.origin,
                "n_at_origin": view.gallery.n_at_origin,
            }
            for name, view in self.views.items()
        }
        return {"views": views, "n_added": self.n_added}

    @classmethod
    def of_state(cls, similarity: Similarity, state: Mapping[str, Any]) -> Contents:
        """Restore contents; early files hold rows that are not prepared."""
        contents = cls(similarity)
        for name, rows in state.get("rows", {}).items():
            contents = contents.plus(name, rows, state["ids"][name])
        for name, stored in state.get("views", {}).items():
            contents = contents._plus_stored(name, **stored)
        widths = {view.gallery.n_components for view in contents.views.values()}
        if len(widths) > 1:
            raise ValueError(f"rows of widths {sorted(widths)} are not of one space")
        return replace(contents, n_added=state["n_added"])

    def _plus_stored(
        self,
        name: str,
        rows: list[np.ndarray],
        ids: np.ndarray,
        origin: np.ndarray | None,
        n_at_origin: int,
    ) -> Contents:
        view, objects = self._view_for(name, ids)
        ends = np.cumsum([len(part) for part in rows])
        whole = ends[-1] == len(ids) and all(part.shape[1:] == rows[0].shape[1:] for part in rows)
        n_components = rows[0].shape[1] - (origin is not None)
        if (
            not whole
            or (self.similarity == "euclidean") != (origin is not None)
            or (origin is not None and origin.shape != (n_components,))
        ):
            raise ValueError(f"rows, ids and origin of view {name!r} do not belong together")
        gallery = Gallery(self.similarity, origin=origin, n_at_origin=n_at_origin)
        for part in rows:
            gallery = gallery.plus_prepared(checked_rows(part, f"view {name!r}"))
        return self._with(name, view.plus(gallery, ids, objects), objects)
