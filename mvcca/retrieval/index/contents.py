"""Contents of an index: for each view its gallery, with the ids and objects of the rows.

Contents are values: a change gives new contents, at the cost of the changed rows, and a search in
progress keeps those it started with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mvcca.blocks import kind_of
from mvcca.retrieval.collection import summed
from mvcca.retrieval.index.stored_ids import restored_ids, stored_ids
from mvcca.retrieval.search.gallery import (
    CHUNK_ROWS,
    ChunkedRows,
    Gallery,
    RemovedRows,
    checked_rows,
)
from mvcca.retrieval.similarity import Euclidean, InnerProduct, IntegerCosine

_REMOVED_SHARE = 4  # a view is compacted once a quarter of its rows are removed
_SAMPLED_ROWS = 4096


@dataclass(frozen=True)
class JointTarget:
    """Several views that are searched as one: the sum of an object's projections."""

    names: tuple[str, ...]
    normalize: bool  # each projection to length 1


Target = str | Sequence[str] | None  # None searches every view
Searched = str | JointTarget


@dataclass(frozen=True, eq=False)
class SortedKeys:
    """Keys and their positions, in sorted runs that get shorter; the last run with a key counts."""

    # Runs are pairs of sorted keys and positions; -1 takes the key of an earlier run back.

    runs: tuple[tuple[np.ndarray, np.ndarray], ...] = ()

    def positions(self, keys: np.ndarray) -> np.ndarray:
        """Positions of keys, -1 for unknown ones."""
        found = np.full(len(keys), -1, dtype=np.int64)
        for known, positions in self.runs:
            nearest = np.minimum(np.searchsorted(known, keys), len(known) - 1)
            is_known = known[nearest] == keys
            found[is_known] = positions[nearest[is_known]]
        return found

    def plus(self, keys: np.ndarray, positions: np.ndarray) -> SortedKeys:
        """Keys with more of them; each takes part in a logarithmic number of merges."""
        if not len(keys):
            return self
        runs = list(self.runs)
        merged: list[tuple[Any, Any]] = [(keys, positions)]
        while runs and len(runs[-1][0]) <= 2 * sum(len(part) for part, _ in merged):
            merged.insert(0, runs.pop())
        keys, positions = (np.concatenate(parts) for parts in zip(*merged, strict=True))
        order = np.argsort(keys, kind="stable")
        keys, positions = keys[order], positions[order]
        counts = np.append(keys[1:] != keys[:-1], True)  # the newest of equal keys
        return SortedKeys((*runs, (keys[counts], positions[counts])))

    def without(self, keys: np.ndarray) -> SortedKeys:
        """Keys without some that are known."""
        return self.plus(keys, np.full(len(keys), -1, dtype=np.int64))

    def moved(self, new_positions: np.ndarray) -> SortedKeys:
        """Keys whose rows have moved, row i to new_positions[i]; -1 is a row that is gone."""
        runs = []
        for keys, positions in self.runs:
            moved = np.where(positions < 0, -1, new_positions[positions])
            if (moved >= 0).any():
                runs.append((keys[moved >= 0], moved[moved >= 0]))
        return SortedKeys(tuple(runs))


@dataclass(frozen=True, eq=False)
class IndexedView(Gallery):
    """Gallery of one view that changes by value, with the id and the object of each row."""

    ids: ChunkedRows = field(default_factory=ChunkedRows)
    objects: ChunkedRows = field(default_factory=ChunkedRows)  # equal for equal ids of any view
    rows_by_id: SortedKeys = field(default_factory=SortedKeys)
    lengths: ChunkedRows = field(default_factory=ChunkedRows)  # of a cosine: of the added rows
    n_at_origin: int = 0  # rows when the origin was last checked

    @classmethod
    def of_stored(
        cls,
        similarity: InnerProduct,
        stored: Sequence[np.ndarray],
        lengths: np.ndarray | None,
        n_at_origin: int,
        largest_norm: float,
        ids: np.ndarray,
        objects: np.ndarray,
    ) -> IndexedView:
        """View of stored parts, which are not copied; memory-mapped ones are not read."""
        origin = similarity.origin
        if (
            not stored
            or any(part.shape[1:] != stored[0].shape[1:] for part in stored)
            or (similarity.name == "euclidean") != (origin is not None)
            or (origin is not None and origin.shape != (stored[0].shape[1] - 1,))
            or similarity.is_cosine != (lengths is not None)
            or (lengths is not None and lengths.shape != (sum(map(len, stored)),))
        ):
            raise ValueError("rows, lengths and origin of a gallery do not belong together")
        parts = [
            np.asarray(part) if kind_of(part).is_lazy else checked_rows(part, "a gallery")
            for part in stored
        ]
        if any(part.ndim != 2 or part.dtype not in (np.float32, np.float64) for part in parts):
            raise ValueError("rows of a gallery are matrices of float32 or float64")
        kept = ChunkedRows()
        if lengths is not None:
            kept = kept.plus(checked_rows(lengths[:, None], "lengths")[:, 0])
        return cls(
            similarity,
            ChunkedRows.of_parts(parts),
            float(largest_norm) or similarity.longest(parts[0][:0]),  # 0 of cosines in old files
            ids=ChunkedRows().plus(ids),
            objects=ChunkedRows().plus(objects),
            rows_by_id=SortedKeys().plus(ids, np.arange(len(ids))),
            lengths=kept,
            n_at_origin=n_at_origin,
        )

    @property
    def kept(self) -> np.ndarray:
        """Positions of the rows that are not removed."""
        is_kept = np.ones(len(self), dtype=bool)
        is_kept[self.removed.positions()] = False
        return np.flatnonzero(is_kept)

    def plus(self, rows: np.ndarray, ids: np.ndarray, objects: np.ndarray) -> IndexedView:
        """View with finite rows of new ids, at the cost of these rows."""
        similarity = self.similarity if len(self) else self.similarity.near(rows)
        if isinstance(similarity, IntegerCosine) and not similarity.holds(rows):
            return self.of_products().plus(rows, ids, objects)
        vectors = similarity.items(rows)
        lengths = self.lengths
        if similarity.is_cosine:
            lengths = lengths.plus(similarity.lengths(rows, vectors))
        view = replace(
            self,
            similarity=similarity,
            rows=self.rows.plus(vectors),
            largest_norm=max(self.largest_norm, similarity.longest(vectors)),
            lengths=lengths,
            n_at_origin=self.n_at_origin or len(rows),
            ids=self.ids.plus(ids),
            objects=self.objects.plus(objects),
            rows_by_id=self.rows_by_id.plus(ids, np.arange(len(self), len(self) + len(ids))),
        )
        if similarity.origin is not None and len(view) >= 2 * view.n_at_origin:
            return view._with_checked_origin()
        return view

    def of_products(self) -> IndexedView:
        """View with item vectors whose products are the similarities themselves."""
        view = super().of_products()
        assert isinstance(view, IndexedView)
        if view is self:
            return self
        lengths = ChunkedRows()
        for rows, vectors in zip(self.rows.parts, view.rows.parts, strict=True):
            lengths = lengths.plus(view.similarity.lengths(rows[:, :-1], vectors))
        return replace(view, lengths=lengths)

    def without(self, ids: np.ndarray) -> IndexedView:
        """View without the rows of some ids, where it has them."""
        rows = self.rows_by_id.positions(ids)
        if not (rows >= 0).any():
            return self
        removed, left = self.removed.plus(rows[rows >= 0]), self.rows_by_id.without(ids[rows >= 0])
        if removed.n == len(self):
            return IndexedView(self.similarity)
        view = replace(self, removed=removed, rows_by_id=left)
        return view.compacted() if _REMOVED_SHARE * removed.n > len(view) else view

    def compacted(self) -> IndexedView:
        """View without the removed rows, also in memory; the other rows move."""
        if not self.removed.n:
            return self
        kept = self.kept
        moved = np.full(len(self), -1, dtype=np.int64)
        moved[kept] = np.arange(len(kept))
        return replace(
            self,
            ids=self.ids.subset(kept),
            objects=self.objects.subset(kept),
            rows_by_id=self.rows_by_id.moved(moved),
            lengths=self.lengths.subset(kept) if self.lengths.n else self.lengths,
            removed=RemovedRows(),
        )._moved(self.rows.subset(kept))

    def _moved(self, rows: ChunkedRows) -> IndexedView:
        """View with other item vectors."""
        largest = max(self.similarity.longest(part) for part in rows.parts)
        return replace(self, rows=rows, largest_norm=largest, lineage=object())

    def added_rows(self, positions: np.ndarray) -> np.ndarray:
        """Rows as they were added, up to rounding."""
        lengths = self.lengths.take(positions) if self.lengths.n else None
        return self.similarity.rows(self.rows.take(positions), lengths)

    def _with_checked_origin(self) -> IndexedView:
        """View with a new origin if most rows are far from the present one.

        The first rows of an index need not be like those added later.
        """
        step = -(-len(self) // _SAMPLED_ROWS)
        sample = np.concatenate([part[::step] for part in self.rows.parts])
        from_origin = sample[:, : self.n_components]
        if not (np.abs(from_origin.mean(axis=0)) > from_origin.std(axis=0)).any():
            return replace(self, n_at_origin=len(self))
        similarity = self.similarity.near(self.similarity.rows(sample, None))
        rows = ChunkedRows()
        for part in self.rows.parts:
            rows = rows.plus(similarity.items(self.similarity.rows(part, None)))
        return replace(self, similarity=similarity, n_at_origin=len(self))._moved(rows)


@dataclass(frozen=True, eq=False)
class Contents:
    """Galleries of all views."""

    similarity: InnerProduct
    views: Mapping[str, IndexedView] = field(default_factory=dict)
    joints: Mapping[JointTarget, IndexedView] = field(default_factory=dict)  # those searched so far
    n_objects: int = 0  # different ids
    n_numbered: int = 0  # different ids, with those that were removed
    n_added: int = 0  # objects as they were passed
    widths: Mapping[str, int] = field(default_factory=dict)  # of views that have no common space

    def plus(
        self, name: str, rows: Any, ids: np.ndarray, first: int = 0, replaces: bool = False
    ) -> Contents:
        """Contents with rows added to a view; errors number the rows from `first`.

        With `replaces`, ids that the view holds get new rows instead of an error.
        """
        rows = checked_rows(rows, f"view {name!r}", first=first)
        if not len(rows):
            return self
        view, objects, contents = self._opened(name, ids, replaces)
        if len(view) and rows.shape[1] != view.n_components:
            raise ValueError(
                f"View {name!r} has {view.n_components} components, got rows of {rows.shape[1]}."
            )
        kept = view.without(ids) if replaces else view
        return replace(contents, views={**self.views, name: kept.plus(rows, ids, objects)})

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
            views={name: view for name, view in views.items() if view.n_ranked},
            joints={joint: view for joint, view in joints.items() if view.n_ranked},
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

    def _opened(
        self, name: str, ids: np.ndarray, replaces: bool = False
    ) -> tuple[IndexedView, np.ndarray, Contents]:
        """The view to which rows with these ids can be added, and the objects of the ids.

        In the contents that are returned the new objects have their numbers.
        """
        view = self.views.get(name, IndexedView(self.similarity))
        values, counts = np.unique(ids, return_counts=True)
        if len(view):
            if view.ids.dtype.kind != ids.dtype.kind:
                raise ValueError(f"ids of view {name!r} are {view.ids.dtype}, got {ids.dtype}.")
            if not replaces:
                counts += view.rows_by_id.positions(values) >= 0
        repeated = values[counts > 1]
        if len(repeated):
            raise ValueError(
                f"View {name!r} would hold several rows with the id {repeated[0]}; "
                "an id names one object."
            )
        objects = self._objects_of(ids)
        new = np.flatnonzero(objects < 0)
        objects[new] = np.arange(self.n_numbered, self.n_numbered + len(new))
        n_objects, n_numbered = self.n_objects + len(new), self.n_numbered + len(new)
        return view, objects, replace(self, n_objects=n_objects, n_numbered=n_numbered)

    # ---- what is searched -----------------------------------------------------------------------

    def searched(self, target: Target, normalize: bool) -> Sequence[Searched]:
        """The views to search for a target."""
        if not self.views:
            raise ValueError("The index is empty; add a gallery first.")
        names = [*self.views] if target is None else [target] if isinstance(target, str) else target
        if not names or len(set(names)) < len(names):
            raise ValueError(f"Expected target to name one or more different views, got {target}.")
        for name in names:
            if name not in self.views:
                raise ValueError(f"The index holds no view {name!r}, only {list(self.views)}.")
        if len(names) == 1:
            return list(names)
        if len({self.views[name].ids.dtype.kind for name in names}) > 1:
            raise ValueError("To search several views their ids must be of one type.")
        return list(names) if target is None else [JointTarget(tuple(names), normalize)]

    def with_joint(self, joint: JointTarget) -> Contents:
        """Contents in which several views can be searched as one."""
        views = [self.views[name] for name in joint.names]
        objects = np.concatenate([view.objects.take(view.kept) for view in views])
        ids = np.concatenate([view.ids.take(view.kept) for view in views])
        first = np.unique(objects, return_index=True)[1]  # in the order of their addition
        return self._with_joined(joint, IndexedView(self.similarity), ids[first])

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
                rows[name] = view.added_rows(positions[places[name]])
        if self.widths:
            sums = self._side_by_side(joint, rows, places, len(ids))
        else:
            sums = summed(rows, places, len(ids), joint.normalize)
        is_seen = np.isin(np.arange(len(ids)), np.concatenate([*places.values()]))
        return sums, is_seen

    def _side_by_side(
        self,
        joint: JointTarget,
        rows: Mapping[str, np.ndarray],
        places: Mapping[str, np.ndarray],
        n_objects: int,
    ) -> np.ndarray:
        """Rows of objects in their views, 0 in views in which they are not seen."""
        parts = []
        for name in joint.names:
            part = np.zeros((n_objects, self.widths[name]), np.result_type(*rows.values()))
            if name in rows:
                part[places[name]] = rows[name]
            parts.append(part)
        return np.hstack(parts)

    # ---- in a file or a pickle ------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Plain values from which `of_state` restores the contents."""
        compacted = {name: view.compacted() for name, view in self.views.items()}
        views = {
            name: {
                "rows": view.rows.parts,
                "norms": np.concatenate(view.lengths.parts) if view.lengths.n else None,
                "ids": stored_ids(np.concatenate(view.ids.parts)),
                "origin": view.similarity.origin,
                "n_at_origin": view.n_at_origin,
                "largest_norm": view.largest_norm,
                **({"are_integers": True} if isinstance(view.similarity, IntegerCosine) else {}),
            }
            for name, view in compacted.items()
        }
        return {"views": views, "n_added": self.n_added}

    @classmethod
    def of_state(
        cls, similarity: InnerProduct, state: Mapping[str, Any], widths: Mapping[str, int]
    ) -> Contents:
        """Restore contents; `widths` are those of views that have no common space."""
        contents = cls(similarity, widths=widths)
        for name, stored in state["views"].items():
            contents = contents._plus_stored(name, **stored)
        found = {name: view.n_components for name, view in contents.views.items()}
        if widths and any(widths.get(name) != own for name, own in found.items()):
            raise ValueError(f"rows have widths {found}, and the model has {dict(widths)}")
        if not widths and len(set(found.values())) > 1:
            raise ValueError(f"rows of widths {sorted(set(found.values()))} are not of one space")
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
        are_integers: bool = False,
    ) -> Contents:
        ids = restored_ids(ids)
        _, objects, contents = self._opened(name, ids)
        similarity = self.similarity if origin is None else Euclidean(origin)
        if are_integers:
            similarity = IntegerCosine()
        view = IndexedView.of_stored(
            similarity, rows, norms, n_at_origin, largest_norm, ids, objects
        )
        if len(view) != len(ids):
            raise ValueError(f"rows and ids of view {name!r} do not belong together")
        return replace(contents, views={**self.views, name: view})
