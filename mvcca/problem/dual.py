"""Ridge CCA of two wide views, or of two kernels, by the Gram matrices of their rows alone.

With K_p the Gram matrix of the centred rows of view p, c_p its ridge on the scatter, and
S_p = K_p (K_p + c_p I)⁻¹ = I - c_p (K_p + c_p I)⁻¹ and S_x = R Rᵀ, the squared correlations are the
eigenvalues ρ² of Rᵀ S_y R. For an eigenvector v, a = R v and b = R⁻ᵀ v, so that S_x b = a and
S_y a = ρ² b,

    α = (K_x + c_x I)⁻¹ b = (b - a) / c_x,    β = (K_y + c_y I)⁻¹ a = (a - ρ² b) / c_y,

weights are X̄ᵀα √(n - 1) and Ȳᵀβ √(n - 1) / ρ, and scores a and ρ b times √(n - 1). No matrix but R
is needed for them. All of it is in coordinates of the rows that add up to zero: in those of all
rows, S is singular.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Self

import numpy as np
from scipy import linalg

from mvcca.blocks import as_block
from mvcca.machine import lapack
from mvcca.machine.threads import threads_to_factorise
from mvcca.problem._bases import WELL_CONDITIONED, gram_of_rows, spread, turned, without_mean
from mvcca.problem._centring import variances_of
from mvcca.problem._estimate import counted
from mvcca.problem.expected import Spectrum, expected_moments
from mvcca.problem.maps import Maps
from mvcca.problem.ridge import Shrinkage, ridge_in
from mvcca.problem.rows import Rows
from mvcca.problem.whitener import extreme_eigenvalues
from mvcca.statistics.pair_covariance import PairCovariance
from mvcca.views import Views

_FEW_ROWS = 129  # as for `lapack.top_singular`
_LEAST_RIDGE = 1e-7  # on the scatter of a kernel; others warn of less
_LEAST_SQUARE = 1e-10  # of ρ, and so of the eigenvalues of S: a smaller one may be rounding


class _View(NamedTuple):
    mean: np.ndarray
    variances: np.ndarray
    spread: Callable[[np.ndarray], np.ndarray]  # of coefficients to weights of the features
    ridge: float  # c
    share: np.ndarray  # S, (n - 1, n - 1), its lower half

    @classmethod
    def of(
        cls,
        gram: np.ndarray,
        ridge: float,
        mean: np.ndarray,
        variances: np.ndarray,
        spread: Callable[[np.ndarray], np.ndarray],
    ) -> Self | None:
        """The view of a Gram matrix, which is lost; None if it has too few digits for the ridge.

        The lower half of the matrix counts.
        """
        diagonal = np.diag_indices_from(gram)
        gram[diagonal] += ridge
        factor = lapack.cholesky(gram)
        if factor is None or not np.isfinite(np.diag(factor)).all():
            return None
        largest, smallest = extreme_eigenvalues(factor)
        if not largest < WELL_CONDITIONED**2 * smallest:
            return None
        share, _ = linalg.lapack.dpotri(factor, lower=1, overwrite_c=1)
        share *= -ridge
        share[diagonal] += 1
        return cls(mean, variances, spread, ridge, share)


def in_dual(rows: Rows, *, with_patterns: bool = False) -> Maps | None:
    """The maps of ridge CCA of two wide views; None where others are, or another way is exact."""
    views, k = rows.views, rows.n_components
    if rows.reading.units or not rows.reading.center or not _suits(rows, len(views)):
        return None
    if not all(isinstance(X, np.ndarray) and X.shape[0] < X.shape[1] for _, X in views.items()):
        return None
    with threads_to_factorise(len(views)):
        sides = [_view_of_rows(X, rows.reg[name]) for name, X in views.items()]
        return _maps(views, sides, k, with_patterns=with_patterns, has_expected=True)


def in_dual_of_kernels(
    rows: Rows, kernel_of: Callable[[str], np.ndarray | None], n_features: int
) -> Maps | None:
    """The maps of ridge CCA of two kernels, whose weights are coefficients of the rows.

    Parameters
    ----------
    rows : Rows
        n training rows of two views.
    kernel_of : callable
        k of all pairs of rows of a view, (n, n), not centred, by its name: positive definite, and
        overwritten. It may refuse by None. One at a time is asked for, which saves memory.
    n_features : int
        The ridge is in units of the mean variance of as many features.

    Returns
    -------
    Maps or None
        Without what is expected of new rows. None if the ridge is too small for exact results, or
        many components are asked for.
    """
    n = len(rows.views)
    if not _suits(rows, n):
        return None
    with threads_to_factorise(n):
        sides = []
        for name in rows.views.names:
            side = _view_of_kernel(kernel_of(name), rows.reg[name], n_features)
            if side is None:
                return None
            sides.append(side)
        return _maps(rows.views, sides, rows.n_components)


def _suits(rows: Rows, n: int) -> bool:
    """Whether these are two paired views without weights, with ridges, of which few maps are asked.

    Of few rows, bases of these give all components.
    """
    views, k = rows.views, rows.n_components
    if k is None or n <= _FEW_ROWS or 4 * k >= n - 1:
        return False
    if len(views.names) != 2 or not views.is_paired or rows.sample_weight is not None:
        return False
    ridges = rows.reg.values()
    return all(ridges) and not any(isinstance(reg, Shrinkage) for reg in ridges)


def _view_of_rows(X: np.ndarray, reg: float) -> _View | None:
    n = len(X)
    X = as_block(X).by_columns()
    mean, lengths, normal, gram = gram_of_rows(X)
    known = variances_of(lengths, n, None)
    return _View.of(
        gram,
        (n - 1) * ridge_in(reg, known.mean()),
        mean,
        known,
        partial(spread, X, None, mean, normal),
    )


def _view_of_kernel(K: np.ndarray | None, reg: float, n_features: int) -> _View | None:
    if K is None:
        return None
    mean = K.mean(axis=0)
    normal, gram = without_mean(K.T)  # by columns, and symmetric
    scatter = float(np.trace(gram))
    ridge = ridge_in(reg, scatter / n_features)
    if ridge < _LEAST_RIDGE * scatter:
        return None
    known = np.full(len(K), scatter / len(gram))
    return _View.of(gram, ridge, mean, known, partial(turned, normal))


def _maps(
    views: Views,
    sides: Sequence[_View | None],
    k: int | None,
    *,
    with_patterns: bool = False,
    has_expected: bool = False,
) -> Maps | None:
    """Maps of the k largest correlations ρ; shares of the views are lost."""
    x, y = sides
    if x is None or y is None or k is None:
        return None
    n = len(x.share) + 1
    of_view = dict(zip(views.names, (x, y), strict=True))
    freedom = {name: float(np.trace(own.share)) for name, own in of_view.items()}
    root = lapack.cholesky(x.share)
    if root is None:
        return None
    T, _ = linalg.lapack.dsygst(y.share, root, itype=2, lower=1, overwrite_a=1)
    squares, V = lapack.top_eigenpairs_and_values(T, k, with_others=has_expected)
    if not squares[0] > _LEAST_SQUARE:
        return None
    rho, V = np.sqrt(squares[::-1]), V[:, ::-1]
    leading, unit = rho[:k], np.sqrt(n - 1)
    a = linalg.blas.dtrmm(1.0, root, V, lower=1)
    b = linalg.solve_triangular(root, V, lower=True, trans="T", check_finite=False)
    scores = a, leading * b  # times √(n - 1), so that products are covariances
    dual = (b - a) * (unit / x.ridge), (a / leading - scores[1]) * (unit / y.ridge)
    lifted = {}
    for coefficients, (name, own) in zip(dual, of_view.items(), strict=True):
        columns = [coefficients, *(S / unit for S in scores if with_patterns)]
        lifted[name] = np.split(own.spread(np.hstack(columns)), len(columns), axis=1)
    within = tuple(S.T @ S for S in scores)
    p, q = views.names
    pair = PairCovariance((p, q), scores[0].T @ scores[1], within, float(n))
    maps = Maps(
        weights={name: own[0] for name, own in lifted.items()},
        means={name: own.mean for name, own in of_view.items()},
        eigenvalues=1 + leading,
        values=leading,
        expected=expected_moments(
            dict.fromkeys(views.names, np.eye(k)),
            counted([pair], views),
            freedom,
            Spectrum(rho, [1.0, 1.0], [n - 1, n - 1]),
        )
        if has_expected
        else None,
        ranks=dict.fromkeys(views.names, n - 1),
        variances={name: own.variances for name, own in of_view.items()},
        bound=n - 1,
    )
    if not with_patterns:
        return maps
    images = {name: lifted[name][1 + i] for i, name in enumerate(views.names)}
    return maps.with_patterns(images, {p: lifted[p][2], q: lifted[q][1]})
