"""Displays of results in notebooks: well-formed and accessible HTML, in which no name is markup."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ET
from functools import cache
from importlib import import_module

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import mvcca
from mvcca import CCA, MVCCA, RGCCA, RetrievalIndex, Views
from mvcca.inspection import (
    correlation_intervals,
    loading_intervals,
    parametric_tests,
    permutation_test,
    selection_stability,
    stability,
    study,
)
from mvcca.interop import Hits
from mvcca.interop.alignment import align_unpaired
from mvcca.interop.migration import fit_migration
from mvcca.interop.representations import compare_representations
from mvcca.machine import documentation
from mvcca.machine.tables import Cell, Line, Table

ODD = "<b>&\x1b\n"  # markup, and what controls a terminal
N = 120


def views(odd=ODD):
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((N, 2))
    return {
        name: shared @ rng.standard_normal((2, p)) + rng.standard_normal((N, p))
        for name, p in ((odd, 4), ("text", 3))
    }


def index():
    return RetrievalIndex(CCA(2, reg=0.1).fit(views()))


def hits():
    ids = np.array([f"{ODD}{number}" for number in range(N)])
    galleries, queries = {"text": views()["text"]}, {ODD: views()[ODD]}
    return Hits(index(), galleries, queries, 7, item_ids={"text": ids}, query_ids={ODD: ids})


def two_models():
    """Vectors of two models that embed the same items almost alike."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 6))
    return X, X @ rng.standard_normal((6, 6)) + 0.1 * rng.standard_normal((N, 6))


SHOWN = {
    "views": lambda: Views(views()),
    "empty index": index,
    "index": lambda: index().add(views()),
    "hits": hits,
    "evaluation": lambda: mvcca.evaluate_retrieval(views(), estimator=CCA(2).fit(views())),
    "comparison": lambda: mvcca.compare(
        {ODD: CCA(2, reg=0.1), "CCA": CCA(1), "no such ridge": CCA(1, reg=-1.0)}, views(), cv=2
    ),
    "migration": lambda: fit_migration(*two_models(), learning_curve=True),
    "alignment": lambda: align_unpaired(*two_models(), pairs=np.c_[:60, :60]),
    "similarity": lambda: compare_representations(views()),
    "permutation test": lambda: permutation_test(Views(views()), n_permutations=19),
    "correlation intervals": lambda: correlation_intervals(Views(views())),
    "loading intervals": lambda: loading_intervals(Views(views())),
    "parametric tests": lambda: parametric_tests(Views(views())),
    "stability": lambda: stability(CCA(2), Views(views()), cv=2),
    "selection": lambda: selection_stability(
        RGCCA(n_features=2), Views(views()), n_pairs=2, random_state=0
    ),
    "study": lambda: study(Views(views()), n_permutations=19, random_state=0),
}


@cache
def made(name):
    """An object that is shown, made once per process: other files test it, too."""
    return SHOWN[name]()


@pytest.fixture(scope="module", params=SHOWN)
def shown(request):
    return request.param, made(request.param)


def test_results_are_accessible_tables_in_which_names_are_text(shown, monkeypatch):
    what, result = shown
    monkeypatch.setitem(sys.modules, "pandas", None)  # nothing needs it
    html = result._repr_html_()
    page = ET.fromstring(f"<body>{html}</body>")
    assert not set(page.iter("b")) or what == "comparison"  # best values
    assert not re.search(r"[\x00-\x09\x0b-\x1f]|https?:|url\(|<script|src=", html)
    tables = list(page.iter("table"))
    assert tables
    for table in tables:
        assert table.findtext("caption").strip()
        n_columns = len(table.findall("thead/tr/th"))
        assert all(head.get("scope") == "col" for head in table.findall("thead/tr/th"))
        for line in table.findall("tbody/tr"):
            heads = line.findall("th")
            assert [head.get("scope") for head in heads] == ["row"]
            assert sum(int(cell.get("colspan", 1)) for cell in line) == n_columns
    text = "".join(page.itertext())
    named = {"views", "index", "hits", "evaluation", "comparison", "similarity", "stability"}
    named |= {"loading intervals", "selection", "study"}
    assert (r"<b>&\x1b\n" in text) == (what in named)


def test_an_index_shows_what_it_holds():
    table = ET.fromstring(f"<body>{index().add(views())._repr_html_()}</body>")
    lines = [[cell.text for cell in line] for line in table.iter("tr")]
    assert lines[0] == ["view", "rows", "components", "type", "size"]
    assert [line[0] for line in lines[1:]] == [r"<b>&\x1b\n", "text"]
    for line in lines[1:]:
        assert line[1:4] == [str(N), "2", "float64"]
        assert re.fullmatch(r"\d+ kB", line[4])
        assert 8 * N * 3 / 1e3 < float(line[4].split()[0]) < 40 * N * 3 / 1e3
    assert "CCA(reg=0.1); ranked by " in table.findtext("p")


def test_hits_are_those_of_the_search():
    page = ET.fromstring(f"<body>{hits()._repr_html_()}</body>")
    header, *lines = [[cell.text for cell in line] for line in page.iter("tr")]
    assert header == ["query", "rank", "item", "score"]
    found = index().add({"text": views()["text"]})
    scores, items = found.search({ODD: views()[ODD][:3]}, "text", 5)
    assert len(lines) == items.size
    for line, query, item, score in zip(
        lines, np.repeat(range(3), 5), items.ravel(), scores.ravel(), strict=True
    ):
        assert line[0].endswith(f"n{query}")
        assert line[2].endswith(f"n{item}")
        assert float(line[3]) == pytest.approx(score, rel=1e-3)
    assert page.findtext(".//caption") == f"First hits of {N} queries, 7 each"


def test_a_comparison_begins_with_its_verdict_and_ends_with_how_it_was_measured():
    html = made("comparison")._repr_html_()
    page = ET.fromstring(f"<body>{html}</body>")
    assert page[0].tag == "p"
    assert page[0].text.startswith("Same object: ")
    [caption] = [caption.text for caption in page.iter("caption")]
    assert caption == "How well methods find items of held-out objects"
    below = html.rpartition("</table>")[2]
    for text in ("2 folds of 60", "extrapolated from galleries of 60"):
        assert text in below


def test_tables_too_wide_for_paper_are_cut_between_columns_and_lose_none():
    columns = [f"column {j}" for j in range(12)]
    lines = [Line(f"line {i}", [Cell(f"{i}-{j}") for j in range(12)]) for i in range(3)]
    table = Table("all", ["", *columns], [*lines, Line("failed", reason="no")], notes=["a note"])
    parts = list(table.parts(30))
    assert [name for part in parts for name in part.columns[1:]] == columns
    assert [cell.text for part in parts for cell in part.lines[1].cells] == [
        f"1-{j}" for j in range(12)
    ]
    assert all(sum(2 + width for width in part.widths()[1:]) <= 32 for part in parts)
    assert [len(part.lines) for part in parts] == [4] + [3] * (len(parts) - 1)
    assert [part.notes for part in parts] == [()] * (len(parts) - 1) + [["a note"]]
    captions = [part.caption for part in parts]
    assert captions == ["all"] + ["all (continued)"] * (len(parts) - 1)


# ---- estimators ----------------------------------------------------------------------------------


def estimators():
    """Estimators with a page of their own."""
    found = {}
    for module in ("mvcca.linear", "mvcca.kernel", "mvcca.compose"):
        for name in import_module(module).__all__:
            one = getattr(import_module(module), name)
            if isinstance(one, type) and issubclass(one, BaseEstimator):
                found[f"{module}.{name}"] = one
    return found


@pytest.fixture
def site(monkeypatch):
    """The package's metadata with given links."""

    def with_urls(*urls):
        class Metadata:
            def get_all(self, name):
                assert name == "Project-URL"
                return list(urls) or None

        monkeypatch.setattr(documentation, "metadata", lambda _: Metadata())
        documentation.documentation_url.cache_clear()

    yield with_urls
    documentation.documentation_url.cache_clear()


@pytest.mark.parametrize("name", estimators())
def test_estimators_link_to_their_pages_if_there_is_a_site(site, name):
    estimator = estimators()[name]
    site("Source, https://example.org/code", "Documentation, https://example.org/docs/")
    address = f"https://example.org/docs/generated/{name}.html"
    assert estimator._get_doc_link(estimator.__new__(estimator)) == address
    site("Source, https://example.org/code")
    assert estimator._get_doc_link(estimator.__new__(estimator)) == ""
    site()
    assert estimator._get_doc_link(estimator.__new__(estimator)) == ""


def test_the_html_display_of_an_estimator_has_the_link_and_users_classes_have_none(site):
    class Mine(MVCCA):
        pass

    site("documentation, https://example.org/docs")
    link = 'href="https://example.org/docs/generated/mvcca.linear.CCA.html"'
    assert link in CCA()._repr_html_()
    assert "example.org" not in Mine()._repr_html_()
    site()
    assert "example.org" not in CCA()._repr_html_()


# ---- progress ------------------------------------------------------------------------------------


def test_a_comparison_shows_a_progress_bar_if_asked(capsys):
    with mvcca.config_context(progress=True):
        mvcca.compare({"CCA": CCA(1), "MVCCA": MVCCA(1)}, views("x"), cv=2)
    lines = capsys.readouterr().err.split("\r")
    assert any("CCA, fold 1 of 2 (0 of 4 fits done)" in line for line in lines)
    assert re.search(r"█+ +compared", lines[-1])
    mvcca.compare({"CCA": CCA(1)}, views("x"), cv=2)
    assert capsys.readouterr().err == ""
    said = []
    with mvcca.config_context(progress=True):
        mvcca.compare({"CCA": CCA(1)}, views("x"), cv=2, progress=said.append)
    assert said[0].startswith("CCA, fold 1 of 2")
    assert "compared" not in capsys.readouterr().err


def test_notebooks_have_bars_of_their_own(monkeypatch):
    pytest.importorskip("ipywidgets", reason="bars of notebooks need ipywidgets")
    from tqdm.notebook import tqdm_notebook

    monkeypatch.setattr("tqdm.auto.tqdm", tqdm_notebook)
    made = []
    monkeypatch.setattr(tqdm_notebook, "display", lambda self, *_, **__: made.append(self.n))
    with mvcca.config_context(progress=True):
        mvcca.compare({"CCA": CCA(1)}, views("x"), cv=2)
    assert made
    assert made[-1] == 1.0
