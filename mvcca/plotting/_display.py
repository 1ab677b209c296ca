"""What all displays have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

from mvcca.inspection import projected
from mvcca.machine.optional import optional
from mvcca.views import holds_views

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame


class Display(ABC):
    """Plot of plain arrays, which are the parameters of the constructor.

    Class methods compute the arrays, from a fitted estimator or from what it returned, and draw
    the display.

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


class ScoresDisplay(Display):
    """Display of projected rows, which `from_scores` computes and `from_estimator` projects."""

    @classmethod
    @abstractmethod
    def from_scores(cls, scores: Any, *args: Any, **kwargs: Any) -> Self:
        """Draw projected rows."""

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, *, ax: Axes | None = None, **options: Any
    ) -> Self:
        """Project rows with a fitted estimator, and draw them as `from_scores` does.

        Parameters
        ----------
        estimator : fitted estimator
            Any model whose ``transform`` maps `mvcca.views.Views` to `Views`; or, in displays that
            compare methods, several of them in a mapping by name.
        X : Views, mapping, list of matrices, or matrix
            Rows of the fitted views.
        y : optional
            The labels, if `from_scores` takes labels as `y`; otherwise the second view, if X is a
            single matrix.
        ax : matplotlib Axes, optional
            Axes to draw on; by default new axes.
        **options
            Options of `from_scores` and of `plot`, and keywords of matplotlib.

        Returns
        -------
        Display
        """
        return cls.from_scores(**{**cls.inputs_of(estimator, X, y), **options}, ax=ax)

    @classmethod
    def inputs_of(cls, estimator: Any, X: Any, y: Any) -> dict[str, Any]:
        """Arguments of `from_scores` that an estimator and rows give: the projected rows.

        A display overrides this if it needs more, such as the rows or the labels y.
        """
        return {"scores": projected(estimator, X, y)[1]}


def data_frame(rows: Iterable[Mapping[str, Any]] | None = None, /, **columns: Any) -> DataFrame:
    """A DataFrame of rows, each a mapping of column names to values, or of columns."""
    pandas = optional("pandas", "frame", "pandas")
    frame: DataFrame = pandas.DataFrame(columns if rows is None else list(rows))
    return frame


def by_name(estimator: Any) -> Mapping[str, Any]:
    """Estimators by name: those of a mapping, or a single one by the name of its class."""
    return estimator if isinstance(estimator, Mapping) else {type(estimator).__name__: estimator}


def are_methods(scores: Any) -> bool:
    """Whether scores are a mapping of methods to projected rows."""
    return isinstance(scores, Mapping) and all(holds_views(of) for of in scores.values())
