"""The built documentation: every link leads somewhere, every image has a text, and pages fit.

`make docs` builds it. The tests of pages in a browser also need playwright and axe (``pip install
"mvcca[browser]"``) and a Chromium on PATH.
"""

from __future__ import annotations

from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

SITE = Path(__file__).parents[1] / "docs" / "_build" / "html"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (SITE / "index.html").exists(), reason="the documentation is not built: make docs"
    ),
]


class Page(HTMLParser):
    """Links, targets and images of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.targets: set[str] = set()
        self.images: list[dict[str, str | None]] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.targets |= {found[key] or "" for key in ("id", "name") if key in found}
        self.links += [found[key] or "" for key in ("href", "src") if key in found]
        if tag == "img":
            self.images.append(found)


@cache
def page(path: Path) -> Page:
    return Page(path)


def leads_somewhere(link: str, path: Path) -> bool:
    """Whether a link of a page is one to elsewhere, or has a target in these files."""
    place, fragment = urldefrag(link)
    if urlsplit(place).scheme or place.startswith("//") or not link.strip("#"):
        return True
    target = (path.parent / unquote(urlsplit(place).path)).resolve() if place else path
    if not target.exists():
        return False
    return not fragment or target.suffix != ".html" or unquote(fragment) in page(target).targets


def pages() -> list[Path]:
    return sorted(path for path in SITE.rglob("*.html") if "_static" not in path.parts)


def test_no_link_is_dead():
    dead = [
        f"{path.relative_to(SITE)}: {link}"
        for path in pages()
        for link in page(path).links
        if not leads_somewhere(link, path)
    ]
    assert len(pages()) > 200
    assert not dead, f"{len(dead)} dead links:\n" + "\n".join(dead[:40])


def test_every_image_has_a_text_and_every_thumbnail_its_own():
    unnamed = [
        f"{path.relative_to(SITE)}: {image['src']}"
        for path in pages()
        for image in page(path).images
        if not (image.get("alt") or "").strip()
    ]
    assert not unnamed, "\n".join(unnamed[:40])
    gallery = page(SITE / "gallery" / "index.html").images
    thumbnails = [image["alt"] for image in gallery if "_thumb" in (image["src"] or "")]
    assert len(set(thumbnails)) == len(thumbnails) > 20


def test_no_page_names_a_repository_that_the_project_does_not():
    import tomllib

    project = tomllib.loads((SITE.parents[2] / "pyproject.toml").read_text())["project"]
    shown = "fa-solid fa-code" in (SITE / "index.html").read_text(encoding="utf-8")
    assert shown == bool({"Repository", "Source"} & project.get("urls", {}).keys())


def test_no_gallery_page_shows_where_it_was_built():
    places = (str(SITE.parents[2]), "site-packages/")
    texts = {path.name: path.read_text("utf-8") for path in (SITE / "gallery").rglob("*.html")}
    shown = [name for name, text in texts.items() if any(place in text for place in places)]
    assert not shown


def test_the_menu_of_results_has_a_page_under_each_question():
    text = (SITE / "results.html").read_text(encoding="utf-8")
    asked = ["Which method retrieves best?", "Which published figures are reproduced?"]
    assert -1 < text.find(f">{asked[0]}<") < text.find(f">{asked[1]}<")


# ---- in a browser --------------------------------------------------------------------------------

NAMES = [
    "index",
    "getting_started",
    "background",
    "results",
    "user_guide/choosing_a_method",
    "user_guide/retrieval",
    "user_guide/plots",
    "how_to/index",
    "how_to/search_images",
    "generated/mvcca.linear.CCA",
    "generated/results/comparison-with-other-packages",
    "gallery/index",
    "gallery/first_steps/plot_cca_two_views",
]
WIDTHS = [400, 768, 1280]

# Elements that a reader cannot see whole: beyond the page's edge and in no box that scrolls, or in
# a box that scrolls without a shadow at its edge.
CUT = """
width => {
  const cut = [];
  for (const element of document.querySelectorAll('main *')) {
    const style = getComputedStyle(element);
    if (element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 0
        && ['auto', 'scroll', 'hidden'].includes(style.overflowX)
        && !style.backgroundImage.includes('gradient')
        && !element.parentElement.closest('mjx-container')
        && !element.closest('span.math, .visually-hidden, svg'))
      cut.push(`${element.tagName}.${element.className} is wider than its box`);
    if (element.getBoundingClientRect().right > width + 1) {
      let box = element;
      while (box && !['auto', 'scroll'].includes(getComputedStyle(box).overflowX))
        box = box.parentElement;
      if (!box) cut.push(`${element.tagName}.${element.className} is beyond the edge`);
    }
  }
  return cut;
}
"""


@pytest.fixture(scope="module")
def chromium() -> Any:
    pytest.importorskip("playwright", reason="playwright is missing: pip install 'mvcca[browser]'")
    from test_browser import running_browser

    with running_browser() as running:
        yield running


@pytest.fixture
def open_page(chromium) -> Any:
    """Open a page by name: `check_page` of the browser tests asserts that it is sound."""
    from test_browser import check_page

    yield lambda name, width, scheme="light": check_page(
        chromium, SITE / f"{name}.html", width, scheme
    )
    for context in chromium.contexts:
        context.close()


@pytest.mark.browser
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_cut_without_a_cue(open_page, name, width):
    page = open_page(name, width)
    assert page.evaluate(CUT, width) == []
    if name == "background":
        assert page.locator("mjx-container").count() > 30  # formulas are typeset
        assert "\\\\Sigma" not in page.inner_text("main")


# Code that leaves its box, and printed sentences that do.
WIDE = """
([what, least]) => [...document.querySelectorAll(what)].filter(e =>
    e.textContent.length > least
    && (e.tagName === 'PRE' ? e.scrollWidth - e.clientWidth - 1
        : e.getBoundingClientRect().right - e.closest('pre').getBoundingClientRect().right) > 0
).map(e => e.textContent.slice(0, 60))
"""
WITH_CODE = [
    "getting_started", "user_guide/inference", "user_guide/retrieval", "user_guide/comparing",
    "user_guide/command_line", "how_to/change_model", "how_to/test_correlation",
]  # fmt: skip


@pytest.mark.browser
@pytest.mark.parametrize("name", WITH_CODE)
def test_code_fits_on_a_desktop_and_sentences_wrap_on_a_phone(open_page, name):
    assert open_page(name, 1280).evaluate(WIDE, ["main pre", 0]) == []
    phone = open_page(name, 400)
    assert phone.evaluate(WIDE, ["main pre .go", 88]) == []


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", NAMES)
def test_page_is_accessible(open_page, name, scheme):
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright",
        reason="axe-playwright-python is missing: pip install 'mvcca[browser]'",
    )
    found = axe.Axe().run(open_page(name, 1280, scheme))
    assert found.violations_count == 0, found.generate_report()


@pytest.mark.browser
@pytest.mark.parametrize("name", NAMES)
def test_page_prints_whole_and_alone(open_page, name):
    page = open_page(name, 760)
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.scrollWidth") <= 760
    wide = "[...document.querySelectorAll('main pre, main .pst-scrollable-table-container')]"
    wide += ".filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.innerText.slice(0, 60))"
    assert page.evaluate(wide) == []
    for hidden in ("header.bd-header", ".bd-sidebar-primary", "footer.bd-footer"):
        assert not page.locator(hidden).first.is_visible()


@pytest.mark.browser
def test_navigation_is_one_row_and_the_landing_page_begins_with_what_one_can_type(open_page):
    page = open_page("index", 1280)
    entries = page.locator("header .navbar-nav > li:visible").all()
    places = [entry.bounding_box()["y"] for entry in entries]
    assert len(entries) >= 6
    assert max(places) - min(places) < 10  # in one row
    install = page.locator("pre", has_text="pip install mvcca").first.bounding_box()
    shown = page.locator("pre", has_text="right among the first 8: 0").first.bounding_box()
    assert install["y"] + install["height"] < 900  # without scrolling
    assert shown["y"] + shown["height"] < 900
