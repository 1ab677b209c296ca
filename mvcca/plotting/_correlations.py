"""How strongly the views agree on each component, on the rows of the fit and on others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mvcca.inspection import component_correlations, pairwise_correlations
from mvcca.plotting._style import GREY, color, literal, tidy_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class CorrelationDisplay:
    """Correlation of each component, on training and on held-out rows.

    Of more than two views the mean over pairs of views is drawn, in a band from the least to the
    largest.

    Parameters
    ----------
    correlations : mapping of str to mapping of (str, str) to array, shape (n_components,)
        For each set of rows, by its name, the correlations of every pair of views: what
        `mvcca.inspection.component_correlations` gives.

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
        X: Any,
        y: Any = None,
        *,
        X_test: Any = None,
        y_test: Any = None,
        ax: Any = None,
    ) -> Self:
        """Draw the correlations that a fitted estimator finds.

        Parameters
        ----------
        estimator : fitted estimator
            Anything whose ``transform`` takes and gives `mvcca.views.Views`.
        X : Views, mapping, list of matrices, or matrix
            Training rows.
        y : matrix, optional
            Their second view, if X is a lone matrix.
        X_test, y_test : optional
            Held-out rows, in the same form.
        ax : matplotlib Axes, optional
            Where to draw; new axes by default.

        Returns
        -------
        CorrelationDisplay
        """
        correlations = {"training": component_correlations(estimator, X, y)}
        if X_test is not None:
            correlations["held-out"] = component_correlations(estimator, X_test, y_test)
        return cls(correlations).plot(ax)

    @classmethod
    def from_scores(cls, scores: Any, *, scores_test: Any = None, ax: Any = None) -> Self:
        """Draw the correlations of projected rows.

        Parameters
        ----------
        scores : Views, mapping or list of matrices of shape (n_rows, n_components)
            Projected training rows.
        scores_test : same, optional
            Projected held-out rows.
        ax : matplotlib Axes, optional
            Where to draw; new axes by default.

        Returns
        -------
        CorrelationDisplay
        """
        correlations = {"training": pairwise_correlations(scores)}
        if scores_test is not None:
            correlations["held-out"] = pairwise_correlations(scores_test)
        return cls(correlations).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; new axes by default.

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
            # The rows of the fit are the backdrop: what holds on others is the news.
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
        # Limits as data: axes that are shared or drawn on twice take the widest.
        ax.update_datalim([(0.5, min(0.0, 1.1 * lowest)), (longest + 0.5, 1.02)])
        ax.margins(0)
        ax.autoscale_view()
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.legend(frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def plot_correlations(estimator: Any, X: Any, y: Any = None, **options: Any) -> Axes:
    """Draw the correlation of each component; see `CorrelationDisplay.from_estimator`.

    Parameters
    ----------
    estimator : fitted estimator
        Anything whose ``transform`` takes and gives `mvcca.views.Views`.
    X, y
        Training rows.
    **options
        As `CorrelationDisplay.from_estimator` takes them.

    Returns
    -------
    matplotlib Axes
    """
    return CorrelationDisplay.from_estimator(estimator, X, y, **options).ax_
