"""What screen readers read in place of an image, where its author wrote nothing.

A thumbnail gets the title of its example. A figure of an example gets the sentence above it, which
says what it shows, and so does every other image; the title of the section if there is none.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes

EXAMPLES = Path(__file__).parent / "examples"


def title_of_example(name: str) -> str:
    """Title of the example ``plot_NAME.py``."""
    text = next(EXAMPLES.glob(f"*/plot_{name}.py")).read_text(encoding="utf-8")
    return text.splitlines()[1]


def first_sentence(text: str) -> str:
    """The first sentence of a paragraph, in one line."""
    return re.split(r"(?<=[.:?!])\s+(?=[A-Z])", " ".join(text.split()), maxsplit=1)[0].rstrip(":")


def before(node: Any) -> Iterator[Any]:
    """Nodes before a node, from the nearest one: siblings, then those of its parents."""
    while node.parent is not None:
        place = node.parent.index(node)
        yield from reversed(node.parent.children[:place])
        node = node.parent


def text_above(node: Any) -> str:
    """First sentence of the nearest paragraph above a node, or the nearest title."""
    for found in before(node):
        if isinstance(found, nodes.paragraph) and len(found.astext()) > 20:
            return first_sentence(found.astext())
        if isinstance(found, nodes.title):
            return found.astext()
    return "Figure"


def describe_images(_app: Any, doctree: Any) -> None:
    """Give every image of a page a text."""
    for image in doctree.findall(nodes.image):
        if not image.get("alt"):
            thumbnail = re.search(r"sphx_glr_plot_(\w+?)_thumb", image["uri"])
            image["alt"] = title_of_example(thumbnail[1]) if thumbnail else text_above(image)
    for image in doctree.findall(lambda node: type(node).__name__ == "imgsgnode"):
        image["alt"] = html.escape(text_above(image))  # sphinx-gallery writes it as it is
