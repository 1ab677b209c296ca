"""Networks whose last layer is rescaled for each row after a warm-up, for DCCA and for CCAL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Generator, Tensor, nn

from mvcca.base.inputs import open_views
from mvcca.base.parameters import at_least, one_of, parameter
from mvcca.deep._bases.estimator import DeepEstimator
from mvcca.deep._methods.ccal import CCAL
from mvcca.deep._methods.dcca import DCCA
from mvcca.deep._training.training import Training
from mvcca.deep.callbacks import Callback
from mvcca.deep.encoders import DynamicEncoder, mlp
from mvcca.deep.layers import DynamicallyScaledLinear
from mvcca.deep.samplers import Sample
from mvcca.deep.trainer import Trainer, encoded
from mvcca.machine.warnings import warn


class DynamicallyScaled(DeepEstimator):
    """Base of the deep estimators whose networks are rescaled for each row after a warm-up.

    Parameters and attributes that are not listed here are those of
    `mvcca.deep.bases.DeepEstimator`.

    Parameters
    ----------
    warm_up : int or "auto", default="auto"
        Number of epochs without scaling; "auto" is half of `max_epochs`.
    scaling_start : {"auto", "default", "one"}, default="auto"
        Initial weights of the scaling networks: "default" are those of torch, as published, and
        with "one" the scales are close to 1. "auto" is "one" for fewer than 10,000 training rows.
    """

    warm_up: int | str = parameter("auto", at_least(0), one_of("auto"))
    scaling_start: str = parameter("auto", one_of("auto", "default", "one"))

    _unscaled = ""  # the method without scaling

    def _warm_up_epochs(self) -> int:
        return self._setting("max_epochs") // 2 if self.warm_up == "auto" else int(self.warm_up)

    def _decisive_params(self) -> dict[str, Any]:
        # "auto" depends on the number of epochs.
        return super()._decisive_params() | {"warm_up": self._warm_up_epochs()}

    def _callbacks(self, training: Training, validated: bool) -> list[Callback]:
        warm_up = WarmUp(self._warm_up_epochs(), self._unscaled)
        return [warm_up, *super()._callbacks(training, validated)]

    def _conclude(self, trainer: Trainer, validation: Sample | None) -> None:
        super()._conclude(trainer, validation)
        n_epochs, layers = self._warm_up_epochs(), scaled_layers(trainer.encoders)
        if trainer.epoch <= n_epochs and any(layer.scaling != "generated" for layer in layers):
            warn(
                f"No epoch was scaled: training ended after {trainer.epoch} epochs, within the "
                f"warm-up of {n_epochs}, so that the model is that of {self._unscaled}. Lower "
                "warm_up, or raise max_epochs."
            )


class WarmUp(Callback):
    """Start scaling after some epochs.

    The optimizer holds the parameters of the scaling networks from the start. Until scaling starts
    they have no gradients, so that it leaves them unchanged and keeps no state for them.
    """

    def __init__(self, n_epochs: int, unscaled: str) -> None:
        self.n_epochs, self.unscaled = n_epochs, unscaled

    def on_train_begin(self, trainer: Trainer) -> None:
        """Refuse networks without a layer to scale."""
        if not scaled_layers(trainer.encoders):
            raise ValueError(
                "None of the encoders holds a mvcca.deep.layers.DynamicallyScaledLinear layer, so "
                f"there is nothing to scale. Add one, or use {self.unscaled}."
            )

    def on_epoch_begin(self, trainer: Trainer) -> None:
        """Switch scaling on or off."""
        for layer in scaled_layers(trainer.encoders):
            layer.scaled = layer.scaling == "generated" or trainer.epoch > self.n_epochs


def scaled_layers(encoders: nn.Module) -> list[DynamicallyScaledLinear]:
    """The dynamically scaled layers of networks."""
    return [layer for layer in encoders.modules() if isinstance(layer, DynamicallyScaledLinear)]


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


class DSRankingCCA(CCAL, DynamicallyScaled):
    r"""Dynamically scaled ranking CCA: `CCAL` whose networks are rescaled for each row [1]_.

    With z the input of the last linear layer of a network, and W, b the parameters of that layer,

    .. math:: f(x) = (S_W(c) ⊙ W) \, z + S_b(c) ⊙ b,

    where the context c that the scaling network S sees is z, the row x, or both. The loss is that
    of `CCAL`.

    Parameters and attributes that are not listed here are those of `CCAL`.

    Parameters
    ----------
    sees : {"zx", "z", "x"}, default="zx"
        What the scaling networks see.
    scaling_layer_sizes : sequence of int, default=(256,)
        Widths of the hidden layers of the scaling networks.
    memory : float, default=0.9
        Weight of earlier batches in the running means and covariances of the CCA layer; see
        `mvcca.deep.layers.CCALayer`. [1]_ tunes it between 0.85 and 0.97.
    encoders : mapping of str to Module, or sequence of Module, optional
        Custom networks, by view or in the order of the views, that contain a layer of type
        `mvcca.deep.layers.DynamicallyScaledLinear`; see `mvcca.deep.encoders.DynamicEncoder`.
        `fit` trains copies.
    warm_up : int or "auto", default="auto"
        Number of epochs without scaling, in which the losses equal those of `CCAL` with the same
        parameters and `random_state`; "auto" is half of `max_epochs`.
    scaling_start : {"auto", "default", "one"}, default="auto"
        Initial weights of the scaling networks: "default" are those of torch, as in [1]_, and with
        "one" the scales are close to 1. "auto" is "one" for fewer than 10,000 training rows.

    Notes
    -----
    Settings of [1]_ for 8,000 to 30,000 images with texts, where they differ from the defaults:

    ========================  ====================================================
    ``n_components``          128
    ``batch_size``            1024
    ``hidden_layer_sizes``    (1024, 512)
    ``warm_up``               50
    ``max_epochs``            500 for Flickr8k, 200 for others
    ``margin``                0.4 to 0.8
    ``memory``                0.85 to 0.97
    ========================  ====================================================

    References
    ----------
    .. [1] Friedlander and Wolf, "Dynamically-Scaled Deep Canonical Correlation Analysis", 2022,
       section 4.2.

    Examples
    --------
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.deep import DSRankingCCA
    >>> views = load_digits_views().views
    >>> model = DSRankingCCA(
    ...     8,
    ...     hidden_layer_sizes=(32,),
    ...     scaling_layer_sizes=(16,),
    ...     batch_size=300,
    ...     max_epochs=4,
    ...     warm_up=2,
    ...     random_state=0,
    ... ).fit(views)
    >>> {name: scores.shape for name, scores in model.transform(views).items()}
    {'left': (1797, 8), 'right': (1797, 8)}
    """

    sees: str = parameter("zx", one_of("zx", "z", "x"))
    scaling_layer_sizes: Sequence[int] = parameter((256,), "array-like")
    warm_up: int | str = "auto"

    start: ClassVar[str] = "random"  # type: ignore[misc]  # the warm-up is its start
    _unscaled = "CCAL"
    _network_parameters = ("hidden_layer_sizes", "scaling_layer_sizes", "sees", "scaling_start")

    def _new_network(
        self, n_in: int, hidden: tuple[int, ...], n_out: int, generator: Generator
    ) -> nn.Module:
        n_last = (n_in, *hidden)[-1]
        n_context = {"z": n_last, "x": n_in, "zx": n_last + n_in}[self.sees]
        sizes, start = tuple(self.scaling_layer_sizes), self._setting("scaling_start")

        def last(n_in: int, n_out: int) -> nn.Module:
            return DynamicallyScaledLinear(
                n_in, n_out, sizes, start=start, generator=generator, n_context=n_context
            )

        *trunk, scaled, normalization = mlp(n_in, hidden, n_out, last=last, generator=generator)
        return DynamicEncoder(nn.Sequential(*trunk), scaled, normalization, self.sees)
