"""Dynamically scaled deep CCA."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Generator, Tensor, nn

from mvcca.base.inputs import open_views
from mvcca.deep._bases.dynamically_scaled import DynamicallyScaled, scaled_layers
from mvcca.deep._bases.parameters import one_of, parameter
from mvcca.deep._methods.dcca import DCCA
from mvcca.deep.encoders import mlp
from mvcca.deep.layers import DynamicallyScaledLinear
from mvcca.deep.trainer import encoded


class DSDCCA(DCCA, DynamicallyScaled):
    r"""Dynamically scaled deep CCA: `DCCA` whose last layer is rescaled for each row [1]_.

    With z the input of the last linear layer of a view, and W, b the parameters of that layer,

    .. math:: f(x) = (h_W(z) ⊙ W) \, z + h_b(z) ⊙ b,

    where h is an additional scaling network per view. During the first `warm_up` epochs h ≡ 1, as
    in `DCCA`; afterwards all parameters are trained.

    An epoch with scaling takes about six times as long as one of `DCCA`, or three times with
    ``mixed_precision=True`` on processors and GPUs that multiply bfloat16 numbers.

    Parameters and attributes that are not listed here are those of `DCCA`.

    Parameters
    ----------
    scaling_layer_sizes : sequence of int, default=(128,)
        Widths of the hidden layers of h. Its output has n_components x (width of z + 1) values, and
        time and memory are proportional to the width of its last hidden layer.
    scaling : {"parameters", "outputs", "global", "generated"}, default="parameters"
        What h scales. "parameters" is the method; the others are the ablations of [1]_: "outputs"
        scales the outputs of the layer, "global" scales its parameters by the same factors for all
        rows, and "generated" uses the output of h as the parameters ("without θᶜ"). For networks of
        equal capacity see `mvcca.deep.encoders.widened`.
    encoders : mapping of str to Module, or sequence of Module, optional
        Custom networks, by view or in the order of the views: any `torch.nn.Module` that maps rows
        to scores of shape (n_rows, n_scores) and contains a layer of type
        `mvcca.deep.layers.DynamicallyScaledLinear`. `fit` trains copies.
    warm_up : int or "auto", default="auto"
        Number of epochs without scaling, in which the losses equal those of `DCCA` with the same
        `random_state`; "auto" is half of `max_epochs`. Parameters that are generated have nothing
        to warm up. Without a warm-up, and for generated parameters, use a `reg` of about 1e-2: on
        MNIST halves, 1e-4 led to outputs with heavy tails, whose correlations held for the batch
        only.
    scaling_start : {"auto", "default", "one"}, default="auto"
        Initial weights of h: "default" are those of torch, as in [1]_, and with "one" h is close to
        1. "auto" is "one" for fewer than 10,000 training rows.

    References
    ----------
    .. [1] Friedlander and Wolf, "Dynamically-Scaled Deep Canonical Correlation Analysis", 2022.

    Examples
    --------
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.deep import DSDCCA
    >>> views = load_digits_views().views
    >>> model = DSDCCA(8, hidden_layer_sizes=(32,), max_epochs=4, random_state=0).fit(views)
    >>> {name: scores.shape for name, scores in model.transform(views).items()}
    {'left': (1797, 8), 'right': (1797, 8)}
    """

    scaling_layer_sizes: Sequence[int] = parameter((128,), "array-like")
    warm_up: int | str = "auto"
    scaling: str = parameter("parameters", one_of("parameters", "outputs", "global", "generated"))

    start: ClassVar[str] = "random"  # type: ignore[misc]  # the warm-up is its start
    _unscaled = "DCCA"
    _network_parameters = ("hidden_layer_sizes", "scaling_layer_sizes", "scaling", "scaling_start")

    def scales(self, X: Any, y: Any = None) -> Any:
        """The scales that rows give the parameters of the last layer, figure 2 of the paper.

        Parameters
        ----------
        X, y
            As in `transform`. The scales of a row take as much memory as the last layer.

        Returns
        -------
        scales : dict of str to ndarray, shape (n_rows, n_components, width of z + 1)
            S_W and, in the last column, S_b, by view; 1 for a model whose training ended before
            scaling started.
        """
        check_is_fitted(self)
        views = open_views(self, X, y, reset=False, unpaired=True, allow_empty=True)
        return {name: _scales(self.encoders_[name], name, block) for name, block in views.items()}

    def _new_network(
        self, n_in: int, hidden: tuple[int, ...], n_out: int, generator: Generator
    ) -> nn.Module:
        sizes, start = tuple(self.scaling_layer_sizes), self._setting("scaling_start")

        def last(n_in: int, n_out: int) -> nn.Module:
            return DynamicallyScaledLinear(n_in, n_out, sizes, self.scaling, start, generator)

        return mlp(n_in, hidden, n_out, last=last, generator=generator)


def _scales(encoder: nn.Module, name: str, block: Any) -> np.ndarray:
    """Scales of the last dynamically scaled layer of an encoder, for the rows of a block."""
    found: list[Tensor] = []
    layer = scaled_layers(encoder)[-1]

    def note(layer: DynamicallyScaledLinear, inputs: tuple[Tensor, ...]) -> None:
        found.append(layer.scales_of(inputs[-1]).detach())

    hook = layer.register_forward_pre_hook(note)
    try:
        encoded(encoder, name, block)
    finally:
        hook.remove()
    return torch.cat(found).numpy()
