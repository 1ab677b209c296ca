"""What deep estimators that learn from labels have to predict, and how wide their outputs are."""

from __future__ import annotations

import torch
from torch import Tensor

from mvcca.deep._bases.estimator import Widths
from mvcca.views import Labels


def targets_of(labels: Labels | None) -> Tensor:
    """Labels to predict for every code, shape (n_codes, n_labels).

    Indicators of classes or label sets; each distinct real label vector is a class.
    """
    assert labels is not None  # the estimators require them
    if not labels.are_sets:
        return torch.eye(len(labels))
    return torch.from_numpy(labels.vectors.toarray()).float()


def common_width(widths: Widths) -> int:
    """Width of the outputs of all networks."""
    if len(set(widths.values())) > 1:
        raise ValueError(
            f"The networks of all views must have outputs of the same width, got {dict(widths)}."
        )
    return next(iter(widths.values()))
