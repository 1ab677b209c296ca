"""The table of all displays: how each is drawn, what it shows, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer

from mvcca import plotting
from mvcca.plotting import (
    ArrowsDisplay,
    AssociationsDisplay,
    AurocDisplay,
    BiplotDisplay,
    CorrelationDisplay,
    EmbeddingDisplay,
    LoadingsDisplay,
    RecallCurveDisplay,
    RetrievedDisplay,
    SamplesDisplay,
)
from mvcca.plotting.style import NEGATIVE

RED = "#ff0000"
HEAT = {"alpha": 0.5}
PUBLIC = {*plotting.__all__} - {"Display"}


class Case(NamedTuple):
    """One way to draw a display, for a model of two views of three variables, and for 20 objects.

    `framed` reads values from the frame, and `shown` the same ones from the artists. `wrong` asks
    for something that cannot be drawn, for the reason that the error message gives.
    """

    display: Any
    artist: str  # that takes the keywords
    framed: Callable[[Any], Any]
    shown: Callable[[Any], Any]
    wrong: Callable[[Any, Any], Any]
    reason: str
    options: dict[str, Any] = {}  # noqa: RUF012
    keywords: dict[str, Any] = {"color": RED}  # noqa: RUF012
    takes_matrices: bool = True  # y is the second matrix; else labels
    needs_labels: bool = False
    n_components: int = 2  # the least number
    n_rows: int | None = None  # of the frame

    def draw(self, model: Any, *views: Any, n_objects: int = 20, **given: Any) -> Any:
        """Draw the display of a fitted model."""
        options = self.labels(n_objects) | self.options | given
        return self.display.from_estimator(model, *views, **options)

    def labels(self, n_objects: int = 20) -> dict[str, Any]:
        """Labels, if the display needs some."""
        return {"y": np.resize(["a", "b", "c"], n_objects)} if self.needs_labels else {}


# ---- what artists show --------------------------------------------------------------------------


def artists(kept: Any) -> list[Artist]:
    """All artists in lists, arrays and dicts."""
    if isinstance(kept, BarContainer):
        return list(kept.patches)
    if isinstance(kept, Artist):
        return [kept]
    parts: Iterable[Any] = kept.values() if isinstance(kept, dict) else np.ravel(kept)
    return [artist for part in parts for artist in artists(part)]


def points(display: Any) -> np.ndarray:
    """All points."""
    return np.concatenate([np.asarray(s.get_offsets()) for s in artists(display.scatter_)])


def heights(display: Any) -> np.ndarray:
    """Heights of all lines."""
    return np.concatenate([line.get_ydata() for line in artists(display.line_)])


def cells(display: Any) -> np.ndarray:
    """Values of all cells that are not empty."""
    return np.ma.masked_invalid(display.im_.get_array()).compressed()


def ends(display: Any) -> np.ndarray:
    """Starts of all arrows of two views, then their tips."""
    (arrows,) = display.arrow_.values()
    return np.concatenate([arrows.XY, arrows.XY + np.c_[arrows.U, arrows.V]])


def are_negative(display: Any) -> np.ndarray:
    """Whether lines have the colour of negative values, the widest line first."""
    widths, tones = display.line_.get_linewidths(), display.line_.get_color()
    order = np.argsort(-np.asarray(widths), kind="stable")
    return np.array([to_hex(tones[i]) == NEGATIVE for i in order])


def of_objects(frame: Any) -> Any:
    """Coordinates of the objects of a biplot."""
    return frame[frame["kind"] == "object"][["x", "y"]]


# ---- displays of rows ---------------------------------------------------------------------------

OF_ROWS = [
    Case(
        ArrowsDisplay,
        "arrow_",
        lambda frame: frame[["x", "y"]],
        ends,
        lambda model, X: ArrowsDisplay.from_estimator(model, X, components=(0, 2)),
        "numbered from 0 to 1, got 2",
        n_rows=2 * 20,
    ),
    Case(
        AurocDisplay,
        "im_",
        lambda frame: frame.sort_values(["view", "component", "label"])["auroc"],
        lambda display: np.concatenate(np.split(np.asarray(display.im_.get_array()), 2)[::-1]),
        lambda model, X: AurocDisplay.from_estimator(model, X),
        "needs labels: pass them as y",
        keywords=HEAT,
        takes_matrices=False,
        needs_labels=True,
        n_components=1,
        n_rows=2 * 2 * 3,
    ),
    Case(
        BiplotDisplay,
        "scatter_",
        of_objects,
        points,
        lambda model, X: BiplotDisplay.from_estimator(model, X, components=(0,)),
        r"Expected two components, got \(0,\)",
        n_rows=20 + 6,
    ),
    Case(
        AssociationsDisplay,
        "line_",
        lambda frame: frame["value"] < 0,
        are_negative,
        lambda model, X: AssociationsDisplay.from_estimator(model, X, cutoff=2),
        r"No pair of variables reaches cutoff=2; the largest association is 0\.\d\d",
        {"kind": "circos"},
        n_components=1,
        n_rows=3 * 3,
    ),
    Case(
        AssociationsDisplay,
        "im_",
        lambda frame: frame["value"],
        cells,
        lambda model, X: AssociationsDisplay.from_estimator(
            model, X, kind="heatmap", views=("body", "mind")
        ),
        r"Expected two different views of \['exercise', 'body'\]",
        {"kind": "heatmap"},
        HEAT,
        n_components=1,
        n_rows=3 * 3,
    ),
    Case(
        CorrelationDisplay,
        "line_",
        lambda frame: frame["correlation"],
        heights,
        lambda model, X: CorrelationDisplay.from_estimator({"one": model}, X, X_test=X),
        "Pass the held-out rows as X and omit X_test",
        n_components=1,
        n_rows=2,
    ),
    Case(
        EmbeddingDisplay,
        "scatter_",
        lambda frame: frame[["x", "y"]],
        points,
        lambda model, X: EmbeddingDisplay.from_estimator(model, X, method="umap"),
        "method must be 'pca' or 'tsne', got 'umap'",
        takes_matrices=False,
        n_rows=2 * 20,
    ),
    Case(
        LoadingsDisplay,
        "bar_",
        lambda frame: np.sort(frame[frame["component"] == 0]["loading"]),
        lambda display: np.sort([bar.get_width() for bar in artists(display.bar_)]),
        lambda model, X: LoadingsDisplay.from_estimator(model, X, cutoff=1.5),
        r"No variable reaches cutoff=1.5; the largest length is 0\.\d\d",
        n_components=1,
        n_rows=6 * 2,
    ),
    Case(
        LoadingsDisplay,
        "scatter_",
        lambda frame: frame["loading"].to_numpy().reshape(-1, 2),
        points,
        lambda model, X: LoadingsDisplay.from_estimator(model, X, kind="circle", components=0),
        r"needs 2 component\(s\), got 0",
        {"kind": "circle"},
        n_rows=6 * 2,
    ),
    Case(
        LoadingsDisplay,
        "im_",
        lambda frame: frame["loading"],
        cells,
        lambda model, X: LoadingsDisplay.from_estimator(model, X, kind="heatmap", components=[5]),
        "numbered from 0 to 1, got 5",
        {"kind": "heatmap"},
        HEAT,
        n_components=1,
        n_rows=6 * 2,
    ),
    Case(
        AssociationsDisplay,
        "line_",
        lambda frame: frame["value"] < 0,
        are_negative,
        lambda model, X: AssociationsDisplay.from_estimator(model, X, components=[2]),
        r"numbered from 0 to 1, got \[2\]",
        n_components=1,
        n_rows=3 * 3,
    ),
    Case(
        RecallCurveDisplay,
        "line_",
        lambda frame: frame["recall"],
        heights,
        lambda model, X: RecallCurveDisplay.from_estimator(model, X, relevance="labels"),
        "needs labels; there are none",
        takes_matrices=False,
        n_components=1,
        n_rows=2 * 50,
    ),
    Case(
        RetrievedDisplay,
        "text_",
        lambda frame: frame["relevant"],
        lambda display: [
            text.get_text()[0] == "✓" for text in display.text_ if text.get_text()[0] in "✓✗"
        ],
        lambda model, X: RetrievedDisplay.from_estimator(model, X, query="mind"),
        "Unknown view 'mind'; the views are",
        {"k": 3},
        HEAT,
        takes_matrices=False,
        n_components=1,
        n_rows=5 * 3,
    ),
    Case(
        SamplesDisplay,
        "scatter_",
        lambda frame: frame[["x", "y"]],
        points,
        lambda model, X: SamplesDisplay.from_estimator(model, X, level=2),
        "level must be between 0 and 1, or None, got 2",
        n_rows=2 * 20,
    ),
]

CASES = OF_ROWS


def name_of(case: Case) -> str:
    """Name of a case in the list of tests."""
    return f"{case.display.__name__}-{case.artist}"
