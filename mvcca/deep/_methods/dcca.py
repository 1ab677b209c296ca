"""Deep CCA, and its variants that reconstruct the rows or select features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from torch import Generator, Tensor, nn

from mvcca.base.parameters import NOT_NEGATIVE, POSITIVE, parameter
from mvcca.base.tuned_fits import setting_by_view
from mvcca.deep._bases.cca_scores import CCAScores
from mvcca.deep._bases.estimator import Widths
from mvcca.deep._bases.started import StartedNetworks
from mvcca.deep._losses.batch import Batch, summed
from mvcca.deep._networks.weights import drawn_seed
from mvcca.deep.encoders import Encoders, mlp
from mvcca.deep.functional import expected_open_gates, reconstruction_error
from mvcca.deep.layers import StochasticGates
from mvcca.deep.objectives import BoundLoss, TraceNormLoss
from mvcca.deep.trainer import Objective, Trainer
from mvcca.problem.ridge import reg_of_names
from mvcca.views import Views


class DCCA(CCAScores, StartedNetworks):
    r"""Deep canonical correlation analysis of two or more views.

    Trains one network f_p per view to maximize the sum of canonical correlations of the networks'
    outputs on each batch [1]_,

    .. math::

        \max \; \sum_{p<q} \sum_i s_i(T_{pq}), \qquad
        T_{pq} = S_p^{-1/2} Σ_{pq} S_q^{-1/2}, \qquad S_p = Σ_{pp} + r_p v_p I,

    where Σ are covariances of the outputs, s_i singular values, and v_p = tr(Σ_pp) / k the mean
    variance of view p. (Some implementations maximize Σ s_i², or use the smallest s_i.) After
    training, linear CCA (`mvcca.MVCCA` for more than two views) is fitted in float64 to the outputs
    for all training rows, and gives the scores of the model.

    Parameters and attributes that are not listed here are those of `mvcca.deep.bases.CCAScores` and
    `mvcca.deep.bases.StartedNetworks`.

    Parameters
    ----------
    reg : float or mapping of str to float, default=1e-4
        Ridge r_p in units of the mean variance v_p of the view's network outputs, in the loss and
        in the final linear CCA, so that rescaling the outputs changes neither. A published absolute
        ridge is r_p v_p; the default networks end in batch norm, so that v_p is 1.
    batch_size : int or "auto", default="auto"
        Rows per batch; all rows if there are fewer. Use at least 8 rows per component. "auto" is
        128 for fewer than 10,000 training rows and 750 for more, or that minimum.
    learning_rate : float, mapping of str to float or "auto", default="auto"
        Learning rate of the optimizer, for all views or by view. "auto" is 3e-3 for fewer than
        10,000 training rows and 1e-3 for more.

    See Also
    --------
    DSDCCA : Deep CCA whose last layer is rescaled for each row.
    mvcca.KCCA : Kernel CCA: nonlinear, without networks to choose.

    References
    ----------
    .. [1] Andrew, Arora, Bilmes and Livescu, "Deep Canonical Correlation Analysis", ICML 2013.

    Examples
    --------
    >>> from mvcca import CCA
    >>> from mvcca.datasets import make_nonlinear_views
    >>> from mvcca.deep import DCCA
    >>> views = make_nonlinear_views(400, random_state=0).views
    >>> model = DCCA(1, hidden_layer_sizes=(32,), batch_size=100, max_epochs=40, random_state=0)
    >>> CCA(1).fit(views).score(views) < 0.1, model.fit(views).score(views) > 0.95
    (True, True)
    """

    learning_rate: float | str | Mapping[str, float] = "auto"

    _whitens_batches = True

    def _objective(self, encoders: Encoders, widths: Widths, generator: Generator) -> Objective:
        return TraceNormLoss(reg_of_names(self.reg, encoders.names))


class DCCAE(DCCA):
    r"""Deep canonically correlated autoencoders: deep CCA with a reconstruction penalty [1]_.

    .. math::

        \max \; \sum_{p<q} \sum_i s_i(T_{pq})
            - λ \sum_p \frac{1}{n} \sum_i \lVert x_{pi} - d_p(f_p(x_{pi})) \rVert^2

    with the correlations s_i(T_pq) of `DCCA`, and decoders d_p that mirror the networks f_p.

    Parameters and attributes that are not listed here are those of `DCCA`.

    Parameters
    ----------
    reconstruction : float, default=0.01
        Weight λ of the reconstruction error.
    hidden_layer_sizes : sequence of int, mapping of str to sequence, or "auto", default="auto"
        Widths of the hidden layers, for all views or by view. "auto" is (256, 256) for fewer than
        10,000 training rows and (800, 800) for more. Each hidden layer is linear → batch
        norm → ReLU; the output is batch-normalized too. The decoders have the hidden layers in
        reverse order, also if `encoders` are given.

    References
    ----------
    .. [1] Wang, Arora, Livescu and Bilmes, "On Deep Multi-View Representation Learning", ICML 2015.

    Examples
    --------
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.deep import DCCAE
    >>> views = load_digits_views().views
    >>> model = DCCAE(8, hidden_layer_sizes=(32,), max_epochs=3, start="random")
    >>> model = model.set_params(random_state=0).fit(views)
    >>> {name: scores.shape for name, scores in model.transform(views).items()}
    {'left': (1797, 8), 'right': (1797, 8)}
    """

    reconstruction: float = parameter(0.01, NOT_NEGATIVE)

    _network_parameters = ()  # the decoders use hidden_layer_sizes even if encoders are given

    def _objective(self, encoders: Encoders, widths: Widths, generator: Generator) -> Objective:
        hidden = self._hidden_sizes(encoders.names)
        decoders = {
            name: mlp(
                width,
                hidden[name][::-1],
                self._widths[name],
                normalize_output=False,
                generator=generator,
            )
            for name, width in widths.items()
        }
        return BoundLoss(
            dccae_loss,
            correlation=super()._objective(encoders, widths, generator),
            decoders=Encoders(decoders),
            weight=self.reconstruction,
        )


def dccae_loss(
    scores: Mapping[str, Tensor],
    batch: Batch,
    correlation: TraceNormLoss,
    decoders: Encoders,
    weight: float,
) -> dict[str, Tensor]:
    """Negative sum of correlations, and λ Σ_p mean_i ‖x_pi - d_p(f_pi)‖²."""
    terms = {"correlation": correlation(scores, batch)}
    decoded = decoders(scores)
    errors = [reconstruction_error(X, decoded[name]) for name, X in batch.views.items()]
    return terms | {"reconstruction": weight * summed(errors)}


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
        Weight λ of the mean over the features, for all views or by view. [1]_ prints the sum; most
        implementations take the mean.
    gate_sigma : float, default=0.5
        Standard deviation σ of the noise.
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
        return BoundLoss(
            l0cca_loss,
            correlation=super()._objective(encoders, widths, generator),
            gates={name: encoders[name][0] for name in encoders.names},
            weights=setting_by_view(self, "gate_penalty", encoders.names),
        )

    def _finish(self, trainer: Trainer, views: Views) -> Self:
        super()._finish(trainer, views)
        self.gates_ = {
            name: trainer.encoders[name][0].means.detach().clamp(0, 1).numpy().copy()
            for name in trainer.encoders.names
        }
        return self


def l0cca_loss(
    scores: Mapping[str, Tensor],
    batch: Batch,
    correlation: TraceNormLoss,
    gates: Mapping[str, StochasticGates],
    weights: Mapping[str, float],
) -> dict[str, Tensor]:
    """Negative sum of correlations, and the expected shares of open gates with weights λ_p."""
    terms = {"correlation": correlation(scores, batch)}
    penalties = [
        weights[name] * expected_open_gates(own.means, own.sigma) for name, own in gates.items()
    ]
    return terms | {"gates": summed(penalties)}
