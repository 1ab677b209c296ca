"""Polar factor and singular value decomposition with gradients that stay finite at ties.

The gradient of singular vectors contains 1 / (s_i - s_j), and that of the polar factor UVᵀ only
1 / (s_i + s_j). A loss of inner products, distances or cosines needs no more than the polar factor.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

_EPSILON = {torch.float64: 1e-12, torch.float32: 1e-8}  # added to squared differences and sums


def polar_factor(T: Tensor) -> Tensor:
    """Orthogonal factor R = UVᵀ of a square matrix T = U diag(s) Vᵀ.

    With M = Uᵀ (∂L/∂R) V the gradient is ∂L/∂T = U Z Vᵀ, Z_ij = (M_ij - M_ji) / (s_i + s_j). It is
    exact also where singular values coincide. It is singular only where two of them vanish, and
    remains bounded there.

    Parameters
    ----------
    T : Tensor, shape (k, k)

    Returns
    -------
    Tensor, shape (k, k)
        It can be differentiated once.
    """
    return polar_decomposition(T)[0]


def polar_decomposition(T: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The polar factor of a square matrix, and its singular vectors U and V without gradients."""
    return _Polar.apply(T)


def safe_svd(T: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Thin singular value decomposition T = U diag(s) Vᵀ with a bounded gradient.

    In the gradient, 1 / (s_j - s_i) is replaced by (s_j - s_i) / ((s_j - s_i)² + ε), with ε = 1e-12
    in float64 and 1e-8 in float32. For a loss that does not change if tied singular vectors are
    rotated together, such as a function of inner products of all projected rows, ties cause no
    error. At a tie across the bound of a truncation, the gradient does not exist; this one remains
    bounded.

    Parameters
    ----------
    T : Tensor, shape (p, q)

    Returns
    -------
    U : Tensor, shape (p, min(p, q))
    s : Tensor, shape (min(p, q),)
        Decreasing.
    V : Tensor, shape (q, min(p, q))
        They can be differentiated once.
    """
    return _SafeSVD.apply(T)


def _decomposed(T: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    if not T.isfinite().all():  # torch raises; a training step with a NaN loss is skipped
        k = min(T.shape)
        nan = torch.full_like(T, torch.nan)
        return nan[:, :k], nan[:k, :k].diagonal(), nan.T[:, :k]
    U, s, Vh = torch.linalg.svd(T, full_matrices=False)
    return U, s, Vh.T


class _Polar(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, T: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        U, s, V = _decomposed(T)
        ctx.save_for_backward(U, s, V)
        ctx.mark_non_differentiable(U, V)
        return U @ V.T, U, V

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, *_: Tensor) -> Tensor:
        U, s, V = ctx.saved_tensors
        M = U.T @ gradient @ V
        return U @ ((M - M.T) * _inverse(s[:, None] + s)) @ V.T


class _SafeSVD(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, T: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        U, s, V = _decomposed(T)
        ctx.save_for_backward(U, s, V)
        return U, s, V

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_U: Tensor, grad_s: Tensor, grad_V: Tensor) -> Tensor:
        U, s, V = ctx.saved_tensors
        A, B = U.T @ grad_U, V.T @ grad_V
        a, b = (A - A.T) / 2, (B - B.T) / 2
        sums = (a - b) * _inverse(s[:, None] + s)
        differences = (a + b) * _inverse(s - s[:, None])
        gradient = U @ (sums + differences + grad_s.diag()) @ V.T
        # Singular vectors also turn out of their span, if T is not square.
        if len(U) > len(s):
            gradient = gradient + (grad_U - U @ A) * _inverse(s) @ V.T
        if len(V) > len(s):
            gradient = gradient + U * _inverse(s) @ (grad_V - V @ B).T
        return gradient


def _inverse(x: Tensor) -> Tensor:
    """1 / x, bounded around 0."""
    return x / (x.square() + _EPSILON[x.dtype])
