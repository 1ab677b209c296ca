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
        rows, columns = names
        ax.set_yticks(range(len(rows)), [literal(str(name)) for name in rows])
        long = len(columns) * max(len(str(name)) for name in columns) > 40
        turned = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if long else {}
        ax.set_xticks(range(len(columns)), [literal(str(name)) for name in columns], **turned)
    if digits is None or values.size > _MOST_CELLS:
        return ax, image, None
    texts = np.empty(values.shape, dtype=object)
    for (i, j), value in np.ndenumerate(values):
        shown = "" if np.isnan(value) else f"{round(value, digits) + 0.0:.{digits}f}"  # no -0.00
        tone = _readable_on(image.cmap(image.norm(value)))
        texts[i, j] = ax.text(j, i, shown, ha="center", va="center", color=tone, fontsize="small")
    return ax, image, texts


def _readable_on(ground: tuple[float, float, float, float]) -> str:
    """Black or white, whichever has more contrast (WCAG 2.2)."""
    encoded = np.array(ground[:3])
    linear = np.where(encoded > 0.04045, ((encoded + 0.055) / 1.055) ** 2.4, encoded / 12.92)
    return "black" if linear @ _LUMINANCE > 0.179 else "white"
