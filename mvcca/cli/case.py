"""A case: views of training and of held-out objects, with all that a comparison needs of them.

Cases are made by `mvcca.cli.demo` and `mvcca.cli.compare`, and taken by `mvcca.cli.run` and
`mvcca.cli.report`, which do not know where they came from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from mvcca.cli.labels import Labels
from mvcca.views import Views

__all__ = ["Case", "split"]


@dataclass(frozen=True, eq=False)
class Case:
    """What methods are fitted to and measured on.

    Attributes
    ----------
    title : str
        What results are printed under.
    train, test : Views
        Training and held-out objects.
    labels : dict of str to Labels
        What can be learned from, by name: no kind of labels of the training objects, one, or
        several to be compared.
    train_relevance, test_relevance : Labels or None
        What makes objects relevant to each other, besides being the same.
    like, same : str
        What items that share a label, and items of the same object, have in common.
    layout : tuple of tuples of str
        Views whose rows are parts of one image, as rows and columns of that image.
    image_shapes : mapping of str to (height, width)
        Of the parts.
    words : callable or None
        Text for a row of a view, from the view's name and the row.
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
        """Whether enough held-out objects are seen in two views to correlate these."""
        shared = self.test.seen.T.astype(int) @ self.test.seen
        return bool((shared[~np.eye(len(shared), dtype=bool)] > 1).any())

    @property
    def relevance_vectors(self) -> Any:
        """Labels of held-out objects in which two can have one in common; None without any."""
        labels = self.test_relevance
        return labels.vectors if labels is not None and labels.are_sets else None

    def right_item(self, is_rank: bool, relevance: str | None) -> str:
        """What makes an item right for a measure, where the user asked for `relevance` or not."""
        prefers_pairs = relevance == "pairs" or (relevance is None and is_rank and self.has_pairs)
        return self.same if prefers_pairs or self.relevance_vectors is None else self.like

    @property
    def label_texts(self) -> list[str] | None:
        """Names of each held-out object's labels; None without any."""
        labels = self.test_relevance
        return labels.texts() if labels is not None and labels.are_sets else None

    def describe(self) -> list[str]:
        """Views, sizes and labels, as lines of text."""
        views = ", ".join(f"{name} ({width})" for name, width in self.train.widths.items())
        pairing = "paired" if self.has_pairs else "unpaired"
        several = len(self.labels) > 1
        labels = [
            f"{kind}: {of.describe()}" if several else of.describe()
            for kind, of in self.labels.items()
        ]
        return [
            f"views: {views}; {len(self.train):,} {pairing} objects to train on, "
            f"{len(self.test):,} held out",
            *([f"labels: {'; '.join(labels)}"] if labels else []),
        ]


def split(views: Views, test_size: float | int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions of training and of held-out objects; what is paired stays together.

    Parameters
    ----------
    views : Views
        Every combination of views that objects are seen in gets its share of both parts.
    test_size : float or int
        Share, or number, of held-out objects.
    seed : int
        Seed of the draw.

    Returns
    -------
    train, test : ndarray of int
        In random order.

    Raises
    ------
    ValueError
        If a part would be empty.
    """
    patterns = None if views.is_paired else views.pattern
    train, test = train_test_split(
        np.arange(len(views)), test_size=test_size, random_state=seed, stratify=patterns
    )
    return train, test
