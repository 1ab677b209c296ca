"""How files hold deep models: parameters, what `fit` noted of its rows, and tensors of networks.

Default networks are made anew from the parameters and take the tensors of the file. Networks and
losses of the user are given to `mvcca.load` again; the scores of a few training rows tell whether
these networks compute the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from inspect import signature
from typing import Any

import torch
from torch import Generator, Tensor, nn

from mvcca.deep import callbacks, objectives
from mvcca.deep._probe import Probe
from mvcca.deep._training.training import TrainingState
from mvcca.machine.archive import ModelFileError

Row = tuple[type, Callable[[Any], dict[str, Any]], Callable[[dict[str, Any]], Any]]

_PLAIN = (  # stored as the arguments of their constructors
    objectives.TraceNormLoss, objectives.SoftHGRLoss, callbacks.EarlyStopping,
    callbacks.Refinement, callbacks.TotalCorrelation, callbacks.ProgressLines,
)  # fmt: skip


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


STORED: dict[str, Row] = {  # names in files: type, how it is taken apart and made again
    "Probe": (Probe, vars, lambda parts: Probe(**parts)),
    "TrainingState": (TrainingState, vars, lambda parts: TrainingState(**parts)),
    "Tensor": (
        Tensor,
        lambda tensor: {"array": tensor.detach().cpu().numpy()},
        lambda parts: torch.from_numpy(parts["array"]).clone(),
    ),
    "Optimizer": (type, _parts_of_optimizer, _make_optimizer),
    **{cls.__name__: (cls, _arguments_of, partial(_made_of, cls)) for cls in _PLAIN},
}
