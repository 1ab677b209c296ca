"""What is made by its constructor: layers, losses and callbacks, and the names of their arguments.

Each argument is an attribute as well, which it is read from. What files hold of this beside the
arguments is the business of `_parts`.
"""

from __future__ import annotations

from types import NoneType
from typing import Any

import numpy as np
import torch
from torch import nn

from mvcca.deep import callbacks, objectives

_CONVOLUTION = (
    "in_channels out_channels kernel_size stride padding dilation groups bias padding_mode"
)
_BATCH_NORM = "num_features eps momentum affine track_running_stats"
_MAX_POOL = "kernel_size stride padding dilation return_indices ceil_mode"
_AVERAGE_POOL = "kernel_size stride padding ceil_mode count_include_pad"

LAYERS: dict[type, str] = {
    nn.Linear: "in_features out_features bias",
    nn.Embedding: "num_embeddings embedding_dim padding_idx max_norm norm_type scale_grad_by_freq "
    "sparse",
    **dict.fromkeys((nn.Conv1d, nn.Conv2d, nn.Conv3d), _CONVOLUTION),
    **dict.fromkeys((nn.ConvTranspose1d, nn.ConvTranspose2d), f"{_CONVOLUTION} output_padding"),
    **dict.fromkeys((nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d), _BATCH_NORM),
    **dict.fromkeys((nn.InstanceNorm1d, nn.InstanceNorm2d), _BATCH_NORM),
    nn.LayerNorm: "normalized_shape eps elementwise_affine bias",
    nn.GroupNorm: "num_groups num_channels eps affine",
    **dict.fromkeys((nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.AlphaDropout), "p inplace"),
    **dict.fromkeys((nn.MaxPool1d, nn.MaxPool2d), _MAX_POOL),
    nn.AvgPool1d: _AVERAGE_POOL,
    nn.AvgPool2d: f"{_AVERAGE_POOL} divisor_override",
    **dict.fromkeys((nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d), "output_size"),
    **dict.fromkeys((nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d), "output_size return_indices"),
    nn.Flatten: "start_dim end_dim",
    nn.Unflatten: "dim unflattened_size",
    **dict.fromkeys((nn.Identity, nn.Tanh, nn.Sigmoid, nn.LogSigmoid, nn.Softsign), ""),
    **dict.fromkeys((nn.ReLU, nn.ReLU6, nn.SELU, nn.SiLU, nn.Mish), "inplace"),
    **dict.fromkeys((nn.Hardsigmoid, nn.Hardswish), "inplace"),
    **dict.fromkeys((nn.ELU, nn.CELU), "alpha inplace"),
    nn.LeakyReLU: "negative_slope inplace",
    nn.PReLU: "num_parameters",
    nn.GELU: "approximate",
    nn.Softplus: "beta threshold",
    nn.Hardtanh: "min_val max_val inplace",
    **dict.fromkeys((nn.Softmax, nn.LogSoftmax, nn.GLU), "dim"),
    objectives.TraceNormLoss: "reg",
    objectives.SoftHGRLoss: "",
}
CALLBACKS: dict[type, str] = {
    callbacks.EarlyStopping: "patience",
    callbacks.Refinement: "patience later_patience times factor",
    callbacks.TotalCorrelation: "n_components reg",
    callbacks.ProgressLines: "",
}
_ARGUMENTS = LAYERS | CALLBACKS

_WHOLE = (
    "in_features out_features in_channels out_channels num_features num_groups num_channels groups "
    "num_embeddings embedding_dim num_parameters start_dim end_dim patience later_patience times "
    "n_components"
)
_REAL = "eps p negative_slope alpha beta threshold min_val max_val norm_type factor"
_SIZES = "kernel_size stride dilation output_padding normalized_shape unflattened_size"
_TRUTHS = (
    "bias affine track_running_stats elementwise_affine inplace return_indices ceil_mode "
    "count_include_pad scale_grad_by_freq sparse"
)
_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(_WHOLE.split(), (int,)),
    **dict.fromkeys(_REAL.split(), (int, float)),
    **dict.fromkeys(_TRUTHS.split(), (bool,)),
    **dict.fromkeys(_SIZES.split(), (int, tuple)),
    **dict.fromkeys(("padding_mode", "approximate"), (str,)),
    **dict.fromkeys(("dim", "padding_idx", "divisor_override"), (int, NoneType)),
    **dict.fromkeys(("momentum", "max_norm"), (int, float, NoneType)),
    "padding": (int, str, tuple),
    "output_size": (int, NoneType, tuple),
    "reg": (int, float, dict),
}


def arguments_of(made: Any) -> dict[str, Any]:
    """The arguments that give its like.

    Raises
    ------
    TypeError
        If one is of a type that it cannot be of.
    """
    names = _ARGUMENTS[type(made)].split()
    return _checked(type(made), {name: _plain(name, getattr(made, name)) for name in names})


def _plain(name: str, value: Any) -> Any:
    if name == "bias":  # an argument says whether, the attribute is the bias itself
        return value is not None
    if isinstance(value, list | tuple):
        return tuple(_plain(name, item) for item in value)
    return value.item() if isinstance(value, np.generic) else value


def _checked(cls: type, arguments: dict[str, Any]) -> dict[str, Any]:
    if arguments.keys() != set(_ARGUMENTS[cls].split()):
        raise TypeError(f"{cls.__name__} is not made of {sorted(arguments)}")
    for name, value in arguments.items():
        items = value if type(value) is tuple else (value,)
        if not {type(value), *map(type, items)} <= set(_TYPES[name]):
            raise TypeError(f"{cls.__name__} takes no {name}={value!r}")
    return arguments


def made_of(cls: type, arguments: dict[str, Any]) -> Any:
    """What the constructor gives: tensors without memory, for a file may ask for any size.

    Raises
    ------
    TypeError
        If it is not made of these arguments, or one is of a type that it cannot be of.
    """
    with torch.device("meta"):
        return cls(**_checked(cls, arguments))
