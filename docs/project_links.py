"""Links to the repository and its issues, for the pages that name them.

They are those of ``[project.urls]`` in ``pyproject.toml``; without them, no page has such a link.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
ICONS = {  # by the labels that packaging tools know, in lower case
    "repository": "fa-solid fa-code",
    "source": "fa-solid fa-code",
    "issues": "fa-solid fa-bug",
    "bug tracker": "fa-solid fa-bug",
}


def icon_links(project: Path = PROJECT) -> list[dict[str, str]]:
    """Icons of the navigation bar, in the form of the theme."""
    urls = tomllib.loads(project.read_text(encoding="utf-8"))["project"].get("urls", {})
    return [
        {"name": label, "url": url, "icon": ICONS[label.lower()]}
        for label, url in urls.items()
        if label.lower() in ICONS
    ]
