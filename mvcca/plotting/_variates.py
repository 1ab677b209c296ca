"""Canonical variates of one component in two views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mvcca.blocks.checks import to_array
from mvcca.plotting._display import ScoresDisplay, data_frame, pair_of
from mvcca.plotting._drawing import (
    check_component,
    component_title,
    draw_title,
    legend_beside,
    point_size,
)
from mvcca.plotting._groups import draw_groups, group_keys, group_styles, groups_of
from mvcca.plotting.style import tidy_axes
from mvcca.views import as_views
from mvcca.views.typing import LabelsLike, ViewsLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from pandas import DataFrame


class VariatesDisplay(ScoresDisplay):
    """Canonical variates of one component: a point per object, one view against the other.

    Points near a line have a high correlation; outliers and groups show where it comes from.

    Parameters
    ----------
    variates : mapping of str to array, shape (n_objects,)
        The component in two views, over the same objects.
    groups : sequence of str, shape (n_objects,), optional
        The group of each object. The ten most frequent groups have a colour and a marker, the
        others are grey.
    component : int, default=0
        Number of the component, from 0.

    Attributes
    ----------
    correlation : float
        Correlation of the two variates.
    scatter_ : dict of str to matplotlib PathCollection
        By group; without groups the only key is "".
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Raises
    ------
    ValueError
        If there are not two views of as many objects, or not a group for each.

    Examples
    --------
    >>> from mvcca import CCA
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.plotting import VariatesDisplay
    >>> data = load_digits_views()
    >>> model = CCA(5, reg=0.1).fit(data.views[:1200])
    >>> held_out, digits = data.views[1200:], data.labels[1200:]
    >>> display = VariatesDisplay.from_estimator(model, held_out, groups=digits)
    >>> round(display.correlation, 2)
    0.78
    """

    scatter_: dict[str, PathCollection]

    def __init__(
        self,
        variates: Mapping[str, np.ndarray],
        groups: Sequence[str] | None = None,
        component: int = 0,
    ) -> None:
        sizes = {len(values) for values in variates.values()}
        if len(variates) != 2 or len(sizes) != 1:
            shapes = {name: np.shape(values) for name, values in variates.items()}
            raise ValueError(f"Expected variates of two views and the same objects, got {shapes}.")
        if groups is not None and sizes != {len(groups)}:
            raise ValueError(
                f"Expected a group for each of {max(sizes)} objects, got {len(groups)}."
            )
        self.variates = {name: to_array(values, float) for name, values in variates.items()}
        self.groups = groups
        self.component = component
        x, y = self.variates.values()
        self.correlation = float(np.corrcoef(x, y)[0, 1])

    @classmethod
    def from_scores(
        cls,
        scores: ViewsLike,
        *,
        groups: LabelsLike | None = None,
        views: tuple[str, str] | None = None,
        component: int = 0,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw projected rows.

        Parameters
        ----------
        scores : Views, mapping or list of matrices of shape (n_rows, n_components)
            Projected rows of at least two views. Objects seen in both views are drawn.
        groups : labels, optional
            One class or label set per object.
        views : pair of str, optional
            The views; by default the first two.
        component : int, default=0
            The component, from 0.
        ax, **kwargs
            See `plot`.

        Returns
        -------
        VariatesDisplay

        Raises
        ------
        ValueError
            If there are not two such views with common objects, or no such component.
        """
        scores = as_views(scores).in_memory()
        pair = pair_of(scores.names, views)
        chosen = scores.select(pair)
        common = np.flatnonzero(chosen.seen.all(axis=1))
        if len(common) < 2:
            raise ValueError(
                f"Views {pair[0]!r} and {pair[1]!r} have fewer than two common objects."
            )
        both = chosen[common]
        check_component(component, min(both.widths.values()))
        values = {name: to_array(both[name])[:, component] for name in pair}
        return cls(values, groups_of(groups, scores, common), component).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default new axes.
        **kwargs
            Keywords of `matplotlib.axes.Axes.scatter`, for the points of all groups.

        Returns
        -------
        self
        """
        self.ax_ = ax = tidy_axes(ax)
        points = np.stack(list(self.variates.values()), axis=1)
        styles, size = group_styles(self.groups), point_size(len(points))
        self.scatter_ = draw_groups(ax, points, self.groups, styles, kwargs, s=size)
        first, second = self.variates
        ax.set(
            xlabel=component_title(self.component, of=first),
            ylabel=component_title(self.component, of=second),
        )
        draw_title(ax, f"Correlation {self.correlation:.2f} between {first} and {second}")
        if self.groups is not None:
            legend_beside(ax, group_keys(styles))
        return self

    def frame(self) -> DataFrame:
        """One row per object: its variate in each view, and its group."""
        return data_frame(**self.variates, group=self.groups)
