"""Figures of pages: text stays as it is, colours are the page's, and names are not shared."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="drawing needs mvcca[plot]")

from mvcca.machine.axes import COLORS, FAINT, GREY
from mvcca.machine.pictures import Illustration, Picture, pixels_of
from mvcca.views import Views

NAMES = ["<b>&\"'", "#3f90da", 'id="x" href="#x" url(#x)', "0.123456", "混合", "a-->b<!--"]


def drawn(shift=0.0):
    def draw(ax):
        for number, name in enumerate(NAMES):
            ax.plot([1, 2, 3], [number, 1 + shift, number], "o-", color=COLORS[number], label=name)
        ax.axhline(2, color=GREY)
        ax.grid(color=FAINT)
        ax.fill_between([1, 2], [1, 2], [2, 3], color=COLORS[6], alpha=0.3, label="area")
        ax.errorbar([1], [1], [[1], [1]], fmt="o", color=COLORS[7], label="interval")
        ax.set_yticks(range(len(NAMES)), NAMES)
        ax.legend()

    return Picture.of(draw, 3, 2, "title")


def test_text_is_what_was_written_and_no_markup():
    picture = drawn()
    svg = ET.fromstring(picture.svg)
    texts = ["".join(text.itertext()) for text in svg.iter("text")]
    assert [text for text in texts if text in NAMES] == NAMES
    keys = Illustration("", [picture, picture], "", "").keys
    assert list(keys) == [*NAMES, "area", "interval"]
    for sample in keys.values():
        assert list(ET.fromstring(sample).iter("path"))


def test_colours_are_variables_of_the_page():
    picture = drawn()
    styles = re.findall('style="(.*?)"', picture.svg)
    assert not [style for style in styles if re.search(r"#[0-9a-f]{6}\b", style)]
    for name in ("ink", "faint", "line", *(f"tone{number}" for number in range(8))):
        assert f"var(--{name})" in picture.svg, name
    sample = next(iter(Illustration("", [picture], "", "").keys.values()))
    assert "var(--tone0)" in sample
    assert "fill: white" not in picture.svg


def test_pictures_of_a_page_share_no_names_and_name_all_they_refer_to():
    one, other = drawn(), drawn(0.5)
    names = [re.findall(r"<[^>]* id=\"([^\"]*)\"", picture.svg) for picture in (one, other)]
    assert all(len(set(own)) == len(own) > 3 for own in names)
    assert not set(names[0]) & set(names[1])
    for own, picture in zip(names, (one, other), strict=True):
        tags = "".join(re.findall("<[^>]*>", picture.svg))
        assert set(re.findall(r'(?:href="|url\()#([^")]+)', tags)) == set(own)


def test_the_same_drawing_is_the_same_text():
    assert drawn().svg == drawn().svg


def test_images_are_black_where_they_are_not_transparent():
    import base64
    from io import BytesIO

    from matplotlib.image import imread

    address = pixels_of(np.array([[0.0, 0.5], [1.0, 2.0]]))
    shades = imread(BytesIO(base64.b64decode(address.partition(",")[2])))
    assert not shades[..., :3].any()
    np.testing.assert_allclose(shades[..., 3], [[0, 0.5], [1, 1]], atol=1 / 255)


def test_parts_of_an_image_outside_the_view_of_an_item_are_faded():
    import base64
    from io import BytesIO
    from types import SimpleNamespace

    from matplotlib.image import imread

    from mvcca.comparison.examples import Item
    from mvcca.comparison.figures import image

    views = Views({"left": [[1.0, 3.0], [2.0, 4.0]], "right": [[4.0, 4.0], [2.0, 2.0]]})
    shown = SimpleNamespace(
        image_shapes={"left": (2, 1), "right": (2, 1)}, layout=[["left", "right"]]
    )
    result = SimpleNamespace(data=SimpleNamespace(views=views), presentation=shown)
    address = image(result, Item("right", 1, 1, ""))
    shades = imread(BytesIO(base64.b64decode(address.partition(",")[2])))[..., 3]
    np.testing.assert_allclose(shades, [[0.1, 0.5], [0.2, 0.5]], atol=1 / 255)
