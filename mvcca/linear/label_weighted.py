"""The base of MLCCA and MVMLCCA, which weigh pairs of rows by the similarity of their labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from mvcca.base import RankedByCorrelation, Requirements
from mvcca.base.label_checks import check_bandwidth, check_label_vectors
from mvcca.linear._rescaled import RescaledEstimator
from mvcca.linear.features import FourierFeatures, LandmarkFeatures
from mvcca.machine.config import get_config
from mvcca.machine.memory import available_bytes
from mvcca.problem import Rows, Shrinkage
from mvcca.similarity import LabelGram, Similarity, similarities_within, similarity_function
from mvcca.statistics import DigitsLost, LabelFeatureSums, LabelSums, column_slices
from mvcca.views import Labels, Views
from mvcca.views.labels import common_columns
from mvcca.views.labels_by_view import LabelsByView

_SAMPLED_ROWS = 2000  # of each view, to compare label features with the exact covariance
_SEED_BOUND = 2**31 - 1
_WIDE = 1000  # features of a view, below which fits take less than a second
_LABEL_SHARE = 0.5  # of dimensions, below which the space of label sums saves more than it costs


@dataclass(frozen=True)
class LabelKernel:
    """A label similarity and its bandwidth, as a function of two stacks of label vectors."""

    similarity: Similarity
    sigma: float

    def __call__(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Similarities of all pairs of label vectors, (n_a, n_b)."""
        return np.asarray(similarity_function(self.similarity, self.sigma)(A, B), dtype=float)


@dataclass(frozen=True, eq=False)
class DrawnLabelFeatures:
    """A map of label vectors to features, the label columns that it takes, and its error."""

    features: FourierFeatures | LandmarkFeatures
    columns: Labels  # without lines
    error: float

    def sums(self, rows: Rows) -> LabelFeatureSums:
        """Sums of rows times the features of their labels."""
        distinct = in_columns(rows.labels.distinct, self.columns)
        labels = LabelsByView(distinct, rows.labels.codes)
        return LabelFeatureSums.of(
            rows.views, labels, self.features, rows.sample_weight, rows.products
        )

    def row_weights(self, sums: LabelFeatureSums, labels: Labels) -> np.ndarray:
        """Mean similarity of each label vector to the rows of each view."""
        return sums.row_weights(in_columns(labels, self.columns), self.features)


class LabelWeightedEstimator(RankedByCorrelation, RescaledEstimator):
    """Base of estimators whose covariances weigh pairs of rows by label similarity.

    Views that share objects tell how their scores correlate, which is what rankings weight by.
    """

    retrieval_ranking = ("retrieval_scores", "profile-likelihood")

    requires = Requirements(views=(1, None), labels=True, many_rows=True)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{
            name: allowed
            for name, allowed in RescaledEstimator._parameter_constraints.items()
            if name != "center"  # sums by label are about the mean
        },
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

    _drawn: DrawnLabelFeatures | None = None
    keeps_solutions = True  # `learn` only adds notes

    def open_rows(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool = True, batch: bool = False
    ) -> Rows:
        """Checked rows with their weights, labels and ridge."""
        rows = super().open_rows(X, y, sample_weight, reset=reset, batch=batch)
        if not batch:
            self._check_labels(label_counts(rows))
            if self.label_features is not None:  # which are drawn from the rows
                rows = rows.in_row_space()
        if reset:
            self._drawn = None
            if self.label_features is not None:
                self._drawn = self._draw_label_features(rows)
                self.label_feature_map_ = self._drawn.features
                self.n_label_features_ = self._drawn.features.n_features
                self.covariance_error_ = self._drawn.error
        return rows

    def _learn_rows(self, rows: Rows) -> None:
        """Fit to all rows at once, in the space of their means by label if that is much smaller."""
        if self._has_label_space and self._label_space_is_small(rows):
            try:
                self._learn_in_label_space(replace(rows, improvable=frozenset(rows.views.names)))
                return
            except DigitsLost:  # rows are decomposed
                pass
        super()._learn_rows(rows)

    @property
    def _has_label_space(self) -> bool:
        """Whether solutions have no more dimensions than there are label vectors."""
        return False

    def _learn_in_label_space(self, rows: Rows) -> None:
        """Fit in the space of solutions."""
        raise NotImplementedError

    def _label_space_is_small(self, rows: Rows) -> bool:
        """Whether label vectors are far fewer than both rows and features of wide views."""
        views, k = rows.views, rows.n_components
        blocks, U = views.blocks, len(rows.labels.distinct)
        if k is None or rows.bases or not all(rows.reg.values()) or self.reg == "cv":
            return False
        if any(X.is_lazy or X.on_device for X in blocks.values()) or get_config().device:
            return False
        widths = {name: min(X.shape) for name, X in blocks.items()}
        if max(views.widths.values()) < _WIDE or 4 * 8 * U * views.shape[1] > available_bytes() / 2:
            return False
        return sum(min(U, d) for d in widths.values()) < _LABEL_SHARE * sum(widths.values())

    def _check_labels(self, sums: LabelSums) -> None:
        check_label_vectors(sums)
        check_bandwidth(sums.labels, self.label_similarity, self.sigma, sums.dtype)

    def _draw_label_features(self, rows: Rows) -> DrawnLabelFeatures:
        """The map that `label_features` asks for, drawn from the first batch."""
        rng = check_random_state(self.random_state)
        _, vectors, vocabulary = common_columns(rows.labels.distinct, rows.labels.distinct)
        kernel = LabelKernel(self.label_similarity, self.sigma)
        features: FourierFeatures | LandmarkFeatures
        if self.label_features == "fourier":
            features = fourier_features(kernel, vectors, self.n_label_features, rng)
        else:
            landmarks = vectors[_draw_landmarks(rows, self.n_label_features, rng)]
            features = landmark_features(kernel, Labels(landmarks).dense())
        columns = Labels(vectors[:0], vocabulary)
        sample = _sample(rows, rng.randint(_SEED_BOUND))
        exact = LabelSums.of(sample.views, sample.labels, sample.sample_weight)
        near = DrawnLabelFeatures(features, columns, np.nan).sums(sample)
        gram = LabelGram(exact.labels, self.label_similarity, self.sigma)
        error = _relative_error(near.covariance(), exact.covariance(gram), exact.widths)
        return DrawnLabelFeatures(features, columns, error)

    def _ranks_between(self, sums: LabelSums | LabelFeatureSums) -> dict[str, int]:
        """Upper bounds of the ranks of a view's label-weighted covariances with other views.

        Sums of a view about its mean are linearly dependent, so that c label vectors leave c - 1.
        """
        if not isinstance(sums, LabelSums):
            return dict.fromkeys(sums.widths, len(sums.sums))
        n_labels = sums.labels.n_labels if self.label_similarity == "cosine" else len(sums.labels)
        present = np.count_nonzero(sums.counts, axis=0)
        return {
            name: min(int(n) - 1, n_labels) for name, n in zip(sums.widths, present, strict=True)
        }


def label_counts(rows: Rows) -> LabelSums:
    """Label sums of rows without their features."""
    counts = [
        np.bincount(code, weights=rows.sample_weight_of(name), minlength=len(rows.labels.distinct))
        for name, code in rows.labels.codes.items()
    ]
    nothing = np.empty((len(rows.labels.distinct), 0))
    dtype = np.result_type(*(block.dtype for block in rows.views.blocks.values()))
    widths = dict.fromkeys(rows.labels.codes, 0)
    return LabelSums(rows.labels.distinct, widths, np.column_stack(counts), nothing, dtype)


def label_means(sums: LabelSums, rows: Rows) -> Rows:
    """Each view's mean row per label vector, unpaired, in place of the rows."""
    blocks, codes = {}, {}
    for p, (name, columns) in enumerate(column_slices(sums.widths).items()):
        codes[name] = np.flatnonzero(sums.counts[:, p])
        blocks[name] = sums.sums[codes[name], columns]
    labels = LabelsByView(sums.labels, codes)
    return replace(rows, views=Views.unpaired(blocks), labels=labels, sample_weight=None)


def in_label_space(rows: Rows, sums: LabelSums) -> tuple[Rows, LabelSums]:
    """Rows with bases of their means by label, where these are fewer than features; sums in them.

    Matrices made of label sums vanish outside the span of these means. Of C label vectors, they
    are C x C in it.
    """
    means = label_means(sums.averaged(), rows).in_row_space()
    parts = []
    for p, (name, columns) in enumerate(column_slices(sums.widths).items()):
        own = sums.sums[:, columns]
        if name in means.bases:
            present, Z = means.labels.codes[name], means.views[name]
            own = np.zeros((len(sums.counts), Z.shape[1]))
            own[present] = sums.counts[present, p, None] * Z
        parts.append(own)
    widths = {name: part.shape[1] for name, part in zip(sums.widths, parts, strict=True)}
    turned = replace(sums, widths=widths, sums=np.hstack(parts), dtype=np.dtype(np.float64))
    return replace(rows, bases=means.bases), turned


def solving_is_cheap(rows: Rows) -> bool:
    """Whether `in_solved_label_space` takes less than a basis of the rows, and fits into memory.

    For dense rows it would take as long. Shrinkage scales all views by their largest eigenvalue,
    which few directions do not tell.
    """
    blocks, U = rows.views.blocks, len(rows.labels.distinct)
    if any(isinstance(reg, Shrinkage) for reg in rows.reg.values()):
        return False
    if not all(X.is_sparse for X in blocks.values() if X.shape[1] >= _WIDE):
        return False
    factored = max(min(X.shape) ** 2 for X in blocks.values())
    turned = U * sum(X.shape[0] for X in blocks.values())
    return 2 * 8 * (factored + turned) < available_bytes() / 2


def in_solved_label_space(rows: Rows) -> Rows:
    """Rows of wide views in (Σ + r I)⁻¹ of their sums by label, where constraints are covariances.

    Matrices between views are made of these sums, of which there are few.
    """
    combinations = {}
    for name, X in rows.views.blocks.items():
        present, codes = np.unique(rows.labels.codes[name], return_inverse=True)
        if len(present) < min(X.shape):
            combinations[name] = np.eye(len(present))[codes]
    return rows.in_directions_of(combinations)


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
    gram = similarities_within(kernel.similarity, kernel.sigma, landmarks)
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
