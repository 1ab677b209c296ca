"""CCA as a layer of a network: scores in, canonical variates of the batch out."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from mvcca.deep._losses.singular_vectors import polar_decomposition, safe_svd
from mvcca.deep._losses.trace_norm import check_rows, ridge_factor, whitened


class CCALayer(nn.Module):
    """Project two views' scores to their canonical variates, as the last layer of networks [1]_.

    In training, with F̄ and Ḡ centered by the means of the batch and Σ_fg = F̄ᵀḠ / (n-1),

        F* = F̄ A,  A = L_f⁻ᵀ U,   G* = Ḡ B,  B = L_g⁻ᵀ V,   U diag(s) Vᵀ = L_f⁻¹ Σ_fg L_g⁻ᵀ,
        L_f L_fᵀ = Σ_ff + r v_f I,   v_f = tr(Σ_ff) / k_f,

    and likewise for G, so that gradients reach the networks through the projections A and B.
    (Algorithm 1 of [1]_ omits the transposes of L_f⁻ᵀ and L_g⁻ᵀ.) In evaluation mode the layer
    applies the stored projections: those of the last training batch, of the running statistics, or,
    after `refit`, of all training rows, which rank far better.

    If all components are kept, the training outputs are F̄ L_f⁻ᵀ UVᵀ and Ḡ L_g⁻ᵀ, the canonical
    variates rotated by Vᵀ in both views. Inner products, norms, distances and cosines are those of
    the canonical variates, and the gradient contains 1 / (s_i + s_j) instead of 1 / (s_i - s_j).
    Otherwise the outputs are canonical variates, and the gradient is that of a bounded singular
    value decomposition.

    Parameters
    ----------
    n_scores : int or pair of int
        Widths of the scores, for both views or by view.
    n_components : int, optional
        Number of canonical variates; by default all. Networks with as many scores are preferable to
        a truncation, whose gradient does not exist where the first omitted correlation equals the
        last one kept.
    reg : float or pair of float, default=1e-3
        Ridge r in units of the mean variance of each view's scores, as in `mvcca.CCA`.
    memory : float, default=0.0
        Weight m of the earlier statistics in running means and covariances, S ← m S + (1 - m) S_b
        for every batch b; [2]_ tunes it between 0.85 and 0.97. The first batch initializes them.
        Rows are centered by the running means. Gradients flow through the statistics of the current
        batch only. With 0, the statistics are those of the batch.
    canonical : bool, default=False
        Return canonical variates in training even if all components are kept, for losses of single
        coordinates.

    Raises
    ------
    ValueError
        If a batch has no more rows than scores.
    RuntimeError
        If the layer is used in evaluation mode before it has seen any rows.

    References
    ----------
    .. [1] Dorfer et al., "End-to-End Cross-Modality Retrieval with
       CCA Projections and Pairwise Ranking Loss", 2018, Algorithm 1.
    .. [2] Friedlander and Wolf, "Dynamically-Scaled Deep Canonical Correlation Analysis", 2022.

    Examples
    --------
    >>> import torch
    >>> from mvcca.deep.functional import pairwise_ranking
    >>> from mvcca.deep.layers import CCALayer
    >>> g = torch.Generator().manual_seed(0)
    >>> F, G = torch.randn(60, 4, generator=g), torch.randn(60, 4, generator=g)
    >>> layer = CCALayer(4)
    >>> loss = pairwise_ranking(*layer(F, G), margin=0.5)
    >>> layer.refit(F, G).eval().project(F, view=0).shape
    torch.Size([60, 4])
    """

    mean_f: Tensor
    mean_g: Tensor
    cov_ff: Tensor
    cov_gg: Tensor
    cov_fg: Tensor
    weights_f: Tensor
    weights_g: Tensor
    n_seen: Tensor

    def __init__(
        self,
        n_scores: int | tuple[int, int],
        n_components: int | None = None,
        *,
        reg: float | tuple[float, float] = 1e-3,
        memory: float = 0.0,
        canonical: bool = False,
    ) -> None:
        super().__init__()
        k_f, k_g = n_scores if isinstance(n_scores, tuple) else (n_scores, n_scores)
        n_components = min(k_f, k_g) if n_components is None else n_components
        if not 1 <= n_components <= min(k_f, k_g):
            raise ValueError(
                f"n_components must be between 1 and the smaller number of scores, "
                f"{min(k_f, k_g)}, got {n_components}."
            )
        if not 0 <= memory < 1:
            raise ValueError(f"memory must be at least 0 and less than 1, got {memory}.")
        if min(reg if isinstance(reg, tuple) else (reg,)) < 0:
            raise ValueError(f"reg must not be negative, got {reg}.")
        self.n_scores, self.n_components = (k_f, k_g), n_components
        self.reg, self.memory, self.canonical = reg, memory, canonical
        self.register_buffer("mean_f", torch.zeros(k_f))
        self.register_buffer("mean_g", torch.zeros(k_g))
        self.register_buffer("cov_ff", torch.zeros(k_f, k_f))
        self.register_buffer("cov_gg", torch.zeros(k_g, k_g))
        self.register_buffer("cov_fg", torch.zeros(k_f, k_g))
        self.register_buffer("weights_f", torch.zeros(k_f, n_components))
        self.register_buffer("weights_g", torch.zeros(k_g, n_components))
        self.register_buffer("n_seen", torch.zeros((), dtype=torch.int64))

    def forward(self, F: Tensor, G: Tensor) -> tuple[Tensor, Tensor]:
        """Project the scores of both views for the same rows.

        Parameters
        ----------
        F : Tensor, shape (n_rows, k_f)
        G : Tensor, shape (n_rows, k_g)

        Returns
        -------
        pair of Tensor, shape (n_rows, n_components)
        """
        if not self.training:
            return self.project(F, view=0), self.project(G, view=1)
        check_rows(F, G)
        *means, S_ff, S_gg, S_fg = self._update(F, G, self.memory if self.n_seen else 0.0)
        W_f, W_g = self._weights(S_ff, S_gg, S_fg)
        projected_f, projected_g = (
            ((H.to(mean) - mean) @ W).to(H)
            for H, mean, W in zip((F, G), means, (W_f, W_g), strict=True)
        )
        return projected_f, projected_g

    def project(self, scores: Tensor, view: int) -> Tensor:
        """Project the scores of one view (0 or 1) with the stored statistics.

        Parameters
        ----------
        scores : Tensor, shape (n_rows, k_f) or (n_rows, k_g)
        view : {0, 1}

        Returns
        -------
        Tensor, shape (n_rows, n_components)
        """
        if not self.n_seen:
            raise RuntimeError(
                "The CCA layer has no statistics yet. Train it on a batch, or call refit(F, G)."
            )
        mean, weights = ((self.mean_f, self.weights_f), (self.mean_g, self.weights_g))[view]
        return (scores - mean.to(scores)) @ weights.to(scores)

    @torch.no_grad()
    def refit(self, F: Tensor, G: Tensor) -> CCALayer:
        """Replace the stored statistics by those of the given rows, usually all training rows.

        Parameters
        ----------
        F : Tensor, shape (n_rows, k_f)
        G : Tensor, shape (n_rows, k_g)

        Returns
        -------
        self
        """
        check_rows(F, G)
        *_, S_ff, S_gg, S_fg = self._update(F, G, 0.0)
        self._weights(S_ff, S_gg, S_fg)
        return self

    def _update(self, F: Tensor, G: Tensor, memory: float) -> list[Tensor]:
        """Average the stored statistics with those of the batch, in float64."""
        like = F.cpu() if F.device.type == "mps" else F  # Apple's GPUs have no float64
        F, G = (H.to(like.device, torch.float64) for H in (F, G))

        def averaged(name: str, value: Tensor) -> Tensor:
            stored = getattr(self, name)
            if memory:
                value = memory * stored.to(value) + (1 - memory) * value
            setattr(self, name, value.detach().to(stored))
            return value

        mean_f, mean_g = averaged("mean_f", F.mean(0)), averaged("mean_g", G.mean(0))
        F, G, freedom = F - mean_f, G - mean_g, len(F) - 1
        S_ff = averaged("cov_ff", F.T @ F / freedom)
        S_gg = averaged("cov_gg", G.T @ G / freedom)
        S_fg = averaged("cov_fg", F.T @ G / freedom)
        self.n_seen += 1
        return [mean_f, mean_g, S_ff, S_gg, S_fg]

    def _weights(self, S_ff: Tensor, S_gg: Tensor, S_fg: Tensor) -> tuple[Tensor, Tensor]:
        """Projections of the training rows; those to canonical variates are stored."""
        reg_f, reg_g = self.reg if isinstance(self.reg, tuple) else (self.reg, self.reg)
        L_f, L_g = ridge_factor(S_ff, reg_f), ridge_factor(S_gg, reg_g)
        T = whitened(L_f, S_fg, L_g)
        rotated = T.shape == (self.n_components,) * 2 and not self.canonical
        if rotated:
            R, U, V = polar_decomposition(T)
        else:
            U, _, V = (part[..., : self.n_components] for part in safe_svd(T))
        W_f, W_g = _unwhitening(L_f, U), _unwhitening(L_g, V)
        # In the layout that loading gives them: products with another layout round differently.
        self.weights_f = W_f.detach().to(self.weights_f).contiguous()
        self.weights_g = W_g.detach().to(self.weights_g).contiguous()
        if rotated:
            W_f = _unwhitening(L_f, R)
            W_g = _unwhitening(L_g, torch.eye(len(R), dtype=R.dtype, device=R.device))
        return W_f, W_g


def _unwhitening(L: Tensor, Q: Tensor) -> Tensor:
    """L⁻ᵀ Q."""
    return torch.linalg.solve_triangular(L.T, Q, upper=True)
