"""Distances of categories that are margins of a loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mvcca.plotting._display import Display, data_frame
from mvcca.plotting._drawing import draw_title
from mvcca.plotting._heatmap import draw_heatmap
from mvcca.plotting.style import SEQUENTIAL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage
    from pandas import DataFrame


class CategoryMarginsDisplay(Display):
    """Margin between every two categories, as learned by `mvcca.deep.SAM` [1]_.

    Categories that are close in the shared space have small margins. How the mean margin develops
    over the epochs is in the history: ``LearningCurveDisplay.from_estimator(model,
    panels=["margin", "adaptation"])``.

    Parameters
    ----------
    margins : array, shape (n_categories, n_categories)
        Distance of the centroids of two categories, in [0, 1].
    categories : sequence of str, optional
        Names of the categories, by default their numbers.

    Attributes
    ----------
    im_ : matplotlib AxesImage
    text_ : ndarray of matplotlib Text, or None
        The margins in the cells, if there is space.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Raises
    ------
    ValueError
        If the margins are not a square matrix with a row for each category.

    References
    ----------
    .. [1] Semedo and Magalhães, "Cross-Modal Subspace Learning with Scheduled Adaptive Margin
       Constraints", ACM MM 2019, figures 5 and 6.

    Examples
    --------
    >>> from mvcca.plotting import CategoryMarginsDisplay
    >>> display = CategoryMarginsDisplay([[0.0, 0.4], [0.4, 0.0]], ["art", "music"]).plot()
    """

    im_: AxesImage
    text_: np.ndarray | None

    def __init__(self, margins: Any, categories: Sequence[Any] | None = None) -> None:
        self.margins = np.asarray(margins, dtype=float)
        if categories is None:
            categories = range(len(self.margins))
        self.categories = [str(name) for name in categories]
        if self.margins.shape != (len(self.categories),) * 2:
            raise ValueError(
                f"Expected a square matrix of margins of {len(self.categories)} categories, got "
                f"shape {self.margins.shape}."
            )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        categories: Sequence[str] | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the margins of a fitted estimator.

        Parameters
        ----------
        estimator : fitted SAM
            An estimator with ``category_margins_`` and ``categories_``.
        categories : sequence of str, optional
            Names of the categories, in the order of ``categories_``.
        ax, **kwargs
            See `plot`.

        Returns
        -------
        CategoryMarginsDisplay

        Raises
        ------
        TypeError
            If the estimator has no margins of categories.
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "category_margins_"):
            raise TypeError(
                f"{type(estimator).__name__} has no margins of categories; mvcca.deep.SAM has. "
                "For a pipeline, pass its last step, pipeline[-1]."
            )
        names = estimator.categories_ if categories is None else categories
        return cls(estimator.category_margins_, names).plot(ax, **kwargs)

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
        sides, style = (self.categories, self.categories), {"cmap": SEQUENTIAL, "aspect": "equal"}
        self.ax_, self.im_, self.text_ = draw_heatmap(
            ax, self.margins, sides, "Margin", style, kwargs
        )
        draw_title(self.ax_, "Learned margin between every two categories")
        return self

    def frame(self) -> DataFrame:
        """One row per pair of categories."""
        return data_frame(
            {"first": first, "second": second, "margin": margin}
            for first, margins in zip(self.categories, self.margins, strict=True)
            for second, margin in zip(self.categories, margins, strict=True)
        )
