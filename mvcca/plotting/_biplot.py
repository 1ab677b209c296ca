"""Objects and variables on two components in one plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mvcca.inspection import loadings
from mvcca.plotting._display import Display, check_no_labels, common_points, data_frame
from mvcca.plotting._drawing import (
    check_component,
    draw_plane,
    draw_title,
    legend_beside,
    point_size,
)
from mvcca.plotting._groups import draw_groups, group_keys, group_styles
from mvcca.plotting._variables import Variables, largest, rows_with_names
from mvcca.plotting.style import GREY, color, literal, tidy_axes
from mvcca.views.typing import LabelsLike, MatrixLike, ViewsLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.quiver import Quiver
    from matplotlib.text import Annotation
    from pandas import DataFrame

_REACH = 0.95  # length of the longest arrow, as a share of the furthest object


class BiplotDisplay(Display):
    """Objects as points and variables as arrows on two components.

    A point is the mean over the views of an object's canonical variates, each standardized. An
    arrow shows the loadings of a variable, its correlations with the two components, all scaled
    by one factor. Objects in the direction of an arrow have large values of the variable.

    Parameters
    ----------
    scores : Views, mapping or list of matrices of shape (n_rows, n_components)
        Projected rows. Objects seen in all views are drawn.
    loadings : mapping of str to array, shape (n_features, n_components)
        Result of `mvcca.inspection.loadings`.
    feature_names : mapping of str to sequence of str, optional
        Names of each view's variables; by default the name of the view and a number.
    groups : labels, optional
        One class or label set per object. The ten most frequent groups have a colour, none of which
        is that of a view, and a marker.
    components : pair of int, default=(0, 1)
        The components, from 0.

    Attributes
    ----------
    scatter_ : dict of str to matplotlib PathCollection
        The objects, by group; without groups the only key is "".
    arrow_ : dict of str to matplotlib Quiver
        The variables, by view.
    text_ : list of matplotlib Annotation
        Names of the variables.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Raises
    ------
    ValueError
        If there are no such components, fewer than two objects are seen in all views, or there is
        not a group for each object.

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from mvcca import CCA
    >>> from mvcca.plotting import BiplotDisplay
    >>> data = load_linnerud(as_frame=True)
    >>> views = {"exercise": data.data, "body": data.target}
    >>> display = BiplotDisplay.from_estimator(CCA(2, reg=0.1).fit(views), views)
    """

    scatter_: dict[str, PathCollection]
    arrow_: dict[str, Quiver]
    text_: list[Annotation]

    def __init__(
        self,
        scores: ViewsLike,
        loadings: Mapping[str, np.ndarray],
        feature_names: Mapping[str, Sequence[str]] | None = None,
        groups: LabelsLike | None = None,
        components: tuple[int, int] = (0, 1),
    ) -> None:
        points, self.groups, self.components = common_points(scores, components, groups)
        for component in self.components:
            check_component(component, min(own.shape[1] for own in loadings.values()))
        self.points = np.mean(list(points.values()), axis=0)
        self.loadings = {name: own[:, self.components] for name, own in loadings.items()}
        self.feature_names = feature_names

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ViewsLike | MatrixLike,
        y: MatrixLike | None = None,
        *,
        groups: LabelsLike | None = None,
        components: tuple[int, int] = (0, 1),
        feature_names: Mapping[str, Sequence[str]] | None = None,
        n_top: int = 12,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw rows that a fitted estimator projects, and the loadings of their variables.

        Parameters
        ----------
        estimator, X, y
            See `Display.from_estimator`.
        groups, components
            See the class.
        feature_names : mapping of str to sequence of str, optional
            Names of the variables, by view; by default the column names of DataFrames.
        n_top, ax, **kwargs
            See `plot`.

        Returns
        -------
        BiplotDisplay
        """
        check_no_labels(X, y)
        scores, rows, names = rows_with_names(estimator, X, y, feature_names)
        found = cls(scores, loadings(scores, rows), names, groups, components)
        return found.plot(ax, n_top=n_top, **kwargs)

    def plot(self, ax: Axes | None = None, *, n_top: int = 12, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default new axes.
        n_top : int, default=12
            Number of variables to draw, those with the largest loadings over all views.
        **kwargs
            Keywords of `matplotlib.axes.Axes.scatter`, for the objects.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If `feature_names` has an unknown view or not all features of a view.
        """
        variables = Variables(self.loadings, self.feature_names)
        self.ax_ = ax = tidy_axes(ax, layout="compressed")
        from matplotlib.patches import Patch

        from mvcca.plotting._labels import annotate_points

        styles = group_styles(self.groups, n_taken=len(self.loadings))
        style: dict[str, Any] = {"s": point_size(len(self.points), 25), "alpha": 0.6}
        if self.groups is None:
            style["c"] = GREY
        self.scatter_ = draw_groups(ax, self.points, self.groups, styles, kwargs, **style)

        ends = variables.loadings * self._stretch(variables.loadings)
        top = largest(variables.loadings, n_top)
        self.arrow_, views = {}, []
        for number, name in enumerate(self.loadings):
            tips = ends[top[variables.of_view(name)[top]]]
            units = {"angles": "xy", "scale_units": "xy", "scale": 1, "width": 0.004}
            start = np.zeros_like(tips)
            self.arrow_[name] = ax.quiver(*start.T, *tips.T, **units, color=color(number))
            views.append(Patch(color=color(number), label=literal(name)))
        names = [variables.names[i] for i in top]
        along = np.linspace(0.3, 1, 6)[:, None, None] * ends[top]  # places on the arrows
        around = np.concatenate([self.points, along.reshape(-1, 2)])
        self.text_ = annotate_points(ax, ends[top], names, around)
        draw_plane(ax, self.components)
        ax.update_datalim(ends[top])
        ax.margins(0.12)
        ax.autoscale_view()
        ax.set_aspect("equal", adjustable="datalim")
        draw_title(ax, f"Objects and the {len(top)} largest loadings")
        legend_beside(ax, [*views, *group_keys(styles)])
        return self

    def frame(self) -> DataFrame:
        """Objects with their groups, then variables with their views, each with two coordinates."""
        variables = Variables(self.loadings, self.feature_names)
        (x, y), (u, v) = np.transpose(self.points), variables.loadings.T
        return data_frame(
            kind=["object"] * len(x) + ["variable"] * len(u),
            group=[*([None] * len(x) if self.groups is None else self.groups), *[None] * len(u)],
            view=[None] * len(x) + variables.views,
            name=[None] * len(x) + variables.names,
            x=np.concatenate([x, u]),
            y=np.concatenate([y, v]),
        )

    def _stretch(self, loadings: np.ndarray) -> float:
        """Factor that makes the longest arrow nearly as long as the furthest object is far."""
        furthest = np.linalg.norm(self.points, axis=1).max()
        longest = np.linalg.norm(loadings, axis=1).max()
        return float(_REACH * furthest / max(longest, np.finfo(float).tiny))
