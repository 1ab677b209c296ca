"""What an index holds: per view, prepared rows, their ids and the objects they show.

Contents are values: adding rows gives new contents, at the cost of the added rows, and a search
under way keeps those that it began with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np

from mvcca.retrieval._growing import Chunked, Places
from mvcca.retrieval.similarity import (
    Gallery,
    Similarity,
    checked_rows,
    largest_norm,
    origin_near,
    prepared,
)

_SAMPLED_ROWS = 4096


@dataclass(frozen=True, eq=False)
class Shelf:
    """The rows of one view, ready to be searched."""

    similarity: Similarity
    rows: Chunked = field(default_factory=Chunked)  # prepared for the similarity
    ids: Chunked = field(default_factory=Chunked)
    objects: Chunked = field(default_factory=Chunked)  # numbers, equal for equal ids of any view
    places: Places = field(default_factory=Places)  # of the ids
    norm: float = 0.0  # of the longest prepared row
    origin: np.ndarray | None = None  # of distances
    n_at_origin: int = 0  # rows when the origin was last looked at

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def gallery(self) -> Gallery:
        """The rows as they are searched."""
        return Gallery.of_prepared(self.rows, self.similarity, self.origin, self.norm)

    def plus(self, rows: np.ndarray, ids: np.ndarray, objects: np.ndarray) -> Shelf:
        """These rows and others, which are finite and not prepared yet."""
        shelf = self
        if self.similarity == "euclidean" and self.origin is None:
            shelf = replace(self, origin=origin_near(rows), n_at_origin=len(rows))
        shelf = shelf.plus_prepared(prepared(rows, self.similarity, shelf.origin), ids, objects)
        if shelf.origin is not None and len(shelf) >= 2 * shelf.n_at_origin:
            return shelf._measured_from_nearby()
        return shelf

    def plus_prepared(self, rows: np.ndarray, ids: np.ndarray, objects: np.ndarray) -> Shelf:
        """These rows and others, which are prepared for this shelf."""
        return replace(
            self,
            rows=self.rows.plus(rows),
            ids=self.ids.plus(ids),
            objects=self.objects.plus(objects),
            places=self.places.plus(ids, np.arange(len(self), len(self) + len(ids))),
            norm=max(self.norm, largest_norm(rows)),
        )

    def _measured_from_nearby(self) -> Shelf:
        """Distances from another origin, where most rows are far from the one there is.

        The first rows of an index need not be like those that follow.
        """
        assert self.origin is not None
        step = -(-len(self) // _SAMPLED_ROWS)
        sample = np.concatenate([part[::step, :-1] for part in self.rows.parts])
        shelf = replace(self, n_at_origin=len(self))
        if not (np.abs(sample.mean(axis=0)) > sample.std(axis=0)).any():
            return shelf
        before, origin = self.origin, origin_near(sample + self.origin.astype(sample.dtype))
        back = (part[:, :-1] + before.astype(part.dtype) for part in self.rows.parts)
        moved = [prepared(part, self.similarity, origin) for part in back]
        norm = max(largest_norm(part) for part in moved)
        return replace(shelf, rows=reduce(Chunked.plus, moved, Chunked()), origin=origin, norm=norm)


@dataclass(frozen=True, eq=False)
class Contents:
    """The shelves of all views, and how many objects are on them."""

    similarity: Similarity
    shelves: Mapping[str, Shelf] = field(default_factory=dict)
    n_objects: int = 0  # different ids
    n_added: int = 0  # objects, as they were passed

    def plus(self, name: str, rows: Any, ids: np.ndarray, first: int = 0) -> Contents:
        """These rows and others of a view; an error numbers them from `first`."""
        rows = checked_rows(rows, f"view {name!r}", first=first)
        if not len(rows):
            return self
        shelf, objects = self._shelf_for(name, ids)
        if len(shelf) and rows.shape[1] != shelf.gallery.n_components:
            raise ValueError(
                f"View {name!r} has {shelf.gallery.n_components} components, got rows of "
                f"{rows.shape[1]}."
            )
        return self._with(name, shelf.plus(rows, ids, objects), objects)

    def _shelf_for(self, name: str, ids: np.ndarray) -> tuple[Shelf, np.ndarray]:
        """A view's shelf, and the objects that ids stand for, which must be new to it."""
        shelf = self.shelves.get(name, Shelf(self.similarity))
        if len(shelf) and shelf.ids.dtype.kind != ids.dtype.kind:
            raise ValueError(f"ids of view {name!r} are {shelf.ids.dtype}, got {ids.dtype}.")
        values, counts = np.unique(ids, return_counts=True)
        repeated = values[(counts > 1) | (shelf.places.of(values) >= 0)]
        if len(repeated):
            raise ValueError(
                f"View {name!r} would hold several rows with the id {repeated[0]}; "
                "an id names one object."
            )
        objects = np.full(len(ids), -1, dtype=np.int64)
        for other in self.shelves.values():
            if other.ids.dtype.kind == ids.dtype.kind:
                places = other.places.of(ids)
                objects[places >= 0] = other.objects.take(places[places >= 0])
        new = np.flatnonzero(objects < 0)
        objects[new] = np.arange(self.n_objects, self.n_objects + len(new))
        return shelf, objects

    def _with(self, name: str, shelf: Shelf, added: np.ndarray) -> Contents:
        n_objects = max(self.n_objects, int(added.max()) + 1)
        return replace(self, shelves={**self.shelves, name: shelf}, n_objects=n_objects)

    def height(self, name: str) -> int:
        """Number of rows of a view."""
        return len(self.shelves.get(name, ()))

    def searched(self, target: str | None) -> tuple[list[str], int]:
        """The views to search, and the number of objects in them."""
        if not self.shelves:
            raise ValueError("The index is empty; add a gallery first.")
        if target is not None:
            if target not in self.shelves:
                raise ValueError(f"The index holds no view {target!r}, only {list(self.shelves)}.")
            return [target], len(self.shelves[target])
        if len({shelf.ids.dtype.kind for shelf in self.shelves.values()}) > 1:
            raise ValueError("To search all views their ids must be of one type.")
        return list(self.shelves), self.n_objects

    # ---- in a file or a pickle ------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Plain values that `of_state` makes the same contents of."""
        shelves = {
            name: {
                "rows": shelf.rows.parts,
                "ids": np.concatenate(shelf.ids.parts),
                "origin": shelf.origin,
                "n_at_origin": shelf.n_at_origin,
            }
            for name, shelf in self.shelves.items()
        }
        return {"shelves": shelves, "n_added": self.n_added}

    @classmethod
    def of_state(cls, similarity: Similarity, state: Mapping[str, Any]) -> Contents:
        """Contents as they were, or of rows that are not prepared, as early files have them."""
        contents = cls(similarity)
        for name, rows in state.get("rows", {}).items():
            contents = contents.plus(name, rows, state["ids"][name])
        for name, stored in state.get("shelves", {}).items():
            contents = contents._plus_stored(name, **stored)
        widths = {shelf.gallery.n_components for shelf in contents.shelves.values()}
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
        shelf, objects = self._shelf_for(name, ids)
        ends = np.cumsum([len(part) for part in rows])
        whole = ends[-1] == len(ids) and all(part.shape[1:] == rows[0].shape[1:] for part in rows)
        n_components = rows[0].shape[1] - (origin is not None)
        if (
            not whole
            or (self.similarity == "euclidean") != (origin is not None)
            or (origin is not None and origin.shape != (n_components,))
        ):
            raise ValueError(f"rows, ids and origin of view {name!r} do not belong together")
        shelf = replace(shelf, origin=origin, n_at_origin=n_at_origin)
        cuts = [*map(np.split, (ids, objects), (ends[:-1], ends[:-1]))]
        for part, *known in zip(rows, *cuts, strict=True):
            shelf = shelf.plus_prepared(checked_rows(part, f"view {name!r}"), *known)
        return self._with(name, shelf, objects)
