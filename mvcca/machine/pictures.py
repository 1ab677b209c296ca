"""Figures of HTML pages: vector graphics in the page, whose text and colours follow its scheme.

Colours of `mvcca.machine.axes` become variables of ``page.css``. Text stays text: the browser draws
it in the page's font, which has letters that matplotlib's font lacks. Titles and legends leave the
axes: pages have headings, and lists beside the axes, in which long names break and never cover what
is drawn.
"""

from __future__ import annotations

import base64
import re
import warnings
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from hashlib import sha1
from io import BytesIO, StringIO
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mvcca.machine.axes import COLORS, FAINT, GREY

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.figure import Figure

_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "mvcca",
    "font.size": 9.0,  # points: 12 pixels
    "axes.labelsize": 9.0,
    "savefig.pad_inches": 0.04,
}
_VARIABLES = {tone: f"var(--tone{number})" for number, tone in enumerate(COLORS)}
_VARIABLES |= {"#000000": "var(--ink)", GREY: "var(--faint)", FAINT: "var(--line)"}
_KEY_INCHES = (0.3, 0.15)


class Picture(NamedTuple):
    """A drawing as SVG.

    Attributes
    ----------
    svg : Markup
    width : int
        CSS pixels.
    legend : dict of str to matplotlib artist
        What was drawn, by name.
    title, note : str
        Which of several pictures it is.
    """

    svg: Markup
    width: int
    legend: Mapping[str, Any]
    title: str = ""
    note: str = ""

    @classmethod
    def of(
        cls,
        draw: Callable[[Any], Any],
        width: float,
        height: float,
        title: str = "",
        note: str = "",
    ) -> Picture:
        """Draw on new axes, in a figure of some inches that is not matplotlib's current one."""
        from matplotlib import rc_context
        from matplotlib.figure import Figure

        with rc_context(_STYLE), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing from font")  # the browser has it
            figure = Figure(figsize=(width, height), layout="constrained")
            ax = figure.subplots()
            draw(ax)
            ax.set_title("")  # the page has headings and captions
            legend = {}
            if (found := ax.get_legend()) is not None:
                texts = [text.get_text().replace(r"\$", "$") for text in found.get_texts()]
                legend = dict(zip(texts, found.legend_handles, strict=True))
                found.remove()
            svg, pixels = _svg(figure, "tight")
        return cls(svg, pixels, legend, title, note)


@dataclass(frozen=True)
class Illustration:
    """One or several pictures with a title and a common legend.

    Attributes
    ----------
    title : str
    pictures : sequence of Picture
    caption : str
        How to read it.
    source : str
        What it was measured on.
    """

    title: str
    pictures: Sequence[Picture]
    caption: str
    source: str

    @property
    def keys(self) -> dict[str, Markup]:
        """Samples of what is drawn in all pictures, by name."""
        merged = {label: handle for one in self.pictures for label, handle in one.legend.items()}
        return {label: _sample(handle) for label, handle in merged.items()}


def pixels_of(image: np.ndarray) -> str:
    """Data URL of intensities between 0 and 1: black, and transparent where they are 0."""
    from matplotlib.image import imsave

    shades = np.zeros((*image.shape, 4), dtype=np.uint8)
    shades[..., 3] = np.rint(255 * np.clip(image, 0, 1))
    buffer = BytesIO()
    imsave(buffer, shades, format="png", metadata={"Software": None})
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode('ascii')}"


def _sample(handle: Any) -> Markup:
    """A line with a marker, an error bar, or an area."""
    from matplotlib import rc_context
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Rectangle

    sample: Any
    if isinstance(handle, Line2D):
        sample = Line2D([0, 0.5, 1], [0.5, 0.5, 0.5])
        sample.update_from(handle)
        sample.set_markevery([1])
    elif isinstance(handle, LineCollection):
        ends = {"marker": "o", "markersize": 4, "markevery": [1]}
        sample = Line2D([0.5, 0.5, 0.5], [0, 0.5, 1], color=handle.get_color()[0], **ends)
    else:
        tone = np.atleast_2d(handle.get_facecolor())[0]
        sample = Rectangle((0, 0.1), 1, 0.8, color=tone, linewidth=0)
    with rc_context(_STYLE):
        figure = Figure(figsize=_KEY_INCHES)
        sample.set_transform(figure.transFigure)
        figure.add_artist(sample)
        return _svg(figure)[0]


def _svg(figure: Figure, box: str | None = None) -> tuple[Markup, int]:
    """The SVG element of a figure, without ids that could clash, and its width in CSS pixels."""
    from markupsafe import Markup

    buffer = StringIO()
    figure.savefig(
        buffer,
        format="svg",
        transparent=True,
        bbox_inches=box,
        metadata={"Date": None, "Creator": None},
    )
    text = buffer.getvalue()
    _, _, width, height = re.search(r'viewBox="([^"]*)"', text)[1].split()  # type: ignore[index]
    inner = re.sub(
        r"<!--.*?-->\s*", "", text[text.index("<g ") : text.rindex("</svg>")], flags=re.S
    )
    used = set(re.findall(r'(?:href="|url\()#([^")]+)', inner))
    mark = sha1(inner.encode(), usedforsecurity=False).hexdigest()[:8]
    # Text, in which matplotlib escapes "<", stays as it is.
    inner = re.sub(r"<[^>]*>", lambda tag: _in_page(tag[0], used, mark), inner)
    return Markup(f'<svg viewBox="0 0 {width} {height}">{inner}</svg>'), round(float(width) / 0.75)


def _in_page(tag: str, used: Set[str], mark: str) -> str:
    """A tag with variables for colours, and with a mark in the names that others refer to."""
    tag = re.sub(r' id="([^"]*)"', lambda m: f' id="{mark}-{m[1]}"' if m[1] in used else "", tag)
    tag = re.sub(r'(?:xlink:)?(href="|url\()#([^")]+)', rf"\1#{mark}-\2", tag)
    tag = re.sub(r"(\d\.\d\d)\d+", r"\1", tag)
    return re.sub(r"(?<!url\()#[0-9a-f]{6}\b", lambda m: _VARIABLES.get(m[0], m[0]), tag)
