"""Correlation of each component on training and held-out rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mvcca.inspection import component_correlations, pairwise_correlations
from mvcca.plotting._display import Display
from mvcca.plotting._style import GREY, color, literal, styled, tidy_axes
from mvcca.views.typing import MatrixLike, ViewsLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D


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
        ax : matplotlib Axes, optional
            Axes to draw on; by default new axes.
        **kwargs
            Keywords of `matplotlib.axes.Axes.plot`, for all lines.

        Returns
        -------
        CorrelationDisplay

        Raises
        ------
        ValueError
            If there are held-out rows beside those of several estimators.
        """
        if isinstance(estimator, Mapping):
            if X_test is not None:
                raise ValueError(
                    "Several estimators are compared on one set of rows. Pass the held-out rows as "
                    "X and omit X_test."
                )
            found = {name: component_correlations(one, X, y) for name, one in estimator.items()}
            return cls(found).plot(ax, **kwargs)
        correlations = {"training": component_correlations(estimator, X, y)}
        if X_test is not None:
            correlations["held-out"] = component_correlations(estimator, X_test, y_test)
        return cls(correlations).plot(ax, **kwargs)

    @classmethod
    def from_scores(
        cls,
        scores: ViewsLike,
        *,
        scores_test: ViewsLike | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
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
        **kwargs
            Keywords of `matplotlib.axes.Axes.plot`, for all lines.

        Returns
        -------
        CorrelationDisplay
        """
        correlations = {"training": pairwise_correlations(scores)}
        if scores_test is not None:
            correlations["held-out"] = pairwise_correlations(scores_test)
        return cls(correlations).plot(ax, **kwargs)

    def _draw(self, ax: Axes | None, given: dict[str, Any]) -> Axes:
        ax = tidy_axes(ax, grid="y")
        from matplotlib.lines import Line2D

        lowest, longest = 0.0, 1
        tones = iter(range(len(self.correlations)))
        self.line_ = {}
        for rows, of_pairs in self.correlations.items():
            values = np.stack(list(of_pairs.values()))
            mean, n_components = values.mean(axis=0), values.shape[1]
            longest = max(longest, n_components)
            place = np.arange(1, n_components + 1)
            lowest = min(lowest, float(values.min()))
            in_background = rows == "training" and len(self.correlations) > 1
            style = {
                "marker": "o",
                "color": GREY if in_background else color(next(tones)),
                "markersize": 5 if n_components <= 30 else 3,
                "linewidth": 1.2,
                "label": f"{literal(rows)} (sum {mean.sum():.2f})",
            }
            (line,) = ax.plot(place, mean, **styled(style, given, Line2D))
            self.line_[rows] = line
            if len(values) > 1:
                band = values.min(axis=0), values.max(axis=0)
                ax.fill_between(place, *band, color=line.get_color(), alpha=0.15, linewidth=0)
        ax.set(xlabel="Component", ylabel="Correlation")
        # Limits as data, so that axes that are shared or used twice show everything.
        ax.update_datalim([(0.5, min(0.0, 1.1 * lowest)), (longest + 0.5, 1.02)])
        ax.margins(0)
        ax.autoscale_view()
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.legend(frameon=False)
        return ax
