"""Learning curves: training and validation figures per epoch, from an estimator's ``history_``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mvcca.plotting._display import Display, by_name, data_frame
from mvcca.plotting._drawing import draw_line, draw_title, line_key, panel_axes
from mvcca.plotting.style import GREY, color, literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from pandas import DataFrame

History = Mapping[str, Any]

# Panels with the label of their y-axis and the columns that they show.
_PANELS = {
    "loss": ("Loss", ("loss", "valid_loss")),
    "correlation": ("Total correlation of validation rows", ("valid_total_correlation",)),
    "mrr": ("MRR of validation rows", ("valid_mrr",)),
    "map": ("mAP of validation rows", ("valid_map",)),
}
_TRAINING: dict[str, Any] = {"linestyle": (0, (2, 1)), "linewidth": 1.2}
_VALIDATION: dict[str, Any] = {"linestyle": "-", "linewidth": 1.8}
_BEST: dict[str, Any] = {"marker": "o", "markersize": 7, "markeredgecolor": "white"}
_BESIDE = {"epoch", "seconds"}  # columns that are no panels


class LearningCurveDisplay(Display):
    """Loss, total correlation and other quantities per epoch of one or several models.

    One panel shows the loss, and others the total correlation, MRR or mAP of the validation rows,
    if they were measured. `panels` selects other columns of the history, such as terms of the loss
    or the margins of `mvcca.deep.SAM`. Each model has a colour; training rows are dashed. A dot
    marks the best epoch, whose weights the model uses. Total correlations of different objectives
    are comparable, their losses are not.

    Parameters
    ----------
    histories : mapping of str to mapping of str to array, shape (n_epochs,)
        For each model, by name, the columns epoch and loss, and if measured valid_loss and
        valid_total_correlation. A single model may be named "".
    best_epochs : mapping of str to int
        Best epoch of each model, which is marked if there is a validation loss.

    Attributes
    ----------
    line_ : dict of str to list of matplotlib Line2D
        For each model, its curves in the order of the panels, training before validation.
    axes_ : dict of str to matplotlib Axes
        The panels: by default "loss", and "correlation", "mrr" and "map" if measured.
    ax_ : matplotlib Axes
        The first panel.
    figure_ : matplotlib Figure

    Raises
    ------
    ValueError
        If there is no history, or a history lacks epoch or loss.

    Examples
    --------
    >>> from mvcca.plotting import LearningCurveDisplay
    >>> history = {"epoch": [1, 2, 3], "loss": [-0.4, -0.8, -0.9], "valid_loss": [-0.5, -0.7, -0.6]}
    >>> display = LearningCurveDisplay.from_history(history)
    >>> display.best_epochs
    {'': 2}
    """

    line_: dict[str, list[Line2D]]
    axes_: dict[str, Axes]

    def __init__(self, histories: Mapping[str, History], best_epochs: Mapping[str, int]) -> None:
        if not histories:
            raise ValueError("Expected at least one history, got none.")
        for history in histories.values():
            _check_columns(history)
        self.histories = histories
        self.best_epochs = best_epochs

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the learning curves of fitted estimators.

        Parameters
        ----------
        estimator : fitted estimator, or mapping of str to fitted estimators
            Estimators of `mvcca.deep`: one model, or several by name.
        ax, **kwargs
            See `plot`.

        Returns
        -------
        LearningCurveDisplay

        Raises
        ------
        TypeError
            If an estimator has no history.
        """
        models = by_name(estimator)
        histories = {name: _history_of(model) for name, model in models.items()}
        best = {name: int(model.best_epoch_) for name, model in models.items()}
        return cls(histories, best).plot(ax, **kwargs)

    @classmethod
    def from_history(cls, history: Any, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw histories, such as ``model.history_``.

        Parameters
        ----------
        history : mapping of str to array, or mapping of str to such mappings
            One history, or several by name. The best epoch is that with the highest
            valid_total_correlation or, if that was not measured, the lowest valid_loss.
        ax, **kwargs
            See `plot`.

        Returns
        -------
        LearningCurveDisplay
        """
        several = all(isinstance(history[name], Mapping) for name in history)
        histories = history if several else {"": history}
        best = {name: _best_of(of) for name, of in histories.items()}
        return cls(histories, best).plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, panels: Sequence[str] | None = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, or sequence of them, optional
            One for each panel, or one that is divided among the panels; by default a new figure.
        panels : sequence of str, optional
            Columns of the history, such as ("loss", "margin"). A column and its figures on
            validation rows, such as loss and valid_loss, share a panel. By default "loss", and
            "correlation" (valid_total_correlation), "mrr" and "map" if measured.
        **kwargs
            Keywords of `matplotlib.axes.Axes.plot`, for all curves.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the number of axes is not the number of panels, or no history has a panel's column.
        """
        measured = {column for history in self.histories.values() for column in history}
        if panels is None:
            panels = [name for name, (_, columns) in _PANELS.items() if measured & set(columns)]
        columns_of = {name: _columns_of(name, measured) for name in panels}
        self.axes_ = dict(zip(panels, panel_axes(ax, len(panels), grid="y"), strict=True))
        self.ax_ = next(iter(self.axes_.values()))
        self.line_ = {name: [] for name in self.histories}
        for panel, axes in self.axes_.items():
            for number, (name, history) in enumerate(self.histories.items()):
                for column in columns_of[panel]:
                    if column in history:
                        line = self._draw(axes, name, column, color(number), kwargs)
                        self.line_[name].append(line)
            label, _ = _PANELS.get(panel, (panel.replace("_", " ").capitalize(), ()))
            axes.set(xlabel="Epoch", ylabel=literal(label))
            draw_title(axes, f"{label} per epoch")
            axes.xaxis.get_major_locator().set_params(integer=True)
        shown = {column for columns in columns_of.values() for column in columns}
        if keys := self._keys({column.startswith("valid") for column in shown}):
            self.ax_.legend(handles=keys, frameon=False, loc="best")
        return self

    def frame(self) -> DataFrame:
        """One row per model and epoch, with all columns of the histories."""
        return data_frame(
            {"model": name, **dict(zip(history, epoch, strict=True))}
            for name, history in self.histories.items()
            for epoch in zip(*(history[column] for column in history), strict=True)
        )

    def _draw(
        self, ax: Axes, name: str, column: str, tone: str, given: Mapping[str, Any]
    ) -> Line2D:
        """Draw one column of one model, and mark the best epoch on validation figures."""
        history = self.histories[name]
        epochs, values = (np.asarray(history[c], dtype=float) for c in ("epoch", column))
        held_out = column.startswith("valid")
        style = _TRAINING if not held_out and f"valid_{column}" in history else _VALIDATION
        alone = "o" if len(epochs) == 1 else None  # a line needs two points
        line = draw_line(ax, epochs, values, given, color=tone, marker=alone, **style)
        if held_out:
            best = epochs == self.best_epochs[name]
            tone = line.get_color()
            ax.plot(epochs[best], values[best], linestyle="", color=tone, zorder=3, **_BEST)
        return line

    def _keys(self, held_out: set[bool]) -> list[Line2D]:
        """Legend entries of models, of training and validation rows, and of the best epoch."""
        width = _VALIDATION["linewidth"]
        keys = [
            line_key(name, color=color(number), linewidth=width)
            for number, name in enumerate(self.histories)
            if name
        ]
        if len(held_out) == 2:
            keys.append(line_key("training rows", color=GREY, **_TRAINING))
            keys.append(line_key("validation rows", color=GREY, **_VALIDATION))
        if True in held_out:
            alone = list(self.best_epochs.values()) if len(self.best_epochs) == 1 else []
            label = ", ".join(map(str, ["best epoch", *alone]))
            keys.append(line_key(label, linestyle="", color=GREY, **_BEST))
        return keys


def _columns_of(panel: str, measured: set[str]) -> list[str]:
    """The columns that a panel shows."""
    _, columns = _PANELS.get(panel, ("", (panel, f"valid_{panel}")))
    shown = [column for column in columns if column in measured]
    if not shown:
        raise ValueError(
            f"No history has the column {panel!r}; the columns are {sorted(measured - _BESIDE)}."
        )
    return shown


def _check_columns(history: History) -> None:
    missing = [column for column in ("epoch", "loss") if column not in history]
    if missing:
        raise ValueError(
            f"A history must have the columns epoch and loss, got {list(history)}. Pass "
            "model.history_, or a mapping of names to histories."
        )


def _history_of(estimator: Any) -> History:
    check_is_fitted(estimator)
    if not hasattr(estimator, "history_"):
        raise TypeError(
            f"{type(estimator).__name__} has no training history: learning curves need an "
            "estimator of mvcca.deep. For a pipeline, pass its last step, pipeline[-1]."
        )
    return estimator.history_


def _best_of(history: History) -> int:
    """The epoch of the best validation figure, or the last epoch without validation."""
    _check_columns(history)
    epochs = np.asarray(history["epoch"])
    for column, sign in (("valid_total_correlation", 1), ("valid_loss", -1)):
        if column in history:
            return int(epochs[np.nanargmax(sign * np.asarray(history[column]))])
    return int(epochs[-1])
