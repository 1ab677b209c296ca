"""Two-branch networks with a structure-preserving loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Generator, Tensor

from mvcca.deep._bases.estimator import Widths
from mvcca.deep._bases.parameters import BELOW_1, NOT_NEGATIVE, POSITIVE, at_least, parameter
from mvcca.deep._bases.started import StartedNetworks
from mvcca.deep._losses.batch import Batch
from mvcca.deep.encoders import Encoders
from mvcca.deep.functional import same_label, structure_preserving
from mvcca.deep.trainer import Objective


class TwoBranch(StartedNetworks):
    r"""Two-branch networks that rank both ways and keep neighbourhoods together [1]_.

    .. math::

        \min \; & H(d(f, g)) + λ_1 H(d(g, f)) + λ_2 H(d(f, f)) + λ_3 H(d(g, g)), \\
        & H(D) = \operatorname*{mean}_{i, \; j ∈ N(i), \; k ∉ N(i)}
            \max(0, \; m + D_{ij} - D_{ik}),

    with Euclidean distances d of outputs scaled to length 1. Neighbours N(i) are rows with the same
    label if `fit` is given labels; otherwise the row of the same object only, and the last two
    terms vanish. Views with labels may be unpaired.

    Parameters and attributes that are not listed here are those of
    `mvcca.deep.bases.StartedNetworks`.

    Parameters
    ----------
    margin : float, default=0.1
        Margin m.
    backward : float, default=2.0
        Weight λ₁ of ranking rows of the first view for rows of the second.
    structure : pair of float, default=(0.1, 0.2)
        Weights λ₂ and λ₃ of the neighbourhoods within each view.
    mining : int, optional
        Number of rows k that count for each pair of neighbours i, j in each term: those of the
        batch with the largest violations, as in [1]_. By default all rows count.
    dropout : float, default=0.5
        Dropout after each hidden layer.
    hidden_layer_sizes : sequence of int, or mapping of str to sequence, default=(2048,)
        Widths of the hidden layers, for all views or by view. Each hidden layer is linear → ReLU →
        dropout; the output is batch-normalized.
    batch_size : int, default=200
        Rows per batch; all rows if there are fewer. With labels, memory is proportional to the
        number of neighbours in a batch times its rows.
    optimizer : {"rmsprop", "adam", "sgd"} or callable, default="adam"
        Name of an optimizer, a class of `torch.optim`, or a callable with the same signature.
    monitor : str or callable, default="valid_mrr"
        Quantity compared across epochs on the validation rows.

    References
    ----------
    .. [1] Wang, Li and Lazebnik, "Learning Deep Structure-Preserving Image-Text Embeddings", CVPR
       2016.

    Examples
    --------
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.deep import TwoBranch
    >>> views = load_digits_views().views
    >>> model = TwoBranch(8, hidden_layer_sizes=(64,), max_epochs=3, start="random")
    >>> model = model.set_params(random_state=0).fit(views)
    >>> {name: scores.shape for name, scores in model.transform(views).items()}
    {'left': (1797, 8), 'right': (1797, 8)}
    """

    margin: float = parameter(0.1, POSITIVE)
    backward: float = parameter(2.0, NOT_NEGATIVE)
    structure: Sequence[float] = parameter((0.1, 0.2), "array-like")
    mining: int | None = parameter(None, at_least(1), None)
    dropout: float = parameter(0.5, BELOW_1)
    hidden_layer_sizes: Sequence[int] | Mapping[str, Sequence[int]] = (2048,)
    batch_size: int = 200
    optimizer: Any = "adam"
    monitor: Any = "valid_mrr"

    requires = replace(StartedNetworks.requires, views=(2, 2), pairs=False)
    _network_parameters = ("hidden_layer_sizes", "dropout")

    def _reads_labels(self) -> bool:
        return True

    def _can_choose(self) -> bool:
        return self._labels is None and super()._can_choose()

    def _mlp_options(self) -> dict[str, Any]:
        return {"batch_norm": False, "dropout": self.dropout}

    def _objective(self, encoders: Encoders, widths: Widths, generator: Generator) -> Objective:
        in_first, in_second = self.structure
        weights = (self.backward, in_first, in_second)
        return partial(_loss, margin=self.margin, weights=weights, mining=self.mining)


def _loss(scores: Mapping[str, Tensor], batch: Batch, **options: Any) -> Tensor:
    """The loss of a batch; without labels, only the rows of an object are neighbours."""
    F, G = scores.values()
    codes = next(iter(batch.labels.values()), torch.arange(len(F), device=F.device))
    return structure_preserving(F, G, same_label(codes), **options)
