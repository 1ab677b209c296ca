"""CCA of wide views for any ridge, found by products with the rows.

Matrices over features or rows would take more.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace

from mvcca.problem import Maps, Overfit, Rows, solve_by_products


@dataclass(frozen=True)
class SolvedAnew:
    """Models of the same rows for any ridge, each found by products with the rows."""

    rows: Rows

    def solve(self, reg: Mapping[str, float], n_components: int | None) -> Maps | None:
        """The maps of ridges as in ``Rows.reg``; None if they fit the rows almost exactly."""
        rows = replace(self.rows, reg=reg, n_components=n_components)
        try:
            with warnings.catch_warnings(action="ignore"):  # of models that are not kept
                return solve_by_products(rows, refuse=True)
        except Overfit:
            return None
