"""Ridge CCA of two wide views by the Gram matrices of their rows alone.

With K_p the Gram matrix of the centred rows of view p, c_p its ridge on the scatter, and
S_p = K_p (K_p + c_p I)⁻¹ = I - c_p (K_p + c_p I)⁻¹ = R_p R_pᵀ, the squared correlations are the
eigenvalues ρ² of R_xᵀ S_y R_x. For an eigenvector v and a = R_x v,

    β = (K_y + c_y I)⁻¹ a,    α = (K_x + c_x I)⁻¹ S_y a = (K_x + c_x I)⁻¹ (a - c_y β),

weights are X̄ᵀα √(n - 1) / ρ² and Ȳᵀβ √(n - 1) / ρ, and scores ρ² a and a - c_y β times the same.
All of it is in coordinates of the rows that add up to zero: in those of all rows, S is singular.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from mvcca.blocks import as_block
from mvcca.machine import lapack
from mvcca.machine.threads import threads_to_factorise
from mvcca.problem._bases import WELL_CONDITIONED, Span, gram_of_rows
from mvcca.problem._centring import variances_of
from mvcca.problem._estimate import counted
from mvcca.problem._maps import Maps
from mvcca.problem._rows import Rows
from mvcca.problem.expected import Spectrum, expected_moments
from mvcca.problem.ridge import Shrinkage, ridge_in
from mvcca.problem.whitener import extreme_eigenvalues
from mvcca.statistics import PairCovariance

_EPS = np.finfo(float).eps
_FEW_ROWS = 129  # as for `lapack.top_singular`
_LEAST_SHARE = 1e-10  # of S, below which directions may be rounding


# A view: its `Span` with L Lᵀ = K + c I, c, and S, (n - 1, n - 1) and symmetric.
_View = tuple[Span, float, np.ndarray]


def in_dual(rows: Rows, *, with_patterns: bool = False) -> Maps | None:
    """The maps of ridge CCA of two wide views; None where others are, or another way is exact."""
    if not _is_dual(rows):
        return None
    n, k = len(rows.views), rows.n_components
    assert k is not None
    with threads_to_factorise(n):
        x, y = (_view(X, rows.reg[name]) for name, X in rows.views.items())
        if x is None or y is None:
            return None
        (span_x, _, share_x), (span_y, ridge_y, share_y) = x, y
        root, failed = linalg.lapack.dpotrf(share_x, lower=1, clean=1)
        if failed or extreme_eigenvalues(root)[1] < _LEAST_SHARE:
            return None
        T = linalg.blas.dtrmm(1.0, root, share_y, lower=1, trans_a=1)
        T = linalg.blas.dtrmm(1.0, root, T, side=1, lower=1)
        squares, V = lapack.top_eigenpairs_and_values((T + T.T) / 2, k)
        a = linalg.blas.dtrmm(1.0, root, V[:, ::-1], lower=1)
        beta = linalg.cho_solve((span_y.factor, True), a, check_finite=False)
        of_y = a - ridge_y * beta
        alpha = linalg.cho_solve((span_x.factor, True), of_y, check_finite=False)
    rho = np.sqrt(np.maximum(squares[::-1], 0))
    real = rho[rho > 10 * n * _EPS * rho[0]]
    if len(real) < k:
        return None
    rho, unit = real[:k], np.sqrt(n - 1)
    dual = alpha * unit / rho**2, beta * unit / rho
    scores = a, of_y / rho  # times √(n - 1), so that products are covariances
    return _maps(rows, (x, y), dual, scores, real, with_patterns)


def _is_dual(rows: Rows) -> bool:
    """Whether these are two paired wide views in host memory, with ridges.

    Of few rows, bases of these give all components.
    """
    views, k = rows.views, rows.n_components
    if k is None or len(views.names) != 2 or not views.is_paired:
        return False
    if len(views) <= _FEW_ROWS or 4 * k >= len(views) - 1:
        return False
    if rows.sample_weight is not None or not rows.reading.center or rows.reading.units:
        return False
    is_wide = all(isinstance(X, np.ndarray) and X.shape[0] < X.shape[1] for _, X in views.items())
    ridges = rows.reg.values()
    return is_wide and all(ridges) and not any(isinstance(reg, Shrinkage) for reg in ridges)


def _view(X: np.ndarray, reg: float) -> _View | None:
    """A view, or None if its Gram matrix has too few digits for its ridge."""
    n = len(X)
    X = as_block(X).by_columns()
    mean, lengths, normal, gram = gram_of_rows(X)
    known = variances_of(lengths, n, None)
    ridge = (n - 1) * ridge_in(reg, known.mean())
    gram[np.diag_indices(n - 1)] += ridge
    factor, failed = linalg.lapack.dpotrf(gram, lower=1, clean=1)
    if failed or not np.isfinite(np.diag(factor)).all():
        return None
    largest, smallest = extreme_eigenvalues(factor)
    if not largest < WELL_CONDITIONED**2 * smallest:
        return None
    inverse, _ = linalg.lapack.dpotri(factor, lower=1)
    inverse *= -ridge
    share = inverse + np.tril(inverse, -1).T
    share[np.diag_indices(n - 1)] += 1
    scale = (lengths > 0).astype(float)
    return (Span(mean, X, None, normal, scale, factor, known), ridge, share)


def _maps(
    rows: Rows,
    views: tuple[_View, _View],
    dual: tuple[np.ndarray, np.ndarray],
    scores: tuple[np.ndarray, np.ndarray],
    rho: np.ndarray,
    with_patterns: bool,
) -> Maps:
    """Maps of all correlations ρ, weights and scores of the leading ones, with what is expected."""
    names, n, k = rows.views.names, len(rows.views), dual[0].shape[1]
    lifted = {}
    spans = {name: own[0] for name, own in zip(names, views, strict=True)}
    for (name, span), coefficients in zip(spans.items(), dual, strict=True):
        columns = np.hstack([coefficients, *(S / np.sqrt(n - 1) for S in scores)])
        lifted[name] = np.split(span.spread(columns), 3, axis=1)
    ranks = dict.fromkeys(names, n - 1)
    p, q = names
    within = tuple(S.T @ S for S in scores)
    pair = PairCovariance((p, q), scores[0].T @ scores[1], within, float(n))
    maps = Maps(
        weights={name: own[0] for name, own in lifted.items()},
        means={name: span.mean for name, span in spans.items()},
        eigenvalues=1 + rho[:k],
        values=rho[:k],
        expected=expected_moments(
            dict.fromkeys(names, np.eye(k)),
            counted([pair], rows.views),
            {name: float(np.trace(own[2])) for name, own in zip(names, views, strict=True)},
            Spectrum(rho, [1.0, 1.0], [n - 1, n - 1]),
        ),
        ranks=ranks,
        variances={name: span.known for name, span in spans.items()},
        bound=n - 1,
    )
    if not with_patterns:
        return maps
    images = {name: lifted[name][1 + i] for i, name in enumerate(names)}
    return maps.with_patterns(images, {p: lifted[p][2], q: lifted[q][1]})
