"""Record what a network computes from a few rows, and compare another network with the record.

Files hold the tensors of networks with layers of the user's classes, and no code. Tensors that fit
do not tell whether the layers between them are the same; scores of a few training rows do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from mvcca.blocks import RowSource, take_rows
from mvcca.deep._training.host import IsolatedGenerator
from mvcca.machine.warnings import warn

MOST_ROWS = 8
_MOST_NUMBERS = 2**18  # of an input or output that are summarised
_FLOAT32 = float(np.finfo(np.float32).eps)
_TF32 = 2.0**-10  # of convolutions on GPUs
_OF_PRODUCTS = {"highest": _FLOAT32, "high": _TF32, "medium": 2.0**-7}  # torch's names


@dataclass(frozen=True, eq=False)
class Probe:
    """What a network computed from a few rows, in evaluation mode.

    Attributes
    ----------
    scores : ndarray, shape (n_rows, n_scores)
        Its output.
    modules : list of (str, str)
        Name and description of every module that was called, in the order in which their first
        calls returned: a module follows those that it calls.
    figures : ndarray, shape (n_modules, 2, 3)
        Summary of the input and of the output of each.
    eps : float
        Machine epsilon of the least precise numbers that were computed.
    """

    scores: np.ndarray
    modules: list[tuple[str, str]]
    figures: np.ndarray
    eps: float

    @classmethod
    def of(cls, network: nn.Module, scores: Callable[[], np.ndarray]) -> Probe:
        """Record a network while ``scores()`` applies it.

        The result is the same if torch's global generator, autocast or default precision of
        products are in another state.
        """
        like = next(network.parameters(), torch.empty(0))
        watch = _Watch()
        with (
            IsolatedGenerator(0).active(like.device),
            torch.autocast(like.device.type, enabled=False),
            watch.on(network),
        ):
            computed = scores()
        eps = max(watch.eps, _OF_PRODUCTS[torch.get_float32_matmul_precision()])
        if like.device.type != "cpu":
            eps = max(eps, _TF32)
        figures = [[watch.inputs[name], out] for name, (_, out) in watch.outputs.items()]
        modules = [(name, described) for name, (described, _) in watch.outputs.items()]
        return cls(computed, modules, np.array(figures).reshape(-1, 2, 3), eps)

    def agrees(self, other: Probe) -> bool:
        """Whether scores are equal but for rounding."""
        return self.scores.shape == other.scores.shape and bool(
            (self._excess(other) <= self._allowed(other)).all()
        )

    def difference(self, other: Probe) -> str:
        """How far another network's scores are off, and the first module that differs."""
        if self.scores.shape != other.scores.shape:
            off = f"of shape {other.scores.shape}, not {self.scores.shape}"
        else:
            beyond = self._excess(other) > self._allowed(other)
            off = f"off by {self._excess(other)[beyond].max():.2g}, where rounding makes at most "
            off += f"{np.broadcast_to(self._allowed(other), beyond.shape)[beyond].max():.2g}"
        return f"its scores of {len(self.scores)} training rows are {off}. {self._culprit(other)}"

    def other_settings(self, other: Probe) -> list[str]:
        """Modules that are not described alike, such as dropout of another share."""
        here = dict(other.modules)
        return [
            _both(name, described, here[name])
            for name, described in self.modules
            if here.get(name, described) != described
        ]

    def _tolerance(self, other: Probe) -> float:
        return float(np.sqrt(max(self.eps, other.eps)))  # half of the digits

    def _allowed(self, other: Probe) -> np.ndarray:
        """Rounding of each column of scores; one that is nearly zero has that of the others."""
        sizes = np.sqrt(np.mean(np.square(self.scores, dtype=float), axis=0))
        return self._tolerance(other) * np.maximum(sizes, 1e-2 * sizes.max(initial=0))

    def _excess(self, other: Probe) -> np.ndarray:
        return _distance(self.scores, other.scores)

    def _culprit(self, other: Probe) -> str:
        """The innermost module that computes another output from the same input."""
        here = {m[0]: (m[1], f) for m, f in zip(other.modules, other.figures, strict=True)}
        for (name, described), (given, found) in zip(self.modules, self.figures, strict=True):
            if name not in here:
                return f"Module {name!r} is {described} in the file, and is not used here."
            other_described, (other_given, other_found) = here[name]
            if self._same(other, given, other_given) and not self._same(other, found, other_found):
                return _both(name, described, other_described)
        return "No module differs on its own."

    def _same(self, other: Probe, one: np.ndarray, two: np.ndarray) -> bool:
        return bool((_distance(one, two) <= self._tolerance(other) * np.nan_to_num(one[1])).all())


class _Watch:
    """Summaries of the inputs and outputs of a network's modules, in their first calls."""

    def __init__(self) -> None:
        self.inputs: dict[str, np.ndarray] = {}
        self.outputs: dict[str, tuple[str, np.ndarray]] = {}
        self.eps = _FLOAT32

    @contextmanager
    def on(self, network: nn.Module) -> Iterator[None]:
        """Watch the modules of a network in the body."""
        handles = []
        try:
            for name, layer in network.named_modules():
                before = layer.register_forward_pre_hook(
                    partial(self._before, name), with_kwargs=True
                )
                after = layer.register_forward_hook(partial(self._after, name))
                handles += [before, after]
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _before(self, name: str, layer: nn.Module, given: Any, named: Any) -> None:
        self.inputs.setdefault(name, _summary((given, named)))  # layers may write into it

    def _after(self, name: str, layer: nn.Module, given: Any, found: Any) -> None:
        described = f"{type(layer).__name__}({layer.extra_repr()})"
        self.outputs.setdefault(name, (described, _summary(found)))
        for tensor in _tensors(found):
            if tensor.is_floating_point():
                self.eps = max(self.eps, torch.finfo(tensor.dtype).eps)


def probe_rows(block: Any) -> Any:
    """A few rows of a view, in memory."""
    positions = np.unique(np.linspace(0, block.shape[0] - 1, MOST_ROWS).astype(np.intp))
    rows = take_rows(block, positions)
    return rows.read(0, rows.shape[0]) if isinstance(rows, RowSource) else rows


def check_network(
    what: str, network: nn.Module, probe: Probe | None, scores: Callable[[], np.ndarray]
) -> str | None:
    """The reason why a network is not the recorded one, if any; warn where it is not known.

    Parameters
    ----------
    what : str
        The network, for messages.
    network : Module
    probe : Probe or None
        The record; None if it could not be made.
    scores : callable
        Applies the network to the recorded rows.
    """
    if probe is None:
        warn(
            f"{what} could not be compared with the one that was saved: the file holds no scores "
            "to compare with, as saving has warned. Make sure that its layers are the same."
        )
        return None
    found = Probe.of(network, scores)
    if not probe.agrees(found):
        return probe.difference(found)
    if other := probe.other_settings(found):
        warn(
            f"{what} gives the scores of the one that was saved, but it may train differently. "
            f"{' '.join(other)}"
        )
    return None


def _both(name: str, in_file: str, here: str) -> str:
    which = f"Module {name!r}" if name else "The network itself"
    if in_file == here:
        return f"{which}, {here}, computes something else from the same input."
    return f"{which} is {in_file} in the file and {here} here."


def _summary(value: Any) -> np.ndarray:
    """Mean, root mean square and a projection of the numbers in tensors."""
    x = torch.cat([_numbers(tensor) for tensor in _tensors(value)] or [torch.zeros(1)]).numpy()
    if not len(x):
        return np.zeros(3)
    with np.errstate(invalid="ignore", over="ignore"):
        return np.array([x.mean(), np.sqrt(np.mean(x * x)), x @ np.cos(np.arange(len(x))) / len(x)])


def _numbers(tensor: Tensor) -> Tensor:
    tensor = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    flat = tensor.detach().reshape(-1)
    return flat[:: 1 + len(flat) // _MOST_NUMBERS].cpu().double()


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor) and value.layout == torch.strided:
        yield value
    elif isinstance(value, Mapping):
        yield from _tensors(tuple(value.values()))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _tensors(part)


def _distance(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """Absolute differences; infinity where only one is NaN, or infinite."""
    with np.errstate(invalid="ignore"):
        apart = np.abs(one.astype(float) - two)
    same = (one == two) | (np.isnan(one) & np.isnan(two))
    return np.where(same, 0, np.nan_to_num(apart, nan=np.inf, posinf=np.inf))
