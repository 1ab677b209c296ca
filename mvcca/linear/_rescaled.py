"""The base of methods that do not depend on the units of the views, at the edges of floats."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mvcca.base import StatisticEstimator
from mvcca.problem import Maps, Rows
from mvcca.problem.ridge import Absolute
from mvcca.views import Views
from mvcca.views.powers_of_two import Exponents, exponents_of, scaled


class RescaledEstimator(StatisticEstimator):
    """Base of methods that learn from views scaled by powers of two, where their squares need it.

    Batches are scaled like the first one, so that their statistics add.
    """

    _exponents: Exponents

    def _exponents_of(self, views: Views) -> Exponents:
        """By column where there is no ridge, whose unit is the mean variance of a view."""
        if self.missing != "error" or self.confounds is not None:  # regressions are not scaled back
            return {}
        reg = self.reg if isinstance(self.reg, Mapping) else dict.fromkeys(views.names, self.reg)
        return exponents_of(views, [name for name in views.names if reg.get(name, "") == 0])

    def _accepted(self, views: Views, reset: bool) -> Views:
        if reset or not hasattr(self, "_exponents"):  # files of older versions lack it
            self._exponents = self._exponents_of(views) if reset else {}
        return scaled(views, self._exponents) if self._exponents else views

    def _ridges(self, rows: Rows, batch: bool) -> dict[str, float]:
        reg = super()._ridges(rows, batch)
        exponents = getattr(self, "_exponents", {})  # none if folds ask before any fit
        for name, own in reg.items():
            if own and isinstance(own, Absolute) and name in exponents:
                reg[name] = Absolute(np.ldexp(own, -2 * int(exponents[name][0])))
        return reg

    def _keep(self, maps: Maps) -> None:
        exponents = getattr(self, "_exponents", {})
        super()._keep(maps.rescaled(exponents) if exponents else maps)
