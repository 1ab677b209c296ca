"""Deep CCA with autoencoders."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar

import torch
from sklearn.utils._param_validation import Interval
from torch import nn

from mvcca._by_view import by_view
from mvcca.deep._estimator import DeepEstimator
from mvcca.deep.callbacks import Callback
from mvcca.deep.encoders import Encoders, mlp
from mvcca.deep.objectives import ReconstructionLoss, TraceNormLoss, WeightedSum
from mvcca.deep.trainer import Objective
from mvcca.problem import reg_of_names


class DCCAE(DeepEstimator):
    """Deep CCA whose scores must also tell what the rows were: deep CCA with autoencoders [1]_.

        max Σ_{p<q} Σ_i s_i(T_pq) - λ Σ_p mean_i ‖x_p,i - d_p(f_p(x_p,i))‖²

    with decoders d_p that mirror the networks f_p. All else is as in `DCCA`.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the shared space, and width of the networks' output.
    reconstruction : float, default=0.01
        λ.
    hidden_layer_sizes, encoders, reg, batch_size, max_epochs, optimizer, learning_rate, \
    weight_decay, validation_fraction, patience, monitor, callbacks, mixed_precision, device, \
    random_state
        As in `DCCA`; decoders have the hidden layers in reverse order, also of encoders of
        your own.

    Attributes
    ----------
    encoders_, history_, best_epoch_, weights_, means_, canonical_correlations_, eigenvalues_, \
    n_components_, view_names_, n_features_in_
        As in `DCCA`.

    References
    ----------
    .. [1] Wang, Arora, Livescu and Bilmes, "On Deep Multi-View Representation Learning", ICML 2015.
    """

    _network_parameters = ()  # the decoders have hidden layers, whatever the encoders are
    _whitens_batches = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **DeepEstimator._parameter_constraints,
        "reconstruction": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        reconstruction: float = 0.01,
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
        self.reconstruction = reconstruction

    def _objective(
        self, encoders: Encoders, widths: Mapping[str, int], generator: torch.Generator
    ) -> Objective:
        hidden = by_view(self, "hidden_layer_sizes", encoders.names)
        decoders = {
            name: mlp(
                width,
                tuple(hidden[name])[::-1],
                self._widths[name],
                normalize_output=False,
                generator=generator,
            )
            for name, width in widths.items()
        }
        return WeightedSum(
            (1.0, TraceNormLoss(reg_of_names(self.reg, encoders.names))),
            (self.reconstruction, ReconstructionLoss(Encoders(decoders))),
        )
