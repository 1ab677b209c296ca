"""Heat map of a small matrix with names at its sides and values in its cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mvcca.plotting._drawing import styled
from mvcca.plotting.style import literal, tidy_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

_MOST_CELLS = 225  # values in more cells would overlap
_FONT, _SMALLEST = 10, 4  # points, of names at the sides
_BESIDE = 30  # points beside the axes, which names of rows may take
_LINE, _CHARACTER = 1.2, 0.6  # height and mean width of a letter, in sizes of the font
_LUMINANCE = (0.2126, 0.7152, 0.0722)  # of linear red, green and blue


def draw_heatmap(
    ax: Axes | None,
    values: np.ndarray,
    names: tuple[Sequence[str], Sequence[str]] | None,
    label: str,
    defaults: Mapping[str, Any],
    given: Mapping[str, Any],
    *,
    digits: int | None = 2,
) -> tuple[Axes, AxesImage, np.ndarray | None]:
    """Draw a matrix; return the axes, the image and the texts in the cells, if there is space.

    `names` are those of rows and columns. NaN is left empty.
    """
    ax = tidy_axes(ax, layout="compressed" if defaults.get("aspect") == "equal" else "constrained")
    from matplotlib.image import AxesImage

    image = ax.imshow(values, **styled({"aspect": "auto", **defaults}, given, AxesImage))
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    ax.figure.colorbar(image, ax=ax, label=label)
    if names is not None:
        name_sides(ax, *names)
    if digits is None or values.size > _MOST_CELLS:
        return ax, image, None
    texts = np.empty(values.shape, dtype=object)
    for (i, j), value in np.ndenumerate(values):
        shown = "" if np.isnan(value) else f"{round(value, digits) + 0.0:.{digits}f}"  # no -0.00
        tone = _readable_on(image.cmap(image.norm(value)))
        texts[i, j] = ax.text(j, i, shown, ha="center", va="center", color=tone, fontsize="small")
    return ax, image, texts


def name_sides(ax: Axes, rows: Sequence[str], columns: Sequence[str]) -> None:
    """Name rows and columns in a font that fits between them; leave names out that none fits."""
    texts = [[literal(str(name)) for name in names] for names in (columns, rows)]
    longest = _CHARACTER * max(map(len, texts[0]), default=0)
    space = ax.get_window_extent().size * 72 / ax.figure.dpi  # points
    space[0] = max(space[0] - width_beside(rows), 0.2 * space[0])
    pitches = space / [abs(np.diff(ax.get_xlim())[0]), abs(np.diff(ax.get_ylim())[0])]
    turned = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    if longest * _FONT <= pitches[0]:
        turned = {}
    elif pitches[0] < 2 * _FONT:
        turned = {"rotation": 90, "ha": "center", "va": "top"}
    for axis, names, pitch, style in (
        (ax.xaxis, texts[0], pitches[0], turned),
        (ax.yaxis, texts[1], pitches[1], {}),
    ):
        size = min(_FONT, pitch / _LINE)
        if size >= _SMALLEST:
            axis.set_ticks(range(len(names)), names, fontsize=size, **style)
        else:
            axis.set_ticks([])


def width_beside(rows: Sequence[str]) -> float:
    """Points that names of rows take from the width of the axes."""
    return max(_FONT * _CHARACTER * max((len(str(name)) for name in rows), default=0) - _BESIDE, 0)


def _readable_on(ground: tuple[float, float, float, float]) -> str:
    """Black or white, whichever has more contrast (WCAG 2.2)."""
    encoded = np.array(ground[:3])
    linear = np.where(encoded > 0.04045, ((encoded + 0.055) / 1.055) ** 2.4, encoded / 12.92)
    return "black" if linear @ _LUMINANCE > 0.179 else "white"
