"""Weighting of components by their correlations: names, and vectors made of canonical variates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mvcca.blocks.array_api import namespace, placed
from mvcca.problem._expected import LARGEST_CORRELATION

Weighting = str  # a name of WEIGHTINGS, "correlation^P", or "auto"
WEIGHTINGS = ("likelihood", "profile-likelihood", "likelihood-cosine", "correlation")


def power_of(weighting: str) -> float | None:
    """P of "correlation^P", 1 of "correlation"; None for another weighting.

    Raises
    ------
    ValueError
        If the name is unknown or the power no number of at least 0.
    """
    kind, hat, power = weighting.partition("^")
    if kind == "correlation":
        try:
            value = float(power) if hat else 1.0
        except ValueError:
            value = -1.0
        if 0 <= value < np.inf:
            return value
    elif not hat and kind in WEIGHTINGS:
        return None
    raise ValueError(
        f"Expected weighting to be 'auto', None, one of {list(WEIGHTINGS)} or 'correlation^P' with "
        f"a power P of at least 0, got {weighting!r}."
    )


@dataclass(frozen=True, eq=False)
class ComponentFactors:
    """Scores times a factor for each component."""

    factors: np.ndarray  # (k,)

    def rows(self, _: str, scores: Any) -> Any:
        """Vectors to compare."""
        return scores * placed(self.factors, scores)


@dataclass(frozen=True, eq=False)
class LikelihoodRatio:
    """Log-likelihood ratio of "these rows show the same object", if views are jointly Gaussian.

    With scores a of view p and b of view q in units of their standard deviations, and the
    correlations ρ of these two views, it is the inner product of the vectors

        query  (w a, e_p, -Σ_i v_i a_i² / 2 - Σ_i log(1 - ρ_i²) / 2),
        item   (b, (-Σ_i v_i b_i² / 2 for every view p), 1),

    w = ρ / (1 - ρ²), v = ρ² / (1 - ρ²). Item vectors do not depend on the view of the query, whose
    unit vector e_p selects the term of its correlations. Queries of several views are added, which
    adds their ratios; so does setting the vectors of several target views side by side.
    """

    views: tuple[str, ...]
    correlations: np.ndarray  # (n_views, n_views, k)
    deviations: Mapping[str, np.ndarray]  # (k,)

    @classmethod
    def of(cls, model: Any) -> LikelihoodRatio:
        """Read the expected moments of a fitted estimator."""
        of_pairs = np.clip(model.expected_correlations_by_pair_, 0, LARGEST_CORRELATION)
        return cls(model.view_names_, of_pairs, model.expected_deviations_)

    def rows(self, name: str, scores: Any) -> Any:
        """Item vectors of a view's scores, (n_rows, k + n_views + 1)."""
        xp, deviations = namespace(scores), self.deviations[name]
        units = np.divide(1, deviations, out=np.zeros_like(deviations), where=deviations > 0)
        scores = scores * placed(units, scores)
        rho = self.correlations[self.views.index(name)]
        terms = (scores * scores) @ placed((rho**2 / (1 - rho**2)).T / -2, scores)
        return xp.concat([scores, terms, xp.ones_like(terms[:, :1])], axis=1)

    def queries(self, name: str, rows: np.ndarray, targets: tuple[str, ...]) -> np.ndarray:
        """Query vectors from the item vectors of a view."""
        p, n = self.views.index(name), len(self.views)
        parts = []
        for q in map(self.views.index, targets):
            rho = self.correlations[p, q]
            queries = np.zeros_like(rows)
            queries[:, : -n - 1] = rows[:, : -n - 1] * (rho / (1 - rho**2))
            queries[:, p - n - 1] = 1
            queries[:, -1] = rows[:, q - n - 1] - np.log1p(-(rho**2)).sum() / 2
            parts.append(queries)
        return np.hstack(parts)
