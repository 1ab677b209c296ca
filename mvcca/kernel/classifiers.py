"""Class probabilities of the rows of one view, by logistic regression or by given classifiers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import special
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from mvcca.blocks import as_block
from mvcca.kernel.label_space import AffineModel, TrainingRows
from mvcca.machine.warnings import warn

# Largest entry of the gradient of a logistic regression where features have variance 1 on average.
# With 1e-4, scikit-learn's default, steps may end far from the optimum, where rounding decides.
_LEAST_GRADIENT = 1e-7
_MOST_STEPS = 100  # of Newton's method, which takes some tens


@dataclass(frozen=True, eq=False)
class Targets:
    """Labels of the rows of a view, as classifiers learn them.

    Attributes
    ----------
    indicators : ndarray of bool, shape (n_rows, n_labels)
        Which labels each row has.
    are_classes : bool
        Whether each row, also of the other views, has exactly one label.
    """

    indicators: np.ndarray
    are_classes: bool

    @property
    def n_labels(self) -> int:
        """Number of labels of all views."""
        return self.indicators.shape[1]

    def questions(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Labels to tell apart, by position, and what a classifier is to predict of each row.

        There is one question about classes, and one about each label of sets. Labels that all rows
        have, or none, are not asked for.
        """
        shares = self.indicators.mean(axis=0)
        if self.are_classes:
            present = np.flatnonzero(shares)
            if len(present) > 1:
                yield present, np.searchsorted(present, self.indicators.argmax(axis=1))
            return
        for label in np.flatnonzero((shares > 0) & (shares < 1)):
            yield np.array([label]), self.indicators[:, label].astype(int)

    def certain(self) -> np.ndarray:
        """1 for labels that all rows have, else 0."""
        return self.indicators.all(axis=0).astype(float)


@dataclass(frozen=True, eq=False)
class LogisticModel(AffineModel):
    """Probabilities by logistic regression on scaled columns, or on kernel features of these."""

    are_classes: bool

    @classmethod
    def fit(cls, rows: TrainingRows, targets: Targets) -> Self:
        """Learn from rows of a view."""
        size = np.sqrt(rows.variance * max(rows.reg, 1))  # the largest ridge does not overflow
        features = as_block(rows.centred).promoted(np.dtype(np.float64)).matrix / size
        model = LogisticRegression(
            C=1 / (min(rows.reg, 1) * features.shape[0]),
            solver="newton-cg",
            tol=_LEAST_GRADIENT,
            max_iter=_MOST_STEPS,
        )
        weights = np.zeros((len(rows.origin), targets.n_labels))
        sure = 0.0 if targets.are_classes else np.inf
        intercepts = np.where(targets.certain() > 0, sure, -np.inf)
        stopped = False
        for labels, y in targets.questions():
            with warnings.catch_warnings(action="ignore"):  # of steps that rounding ends
                model.fit(features, y)
            stopped |= bool(model.n_iter_.max() >= _MOST_STEPS)
            # Of two classes there is one line of coefficients, that of the second.
            only = slice(-1, None) if len(model.coef_) == 1 else slice(None)
            weights[:, labels[only]] = model.coef_.T / size
            intercepts[labels] = 0
            intercepts[labels[only]] = model.intercept_
        if stopped:
            warn(
                f"Logistic regression has not converged after {_MOST_STEPS} steps. Raise reg.",
                ConvergenceWarning,
            )
        intercepts -= rows.origin @ weights
        return cls(rows.scales, rows.features, weights, intercepts, targets.are_classes)

    def _of_some(self, X: Any) -> np.ndarray:
        evidence = super()._of_some(X)
        return special.softmax(evidence, axis=1) if self.are_classes else special.expit(evidence)


@dataclass(frozen=True, eq=False)
class GivenClassifiers:
    """Probabilities by classifiers of scikit-learn: one of classes, or one of each label."""

    fitted: tuple[Any, ...]
    labels: tuple[np.ndarray, ...]  # which each tells apart
    certain: np.ndarray  # (n_labels,)

    @classmethod
    def fit(cls, X: Any, targets: Targets, classifier: Any) -> Self:
        """Fit copies of a classifier to the rows of a view as they are."""
        asked = [*targets.questions()]
        fitted = tuple(clone(classifier).fit(X, y) for _, y in asked)
        return cls(fitted, tuple(labels for labels, _ in asked), targets.certain())

    def __call__(self, X: Any) -> np.ndarray:
        """Probabilities of the labels of every row, (n_rows, n_labels)."""
        found = np.tile(self.certain, (X.shape[0], 1))
        for model, labels in zip(self.fitted, self.labels, strict=True):
            found[:, labels] = model.predict_proba(X)[:, -len(labels) :]
        return found
