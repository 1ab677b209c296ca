"""HTML pages of results: templates of a folder ``templates``, and the page that they extend."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from mvcca.machine.printable import printable

if TYPE_CHECKING:
    from jinja2 import Template


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
