"""Canonical variates of one component in two views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mvcca.plotting._display import ScoresDisplay, data_frame
from mvcca.plotting._drawing import (
    check_component,
    component_title,
    draw_points,
    legend_beside,
)
from mvcca.plotting._groups import group_tones, groups_of
from mvcca.plotting.style import FAINT, color, literal, marker, tidy_axes
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
        self.variates = {name: np.asarray(values, dtype=float) for name, values in variates.items()}
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
        pair = scores.names[:2] if views is None else tuple(views)
        unknown = [name for name in pair if name not in scores]
        if unknown or len(set(pair)) != 2:
            raise ValueError(
                f"Expected two different views of {list(scores.names)}, got {list(pair)}."
            )
        chosen = scores.select(pair)
        common = np.flatnonzero(chosen.seen.all(axis=1))
        if len(common) < 2:
            raise ValueError(
                f"Views {pair[0]!r} and {pair[1]!r} have fewer than two common objects."
            )
        both = chosen[common]
        check_component(component, min(both.widths.values()))
        values = {name: np.asarray(both[name])[:, component] for name in pair}
        named = groups_of(groups, len(scores), common)
        return cls(values, named, component).plot(ax, **kwargs)

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
        groups = np.array([""] * len(points) if self.groups is None else self.groups)
        tones = group_tones(self.groups) or {"": color(0)}
        size = float(np.clip(12000 / len(points), 8, 40))
        named = [name for name, tone in tones.items() if tone != FAINT]
        self.scatter_ = {}
        for name, tone in sorted(tones.items(), key=lambda pair: pair[1] != FAINT):
            shape = marker(named.index(name)) if name in named else "o"
            style = {"c": tone, "marker": shape, "label": literal(name), "s": size, "alpha": 0.75}
            self.scatter_[name] = draw_points(ax, points[groups == name], kwargs, **style)
        first, second = (component_title(self.component, of=name) for name in self.variates)
        ax.set(xlabel=first, ylabel=second)
        ax.set_title(f"Correlation {self.correlation:.2f}", fontsize="medium")
        if self.groups is not None:
            handles = [self.scatter_[name] for name in named]
            if len(named) < len(tones):
                other = next(self.scatter_[name] for name in tones if name not in named)
                other.set_label(f"{len(tones) - len(named)} others")
                handles.append(other)
            legend_beside(ax, handles)
        return self

    def frame(self) -> DataFrame:
        """One row per object: its variate in each view, and its group."""
        return data_frame(**self.variates, group=self.groups)
