"""The parameter `reg`: one ridge per view, as given or estimated from the rows."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

import numpy as np

from mvcca.blocks import as_block, to_dense
from mvcca.statistics import Moments
from mvcca.views import Views
from mvcca.views.by_view import value_by_view

Reg = float | str | Mapping[str, float]


class Shrinkage(float):
    """A share s in [0, 1]: a matrix C with mean diagonal μ becomes (1 - s) C + s μ I.

    A plain number r in its place makes C + r μ I.
    """


def reg_of_rows(reg: Reg, views: Views, weights: np.ndarray | None = None) -> dict[str, float]:
    """Ridge per view; "auto" is the `Shrinkage` estimated from all rows."""
    if reg != "auto":
        return reg_of_names(reg, views.names)
    return {
        name: ledoit_wolf_shrinkage(
            block, None if weights is None else weights[views.objects(name)]
        )
        for name, block in views.items()
    }


def reg_of_names(reg: Reg, names: Iterable[str]) -> dict[str, float]:
    """Ridge per view, for fits that do not hold all rows, such as batches."""
    if reg == "auto":
        raise ValueError(
            'reg="auto" (Ledoit-Wolf) looks at all rows at once: use fit, or give partial_fit a '
            "number."
        )
    if not isinstance(reg, Mapping):
        return dict.fromkeys(names, _finite("reg", reg))
    values = value_by_view("reg", reg, names)
    return {name: _finite(f"reg of view {name!r}", value) for name, value in values.items()}


def positive_reg(reg: dict[str, float]) -> dict[str, float]:
    """Refuse a ridge of zero, under which repeated features have no unique weights."""
    for name, value in reg.items():
        if not value:
            raise ValueError(f"reg of view {name!r} must be positive, got {value!r}.")
    return reg


def _finite(what: str, value: Any) -> float:
    if not (isinstance(value, Real) and 0 <= value <= sys.float_info.max):  # type: ignore[operator]
        raise ValueError(f"{what} must be a number >= 0, got {str(value)[:40]}.")
    return float(value)


def ledoit_wolf_shrinkage(X: Any, weights: np.ndarray | None = None) -> Shrinkage:
    """Estimate how far to shrink the covariance of dense, sparse or weighted rows."""
    # With C = 1/n Σ_i x_i x_iᵀ of centred rows and μ its mean diagonal, (1 - s) C + s μ I is
    # closest to the true covariance for s = min(β, δ) / δ, where δ = ‖C - μ I‖² and
    # β = 1/n² Σ_i ‖x_i x_iᵀ - C‖² (Ledoit and Wolf, "A well-conditioned estimator for
    # large-dimensional covariance matrices", Journal of Multivariate Analysis 2004).
    n_rows, n_features = X.shape
    w = np.ones(n_rows) if weights is None else weights
    total = w.sum()
    if n_rows < n_features:  # ‖XᵀX‖ = ‖XXᵀ‖, and the latter is smaller
        centred = to_dense(X).astype(np.float64)
        centred -= np.average(centred, axis=0, weights=w)
        squared_norms = (centred**2).sum(axis=1)
        centred *= np.sqrt(w)[:, None]
        scatter = centred @ centred.T
    else:
        moments = Moments.of(Views({"": X}), weights)
        squared_norms, scatter = as_block(X).squared_norms(moments.means[0]), moments.scatter
    trace = np.trace(scatter)
    if not 0 < trace < np.inf:
        return Shrinkage(0)  # whitening will say what is wrong with this view
    # Fourth powers follow, which must not overflow.
    scatter, squared_norms = scatter / trace, squared_norms / trace * total
    frobenius = np.sum(scatter**2)
    distance = frobenius - 1 / n_features
    if distance <= 0:  # one feature, or all alike: there is nothing to shrink
        return Shrinkage(0)
    noise = (np.sum(w * squared_norms**2) / total - frobenius) / total
    return Shrinkage(np.clip(noise / distance, 0, 1))
