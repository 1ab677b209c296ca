"""A fitted linear model as a value: one affine map per view, and what is known of its components.

Estimators set their fitted attributes from it. What projects rows without an estimator, such as
lazy tasks on workers, functions that predict, and trials of model files, carries the maps alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mvcca.blocks import as_block, placed, precision
from mvcca.machine.warnings import warn
from mvcca.problem._bases import Basis
from mvcca.problem._expected import Expected
from mvcca.problem.linalg import fixed_signs
from mvcca.views import Views
from mvcca.views.powers_of_two import Exponents, means_back, weights_back


@dataclass(frozen=True, eq=False)
class Maps:
    """Maps of the views to scores, (x - mean)ᵀ w · λ^power, and what is known of the components.

    Attributes
    ----------
    weights : dict of str to ndarray, shape (n_features, k)
        One map per view. Those of a problem are scaled so that Σ_p w_pᵀ B_p w_p is the number of
        views.
    means : dict of str to ndarray, shape (n_features,)
        Subtracted from rows before they are projected.
    eigenvalues : ndarray, shape (k,), or None
        λ = 1 + ρ, or the method's own eigenvalues.
    power : float
        Scores are multiplied by λ^power.
    values : ndarray, shape (k,), or None
        ρ, decreasing.
    expected : Expected or None
        Correlations and deviations of the scores to expect on new rows; only if the matrices of
        the problem are covariances of the rows.
    patterns : dict of str to ndarray, shape (n_features, k), or None
        Least-squares coefficients of the features on the scores of the other one of two views.
    ranks : dict of str to int, or None
        Rank of each view's constraint.
    variances : dict of str to ndarray, shape (n_features,), or None
        Squared sizes of the features, in units of which the signs of the weights are fixed.
    bound : int or None
        How many components the data can give, when fewer than were asked for; else at least k.
    """

    weights: dict[str, np.ndarray]
    means: dict[str, np.ndarray]
    eigenvalues: np.ndarray | None = None
    power: float = 0.0
    values: np.ndarray | None = None
    expected: Expected | None = None
    patterns: dict[str, np.ndarray] | None = None
    ranks: dict[str, int] | None = None
    variances: dict[str, np.ndarray] | None = None
    bound: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The views, in order."""
        return tuple(self.weights)

    @property
    def n_components(self) -> int:
        """Number of scores of a row."""
        return next(W.shape[1] for W in self.weights.values())

    # ---- rows to scores --------------------------------------------------------------------------

    def project(self, name: str, block: Any) -> Any:
        """Scores of rows of a view, (n_rows, k), in the precision of the rows."""
        scores = as_block(block).project(self.means[name], self.weights[name])
        if self.power:
            scores *= placed(self.factors(precision(scores)), scores)
        return scores

    def transform(self, views: Views) -> Views:
        """Scores of the rows of all views."""
        return views.replace({name: self.project(name, X) for name, X in views.items()})

    def factors(self, dtype: Any) -> np.ndarray:
        """λ^power, by which scores are multiplied; refused if scores of this type overflow."""
        assert self.eigenvalues is not None
        with np.errstate(over="ignore"):
            factors = np.maximum(self.eigenvalues, 0) ** self.power
        if factors.max(initial=0) > 1e-6 * np.finfo(dtype).max:  # which leaves room for scores
            raise ValueError(
                f"power={self.power:g} is too large: λ^power of the first component, "
                f"{self.eigenvalues[0]:.3g}^{self.power:g}, exceeds what {dtype} scores can be "
                "multiplied by. Choose a smaller power; 4 is usual."
            )
        return factors

    # ---- other maps ------------------------------------------------------------------------------

    def select(self, names: Sequence[str]) -> Maps:
        """Maps of some views, without anything that projection does not need."""
        weights, means = ({n: by_view[n] for n in names} for by_view in (self.weights, self.means))
        return Maps(weights, means, self.eigenvalues, self.power)

    def lifted(self, bases: Mapping[str, Basis]) -> Maps:
        """The same maps as weights of the features, from coordinates in `bases`."""
        weights, means = dict(self.weights), dict(self.means)
        patterns = self.patterns and dict(self.patterns)
        for name, basis in bases.items():
            weights[name] = basis.lift(weights[name])
            other = [patterns[name].T] if patterns else []
            centred = basis.back(np.vstack([means[name], *other]))
            means[name] = basis.mean + centred[0]
            if patterns:
                patterns[name] = centred[1:].T
        return replace(self, weights=weights, means=means, patterns=patterns)

    def rescaled(self, exponents: Exponents) -> Maps:
        """Maps of the features, from those of features that are divided by powers of two."""
        weights, means = weights_back(self.weights, exponents), means_back(self.means, exponents)
        return replace(self, weights=weights, means=means)

    # ---- what a fit learns -----------------------------------------------------------------------

    def checked(self, n_components: int | None) -> Maps:
        """The same maps, with signs fixed; warn if there are fewer than were asked for.

        Raises
        ------
        ValueError
            If there are none.
        """
        assert self.bound is not None
        if self.bound == 0:
            raise ValueError(
                "The views have nothing in common: their (weighted) covariance between views is "
                "zero. Check that rows, or labels, correspond."
            )
        if n_components is not None and self.bound < n_components:
            warn(
                f"n_components={n_components} is more than the data can give: at most "
                f"{self.bound}. Fitted with n_components_={self.bound}."
            )
        return self.with_fixed_signs()

    def with_fixed_signs(self) -> Maps:
        """The same maps, the largest weight of each component positive."""
        assert self.variances is not None
        signs = fixed_signs(self.weights, self.variances)
        weights = {name: W * signs for name, W in self.weights.items()}
        patterns = self.patterns and {name: P * signs for name, P in self.patterns.items()}
        return replace(self, weights=weights, patterns=patterns)

    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of an estimator, by name."""
        found = {
            "weights_": self.weights,
            "means_": self.means,
            "eigenvalues_": self.eigenvalues,
            "ranks_": self.ranks,
            "n_components_": self.n_components,
        }
        if self.expected is not None:
            found |= self.expected.attributes()
            if len(self.weights) == 2:
                found["canonical_correlations_"] = self.values
        return {name: value for name, value in found.items() if value is not None}
