"""Which variables make a component: their loadings as bars, or in the circle of correlations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from mvcca.inspection import loadings, variable_correlations
from mvcca.plotting._style import FAINT, GREY, color, literal, tidy_axes
from mvcca.views import holds_views

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class LoadingsDisplay:
    """The largest loadings of all views.

    Parameters
    ----------
    loadings : mapping of str to array, shape (n_features, n_components)
        What `mvcca.inspection.loadings` gives.
    feature_names : mapping of str to sequence of str, optional
        Names of each view's variables; by default the view's name and a number.

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
        X: Any,
        y: Any = None,
        *,
        variates: str | None = None,
        feature_names: Mapping[str, Sequence[str]] | None = None,
        **options: Any,
    ) -> Self:
        """Draw the loadings that a fitted estimator has on given rows.

        Parameters
        ----------
        estimator : fitted estimator
            Anything whose ``transform`` takes and gives `mvcca.views.Views`.
        X : Views, mapping, list of matrices, or matrix
            Rows of the fitted views.
        y : matrix, optional
            The second view, if X is a lone matrix.
        variates : str, optional
            The view whose variates all variables are correlated with. By default each view's own.
        feature_names : mapping of str to sequence of str, optional
            Names of the variables, by view; those of DataFrames are taken from them.
        **options
            As `plot` takes them.

        Returns
        -------
        LoadingsDisplay
        """
        values = loadings(estimator, X, y, variates=variates)
        frames = X if holds_views(X) else {"X": X, "y": y}
        return cls(values, feature_names or _columns(frames, values)).plot(**options)

    @classmethod
    def from_scores(
        cls,
        scores: Any,
        X: Any,
        *,
        variates: str | None = None,
        feature_names: Mapping[str, Sequence[str]] | None = None,
        **options: Any,
    ) -> Self:
        """Draw the loadings of rows that are projected already.

        Parameters
        ----------
        scores : Views, mapping or list of matrices of shape (n_rows, n_components)
            Projected rows.
        X : Views, mapping or list of matrices
            The same rows, as they were.
        variates, feature_names, **options
            As `from_estimator` takes them.

        Returns
        -------
        LoadingsDisplay
        """
        values = variable_correlations(X, scores, variates=variates)
        return cls(values, feature_names or _columns(X, values)).plot(**options)

    def plot(
        self,
        ax: Any = None,
        *,
        kind: Literal["bar", "circle"] = "bar",
        components: int | tuple[int, int] | None = None,
        n_top: int = 12,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; new axes by default.
        kind : {"bar", "circle"}, default="bar"
            One component as bars, or two of them as a plane, where a variable's distance from the
            centre is how much of it they explain.
        components : int or pair of int, optional
            Which component, from 0, or which two; by default the first, or the first two.
        n_top : int, default=12
            How many variables are shown as bars, or named in the circle: the largest over all
            views.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If `kind` is unknown, or does not go with `components`; if `feature_names` names an
            unknown view, or not all features of one.
        """
        if kind not in ("bar", "circle"):
            raise ValueError(f"kind must be 'bar' or 'circle', got {kind!r}.")
        if components is None:
            components = 0 if kind == "bar" else (0, 1)
        wanted = [components] if isinstance(components, int) else list(components)
        if len(wanted) != (1 if kind == "bar" else 2):
            raise ValueError(
                f"kind={kind!r} shows {1 if kind == 'bar' else 2} component(s), got {components!r}."
            )
        chosen = np.concatenate([values[:, wanted] for values in self.loadings.values()])
        top = np.argsort(-np.linalg.norm(chosen, axis=1), kind="stable")[:n_top]
        draw = self._draw_bars if kind == "bar" else self._draw_circle
        ax = draw(ax, chosen, top, wanted)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_bars(self, ax: Any, chosen: np.ndarray, top: np.ndarray, wanted: list[int]) -> Axes:
        ax = tidy_axes(ax, grid="x")
        top = top[np.argsort(chosen[top, 0], kind="stable")]
        views, names = self._views(), self._names()
        place = np.arange(len(top))
        for number, name in enumerate(self.loadings):
            mine = views[top] == number
            ax.barh(
                place[mine],
                chosen[top[mine], 0],
                color=color(number),
                height=0.7,
                label=literal(name),
            )
        ax.axvline(0, color=GREY, linewidth=0.8)
        ax.set_yticks(place, [literal(names[i]) for i in top])
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
        ax.set(xlim=(-1, 1), xlabel=f"Loading on component {wanted[0] + 1}")
        ax.legend(frameon=False, loc="best")
        return ax

    def _draw_circle(self, ax: Any, chosen: np.ndarray, top: np.ndarray, wanted: list[int]) -> Axes:
        ax = tidy_axes(ax)
        from matplotlib.patches import Circle

        for radius in (0.5, 1.0):
            ax.add_patch(Circle((0, 0), radius, fill=False, color=FAINT))
        ax.axhline(0, color=FAINT, linewidth=0.8, zorder=0)
        ax.axvline(0, color=FAINT, linewidth=0.8, zorder=0)
        views, names = self._views(), self._names()
        for number, name in enumerate(self.loadings):
            mine = views == number
            ax.scatter(
                *chosen[mine].T, color=color(number), s=30, linewidths=0, label=literal(name)
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
        ax.set(xlabel=f"Component {wanted[0] + 1}", ylabel=f"Component {wanted[1] + 1}")
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
                    f"feature_names has the view {name!r}; the views are {list(self.loadings)}."
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


def plot_loadings(estimator: Any, X: Any, y: Any = None, **options: Any) -> Axes:
    """Draw the largest loadings; see `LoadingsDisplay.from_estimator`.

    Parameters
    ----------
    estimator : fitted estimator
        Anything whose ``transform`` takes and gives `mvcca.views.Views`.
    X, y
        Rows of the fitted views.
    **options
        As `LoadingsDisplay.from_estimator` takes them.

    Returns
    -------
    matplotlib Axes
    """
    return LoadingsDisplay.from_estimator(estimator, X, y, **options).ax_


def _columns(X: Any, values: Mapping[str, np.ndarray]) -> dict[str, list[str]]:
    """Column names of the views that are DataFrames."""
    blocks = X if isinstance(X, list | tuple) else [X[name] for name in values]
    return {
        name: [str(column) for column in block.columns]
        for name, block in zip(values, blocks, strict=True)
        if hasattr(block, "columns")
    }
