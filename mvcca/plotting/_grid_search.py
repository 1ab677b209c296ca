"""Scores of a search over two hyper-parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mvcca.plotting._display import Display, data_frame
from mvcca.plotting._drawing import draw_title
from mvcca.plotting._heatmap import draw_heatmap
from mvcca.plotting.style import SEQUENTIAL, color, literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage
    from matplotlib.patches import Rectangle
    from pandas import DataFrame


class GridSearchDisplay(Display):
    """Mean validation score for every pair of values of two hyper-parameters.

    A frame marks the best pair. For further parameters of the search, a cell is the best score
    over their values.

    Parameters
    ----------
    scores : array, shape (n_first, n_second)
        Mean score by value of the first and of the second parameter; NaN where it is unknown.
    values : pair of sequences
        The values of the two parameters.
    parameters : pair of str
        Their names.
    label : str, default="Mean score"
        What is shown, at the colour bar.

    Attributes
    ----------
    im_ : matplotlib AxesImage
    text_ : ndarray of matplotlib Text, or None
        The scores in the cells, if there is space.
    best_ : matplotlib Rectangle
        Frame around the best pair.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Raises
    ------
    ValueError
        If the scores do not have a row and a column for each value, or all of them are NaN.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from mvcca import CCA, retrieval_scorer
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.plotting import GridSearchDisplay
    >>> grid = {"reg": [0.01, 0.1, 1.0], "n_components": [4, 8, 16]}
    >>> search = GridSearchCV(CCA(), grid, scoring=retrieval_scorer("r@10"), cv=3)
    >>> display = GridSearchDisplay.from_estimator(search.fit(load_digits_views().views))
    """

    im_: AxesImage
    text_: np.ndarray | None
    best_: Rectangle

    def __init__(
        self,
        scores: np.ndarray,
        values: tuple[Sequence[Any], Sequence[Any]],
        parameters: tuple[str, str],
        label: str = "Mean score",
    ) -> None:
        self.scores = np.asarray(scores, dtype=float)
        sizes = len(values[0]), len(values[1])
        if self.scores.shape != sizes or np.isnan(self.scores).all():
            raise ValueError(
                f"Expected scores of shape {sizes}, not all of them NaN, got shape "
                f"{self.scores.shape}."
            )
        self.values, self.parameters, self.label = values, parameters, label

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        parameters: tuple[str, str] | None = None,
        measure: str = "score",
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the scores of a fitted search.

        Parameters
        ----------
        estimator : fitted GridSearchCV, or another search with ``cv_results_``
            The search.
        parameters : pair of str, optional
            The parameters in rows and columns; unnecessary if the search has two.
        measure : str, default="score"
            Name of the measure, if the search has several.
        ax, **kwargs
            See `plot`.

        Returns
        -------
        GridSearchDisplay

        Raises
        ------
        TypeError
            If the estimator is not a search.
        ValueError
            If the two parameters are not those of the search, or the measure is unknown.
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "cv_results_"):
            raise TypeError(
                f"{type(estimator).__name__} is no search over parameters: expected a fitted "
                "GridSearchCV."
            )
        results = estimator.cv_results_
        searched = [name.removeprefix("param_") for name in results if name.startswith("param_")]
        chosen = tuple(searched) if parameters is None else tuple(parameters)
        if len(chosen) != 2 or not set(chosen) <= set(searched):
            raise ValueError(
                f"Expected two of the parameters {searched} that were searched, got "
                f"{list(chosen)}. Pass parameters=(rows, columns)."
            )
        if f"mean_test_{measure}" not in results:
            measures = [name[10:] for name in results if name.startswith("mean_test_")]
            raise ValueError(f"Unknown measure {measure!r}; the search has {measures}.")
        found = [results[f"param_{name}"].tolist() for name in chosen]
        values = [_distinct(column) for column in found]
        scores = np.full([len(of) for of in values], np.nan)
        for first, second, score in zip(*found, results[f"mean_test_{measure}"], strict=True):
            cell = values[0].index(first), values[1].index(second)
            scores[cell] = np.fmax(scores[cell], score)
        label = "Mean score" if measure == "score" else f"Mean {measure}"
        return cls(scores, (values[0], values[1]), (chosen[0], chosen[1]), label).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default new axes.
        **kwargs
            Keywords of `matplotlib.axes.Axes.imshow`.

        Returns
        -------
        self
        """
        sides = [_name(v) for v in self.values[0]], [_name(v) for v in self.values[1]]
        self.ax_, self.im_, self.text_ = draw_heatmap(
            ax, self.scores, sides, self.label, {"cmap": SEQUENTIAL}, kwargs, digits=3
        )
        from matplotlib.patches import Rectangle

        i, j = np.unravel_index(np.nanargmax(self.scores), self.scores.shape)
        box = {"fill": False, "edgecolor": color(1), "linewidth": 3}
        self.best_ = Rectangle((j - 0.5, i - 0.5), 1, 1, clip_on=False, **box)
        self.ax_.add_patch(self.best_)
        self.ax_.set(ylabel=literal(self.parameters[0]), xlabel=literal(self.parameters[1]))
        draw_title(self.ax_, f"{self.label} on held-out rows; the best pair has a frame")
        return self

    def frame(self) -> DataFrame:
        """One row per pair of values: both parameters by name, and the score."""
        first, second = self.parameters
        return data_frame(
            {first: a, second: b, "score": self.scores[i, j]}
            for i, a in enumerate(self.values[0])
            for j, b in enumerate(self.values[1])
        )


def _distinct(values: list[Any]) -> list[Any]:
    """Values without repetition, sorted if they can be."""
    distinct = [value for i, value in enumerate(values) if value not in values[:i]]
    try:
        return sorted(distinct)
    except TypeError:
        return distinct


def _name(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
