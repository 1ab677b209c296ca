"""Scales of a dynamically scaled layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mvcca.plotting._display import Display, data_frame
from mvcca.plotting._drawing import draw_title
from mvcca.plotting._heatmap import draw_heatmap
from mvcca.plotting.style import SEQUENTIAL
from mvcca.views.typing import ViewsLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage
    from pandas import DataFrame


class ScalesDisplay(Display):
    """Factors that a row gives the parameters of the last layer of `mvcca.deep.DSDCCA` [1]_.

    The image has a row per component and a column per hidden unit; the last column belongs to the
    bias. At 1 a parameter is that of deep CCA.

    Parameters
    ----------
    scales : array, shape (n_components, n_hidden + 1)
        The factors.
    label : str, default="Scale"
        What is shown, at the colour bar.

    Attributes
    ----------
    im_ : matplotlib AxesImage
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Raises
    ------
    ValueError
        If the scales are not a matrix.

    References
    ----------
    .. [1] Friedlander and Wolf, "Dynamically-Scaled Deep Canonical Correlation Analysis", 2022,
       figure 2.

    Examples
    --------
    >>> import numpy as np
    >>> from mvcca.plotting import ScalesDisplay
    >>> display = ScalesDisplay(np.random.default_rng(0).uniform(0.5, 1.5, (10, 33))).plot()
    """

    im_: AxesImage

    def __init__(self, scales: Any, label: str = "Scale") -> None:
        self.scales = np.asarray(scales, dtype=float)
        if self.scales.ndim != 2:
            raise ValueError(
                f"Expected the scales of a row, of shape (n_components, n_hidden + 1), got shape "
                f"{self.scales.shape}."
            )
        self.label = label

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ViewsLike,
        *,
        view: str | None = None,
        row: int | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the scales of a fitted estimator.

        Parameters
        ----------
        estimator : fitted DSDCCA
            An estimator with ``scales``.
        X : Views, mapping or list of matrices
            A few rows: their scales take as much memory as a last layer each.
        view : str, optional
            The view; by default the first one.
        row : int, optional
            A row of the view; by default the standard deviation over the rows of X is drawn, which
            shows what parameters depend on the input.
        ax, **kwargs
            See `plot`.

        Returns
        -------
        ScalesDisplay

        Raises
        ------
        TypeError
            If the estimator has no scales.
        ValueError
            If the view or the row does not exist.
        """
        if not hasattr(estimator, "scales"):
            raise TypeError(
                f"{type(estimator).__name__} has no scales; mvcca.deep.DSDCCA has. For a pipeline, "
                "pass its last step, pipeline[-1]."
            )
        found: Mapping[str, np.ndarray] = estimator.scales(X)
        view = next(iter(found)) if view is None else view
        if view not in found:
            raise ValueError(f"Unknown view {view!r}; the views are {list(found)}.")
        if row is None:
            of_rows, label = found[view].std(axis=0), "Standard deviation of scales"
        elif not 0 <= row < len(found[view]):
            raise ValueError(f"View {view!r} has {len(found[view])} rows, got row {row}.")
        else:
            of_rows, label = found[view][row], "Scale"
        return cls(of_rows, label).plot(ax, **kwargs)

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
        style = {"cmap": SEQUENTIAL, "interpolation": "nearest"}
        n_components, n_units = self.scales.shape
        units = [*map(str, range(1, n_units)), "bias"]
        sides = [str(i + 1) for i in range(n_components)], units
        self.ax_, self.im_, _ = draw_heatmap(
            ax, self.scales, sides, self.label, style, kwargs, digits=None
        )
        self.ax_.set(xlabel="Hidden unit", ylabel="Component")
        draw_title(self.ax_, f"{self.label} of the last layer's weights")
        return self

    def frame(self) -> DataFrame:
        """One row per component and hidden unit, of which the last is the bias."""
        return data_frame(
            {"component": i, "unit": j, "scale": scale}
            for (i, j), scale in np.ndenumerate(self.scales)
        )
