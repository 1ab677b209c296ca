"""The ridges `reg="auto"` and `reg="oas"`: how far to shrink covariances, estimated from rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg

from mvcca.blocks import as_block, to_host
from mvcca.problem._centring import reciprocal
from mvcca.problem.centred_rows import CentredRows
from mvcca.problem.confounds import given
from mvcca.problem.ridge import Shrinkage
from mvcca.problem.rows import Rows
from mvcca.statistics import Moments, column_slices
from mvcca.views import Views

SHRINKAGES = ("auto", "oas")  # values of `reg`
_LARGE = 5_000  # rows and features, above which a Gram matrix takes over 200 MB
_PROBES = 64


def shrinkages(
    views: Views,
    weights: np.ndarray | None = None,
    method: str = "auto",
    *,
    center: bool = True,
    confounds: str | None = None,
) -> dict[str, float]:
    """The `Shrinkage` of each view, estimated from all rows; the method is "auto" or "oas".

    With confounds, it is that of the residuals on these.
    """
    Z = None
    found: dict[str, float] = {}
    if confounds is not None:
        Z = views.block(confounds).dense().matrix.astype(np.float64)
    for name, block in views.items():
        if name == confounds:
            found[name] = Shrinkage(0)
            continue
        w = None if weights is None else weights[views.objects(name)]
        total = float(block.shape[0] if w is None else w.sum())
        squared_norms, trace, frobenius = _norms(block, w, center, Z)
        fourth = 0.0
        if frobenius:
            fourth = float(np.sum((1 if w is None else w) * (squared_norms / trace) ** 2))
        found[name] = _shrinkage(method, block.shape[1], total, frobenius, fourth)
    return found


def _shrinkage(
    method: str, n_features: int, total: float, frobenius: float, fourth: float
) -> Shrinkage:
    """How far to shrink C = Σ_i w_i x_i x_iᵀ / total, the covariance of centred rows.

    `frobenius` is ‖C‖² / tr² C, or 0 if nothing varies, and `fourth` Σ_i w_i ‖x_i‖⁴ / (total tr C)²
    for "auto".
    """
    distance = frobenius - 1 / n_features
    if not distance > 0:
        return Shrinkage(0)
    if method == "oas":
        # For Gaussian rows, s = (tr C² + tr² C) / ((n + 1) (tr C² - tr² C / p)): eq. (23) of Chen,
        # Wiesel, Eldar and Hero, "Shrinkage algorithms for MMSE covariance estimation", 2010,
        # without its terms in 1/p, as scikit-learn's OAS has it.
        return Shrinkage(min((frobenius + 1) / ((total + 1) * distance), 1))
    # With the mean diagonal μ of C, (1 - s) C + s μ I is closest to the true covariance for
    # s = min(β, δ) / δ, where δ = ‖C - μ I‖² and β = 1/n² Σ_i ‖x_i x_iᵀ - C‖² (Ledoit and Wolf, "A
    # well-conditioned estimator for large-dimensional covariance matrices", Journal of Multivariate
    # Analysis 2004).
    return Shrinkage(np.clip((fourth - frobenius / total) / distance, 0, 1))


def correlation_shrinkage(
    views: Views,
    weights: np.ndarray | None,
    means: Mapping[str, np.ndarray],
    variances: Mapping[str, np.ndarray],
    squares: float,
) -> float:
    """Shrinkage of a correlation matrix towards the identity, Σ Var(r_ij) / Σ r_ij² over i ≠ j.

    With standardized rows x of n objects, the variances sum to n / (n - 1)³ times
    Σ_x (‖x‖⁴ - Σ_i x_i⁴) - (n - 1)² Σ r_ij² / n: eq. (8) of Schäfer and Strimmer, "A shrinkage
    approach to large-scale covariance matrix estimation", 2005.

    Parameters
    ----------
    views : Views
        Paired views, whose features side by side are correlated.
    weights : ndarray, shape (n_rows,), or None
        How often each row counts.
    means, variances : mapping of str to ndarray, shape (n_features,)
        Of all rows.
    squares : float
        Σ r_ij² over all i and j.
    """
    w = np.ones(len(views)) if weights is None else weights
    n, norms, fourths = float(w.sum()), np.zeros(len(w)), 0.0
    for name, block in views.blocks.items():
        factors, row = reciprocal(np.sqrt(variances[name])), 0
        for part in block.row_blocks():
            squared = ((to_host(part.dense().matrix) - means[name]) * factors) ** 2
            rows, row = slice(row, row + len(squared)), row + len(squared)
            norms[rows] += squared.sum(axis=1)
            fourths += float(w[rows] @ (squared**2).sum(axis=1))
    off = squares - sum(np.count_nonzero(variances[name]) for name in views.names)
    total = n / (n - 1) ** 3 * (float(w @ norms**2) - fourths - (n - 1) ** 2 * off / n)
    return float(np.clip(total / off, 0, 1)) if off > 1e-13 * squares else 1.0


@dataclass(frozen=True, eq=False)
class Shrunk:
    """The statistic of a method, with what estimates the `Shrinkage` of each view; both add.

    Attributes
    ----------
    inner : statistic
        What the method learns from.
    moments : dict of str to Moments
        Of each view, together with the confounds if there are any.
    cubes : dict of str to ndarray, shape (n_features,)
        Σ w ‖x - m‖² (x - m) / t^(3/2) of each view, with its mean m and t = Σ w ‖x - m‖², whose
        powers could leave the range of floats.
    fourths : dict of str to float
        Σ w ‖x - m‖⁴ / t².
    """

    inner: Any
    moments: dict[str, Moments]
    cubes: dict[str, np.ndarray]
    fourths: dict[str, float]

    @classmethod
    def of(cls, inner: Any, rows: Rows, confounds: str | None = None) -> Shrunk:
        """Sum up rows, of which `inner` is a statistic: moments of all views if with confounds."""
        names = [name for name in rows.views.names if name != confounds]
        if confounds is None:
            moments = rows.moments_of_each()
        else:
            moments = {name: inner.select([name, confounds]) for name in names}
        cubes, fourths = {}, {}
        for name in names:
            X = rows.views.block(name).promoted(np.dtype(np.float64))
            w, mean = rows.sample_weight_of(name), moments[name].mean()[name]
            trace, _ = _trace(_scatter(moments[name], name))
            cubes[name], fourths[name] = np.zeros(len(mean)), 0.0
            if 0 < trace < np.inf:
                share = X.squared_norms(mean) / trace
                fourths[name] = float(np.sum(w * share**2))
                cubes[name] = X.centred_cross((w * share)[:, None], mean)[:, 0] / np.sqrt(trace)
        return cls(inner, moments, cubes, fourths)

    def __add__(self, other: Shrunk) -> Shrunk:
        moments = {name: own + other.moments[name] for name, own in self.moments.items()}
        cubes, fourths = {}, {}
        for name, total in moments.items():
            (cube, fourth), (more, further) = (s._about(name, total) for s in (self, other))
            cubes[name], fourths[name] = cube + more, fourth + further
        return Shrunk(self.inner + other.inner, moments, cubes, fourths)

    def objects_by_view(self) -> dict[str, float]:
        """Number of objects (sum of weights) seen in each view."""
        return dict(self.inner.objects_by_view())

    @property
    def widths(self) -> dict[str, int]:
        """Number of features of each view."""
        return dict(self.inner.widths)

    def to_host(self) -> Shrunk:
        """The same in host memory; see `LabelStatistic`."""
        inner = self.inner.to_host() if hasattr(self.inner, "to_host") else self.inner
        return Shrunk(inner, self.moments, self.cubes, self.fourths)

    def shrinkages(
        self, method: str = "auto", center: bool = True, confounds: str | None = None
    ) -> dict[str, float]:
        """What `shrinkages` finds for all rows; "auto" takes no confounds."""
        found: dict[str, float] = {} if confounds is None else {confounds: Shrinkage(0)}
        for name, own in self.moments.items():
            total, fourth = own.counts[0, 0], self.fourths[name]
            if not center:
                own = own.about_zero()
                own = replace(own, scatter=own.scatter * (total / max(total - 1, 1)))
                fourth = self._about(name, own)[1]
            if confounds is not None:
                own = given(own, confounds)
            _, frobenius = _trace(_scatter(own, name))
            found[name] = _shrinkage(method, own.widths[name], total, frobenius, fourth)
        return found

    def _about(self, name: str, other: Moments) -> tuple[np.ndarray, float]:
        """The cubes and the fourths of a view about the mean, and in the unit, of other moments."""
        own = self.moments[name]
        S, (trace, _) = _scatter(own, name), _trace(_scatter(other, name))
        if not 0 < trace < np.inf:
            return np.zeros(len(S)), 0.0
        unit, n, columns = np.sqrt(trace), own.counts[0, 0], column_slices(own.widths)[name]
        shift = (other.means - own.means) + (other.residues - own.residues)
        e = shift[list(own.widths).index(name), columns] / unit  # Σ w (x - m) vanishes
        Se, e_e, t = S @ e / trace, e @ e, np.trace(S) / trace
        cube = self.cubes[name] * t**1.5
        fourth = self.fourths[name] * t**2 - 4 * e @ cube + 4 * e @ Se + e_e * (2 * t + n * e_e)
        return cube - e * (t + n * e_e) - 2 * Se, float(fourth)


def _scatter(moments: Moments, name: str) -> np.ndarray:
    own = column_slices(moments.widths)[name]
    return moments.scatter[own, own]


def _trace(scatter: np.ndarray) -> tuple[float, float]:
    """The trace of S, and ‖S‖² / tr² S; the latter is 0 if nothing varies or a view overflows."""
    trace = float(np.trace(scatter))
    if not 0 < trace < np.inf:
        return trace, 0.0  # whitening will say what is wrong with this view
    return trace, float(np.sum((scatter / trace) ** 2))


def _norms_and_scatter(
    X: Any, weights: np.ndarray | None, center: bool, confounds: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Squared lengths of the centred rows, and XᵀX, or the smaller XXᵀ with the same ‖·‖.

    With confounds, X is what they leave of the rows.
    """
    n_rows, n_features = X.shape
    if n_rows < n_features:
        rows = as_block(X).dense().matrix.astype(np.float64)
        if center:
            rows -= np.average(rows, axis=0, weights=weights)
        root = np.ones((n_rows, 1)) if weights is None else np.sqrt(weights)[:, None]
        if confounds is not None:
            Z = confounds - (np.average(confounds, axis=0, weights=weights) if center else 0)
            rows -= Z @ linalg.lstsq(root * Z, root * rows)[0]
        squared_norms = (rows**2).sum(axis=1)
        rows *= root
        return squared_norms, rows @ rows.T
    blocks = {"X": X} if confounds is None else {"X": X, "Z": confounds}
    moments = Moments.of(Views(blocks), weights)
    unit, total = 1.0, moments.counts[0, 0]
    if not center:
        moments, unit = moments.about_zero(), total / max(total - 1, 1)
    mean = moments.mean()["X"]
    squared_norms = as_block(X).squared_norms(mean)
    if confounds is not None:
        moments = given(moments, "Z")
        regression = moments.regression
        assert regression is not None
        B, Z = regression.coefficients["X"], confounds - regression.mean
        explained = to_host(as_block(X).project(mean, B.T))
        squared_norms = squared_norms + np.einsum("ij,ij->i", Z @ (B @ B.T) - 2 * explained, Z)
    return squared_norms, unit * moments.scatter


def _norms(
    X: Any, weights: np.ndarray | None, center: bool, confounds: np.ndarray | None
) -> tuple[np.ndarray, float, float]:
    """Squared lengths of the centred rows, tr XᵀX, and ‖XᵀX‖² / tr² XᵀX; 0 if nothing varies."""
    if confounds is None and min(X.shape) > _LARGE:
        return _norms_by_products(X, weights, center)
    squared_norms, scatter = _norms_and_scatter(X, weights, center, confounds)
    return squared_norms, *_trace(scatter)


def _norms_by_products(
    X: Any, weights: np.ndarray | None, center: bool
) -> tuple[np.ndarray, float, float]:
    """The same of large views, ‖C‖² as ‖CQ‖² + E ‖C (I - QQᵀ) z‖² with random signs z.

    Q spans the largest directions, which leave little to chance (Meyer, Musco, Musco and Woodruff,
    "Hutch++: Optimal Stochastic Trace Estimation", 2021).
    """
    rows = CentredRows.of(as_block(X), weights, center=center)
    squared_norms = as_block(X).squared_norms(rows.mean)
    trace = float(rows.variances.sum())
    if not 0 < trace < np.inf:
        return squared_norms, trace, 0.0
    rng, n_features = np.random.default_rng(0), X.shape[1]
    Q = rng.standard_normal((n_features, _PROBES))
    for _ in range(2):
        Q = linalg.qr(rows.backward(rows.forward(Q)), mode="economic")[0]
    z = rng.choice([-1.0, 1.0], (n_features, _PROBES))
    z -= Q @ (Q.T @ z)
    of_Q, of_z = (np.sum((rows.backward(rows.forward(V)) / trace) ** 2) for V in (Q, z))
    return squared_norms, trace / rows.factor**2, float(of_Q + of_z / _PROBES)
