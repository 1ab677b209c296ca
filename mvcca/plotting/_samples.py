"""Objects on two components of each view."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mvcca.blocks.checks import to_array
from mvcca.plotting._display import Display, points_frame, projected_objects, two_components
from mvcca.plotting._drawing import (
    draw_plane,
    draw_title,
    legend_beside,
    line_key,
    panel_axes,
    point_size,
)
from mvcca.plotting._geometry import ellipse
from mvcca.plotting._groups import draw_groups, group_keys, group_styles, groups_of
from mvcca.plotting.style import FAINT, GREY
from mvcca.views.typing import LabelsLike, MatrixLike, ViewsLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.lines import Line2D
    from pandas import DataFrame

_FEWEST = 3  # objects of a group with an ellipse


class SamplesDisplay(Display):
    """Objects on two components, a panel per view, with an ellipse around each group.

    Groups that lie apart in all views are a difference that the views share; groups that lie apart
    in one view only are not. An ellipse holds 95 % of a normal distribution with the mean and
    covariance of its group.

    Parameters
    ----------
    scores : Views, mapping or list of matrices of shape (n_rows, n_components)
        Projected rows of one or more views, paired or not.
    groups : labels, optional
        One class or label set per object, or the labels of each view's rows by view name. The ten
        most frequent groups have a colour and a marker, the others are grey.
    components : pair of int, default=(0, 1)
        The components, from 0.

    Attributes
    ----------
    scatter_ : dict of str to dict of str to matplotlib PathCollection
        By view and group; without groups the only group is "".
    ellipse_ : dict of str to dict of str to matplotlib Line2D
        By view and group.
    axes_ : dict of str to matplotlib Axes
        The panels, by view.
    ax_ : matplotlib Axes
        The first panel.
    figure_ : matplotlib Figure

    Raises
    ------
    ValueError
        If there are no such components, or there is not a group for each object.

    See Also
    --------
    ArrowsDisplay : How far the views of an object are apart.

    Examples
    --------
    >>> from mvcca import CCA
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.plotting import SamplesDisplay
    >>> data = load_digits_views()
    >>> model = CCA(2, reg=0.1).fit(data.views[:1200])
    >>> held_out, digits = data.views[1200:], data.labels[1200:]
    >>> display = SamplesDisplay.from_estimator(model, held_out, groups=digits)
    >>> list(display.axes_)
    ['left', 'right']
    """

    scatter_: dict[str, dict[str, PathCollection]]
    ellipse_: dict[str, dict[str, Line2D]]
    axes_: dict[str, Axes]

    def __init__(
        self,
        scores: ViewsLike,
        groups: LabelsLike | None = None,
        components: tuple[int, int] = (0, 1),
    ) -> None:
        scores, chosen = two_components(scores, components)
        self.points = scores.replace({n: to_array(Z)[:, chosen] for n, Z in scores.items()})
        self.groups, self.components = groups_of(groups, scores), chosen

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ViewsLike | MatrixLike,
        y: MatrixLike | None = None,
        *,
        groups: LabelsLike | None = None,
        components: tuple[int, int] = (0, 1),
        level: float | None = 0.95,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw rows that a fitted estimator projects.

        Parameters
        ----------
        estimator, X, y
            See `Display.from_estimator`.
        groups, components
            See the class.
        level, ax, **kwargs
            See `plot`.

        Returns
        -------
        SamplesDisplay
        """
        scores = projected_objects(estimator, X, y)
        return cls(scores, groups, components).plot(ax, level=level, **kwargs)

    def plot(self, ax: Any = None, *, level: float | None = 0.95, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, or sequence of them, optional
            One for each view, or one that is divided among the views; by default a new figure.
        level : float or None, default=0.95
            Share of a group that its ellipse holds; None for no ellipses.
        **kwargs
            Keywords of `matplotlib.axes.Axes.scatter`, for the points of all groups.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If `level` is not between 0 and 1, or there is not one panel for each view.
        """
        if level is not None and not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1, or None, got {level!r}.")
        panels = panel_axes(ax, len(self.points.names))
        self.axes_ = dict(zip(self.points.names, panels, strict=True))
        self.ax_ = panels[0]
        styles = group_styles(self.groups)
        self.scatter_, self.ellipse_ = {}, {}
        for name, axes in self.axes_.items():
            rows, groups = np.asarray(self.points[name]), self._groups_of(name)
            size = point_size(len(rows))
            self.scatter_[name] = draw_groups(axes, rows, groups, styles, kwargs, s=size)
            self.ellipse_[name] = {}
            for group, (tone, _) in styles.items():
                members = rows[np.array(groups) == group]
                if level is not None and tone != FAINT and len(members) >= _FEWEST:
                    outline = ellipse(members, level)
                    (line,) = axes.plot(*outline.T, color=tone, linewidth=1.2)
                    self.ellipse_[name][group] = line
            draw_plane(axes, self.components)
            draw_title(axes, f"Scores of {name}")
        keys = group_keys(styles)
        if level is not None and any(self.ellipse_.values()):
            keys.append(line_key(f"{100 * level:g} % of a group", color=GREY))
        if keys:
            legend_beside(panels[-1], keys)
        return self

    def frame(self) -> DataFrame:
        """One row per row of each view: its object, group and scores."""
        return points_frame(self.points, self.groups)

    def _groups_of(self, name: str) -> list[str] | None:
        """The group of each row of a view."""
        if self.groups is None:
            return None
        return [self.groups[i] for i in self.points.objects(name)]
