"""A linear layer whose parameters are rescaled for each row by a network of its input."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from mvcca.deep._networks.weights import derived, linear

_SCALINGS = ("parameters", "outputs", "global", "generated")


class DynamicallyScaledLinear(nn.Module):
    """Linear layer whose parameters are rescaled for each row by a network of its input [1]_.

    With parameters W, b of the layer, and the outputs S_W(c), S_b(c) of the scaling network for the
    context c of the row, which is z itself or what `forward` is given,

        y = (S_W(c) ⊙ W) z + S_b(c) ⊙ b.

    The scaling network ends in S = V u + v, where u is its last hidden activation of width H, so
    that, with z extended by a one and W by a row for b,

        y_k = Σ_h u_h Σ_d z_d W_dk V_dkh + Σ_d z_d W_dk v_dk

    is a product with one matrix of shape (d + 1, kH). The scales themselves, of shape (n, d + 1,
    k), are never formed: for a batch of 750 rows they would take 120 MB instead of 19 MB.

    Until `scaled` is set, this is a plain linear layer, whose initial weights are those that the
    same generator gives `linear`. The state is part of `state_dict`.

    Parameters
    ----------
    n_in, n_out : int
        Widths d and k of input and output.
    hidden_layer_sizes : tuple of int, default=(128,)
        Widths of the hidden layers of the scaling network, at least one: linear → batch norm
        without parameters → ReLU.
    scaling : {"parameters", "outputs", "global", "generated"}, default="parameters"
        What is scaled. "parameters" is the method, the others are ablations of [1]_: "outputs"
        scales the outputs, y = S ⊙ (Wz + b); "global" scales the parameters by the same factors for
        all rows; "generated" uses the outputs of the network as the parameters, from the start.
    start : {"default", "one"}, default="default"
        Initial scales: "default" are small and random, from torch's initial weights as in [1]_, and
        need batch norm after the layer; "one" are close to 1.
    generator : torch.Generator, optional
        Generator of the initial weights; by default torch's global one. The scaling network has a
        generator derived from it, so that other layers start from the same weights as without
        scaling.
    n_context : int, optional
        Width of the context; by default n_in.

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
        *,
        n_context: int | None = None,
    ) -> None:
        super().__init__()
        if scaling not in _SCALINGS:
            raise ValueError(f"scaling must be one of {_SCALINGS}, got {scaling!r}.")
        if not hidden_layer_sizes and scaling != "global":
            raise ValueError("hidden_layer_sizes must name at least one layer, got none.")
        self.scaling, self.scaled = scaling, scaling == "generated"
        self.shape = (n_out, n_in)
        layer = linear(n_in, n_out, generator)  # drawn in any case: later layers stay the same
        if scaling != "generated":
            self.linear = layer
        n_scales = n_out if scaling == "outputs" else n_out * n_in + n_out
        if scaling == "global":
            self.scales = nn.Parameter(torch.ones(n_scales))
            return
        own = derived(generator)
        hidden, width = [], n_in if n_context is None else n_context
        for size in hidden_layer_sizes:
            hidden += [linear(width, size, own), nn.BatchNorm1d(size, affine=False), nn.ReLU()]
            width = size
        self.hidden = nn.Sequential(*hidden)
        self.last = linear(width, n_scales, own)
        if start == "one":
            with torch.no_grad():
                self.last.weight.mul_(1e-2)
                self.last.bias.fill_(1)

    def forward(self, z: Tensor, context: Tensor | None = None) -> Tensor:
        """Map rows of shape (n_rows, n_in) to rows of shape (n_rows, n_out).

        Parameters
        ----------
        z : Tensor, shape (n_rows, n_in)
        context : Tensor, shape (n_rows, n_context), optional
            What the scaling network sees; by default z.
        """
        if not self.scaled:
            return self.linear(z)
        context = z if context is None else context
        if self.scaling == "outputs":
            return self.last(self.hidden(context)) * self.linear(z)
        n_out, n_in = self.shape
        z1 = torch.cat([z, z.new_ones(len(z), 1)], dim=1)  # the bias is the last row of W
        if self.scaling == "global":
            return z1 @ (self.scales.view(n_in + 1, n_out) * self._W())
        u = self.hidden(context)
        V, v = self.last.weight.view(n_in + 1, n_out, -1), self.last.bias.view(n_in + 1, n_out)
        if self.scaling == "parameters":
            W = self._W()
            V, v = W[..., None] * V, W * v
        spread = (z1 @ V.flatten(1)).view(len(z), *V.shape[1:])
        return torch.bmm(spread, u[:, :, None])[:, :, 0] + z1 @ v

    def _W(self) -> Tensor:
        """Parameters of the layer by input, shape (n_in + 1, n_out)."""
        return torch.cat([self.linear.weight.T, self.linear.bias[None]])

    def scales_of(self, context: Tensor) -> Tensor:
        """The scales of every row, formed in full: for figures, not for training.

        Parameters
        ----------
        context : Tensor, shape (n_rows, n_context)
            What the scaling network sees; z by default.

        Returns
        -------
        Tensor, shape (n_rows, n_out, n_in + 1)
            Scales of W and, in the last column, of b. For ``scaling="outputs"`` the scale of an
            output stands in its row; for "generated" these are the parameters themselves.
        """
        n_out, n_in = self.shape
        if not self.scaled:
            return context.new_ones(len(context), n_out, n_in + 1)
        if self.scaling == "global":
            scales = self.scales.expand(len(context), -1)
        else:
            scales = self.last(self.hidden(context))
        if self.scaling == "outputs":
            return scales[:, :, None].expand(-1, -1, n_in + 1)
        return scales.reshape(len(context), n_in + 1, n_out).transpose(1, 2)

    def get_extra_state(self) -> dict[str, bool]:
        """Whether scaling has started; part of `state_dict`."""
        return {"scaled": self.scaled}

    def set_extra_state(self, state: dict[str, bool]) -> None:
        """Restore whether scaling has started."""
        self.scaled = state["scaled"]


class DynamicEncoder(nn.Module):
    """Network that ends in a dynamically scaled layer whose scales may depend on its input, too.

        f(x) = output((S_W(c) ⊙ W) z + S_b(c) ⊙ b),   z = trunk(x),   c = z, x or [z, x].

    Parameters
    ----------
    trunk : Module
        Maps rows x to z.
    scaled : DynamicallyScaledLinear
        The last linear layer; its `n_context` must be the width of c.
    output : Module
        Applied to the output of the last layer, such as a batch norm.
    sees : {"z", "x", "zx"}, default="zx"
        The context c of the scaling network.
    """

    def __init__(
        self, trunk: nn.Module, scaled: DynamicallyScaledLinear, output: nn.Module, sees: str = "zx"
    ) -> None:
        super().__init__()
        if sees not in ("z", "x", "zx"):
            raise ValueError(f'sees must be "z", "x" or "zx", got {sees!r}.')
        self.trunk, self.scaled, self.output, self.sees = trunk, scaled, output, sees

    def forward(self, X: Tensor) -> Tensor:
        """Map rows of shape (n_rows, n_features) to scores of shape (n_rows, n_scores)."""
        z, context = self.features(X)
        return self.output(self.scaled(z, context))

    def features(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """The input z of the last layer, and the context c of its scales."""
        z = self.trunk(X)
        return z, {"z": z, "x": X}[self.sees] if self.sees != "zx" else torch.cat([z, X], dim=1)
