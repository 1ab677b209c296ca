"""Terms of deep multi-view objectives, as differentiable functions of tensors.

They are usable in any training loop. `mvcca.deep.layers` has those with state, and
`mvcca.deep.objectives` combines them to losses.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, normalize, softplus

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


# ---- distances and similarities ------------------------------------------------------------------


def cosines(F: Tensor, G: Tensor) -> Tensor:
    """Cosines of all pairs of rows; 0 for rows of zeros.

    Parameters
    ----------
    F : Tensor, shape (n_f, k)
    G : Tensor, shape (n_g, k)

    Returns
    -------
    Tensor, shape (n_f, n_g)
    """
    return normalize(F) @ normalize(G).T


def squared_distances(F: Tensor, G: Tensor) -> Tensor:
    """Squared Euclidean distances of all pairs of rows, shape (n_f, n_g)."""
    squares = F.square().sum(dim=1)[:, None] + G.square().sum(dim=1)
    return (squares - 2 * F @ G.T).clamp(min=0)


def same_label(y: Tensor, other: Tensor | None = None) -> Tensor:
    """Whether rows share a label, shape (n_rows, n_other).

    Parameters
    ----------
    y, other : Tensor, shape (n_rows,) or (n_rows, n_labels)
        Classes, or indicators of label sets; `other` defaults to y.
    """
    other = y if other is None else other
    return y[:, None] == other if y.ndim == 1 else y.float() @ other.float().T > 0


# ---- hinges --------------------------------------------------------------------------------------


def ranking_hinge(S: Tensor, margin: float | Tensor, reduction: str = "sum") -> Tensor:
    """Σ_i Σ_{j≠i} max(0, m_ij - S_ii + S_ij) of a matrix of similarities of paired rows.

    Parameters
    ----------
    S : Tensor, shape (n_rows, n_rows)
        Similarity of row i of one view to row j of the other.
    margin : float or Tensor, shape (n_rows, n_rows)
        Margin m, or one per pair.
    reduction : {"sum", "mean"}, default="sum"
        Sum over the pairs, or mean over the n (n - 1) pairs.

    Returns
    -------
    Tensor, scalar
    """
    n = len(S)
    violations = torch.relu(margin - S.diagonal()[:, None] + S)
    total = violations.sum() - violations.diagonal().sum()
    return _reduced(total, n * (n - 1), reduction)


def pairwise_ranking(
    F: Tensor,
    G: Tensor,
    margin: float = 0.5,
    *,
    symmetric: bool = True,
    reduction: str = "mean",
) -> Tensor:
    """Pairwise ranking loss over all mismatches in a batch [1]_, [2]_.

        Σ_i Σ_{j≠i} max(0, m - s(f_i, g_i) + s(f_i, g_j)),   s = cosine,

    plus the same with the views exchanged if `symmetric`.

    Parameters
    ----------
    F, G : Tensor, shape (n_rows, k)
        Paired scores of two views.
    margin : float, default=0.5
        Margin m.
    symmetric : bool, default=True
        Rank both ways. The published implementation of [1]_ ranks F against G only where the CCA
        layer is used, and both ways where it is not.
    reduction : {"mean", "sum"}, default="mean"
        [1]_ prints the sum; its implementation takes the mean over the n (n - 1) mismatches of a
        direction.

    Returns
    -------
    Tensor, scalar

    References
    ----------
    .. [1] Dorfer et al., "End-to-End Cross-Modality Retrieval with CCA Projections and Pairwise
       Ranking Loss", 2018, eq. (8).
    .. [2] Friedlander and Wolf, "Dynamically-Scaled Deep Canonical Correlation Analysis", 2022,
       eq. (7).
    """
    S = cosines(F, G)
    loss = ranking_hinge(S, margin, reduction)
    return loss + ranking_hinge(S.T, margin, reduction) if symmetric else loss


def margin_ranking(F: Tensor, G: Tensor, margins: Tensor, different: Tensor) -> Tensor:
    """Bidirectional hinge with a margin for each anchor and negative, the loss of SAM [1]_.

        1/n Σ_a Σ_{b: different} [max(0, f_ab - s(g_a, f_a) + s(g_a, f_b))
                                  + max(0, f_ab - s(f_a, g_a) + s(f_a, g_b))],   s = cosine.

    Margins are constants: no gradient flows through them.

    Parameters
    ----------
    F, G : Tensor, shape (n_rows, k)
        Paired scores of two views.
    margins : Tensor, shape (n_rows, n_rows)
        Margin f_ab of anchor a and negative b.
    different : Tensor of bool, shape (n_rows, n_rows)
        Which rows b are negatives of a, usually those of another class.

    Returns
    -------
    Tensor, scalar
        0 if there are no negatives.

    References
    ----------
    .. [1] Semedo and Magalhães, "Cross-Modal Subspace Learning with Scheduled Adaptive Margin
       Constraints", ACM MM 2019, eq. (5).
    """
    S, margins = cosines(F, G), margins.detach()
    own = S.diagonal()[:, None]
    violations = torch.relu(margins - own + S.T) + torch.relu(margins - own + S)
    return (violations * different).sum() / len(S)


def devise(F: Tensor, G: Tensor, margin: float = 0.1, reduction: str = "sum") -> Tensor:
    """Hinge rank loss of DeViSE, Σ_i Σ_{j≠i} max(0, m - t_iᵀ f_i + t_jᵀ f_i), t = g / ‖g‖ [1]_.

    Parameters
    ----------
    F : Tensor, shape (n_rows, k)
        Images mapped to the space of the targets; their length counts.
    G : Tensor, shape (n_rows, k)
        Targets, such as word vectors; scaled to length 1 here.
    margin : float, default=0.1
        Margin m.
    reduction : {"sum", "mean"}, default="sum"
        Sum, or mean over the n (n - 1) mismatches.

    Returns
    -------
    Tensor, scalar

    References
    ----------
    .. [1] Frome et al., "DeViSE: A Deep Visual-Semantic Embedding Model", NIPS 2013.
    """
    return ranking_hinge(F @ normalize(G).T, margin, reduction)


def neighbourhood_hinge(
    D: Tensor,
    near: Tensor,
    far: Tensor,
    margin: float,
    reduction: str = "mean",
    mining: int | None = None,
) -> Tensor:
    """Σ_i Σ_{j near i} Σ_{k far from i} max(0, m + D_ij - D_ik).

    Parameters
    ----------
    D : Tensor, shape (n_rows, n_items)
        Distances.
    near, far : Tensor of bool, shape (n_rows, n_items)
        Items that should be closer to a row, and items that should be farther away.
    margin : float
        Margin m.
    reduction : {"mean", "sum"}, default="mean"
        Mean over the triplets, or sum. Memory is proportional to the pairs in `near` times n_items.
    mining : int, optional
        Number of items k, those with the largest violations, that count for each pair i, j; by
        default all.

    Returns
    -------
    Tensor, scalar
        0 if there are no triplets.
    """
    rows, items = near.nonzero(as_tuple=True)
    apart = far[rows]
    violations = torch.relu(margin + D[rows, items][:, None] - D[rows]) * apart
    if mining is None:
        return _reduced(violations.sum(), apart.sum().clamp(min=1), reduction)
    largest = violations.topk(min(mining, violations.shape[1]), dim=1).values
    n_triplets = apart.sum(dim=1).clamp(max=mining).sum()
    return _reduced(largest.sum(), n_triplets.clamp(min=1), reduction)


def structure_preserving(
    F: Tensor,
    G: Tensor,
    same: Tensor,
    *,
    margin: float = 0.1,
    weights: tuple[float, float, float] = (2.0, 0.1, 0.2),
    reduction: str = "mean",
    mining: int | None = None,
) -> Tensor:
    """Bidirectional ranking with neighbourhoods kept together within each view [1]_.

        H(d(f, g)) + λ₁ H(d(g, f)) + λ₂ H(d(f, f)) + λ₃ H(d(g, g)),
        H(D) = Σ_i Σ_{j∈N(i)} Σ_{k∉N(i)} max(0, m + D_ij - D_ik),

    with Euclidean distances d of rows scaled to length 1. Within a view, a row is not its own
    neighbour. Memory is proportional to the number of neighbours times the rows of the batch.

    Parameters
    ----------
    F, G : Tensor, shape (n_rows, k)
        Paired scores of two views.
    same : Tensor of bool, shape (n_rows, n_rows)
        Neighbours: rows of the same class, or of the same image. Pairs are neighbours.
    margin : float, default=0.1
        Margin m.
    weights : tuple of 3 floats, default=(2.0, 0.1, 0.2)
        λ₁, λ₂ and λ₃.
    reduction : {"mean", "sum"}, default="mean"
        Mean over the triplets of each term, or sum.
    mining : int, optional
        Number of rows k, those with the largest violations, that count for each pair i, j in each
        term; by default all.

    Returns
    -------
    Tensor, scalar

    References
    ----------
    .. [1] Wang, Li and Lazebnik, "Learning Deep Structure-Preserving Image-Text Embeddings", CVPR
       2016, eq. (5).
    """
    F, G = normalize(F), normalize(G)
    others = same & ~torch.eye(len(F), dtype=torch.bool, device=same.device)
    between, (across, in_f, in_g) = _distances(F, G), weights
    options = (margin, reduction, mining)
    return (
        neighbourhood_hinge(between, same, ~same, *options)
        + across * neighbourhood_hinge(between.T, same.T, ~same.T, *options)
        + in_f * neighbourhood_hinge(_distances(F, F), others, ~same, *options)
        + in_g * neighbourhood_hinge(_distances(G, G), others, ~same, *options)
    )


def triplet(
    anchors: Tensor, positives: Tensor, negatives: Tensor, margin: float, reduction: str = "mean"
) -> Tensor:
    """Triplet loss on squared distances, Σ_i max(0, m + ‖a_i - p_i‖² - ‖a_i - n_i‖²) [1]_.

    Parameters
    ----------
    anchors, positives, negatives : Tensor, shape (n_rows, k)
    margin : float
        Margin m.
    reduction : {"mean", "sum"}, default="mean"

    Returns
    -------
    Tensor, scalar

    References
    ----------
    .. [1] Schroff, Kalenichenko and Philbin, "FaceNet", CVPR 2015, eq. (2).
    """
    near = (anchors - positives).square().sum(dim=1)
    far = (anchors - negatives).square().sum(dim=1)
    return _reduced(torch.relu(margin + near - far).sum(), len(anchors), reduction)


def contrastive(
    F: Tensor, G: Tensor, same: Tensor, margin: float = 1.0, hinge: str = "squared"
) -> Tensor:
    """Contrastive loss over all pairs of rows of two views, as a mean over the pairs.

    ‖f_i - g_j‖² where `same`, elsewhere max(0, m - ‖f_i - g_j‖)² [1]_ or, with ``hinge="linear"``,
    max(0, m - ‖f_i - g_j‖²) [2]_.

    Parameters
    ----------
    F, G : Tensor, shape (n_f, k) and (n_g, k)
    same : Tensor of bool, shape (n_f, n_g)
        Pairs to bring together.
    margin : float, default=1.0
        Margin m.
    hinge : {"squared", "linear"}, default="squared"

    Returns
    -------
    Tensor, scalar

    References
    ----------
    .. [1] Hadsell, Chopra and LeCun, "Dimensionality Reduction by Learning an Invariant Mapping",
       CVPR 2006.
    .. [2] Peng, Qi, Huang and Yuan, "CCL: Cross-modal Correlation Learning with Multigrained Fusion
       by Hierarchical Network", IEEE TMM 2018.
    """
    squares = squared_distances(F, G)
    if hinge == "linear":
        apart = torch.relu(margin - squares)
    else:
        apart = torch.relu(margin - _root(squares)).square()
    return torch.where(same, squares, apart).mean()


# ---- likelihoods ---------------------------------------------------------------------------------


def one_versus_more(queries: Tensor, items: Tensor, others: Tensor, gamma: float = 1.0) -> Tensor:
    """Negative log probability of the match among more candidates, the loss of MSDS [1]_.

        -mean_i log exp(γ s_ii) / (exp(γ s_ii) + Σ_j exp(γ s_ij)),   s = cosine, j in others_i.

    With γ = 1 and c other candidates it lies between log(1 + c e⁻²) and log(1 + c e²), because
    cosines lie in [-1, 1].

    Parameters
    ----------
    queries : Tensor, shape (n_rows, k)
    items : Tensor, shape (n_items, k)
        Row i is the match of query i; rows beyond n_rows match none of the queries.
    others : Tensor of int, shape (n_rows, c)
        Positions of items that do not match, drawn anew for every step; see `other_rows`.
    gamma : float, default=1.0
        Scale γ of the cosines.

    Returns
    -------
    Tensor, scalar

    References
    ----------
    .. [1] Wang, He, Kang, Xiang and Pan, "Image-Text Cross-Modal Retrieval via Modality-Specific
       Feature Learning", ICMR 2015, eqs. (4) and (5).
    """
    scores = gamma * cosines(queries, items)
    own = scores.diagonal()[:, None]
    return softplus(torch.logsumexp(scores.gather(1, others) - own, dim=1)).mean()


def other_rows(n_rows: int, n_draws: int, generator: torch.Generator | None = None) -> Tensor:
    """Positions of other rows of a batch, drawn without the row itself: shape (n_rows, n_draws)."""
    steps = torch.randint(1, n_rows, (n_rows, n_draws), generator=generator)
    return (torch.arange(n_rows)[:, None] + steps) % n_rows


def info_nce(F: Tensor, G: Tensor, temperature: float | Tensor = 0.07) -> Tensor:
    """Symmetric cross entropy of the match among all rows of the batch, the loss of CLIP [1]_.

        -½ mean_i [log softmax_j(s_ij / τ)_i + log softmax_j(s_ji / τ)_i],   s = cosine.

    Parameters
    ----------
    F, G : Tensor, shape (n_rows, k)
        Paired scores of two views.
    temperature : float or Tensor, default=0.07
        Temperature τ; may be trained.

    Returns
    -------
    Tensor, scalar

    References
    ----------
    .. [1] Radford et al., "Learning Transferable Visual Models From Natural Language Supervision",
       ICML 2021.
    """
    S = cosines(F, G) / temperature
    return -(S.log_softmax(dim=1) + S.log_softmax(dim=0)).diagonal().mean() / 2


def sigmoid_contrastive(
    F: Tensor, G: Tensor, scale: float | Tensor = 10.0, bias: float | Tensor = -10.0
) -> Tensor:
    """Binary cross entropy of every pair of the batch, the loss of SigLIP [1]_.

        -1/n Σ_i Σ_j log σ(z_ij (t s_ij + b)),   z_ij = 1 if i = j, else -1,   s = cosine.

    Parameters
    ----------
    F, G : Tensor, shape (n_rows, k)
        Paired scores of two views.
    scale, bias : float or Tensor, default=10.0 and -10.0
        t and b; may be trained.

    Returns
    -------
    Tensor, scalar

    References
    ----------
    .. [1] Zhai, Mustafa, Kolesnikov and Beyer, "Sigmoid Loss for Language Image Pre-Training", ICCV
       2023, eq. (1).
    """
    logits = scale * cosines(F, G) + bias
    signs = 2 * torch.eye(len(F), dtype=logits.dtype, device=logits.device) - 1
    return -logsigmoid(signs * logits).sum() / len(F)


# ---- adversarial training ------------------------------------------------------------------------


def reverse_gradient(X: Tensor, factor: float = 1.0) -> Tensor:
    """X, with its gradient multiplied by -factor."""
    same = X.view_as(X)  # the hook belongs to this use of X alone
    if same.requires_grad:
        same.register_hook(lambda gradient: -factor * gradient)
    return same


def reversal_factor(progress: float) -> float:
    """Published schedule l = 2 / (1 + exp(-10 p)) - 1 for progress p from 0 to 1 [1]_.

    References
    ----------
    .. [1] Ganin and Lempitsky, "Unsupervised Domain Adaptation by Backpropagation", ICML 2015.
    """
    return 2 / (1 + math.exp(-10 * progress)) - 1


def _reduced(total: Tensor, count: int | Tensor, reduction: str) -> Tensor:
    if reduction not in ("sum", "mean"):
        raise ValueError(f'reduction must be "sum" or "mean", got {reduction!r}.')
    return total if reduction == "sum" else total / count


def _distances(F: Tensor, G: Tensor) -> Tensor:
    return _root(squared_distances(F, G))


def _root(squares: Tensor) -> Tensor:
    """√x, with gradient 0 at 0."""
    positive = squares > 0
    return torch.where(positive, squares, 1).sqrt() * positive
