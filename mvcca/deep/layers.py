"""Layers of deep CCA methods, as plain modules for any training loop.

They do not use torch's global random generator.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from mvcca.deep.functional import covariance

__all__ = ["DynamicallyScaledLinear", "RunningCovariance", "StochasticGates", "linear"]

_SCALINGS = ("parameters", "outputs", "global", "generated")


def linear(n_in: int, n_out: int, generator: torch.Generator | None = None) -> nn.Linear:
    """Create a linear layer with torch's default initial weights from the given generator."""
    layer = nn.utils.skip_init(nn.Linear, n_in, n_out)
    bound = 1 / math.sqrt(n_in)
    with torch.no_grad():
        layer.weight.uniform_(-bound, bound, generator=generator)
        layer.bias.uniform_(-bound, bound, generator=generator)
    return layer


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
        self.means = nn.Parameter(0.5 + 0.01 * self._noise(n_features))

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
        return torch.randn(n_features, generator=generator)

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


class DynamicallyScaledLinear(nn.Module):
    """Linear layer whose parameters are rescaled for each row by a network of its input [1]_.

    With parameters W, b of the layer, and the outputs S_W(z), S_b(z) of the scaling network,

        y = (S_W(z) ⊙ W) z + S_b(z) ⊙ b.

    The scaling network ends in S = V u + c, where u is its last hidden activation of width H, so
    that

        y_k = Σ_h u_h Σ_d z_d W_kd V_kdh + Σ_d W_kd c_kd z_d + (V_b u + c_b)_k b_k

    is a product with one matrix of shape (d, kH). The scales themselves, of shape (n, d, k), are
    never formed: for a batch of 750 rows they would take 120 MB instead of 19 MB.

    Until `scaled` is set, this is a plain linear layer. The state is part of `state_dict`.

    Parameters
    ----------
    n_in, n_out : int
        Widths d and k of input and output.
    hidden_layer_sizes : tuple of int, default=(128,)
        Widths of the hidden layers of the scaling network, at least one: linear → batch norm →
        ReLU.
    scaling : {"parameters", "outputs", "global", "generated"}, default="parameters"
        What is scaled. "parameters" is the method, the others are ablations of [1]_: "outputs"
        scales the outputs, y = S(z) ⊙ (Wz + b); "global" scales the parameters by the same factors
        for all rows; "generated" uses the output of the network as the parameters.
    start : {"default", "one"}, default="default"
        Initial scales: "default" are small and random, from torch's initial weights as in [1]_, and
        need batch norm after the layer; "one" are close to 1.
    generator : torch.Generator, optional
        Generator of the initial weights; by default torch's global one.

    References
    ----------
    .. [1] Friedlander and Wolf, "Dynamically-Scaled Deep Canonical Correlation Analysis", 2022,
       eqs. (1) and (2).
    """

    def __init__(
        self,
        n_in: int,
        n_out: int,
        hidden_layer_sizes: tuple[int, ...] = (128,),
        scaling: str = "parameters",
        start: str = "default",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if scaling not in _SCALINGS:
            raise ValueError(f"scaling must be one of {_SCALINGS}, got {scaling!r}.")
        if not hidden_layer_sizes and scaling != "global":
            raise ValueError("hidden_layer_sizes must name at least one layer, got none.")
        self.scaling, self.scaled = scaling, False
        self.linear = linear(n_in, n_out, generator)
        n_scales = n_out if scaling == "outputs" else n_out * n_in + n_out
        if scaling == "global":
            self.scales = nn.Parameter(torch.ones(n_scales))
            return
        hidden, width = [], n_in
        for size in hidden_layer_sizes:
            hidden += [linear(width, size, generator), nn.BatchNorm1d(size), nn.ReLU()]
            width = size
        self.hidden = nn.Sequential(*hidden)
        self.last = linear(width, n_scales, generator)
        if start == "one":
            with torch.no_grad():
                self.last.weight.mul_(1e-2)
                self.last.bias.fill_(1)

    def forward(self, z: Tensor) -> Tensor:
        """Map rows of shape (n_rows, n_in) to rows of shape (n_rows, n_out)."""
        if not self.scaled:
            return self.linear(z)
        W, b = self.linear.weight, self.linear.bias
        n_weights = W.numel()
        if self.scaling == "global":
            scales_W, scales_b = self.scales[:n_weights].view_as(W), self.scales[n_weights:]
            return nn.functional.linear(z, scales_W * W, scales_b * b)
        u = self.hidden(z)
        if self.scaling == "outputs":
            return self.last(u) * self.linear(z)
        V = self.last.weight[:n_weights].view(*W.shape, -1)
        c = self.last.bias[:n_weights].view_as(W)
        offset = nn.functional.linear(u, self.last.weight[n_weights:], self.last.bias[n_weights:])
        if self.scaling == "parameters":
            V, c, offset = W[..., None] * V, W * c, offset * b
        # V has shape (k, d, H): a product of (n, d) and (d, kH), then a sum over H for each row.
        spread = (z @ V.transpose(0, 1).reshape(len(W.T), -1)).view(len(z), *V.shape[::2])
        return torch.bmm(spread, u[:, :, None])[:, :, 0] + z @ c.T + offset

    def get_extra_state(self) -> dict[str, bool]:
        """Whether scaling has started; part of `state_dict`."""
        return {"scaled": self.scaled}

    def set_extra_state(self, state: dict[str, bool]) -> None:
        """Restore whether scaling has started."""
        self.scaled = state["scaled"]
