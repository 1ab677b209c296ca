"""Encoders, the networks that map the features of a view to scores.

Any `torch.nn.Module` that takes rows of shape (n_rows, n_features) is an encoder. The rows are
float32, or int64 if the network says so; see `takes_integers`. A `Standardize` layer in front of it
takes float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Self

import numpy as np
import torch
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

from mvcca.deep._networks.dynamically_scaled import DynamicEncoder
from mvcca.deep._networks.image_encoders import cnn, vgg
from mvcca.deep._networks.text_encoders import WCNN, WordCNN, WordCNNRNN
from mvcca.deep._networks.weights import linear
from mvcca.machine.on_access import on_access
from mvcca.problem import Maps

__all__ = [
    "WCNN",
    "DynamicEncoder",
    "Encoders",
    "LinearPlus",
    "WordCNN",
    "WordCNNRNN",
    "cnn",
    "mlp",
    "takes_integers",
    "vgg",
]

if not TYPE_CHECKING:  # it would hide misspelt names
    __getattr__ = on_access(__name__)

_LARGEST = 10.0  # deviation of a training row, in units of the scale


def mlp(
    n_features: int,
    hidden_layer_sizes: tuple[int, ...],
    n_components: int,
    *,
    batch_norm: bool = True,
    affine: bool = False,
    normalize_output: bool = True,
    activation: Callable[[], nn.Module] = nn.ReLU,
    output_activation: Callable[[], nn.Module] | None = None,
    dropout: float = 0.0,
    last: Callable[[int, int], nn.Module] | None = None,
    generator: torch.Generator | None = None,
) -> nn.Sequential:
    """Multilayer perceptron, as in published comparisons of deep CCA [1]_.

    Each hidden layer is linear → batch norm → ReLU; the output is linear → batch norm.

    Parameters
    ----------
    n_features, n_components : int
        Width of the input and of the output.
    hidden_layer_sizes : tuple of int
        Widths of the hidden layers; without any, the network is linear.
    batch_norm : bool, default=True
        Normalize hidden layers over the batch.
    affine : bool, default=False
        Let batch norm learn a scale and an offset.
    normalize_output : bool, default=True
        Normalize the output over the batch, so that scores have variance 1.
    activation : callable, default=nn.ReLU
        Factory of the activation after each hidden layer.
    output_activation : callable, optional
        Factory of the activation after the output.
    dropout : float, default=0.0
        Share of hidden units that are zero in each training step.
    last : callable, optional
        Factory of the last linear layer, called with its two widths.
    generator : torch.Generator, optional
        Generator of the initial weights; by default torch's global one.

    Returns
    -------
    nn.Sequential

    References
    ----------
    .. [1] Friedlander and Wolf, "Dynamically-Scaled Deep Canonical Correlation Analysis", 2022,
       section 4.
    """
    layers: list[nn.Module] = []
    width = n_features
    for size in hidden_layer_sizes:
        layers.append(linear(width, size, generator))
        if batch_norm:
            layers.append(nn.BatchNorm1d(size, affine=affine))
        layers.append(activation())
        if dropout:
            layers.append(nn.Dropout(dropout))
        width = size
    layers.append(last(width, n_components) if last else linear(width, n_components, generator))
    if normalize_output:
        layers.append(nn.BatchNorm1d(n_components, affine=affine))
    if output_activation is not None:
        layers.append(output_activation())
    return nn.Sequential(*layers)


class Standardize(nn.Module):
    """Subtract the mean of each feature and divide by its scale.

    The scale is the standard deviation, or a tenth of the largest deviation from the mean if that
    is more: features that are rarely different from their usual value, such as counts of rare
    words or pixels at the border, do not become outliers. A feature that never varies has scale 1.

    With `one_scale`, all features have the same scale, the root of their mean variance, so that
    those with more variance keep it.

    Parameters
    ----------
    n_features : int
        Number of features. Until `learn` is called, rows are left as they are.
    one_scale : bool, default=False
        Whether all features are divided by the same number.
    """

    mean: Tensor  # (n_features,); `rest` is what rounding to float32 leaves of it
    rest: Tensor
    scale: Tensor

    def __init__(self, n_features: int, one_scale: bool = False) -> None:
        super().__init__()
        self.n_features, self.one_scale = n_features, one_scale
        self.register_buffer("mean", torch.zeros(n_features))
        self.register_buffer("rest", torch.zeros(n_features))
        self.register_buffer("scale", torch.ones(n_features))

    def learn(self, blocks: Iterable[np.ndarray]) -> Self:
        """Set means and scales to those of rows, given in blocks."""
        scaler, least, largest = StandardScaler(), np.inf, -np.inf
        for block in blocks:
            scaler.partial_fit(block)
            least = np.minimum(least, block.min(axis=0))
            largest = np.maximum(largest, block.max(axis=0))
        varies = largest > least  # else deviations from the mean are its rounding
        mean, scale = np.where(varies, scaler.mean_, least), np.where(varies, scaler.scale_, 1)
        if self.one_scale:
            scale = np.full_like(mean, _root_mean_square(np.where(varies, scaler.scale_, 0)))
        else:
            scale = np.maximum(scale, np.maximum(largest - mean, mean - least) / _LARGEST)
        limits = np.finfo(np.float32)
        scale = np.where(scale < limits.tiny, 1, scale).clip(max=limits.max)
        rounded = mean.astype(np.float32)
        for buffer, values in (
            (self.mean, rounded), (self.rest, mean - rounded), (self.scale, scale)
        ):  # fmt: skip
            buffer.copy_(torch.from_numpy(values))
        return self

    def forward(self, X: Tensor) -> Tensor:
        """Standardize rows of shape (n_rows, n_features); float64 rows lose no digits under a mean.

        The result is float32.
        """
        return ((X - self.mean - self.rest) / self.scale).float()


def _root_mean_square(values: np.ndarray) -> float:
    """Root of the mean square, whose squares neither overflow nor vanish."""
    largest = float(values.max())
    return largest * float(np.sqrt(np.square(values / largest).mean())) if largest else 1.0


class LinearPlus(nn.Module):
    """A linear map plus a network that begins as zero: f(x) = W x + b + g(x).

    The last layer of the network is linear and has zero weights; networks that end otherwise get
    one more. Training changes W, b and g.

    Parameters
    ----------
    n_features, n_components : int
        Width of the input and of the output.
    network : nn.Sequential
        The network g, of the same widths.
    """

    def __init__(self, n_features: int, n_components: int, network: nn.Sequential) -> None:
        super().__init__()
        self.linear = linear(n_features, n_components, torch.Generator())
        layers = list(network)
        if not isinstance(layers[-1], nn.Linear):
            layers.append(linear(n_components, n_components, torch.Generator()))
        self.network = nn.Sequential(*layers)
        for parameter in layers[-1].parameters():
            nn.init.zeros_(parameter)

    def forward(self, X: Tensor) -> Tensor:
        """Map rows of shape (n_rows, n_features) to scores of shape (n_rows, n_components)."""
        return self.linear(X) + self.network(X)

    def begin(
        self, weights: np.ndarray, offsets: np.ndarray, layer: Standardize | None = None
    ) -> None:
        """Set W and b so that x @ weights + offsets results, of rows that a layer standardizes."""
        if layer is not None:
            mean = (layer.mean.double() + layer.rest.double()).cpu().numpy()
            offsets = offsets + mean @ weights
            weights = layer.scale.double().cpu().numpy()[:, None] * weights
        with torch.no_grad():
            self.linear.weight.copy_(torch.from_numpy(weights.T.copy()))
            self.linear.bias.copy_(torch.from_numpy(offsets))


class Encoders(nn.Module):
    """One network per view, by name.

    Unlike the containers of torch, it allows any string as a name.

    Parameters
    ----------
    encoders : mapping of str to Module

    Attributes
    ----------
    names : tuple of str
        Names of the views.
    inputs : dict of str to Standardize
        The layers in front of networks, by view.
    whole : dict of str to Module
        The networks with what comes before them: they take rows as they are.
    trained : dict of str to callable
        What gives the scores that the objective sees, of rows that are already standardized.
    solution : Maps or None
        For networks that begin as linear CCA: maps of their first outputs to the scores of that.
    """

    def __init__(self, encoders: Mapping[str, nn.Module]) -> None:
        super().__init__()
        self.names = tuple(encoders)
        self.modules_of_views = nn.ModuleList(encoders.values())
        self.inputs: dict[str, Standardize] = {}
        self.whole: dict[str, nn.Module] = dict(encoders)
        self.trained: dict[str, Callable[[Tensor], Tensor]] = dict(encoders)
        self.solution: Maps | None = None
        # Lists register modules of views with any name.
        self.inputs_of_views = nn.ModuleList(nn.Identity() for _ in encoders)

    def __getitem__(self, name: str) -> nn.Module:
        return self.modules_of_views[self.names.index(name)]

    def standardize(self, name: str, layer: Standardize) -> None:
        """Put a layer in front of the network of a view, whose own layers stay shared."""
        network = self[name]
        layers = network if type(network) is nn.Sequential else [network]
        self.whole[name] = nn.Sequential(layer, *layers)
        self.inputs[name] = self.inputs_of_views[self.names.index(name)] = layer

    def forward(self, views: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Scores for the objective, of rows that are already standardized."""
        return {name: scores_of(self.trained[name], name, X) for name, X in views.items()}


def scores_of(encoder: Callable[[Tensor], Tensor], name: str, X: Tensor) -> Tensor:
    """Output of the encoder of a view, checked to be a tensor and not a tuple or a NumPy array."""
    scores = encoder(X)
    if isinstance(scores, Tensor):
        return scores
    found = type(scores).__name__
    if isinstance(scores, list | tuple):
        found += f" of {', '.join(type(part).__name__ for part in scores)}"
    raise TypeError(
        f"The encoder of view {name!r} ({type(encoder).__name__}) must return a tensor of shape "
        f"(n_rows, n_scores), got {found}. Wrap it in a module that returns the scores only."
    )


def takes_integers(encoder: nn.Module) -> bool:
    """Whether an encoder takes int64 rows, such as the words of a text, rather than float32.

    It does if it has a true attribute ``takes_integers``, or begins with an embedding.

    Parameters
    ----------
    encoder : Module
        The network of a view.
    """
    if isinstance(encoder, nn.Sequential) and len(encoder):
        return takes_integers(encoder[0])
    return isinstance(encoder, nn.Embedding | nn.EmbeddingBag) or bool(
        getattr(encoder, "takes_integers", False)
    )


def row_dtype(encoder: nn.Module) -> type[np.generic]:
    """Type of the rows that an encoder takes: int64, float64 to be standardized, or float32."""
    if isinstance(encoder, nn.Sequential) and isinstance(next(iter(encoder), None), Standardize):
        return np.float64
    return np.int64 if takes_integers(encoder) else np.float32
