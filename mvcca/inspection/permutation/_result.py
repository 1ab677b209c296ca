"""Result of a permutation test: p-values, the null distribution, and their table and plot."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mvcca.inspection._rows import of_confounds
from mvcca.machine.axes import GREY, color, tidy_axes
from mvcca.machine.result import Draw, Result
from mvcca.machine.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TIE = 1e-10  # values closer than this count as equal, relative to those above 1
_ALPHA = 0.05
_HEADER = ("component", "correlation", "statistic", "null_95", "p_value")
_LABELS = {
    "wilks": "-ln Λ (Wilks)",
    "pillai": "Σ r² (Pillai)",
    "roy": "Largest correlation (Roy)",
    "held-out": "Held-out correlation",
}


@dataclass(frozen=True, eq=False)
class PermutationTest(Result):
    """Result of `permutation_test`.

    ``print`` shows it as a table. ``to_frame`` has a row per tested component: its number from 1,
    correlation, statistic, null_95 (95th percentile of the null distribution) and p_value.
    ``plot`` draws the null distribution of one component, ``component=1`` by default, and passes
    other keywords to `matplotlib.axes.Axes.hist`. ``plot(figure="Components")`` draws the statistic
    of each component above the band of 90 % of the permutations, open where p ≥ 0.05.

    Attributes
    ----------
    statistic : str
        Name of the test statistic.
    correlations : ndarray, shape (k,)
        Canonical correlations of the tested rows, in decreasing order, shrunk by the ridge if there
        is one. For more than two views, λ - 1 for the first component of MVCCA.
    observed : ndarray, shape (n_steps,)
        The statistic of each tested component; one value if only the global null hypothesis is
        tested.
    p_values : ndarray, shape (n_steps,)
        Family-wise over components, non-decreasing.
    permuted : ndarray, shape (n_permutations, n_steps)
        The statistic of each permutation: the null distribution.
    n_rows : int
        Number of rows that were exchanged: those of the data less the rank of the confounds and 1,
        or less `dropped_rows`.
    dropped_rows : ndarray of int
        Rows that Theil residuals leave out of the test.
    reg : dict of str to float
        The ridge of each view, also if folds chose it.
    loadings : dict of str to ndarray, shape (n_features, n_steps), or None
        Correlations of the variables, less confounds, with canonical variates; the largest of each
        component is positive in the first view.
    loading_p_values : dict of str to ndarray, shape (n_features, n_steps), or None
        Family-wise over the variables of the view and the tested components.
    coding : tuple of str
        How each confound was encoded, such as "site: 3 columns, reference A".
    """

    statistic: str
    correlations: np.ndarray
    observed: np.ndarray
    p_values: np.ndarray
    permuted: np.ndarray
    n_rows: int
    dropped_rows: np.ndarray
    reg: dict[str, float]
    loadings: dict[str, np.ndarray] | None = None
    loading_p_values: dict[str, np.ndarray] | None = field(default=None, repr=False)
    coding: tuple[str, ...] = ()

    def figures(self) -> dict[str, Draw]:
        """Return the null distribution of a component, and the statistic of all of them."""
        return {"Null distribution": Draw(self._draw), "Components": Draw(self._draw_components)}

    def _draw_components(self, ax: Axes | None, **kwargs: Any) -> Axes:
        ax = tidy_axes(ax)
        place = np.arange(1, len(self.observed) + 1)
        low, high = np.percentile(self.permuted, [5, 95], axis=0)
        label = f"90 % of {len(self.permuted)} permutations"
        # Edges are visible where the fill alone would be too faint.
        style = {"facecolor": GREY, "alpha": 0.4, "edgecolor": GREY, "linewidth": 1}
        ax.fill_between(place, low, high, label=label, **style)
        style = {"color": color(0), "marker": "o", "label": "observed"} | kwargs
        (line,) = ax.plot(place, self.observed, **style)
        if (within := self.p_values >= _ALPHA).any():
            tone = line.get_color()
            style |= {"markerfacecolor": "white", "color": tone, "label": f"p ≥ {_ALPHA}"}
            ax.plot(place[within], self.observed[within], **(style | {"linestyle": ""}))
        ax.set(xlabel="Component", ylabel=_LABELS[self.statistic], xticks=place)
        ax.legend(frameon=False)
        return ax

    def _draw(self, ax: Axes | None, *, component: int = 1, **kwargs: Any) -> Axes:
        if not 1 <= component <= len(self.observed):
            raise ValueError(
                f"Expected a tested component, from 1 to {len(self.observed)}, got {component}."
            )
        ax = tidy_axes(ax, grid="y")
        step = component - 1
        style = {"bins": "auto", "color": GREY, "alpha": 0.5}
        null = self.permuted[:, step]
        label = f"{len(null)} permutations"
        ax.hist(null[np.isfinite(null)], **{**style, "label": label, **kwargs})
        label = f"observed, p = {self.p_values[step]:.3g}"
        ax.axvline(self.observed[step], color=color(0), linewidth=2, label=label)
        ax.set(xlabel=f"{_LABELS[self.statistic]}, component {component}", ylabel="Permutations")
        ax.legend(frameon=False)
        return ax

    def tables(self) -> list[Table]:
        """Return the table of the tested components."""
        rows = f"{len(self.permuted)} permutations of {self.n_rows} rows"
        if len(self.dropped_rows):
            rows += f"; {len(self.dropped_rows)} rows left out"
        notes = [f"{_LABELS[self.statistic]}; {rows}", *of_confounds(self.coding)]
        return [Table.of("Permutation test", _HEADER, self._rows(), notes)]

    def _rows(self) -> list[tuple[int | float, ...]]:
        n_steps = len(self.observed)
        columns = (
            self.correlations[:n_steps],
            self.observed,
            np.percentile(self.permuted, 95, axis=0),
            self.p_values,
        )
        return list(zip(range(1, n_steps + 1), *(c.tolist() for c in columns), strict=True))


def p_values(observed: np.ndarray, null: np.ndarray) -> np.ndarray:
    """(1 + #{T* ≥ T}) / (1 + n) for values T of any shape and a null distribution T*, (n,).

    Rearrangements that leave the rows as they are give T but for rounding, and count.
    """
    slack = np.where(np.isfinite(observed), _TIE * np.maximum(1, np.abs(observed)), 0)
    n_less = np.searchsorted(np.sort(null), observed - slack)
    return np.asarray((1 + len(null) - n_less) / (1 + len(null)))
