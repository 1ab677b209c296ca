"""Pairs of variables as chords of a ring."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mvcca.plotting._drawing import draw_title, legend_beside, styled
from mvcca.plotting._feature_pairs import FeaturePairsDisplay
from mvcca.plotting._geometry import arc, chord, ring
from mvcca.plotting.style import color, literal, tidy_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection
    from matplotlib.patches import Polygon
    from matplotlib.text import Text

_INNER, _OUTER = 1.0, 1.07  # radii of the ring
_NAMES = 1.1  # radius from which names begin


class CircosDisplay(FeaturePairsDisplay):
    """Variables on a ring with a sector per view, and chords between those that are associated.

    Chords are red for positive and blue for negative associations, and wider for stronger ones.
    Bundles of chords show which part of one view goes with which part of another: variables stay in
    the order of their columns.

    Parameters
    ----------
    names : mapping of str to sequence of str
        Names of the variables of each view, in the order of the ring.
    pairs : array of int, shape (n_pairs, 2)
        The variables of each pair, numbered over all views, one after another.
    values : array, shape (n_pairs,)
        Association of each pair.

    Attributes
    ----------
    line_ : matplotlib LineCollection
        The chords, in the order of the pairs.
    sector_ : dict of str to matplotlib Polygon
        By view.
    text_ : list of matplotlib Text
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
    NetworkDisplay : The same pairs as a graph, which shows clusters.
    ClusteredHeatmapDisplay : All pairs of two views.

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from mvcca import CCA
    >>> from mvcca.plotting import CircosDisplay
    >>> data = load_linnerud(as_frame=True)
    >>> views = {"exercise": data.data, "body": data.target}
    >>> display = CircosDisplay.from_estimator(CCA(2, reg=0.1).fit(views), views, cutoff=0.3)
    >>> display.frame()[["first", "second"]].head(1).to_numpy().tolist()
    [['Situps', 'Waist']]
    """

    line_: LineCollection
    sector_: dict[str, Polygon]
    text_: list[Text]

    def plot(self, ax: Axes | None = None, *, max_labels: int | None = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default new axes, large enough for all names.
        max_labels : int, optional
            Most variables to name, those with the strongest associations; by default all.
        **kwargs
            Keywords of `matplotlib.collections.LineCollection`, for the chords.

        Returns
        -------
        self
        """
        is_new, ax = ax is None, tidy_axes(ax)
        from matplotlib.collections import LineCollection
        from matplotlib.patches import Polygon

        from mvcca.plotting._labels import label_ring, size_for_ring

        self.ax_, names = ax, self.all_names
        if is_new:
            ax.figure.set_size_inches(size_for_ring(names))
        ax.set_axis_off()
        ax.set_aspect("equal", adjustable="datalim")
        angles, ends = ring([len(own) for own in self.names.values()])
        self.sector_ = {}
        for number, (view, (start, stop)) in enumerate(zip(self.names, ends, strict=True)):
            if start == stop:
                continue
            outline = np.concatenate([arc(start, stop, _INNER), arc(stop, start, _OUTER)])
            style = {"facecolor": color(number), "linewidth": 0, "label": literal(view)}
            self.sector_[view] = ax.add_patch(Polygon(outline, **style))
        chords = [chord(angles[i], angles[j], _INNER) for i, j in self.pairs]
        self.line_ = LineCollection(chords, **styled(self.line_style(), kwargs, LineCollection))
        ax.add_collection(self.line_)
        ax.autoscale_view()
        order = self.by_importance[:max_labels]
        self.text_ = label_ring(ax, angles[order], [names[i] for i in order], _NAMES)
        draw_title(ax, self.title)
        legend_beside(ax, [*self.sector_.values(), *self.sign_keys()])
        return self
