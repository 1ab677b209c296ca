"""What all displays have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mvcca.blocks.checks import to_array
from mvcca.inspection import projected
from mvcca.machine.optional import optional
from mvcca.measures.correlation import standard_columns
from mvcca.plotting._drawing import check_component
from mvcca.plotting._groups import groups_of
from mvcca.plotting._variables import only_selected, rows_with_names
from mvcca.views import Views, as_views, holds_views

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame


class Display(ABC):
    """Plot of plain arrays, which are the parameters of the constructor.

    `from_scores` computes the arrays from projected rows and draws them, and `from_estimator`
    projects rows with a fitted estimator.

    Attributes
    ----------
    ax_ : matplotlib Axes
        What `plot` has drawn on.
    figure_ : matplotlib Figure
    """

    ax_: Axes

    def __init_subclass__(cls, **given: Any) -> None:
        """List the options of `from_scores` and `plot` in the signature of `from_estimator`."""
        super().__init_subclass__(**given)
        method: Any = vars(cls).get("from_estimator", cls.from_estimator).__func__

        @wraps(method)
        def from_estimator(own: type[Self], *args: Any, **options: Any) -> Any:
            return method(own, *args, **options)

        *known, rest = signature(method).parameters.values()
        taken = {"self", "scores", "scores_test", *(one.name for one in known)}
        every = (p for f in (cls.from_scores, cls.plot) for p in signature(f).parameters.values())
        more = {
            one.name: one.replace(kind=Parameter.KEYWORD_ONLY)
            for one in every
            if one.name not in taken and one.kind < Parameter.VAR_KEYWORD
        }
        listed = [*known, *more.values(), rest]
        from_estimator.__signature__ = Signature(listed)  # type: ignore[attr-defined]
        cls.from_estimator = classmethod(from_estimator)  # type: ignore[assignment, method-assign]

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
    @abstractmethod
    def from_scores(cls, scores: Any, *args: Any, **kwargs: Any) -> Self:
        """Draw projected rows."""

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, *, ax: Axes | None = None, **options: Any
    ) -> Self:
        """Project rows with a fitted estimator, and draw them as `from_scores` does.

        Displays of features show those that a sparse model selected; all with `feature_names`.

        Parameters
        ----------
        estimator : fitted estimator
            Any model whose ``transform`` maps `mvcca.views.Views` to `Views`; or, in displays that
            compare methods, several of them in a mapping by name.
        X : Views, mapping, list of matrices, or matrix
            Rows of the fitted views.
        y : optional
            The labels, if `from_scores` takes labels as `y`; otherwise the second view, if X is a
            single matrix. Labels that only colour rows are `groups` in all displays.
        ax : matplotlib Axes, optional
            Axes to draw on; by default new axes.
        **options
            Options of `from_scores` and of `plot`, and keywords of matplotlib.

        Returns
        -------
        Display
        """
        takes = signature(cls.from_scores).parameters
        if y is not None and holds_views(X) and "groups" in takes:
            raise ValueError("y is the second view of a single matrix; pass labels as groups=y.")
        inputs = cls._inputs_of(estimator, X, y)
        if "feature_names" in takes and "feature_names" not in options:
            inputs = only_selected(estimator, inputs)
        return cls.from_scores(**{**inputs, **options}, ax=ax)

    @classmethod
    def _inputs_of(cls, estimator: Any, X: Any, y: Any) -> dict[str, Any]:
        """Arguments of `from_scores` that an estimator and rows give."""
        takes = signature(cls.from_scores).parameters
        if "estimator" in takes:  # which ranks the rows
            return {"scores": X, "y": y, "estimator": estimator}
        if "feature_names" in takes:
            return rows_with_names(estimator, X, y)
        return {"scores": projected(estimator, X, y)[1]}


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


def by_name(estimator: Any) -> Mapping[str, Any]:
    """Estimators by name: those of a mapping, or a single one by the name of its class."""
    return estimator if isinstance(estimator, Mapping) else {type(estimator).__name__: estimator}


def are_methods(scores: Any) -> bool:
    """Whether scores are a mapping of methods to projected rows."""
    return isinstance(scores, Mapping) and all(holds_views(of) for of in scores.values())
