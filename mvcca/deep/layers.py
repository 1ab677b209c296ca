"""Layers that deep CCA methods are made of, as plain modules that know nothing of training loops.

None of them draws from torch's global random generator.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from mvcca.deep.functional import covariance

__all__ = ["DynamicallyScaledLinear", "RunningCovariance", "StochasticGates", "linear"]

_SCALINGS = ("parameters", "outputs", "global", "generated")


def linear(n_in: int, n_out: int, generator: torch.Generator | None = None) -> nn.Linear:
    """A linear layer with torch's default initial weights, drawn from a generator of one's own."""
    layer = nn.utils.skip_init(nn.Linear, n_in, n_out)
    bound = 1 / math.sqrt(n_in)
    with torch.no_grad():
        layer.weight.uniform_(-bound, bound, generator=generator)
        layer.bias.uniform_(-bound, bound, generator=generator)
    return layer


class StochasticGates(nn.Module):
    """Gates on features that learn which to let through [1]_.

    In training z_i = min(1, max(0, μ_i + ε_i)) with ε ~ N(0, σ²), drawn once per batch; in
    evaluation z_i = min(1, max(0, μ_i)). Noise t is a function of the seed and of t alone, so that
    it can be drawn again after a restart.

    Parameters
    ----------
    n_features : int
        Gates.
    sigma : float, default=0.5
        σ.
    seed : int, default=0
        Of the noise, and of the initial μ ~ N(0.5, 0.01²).

    References
    ----------
    .. [1] Lindenbaum, Salhov, Averbuch and Kluger, "ℓ0-Sparse Canonical Correlation Analysis",
       ICLR 2022.
    """

    no_weight_decay = ("means",)  # it would close gates that are of use

    def __init__(self, n_features: int, sigma: float = 0.5, seed: int = 0) -> None:
        super().__init__()
        self.sigma, self.seed, self.n_drawn = sigma, seed, 0
        self.means = nn.Parameter(0.5 + 0.01 * self._noise(n_features))

    def forward(self, X: Tensor) -> Tensor:
        """Let rows of shape (n_rows, n_features) through."""
        return X * self.gates()

    def gates(self) -> Tensor:
        """The gates of this batch, shape (n_features,)."""
        if not self.training:
            return self.means.clamp(0, 1)
        noise = self.sigma * self._noise(len(self.means))
        return (self.means + noise.to(self.means, non_blocking=True)).clamp(0, 1)

    def _noise(self, n_features: int) -> Tensor:
        generator = torch.Generator().manual_seed(self.seed + self.n_drawn)
        self.n_drawn += 1
        return torch.randn(n_features, generator=generator)

    def get_extra_state(self) -> dict[str, int]:
        """How much noise was drawn; part of `state_dict`."""
        return {"seed": self.seed, "n_drawn": self.n_drawn}

    def set_extra_state(self, state: dict[str, int]) -> None:
        """Go on drawing where a state was taken."""
        self.seed, self.n_drawn = state["seed"], state["n_drawn"]


class RunningCovariance(nn.Module):
    """Covariance of scores over the batches of training, older ones counting less.

    Ĉ_t = α Ĉ_{t-1} + C_t and c_t = α c_{t-1} + 1 give C̃ = Ĉ_t / c_t. The gradient flows through the
    batch at hand, C_t, alone. In evaluation it is the covariance of the batch.

    Parameters
    ----------
    n_components : int
        Width of the scores.
    decay : float, default=0.9
        α.
    """

    total: Tensor
    count: Tensor

    def __init__(self, n_components: int, decay: float = 0.9) -> None:
        super().__init__()
        self.decay = decay
        self.register_buffer("total", torch.zeros(n_components, n_components))
        self.register_buffer("count", torch.zeros(()))

    def forward(self, F: Tensor) -> Tensor:
        """C̃ with the batch F, shape (n_rows, n_components), added to it."""
        if not self.training:
            return covariance(F)
        total = self.decay * self.total + covariance(F)
        self.total = total.detach()
        self.count = self.decay * self.count + 1
        return total / self.count


class DynamicallyScaledLinear(nn.Module):
    """A linear layer whose parameters are scaled for every row, by a network of its input [1]_.

    With the layer's parameters W, b and a scaling network that makes S_W(z), S_b(z) of a row z,

        y = (S_W(z) ⊙ W) z + S_b(z) ⊙ b.

    The network ends in S = V u + c of its last hidden activation u, of width H, so that

        y_k = Σ_h u_h Σ_d z_d W_kd V_kdh + Σ_d W_kd c_kd z_d + (V_b u + c_b)_k b_k,

    one product with a matrix of d x kH: scales of shape n x d x k, which take 120 MB per batch of
    750 where this takes 19, are never made.

    Until `scaled` is set this is a plain linear layer, and what the scaling network holds takes no
    part; it is part of `state_dict`.

    Parameters
    ----------
    n_in, n_out : int
        d and k.
    hidden_layer_sizes : tuple of int, default=(128,)
        Of the scaling network: linear, batch norm, ReLU each; at least one.
    scaling : {"parameters", "outputs", "global", "generated"}, default="parameters"
        What is scaled. The others are ablations of [1]_: "outputs" scales the n_out outputs,
        y = S(z) ⊙ (Wz + b); "global" scales parameters by factors that are the same for all rows;
        "generated" puts the network's output in the place of the parameters.
    start : {"default", "one"}, default="default"
        First scales. "default" are torch's own of the last layer, small and random as in [1]_, and
        batch norm after the layer makes up for it; "one" keeps what the layer did so far.
    generator : torch.Generator, optional
        Of the initial weights; torch's own, if None.

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
        """Of rows of shape (n_rows, n_in), rows of shape (n_rows, n_out)."""
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
        # V is (k, d, H): one product of n x d with d x kH, and then a sum over H for every row.
        spread = (z @ V.transpose(0, 1).reshape(len(W.T), -1)).view(len(z), *V.shape[::2])
        return torch.bmm(spread, u[:, :, None])[:, :, 0] + z @ c.T + offset

    def get_extra_state(self) -> dict[str, bool]:
        """Whether rows are scaled yet; part of `state_dict`."""
        return {"scaled": self.scaled}

    def set_extra_state(self, state: dict[str, bool]) -> None:
        """Scale, or not, as when a state was taken."""
        self.scaled = state["scaled"]
