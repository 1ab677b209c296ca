"""Ridge CCA of two or more views by products with their rows: for wide views and many rows.

The maps are those of `Problem.solve` with the covariances of the rows, which are not formed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from mvcca.machine.warnings import warn
from mvcca.problem._estimate import counted
from mvcca.problem._lobpcg import Leading, Steps, leading
from mvcca.problem._pencil import Mix, Pencil
from mvcca.problem.expected import Expected, Spectrum, expected_moments
from mvcca.problem.maps import Maps
from mvcca.problem.rows import Rows
from mvcca.statistics.pair_covariance import PairCovariance
from mvcca.statistics.passes import checkpointed_steps

_OVERFIT = 0.8  # degrees of freedom per row, on average over the views
_EPS = np.finfo(float).eps


@dataclass(frozen=True)
class ProductPath:
    """Ridge CCA of the same rows for any ridge; each solution takes products with the rows.

    Attributes
    ----------
    rows : Rows
        Rows of all views, with their weights.
    with_patterns : bool, default=False
        Whether to find patterns of two views.
    preconditioned : bool, default=True
        Whether to take the products that make steps fewer; without, rows are read least often.
    refuses : bool, default=False
        Whether there is no solution, in place of a warning, for a ridge with which rows are fitted
        almost exactly, so that steps converge slowly.
    """

    rows: Rows
    with_patterns: bool = False
    preconditioned: bool = True
    refuses: bool = False

    def check(self, ridges: Collection[Mapping[str, float]]) -> None:
        """Nothing to check: products need no more digits than rows."""

    def solve(self, ridges: Mapping[str, float], k: int | None = None) -> Maps | None:
        """The k leading maps for ridges as in ``Rows.reg``, of which none may be 0."""
        assert k is not None
        rows = replace(self.rows, reg=ridges, n_components=k)
        pencil = Pencil.of(rows)
        freedom, squares = pencil.traces()
        least = min(own.count for group in pencil.groups for own in group.rows.values())
        if np.mean([*freedom.values()]) >= _OVERFIT * least:
            if self.refuses:
                return None
            from sklearn.exceptions import DataDimensionalityWarning

            warn(
                f"The ridge is small for {least:.4g} rows: maps have "
                f"{' and '.join(f'{own:.4g}' for own in freedom.values())} degrees of freedom, and "
                "fit noise. Correlations of the training rows mean little; choose a larger reg.",
                DataDimensionalityWarning,
            )
        described = f"{ridges} {rows.reading.center} {k} {self.preconditioned}"
        kept = checkpointed_steps(described, Steps.none(), rows.views, (rows.sample_weight,))
        found = leading(pencil, k, preconditioned=self.preconditioned, kept=kept)
        if not found.has_converged:
            if self.refuses:
                return None
            _warn_of_error(found)
        # Components of noise, as folds of few rows have, divide by differences that underflow.
        with np.errstate(all="ignore" if self.refuses else None):
            return _maps(rows, pencil, found, freedom, squares, self.with_patterns)


def _warn_of_error(found: Leading) -> None:
    """Say how exact correlations are after too few steps."""
    from sklearn.exceptions import ConvergenceWarning

    digits = max(0, int(-np.log10(max(found.error, _EPS))))
    warn(
        f"LOBPCG stopped after {found.n_steps} steps with a residual of {found.residual:.1g}: "
        f"correlations are exact to {digits} decimals, within {found.error:.1g}. A larger reg "
        "converges faster.",
        ConvergenceWarning,
    )


def _maps(
    rows: Rows,
    pencil: Pencil,
    found: Leading,
    freedom: Mapping[str, float],
    squares: tuple[float, float] | None,
    with_patterns: bool,
) -> Maps:
    """The fitted model, scaled so that Σ_p w_pᵀ B_p w_p is the number of views."""
    names, k = list(pencil.columns), rows.n_components
    variances = {name: pencil.variances(name) * pencil.units[name] ** 2 for name in names}
    ranks = {
        name: min(
            int(np.count_nonzero(variances[name])), _most_rank(pencil, name, rows.reading.center)
        )
        for name in names
    }
    limit = min(ranks.values()) if len(names) == 2 else sum(ranks.values()) - max(ranks.values())
    real = int(np.sum(found.values > 10 * max(ranks.values()) * _EPS * found.values[0]))
    kept = min(real, limit)
    of_units = {
        name: np.sqrt(len(names)) * found.weights[own, :kept]
        for name, own in pencil.columns.items()
    }
    maps = Maps(
        weights={name: W / pencil.units[name] for name, W in of_units.items()},
        means=pencil.means(),
        eigenvalues=1 + found.values[:kept],
        values=found.values[:kept],
        ranks=ranks,
        variances=variances,
        bound=kept if k is None or kept < k else limit,
    )
    if not kept:
        return maps
    spectrum = None
    assert maps.values is not None
    if squares is not None and kept < min(ranks.values()):
        slopes = [pencil.slopes[name] for name in names]
        spectrum = Spectrum.of_traces(maps.values, *squares, slopes, [*ranks.values()])
    expected = _expected(pencil, of_units, freedom, spectrum)
    maps = replace(maps, expected=expected)
    return _with_patterns(pencil, maps) if with_patterns and len(names) == 2 else maps


def _most_rank(pencil: Pencil, name: str, center: bool) -> int:
    """How many directions the rows of a view can span."""
    return sum(len(group.views) - center for group in pencil.groups if name in group.rows)


def _expected(
    pencil: Pencil,
    weights: Mapping[str, np.ndarray],
    freedom: Mapping[str, float],
    spectrum: Spectrum | None,
) -> Expected | None:
    """What to expect of new rows, from the covariances of the scores in place of the rows."""
    pairs, identity = [], np.eye(next(iter(weights.values())).shape[1])
    for group in pencil.groups:
        scores = {name: rows.forward(weights[name]) for name, rows in group.rows.items()}
        own = {name: S.T @ S for name, S in scores.items()}
        count = next(iter(group.rows.values())).count
        of_group = [
            PairCovariance((p, q), scores[p].T @ scores[q], (own[p], own[q]), count)
            for p, q in combinations(scores, 2)
        ]
        pairs += counted(of_group, group.views)
    return expected_moments(dict.fromkeys(weights, identity), pairs, freedom, spectrum)


def _with_patterns(pencil: Pencil, maps: Maps) -> Maps:
    """The same maps of two views with patterns, from products with their covariances."""
    units = pencil.units
    W = np.concatenate([units[name] * own for name, own in maps.weights.items()])
    own = Mix(dict.fromkeys(units, 1.0), 0.0)
    images, crossed = (
        {name: units[name] * image[place] for name, place in pencil.columns.items()}
        for image in pencil.images(W, own, pencil.of_A())
    )
    return maps.with_patterns(images, crossed)
