"""Pairs of associated variables of different views, as a graph or as chords of a ring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from mvcca.inspection import pairwise_associations
from mvcca.plotting._display import Display, data_frame
from mvcca.plotting._drawing import draw_points, draw_title, legend_beside, line_key, styled
from mvcca.plotting._geometry import arc, chord, graph_layout, ring
from mvcca.plotting._variables import column_names, variable_names
from mvcca.plotting.style import NEGATIVE, POSITIVE, color, literal, marker, tidy_axes
from mvcca.views import as_views
from mvcca.views.typing import ViewsLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection, PathCollection
    from matplotlib.patches import Polygon
    from pandas import DataFrame

_N_PAIRS = 50  # without a cut-off
_THIN, _THICK = 0.6, 2.6  # points, lines of the smallest and of the largest value
_INNER, _OUTER = 1.0, 1.07  # radii of the ring
_NAMES = 1.1  # radius from which names begin


class AssociationsDisplay(Display):
    """Variables of different views that are associated, as a network or as a circos plot.

    In a network, hubs are variables that go with many of another view, and parts that are not
    joined are different themes; distances are close to the number of lines between two variables.
    On the ring of a circos plot, variables stay in the order of their columns, and bundles of
    chords show which part of one view goes with which part of another. Lines are red for positive
    and blue for negative associations, and wider for stronger ones.

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
        The lines or chords, in the order of the pairs.
    scatter_ : dict of str to matplotlib PathCollection
        The variables of each view, for kind="network".
    sector_ : dict of str to matplotlib Polygon
        By view, for kind="circos".
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
    ClusteredHeatmapDisplay : All pairs of two views.

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

    def __init__(
        self, names: Mapping[str, Sequence[str]], pairs: np.ndarray, values: np.ndarray
    ) -> None:
        self.names = {view: [*map(str, own)] for view, own in names.items()}
        self.pairs, self.values = np.asarray(pairs, dtype=int), np.asarray(values, dtype=float)
        n_variables = sum(map(len, self.names.values()))
        shape = (len(self.values), 2)
        if not len(self.values) or self.pairs.shape != shape or self.values.ndim != 1:
            raise ValueError(
                f"Expected pairs of shape (n_pairs, 2) and a value for each, got shapes "
                f"{self.pairs.shape} and {self.values.shape}."
            )
        if self.pairs.min() < 0 or self.pairs.max() >= n_variables:
            raise ValueError(
                f"Pairs number the {n_variables} variables from 0 to {n_variables - 1}, got "
                f"{self.pairs.min()} to {self.pairs.max()}."
            )

    @classmethod
    def from_scores(
        cls,
        scores: ViewsLike,
        X: ViewsLike,
        *,
        cutoff: float | None = None,
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
        cutoff : float, optional
            Least absolute association (see `mvcca.inspection.associations`) of a pair that is
            drawn; by default that of the 50th strongest pair.
        components : sequence of int, optional
            Components that associations add up, from 0; by default all.
        feature_names : mapping of str to sequence of str, optional
            Names of the variables, by view; by default the column names of DataFrames.
        ax, **kwargs
            See `plot`.

        Returns
        -------
        AssociationsDisplay

        Raises
        ------
        ValueError
            If no pair reaches the cut-off, or a component does not exist.
        """
        found = pairwise_associations(X, scores, components=components)
        pairs, values = _strongest(found, cutoff)
        widths = _widths(found)
        given = feature_names or column_names(X, as_views(scores).names)
        views, named = variable_names(widths, given)
        used, numbers = np.unique(pairs, return_inverse=True)
        names: dict[str, list[str]] = {name: [] for name in widths}
        for i in used:
            names[views[i]].append(named[i])
        return cls(names, numbers.reshape(-1, 2), values).plot(ax, **kwargs)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        kind: Literal["network", "circos"] = "network",
        max_labels: int | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default new axes, the larger the more variables there are.
        kind : {"network", "circos"}, default="network"
            A graph of the variables, or a ring with a sector per view and chords.
        max_labels : int, optional
            Most variables to name, those with the strongest associations; by default all.
        **kwargs
            Keywords of `matplotlib.collections.LineCollection`, for the lines.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If `kind` is unknown.
        """
        if kind not in ("network", "circos"):
            raise ValueError(f"kind must be 'network' or 'circos', got {kind!r}.")
        is_new, self.ax_ = ax is None, tidy_axes(ax)
        from matplotlib.collections import LineCollection

        from mvcca.plotting._labels import size_for_names, size_for_ring

        names = [name for own in self.names.values() for name in own]
        if is_new:
            size = size_for_names(len(names)) if kind == "network" else size_for_ring(names)
            self.figure_.set_size_inches(size)
        self.ax_.set_axis_off()
        self.ax_.set_aspect("equal", adjustable="datalim")
        largest = np.zeros(len(names))
        np.maximum.at(largest, self.pairs.ravel(), np.repeat(np.abs(self.values), 2))
        order = np.argsort(-largest, kind="stable")[:max_labels]
        draw = self._network if kind == "network" else self._circos
        lines, views = draw(order, [names[i] for i in order])
        style = {**self._line_style(), "zorder": 1}
        self.line_ = LineCollection(lines, **styled(style, kwargs, LineCollection))
        self.ax_.add_collection(self.line_)
        signs = ("positive", POSITIVE, self.values >= 0), ("negative", NEGATIVE, self.values < 0)
        keys = [line_key(label, color=tone) for label, tone, has in signs if has.any()]
        least = np.abs(self.values).min()
        draw_title(self.ax_, f"{len(self.values)} associations between views, {least:.2f} or more")
        legend_beside(self.ax_, [*views, *keys])
        return self

    def frame(self) -> DataFrame:
        """One row per pair, the strongest first: views and names of both variables, the value."""
        order = np.argsort(-np.abs(self.values), kind="stable")
        variables = [(view, name) for view, own in self.names.items() for name in own]
        return data_frame(
            dict(
                zip(
                    ("first_view", "first", "second_view", "second", "value"),
                    (*variables[i], *variables[j], value),
                    strict=True,
                )
            )
            for (i, j), value in zip(self.pairs[order], self.values[order], strict=True)
        )

    def _network(self, order: np.ndarray, names: list[str]) -> tuple[Any, list[Any]]:
        """Draw the variables of a graph; its lines, and the views for the legend."""
        from mvcca.plotting._labels import annotate_points

        places = graph_layout(self.pairs, sum(map(len, self.names.values())))
        self.scatter_, start = {}, 0
        for number, (view, own) in enumerate(self.names.items()):
            if own:
                style = {"c": color(number), "marker": marker(number), "label": literal(view)}
                of_view = places[start : start + len(own)]
                self.scatter_[view] = draw_points(self.ax_, of_view, {}, s=40, **style)
                start += len(own)
        self.ax_.margins(0.1)
        self.text_ = annotate_points(self.ax_, places[order], names, places)
        return places[self.pairs], [*self.scatter_.values()]

    def _circos(self, order: np.ndarray, names: list[str]) -> tuple[Any, list[Any]]:
        """Draw the sectors of a ring; its chords, and the views for the legend."""
        from matplotlib.patches import Polygon

        from mvcca.plotting._labels import label_ring

        angles, ends = ring([len(own) for own in self.names.values()])
        self.sector_ = {}
        for number, (view, (start, stop)) in enumerate(zip(self.names, ends, strict=True)):
            if start != stop:
                outline = np.concatenate([arc(start, stop, _INNER), arc(stop, start, _OUTER)])
                style = {"facecolor": color(number), "linewidth": 0, "label": literal(view)}
                self.sector_[view] = self.ax_.add_patch(Polygon(outline, **style))
        self.text_ = label_ring(self.ax_, angles[order], names, _NAMES)
        chords = [chord(angles[i], angles[j], _INNER) for i, j in self.pairs]
        return chords, [*self.sector_.values()]

    def _line_style(self) -> dict[str, Any]:
        """Colours of lines by the sign of their values, widths by their size."""
        sizes = np.abs(self.values)
        share = (sizes - sizes.min()) / max(np.ptp(sizes), np.finfo(float).tiny)
        return {
            "color": np.where(self.values < 0, NEGATIVE, POSITIVE).tolist(),
            "linewidth": (_THIN + (_THICK - _THIN) * share).tolist(),
            "alpha": 0.6,
        }


def _strongest(
    found: Mapping[tuple[str, str], np.ndarray], cutoff: float | None
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (n, 2) of the strongest associations, and their values.

    Variables are numbered over all views, one after another.
    """
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
