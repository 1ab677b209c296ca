"""Split objects into training and held-out parts, the same for every method."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit

from mvcca.comparison.labels import Labels
from mvcca.views import Views


class Fold(NamedTuple):
    """Positions of the training and the held-out objects."""

    number: int
    train: np.ndarray
    test: np.ndarray


def make_folds(views: Views, labels: Labels | None, cv: Any, random_state: Any) -> list[Fold]:
    """Split objects, so that all rows of an object are in the same part.

    Parameters
    ----------
    views : Views
    labels : Labels or None
        Classes, if every object has exactly one label, are distributed evenly over the folds.
    cv : int, float, splitter or iterable of (train, test)
        Number of shuffled stratified folds; fraction of a single held-out part; a scikit-learn
        splitter; or positions of training and held-out objects.
    random_state : int, RandomState or None
        Seed of the first two.

    Returns
    -------
    list of Fold

    Raises
    ------
    ValueError
        If `cv` is none of these, or the objects cannot be split like this.
    """
    rows, splits = np.zeros(len(views)), cv
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        if not 2 <= cv <= len(views):
            raise ValueError(f"Expected cv to be from 2 to {len(views)} folds, got {cv}.")
        splitter = StratifiedKFold(int(cv), shuffle=True, random_state=random_state)
        splits = splitter.split(rows, strata(views, labels, int(cv)))
    elif isinstance(cv, float | np.floating):
        if not 0 < cv < 1:
            raise ValueError(f"Expected a held-out fraction cv between 0 and 1, got {cv}.")
        splits = _hold_out(views, labels, float(cv), random_state)
    elif hasattr(cv, "split") and not isinstance(cv, str):
        splits = _split_by(cv, rows, strata(views, labels, 2))
    elif isinstance(cv, str) or not isinstance(cv, Iterable):
        raise ValueError(
            "Expected cv to be a number of folds, a held-out fraction, a scikit-learn splitter or "
            f"(train, test) positions, got {cv!r}."
        )
    folds = [_checked(number, pair, len(views)) for number, pair in enumerate(splits)]
    if not folds:
        raise ValueError("Expected cv to give at least one split, got none.")
    return folds


def strata(views: Views, labels: Labels | None, least: int) -> np.ndarray:
    """Stratum of each object: its pattern of views, and its class if every object has one.

    Classes with fewer than `least` objects of a pattern are joined; what is still rarer belongs to
    the largest stratum.
    """
    names = patterns = views.pattern.astype(str).astype(object)
    if labels is not None and labels.are_classes:
        classes = patterns + "|" + np.asarray(labels.texts(), dtype=object)
        _, codes, counts = _unique(classes)
        names = np.where(counts[codes] < least, patterns, classes)
    _, codes, counts = _unique(names)
    return np.where(counts[codes] < least, counts.argmax(), codes)


def _unique(names: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.unique(names.astype(str), return_inverse=True, return_counts=True)


def _hold_out(views: Views, labels: Labels | None, share: float, seed: Any) -> Any:
    """One split, with fewer strata if there are more than either part holds objects."""
    rows = np.zeros(len(views))
    splitter = StratifiedShuffleSplit(1, test_size=share, random_state=seed)
    smaller = min(share, 1 - share) * len(views)
    codes = strata(views, labels, 2)
    if codes.max() >= int(smaller):
        codes = np.zeros(len(views), dtype=int)
    return splitter.split(rows, codes)


def _split_by(splitter: Any, rows: np.ndarray, codes: np.ndarray) -> Iterator[Any]:
    try:
        yield from splitter.split(rows, codes)
    except ValueError as error:  # it needs groups, say
        raise ValueError(
            f"cv={splitter!r} cannot split the objects: {error} Pass the positions that it gives: "
            "cv=list(splitter.split(...))."
        ) from error


def _checked(number: int, pair: Any, n_objects: int) -> Fold:
    train, test = (np.arange(n_objects)[np.asarray(part)] for part in pair)
    if not len(train) or not len(test):
        raise ValueError(f"Split {number} has {len(train)} training and {len(test)} held-out rows.")
    if len(np.intersect1d(train, test)):
        raise ValueError(f"Split {number} has objects in both the training and the held-out part.")
    return Fold(number, train, test)
