"""How torch is set up around a training: device, modes, treatment of tiny numbers, random draws.

Each is restored afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


def device_named(name: str) -> torch.device:
    """The device; "auto" is the first GPU there is, else the CPU.

    Raises
    ------
    ValueError
        If it is none that torch knows.
    RuntimeError
        If it is not there.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ValueError(
            f"Expected device to be 'auto', 'cpu', 'cuda', 'cuda:1' or 'mps', got {name!r}."
        ) from error
    present = {
        "cpu": True,
        "cuda": torch.cuda.is_available() and (device.index or 0) < torch.cuda.device_count(),
        "mps": torch.backends.mps.is_available(),
    }
    if not present.get(device.type, False):
        raise RuntimeError(f"device={name!r} is not there. Use device='auto' or 'cpu'.")
    return device


@contextmanager
def evaluating(*modules: nn.Module) -> Iterator[None]:
    """Modules in evaluation mode; every layer's own mode is restored afterwards."""
    modes = [(layer, layer.training) for module in modules for layer in module.modules()]
    try:
        for module in modules:
            module.eval()
        yield
    finally:
        for layer, training in modes:
            layer.training = training


@contextmanager
def without_denormals() -> Iterator[None]:
    """Numbers below 1e-38 are 0 on the CPU, where weights that fade through them cost ten times."""
    before = float(torch.tensor(1e-40) * 1) == 0
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


class Draws:
    """Torch's global generator on loan: what draws from it inside leaves it as it was outside.

    Parameters
    ----------
    seed : int or None
        Of the draws; with None the global generator is not touched.
    """

    def __init__(self, seed: int | None) -> None:
        self.states: list[Tensor] | None = None
        self._seed = seed

    @contextmanager
    def on_loan(self, device: torch.device) -> Iterator[None]:
        """Draw here, and go on from here the next time."""
        if self._seed is None:
            yield
            return
        cuda = [device] if device.type == "cuda" else []
        with torch.random.fork_rng(devices=cuda):
            if self.states is None:
                torch.manual_seed(self._seed)
            else:
                torch.set_rng_state(self.states[0].cpu())
                for state, where in zip(self.states[1:], cuda, strict=False):  # it may have moved
                    torch.cuda.set_rng_state(state.cpu(), where)
            try:
                yield
            finally:
                self.states = [
                    torch.get_rng_state(),
                    *(torch.cuda.get_rng_state(where) for where in cuda),
                ]
