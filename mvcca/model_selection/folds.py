"""Split objects into training and held-out parts, the same for every method."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
    check_cv,
)
from sklearn.utils import check_random_state

from mvcca.blocks.checks import check_same_rows, row_labels
from mvcca.views import Labels, Views


class Fold(NamedTuple):
    """Positions of the training and the held-out objects."""

    number: int
    train: np.ndarray
    test: np.ndarray


def make_folds(
    views: Views,
    labels: Labels | None,
    cv: Any,
    random_state: Any,
    groups: np.ndarray | None = None,
    *,
    are_given: bool = True,
) -> list[Fold]:
    """Split objects; all rows of an object, and all objects of a group, are in the same part."""
    # `cv` is a number of shuffled folds, stratified if every object has exactly one label; the
    # fraction of a single held-out part; a scikit-learn splitter; or positions of training and
    # held-out objects. Groups that are found, not given by the user, may be divided by splits that
    # the user gives, and by folds if the largest group is larger than a held-out part.
    rows, splits = np.zeros(len(views)), cv
    sizes = np.zeros(1) if groups is None else np.bincount(groups)
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        if not 2 <= cv <= len(views):
            raise ValueError(f"Expected cv to be from 2 to {len(views)} folds, got {cv}.")
        codes = strata(views, labels, int(cv))
        if _stay_together(sizes, len(views) / cv, are_given):
            assert groups is not None
            splits = _grouped(groups, codes, [1 / cv] * int(cv), random_state)
        else:
            splitter = StratifiedKFold(int(cv), shuffle=True, random_state=random_state)
            splits = splitter.split(rows, codes)
    elif isinstance(cv, float | np.floating):
        held_out = share_of(float(cv), len(views)) if 0 < cv < 1 else Fraction(0)
        if not 0 < ceil(held_out) < len(views):
            raise ValueError(
                f"Expected a held-out fraction cv between 0 and 1, got {cv}: it leaves none of "
                f"{len(views)} objects to learn from, or to hold out."
            )
        if _stay_together(sizes, min(held_out, len(views) - held_out), are_given):
            assert groups is not None
            shares = [float(cv), 1 - float(cv)]
            splits = _grouped(groups, strata(views, labels, 2), shares, random_state)[:1]
        else:
            splits = _hold_out(views, labels, ceil(held_out), random_state)
    elif hasattr(cv, "split") and not isinstance(cv, str):
        splits = _split_by(cv, rows, strata(views, labels, 2), groups if are_given else None)
    elif isinstance(cv, str) or not isinstance(cv, Iterable):
        raise ValueError(
            "Expected cv to be a number of folds, a held-out fraction, a scikit-learn splitter or "
            f"(train, test) positions, got {cv!r}."
        )
    folds = [_checked(number, pair, len(views)) for number, pair in enumerate(splits)]
    if not folds:
        raise ValueError("Expected cv to give at least one split, got none.")
    if groups is not None and are_given:
        for fold in folds:
            if np.isin(groups[fold.test], groups[fold.train]).any():
                raise ValueError(
                    f"Split {fold.number} divides a group: some of its objects are in the training "
                    "part, others are held out. Pass a number of folds or a fraction, a splitter "
                    "that keeps groups together, such as GroupKFold, or no groups."
                )
    return folds


def splits_of(
    n_rows: int, n_folds: int, groups: Any, random_state: Any
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows to fit to and to leave out, fold by fold; at most as many folds as rows or groups."""
    rows = np.arange(n_rows)
    if groups is None:
        n_folds = _number_of_parts(n_folds, n_rows, "rows")
        return list(KFold(n_folds, shuffle=True, random_state=random_state).split(rows))
    n_folds = _number_of_parts(n_folds, len(np.unique(groups)), "groups")
    return list(GroupKFold(n_folds).split(rows, groups=groups))


def _number_of_parts(n_folds: int, n: int, what: str) -> int:
    if min(n_folds, n) < 2:
        raise ValueError(f"Expected two folds or more of two {what} or more, got {n_folds} of {n}.")
    return min(n_folds, n)


def splits_by_object(
    positions: np.ndarray,
    cv: Any,
    random_state: Any,
    *,
    groups: np.ndarray | None = None,
    halves: bool = False,
    codes: np.ndarray | None = None,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Splits of rows that keep those with the same position together.

    A number makes as many shuffled folds, at most one per object, folds of whole groups, or random
    halves, which keep the shares of classes if their `codes` are given. A splitter divides the
    positions that occur; given splits hold positions.
    """
    objects = np.unique(positions)
    if isinstance(cv, int):
        if groups is not None:
            yield from splits_of(len(groups), cv, groups, None)
            return
        seed = check_random_state(random_state)
        kind = ShuffleSplit if codes is None else StratifiedShuffleSplit
        if halves:
            if len(positions) < 4:
                raise ValueError(f"Halves need 4 rows or more, got {len(positions)}.")
            cv = kind(cv, test_size=0.5, random_state=seed)
        else:
            n_folds = _number_of_parts(cv, len(objects), "objects")
            cv = KFold(n_folds, shuffle=True, random_state=seed)
    for parts in check_cv(cv).split(objects, codes):
        own = [objects[part] for part in parts] if hasattr(cv, "split") else parts
        train, test = (np.flatnonzero(np.isin(positions, part)) for part in own)
        yield train, test


def splits_by(cv: Any, X: Any, y: Any, **params: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """Splits of a search as in scikit-learn's searches; groups must be those of the rows."""
    known = X.ids if isinstance(X, Views) else row_labels(X)
    for name, given in params.items():
        check_same_rows(f"the {name}", row_labels(given), "the views", known)
    return list(check_cv(cv, y).split(X, y, **params))


def number_of_folds(most: int, n_objects: int) -> int:
    """Number of folds to choose settings by, which hold two objects each where that can be."""
    # Any model finds the only object of a fold, which has no correlation either.
    if n_objects < 4:
        raise ValueError(
            "Folds that choose settings hold two objects or more: expected at least 4 objects, "
            f'got {n_objects}. Give values in place of "cv".'
        )
    return min(most, n_objects // 2)


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


def share_of(share: float, n: int) -> Fraction:
    """Exactly this share of n, which a product of floats may miss: 0.07 of 100 is 7.

    A float stands for the nearest fraction with a denominator up to 10⁹, also 1 - 0.8 for 1/5.
    """
    return n * Fraction(share).limit_denominator(10**9)


def _hold_out(views: Views, labels: Labels | None, n_held_out: int, seed: Any) -> Any:
    """One split, with fewer strata if there are more than either part holds objects."""
    rows = np.zeros(len(views))
    splitter = StratifiedShuffleSplit(1, test_size=n_held_out, random_state=seed)
    codes = strata(views, labels, 2)
    if codes.max() >= min(n_held_out, len(views) - n_held_out):
        codes = np.zeros(len(views), dtype=int)
    return splitter.split(rows, codes)


def _stay_together(sizes: np.ndarray, held_out: float | Fraction, are_given: bool) -> bool:
    """Whether folds keep groups of these sizes together."""
    return bool(sizes.max() > 1 and (are_given or sizes.max() <= held_out))


def _grouped(
    groups: np.ndarray, codes: np.ndarray, shares: Sequence[float], seed: Any
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Splits into parts that hold about these shares of the objects of each stratum.

    Groups are assigned in order of their size, at random among equal ones, each to the part that
    is then the least filled: in its strata first, and then as a whole.
    """
    n_groups, n_parts = int(groups.max()) + 1, len(shares)
    if n_groups < n_parts:
        raise ValueError(
            f"Expected at least {n_parts} groups for {n_parts} parts, got {n_groups}: objects of "
            "a group are in the same part."
        )
    order = check_random_state(seed).permutation(n_groups)
    sizes = np.bincount(groups)
    order = order[np.argsort(-sizes[order], kind="stable")]
    by_group = np.split(np.argsort(groups, kind="stable"), np.cumsum(sizes)[:-1])
    room = np.outer(shares, np.bincount(codes))  # of each part for each stratum
    filled, part_of = np.zeros(room.shape), np.empty(n_groups, dtype=int)
    for n_done, group in enumerate(order):
        kinds, counts = np.unique(codes[by_group[group]], return_counts=True)
        in_strata = ((filled[:, kinds] + counts) / room[:, kinds] * counts).sum(axis=1)
        in_all = (filled.sum(axis=1) + sizes[group]) / room.sum(axis=1)
        is_empty = filled.sum(axis=1) == 0
        if n_groups - n_done == is_empty.sum():  # no part stays empty
            in_strata = np.where(is_empty, in_strata, np.inf)
        part_of[group] = np.lexsort((in_all, np.round(in_strata, 9)))[0]
        filled[part_of[group], kinds] += counts
    parts = part_of[groups]
    everything = np.arange(len(groups))
    return [(everything[parts != part], everything[parts == part]) for part in range(n_parts)]


def _split_by(
    splitter: Any, rows: np.ndarray, codes: np.ndarray, groups: np.ndarray | None
) -> Iterator[Any]:
    try:
        with warnings.catch_warnings():  # a group that it divides is an error
            warnings.filterwarnings("ignore", "The groups parameter is ignored")
            yield from splitter.split(rows, codes, groups)
    except ValueError as error:  # it needs groups, say
        raise ValueError(
            f"cv={splitter!r} cannot split the objects: {error} Pass groups if it needs them, or "
            "the positions that it gives: cv=list(splitter.split(...))."
        ) from error


def _checked(number: int, pair: Any, n_objects: int) -> Fold:
    train, test = (np.arange(n_objects)[np.asarray(part)] for part in pair)
    if not len(train) or not len(test):
        raise ValueError(f"Split {number} has {len(train)} training and {len(test)} held-out rows.")
    if len(np.intersect1d(train, test)):
        raise ValueError(f"Split {number} has objects in both the training and the held-out part.")
    return Fold(number, train, test)
