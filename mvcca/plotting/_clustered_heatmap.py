"""Associations of the variables of two views, in the order of two trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mvcca.inspection import pairwise_associations
from mvcca.plotting._display import Display, data_frame, pair_of
from mvcca.plotting._drawing import draw_title
from mvcca.plotting._geometry import tree
from mvcca.plotting._heatmap import draw_heatmap, name_sides, width_beside
from mvcca.plotting._variables import column_names, variable_names
from mvcca.plotting.style import DIVERGING, GREY, literal
from mvcca.views import as_views
from mvcca.views.typing import ViewsLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection
    from matplotlib.image import AxesImage
    from pandas import DataFrame

_TREE, _LARGEST = 0.2, 6  # size of a tree, as a share of the image, and at most so many cells
_GAP = 0.01  # between the image and a tree
_CELL = 0.19  # inches of a new figure for a row or a column
_LETTER = 0.09  # inches


class ClusteredHeatmapDisplay(Display):
    """Associations of the variables of two views, similar ones side by side.

    Rows are variables of the first view, columns those of the second. Two trees of hierarchical
    clustering (complete linkage of Euclidean distances) order them, so that blocks are groups of
    variables that go together.

    Parameters
    ----------
    values : array, shape (n_rows, n_columns)
        Association of each variable of the first view with each of the second.
    names : pair of sequences of str
        Names of the variables in rows and columns.
    views : pair of str
        Names of the two views.

    Attributes
    ----------
    row_order, column_order : ndarray of int
        Numbers of the variables from top to bottom, and from left to right.
    im_ : matplotlib AxesImage
    line_ : matplotlib LineCollection
        Both trees.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Raises
    ------
    ValueError
        If there is not a row and a column for each name.

    See Also
    --------
    mvcca.inspection.associations : The values.
    CircosDisplay, NetworkDisplay : The strongest pairs only, also of more than two views.

    References
    ----------
    .. [1] González, Lê Cao, Davis and Déjean, "Visualising associations between paired 'omics' data
       sets", BioData Mining 5:19, 2012: clustered image maps.

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from mvcca import CCA
    >>> from mvcca.plotting import ClusteredHeatmapDisplay
    >>> data = load_linnerud(as_frame=True)
    >>> views = {"exercise": data.data, "body": data.target}
    >>> display = ClusteredHeatmapDisplay.from_estimator(CCA(2, reg=0.1).fit(views), views)
    >>> display.values.shape
    (3, 3)
    """

    im_: AxesImage
    line_: LineCollection

    def __init__(
        self, values: np.ndarray, names: tuple[Sequence[str], Sequence[str]], views: tuple[str, str]
    ) -> None:
        self.values = np.asarray(values, dtype=float)
        rows, columns = ([*map(str, side)] for side in names)
        if self.values.shape != (len(rows), len(columns)) or not self.values.size:
            raise ValueError(
                f"Expected values of shape {(len(rows), len(columns))}, by the names of rows and "
                f"columns, got shape {self.values.shape}."
            )
        self.names, self.views = (rows, columns), views
        self.row_order, self._row_tree = tree(self.values)
        self.column_order, self._column_tree = tree(self.values.T)

    @classmethod
    def from_scores(
        cls,
        scores: ViewsLike,
        X: ViewsLike,
        *,
        views: tuple[str, str] | None = None,
        n_top: int | None = 50,
        components: Sequence[int] | None = None,
        feature_names: Mapping[str, Sequence[str]] | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the associations of variables through projected rows.

        Parameters
        ----------
        scores : Views, mapping or list of matrices of shape (n_rows, n_components)
            Projected rows of at least two views.
        X : Views, mapping or list of matrices
            The same rows before projection.
        views : pair of str, optional
            The views in rows and columns; by default the first two.
        n_top : int or None, default=50
            Number of variables of each view, those with the largest associations; None for all.
        components : sequence of int, optional
            Components that associations add up, from 0; by default all.
        feature_names : mapping of str to sequence of str, optional
            Names of the variables, by view; by default the column names of DataFrames.
        ax, **kwargs
            See `plot`.

        Returns
        -------
        ClusteredHeatmapDisplay

        Raises
        ------
        ValueError
            If there are not two such views, or a component does not exist.
        """
        scores = as_views(scores)
        first, second = pair = pair_of(scores.names, views)
        rows = as_views(X, scores.names).select(pair)
        (values,) = pairwise_associations(rows, scores.select(pair), components=components).values()
        given = feature_names or column_names(X, scores.names)
        own = {name: names for name, names in given.items() if name in pair or name not in scores}
        _, named = variable_names({first: len(values), second: values.shape[1]}, own)
        names = np.split(np.array(named, dtype=object), [len(values)])
        sizes = np.abs(values)
        kept = [np.sort(np.argsort(-sizes.max(axis=axis))[:n_top]) for axis in (1, 0)]
        shown = names[0][kept[0]].tolist(), names[1][kept[1]].tolist()
        return cls(values[np.ix_(*kept)], shown, pair).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default new axes, large enough for all names.
        **kwargs
            Keywords of `matplotlib.axes.Axes.imshow`.

        Returns
        -------
        self
        """
        is_new = ax is None
        shown = self.values[np.ix_(self.row_order, self.column_order)]
        n_rows, n_columns = shown.shape
        most = float(np.abs(shown).max()) or 1.0
        style = {"cmap": DIVERGING, "vmin": -most, "vmax": most, "interpolation": "nearest"}
        self.ax_, self.im_, _ = draw_heatmap(
            ax, shown, None, "Association", style, kwargs, digits=None
        )
        from matplotlib.collections import LineCollection

        ax, (first, second) = self.ax_, self.views
        rows, columns = (
            [names[i] for i in order]
            for names, order in zip(self.names, (self.row_order, self.column_order), strict=True)
        )
        if is_new:
            longest = [_LETTER * max(map(len, names)) for names in (rows, columns)]
            inches = _CELL * (np.array([n_columns, n_rows]) + _LARGEST) + longest + [1.8, 1.0]
            ax.figure.set_size_inches(np.maximum(inches, [6.4, 4.8]))
        # Trees are beside the image, in its coordinates.
        left, top = -0.5 - _GAP * n_columns, -0.5 - _GAP * n_rows
        width, height = (min(_TREE * n, _LARGEST) for n in (n_columns, n_rows))
        (y, across), (x, up) = (np.moveaxis(t, 2, 0) for t in (self._row_tree, self._column_tree))
        of_rows = np.stack([left - width * across, y], axis=2)
        of_columns = np.stack([x, top - height * up], axis=2)
        lines = np.concatenate([of_rows, of_columns])
        self.line_ = LineCollection(list(lines), colors=GREY, linewidths=0.8)
        ax.add_collection(self.line_, autolim=False)
        ax.set(xlim=(left - width, n_columns - 0.5), ylim=(n_rows - 0.5, top - height))
        ax.yaxis.tick_right()
        ax.yaxis.set_label_position("right")
        ax.tick_params(length=0)
        name_sides(ax, rows, columns)
        ax.set(xlabel=literal(second), ylabel=literal(first))
        draw_title(ax, f"Associations of {first} and {second}, clustered", width_beside(rows))
        return self

    def frame(self) -> DataFrame:
        """One row per cell, in the order of the picture: both variables and their association."""
        rows, columns = self.names
        return data_frame(
            {self.views[0]: rows[i], self.views[1]: columns[j], "association": self.values[i, j]}
            for i in self.row_order
            for j in self.column_order
        )
