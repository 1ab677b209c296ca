"""Deep CCA without whitening: Soft-CCA and Soft-HGR."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from torch import Generator, Tensor, nn

from mvcca.base.parameters import BELOW_1, NOT_NEGATIVE, one_of, parameter
from mvcca.base.tuned_fits import setting_by_view
from mvcca.deep._bases.cca_scores import CCAScores
from mvcca.deep._bases.estimator import Widths, common_width
from mvcca.deep._bases.started import StartedNetworks
from mvcca.deep._losses.batch import Batch, summed
from mvcca.deep.encoders import Encoders
from mvcca.deep.functional import off_diagonal, soft_hgr, squared_distance
from mvcca.deep.layers import RunningCovariance
from mvcca.deep.objectives import BoundLoss
from mvcca.deep.trainer import Objective


class SoftCCA(CCAScores, StartedNetworks):
    r"""Soft-CCA: deep CCA with stochastic decorrelation instead of whitening [1]_.

    .. math::

        \min \; \sum_{p<q} \frac{1}{2n} \sum_i \lVert f_{pi} - f_{qi} \rVert^2
            + λ \sum_p \sum_{i≠j} \lvert \tilde C_{p,ij} \rvert, \qquad
        \hat C_t = α \hat C_{t-1} + C_t, \qquad \tilde C_t = \hat C_t \Big/ \sum_{s<t} α^s,

    where C_t are the covariances of the outputs for batch t, whose running mean is C̃. Batch norm
    keeps the variances at 1. A step needs no matrix decomposition, but training needs many steps,
    and the result depends on λ: if it is too small, outputs are copies of each other.

    Parameters and attributes that are not listed here are those of `mvcca.deep.bases.CCAScores` and
    `mvcca.deep.bases.StartedNetworks`.

    Parameters
    ----------
    decorrelation : float or "auto", default="auto"
        Weight λ of the decorrelation. "auto" is 1 for fewer than 10,000 training rows and 10 for
        more. Every pair of components counts twice here; published figures are reached with half of
        the published λ.
    decay : float or mapping of str to float, default=0.95
        Decay α of the running covariances, for all views or by view.
    max_epochs : int or "auto", default=100
        Maximum number of passes over the rows. "auto" is 40 for fewer than 10,000 training rows and
        100 for more.

    References
    ----------
    .. [1] Chang, Xiang and Hospedales, "Scalable and Effective Deep CCA via Soft Decorrelation",
       CVPR 2018.

    Examples
    --------
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.deep import SoftCCA
    >>> views = load_digits_views().views
    >>> model = SoftCCA(8, hidden_layer_sizes=(32,), max_epochs=3, start="random")
    >>> model = model.set_params(random_state=0).fit(views)
    >>> {name: scores.shape for name, scores in model.transform(views).items()}
    {'left': (1797, 8), 'right': (1797, 8)}
    """

    decorrelation: float | str = parameter("auto", NOT_NEGATIVE, one_of("auto"))
    max_epochs: int | str = 100
    decay: float | Mapping[str, float] = parameter(0.95, BELOW_1, Mapping)

    def _objective(self, encoders: Encoders, widths: Widths, generator: Generator) -> Objective:
        common_width(widths)
        decay = setting_by_view(self, "decay", encoders.names)
        covariances = [RunningCovariance(width, decay[name]) for name, width in widths.items()]
        return BoundLoss(
            soft_cca_loss,
            covariances=nn.ModuleList(covariances),
            weight=self._setting("decorrelation"),
        )


def soft_cca_loss(
    scores: Mapping[str, Tensor], _: Batch, covariances: nn.ModuleList, weight: float
) -> Tensor:
    """Distance of paired scores plus λ times the decorrelation of each view.

    In training mode the covariances of the batch update the running ones.
    """
    tensors = list(scores.values())
    distance = summed(squared_distance(F, G) for F, G in combinations(tensors, 2))
    correlation = summed(
        off_diagonal(running(F)) for running, F in zip(covariances, tensors, strict=True)
    )
    return distance + weight * correlation


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
        return soft_hgr_loss


def soft_hgr_loss(scores: Mapping[str, Tensor], _: Batch) -> Tensor:
    """Negative sum of the objective over all pairs of views."""
    return -summed(soft_hgr(F, G) for F, G in combinations(scores.values(), 2))
