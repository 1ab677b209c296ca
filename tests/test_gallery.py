"""The gallery and the charts of results. `make docs` runs the examples and draws the charts."""

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
    assert "from real import" not in text  # the documentation is built without real data
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
    displays = set(mvcca.plotting.__all__) - {"Display", "ScoresDisplay"}
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


@pytest.fixture(scope="module")
def charts():
    pytest.importorskip("matplotlib")
    return runpy.run_path(str(DOCS / "results_charts.py"))


def test_a_table_is_found_by_its_heading_and_columns(charts):
    rows = charts["read_table"](TEXT, "Two", ["test", "cosine"])
    assert rows == [
        {"data": "b", "test": ".5 ± .01", "cosine": "-"},
        {"data": "c", "test": ".25", "cosine": ".125 ± .003"},
    ]
    for heading, columns, message in (
        ("Four", ["test"], "No heading 'Four'"),
        ("One", ["test"], "No table with the columns"),
    ):
        with pytest.raises(ValueError, match=message):
            charts["read_table"](TEXT, heading, columns)


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


def test_all_charts_are_drawn_from_the_tables_of_the_repository(charts, tmp_path):
    charts["draw_charts"](tmp_path)
    drawn = {path.name for path in tmp_path.iterdir()}
    shown = set(re.findall(r"charts/(\w+\.png)", (DOCS / "results.md").read_text()))
    assert drawn == shown
