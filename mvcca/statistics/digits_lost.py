"""`DigitsLost`: the error of sums of products whose precision does not suffice."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

__all__ = ["DigitsLost"]


class DigitsLost(ArithmeticError):
    """Covariances have too few digits left to tell correlations from rounding.

    Attributes
    ----------
    views : frozenset of str
        The views that are too ill-conditioned for the precision of their covariance.
    """

    def __init__(self, views: Collection[str], found: str = "") -> None:
        super().__init__(
            f"{found or 'Correlations are not distinguishable from rounding'}: the covariances of "
            f"the views {sorted(views)} have lost too many digits. Set reg > 0, or pass dense "
            "float64 rows in memory."
        )
        self.views = frozenset(views)
        self._arguments = (views, found)

    def __reduce__(self) -> tuple[type[DigitsLost], tuple[Any, ...]]:
        return DigitsLost, self._arguments  # raised on a worker, too
