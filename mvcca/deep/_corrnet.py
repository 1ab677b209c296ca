"""Correlational neural networks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar

import torch
from sklearn.utils._param_validation import Interval, StrOptions
from torch import nn

from mvcca.deep._estimator import DeepEstimator
from mvcca.deep.callbacks import Callback
from mvcca.deep.encoders import Encoders
from mvcca.deep.layers import linear
from mvcca.deep.objectives import CorrNetLoss
from mvcca.deep.trainer import Objective

_OF_OTHERS = ("hidden_layer_sizes", "encoders")


class CorrNet(DeepEstimator):
    """Correlational neural network of two views: an autoencoder with one hidden layer of both [1]_.

        min Σ_h (mean_i ‖x - x̂(h)‖² + ‖y - ŷ(h)‖²) - λ Σ_j corr(h_j(x,0), h_j(0,y)),

    the first sum over h(x,0), h(0,y) and h(x,y), with

        h(x, y) = σ(W_x x + W_y y + b),   x̂(h) = a(W_xᵀ h + b_x),   ŷ(h) = a(W_yᵀ h + b_y).

    Each hidden unit correlates with its counterpart, but units are not uncorrelated among
    themselves; `encode` gives them as they are, and the linear CCA at the end finds components that
    are. All else is as in `DCCA`.

    Parameters
    ----------
    n_components : int, default=2
        Hidden units, and dimension of the shared space.
    correlation : float, default=2.0
        λ.
    output_activation : {"identity", "sigmoid"}, default="identity"
        a: "sigmoid" is for features between 0 and 1, as in [1]_.
    reg, batch_size, max_epochs, optimizer, learning_rate, weight_decay, validation_fraction, \
    patience, monitor, callbacks, mixed_precision, device, random_state
        As in `DCCA`, with the defaults of [1]_; reg is that of the linear CCA alone.

    Attributes
    ----------
    encoders_, history_, best_epoch_, weights_, means_, canonical_correlations_, eigenvalues_, \
    n_components_, view_names_, n_features_in_
        As in `DCCA`.

    References
    ----------
    .. [1] Chandar, Khapra, Larochelle and Ravindran, "Correlational Neural Networks", Neural
       Computation 2016.
    """

    _max_views = 2
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{n: c for n, c in DeepEstimator._parameter_constraints.items() if n not in _OF_OTHERS},
        "correlation": [Interval(Real, 0, None, closed="left")],
        "output_activation": [StrOptions({"identity", "sigmoid"})],
    }
    hidden_layer_sizes = ()  # parameters of the others
    encoders = None

    def __init__(
        self,
        n_components: int = 2,
        *,
        correlation: float = 2.0,
        output_activation: str = "identity",
        reg: float | Mapping[str, float] = 1e-4,
        batch_size: int = 100,
        max_epochs: int = 50,
        optimizer: str | Callable[..., torch.optim.Optimizer] = "rmsprop",
        learning_rate: float = 1e-2,
        weight_decay: float = 0.0,
        validation_fraction: float | None = None,
        patience: int | None = None,
        monitor: str = "correlation",
        callbacks: Sequence[Callback] = (),
        mixed_precision: bool = False,
        device: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.correlation = correlation
        self.output_activation = output_activation
        self.reg = reg
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.monitor = monitor
        self.callbacks = callbacks
        self.mixed_precision = mixed_precision
        self.device = device
        self.random_state = random_state

    def _encoder(
        self, n_features: int, hidden: tuple[int, ...], n_scores: int, generator: torch.Generator
    ) -> nn.Module:
        return nn.Sequential(linear(n_features, n_scores, generator), nn.Sigmoid())

    def _objective(
        self, encoders: Encoders, widths: Mapping[str, int], generator: torch.Generator
    ) -> Objective:
        layers = {name: next(encoders[name].children()) for name in encoders.names}
        first, second = layers.values()
        second.bias = first.bias  # the hidden layer is one
        return CorrNetLoss(layers, self.correlation, self.output_activation == "sigmoid")
