"""The machine: memory, torch's device, evaluation mode, denormal numbers and random state."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

import torch
from torch import Tensor, nn

from mvcca.machine.config import get_config
from mvcca.machine.memory import available_bytes

_LITTLE = 2**24  # bytes, for which the free memory is not asked


def check_memory(needed: int, asker: str, purpose: str, remedy: str) -> None:
    """Refuse what does not fit in the free memory."""
    if needed > _LITTLE and needed > (available := available_bytes()):
        raise MemoryError(
            f"{asker} needs about {needed:,} bytes ({needed / 1e9:.1f} GB) for {purpose}, and "
            f"{available / 1e9:.1f} GB are available. {remedy}"
        )


def device_of_networks() -> torch.device:
    """The configured device; if none is, the first GPU that torch finds, else the CPU."""
    name = get_config().device or ("cuda" if torch.cuda.is_available() else "cpu")
    if name.startswith("cupy"):
        raise ValueError(
            f"Networks train with torch, and device={name!r} asks for CuPy. "
            "Use device='cuda', 'torch:cuda:0' or 'cpu'."
        )
    device = torch.device(name.removeprefix("torch:"))
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise RuntimeError(
            f"device={name!r} is a GPU that torch does not find. Install torch with CUDA, or use "
            "device='cpu'."
        )
    return device


@contextmanager
def evaluating(*modules: nn.Module) -> Iterator[None]:
    """Put modules in evaluation mode and restore the mode of every layer afterwards."""
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
    """Flush numbers below 1e-38 to 0 on the CPU, where they make arithmetic ten times slower."""
    before = float(torch.tensor(1e-40) * 1) == 0
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


class IsolatedGenerator:
    """Separate random state for torch's global generator; with seed None, the global one.

    Threads that train at once take turns, since they share the global generator.
    """

    _turn = RLock()

    def __init__(self, seed: int | None) -> None:
        self.states: list[Tensor] | None = None
        self._seed = seed

    @contextmanager
    def active(self, device: torch.device) -> Iterator[None]:
        """Continue from the last state in the body, and restore the outer state afterwards."""
        if self._seed is None:
            yield
            return
        cuda = [device] if device.type == "cuda" else []
        with self._turn, torch.random.fork_rng(devices=cuda):
            if self.states is None:
                torch.manual_seed(self._seed)
            else:
                torch.set_rng_state(self.states[0].cpu())
                for state, where in zip(self.states[1:], cuda, strict=False):  # device may differ
                    torch.cuda.set_rng_state(state.cpu(), where)
            try:
                yield
            finally:
                self.states = [
                    torch.get_rng_state(),
                    *(torch.cuda.get_rng_state(where) for where in cuda),
                ]
