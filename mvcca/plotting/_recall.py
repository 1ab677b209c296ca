"""Recall@k as a function of k, for methods and directions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from mvcca.measures import Ties
from mvcca.plotting._display import Display
from mvcca.plotting._style import GREY, color, literal, styled, tidy_axes
from mvcca.retrieval import recall_curve
from mvcca.retrieval.evaluate import Directions
from mvcca.retrieval.relevance import RelevanceBy
from mvcca.retrieval.similarity import Similarity
from mvcca.views import holds_views
from mvcca.views.typing import LabelsLike, ViewsLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

_DASHES: tuple[Literal["-", "--"], ...] = ("-", "--")  # for the two directions between two views


class RecallCurveDisplay(Display):
    """Recall@k as a function of k, for one or several methods.

    Each method has a colour. For two views there is a line per direction; for more views, the mean
    over directions is drawn with a band from the worst to the best.

    Parameters
    ----------
    curves : mapping of str to mapping of (str, str) to array, shape (k,)
        For each method, the result of `mvcca.retrieval.recall_curve`: R@1 to R@k by query and
        target view. A single method may be named "".

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
        similarity: Similarity | None = None,
        relevance: RelevanceBy | None = None,
        directions: Directions = "cross",
        exclude_self: bool = True,
        ties: Ties = "average",
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the recall of fitted estimators.

        Parameters
        ----------
        estimator : fitted estimator, or mapping of str to fitted estimators
            One method, or several by name.
        X : Views, mapping or list of matrices
            Held-out rows: queries and gallery.
        y : labels, optional
            Labels that define relevant items.
        k, similarity, relevance, directions, exclude_self, ties
            See `mvcca.retrieval.recall_curve`. By default each estimator is ranked by the
            similarity that it declares.
        ax : matplotlib Axes, optional
            Axes to draw on; by default new axes.
        **kwargs
            Keywords of `matplotlib.axes.Axes.plot`, for all lines.

        Returns
        -------
        RecallCurveDisplay
        """
        if not isinstance(estimator, Mapping):
            estimator = {type(estimator).__name__: estimator}
        compute = partial(
            recall_curve,
            X,
            y,
            k=k,
            similarity=similarity,
            relevance=relevance,
            directions=directions,
            exclude_self=exclude_self,
            ties=ties,
        )
        return cls({name: compute(estimator=one) for name, one in estimator.items()}).plot(
            ax, **kwargs
        )

    @classmethod
    def from_scores(
        cls,
        scores: ViewsLike | Mapping[str, ViewsLike],
        y: LabelsLike | None = None,
        *,
        k: int = 50,
        similarity: Similarity | None = None,
        relevance: RelevanceBy | None = None,
        directions: Directions = "cross",
        exclude_self: bool = True,
        ties: Ties = "average",
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the recall of projected rows.

        Parameters
        ----------
        scores : Views, mapping or list of matrices, or mapping of str to these
            Projected rows; those of several methods by name.
        y : labels, optional
            Labels that define relevant items.
        k, similarity, relevance, directions, exclude_self, ties
            See `mvcca.retrieval.recall_curve`.
        ax : matplotlib Axes, optional
            Axes to draw on; by default new axes.
        **kwargs
            Keywords of `matplotlib.axes.Axes.plot`, for all lines.

        Returns
        -------
        RecallCurveDisplay
        """
        methods: Any = scores if _are_methods(scores) else {"": scores}
        compute = partial(
            recall_curve,
            labels=y,
            k=k,
            similarity=similarity,
            relevance=relevance,
            directions=directions,
            exclude_self=exclude_self,
            ties=ties,
        )
        return cls({name: compute(scores) for name, scores in methods.items()}).plot(ax, **kwargs)

    def _draw(self, ax: Axes | None, given: dict[str, Any]) -> Axes:
        ax = tidy_axes(ax, grid="both")
        from matplotlib.lines import Line2D
        from matplotlib.ticker import NullFormatter, PercentFormatter, ScalarFormatter

        longest = 1
        self.line_ = {}
        for number, (name, directions) in enumerate(self.curves.items()):
            values = np.stack(list(directions.values()))
            longest = max(longest, values.shape[1])
            place = np.arange(1, values.shape[1] + 1)
            if len(values) > 2:  # too many lines to distinguish
                band = values.min(axis=0), values.max(axis=0)
                ax.fill_between(place, *band, color=color(number), alpha=0.15, linewidth=0)
                values = values.mean(axis=0, keepdims=True)
            style = {"color": color(number), "linewidth": 1.6}
            self.line_[name] = [
                ax.plot(place, curve, **styled({"linestyle": dash, **style}, given, Line2D))[0]
                for curve, dash in zip(values, _DASHES, strict=False)
            ]
        ax.set(xscale="log", xlim=(1, longest), xlabel="Length of the list k", ylabel="Recall@k")
        ax.set_ylim(bottom=0)
        ax.set_xticks([k for k in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if k <= longest])
        ax.xaxis.set_major_formatter(ScalarFormatter())
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.yaxis.set_major_formatter(PercentFormatter(1))
        self._explain(ax)
        return ax

    def _explain(self, ax: Axes) -> None:
        """Draw a legend of methods and directions."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        handles: list[Any] = [
            Line2D([], [], color=color(number), label=literal(method))
            for number, method in enumerate(self.curves)
            if method
        ]
        directions = list(next(iter(self.curves.values())))
        if len(directions) > 2:
            label = f"from worst to best of {len(directions)} directions"
            handles.append(Patch(color=GREY, alpha=0.3, linewidth=0, label=label))
        else:
            handles += [
                Line2D([], [], color=GREY, linestyle=dash, label=literal(f"{query} → {target}"))
                for dash, (query, target) in zip(_DASHES, directions, strict=False)
            ]
        ax.legend(handles=handles, frameon=False, loc="best")


def _are_methods(scores: Any) -> bool:
    """Whether scores are a mapping of methods to projected rows."""
    return isinstance(scores, Mapping) and all(holds_views(of) for of in scores.values())
