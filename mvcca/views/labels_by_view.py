"""Labels of several views, given per object or per view."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mvcca.blocks import is_mapping
from mvcca.blocks.checks import check_same_rows, of_view, row_labels
from mvcca.views import Views
from mvcca.views.labels import Labels


@dataclass(frozen=True, eq=False)
class LabelsByView:
    """Labels of the rows of each view, over the same distinct label vectors."""

    distinct: Labels  # one row per distinct label vector
    codes: Mapping[str, np.ndarray]  # by view, of each row: its line in `distinct`

    @classmethod
    def of(cls, views: Views, y: Any, per_view: bool = False) -> LabelsByView:
        """Encode the labels of views: of each object, or of the rows of each view."""
        if isinstance(y, LabelsByView):
            return y
        if not per_view:
            labels = Labels.of(y)
            if len(labels) != len(views):
                raise ValueError(
                    "Found input variables with inconsistent numbers of samples: "
                    f"{[len(views), len(labels)]}. One label (or label set) per object is expected."
                )
            check_same_rows("y", labels.ids, "the views", views.ids)
            codes = {name: labels.codes[views.objects(name)] for name in views.names}
            return cls(labels.distinct, codes).used()
        encoded = {}
        for name, part in labels_by_view(views, y, per_view).items():
            try:
                encoded[name] = Labels.of(part)
            except (ValueError, TypeError) as error:
                raise of_view(name, error) from error
        return cls.of_each({name: encoded[name] for name in views.names})

    @classmethod
    def of_each(cls, labels: Mapping[str, Labels]) -> LabelsByView:
        """Merge the labels of the rows of each view."""
        common = Labels.in_common(list(labels.values()))
        codes = {name: own.codes for name, own in zip(labels, common, strict=True)}
        return cls(common[0].distinct, codes).used()

    @classmethod
    def concatenate(cls, first: LabelsByView, second: LabelsByView) -> LabelsByView:
        """Stack the rows of each view."""
        return cls.of_each(
            {name: Labels.concatenate([first[name], second[name]]) for name in first.codes}
        )

    def __getitem__(self, name: str) -> Labels:
        return Labels(self.distinct.vectors, self.distinct.vocabulary, self.codes[name])

    def used(self) -> LabelsByView:
        """Leave out label vectors without rows, and named labels that are in none of the others."""
        codes = list(self.codes.values())
        whole = replace(self.distinct, codes=np.concatenate(codes))
        used = whole.used()
        if used is whole:
            return self
        parts = np.split(used.codes, np.cumsum(list(map(len, codes)))[:-1])
        return LabelsByView(used.distinct, dict(zip(self.codes, parts, strict=True)))

    def per_object(self, views: Views) -> Labels:
        """One label vector per object, which must be the same in all views that show it."""
        table, first, differs = self._of_objects(views)
        if len(differs):
            i, other = differs[0].tolist()
            known, found = (
                f"{self._text(table[i, view])} in view {views.names[view]!r}"
                for view in (first[i], other)
            )
            raise ValueError(
                f"Expected one label per object, but views disagree about "
                f"{len(np.unique(differs[:, 0]))} of {len(views)} objects: object "
                f"{i if views.ids is None else views.ids[i]} has {known} and {found}. Pass labels "
                "of the objects, or Views.unpaired(views) if rows of the views do not correspond."
            )
        return replace(self.distinct, codes=table[np.arange(len(table)), first])

    def if_agreed(self, views: Views) -> Labels | None:
        """One label vector per object; None if views disagree about one."""
        return None if len(self._of_objects(views)[2]) else self.per_object(views)

    def _of_objects(self, views: Views) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Codes of objects in each view, the first view of each, and where another one differs."""
        table = np.zeros(views.seen.shape, dtype=int)
        for column, name in zip(table.T, views.names, strict=True):
            column[views.objects(name)] = self.codes[name]
        first = views.seen.argmax(axis=1)
        differs = views.seen & (table != np.take_along_axis(table, first[:, None], axis=1))
        return table, first, np.argwhere(differs)

    def _text(self, code: int) -> str:
        """A label vector in an error message."""
        distinct = self.distinct
        return repr(distinct.texts()[code]) if distinct.are_sets else str(distinct.dense()[code])

    def take(self, rows: Mapping[str, np.ndarray]) -> LabelsByView:
        """The labels of some rows of these views."""
        codes = {name: self.codes[name][own] for name, own in rows.items()}
        return LabelsByView(self.distinct, codes).used()


def is_per_view(X: Any, y: Any) -> bool:
    """Whether y holds the labels of every view rather than one label (or set) per object."""
    if is_mapping(y):
        return True
    blocks = X if isinstance(X, list | tuple) else [block for _, block in X.items()]
    if not isinstance(y, list | tuple) or len(y) != len(blocks):
        return False
    if any(isinstance(part, str | set | frozenset) or not hasattr(part, "__len__") for part in y):
        return False
    heights = [_height(block) for block in blocks]
    n_objects = len(X) if isinstance(X, Views) else heights[0]
    return len(y) != n_objects or [_height(part) for part in y] == heights


def labels_by_view(views: Views, y: Any, per_view: bool) -> dict[str, Any]:
    """The labels of the rows of every view, in their original form."""
    if y is None:
        return dict.fromkeys(views.names)
    if not per_view:
        from sklearn.utils import _safe_indexing, check_consistent_length

        check_consistent_length(views, y)
        check_same_rows("y", _row_ids(y), "the views", views.ids)
        paired = views.is_paired
        return {n: y if paired else _safe_indexing(y, views.objects(n)) for n in views.names}
    labels = dict(y) if isinstance(y, Mapping) else dict(zip(views.names, y, strict=True))
    if set(labels) != set(views.names):
        raise ValueError(f"Expected labels of the views {list(views.names)}, got {list(labels)}.")
    for name in views.names:
        if _height(labels[name]) != views[name].shape[0]:
            raise ValueError(
                f"View {name!r} has {views[name].shape[0]} rows but {_height(labels[name])} labels."
            )
        check_same_rows(
            f"the labels of view {name!r}",
            _row_ids(labels[name]),
            f"view {name!r}",
            views.ids_of(name),
        )
    return labels


def _row_ids(y: Any) -> np.ndarray | None:
    """Index of labels that are or were a pandas object, else None."""
    return y.ids if isinstance(y, Labels) else row_labels(y)


def _height(block: Any) -> int:
    return block.shape[0] if hasattr(block, "shape") and len(block.shape) else len(block)
