"""Queries with the items that they retrieve, as images or as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import shorten
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mvcca.plotting._display import Display, data_frame
from mvcca.plotting._drawing import draw_title, styled
from mvcca.plotting.style import FAINT, GREY, RIGHT, WRONG, literal, tidy_axes
from mvcca.retrieval import evaluate_retrieval
from mvcca.retrieval.ranking import Weighting
from mvcca.retrieval.similarity import Similarity
from mvcca.views import Views, as_views
from mvcca.views.typing import LabelsLike, ViewsLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage
    from matplotlib.patches import Rectangle
    from matplotlib.text import Text
    from pandas import DataFrame

_INCH = 0.9  # inches, width of an image with its margins: the unit of what follows
_IMAGE = 0.42  # half an image
_GAP = 0.3  # between the query and its items
_TEXT_LINE = 0.22  # height of a line of text
_CHARACTERS = 40  # of a text
_PER_INCH = 14  # characters
_NARROWEST = 3.2  # inches of a figure, below which its title has no room


class RetrievedDisplay(Display):
    """Queries in the first column, each followed by the items it retrieves, best first.

    Images have a frame: solid green around relevant items, dashed orange around others. Texts
    begin with a tick or a cross.

    Parameters
    ----------
    queries : sequence of images or of str
        Images are arrays of shape (height, width), or (height, width, 3) with colours.
    items : sequence of sequences of images or of str
        For each query, what it retrieves.
    relevant : array of bool, shape (n_queries, k)
        Whether each item is relevant.

    Attributes
    ----------
    im_ : list of matplotlib AxesImage
        Images in reading order.
    frame_ : list of matplotlib Rectangle
        Frames of retrieved images.
    text_ : list of matplotlib Text
        Texts in reading order.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Raises
    ------
    ValueError
        If there are no queries, or not as many lists of items.

    Examples
    --------
    >>> from mvcca import MLCCA
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.plotting import RetrievedDisplay
    >>> data = load_digits_views()
    >>> model = MLCCA(n_components=None, reg="cv").fit(data.views[:1200], data.labels[:1200])
    >>> display = RetrievedDisplay.from_estimator(
    ...     model, data.views[1200:], data.labels[1200:], show=(8, 4), queries=3
    ... )
    """

    im_: list[AxesImage]
    frame_: list[Rectangle]
    text_: list[Text]

    def __init__(self, queries: Sequence[Any], items: Sequence[Any], relevant: np.ndarray) -> None:
        shape = np.shape(relevant)
        if not len(queries) or shape != (len(queries), len(items[0]) if len(items) else 0):
            raise ValueError(
                f"Expected a list of items for each query and the relevance of each item, got "
                f"{len(queries)} queries, {len(items)} lists and relevance of shape {shape}."
            )
        self.queries, self.items, self.relevant = queries, items, np.asarray(relevant, dtype=bool)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ViewsLike,
        y: LabelsLike | None = None,
        *,
        query: str | None = None,
        target: str | None = None,
        queries: int | Sequence[int] = 5,
        k: int = 8,
        show: Any = None,
        similarity: Similarity | None = None,
        weighting: Weighting | None = "auto",
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Search with rows that a fitted estimator projects.

        Parameters
        ----------
        estimator : fitted estimator
            Ranks by default as it declares.
        X : Views, mapping or list of matrices
            Rows of the fitted views, queries and gallery.
        y : labels, optional
            Items that share a label with the query are relevant; by default those of its object.
        query, target : str, optional
            The two views; by default the first two.
        queries : int or sequence of int, default=5
            The first so many objects that can be queries, or positions among these.
        k : int, default=8
            Number of items for each query.
        show : tuple of int, or mapping of str to array, sequence of str or tuple, optional
            What a row looks like, by view or for all views: its image (an array of images, with a
            row for each of the view's rows, or a shape to bring the features into) or a text. By
            default the row labels of a DataFrame, or the row number.
        similarity, weighting
            See `mvcca.evaluate_retrieval`.
        ax, **kwargs
            See `plot`.

        Returns
        -------
        RetrievedDisplay

        Raises
        ------
        ValueError
            If a view is unknown, there are fewer queries, or `show` does not have a row for each
            row of its view.
        """
        rows = as_views(X, getattr(estimator, "view_names_", None)).in_memory()
        first, second = _direction(rows, query, target)
        relevance: Any = "pairs" if y is None else "labels"
        table = evaluate_retrieval(
            rows,
            y,
            measures="r@1",
            similarity=similarity,
            weighting=weighting,
            relevance=relevance,
            directions=[(first, second)],
            estimator=estimator,
            keep_run=k,
        )
        run = table.rows[0].runs[relevance]
        chosen = np.arange(queries) if isinstance(queries, int) else np.asarray(queries, dtype=int)
        if not len(chosen) or chosen.min() < 0 or chosen.max() >= len(run.queries):
            raise ValueError(f"There are {len(run.queries)} queries, got queries={queries!r}.")
        gains = [run.relevance.gains_of_items(slice(i, i + 1), run.items[[i]])[0] for i in chosen]
        looks = {name: _looks(rows, name, show) for name in {first, second}}
        return cls(
            [looks[first][i] for i in run.queries[chosen]],
            [[looks[second][j] for j in run.items[i]] for i in chosen],
            np.array(gains) > 0,
        ).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default new axes.
        **kwargs
            Keywords of `matplotlib.axes.Axes.imshow`, or of `matplotlib.axes.Axes.text` if there
            are only texts.

        Returns
        -------
        self
        """
        n_queries, k = self.relevant.shape
        of_texts, asks_texts = (isinstance(one, str) for one in (self.items[0][0], self.queries[0]))
        first = _width(self.queries) if asks_texts else 1.0
        start = first + _GAP
        second = _width([item for items in self.items for item in items]) if of_texts else k
        tall = max(1.0, _TEXT_LINE * k) if of_texts else 1.0  # lines of a query
        if asks_texts and of_texts:
            tall = _TEXT_LINE * (k + 0.5)
        most = [_CHARACTERS, _CHARACTERS]
        if ax is None:
            ax = tidy_axes()
            width, height = _INCH * (start + second) + 0.3, _INCH * (n_queries * tall + 0.3) + 0.3
            ax.figure.set_size_inches(min(max(width, _NARROWEST), 12), height)
        else:
            unit = ax.get_window_extent().width / ax.figure.dpi / (start + second)  # inches
            most = [max(int(width * unit * _PER_INCH), 3) for width in (first, second)]
        self.ax_ = tidy_axes(ax)
        ax.set_axis_off()
        self.im_, self.frame_, self.text_ = [], [], []
        for number, (query, items, relevant) in enumerate(
            zip(self.queries, self.items, self.relevant, strict=True)
        ):
            line = number * tall
            self._place(ax, query, 0.0 if asks_texts else 0.5, line, kwargs, most[0])
            for place, (item, right) in enumerate(zip(items, relevant, strict=True)):
                if of_texts:
                    middle = line + tall * ((place + 0.5) / k - 0.5) * (k / (k + 0.5))
                    mark = "✓" if right else "✗"
                    text = self._place(ax, f"{mark} {item}", start, middle, kwargs, most[1])
                    text.set_color(RIGHT if right else WRONG)
                else:
                    image = self._place(ax, item, start + place + 0.5, line, kwargs, 0)
                    self.frame_.append(_framed(ax, image.get_extent(), right))
        top, bottom = -0.5 * tall, (n_queries - 0.5) * tall
        between = (np.arange(n_queries - 1) + 0.5) * tall
        rules = {"color": FAINT, "linewidth": 1, "zorder": 0}
        ax.hlines(between, 0, start + second, **rules)
        ax.vlines(first + _GAP / 2, top, bottom, **{**rules, "color": GREY})
        ax.set(xlim=(-0.1, start + second + 0.1), ylim=(bottom + 0.05, top - 0.05))
        ax.set_aspect("auto" if of_texts and asks_texts else "equal")
        draw_title(ax, "Queries and what they retrieve")
        return self

    def frame(self) -> DataFrame:
        """One row per query and item: their places, texts (None for images) and relevance."""
        return data_frame(
            {
                "query": number,
                "rank": place + 1,
                "query_text": query if isinstance(query, str) else None,
                "item_text": item if isinstance(item, str) else None,
                "relevant": bool(self.relevant[number, place]),
            }
            for number, (query, items) in enumerate(zip(self.queries, self.items, strict=True))
            for place, item in enumerate(items)
        )

    def _place(self, ax: Axes, what: Any, x: float, y: float, given: Any, most: int) -> Any:
        """Draw an image around a point, or a text of at most so many characters to its right."""
        from matplotlib.image import AxesImage
        from matplotlib.text import Text

        only_texts = isinstance(self.queries[0], str) and isinstance(self.items[0][0], str)
        if isinstance(what, str):
            style = {"va": "center", "fontsize": "small"}
            text = literal(_shortened(what, most))
            self.text_.append(
                ax.text(x, y, text, **styled(style, given if only_texts else {}, Text))
            )
            return self.text_[-1]
        wide = min(1.0, what.shape[1] / what.shape[0]), min(1.0, what.shape[0] / what.shape[1])
        half = _IMAGE * np.array(wide)
        box = (x - half[0], x + half[0], y + half[1], y - half[1])
        image = ax.imshow(what, **styled({"cmap": "gray_r", "extent": box}, given, AxesImage))
        self.im_.append(image)
        return image


def _width(texts: Sequence[str]) -> float:
    """Width of a column of texts, in widths of an image."""
    longest = max(len(_shortened(text, _CHARACTERS)) for text in texts) + 3
    return longest / (_INCH * _PER_INCH)


def _shortened(text: str, most: int) -> str:
    """A text in one line, cut after a word if possible."""
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    return shorten(line, most, placeholder="…") if " " in line[:most] else f"{line[: most - 1]}…"


def _direction(views: Views, query: str | None, target: str | None) -> tuple[str, str]:
    """Names of the two views, each by default the first one that is not the other."""
    for name in (query, target):
        if name is not None and name not in views:
            raise ValueError(f"Unknown view {name!r}; the views are {list(views.names)}.")
    if query is None:
        query = next(name for name in views.names if name != target or len(views.names) == 1)
    if target is None:
        target = next((name for name in views.names if name != query), query)
    return query, target


def _looks(views: Views, name: str, show: Any) -> Any:
    """An image or a text for each row of a view."""
    n_rows = views[name].shape[0]
    own = show.get(name) if isinstance(show, Mapping) else show
    if own is None:
        ids = views.ids_of(name)
        return [str(i) for i in (range(n_rows) if ids is None else ids)]
    if isinstance(own, tuple):
        block = views.block(name).dense().matrix
        if np.prod(own) != block.shape[1]:
            raise ValueError(f"View {name!r} has {block.shape[1]} features, got the shape {own}.")
        return block.reshape(-1, *own)
    if len(own) != n_rows:
        raise ValueError(f"show must have {n_rows} rows for view {name!r}, got {len(own)}.")
    return [str(text) for text in own] if isinstance(own[0], str) else np.asarray(own)


def _framed(ax: Axes, box: Any, right: bool) -> Rectangle:
    from matplotlib.patches import Rectangle

    x0, x1, y0, y1 = box
    style = {"edgecolor": RIGHT if right else WRONG, "linestyle": "-" if right else (0, (2, 2))}
    frame = Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, linewidth=2, **style)
    ax.add_patch(frame)
    return frame
