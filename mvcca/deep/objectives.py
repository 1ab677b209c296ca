"""The losses that networks are trained with: of the scores of all views of a batch, one number.

An objective is any callable ``(scores, batch) -> loss``: scores are tensors by view, in order, and
the `Batch` holds what they were made of. Those with parameters or a memory are modules. They know
nothing of the trainer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import torch
from torch import Tensor, nn

from mvcca._warnings import warn
from mvcca.deep import functional
from mvcca.deep.encoders import Encoders
from mvcca.deep.layers import RunningCovariance, StochasticGates

__all__ = [
    "Batch",
    "CorrNetLoss",
    "GateLoss",
    "ReconstructionLoss",
    "SoftCCALoss",
    "SoftHGRLoss",
    "TraceNormLoss",
    "WeightedSum",
]

_ENOUGH, _FEW = 8, 5  # rows per score


@dataclass(frozen=True, eq=False)
class Batch:
    """What an objective may look at besides scores.

    Attributes
    ----------
    views : dict of str to Tensor, shape (n_rows, n_features)
        The rows themselves.
    rows : ndarray, shape (n_rows,)
        Their positions among the rows given to `fit`, of which `validation_fraction` sets some
        aside. In a validation batch from `X_val`, positions among the rows of `X_val`.
    epoch : int
        From 1.
    """

    views: dict[str, Tensor]
    rows: np.ndarray
    epoch: int


class TraceNormLoss(nn.Module):
    """Minus the sum of canonical correlations, over all pairs of views: the loss of deep CCA.

    Parameters
    ----------
    reg : float or mapping of str to float, default=1e-4
        Ridge on every view's covariance in units of its mean variance, or by view.

    Raises
    ------
    ValueError
        If a batch has no more rows than there are scores. With less than 8 rows per score there is
        a warning, once.
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
    """Minus `functional.soft_hgr`, over all pairs of views."""

    def forward(self, scores: Mapping[str, Tensor], batch: Batch) -> Tensor:
        """The loss of a batch."""
        return -_sum(functional.soft_hgr(F, G) for F, G in combinations(scores.values(), 2))


class SoftCCALoss(nn.Module):
    """Distance of the views of an object, and decorrelation in place of whitening [1]_.

        Σ_{p<q} ½ mean_i ‖f_p,i - f_q,i‖² + λ Σ_p Σ_{i≠j} abs(C̃_p,ij)

    with the running covariances C̃ of `mvcca.deep.layers.RunningCovariance`.

    Parameters
    ----------
    widths : mapping of str to int
        Number of scores of each view.
    weight : float
        λ.
    decay : float or mapping of str to float
        Of the running covariances, of all views or by view.
    reduction : {"sum", "mean"}, default="sum"
        Of the terms off the diagonal; see `functional.off_diagonal`.

    References
    ----------
    .. [1] Chang, Xiang and Hospedales, "Scalable and Effective Deep CCA via Soft Decorrelation",
       CVPR 2018.
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
        """The loss of a batch, whose covariances are added to those that run."""
        tensors = list(scores.values())
        apart = _sum(functional.squared_distance(F, G) for F, G in combinations(tensors, 2))
        correlated = _sum(
            functional.off_diagonal(running(F), self.reduction)
            for running, F in zip(self.covariances, tensors, strict=True)
        )
        return apart + self.weight * correlated


class ReconstructionLoss(nn.Module):
    """Squared error of the rows that a decoder per view makes of the scores.

    Parameters
    ----------
    decoders : Encoders
        Of scores, rows; trained along.
    """

    def __init__(self, decoders: Encoders) -> None:
        super().__init__()
        self.decoders = decoders

    def forward(self, scores: Mapping[str, Tensor], batch: Batch) -> Tensor:
        """Σ_p mean_i ‖x_p,i - d_p(f_p,i)‖²."""
        made = self.decoders(scores)
        return _sum(
            functional.reconstruction_error(X, made[name]) for name, X in batch.views.items()
        )


class GateLoss(nn.Module):
    """Expected number, or share, of open gates, over the views.

    Parameters
    ----------
    gates : list of StochasticGates
        Which are part of the encoders.
    weights : list of float
        Of the views.
    reduction : {"mean", "sum"}, default="mean"
        See `functional.expected_open_gates`.
    """

    def __init__(
        self, gates: list[StochasticGates], weights: list[float], reduction: str = "mean"
    ) -> None:
        super().__init__()
        self.gates = tuple(gates)  # not registered: their parameters are the encoders' own
        self.weights, self.reduction = weights, reduction

    def forward(self, scores: Mapping[str, Tensor], batch: Batch) -> Tensor:
        """The penalty, which depends on no row."""
        return _sum(
            weight * functional.expected_open_gates(gates.means, gates.sigma, self.reduction)
            for gates, weight in zip(self.gates, self.weights, strict=True)
        )


class CorrNetLoss(nn.Module):
    """Reconstruction of both views from either and from both, and correlation of the former [1]_.

        Σ_{h ∈ {h(x,0), h(0,y), h(x,y)}} mean_i ‖x - x̂(h)‖² + ‖y - ŷ(h)‖²
            - λ Σ_j corr(h_j(x,0), h_j(0,y))

    with h(x, y) = σ(W_x x + W_y y + b), and decoders that share W: x̂(h) = a(W_xᵀ h + b_x).

    Parameters
    ----------
    layers : mapping of str to Linear
        W and b of each view, the linear layers of the encoders; b is one parameter of all.
    weight : float
        λ.
    sigmoid_output : bool
        Whether a is σ (features between 0 and 1) or nothing.

    References
    ----------
    .. [1] Chandar, Khapra, Larochelle and Ravindran, "Correlational Neural Networks", Neural
       Computation 2016.
    """

    def __init__(
        self, layers: Mapping[str, nn.Linear], weight: float, sigmoid_output: bool
    ) -> None:
        super().__init__()
        self.layers = dict(layers)  # not registered: their parameters are the encoders' own
        self.weight = weight
        self.activation = torch.sigmoid if sigmoid_output else nn.Identity()
        self.offsets = nn.ParameterList(torch.zeros(layer.in_features) for layer in layers.values())

    def forward(self, scores: Mapping[str, Tensor], batch: Batch) -> Tensor:
        """The loss of a batch of scores h(x, 0) and h(0, y)."""
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
    """Several losses, each times a number.

    Parameters
    ----------
    *terms : pair of float and Module
    """

    def __init__(self, *terms: tuple[float, nn.Module]) -> None:
        super().__init__()
        self.weights = [weight for weight, _ in terms]
        self.losses = nn.ModuleList(loss for _, loss in terms)

    def forward(self, scores: Mapping[str, Tensor], batch: Batch) -> Tensor:
        """The loss of a batch."""
        return _sum(
            weight * loss(scores, batch)
            for weight, loss in zip(self.weights, self.losses, strict=True)
        )


def _sum(terms: object) -> Tensor:
    return torch.stack(list(terms)).sum()  # type: ignore[call-overload]


def _warn_of_small_batch(scores: Mapping[str, Tensor]) -> bool:
    """Whether there was something to say."""
    n_rows = len(next(iter(scores.values())))
    width = max(F.shape[1] for F in scores.values())
    if n_rows >= _ENOUGH * width:
        return False
    danger = (
        "Correlations of so few are mostly made by chance, and what is learned may not hold for "
        "other rows at all"
        if n_rows < _FEW * width
        else "Correlations of a batch are then higher than they are by a good part"
    )
    warn(
        f"Batches of {n_rows} rows are few for {width} components: fewer than {_ENOUGH} rows per "
        f"component. {danger}. Raise batch_size to {_ENOUGH * width} or more, or lower "
        "n_components."
    )
    return True
