"""Loadings of variables on components: bars, a heat map or a correlation circle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from mvcca.inspection import loadings, variable_correlations
from mvcca.plotting._feature_names import column_names, variable_names, view_numbers
from mvcca.plotting._heatmap import draw_heatmap
from mvcca.plotting._style import (
    FAINT,
    GREY,
    check_component,
    color,
    literal,
    styled,
    tidy_axes,
)
from mvcca.views.typing import MatrixLike, ViewsLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.container import BarContainer
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

Kind = Literal["bar", "circle", "heatmap"]


class LoadingsDisplay:
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
    >>> display = LoadingsDisplay.from_estimator(CCA(2).fit(views), views, kind="circle")
    """

    bar_: dict[str, BarContainer]
    scatter_: dict[str, PathCollection]
    im_: AxesImage
    text_: Any
    ax_: Axes
    figure_: Figure

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
        n_top: int = 12,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the loadings of a fitted estimator on given rows.

        Parameters
        ----------
        estimator : fitted estimator
            Any model whose ``transform`` maps `mvcca.views.Views` to `Views`.
        X : Views, mapping, list of matrices, or matrix
            Rows of the fitted views.
        y : matrix, optional
            The second view, if X is a single matrix.
        variates : str, optional
            The view whose variates are used for all views; by default each view's own.
        feature_names : mapping of str to sequence of str, optional
            Names of the variables, by view; by default the column names of DataFrames.
        kind, components, n_top, ax, **kwargs
            See `plot`.

        Returns
        -------
        LoadingsDisplay
        """
        values = loadings(estimator, X, y, variates=variates)
        display = cls(values, feature_names or column_names(X, y, list(values)))
        return display.plot(ax, kind=kind, components=components, n_top=n_top, **kwargs)

    @classmethod
    def from_scores(
        cls,
        scores: ViewsLike,
        X: ViewsLike,
        *,
        variates: str | None = None,
        feature_names: Mapping[str, Sequence[str]] | None = None,
        kind: Kind = "bar",
        components: int | Sequence[int] | None = None,
        n_top: int = 12,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the loadings of projected rows.

        Parameters
        ----------
        scores : Views, mapping or list of matrices of shape (n_rows, n_components)
            Projected rows.
        X : Views, mapping or list of matrices
            The same rows before projection.
        variates, feature_names
            See `from_estimator`.
        kind, components, n_top, ax, **kwargs
            See `plot`.

        Returns
        -------
        LoadingsDisplay
        """
        values = variable_correlations(X, scores, variates=variates)
        display = cls(values, feature_names or column_names(X, None, list(values)))
        return display.plot(ax, kind=kind, components=components, n_top=n_top, **kwargs)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        kind: Kind = "bar",
        components: int | Sequence[int] | None = None,
        n_top: int = 12,
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
        n_top : int, default=12
            Number of variables, those with the largest loadings over all views, to show as bars or
            in the heat map or to name in the circle.
        **kwargs
            Keywords of `matplotlib.axes.Axes.barh`, `scatter` or `imshow`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If `kind` is unknown or does not match `components`, a component does not exist, or
            `feature_names` has an unknown view or not all features of a view.
        """
        if kind not in ("bar", "circle", "heatmap"):
            raise ValueError(f"kind must be 'bar', 'circle' or 'heatmap', got {kind!r}.")
        values = np.concatenate(list(self.loadings.values()))
        if components is None:
            components = {"bar": [0], "circle": [0, 1]}.get(kind, range(values.shape[1]))
        shown = [components] if isinstance(components, int) else list(components)
        needed = {"bar": 1, "circle": 2}.get(kind, len(shown))
        if len(shown) != needed:
            raise ValueError(f"kind={kind!r} needs {needed} component(s), got {components!r}.")
        for component in shown:
            check_component(component, values.shape[1])
        chosen = values[:, shown]
        top = np.argsort(-np.linalg.norm(chosen, axis=1), kind="stable")[:n_top]
        names = variable_names(self.loadings, self.feature_names)
        draw = {"bar": self._bars, "circle": self._circle, "heatmap": self._heatmap}[kind]
        self.ax_ = draw(ax, chosen, top, names, shown, kwargs)
        self.figure_ = self.ax_.figure
        return self

    def _bars(
        self, ax: Any, chosen: np.ndarray, top: np.ndarray, names: list[str], shown: Any, given: Any
    ) -> Axes:
        ax = tidy_axes(ax, grid="x")
        from matplotlib.patches import Rectangle

        top = top[np.argsort(chosen[top, 0], kind="stable")]
        views, place = view_numbers(self.loadings), np.arange(len(top))
        self.bar_ = {}
        for number, name in enumerate(self.loadings):
            rows = views[top] == number
            style = {"color": color(number), "height": 0.7, "label": literal(name)}
            self.bar_[name] = ax.barh(
                place[rows], chosen[top[rows], 0], **styled(style, given, Rectangle)
            )
        ax.axvline(0, color=GREY, linewidth=0.8)
        ax.set_yticks(place, [literal(names[i]) for i in top])
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
        ax.set(xlim=(-1, 1), xlabel=f"Loading on component {shown[0] + 1}")
        ax.legend(frameon=False, loc="best")
        return ax

    def _circle(
        self, ax: Any, chosen: np.ndarray, top: np.ndarray, names: list[str], shown: Any, given: Any
    ) -> Axes:
        ax = tidy_axes(ax, layout="compressed")
        from matplotlib.collections import PathCollection
        from matplotlib.patches import Circle

        from mvcca.plotting._labels import label_points

        for radius in (0.5, 1.0):
            ax.add_patch(Circle((0, 0), radius, fill=False, color=FAINT))
        ax.axhline(0, color=FAINT, linewidth=0.8, zorder=0)
        ax.axvline(0, color=FAINT, linewidth=0.8, zorder=0)
        views = view_numbers(self.loadings)
        self.scatter_ = {}
        for number, name in enumerate(self.loadings):
            style = {"c": color(number), "s": 30, "linewidth": 0, "label": literal(name)}
            points = chosen[views == number]
            self.scatter_[name] = ax.scatter(*points.T, **styled(style, given, PathCollection))
        self.text_ = label_points(ax, chosen[top], [names[i] for i in top])
        ax.set(aspect="equal", xlim=(-1.05, 1.05), ylim=(-1.05, 1.05))
        ax.set(xlabel=f"Component {shown[0] + 1}", ylabel=f"Component {shown[1] + 1}")
        ax.spines[:].set_visible(False)
        ax.set(xticks=[-1, -0.5, 0, 0.5, 1], yticks=[-1, -0.5, 0, 0.5, 1])
        ax.tick_params(length=0)
        ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        return ax

    def _heatmap(
        self, ax: Any, chosen: np.ndarray, top: np.ndarray, names: list[str], shown: Any, given: Any
    ) -> Axes:
        top = np.sort(top)  # in the order of the views
        views = view_numbers(self.loadings)[top]
        of_views = list(self.loadings)
        given_names = self.feature_names or {}
        rows = [
            f"{of_views[v]}: {names[i]}" if of_views[v] in given_names else names[i]
            for i, v in zip(top, views, strict=True)
        ]
        sides = rows, [str(component + 1) for component in shown]
        style = {"cmap": "RdBu_r", "vmin": -1, "vmax": 1}
        ax, self.im_, self.text_ = draw_heatmap(ax, chosen[top], sides, "Loading", style, given)
        for end in np.flatnonzero(np.diff(views)):
            ax.axhline(end + 0.5, color="black", linewidth=1)
        ax.set_xlabel("Component")
        return ax
