"""The data of a comparison: views and labels of training and of held-out objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from mvcca.cli.labels import Labels
from mvcca.views import Views


@dataclass(frozen=True, eq=False)
class Case:
    """Data that methods are fitted to and measured on.

    Attributes
    ----------
    title : str
        Heading of the results.
    train, test : Views
        Training and held-out objects.
    labels : dict of str to Labels
        Labels of the training objects to learn from, by name; several kinds are compared.
    train_relevance, test_relevance : Labels or None
        Labels that define relevant items.
    like, same : str
        Descriptions of items that share a label with the query, and of those of the same object.
    layout : tuple of tuples of str
        For views that are parts of one image, their rows and columns in that image.
    image_shapes : mapping of str to (height, width)
        Shapes of these parts.
    words : callable or None
        Function from the name of a view and a row to the text of that row.
    """

    title: str
    train: Views
    test: Views
    labels: dict[str, Labels]
    train_relevance: Labels | None
    test_relevance: Labels | None
    like: str = "a label in common"
    same: str = "the same object"
    layout: tuple[tuple[str, ...], ...] = ()
    image_shapes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    words: Callable[[str, int], str] | None = None

    @property
    def has_pairs(self) -> bool:
        """Whether any training object is seen in two views."""
        return bool((self.train.seen.sum(axis=1) > 1).any())

    @property
    def has_test_pairs(self) -> bool:
        """Whether two views have enough held-out objects in common for correlations."""
        shared = self.test.seen.T.astype(int) @ self.test.seen
        return bool((shared[~np.eye(len(shared), dtype=bool)] > 1).any())

    @property
    def relevance_vectors(self) -> Any:
        """Label sets of the held-out objects; None without classes or label sets."""
        labels = self.test_relevance
        return labels.vectors if labels is not None and labels.are_sets else None

    def right_item(self, is_rank: bool, relevance: str | None) -> str:
        """Description of the right items for a measure."""
        prefers_pairs = relevance == "pairs" or (relevance is None and is_rank and self.has_pairs)
        return self.same if prefers_pairs or self.relevance_vectors is None else self.like

    @property
    def label_texts(self) -> list[str] | None:
        """Label names of each held-out object; None without classes or label sets."""
        labels = self.test_relevance
        return labels.texts() if labels is not None and labels.are_sets else None

    def describe(self) -> list[str]:
        """Describe views, sizes and labels in lines of text."""
        views = ", ".join(f"{name} ({width})" for name, width in self.train.widths.items())
        pairing = "paired" if self.has_pairs else "unpaired"
        several = len(self.labels) > 1
        labels = [
            f"{kind}: {of.describe()}" if several else of.describe()
            for kind, of in self.labels.items()
        ]
        return [
            f"views: {views}; {len(self.train):,} {pairing} training objects, "
            f"{len(self.test):,} held out",
            *([f"labels: {'; '.join(labels)}"] if labels else []),
        ]


def split(views: Views, test_size: float | int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions of training and of held-out objects, in random order, stratified by `pattern`.

    `test_size` is the fraction or number of held-out objects.
    """
    patterns = None if views.is_paired else views.pattern
    train, test = train_test_split(
        np.arange(len(views)), test_size=test_size, random_state=seed, stratify=patterns
    )
    return train, test
