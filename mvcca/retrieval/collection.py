"""Projected rows of several views, with the object that each row shows and its labels.

Paired, partly paired and unpaired views, with one or several rows per object, are all read into a
`Collection`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mvcca.blocks import is_mapping
from mvcca.blocks.containers import check_same_rows
from mvcca.retrieval.ranking import Projected, Ranking, summed
from mvcca.retrieval.search import checked_rows
from mvcca.retrieval.words import with_words, words_by_view
from mvcca.views import Labels, Views, as_views
from mvcca.views.labels_by_view import row_ids
from mvcca.views.typing import ViewsLike


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
        ranking: Ranking | None = None,
        labels: Any = None,
        label_vectors: Any = None,
        gains: Any = None,
    ) -> Collection:
        """Read scores and labels as `mvcca.retrieval.evaluate_retrieval` takes them.

        Scores are rows that the estimator of a ranking projects, or are `Projected` already.
        """
        per_view = is_mapping(labels)
        objects = None if per_view else _grouped_rows(scores)
        unpaired, empty = per_view or objects is not None, {}
        if ranking is not None and ranking.steps and not isinstance(scores, Projected):
            scores = ranking.project(scores, unpaired)
        if isinstance(scores, Projected):
            scores, empty = scores.rows, scores.empty
        views = as_views(scores, unpaired=unpaired).in_memory()
        if objects is None:
            objects = {name: views.objects(name) for name in views.names}
            _check_rows_of_labels(labels, views)
        rows = {name: checked_rows(block, f"view {name!r}") for name, block in views.items()}
        widths = {name: block.shape[1] for name, block in rows.items()}
        if len(set(widths.values())) > 1:
            raise ValueError(f"Views must be projected into one space, got widths {widths}.")
        if labels is None:
            if label_vectors is not None:
                raise ValueError("label_vectors need labels; there are none.")
            return cls(rows, objects, gains=gains, empty=empty)
        encode = _labels_of_views if per_view else _labels_of_objects
        of_rows = encode(labels, rows if per_view else objects, label_vectors)
        return cls(rows, objects, of_rows, per_view, gains, empty)

    @property
    def has_labels_by_position(self) -> bool:
        """Whether columns of different views' labels are matched without names."""
        return self.labels_by_view and any(own.vocabulary is None for own in self.labels.values())

    def joint(self, names: Sequence[str]) -> JointRows:
        """Rows of the objects that are seen in all of the views."""
        for name in names:
            if name not in self.rows:
                raise ValueError(f"Unknown view {name!r}; the views are {list(self.rows)}.")
        if not names:
            raise ValueError("Expected the name of at least one view to join, got none.")
        first, *others = names
        if not others:
            empty = {name: self.empty[name] for name in names if name in self.empty}
            rows = {first: self.rows[first]}
            return JointRows(rows, self.objects[first], self.labels.get(first), empty)
        if len(set(names)) < len(names):
            raise ValueError(f"Expected different views to join, got {list(names)}.")
        shared = self.objects[first]
        for name in names:
            shared = np.intersect1d(shared, self.objects[name])
            if len(np.unique(self.objects[name])) < len(self.objects[name]):
                raise ValueError(f"View {name!r} has several rows per object; join one of each.")
        if not len(shared):
            raise ValueError(f"No object is seen in all of the views {list(names)}.")
        places = {name: np.flatnonzero(np.isin(self.objects[name], shared)) for name in names}
        rows = {name: self.rows[name][own] for name, own in places.items()}
        labels = self.labels[first][places[first]] if self.labels else None
        empty = {name: self.empty[name][own] for name, own in places.items() if name in self.empty}
        return JointRows(rows, shared, labels, empty)


@dataclass(frozen=True, eq=False)
class JointRows:
    """Projected rows of the same objects in one or several views."""

    rows: dict[str, np.ndarray]  # (n_objects, n_components) each
    objects: np.ndarray  # (n_objects,), int
    labels: Labels | None
    empty: Mapping[str, np.ndarray] = field(default_factory=dict)  # (n_objects,), where some are

    @property
    def are_empty(self) -> np.ndarray | None:
        """Which objects have an empty row in every view; None if none has."""
        if len(self.empty) < len(self.rows):
            return None
        everywhere = np.logical_and.reduce(list(self.empty.values()))
        return everywhere if everywhere.any() else None

    @property
    def n_empty(self) -> int:
        """Number of these objects."""
        return 0 if self.are_empty is None else int(self.are_empty.sum())

    def as_queries(self, ranking: Ranking, targets: tuple[str, ...]) -> np.ndarray:
        """Rows to query with, sums over the views in which an object's row is not empty."""
        if not self.empty:
            return ranking.queries(self.rows, targets)
        none = np.zeros(len(self), dtype=bool)
        places = {name: np.flatnonzero(~self.empty.get(name, none)) for name in self.rows}
        rows = {name: own[places[name]] for name, own in self.rows.items()}
        return ranking.queries(rows, targets, places, len(self))

    def __len__(self) -> int:
        return len(self.objects)


def joint_scores(scores: ViewsLike, names: Sequence[str], normalize: bool = False) -> np.ndarray:
    """Sum the projections of each object from several views, for joint queries.

    Parameters
    ----------
    scores : Views, mapping or list
        Projected rows of each view. Objects that are not seen in all `names` are left out.
    names : sequence of str
        The views to join.
    normalize : bool, default=False
        Scale each view's rows to length 1 first, so that all views have the same weight.

    Returns
    -------
    ndarray, shape (n_objects, n_components)
        One row per object seen in all the views, in their order.

    Raises
    ------
    ValueError
        If no view is named, one is unknown, or a value is not finite.
    """
    if isinstance(names, str) or not names or len(set(names)) < len(names):
        raise ValueError(f"Expected names of one or more different views, got {names!r}.")
    return summed(Collection.of(scores).joint(names).rows, normalize=normalize)


def _check_rows_of_labels(labels: Any, views: Views) -> None:
    """Raise ValueError if the index of labels contradicts that of the views."""
    if not is_mapping(labels):
        check_same_rows("the labels", row_ids(labels), "the views", views.ids)
        return
    for name in views.names:
        own = row_ids(labels.get(name))
        check_same_rows(f"the labels of view {name!r}", own, f"view {name!r}", views.ids_of(name))


def _labels_of_objects(
    y: Any, objects: Mapping[str, np.ndarray], label_vectors: Any
) -> dict[str, Labels]:
    """Label sets by view, from those of the objects."""
    labels = Labels.of(y).require_sets()
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


def _labels_of_views(
    y: Mapping[str, Any], rows: Mapping[str, np.ndarray], label_vectors: Any
) -> dict[str, Labels]:
    """Label sets by view, from those of the rows of each view.

    With `label_vectors`, every view has its own vocabulary.
    """
    if set(y) != set(rows):
        raise ValueError(f"Expected labels of the views {list(rows)}, got {list(y)}.")
    parts = [Labels.of(y[name]) for name in rows]
    if label_vectors is None:
        parts = [labels.require_sets() for labels in Labels.in_common(parts)]
    else:
        vectors = words_by_view(label_vectors, list(rows))
        parts = [
            with_words(own.require_sets(), vectors[name], name)
            for name, own in zip(rows, parts, strict=True)
        ]
        lengths = {n: own.words.shape[1] for n, own in zip(rows, parts, strict=True)}  # type: ignore[union-attr]
        if len(set(lengths.values())) > 1:
            raise ValueError(f"Expected word vectors of one length in all views, got {lengths}.")
    labels = dict(zip(rows, parts, strict=True))
    for name, block in rows.items():
        if len(labels[name]) != len(block):
            raise ValueError(f"View {name!r} has {len(block)} rows but {len(labels[name])} labels.")
    return labels


def _grouped_rows(scores: Any) -> dict[str, np.ndarray] | None:
    """Object of each row in a mapping of matrices whose heights are multiples of the smallest."""
    if not is_mapping(scores) or isinstance(scores, Views):
        return None
    heights = {name: _height(block) for name, block in scores.items()}
    least = min(heights.values(), default=0)
    if len(set(heights.values())) < 2 or not least or any(h % least for h in heights.values()):
        return None  # paired, or for Views to refuse
    return {name: np.arange(h) // (h // least) for name, h in heights.items()}


def _height(block: Any) -> int:
    return int(block.shape[0]) if hasattr(block, "shape") else len(block)
