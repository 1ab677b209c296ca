"""What objectives have in common: the rows of a batch that they see, and sums of terms."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Batch:
    """The rows of a batch, passed to an objective along with their scores.

    Attributes
    ----------
    views : dict of str to Tensor, shape (n_rows, n_features)
        The rows of each view.
    rows : ndarray, shape (n_rows,), or dict of str to ndarray
        Positions of the rows in the data given to `fit`, also if `validation_fraction` holds some
        out; in a validation batch from `X_val`, positions in `X_val`. By view if the batch is not
        paired.
    epoch : int
        Number of the epoch, from 1.
    n_epochs : int
        Number of epochs that the training is to have, for schedules.
    labels : dict of str to Tensor of int64, shape (n_rows,)
        Codes of the label sets of the rows of each view: equal codes are equal labels. Empty if
        `fit` was given no labels.
    """

    views: dict[str, Tensor]
    rows: np.ndarray | dict[str, np.ndarray]
    epoch: int
    n_epochs: int = 1
    labels: dict[str, Tensor] = field(default_factory=dict)


def summed(terms: Iterable[Tensor]) -> Tensor:
    """Sum of scalars, such as the losses of all pairs of views."""
    return torch.stack(list(terms)).sum()
