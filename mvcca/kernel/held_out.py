"""Correlations of kernel variates on held-out objects.

Kernel methods have about as many degrees of freedom as rows. Training correlations then say nothing
of new rows, and leverages are too uneven to correct them by a formula. Instead, some objects are
held out: their moments are subtracted from those of all objects, the problem is solved for the
rest, and its scores of the held-out objects are correlated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from math import ceil

import numpy as np

from mvcca.blocks import to_host
from mvcca.blocks.row_hashes import scrambled
from mvcca.linear.features import FeatureMap, LandmarkFeatures
from mvcca.problem import Expected, Maps, expected_moments
from mvcca.statistics import (
    DigitsLost,
    Moments,
    PairCovariance,
    PairMoments,
    column_slices,
    moments_of_block,
)
from mvcca.statistics.passes import accumulate, in_precision
from mvcca.views import Views

_FOLDS = 5  # at most; each holds out a fifth of the objects at most
_ENOUGH = 250  # held-out objects; there are no more folds than give so many
_MOST = 1000  # held-out objects of the one fold that many objects have
_LEAST = 50  # objects that are no landmarks, if landmarks are not to be held out

_FLOAT64 = np.dtype(np.float64)


def fold_of(keys: np.ndarray, n_objects: float) -> np.ndarray:
    """Fold that holds out each object, by its key in [0, 1); -1 for objects that none holds out.

    Objects that no fold holds out stay so if objects are added.
    """
    period = _FOLDS
    while n_objects > period * _MOST:
        period *= 2
    n_folds = min(_FOLDS, ceil(_FOLDS * _ENOUGH / max(n_objects, 1)))
    fold = (keys * period).astype(int)
    return np.where(fold < n_folds, fold, -1)


@dataclass(frozen=True, eq=False)
class Sample:
    """Features of the objects that are held out once."""

    widths: dict[str, int]  # number of features of each view
    keys: np.ndarray  # (n_objects,)
    weights: np.ndarray  # (n_objects,)
    are_landmarks: np.ndarray  # (n_objects,), of some view; new objects are none
    seen: np.ndarray  # (n_objects, n_views)
    features: np.ndarray  # (n_objects, D), of all views side by side, 0 where an object is not seen

    @classmethod
    def of(
        cls,
        maps: Mapping[str, FeatureMap],
        views: Views,
        weights: np.ndarray | None,
        n_objects: float,
        is_exact: bool,
    ) -> Sample:
        """Choose among the objects of a batch; `n_objects` counts those of earlier batches too.

        If a kernel `is_exact`, all objects are landmarks, and none is told from the others.
        The choice depends on the numbers of an object only: it is the same in any order, for dense
        and sparse rows, and equal objects are held out together.
        """
        none = views[:0].in_memory()
        none = none.replace({name: to_host(block) for name, block in none.items()})
        nothing = _sample_of_block(maps, 0, is_exact, none, None)
        of_block = partial(_sample_of_block, maps, n_objects, is_exact)
        return accumulate(of_block, nothing, views, weights)

    def __add__(self, other: Sample) -> Sample:
        parts = zip(self._arrays, other._arrays, strict=True)
        return Sample(self.widths, *(np.concatenate(part) for part in parts))

    def __getitem__(self, rows: np.ndarray) -> Sample:
        return Sample(self.widths, *(array[rows] for array in self._arrays))

    @property
    def _arrays(self) -> tuple[np.ndarray, ...]:
        return self.keys, self.weights, self.are_landmarks, self.seen, self.features

    @property
    def views(self) -> Views:
        """The features by view."""
        index = np.where(self.seen, np.arange(len(self.seen))[:, None], -1)
        columns = column_slices(self.widths)
        return Views({name: self.features[:, own] for name, own in columns.items()}, index)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Moments of the features of all objects, and the objects among them that are held out once."""

    total: Moments | PairMoments
    n_objects: float  # or the sum of their weights if it is larger
    sample: Sample

    def __add__(self, other: HeldOut) -> HeldOut:
        n_objects = self.n_objects + other.n_objects
        sample = self.sample + other.sample
        kept = fold_of(sample.keys, n_objects) >= 0
        return HeldOut(self.total + other.total, n_objects, sample[kept])

    def expected(
        self, solve: Callable[[Moments | PairMoments, int], Maps], n_components: int
    ) -> Expected | None:
        """Correlations and deviations of the scores of held-out objects; None if there are too few.

        Scores are centred by the training means of their fold, and correlated over all folds.
        """
        folds = fold_of(self.sample.keys, self.n_objects)
        if np.count_nonzero(~self.sample.are_landmarks) >= _LEAST:
            folds[self.sample.are_landmarks] = -1
        scores, weights = [], []
        for fold in np.unique(folds[folds >= 0]):
            held = self.sample[folds == fold]
            try:
                maps = solve(self._without(held), n_components)
            except (DigitsLost, ValueError):  # what is left has nothing in common
                continue
            scores.append(_scores(maps, held.views, n_components))
            weights.append(held.weights)
        if not scores:
            return None
        pairs = _covariances(Views.concatenate(scores), np.concatenate(weights))
        identity = dict.fromkeys(self.sample.widths, np.eye(n_components))
        return expected_moments(identity, pairs)

    def _without(self, held: Sample) -> Moments | PairMoments:
        """Moments of all objects but these."""
        views, weights = held.views, held.weights
        moments_of = partial(moments_of_block, dtype=_FLOAT64)  # not a pass of the fit
        if isinstance(self.total, PairMoments):
            return self.total - PairMoments.of(views, weights, moments_of)
        return self.total - moments_of(views, weights)


def features_of(maps: Mapping[str, FeatureMap], views: Views) -> Views:
    """Features of the rows of all views."""
    return views.replace(
        {
            name: maps[name](block) if block.shape[0] else np.empty((0, maps[name].n_features))
            for name, block in views.items()
        }
    )


def _sample_of_block(
    maps: Mapping[str, FeatureMap],
    n_objects: float,
    is_exact: bool,
    views: Views,
    weights: np.ndarray | None,
) -> Sample:
    keys = _keys(views)
    kept = np.flatnonzero(fold_of(keys, n_objects) >= 0)
    views, keys = views[kept], keys[kept]
    features = features_of(maps, in_precision(views, _FLOAT64))
    columns = column_slices(features.widths)
    table = np.zeros((len(views), features.shape[1]))
    are_landmarks = np.zeros(len(views), dtype=bool)
    for (name, own), seen in zip(columns.items(), views.seen.T, strict=True):
        table[seen, own] = features[name]
        if isinstance(map_ := maps[name], LandmarkFeatures) and not is_exact:
            are_landmarks[seen] |= map_.are_landmarks(features[name])
    weights = np.ones(len(kept)) if weights is None else weights[kept]
    return Sample(features.widths, keys, weights, are_landmarks, views.seen, table)


def _keys(views: Views) -> np.ndarray:
    """A pseudo-random number in [0, 1) of each object, from the numbers of its rows."""
    bits = np.zeros(len(views), dtype=np.uint64)
    for name, block in views.blocks.items():
        bits[views.objects(name)] += scrambled(block.row_hashes()[:, 0])
    return (scrambled(bits) >> np.uint64(11)) / 2.0**53


def _scores(maps: Maps, features: Views, n_components: int) -> Views:
    """Scores, with zeros for components that the fold did not have."""
    blocks = {}
    for name, block in features.items():
        blocks[name] = np.zeros((len(block), n_components))
        own = maps.project(name, block)
        blocks[name][:, : own.shape[1]] = own
    return features.replace(blocks)


def _covariances(scores: Views, weights: np.ndarray) -> Iterator[PairCovariance]:
    """Second moments of the scores of each pair of views, about zero."""
    for pair in combinations(scores.names, 2):
        both = scores.select(pair).seen.all(axis=1)
        w = weights[both]
        if w.sum() > 1:
            U, V = (scores.select(pair)[both][name] for name in pair)
            between, *within = ((A.T * w) @ B / w.sum() for A, B in ((U, V), (U, U), (V, V)))
            yield PairCovariance(pair, between, tuple(within), float(w.sum()))
