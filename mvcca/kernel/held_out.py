"""Correlations of kernel variates on held-out objects.

Kernel methods have about as many degrees of freedom as rows. Training correlations then say nothing
of new rows, and leverages are too uneven to correct them by a formula. Instead, some objects are
held out: their moments are subtracted from those of all objects, the problem is solved for the
rest, and its scores of the held-out objects are correlated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from math import ceil

import numpy as np

from mvcca.blocks.row_hashes import scrambled
from mvcca.linear.features import FeatureMap, LandmarkFeatures
from mvcca.problem import Maps, Problem
from mvcca.problem.expected import Expected, expected_moments
from mvcca.statistics import Moments, PairMoments
from mvcca.statistics.digits_lost import DigitsLost
from mvcca.statistics.moments import moments_of_block
from mvcca.statistics.pair_covariance import PairCovariance
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
class HeldOutFeatures:
    """Features of the objects that are held out once."""

    features: Views
    keys: np.ndarray  # (n_objects,)
    weights: np.ndarray  # (n_objects,)
    are_landmarks: np.ndarray  # (n_objects,), of some view; new objects are none

    @classmethod
    def of(
        cls,
        maps: Mapping[str, FeatureMap],
        n_objects: float,
        is_exact: bool,
        views: Views,
        weights: np.ndarray | None,
    ) -> HeldOutFeatures:
        """Choose among the objects of a block of rows; `n_objects` counts those of all blocks.

        If a kernel `is_exact`, all objects are landmarks, and none is told from the others.
        The choice depends on the numbers of an object only: it is the same in any order, for dense
        and sparse rows, and equal objects are held out together.
        """
        keys = keys_of(views)
        kept = np.flatnonzero(fold_of(keys, n_objects) >= 0)
        features = features_of(maps, views[kept].promoted(_FLOAT64))
        are_landmarks = np.zeros(len(kept), dtype=bool)
        for name, block in features.items() if not is_exact else ():
            if isinstance(own := maps[name], LandmarkFeatures):
                are_landmarks[features.objects(name)] |= own.are_landmarks(block)
        weights = np.ones(len(kept)) if weights is None else weights[kept]
        return cls(features, keys[kept], weights, are_landmarks)

    def __add__(self, other: HeldOutFeatures) -> HeldOutFeatures:
        return HeldOutFeatures(
            Views.concatenate([self.features, other.features]),
            np.concatenate([self.keys, other.keys]),
            np.concatenate([self.weights, other.weights]),
            np.concatenate([self.are_landmarks, other.are_landmarks]),
        )

    def __getitem__(self, rows: np.ndarray) -> HeldOutFeatures:
        own = (self.features, self.keys, self.weights, self.are_landmarks)
        return HeldOutFeatures(*(array[rows] for array in own))


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Moments of the features of all objects, and the objects among them that are held out once."""

    total: Moments | PairMoments
    n_objects: float  # or the sum of their weights if it is larger
    sample: HeldOutFeatures

    def __add__(self, other: HeldOut) -> HeldOut:
        n_objects = self.n_objects + other.n_objects
        sample = self.sample + other.sample
        kept = fold_of(sample.keys, n_objects) >= 0
        return HeldOut(self.total + other.total, n_objects, sample[kept])

    def objects_by_view(self) -> dict[str, float]:
        """Number of objects (sum of weights) seen in each view."""
        return self.total.objects_by_view()

    def expected(
        self, problem: Callable[[Moments | PairMoments], Problem], n_components: int
    ) -> Expected | None:
        """Correlations and deviations of the scores of held-out objects; None if there are too few.

        Scores are centred by the training means of their fold, and correlated over all folds.
        """
        sample = self.sample
        folds = fold_of(sample.keys, self.n_objects)
        if np.count_nonzero(~sample.are_landmarks) >= _LEAST:
            folds[sample.are_landmarks] = -1
        scores, weights = [], []
        for fold in np.unique(folds[folds >= 0]):
            features, own = sample.features[folds == fold], sample.weights[folds == fold]
            of_block = partial(moments_of_block, dtype=_FLOAT64)  # not a pass of the fit
            rest: Moments | PairMoments
            if isinstance(self.total, PairMoments):
                rest = self.total - PairMoments.of(features, own, of_block)
            else:
                rest = self.total - of_block(features, own)
            try:
                maps = problem(rest).solve(n_components, expected=False)
            except (DigitsLost, ValueError):  # what is left has nothing in common
                continue
            found = {name: maps.project(name, block) for name, block in features.items()}
            for name, U in found.items():  # zeros for components that the fold did not have
                found[name] = np.pad(U, ((0, 0), (0, n_components - U.shape[1])))
            scores.append(features.replace(found))
            weights.append(own)
        return expected_of_scores(scores, weights)


def expected_of_scores(scores: Sequence[Views], weights: Sequence[np.ndarray]) -> Expected | None:
    """Moments of the scores that folds gave to the objects that they held out; None of no folds."""
    if not scores:
        return None
    views = Views.concatenate(scores)
    pairs = _covariances(views, np.concatenate(weights))
    n_components = next(iter(views.widths.values()))
    return expected_moments(dict.fromkeys(views.names, np.eye(n_components)), pairs)


def with_expected(maps: Maps, expected: Expected | None) -> Maps:
    """Maps with what held-out objects tell of their scores, if they tell something."""
    if expected is None or maps.expected is None:
        return maps
    # No objects of a rare view may be held out.
    deviations = maps.expected.deviations | expected.deviations
    return replace(maps, expected=replace(expected, deviations=deviations))


def features_of(maps: Mapping[str, FeatureMap], views: Views) -> Views:
    """Features of the rows of all views."""
    return views.replace(
        {
            name: maps[name](block) if block.shape[0] else np.empty((0, maps[name].n_features))
            for name, block in views.items()
        }
    )


def keys_of(views: Views) -> np.ndarray:
    """A pseudo-random number in [0, 1) of each object, from the numbers of its rows."""
    bits = np.zeros(len(views), dtype=np.uint64)
    for name, block in views.blocks.items():
        bits[views.objects(name)] += scrambled(block.row_hashes()[:, 0])
    return (scrambled(bits) >> np.uint64(11)) / 2.0**53


def _covariances(scores: Views, weights: np.ndarray) -> Iterator[PairCovariance]:
    """Second moments of the scores of each pair of views, about zero."""
    for pair in combinations(scores.names, 2):
        both = scores.select(pair).seen.all(axis=1)
        w = weights[both]
        if w.sum() > 1:
            U, V = (scores.select(pair)[both][name] for name in pair)
            between, *within = ((A.T * w) @ B / w.sum() for A, B in ((U, V), (U, U), (V, V)))
            yield PairCovariance(pair, between, tuple(within), float(w.sum()))
