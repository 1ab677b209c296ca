"""Cross-modal correlation learning, simplified."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import torch
from torch import Generator, Tensor, nn

from mvcca.base.parameters import NOT_NEGATIVE, POSITIVE, parameter
from mvcca.deep._bases.estimator import Widths, common_width
from mvcca.deep._bases.mlp_estimator import SIGMOID, NetworkEstimator
from mvcca.deep._losses.batch import Batch, summed
from mvcca.deep.encoders import Encoders
from mvcca.deep.functional import contrastive, same_label
from mvcca.deep.layers import linear
from mvcca.deep.objectives import BoundLoss, LabelLoss, targets_of
from mvcca.deep.trainer import Objective


class CCL(NetworkEstimator):
    r"""Cross-modal correlation learning, simplified to its second stage on given features [1]_.

    .. math::

        \min \; α \sum_{p<q} \frac{1}{b^2} \sum_{i,j} c\big(\lVert f_{pi} - f_{qj} \rVert\big)
            + β \sum_p L_p,

    where b is the batch size, c(d) is d² for rows that share a label and max(0, m - d)² for others,
    and L_p is the cross entropy of the labels that a linear classifier predicts from the scores of
    view p before their sigmoid, as in the released implementation: its layers for both tasks have
    the same weights. Views may be unpaired.

    The first stage of [1]_ cannot be done from features: it learns them from whole images and
    texts, and from their patches and segments. Pass features of one granularity, or of several side
    by side. The released implementation standardizes the scores by the mean and variance of the
    test rows, which is left out here. Published figures are therefore no target for it.

    Parameters and attributes that are not listed here are those of
    `mvcca.deep.bases.NetworkEstimator`.

    Parameters
    ----------
    inter_weight : float, default=40.0
        Weight α of the contrast between views.
    intra_weight : float, default=1.0
        Weight β of the labels within views.
    margin : float, default=1.0
        Margin m of the distance.
    hidden_layer_sizes : sequence of int, or mapping of str to sequence, default=(1024,)
        Widths of the hidden layers, for all views or by view: linear → sigmoid, as is the output.
    batch_size : int, default=80
        Rows per batch; all rows if there are fewer.
    max_epochs : int or "auto", default=200
        Maximum number of passes over the rows.
    optimizer : {"rmsprop", "adam", "sgd"} or callable, default="adam"
        Name of an optimizer, a class of `torch.optim`, or a callable with the same signature.
    learning_rate : float or mapping of str to float, default=3e-3
        Learning rate of the optimizer, for all views or by view.
    monitor : str or callable, default="valid_map"
        Quantity compared across epochs on the validation rows.

    Notes
    -----
    Settings of the released implementation of [1]_ that differ from the defaults:

    ====================  ==================================
    ``n_components``      1024
    ``optimizer``         "sgd", without Nesterov momentum
    ``learning_rate``     1e-4
    ``weight_decay``      4e-3
    ``max_epochs``        20,000 steps
    ====================  ==================================

    References
    ----------
    .. [1] Peng, Qi, Huang and Yuan, "CCL: Cross-modal Correlation Learning with Multigrained Fusion
       by Hierarchical Network", IEEE TMM 2018.

    Examples
    --------
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.deep import CCL
    >>> data = load_digits_views()
    >>> model = CCL(8, hidden_layer_sizes=(32,), max_epochs=3, random_state=0)
    >>> model = model.fit(data.views, data.labels)
    >>> {name: scores.shape for name, scores in model.transform(data.views).items()}
    {'left': (1797, 8), 'right': (1797, 8)}
    """

    inter_weight: float = parameter(40.0, NOT_NEGATIVE)
    intra_weight: float = parameter(1.0, NOT_NEGATIVE)
    margin: float = parameter(1.0, POSITIVE)
    hidden_layer_sizes: Sequence[int] | Mapping[str, Sequence[int]] = (1024,)
    batch_size: int = 80
    max_epochs: int | str = 200
    optimizer: Any = "adam"
    learning_rate: float | Mapping[str, float] = 3e-3
    monitor: Any = "valid_map"

    requires = replace(NetworkEstimator.requires, labels=True, pairs=False)

    def _mlp_options(self) -> dict[str, Any]:
        return SIGMOID

    def _networks(self, generator: Generator) -> Encoders:
        encoders = super()._networks(generator)
        for name in encoders.names:
            network = encoders[name]
            if isinstance(network, nn.Sequential) and isinstance(network[-1], nn.Sigmoid):
                encoders.trained[name] = network[:-1]
        return encoders

    def _objective(self, encoders: Encoders, widths: Widths, generator: Generator) -> Objective:
        targets = targets_of(self._labels)
        common_width(widths)
        classifiers = {n: linear(k, targets.shape[1], generator) for n, k in widths.items()}
        weights = (self.inter_weight, self.intra_weight)
        activated = [
            name for name in encoders.names if encoders.trained[name] is not encoders[name]
        ]
        return BoundLoss(
            ccl_loss,
            labels=LabelLoss(targets),
            classifiers=Encoders(classifiers),
            weights=weights,
            margin=self.margin,
            activated=activated,
        )


def ccl_loss(
    scores: Mapping[str, Tensor],
    batch: Batch,
    labels: LabelLoss,
    classifiers: Encoders,
    weights: tuple[float, float],
    margin: float,
    activated: Collection[str] = (),
) -> dict[str, Tensor]:
    """Contrast of pairs by label and labels of each view; `weights` are α and β.

    Scores of the views `activated` are contrasted after a sigmoid; classifiers see them before it.
    """
    targets, codes = labels.targets, batch.labels
    contrasted = {n: torch.sigmoid(F) if n in activated else F for n, F in scores.items()}
    contrasts = [
        contrastive(
            contrasted[p], contrasted[q], same_label(targets[codes[p]], targets[codes[q]]), margin
        )
        for p, q in combinations(scores, 2)
    ]
    logits = classifiers(scores)
    entropies = [labels.of(logits[name], codes[name]) for name in scores]
    return {"inter": weights[0] * summed(contrasts), "intra": weights[1] * summed(entropies)}
