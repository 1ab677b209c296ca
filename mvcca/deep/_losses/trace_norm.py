"""Sum of the canonical correlations of a batch, the objective of deep CCA, and its gradient.

The explicit gradient is faster than differentiating through factorizations, and remains finite if
singular values coincide. Tests compare it with `trace_norm_by_autograd`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

_JITTER = 1e-12  # first ridge for a singular covariance, in units of the mean variance
_NEWTON_STEPS = 30


def trace_norm(F: Tensor, G: Tensor, reg: float | tuple[float, float] = 1e-4) -> Tensor:
    """Sum of the canonical correlations of two batches of scores.

    With F̄ and Ḡ centered by the means of the batch and Σ_fg = F̄ᵀḠ / (n-1) [1]_,

        Σ_i s_i(T),   T = L_f⁻¹ Σ_fg L_g⁻ᵀ,   L_f L_fᵀ = Σ_ff + r_f v_f I,   v_f = tr(Σ_ff) / k_f,

    and likewise for G. The ridge is in units of the mean variance of a view's scores, so that
    rescaling the scores changes nothing. With the polar factor Q = UVᵀ of T = U diag(s) Vᵀ the
    gradient is

        (2 F̄ Δ_ff + Ḡ Δ_fgᵀ) / (n-1),   Δ_fg = L_f⁻ᵀ Q L_g⁻¹,
        Δ_ff = M + r_f tr(M) / k_f I,   M = -½ L_f⁻ᵀ T Qᵀ L_f⁻¹,

    and likewise for G. All computations are in float64, because float32 covariances would already
    have lost the digits needed.

    Parameters
    ----------
    F : Tensor, shape (n_rows, k_f)
        Scores of the first view.
    G : Tensor, shape (n_rows, k_g)
        Scores of the second view for the same rows.
    reg : float or pair of float, default=1e-4
        Ridges r_f and r_g, in units of the mean variance of each view's scores, as in `mvcca.CCA`.
        Published ridges are absolute; the two agree for scores of variance 1, as after batch norm.

    Returns
    -------
    Tensor, scalar
        At most min(k_f, k_g), to be maximized. It can be differentiated once.

    Raises
    ------
    ValueError
        If there are no more rows than scores, so that all correlations are 1.

    References
    ----------
    .. [1] Andrew, Arora, Bilmes and Livescu, "Deep Canonical Correlation Analysis", ICML 2013,
       eqs. (10) to (13).
    """
    check_rows(F, G)
    reg_f, reg_g = reg if isinstance(reg, tuple) else (reg, reg)
    return _TraceNorm.apply(F, G, reg_f, reg_g).to(F.dtype)


def check_rows(F: Tensor, G: Tensor) -> None:
    """Check that F and G have equally many rows, and more rows than scores."""
    if len(F) != len(G):
        raise ValueError(f"Expected as many rows in both views, got {len(F)} and {len(G)}.")
    check_enough_rows(len(F), max(F.shape[1], G.shape[1]))


def check_enough_rows(n_rows: int, n_scores: int) -> None:
    """Raise if a batch has no more rows than scores, since its correlations are then all 1."""
    if n_rows <= n_scores:
        raise ValueError(
            f"A batch of {n_rows} rows is too small for {n_scores} scores: with no more rows than "
            "scores, the correlations of a batch are all 1. Raise batch_size to 8 rows per score "
            "or more, or lower n_components."
        )


class _TraceNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, F: Tensor, G: Tensor, reg_f: float, reg_g: float) -> Tensor:
        centred_f, centred_g = _centred(F), _centred(G)
        L_f = ridge_factor(_product(centred_f, centred_f), reg_f)
        L_g = ridge_factor(_product(centred_g, centred_g), reg_g)
        T = whitened(L_f, _product(centred_f, centred_g), L_g)
        Q, total = _polar(T)
        if any(ctx.needs_input_grad[:2]):
            between = _unwhitened(L_f, Q, L_g)
            within_f = _with_ridge(_unwhitened(L_f, T @ Q.T, L_f), reg_f)
            within_g = _with_ridge(_unwhitened(L_g, T.T @ Q, L_g), reg_g)
            freedom = len(F) - 1
            grad_f = (centred_g @ between.T - centred_f @ within_f) / freedom
            grad_g = (centred_f @ between - centred_g @ within_g) / freedom
            ctx.save_for_backward(grad_f.to(F), grad_g.to(G))
        return total.to(F.device)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        grad_f, grad_g = ctx.saved_tensors
        return gradient.to(grad_f.dtype) * grad_f, gradient.to(grad_g.dtype) * grad_g, None, None


def _centred(F: Tensor) -> Tensor:
    """Center in float64, on the CPU for Apple's GPUs, which have no float64."""
    F = (F.cpu() if F.device.type == "mps" else F).double()
    return F - F.mean(dim=0)


def _product(F: Tensor, G: Tensor) -> Tensor:
    return F.T @ G / (len(F) - 1)


def _with_ridge(S: Tensor, reg: float) -> Tensor:
    """S + reg tr(S) / k I. The map is self-adjoint, so that it also propagates gradients."""
    return S + reg * S.diagonal().mean() * torch.eye(len(S), dtype=S.dtype, device=S.device)


def ridge_factor(S: Tensor, reg: float) -> Tensor:
    """L with L Lᵀ = S + reg v I for a covariance S; the identity for constant scores."""
    S = _with_ridge(S, reg)
    return _cholesky(torch.where(S.any(), S, torch.eye(len(S), dtype=S.dtype, device=S.device)))


def whitened(L_f: Tensor, S: Tensor, L_g: Tensor) -> Tensor:
    """L_f⁻¹ S L_g⁻ᵀ."""
    left = torch.linalg.solve_triangular(L_f, S, upper=False)
    return torch.linalg.solve_triangular(L_g.T, left, upper=True, left=False)


def _unwhitened(L_f: Tensor, D: Tensor, L_g: Tensor) -> Tensor:
    """L_f⁻ᵀ D L_g⁻¹."""
    left = torch.linalg.solve_triangular(L_f.T, D, upper=True)
    return torch.linalg.solve_triangular(L_g, left, upper=False, left=False)


def _cholesky(S: Tensor) -> Tensor:
    """Lower Cholesky factor, with the smallest sufficient jitter for a singular matrix.

    On a GPU, where a test would make the host wait, the factor with the largest jitter replaces a
    failed one. If that fails too, the factor is NaN, and so is the loss.
    """
    L, failed = torch.linalg.cholesky_ex(S)
    if S.is_cuda:
        spare, _ = torch.linalg.cholesky_ex(_with_ridge(S, 1e5 * _JITTER))
        return torch.where(failed > 0, spare, L)
    jitter = _JITTER
    for _ in range(5):
        if not failed:
            break
        jitter *= 10
        L, failed = torch.linalg.cholesky_ex(_with_ridge(S, jitter))
    return L if not failed else torch.full_like(L, torch.nan)


def _polar(T: Tensor) -> tuple[Tensor, Tensor]:
    """The polar factor UVᵀ of T, and the sum of its singular values.

    On a CPU, LAPACK decomposes small matrices fast. On a GPU a decomposition is slow and makes the
    host wait, whereas products of small matrices do not.
    """
    if T.is_cuda:
        Q = polar_by_products(T)
        return Q, (Q * T).sum()
    if not T.isfinite().all():
        return torch.full_like(T, torch.nan), T.sum()
    U, s, Vh = torch.linalg.svd(T, full_matrices=False)
    return U @ Vh, s.sum()


def polar_by_products(T: Tensor) -> Tensor:
    """Polar factor of a matrix with singular values of at most 1, by the Newton-Schulz iteration.

    Q ← Q (15 I - 10 QᵀQ + 3 (QᵀQ)²) / 8 moves singular values to 1, growing small ones by 15/8 per
    step. Values still below 1 at the end belong to directions where T is almost 0, and give a valid
    subgradient of the trace norm.
    """
    Q = T
    eye = torch.eye(T.shape[1], dtype=T.dtype, device=T.device)
    for _ in range(_NEWTON_STEPS):
        square = Q.T @ Q
        Q = Q @ (15 * eye - square @ (10 * eye - 3 * square)) / 8
    return Q
