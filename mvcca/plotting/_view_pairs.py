"""A value for every pair of views."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mvcca.inspection import pairwise_correlations
from mvcca.plotting._display import ScoresDisplay, data_frame
from mvcca.plotting._drawing import check_component, draw_title
from mvcca.plotting._heatmap import draw_heatmap
from mvcca.plotting.style import SEQUENTIAL
from mvcca.retrieval import RetrievalTable
from mvcca.views.typing import ViewsLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage
    from pandas import DataFrame


class ViewPairsDisplay(ScoresDisplay):
    """Matrix of a value for every pair of views: correlations, or a retrieval measure.

    Parameters
    ----------
    values : mapping of (str, str) to float
        By pair of views: row and column, or query and target.
    label : str
        What is shown, at the colour bar.
    symmetric : bool, default=False
        Whether the value of a pair is that of both directions.

    Attributes
    ----------
    matrix : ndarray, shape (n_views, n_views)
        The values, NaN where there is none.
    im_ : matplotlib AxesImage
    text_ : ndarray of matplotlib Text, or None
        The values in the cells, if there is space.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Raises
    ------
    ValueError
        If there are no values.

    Examples
    --------
    >>> from mvcca import MVCCA
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.plotting import ViewPairsDisplay
    >>> views = load_digits_views("quadrants").views
    >>> model = MVCCA(8, reg=0.1).fit(views[:1200])
    >>> display = ViewPairsDisplay.from_estimator(model, views[1200:])
    >>> display.matrix.shape
    (4, 4)
    """

    im_: AxesImage
    text_: np.ndarray | None

    def __init__(
        self, values: Mapping[tuple[str, str], float], label: str, *, symmetric: bool = False
    ) -> None:
        if not values:
            raise ValueError("Expected a value for at least one pair of views, got none.")
        if symmetric:
            values = {**values, **{(q, p): value for (p, q), value in values.items()}}
        self.values, self.label, self.symmetric = values, label, symmetric
        self.rows = list(dict.fromkeys(p for p, _ in values))
        self.columns = list(dict.fromkeys(q for _, q in values))
        if set(self.rows) == set(self.columns):
            self.columns = self.rows
        self.matrix = np.array(
            [[values.get((p, q), np.nan) for q in self.columns] for p in self.rows]
        )

    @classmethod
    def from_scores(
        cls,
        scores: ViewsLike,
        *,
        component: int | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the correlation of each pair of projected views.

        Parameters
        ----------
        scores : Views, mapping or list of matrices of shape (n_rows, n_components)
            Projected rows; held-out ones, since correlations of training rows are optimistic.
        component : int, optional
            One component, from 0; by default the mean over components.
        ax, **kwargs
            See `plot`.

        Returns
        -------
        ViewPairsDisplay

        Raises
        ------
        ValueError
            If there is no such component, or no two views have two common objects.
        """
        pairs = pairwise_correlations(scores)
        if component is None:
            means = {pair: float(values.mean()) for pair, values in pairs.items()}
            display = cls(means, "Mean correlation of components", symmetric=True)
        else:
            check_component(component, min(map(len, pairs.values())))
            chosen = {pair: float(values[component]) for pair, values in pairs.items()}
            display = cls(chosen, f"Correlation of component {component + 1}", symmetric=True)
        return display.plot(ax, **kwargs)

    @classmethod
    def from_table(
        cls, table: RetrievalTable, measure: str, *, ax: Axes | None = None, **kwargs: Any
    ) -> Self:
        """Draw a measure of an evaluation, from the query in the row to the target in the column.

        Parameters
        ----------
        table : RetrievalTable
            Result of `mvcca.evaluate_retrieval`.
        measure : str
            One of its measures, such as "r@10".
        ax, **kwargs
            See `plot`.

        Returns
        -------
        ViewPairsDisplay

        Raises
        ------
        ValueError
            If the table does not have the measure.
        """
        measured = list(table.rows[0].values)
        if measure not in measured:
            raise ValueError(f"The table has the measures {measured}, got {measure!r}.")
        values = {(row.query, row.target): row.values[measure] for row in table}
        return cls(values, measure).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default new axes.
        **kwargs
            Keywords of `matplotlib.axes.Axes.imshow`.

        Returns
        -------
        self
        """
        sides = self.rows, self.columns
        style: dict[str, Any] = {"cmap": SEQUENTIAL, "aspect": "equal"}
        if self.symmetric:  # correlations: colours that do not depend on the smallest one
            style |= {"vmin": min(0.0, float(np.nanmin(self.matrix))), "vmax": 1.0}
        self.ax_, self.im_, self.text_ = draw_heatmap(
            ax, self.matrix, sides, self.label, style, kwargs
        )
        if self.symmetric:
            draw_title(self.ax_, f"{self.label} between every two views")
        else:
            self.ax_.set(xlabel="Target", ylabel="Query")
            draw_title(self.ax_, f"{self.label} from each view to each other view")
        return self

    def frame(self) -> DataFrame:
        """One row per pair of views: row and column, or query and target."""
        return data_frame(
            {"row": row, "column": column, "value": value}
            for (row, column), value in self.values.items()
        )
