"""Pairs of variables of different views: what networks and circos plots have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mvcca.inspection import pairwise_associations
from mvcca.plotting._display import ScoresDisplay, data_frame
from mvcca.plotting._drawing import line_key
from mvcca.plotting._variables import column_names, variable_names
from mvcca.plotting.style import NEGATIVE, POSITIVE
from mvcca.views import as_views
from mvcca.views.typing import ViewsLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

_N_PAIRS = 50  # without a cut-off
_THIN, _THICK = 0.6, 2.6  # points, lines of the smallest and of the largest value


class FeaturePairsDisplay(ScoresDisplay):
    """Pairs of variables with the values that they are joined by."""

    def __init__(
        self, names: Mapping[str, Sequence[str]], pairs: np.ndarray, values: np.ndarray
    ) -> None:
        self.names = {view: [*map(str, own)] for view, own in names.items()}
        self.pairs, self.values = np.asarray(pairs, dtype=int), np.asarray(values, dtype=float)
        n_variables = sum(map(len, self.names.values()))
        shape = (len(self.values), 2)
        if not len(self.values) or self.pairs.shape != shape or self.values.ndim != 1:
            raise ValueError(
                f"Expected pairs of shape (n_pairs, 2) and a value for each, got shapes "
                f"{self.pairs.shape} and {self.values.shape}."
            )
        if self.pairs.min() < 0 or self.pairs.max() >= n_variables:
            raise ValueError(
                f"Pairs number the {n_variables} variables from 0 to {n_variables - 1}, got "
                f"{self.pairs.min()} to {self.pairs.max()}."
            )

    @classmethod
    def from_scores(
        cls,
        scores: ViewsLike,
        X: ViewsLike,
        *,
        cutoff: float | None = None,
        components: Sequence[int] | None = None,
        feature_names: Mapping[str, Sequence[str]] | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the associations of variables through projected rows.

        Parameters
        ----------
        scores : Views, mapping or list of matrices of shape (n_rows, n_components)
            Projected rows of at least two views.
        X : Views, mapping or list of matrices
            The same rows before projection.
        cutoff : float, optional
            Least absolute association (see `mvcca.inspection.associations`) of a pair that is
            drawn; by default that of the 50th strongest pair.
        components : sequence of int, optional
            Components that associations add up, from 0; by default all.
        feature_names : mapping of str to sequence of str, optional
            Names of the variables, by view; by default the column names of DataFrames.
        ax, **kwargs
            See `plot`.

        Returns
        -------
        Display

        Raises
        ------
        ValueError
            If no pair reaches the cut-off, or a component does not exist.
        """
        found = pairwise_associations(X, scores, components=components)
        pairs, values = _strongest(found, cutoff)
        widths = _widths(found)
        given = feature_names or column_names(X, as_views(scores).names)
        views, named = variable_names(widths, given)
        used, numbers = np.unique(pairs, return_inverse=True)
        names: dict[str, list[str]] = {name: [] for name in widths}
        for i in used:
            names[views[i]].append(named[i])
        return cls(names, numbers.reshape(-1, 2), values).plot(ax, **kwargs)

    @abstractmethod
    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the display."""

    def frame(self) -> DataFrame:
        """One row per pair, the strongest first: views and names of both variables, the value."""
        order = np.argsort(-np.abs(self.values), kind="stable")
        first, second = self.pairs[order].T
        return data_frame(
            first_view=[self.views[i] for i in first],
            first=[self.all_names[i] for i in first],
            second_view=[self.views[i] for i in second],
            second=[self.all_names[i] for i in second],
            value=self.values[order],
        )

    @property
    def all_names(self) -> list[str]:
        """Names of the variables of all views, one after another."""
        return [name for own in self.names.values() for name in own]

    @property
    def views(self) -> list[str]:
        """View of each variable."""
        return [view for view, own in self.names.items() for _ in own]

    @property
    def by_importance(self) -> np.ndarray:
        """Numbers of the variables, those with the largest values first."""
        largest = np.zeros(len(self.views))
        np.maximum.at(largest, self.pairs.ravel(), np.repeat(np.abs(self.values), 2))
        return np.argsort(-largest, kind="stable")

    @property
    def title(self) -> str:
        """What is drawn."""
        least = np.abs(self.values).min()
        return f"{len(self.values)} associations between views, {least:.2f} or more"

    def line_style(self) -> dict[str, Any]:
        """Colours of lines by the sign of their values, widths by their size."""
        sizes = np.abs(self.values)
        share = (sizes - sizes.min()) / max(np.ptp(sizes), np.finfo(float).tiny)
        return {
            "color": np.where(self.values < 0, NEGATIVE, POSITIVE).tolist(),
            "linewidth": (_THIN + (_THICK - _THIN) * share).tolist(),
            "alpha": 0.6,
        }

    def sign_keys(self) -> list[Any]:
        """Legend entries of the signs that occur."""
        signs = ("positive", POSITIVE, self.values >= 0), ("negative", NEGATIVE, self.values < 0)
        return [line_key(label, color=tone) for label, tone, has in signs if has.any()]


def _strongest(
    found: Mapping[tuple[str, str], np.ndarray], cutoff: float | None
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (n, 2) of the strongest associations, and their values.

    Variables are numbered over all views, one after another.
    """
    widths = _widths(found)
    starts = dict(zip(widths, np.cumsum([0, *widths.values()]), strict=False))
    sizes = np.concatenate([np.abs(values).ravel() for values in found.values()])
    if cutoff is None:
        nth = max(len(sizes) - _N_PAIRS, 0)
        cutoff = max(float(np.partition(sizes, nth)[nth]), np.finfo(float).tiny)
    pairs, kept = [], []
    for (p, q), values in found.items():
        rows, columns = np.nonzero(np.abs(values) >= cutoff)
        pairs.append(np.stack([starts[p] + rows, starts[q] + columns], axis=1))
        kept.append(values[rows, columns])
    if not any(map(len, kept)):
        raise ValueError(
            f"No pair of variables reaches cutoff={cutoff:g}; the largest association is "
            f"{sizes.max():.2f}."
        )
    return np.concatenate(pairs), np.concatenate(kept)


def _widths(found: Mapping[tuple[str, str], np.ndarray]) -> dict[str, int]:
    """Number of variables of each view."""
    widths: dict[str, int] = {}
    for pair, values in found.items():
        widths |= dict(zip(pair, values.shape, strict=True))
    return widths
