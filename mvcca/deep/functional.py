"""Terms of deep multi-view objectives, as differentiable functions of tensors.

They are usable in any training loop. `mvcca.deep.layers` has those with state, and
`mvcca.deep.objectives` combines them to losses.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from mvcca.deep._losses.ranking import (
    contrastive,
    cosines,
    devise,
    info_nce,
    margin_ranking,
    neighbourhood_hinge,
    one_versus_more,
    other_rows,
    pairwise_ranking,
    ranking_hinge,
    reversal_factor,
    reverse_gradient,
    same_label,
    sigmoid_contrastive,
    squared_distances,
    structure_preserving,
    triplet,
)
from mvcca.deep._losses.singular_vectors import polar_factor, safe_svd
from mvcca.deep._losses.trace_norm import trace_norm
from mvcca.machine.on_access import on_access

__all__ = [
    "contrastive",
    "coordinate_correlation",
    "cosines",
    "covariance",
    "devise",
    "expected_open_gates",
    "info_nce",
    "margin_ranking",
    "neighbourhood_hinge",
    "off_diagonal",
    "one_versus_more",
    "other_rows",
    "pairwise_ranking",
    "polar_factor",
    "ranking_hinge",
    "reconstruction_error",
    "reversal_factor",
    "reverse_gradient",
    "safe_svd",
    "same_label",
    "sigmoid_contrastive",
    "soft_hgr",
    "squared_distance",
    "squared_distances",
    "structure_preserving",
    "trace_norm",
    "triplet",
]

if not TYPE_CHECKING:  # it would hide misspelt names
    __getattr__ = on_access(__name__)


def covariance(F: Tensor, G: Tensor | None = None) -> Tensor:
    """Covariance F̄ᵀḠ / (n-1) of two batches of scores; G defaults to F.

    Parameters
    ----------
    F : Tensor, shape (n_rows, k_f)
    G : Tensor, shape (n_rows, k_g), optional

    Returns
    -------
    Tensor, shape (k_f, k_g)
    """
    F = F - F.mean(dim=0)
    G = F if G is None else G - G.mean(dim=0)
    return F.T @ G / (len(F) - 1)


def soft_hgr(F: Tensor, G: Tensor) -> Tensor:
    """Soft-HGR objective E f̄ᵀḡ - ½ tr(cov(f) cov(g)) of a batch [1]_, to be maximized.

    No matrix is inverted, so that batches may be small. The maximum over all functions of two views
    is half the sum of their squared maximal correlations.

    Parameters
    ----------
    F, G : Tensor, shape (n_rows, k)
        Paired scores of two views.

    Returns
    -------
    Tensor, scalar

    References
    ----------
    .. [1] Wang et al., "An Efficient Approach to Informative Feature Extraction from Multimodal
       Data", AAAI 2019.
    """
    return covariance(F, G).trace() - (covariance(F) * covariance(G)).sum() / 2


def squared_distance(F: Tensor, G: Tensor) -> Tensor:
    """Half the mean squared distance of paired scores, ½ mean_i ‖f_i - g_i‖²."""
    return (F - G).square().sum(dim=1).mean() / 2


def off_diagonal(C: Tensor, reduction: str = "sum") -> Tensor:
    """Sum (or mean) of the absolute off-diagonal entries of a covariance, Σ_{i≠j} abs(C_ij).

    With the covariance of `mvcca.deep.layers.RunningCovariance` this is the stochastic
    decorrelation loss [1]_. Implementations normalize it differently; published weights of 1 to 20
    suit the sum.

    Parameters
    ----------
    C : Tensor, shape (k, k)
    reduction : {"sum", "mean"}, default="sum"

    Returns
    -------
    Tensor, scalar

    References
    ----------
    .. [1] Chang, Xiang and Hospedales, "Scalable and Effective Deep CCA via Soft Decorrelation",
       CVPR 2018.
    """
    k = len(C)
    total = C.abs().sum() - C.diagonal().abs().sum()
    return total if reduction == "sum" or k < 2 else total / (k * (k - 1))


def expected_open_gates(means: Tensor, sigma: float, reduction: str = "mean") -> Tensor:
    """Expected number (or share) of open gates, Σ_i P(μ_i + ε_i > 0) for ε_i ~ N(0, σ²) [1]_.

    P is ½ (1 - erf(-μ / √2σ)).

    Parameters
    ----------
    means : Tensor, shape (n_features,)
        μ.
    sigma : float
        σ.
    reduction : {"mean", "sum"}, default="mean"
        [1]_ prints the sum; weights in later work suit the mean.

    Returns
    -------
    Tensor, scalar

    References
    ----------
    .. [1] Lindenbaum, Salhov, Averbuch and Kluger, "ℓ0-Sparse Canonical Correlation Analysis",
       ICLR 2022.
    """
    open_ = (1 - torch.erf(-means / (math.sqrt(2) * sigma))) / 2
    return open_.sum() if reduction == "sum" else open_.mean()


def reconstruction_error(X: Tensor, reconstructed: Tensor) -> Tensor:
    """Mean squared reconstruction error of rows, mean_i ‖x_i - x̂_i‖²."""
    return (X - reconstructed).square().sum(dim=1).mean()


def coordinate_correlation(F: Tensor, G: Tensor) -> Tensor:
    """Sum of the correlations of corresponding scores, Σ_j corr(f_j, g_j) [1]_.

    Parameters
    ----------
    F, G : Tensor, shape (n_rows, k)
        Paired scores of two views.

    Returns
    -------
    Tensor, scalar

    References
    ----------
    .. [1] Chandar, Khapra, Larochelle and Ravindran, "Correlational Neural Networks", Neural
       Computation 2016, eq. (3).
    """
    F, G = F - F.mean(dim=0), G - G.mean(dim=0)
    squares = F.square().sum(dim=0) * G.square().sum(dim=0)
    return ((F * G).sum(dim=0) / torch.sqrt(squares + 1e-8)).sum()
