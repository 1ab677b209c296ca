"""The part of deep estimators whose networks are rescaled for each row after a warm-up."""

from __future__ import annotations

from typing import Any

from torch import nn

from mvcca.deep._bases.estimator import DeepEstimator
from mvcca.deep._bases.parameters import at_least, one_of, parameter
from mvcca.deep._training.rows import Sample
from mvcca.deep._training.training import Training
from mvcca.deep.callbacks import Callback
from mvcca.deep.layers import DynamicallyScaledLinear
from mvcca.deep.trainer import Trainer
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
