"""Projected rows of several views, with the object that each row shows and its labels.

Paired, partly paired and unpaired views, with one or several rows per object, are all read into a
`Collection`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mvcca._containers import check_same_rows, row_labels
from mvcca.labels import LabelTable, encode_label_sets
from mvcca.measures import unit_rows
from mvcca.retrieval.similarity import checked_rows
from mvcca.typing import ViewsLike
from mvcca.views import Views, as_views


@dataclass(frozen=True, eq=False)
class Collection:
    """Projected rows by view; rows of two views with the same object are paired."""

    rows: dict[str, np.ndarray]  # (n_rows, n_components)
    objects: dict[str, np.ndarray]  # (n_rows,), int
    label_sets: LabelTable | None  # distinct ones
    codes: dict[str, np.ndarray]  # (n_rows,), row of `label_sets`; empty without labels

    @classmethod
    def of(cls, scores: Any, labels: Any = None) -> Collection:
        """Read scores and labels as `mvcca.retrieval.evaluate_retrieval` takes them."""
        per_view = isinstance(labels, Mapping) and not issparse(labels)
        objects = None if per_view else _grouped_rows(scores)
        if objects is None:
            views = as_views(scores, unpaired=per_view).in_memory()
            objects = {name: views.objects(name) for name in views.names}
            blocks = dict(views.items())
            _check_rows_of_labels(labels, views)
        else:
            blocks = scores
        rows = {name: checked_rows(block, f"view {name!r}") for name, block in blocks.items()}
        widths = {name: block.shape[1] for name, block in rows.items()}
        if len(set(widths.values())) > 1:
            raise ValueError(f"Views must be projected into one space, got widths {widths}.")
        if labels is None:
            return cls(rows, objects, None, {})
        if not per_view:
            return cls(rows, objects, *_codes_of_objects(labels, objects))
        return cls(rows, objects, *_codes_of_views(labels, rows))

    def joint(self, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Summed projections, objects and label codes of the objects seen in all of the views."""
        for name in names:
            if name not in self.rows:
                raise ValueError(f"Unknown view {name!r}; the views are {list(self.rows)}.")
        first, *others = names
        shared = self.objects[first]
        for name in others:
            shared = np.intersect1d(shared, self.objects[name])
            if len(np.unique(self.objects[name])) < len(self.objects[name]):
                raise ValueError(f"View {name!r} has several rows per object; join one of each.")
        places = {name: np.flatnonzero(np.isin(self.objects[name], shared)) for name in names}
        total = sum(self.rows[name][places[name]] for name in names)
        codes = self.codes[first][places[first]] if self.codes else None
        return np.asarray(total), self.objects[first][places[first]], codes


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
    collection = Collection.of(scores)
    if normalize:
        unit = {name: unit_rows(rows) for name, rows in collection.rows.items()}
        collection = Collection(unit, collection.objects, None, {})
    return collection.joint(names)[0]


def _check_rows_of_labels(labels: Any, views: Views) -> None:
    """Raise ValueError if the index of labels contradicts that of the views."""
    if not isinstance(labels, Mapping) or issparse(labels):
        check_same_rows("the labels", row_labels(labels), "the views", views.ids)
        return
    for name in views.names:
        own = row_labels(labels.get(name))
        check_same_rows(f"the labels of view {name!r}", own, f"view {name!r}", views.ids_of(name))


def _grouped_rows(scores: Any) -> dict[str, np.ndarray] | None:
    """Object of each row in a mapping of matrices whose heights are multiples of the smallest."""
    if not isinstance(scores, Mapping) or issparse(scores) or isinstance(scores, Views):
        return None
    heights = {name: _height(block) for name, block in scores.items()}
    least = min(heights.values(), default=0)
    if len(set(heights.values())) < 2 or not least or any(h % least for h in heights.values()):
        return None  # paired, or for Views to refuse
    return {name: np.arange(h) // (h // least) for name, h in heights.items()}


def _height(block: Any) -> int:
    return int(block.shape[0]) if hasattr(block, "shape") else len(block)


def _codes_of_objects(
    labels: Any, objects: Mapping[str, np.ndarray]
) -> tuple[LabelTable, dict[str, np.ndarray]]:
    table, [codes] = encode_label_sets(labels)
    n_objects = 1 + max(int(o.max(initial=-1)) for o in objects.values())
    if len(codes) != n_objects:
        raise ValueError(
            f"Expected labels of {n_objects} objects, got {len(codes)}. Labels that differ "
            "between views are passed as a mapping by view name."
        )
    return table, {name: codes[rows] for name, rows in objects.items()}


def _codes_of_views(
    labels: Mapping[str, Any], rows: Mapping[str, np.ndarray]
) -> tuple[LabelTable, dict[str, np.ndarray]]:
    if set(labels) != set(rows):
        raise ValueError(f"Expected labels of the views {list(rows)}, got {list(labels)}.")
    table, of_each = encode_label_sets(*(labels[name] for name in rows))
    codes = dict(zip(rows, of_each, strict=True))
    for name, block in rows.items():
        if len(codes[name]) != len(block):
            raise ValueError(f"View {name!r} has {len(block)} rows but {len(codes[name])} labels.")
    return table, codes
