"""Variance of each view that components explain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mvcca.inspection import explained_variance
from mvcca.plotting._display import Display, data_frame
from mvcca.plotting._drawing import draw_title, legend_beside, styled
from mvcca.plotting.style import color, literal, tidy_axes
from mvcca.views.typing import MatrixLike, ViewsLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer
    from pandas import DataFrame

_WIDTH = 0.8  # of the bars of a component together


class ExplainedVarianceDisplay(Display):
    """Share of each view's variance that each component explains, as bars.

    A component may have a large correlation and yet explain little: bars of a view's own variates
    show how much of it a component represents, bars of another view's variates (redundancy) how
    much of it the other view predicts.

    Parameters
    ----------
    explained : mapping of str to array, shape (n_components,)
        Result of `mvcca.inspection.explained_variance`, by view.
    variates : str, optional
        The view whose variates explain; by default each view's own.

    Attributes
    ----------
    bar_ : dict of str to matplotlib BarContainer
        By view.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Raises
    ------
    ValueError
        If views differ in their number of components, or there are none.

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from mvcca import CCA
    >>> from mvcca.plotting import ExplainedVarianceDisplay
    >>> data = load_linnerud(as_frame=True)
    >>> views = {"exercise": data.data, "body": data.target}
    >>> model = CCA(2, reg=0.1).fit(views)
    >>> display = ExplainedVarianceDisplay.from_estimator(model, views, variates="body")
    """

    bar_: dict[str, BarContainer]

    def __init__(self, explained: Mapping[str, np.ndarray], variates: str | None = None) -> None:
        self.explained = {view: np.asarray(own, dtype=float) for view, own in explained.items()}
        shapes = {own.shape for own in self.explained.values()}
        if len(shapes) != 1 or len(next(iter(shapes))) != 1:
            raise ValueError(
                f"Expected the explained variance of the same components in each view, got shapes "
                f"{ {view: own.shape for view, own in self.explained.items()} }."
            )
        self.variates = variates

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ViewsLike | MatrixLike,
        y: MatrixLike | None = None,
        *,
        variates: str | None = None,
        standardize: bool = True,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the variance that a fitted estimator explains.

        Parameters
        ----------
        estimator : fitted estimator
            Any model whose ``transform`` maps `mvcca.views.Views` to `Views`.
        X : Views, mapping, list of matrices, or matrix
            Rows of the fitted views.
        y : matrix, optional
            The second view, if the estimator was fitted on two matrices.
        variates, standardize
            See `mvcca.inspection.explained_variance`.
        ax, **kwargs
            See `plot`.

        Returns
        -------
        ExplainedVarianceDisplay
        """
        found = explained_variance(estimator, X, y, variates=variates, standardize=standardize)
        return cls(found, variates).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default new axes.
        **kwargs
            Keywords of `matplotlib.axes.Axes.bar`, for all bars.

        Returns
        -------
        self
        """
        self.ax_ = ax = tidy_axes(ax, grid="y")
        from matplotlib.patches import Rectangle
        from matplotlib.ticker import PercentFormatter

        width = _WIDTH / len(self.explained)
        self.bar_ = {}
        for number, (view, own) in enumerate(self.explained.items()):
            place = np.arange(1, len(own) + 1) + (number - (len(self.explained) - 1) / 2) * width
            total = f"{literal(view)} (sum {100 * own.sum():.0f} %)"
            style = {"color": color(number), "width": width, "label": total}
            self.bar_[view] = ax.bar(place, own, **styled(style, kwargs, Rectangle))
        ax.set(xlabel="Component", ylabel="Explained variance")
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.yaxis.set_major_formatter(PercentFormatter(1))
        if self.variates is None:
            draw_title(ax, "Variance that each view's own components explain")
        else:
            draw_title(ax, f"Variance that components of {self.variates} explain")
        legend_beside(ax, list(self.bar_.values()))
        return self

    def frame(self) -> DataFrame:
        """One row per view and component."""
        return data_frame(
            {"view": view, "component": i, "explained": value}
            for view, own in self.explained.items()
            for i, value in enumerate(own)
        )
