"""Objectives, the losses of deep multi-view methods.

An objective is any callable ``(scores, batch) -> loss``, where scores are tensors by view and the
`Batch` holds the rows that they were computed from. The loss is a tensor, or a mapping of named
terms that are summed. Objectives with parameters or state are modules. They are usable with any
training loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import torch
from torch import Tensor, nn

from mvcca.deep import functional
from mvcca.deep._losses.batch import Batch
from mvcca.deep._losses.retrieval_losses import (
    ACMRLoss,
    BimodalLoss,
    CCLLoss,
    CLIPLoss,
    DeViSELoss,
    LabelLoss,
    PosteriorLoss,
    RankingLoss,
    StructureLoss,
)
from mvcca.deep.encoders import Encoders
from mvcca.deep.layers import RunningCovariance, StochasticGates
from mvcca.machine.warnings import warn

__all__ = [
    "ACMRLoss",
    "Batch",
    "BimodalLoss",
    "CCLLoss",
    "CLIPLoss",
    "CorrNetLoss",
    "DeViSELoss",
    "GateLoss",
    "LabelLoss",
    "PosteriorLoss",
    "RankingLoss",
    "ReconstructionLoss",
    "SoftCCALoss",
    "SoftHGRLoss",
    "StructureLoss",
    "TraceNormLoss",
    "WeightedSum",
]

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
        total = _sum(
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
        return -_sum(functional.soft_hgr(F, G) for F, G in combinations(scores.values(), 2))


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
        distance = _sum(functional.squared_distance(F, G) for F, G in combinations(tensors, 2))
        correlation = _sum(
            functional.off_diagonal(running(F), self.reduction)
            for running, F in zip(self.covariances, tensors, strict=True)
        )
        return distance + self.weight * correlation


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
        return _sum(functional.reconstruction_error(X, decoded[n]) for n, X in batch.views.items())


class GateLoss(nn.Module):
    """Expected number, or share, of open gates, summed over the views.

    Parameters
    ----------
    gates : sequence of StochasticGates
        The gates of each view, part of its encoder.
    weights : sequence of float
        Weight of each view.
    reduction : {"mean", "sum"}, default="mean"
        See `mvcca.deep.functional.expected_open_gates`.
    """

    def __init__(
        self, gates: Sequence[StochasticGates], weights: Sequence[float], reduction: str = "mean"
    ) -> None:
        super().__init__()
        self.gates = tuple(gates)  # not registered: their parameters belong to the encoders
        self.weights, self.reduction = weights, reduction

    def forward(self, scores: Mapping[str, Tensor], batch: Batch) -> Tensor:
        """The penalty, which does not depend on the batch."""
        return _sum(
            weight * functional.expected_open_gates(gates.means, gates.sigma, self.reduction)
            for gates, weight in zip(self.gates, self.weights, strict=True)
        )


class CorrNetLoss(nn.Module):
    """Reconstruction error minus correlation, the loss of `mvcca.deep.CorrNet`.

    Parameters
    ----------
    layers : mapping of str to Linear
        Linear layers of the encoders, with weights W_x, W_y and one shared bias b; the decoders use
        their transposes.
    weight : float
        Weight λ of the correlation.
    sigmoid_output : bool
        Whether the output activation a is the sigmoid (for features between 0 and 1).
    """

    def __init__(
        self, layers: Mapping[str, nn.Linear], weight: float, sigmoid_output: bool
    ) -> None:
        super().__init__()
        self.layers = dict(layers)  # not registered: their parameters belong to the encoders
        self.weight = weight
        self.activation = torch.sigmoid if sigmoid_output else nn.Identity()
        self.offsets = nn.ParameterList(torch.zeros(layer.in_features) for layer in layers.values())

    def forward(self, scores: Mapping[str, Tensor], batch: Batch) -> Tensor:
        """The loss of a batch with scores h(x, 0) and h(0, y)."""
        linear_parts = [batch.views[name] @ layer.weight.T for name, layer in self.layers.items()]
        bias = next(iter(self.layers.values())).bias
        joint = torch.sigmoid(sum(linear_parts) + bias)
        F, G = scores.values()
        error = _sum(
            functional.reconstruction_error(
                batch.views[name], self.activation(hidden @ layer.weight + offset)
            )
            for hidden in (F, G, joint)
            for (name, layer), offset in zip(self.layers.items(), self.offsets, strict=True)
        )
        return error - self.weight * functional.coordinate_correlation(F, G)


class WeightedSum(nn.Module):
    """Weighted sum of losses; training histories show each term.

    Parameters
    ----------
    terms : mapping of str to pair of float and Module
        Weight and loss of each term.
    """

    def __init__(self, terms: Mapping[str, tuple[float, nn.Module]]) -> None:
        super().__init__()
        self.weights = {name: weight for name, (weight, _) in terms.items()}
        self.losses = nn.ModuleList(loss for _, loss in terms.values())

    def forward(self, scores: Mapping[str, Tensor], batch: Batch) -> dict[str, Tensor]:
        """Weighted terms of the loss of a batch."""
        return {
            name: weight * loss(scores, batch)
            for (name, weight), loss in zip(self.weights.items(), self.losses, strict=True)
        }


def _sum(terms: object) -> Tensor:
    return torch.stack(list(terms)).sum()  # type: ignore[call-overload]


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
