"""What deep models are made of, as files hold it: a table of names, and of parts to make each of.

Layers are the arguments of their constructors, and tensors; a layer that is not in the table is
neither written nor read. How values reach a file is the business of `mvcca.persistence`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from mvcca.deep import _trees
from mvcca.deep._training_state import TrainingState
from mvcca.deep.layers import DynamicallyScaledLinear, StochasticGates
from mvcca.deep.storage._arguments import CALLBACKS, LAYERS, arguments_of, made_of

# ---- layers --------------------------------------------------------------------------------------


def _parts_of_layer(layer: nn.Module) -> dict[str, Any]:
    arguments, state = arguments_of(layer), layer.state_dict(keep_vars=True)
    plain = made_of(type(layer), arguments)
    _refuse_more(layer, plain)
    if _outline(state) != _outline(plain.state_dict(keep_vars=True)):
        raise TypeError(f"its tensors are not those of {plain}")
    return {"arguments": arguments, "state": state, "training": layer.training}


def _make_layer(cls: type[nn.Module], parts: dict[str, Any]) -> nn.Module:
    layer, state = made_of(cls, parts["arguments"]), parts["state"]
    wanted = _outline(layer.state_dict(keep_vars=True))
    if _outline(state) != wanted:
        raise ValueError(f"{layer} takes tensors {wanted}, got {_outline(state)}")
    for name, tensor in state.items():
        setattr(layer, name, tensor)
    return layer.train(parts["training"])


def _outline(state: Mapping[str, Tensor]) -> dict[str, Any]:
    return {n: (type(t).__name__, tuple(t.shape), t.is_floating_point()) for n, t in state.items()}


def _refuse_more(layer: nn.Module, plain: nn.Module) -> None:
    """What was hung on a layer would be lost."""
    more = vars(layer).keys() - vars(plain).keys()
    more |= {name for name, held in vars(layer).items() if name.endswith("_hooks") and held}
    if more:
        raise TypeError(f"{sorted(more)} was added to a {type(layer).__name__}; take it off")


def _parts_of_sequential(network: nn.Sequential) -> dict[str, Any]:
    _refuse_more(network, nn.Sequential())
    if network._parameters or network._buffers:
        raise TypeError("it has tensors of its own, and not only those of its layers")
    return {"layers": dict(network._modules), "training": network.training}


def _make_sequential(parts: dict[str, Any]) -> nn.Sequential:
    network = nn.Sequential().train(parts["training"])
    for name, layer in parts["layers"].items():
        network.add_module(name, layer)
    return network


_GATES = {"sigma": (int, float), "seed": (int,), "n_drawn": (int,), "means": (nn.Parameter,)}


def _parts_of_gates(gates: StochasticGates) -> dict[str, Any]:
    _refuse_more(gates, StochasticGates(1))
    return {name: getattr(gates, name) for name in (*_GATES, "training")}


def _make_gates(parts: dict[str, Any]) -> StochasticGates:
    gates = StochasticGates(1).train(parts["training"])
    for name, types in _GATES.items():
        if type(parts[name]) not in types:
            raise TypeError(f"StochasticGates takes no {name}={parts[name]!r}")
        setattr(gates, name, parts[name])
    if gates.means.ndim != 1:
        raise ValueError(f"gates are one per feature, got an array of {tuple(gates.means.shape)}")
    return gates


def _parts_of_scaled(layer: DynamicallyScaledLinear) -> dict[str, Any]:
    plain = _smallest_scaled(layer.scaling)
    _refuse_more(layer, plain)
    return {
        "scaling": layer.scaling,
        "scaled": layer.scaled,
        "held": _like_those_of(plain, {**layer._modules, **layer._parameters}),
        "training": layer.training,
    }


def _make_scaled(parts: dict[str, Any]) -> DynamicallyScaledLinear:
    layer = _smallest_scaled(parts["scaling"]).train(parts["training"])
    for name, part in _like_those_of(layer, parts["held"]).items():
        setattr(layer, name, part)
    layer.scaled = True
    _try_on_nothing(layer, layer.linear.weight.shape[1])
    if type(parts["scaled"]) is not bool:
        raise TypeError(f"scaled is true or false, got {parts['scaled']!r}")
    layer.scaled = parts["scaled"]
    return layer


def _smallest_scaled(scaling: str) -> DynamicallyScaledLinear:
    own = torch.Generator()  # what is drawn is replaced
    return DynamicallyScaledLinear(1, 1, (1,), scaling, generator=own)


def _like_those_of(plain: DynamicallyScaledLinear, held: dict[str, Any]) -> dict[str, Any]:
    """What such a layer holds: the same kinds of layers, as many hidden ones as there are."""
    kinds = {name: type(part) for name, part in {**plain._modules, **plain._parameters}.items()}
    hidden = {type(layer) for layer in held.get("hidden", ())}
    if {name: type(part) for name, part in held.items()} != kinds or not hidden <= set(
        map(type, getattr(plain, "hidden", ()))
    ):
        raise TypeError(f"scaling={plain.scaling!r} is not made of {held}")
    return held


def _try_on_nothing(layer: nn.Module, n_features: int) -> Tensor:
    """The output for two rows on the device that has shapes only; raises if shapes do not fit."""
    tensors = chain(layer.parameters(), layer.buffers())
    shadow = deepcopy(layer, {id(tensor): tensor.detach().to("meta") for tensor in tensors})
    return shadow(torch.empty(2, n_features, device="meta"))


def output_width(network: nn.Module, n_features: int) -> int:
    """Number of outputs of a network, found from shapes alone.

    Raises
    ------
    RuntimeError, TypeError, ValueError
        If the network does not take as many features, or its output is no matrix.
    """
    tensors = chain(network.parameters(), network.buffers())
    if strange := {t.dtype for t in tensors if t.is_floating_point()} - {torch.float32}:
        raise TypeError(f"networks compute in float32, got tensors of {strange}")
    out = _try_on_nothing(network, n_features)
    if out.ndim != 2 or len(out) != 2:
        raise ValueError(f"{network} gives {tuple(out.shape)} for 2 rows")
    return out.shape[1]


# ---- tensors, and what is not a layer ------------------------------------------------------------


def _numbers(tensor: Tensor) -> np.ndarray:
    return tensor.detach().cpu().numpy()


def _tensor(array: np.ndarray) -> Tensor:
    return torch.from_numpy(array).clone()


def _parts_of_state(state: TrainingState) -> dict[str, Any]:
    tree, arrays = _trees.taken_apart(state.tree)
    return {**vars(state), "tree": tree, "arrays": arrays}


def _make_state(parts: dict[str, Any]) -> TrainingState:
    tree = _trees.put_together(parts.pop("tree"), parts.pop("arrays"))
    return TrainingState(**parts, tree=tree)


def _parts_of_optimizer(cls: type) -> dict[str, Any]:
    if getattr(torch.optim, cls.__name__, None) is not cls:
        raise TypeError(f"files hold no classes but the optimisers of torch.optim, got {cls}")
    return {"name": cls.__name__}


def _make_optimizer(parts: dict[str, Any]) -> type:
    cls = getattr(torch.optim, parts["name"])
    if not (isinstance(cls, type) and issubclass(cls, torch.optim.Optimizer)):
        raise ValueError(f"{parts['name']!r} is no optimiser of torch.optim")
    return cls


Row = tuple[type, Callable[[Any], dict[str, Any]], Callable[[dict[str, Any]], Any]]

STORED: dict[str, Row] = {  # names in files: type, how it is taken apart and made again
    **{
        f"nn.{cls.__name__}" if cls.__module__.startswith("torch.") else cls.__name__: (
            cls,
            _parts_of_layer,
            partial(_make_layer, cls),
        )
        for cls in LAYERS
    },
    **{cls.__name__: (cls, arguments_of, partial(made_of, cls)) for cls in CALLBACKS},
    "nn.Sequential": (nn.Sequential, _parts_of_sequential, _make_sequential),
    "StochasticGates": (StochasticGates, _parts_of_gates, _make_gates),
    "DynamicallyScaledLinear": (DynamicallyScaledLinear, _parts_of_scaled, _make_scaled),
    "nn.Parameter": (
        nn.Parameter,
        lambda p: {"array": _numbers(p), "requires_grad": p.requires_grad},
        lambda parts: nn.Parameter(_tensor(parts["array"]), parts["requires_grad"]),
    ),
    "Tensor": (
        Tensor,
        lambda t: {"array": _numbers(t)},
        lambda parts: _tensor(parts["array"]),
    ),
    "Optimizer": (type, _parts_of_optimizer, _make_optimizer),
    "TrainingState": (TrainingState, _parts_of_state, _make_state),
}
