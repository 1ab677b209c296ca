"""Shapes of training rows and labels: all that a cost depends on."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any, Self

import numpy as np

from mvcca.comparison.data import Data
from mvcca.comparison.texts import TEXT_COMPONENTS


@dataclass(frozen=True)
class ViewShape:
    """Shape and storage of the rows of a view.

    Attributes
    ----------
    n_rows : int
        Number of rows.
    width : int
        Number of features.
    stored : float
        Numbers stored per row, on average: the width, if rows are dense.
    is_sparse : bool
        Whether zeros are not stored.
    itemsize : int
        Bytes per number.
    """

    n_rows: int
    width: int
    stored: float
    is_sparse: bool = False
    itemsize: int = 8

    @property
    def share(self) -> float:
        """Time of a product of these rows, in units of a float64 one."""
        return self.itemsize / 8


@dataclass(frozen=True)
class Shapes:
    """All that a cost depends on: the shapes of training rows and labels.

    Attributes
    ----------
    views : tuple of ViewShape
        The views.
    n_labels : int
        Length of the label vectors; 0 without labels.
    n_label_sets : int
        Number of distinct label vectors among the rows.
    """

    views: tuple[ViewShape, ...]
    n_labels: int = 0
    n_label_sets: int = 0

    @classmethod
    def of(cls, data: Data, n_rows: int) -> Self:
        """Shapes of a random selection of `n_rows` objects of a comparison."""
        share = n_rows / len(data.views)
        views = tuple(
            _shape_of(block, ceil(share * block.shape[0])) for block in data.views.blocks.values()
        )
        if (labels := data.fit_labels) is None:
            return cls(views)
        counts = np.bincount(labels.codes)
        drawn = np.sum(1 - (1 - share) ** counts)  # sets of which at least one row is selected
        return cls(views, labels.n_labels, ceil(min(drawn, n_rows)))

    @property
    def n_rows(self) -> int:
        """Number of rows of the longest view."""
        return max(view.n_rows for view in self.views)

    @property
    def width(self) -> int:
        """Number of features of all views."""
        return sum(view.width for view in self.views)

    @property
    def n_directions(self) -> int:
        """Number of ordered pairs of views."""
        return len(self.views) * (len(self.views) - 1)


def _shape_of(block: Any, n_rows: int) -> ViewShape:
    if block.holds_texts():  # reduced before they are fitted
        return ViewShape(n_rows, TEXT_COMPONENTS, TEXT_COMPONENTS)
    width, itemsize = block.shape[1], block.dtype.itemsize
    if not block.is_sparse:
        return ViewShape(n_rows, width, width, itemsize=itemsize)
    stored = block.numbers().size / max(1, block.shape[0])
    return ViewShape(n_rows, width, stored, is_sparse=True, itemsize=itemsize)
