"""Associations of variables of different views: a graph, chords of a ring, or a heat map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from mvcca.inspection import associations
from mvcca.plotting._display import Display, data_frame, pair_of
from mvcca.plotting._drawing import draw_points, draw_title, legend_beside, line_key, styled
from mvcca.plotting._geometry import arc, chord, graph_layout, ring, tree
from mvcca.plotting._heatmap import draw_heatmap, name_sides, width_beside
from mvcca.plotting._variables import rows_with_names, variable_names
from mvcca.plotting.style import (
    DIVERGING,
    GREY,
    NEGATIVE,
    POSITIVE,
    color,
    literal,
    marker,
    tidy_axes,
)
from mvcca.views.typing import MatrixLike, ViewsLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection, PathCollection
    from matplotlib.image import AxesImage
    from matplotlib.patches import Polygon
    from pandas import DataFrame

Pairs = tuple[np.ndarray, np.ndarray]  # numbers of variables (n_pairs, 2), and their values
Kind = Literal["network", "circos", "heatmap"]
_N_PAIRS = 50  # without a cut-off
_THIN, _THICK = 0.6, 2.6  # points, lines of the smallest and of the largest value
_INNER, _OUTER = 1.0, 1.07  # radii of the ring
_NAMES = 1.1  # radius from which names begin
_TREE, _LARGEST = 0.2, 6  # size of a tree, as a share of the image, and at most so many cells
_GAP = 0.01  # between the image and a tree
_CELL = 0.19  # inches of a new figure for a row or a column
_LETTER = 0.09  # inches


class AssociationsDisplay(Display):
    """Variables of different views that are associated: a network, a circos plot or a heat map.

    In a network, hubs are variables that go with many of another view, and parts that are not
    joined are different themes; distances are close to the number of lines between two variables.
    On the ring of a circos plot, variables stay in the order of their columns, and bundles of
    chords show which part of one view goes with which part of another. Lines are red for positive
    and blue for negative associations, and wider for stronger ones. A clustered heat map [1]_ has
    the variables of one view as rows and those of another as columns. Two trees of hierarchical
    clustering (complete linkage of Euclidean distances) order them, so that blocks are groups of
    variables that go together.

    Parameters
    ----------
    associations : mapping of (str, str) to array, shape (n_features_p, n_features_q)
        Result of `mvcca.inspection.associations`, by pair of views.
    feature_names : mapping of str to sequence of str, optional
        Names of each view's variables; by default the name of the view and a number.

    Attributes
    ----------
    line_ : matplotlib LineCollection
        Lines or chords, or for kind="heatmap" both trees.
    scatter_ : dict of str to matplotlib PathCollection
        The variables of each view, for kind="network".
    sector_ : dict of str to matplotlib Polygon
        By view, for kind="circos".
    text_ : list of matplotlib Text
        Names of the variables, those with the largest values first; not of a heat map.
    im_ : matplotlib AxesImage
        For kind="heatmap".
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Raises
    ------
    ValueError
        If there are no associations, or a view differs in its number of variables.

    References
    ----------
    .. [1] González, Lê Cao, Davis and Déjean, "Visualising associations between paired 'omics' data
       sets", BioData Mining 5:19, 2012: clustered image maps.

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from mvcca import CCA
    >>> from mvcca.plotting import AssociationsDisplay
    >>> data = load_linnerud(as_frame=True)
    >>> views = {"exercise": data.data, "body": data.target}
    >>> model = CCA(2, reg=0.1).fit(views)
    >>> display = AssociationsDisplay.from_estimator(model, views, kind="circos", cutoff=0.3)
    >>> display.frame()[["first", "second"]].head(1).to_numpy().tolist()
    [['Situps', 'Waist']]
    """

    line_: LineCollection
    scatter_: dict[str, PathCollection]
    sector_: dict[str, Polygon]
    text_: list[Any]
    im_: AxesImage

    def __init__(
        self,
        associations: Mapping[tuple[str, str], np.ndarray],
        feature_names: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        found = {pair: np.asarray(own, dtype=float) for pair, own in associations.items()}
        self.associations, self.feature_names = found, feature_names
        shapes = {pair: own.shape for pair, own in found.items()}
        sizes = {len(shape) for shape in shapes.values()}
        widths = _widths(found) if sizes == {2} else {}
        if not widths or any((widths[p], widths[q]) != own for (p, q), own in shapes.items()):
            raise ValueError(
                "Expected a matrix of associations for each pair of views, with a row or column "
                f"for each variable, got shapes {shapes}."
            )
        views, names = variable_names(widths, feature_names)
        self._widths, self._variables = widths, list(zip(views, names, strict=True))
        self._drawn: Pairs | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ViewsLike | MatrixLike,
        y: MatrixLike | None = None,
        *,
        components: Sequence[int] | None = None,
        feature_names: Mapping[str, Sequence[str]] | None = None,
        kind: Kind = "network",
        cutoff: float | None = None,
        max_labels: int | None = None,
        views: tuple[str, str] | None = None,
        n_top: int | None = 50,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the associations of variables that a fitted estimator explains.

        Parameters
        ----------
        estimator, X, y
            See `Display.from_estimator`.
        components : sequence of int, optional
            Components that associations add up, from 0; by default all.
        feature_names : mapping of str to sequence of str, optional
            Names of the variables, by view; by default the column names of DataFrames.
        kind, cutoff, max_labels, views, n_top, ax, **kwargs
            See `plot`.

        Returns
        -------
        AssociationsDisplay
        """
        scores, rows, names = rows_with_names(estimator, X, y, feature_names)
        found = cls(associations(scores, rows, components=components), names)
        return found.plot(
            ax,
            kind=kind,
            cutoff=cutoff,
            max_labels=max_labels,
            views=views,
            n_top=n_top,
            **kwargs,
        )

    def plot(
        self,
        ax: Axes | None = None,
        *,
        kind: Kind = "network",
        cutoff: float | None = None,
        max_labels: int | None = None,
        views: tuple[str, str] | None = None,
        n_top: int | None = 50,
        **kwargs: Any,
    ) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default new axes, the larger the more variables there are.
        kind : {"network", "circos", "heatmap"}, default="network"
            A graph of the variables, a ring with a sector per view and chords, or a clustered heat
            map of two views.
        cutoff : float, optional
            Least absolute association (see `mvcca.inspection.associations`) of a line or chord; by
            default that of the 50th strongest pair.
        max_labels : int, optional
            Most variables of a network or circos plot to name, those with the strongest
            associations; by default all.
        views : pair of str, optional
            The views in rows and columns of a heat map; by default the first two.
        n_top : int or None, default=50
            Number of variables of each view in a heat map, those with the largest associations;
            None for all.
        **kwargs
            Keywords of `matplotlib.collections.LineCollection`, for the lines, or of
            `matplotlib.axes.Axes.imshow`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If `kind` is unknown, no pair reaches the cut-off, or there are not two such views.
        """
        if kind not in ("network", "circos", "heatmap"):
            raise ValueError(f"kind must be 'network', 'circos' or 'heatmap', got {kind!r}.")
        if kind == "heatmap":
            self._heatmap(ax, pair_of(list(self._widths), views), n_top, kwargs)
        else:
            self._joined(ax, kind, _strongest(self.associations, cutoff), max_labels, kwargs)
        return self

    def frame(self) -> DataFrame:
        """One row per pair that is drawn: views and names of both variables, and their value.

        The strongest are first, or those of a heat map from its top left corner on.
        """
        pairs, values = self._drawn or _sorted(_strongest(self.associations, None))
        return data_frame(
            {
                "first_view": self._variables[i][0],
                "first": self._variables[i][1],
                "second_view": self._variables[j][0],
                "second": self._variables[j][1],
                "value": value,
            }
            for (i, j), value in zip(pairs, values, strict=True)
        )

    def _joined(
        self, ax: Any, kind: Kind, drawn: Pairs, max_labels: int | None, given: Mapping[str, Any]
    ) -> None:
        """Draw pairs as lines of a graph or as chords of a ring."""
        self._drawn = _sorted(drawn)
        is_new, self.ax_ = ax is None, tidy_axes(ax)
        from matplotlib.collections import LineCollection

        from mvcca.plotting._labels import size_for_names, size_for_ring

        used, numbers = np.unique(drawn[0], return_inverse=True)
        pairs, values, sizes = numbers.reshape(-1, 2), drawn[1], np.abs(drawn[1])
        names = [self._variables[i][1] for i in used]
        of_views = [self._variables[i][0] for i in used]
        counts = {view: of_views.count(view) for view in self._widths}
        if is_new:
            size = size_for_names(len(names)) if kind == "network" else size_for_ring(names)
            self.figure_.set_size_inches(size)
        self.ax_.set_axis_off()
        self.ax_.set_aspect("equal", adjustable="datalim")
        largest = np.zeros(len(names))
        np.maximum.at(largest, pairs.ravel(), np.repeat(sizes, 2))
        order = np.argsort(-largest, kind="stable")[:max_labels]
        draw = self._network if kind == "network" else self._circos
        lines, views = draw(pairs, counts, order, [names[i] for i in order])
        share = (sizes - sizes.min()) / max(np.ptp(sizes), np.finfo(float).tiny)
        style = {
            "color": np.where(values < 0, NEGATIVE, POSITIVE).tolist(),
            "linewidth": (_THIN + (_THICK - _THIN) * share).tolist(),
            "alpha": 0.6,
            "zorder": 1,
        }
        self.line_ = LineCollection(lines, **styled(style, given, LineCollection))
        self.ax_.add_collection(self.line_)
        signs = ("positive", POSITIVE, values >= 0), ("negative", NEGATIVE, values < 0)
        keys = [line_key(label, color=tone) for label, tone, has in signs if has.any()]
        text = f"{len(values)} associations between views, {sizes.min():.2f} or more"
        draw_title(self.ax_, text)
        legend_beside(self.ax_, [*views, *keys])

    def _network(
        self, pairs: np.ndarray, counts: Mapping[str, int], order: np.ndarray, names: list[str]
    ) -> tuple[Any, list[Any]]:
        """Draw the variables of a graph; its lines, and the views for the legend."""
        from mvcca.plotting._labels import annotate_points

        places = graph_layout(pairs, sum(counts.values()))
        of_views = np.split(places, np.cumsum([*counts.values()])[:-1])
        self.scatter_ = {}
        for number, (view, own) in enumerate(zip(counts, of_views, strict=True)):
            if len(own):
                style = {"c": color(number), "marker": marker(number), "label": literal(view)}
                self.scatter_[view] = draw_points(self.ax_, own, {}, s=40, **style)
        self.ax_.margins(0.1)
        self.text_ = annotate_points(self.ax_, places[order], names, places)
        return places[pairs], [*self.scatter_.values()]

    def _circos(
        self, pairs: np.ndarray, counts: Mapping[str, int], order: np.ndarray, names: list[str]
    ) -> tuple[Any, list[Any]]:
        """Draw the sectors of a ring; its chords, and the views for the legend."""
        from matplotlib.patches import Polygon

        from mvcca.plotting._labels import label_ring

        angles, ends = ring([*counts.values()])
        self.sector_ = {}
        for number, (view, (start, stop)) in enumerate(zip(counts, ends, strict=True)):
            if start != stop:
                outline = np.concatenate([arc(start, stop, _INNER), arc(stop, start, _OUTER)])
                style = {"facecolor": color(number), "linewidth": 0, "label": literal(view)}
                self.sector_[view] = self.ax_.add_patch(Polygon(outline, **style))
        self.text_ = label_ring(self.ax_, angles[order], names, _NAMES)
        return [chord(angles[i], angles[j], _INNER) for i, j in pairs], [*self.sector_.values()]

    def _heatmap(
        self, ax: Any, pair: tuple[str, str], n_top: int | None, given: Mapping[str, Any]
    ) -> None:
        """Draw the associations of two views in the order of two trees."""
        is_new, (first, second) = ax is None, pair
        values = self.associations.get(pair)
        values = self.associations[second, first].T if values is None else values
        kept = [np.sort(np.argsort(-np.abs(values).max(axis=k))[:n_top]) for k in (1, 0)]
        values = values[np.ix_(*kept)]
        orders, trees = zip(tree(values), tree(values.T), strict=True)
        values = values[np.ix_(*orders)]
        starts = dict(zip(self._widths, np.cumsum([0, *self._widths.values()]), strict=False))
        rows, columns = (
            starts[view] + own[order] for view, own, order in zip(pair, kept, orders, strict=True)
        )
        self._drawn = (
            np.stack(np.meshgrid(rows, columns, indexing="ij"), 2).reshape(-1, 2),
            (values.ravel()),
        )
        names = [[self._variables[i][1] for i in own] for own in (rows, columns)]
        most = float(np.abs(values).max()) or 1.0
        style = {"cmap": DIVERGING, "vmin": -most, "vmax": most, "interpolation": "nearest"}
        self.ax_, self.im_, _ = draw_heatmap(
            ax, values, None, "Association", style, given, digits=None
        )
        from matplotlib.collections import LineCollection

        ax, (n_rows, n_columns) = self.ax_, values.shape
        if is_new:
            longest = [_LETTER * max(map(len, own)) for own in names]
            inches = _CELL * (np.array([n_columns, n_rows]) + _LARGEST) + longest + [1.8, 1.0]
            ax.figure.set_size_inches(np.maximum(inches, [6.4, 4.8]))
        # Trees are beside the image, in its coordinates.
        left, top = -0.5 - _GAP * n_columns, -0.5 - _GAP * n_rows
        width, height = (min(_TREE * n, _LARGEST) for n in (n_columns, n_rows))
        (y, across), (x, up) = (np.moveaxis(own, 2, 0) for own in trees)
        of_rows = np.stack([left - width * across, y], axis=2)
        of_columns = np.stack([x, top - height * up], axis=2)
        lines = np.concatenate([of_rows, of_columns])
        self.line_ = LineCollection(list(lines), colors=GREY, linewidths=0.8)
        ax.add_collection(self.line_, autolim=False)
        ax.set(xlim=(left - width, n_columns - 0.5), ylim=(n_rows - 0.5, top - height))
        ax.yaxis.tick_right()
        ax.yaxis.set_label_position("right")
        ax.tick_params(length=0)
        name_sides(ax, *names)
        ax.set(xlabel=literal(second), ylabel=literal(first))
        title = f"Associations of {first} and {second}, clustered"
        draw_title(ax, title, width_beside(names[0]))


def _sorted(drawn: Pairs) -> Pairs:
    """The strongest pairs first."""
    order = np.argsort(-np.abs(drawn[1]), kind="stable")
    return drawn[0][order], drawn[1][order]


def _strongest(found: Mapping[tuple[str, str], np.ndarray], cutoff: float | None) -> Pairs:
    """The strongest associations; variables are numbered over all views, one after another."""
    widths = _widths(found)
    starts = dict(zip(widths, np.cumsum([0, *widths.values()]), strict=False))
    sizes = np.concatenate([np.abs(values).ravel() for values in found.values()])
    if cutoff is None:
        nth = max(len(sizes) - _N_PAIRS, 0)
        cutoff = max(float(np.partition(sizes, nth)[nth]), np.finfo(float).tiny)
    pairs, kept = [], []
    for (p, q), values in found.items():
        rows, columns = np.nonzero(np.abs(values) >= cutoff)
        pairs.append(np.stack([starts[p] + rows, starts[q] + columns], axis=1))
        kept.append(values[rows, columns])
    if not any(map(len, kept)):
        raise ValueError(
            f"No pair of variables reaches cutoff={cutoff:g}; the largest association is "
            f"{sizes.max():.2f}."
        )
    return np.concatenate(pairs), np.concatenate(kept)


def _widths(found: Mapping[tuple[str, str], np.ndarray]) -> dict[str, int]:
    """Number of variables of each view."""
    widths: dict[str, int] = {}
    for pair, values in found.items():
        widths |= dict(zip(pair, values.shape, strict=True))
    return widths
