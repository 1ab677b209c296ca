"""How files hold deep models: parameters, what `fit` noted of its rows, and tensors of networks.

Default networks are made anew from the parameters and take the tensors of the file. Networks and
losses of the user are given to `mvcca.load` again; the scores of a few training rows tell whether
these networks compute the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from inspect import signature
from itertools import zip_longest
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor, nn

from mvcca.deep import callbacks, objectives
from mvcca.deep._training.host import IsolatedGenerator
from mvcca.deep._training.training import TrainingState
from mvcca.deep.trainer import encoded
from mvcca.machine.archive import ModelFileError
from mvcca.machine.warnings import warn

_ROUNDING = 3e-4  # of float32: half of its digits, in units of the size of a score
_MOST_ROUNDING = 0.03  # of networks that compute in fewer bits

Row = tuple[type, Callable[[Any], dict[str, Any]], Callable[[dict[str, Any]], Any]]

# Stored as the arguments of their constructors.
_PLAIN = (objectives.TraceNormLoss, callbacks.Refinement, callbacks.ValidationScore)


def parts_of_deep(estimator: Any, parts: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters and attributes of a deep estimator, with tensors in place of networks."""
    parts = dict(parts)
    if networks := parts.pop("encoders_", None):
        made = _networks_of(estimator)
        for name, network in networks.items():
            if _outline(network.state_dict()) != _outline(made[name].state_dict()):
                raise TypeError(
                    f"the network of view {name!r} is not the one that its parameters describe. "
                    "Restore the parameters as they were in fit, or fit again"
                )
        parts["networks"] = {name: network.state_dict() for name, network in networks.items()}
        parts["probes"] = {
            name: Probe.of(networks[name], name, rows)
            for name, rows in estimator._probe_rows.items()
        }
    return parts


def put_networks(estimator: Any, networks: Mapping[str, Any], probes: Mapping[str, Probe]) -> None:
    """Give a loaded estimator its networks, with the tensors of a file."""
    with torch.device("meta"):  # shapes alone: a file may ask for networks of any size
        outlines = {n: _outline(N.state_dict()) for n, N in _networks_of(estimator).items()}
    for name, wanted in outlines.items():
        if _outline(networks[name]) != wanted:
            raise ModelFileError(
                f"the network of view {name!r} has tensors {wanted}, and those in the file are "
                f"{_outline(networks[name])}. Pass networks of the same layers"
            )
    estimator.encoders_ = _networks_of(estimator)
    for name, network in estimator.encoders_.items():
        network.load_state_dict(networks[name])
    for name, rows in estimator._probe_rows.items():
        reason = probes[name].difference(estimator.encoders_[name], name, rows)
        if reason is not None:
            raise ModelFileError(
                f"the network of view {name!r} is not the one that was saved: {reason}. Pass "
                "networks of the same layers"
            )


def _networks_of(estimator: Any) -> dict[str, nn.Module]:
    encoders = estimator._new_networks(Generator())
    return {name: encoders.whole[name].eval() for name in encoders.names}


def _outline(state: Mapping[str, Any]) -> dict[str, Any]:
    """Types of tensors, by name; an extra state has the names of its values."""
    return {
        name: (str(part.dtype), tuple(part.shape)) if isinstance(part, Tensor) else sorted(part)
        for name, part in state.items()
    }


# ---- networks of the user ------------------------------------------------------------------------
# Files hold the tensors of such a network and no code. Tensors that fit do not tell whether the
# layers between them are the same; scores of a few training rows do.


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


# ---- other parts of a model ----------------------------------------------------------------------


def _arguments_of(made: Any) -> dict[str, Any]:
    named = signature(type(made)).parameters.values()
    return {p.name: getattr(made, p.name) for p in named if p.kind is p.POSITIONAL_OR_KEYWORD}


def _made_of(cls: type, arguments: dict[str, Any]) -> Any:
    return cls(**arguments)


def _parts_of_optimizer(cls: type) -> dict[str, Any]:
    if getattr(torch.optim, cls.__name__, None) is not cls:
        raise TypeError(f"files hold no classes but the optimizers of torch.optim, got {cls}")
    return {"name": cls.__name__}


def _make_optimizer(parts: dict[str, Any]) -> type:
    cls = getattr(torch.optim, parts["name"])
    if not (isinstance(cls, type) and issubclass(cls, torch.optim.Optimizer)):
        raise ValueError(f"{parts['name']!r} is not an optimizer of torch.optim")
    return cls


def _make_state(parts: dict[str, Any]) -> TrainingState:
    """A state of training; in older files the decoders of `DCCAE` are the second loss of a sum."""
    state = TrainingState(**parts)
    for tensors in state.tree["modules"]:
        for name in [name for name in tensors if name.startswith("losses.1.")]:
            tensors[name.removeprefix("losses.1.")] = tensors.pop(name)
    return state


STORED: dict[str, Row] = {  # names in files: type, how it is taken apart and made again
    "Probe": (Probe, vars, lambda parts: Probe(**parts)),
    "TrainingState": (TrainingState, vars, _make_state),
    "Tensor": (
        Tensor,
        lambda tensor: {"array": tensor.detach().cpu().numpy()},
        lambda parts: torch.from_numpy(parts["array"]).clone(),
    ),
    "Optimizer": (type, _parts_of_optimizer, _make_optimizer),
    **{cls.__name__: (cls, _arguments_of, partial(_made_of, cls)) for cls in _PLAIN},
}
