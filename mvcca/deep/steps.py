"""Training steps: how the parameters of networks and objective follow the loss of a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from mvcca.deep.encoders import Encoders

__all__ = ["AdversarialStep", "Step", "parameter_groups"]

Optimizer: TypeAlias = Callable[[list[dict[str, Any]]], torch.optim.Optimizer]
Loss: TypeAlias = Tensor | Mapping[str, Tensor]


class Step:
    """One step of one optimizer down the gradient of the loss.

    Parameters
    ----------
    optimizer : callable
        Factory of an optimizer from a list of parameter groups, such as
        ``partial(torch.optim.RMSprop, lr=1e-3)``.
    learning_rates : mapping of str to float, optional
        Learning rate of the network of each view, instead of the one of the optimizer.

    Attributes
    ----------
    optimizers : list of torch.optim.Optimizer
        The optimizers, after `prepare`.
    """

    def __init__(
        self, optimizer: Optimizer, learning_rates: Mapping[str, float] | None = None
    ) -> None:
        self.optimizer, self.learning_rates = optimizer, dict(learning_rates or {})
        self.optimizers: list[torch.optim.Optimizer] = []

    def prepare(self, modules: Sequence[nn.Module]) -> None:
        """Create the optimizers for the parameters of the encoders and of the objective."""
        self.optimizers = [self.optimizer(parameter_groups(modules, self.learning_rates))]

    def take(self, loss_of: Callable[[], Loss], device: torch.device) -> tuple[Loss, Tensor]:
        """Make the step; return the loss and whether it and its gradient were finite.

        ``loss_of()`` computes the loss of the batch with the present parameters.
        """
        loss = loss_of()
        return loss, descend(self.optimizers[0], total(loss), device)


class AdversarialStep(Step):
    """Alternate between the networks and an adversary, which is a part of the objective.

    The networks, and all other parts of the objective, take a step down the gradient of the other
    terms of the loss minus the adversary's term; then the adversary takes a step down the gradient
    of its term for the new networks. With `mvcca.deep.layers.GradientReversal` in front of the
    adversary, `Step` updates both at once.

    Parameters
    ----------
    optimizer : callable
        Factory of an optimizer from a list of parameter groups; called once for each side.
    learning_rates : mapping of str to float, optional
        Learning rate of the network of each view, instead of the one of the optimizer.
    term : str, default="adversary"
        Name of the adversary's term of the loss, and of the attribute of the objective that holds
        its network.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        learning_rates: Mapping[str, float] | None = None,
        term: str = "adversary",
    ) -> None:
        super().__init__(optimizer, learning_rates)
        self.term = term

    def prepare(self, modules: Sequence[nn.Module]) -> None:
        """Create an optimizer for the adversary, and one for all other parameters."""
        adversary = getattr(modules[-1], self.term, None)
        if not isinstance(adversary, nn.Module):
            raise TypeError(
                f"AdversarialStep needs an objective with a module {self.term!r}, got "
                f"{modules[-1]!r}."
            )
        groups = parameter_groups(modules, self.learning_rates)
        apart = {id(p) for p in adversary.parameters()}
        self.optimizers = [
            self.optimizer(_chosen(groups, lambda p: id(p) not in apart)),
            self.optimizer(_chosen(groups, lambda p: id(p) in apart)),
        ]

    def take(self, loss_of: Callable[[], Loss], device: torch.device) -> tuple[Loss, Tensor]:
        """Make a step for each side; return the loss before them and whether all was finite."""
        loss = loss_of()
        if not isinstance(loss, Mapping) or self.term not in loss:
            raise ValueError(f"AdversarialStep needs a loss with a term {self.term!r}, got {loss}.")
        networks, adversary = self.optimizers
        are_finite = descend(networks, total(loss) - 2 * loss[self.term], device)
        again = loss_of()[self.term]
        return loss, are_finite & descend(adversary, again, device)


def total(loss: Loss) -> Tensor:
    """The sum of the terms of a loss."""
    return torch.stack(list(loss.values())).sum() if isinstance(loss, Mapping) else loss


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


def _chosen(groups: list[dict[str, Any]], wanted: Callable[[Any], bool]) -> list[dict[str, Any]]:
    chosen = [{**group, "params": [p for p in group["params"] if wanted(p)]} for group in groups]
    return [group for group in chosen if group["params"]]
