"""A fitted linear model as a value: one affine map per view, and what is known of its components.

Estimators set their fitted attributes from it. What projects rows without an estimator, such as
lazy tasks on workers, functions that predict, and trials of model files, carries the maps alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mvcca.blocks import Block, as_block, to_host
from mvcca.machine.warnings import warn
from mvcca.problem._bases import Basis, Standardized
from mvcca.problem.directions import fixed_signs
from mvcca.problem.expected import Expected
from mvcca.statistics import Regression
from mvcca.statistics.holes import filled
from mvcca.views import Views
from mvcca.views.powers_of_two import Exponents, means_back, weights_back

_EPS = np.finfo(float).eps


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
        Least-squares coefficients of the features on each score of the other one of two views.
    own_patterns : dict of str to ndarray, shape (n_features, k), or None
        The same on each of the view's own scores.
    ranks : dict of str to int, or None
        Rank of each view's constraint.
    variances : dict of str to ndarray, shape (n_features,), or None
        Squared sizes of the features, in units of which the signs of the weights are fixed.
    bound : int or None
        How many components the data can give, when fewer than were asked for; else at least k.
    regression : Regression or None
        The regression on confounds, of whose residuals the weights are.
    precisions : dict of str to ndarray, shape (n_features, n_features), or None
        Inverse covariance of the features of each view, by which holes of rows are filled; None if
        rows have none.
    """

    weights: dict[str, np.ndarray]
    means: dict[str, np.ndarray]
    eigenvalues: np.ndarray | None = None
    power: float = 0.0
    values: np.ndarray | None = None
    expected: Expected | None = None
    patterns: dict[str, np.ndarray] | None = None
    own_patterns: dict[str, np.ndarray] | None = None
    ranks: dict[str, int] | None = None
    variances: dict[str, np.ndarray] | None = None
    bound: int | None = None
    regression: Regression | None = None
    precisions: dict[str, np.ndarray] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The views, in order."""
        return tuple(self.weights)

    # ---- rows to scores --------------------------------------------------------------------------

    def project(self, name: str, block: Any) -> Any:
        """Scores of rows of a view, (n_rows, k), in the precision of the rows."""
        scores = as_block(block).project(self.means[name], self.weights[name])
        if self.precisions is not None:
            scores = self._with_holes_filled(name, as_block(block), scores)
        if self.power:
            scores *= as_block(scores).placed(self.factors(as_block(scores).dtype))
        return scores

    def of_confounds(self, name: str) -> Maps:
        """Map of the confounds to what they explain of a view's scores, (z - m_z)ᵀ B_x W_x λ^power.

        The scores of the view are those of `project` less these.
        """
        z = self.regression
        assert z is not None
        weights = {z.name: z.coefficients[name] @ self.weights[name]}
        return Maps(weights, {z.name: z.mean}, self.eigenvalues, self.power)

    def _with_holes_filled(self, name: str, block: Block, scores: Any) -> Any:
        """The same scores, those of rows with holes from their expectation given their cells."""
        assert self.precisions is not None
        on_host = to_host(scores)
        holes = np.flatnonzero(np.isnan(on_host).any(axis=1))
        if not len(holes):
            return scores
        rows = filled(block.take(holes), self.means[name], self.precisions[name])
        on_host = on_host.copy()
        on_host[holes] = (rows - self.means[name]) @ self.weights[name]
        return block.placed(on_host)

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
        own = self.precisions
        precisions = None if own is None else {name: own[name] for name in names}
        return Maps(weights, means, self.eigenvalues, self.power, precisions=precisions)

    def lifted(self, bases: Mapping[str, Basis]) -> Maps:
        """The same maps as weights of the features, from coordinates in `bases`."""
        weights, means = dict(self.weights), dict(self.means)
        patterns, own_patterns = dict(self.patterns or {}), dict(self.own_patterns or {})
        regression = self.regression and self.regression.lifted(bases)
        variances = dict(self.variances or {})
        for name, basis in bases.items():
            if name not in weights:  # confounds
                continue
            own = getattr(basis, "before", basis)
            if name in variances and isinstance(own, Standardized):
                variances[name] = variances[name] * own.divisors**2
            k, weights[name] = weights[name].shape[1], basis.lift(weights[name])
            of_rows = [found[name].T for found in (patterns, own_patterns) if found]
            centred = basis.back(np.vstack([means[name], *of_rows]))
            means[name] = basis.mean + centred[0]
            if patterns:
                patterns[name], own_patterns[name] = centred[1 : k + 1].T, centred[k + 1 :].T
        return replace(
            self,
            weights=weights,
            means=means,
            patterns=patterns or None,
            own_patterns=own_patterns or None,
            variances=variances or None,
            regression=regression,
        )

    def rescaled(self, exponents: Exponents) -> Maps:
        """Maps of the features, from those of features that are divided by powers of two."""
        weights, means = weights_back(self.weights, exponents), means_back(self.means, exponents)
        of_features = {name: own[:, None] for name, own in exponents.items()}
        with np.errstate(over="ignore"):
            patterns, own_patterns = (
                found and means_back(found, of_features)
                for found in (self.patterns, self.own_patterns)
            )
        return replace(
            self, weights=weights, means=means, patterns=patterns, own_patterns=own_patterns
        )

    def with_patterns(
        self, images: Mapping[str, np.ndarray], crossed: Mapping[str, np.ndarray]
    ) -> Maps:
        """The same maps of two views p and q, with patterns.

        Parameters
        ----------
        images : mapping of str to ndarray, shape (n_features, k)
            Σ_pp W_p of each view.
        crossed : mapping of str to ndarray, shape (n_features, k)
            Σ_pq W_q and Σ_qp W_p.
        """
        p, q = self.weights
        variances = {}
        for name, W in self.weights.items():
            own = np.einsum("ik,ik->k", W, images[name])
            # A score that does not vary predicts nothing.
            variances[name] = np.where(own > _EPS * own.max(initial=0), own, np.inf)
        return replace(
            self,
            patterns={p: crossed[p] / variances[q], q: crossed[q] / variances[p]},
            own_patterns={name: images[name] / variances[name] for name in (p, q)},
        )

    def leading(self, k: int) -> Maps:
        """The first k components."""
        expected = self.expected
        if expected is not None:
            deviations = {name: own[:k] for name, own in expected.deviations.items()}
            expected = Expected(expected.mean[:k], expected.correlations[..., :k], deviations)
        patterns, own_patterns = (
            found and {name: P[:, :k] for name, P in found.items()}
            for found in (self.patterns, self.own_patterns)
        )
        return replace(
            self,
            weights={name: W[:, :k] for name, W in self.weights.items()},
            eigenvalues=None if self.eigenvalues is None else self.eigenvalues[:k],
            values=None if self.values is None else self.values[:k],
            expected=expected,
            patterns=patterns,
            own_patterns=own_patterns,
        )

    # ---- what a fit learns -----------------------------------------------------------------------

    def checked(self, n_components: int | None, *, signs: bool = True) -> Maps:
        """The same maps, the largest weight of each component positive; warn if some are missing.

        With ``signs=False``, signs stay as they are.

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
            warn_of_fewer_components(n_components, self.bound)
        if not signs:
            return self
        assert self.variances is not None
        of_components = fixed_signs(self.weights, self.variances)
        weights = {name: W * of_components for name, W in self.weights.items()}
        patterns, own_patterns = (
            found and {name: P * of_components for name, P in found.items()}
            for found in (self.patterns, self.own_patterns)
        )
        return replace(self, weights=weights, patterns=patterns, own_patterns=own_patterns)

    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of an estimator, by name."""
        found = {
            "weights_": self.weights,
            "means_": self.means,
            "eigenvalues_": self.eigenvalues,
            "ranks_": self.ranks,
            "patterns_": self.patterns,
            "precisions_": self.precisions,
            "own_patterns_": self.own_patterns,
            "n_components_": next(W.shape[1] for W in self.weights.values()),
        }
        if self.regression is not None:
            z = self.regression
            found["means_"] = self.means | {z.name: z.mean}
            found["ranks_"] = (self.ranks or {}) | {z.name: z.rank}
            found["confound_coefficients_"] = z.coefficients
        if self.expected is not None:
            found["expected_correlations_"] = self.expected.mean
            found["expected_correlations_by_pair_"] = self.expected.correlations
            found["expected_deviations_"] = self.expected.deviations
            if len(self.weights) == 2:
                found["canonical_correlations_"] = self.values
        return {name: value for name, value in found.items() if value is not None}


def warn_of_fewer_components(asked: int, fitted: int) -> None:
    """Say that data have fewer components than were asked for."""
    warn(f"n_components={asked} is more than these data have; fitted {fitted}.")
