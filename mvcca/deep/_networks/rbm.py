"""Restricted Boltzmann machines, whose hidden units become layers of networks."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, softplus

from mvcca.deep._networks.weights import normal

_OF_COUNTS = 0.01  # standard deviation of initial weights, which are multiplied by word counts


class RBM(nn.Module):
    """Restricted Boltzmann machine with binary hidden units, for contrastive divergence [1]_.

    Visible units v and hidden units h have the probability exp(-E(v, h)) / Z with

        E(v, h) = φ(v) - bᵀv - s cᵀh - hᵀWv.

    Parameters
    ----------
    n_visible, n_hidden : int
        Number of units.
    visible : {"bernoulli", "gaussian", "replicated_softmax"}, default="bernoulli"
        Bernoulli units have φ = 0 and s = 1; values between 0 and 1 are taken for probabilities.
        Gaussian ones have variance 1: φ = ‖v‖²/2, s = 1. For the replicated softmax [2]_, v are the
        counts of s = Σv words, in any order; the number of orders is part of the probability.
    generator : torch.Generator, optional
        Generator of the initial weights, from N(0, 1 / n_visible), or N(0, 0.01²) for word counts;
        by default torch's global one.

    References
    ----------
    .. [1] Hinton, "Training Products of Experts by Minimizing Contrastive Divergence", Neural
       Computation 2002.
    .. [2] Salakhutdinov and Hinton, "Replicated Softmax: an Undirected Topic Model", NIPS 2009.
    """

    length: Tensor  # mean s of the rows trained on
    n_rows: Tensor

    def __init__(
        self,
        n_visible: int,
        n_hidden: int,
        visible: str = "bernoulli",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.visible = visible
        spread = _OF_COUNTS if visible == "replicated_softmax" else n_visible**-0.5
        self.weight = nn.Parameter(normal(n_hidden, n_visible, spread, generator))  # W
        self.hidden_bias = nn.Parameter(torch.zeros(n_hidden))  # c
        self.visible_bias = nn.Parameter(torch.zeros(n_visible))  # b
        self.register_buffer("length", torch.ones(()))
        self.register_buffer("n_rows", torch.zeros(()))

    def forward(self, V: Tensor) -> Tensor:
        """P(h = 1 | v) of rows of visible units: (n_rows, n_hidden)."""
        return torch.sigmoid(self._activation(V))

    def mean(self, H: Tensor, lengths: Tensor | float = 1.0) -> Tensor:
        """E(v | h) of rows of hidden units: (n_rows, n_visible); of s words for word counts."""
        activation = H @ self.weight + self.visible_bias
        if self.visible == "bernoulli":
            return torch.sigmoid(activation)
        return activation if self.visible == "gaussian" else lengths * activation.softmax(dim=1)

    def free_energy(self, V: Tensor) -> Tensor:
        """-log Σ_h exp(-E(v, h)) of rows of visible units: (n_rows,)."""
        energy = -V @ self.visible_bias - softplus(self._activation(V)).sum(dim=1)
        return energy + V.square().sum(dim=1) / 2 if self.visible == "gaussian" else energy

    def contrastive_divergence(self, V: Tensor) -> Tensor:
        """Mean free energy of rows minus that of their reconstructions, after one Gibbs step.

        Its gradient is that of CD-1: no gradient flows through the reconstructions, the means of
        visible units given drawn hidden units. Draws are those of torch's global generator.
        """
        with torch.no_grad():
            reconstructed = self.mean(torch.bernoulli(self(V)), self._lengths(V))
            if self.training:
                self.n_rows += len(V)
                self.length += (self._lengths(V) - self.length).sum() / self.n_rows
        return (self.free_energy(V) - self.free_energy(reconstructed)).mean()

    def inferred(self, V: Tensor, columns: slice, n_steps: int = 10) -> Tensor:
        """P(h = 1) of rows of some of the visible units, Bernoulli ones: (n_rows, n_hidden).

        The other visible units are inferred by mean-field: they and the hidden units take their
        expectations given each other, in turn.
        """
        own = linear(V, self.weight[:, columns], self.hidden_bias)
        W, b = (
            torch.cat([part[..., : columns.start], part[..., columns.stop :]], dim=-1)
            for part in (self.weight, self.visible_bias)
        )
        others = torch.sigmoid(b).expand(len(V), -1)
        for _ in range(n_steps):
            H = torch.sigmoid(own + linear(others, W))
            others = torch.sigmoid(H @ W + b)
        return torch.sigmoid(own + linear(others, W))

    def start(self, layer: nn.Linear, mirrors: Iterable[nn.Linear] = ()) -> None:
        """Set a layer of a network to the hidden units, and layers of decoders to the visible ones.

        The biases of hidden units are those for the mean number of words of the rows trained on.
        """
        with torch.no_grad():
            layer.weight.copy_(self.weight)
            layer.bias.copy_(self.length * self.hidden_bias)
            for mirror in mirrors:
                mirror.weight.copy_(self.weight.T)
                mirror.bias.copy_(self.visible_bias)

    def _activation(self, V: Tensor) -> Tensor:
        return linear(V, self.weight) + self._lengths(V) * self.hidden_bias

    def _lengths(self, V: Tensor) -> Tensor:
        """The s of each row: (n_rows, 1)."""
        ones = V.new_ones(len(V), 1)
        return V.sum(dim=1, keepdim=True) if self.visible == "replicated_softmax" else ones
