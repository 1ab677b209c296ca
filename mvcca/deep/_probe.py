"""Scores of a few training rows, by which a network of the user is known again.

Files hold the tensors of such a network and no code. Tensors that fit do not tell whether the
layers between them are the same; scores do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
import torch
from torch import nn

from mvcca.deep._training.host import IsolatedGenerator
from mvcca.deep.trainer import encoded
from mvcca.machine.warnings import warn

_ROUNDING = 3e-4  # of float32: half of its digits, in units of the size of a score
_MOST_ROUNDING = 0.03  # of networks that compute in fewer bits


@dataclass(frozen=True, eq=False)
class Probe:
    """What a network computes from a few rows, in evaluation mode."""

    layers: str  # the network as torch prints it
    scores: np.ndarray | None  # (n_rows, n_scores); None if others each time

    @classmethod
    def of(cls, network: nn.Module, name: str, rows: Any) -> Probe:
        """Apply the network of a view to rows; warn if it gives other scores each time."""
        first, second = (_scores(network, name, rows) for _ in "12")
        if np.array_equal(first, second, equal_nan=True):
            return cls(repr(network), first)
        warn(
            f"The network of view {name!r} gives other scores each time it is applied to the same "
            "rows, so that loading cannot tell whether its layers are the same."
        )
        return cls(repr(network), None)

    def difference(self, network: nn.Module, name: str, rows: Any) -> str | None:
        """Why a network is not the one that was probed, if so; warn where it may not be."""
        other = list(_differing_lines(self.layers, repr(network)))
        if self.scores is None:
            warn(
                f"The network of view {name!r} could not be compared with the one that was saved, "
                "which gives other scores each time. Make sure that its layers are the same."
            )
            return None
        found = _scores(network, name, rows)
        if found.shape != self.scores.shape:
            return f"its scores are of shape {found.shape}, not {self.scores.shape}"
        off = _relative(found, self.scores)
        if off > _MOST_ROUNDING:
            where = f": {other[0]}" if other else ""
            return f"its scores of {len(found)} training rows are off by {off:.2g}{where}"
        if off > _ROUNDING:
            other.append(f"its scores are off by {off:.2g}, which is rounding only in few bits")
        if other:
            warn(
                f"The network of view {name!r} gives about the scores of the one that was saved, "
                f"but it may train differently: {other[0]}."
            )
        return None


def _scores(network: nn.Module, name: str, rows: Any) -> np.ndarray:
    """Scores that do not depend on the state of torch in this program."""
    cpu = torch.device("cpu")
    with IsolatedGenerator(0).active(cpu), torch.autocast("cpu", enabled=False):
        return encoded(network, name, rows)


def _relative(one: np.ndarray, two: np.ndarray) -> float:
    """Largest difference in units of the size of a column; infinity where only one is a number."""
    if not np.array_equal(np.isfinite(one), np.isfinite(two)):
        return np.inf
    one, two = (np.nan_to_num(each.astype(float), posinf=0, neginf=0) for each in (one, two))
    sizes = np.sqrt(np.mean(two**2, axis=0))
    sizes = np.maximum(sizes, 1e-2 * sizes.max(initial=0))  # one that is nearly zero is rounding
    return float((np.abs(one - two) / np.where(sizes > 0, sizes, 1)).max(initial=0))


def _differing_lines(in_file: str, here: str) -> Iterator[str]:
    for saved, given in zip_longest(in_file.splitlines(), here.splitlines(), fillvalue="nothing"):
        if saved != given:
            yield f"{saved.strip()} in the file is {given.strip()} here"
