"""The data of a comparison, and how reports show them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any, Literal

import numpy as np

from mvcca.blocks import as_block
from mvcca.blocks.checks import column_labels, few, informative, not_finite
from mvcca.model_selection.folds import Fold, make_folds
from mvcca.model_selection.groups import Groups, row_keys
from mvcca.retrieval.evaluate import Directions
from mvcca.retrieval.measure import Measure
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
    galleries: Sequence[Any] = (slice(None),)  # objects that are searched together
    has_pairs: bool = field(init=False)  # whether any object is seen in two views
    relevant_labels: Labels | None = field(init=False)  # label sets; None if labels are not sets
    texts: list[str] = field(init=False)  # names of the views of texts

    def __post_init__(self) -> None:
        facts, labels = vars(self), self.labels  # the class is frozen
        facts["has_pairs"] = bool((self.views.seen.sum(axis=1) > 1).any())
        facts["relevant_labels"] = labels if labels is not None and labels.are_sets else None
        facts["texts"] = text_views(self.views)

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
        ids = informative(views.ids)
        # Positions from 0 are not kept when rows are selected, numbers from 1 are.
        numbers = np.arange(1, len(views) + 1)
        frames = {
            name: block.set_axis(numbers[views.objects(name)]) if hasattr(block, "iloc") else block
            for name, block in views.items()
        }
        blocks = {name: as_block(frame) for name, frame in frames.items()}
        views = Views.of(blocks, views.seen, numbers).checked_once()
        return cls(views, ids, labels, learned, y)

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

    def folds(self, cv: Any, random_state: Any, objects: np.ndarray | None = None) -> list[Fold]:
        """Split the objects, or some of them, so that those of a group are in the same part."""
        objects = np.arange(len(self.views)) if objects is None else objects
        labels = None if self.labels is None else self.labels[objects]
        if self.groups is None:
            return make_folds(self.views[objects], labels, cv, random_state)
        codes = np.unique(self.groups.codes[objects], return_inverse=True)[1]
        are_given = self.groups.are_given
        return make_folds(self.views[objects], labels, cv, random_state, codes, are_given=are_given)

    @cached_property
    def share_labels(self) -> bool:
        """Whether any gallery has two objects with a label in common: names of objects have not."""
        if self.relevant_labels is None:
            return False
        parts = (self.relevant_labels[gallery] for gallery in self.galleries)
        counts = (
            part.vectors.T @ np.bincount(part.codes, minlength=part.n_distinct) for part in parts
        )
        return any(count.max(initial=0) > 1 for count in counts)

    @property
    def label_texts(self) -> list[str] | None:
        """Label names of each object; None without classes or label sets."""
        return None if self.relevant_labels is None else self.relevant_labels.texts()

    def check_relevance(
        self, relevance: str | None, measures: Sequence[str], directions: Directions
    ) -> None:
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
                "No item is relevant to any query: no object is seen in two views, and "
                f"{'there are no labels' if self.labels is None else 'labels are real vectors'}. "
                "Give paired views, or classes or label sets."
            )
        by_labels = relevance == "labels" or not self.has_pairs
        if by_labels and not (self.share_labels or any("wmap" in name for name in measures)):
            raise ValueError(
                "No two objects have a label in common, so that nothing is relevant to any query. "
                "Give classes or label sets that several objects have."
            )
        if not isinstance(directions, str) or directions == "within":
            return
        if not any(self.relevance_by(name, relevance) == "labels" for name in measures):
            return
        for (first, names), (second, others) in self.strangers():
            raise ValueError(
                f"The labels of view {first!r} ({few(names)}) have nothing in common with those of "
                f"view {second!r} ({few(others)}), so nothing is relevant. Use the same names in "
                "all views, or compare labels by word vectors: measures 'wmap@50' with "
                "label_vectors."
            )

    def strangers(self) -> Iterator[tuple[tuple[str, list[str]], tuple[str, list[str]]]]:
        """Pairs of views that have no label in common, with their labels."""
        assert self.labels is not None
        names = {v: self.labels[self.views.objects(v)].present() for v in self.views.names}
        for first, second in combinations(names.items(), 2):
            if first[1] and second[1] and set(first[1]).isdisjoint(second[1]):
                yield first, second

    def relevance_by(
        self, measure: str, relevance: str | None
    ) -> Literal["pairs", "labels", "words"]:
        """What makes an item right for a measure: its object, a shared label, or word vectors."""
        parsed = Measure.parse(measure)
        if relevance is None:
            by_pairs = self.relevant_labels is None or (
                self.has_pairs
                and (parsed.is_rank or (parsed.kind != "wmap" and not self.share_labels))
            )
        else:
            by_pairs = relevance == "pairs"
        if by_pairs:
            return "pairs"
        return "words" if parsed.kind == "wmap" else "labels"

    def word_vectors(self, label_vectors: Any) -> np.ndarray:
        """Word vectors of the labels, one row per column of their vectors."""
        if self.relevant_labels is None:
            raise ValueError("label_vectors need classes or label sets; there are none.")
        if isinstance(label_vectors, Mapping):
            label_vectors = {str(name): vector for name, vector in label_vectors.items()}
        words = with_words(self.relevant_labels.with_text_names(), label_vectors).words
        assert words is not None
        return words

    def not_finite(self) -> str | None:
        """Where the first view that is not finite has NaN or infinity, and what to do."""
        for name, block in self.views.blocks.items():
            if block.holds_texts() or block.is_finite():
                continue
            ids = None if self.ids is None else self.ids[self.views.objects(name)]
            columns = column_labels(block.matrix)
            found = not_finite(block.plain().matrix, ids=ids, columns=columns)
            return f"View {name!r} {found}"
        return None

    def describe(self) -> list[str]:
        """Describe views and labels in lines of text."""
        views = ", ".join(f"{name} ({width})" for name, width in self.views.widths.items())
        lines = [f"views: {views}; {self._objects_in_words()}"]
        if self.labels is not None:
            lines.append(f"labels: {self.labels.describe()}")
            if self.relevant_labels is not None and not self.share_labels:
                lines.append(
                    "no two objects of a fold have a label in common: relevance is by pairs"
                )
        if self.fit_labels is not None and self.fit_labels is not self.labels:
            lines.append(f"labels to learn from: {self.fit_labels.describe()}")
        return lines

    def _objects_in_words(self) -> str:
        """How many objects there are, and how many of them are seen in several views."""
        n_objects, n_views = len(self.views), self.views.seen.sum(axis=1)
        if self.views.is_paired or not self.has_pairs:
            return f"{n_objects:,} {'paired' if self.has_pairs else 'unpaired'} objects"
        n_all = int((n_views == len(self.views.names)).sum())
        if len(self.views.names) == 2:
            return f"{n_objects:,} objects, {n_all:,} of them paired"
        n_paired = int((n_views > 1).sum())
        return f"{n_objects:,} objects, {n_paired:,} of them paired, {n_all:,} in all views"


def text_views(views: Views) -> list[str]:
    """Names of the views of texts: single columns of strings."""
    return [name for name, block in views.blocks.items() if block.holds_texts()]


def _labels_of_objects(views: Views, y: Any, per_view: bool) -> Labels | None:
    """One label vector per object, from labels per object or per view."""
    if y is None:
        return None
    return LabelsByView.of(views, y, per_view).per_object(views)


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
