"""Held-out values over one searched parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mvcca.plotting._display import Display, data_frame
from mvcca.plotting._drawing import draw_line, draw_title, line_key
from mvcca.plotting.style import color, literal, tidy_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from pandas import DataFrame

_LINE: dict[str, Any] = {"marker": "o", "markersize": 3.5, "linewidth": 1.6}
_CHOSEN: dict[str, Any] = {"marker": "o", "markersize": 8, "markeredgecolor": "white"}
_LOGARITHMIC = 50  # ratio of the largest to the smallest value, from which the axis is logarithmic


class ValidationCurveDisplay(Display):
    """Mean held-out value over one searched parameter, with a line per value of another one.

    By default this is the ridge, with a line per ranking. For further parameters of the search, a
    point is the best value over theirs. A dot marks what the search chose. A curve that still rises
    at an end asks for a wider grid.

    Parameters
    ----------
    scores : array, shape (n_lines, n_values)
        Mean score by line and value; NaN where it is unknown.
    values : sequence, of length n_values
        Values of the parameter on the x-axis.
    lines : sequence of str, of length n_lines
        Names of the lines; a single one may be "".
    parameter : str
        Name of the parameter on the x-axis.
    chosen : (int, int) or None, default=None
        Line and value that the search chose.
    label : str, default="Mean score"
        What is shown, at the y-axis.

    Attributes
    ----------
    line_ : dict of str to matplotlib Line2D
        The lines, by name.
    chosen_ : matplotlib Line2D or None
        The mark of the choice.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Raises
    ------
    ValueError
        If the scores do not have a row per line and a column per value, or all of them are NaN.

    See Also
    --------
    GridSearchDisplay : Two parameters as a heat map.

    Examples
    --------
    >>> from mvcca import CCA
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.plotting import ValidationCurveDisplay
    >>> model = CCA(None, reg="cv").fit(load_digits_views().views[:300])
    >>> display = ValidationCurveDisplay.from_estimator(model)
    >>> display.values[0], display.lines[0]
    (0.0001, 'profile-likelihood')
    """

    line_: dict[str, Line2D]
    chosen_: Line2D | None

    def __init__(
        self,
        scores: np.ndarray,
        values: Sequence[Any],
        lines: Sequence[str],
        parameter: str,
        chosen: tuple[int, int] | None = None,
        label: str = "Mean score",
    ) -> None:
        self.scores = np.asarray(scores, dtype=float)
        if self.scores.shape != (len(lines), len(values)) or np.isnan(self.scores).all():
            raise ValueError(
                f"Expected scores of shape {(len(lines), len(values))}, not all of them NaN, got "
                f"shape {self.scores.shape}."
            )
        self.values, self.lines, self.parameter = values, lines, parameter
        self.chosen, self.label = chosen, label

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        parameter: str | None = None,
        lines: str | None = None,
        measure: str = "score",
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the scores of a fitted search, or of an estimator that folds have tuned.

        Parameters
        ----------
        estimator : fitted `mvcca.FoldSearchCV`, other search, or estimator with ``cv_results_``
            Such as ``CCA(reg="cv")``.
        parameter : str, optional
            Parameter on the x-axis; by default "reg" if it was searched, else the first one.
        lines : str, optional
            Parameter that has a line per value; by default "ranking" if it was searched.
        measure : str, default="score"
            Name of the measure, if the search has several.
        ax, **kwargs
            See `plot`.

        Returns
        -------
        ValidationCurveDisplay

        Raises
        ------
        TypeError
            If the estimator has not searched.
        ValueError
            If a parameter was not searched, or the measure is unknown.
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "cv_results_"):
            raise TypeError(
                f"{type(estimator).__name__} has not searched: expected a fitted search, such as "
                'FoldSearchCV, or an estimator with a parameter "cv".'
            )
        results: Mapping[str, Any] = estimator.cv_results_
        searched = [name.removeprefix("param_") for name in results if name.startswith("param_")]
        if parameter is None:
            parameter = "reg" if "reg" in searched else searched[0]
        if lines is None and "ranking" in searched and parameter != "ranking":
            lines = "ranking"
        for name in (parameter, lines):
            if name is not None and name not in searched:
                raise ValueError(f"Expected parameters among {searched}, got {name!r}.")
        if f"mean_test_{measure}" not in results:
            measures = [name[10:] for name in results if name.startswith("mean_test_")]
            raise ValueError(f"Unknown measure {measure!r}; the search has {measures}.")
        params = results["params"]
        column = [own.get(parameter) for own in params]
        names = ["" if lines is None else _name(own.get(lines)) for own in params]
        values, kinds = _in_order(column), list(dict.fromkeys(names))
        scores = np.full((len(kinds), len(values)), np.nan)
        for name, value, score in zip(names, column, results[f"mean_test_{measure}"], strict=True):
            place = kinds.index(name), values.index(value)
            scores[place] = np.fmax(scores[place], score)
        x = _chosen(estimator, parameter)
        line = "" if lines is None else _name(_chosen(estimator, lines))
        chosen = None
        chooses = measure in ("score", getattr(estimator, "refit", None))
        if chooses and x in values and line in kinds:
            chosen = kinds.index(line), values.index(x)
        label = "Mean score" if measure == "score" else f"Mean {measure}"
        return cls(scores, values, kinds, parameter, chosen, label).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default new axes. Numbers of very different sizes are on a
            logarithmic axis, and values that are no numbers side by side.
        **kwargs
            Keywords of `matplotlib.axes.Axes.plot`, for all lines.

        Returns
        -------
        self
        """
        self.ax_ = ax = tidy_axes(ax)
        are_numbers = all(isinstance(v, Real) and not isinstance(v, bool) for v in self.values)
        x = np.array(self.values, dtype=float) if are_numbers else np.arange(len(self.values))
        self.line_ = {}
        for number, (name, scores) in enumerate(zip(self.lines, self.scores, strict=True)):
            known = ~np.isnan(scores)
            style = {"color": color(number), **_LINE}
            self.line_[name] = draw_line(ax, x[known], scores[known], kwargs, **style)
        self.chosen_ = None
        if self.chosen is not None:
            line, place = self.chosen
            tone = self.line_[self.lines[line]].get_color()
            point = [x[place]], [self.scores[line, place]]
            (self.chosen_,) = ax.plot(*point, linestyle="", color=tone, zorder=3, **_CHOSEN)
        if not are_numbers:
            ax.set_xticks(x, [literal(_name(value)) for value in self.values])
        elif (x > 0).any() and x.max() > _LOGARITHMIC * (least := x[x > 0].min()):
            ax.set_xscale("log") if x.min() > 0 else ax.set_xscale("symlog", linthresh=least)
        ax.set(xlabel=literal(self.parameter), ylabel=literal(self.label))
        mark = "" if self.chosen is None else "; the dot is the choice"
        draw_title(ax, f"{self.label} on held-out rows by {self.parameter}{mark}")
        if len(self.lines) > 1:
            keys = [
                line_key(name, color=line.get_color(), linewidth=_LINE["linewidth"])
                for name, line in self.line_.items()
            ]
            ax.legend(handles=keys, frameon=False, loc="best")
        return self

    def frame(self) -> DataFrame:
        """One row per line and value, with the score and whether it was chosen."""
        return data_frame(
            {
                "line": name,
                self.parameter: value,
                "score": self.scores[i, j],
                "chosen": (i, j) == self.chosen,
            }
            for i, name in enumerate(self.lines)
            for j, value in enumerate(self.values)
        )


def _chosen(estimator: Any, name: str) -> Any:
    """The value of a parameter that a search or a tuned estimator has chosen."""
    if hasattr(estimator, "best_params_"):
        return estimator.best_params_.get(name)
    return getattr(estimator, f"{name}_", None)


def _in_order(values: list[Any]) -> list[Any]:
    """Values without repetition: numbers sorted, before any others."""
    distinct = [value for i, value in enumerate(values) if value not in values[:i]]
    numbers = [value for value in distinct if isinstance(value, Real)]
    others = [value for value in distinct if not isinstance(value, Real)]
    return [*sorted(numbers, key=float), *others]


def _name(value: Any) -> str:
    if value is None:
        return "all"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_name(own)}" for name, own in value.items())
    return f"{value:g}" if isinstance(value, float) else str(value)
