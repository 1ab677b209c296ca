"""Recall@k as a function of k, for methods and directions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from mvcca.plotting._display import Display, data_frame
from mvcca.plotting._drawing import draw_band, draw_line, draw_title, line_key
from mvcca.plotting.style import GREY, color, tidy_axes
from mvcca.retrieval import evaluate_retrieval
from mvcca.retrieval.evaluate import Directions
from mvcca.retrieval.relevance import RelevanceBy
from mvcca.views.typing import LabelsLike, ViewsLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from pandas import DataFrame

_DASHES: tuple[Literal["-", "--"], ...] = ("-", "--")  # for the two directions between two views


class RecallCurveDisplay(Display):
    """Recall@k as a function of k, for one or several methods.

    Each method has a colour. For two views there is a line per direction; for more views, the mean
    over directions is drawn with a band from the worst to the best.

    Parameters
    ----------
    curves : mapping of str to mapping of (str, str) to array, shape (k,)
        For each method, R@1 to R@k by query and target view, as returned by
        `mvcca.retrieval.RetrievalTable.recall_curves`. A single method may be named "".

    Attributes
    ----------
    line_ : dict of str to list of matplotlib Line2D
        For each method, a line per direction, or their mean.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from mvcca import CCA
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.plotting import RecallCurveDisplay
    >>> views = load_digits_views().views
    >>> models = {f"ridge {r}": CCA(20, reg=r).fit(views[:1000]) for r in (0.01, 1.0)}
    >>> display = RecallCurveDisplay.from_estimator(models, views[1000:])
    """

    line_: dict[str, list[Line2D]]

    def __init__(self, curves: Mapping[str, Mapping[tuple[str, str], np.ndarray]]) -> None:
        self.curves = curves

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ViewsLike,
        y: LabelsLike | None = None,
        *,
        k: int = 50,
        relevance: RelevanceBy | None = None,
        directions: Directions = "cross",
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the recall of fitted estimators, each ranked by the similarity that it declares.

        Parameters
        ----------
        estimator : fitted estimator, or mapping of str to fitted estimators
            One method, or several by name.
        X : Views, mapping or list of matrices
            Rows of the fitted views, queries and gallery.
        y : labels, optional
            Labels that define relevant items.
        k : int, default=50
            Length of the longest list.
        relevance, directions
            See `mvcca.evaluate_retrieval`, which has other options, too.
        ax, **kwargs
            See `plot`.

        Returns
        -------
        RecallCurveDisplay
        """
        how: Any = {"measures": "mr", "relevance": relevance, "directions": directions}
        is_one = not isinstance(estimator, Mapping)
        models = {type(estimator).__name__: estimator} if is_one else estimator
        tables = {n: evaluate_retrieval(X, y, estimator=one, **how) for n, one in models.items()}
        curves = {name: table.recall_curves(k) for name, table in tables.items()}
        return cls(curves).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default new axes.
        **kwargs
            Keywords of `matplotlib.axes.Axes.plot`, for all lines.

        Returns
        -------
        self
        """
        self.ax_ = ax = tidy_axes(ax, grid="both")
        from matplotlib.ticker import NullFormatter, PercentFormatter, ScalarFormatter

        longest = 1
        self.line_ = {}
        for number, (name, directions) in enumerate(self.curves.items()):
            values = np.stack(list(directions.values()))
            longest = max(longest, values.shape[1])
            place = np.arange(1, values.shape[1] + 1)
            if len(values) > 2:  # too many lines to distinguish
                draw_band(ax, place, values, color(number))
                values = values.mean(axis=0, keepdims=True)
            style = {"color": color(number), "linewidth": 1.6}
            self.line_[name] = [
                draw_line(ax, place, curve, kwargs, linestyle=dash, **style)
                for curve, dash in zip(values, _DASHES, strict=False)
            ]
        ax.set(xscale="log", xlim=(1, longest), xlabel="Length of the list k", ylabel="Recall@k")
        ax.set_ylim(bottom=0)
        ax.set_xticks([k for k in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if k <= longest])
        ax.xaxis.set_major_formatter(ScalarFormatter())
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.yaxis.set_major_formatter(PercentFormatter(1))
        ax.legend(handles=self._keys(), frameon=False, loc="best")
        draw_title(ax, "Share of queries whose item is among the first k")
        return self

    def frame(self) -> DataFrame:
        """One row per method, direction and length of the list."""
        return data_frame(
            {"method": method, "query": query, "target": target, "k": k, "recall": recall}
            for method, directions in self.curves.items()
            for (query, target), curve in directions.items()
            for k, recall in enumerate(curve, start=1)
        )

    def _keys(self) -> list[Any]:
        """Legend entries of methods and directions."""
        from matplotlib.patches import Patch

        methods = [line_key(m, color=color(i)) for i, m in enumerate(self.curves) if m]
        directions = list(next(iter(self.curves.values())))
        if len(directions) > 2:
            label = f"from worst to best of {len(directions)} directions"
            return [*methods, Patch(color=GREY, alpha=0.3, linewidth=0, label=label)]
        return methods + [
            line_key(f"{query} → {target}", color=GREY, linestyle=dash)
            for dash, (query, target) in zip(_DASHES, directions, strict=False)
        ]
