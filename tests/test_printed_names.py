"""Names with control characters reach no terminal, page or CSV file as they are."""

from __future__ import annotations

import ast
import re
from functools import cache

import numpy as np
import pandas as pd
import pytest
from house import sources

import mvcca
from mvcca import CCA, RGCCA, FoldSearchCV, Labels, RetrievalIndex, Views, inspection, retrieval
from mvcca.interop import Hits
from mvcca.interop.alignment import align_unpaired
from mvcca.interop.migration import fit_migration
from mvcca.interop.representations import LayerSums, compare_representations
from mvcca.machine.tables import Table
from mvcca.persistence import describe

pytestmark = pytest.mark.filterwarnings("ignore")  # few rows
ESCAPES = "\x1b[31m\x1b]0;title\x07\x9b2J\u2028\r"
CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]")  # newlines separate lines


def named(name):
    return f"{name}{ESCAPES}"


@cache
def views():
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((60, 2))
    rows = {
        name: shared @ rng.standard_normal((2, d)) + rng.standard_normal((60, d))
        for name, d in (("a", 4), ("b", 3))
    }
    index = [named(f"id{i}") for i in range(60)]
    return {
        named(name): pd.DataFrame(
            X, index=index, columns=[named(f"{name}{j}") for j in range(X.shape[1])]
        )
        for name, X in rows.items()
    }


def labels():
    return np.array([named("k"), named("l")] * 30)


@cache
def model():
    return CCA(n_components=2).fit(views())


@cache
def compared():
    return mvcca.compare(["cca", "pls"], views(), labels(), cv=2, tune=False)


def hits():
    gallery, queries = ({named(name): views()[named(name)]} for name in "ab")
    ids = [{name: rows.index.to_numpy(str) for name, rows in d.items()} for d in (gallery, queries)]
    index = RetrievalIndex(model())
    return Hits(index, gallery, queries, k=2, item_ids=ids[0], query_ids=ids[1])


RESULTS = {
    "Views": lambda _: Views(views()),
    "Labels": lambda _: Labels(np.eye(2)[[0, 1] * 30]),
    "RowSource": lambda path: source_of(path),
    "Description": lambda path: described(path),
    "Study": lambda _: inspection.study(
        views(),
        confounds=pd.DataFrame({named("age"): np.arange(60.0)}, index=views()[named("a")].index),
        n_permutations=19,
        random_state=0,
    ),
    "PermutationTest": lambda _: inspection.permutation_test(
        views(), n_permutations=19, random_state=0
    ),
    "ParametricTests": lambda _: inspection.parametric_tests(views()),
    "Stability": lambda _: inspection.stability(CCA(n_components=1), views(), cv=3, random_state=0),
    "SelectionStability": lambda _: inspection.selection_stability(
        RGCCA(n_features=2), views(), n_pairs=2, random_state=0
    ),
    "CorrelationIntervals": lambda _: inspection.correlation_intervals(views(), random_state=0),
    "VariableIntervals": lambda _: inspection.loading_intervals(
        views(), n_resamples=19, random_state=0
    ),
    "RetrievalTable": lambda _: retrieval.evaluate_retrieval(model().transform(views()), labels()),
    "ComparisonResult": lambda _: compared(),
    "SimilarityTable": lambda _: compare_representations(views()),
    "LayerSums": lambda _: LayerSums().update(views()),
    "Migration": lambda _: fit_migration(*(X.to_numpy() for X in views().values())),
    "Alignment": lambda _: align_unpaired(
        *(X.to_numpy() for X in views().values()), pairs=[(i, i) for i in range(20)]
    ),
    "RetrievalIndex": lambda _: RetrievalIndex(model()).add({named("a"): views()[named("a")]}),
    "Hits": lambda _: hits(),
    "MethodTable": lambda _: mvcca.methods(),
    "FoldSearchCV": lambda _: FoldSearchCV(CCA(n_components=1), {"reg": [0.1, 1.0]}, cv=3).fit(
        views()
    ),
    "Table": lambda _: Table.of(
        named("caption"), (named("x"), named("y")), [(named("z"), 1.0)], [named("note")]
    ).as_text(),
}
# Classes that print numbers or fixed words, or are parts of the results above.
PARTS = {"Answer", "CSLS", "Cell", "Conditional", "Ranking",
         "Result", "ShownAsTables", "TimeLeft", "Workload", "_MultipleOfMedian"}  # fmt: skip


def source_of(tmp_path):
    path = tmp_path / "file\x1b[31m.npy"
    np.save(path, np.ones((3, 2)))
    return mvcca.open_matrix(path)


def described(tmp_path):
    mvcca.save(model(), tmp_path / "model\x1b[31m.mvcca")
    return describe(tmp_path / "model\x1b[31m.mvcca")


@pytest.mark.parametrize("name", RESULTS)
def test_no_control_character_is_printed_or_shown(name, tmp_path):
    result = RESULTS[name](tmp_path)
    shown = [str(result), repr(result)]
    if name == "Table":
        shown = [result]
    if name == "Description":  # a dict, whose repr escapes
        shown = [str(result)]
    if hasattr(result, "_repr_html_"):
        shown.append(result._repr_html_())
    for text in shown:
        assert not CONTROL.search(text)


@pytest.mark.parametrize("suffix", [".html", ".csv", ".md", ".json"])
def test_no_control_character_is_in_a_report(suffix, tmp_path):
    path = tmp_path / f"report{suffix}"
    compared().save_page(path)
    assert not CONTROL.search(path.read_text())


def test_no_control_character_is_on_the_page_of_a_study(tmp_path):
    RESULTS["Study"](None).save_page(tmp_path / "study.html")
    assert not CONTROL.search((tmp_path / "study.html").read_text())


def test_every_class_that_prints_is_tested():
    printing = set()
    for source in sources():
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.ClassDef):
                methods = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
                bases = {base.id for base in node.bases if isinstance(base, ast.Name)}
                if methods & {"__str__", "_repr_html_"} or bases & {"Result", "ShownAsTables"}:
                    printing.add(node.name)
    assert printing - RESULTS.keys() - PARTS == set()
