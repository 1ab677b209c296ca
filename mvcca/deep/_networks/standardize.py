"""Standardization of features in front of a network."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

import numpy as np
import torch
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

_LARGEST = 10.0  # deviation of a training row, in units of the scale


class Standardize(nn.Module):
    """Subtract the mean of each feature and divide by its scale.

    The scale is the standard deviation, or a tenth of the largest deviation from the mean if that
    is more: features that are rarely different from their usual value, such as counts of rare
    words or pixels at the border, do not become outliers. A feature that never varies has scale 1.

    Parameters
    ----------
    n_features : int
        Number of features. Until `learn` is called, rows are left as they are.
    """

    mean: Tensor  # (n_features,); `rest` is what rounding to float32 leaves of it
    rest: Tensor
    scale: Tensor

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.n_features = n_features
        self.register_buffer("mean", torch.zeros(n_features))
        self.register_buffer("rest", torch.zeros(n_features))
        self.register_buffer("scale", torch.ones(n_features))

    def learn(self, blocks: Iterable[np.ndarray]) -> Self:
        """Set means and scales to those of rows, given in blocks."""
        scaler, least, largest = StandardScaler(), np.inf, -np.inf
        for block in blocks:
            scaler.partial_fit(block)
            least = np.minimum(least, block.min(axis=0))
            largest = np.maximum(largest, block.max(axis=0))
        varies = largest > least  # else deviations from the mean are its rounding
        mean, scale = np.where(varies, scaler.mean_, least), np.where(varies, scaler.scale_, 1)
        scale = np.maximum(scale, np.maximum(largest - mean, mean - least) / _LARGEST)
        limits = np.finfo(np.float32)
        scale = np.where(scale < limits.tiny, 1, scale).clip(max=limits.max)
        rounded = mean.astype(np.float32)
        for buffer, values in (
            (self.mean, rounded), (self.rest, mean - rounded), (self.scale, scale)
        ):  # fmt: skip
            buffer.copy_(torch.from_numpy(values))
        return self

    def forward(self, X: Tensor) -> Tensor:
        """Standardize rows of shape (n_rows, n_features); float64 rows lose no digits under a mean.

        The result is float32.
        """
        return ((X - self.mean - self.rest) / self.scale).float()
