"""Deep CCA that selects features."""

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
from mvcca.deep.layers import StochasticGates
from mvcca.deep.objectives import GateLoss, TraceNormLoss, WeightedSum
from mvcca.deep.trainer import Objective
from mvcca.problem import reg_of_names
from mvcca.views import Views


class L0CCA(DeepEstimator):
    """Deep CCA of gated features: ℓ0-CCA, which selects the features that are of use [1]_.

        max E_ε Σ_{p<q} Σ_i s_i(T_pq) - Σ_p λ_p mean_j P(z_pj > 0),   z = min(1, max(0, μ + σ ε)),

    with one gate z_pj for every feature of every view in front of the networks, ε ~ N(0, 1) drawn
    once per batch, and the correlations of f_p(z_p ⊙ x_p). The paper's objective adds up Σ s_i²;
    this is that of `DCCA`, as in later comparisons, and all else is as there.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the shared space, and width of the networks' output.
    gate_penalty : float or mapping of str to float, default=0.1
        λ, of all views or by view.
    gate_sigma : float, default=0.5
        σ.
    gate_reduction : {"mean", "sum"}, default="mean"
        Whether the expected open gates are averaged over a view's features, as in most code, or
        added up, as the paper prints it.
    monitor : {"correlation", "loss"}, default="loss"
        As in `DCCA`. The correlation alone would prefer epochs before gates close.
    hidden_layer_sizes, encoders, reg, batch_size, max_epochs, optimizer, learning_rate, \
    weight_decay, validation_fraction, patience, callbacks, mixed_precision, device, random_state
        As in `DCCA`; encoders of your own get gates, too.

    Attributes
    ----------
    gates_ : dict of str to ndarray, shape (n_features,)
        The gates of rows to come, min(1, max(0, μ)): features with 0 play no part.
    encoders_, history_, best_epoch_, weights_, means_, canonical_correlations_, eigenvalues_, \
    n_components_, view_names_, n_features_in_
        As in `DCCA`.

    References
    ----------
    .. [1] Lindenbaum, Salhov, Averbuch and Kluger, "ℓ0-Sparse Canonical Correlation Analysis",
       ICLR 2022.
    """

    _collapses_by = "all gates have closed: lower gate_penalty"
    _whitens_batches = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **DeepEstimator._parameter_constraints,
        "gate_penalty": [Interval(Real, 0, None, closed="left"), Mapping],
        "gate_sigma": [Interval(Real, 0, None, closed="neither")],
        "gate_reduction": [StrOptions({"mean", "sum"})],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        gate_penalty: float | Mapping[str, float] = 0.1,
        gate_sigma: float = 0.5,
        gate_reduction: str = "mean",
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
        monitor: str = "loss",
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
        self.gate_penalty = gate_penalty
        self.gate_sigma = gate_sigma
        self.gate_reduction = gate_reduction

    def _new_encoders(self, views: Views, generator: torch.Generator) -> Encoders:
        ungated = super()._new_encoders(views, generator)
        gated = {}
        for name, width in views.widths.items():
            seed = int(torch.randint(2**31 - 1, (1,), generator=generator))
            gated[name] = nn.Sequential(
                StochasticGates(width, self.gate_sigma, seed), ungated[name]
            )
        return Encoders(gated)

    def _objective(
        self, encoders: Encoders, widths: Mapping[str, int], generator: torch.Generator
    ) -> Objective:
        penalties = by_view(self, "gate_penalty", encoders.names)
        gates = [_gates(encoders, name) for name in encoders.names]
        return WeightedSum(
            (1.0, TraceNormLoss(reg_of_names(self.reg, encoders.names))),
            (1.0, GateLoss(gates, [penalties[n] for n in encoders.names], self.gate_reduction)),
        )

    def _learn_from(self, encoders: Encoders) -> None:
        self.gates_ = {
            name: _gates(encoders, name).means.detach().clamp(0, 1).numpy().copy()
            for name in encoders.names
        }


def _gates(encoders: Encoders, name: str) -> StochasticGates:
    return next(encoders[name].children())
