"""Soft-HGR."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from mvcca.deep._estimator import DeepEstimator
from mvcca.deep.encoders import Encoders
from mvcca.deep.objectives import SoftHGRLoss
from mvcca.deep.trainer import Objective


class SoftHGR(DeepEstimator):
    """Deep maximal correlation without whitening: the Soft-HGR objective [1]_.

        max Σ_{p<q} E f̄_pᵀ f̄_q - ½ tr(cov(f_p) cov(f_q))

    over networks f_p. Nothing is inverted in training, so that batches may be small and the outputs
    many; it takes more epochs than `DCCA` for as much correlation. All else is as there.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the shared space, and width of the networks' output.
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
    .. [1] Wang et al., "An Efficient Approach to Informative Feature Extraction from Multimodal
       Data", AAAI 2019.
    """

    def _objective(
        self, encoders: Encoders, widths: Mapping[str, int], generator: torch.Generator
    ) -> Objective:
        return SoftHGRLoss()
