"""Deep CCA with feature selection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from torch import Generator, Tensor, nn

from mvcca.base.tuned_fits import setting_by_view
from mvcca.deep._bases.estimator import Widths
from mvcca.deep._bases.parameters import NOT_NEGATIVE, POSITIVE, one_of, parameter
from mvcca.deep._losses.batch import Batch, summed
from mvcca.deep._methods.dcca import DCCA
from mvcca.deep._networks.weights import drawn_seed
from mvcca.deep.encoders import Encoders
from mvcca.deep.functional import expected_open_gates
from mvcca.deep.layers import StochasticGates
from mvcca.deep.objectives import WeightedSum
from mvcca.deep.trainer import Objective, Trainer
from mvcca.views import Views


class L0CCA(DCCA):
    r"""ℓ0-CCA: deep CCA that selects features with stochastic gates [1]_.

    .. math::

        \max \; E_ε \sum_{p<q} \sum_i s_i(T_{pq})
            - \sum_p \frac{λ_p}{d_p} \sum_{j=1}^{d_p} P(z_{pj} > 0), \qquad
        z = \min(1, \max(0, μ + σ ε)),

    with one gate z_pj per feature in front of the networks, ε ~ N(0, 1) drawn once per batch, and
    the correlations of f_p(z_p ⊙ x_p) as in `DCCA`. (The original objective sums s_i²; later
    comparisons use this one.)

    Parameters and attributes that are not listed here are those of `DCCA`.

    Parameters
    ----------
    gate_penalty : float or mapping of str to float, default=0.1
        Weight λ of the penalty, for all views or by view.
    gate_sigma : float, default=0.5
        Standard deviation σ of the noise.
    gate_reduction : {"mean", "sum"}, default="mean"
        Whether the expected open gates are averaged over the features of a view, as in most
        implementations, or summed, as printed in [1]_.
    monitor : str or callable, default="valid_loss"
        Quantity compared across epochs on the validation rows. "valid_correlation"
        prefers epochs before gates close.
    encoders : mapping of str to Module, or sequence of Module, optional
        Custom networks, by view or in the order of the views: any `torch.nn.Module` that maps rows
        to scores of shape (n_rows, n_scores). `fit` trains copies behind gates.

    Attributes
    ----------
    gates_ : dict of str to ndarray, shape (n_features,)
        Gates min(1, max(0, μ)) by view; features with gate 0 are not used.

    References
    ----------
    .. [1] Lindenbaum, Salhov, Averbuch and Kluger, "ℓ0-Sparse Canonical Correlation Analysis",
       ICLR 2022.

    Examples
    --------
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.deep import L0CCA
    >>> views = load_digits_views().views
    >>> model = L0CCA(8, hidden_layer_sizes=(32,), max_epochs=3, random_state=0).fit(views)
    >>> {name: gates.shape for name, gates in model.gates_.items()}
    {'left': (32,), 'right': (32,)}
    """

    gate_penalty: float | Mapping[str, float] = parameter(0.1, NOT_NEGATIVE, Mapping)
    gate_sigma: float = parameter(0.5, POSITIVE)
    gate_reduction: str = parameter("mean", one_of("mean", "sum"))
    monitor: Any = "valid_loss"

    # Gates would not select features of a linear part.
    start: ClassVar[str] = "random"  # type: ignore[misc]
    _collapse_advice = "all gates have closed: lower gate_penalty"

    def _networks(self, generator: Generator) -> Encoders:
        networks = super()._networks(generator)
        gated = {}
        for name, width in self._widths.items():
            gates = StochasticGates(width, self.gate_sigma, drawn_seed(generator))
            gated[name] = nn.Sequential(gates, networks[name])
        return Encoders(gated)

    def _objective(self, encoders: Encoders, widths: Widths, generator: Generator) -> Objective:
        correlation = super()._objective(encoders, widths, generator)
        penalties = setting_by_view(self, "gate_penalty", encoders.names)
        gates, weights = zip(*((encoders[n][0], penalties[n]) for n in encoders.names), strict=True)
        penalty = GateLoss(gates, weights, self.gate_reduction)
        return WeightedSum({"correlation": (1.0, correlation), "gates": (1.0, penalty)})

    def _finish(self, trainer: Trainer, views: Views) -> Self:
        super()._finish(trainer, views)
        self.gates_ = {
            name: trainer.encoders[name][0].means.detach().clamp(0, 1).numpy().copy()
            for name in trainer.encoders.names
        }
        return self


class GateLoss(nn.Module):
    """Expected number, or share, of open gates, summed over the views.

    Parameters
    ----------
    gates : sequence of StochasticGates
        The gates of each view, part of its encoder.
    weights : sequence of float
        Weight of each view.
    reduction : {"mean", "sum"}, default="mean"
        See `mvcca.deep.expected_open_gates`.
    """

    def __init__(
        self, gates: Sequence[StochasticGates], weights: Sequence[float], reduction: str = "mean"
    ) -> None:
        super().__init__()
        self.gates = tuple(gates)  # not registered: their parameters belong to the encoders
        self.weights, self.reduction = weights, reduction

    def forward(self, scores: Mapping[str, Tensor], batch: Batch) -> Tensor:
        """The penalty, which does not depend on the batch."""
        return summed(
            weight * expected_open_gates(gates.means, gates.sigma, self.reduction)
            for gates, weight in zip(self.gates, self.weights, strict=True)
        )
