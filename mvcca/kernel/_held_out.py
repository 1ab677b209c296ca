"""Correlations of kernel variates on held-out rows.

Kernel methods have about as many degrees of freedom as rows, so that training correlations say
nothing of new rows, and leverages are too uneven to correct them by a formula. A few objects are
held out instead: their moments are subtracted from those of all objects, the problem is solved for
the rest, and its scores of the held-out objects are correlated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from math import ceil

import numpy as np

from mvcca.linalg import DigitsLost
from mvcca.problem import Expected, Solution
from mvcca.problem._expected import expected_moments
from mvcca.statistics import Moments, PairCovariance, PairMoments
from mvcca.statistics._moments import _moments_of_block
from mvcca.views import Views

_FOLDS = 5  # at most, each of which is a fifth of the objects at most
_ENOUGH = 250  # held-out objects, above which there is no further fold
_MOST = 1000  # held-out objects
_RUN = 10  # neighbours, which are often of one thing, are held out together


def fold_of(positions: np.ndarray, n_objects: int) -> np.ndarray:
    """Fold in which each object is held out; -1 for those that are always trained on.

    Objects of a fold are spread evenly. Objects without a fold have none if objects are added, so
    that batches can be forgotten.
    """
    run = min(_RUN, max(1, n_objects // _FOLDS**2))
    period = _FOLDS
    while n_objects > period * _MOST:
        period *= 2
    n_folds = min(_FOLDS, ceil(_FOLDS * _ENOUGH / n_objects)) if n_objects else 0
    fold = positions // run % period
    return np.where(fold < n_folds, fold, -1)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Moments of the features of all objects, and the features of those that are held out once.

    Attributes
    ----------
    total : Moments or PairMoments
        Of all objects.
    n_objects : int
        Their number.
    positions : ndarray of int
        Which of them are held out.
    features : Views
        Features of these.
    weights : ndarray
        Their weights.
    """

    total: Moments | PairMoments
    n_objects: int
    positions: np.ndarray
    features: Views
    weights: np.ndarray

    def __add__(self, other: HeldOut) -> HeldOut:
        n_objects = self.n_objects + other.n_objects
        positions = np.concatenate([self.positions, self.n_objects + other.positions])
        features = Views.concatenate([self.features, other.features])
        kept = fold_of(positions, n_objects) >= 0
        return HeldOut(
            self.total + other.total,
            n_objects,
            positions[kept],
            features[kept],
            np.concatenate([self.weights, other.weights])[kept],
        )

    def expected(
        self, solve: Callable[[Moments | PairMoments], Solution], n_components: int
    ) -> Expected | None:
        """Correlations and deviations of the scores of held-out objects; None if there are too few.

        Scores are centred by the training means of their fold, and correlated over all folds.
        """
        folds = fold_of(self.positions, self.n_objects)
        scores, weights = [], []
        for fold in np.unique(folds):
            held, w = self.features[folds == fold], self.weights[folds == fold]
            try:
                solution = solve(self.total - _moments(held, w))
            except (DigitsLost, ValueError):  # what is left has nothing in common
                continue
            scores.append(_scores(solution, held, n_components))
            weights.append(w)
        if not scores:
            return None
        pairs = _covariances(Views.concatenate(scores), np.concatenate(weights))
        identity = dict.fromkeys(self.features.names, np.eye(n_components))
        return expected_moments(identity, pairs, dict.fromkeys(identity, 0.0))


def _moments(features: Views, weights: np.ndarray) -> Moments | PairMoments:
    moments_of = partial(_moments_of_block, dtype=np.float64)  # no pass of the fit
    if features.is_paired:
        return moments_of(features, weights)
    return PairMoments.of(features, weights, moments_of)


def _scores(solution: Solution, features: Views, n_components: int) -> Views:
    """Scores, with zeros for components that the fold did not have."""
    blocks = {}
    for name, block in features.items():
        blocks[name] = np.zeros((len(block), n_components))
        weights = solution.weights[name]
        blocks[name][:, : weights.shape[1]] = (block - solution.means[name]) @ weights
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
