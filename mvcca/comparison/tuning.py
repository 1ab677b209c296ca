"""Settings of a method for every split of a comparison, chosen without its held-out objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mvcca.comparison.candidates import Candidate, Settings
from mvcca.comparison.data import Data
from mvcca.model_selection import Choice, InnerFolds, choices
from mvcca.model_selection.folds import Fold, number_of_folds
from mvcca.views import Views

INNER_FOLDS = 5  # where the splits of the comparison do not serve
_MOST_FOLDS = 10  # of a comparison; pairs of more cost more than inner folds


def is_nested(data: Data, folds: Sequence[Fold], candidate: Candidate) -> bool:
    """Whether the folds of the comparison are each other's inner folds.

    Each object is then held out once; and a model without two folds serves both of them. Features
    of texts are made of the training texts of every fold, so that models cannot be shared.
    """
    held_out = np.concatenate([fold.test for fold in folds])
    makes_features = candidate.method is not None and bool(data.texts)
    is_partition = len(held_out) == len(data.views) == len(np.unique(held_out))
    return is_partition and not makes_features and 3 <= len(folds) <= _MOST_FOLDS


def n_inner_folds(data: Data, folds: Sequence[Fold], candidate: Candidate) -> int:
    """Number of folds that choose the settings of one split."""
    return len(folds) - 1 if is_nested(data, folds, candidate) else INNER_FOLDS


def choices_of_folds(
    candidate: Candidate, data: Data, folds: Sequence[Fold], settings: Settings
) -> dict[int, Choice]:
    """Settings for every fold, by its number, where one search serves all folds."""
    codes = np.zeros(len(data.views), dtype=int)
    for fold in folds:
        codes[fold.test] = fold.number
    everything = np.arange(len(data.views))
    nested = InnerFolds(codes, nested=True)
    found = _choices(candidate, data, data.views, everything, nested, settings)
    return {fold.number: found[fold.number,] for fold in folds}


def choice_within(
    candidate: Candidate, data: Data, objects: np.ndarray, settings: Settings
) -> Choice:
    """Settings chosen by inner folds of some objects."""
    codes = np.zeros(len(objects), dtype=int)
    n_folds = number_of_folds(INNER_FOLDS, len(objects))
    for fold in data.folds(n_folds, settings.random_state, objects):
        codes[fold.test] = fold.number
    views = data.views[objects]
    groups = None if data.groups is None else data.groups.codes[objects]
    folds = InnerFolds(codes).of_ranked(views, groups)
    return _choices(candidate, data, views, objects, folds, settings)[()]


def _choices(
    candidate: Candidate,
    data: Data,
    views: Views,
    objects: np.ndarray,
    folds: InnerFolds,
    settings: Settings,
) -> dict[Any, Choice]:
    goal = settings.goal(data)
    assert goal is not None
    y = candidate.labels_of(data, objects)
    return choices(candidate.estimator, views, y, folds, goal, data.relevant_labels)
