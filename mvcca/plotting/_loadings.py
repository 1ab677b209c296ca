"""Loadings of variables on components: bars, a heat map or a correlation circle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from mvcca.inspection import loadings
from mvcca.plotting._display import Display, data_frame
from mvcca.plotting._drawing import (
    check_component,
    draw_plane,
    draw_points,
    draw_title,
    legend_beside,
    point_size,
    styled,
)
from mvcca.plotting._heatmap import draw_heatmap, width_beside
from mvcca.plotting._variables import Variables, largest, rows_with_names
from mvcca.plotting.style import DIVERGING, FAINT, GREY, color, literal, tidy_axes
from mvcca.views.typing import MatrixLike, ViewsLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.container import BarContainer
    from matplotlib.image import AxesImage
    from pandas import DataFrame

Kind = Literal["bar", "circle", "heatmap"]


class LoadingsDisplay(Display):
    """The largest loadings of all views.

    Parameters
    ----------
    loadings : mapping of str to array, shape (n_features, n_components)
        Result of `mvcca.inspection.loadings`.
    feature_names : mapping of str to sequence of str, optional
        Names of each view's variables; by default the name of the view and a number.

    Attributes
    ----------
    bar_ : dict of str to matplotlib BarContainer
        By view name, for kind="bar".
    scatter_ : dict of str to matplotlib PathCollection
        By view name, for kind="circle".
    im_ : matplotlib AxesImage
        For kind="heatmap".
    text_ : list of matplotlib Annotation, ndarray of matplotlib Text, or None
        Names in the circle, or values in the cells of the heat map if there is space.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from mvcca import CCA
    >>> from mvcca.plotting import LoadingsDisplay
    >>> data = load_linnerud(as_frame=True)
    >>> views = {"exercise": data.data, "body": data.target}
    >>> display = LoadingsDisplay.from_estimator(CCA(2, reg=0.1).fit(views), views, kind="circle")
    """

    bar_: dict[str, BarContainer]
    scatter_: dict[str, PathCollection]
    im_: AxesImage
    text_: Any

    def __init__(
        self,
        loadings: Mapping[str, np.ndarray],
        feature_names: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.loadings = loadings
        self.feature_names = feature_names

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ViewsLike | MatrixLike,
        y: MatrixLike | None = None,
        *,
        variates: str | None = None,
        feature_names: Mapping[str, Sequence[str]] | None = None,
        kind: Kind = "bar",
        components: int | Sequence[int] | None = None,
        n_top: int | None = None,
        cutoff: float = 0.0,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the loadings of a fitted estimator.

        Parameters
        ----------
        estimator, X, y
            See `Display.from_estimator`.
        variates : str, optional
            The view whose variates are used for all views; by default each view's own.
        feature_names : mapping of str to sequence of str, optional
            Names of the variables, by view; by default the column names of DataFrames.
        kind, components, n_top, cutoff, ax, **kwargs
            See `plot`.

        Returns
        -------
        LoadingsDisplay
        """
        scores, rows, names = rows_with_names(estimator, X, y, feature_names)
        found = cls(loadings(scores, rows, variates=variates), names)
        return found.plot(
            ax, kind=kind, components=components, n_top=n_top, cutoff=cutoff, **kwargs
        )

    def plot(
        self,
        ax: Axes | None = None,
        *,
        kind: Kind = "bar",
        components: int | Sequence[int] | None = None,
        n_top: int | None = None,
        cutoff: float = 0.0,
        **kwargs: Any,
    ) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default new axes.
        kind : {"bar", "circle", "heatmap"}, default="bar"
            Bars for one component; a correlation circle for two, in which the distance of a
            variable from the centre shows how much of it the components explain; or a heat map for
            any number of components.
        components : int or sequence of int, optional
            Components, from 0; by default the first one, the first two, or for the heat map all.
        n_top : int, optional
            Number of variables, those with the largest loadings over all views, to show as bars or
            in the heat map or to name in the circle; by default 12, or all that reach the cut-off.
        cutoff : float, default=0.0
            Least length of a variable's loadings on the components that are shown, in [0, 1]: for
            one component its absolute correlation, in the circle the distance from the centre.
            Other variables are not drawn.
        **kwargs
            Keywords of `matplotlib.axes.Axes.barh`, `scatter` or `imshow`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If `kind` is unknown or does not match `components`, a component does not exist, no
            variable reaches the cut-off, or `feature_names` has an unknown view or not all features
            of a view.
        """
        draw = {"bar": self._bars, "circle": self._circle, "heatmap": self._heatmap}.get(kind)
        if draw is None:
            raise ValueError(f"kind must be 'bar', 'circle' or 'heatmap', got {kind!r}.")
        variables = Variables(self.loadings, self.feature_names)
        n_components = variables.loadings.shape[1]
        if components is None:
            components = {"bar": [0], "circle": [0, 1]}.get(kind, range(n_components))
        shown = [components] if isinstance(components, int) else list(components)
        needed = {"bar": 1, "circle": 2}.get(kind, len(shown))
        if len(shown) != needed:
            raise ValueError(f"kind={kind!r} needs {needed} component(s), got {components!r}.")
        for component in shown:
            check_component(component, n_components)
        lengths = np.linalg.norm(variables.loadings[:, shown], axis=1)
        n_drawn = int((lengths >= cutoff).sum())
        if not n_drawn:
            raise ValueError(
                f"No variable reaches cutoff={cutoff:g}; the largest length is {lengths.max():.2f}."
            )
        n_top = n_top or (n_drawn if cutoff else 12)
        top = largest(variables.loadings[:, shown], min(n_top, n_drawn))
        self.ax_ = draw(ax, variables, top, shown, cutoff, kwargs)
        return self

    def frame(self) -> DataFrame:
        """One row per variable and component."""
        variables = Variables(self.loadings, self.feature_names)
        return data_frame(
            {"view": view, "name": name, "component": i, "loading": value}
            for view, name, values in zip(
                variables.views, variables.names, variables.loadings, strict=True
            )
            for i, value in enumerate(values)
        )

    def _bars(
        self, ax: Any, variables: Variables, top: Any, shown: list[int], cutoff: float, given: Any
    ) -> Axes:
        is_new, ax = ax is None, tidy_axes(ax, grid="x")
        if is_new:
            ax.figure.set_size_inches(6.4, max(4.8, 0.2 * len(top) + 1))
        from matplotlib.patches import Rectangle

        values = variables.loadings[:, shown[0]]
        top = top[np.argsort(values[top], kind="stable")]
        place = np.arange(len(top))
        self.bar_ = {}
        for number, name in enumerate(self.loadings):
            rows = variables.of_view(name)[top]
            style = {"color": color(number), "height": 0.7, "label": literal(name)}
            self.bar_[name] = ax.barh(
                place[rows], values[top[rows]], **styled(style, given, Rectangle)
            )
        ax.axvline(0, color=GREY, linewidth=0.8)
        ax.set_yticks(place, [literal(variables.names[i]) for i in top])
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
        ax.set(xlim=(-1, 1), xlabel=f"Loading on component {shown[0] + 1}")
        draw_title(ax, f"Variables with the largest loadings{_at_least(cutoff)}")
        legend_beside(ax, [self.bar_[name] for name in self.loadings])
        return ax

    def _circle(
        self, ax: Any, variables: Variables, top: Any, shown: list[int], cutoff: float, given: Any
    ) -> Axes:
        is_new, ax = ax is None, tidy_axes(ax)
        from matplotlib.patches import Circle

        from mvcca.plotting._labels import annotate_points, size_for_names

        names = [variables.names[i] for i in top]
        if is_new:
            ax.figure.set_size_inches(size_for_names(len(names)))
        for radius in (cutoff or 0.5, 1.0):
            ax.add_patch(Circle((0, 0), radius, fill=False, color=FAINT))
        draw_plane(ax, shown)
        points = variables.loadings[:, shown]
        drawn = np.linalg.norm(points, axis=1) >= cutoff
        size = point_size(int(drawn.sum()), 30)
        self.scatter_ = {}
        for number, name in enumerate(self.loadings):
            style = {"c": color(number), "s": size, "label": literal(name)}
            own = points[drawn & variables.of_view(name)]
            self.scatter_[name] = draw_points(ax, own, given, **style)
        self.text_ = annotate_points(ax, points[top], names, points[drawn])
        ax.set(xticks=[-1, 0, 1], yticks=[-1, 0, 1])
        ax.set_aspect("equal", adjustable="datalim")
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0)
        draw_title(ax, f"Correlations with two components{_at_least(cutoff)}")
        legend_beside(ax, list(self.scatter_.values()))
        return ax

    def _heatmap(
        self, ax: Any, variables: Variables, top: Any, shown: list[int], cutoff: float, given: Any
    ) -> Axes:
        top = np.sort(top)  # in the order of the views
        views, names = ([of[i] for i in top] for of in (variables.views, variables.names))
        named = self.feature_names or {}
        rows = [
            f"{view}: {name}" if view in named else name
            for view, name in zip(views, names, strict=True)
        ]
        sides = rows, [str(component + 1) for component in shown]
        style = {"cmap": DIVERGING, "vmin": -1, "vmax": 1}
        values = variables.loadings[np.ix_(top, shown)]
        ax, self.im_, self.text_ = draw_heatmap(ax, values, sides, "Loading", style, given)
        for end in range(1, len(views)):
            if views[end] != views[end - 1]:
                ax.axhline(end - 0.5, color="black", linewidth=1)
        ax.set_xlabel("Component")
        title = f"Variables with the largest loadings{_at_least(cutoff)}"
        draw_title(ax, title, width_beside(rows) / 2)  # a title may begin above the names
        return ax


def _at_least(cutoff: float) -> str:
    """End of a title."""
    return f", {cutoff:g} or more" if cutoff else ""
