"""Contents of an index: for each view its gallery, with the ids and objects of the rows.

Contents are values: a change gives new contents, at the cost of the changed rows, and a search in
progress keeps those it started with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mvcca.retrieval.checked_rows import checked_rows
from mvcca.retrieval.index.stored_ids import restored_ids, stored_ids
from mvcca.retrieval.search import Gallery
from mvcca.retrieval.search.growing_arrays import CHUNK_ROWS, ChunkedRows, SortedKeys
from mvcca.retrieval.similarity import Euclidean, InnerProduct
from mvcca.retrieval.weighting import summed

_REMOVED_SHARE = 4  # a view is compacted once a quarter of its rows are removed


@dataclass(frozen=True)
class JointTarget:
    """Several views that are searched as one: the sum of an object's projections."""

    names: tuple[str, ...]
    normalize: bool  # each projection to length 1


Target = str | Sequence[str] | None  # None searches every view
Searched = str | JointTarget


@dataclass(frozen=True, eq=False)
class IndexedView:
    """Gallery of one view, with the id and the object of each row."""

    gallery: Gallery
    ids: ChunkedRows = field(default_factory=ChunkedRows)
    objects: ChunkedRows = field(default_factory=ChunkedRows)  # equal for equal ids of any view
    rows_by_id: SortedKeys = field(default_factory=SortedKeys)

    def __len__(self) -> int:
        return self.gallery.n_ranked

    @property
    def rows(self) -> np.ndarray:
        """Positions of the rows that are not removed."""
        is_kept = np.ones(len(self.ids), dtype=bool)
        is_kept[self.gallery.removed.positions()] = False
        return np.flatnonzero(is_kept)

    def plus(self, rows: np.ndarray, ids: np.ndarray, objects: np.ndarray) -> IndexedView:
        """View with rows of new ids."""
        return self.grown_to(self.gallery.plus(rows), ids, objects)

    def grown_to(self, gallery: Gallery, ids: np.ndarray, objects: np.ndarray) -> IndexedView:
        """View whose gallery has grown by rows with these ids and objects."""
        rows = np.arange(len(self.ids), len(self.ids) + len(ids))
        return IndexedView(
            gallery, self.ids.plus(ids), self.objects.plus(objects), self.rows_by_id.plus(ids, rows)
        )

    def without(self, ids: np.ndarray) -> IndexedView:
        """View without the rows of some ids, where it has them."""
        rows = self.rows_by_id.positions(ids)
        if not (rows >= 0).any():
            return self
        gallery = self.gallery.without(rows[rows >= 0])
        kept = replace(self, gallery=gallery, rows_by_id=self.rows_by_id.without(ids[rows >= 0]))
        if not len(kept):
            return IndexedView(Gallery(gallery.similarity))
        many = _REMOVED_SHARE * len(gallery.removed) > len(gallery)
        return kept.compacted() if many else kept

    def compacted(self) -> IndexedView:
        """View without the removed rows, also in memory."""
        if not len(self.gallery.removed):
            return self
        rows = self.rows
        moved = np.full(len(self.ids), -1, dtype=np.int64)
        moved[rows] = np.arange(len(rows))
        return IndexedView(
            self.gallery.compacted(rows),
            self.ids.subset(rows),
            self.objects.subset(rows),
            self.rows_by_id.moved(moved),
        )


@dataclass(frozen=True, eq=False)
class Contents:
    """Galleries of all views."""

    similarity: InnerProduct
    views: Mapping[str, IndexedView] = field(default_factory=dict)
    joints: Mapping[JointTarget, IndexedView] = field(default_factory=dict)  # those searched so far
    n_objects: int = 0  # different ids
    n_numbered: int = 0  # different ids, with those that were removed
    n_added: int = 0  # objects as they were passed

    def plus(
        self, name: str, rows: Any, ids: np.ndarray, first: int = 0, replaces: bool = False
    ) -> Contents:
        """Contents with rows added to a view; errors number the rows from `first`.

        With `replaces`, ids that the view holds get new rows instead of an error.
        """
        rows = checked_rows(rows, f"view {name!r}", first=first)
        if not len(rows):
            return self
        view = self._view_for(name, ids, replaces)
        if len(view) and rows.shape[1] != view.gallery.n_components:
            raise ValueError(
                f"View {name!r} has {view.gallery.n_components} components, got rows of "
                f"{rows.shape[1]}."
            )
        objects, contents = self._numbered(ids)
        kept = view.without(ids) if replaces else view
        return contents._with(name, kept.plus(rows, ids, objects))

    def without(self, ids: np.ndarray) -> Contents:
        """Contents without some objects, which must be there."""
        ids = np.unique(ids)
        self.check_known(ids)
        views = {
            name: view.without(ids) if view.ids.dtype.kind == ids.dtype.kind else view
            for name, view in self.views.items()
        }
        joints = {joint: view.without(ids) for joint, view in self.joints.items()}
        return replace(
            self,
            views={name: view for name, view in views.items() if len(view)},
            joints={joint: view for joint, view in joints.items() if len(view)},
            n_objects=self.n_objects - len(ids),
        )

    def check_known(self, ids: np.ndarray) -> None:
        """Raise ValueError for an id that no view holds."""
        unknown = np.flatnonzero(self._objects_of(ids) < 0)
        if len(unknown):
            raise ValueError(
                f"The index holds no object with the id {ids[unknown[0]]}. Add new objects with "
                "`add`."
            )

    def _objects_of(self, ids: np.ndarray) -> np.ndarray:
        """Objects with these ids, -1 for new ones."""
        objects = np.full(len(ids), -1, dtype=np.int64)
        for view in self.views.values():
            if view.ids.dtype.kind == ids.dtype.kind:
                rows = view.rows_by_id.positions(ids)
                objects[rows >= 0] = view.objects.take(rows[rows >= 0])
        return objects

    def _numbered(self, ids: np.ndarray) -> tuple[np.ndarray, Contents]:
        """Objects with these ids, and contents in which the new ones have their numbers."""
        objects = self._objects_of(ids)
        new = np.flatnonzero(objects < 0)
        objects[new] = np.arange(self.n_numbered, self.n_numbered + len(new))
        n_objects, n_numbered = self.n_objects + len(new), self.n_numbered + len(new)
        return objects, replace(self, n_objects=n_objects, n_numbered=n_numbered)

    def _view_for(self, name: str, ids: np.ndarray, replaces: bool = False) -> IndexedView:
        """The view to which rows with these ids can be added."""
        view = self.views.get(name, IndexedView(Gallery(self.similarity)))
        if len(view) and view.ids.dtype.kind != ids.dtype.kind:
            raise ValueError(f"ids of view {name!r} are {view.ids.dtype}, got {ids.dtype}.")
        values, counts = np.unique(ids, return_counts=True)
        is_held = (view.rows_by_id.positions(values) >= 0) & (not replaces)
        repeated = values[(counts > 1) | is_held]
        if len(repeated):
            raise ValueError(
                f"View {name!r} would hold several rows with the id {repeated[0]}; "
                "an id names one object."
            )
        return view

    def _with(self, name: str, view: IndexedView) -> Contents:
        return replace(self, views={**self.views, name: view})

    def height(self, name: str) -> int:
        """Number of rows of a view."""
        return len(self.views.get(name, ()))

    # ---- what is searched -----------------------------------------------------------------------

    def searched(self, target: Target, normalize: bool) -> list[Searched]:
        """The views to search for a target."""
        if not self.views:
            raise ValueError("The index is empty; add a gallery first.")
        names = [*self.views] if target is None else [target] if isinstance(target, str) else target
        if not names or len(set(names)) < len(names):
            raise ValueError(f"Expected target to name one or more different views, got {target}.")
        for name in names:
            if name not in self.views:
                raise ValueError(f"The index holds no view {name!r}, only {list(self.views)}.")
        if len({self.views[name].ids.dtype.kind for name in names}) > 1:
            raise ValueError("To search several views their ids must be of one type.")
        joint = target is not None and len(names) > 1
        return [JointTarget(tuple(names), normalize)] if joint else list(names)

    def __getitem__(self, searched: Searched) -> IndexedView:
        """A view, or several as one."""
        return self.views[searched] if isinstance(searched, str) else self.joints[searched]

    def n_found(self, searched: Sequence[Searched]) -> int:
        """Number of objects in some views."""
        if len(searched) == 1:
            return len(self[searched[0]])
        return self.n_objects

    def dtypes(self, searched: Sequence[Searched]) -> tuple[np.dtype, np.dtype]:
        """Types of the scores and ids that a search finds."""
        views = [self[name] for name in searched]
        return (
            np.result_type(*(view.gallery.dtype for view in views)),
            np.result_type(*(view.ids.dtype for view in views)),
        )

    def with_joint(self, joint: JointTarget) -> Contents:
        """Contents in which several views can be searched as one."""
        views = [self.views[name] for name in joint.names]
        objects = np.concatenate([view.objects.take(view.rows) for view in views])
        ids = np.concatenate([view.ids.take(view.rows) for view in views])
        empty = IndexedView(Gallery(self.similarity))
        first = np.unique(objects, return_index=True)[1]  # in the order of their addition
        return self._with_joined(joint, empty, ids[first])

    def with_joined(self, ids: np.ndarray) -> Contents:
        """Contents whose joint views are as the views are now, after a change of these objects."""
        contents = self
        for joint, view in self.joints.items():
            contents = contents._with_joined(joint, view.without(ids), ids)
        return contents

    def _with_joined(self, joint: JointTarget, view: IndexedView, ids: np.ndarray) -> Contents:
        """Contents with the sums of these objects added to a joint view."""
        for start in range(0, len(ids), CHUNK_ROWS):
            some = ids[start : start + CHUNK_ROWS]
            sums, is_seen = self._sums(joint, some)
            some = some[is_seen]
            view = view.plus(sums[is_seen], some, self._objects_of(some)) if len(some) else view
        return replace(self, joints={**self.joints, joint: view})

    def _sums(self, joint: JointTarget, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sums of the projections of objects over their views, and who is seen in any."""
        rows, places = {}, {}
        for name in joint.names:
            view = self.views.get(name)
            if view is not None and view.ids.dtype.kind == ids.dtype.kind:
                positions = view.rows_by_id.positions(ids)
                places[name] = np.flatnonzero(positions >= 0)
                rows[name] = view.gallery.added_rows(positions[places[name]])
        sums = summed(rows, places, len(ids), joint.normalize)
        is_seen = np.isin(np.arange(len(ids)), np.concatenate([*places.values()]))
        return checked_rows(sums, f"the sum of views {list(joint.names)}"), is_seen

    # ---- in a file or a pickle ------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Plain values from which `of_state` restores the contents."""
        compacted = {name: view.compacted() for name, view in self.views.items()}
        views = {
            name: {
                "rows": view.gallery.rows.parts,
                "norms": view.gallery.lengths and np.concatenate(view.gallery.lengths.parts),
                "ids": stored_ids(np.concatenate(view.ids.parts)),
                "origin": view.gallery.similarity.origin,
                "n_at_origin": view.gallery.n_at_origin,
                "largest_norm": view.gallery.largest_norm,
            }
            for name, view in compacted.items()
        }
        return {"views": views, "n_added": self.n_added}

    @classmethod
    def of_state(cls, similarity: InnerProduct, state: Mapping[str, Any]) -> Contents:
        """Restore contents."""
        contents = cls(similarity)
        for name, stored in state["views"].items():
            contents = contents._plus_stored(name, **stored)
        widths = {view.gallery.n_components for view in contents.views.values()}
        if len(widths) > 1:
            raise ValueError(f"rows of widths {sorted(widths)} are not of one space")
        return replace(contents, n_added=state["n_added"])

    def _plus_stored(
        self,
        name: str,
        rows: list[np.ndarray],
        norms: np.ndarray | None,
        ids: Any,
        origin: np.ndarray | None,
        n_at_origin: int,
        largest_norm: float,
    ) -> Contents:
        ids = restored_ids(ids)
        view = self._view_for(name, ids)
        objects, contents = self._numbered(ids)
        similarity = self.similarity if origin is None else Euclidean(origin)
        gallery = Gallery.of_stored(similarity, rows, norms, n_at_origin, largest_norm)
        if len(gallery) != len(ids):
            raise ValueError(f"rows and ids of view {name!r} do not belong together")
        return contents._with(name, view.grown_to(gallery, ids, objects))
