"""Pages in a real browser: nothing overflows, nothing fails, and nothing is read from a network.

``make test-browser`` runs them. They need playwright and axe (``pip install "mvcca[browser]"``) and
a Chromium on PATH. ``MVCCA_SCREENSHOTS=FOLDER`` saves reports at all sizes, to be looked at.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mvcca import CCA, MLCCA, MVCCA, MVMLCCA, Views, compare
from mvcca.comparison.cases import example_data
from mvcca.datasets import load_digits_views
from mvcca.inspection import study

pytestmark = [pytest.mark.browser, pytest.mark.slow]

playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright is missing: pip install 'mvcca[browser]'"
)
imread = pytest.importorskip("matplotlib.image", reason="figures need mvcca[plot]").imread
WIDTHS = [1280, 400]
SCHEMES = ["light", "dark"]


@contextmanager
def running_browser() -> Iterator[Any]:
    """A headless Chromium."""
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
    if path is None:
        pytest.skip("no Chromium on PATH: apt install chromium")
    with playwright.sync_playwright() as session:
        running = session.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with running_browser() as running:
        yield running


def check_page(browser: Any, path: Path, width: int, scheme: str) -> Any:
    """Open a file and assert that it is sound; the caller may look at the page that is returned."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    requests: list[str] = []
    faults: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda line: faults.append(line.text) if line.type == "error" else None)
    page.goto(path.as_uri())
    page.evaluate("window.MathJax && MathJax.startup && MathJax.startup.promise")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert faults == []
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []
    return page


# ---- reports ------------------------------------------------------------------------------------

REPORTS = ["many", "images", "one", "study"]
SIZES = {"400": 400, "768": 768, "1280": 1280}  # by what they are called in names of tests
PAPER = {"A4": 210, "Letter": 215.9}  # millimetres, of which margins take 24
PIXELS = 96 / 25.4  # per millimetre


@pytest.fixture(scope="module")
def reports(tmp_path_factory) -> dict[str, Path]:
    """Pages of a large comparison with odd names, of images, of a single method, and of a study."""
    folder = tmp_path_factory.mktemp("reports")
    paths = {name: folder / f"{name}.html" for name in REPORTS}
    data = load_digits_views("quadrants")
    names = ("an image of the upper left part", "Überschrift <b>", "音声")
    views = Views({name: X for name, (_, X) in zip(names, data.views.items(), strict=False)})
    methods: dict[str, Any] = {f"MVCCA, ridge {reg}": MVCCA(5, reg=reg) for reg in (0.1, 1, 3, 9)}
    methods |= {f"MLCCA {k}": MLCCA(k, reg=0.1) for k in (2, 3, 5)}
    methods |= {
        "MVCCA with a ridge that was chosen by hand, after long thought": MVCCA(6, reg=0.1),
        "MVMLCCA_with_underscores_and_no_space_anywhere": MVMLCCA(5, reg=0.1, within="label"),
        "混合 <i>&amp;": MVCCA(1, reg=0.1),
        "CCA, of two views": CCA(5),
        "no such ridge": MVCCA(5, reg=-1.0),
    }
    measures = ["map@50", "r@1", "r@10", "mrr", "p@10", "mr", "ndcg@10"]
    many = compare(methods, views[:300], data.labels[:300], cv=3, measures=measures)
    many.save_page(paths["many"])
    (case,) = example_data("halves")
    case.compare(["cca", "pls", "mlcca"], cv=0.3).save_page(paths["images"])
    single = compare({"CCA": CCA(5, reg=0.1)}, case.views[:200], cv=0.5, measures="mrr")
    single.save_page(paths["one"])
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((120, 2))
    blocks = {
        name: pd.DataFrame(
            shared @ rng.standard_normal((2, p)) + 2 * rng.standard_normal((120, p)),
            columns=[f"a variable of {name} with a long name, {j}" for j in range(p)],
        )
        for name, p in (("brain", 12), ("behaviour", 6))
    }
    study(blocks, n_permutations=49, random_state=0).save_page(paths["study"])
    return paths


def saved(name: str) -> Path | None:
    """Where a picture is put for people to look at, if they asked for it."""
    folder = os.environ.get("MVCCA_SCREENSHOTS")
    return None if folder is None else Path(folder) / name


@pytest.fixture(
    scope="module",
    params=[(name, width, scheme) for name in REPORTS for width in SIZES for scheme in SCHEMES],
    ids="-".join,
)
def screen(request, browser, reports) -> Iterator[Any]:
    """A report on a screen of some width, with everything unfolded."""
    name, size, scheme = request.param
    page = check_page(browser, reports[name], SIZES[size], scheme)
    if picture := saved(f"{name}-{size}-{scheme}.png"):
        page.screenshot(path=picture, full_page=True)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("[...document.querySelectorAll('details')].every(one => one.open)")
    yield page
    page.context.close()


def test_a_report_is_sound_and_accessible(screen):
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright",
        reason="axe is missing: pip install 'mvcca[browser]'",
    )
    assert screen.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert screen.locator(".answers, .verdict").first.is_visible()
    found = axe.Axe().run(screen)
    assert found.violations_count == 0, found.generate_report()


def test_a_report_is_on_the_ground_of_its_scheme(screen):
    is_dark = screen.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    ground = screen.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(22, 25, 29)" if is_dark else "rgb(255, 255, 255)")


def test_names_of_rows_break_between_words_and_stay_in_sight(screen):
    width = screen.viewport_size["width"]
    lines = screen.evaluate(
        """[...document.querySelectorAll("tbody th")].map(head => {
            const text = document.createRange();
            text.selectNodeContents(head);
            const tops = new Set([...text.getClientRects()].map(box => Math.round(box.top)));
            return [head.textContent, tops.size];
        })"""
    )
    assert lines
    for text, n_lines in lines:
        assert len(text) / n_lines > min(6, len(text) - 1), text
    for table in screen.locator(".scroll").all():
        for reason in table.locator("td.reason span").all():
            box = reason.bounding_box()
            assert box["width"] > 100
            assert box["x"] + box["width"] <= width  # it is read without scrolling
        table.evaluate("one => one.scrollLeft = 10_000")
        box = table.locator("tbody th").first.bounding_box()
        assert 0 <= box["x"] < box["x"] + box["width"] <= width / 2
        table.evaluate("one => one.scrollLeft = 0")


def test_a_table_that_is_cut_says_so_at_its_edge(screen):
    n_cut = 0
    screen.add_style_tag(content="tr.best { background: none !important; }")  # up to the edge
    for table in screen.locator(".scroll").all():
        hidden = table.evaluate("one => one.scrollWidth - one.clientWidth")
        if 0 < hidden < 20:  # margins, not even the width of the shadow
            continue
        n_cut += hidden > 0
        assert is_shaded(table) == (hidden > 0)
        if hidden > 0:
            table.evaluate("one => one.scrollLeft = 10_000")
            assert not is_shaded(table)
            table.evaluate("one => one.scrollLeft = 0")
    width, is_large = screen.viewport_size["width"], "many" in screen.url
    assert (n_cut == 0) or width < 1280
    assert (n_cut > 0) or width > 400 or not is_large  # or this test shows nothing


def is_shaded(table: Any) -> bool:
    """Whether the right edge of an element is not as the page, over most of its height."""
    table.scroll_into_view_if_needed()
    shown = imread(BytesIO(table.screenshot(animations="disabled")))[..., :3]
    ground = table.page.evaluate("getComputedStyle(document.body).backgroundColor")
    tone = np.array([int(part) for part in re.findall(r"\d+", ground)]) / 255
    return bool((np.abs(shown[:, -3] - tone).max(axis=1) > 0.05).mean() > 0.4)


def test_figures_follow_the_scheme_and_their_text_is_read(screen):
    found = screen.evaluate(
        """[...document.querySelectorAll(".picture")].map(picture => ({
            box: picture.getBoundingClientRect().toJSON(),
            fills: [...picture.querySelectorAll("path, use, rect")].map(
                one => getComputedStyle(one).fill),
            texts: [...picture.querySelectorAll("text")].map(text => ({
                text: text.textContent,
                fill: getComputedStyle(text).fill,
                size: text.getBBox().height
                    * Math.hypot(text.getScreenCTM().a, text.getScreenCTM().b),
                box: text.getBoundingClientRect().toJSON(),
            })),
        }))"""
    )
    assert found
    ink = screen.evaluate("getComputedStyle(document.body).color")
    for picture in found:
        assert "rgb(255, 255, 255)" not in picture["fills"]  # no ground of its own
        outside = picture["box"]
        for one in picture["texts"]:
            assert one["fill"] == ink
            assert one["size"] > 11, one["text"]  # pixels of a line, in letters of 9.5
            box = one["box"]
            assert outside["left"] - 2 <= box["left"] <= box["right"] <= outside["right"] + 4
            assert outside["top"] - 2 <= box["top"] <= box["bottom"] <= outside["bottom"] + 2


def test_images_follow_the_scheme_and_letters_of_headings_stay_together(screen):
    is_dark = screen.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    filters = screen.evaluate(
        "[...document.images].map(image => getComputedStyle(image).filter)"
    )  # black on nothing
    assert set(filters) <= {"invert(1)" if is_dark else "none"}
    assert bool(filters) == ("images" in screen.url)
    broken = screen.evaluate(
        """[...document.querySelectorAll("thead th")].filter(head => {
            const text = document.createRange();
            text.selectNodeContents(head);
            const lines = new Set([...text.getClientRects()].map(box => Math.round(box.top)));
            return head.textContent.length < 13 && lines.size > head.textContent.split(" ").length;
        }).map(head => head.textContent)"""
    )
    assert broken == []


def test_bold_is_for_headings_and_best_values(screen):
    bold = screen.evaluate(
        """[...document.querySelectorAll("body *")].filter(one =>
            Number(getComputedStyle(one).fontWeight) > 500).map(one => one.localName)"""
    )
    assert set(bold) <= {"h1", "h2", "h3", "b"}
    assert screen.locator("b").count() == screen.locator("td > b").count() == bold.count("b")


def test_recall_curves_are_told_apart_by_colour_and_dashes(browser, reports):
    page = check_page(browser, reports["many"], 1280, "light")
    figure = page.locator("figure", has=page.get_by_role("heading", name="Recall"))
    keys = figure.locator(".keys li svg").evaluate_all("all => all.map(own => own.innerHTML)")
    assert len(keys) == figure.locator(".keys li").count() > 8
    assert len(set(keys)) == len(keys)
    page.context.close()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("paper", PAPER)
@pytest.mark.parametrize("name", REPORTS)
def test_a_report_prints_whole_and_on_white(browser, reports, name, paper, scheme):
    page = check_page(browser, reports[name], 1280, scheme)
    printed = page.pdf(format=paper, path=saved(f"{name}-{paper}-{scheme}.pdf"))
    assert len(re.findall(rb"/Type /Page\b", printed)) > 1
    # Printing has unfolded the page.
    assert page.evaluate("[...document.querySelectorAll('details')].every(one => one.open)")
    page.emulate_media(media="print", color_scheme=scheme)
    page.set_viewport_size({"width": int((PAPER[paper] - 24) * PIXELS), "height": 900})
    cut = page.evaluate(
        """[...document.querySelectorAll("td, th, text, p, li, dd, svg, img")].filter(
            one => one.getBoundingClientRect().right > innerWidth + 1).map(one => one.outerHTML)"""
    )
    assert cut == []
    look = page.evaluate(
        """[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color,
            ...new Set([...document.querySelectorAll(".scroll")].map(
                one => getComputedStyle(one).overflowX))]"""
    )
    assert look == ["rgb(255, 255, 255)", "rgb(28, 31, 35)", "visible"]
    page.context.close()
