"""Arrows between the views of each object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mvcca.plotting._display import Display, common_points, points_frame, projected_objects
from mvcca.plotting._drawing import (
    draw_plane,
    draw_points,
    draw_title,
    legend_beside,
    point_key,
    point_size,
    styled,
)
from mvcca.plotting._groups import group_keys, group_styles
from mvcca.plotting.style import GREY, color, marker, tidy_axes
from mvcca.views import as_views
from mvcca.views.typing import LabelsLike, MatrixLike, ViewsLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.quiver import Quiver
    from pandas import DataFrame


class ArrowsDisplay(Display):
    """An arrow between the views of each object: short where the views agree.

    With two views, an arrow goes from an object's place in the first view to that in the second.
    With more views, arrows go from the mean of the object's places to each of them. Components are
    standardized in each view, so that arrows show disagreement and not a difference in units.

    Parameters
    ----------
    scores : Views, mapping or list of matrices of shape (n_rows, n_components)
        Projected rows of at least two views. Objects seen in all views are drawn.
    groups : labels, optional
        One class or label set per object. The ten most frequent groups have a colour, the others
        are grey.
    components : pair of int, default=(0, 1)
        The components, from 0.

    Attributes
    ----------
    arrow_ : dict of str to matplotlib Quiver
        By the view at the tips of the arrows.
    scatter_ : dict of str to matplotlib PathCollection
        By view: the starts of the arrows from the first of two views, else the tips.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Raises
    ------
    ValueError
        If there are no two views or no such components, fewer than two objects are seen in all
        views, or there is not a group for each object.

    See Also
    --------
    SamplesDisplay : Each view by itself, with ellipses around groups.
    EmbeddingDisplay : All components in a plane.

    Examples
    --------
    >>> from mvcca import CCA
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.plotting import ArrowsDisplay
    >>> data = load_digits_views()
    >>> model = CCA(2, reg=0.1).fit(data.views[:1200])
    >>> few, digits = data.views[1200:1260], data.labels[1200:1260]
    >>> display = ArrowsDisplay.from_estimator(model, few, groups=digits)
    """

    arrow_: dict[str, Quiver]
    scatter_: dict[str, PathCollection]

    def __init__(
        self,
        scores: ViewsLike,
        groups: LabelsLike | None = None,
        components: tuple[int, int] = (0, 1),
    ) -> None:
        points, self.groups, self.components = common_points(scores, components, groups)
        if len(points) < 2:
            raise ValueError(f"Expected at least two views, got {[*points]}.")
        self.points = as_views(points)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ViewsLike | MatrixLike,
        y: MatrixLike | None = None,
        *,
        groups: LabelsLike | None = None,
        components: tuple[int, int] = (0, 1),
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw rows that a fitted estimator projects.

        Parameters
        ----------
        estimator, X, y
            See `Display.from_estimator`.
        groups, components
            See the class.
        ax, **kwargs
            See `plot`.

        Returns
        -------
        ArrowsDisplay
        """
        return cls(projected_objects(estimator, X, y), groups, components).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default new axes.
        **kwargs
            Keywords of `matplotlib.axes.Axes.quiver`, for all arrows.

        Returns
        -------
        self
        """
        self.ax_ = ax = tidy_axes(ax)
        from matplotlib.quiver import Quiver

        rows = {name: np.asarray(block) for name, block in self.points.items()}
        names = list(rows)
        styles = group_styles(self.groups, markers=False)
        tones = [color(0)] * len(self.points)
        if self.groups is not None:
            tones = [styles[group][0] for group in self.groups]
        is_pair = len(names) == 2
        starts = rows[names[0]] if is_pair else np.mean(list(rows.values()), axis=0)
        style = {"angles": "xy", "scale_units": "xy", "scale": 1, "width": 0.0025, "headwidth": 5}
        style |= {"color": tones, "alpha": 0.75}
        self.arrow_, self.scatter_ = {}, {}
        for number, name in enumerate(names):
            if number or not is_pair:
                moved = rows[name] - starts
                self.arrow_[name] = ax.quiver(*starts.T, *moved.T, **styled(style, kwargs, Quiver))
            if not (number and is_pair):
                shape, size = marker(number), point_size(len(starts), 20)
                self.scatter_[name] = draw_points(
                    ax, rows[name], {}, c=tones, s=size, marker=shape, alpha=0.75
                )
        draw_plane(ax, self.components)
        every = np.concatenate(list(rows.values()))
        ax.update_datalim(every)
        ax.margins(0.05)
        ax.autoscale_view()
        ax.set_aspect("equal", adjustable="datalim")
        if is_pair:
            draw_title(ax, f"Each object from {names[0]} to {names[1]}: short arrows agree")
        else:
            draw_title(ax, "Each object from its mean to its views: short arrows agree")
        views = [point_key(name, marker(i), GREY) for i, name in enumerate(names)]
        if is_pair:
            views[1] = point_key(names[1], r"$\rightarrow$", GREY)
        legend_beside(ax, [*views, *group_keys(styles)])
        return self

    def frame(self) -> DataFrame:
        """One row per object and view: its group and standardized scores."""
        return points_frame(self.points, self.groups)
