"""The data of a comparison, and how reports show them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from mvcca.blocks.containers import are_positions, few
from mvcca.comparison.folds import Fold, make_folds
from mvcca.comparison.groups import Groups, row_keys
from mvcca.retrieval import Measure
from mvcca.retrieval.words import with_words
from mvcca.views import Labels, Views, as_views, holds_views
from mvcca.views.labels_by_view import LabelsByView, is_per_view


@dataclass(frozen=True, eq=False)
class Data:
    """Views with the labels that define relevance and those to learn from."""

    views: Views  # in memory; ids number the objects from 1
    ids: np.ndarray | None  # of the objects, if the index is not 0, 1, ...
    labels: Labels | None  # define relevant items
    fit_labels: Labels | None  # to learn from
    y: Any  # the same for any estimator, one per object
    groups: Groups | None = None  # objects that belong together

    @classmethod
    def of(cls, X: Any, y: Any = None, fit_labels: Any = None) -> Data:
        """Read views and labels as estimators take them."""
        if not holds_views(X):
            raise TypeError(
                "Expected Views, or a mapping or list of matrices, got "
                f"{type(X).__name__}. Pass two matrices as [X1, X2]."
            )
        per_view = y is not None and is_per_view(X, y)
        views = as_views(X, unpaired=per_view).in_memory()
        labels = learned = _labels_of_objects(views, y, per_view)
        if fit_labels is not None:
            y, per_view = fit_labels, is_per_view(views, fit_labels)
            learned = _labels_of_objects(views, y, per_view)
        if learned is not None and (per_view or not isinstance(y, np.ndarray | list)):
            y = learned.plain()
        ids = None if views.ids is None or are_positions(views.ids) else views.ids
        # Positions from 0 are not kept when rows are selected, numbers from 1 are.
        numbers = np.arange(1, len(views) + 1)
        frames = {
            name: block.set_axis(numbers[views.objects(name)]) if hasattr(block, "iloc") else block
            for name, block in views.items()
        }
        views = views.with_ids(numbers).replace(frames).checked_once()
        return cls(views, ids, labels, learned, y)

    @property
    def has_pairs(self) -> bool:
        """Whether any object is seen in two views."""
        return bool((self.views.seen.sum(axis=1) > 1).any())

    @property
    def contents(self) -> dict[str, Any]:
        """Plain values that are equal for equal data."""
        labels, learned = (
            None if own is None else (list(own.names), own.n_distinct, row_keys(own.matrix))
            for own in (self.labels, self.fit_labels)
        )
        return {
            "views": [(name, row_keys(block)) for name, block in self.views.items()],
            "objects seen in each view": self.views.seen,
            "labels": labels,
            "labels to learn from": learned,
            "groups": None if self.groups is None else self.groups.codes,
        }

    @property
    def relevant_labels(self) -> Labels | None:
        """Label sets of the objects; None without classes or label sets."""
        return self.labels if self.labels is not None and self.labels.are_sets else None

    def relevance_of(self, objects: np.ndarray) -> Labels | None:
        """Label sets of some objects; None without classes or label sets."""
        labels = self.relevant_labels
        return None if labels is None else labels[objects]

    def with_groups(self, groups: Any = None) -> Data:
        """The same data with the user's groups, or else with objects that have equal rows."""
        if groups is not None:
            return replace(self, groups=Groups.given_by(groups, self.views, self.ids))
        return replace(self, groups=Groups.found_in(self.views, self.labels))

    def folds(self, cv: Any, random_state: Any, objects: np.ndarray | None = None) -> list[Fold]:
        """Split the objects, or some of them, so that those of a group are in the same part."""
        objects = np.arange(len(self.views)) if objects is None else objects
        labels = None if self.labels is None else self.labels[objects]
        if self.groups is None:
            return make_folds(self.views[objects], labels, cv, random_state)
        codes = np.unique(self.groups.codes[objects], return_inverse=True)[1]
        are_given = self.groups.are_given
        return make_folds(self.views[objects], labels, cv, random_state, codes, are_given=are_given)

    def labels_to_learn_from(self, objects: np.ndarray, *, encoded: bool) -> Any:
        """The labels of some objects, encoded or as any estimator takes them."""
        if encoded:
            return None if self.fit_labels is None else self.fit_labels[objects]
        if isinstance(self.y, list):
            return [self.y[i] for i in objects]
        return None if self.y is None else self.y[objects]

    @property
    def label_texts(self) -> list[str] | None:
        """Label names of each object; None without classes or label sets."""
        return self.labels.texts() if self.labels is not None and self.labels.are_sets else None

    @property
    def is_small(self) -> bool:
        """Whether threads would cost more time than they save."""
        return sum(X.shape[0] * X.shape[1] for _, X in self.views.items()) < 10**6

    def check_relevance(self, relevance: str | None) -> None:
        """Raise ValueError if nothing can be relevant to anything."""
        if relevance not in (None, "pairs", "labels"):
            raise ValueError(
                f"Expected relevance to be 'pairs', 'labels' or None, got {relevance!r}."
            )
        has_labels = self.relevant_labels is not None
        if relevance == "labels" and not has_labels:
            raise ValueError("Relevance by labels needs classes or label sets; there are none.")
        if relevance == "pairs" and not self.has_pairs:
            raise ValueError("Relevance by pairs needs objects seen in two views; there are none.")
        if not (has_labels or self.has_pairs):
            raise ValueError(
                "No item is relevant to any query: the views are unpaired, and real label vectors "
                "do not define relevance. Give classes or label sets."
            )

    def check_shared_labels(self) -> None:
        """Raise ValueError if the labels of two views have no name in common."""
        assert self.labels is not None
        names = {v: self.labels[self.views.objects(v)].present() for v in self.views.names}
        for first, second in combinations(names, 2):
            if names[first] and names[second] and set(names[first]).isdisjoint(names[second]):
                raise ValueError(
                    f"The labels of view {first!r} ({few(names[first])}) have nothing in common "
                    f"with those of view {second!r} ({few(names[second])}), so nothing is "
                    "relevant. Use the same names in all views, or compare labels by word vectors: "
                    "measures 'wmap@50' with label_vectors."
                )

    def word_vectors(self, label_vectors: Any) -> np.ndarray | None:
        """Word vectors of the labels, one row per column of their vectors."""
        if label_vectors is None:
            return None
        if self.labels is None or not self.labels.are_sets:
            raise ValueError("label_vectors need classes or label sets; there are none.")
        if isinstance(label_vectors, Mapping):
            label_vectors = {str(name): vector for name, vector in label_vectors.items()}
        return with_words(self.labels.with_text_names(), label_vectors).words

    def relevance_is_by_labels(self, measure: str, relevance: str | None) -> bool:
        """Whether a measure counts items with a shared label."""
        is_by_words = Measure.parse(measure).kind == "wmap"
        return not (is_by_words or self.relevance_is_by_pairs(measure, relevance))

    def relevance_is_by_pairs(self, measure: str, relevance: str | None) -> bool:
        """Whether a measure counts items of the same object, not items with a shared label."""
        if relevance is not None:
            return relevance == "pairs"
        if self.relevant_labels is None:
            return True
        return Measure.parse(measure).is_rank and self.has_pairs

    def describe(self) -> list[str]:
        """Describe views and labels in lines of text."""
        views = ", ".join(f"{name} ({width})" for name, width in self.views.widths.items())
        pairing = "paired" if self.has_pairs else "unpaired"
        lines = [f"views: {views}; {len(self.views):,} {pairing} objects"]
        if self.labels is not None:
            lines.append(f"labels: {self.labels.describe()}")
        if self.fit_labels is not None and self.fit_labels is not self.labels:
            lines.append(f"labels to learn from: {self.fit_labels.describe()}")
        return lines


def _labels_of_objects(views: Views, y: Any, per_view: bool) -> Labels | None:
    """One label vector per object, from labels per object or per view."""
    if y is None:
        return None
    labels = LabelsByView.of(views, y, per_view)
    codes = np.zeros(len(views), dtype=int)
    for name in views.names:
        codes[views.objects(name)] = labels.codes[name]
    return replace(labels.distinct, codes=codes)


@dataclass(frozen=True, eq=False)
class Presentation:
    """How a report names and shows objects.

    Attributes
    ----------
    title : str
        Heading; by default the names of the views.
    like, same : str
        Descriptions of items that share a label with the query, by default "the same class" or
        "a label in common", and of those of the same object.
    layout : tuple of tuples of str
        For views that are parts of one image, their rows and columns in that image.
    image_shapes : mapping of str to (height, width)
        Shapes of these parts.
    words : callable or None
        Function from the name of a view and a row of it to the text of that row.
    """

    title: str = ""
    like: str = ""
    same: str = "the same object"
    layout: tuple[tuple[str, ...], ...] = ()
    image_shapes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    words: Callable[[str, int], str] | None = None
