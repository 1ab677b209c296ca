"""Every result shows the same tables, sentences and figures in text, frames, JSON and pages."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from test_notebooks import SHOWN, made

from mvcca.comparison import ComparisonResult
from mvcca.machine.result import Draw, Result
from mvcca.machine.tables import Table

pytestmark = pytest.mark.filterwarnings("ignore:.*")  # few rows
RESULTS = sorted(SHOWN.keys() - {"views", "empty index", "index", "hits"})


@pytest.fixture(scope="module", params=RESULTS)
def result(request):
    found = made(request.param)
    assert isinstance(found, Result)
    return found


@pytest.fixture(scope="module")
def page(result, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "result.html"
    result.save_page(path, command="mvcca test <b>")
    return path.read_text(encoding="utf-8")


def body_of(page):
    body = re.search(r"<main>.*</main>", page, re.S)[0]
    return ET.fromstring(body.replace("xlink:", ""))


def test_a_frame_is_the_first_table_with_nothing_rounded(result):
    frame, table = result.to_frame().reset_index(), result.tables()[0]
    names = [name for name in frame.columns if name in table.names]
    assert names == list(table.names)
    for name, column in zip(table.names, zip(*table.values, strict=True), strict=True):
        pd.testing.assert_series_equal(frame[name], pd.Series(column, name=name))


def test_text_has_all_cells_and_sentences_that_it_is_to_show(result):
    text = re.sub(r"\s+", " ", str(result))
    for table in (one for one in result.tables() if "text" in one.shown):
        for line in table.lines:
            for cell in line.cells:
                assert str(cell) in text
    for sentence in result._words():
        start = re.sub(r"\s+", " ", sentence.replace("\n", r"\n"))[:20].split("\x1b")[0]
        assert start.rstrip(":") in text  # comparisons have a line break after it


def test_a_page_has_the_tables_sentences_and_figures(result, page):
    body = body_of(page)
    captions = {"".join(one.itertext()) for one in body.iter("caption")}
    for table in result.tables():
        assert (table.caption in captions) == bool({"page", "folded"} & set(table.shown))
    headings = ["".join(one.itertext()) for one in body.iter("h3")]
    if not isinstance(result, ComparisonResult):  # whose page has figures of its best methods
        assert len(headings) == len(result.figures())
    assert "mvcca test <b>" in "".join(body.itertext())
    assert not re.search(r"[\x00-\x09\x0b-\x1f]|https?://(?!www.w3.org)|<script|src=", page)


def test_json_has_what_the_mapping_has(result):
    found = json.loads(result.to_json())
    assert found.keys() == result.as_dict().keys()
    for table, rows in zip(result.tables(), found.get("tables", ()), strict=False):
        assert [list(row) for row in rows["rows"]] == [list(table.names)] * len(table.values)


def test_every_figure_is_drawn_on_the_axes_it_is_given(result):
    for name in result.figures():
        _, ax = plt.subplots()
        assert result.plot(ax, figure=name) is ax
        assert ax.has_data()
        plt.close("all")
    with pytest.raises(ValueError, match="Expected figure to be"):
        result.plot(figure="no such figure")


class Measured(Result):
    """A result of one column, of which text shows a line and pages all."""

    def tables(self):
        values = [(name, value) for name, value in zip("ab", (0.123456, np.nan), strict=True)]
        return [
            Table.of("All", ("name", "value"), values, shown=("page",)),
            Table.of("First", ("name", "value"), values[:1], ["A note."], has_title=True),
        ]

    def figures(self):
        return {"Line": Draw(lambda ax, **options: ax.plot([0, 1], **options)[0].axes)}

    def sentences(self):
        return ["Two\nvalues."]

    def remarks(self):
        return ["One is missing."]


def test_text_begins_with_sentences_and_ends_with_remarks():
    lines = ["Two\\nvalues.", "", "First", "name   value", "a     0.1235", "A note.", ""]
    assert str(Measured()).splitlines() == [*lines, "One is missing."]


def test_a_notebook_shows_words_and_only_the_tables_for_it():
    html = Measured()._repr_html_()
    assert html.count("<table>") == 1
    assert html.index("Two\nvalues.") < html.index("One is missing.") < html.index("<table>")


def test_frames_have_all_digits_and_json_has_no_nan():
    assert Measured().to_frame()["value"].tolist()[0] == 0.123456
    rows = json.loads(Measured().to_json())["tables"][0]["rows"]
    assert rows == [{"name": "a", "value": 0.123456}, {"name": "b", "value": None}]


def test_options_of_a_plot_go_to_its_figure():
    _, ax = plt.subplots()
    assert Measured().plot(ax, color="#ff0000").lines[0].get_color() == "#ff0000"
    plt.close("all")


def test_a_page_has_a_name_that_ends_in_html(tmp_path):
    with pytest.raises(ValueError, match=r"Expected a name ending in \.html"):
        Measured().save_page(tmp_path / "page.pdf")
    assert not list(tmp_path.iterdir())


def test_a_page_needs_no_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setattr("mvcca.machine.result.find_spec", lambda _: None)
    Measured().save_page(tmp_path / "page.html")
    body = body_of((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert not list(body.iter("figure"))
    assert [one.text for one in body.iter("caption")] == ["All", "First"]
