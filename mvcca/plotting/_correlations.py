"""Correlation of each component on training and held-out rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mvcca.inspection import component_correlations, pairwise_correlations
from mvcca.plotting._style import GREY, color, literal, tidy_axes
from mvcca.typing import MatrixLike, ViewsLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class CorrelationDisplay:
    """Correlation of each component, on training and on held-out rows.

    For more than two views, the mean over pairs of views is drawn with a band from the smallest to
    the largest correlation.

    Parameters
    ----------
    correlations : mapping of str to mapping of (str, str) to array, shape (n_components,)
        For each named set of rows, the correlations of every pair of views, as returned by
        `mvcca.inspection.component_correlations`.

    Attributes
    ----------
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

    ax_: Axes
    figure_: Figure

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
    ) -> Self:
        """Draw the correlations of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator
            Any model whose ``transform`` maps `mvcca.views.Views` to `Views`.
        X : Views, mapping, list of matrices, or matrix
            Training rows.
        y : matrix, optional
            The second view of the training rows, if X is a single matrix.
        X_test, y_test : optional
            Held-out rows, in the same form.
        ax : matplotlib Axes, optional
            Axes to draw on; by default new axes.

        Returns
        -------
        CorrelationDisplay
        """
        correlations = {"training": component_correlations(estimator, X, y)}
        if X_test is not None:
            correlations["held-out"] = component_correlations(estimator, X_test, y_test)
        return cls(correlations).plot(ax)

    @classmethod
    def from_scores(
        cls, scores: ViewsLike, *, scores_test: ViewsLike | None = None, ax: Axes | None = None
    ) -> Self:
        """Draw the correlations of projected rows.

        Parameters
        ----------
        scores : Views, mapping or list of matrices of shape (n_rows, n_components)
            Projected training rows.
        scores_test : same, optional
            Projected held-out rows.
        ax : matplotlib Axes, optional
            Axes to draw on; by default new axes.

        Returns
        -------
        CorrelationDisplay
        """
        correlations = {"training": pairwise_correlations(scores)}
        if scores_test is not None:
            correlations["held-out"] = pairwise_correlations(scores_test)
        return cls(correlations).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default new axes.

        Returns
        -------
        self
        """
        ax = tidy_axes(ax, grid="y")
        lowest, longest = 0.0, 1
        for number, (rows, of_pairs) in enumerate(self.correlations.items()):
            values = np.stack(list(of_pairs.values()))
            mean, n_components = values.mean(axis=0), values.shape[1]
            longest = max(longest, n_components)
            place = np.arange(1, n_components + 1)
            lowest = min(lowest, float(values.min()))
            # Training rows are grey in the background of held-out rows.
            tone = (
                GREY if number == 0 and len(self.correlations) > 1 else color(number and number - 1)
            )
            size = 5 if n_components <= 30 else 3
            label = f"{literal(rows)} (sum {mean.sum():.2f})"
            ax.plot(place, mean, "o-", color=tone, markersize=size, linewidth=1.2, label=label)
            if len(values) > 1:
                band = values.min(axis=0), values.max(axis=0)
                ax.fill_between(place, *band, color=tone, alpha=0.15, linewidth=0)
        ax.set(xlabel="Component", ylabel="Correlation")
        # Limits as data, so that axes that are shared or used twice show everything.
        ax.update_datalim([(0.5, min(0.0, 1.1 * lowest)), (longest + 0.5, 1.02)])
        ax.margins(0)
        ax.autoscale_view()
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.legend(frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self
