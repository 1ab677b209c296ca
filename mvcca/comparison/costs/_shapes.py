"""Shapes of training rows and labels: all that a cost depends on."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mvcca.blocks import as_block
from mvcca.similarity import SharedSubsets
from mvcca.views import Labels, Views

if TYPE_CHECKING:
    from mvcca.comparison.data import Data

_INDEX_BYTES = 8  # of a number of a sparse row
_SHARED = 1.3  # power of the number of label sets by which members grow, of COCO's and Zipf's


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
    n_used : int or None
        Number of features that occur in any row; None if all do.
    """

    n_rows: int
    width: int
    stored: float
    is_sparse: bool = False
    itemsize: int = 8
    n_used: int | None = None

    @property
    def used(self) -> int:
        """Number of features that occur."""
        return self.width if self.n_used is None else self.n_used

    @property
    def rank(self) -> int:
        """Largest rank of the centred rows."""
        return max(1, min(self.used, self.n_rows - 1))

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
    n_members : float
        Label sets that contain a subset that several of them share, summed over subsets; infinite
        if they are so many that label similarities are computed one by one.
    """

    views: tuple[ViewShape, ...]
    n_labels: int = 0
    n_label_sets: int = 0
    n_members: float = inf

    @classmethod
    def of(cls, data: Data, n_rows: int) -> Self:
        """Shapes of a random selection of `n_rows` objects of a comparison."""
        return cls.of_views(data.views, data.fit_labels, n_rows)

    @classmethod
    def of_views(
        cls, views: Views, labels: Labels | None = None, n_rows: int | None = None
    ) -> Self:
        """Shapes of a random selection of `n_rows` objects, or of all."""
        n_rows = len(views) if n_rows is None else n_rows
        share = n_rows / len(views)
        blocks = views.blocks.values()
        shapes = tuple(shape_of(block, ceil(share * block.shape[0])) for block in blocks)
        if labels is None:
            return cls(shapes)
        drawn = _drawn(np.bincount(labels.codes), share)
        n_label_sets = ceil(min(drawn, n_rows))
        subsets = SharedSubsets.of(labels, 1.0) if labels.are_sets else None
        n_members = inf
        if subsets is not None:  # fewer sets share fewer and smaller subsets
            n_members = subsets.n_members * (n_label_sets / labels.n_distinct) ** _SHARED
        return cls(shapes, labels.n_labels, n_label_sets, n_members)

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


def shape_of(block: Any, n_rows: int | None = None) -> ViewShape:
    """The shape of a block, or of a random selection of its rows; rows of files are not read."""
    n_rows = block.shape[0] if n_rows is None else n_rows
    if block.holds_texts():  # reduced before they are fitted
        # This imports scikit-learn, which takes a second.
        from mvcca.comparison.texts import TEXT_COMPONENTS

        return ViewShape(n_rows, TEXT_COMPONENTS, TEXT_COMPONENTS)
    width, itemsize = block.shape[1], block.dtype.itemsize
    if not block.is_sparse:
        return ViewShape(n_rows, width, width, itemsize=itemsize)
    if block.is_lazy:
        stored = min(width, block.row_bytes / (itemsize + _INDEX_BYTES))
        return ViewShape(n_rows, width, stored, True, itemsize)
    counts = as_block(block.booleans().astype(float)).column_sums()
    height = max(1, block.shape[0])
    drawn = _drawn(counts, n_rows / height)
    return ViewShape(n_rows, width, counts.sum() / height, True, itemsize, ceil(drawn))


def _drawn(counts: np.ndarray, share: float) -> float:
    """Expected number of kinds among a share of all things, of which there are `counts`."""
    return float(np.sum(1 - (1 - share) ** counts))
