"""Objects and variables on two components in one plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mvcca.inspection import projected, variable_correlations
from mvcca.plotting._embedding import group_names
from mvcca.plotting._feature_names import column_names, variable_names, view_numbers
from mvcca.plotting._style import (
    FAINT,
    GREY,
    check_component,
    color,
    group_tones,
    literal,
    marker,
    styled,
    tidy_axes,
)
from mvcca.views import as_views
from mvcca.views.typing import LabelsLike, MatrixLike, ViewsLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.figure import Figure
    from matplotlib.quiver import Quiver
    from matplotlib.text import Annotation

_REACH = 0.95  # length of the longest arrow, as a share of the furthest object


class BiplotDisplay:
    """Objects as points and variables as arrows on two components.

    A point is the mean over the views of an object's canonical variates, each standardized. An
    arrow shows the loadings of a variable, its correlations with the two components, all scaled
    by one factor. Objects in the direction of an arrow have large values of the variable.

    Parameters
    ----------
    points : array, shape (n_objects, 2)
        Coordinates of the objects.
    loadings : mapping of str to array, shape (n_features, 2)
        Loadings of each view's variables on the two components.
    feature_names : mapping of str to sequence of str, optional
        Names of each view's variables; by default the name of the view and a number.
    groups : sequence of str, shape (n_objects,), optional
        The group of each object. The ten most frequent groups have a colour.
    components : pair of int, default=(0, 1)
        Numbers of the components, from 0.

    Attributes
    ----------
    scatter_ : matplotlib PathCollection
        The objects.
    arrow_ : dict of str to matplotlib Quiver
        The variables, by view.
    text_ : list of matplotlib Annotation
        Names of the variables.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Raises
    ------
    ValueError
        If there are not two coordinates and loadings on two components.

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from mvcca import CCA
    >>> from mvcca.plotting import BiplotDisplay
    >>> data = load_linnerud(as_frame=True)
    >>> views = {"exercise": data.data, "body": data.target}
    >>> display = BiplotDisplay.from_estimator(CCA(2).fit(views), views)
    """

    scatter_: PathCollection
    arrow_: dict[str, Quiver]
    text_: list[Annotation]
    ax_: Axes
    figure_: Figure

    def __init__(
        self,
        points: np.ndarray,
        loadings: Mapping[str, np.ndarray],
        feature_names: Mapping[str, Sequence[str]] | None = None,
        groups: Sequence[str] | None = None,
        components: tuple[int, int] = (0, 1),
    ) -> None:
        shapes = [np.shape(points), *map(np.shape, loadings.values())]
        if any(len(shape) != 2 or shape[1] != 2 for shape in shapes):
            raise ValueError(f"A biplot shows two components, got arrays of the shapes {shapes}.")
        if groups is not None and len(groups) != len(points):
            raise ValueError(f"Expected {len(points)} groups, one per object, got {len(groups)}.")
        self.points, self.loadings = points, loadings
        self.feature_names, self.groups = feature_names, groups
        self.components = components

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
        """Draw rows projected by a fitted estimator, and the loadings of their variables.

        Parameters
        ----------
        estimator : fitted estimator
            Any model whose ``transform`` maps `mvcca.views.Views` to `Views`.
        X : Views, mapping, list of matrices, or matrix
            Rows of the fitted views. Objects seen in all views are drawn.
        y : matrix, optional
            The second view, if X is a single matrix.
        groups : labels, optional
            One class or label set per object.
        components : pair of int, default=(0, 1)
            The components, from 0.
        feature_names : mapping of str to sequence of str, optional
            Names of the variables, by view; by default the column names of DataFrames.
        n_top, ax, **kwargs
            See `plot`.

        Returns
        -------
        BiplotDisplay

        Raises
        ------
        ValueError
            If there are no such components, or fewer than two objects are seen in all views.
        """
        views, scores = projected(estimator, X, y)
        names = feature_names or column_names(X, y, views.names)
        return cls._of(scores, views, groups, components, names).plot(ax, n_top=n_top, **kwargs)

    @classmethod
    def from_scores(
        cls,
        scores: ViewsLike,
        X: ViewsLike,
        *,
        groups: LabelsLike | None = None,
        components: tuple[int, int] = (0, 1),
        feature_names: Mapping[str, Sequence[str]] | None = None,
        n_top: int = 12,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw projected rows, and the loadings of their variables.

        Parameters
        ----------
        scores : Views, mapping or list of matrices of shape (n_rows, n_components)
            Projected rows.
        X : Views, mapping or list of matrices
            The same rows before projection.
        groups, components, feature_names
            See `from_estimator`.
        n_top, ax, **kwargs
            See `plot`.

        Returns
        -------
        BiplotDisplay
        """
        names = feature_names or column_names(X, None, as_views(scores).names)
        return cls._of(scores, X, groups, components, names).plot(ax, n_top=n_top, **kwargs)

    @classmethod
    def _of(cls, scores: Any, X: Any, groups: Any, components: Any, feature_names: Any) -> Self:
        chosen = list(components)
        scores = as_views(scores).in_memory()
        if len(chosen) != 2:
            raise ValueError(f"A biplot shows two components, got {components!r}.")
        for component in chosen:
            check_component(component, min(scores.widths.values()))
        common = np.flatnonzero(scores.seen.all(axis=1))
        if len(common) < 2:
            raise ValueError("A biplot needs at least two objects that are seen in all views.")
        blocks = [np.asarray(block)[:, chosen] for _, block in scores[common].items()]
        scales = [np.where(block.std(axis=0) > 0, block.std(axis=0), 1) for block in blocks]
        points = np.mean(
            [(block - block.mean(axis=0)) / s for block, s in zip(blocks, scales, strict=True)],
            axis=0,
        )
        values = variable_correlations(X, scores)
        names = None
        if groups is not None:
            named = group_names(groups)
            if len(named) != len(scores):
                raise ValueError(
                    f"Expected {len(scores)} groups, one per object, got {len(named)}."
                )
            names = [named[i] for i in common]
        loadings = {name: of_view[:, chosen] for name, of_view in values.items()}
        return cls(points, loadings, feature_names, names, (chosen[0], chosen[1]))

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
        names = variable_names(self.loadings, self.feature_names)
        ax = tidy_axes(ax, layout="compressed")
        from matplotlib.collections import PathCollection
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        from mvcca.plotting._labels import label_points

        tones = {} if self.groups is None else group_tones(self.groups)
        tone: Any = GREY if self.groups is None else [tones[group] for group in self.groups]
        size = float(np.clip(6000 / len(self.points), 6, 25))
        style = {"c": tone, "s": size, "alpha": 0.6, "linewidth": 0}
        self.scatter_ = ax.scatter(*self.points.T, **styled(style, kwargs, PathCollection))

        values, views = np.concatenate(list(self.loadings.values())), view_numbers(self.loadings)
        lengths = np.linalg.norm(values, axis=1)
        top = np.argsort(-lengths, kind="stable")[:n_top]
        furthest = np.linalg.norm(self.points, axis=1).max()
        ends = values * (_REACH * furthest / max(lengths.max(), np.finfo(float).tiny))
        self.arrow_ = {}
        offset = len(tones)  # colours of views beside those of groups
        for number, name in enumerate(self.loadings):
            tips = ends[top[views[top] == number]]
            self.arrow_[name] = ax.quiver(
                *np.zeros_like(tips).T,
                *tips.T,
                angles="xy",
                scale_units="xy",
                scale=1,
                width=0.004,
                color=color(offset + number),
            )
        self.text_ = label_points(ax, ends[top], [names[i] for i in top])
        ax.axhline(0, color=FAINT, linewidth=0.8, zorder=0)
        ax.axvline(0, color=FAINT, linewidth=0.8, zorder=0)
        ax.update_datalim(ends[top])
        ax.margins(0.12)
        ax.autoscale_view()
        first, second = self.components
        ax.set(xlabel=f"Component {first + 1}", ylabel=f"Component {second + 1}", aspect="equal")
        handles: list[Any] = [
            Patch(color=color(offset + number), label=literal(name))
            for number, name in enumerate(self.loadings)
        ]
        handles += [
            Line2D([], [], linestyle="", marker=marker(0), color=own, label=literal(group))
            for group, own in tones.items()
            if own != FAINT
        ]
        ax.legend(handles=handles, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self
