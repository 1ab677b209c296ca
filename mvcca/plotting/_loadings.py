"""Loadings of variables on components, as bars or in a correlation circle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from mvcca.inspection import loadings, variable_correlations
from mvcca.plotting._style import FAINT, GREY, color, literal, tidy_axes
from mvcca.typing import MatrixLike, ViewsLike
from mvcca.views import holds_views

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class LoadingsDisplay:
    """The largest loadings of all views.

    Parameters
    ----------
    loadings : mapping of str to array, shape (n_features, n_components)
        Result of `mvcca.inspection.loadings`.
    feature_names : mapping of str to sequence of str, optional
        Names of each view's variables; by default the name of the view and a number.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from mvcca import CCA
    >>> from mvcca.plotting import LoadingsDisplay
    >>> data = load_linnerud(as_frame=True)
    >>> views = {"exercise": data.data, "body": data.target}
    >>> display = LoadingsDisplay.from_estimator(CCA(2).fit(views), views, kind="circle")
    """

    ax_: Axes
    figure_: Figure

    def __init__(
        self,
        loadings: Mapping[str, np.ndarray],
        feature_names: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.loadings = loadings
        self.feature_names = feature_names

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ViewsLike | MatrixLike,
        y: MatrixLike | None = None,
        *,
        variates: str | None = None,
        feature_names: Mapping[str, Sequence[str]] | None = None,
        kind: Literal["bar", "circle"] = "bar",
        components: int | tuple[int, int] | None = None,
        n_top: int = 12,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the loadings of a fitted estimator on given rows.

        Parameters
        ----------
        estimator : fitted estimator
            Any model whose ``transform`` maps `mvcca.views.Views` to `Views`.
        X : Views, mapping, list of matrices, or matrix
            Rows of the fitted views.
        y : matrix, optional
            The second view, if X is a single matrix.
        variates : str, optional
            The view whose variates are used for all views; by default each view's own.
        feature_names : mapping of str to sequence of str, optional
            Names of the variables, by view; by default the column names of DataFrames.
        kind, components, n_top, ax
            See `plot`.

        Returns
        -------
        LoadingsDisplay
        """
        values = loadings(estimator, X, y, variates=variates)
        frames = X if holds_views(X) else {"X": X, "y": y}
        display = cls(values, feature_names or _columns(frames, values))
        return display.plot(ax, kind=kind, components=components, n_top=n_top)

    @classmethod
    def from_scores(
        cls,
        scores: ViewsLike,
        X: ViewsLike,
        *,
        variates: str | None = None,
        feature_names: Mapping[str, Sequence[str]] | None = None,
        kind: Literal["bar", "circle"] = "bar",
        components: int | tuple[int, int] | None = None,
        n_top: int = 12,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the loadings of projected rows.

        Parameters
        ----------
        scores : Views, mapping or list of matrices of shape (n_rows, n_components)
            Projected rows.
        X : Views, mapping or list of matrices
            The same rows before projection.
        variates, feature_names
            See `from_estimator`.
        kind, components, n_top, ax
            See `plot`.

        Returns
        -------
        LoadingsDisplay
        """
        values = variable_correlations(X, scores, variates=variates)
        display = cls(values, feature_names or _columns(X, values))
        return display.plot(ax, kind=kind, components=components, n_top=n_top)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        kind: Literal["bar", "circle"] = "bar",
        components: int | tuple[int, int] | None = None,
        n_top: int = 12,
    ) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default new axes.
        kind : {"bar", "circle"}, default="bar"
            Bars for one component, or a circle for two, in which the distance of a variable from
            the centre shows how much of it the components explain.
        components : int or pair of int, optional
            Component or pair of components, from 0; by default the first one or two.
        n_top : int, default=12
            Number of variables, those with the largest loadings over all views, to show as bars or
            to name in the circle.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If `kind` is unknown or does not match `components`, or `feature_names` has an unknown
            view or not all features of a view.
        """
        if kind not in ("bar", "circle"):
            raise ValueError(f"kind must be 'bar' or 'circle', got {kind!r}.")
        if components is None:
            components = 0 if kind == "bar" else (0, 1)
        shown = [components] if isinstance(components, int) else list(components)
        if len(shown) != (1 if kind == "bar" else 2):
            raise ValueError(
                f"kind={kind!r} needs {1 if kind == 'bar' else 2} component(s), got {components!r}."
            )
        chosen = np.concatenate([values[:, shown] for values in self.loadings.values()])
        top = np.argsort(-np.linalg.norm(chosen, axis=1), kind="stable")[:n_top]
        draw = self._draw_bars if kind == "bar" else self._draw_circle
        ax = draw(ax, chosen, top, shown)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_bars(self, ax: Any, chosen: np.ndarray, top: np.ndarray, shown: list[int]) -> Axes:
        ax = tidy_axes(ax, grid="x")
        top = top[np.argsort(chosen[top, 0], kind="stable")]
        views, names = self._views(), self._names()
        place = np.arange(len(top))
        for number, name in enumerate(self.loadings):
            rows = views[top] == number
            ax.barh(
                place[rows],
                chosen[top[rows], 0],
                color=color(number),
                height=0.7,
                label=literal(name),
            )
        ax.axvline(0, color=GREY, linewidth=0.8)
        ax.set_yticks(place, [literal(names[i]) for i in top])
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
        ax.set(xlim=(-1, 1), xlabel=f"Loading on component {shown[0] + 1}")
        ax.legend(frameon=False, loc="best")
        return ax

    def _draw_circle(self, ax: Any, chosen: np.ndarray, top: np.ndarray, shown: list[int]) -> Axes:
        ax = tidy_axes(ax)
        from matplotlib.patches import Circle

        for radius in (0.5, 1.0):
            ax.add_patch(Circle((0, 0), radius, fill=False, color=FAINT))
        ax.axhline(0, color=FAINT, linewidth=0.8, zorder=0)
        ax.axvline(0, color=FAINT, linewidth=0.8, zorder=0)
        views, names = self._views(), self._names()
        for number, name in enumerate(self.loadings):
            rows = views == number
            ax.scatter(
                *chosen[rows].T, color=color(number), s=30, linewidths=0, label=literal(name)
            )
        for i in top:
            x, y = chosen[i]
            ax.annotate(
                literal(names[i]),
                (x, y),
                xytext=(6 if x >= 0 else -6, 0),
                textcoords="offset points",
                ha="left" if x >= 0 else "right",
                va="center",
                fontsize="small",
            )
        ax.set(aspect="equal", xlim=(-1.05, 1.05), ylim=(-1.05, 1.05))
        ax.set(xlabel=f"Component {shown[0] + 1}", ylabel=f"Component {shown[1] + 1}")
        ax.spines[:].set_visible(False)
        ax.set(xticks=[-1, -0.5, 0, 0.5, 1], yticks=[-1, -0.5, 0, 0.5, 1])
        ax.tick_params(length=0)
        ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        return ax

    def _views(self) -> np.ndarray:
        """Number of the view of each variable."""
        return np.repeat(
            np.arange(len(self.loadings)), [len(values) for values in self.loadings.values()]
        )

    def _names(self) -> list[str]:
        given = self.feature_names or {}
        for name, names in given.items():
            if name not in self.loadings:
                raise ValueError(
                    f"Unknown view {name!r} in feature_names; the views are {list(self.loadings)}."
                )
            if len(names) != len(self.loadings[name]):
                raise ValueError(
                    f"feature_names must name all {len(self.loadings[name])} features of view "
                    f"{name!r}, got {len(names)} names."
                )
        return [
            str(given[name][j]) if name in given else f"{name} {j}"
            for name, values in self.loadings.items()
            for j in range(len(values))
        ]


def _columns(X: Any, values: Mapping[str, np.ndarray]) -> dict[str, list[str]]:
    """Column names of the views that are DataFrames."""
    blocks = X if isinstance(X, list | tuple) else [X[name] for name in values]
    return {
        name: [str(column) for column in block.columns]
        for name, block in zip(values, blocks, strict=True)
        if hasattr(block, "columns")
    }
