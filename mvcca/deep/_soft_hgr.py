"""Soft-HGR."""

from __future__ import annotations

from torch import Generator

from mvcca.deep._cca_scores import CCAScores
from mvcca.deep._constructor import estimator
from mvcca.deep._estimator import Widths
from mvcca.deep._networks import NetworkEstimator
from mvcca.deep.encoders import Encoders
from mvcca.deep.objectives import SoftHGRLoss
from mvcca.deep.trainer import Objective


@estimator
class SoftHGR(CCAScores, NetworkEstimator):
    """Soft-HGR: deep maximal correlation without whitening [1]_.

        max Σ_{p<q} E f̄_pᵀ f̄_q - ½ tr(cov(f_p) cov(f_q))

    over networks f_p. Training inverts no matrix, so that batches may be small and outputs wide; it
    takes more epochs than `DCCA` to reach the same correlation.

    References
    ----------
    .. [1] Wang et al., "An Efficient Approach to Informative Feature Extraction from Multimodal
       Data", AAAI 2019.
    """

    def _objective(self, encoders: Encoders, widths: Widths, generator: Generator) -> Objective:
        return SoftHGRLoss()
