"""What estimators that compare rows by labels share: by distinct label vectors, or by features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import DTypeLike
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from mvcca._backend import precision
from mvcca.labels import LabelTable, _common_columns
from mvcca.linalg import Rotation
from mvcca.linear._estimator import LinearEstimator
from mvcca.linear._label_checks import check_bandwidth, check_label_vectors
from mvcca.linear._rotations import in_row_space
from mvcca.similarity import (
    FourierLabelFeatures,
    LabelFeatures,
    LabelGram,
    LandmarkLabelFeatures,
    Similarity,
)
from mvcca.statistics import LabelFeatureSums, LabelSums
from mvcca.statistics._moments import column_slices
from mvcca.validation import used_lines
from mvcca.views import Views, take_rows

_SAMPLED_ROWS = 2000  # of each view, on which label features are held against the exact covariance
_SEED_BOUND = 2**31 - 1


@dataclass(frozen=True, eq=False)
class LabelledViews:
    """Views, their distinct label vectors, a line of these per row, and weights of the objects."""

    views: Views
    table: LabelTable
    codes: Mapping[str, np.ndarray]
    weights: np.ndarray | None

    def in_row_space(self, reg: Mapping[str, float]) -> tuple[Self, dict[str, Rotation]]:
        """The same with wide views in a basis of their rows; and the bases."""
        views, rotations = in_row_space(self.views, self.weights, reg)
        return replace(self, views=views), rotations

    def counts(self) -> LabelSums:
        """Label sums of no features at all."""
        counts = [
            np.bincount(code, weights=self.weights_of(name), minlength=len(self.table))
            for name, code in self.codes.items()
        ]
        nothing = np.empty((len(self.table), 0))
        widths = dict.fromkeys(self.codes, 0)
        dtype = np.result_type(*(precision(block) for _, block in self.views.items()))
        return LabelSums(self.table, widths, np.column_stack(counts), nothing, dtype)

    def object_weights(self) -> np.ndarray:
        return np.ones(len(self.views)) if self.weights is None else self.weights

    def weights_of(self, name: str) -> np.ndarray:
        return self.object_weights()[self.views.objects(name)]


@dataclass(frozen=True, eq=False)
class DrawnLabelFeatures:
    """A map of label vectors to features, the columns it takes, and how far off it is."""

    features: LabelFeatures
    columns: LabelTable  # of no lines
    error: float

    def sums(self, rows: LabelledViews, dtype: DTypeLike = np.float64) -> LabelFeatureSums:
        """Sums of label features over rows, with products in `dtype`."""
        table = in_columns(rows.table, self.columns)
        return LabelFeatureSums.of(
            rows.views, table, rows.codes, self.features, rows.weights, dtype
        )

    def row_weights(self, sums: LabelFeatureSums, table: LabelTable) -> np.ndarray:
        return sums.row_weights(in_columns(table, self.columns), self.features)


class LabelWeightedEstimator(LinearEstimator):
    """An estimator whose covariances weigh pairs of rows by the similarity of their labels."""

    _min_views = 1
    _supervised = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearEstimator._parameter_constraints,
        "label_similarity": [StrOptions({"sqexp", "exp", "cosine", "equal"}), callable],
        "sigma": [Interval(Real, 0, None, closed="neither")],
        "label_features": [StrOptions({"fourier", "nystroem"}), None],
        "n_label_features": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    label_similarity: Similarity
    sigma: float
    label_features: str | None
    n_label_features: int
    random_state: Any

    def _check_labels(self, sums: LabelSums) -> None:
        check_label_vectors(sums)
        check_bandwidth(sums.table, self.label_similarity, self.sigma, sums.dtype)

    def _gram(self, table: LabelTable) -> LabelGram:
        return LabelGram(table, self.label_similarity, self.sigma)

    def _draw_label_features(self, rows: LabelledViews) -> DrawnLabelFeatures | None:
        """The map that `label_features` asks for, if any, drawn from the first batch."""
        if self.label_features is None:
            return None
        rng = check_random_state(self.random_state)
        _, vectors, vocabulary = _common_columns(rows.table, rows.table)
        features: LabelFeatures
        if self.label_features == "fourier":
            features = FourierLabelFeatures.draw(
                self.label_similarity, self.sigma, vectors, self.n_label_features, rng
            )
        else:
            landmarks = vectors[_draw_landmarks(rows, self.n_label_features, rng)]
            dense = LabelTable(landmarks).dense()
            features = LandmarkLabelFeatures.at(self.label_similarity, self.sigma, dense)
        columns = LabelTable(vectors[:0], vocabulary)
        sample = _sample(rows, rng.randint(_SEED_BOUND))
        exact = LabelSums.of(sample.views, sample.table, sample.codes, sample.weights)
        near = DrawnLabelFeatures(features, columns, np.nan).sums(sample)
        error = _relative_error(
            near.covariance(), exact.covariance(self._gram(exact.table)), exact.widths
        )
        return DrawnLabelFeatures(features, columns, error)

    def _ranks_between(self, sums: LabelSums | LabelFeatureSums) -> dict[str, int]:
        """Upper bounds of the ranks of a view's label-weighted covariances with other views.

        Sums of a view about its mean are linearly dependent, so that c label vectors leave c - 1.
        """
        if not isinstance(sums, LabelSums):
            return dict.fromkeys(sums.widths, len(sums.sums))
        n_labels = (
            sums.table.vectors.shape[1] if self.label_similarity == "cosine" else len(sums.table)
        )
        present = np.count_nonzero(sums.counts, axis=0)
        return {
            name: min(int(n) - 1, n_labels) for name, n in zip(sums.widths, present, strict=True)
        }

    def _learn_labels(
        self, sums: LabelSums | LabelFeatureSums, drawn: DrawnLabelFeatures | None
    ) -> None:
        """Set the attributes that say what labels there were."""
        self._drawn = drawn
        if isinstance(sums, LabelSums):
            self.n_label_vectors_ = len(sums.table)
        if drawn is not None:
            self.label_feature_map_ = drawn.features
            self.n_label_features_ = drawn.features.n_features
            self.covariance_error_ = drawn.error


def in_columns(table: LabelTable, columns: LabelTable) -> LabelTable:
    """A table in the columns of another, to which it may add none."""
    _, vectors, vocabulary = _common_columns(columns, table)
    if vocabulary is not None and columns.vocabulary is not None:
        known = set(columns.vocabulary)
        unknown = [name for name in vocabulary if name not in known]
        if unknown:
            raise ValueError(
                "Label features are drawn from the first batch, and have no columns for the labels "
                f"{unknown} of a later one. Pass all labels in the first batch, indicator "
                "matrices with a column per label, or label_features=None."
            )
    return LabelTable(vectors, vocabulary)


def _draw_landmarks(rows: LabelledViews, n: int, rng: np.random.RandomState) -> np.ndarray:
    """Lines of the label vectors of rows drawn at random, each line once; all if they are few."""
    counts = rows.counts().counts.sum(axis=1)
    if n >= len(counts):
        return np.arange(len(counts))
    return np.sort(rng.choice(len(counts), n, replace=False, p=counts / counts.sum()))


def _sample(rows: LabelledViews, seed: int) -> LabelledViews:
    """Some rows of each view, unpaired; of paired views those of the same objects."""
    chosen = {}
    for name, block in rows.views.items():
        order = np.random.RandomState(seed).permutation(block.shape[0])
        chosen[name] = np.sort(order[:_SAMPLED_ROWS])
    codes = {name: rows.codes[name][own] for name, own in chosen.items()}
    views = Views.unpaired({name: take_rows(rows.views[name], own) for name, own in chosen.items()})
    weights = np.concatenate([rows.weights_of(name)[own] for name, own in chosen.items()])
    return LabelledViews(views.in_memory(), *used_lines(rows.table, codes), weights)


def _relative_error(near: np.ndarray, exact: np.ndarray, widths: dict[str, int]) -> float:
    """‖near - exact‖ / ‖exact‖ (Frobenius), each view scaled so that its own exact block is 1."""
    scale = np.zeros(len(exact))
    for columns in column_slices(widths).values():
        block = exact[columns, columns]
        largest = np.abs(block).max()
        if largest:  # a view without variance is refused soon
            size = largest * np.linalg.norm(block / largest)  # without squares beyond all floats
            scale[columns] = 1 / np.sqrt(size)
    near, exact = (matrix * scale[:, None] * scale for matrix in (near, exact))
    return float(np.linalg.norm(near - exact) / (np.linalg.norm(exact) or 1))
