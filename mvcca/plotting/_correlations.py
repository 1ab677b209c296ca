"""Correlation of each component on training and held-out rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mvcca.inspection import component_correlations
from mvcca.plotting._display import Display, data_frame
from mvcca.plotting._drawing import draw_band, draw_line, draw_title
from mvcca.plotting.style import GREY, color, literal, tidy_axes
from mvcca.views.typing import MatrixLike, ViewsLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from pandas import DataFrame


class CorrelationDisplay(Display):
    """Correlation of each component, on training and on held-out rows or for several methods.

    For more than two views, the mean over pairs of views is drawn with a band from the smallest to
    the largest correlation.

    Parameters
    ----------
    correlations : mapping of str to mapping of (str, str) to array, shape (n_components,)
        For each named set of rows or method, the correlations of every pair of views, as returned
        by `mvcca.inspection.component_correlations`. "training" is drawn in grey beside others.

    Attributes
    ----------
    line_ : dict of str to matplotlib Line2D
        By the names of `correlations`.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from mvcca import CCA
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.plotting import CorrelationDisplay
    >>> views = load_digits_views().views
    >>> model = CCA(10, reg=0.01).fit(views[:1000])
    >>> display = CorrelationDisplay.from_estimator(model, views[:1000], X_test=views[1000:])
    """

    line_: dict[str, Line2D]

    def __init__(self, correlations: Mapping[str, Mapping[tuple[str, str], np.ndarray]]) -> None:
        self.correlations = correlations

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ViewsLike | MatrixLike,
        y: MatrixLike | None = None,
        *,
        X_test: ViewsLike | MatrixLike | None = None,
        y_test: MatrixLike | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the correlations of fitted estimators.

        Parameters
        ----------
        estimator : fitted estimator, or mapping of str to fitted estimators
            Any model whose ``transform`` maps `mvcca.views.Views` to `Views`, or several by name:
            these are compared on X alone, so pass held-out rows.
        X : Views, mapping, list of matrices, or matrix
            Training rows.
        y : matrix, optional
            The second view of the training rows, if X is a single matrix.
        X_test, y_test : optional
            Held-out rows, in the same form.
        ax, **kwargs
            See `plot`.

        Returns
        -------
        CorrelationDisplay

        Raises
        ------
        ValueError
            If there are held-out rows beside those of several estimators.
        """
        of_rows: dict[str, Any] = {"training": (estimator, X, y)}
        if isinstance(estimator, Mapping):
            if X_test is not None:
                raise ValueError(
                    "Several estimators are compared on one set of rows. Pass the held-out rows as "
                    "X and omit X_test."
                )
            of_rows = {name: (one, X, y) for name, one in estimator.items()}
        elif X_test is not None:
            of_rows["held-out"] = (estimator, X_test, y_test)
        found = {name: component_correlations(*given) for name, given in of_rows.items()}
        return cls(found).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default new axes.
        **kwargs
            Keywords of `matplotlib.axes.Axes.plot`, for all lines.

        Returns
        -------
        self
        """
        self.ax_ = ax = tidy_axes(ax, grid="y")
        lowest, longest = 0.0, 1
        tones = iter(range(len(self.correlations)))
        self.line_ = {}
        for rows, of_pairs in self.correlations.items():
            values = np.stack(list(of_pairs.values()))
            mean, n_components = values.mean(axis=0), values.shape[1]
            longest, lowest = max(longest, n_components), min(lowest, float(values.min()))
            place = np.arange(1, n_components + 1)
            in_background = rows == "training" and len(self.correlations) > 1
            self.line_[rows] = draw_line(
                ax,
                place,
                mean,
                kwargs,
                marker="o",
                color=GREY if in_background else color(next(tones)),
                markersize=5 if n_components <= 30 else 3,
                linewidth=1.2,
                label=f"{literal(rows)} (sum {mean.sum():.2f})",
            )
            if len(values) > 1:
                draw_band(ax, place, values, self.line_[rows].get_color())
        ax.set(xlabel="Component", ylabel="Correlation")
        # Limits as data, so that axes that are shared or used twice show everything.
        ax.update_datalim([(0.5, min(0.0, 1.1 * lowest)), (longest + 0.5, 1.02)])
        ax.margins(0)
        ax.autoscale_view()
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.legend(frameon=False)
        n_pairs = max(map(len, self.correlations.values()))
        of_many = "" if n_pairs == 1 else f", mean and range over {n_pairs} pairs of views"
        draw_title(ax, f"Correlation of each component{of_many}")
        return self

    def frame(self) -> DataFrame:
        """One row per set of rows or method, pair of views and component."""
        return data_frame(
            {"rows": rows, "first": p, "second": q, "component": i, "correlation": value}
            for rows, of_pairs in self.correlations.items()
            for (p, q), values in of_pairs.items()
            for i, value in enumerate(values)
        )
