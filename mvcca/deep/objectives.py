"""Objectives, the losses of deep multi-view methods.

An objective is any callable ``(scores, batch) -> loss``, where scores are tensors by view and the
`Batch` holds the rows that they were computed from. The loss is a tensor, or a mapping of named
terms that are summed. Objectives with parameters or state are modules. They are usable with any
training loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import combinations
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from mvcca.deep import functional
from mvcca.deep._losses.batch import Batch, summed
from mvcca.deep._networks.cca_layer import CCALayer
from mvcca.deep.encoders import Encoders
from mvcca.deep.layers import RunningCovariance
from mvcca.machine.on_access import on_access
from mvcca.machine.warnings import warn
from mvcca.views import Labels

__all__ = [
    "Batch",
    "CLIPLoss",
    "LabelLoss",
    "RankingLoss",
    "ReconstructionLoss",
    "SoftCCALoss",
    "SoftHGRLoss",
    "TraceNormLoss",
    "WeightedSum",
]

if not TYPE_CHECKING:  # it would hide misspelt names
    __getattr__ = on_access(__name__)

_LARGEST_LOG_SCALE = math.log(100)  # of the cosines, as published
_ENOUGH, _FEW = 8, 5  # rows per score: enough, and so few that training may be useless


class TraceNormLoss(nn.Module):
    """Negative sum of canonical correlations over all pairs of views, the loss of deep CCA.

    Parameters
    ----------
    reg : float or mapping of str to float, default=1e-4
        Ridge of each view's covariance, in units of its mean variance.

    Raises
    ------
    ValueError
        If a batch has no more rows than scores. Fewer than 8 rows per score cause a warning, once.
    """

    def __init__(self, reg: float | Mapping[str, float] = 1e-4) -> None:
        super().__init__()
        self.reg = reg
        self._warned = False

    def forward(self, scores: Mapping[str, Tensor], batch: Batch) -> Tensor:
        """The loss of a batch."""
        reg = self.reg if isinstance(self.reg, Mapping) else dict.fromkeys(scores, self.reg)
        total = summed(
            functional.trace_norm(scores[p], scores[q], (reg[p], reg[q]))
            for p, q in combinations(scores, 2)
        )
        if self.training and not self._warned:
            self._warned = _warn_of_small_batch(scores)
        return -total


class SoftHGRLoss(nn.Module):
    """Negative sum of `mvcca.deep.functional.soft_hgr` over all pairs of views."""

    def forward(self, scores: Mapping[str, Tensor], batch: Batch) -> Tensor:
        """The loss of a batch."""
        return -summed(functional.soft_hgr(F, G) for F, G in combinations(scores.values(), 2))


class SoftCCALoss(nn.Module):
    """Distance of paired scores plus decorrelation of each view, the loss of `mvcca.deep.SoftCCA`.

        Σ_{p<q} ½ mean_i ‖f_p,i - f_q,i‖² + λ Σ_p Σ_{i≠j} abs(C̃_p,ij)

    with the running covariances C̃ of `mvcca.deep.layers.RunningCovariance`.

    Parameters
    ----------
    widths : mapping of str to int
        Number of scores of each view.
    weight : float
        Weight λ of the decorrelation.
    decay : float or mapping of str to float
        Decay of the running covariances, for all views or by view.
    reduction : {"sum", "mean"}, default="sum"
        Reduction of the off-diagonal terms; see `mvcca.deep.functional.off_diagonal`.
    """

    def __init__(
        self,
        widths: Mapping[str, int],
        weight: float,
        decay: float | Mapping[str, float] = 0.9,
        reduction: str = "sum",
    ) -> None:
        super().__init__()
        decays = decay if isinstance(decay, Mapping) else dict.fromkeys(widths, decay)
        self.weight, self.reduction = weight, reduction
        self.covariances = nn.ModuleList(
            RunningCovariance(width, decays[name]) for name, width in widths.items()
        )

    def forward(self, scores: Mapping[str, Tensor], batch: Batch) -> Tensor:
        """The loss of a batch; in training mode its covariances update the running ones."""
        tensors = list(scores.values())
        distance = summed(functional.squared_distance(F, G) for F, G in combinations(tensors, 2))
        correlation = summed(
            functional.off_diagonal(running(F), self.reduction)
            for running, F in zip(self.covariances, tensors, strict=True)
        )
        return distance + self.weight * correlation


class RankingLoss(nn.Module):
    """Pairwise ranking loss over all pairs of views, optionally through a CCA layer.

    Parameters
    ----------
    margin : float, default=0.5
        Margin of `mvcca.deep.functional.pairwise_ranking`.
    symmetric : bool, default=True
        Rank both ways; otherwise earlier views are queries of later ones.
    reduction : {"mean", "sum"}, default="mean"
        Mean over the mismatches of a batch, or sum.
    layer : CCALayer, optional
        Projects the scores of two views before they are ranked.
    """

    def __init__(
        self,
        margin: float = 0.5,
        *,
        symmetric: bool = True,
        reduction: str = "mean",
        layer: CCALayer | None = None,
    ) -> None:
        super().__init__()
        self.margin, self.symmetric, self.reduction = margin, symmetric, reduction
        self.layer = layer

    def forward(self, scores: Mapping[str, Tensor], batch: Batch) -> Tensor:
        """The loss of a batch."""
        tensors = list(scores.values())
        if self.layer is not None:
            tensors = list(self.layer(*tensors))
        return summed(
            functional.pairwise_ranking(
                F, G, self.margin, symmetric=self.symmetric, reduction=self.reduction
            )
            for F, G in combinations(tensors, 2)
        )


class CLIPLoss(nn.Module):
    """`mvcca.deep.functional.info_nce` over all pairs of views, with a trained temperature.

    Parameters
    ----------
    temperature : float, default=0.07
        Initial temperature; it does not fall below 0.01.
    """

    no_weight_decay = ("log_scale",)

    def __init__(self, temperature: float = 0.07) -> None:
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(-math.log(temperature)))

    def forward(self, scores: Mapping[str, Tensor], batch: Batch) -> Tensor:
        """The loss of a batch."""
        temperature = self.log_scale.clamp(max=_LARGEST_LOG_SCALE).neg().exp()
        pairs = combinations(scores.values(), 2)
        return summed(functional.info_nce(F, G, temperature) for F, G in pairs)


class LabelLoss(nn.Module):
    """Cross entropy of labels: of the softmax for classes, of sigmoids for label sets.

    Parameters
    ----------
    targets : Tensor, shape (n_codes, n_labels)
        Label vector of each code. They are classes if each is the indicator of one label, and label
        sets otherwise.
    """

    targets: Tensor

    def __init__(self, targets: Tensor) -> None:
        super().__init__()
        self.register_buffer("targets", targets, persistent=False)
        indicators = ((targets == 0) | (targets == 1)).all()
        self.are_classes = bool(indicators and (targets.sum(dim=1) == 1).all())

    def forward(self, scores: Mapping[str, Tensor], batch: Batch) -> Tensor:
        """The loss of a batch whose scores are logits, summed over the views."""
        return summed(self.of(logits, batch.labels[name]) for name, logits in scores.items())

    def of(self, logits: Tensor, codes: Tensor) -> Tensor:
        """Mean cross entropy of rows with the given codes."""
        if self.are_classes:
            return nn.functional.cross_entropy(logits, self.targets[codes])
        return nn.functional.binary_cross_entropy_with_logits(logits, self.targets[codes])


class ReconstructionLoss(nn.Module):
    """Squared error of rows reconstructed from scores by one decoder per view.

    Parameters
    ----------
    decoders : Encoders
        Networks from scores to rows, trained with the encoders.
    """

    def __init__(self, decoders: Encoders) -> None:
        super().__init__()
        self.decoders = decoders

    def forward(self, scores: Mapping[str, Tensor], batch: Batch) -> Tensor:
        """Σ_p mean_i ‖x_p,i - d_p(f_p,i)‖²."""
        decoded = self.decoders(scores)
        return summed(
            functional.reconstruction_error(X, decoded[n]) for n, X in batch.views.items()
        )


class WeightedSum(nn.Module):
    """Weighted sum of losses; training histories show each term.

    Parameters
    ----------
    terms : mapping of str to pair of float and callable
        Weight and loss of each term.
    """

    def __init__(self, terms: Mapping[str, tuple[float, Callable[..., Tensor]]]) -> None:
        super().__init__()
        self.terms = dict(terms)
        losses = [loss for _, loss in terms.values()]
        self.losses = nn.ModuleList(loss for loss in losses if isinstance(loss, nn.Module))

    def forward(self, scores: Mapping[str, Tensor], batch: Batch) -> dict[str, Tensor]:
        """Weighted terms of the loss of a batch."""
        return {name: weight * loss(scores, batch) for name, (weight, loss) in self.terms.items()}


def targets_of(labels: Labels | None) -> Tensor:
    """Labels to predict for every code, shape (n_codes, n_labels).

    Indicators of classes or label sets; each distinct real label vector is a class.
    """
    assert labels is not None  # the estimators require them
    if not labels.are_sets:
        return torch.eye(len(labels))
    return torch.from_numpy(labels.vectors.toarray()).float()


def _warn_of_small_batch(scores: Mapping[str, Tensor]) -> bool:
    """Warn if the batch has too few rows per score, and return whether it has."""
    n_rows = len(next(iter(scores.values())))
    width = max(F.shape[1] for F in scores.values())
    if n_rows >= _ENOUGH * width:
        return False
    danger = (
        "mostly due to chance, and the model may be useless on held-out rows"
        if n_rows < _FEW * width
        else "much higher than those of all rows"
    )
    warn(
        f"Batches of {n_rows} rows are small for {width} components: with fewer than {_ENOUGH} "
        f"rows per component, the correlations of a batch are {danger}. Raise batch_size to "
        f"{_ENOUGH * width} or more, or lower n_components."
    )
    return True
