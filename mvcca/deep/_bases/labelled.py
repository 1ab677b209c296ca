"""Base of the deep estimators that learn from labels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from mvcca.deep._bases.estimator import DeepEstimator, Widths


class Labelled(DeepEstimator):
    """Base of the deep estimators that learn from labels and use their scores as trained."""

    optimizer: Any = "adam"
    monitor: Any = "valid_map"

    requires = replace(DeepEstimator.requires, labels=True)

    def _targets(self) -> Tensor:
        """Labels to predict for every code, shape (n_codes, n_labels).

        Indicators of classes or label sets; each distinct real label vector is a class.
        """
        assert self._labels is not None
        if not self._labels.are_sets:
            return torch.eye(len(self._labels))
        return torch.from_numpy(self._labels.vectors.toarray()).float()

    def _common_width(self, widths: Widths) -> int:
        """Width of the outputs of all networks."""
        if len(set(widths.values())) > 1:
            raise ValueError(
                "The networks of all views must have outputs of the same width, got "
                f"{dict(widths)}."
            )
        return next(iter(widths.values()))
