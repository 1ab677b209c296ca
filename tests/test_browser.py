"""Pages in a real browser: nothing overflows, nothing fails, and nothing is read from a network.

``pytest -m browser`` needs playwright (``pip install "mvcca[browser]"``) and a Chromium on PATH.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import mvcca
from mvcca import CCA, MLCCA
from mvcca.datasets import load_digits_views

pytestmark = [pytest.mark.browser, pytest.mark.slow]

playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright is missing: pip install 'mvcca[browser]'"
)
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


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The report of a small comparison."""
    data = load_digits_views()
    views, digits = data.views[:300], data.labels[:300]
    path = tmp_path_factory.mktemp("report") / "report.html"
    methods = {
        "CCA": CCA(5, reg=0.1),
        "MLCCA with a long name": MLCCA(5, reg=0.1),
        "not fitted": CCA(5, reg=-1.0),
    }
    mvcca.compare(methods, views, digits, cv=0.5).report(path)
    return path


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_the_report_of_a_comparison_is_sound(browser, report, width, scheme):
    page = check_page(browser, report, width, scheme)
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("[...document.images].every(image => image.naturalWidth > 100)")
    assert page.locator(".verdict").is_visible()
    reason = page.locator("td.reason span").first.bounding_box()
    assert reason["width"] > 100
    assert reason["x"] + reason["width"] <= width  # it is read without scrolling
    page.evaluate("document.querySelector('.scroll').scrollLeft = 10_000")
    name = page.locator("tbody th").first.bounding_box()
    assert 0 <= name["x"] < name["x"] + name["width"] <= width / 2  # rows keep their names
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(22, 25, 29)")
