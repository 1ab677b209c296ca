"""Soft-HGR."""

from __future__ import annotations

from torch import Generator

from mvcca.deep._bases.cca_scores import CCAScores
from mvcca.deep._bases.estimator import Widths
from mvcca.deep._bases.started import StartedNetworks
from mvcca.deep.encoders import Encoders
from mvcca.deep.objectives import SoftHGRLoss
from mvcca.deep.trainer import Objective


class SoftHGR(CCAScores, StartedNetworks):
    r"""Soft-HGR: deep maximal correlation without whitening [1]_.

    .. math::

        \max \; \sum_{p<q} E \, \bar f_p^⊤ \bar f_q
            - \tfrac12 \mathrm{tr}\big(\mathrm{cov}(f_p) \, \mathrm{cov}(f_q)\big)

    over networks f_p, whose centred outputs are f̄_p. Training inverts no matrix, so that batches
    may be small and outputs wide; it takes more epochs than `DCCA` to reach the same correlation.

    Parameters and attributes that are not listed here are those of `mvcca.deep.bases.CCAScores` and
    `mvcca.deep.bases.StartedNetworks`.

    Parameters
    ----------
    max_epochs : int or "auto", default=100
        Maximum number of passes over the rows. "auto" is 40 for fewer than 10,000 training rows and
        100 for more.

    References
    ----------
    .. [1] Wang et al., "An Efficient Approach to Informative Feature Extraction from Multimodal
       Data", AAAI 2019.

    Examples
    --------
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.deep import SoftHGR
    >>> views = load_digits_views().views
    >>> model = SoftHGR(8, hidden_layer_sizes=(32,), max_epochs=3, start="random")
    >>> model = model.set_params(random_state=0).fit(views)
    >>> {name: scores.shape for name, scores in model.transform(views).items()}
    {'left': (1797, 8), 'right': (1797, 8)}
    """

    max_epochs: int | str = 100

    def _objective(self, encoders: Encoders, widths: Widths, generator: Generator) -> Objective:
        return SoftHGRLoss()
