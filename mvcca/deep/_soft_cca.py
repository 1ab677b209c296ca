"""Soft-CCA."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar

import torch
from sklearn.utils._param_validation import Interval, StrOptions
from torch import nn

from mvcca._by_view import by_view
from mvcca.deep._estimator import DeepEstimator
from mvcca.deep.callbacks import Callback
from mvcca.deep.encoders import Encoders
from mvcca.deep.objectives import SoftCCALoss
from mvcca.deep.trainer import Objective


class SoftCCA(DeepEstimator):
    """Deep CCA by stochastic decorrelation in place of whitening: Soft-CCA [1]_.

        min Σ_{p<q} ½ mean_i ‖f_p,i - f_q,i‖² + λ Σ_p Σ_{i≠j} abs(C̃_p,ij)

    with running covariances Ĉ_t = α Ĉ_{t-1} + C_t of the outputs, C̃_t = Ĉ_t / Σ_s α^s. Batch norm
    keeps the variances at 1. A step costs no decomposition, but it takes many: with λ too small
    outputs are copies of each other, and the result depends on λ. All else is as in `DCCA`.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the shared space, and width of the networks' output.
    decorrelation : float, default=10.0
        λ.
    decay : float or mapping of str to float, default=0.95
        α, of all views or by view.
    sdl_reduction : {"sum", "mean"}, default="sum"
        Whether the terms off the diagonal are added up, as published λ of 1 to 20 ask for, or
        averaged.
    hidden_layer_sizes, encoders, reg, batch_size, max_epochs, optimizer, learning_rate, \
    weight_decay, validation_fraction, patience, monitor, callbacks, mixed_precision, device, \
    random_state
        As in `DCCA`; reg is that of the linear CCA alone.

    Attributes
    ----------
    encoders_, history_, best_epoch_, weights_, means_, canonical_correlations_, eigenvalues_, \
    n_components_, view_names_, n_features_in_
        As in `DCCA`.

    References
    ----------
    .. [1] Chang, Xiang and Hospedales, "Scalable and Effective Deep CCA via Soft Decorrelation",
       CVPR 2018.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **DeepEstimator._parameter_constraints,
        "decorrelation": [Interval(Real, 0, None, closed="left")],
        "decay": [Interval(Real, 0, 1, closed="left"), Mapping],
        "sdl_reduction": [StrOptions({"sum", "mean"})],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        decorrelation: float = 10.0,
        decay: float | Mapping[str, float] = 0.95,
        sdl_reduction: str = "sum",
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
        self.decorrelation = decorrelation
        self.decay = decay
        self.sdl_reduction = sdl_reduction

    def _objective(
        self, encoders: Encoders, widths: Mapping[str, int], generator: torch.Generator
    ) -> Objective:
        if len(set(widths.values())) > 1:
            raise ValueError(
                f"SoftCCA compares scores one by one: all networks must give as many, got {widths}."
            )
        decay = by_view(self, "decay", encoders.names)
        return SoftCCALoss(widths, self.decorrelation, decay, self.sdl_reduction)
