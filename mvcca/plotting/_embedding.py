"""The shared space of all views in two dimensions."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from mvcca.blocks.checks import to_array
from mvcca.machine import lapack
from mvcca.measures import unit_rows
from mvcca.plotting._display import Display, points_frame, projected_objects
from mvcca.plotting._drawing import draw_points, draw_title, legend_beside, point_key, point_size
from mvcca.plotting._groups import group_keys, group_styles, groups_of
from mvcca.plotting.style import GREY, color, marker, tidy_axes
from mvcca.views import Views, as_views
from mvcca.views.typing import LabelsLike, MatrixLike, ViewsLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection, PathCollection
    from pandas import DataFrame

Method = Literal["pca", "tsne"]


class EmbeddingDisplay(Display):
    """Projected rows of all views in two dimensions, with a marker per view and a colour per label.

    Parameters
    ----------
    scores : Views, mapping or list of matrices of shape (n_rows, n_components)
        Projected rows of one or more views; a few hundred to a few thousand.
    groups : labels, optional
        One class or label set per object, or the labels of each view's rows by view name. The ten
        most frequent labels have a colour, the others are grey. By default each view has a colour.
    method : {"pca", "tsne"}, default="pca"
        Dimensionality reduction of the shared space.
    similarity : {"cosine", "euclidean"}, default="cosine"
        Similarity of rows; for "cosine", as in retrieval, rows are scaled to unit length.
    random_state : int, RandomState or None, default=None
        Seed for t-SNE.

    Attributes
    ----------
    scatter_ : dict of str to matplotlib PathCollection
        By view name.
    lines_ : list of matplotlib LineCollection
        Lines between the views of each object, one collection per pair of neighbouring views.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Raises
    ------
    ValueError
        If there are fewer than two components, or an option is unknown.

    Examples
    --------
    >>> from mvcca import MLCCA
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.plotting import EmbeddingDisplay
    >>> data = load_digits_views()
    >>> model = MLCCA(9, reg=0.01).fit(data.views[:1000], data.labels[:1000])
    >>> display = EmbeddingDisplay.from_estimator(
    ...     model, data.views[1000:], groups=data.labels[1000:]
    ... )
    """

    scatter_: dict[str, PathCollection]
    lines_: list[LineCollection]

    def __init__(
        self,
        scores: ViewsLike,
        groups: LabelsLike | None = None,
        *,
        method: Method = "pca",
        similarity: Literal["cosine", "euclidean"] = "cosine",
        random_state: Any = None,
    ) -> None:
        scores = as_views(scores).in_memory()
        blocks = {name: to_array(block, float) for name, block in scores.items()}
        if similarity not in ("cosine", "euclidean"):
            raise ValueError(f"similarity must be 'cosine' or 'euclidean', got {similarity!r}.")
        if similarity == "cosine":
            blocks = {name: unit_rows(block) for name, block in blocks.items()}
        plane = _reduced(np.concatenate(list(blocks.values())), method, random_state)
        ends = np.cumsum([len(block) for block in blocks.values()])[:-1]
        self.points = scores.replace(dict(zip(blocks, np.split(plane, ends), strict=True)))
        self.groups = groups_of(groups, scores)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ViewsLike | MatrixLike,
        y: MatrixLike | None = None,
        *,
        groups: LabelsLike | None = None,
        method: Method = "pca",
        similarity: Literal["cosine", "euclidean"] = "cosine",
        random_state: Any = None,
        lines: bool = False,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw rows that a fitted estimator projects.

        Parameters
        ----------
        estimator, X, y
            See `Display.from_estimator`.
        groups, method, similarity, random_state
            See the class.
        lines, ax, **kwargs
            See `plot`.

        Returns
        -------
        EmbeddingDisplay
        """
        scores = projected_objects(estimator, X, y)
        found = cls(scores, groups, method=method, similarity=similarity, random_state=random_state)
        return found.plot(ax, lines=lines, **kwargs)

    def plot(self, ax: Axes | None = None, *, lines: bool = False, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default new axes.
        lines : bool, default=False
            Whether to connect the views of each object by a line.
        **kwargs
            Keywords of `matplotlib.axes.Axes.scatter`, for the points of all views.

        Returns
        -------
        self
        """
        self.ax_ = ax = tidy_axes(ax, layout="compressed")
        ax.set(xticks=[], yticks=[], aspect="equal")
        ax.spines[:].set_visible(False)  # the axes of an embedding have no meaning
        joined = list(pairwise(self.points.names)) if lines else []
        self.lines_ = [_join(ax, self.points.select(pair)) for pair in joined]
        styles = group_styles(self.groups, markers=False)
        size = point_size(sum(block.shape[0] for _, block in self.points.items()))
        self.scatter_, views = {}, []
        for number, (name, block) in enumerate(self.points.items()):
            tone: Any = color(number)
            if self.groups is not None:
                tone = [styles[self.groups[i]][0] for i in self.points.objects(name)]
            self.scatter_[name] = draw_points(
                ax, block, kwargs, c=tone, marker=marker(number), s=size, alpha=0.75
            )
            views.append(point_key(name, marker(number), GREY if styles else color(number)))
        legend_beside(ax, [*views, *group_keys(styles)], handletextpad=0.2)
        draw_title(ax, "All views in one plane: near rows are alike")
        return self

    def frame(self) -> DataFrame:
        """One row per row of each view: its object, group and coordinates."""
        return points_frame(self.points, self.groups)


def _reduced(rows: np.ndarray, method: str, random_state: Any) -> np.ndarray:
    if rows.shape[1] < 2:
        raise ValueError(f"An embedding needs at least 2 components, got {rows.shape[1]}.")
    if method == "pca":
        centred = rows - rows.mean(axis=0)
        return centred @ lapack.svd(centred)[2][:2].T
    if method == "tsne":
        from sklearn.manifold import TSNE

        perplexity = min(30.0, (len(rows) - 1) / 3)
        return TSNE(perplexity=perplexity, random_state=random_state).fit_transform(rows)
    raise ValueError(f"method must be 'pca' or 'tsne', got {method!r}.")


def _join(ax: Axes, pair: Views) -> LineCollection:
    from matplotlib.collections import LineCollection

    both = pair[pair.seen.all(axis=1)]
    ends = np.stack([both[name] for name in both.names], axis=1)
    lines = LineCollection(list(ends), colors=GREY, linewidths=0.4, alpha=0.4, zorder=0)
    ax.add_collection(lines)
    return lines
