"""The covariances of all views, factorised and ready to be solved, and what to warn of in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from mvcca._warnings import warn
from mvcca.linalg import ILL_CONDITIONED, Rotation, Whitener
from mvcca.linear._blocks import blocks_within
from mvcca.linear._constraint import whiten
from mvcca.linear._rotations import in_row_space, rotate
from mvcca.sources import RowSource
from mvcca.statistics import Moments
from mvcca.views import Views

_IN_MEMORY_BYTES = 2 * 2**30  # of float64 rows, up to which a view is worth decomposing itself


@dataclass(frozen=True, eq=False)
class Problem:
    """Covariance of all views, and each view's own, with its ridge, factorised."""

    moments: Moments
    reg: Mapping[str, float]
    rotations: Mapping[str, Rotation]
    covariance: np.ndarray
    variances: Mapping[str, np.ndarray]
    whiteners: Mapping[str, Whitener]

    @classmethod
    def of(
        cls, moments: Moments, reg: Mapping[str, float], rotations: Mapping[str, Rotation]
    ) -> Problem:
        covariance = moments.covariance()
        within = blocks_within(covariance, moments.widths)
        variances = {n: _variances(B, rotations.get(n)) for n, B in within.items()}
        whiteners = whiten(within, reg, rotations, variances)
        return cls(moments, reg, rotations, covariance, variances, whiteners)

    @classmethod
    def of_rows(cls, views: Views, weights: np.ndarray | None, reg: Mapping[str, float]) -> Problem:
        """Of all rows at once, wide and ill-conditioned views in bases that lose no digits."""
        rows, rotations = in_row_space(views, weights, reg)
        problem = cls.of(Moments.of(rows, weights), reg, rotations)
        poor = problem.worth_decomposing(rows)
        problem.warn_of_lost_digits(except_for=poor)
        if not poor:
            return problem
        # Their covariance has lost digits that the rows themselves still have.
        rows, better = rotate(rows, weights, dict.fromkeys(poor, Rotation.to_principal_components))
        for name, rotation in better.items():
            rotations[name] = rotations[name].then(rotation) if name in rotations else rotation
        return cls.of(Moments.of(rows, weights), reg, rotations)

    def worth_decomposing(self, rows: Views) -> list[str]:
        """Views whose covariance lost digits and whose rows are in memory and not too many."""
        poor = [n for n, w in self.whiteners.items() if w.condition > ILL_CONDITIONED]
        held = [n for n in poor if not isinstance(rows[n], RowSource)]
        return [n for n in held if 8 * np.prod(rows[n].shape, dtype=float) <= _IN_MEMORY_BYTES]

    def warn_of_lost_digits(self, except_for: Iterable[str] = ()) -> None:
        for name, whitener in self.whiteners.items():
            if whitener.condition > ILL_CONDITIONED and name not in except_for:
                warn(
                    f"View {name!r} is close to collinear: its condition number passes "
                    f"{ILL_CONDITIONED:.0e} and {whitener.rank} of {len(whitener.scale)} "
                    "directions are told from rounding, so small correlations may lose digits. "
                    "Set reg > 0, or fit dense rows in memory."
                )

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
