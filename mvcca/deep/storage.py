"""How files hold deep models: which layers, losses and callbacks may be in them, and their parts.

A layer is stored as the arguments of its constructor and its tensors. Every argument is also an
attribute, from which it is read. `mvcca.persistence` writes and reads the values. `register_layer`
adds classes of the user; of networks with layers of any other class, files hold the tensors only.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import partial
from inspect import signature
from itertools import chain
from types import NoneType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from mvcca.deep import callbacks, objectives
from mvcca.deep._networks.probe import Probe
from mvcca.deep._training.training_state import TrainingState
from mvcca.deep._training.trees import put_together, taken_apart
from mvcca.deep.encoders import (
    WCNN,
    DynamicEncoder,
    WordCNN,
    WordCNNRNN,
    takes_integers,
)
from mvcca.deep.layers import DynamicallyScaledLinear, Standardize, StochasticGates
from mvcca.deep.trainer import encoded

__all__ = ["register_layer"]

_OF_TORCH = (
    "Linear Embedding Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d BatchNorm1d BatchNorm2d "
    "BatchNorm3d InstanceNorm1d InstanceNorm2d LayerNorm GroupNorm Dropout Dropout1d Dropout2d "
    "AlphaDropout MaxPool1d MaxPool2d AvgPool1d AvgPool2d AdaptiveAvgPool1d AdaptiveAvgPool2d "
    "AdaptiveMaxPool1d AdaptiveMaxPool2d Flatten Unflatten Identity Tanh Sigmoid LogSigmoid "
    "Softsign ReLU ReLU6 SELU SiLU Mish Hardsigmoid Hardswish ELU CELU LeakyReLU PReLU GELU "
    "Softplus Hardtanh Softmax LogSoftmax GLU"
)
LAYERS = (
    *(getattr(nn, name) for name in _OF_TORCH.split()),
    objectives.TraceNormLoss,
    objectives.SoftHGRLoss,
)
CALLBACKS = (
    callbacks.EarlyStopping, callbacks.Refinement, callbacks.TotalCorrelation,
    callbacks.ProgressLines,
)  # fmt: skip

_OF_LAYERS = (nn.Sequential, DynamicEncoder)
_MOST_FEATURES = 2**24  # of the rows that try a network: a file may declare any number

# ---- arguments of constructors -------------------------------------------------------------------

_NAMES: dict[tuple[type, ...], str] = {  # of the arguments that files hold, by their types
    (int,): "in_features out_features in_channels out_channels num_features num_groups "
    "num_channels groups num_embeddings embedding_dim num_parameters start_dim end_dim patience "
    "later_patience times",
    (int, float): "eps p negative_slope alpha beta threshold min_val max_val norm_type factor",
    (bool,): "bias affine track_running_stats elementwise_affine inplace return_indices ceil_mode "
    "count_include_pad scale_grad_by_freq sparse",
    (int, tuple): "kernel_size stride dilation output_padding normalized_shape unflattened_size",
    (str,): "padding_mode approximate",
    (int, NoneType): "dim padding_idx divisor_override n_components",
    (int, float, NoneType): "momentum max_norm",
    (int, str, tuple): "padding",
    (int, NoneType, tuple): "output_size",
    (int, float, dict): "reg",
}
_TYPES = {name: types for types, names in _NAMES.items() for name in names.split()}


def argument_names(cls: type) -> list[str]:
    """Arguments of a constructor that files hold."""
    return [name for name in signature(cls).parameters if name in _TYPES]


def _arguments_of(made: Any) -> dict[str, Any]:
    arguments = {name: _plain(name, getattr(made, name)) for name in argument_names(type(made))}
    return _checked(type(made), arguments)


def _plain(name: str, value: Any) -> Any:
    if name == "bias":  # the argument is a truth value, the attribute the bias itself
        return value is not None
    if isinstance(value, list | tuple):
        return tuple(_plain(name, item) for item in value)
    return value.item() if isinstance(value, np.generic) else value


def _checked(cls: type, arguments: dict[str, Any]) -> dict[str, Any]:
    names = set(argument_names(cls))
    if not names - {"bias"} <= arguments.keys() <= names:  # torch adds `bias` to more and more
        raise TypeError(f"{cls.__name__} is not made of {sorted(arguments)}")
    for name, value in arguments.items():
        items = value if type(value) is tuple else (value,)
        if not {type(value), *map(type, items)} <= set(_TYPES[name]):
            raise TypeError(f"{cls.__name__} takes no {name}={value!r}")
    return arguments


def _made_of(cls: type, arguments: dict[str, Any]) -> Any:
    """What the constructor makes, without memory for tensors: a file may ask for any size."""
    with torch.device("meta"):
        return cls(**_checked(cls, arguments))


# ---- layers --------------------------------------------------------------------------------------


def _parts_of_layer(layer: nn.Module) -> dict[str, Any]:
    arguments, state = _arguments_of(layer), layer.state_dict(keep_vars=True)
    plain = _made_of(type(layer), arguments)
    _refuse_more(layer, plain)
    if _outline(state) != _outline(plain.state_dict(keep_vars=True)):
        raise TypeError(f"its tensors are not those of {plain}")
    return {"arguments": arguments, "state": state, "training": layer.training}


def _make_layer(cls: type[nn.Module], parts: dict[str, Any]) -> nn.Module:
    layer, state = _made_of(cls, parts["arguments"]), parts["state"]
    wanted = _outline(layer.state_dict(keep_vars=True))
    if _outline(state) != wanted:
        raise ValueError(f"{layer} takes tensors {wanted}, got {_outline(state)}")
    return _with_attributes(layer.train(parts["training"]), state)


def _outline(state: Mapping[str, Any]) -> dict[str, Any]:
    return {
        n: (type(t).__name__, tuple(t.shape), t.is_floating_point())
        if isinstance(t, Tensor)
        else type(t).__name__  # an extra state
        for n, t in state.items()
    }


def _with_attributes(layer: Any, attributes: Mapping[str, Any]) -> Any:
    for name, value in attributes.items():
        setattr(layer, name, value)
    return layer


def _refuse_more(layer: nn.Module, plain: nn.Module) -> None:
    """Refuse hooks and attributes that were added to a layer, and would be lost."""
    more = vars(layer).keys() - vars(plain).keys()
    more |= {name for name, held in vars(layer).items() if name.endswith("_hooks") and held}
    if more:
        raise TypeError(f"{sorted(more)} was added to a {type(layer).__name__}; remove it")


def _parts_of_sequential(network: nn.Sequential) -> dict[str, Any]:
    _refuse_more(network, nn.Sequential())
    if network._parameters or network._buffers:
        raise TypeError("it holds tensors directly; only tensors in its layers can be saved")
    return {"layers": dict(network._modules), "training": network.training}


def _make_sequential(parts: dict[str, Any]) -> nn.Sequential:
    network = nn.Sequential(OrderedDict(parts["layers"]))
    network.training = parts["training"]  # each layer stores its mode itself
    return network


def _refuse_hooks(network: nn.Module) -> None:
    for layer in network.modules():
        if held := [n for n, value in vars(layer).items() if n.endswith("_hooks") and value]:
            raise TypeError(f"{held} was added to a {type(layer).__name__}; remove it")


def _parts_of_dynamic(network: DynamicEncoder) -> dict[str, Any]:
    _refuse_hooks(network)
    return {n: getattr(network, n) for n in ("trunk", "scaled", "output", "sees", "training")}


def _make_dynamic(parts: dict[str, Any]) -> DynamicEncoder:
    training = parts.pop("training")
    if type(parts["scaled"]) is not DynamicallyScaledLinear:
        raise TypeError(f"DynamicEncoder takes no scaled={parts['scaled']!r}")
    network = DynamicEncoder(**parts)
    network.training = training  # each layer stores its mode itself
    return network


_GATES = {"sigma": (int, float), "seed": (int,), "n_drawn": (int,), "means": (nn.Parameter,)}


def _parts_of_gates(gates: StochasticGates) -> dict[str, Any]:
    _refuse_more(gates, StochasticGates(1))
    return {name: getattr(gates, name) for name in (*_GATES, "training")}


def _make_gates(parts: dict[str, Any]) -> StochasticGates:
    for name, types in _GATES.items():
        if type(parts[name]) not in types:
            raise TypeError(f"StochasticGates takes no {name}={parts[name]!r}")
    if parts["means"].ndim != 1:
        raise ValueError(f"gates are one per feature, got shape {tuple(parts['means'].shape)}")
    gates = StochasticGates(1).train(parts["training"])
    return _with_attributes(gates, {name: parts[name] for name in _GATES})


def _parts_of_scaled(layer: DynamicallyScaledLinear) -> dict[str, Any]:
    plain = _smallest_scaled(layer.scaling)
    _refuse_more(layer, plain)
    held = _like_those_of(plain, {**layer._modules, **layer._parameters})
    known = {name: getattr(layer, name) for name in ("scaling", "scaled", "training", "shape")}
    return {**known, "held": held}


def _make_scaled(parts: dict[str, Any]) -> DynamicallyScaledLinear:
    layer = _smallest_scaled(parts["scaling"]).train(parts["training"])
    _with_attributes(layer, _like_those_of(layer, parts["held"])).scaled = True
    layer.shape = parts["shape"]
    n_context = layer.hidden[0].in_features if hasattr(layer, "hidden") else layer.shape[1]
    _outputs_on_meta(layer, layer.shape[1], n_context)
    if type(parts["scaled"]) is not bool:
        raise TypeError(f"scaled is true or false, got {parts['scaled']!r}")
    layer.scaled = parts["scaled"]
    return layer


def _smallest_scaled(scaling: str) -> DynamicallyScaledLinear:
    return DynamicallyScaledLinear(1, 1, (1,), scaling, generator=torch.Generator())


def _like_those_of(plain: DynamicallyScaledLinear, held: dict[str, Any]) -> dict[str, Any]:
    """Check that a layer holds the kinds of layers of another, and any number of hidden ones."""
    kinds = {name: type(part) for name, part in {**plain._modules, **plain._parameters}.items()}
    hidden = {type(layer) for layer in held.get("hidden", ())}
    same = {name: type(part) for name, part in held.items()} == kinds
    if not same or not hidden <= {type(layer) for layer in getattr(plain, "hidden", ())}:
        raise TypeError(f"scaling={plain.scaling!r} is not made of {held}")
    return held


def _outputs_on_meta(layer: nn.Module, *widths: int) -> Tensor:
    """The output for two rows, computed on shapes alone; raises if they do not fit."""
    tensors = chain(layer.parameters(), layer.buffers())
    shadow = deepcopy(layer, {id(tensor): tensor.detach().to("meta") for tensor in tensors})
    dtype = torch.int64 if takes_integers(layer) else torch.float32
    return shadow(*(torch.empty(2, width, dtype=dtype, device="meta") for width in widths))


def output_width(network: nn.Module, n_features: int, rows: Any = None) -> int:
    """Number of outputs of a network, found from shapes alone.

    Networks with code of the user, which may look at values, are applied to the first two of some
    rows of the view if there are any, or to zeros.

    Raises
    ------
    RuntimeError, TypeError, ValueError
        If the network does not take as many features, or its output is not a matrix.
    """
    if runs_user_code(network):
        if n_features > _MOST_FEATURES:
            raise ValueError(f"at most {_MOST_FEATURES:,} features are tried, got {n_features:,}")
        rows = np.zeros((2, n_features), np.float32) if rows is None else rows[np.array([0, -1])]
        if rows.shape[1] != n_features:
            raise ValueError(f"rows have {rows.shape[1]} features, not {n_features}")
        out = torch.from_numpy(encoded(network, "", rows))
    else:
        tensors = [*network.parameters(), *network.buffers()]
        if strange := {t.dtype for t in tensors if t.is_floating_point()} - {torch.float32}:
            raise TypeError(f"networks compute in float32, got tensors of {strange}")
        out = _outputs_on_meta(network, n_features)
    if out.ndim != 2 or len(out) != 2:
        raise ValueError(f"{network} gives {tuple(out.shape)} for 2 rows")
    return out.shape[1]


# ---- layers of other classes ---------------------------------------------------------------------

_REGISTERED: dict[type, tuple[str, ...]] = {}  # arguments of the constructors of these classes


def register_layer(cls: type[nn.Module]) -> type[nn.Module]:
    """Let `mvcca.save` and `mvcca.load` store layers of a class; usable as a decorator.

    A layer is stored as the arguments of its constructor, which must be attributes of the same
    names, and its parameters and buffers. The arguments are numbers, strings, truth values, None,
    or tuples of these; a ``generator`` of initial weights is left out. To load the file, another
    process registers the class first.

    Parameters
    ----------
    cls : type
        A subclass of `torch.nn.Module`.

    Returns
    -------
    type
        The class.

    Raises
    ------
    TypeError
        If it is not a class of modules.
    ValueError
        If files know another class by its name.

    Examples
    --------
    >>> from torch import nn
    >>> from mvcca.deep.storage import register_layer
    >>> @register_layer
    ... class Scaled(nn.Module):
    ...     def __init__(self, n_in, n_out, factor=1.0):
    ...         super().__init__()
    ...         self.n_in, self.n_out, self.factor = n_in, n_out, factor
    ...         self.linear = nn.Linear(n_in, n_out)
    ...
    ...     def forward(self, X):
    ...         return self.factor * self.linear(X)
    """
    if not (isinstance(cls, type) and issubclass(cls, nn.Module)):
        raise TypeError(f"Expected a subclass of torch.nn.Module, got {cls!r}.")
    name, known = cls.__name__, STORED.get(cls.__name__)
    if known is not None and not (known[0].__qualname__, known[0].__module__) == (
        cls.__qualname__,
        cls.__module__,
    ):
        raise ValueError(f"Files know {known[0]} by the name {name!r}. Rename the class.")
    names = tuple(n for n in signature(cls).parameters if n != "generator")
    _REGISTERED[cls] = names
    STORED[name] = (cls, _parts_of_registered, partial(_make_registered, cls))
    return cls


def _parts_of_registered(layer: nn.Module) -> dict[str, Any]:
    _refuse_hooks(layer)
    names = _REGISTERED[type(layer)]
    if missing := [name for name in names if not hasattr(layer, name)]:
        raise TypeError(f"{type(layer).__name__} has no attributes for its arguments {missing}")
    arguments = {name: _plain(name, getattr(layer, name)) for name in names}
    tensors = tensors_of(layer)
    plain = _made_registered(type(layer), arguments)
    if _outline(tensors["state"]) != _outline(plain.state_dict(keep_vars=True)):
        raise TypeError(f"{type(layer).__name__} with its arguments has other tensors")
    return {"arguments": arguments, **tensors}


def _make_registered(cls: type[nn.Module], parts: dict[str, Any]) -> nn.Module:
    if parts["arguments"].keys() != set(_REGISTERED[cls]):
        raise TypeError(f"{cls.__name__} is not made of {sorted(parts['arguments'])}")
    return with_tensors(_made_registered(cls, parts["arguments"]), parts, cls.__name__)


def tensors_of(network: nn.Module) -> dict[str, Any]:
    """Parameters, buffers and the mode of every layer."""
    modes = {name: part.training for name, part in network.named_modules()}
    return {"state": network.state_dict(keep_vars=True), "modes": modes}


def with_tensors(network: nn.Module, parts: dict[str, Any], what: str) -> nn.Module:
    """The network with the tensors and modes of a file."""
    state, wanted = parts["state"], _outline(network.state_dict(keep_vars=True))
    if _outline(state) != wanted:
        raise ValueError(f"{what} takes tensors {wanted}, got {_outline(state)}")
    trained = {n: t.requires_grad for n, t in state.items() if isinstance(t, nn.Parameter)}
    network.load_state_dict(state, assign=True)  # which changes requires_grad
    for name, parameter in network.named_parameters(remove_duplicate=False):
        parameter.requires_grad_(trained[name])
    for name, part in network.named_modules():
        part.training = bool(parts["modes"][name])
    return network


def _made_registered(cls: type[nn.Module], arguments: dict[str, Any]) -> nn.Module:
    """What the constructor makes, without memory for tensors: a file may ask for any size."""
    with torch.device("meta"):
        return cls(**arguments)


# ---- which networks files hold whole -------------------------------------------------------------


def holds_other_classes(network: nn.Module) -> bool:
    """Whether files know the tensors of a network only."""
    if type(network) in _OF_LAYERS:
        return any(map(holds_other_classes, network.children()))
    return type(network) not in {row[0] for row in STORED.values()}


def runs_user_code(network: nn.Module) -> bool:
    """Whether a network has layers of classes that are neither torch's nor of mvcca."""
    if type(network) in _OF_LAYERS:
        return any(map(runs_user_code, network.children()))
    return type(network) not in _OURS


# ---- tensors, states of training, optimizers -----------------------------------------------------


def _parts_of_tensor(tensor: Tensor) -> dict[str, Any]:
    return {"array": tensor.detach().cpu().numpy()}


def _make_tensor(parts: dict[str, Any]) -> Tensor:
    return torch.from_numpy(parts["array"]).clone()


def _parts_of_state(state: TrainingState) -> dict[str, Any]:
    tree, arrays = taken_apart(state.tree)
    return {**vars(state), "tree": tree, "arrays": arrays}


def _make_state(parts: dict[str, Any]) -> TrainingState:
    tree = put_together(parts.pop("tree"), parts.pop("arrays"))
    return TrainingState(**parts, tree=tree)


def _parts_of_optimizer(cls: type) -> dict[str, Any]:
    if getattr(torch.optim, cls.__name__, None) is not cls:
        raise TypeError(f"files hold no classes but the optimizers of torch.optim, got {cls}")
    return {"name": cls.__name__}


def _make_optimizer(parts: dict[str, Any]) -> type:
    cls = getattr(torch.optim, parts["name"])
    if not (isinstance(cls, type) and issubclass(cls, torch.optim.Optimizer)):
        raise ValueError(f"{parts['name']!r} is not an optimizer of torch.optim")
    return cls


def _make_probe(parts: dict[str, Any]) -> Probe:
    scores, figures = parts["scores"], parts["figures"]
    named = all(tuple(map(type, module)) == (str, str) for module in parts["modules"])
    if not named or figures.shape != (len(parts["modules"]), 2, 3) or scores.ndim != 2:
        raise ValueError("the scores to compare networks with are damaged")
    if {scores.dtype.kind, figures.dtype.kind, np.dtype(type(parts["eps"])).kind} != {"f"}:
        raise TypeError("the scores to compare networks with are not numbers")
    return Probe(**parts)


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
    **{cls.__name__: (cls, _arguments_of, partial(_made_of, cls)) for cls in CALLBACKS},
    "nn.Sequential": (nn.Sequential, _parts_of_sequential, _make_sequential),
    "DynamicEncoder": (DynamicEncoder, _parts_of_dynamic, _make_dynamic),
    "StochasticGates": (StochasticGates, _parts_of_gates, _make_gates),
    "DynamicallyScaledLinear": (DynamicallyScaledLinear, _parts_of_scaled, _make_scaled),
    "nn.Parameter": (
        nn.Parameter,
        lambda p: {**_parts_of_tensor(p), "requires_grad": p.requires_grad},
        lambda parts: nn.Parameter(_make_tensor(parts), parts["requires_grad"]),
    ),
    "Tensor": (Tensor, _parts_of_tensor, _make_tensor),
    "Optimizer": (type, _parts_of_optimizer, _make_optimizer),
    "TrainingState": (TrainingState, _parts_of_state, _make_state),
    "Probe": (Probe, lambda probe: dict(vars(probe)), _make_probe),
}

for _network in (WCNN, WordCNN, WordCNNRNN, Standardize):
    register_layer(_network)

_OURS = frozenset(row[0] for row in STORED.values())
