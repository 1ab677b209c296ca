"""Layers with torch's default initial weights, drawn from a given generator.

Torch itself draws from its global generator, which estimators leave unchanged.
"""

from __future__ import annotations

import math
import zlib
from typing import TypeVar

import torch
from torch import nn

L = TypeVar("L", bound=nn.Module)


def linear(n_in: int, n_out: int, generator: torch.Generator | None = None) -> nn.Linear:
    """Create a linear layer with torch's default initial weights from the given generator."""
    layer = nn.utils.skip_init(nn.Linear, n_in, n_out, device=_device())
    return _uniform(layer, n_in, generator)


def convolution_1d(
    n_in: int, n_out: int, width: int, generator: torch.Generator | None = None
) -> nn.Conv1d:
    """Create a convolution over time without padding."""
    layer = nn.utils.skip_init(nn.Conv1d, n_in, n_out, width, device=_device())
    return _uniform(layer, n_in * width, generator)


def convolution_2d(
    n_in: int, n_out: int, width: int, generator: torch.Generator | None = None
) -> nn.Conv2d:
    """Create a convolution of images that keeps their height and width."""
    layer = nn.utils.skip_init(nn.Conv2d, n_in, n_out, width, padding=width // 2, device=_device())
    return _uniform(layer, n_in * width**2, generator)


def embedding(n_words: int, size: int, generator: torch.Generator | None = None) -> nn.Embedding:
    """Create vectors of words from N(0, 1), with a vector of zeros for padding, word 0."""
    layer = nn.utils.skip_init(nn.Embedding, n_words, size, padding_idx=0, device=_device())
    if not layer.weight.is_meta:
        with torch.no_grad():
            layer.weight.normal_(generator=generator)[0] = 0
    return layer


def gru(n_in: int, n_out: int, generator: torch.Generator | None = None) -> nn.GRU:
    """Create a recurrent layer that takes batches of sequences."""
    layer = nn.GRU(n_in, n_out, batch_first=True, device="meta")  # skip_init does not take it
    return _uniform(layer.to_empty(device=_device()), n_out, generator)


def normal(
    n_out: int, n_in: int, spread: float, generator: torch.Generator | None = None
) -> torch.Tensor:
    """Draw a matrix of weights from N(0, spread²)."""
    weights = torch.empty(n_out, n_in, device=_device())
    return weights if weights.is_meta else weights.normal_(0, spread, generator=generator)


def derived(generator: torch.Generator | None) -> torch.Generator:
    """A generator seeded by the state of another one, which it leaves unchanged."""
    state = torch.get_rng_state() if generator is None else generator.get_state()
    return torch.Generator().manual_seed(zlib.crc32(state.numpy().tobytes()))


def drawn_seed(generator: torch.Generator) -> int:
    """Seed for a module with its own random generator."""
    return int(torch.randint(2**31 - 1, (1,), generator=generator, device="cpu"))


def _uniform(layer: L, fan_in: int, generator: torch.Generator | None) -> L:
    bound = 1 / math.sqrt(fan_in)
    with torch.no_grad():
        for parameter in layer.parameters():
            if not parameter.is_meta:
                parameter.uniform_(-bound, bound, generator=generator)
    return layer


def _device() -> str:
    """The CPU, whose generators draw weights; "meta" where only shapes are wanted."""
    return "meta" if torch.get_default_device().type == "meta" else "cpu"
