"""Layers of deep CCA methods, as plain modules for any training loop.

They do not use torch's global random generator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from mvcca.deep._networks.cca_layer import CCALayer
from mvcca.deep._networks.dynamically_scaled import DynamicallyScaledLinear
from mvcca.deep._networks.weights import linear
from mvcca.deep.encoders import Standardize
from mvcca.deep.functional import covariance
from mvcca.machine.on_access import on_access

__all__ = [
    "CCALayer",
    "DynamicallyScaledLinear",
    "RunningCovariance",
    "Standardize",
    "StochasticGates",
    "linear",
]

if not TYPE_CHECKING:  # it would hide misspelt names
    __getattr__ = on_access(__name__)


class StochasticGates(nn.Module):
    """Trainable stochastic gates that select features [1]_.

    Features are multiplied by z_i = min(1, max(0, μ_i + ε_i)) in training, with ε_i ~ N(0, σ²)
    drawn once per batch, and by z_i = min(1, max(0, μ_i)) in evaluation. The noise of batch t
    depends on the seed and t only, so that a resumed training draws the same.

    Parameters
    ----------
    n_features : int
        Number of gates.
    sigma : float, default=0.5
        Standard deviation σ of the noise.
    seed : int, default=0
        Seed of the noise and of the initial μ ~ N(0.5, 0.01²).

    References
    ----------
    .. [1] Lindenbaum, Salhov, Averbuch and Kluger, "ℓ0-Sparse Canonical Correlation Analysis",
       ICLR 2022.
    """

    no_weight_decay = ("means",)  # decay would close useful gates

    def __init__(self, n_features: int, sigma: float = 0.5, seed: int = 0) -> None:
        super().__init__()
        self.sigma, self.seed, self.n_drawn = sigma, seed, 0
        self.means = nn.Parameter(torch.empty(n_features))
        if not self.means.is_meta:
            self.means.data = 0.5 + 0.01 * self._noise(n_features)

    def forward(self, X: Tensor) -> Tensor:
        """Multiply rows of shape (n_rows, n_features) by the gates."""
        return X * self.gates()

    def gates(self) -> Tensor:
        """Gates of this batch, shape (n_features,)."""
        if not self.training:
            return self.means.clamp(0, 1)
        noise = self.sigma * self._noise(len(self.means))
        return (self.means + noise.to(self.means, non_blocking=True)).clamp(0, 1)

    def _noise(self, n_features: int) -> Tensor:
        generator = torch.Generator().manual_seed(self.seed + self.n_drawn)
        self.n_drawn += 1
        return torch.randn(n_features, generator=generator, device="cpu")

    def get_extra_state(self) -> dict[str, int]:
        """Position in the noise sequence; part of `state_dict`."""
        return {"seed": self.seed, "n_drawn": self.n_drawn}

    def set_extra_state(self, state: dict[str, int]) -> None:
        """Restore the position in the noise sequence."""
        self.seed, self.n_drawn = state["seed"], state["n_drawn"]


class RunningCovariance(nn.Module):
    """Exponentially weighted average of the covariances of training batches.

    Ĉ_t = α Ĉ_{t-1} + C_t and c_t = α c_{t-1} + 1 give C̃ = Ĉ_t / c_t. Gradients flow through the
    current batch C_t only. In evaluation mode C̃ is the covariance of the batch.

    Parameters
    ----------
    n_components : int
        Width of the scores.
    decay : float, default=0.9
        Decay α.
    """

    total: Tensor
    count: Tensor

    def __init__(self, n_components: int, decay: float = 0.9) -> None:
        super().__init__()
        self.decay = decay
        self.register_buffer("total", torch.zeros(n_components, n_components))
        self.register_buffer("count", torch.zeros(()))

    def forward(self, F: Tensor) -> Tensor:
        """Add the batch F of shape (n_rows, n_components) and return C̃."""
        if not self.training:
            return covariance(F)
        total = self.decay * self.total + covariance(F)
        self.total = total.detach()
        self.count = self.decay * self.count + 1
        return total / self.count
