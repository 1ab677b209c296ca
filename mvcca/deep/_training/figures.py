"""Losses of the steps of an epoch, which stay on the device until the epoch ends."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from mvcca.deep.objectives import Loss
from mvcca.deep.steps import total

_MOST = 4096  # steps whose losses are kept: each is a small block of the device's memory


class LossSums:
    """Sums of losses and their named terms over the steps that were finite."""

    def __init__(self) -> None:
        self._steps: list[tuple[dict[str, Tensor], Tensor]] = []
        self._sums: dict[str, float] = {}
        self._n_steps = self._n_finite = 0

    def add(self, loss: Loss, is_finite: Tensor) -> None:
        """Keep the loss of a step; the host does not wait for the device."""
        self._steps.append((figures_of(loss), is_finite))
        if len(self._steps) == _MOST:
            self._add_up()

    def means(self) -> tuple[dict[str, float], int, int]:
        """Mean of each column over the finite steps, and the numbers of all and of finite steps."""
        self._add_up()
        means = {name: value / max(self._n_finite, 1) for name, value in self._sums.items()}
        return means, self._n_steps, self._n_finite

    def _add_up(self) -> None:
        if not self._steps:
            return
        finite = torch.stack([is_finite for _, is_finite in self._steps]).cpu().numpy()
        self._n_steps += len(finite)
        self._n_finite += int(finite.sum())
        for name in dict.fromkeys(name for figures, _ in self._steps for name in figures):
            has_it = np.array([name in figures for figures, _ in self._steps])
            kept = [figures[name] for figures, _ in self._steps if name in figures]
            values = torch.stack(kept).cpu().double().numpy()
            values = np.where(finite[has_it], values, 0)
            # One after the other, whatever the number of steps that are added up at a time.
            self._sums[name] = float(np.cumsum([self._sums.get(name, 0.0), *values])[-1])
        self._steps = []


def figures_of(loss: Loss) -> dict[str, Tensor]:
    """The loss and its named terms, as columns of a history."""
    figures = {"loss": total(loss).detach()}
    if isinstance(loss, Mapping):  # copies, since a later step may change a term that is a buffer
        terms = torch.stack(list(loss.values())).detach().unbind()
        figures |= {f"loss_{name}": term for name, term in zip(loss, terms, strict=True)}
    return figures
