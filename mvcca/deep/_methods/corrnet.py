"""Correlational neural networks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Generator, Tensor, nn

from mvcca.base.parameters import NOT_NEGATIVE, one_of, parameter
from mvcca.deep._bases.cca_scores import CCAScores
from mvcca.deep._bases.estimator import Widths
from mvcca.deep._losses.batch import Batch, summed
from mvcca.deep.encoders import Encoders
from mvcca.deep.functional import coordinate_correlation, reconstruction_error
from mvcca.deep.layers import linear
from mvcca.deep.objectives import BoundLoss
from mvcca.deep.trainer import Objective


class CorrNet(CCAScores):
    r"""Correlational neural network: an autoencoder of two views with one shared hidden layer [1]_.

    .. math::

        \min \; \sum_h \frac{1}{n} \sum_i \Big(\lVert x_i - \hat x(h_i) \rVert^2
            + \lVert y_i - \hat y(h_i) \rVert^2\Big)
            - λ \sum_j \mathrm{corr}\big(h_j(x, 0), h_j(0, y)\big),

    where the first sum is over h(x, 0), h(0, y) and h(x, y), with

    .. math::

        h(x, y) = σ(W_x x + W_y y + b), \qquad \hat x(h) = a(W_x^⊤ h + b_x), \qquad
        \hat y(h) = a(W_y^⊤ h + b_y).

    Each hidden unit correlates with its counterpart in the other view, but hidden units may
    correlate with each other. ``project(views, "encode")`` returns them as they are; the final
    linear CCA finds uncorrelated components.

    Parameters and attributes that are not listed here are those of `mvcca.deep.bases.CCAScores`.

    Parameters
    ----------
    n_components : int, default=2
        Number of hidden units, and dimension of the shared space.
    correlation : float or "auto", default="auto"
        Weight λ of the correlation. "auto" is three times the number of features of both views, the
        variance of all that is reconstructed, or 2 if rows are not standardized.
    output_activation : {"identity", "sigmoid"}, default="identity"
        Activation a of the reconstruction; "sigmoid" is for features between 0 and 1, which are not
        standardized.
    batch_size : int, default=100
        Rows per batch; all rows if there are fewer.
    max_epochs : int, default=100
        Maximum number of passes over the rows.
    optimizer : {"rmsprop", "adam", "sgd"} or callable, default="adam"
        Name of an optimizer, a class of `torch.optim`, or a callable with the same signature.
    learning_rate : float, default=3e-3
        Learning rate of the optimizer.
    weight_decay : float, default=0.0
        Weight decay of the optimizer.

    Notes
    -----
    Settings of [1]_ for digits, where they differ from the defaults:

    ========================  =============
    ``correlation``           2
    ``output_activation``     "sigmoid"
    ``optimizer``             "rmsprop"
    ``learning_rate``         1e-2
    ``max_epochs``            50
    ========================  =============

    References
    ----------
    .. [1] Chandar, Khapra, Larochelle and Ravindran, "Correlational Neural Networks", Neural
       Computation 2016.

    Examples
    --------
    >>> from sklearn.preprocessing import MinMaxScaler
    >>> from mvcca import PerView
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.deep import CorrNet
    >>> views = PerView(MinMaxScaler()).fit_transform(load_digits_views().views)
    >>> model = CorrNet(8, output_activation="sigmoid", max_epochs=3, random_state=0).fit(views)
    >>> {name: scores.shape for name, scores in model.transform(views).items()}
    {'left': (1797, 8), 'right': (1797, 8)}
    """

    correlation: float | str = parameter("auto", NOT_NEGATIVE, one_of("auto"))
    output_activation: str = parameter("identity", one_of("identity", "sigmoid"))
    batch_size: int = 100
    max_epochs: int = 100
    optimizer: Any = "adam"
    learning_rate: float = 3e-3
    weight_decay: float = 0.0

    requires = replace(CCAScores.requires, views=(2, 2))

    def _networks(self, generator: Generator) -> Encoders:
        n_scores = self._n_scores()
        layers = {n: linear(width, n_scores, generator) for n, width in self._widths.items()}
        first, second = layers.values()
        second.bias = first.bias  # one hidden layer has one bias
        return Encoders({n: nn.Sequential(layer, nn.Sigmoid()) for n, layer in layers.items()})

    def _standardizes(self, name: str) -> bool:
        if self.output_activation == "identity":
            return super()._standardizes(name)
        if self.standardize not in ("auto", False):
            raise ValueError(
                "output_activation='sigmoid' reconstructs features between 0 and 1, which "
                f"standardize={self.standardize!r} would replace. Use standardize='auto'."
            )
        return False

    def _weight(self, encoders: Encoders) -> float:
        """Weight of the correlation."""
        if self.correlation != "auto":
            return float(self.correlation)
        return 3.0 * sum(self._widths.values()) if encoders.inputs else 2.0

    def _objective(self, encoders: Encoders, widths: Widths, generator: Generator) -> Objective:
        layers: Mapping[str, nn.Linear] = {name: encoders[name][0] for name in encoders.names}
        return BoundLoss(
            corrnet_loss,
            layers=layers,  # not registered in a mapping: they belong to the encoders
            offsets=nn.ParameterList(torch.zeros(layer.in_features) for layer in layers.values()),
            activation=torch.sigmoid if self.output_activation == "sigmoid" else nn.Identity(),
            weight=self._weight(encoders),
        )


def corrnet_loss(
    scores: Mapping[str, Tensor],
    batch: Batch,
    layers: Mapping[str, nn.Linear],
    offsets: nn.ParameterList,
    activation: Callable[[Tensor], Tensor],
    weight: float,
) -> Tensor:
    """Reconstruction error minus correlation of the scores h(x, 0) and h(0, y).

    The linear `layers` of the encoders have weights W_x, W_y and one bias b; the decoders use their
    transposes, offsets b_x, b_y and the activation a. `weight` is λ.
    """
    linear_parts = [batch.views[name] @ layer.weight.T for name, layer in layers.items()]
    bias = next(iter(layers.values())).bias
    joint = torch.sigmoid(sum(linear_parts) + bias)
    F, G = scores.values()
    error = summed(
        reconstruction_error(batch.views[name], activation(hidden @ layer.weight + offset))
        for hidden in (F, G, joint)
        for (name, layer), offset in zip(layers.items(), offsets, strict=True)
    )
    return error - weight * coordinate_correlation(F, G)
