"""Projected rows of several views, with the object that each row shows and its labels.

Paired, partly paired and unpaired views, with one or several rows per object, are all read into a
`Collection`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mvcca.blocks import is_mapping
from mvcca.blocks.checks import check_same_rows
from mvcca.measures import unit_rows
from mvcca.retrieval.search import checked_rows
from mvcca.retrieval.words import with_words, words_by_view
from mvcca.views import Labels, Views, as_views


@dataclass(frozen=True, eq=False)
class Projected:
    """Rows of views as an estimator projects them."""

    scores: Views  # before any weighting
    rows: Views  # to compare: the weighted scores
    empty: Mapping[str, np.ndarray]  # (n_rows,), rows in which it knows nothing, where some are
    in_one_space: bool = True  # whether rows of different views have the same components


@dataclass(frozen=True, eq=False)
class Collection:
    """Projected rows by view; rows of two views with the same object are paired."""

    rows: dict[str, np.ndarray]  # (n_rows, n_components)
    objects: dict[str, np.ndarray]  # (n_rows,), int
    labels: dict[str, Labels] = field(default_factory=dict)  # empty without labels
    labels_by_view: bool = False
    gains: Any = None  # matrix or function of objects, as in `GivenGains`
    empty: Mapping[str, np.ndarray] = field(default_factory=dict)  # rows, by view that has some

    @classmethod
    def of(
        cls,
        scores: Any,
        project: Callable[[Any, bool], Projected] | None = None,
        labels: Any = None,
        label_vectors: Any = None,
        gains: Any = None,
    ) -> Collection:
        """Read scores and labels as `mvcca.retrieval.evaluate_retrieval` takes them.

        `project` takes the scores and whether they are unpaired, as `Ranking.project` does. Scores
        that are `Projected` already, and all scores without it, are rows to compare.
        """
        per_view = is_mapping(labels)
        empty: Mapping[str, np.ndarray] = {}
        objects: dict[str, np.ndarray] | None = None
        in_one_space = True
        if isinstance(scores, Projected):
            in_one_space = scores.in_one_space
            scores, empty = scores.rows, scores.empty
        else:
            if not per_view and is_mapping(scores) and not isinstance(scores, Views):
                objects = _grouped_rows(scores)
            unpaired = per_view or objects is not None
            if project is not None:
                projected = project(scores, unpaired)
                in_one_space = projected.in_one_space
                scores, empty = projected.rows, projected.empty
            scores = as_views(scores, unpaired=unpaired)
        views: Views = scores.in_memory()
        ids = views.ids if objects is None else None
        objects = objects or {name: views.objects(name) for name in views.names}
        rows = {name: checked_rows(block, f"view {name!r}") for name, block in views.items()}
        widths = {name: block.shape[1] for name, block in rows.items()}
        if in_one_space and len(set(widths.values())) > 1:
            raise ValueError(f"Views must be projected into one space, got widths {widths}.")
        if per_view:
            by_name = _labels_of_views(labels, views, label_vectors)
        elif labels is not None:
            by_name = _labels_of_objects(labels, objects, label_vectors, ids)
        elif label_vectors is None:
            by_name = {}
        else:
            raise ValueError("label_vectors need labels; there are none.")
        return cls(rows, objects, by_name, per_view, gains, empty)

    def joint(self, names: Sequence[str]) -> JointRows:
        """Rows of the objects that are seen in all of the views."""
        for name in names:
            if name not in self.rows:
                raise ValueError(f"Unknown view {name!r}; the views are {list(self.rows)}.")
        if not names:
            raise ValueError("Expected the name of at least one view to join, got none.")
        if len(names) > 1:
            return self._joined(names)
        [name] = names
        are_empty = self.empty.get(name)
        empty = {} if are_empty is None else {name: are_empty}
        labels = self.labels.get(name)
        return JointRows({name: self.rows[name]}, self.objects[name], labels, empty, are_empty)

    def _joined(self, names: Sequence[str]) -> JointRows:
        """Rows of the objects that are seen in all of several views."""
        if len(set(names)) < len(names):
            raise ValueError(f"Expected different views to join, got {list(names)}.")
        shared = self.objects[names[0]]
        for name in names:
            shared = np.intersect1d(shared, self.objects[name])
            if len(np.unique(self.objects[name])) < len(self.objects[name]):
                raise ValueError(f"View {name!r} has several rows per object; join one of each.")
        if not len(shared):
            raise ValueError(f"No object is seen in all of the views {list(names)}.")
        places = {name: np.flatnonzero(np.isin(self.objects[name], shared)) for name in names}
        rows = {name: self.rows[name][own] for name, own in places.items()}
        labels = self.labels[names[0]][places[names[0]]] if self.labels else None
        empty = {name: self.empty[name][own] for name, own in places.items() if name in self.empty}
        are_empty = None
        if len(empty) == len(names) and (in_all := np.all(list(empty.values()), axis=0)).any():
            are_empty = in_all
        return JointRows(rows, shared, labels, empty, are_empty)


@dataclass(frozen=True, eq=False)
class JointRows:
    """Projected rows of the same objects in one or several views."""

    rows: dict[str, np.ndarray]  # (n_objects, n_components) each
    objects: np.ndarray  # (n_objects,), int
    labels: Labels | None
    empty: Mapping[str, np.ndarray]  # (n_objects,), empty rows of the views that have any
    are_empty: np.ndarray | None  # (n_objects,), objects whose rows are all empty, if there are any

    def not_empty(self) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """The rows that are not empty, and the places of their objects, by view."""
        none = np.zeros(len(self.objects), dtype=bool)
        places = {name: np.flatnonzero(~self.empty.get(name, none)) for name in self.rows}
        return {name: own[places[name]] for name, own in self.rows.items()}, places


def summed(
    rows: Mapping[str, np.ndarray],
    places: Mapping[str, np.ndarray] | None = None,
    n_objects: int | None = None,
    normalize: bool = False,
) -> np.ndarray:
    """Sum rows of each object over the views that show it, (n_objects, n_components)."""
    # Without `places`, the object of each row by view, row i of every view shows object i. Sums of
    # objects that no view shows are 0.
    widths = {name: block.shape[1] for name, block in rows.items()}
    if len(set(widths.values())) > 1:
        raise ValueError(f"Views must be projected into one space, got widths {widths}.")
    first = next(iter(rows.values()))
    n_objects = len(first) if places is None else n_objects
    total = np.zeros((n_objects or 0, first.shape[1]), np.result_type(*rows.values()))
    for name, block in rows.items():
        seen = slice(None) if places is None else places[name]
        total[seen] += unit_rows(block) if normalize else block
    return checked_rows(total, f"the sum of views {list(rows)}")


def _labels_of_objects(
    y: Any, objects: Mapping[str, np.ndarray], label_vectors: Any, ids: np.ndarray | None
) -> dict[str, Labels]:
    """Label sets by view, from those of the objects."""
    labels = Labels.of(y)
    check_same_rows("the labels", labels.ids, "the views", ids)
    labels = labels.require_sets()
    n_objects = 1 + max(int(o.max(initial=-1)) for o in objects.values())
    if len(labels) != n_objects:
        raise ValueError(
            f"Expected labels of {n_objects} objects, got {len(labels)}. Labels that differ "
            "between views are passed as a mapping by view name."
        )
    if label_vectors is not None:
        labels = with_words(labels, label_vectors)
    used = labels.used()
    return {name: used[rows] for name, rows in objects.items()}


def _labels_of_views(y: Mapping[str, Any], views: Views, label_vectors: Any) -> dict[str, Labels]:
    """Label sets by view, from those of the rows of each view.

    With `label_vectors`, every view has its own vocabulary.
    """
    names = views.names
    if set(y) != set(names):
        raise ValueError(f"Expected labels of the views {list(names)}, got {list(y)}.")
    parts = [Labels.of(y[name]) for name in names]
    for name, own in zip(names, parts, strict=True):
        of_labels = f"the labels of view {name!r}"
        check_same_rows(of_labels, own.ids, f"view {name!r}", views.ids_of(name))
    if label_vectors is None:
        parts = [labels.require_sets() for labels in Labels.in_common(parts)]
    else:
        vectors = words_by_view(label_vectors, list(names))
        parts = [
            with_words(own.require_sets(), vectors[name], name)
            for name, own in zip(names, parts, strict=True)
        ]
        lengths = {n: own.words.shape[1] for n, own in zip(names, parts, strict=True)}  # type: ignore[union-attr]
        if len(set(lengths.values())) > 1:
            raise ValueError(f"Expected word vectors of one length in all views, got {lengths}.")
    for name, labels in zip(names, parts, strict=True):
        if len(labels) != (height := views.block(name).shape[0]):
            raise ValueError(f"View {name!r} has {height} rows but {len(labels)} labels.")
    return dict(zip(names, parts, strict=True))


def _grouped_rows(scores: Mapping[str, Any]) -> dict[str, np.ndarray] | None:
    """Object of each row in a mapping of matrices whose heights are multiples of the smallest."""
    heights = {name: _height(block) for name, block in scores.items()}
    least = min(heights.values(), default=0)
    if len(set(heights.values())) < 2 or not least or any(h % least for h in heights.values()):
        return None  # paired, or for Views to refuse
    return {name: np.arange(h) // (h // least) for name, h in heights.items()}


def _height(block: Any) -> int:
    return int(block.shape[0]) if hasattr(block, "shape") else len(block)
