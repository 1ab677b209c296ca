"""HTML pages of results: templates of a folder ``templates``, a common page, and figures in it."""

from __future__ import annotations

import base64
from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

from mvcca.machine.printable import printable

if TYPE_CHECKING:
    from jinja2 import Template
    from matplotlib.figure import Figure

_DPI = 150


class Picture(NamedTuple):
    """Data URL of an image, and its width in CSS pixels."""

    address: str
    width: int

    @classmethod
    def of(cls, figure: Figure) -> Picture:
        """A matplotlib figure, encoded as PNG."""
        buffer = BytesIO()
        # Tight, since a legend beside the axes may need more space than was reserved.
        figure.savefig(
            buffer, format="png", dpi=_DPI, bbox_inches="tight", metadata={"Software": None}
        )
        png = buffer.getvalue()
        width = int.from_bytes(png[16:20], "big") * 96 // _DPI  # CSS has 96 pixels to an inch
        return cls("data:image/png;base64," + base64.b64encode(png).decode("ascii"), width)


@cache
def template(package: str, name: str) -> Template:
    """A template of a package; it may extend ``page.html``, and import its macros."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("mvcca.machine")]),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(name)


def _shown(value: Any) -> Any:
    """Text of a template without control characters; rendered markup is left as it is."""
    is_plain = isinstance(value, str) and not hasattr(value, "__html__")
    return printable(value) if is_plain else value
