"""The problem of CCA: the covariance of all views between them, and each view's own within."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from mvcca._warnings import warn
from mvcca.linalg import Rotation, Solution, Whitener, canonical_directions
from mvcca.linear._blocks import blocks_between, blocks_within
from mvcca.linear._constraint import whiten
from mvcca.linear._precision import Precision, solve_precisely
from mvcca.linear._rotations import in_row_space
from mvcca.statistics import Moments
from mvcca.views import Views


@dataclass(frozen=True, eq=False)
class Problem:
    """CCA of the rows that moments are of, with each view's ridge, and its solution."""

    moments: Moments
    reg: Mapping[str, float]
    rotations: Mapping[str, Rotation]
    variances: Mapping[str, np.ndarray]
    whiteners: Mapping[str, Whitener]
    solution: Solution

    @classmethod
    def of(
        cls,
        moments: Moments,
        reg: Mapping[str, float],
        n_components: int,
        precision: Precision,
        rotations: Mapping[str, Rotation] | None = None,
        rank_expected: Collection[str] = (),
    ) -> Problem:
        """Solve for the top directions; see `whiten` for the last arguments."""
        rotations = rotations or {}
        covariance = moments.covariance()
        within = blocks_within(covariance, moments.widths)
        variances = {n: _variances(B, rotations.get(n)) for n, B in within.items()}
        counts = moments.counts
        whiteners = whiten(within, reg, rotations, variances, precision, rank_expected)
        solution = canonical_directions(
            blocks_between(covariance, moments.widths),
            whiteners,
            n_components,
            precision.eps,
            is_joint=bool((counts == counts[0, 0]).all()),  # every object is seen in every view
        )
        return cls(moments, reg, rotations, variances, whiteners, solution)

    @classmethod
    def of_rows(
        cls,
        views: Views,
        weights: np.ndarray | None,
        reg: Mapping[str, float],
        n_components: int,
    ) -> Problem:
        """Solve for all rows at once, in the precision and the bases that they need."""

        def solve(rows: Views, rotations: Mapping[str, Rotation], precision: Precision) -> Problem:
            moments = Moments.of(rows, weights, precision.products)
            return cls.of(moments, reg, n_components, precision, rotations)

        rows, rotations = in_row_space(views, weights, reg)
        return solve_precisely(solve, rows, reg, weights, rotations)

    def warn_of_certain_correlation(self) -> None:
        names, counts = list(self.whiteners), self.moments.counts
        for (i, p), (j, q) in combinations(enumerate(names), 2):
            width = self.whiteners[p].rank + self.whiteners[q].rank
            if counts[i, j] and counts[i, j] <= width and not (self.reg[p] or self.reg[q]):
                warn(
                    f"n <= p + q and reg=0: {counts[i, j]:g} objects against {width} independent "
                    f"features of views {p!r} and {q!r}. Correlations of 1 are there by "
                    "construction and mean nothing; set reg > 0."
                )


def _variances(B: np.ndarray, rotation: Rotation | None) -> np.ndarray:
    """Of the features as they came: known already where their basis was found from them."""
    known = None if rotation is None else rotation.variances
    return np.diag(B) if known is None else known
