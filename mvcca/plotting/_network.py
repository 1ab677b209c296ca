"""Pairs of variables as a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mvcca.plotting._drawing import draw_points, draw_title, legend_beside, styled
from mvcca.plotting._feature_pairs import FeaturePairsDisplay
from mvcca.plotting._geometry import graph_layout
from mvcca.plotting.style import color, literal, marker, tidy_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection, PathCollection
    from matplotlib.text import Annotation

_MOST_BESIDE = 60  # names without leaders, which look like lines of the graph
_INCHES = 1.0  # of the side of a figure, times √variables


class NetworkDisplay(FeaturePairsDisplay):
    """Graph of variables of different views, joined if they are associated.

    Hubs are variables that go with many of another view, and parts that are not joined are
    different themes. Lines are red for positive and blue for negative associations, and wider for
    stronger ones. Distances are close to the number of lines between two variables.

    Parameters
    ----------
    names : mapping of str to sequence of str
        Names of the variables of each view.
    pairs : array of int, shape (n_pairs, 2)
        The variables of each pair, numbered over all views, one after another.
    values : array, shape (n_pairs,)
        Association of each pair.

    Attributes
    ----------
    line_ : matplotlib LineCollection
        In the order of the pairs.
    scatter_ : dict of str to matplotlib PathCollection
        The variables, by view.
    text_ : list of matplotlib Annotation
        Names of the variables, those with the largest values first.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Raises
    ------
    ValueError
        If there are no pairs, not a value for each, or a number belongs to no variable.

    See Also
    --------
    mvcca.inspection.associations : The values.
    CircosDisplay : The same pairs on a ring, in the order of the variables.

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from mvcca import CCA
    >>> from mvcca.plotting import NetworkDisplay
    >>> data = load_linnerud(as_frame=True)
    >>> views = {"exercise": data.data, "body": data.target}
    >>> display = NetworkDisplay.from_estimator(CCA(2, reg=0.1).fit(views), views, cutoff=0.3)
    >>> display.frame()["first"].unique().tolist()
    ['Situps', 'Chins', 'Jumps']
    """

    line_: LineCollection
    scatter_: dict[str, PathCollection]
    text_: list[Annotation]

    def plot(self, ax: Axes | None = None, *, max_labels: int | None = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default new axes, the larger the more variables there are.
        max_labels : int, optional
            Most variables to name, those with the strongest associations; by default all.
        **kwargs
            Keywords of `matplotlib.collections.LineCollection`, for the lines.

        Returns
        -------
        self
        """
        is_new, ax = ax is None, tidy_axes(ax)
        from matplotlib.collections import LineCollection

        from mvcca.plotting._labels import annotate_points

        self.ax_, names = ax, self.all_names
        if is_new:
            side = max(4.8, _INCHES * np.sqrt(len(names)))
            ax.figure.set_size_inches(side + 1.6, side)
        ax.set_axis_off()
        ax.set_aspect("equal", adjustable="datalim")
        places = graph_layout(self.pairs, len(names))
        lines = places[self.pairs]
        style = {**self.line_style(), "zorder": 1}
        self.line_ = LineCollection(lines, **styled(style, kwargs, LineCollection))
        ax.add_collection(self.line_)
        of_views, self.scatter_ = np.array(self.views), {}
        for number, (view, own) in enumerate(self.names.items()):
            if not own:
                continue
            style = {"c": color(number), "marker": marker(number), "s": 40, "label": literal(view)}
            self.scatter_[view] = draw_points(ax, places[of_views == view], {}, **style)
        ax.margins(0.1)
        order = self.by_importance[:max_labels]
        self.text_ = annotate_points(
            ax, places[order], [names[i] for i in order], most_beside=_MOST_BESIDE
        )
        draw_title(ax, self.title)
        legend_beside(ax, [*self.scatter_.values(), *self.sign_keys()])
        return self
