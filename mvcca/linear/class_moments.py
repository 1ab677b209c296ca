"""Moments of views and of the indicators of classes, which batches may add."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mvcca.blocks import as_block
from mvcca.problem import Rows
from mvcca.statistics import Moments, PairMoments
from mvcca.views import Views

CLASSES = "classes"  # the view of the indicators


@dataclass(frozen=True, eq=False)
class ClassMoments:
    """Moments of views and of the indicators of classes; batches may have other classes.

    Attributes
    ----------
    classes : ndarray, shape (n_classes,) or (n_classes, n_labels)
        Classes in order, or distinct label sets as indicators.
    moments : Moments or PairMoments
        The indicators are the last view.
    """

    classes: np.ndarray
    moments: Moments | PairMoments

    @property
    def widths(self) -> dict[str, int]:
        """Number of features of each view, classes aside."""
        return {name: width for name, width in self.moments.widths.items() if name != CLASSES}

    def objects_by_view(self) -> dict[str, float]:
        """Number of objects (sum of weights) seen in each view."""
        return {n: own for n, own in self.moments.objects_by_view().items() if n != CLASSES}

    @classmethod
    def of(cls, rows: Rows) -> ClassMoments:
        """Sum up rows."""
        classes = np.unique(labels_of(rows), axis=0)
        return cls(classes, with_classes(rows, classes).moments())

    def __add__(self, other: ClassMoments) -> ClassMoments:
        classes = np.unique(np.concatenate([self.classes, other.classes]), axis=0)
        return ClassMoments(classes, self._among(classes) + other._among(classes))

    def _among(self, classes: np.ndarray) -> Any:
        """The moments with indicators of more classes, of which there are no rows."""
        places = positions_of(self.classes, classes)
        missing = np.setdiff1d(np.arange(len(classes)), places)

        def spread(own: Moments) -> Moments:
            if CLASSES not in own.widths:
                return own
            at = sum(own.widths.values()) - len(places) + np.searchsorted(places, missing)
            means, residues = (np.insert(a, at, 0, axis=1) for a in (own.means, own.residues))
            scatter = np.insert(np.insert(own.scatter, at, 0, axis=0), at, 0, axis=1)
            widths = {**own.widths, CLASSES: len(classes)}
            return Moments(widths, own.counts, means, residues, scatter)

        if isinstance(self.moments, Moments):
            return spread(self.moments)
        return PairMoments({pair: spread(own) for pair, own in self.moments.pairs.items()})


def labels_of(rows: Rows) -> np.ndarray:
    """The class of each object, (n_objects,), or its label set as indicators, (n_objects, n)."""
    return np.asarray(rows.labels.per_object(rows.views))


def positions_of(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Position of each label, or row of indicators, among the distinct ones, in order."""
    both = np.concatenate([classes, labels])
    return np.unique(both, axis=0, return_inverse=True)[1].ravel()[len(classes) :]


def with_classes(rows: Rows, classes: np.ndarray) -> Rows:
    """Rows with the indicators of their classes as the last view."""
    views, indicators = rows.views, np.eye(len(classes))[positions_of(labels_of(rows), classes)]
    seen = np.column_stack([views.seen, np.ones(len(views), dtype=bool)])
    blocks = {**views.blocks, CLASSES: as_block(indicators)}
    return replace(rows, views=Views.of(blocks, seen, views.ids, views.removed), labels=None)
