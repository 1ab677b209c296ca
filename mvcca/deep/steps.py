"""Steps of the trainer: how parameters follow the loss of a batch, and mean losses of an epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from mvcca.deep._losses.batch import summed
from mvcca.deep.encoders import Encoders
from mvcca.deep.objectives import Loss
from mvcca.machine.on_access import on_access

__all__ = ["descend", "parameter_groups"]

if not TYPE_CHECKING:  # it would hide misspelt names
    __getattr__ = on_access(__name__)

_MOST = 4096  # steps whose losses are kept: each is a small block of the device's memory

Optimizer: TypeAlias = Callable[[list[dict[str, Any]]], torch.optim.Optimizer]


def total(loss: Loss) -> Tensor:
    """The sum of the terms of a loss."""
    return summed(loss.values()) if isinstance(loss, Mapping) else loss


def descend(optimizer: torch.optim.Optimizer, loss: Tensor, device: torch.device) -> Tensor:
    """Step down the gradient of a loss unless one of them is not finite; return if they are.

    On a GPU, where a test would make the host wait, a skipped step is one with gradient 0.
    """
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    gradients = [p.grad for g in optimizer.param_groups for p in g["params"] if p.grad is not None]
    if device.type != "cpu":
        is_finite = _zero_unless_finite(gradients, loss.detach())
        optimizer.step()
        return is_finite
    is_finite = torch.isfinite(loss.detach())
    if gradients:
        norms = torch._foreach_norm(gradients, 2)  # torch's fast path
        is_finite = is_finite & torch.isfinite(torch.stack(norms)).all()
    if is_finite:
        optimizer.step()
    return is_finite


def _zero_unless_finite(gradients: list[Tensor], loss: Tensor) -> Tensor:
    """Set gradients to 0 if one of them, or the loss, is not finite; return if all are.

    They are taken as one vector, because on a GPU a call takes longer than most gradients.
    """
    if not gradients:
        return torch.isfinite(loss)
    parts = [loss.to(gradients[0].device), *gradients]
    together = torch.cat([part.reshape(-1) for part in parts])
    is_finite = torch.linalg.vector_norm(together, float("inf")) < float("inf")
    _, *parts = torch.where(is_finite, together, 0).split([part.numel() for part in parts])
    torch._foreach_copy_(
        gradients, [part.view_as(own) for part, own in zip(parts, gradients, strict=True)]
    )
    return is_finite


def parameter_groups(
    modules: Sequence[nn.Module], learning_rates: Mapping[str, float] | None = None
) -> list[dict[str, Any]]:
    """Parameter groups: by learning rate, and without decay if named in ``no_weight_decay``.

    With learning rates by view, parameters of the objective have the lowest of them.
    """
    undecayed = {
        id(module.get_parameter(name))
        for root in modules
        for module in root.modules()
        for name in getattr(module, "no_weight_decay", ())
    }
    rates: dict[int, float] = {}
    if learning_rates:
        encoders = modules[0]
        assert isinstance(encoders, Encoders)
        for name in encoders.names:
            rates |= {id(p): learning_rates[name] for p in encoders[name].parameters()}
    lowest = min(learning_rates.values()) if learning_rates else None
    parameters = {id(p): p for module in modules for p in module.parameters()}
    groups: dict[Any, dict[str, Any]] = {}
    for number, p in parameters.items():
        options: dict[str, Any] = {"weight_decay": 0.0} if number in undecayed else {}
        if learning_rates:
            options["lr"] = rates.get(number, lowest)
        groups.setdefault(tuple(options.items()), {"params": [], **options})["params"].append(p)
    found = sorted(groups.values(), key=lambda group: "weight_decay" in group)
    return found or [{"params": []}]


def figures_of(loss: Loss) -> dict[str, Tensor]:
    """The loss and its named terms, as columns of a history."""
    figures = {"loss": total(loss).detach()}
    if isinstance(loss, Mapping):  # copies, since a later step may change a term that is a buffer
        terms = torch.stack(list(loss.values())).detach().unbind()
        figures |= {f"loss_{name}": term for name, term in zip(loss, terms, strict=True)}
    return figures


def mean_figures(
    steps: Iterable[tuple[Tensor, dict[str, Tensor]]],
) -> tuple[dict[str, float], int, int]:
    """Take steps; return the mean figures of the finite ones, and the numbers of all and of these.

    Each step tells whether it was finite, and its figures. They stay on the device until the last
    step, so that the host does not wait.
    """
    steps, sums, n_steps, n_finite = iter(steps), dict[str, float](), 0, 0
    while some := list(islice(steps, _MOST)):
        finite = torch.stack([is_finite for is_finite, _ in some]).cpu().numpy()
        n_steps, n_finite = n_steps + len(some), n_finite + int(finite.sum())
        for name in dict.fromkeys(name for _, figures in some for name in figures):
            has_it = [name in figures for _, figures in some]
            kept = torch.stack([figures[name] for _, figures in some if name in figures])
            values = np.where(finite[has_it], kept.cpu().double().numpy(), 0)
            # One after the other, whatever the number of steps that are added up at a time.
            sums[name] = float(np.cumsum([sums.get(name, 0.0), *values])[-1])
    return {name: value / max(n_finite, 1) for name, value in sums.items()}, n_steps, n_finite
