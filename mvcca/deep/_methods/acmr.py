"""Adversarial cross-modal retrieval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, permutations
from typing import Any

import torch
from torch import Generator, Tensor, nn

from mvcca.base.parameters import NOT_NEGATIVE, POSITIVE, parameter
from mvcca.deep._bases.estimator import Widths, common_width
from mvcca.deep._bases.mlp_estimator import TANH, NetworkEstimator
from mvcca.deep._losses.batch import Batch, summed
from mvcca.deep.encoders import Encoders
from mvcca.deep.endings import Ending, as_trained
from mvcca.deep.functional import cosines, reversal_factor, reverse_gradient, same_label, triplet
from mvcca.deep.layers import linear
from mvcca.deep.objectives import BoundLoss, LabelLoss, targets_of
from mvcca.deep.trainer import Objective


class ACMR(NetworkEstimator):
    r"""Adversarial cross-modal retrieval: scores that tell labels, but not views [1]_.

    .. math::

        \min_{\text{networks}} \; α L_{triplet} + β L_{label} - γ L_{view}, \qquad
        \min_{\text{adversary}} \; L_{view},

    with the cross entropies L_label of labels that one linear classifier predicts from the scores
    of any view, and L_view of the view that an adversary predicts. L_triplet is the mean of

    .. math:: \max\big(0, \; m + \lVert f - g \rVert^2 - \lVert f - g^- \rVert^2\big)

    for the paired row g, and the row g⁻ of another label in the batch whose features are most
    similar to those of g. The gradient of L_view is reversed in front of the adversary, and
    multiplied by 2 / (1 + exp(-10 t / T)) - 1 in epoch t of T.

    In unpaired views g is a row with equal labels, another one in every epoch.

    In the released implementation the reversed gradient does not reach the networks, the label
    classifier keeps its random weights, and one hinge is taken of the sum over a batch.

    Parameters and attributes that are not listed here are those of
    `mvcca.deep.bases.NetworkEstimator`.

    Parameters
    ----------
    triplet_weight : float, default=1.0
        Weight α of the triplets.
    label_weight : float, default=1.0
        Weight β of the labels.
    adversary_weight : float, default=1.0
        Weight γ of the adversary.
    margin : float, default=0.1
        Margin m of the triplets.
    hidden_layer_sizes : sequence of int, or mapping of str to sequence, default=(512, 100)
        Widths of the hidden layers, for all views or by view: linear → tanh, as is the output.
    batch_size : int, default=64
        Rows per batch; all rows if there are fewer.
    optimizer : {"rmsprop", "adam", "sgd"} or callable, default="adam"
        Name of an optimizer, a class of `torch.optim`, or a callable with the same signature.
    monitor : str or callable, default="valid_map"
        Quantity compared across epochs on the validation rows.

    References
    ----------
    .. [1] Wang, Yang, Xu, Hanjalic and Shen, "Adversarial Cross-Modal Retrieval", ACM MM 2017.

    Examples
    --------
    >>> from mvcca import evaluate_retrieval
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.deep import ACMR
    >>> data = load_digits_views()
    >>> model = ACMR(16, hidden_layer_sizes=(64,), max_epochs=5, random_state=0)
    >>> model = model.fit(data.views[:1500], data.labels[:1500])
    >>> test, labels = data.views[1500:], data.labels[1500:]
    >>> evaluate_retrieval(test, labels, estimator=model, measures="map").mean()["map"] > 0.3
    True
    """

    triplet_weight: float = parameter(1.0, NOT_NEGATIVE)
    label_weight: float = parameter(1.0, NOT_NEGATIVE)
    adversary_weight: float = parameter(1.0, NOT_NEGATIVE)
    margin: float = parameter(0.1, POSITIVE)
    hidden_layer_sizes: Sequence[int] | Mapping[str, Sequence[int]] = (512, 100)
    batch_size: int = 64
    optimizer: Any = "adam"
    monitor: Any = "valid_map"

    _gain = 4.0
    _is_scheduled = True  # the weight of the reversed gradient
    requires = replace(NetworkEstimator.requires, labels=True, pairs=False)

    def _ending(self) -> Ending:
        return as_trained("euclidean")

    def _mlp_options(self) -> dict[str, Any]:
        return TANH

    def _objective(self, encoders: Encoders, widths: Widths, generator: Generator) -> Objective:
        targets, k = targets_of(self._labels), common_width(widths)
        sizes = [k, max(k // 2, 2), max(k // 4, 2)]  # 40, 20, 10 in the publication
        adversary = [linear(a, b, generator) for a, b in pairwise(sizes)]
        return BoundLoss(
            acmr_loss,
            labels=LabelLoss(targets),
            classifier=linear(k, targets.shape[1], generator),
            adversary=nn.Sequential(*adversary, linear(sizes[-1], len(widths), generator)),
            weights=(self.triplet_weight, self.label_weight, self.adversary_weight),
            margin=self.margin,
        )


def acmr_loss(
    scores: Mapping[str, Tensor],
    batch: Batch,
    labels: LabelLoss,
    classifier: nn.Module,
    adversary: nn.Module,
    weights: tuple[float, float, float],
    margin: float,
) -> dict[str, Tensor]:
    """Triplets, labels and an adversary behind a gradient reversal; `weights` are α, β and γ."""
    by_triplets, by_labels, by_adversary = weights
    codes = next(iter(batch.labels.values()))
    different = ~same_label(codes)
    triplets = [
        _triplets(scores[p], scores[q], batch.views[q], different, margin)
        for p, q in permutations(scores, 2)
    ]
    entropies = [labels.of(classifier(F), codes) for F in scores.values()]
    factor = reversal_factor(batch.epoch / batch.n_epochs)
    judged = [adversary(reverse_gradient(F, factor)) for F in scores.values()]
    views = [torch.full_like(codes, i) for i in range(len(scores))]
    told_apart = nn.functional.cross_entropy(torch.cat(judged), torch.cat(views))
    return {
        "triplet": by_triplets * summed(triplets),
        "label": by_labels * summed(entropies),
        "adversary": by_adversary * told_apart,
    }


def _triplets(F: Tensor, G: Tensor, X: Tensor, different: Tensor, margin: float) -> Tensor:
    """Anchors in F, counterparts in G, and the rows of G with the most similar features."""
    X = X if X.is_floating_point() else _word_counts(X)
    similarity = cosines(X, X).masked_fill(~different, -torch.inf)
    hardest = similarity.argmax(dim=1)
    usable = different.any(dim=1)
    if not usable.any():
        return F.new_zeros(())
    rows = usable.nonzero()[:, 0]
    return triplet(F[rows], G[rows], G[hardest[rows]], margin)


def _word_counts(X: Tensor) -> Tensor:
    """Counts of the known words of texts, (n_rows, n_words), from their positions."""
    counts = torch.zeros(len(X), 2 + int(X.max()), device=X.device)
    counts.scatter_add_(1, X, torch.ones_like(X, dtype=counts.dtype))
    counts[:, :2] = 0  # 0 pads, 1 is unknown
    return counts
