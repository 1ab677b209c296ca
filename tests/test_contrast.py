"""Contrast of figures and of the HTML report (WCAG 2.2, criteria 1.4.3 and 1.4.11)."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from mvcca.plotting.style import COLORS, GREY, RIGHT, WRONG

STYLE = (files("mvcca.machine") / "templates" / "page.css").read_text(encoding="utf-8")
TEXT, LINES = 4.5, 3.0  # the least contrast of each


def luminance(color):
    """Relative luminance of an sRGB colour, as WCAG defines it."""
    assert re.fullmatch("#[0-9a-f]{6}", color), color
    encoded = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in encoded
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    """Between 1 for equal colours and 21 for black on white."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def schemes():
    """The variables of the light scheme and, with those that it changes, of the dark one."""
    light, dark = (
        dict(re.findall(r"--(\w+): (#\w+);", block))
        for block in re.findall(r":root \{(.*?)\}", STYLE, re.S)
    )
    return {"light": light, "dark": light | dark}


def test_contrast_is_that_of_the_standard():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)  # just not enough


@pytest.mark.parametrize("color", [*COLORS, GREY])
def test_lines_of_figures_are_seen_on_white(color):
    assert contrast(color, "#ffffff") >= LINES


@pytest.mark.parametrize("color", [RIGHT, WRONG])
def test_marks_of_retrieved_items_are_read_on_white(color):
    assert contrast(color, "#ffffff") >= TEXT


@pytest.mark.parametrize("ground", ["page", "card", "best"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_of_pages_is_seen_on_its_ground(scheme, ground):
    colors = schemes()[scheme]
    for name in ("ink", "faint", "right", "wrong"):
        assert contrast(colors[name], colors[ground]) >= TEXT, name


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_figures_of_pages_have_the_colours_of_plots_and_are_seen_in_both_schemes(scheme):
    colors = schemes()[scheme]
    tones = [colors[f"tone{number}"] for number in range(len(COLORS))]
    assert all(contrast(tone, colors["page"]) >= LINES for tone in tones)
    assert len(set(tones)) == len(COLORS)
    if scheme == "light":
        assert tones == list(COLORS)
        assert colors["wrong"] == WRONG


def test_the_style_names_colours_in_variables():
    rules = re.sub(r":root \{.*?\}", "", STYLE, flags=re.S)
    assert not re.findall(r"#[0-9a-fA-F]{3,6}\b", rules)
    used = set(re.findall(r"var\(--(\w+)\)", rules)) | {f"tone{i}" for i in range(len(COLORS))}
    assert used == schemes()["light"].keys() == schemes()["dark"].keys()
