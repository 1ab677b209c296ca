"""The gallery, the charts of results, and what `docs/conf.py` adds to pages."""

from __future__ import annotations

import ast
import re
import runpy
from pathlib import Path

import pytest

import mvcca.plotting

DOCS = Path(__file__).parents[1] / "docs"
EXAMPLES = sorted((DOCS / "examples").rglob("plot_*.py"))
ORDER = runpy.run_path(str(DOCS / "gallery_order.py"))["ORDER"]


def test_the_order_names_every_example_of_every_folder():
    found = {folder: set() for folder in ORDER}
    for path in EXAMPLES:
        found[path.parent.name].add(path.stem.removeprefix("plot_"))
    assert found == {folder: set(names) for folder, names in ORDER.items()}
    names = [name for names in ORDER.values() for name in names]
    assert len(set(names)) == len(names) >= 18


@pytest.mark.parametrize("folder", ORDER)
def test_every_folder_says_what_it_is_about(folder):
    title, line, _, text = (
        (DOCS / "examples" / folder / "GALLERY_HEADER.rst").read_text().split("\n", 3)
    )
    assert line == "-" * len(title)
    assert text.strip()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_needs_no_files_and_explains_itself(path):
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    assert len(lines) < 150
    assert "benchmarks" not in text  # the documentation is built without real data
    assert lines[2] == "=" * len(lines[1])
    assert text.count("\n# %%\n# ") >= 2


SILENT = ("print(", "plt.show()", "plt.close(")  # what ends a cell without a value to print
NAMED = (".fit(", ".cleanup(")  # whose value is shown on purpose, or None


def cells(path):
    """The statements of each cell of an example, the introduction left out."""
    text = path.read_text(encoding="utf-8")
    starts = [number for number, line in enumerate(text.split("\n"), 1) if line.startswith("# %%")]
    body = ast.parse(text).body[1:]
    ends = [*starts[1:], len(text)]
    return [
        [node for node in body if first <= node.lineno < last]
        for first, last in zip(starts, ends, strict=True)
    ]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_no_cell_prints_an_artist_or_leaves_a_figure_for_the_next_one(path):
    for cell in cells(path):
        code = [ast.unparse(node) for node in cell]
        if cell and isinstance(cell[-1], ast.Expr):
            assert code[-1].startswith(SILENT) or any(n in code[-1] for n in NAMED), code[-1]
        drawn = [i for i, line in enumerate(code) if "plt.subplots(" in line or "Display." in line]
        shown = [i for i, line in enumerate(code) if line in ("plt.show()", "plt.close('all')")]
        assert not drawn or (shown and shown[-1] > drawn[-1]), code[drawn[-1]]


def test_a_card_of_the_plots_page_shows_each_display_with_an_example_that_draws_it():
    page = (DOCS / "user_guide" / "plots.rst").read_text(encoding="utf-8")
    found = re.findall(
        r"grid-item-card:: (\w+)\n"
        r" +:img-top: /gallery/(\w+)/images/sphx_glr_(\w+)_(\d+)\.png\n"
        r" +:img-alt: (.{40,160})\n"
        r" +:link: /gallery/(\w+/\w+)\n",
        page,
    )
    displays = set(mvcca.plotting.__all__) - {"Display"}
    assert sorted(name for name, *_ in found) == sorted(displays)
    assert page.count("grid-item-card::") == len(found)
    for name, folder, stem, number, _, link in found:
        assert link == f"{folder}/{stem}"
        text = (DOCS / "examples" / f"{link}.py").read_text(encoding="utf-8")
        figures = text.split("plt.show()")  # one for each of the examples that are linked here
        assert f"{name}." in figures[int(number) - 1], (name, number)


def test_the_user_guide_links_only_examples_that_exist():
    pages = [*(DOCS / "user_guide").glob("*.rst"), *DOCS.glob("*.rst"), *EXAMPLES]
    linked = {
        name for page in pages for name in re.findall(r"gallery/(\w+/plot_\w+)", page.read_text())
    }
    assert linked
    assert linked <= {f"{path.parent.name}/{path.stem}" for path in EXAMPLES}


# ---- charts of the results page -----------------------------------------------------------------

TEXT = """
## One

| data | cosine |
|---|---|
| a | .1 |

## Two

| what | time |
|---|---|
| b | 3 s |

| data | **test** | cosine |
|---|---|---|
| b | **.5 ± .01** | - |
| c | .25 | .125 ± .003* |

## Three
"""


@pytest.fixture
def charts(monkeypatch):
    pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'mvcca[plot]'")
    monkeypatch.syspath_prepend(DOCS)
    return runpy.run_path(str(DOCS / "results_charts.py"))


@pytest.fixture
def pages(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    return runpy.run_path(str(DOCS / "results_pages.py"))


def test_a_table_is_found_by_its_columns_whatever_its_section(charts, pages):
    sections = pages["sections_of"](TEXT)
    assert [section.title for section in sections] == ["One", "Two"]  # the third one is empty
    section, rows = charts["find_table"](sections, ["test", "cosine"])
    assert section.title == "Two"
    assert rows == [
        {"data": "b", "test": ".5 ± .01", "cosine": "-"},
        {"data": "c", "test": ".25", "cosine": ".125 ± .003"},
    ]
    with pytest.raises(ValueError, match="No table of the results has the columns"):
        charts["find_table"](sections, ["test", "time"])


def test_a_file_of_results_is_one_page(pages, tmp_path):
    (tmp_path / "p0.md").write_text("## Table 1\n\na\n\n## Table 2\n\nb\n", "utf-8")
    (tmp_path / "claims.md").write_text("# Claims\n\na\n", "utf-8")
    found = [pages["whole"](tmp_path / name) for name in ("claims.md", "p0.md")]
    assert [section.title for section in found] == ["Claims", "Tables and figures of P0"]
    assert found[0].text.strip() == "a"
    assert found[1].text.startswith("## Table 1")


def test_the_menu_of_results_asks_questions_and_ends_with_papers(pages):
    sections = pages["all_sections"]()
    known = {section.title for section in sections}
    assert not {one for titles in pages["QUESTIONS"].values() for one in titles} - known
    menu = pages["menu_of"](sections)
    assert [menu.count(f"/generated/results/{one.slug}\n") for one in sections] == [1] * len(known)
    asked = re.findall("^### (.*)$", menu, re.MULTILINE)
    assert asked[0] == "Which method retrieves best?"
    assert asked[-1] == "Which published figures are reproduced?"
    assert all(one.endswith("?") for one in asked)


def test_links_between_results_lead_to_pages(pages, tmp_path):
    folder = tmp_path / "benchmarks" / "results"
    folder.mkdir(parents=True)
    (folder / "p0.md").write_text("## Table 1\n\na\n", "utf-8")
    (folder.parent / "RESULTS.md").write_text("## Papers\n\n[P0](results/p0.md)\n", "utf-8")
    papers, p0 = pages["all_sections"](tmp_path)
    assert f"[P0]({p0.slug}.md)" in papers.text
    for section in pages["all_sections"]():  # and all files that are linked are there
        assert "](results/" not in section.text


def test_a_page_of_results_has_a_target_for_each_chart_drawn_from_it(pages, tmp_path):
    one, two = pages["sections_of"](TEXT)
    (tmp_path / "old.md").write_text("of a section that is gone")
    pages["write_pages"](tmp_path, [one, two], {"hubs": two})
    assert {path.name for path in tmp_path.iterdir()} == {"one.md", "two.md"}
    assert (tmp_path / "two.md").read_text("utf-8").startswith("(table-hubs)=\n# Two\n\n|")
    before = (tmp_path / "two.md").stat().st_mtime_ns
    pages["write_pages"](tmp_path, [one, two], {"hubs": two})
    assert (tmp_path / "two.md").stat().st_mtime_ns == before  # Sphinx need not read it again
    with pytest.raises(ValueError, match="Two sections of the results are called 'One'"):
        pages["write_pages"](tmp_path, [one, one], {})


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (".301 ± .009", (0.301, 0.009)),
        ("**0.5**", (0.5, None)),
        ("46.7", (46.7, None)),
        ("-", None),
    ],
)
def test_cells_are_read_as_value_and_deviation(charts, cell, expected):
    value, deviation = charts["number"](cell)
    if expected is None:
        assert value != value
    else:
        assert value == expected[0]
        assert deviation == expected[1] or (expected[1] is None and deviation != deviation)


def test_all_charts_are_drawn_from_the_tables_of_the_repository(charts, pages, tmp_path):
    sources = charts["draw_charts"](tmp_path, pages["all_sections"]())
    drawn = {path.stem for path in tmp_path.iterdir()}
    page = (DOCS / "results.md").read_text(encoding="utf-8")
    assert drawn == set(sources) == set(re.findall(r"charts/(\w+)\.png", page))
    assert drawn == set(re.findall(r"`Table <table-(\w+)>`", page))  # and linked
    assert page.count(":alt: ") == len(drawn)


# ---- images and links ----------------------------------------------------------------------------


def test_links_are_those_of_the_project(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(DOCS)
    links = runpy.run_path(str(DOCS / "project_links.py"))["icon_links"]
    project = tmp_path / "pyproject.toml"
    project.write_text('[project]\nname = "a"\n')
    assert links(project) == []
    urls = 'Repository = "https://a.example"\nIssues = "https://a.example/issues"\nOther = "b"\n'
    project.write_text(f'[project]\nname = "a"\n[project.urls]\n{urls}')
    assert [(link["name"], link["url"]) for link in links(project)] == [
        ("Repository", "https://a.example"),
        ("Issues", "https://a.example/issues"),
    ]


def test_images_without_a_text_get_what_stands_above_them():
    nodes = pytest.importorskip(
        "docutils.nodes", reason="needs docutils: pip install 'mvcca[docs]'"
    )
    core = pytest.importorskip("docutils.core")
    texts = runpy.run_path(str(DOCS / "image_texts.py"))
    page = core.publish_doctree(
        'Title\n=====\n\n.. image:: first.png\n\nThe line falls: it is "noise". Or not.\n\n'
        ".. image:: second.png\n\n.. image:: third.png\n   :alt: own\n\n"
        ".. image:: sphx_glr_plot_views_thumb.png\n"
    )
    texts["describe_images"](None, page)
    assert [image["alt"] for image in page.findall(nodes.image)] == [
        "Title",
        'The line falls: it is "noise".',
        "own",
        "Not every object has to be seen in every view",
    ]
