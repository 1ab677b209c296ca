"""Deep CCA with autoencoders."""

from __future__ import annotations

from torch import Generator

from mvcca.deep._bases.estimator import Widths
from mvcca.deep._bases.parameters import NOT_NEGATIVE, parameter
from mvcca.deep._methods.dcca import DCCA
from mvcca.deep.encoders import Encoders, mlp
from mvcca.deep.objectives import ReconstructionLoss, WeightedSum
from mvcca.deep.trainer import Objective


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
        correlation = super()._objective(encoders, widths, generator)
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
        reconstruction = ReconstructionLoss(Encoders(decoders))
        return WeightedSum(
            {
                "correlation": (1.0, correlation),
                "reconstruction": (self.reconstruction, reconstruction),
            }
        )
