"""Dynamically scaled deep CCA."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from typing import Any, ClassVar

import torch
from sklearn.utils._param_validation import Interval, StrOptions
from torch import nn

from mvcca.deep._estimator import DeepEstimator
from mvcca.deep.callbacks import Callback
from mvcca.deep.encoders import Encoders, mlp
from mvcca.deep.layers import DynamicallyScaledLinear
from mvcca.deep.objectives import TraceNormLoss
from mvcca.deep.trainer import Objective, Trainer
from mvcca.problem import reg_of_names


class DSDCCA(DeepEstimator):
    """Dynamically scaled deep CCA: `DCCA` whose last layer is scaled anew for every row [1]_.

    With z the activations before the last linear layer of a view, and W, b that layer's parameters,

        f(x) = (h_W(z) ⊙ W) z + h_b(z) ⊙ b,

    where h is a network of its own, of the same view. For `warm_up` epochs h ≡ 1, as in `DCCA`;
    then everything is trained. All else is as there.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the shared space, and width of the networks' output.
    scaling_layer_sizes : sequence of int, default=(128,)
        Hidden layers of h. Its output has n_components x (width of z + 1) numbers, and time and
        memory go up with its last hidden layer.
    warm_up : int, default=50
        Epochs without scaling.
    scaling : {"parameters", "outputs", "global", "generated"}, default="parameters"
        What is scaled; the others are the paper's ablations: the layer's outputs instead; its
        parameters by factors that are the same for all rows; or h in the place of the parameters.
    scaling_start : {"default", "one"}, default="default"
        h at first: torch's initial weights, as in the paper, or close to 1.
    hidden_layer_sizes, encoders, reg, batch_size, max_epochs, optimizer, learning_rate, \
    weight_decay, validation_fraction, patience, monitor, callbacks, mixed_precision, device, \
    random_state
        As in `DCCA`; encoders of your own must hold layers of type
        `mvcca.deep.layers.DynamicallyScaledLinear`.

    Attributes
    ----------
    encoders_, history_, best_epoch_, weights_, means_, canonical_correlations_, eigenvalues_, \
    n_components_, view_names_, n_features_in_
        As in `DCCA`.

    References
    ----------
    .. [1] Friedlander and Wolf, "Dynamically-Scaled Deep Canonical Correlation Analysis", 2022.
    """

    _network_parameters = (
        "hidden_layer_sizes",
        "scaling_layer_sizes",
        "scaling",
        "scaling_start",
    )
    _whitens_batches = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **DeepEstimator._parameter_constraints,
        "scaling_layer_sizes": ["array-like"],
        "warm_up": [Interval(Integral, 0, None, closed="left")],
        "scaling": [StrOptions({"parameters", "outputs", "global", "generated"})],
        "scaling_start": [StrOptions({"default", "one"})],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        scaling_layer_sizes: Sequence[int] = (128,),
        warm_up: int = 50,
        scaling: str = "parameters",
        scaling_start: str = "default",
        hidden_layer_sizes: Sequence[int] | Mapping[str, Sequence[int]] = (800, 800),
        encoders: Mapping[str, nn.Module] | Sequence[nn.Module] | None = None,
        reg: float | Mapping[str, float] = 1e-4,
        batch_size: int = 750,
        max_epochs: int = 100,
        optimizer: str | Callable[..., torch.optim.Optimizer] = "rmsprop",
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-5,
        validation_fraction: float | None = None,
        patience: int | None = None,
        monitor: str = "correlation",
        callbacks: Sequence[Callback] = (),
        mixed_precision: bool = False,
        device: str = "auto",
        random_state: Any = None,
    ) -> None:
        super().__init__(
            n_components,
            hidden_layer_sizes=hidden_layer_sizes,
            encoders=encoders,
            reg=reg,
            batch_size=batch_size,
            max_epochs=max_epochs,
            optimizer=optimizer,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            validation_fraction=validation_fraction,
            patience=patience,
            monitor=monitor,
            callbacks=callbacks,
            mixed_precision=mixed_precision,
            device=device,
            random_state=random_state,
        )
        self.scaling_layer_sizes = scaling_layer_sizes
        self.warm_up = warm_up
        self.scaling = scaling
        self.scaling_start = scaling_start

    def _encoder(
        self, n_features: int, hidden: tuple[int, ...], n_scores: int, generator: torch.Generator
    ) -> nn.Module:
        def last(n_in: int, n_out: int) -> nn.Module:
            sizes = tuple(self.scaling_layer_sizes)
            return DynamicallyScaledLinear(
                n_in, n_out, sizes, self.scaling, self.scaling_start, generator
            )

        return mlp(n_features, hidden, n_scores, last=last, generator=generator)

    def _objective(
        self, encoders: Encoders, widths: Mapping[str, int], generator: torch.Generator
    ) -> Objective:
        if not any(_scaled_layers(encoders)):
            raise ValueError(
                "None of the encoders holds a mvcca.deep.layers.DynamicallyScaledLinear layer: "
                "there is nothing to scale. Use DCCA, or give them one."
            )
        return TraceNormLoss(reg_of_names(self.reg, encoders.names))

    def _own_callbacks(self) -> list[Callback]:
        return [WarmUp(self.warm_up)]


class WarmUp(Callback):
    """Scaling sets in after some epochs.

    The scaling networks are the optimiser's from the start, but without gradients until then, so
    that it leaves them as they are and keeps no state of theirs.
    """

    def __init__(self, n_epochs: int) -> None:
        self.n_epochs = n_epochs

    def on_epoch_begin(self, trainer: Trainer) -> None:
        """Scale, or not."""
        for layer in _scaled_layers(trainer.encoders):
            layer.scaled = trainer.epoch > self.n_epochs


def _scaled_layers(encoders: Encoders) -> list[DynamicallyScaledLinear]:
    return [layer for layer in encoders.modules() if isinstance(layer, DynamicallyScaledLinear)]
