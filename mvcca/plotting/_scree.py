"""Canonical correlations beside those of permuted rows."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import DataDimensionalityWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mvcca.inspection import component_correlations, permutation_test, views_of
from mvcca.plotting._display import Display, data_frame
from mvcca.plotting._drawing import draw_line, draw_title
from mvcca.plotting.style import GREY, color, tidy_axes
from mvcca.views import Views
from mvcca.views.typing import MatrixLike, ViewsLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.lines import Line2D
    from pandas import DataFrame

_BAND = (5, 95)  # percentiles


class ScreeDisplay(Display):
    """Correlations of the components in decreasing order, beside those of permuted rows.

    The band holds 90 % of the permutations. A component above it has a correlation that shuffled
    pairs rarely reach.

    Parameters
    ----------
    correlations : array, shape (n_components,)
        Correlations of the training rows.
    permuted : array, shape (n_permutations, n_components)
        Correlations of permuted rows.
    p_values : array, shape (n_components,), optional
        P-values; components from 0.05 on are drawn as open circles.

    Attributes
    ----------
    line_ : matplotlib Line2D
        The correlations.
    band_ : matplotlib PolyCollection
        From the 5th to the 95th percentile of the permutations.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Raises
    ------
    ValueError
        If the numbers of components differ.

    References
    ----------
    .. [1] Winkler, Renaud, Smith and Nichols, "Permutation inference for canonical correlation
       analysis", NeuroImage 220, 2020: the test of `from_rows`.
    .. [2] Horn, "A rationale and test for the number of factors in factor analysis",
       Psychometrika 30(2), 1965: the parallel analysis of `from_estimator`.

    Examples
    --------
    >>> from mvcca.datasets import make_gaussian_views
    >>> from mvcca.plotting import ScreeDisplay
    >>> views = make_gaussian_views(300, correlations=(0.8, 0.5), random_state=0).views
    >>> display = ScreeDisplay.from_rows(views, n_permutations=99, random_state=0)
    >>> display.significant.tolist()
    [True, True, False, False, False]
    """

    line_: Line2D
    band_: PolyCollection

    def __init__(
        self,
        correlations: np.ndarray,
        permuted: np.ndarray,
        p_values: np.ndarray | None = None,
    ) -> None:
        self.correlations, self.permuted = np.asarray(correlations), np.asarray(permuted)
        if self.permuted.ndim != 2 or self.permuted.shape[1] != len(self.correlations):
            raise ValueError(
                f"Expected permuted correlations of shape (n_permutations, "
                f"{len(self.correlations)}), got {self.permuted.shape}."
            )
        self.p_values = p_values

    @property
    def significant(self) -> np.ndarray:
        """Whether each p-value is below 0.05; without p-values, whether it is above the band."""
        if self.p_values is not None:
            return np.asarray(self.p_values) < 0.05
        return self.correlations > np.percentile(self.permuted, _BAND[1], axis=0)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ViewsLike | MatrixLike,
        y: MatrixLike | None = None,
        *,
        n_permutations: int = 99,
        random_state: Any = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Compare a fitted estimator with clones fitted on permuted rows (parallel analysis).

        Component i is compared with component i of the clones. After strong components this
        is too liberal; for p-values of two views use `from_rows`. Correlations of more than two
        views are means over pairs of views.

        Parameters
        ----------
        estimator : fitted estimator
            An estimator that learns from pairs, without labels. It is fitted `n_permutations`
            times.
        X : Views, mapping, list of matrices, or matrix
            The paired rows that the estimator was fitted on.
        y : matrix, optional
            The second view, if X is a single matrix.
        n_permutations : int, default=99
            Number of permutations.
        random_state : int, RandomState or None, default=None
            Seed for the permutations.
        ax, **kwargs
            See `plot`.

        Returns
        -------
        ScreeDisplay

        Raises
        ------
        ValueError
            If some object is not seen in all views.
        """
        check_is_fitted(estimator)
        views = views_of(X, y, getattr(estimator, "view_names_", None))
        if not views.is_paired:
            raise ValueError(
                "Permuting pairs needs objects that are seen in all views, got "
                f"{sorted(set(views.pattern.tolist()))}. Select them with "
                "views[views.seen.all(axis=1)]."
            )
        rng = check_random_state(random_state)
        permuted = []
        with warnings.catch_warnings(action="ignore", category=DataDimensionalityWarning):
            for _ in range(n_permutations):  # as many rows as the estimator was fitted on
                shuffled = _shuffled(views, rng)
                permuted.append(_mean_correlations(clone(estimator).fit(shuffled), shuffled))
        return cls(_mean_correlations(estimator, views), np.array(permuted)).plot(ax, **kwargs)

    @classmethod
    def from_rows(
        cls,
        X: ViewsLike | MatrixLike,
        y: MatrixLike | None = None,
        *,
        n_permutations: int = 999,
        random_state: Any = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the stepwise permutation test of two views by Roy's statistic.

        See `mvcca.inspection.permutation_test`: its statistic "roy" is the correlation itself.

        Parameters
        ----------
        X : Views, mapping, list of matrices, or matrix
            Two paired views, or the first of them.
        y : matrix, optional
            The second view, if X is a single matrix.
        n_permutations, random_state
            See `mvcca.inspection.permutation_test`.
        ax, **kwargs
            See `plot`.

        Returns
        -------
        ScreeDisplay
        """
        test = permutation_test(
            X, y, statistic="roy", n_permutations=n_permutations, random_state=random_state
        )
        return cls(test.correlations, test.permuted, test.p_values).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default new axes.
        **kwargs
            Keywords of `matplotlib.axes.Axes.plot`, for the line of correlations.

        Returns
        -------
        self
        """
        self.ax_ = ax = tidy_axes(ax, grid="y")
        place = np.arange(1, len(self.correlations) + 1)
        low, high = np.percentile(self.permuted, _BAND, axis=0)
        label = f"90 % of {len(self.permuted)} permutations"
        # Edges are visible where the fill alone would be too faint.
        style = {"facecolor": GREY, "alpha": 0.4, "edgecolor": GREY, "linewidth": 1}
        self.band_ = ax.fill_between(place, low, high, label=label, **style)
        observed = {"color": color(0), "linewidth": 1.2, "marker": "o", "label": "observed"}
        self.line_ = draw_line(ax, place, self.correlations, kwargs, **observed)
        within = ~self.significant
        if within.any():
            what = "within the band" if self.p_values is None else "p ≥ 0.05"
            ax.plot(
                place[within],
                self.correlations[within],
                linestyle="",
                marker=self.line_.get_marker(),
                markersize=self.line_.get_markersize(),
                markerfacecolor="white",
                markeredgecolor=self.line_.get_color(),
                label=what,
            )
        ax.set(xlabel="Component", ylabel="Correlation")
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_ylim(bottom=min(0.0, float(min(low.min(), self.correlations.min()))))
        ax.legend(frameon=False)
        draw_title(ax, f"{self.significant.sum()} of {len(place)} correlations are above chance")
        return self

    def frame(self) -> DataFrame:
        """One row per component: its correlation, the band, and whether it is significant."""
        low, high = np.percentile(self.permuted, _BAND, axis=0)
        return data_frame(
            component=range(len(low)),
            correlation=self.correlations,
            low=low,
            high=high,
            significant=self.significant,
        )


def _shuffled(views: Views, rng: np.random.RandomState) -> Views:
    """The same rows, with those of all views but the first in random order."""
    blocks = dict(views.items())
    for name in views.names[1:]:
        block = views[rng.permutation(len(views))][name]
        # Row labels of pandas would say that the rows do not belong together.
        blocks[name] = block.set_axis(blocks[name].index) if hasattr(block, "iloc") else block
    return Views(blocks)


def _mean_correlations(estimator: Any, views: Views) -> np.ndarray:
    """Correlation of each component on training rows, mean over pairs of views."""
    return np.mean(list(component_correlations(estimator, views).values()), axis=0)
