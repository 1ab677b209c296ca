"""Finite maps of label vectors to features, whose products are their similarities or close to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from mvcca.linear.features import FeatureMap, FourierFeatures, LandmarkFeatures
from mvcca.linear.label_space import label_counts
from mvcca.problem import Rows
from mvcca.similarity import LabelGram, LabelKernel
from mvcca.statistics import LabelSums, column_slices
from mvcca.statistics.label_sums_by_feature import LabelFeatureSums
from mvcca.views import Labels, Views
from mvcca.views.labels import common_columns
from mvcca.views.labels_by_view import LabelsByView

_SAMPLED_ROWS = 2000  # of each view, to compare label features with the exact covariance
_SEED_BOUND = 2**31 - 1


@dataclass(frozen=True, eq=False)
class DrawnLabelFeatures:
    """A map of label vectors to features, the label columns that it takes, and its error."""

    features: FeatureMap
    columns: Labels  # without lines
    error: float

    def sums(self, rows: Rows) -> LabelFeatureSums:
        """Sums of rows times the features of their labels."""
        distinct = in_columns(rows.labels.distinct, self.columns)
        labels = LabelsByView(distinct, rows.labels.codes)
        return LabelFeatureSums.of(
            rows.views, labels, self.features, rows.sample_weight, rows.reading.products
        )

    def row_weights(self, sums: LabelFeatureSums, labels: Labels) -> np.ndarray:
        """Mean similarity of each label vector to the rows of each view."""
        return sums.row_weights(in_columns(labels, self.columns), self.features)


def draw_label_features(
    rows: Rows, kernel: LabelKernel, kind: str, n_features: int, random_state: Any
) -> DrawnLabelFeatures:
    """A map to Fourier or Nyström features, drawn from the rows of the first batch."""
    rng = check_random_state(random_state)
    _, vectors, vocabulary = common_columns(rows.labels.distinct, rows.labels.distinct)
    features: FeatureMap
    if kind == "fourier":
        features = fourier_features(kernel, vectors, n_features, rng)
    else:
        landmarks = vectors[_draw_landmarks(rows, n_features, rng)]
        features = landmark_features(kernel, Labels(landmarks).dense())
    columns = Labels(vectors[:0], vocabulary)
    sample = _sample(rows, rng.randint(_SEED_BOUND))
    exact = LabelSums.of(sample.views, sample.labels, sample.sample_weight)
    near = DrawnLabelFeatures(features, columns, np.nan).sums(sample)
    gram = LabelGram(exact.labels, kernel.similarity, kernel.sigma)
    error = _relative_error(near.covariance(), exact.covariance(gram), exact.widths)
    return DrawnLabelFeatures(features, columns, error)


def in_columns(labels: Labels, columns: Labels) -> Labels:
    """Distinct label vectors in the columns of others, which must hold all of their labels."""
    _, vectors, vocabulary = common_columns(columns, labels)
    if vocabulary is not None and columns.vocabulary is not None:
        known = set(columns.vocabulary)
        unknown = [name for name in vocabulary if name not in known]
        if unknown:
            raise ValueError(
                "Label features are drawn from the first batch, and have no columns for the labels "
                f"{unknown} of a later one. Pass all labels in the first batch, indicator "
                "matrices with a column per label, or label_features=None."
            )
    return Labels(vectors, vocabulary)


def fourier_features(
    kernel: LabelKernel, vectors: Any, n_features: int, rng: np.random.RandomState
) -> FourierFeatures:
    """Draw features of exp(-‖·‖² / (2σ)), w ~ N(0, I / σ), or exp(-‖·‖ / σ), w ~ Cauchy."""
    similarity, sigma = kernel.similarity, kernel.sigma
    if similarity not in ("sqexp", "exp"):
        raise ValueError(
            'label_features="fourier" is for label_similarity="sqexp" or "exp", got '
            f'label_similarity={similarity!r}. Use label_features="nystroem".'
        )
    if n_features % 2:
        raise ValueError(
            "Fourier label features are cosine and sine of each frequency: expected an even "
            f"n_label_features, got {n_features}."
        )
    frequencies = rng.standard_normal((vectors.shape[1], n_features // 2))
    with np.errstate(over="ignore"):
        if similarity == "sqexp":
            frequencies /= np.sqrt(sigma)
        else:  # multivariate
            frequencies /= np.abs(rng.standard_normal(n_features // 2)) * sigma
    if not np.isfinite(frequencies).all():
        raise ValueError(
            f"sigma={sigma} is too small for Fourier label features: frequencies overflow. "
            "Use a bandwidth similar to the distances between label vectors."
        )
    return FourierFeatures.of_pairs(frequencies, np.asarray(vectors.mean(axis=0)).reshape(-1))


def landmark_features(kernel: LabelKernel, landmarks: np.ndarray) -> LandmarkFeatures:
    """Features with given landmark label vectors, whose similarity must be a positive kernel."""
    gram = kernel.within(landmarks)
    if not gram.any():
        raise ValueError(
            "The similarity of all landmark label vectors is zero, even to themselves. Check the "
            "similarity and the labels."
        )
    try:
        return LandmarkFeatures.at(
            landmarks, kernel, gram, landmarks.shape[1], what="label similarity"
        )
    except ValueError as error:
        raise ValueError(f"{error} Use label_features=None.") from None


def _draw_landmarks(rows: Rows, n: int, rng: np.random.RandomState) -> np.ndarray:
    """Lines of the label vectors of random rows, each line once; all lines if they are few."""
    counts = label_counts(rows).counts.sum(axis=1)
    if n >= len(counts):
        return np.arange(len(counts))
    return np.sort(rng.choice(len(counts), n, replace=False, p=counts / counts.sum()))


def _sample(rows: Rows, seed: int) -> Rows:
    """Some rows of each view, unpaired; for paired views those of the same objects."""
    chosen = {}
    for name, block in rows.views.items():
        order = np.random.RandomState(seed).permutation(block.shape[0])
        chosen[name] = np.sort(order[:_SAMPLED_ROWS])
    views = Views.unpaired({name: rows.views.block(name).take(own) for name, own in chosen.items()})
    weights = np.concatenate([rows.sample_weight_of(name)[own] for name, own in chosen.items()])
    return Rows(views.in_memory(), weights, rows.labels.take(chosen))


def _relative_error(near: np.ndarray, exact: np.ndarray, widths: dict[str, int]) -> float:
    """‖near - exact‖ / ‖exact‖ (Frobenius), each view in units of its exact block."""
    scale = np.zeros(len(exact))
    for columns in column_slices(widths).values():
        block = exact[columns, columns]
        largest = np.abs(block).max()
        if largest:  # a view without variance is refused later
            size = largest * np.linalg.norm(block / largest)  # squares may overflow
            scale[columns] = 1 / np.sqrt(size)
    near, exact = (matrix * scale[:, None] * scale for matrix in (near, exact))
    return float(np.linalg.norm(near - exact) / (np.linalg.norm(exact) or 1))
