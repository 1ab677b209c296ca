"""What all displays have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mvcca.blocks.checks import to_array
from mvcca.inspection import projected
from mvcca.machine.optional import optional
from mvcca.measures.correlation import standard_columns
from mvcca.plotting._drawing import check_component
from mvcca.plotting._groups import groups_of
from mvcca.views import Views, as_views, holds_views

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame


class Display(ABC):
    """Plot of plain arrays.

    The constructor takes what is drawn: projected rows, or what a function of `mvcca.inspection` or
    `mvcca.retrieval` returns. `plot` draws it. `from_estimator` does both for a fitted model.

    Attributes
    ----------
    ax_ : matplotlib Axes
        What `plot` has drawn on.
    figure_ : matplotlib Figure
    """

    ax_: Axes

    @property
    def figure_(self) -> Figure:
        """The figure of the axes."""
        figure: Any = self.ax_.figure
        return figure

    @abstractmethod
    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default new axes.
        **kwargs
            Keywords of matplotlib.

        Returns
        -------
        self
        """

    @abstractmethod
    def frame(self) -> DataFrame:
        """What is drawn, as a pandas DataFrame with a row per point, bar or cell."""

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, *, ax: Axes | None = None, **kwargs: Any
    ) -> Self:
        """Draw a fitted model on given rows.

        Displays of features show those that a sparse model selected; all with `feature_names`.

        Parameters
        ----------
        estimator : fitted estimator
            Any model whose ``transform`` maps `mvcca.views.Views` to `Views`; or, in displays that
            compare methods, several of them in a mapping by name.
        X : Views, mapping, list of matrices, or matrix
            Rows of the fitted views.
        y : optional
            The second view, if X is a single matrix; in displays of retrieval and of areas under
            curves, labels. Labels that only colour rows are `groups` in all displays.
        ax : matplotlib Axes, optional
            Axes to draw on; by default new axes.
        **kwargs
            Options of the constructor and of `plot`, and keywords of matplotlib.

        Returns
        -------
        Display
        """
        return cls(projected(estimator, X, y)[1]).plot(ax, **kwargs)  # type: ignore[call-arg]


def projected_objects(estimator: Any, X: Any, y: Any) -> Views:
    """Projected rows of a display that colours them by groups."""
    check_no_labels(X, y)
    return projected(estimator, X, y)[1]


def check_no_labels(X: Any, y: Any) -> None:
    """Refuse labels as y in displays that colour rows by groups."""
    if y is not None and holds_views(X):
        raise ValueError("y is the second view of a single matrix; pass labels as groups=y.")


def data_frame(rows: Iterable[Mapping[str, Any]] | None = None, /, **columns: Any) -> DataFrame:
    """A DataFrame of rows, each a mapping of column names to values, or of columns."""
    pandas = optional("pandas", "frame", "pandas")
    frame: DataFrame = pandas.DataFrame(columns if rows is None else list(rows))
    return frame


def points_frame(points: Views, groups: Sequence[str] | None) -> DataFrame:
    """A DataFrame with a row per row of each view: its object, group and two coordinates."""
    return data_frame(
        {
            "view": name,
            "object": i,
            "group": None if groups is None else groups[i],
            "x": x,
            "y": y,
        }
        for name, block in points.items()
        for i, (x, y) in zip(points.objects(name), block, strict=True)
    )


def two_components(scores: Any, components: Any) -> tuple[Views, tuple[int, int]]:
    """Projected rows in memory, and the numbers of two of their components."""
    scores, chosen = as_views(scores).in_memory(), np.atleast_1d(components).tolist()
    if len(chosen) != 2:
        raise ValueError(f"Expected two components, got {components!r}.")
    for component in chosen:
        check_component(component, min(scores.widths.values()))
    return scores, (int(chosen[0]), int(chosen[1]))


def common_points(
    scores: Any, components: Any, groups: Any
) -> tuple[dict[str, np.ndarray], list[str] | None, tuple[int, int]]:
    """Two standardized components of each view, of the objects seen in all of them; their groups.

    Columns have mean 0 and variance 1, or 0 if they are constant.
    """
    scores, chosen = two_components(scores, components)
    common = np.flatnonzero(scores.seen.all(axis=1))
    if len(common) < 2:
        raise ValueError("Expected at least two objects that are seen in all views.")
    points = {
        name: np.sqrt(len(common)) * standard_columns(to_array(Z)[:, chosen])
        for name, Z in scores[common].items()
    }
    return points, groups_of(groups, scores, common), chosen


def pair_of(names: Sequence[str], pair: Sequence[str] | None) -> tuple[str, str]:
    """Two different views: those given, or the first two."""
    chosen = tuple(names[:2] if pair is None else pair)
    if len(chosen) != 2 or chosen[0] == chosen[1] or not set(chosen) <= set(names):
        raise ValueError(f"Expected two different views of {list(names)}, got {list(chosen)}.")
    return chosen
