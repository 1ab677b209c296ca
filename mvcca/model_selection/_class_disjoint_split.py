"""Splits of rows for validation that scikit-learn does not have."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import BaseShuffleSplit
from sklearn.utils import check_random_state

from mvcca.model_selection.folds import share_of
from mvcca.views import Labels
from mvcca.views.typing import LabelsLike

__all__ = ["ClassDisjointSplit"]


class ClassDisjointSplit(BaseShuffleSplit):
    """Splitter for zero-shot retrieval: the classes of test objects do not occur in training.

    Every split draws test classes at random. An object is a test object if all its labels are test
    classes, and a training object if none is; objects with labels of both kinds, or without
    labels, are in neither set. For classes that are each tested exactly once, use scikit-learn's
    `GroupKFold` with the classes as groups.

    Parameters
    ----------
    n_splits : int, default=5
        Number of splits.
    test_size : float or int, default=0.25
        Share or number of the classes that are tested. Published zero-shot splits hold out 50 of
        200 and 20 of 102 classes, and as many for validation [1]_; split the training classes again
        for validation.
    random_state : int, RandomState instance or None, default=None
        Draws the classes.

    References
    ----------
    .. [1] Dorfer et al., "End-to-End Cross-Modality Retrieval with CCA Projections and Pairwise
       Ranking Loss", 2018, section 5.

    Examples
    --------
    >>> from mvcca import CCA, retrieval_scorer
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.model_selection import ClassDisjointSplit
    >>> from sklearn.model_selection import cross_val_score
    >>> digits = load_digits_views()
    >>> scores = cross_val_score(
    ...     CCA(9, reg=0.1),
    ...     digits.views,
    ...     digits.labels,
    ...     cv=ClassDisjointSplit(3, test_size=3, random_state=0),
    ...     scoring=retrieval_scorer("p@50:class_means"),
    ... )
    >>> bool(scores.min() > 1 / 3)  # better than chance for three classes that were never seen
    True
    """

    def __init__(
        self, n_splits: int = 5, *, test_size: float | int = 0.25, random_state: Any = None
    ) -> None:
        super().__init__(n_splits, test_size=test_size, random_state=random_state)

    def split(
        self, X: Any, y: LabelsLike | None = None, groups: Any = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Positions of training and test objects, for every split.

        Parameters
        ----------
        X : Views or array-like
            Objects; only their number counts.
        y : class vector, indicator matrix, list of label sets or Labels
            Classes of the objects.
        groups : ignored
            For scikit-learn's protocol.

        Yields
        ------
        train, test : ndarray of int
            Positions of the objects, ascending.

        Raises
        ------
        ValueError
            If there are no labels, fewer than two classes, or a split without training or test
            objects.
        """
        if y is None:
            raise ValueError("ClassDisjointSplit needs labels: the classes of the objects as y.")
        return super().split(X, y, groups)

    def _iter_indices(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        labels = Labels.of(y)
        if not labels.are_sets:
            raise ValueError(
                "ClassDisjointSplit needs classes or label sets, got real-valued vectors."
            )
        sets, sizes = labels.matrix, labels.set_sizes
        classes = np.unique(sets.indices)
        n_test = self._n_test_classes(len(classes))
        rng = check_random_state(self.random_state)
        for _ in range(self.n_splits):
            is_tested = np.zeros(sets.shape[1], dtype=int)
            is_tested[rng.permutation(classes)[:n_test]] = 1
            n_tested = sets @ is_tested
            train = np.flatnonzero((n_tested == 0) & (sizes > 0))
            test = np.flatnonzero((n_tested == sizes) & (sizes > 0))
            if not (len(train) and len(test)):
                raise ValueError(
                    f"A split into {n_test} test and {len(classes) - n_test} training classes has "
                    f"{len(train)} training and {len(test)} test objects: the others have labels "
                    "of both kinds. Change test_size or random_state."
                )
            yield train, test

    def _n_test_classes(self, n_classes: int) -> int:
        size = self.test_size
        if isinstance(size, Integral) and not isinstance(size, bool):
            n_test = int(size)
        elif isinstance(size, float) and 0 < size < 1:
            n_test = ceil(share_of(size, n_classes))
        else:
            n_test = 0
        if not 1 <= n_test < n_classes:
            raise ValueError(
                "Expected test_size to be a fraction below 1 or an integer from 1 to "
                f"{n_classes - 1}, one less than the number of classes; got {size!r}."
            )
        return n_test
