"""Sanghavi and Verma, "Multi-view Multi-label Canonical Correlation Analysis for Cross-modal
Matching and Retrieval", CVPRW 2022: MVMLCCA.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import clone

from benchmarks.papers import solvers as own
from benchmarks.papers.problems import (
    CAPTIONS,
    FIVE_CAPTIONS,
    MFEAT,
    VOCABULARIES,
    mnist_halves,
    wikipedia,
)
from benchmarks.papers.protocol import (
    DEFAULT,
    Figure,
    Figures,
    Missing,
    Part,
    Problem,
    Setting,
    Solver,
    Table,
    figures,
)
from mvcca import MVCCA, Labels, Views, evaluate_retrieval

_MEASURES = ("map", "map@50:cutoff", "map@50:hits")


def _sizes(problem: Problem) -> tuple[int, ...]:
    """Numbers of components to choose from; the first is that of the first trial."""
    return (50, 20, 100) if problem.name.startswith("captions") else (9, 20)


def solvers(problem: Problem) -> list[Solver]:
    """The methods of table 2."""
    sizes = _sizes(problem)
    return [
        own.cca(sizes[0], sizes),
        own.mlcca(sizes[0], sizes),
        own.three_view(sizes[0], sizes),
        own.mvmlcca("label", sizes[0], sizes),
        own.mvmlcca("sample", sizes[0], sizes),
    ]


_TWO_VIEWS = Table(
    "p4",
    "table 2",
    "Images and texts with label sets",
    [CAPTIONS, wikipedia("deep+w2v"), wikipedia("deep+lda"), mnist_halves(50_000)],
    solvers,
    _MEASURES,
    "map",
    n_trials=12,
    reference="MVMLCCA",
    published={
        "CCA": "IAPR .408 / .411, COCO .911 / .940",
        "MLCCA": "IAPR .436 / .441, COCO .916 / .687",
        "MVCCA": "IAPR .426 / .430, COCO .734 / .774",
        "MVMLCCA": "IAPR .425 / .427, COCO .903 / .928",
    },
    remark="Other data: IAPR TC-12 and MS-COCO have images. All divisors of the mean average "
    "precision that the paper and its code use stand side by side.",
)


# ---- many views ----------------------------------------------------------------------------------


class PairByPair:
    """A model of each pair of views, or of each view with itself, for methods of two views."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, views: Views, labels: Any) -> PairByPair:
        """Fit all of them."""
        self.models: dict[tuple[str, str], Any] = {}
        for pair in combinations(views.names, 2):
            self.models[pair] = clone(self.model).fit(views.select(pair), labels)
        for name in views.names:
            twice = Views({name: views[name], "": views[name]})
            self.models[name, name] = clone(self.model).fit(twice, labels)
        return self

    def figures(self, table: Table, part: Part) -> Figures:
        """Measures of the directions of each model."""
        found: Figures = {}
        for pair, model in self.models.items():
            same = pair[0] == pair[1]
            if same != (table.directions == "within"):
                continue
            views = part.views.select(pair[:1] if same else pair)
            one = figures(table, model, Part(views, part.labels), ())
            for ranking, measures in one.items():
                for name, values in measures.items():
                    found.setdefault(ranking, {}).setdefault(name, {}).update(values)
        return found


def _pairwise(solver: Solver) -> Solver:
    return Solver(
        solver.name,
        lambda setting, seed: PairByPair(solver.build(setting, seed)),
        solver.first,
        solver.grid,
        note="a model per pair of views",
    )


def _many(problem: Problem) -> list[Solver]:
    """The methods of tables 4 and 5."""
    k, *_ = sizes = _sizes(problem)
    mvcca = {"n_components": k, "reg": 1e-2}
    return [
        _pairwise(own.cca(k, sizes)),
        _pairwise(own.mlcca(k, sizes)),
        own.classical("MVCCA", MVCCA, mvcca, {"reg": own.RIDGES, "n_components": sizes}),
        own.mvmlcca("label", k, sizes),
        own.mvmlcca("sample", k, sizes),
    ]


def _of_many(number: str, title: str, directions: str, published: dict[str, str]) -> Table:
    return Table(
        "p4",
        number,
        title,
        [FIVE_CAPTIONS, MFEAT],
        _many,
        _MEASURES,
        "map",
        n_trials=6,
        n_seeds=3,
        directions=directions,
        reference="MVMLCCA",
        published=published,
        remark="Five captions of an image, and six descriptions of a digit, for an image with "
        "texts in three languages. A query does not find itself, other than in the paper.",
    )


_PAIRS = _of_many(
    "table 4",
    "All pairs of several views",
    "cross",
    {"CCA": ".572", "MLCCA": ".498", "MVCCA": ".518", "MVMLCCA": ".433"},
)
_WITHIN = _of_many(
    "table 5",
    "Retrieval within a view",
    "within",
    {"CCA": ".554", "MLCCA": ".651", "MVCCA": ".636", "MVMLCCA": ".615"},
)


def _halves(names: tuple[str, ...]) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """The first half of the views finds the other half, and back."""
    first, second = names[: len(names) // 2], names[len(names) // 2 :]
    return [(first, second), (second, first)]


def _joint(problem: Problem) -> list[Solver]:
    """The methods that fit all views at once."""
    return [solver for solver in _many(problem) if solver.name not in ("CCA", "MLCCA")]


_JOINED = replace(
    _PAIRS,
    number="table 4b",
    title="Several views find several others (remark b)",
    solvers=_joint,
    directions=_halves,
    published={},
)


# ---- vocabularies that differ --------------------------------------------------------------------


class Vocabularies:
    """A method that learns from sums of the word vectors of labels, and is measured by h, eq. (8).

    MLCCA is fitted to each pair of views, as in the paper.
    """

    def __init__(self, model: Any, pairs: bool) -> None:
        self.model, self.pairs = model, pairs

    def fit(self, views: Views, labels: Any) -> Vocabularies:
        """Fit the model of all views, or those of pairs."""
        tags, vectors = labels
        sums = {name: Labels.of(own).word_sums(vectors) for name, own in tags.items()}
        groups: list[tuple[str, ...]] = [views.names]
        if self.pairs:
            groups = [*combinations(views.names, 2), *((n, n) for n in views.names)]
        self.models = {}
        for names in groups:
            blocks = dict(zip(("a", "b"), names, strict=True)) if self.pairs else None
            chosen = blocks or {name: name for name in names}
            own_views = Views.unpaired({to: views[n] for to, n in chosen.items()})
            own_sums = {to: sums[n] for to, n in chosen.items()}
            self.models[names] = clone(self.model).fit(own_views, own_sums)
        return self

    def figures(self, table: Table, part: Part) -> Figures:
        """Weighted mAP of all ordered pairs of views, and of each view with itself."""
        tags, vectors = part.labels
        found: Figures = {}
        for ranking in table.rankings:
            for query in part.views.names:
                for target in part.views.names:
                    scores, labels = self._rows(part.views, tags, query, target)
                    way = [("a", "a" if query == target else "b")]
                    measured = evaluate_retrieval(
                        scores,
                        labels,
                        label_vectors=vectors,
                        measures=table.measures,
                        directions=way,
                        similarity=None if ranking == DEFAULT else ranking,
                    )
                    for name in table.measures:
                        to = found.setdefault(ranking, {}).setdefault(name, {})
                        to[f"{query} to {target}"] = float(measured[way[0]][name])
        return found

    def _rows(self, views: Views, tags: Any, query: str, target: str) -> tuple[Any, Any]:
        """Scores and label sets of two views, as "a" and "b"."""
        model, chosen = self.models.get(views.names), {"a": query, "b": target}
        if model is not None:
            scores = model.transform(Views.unpaired({n: views[n] for n in {query, target}}))
            rows = {to: scores[n] for to, n in chosen.items()}
        else:
            names = (query, target) if (query, target) in self.models else (target, query)
            sides = dict(zip(("a", "b"), names, strict=True))
            scores = self.models[names].transform(
                Views.unpaired({to: views[n] for to, n in sides.items()})
            )
            rows = {"a": scores["a" if names[0] == query else "b"]}
            rows["b"] = scores["b" if names[1] == target else "a"]
        if query == target:
            return {"a": rows["a"]}, {"a": tags[query]}
        return rows, {to: tags[n] for to, n in chosen.items()}


def _different(_: Problem) -> list[Solver]:
    """The methods of table 6, with the settings under which MVMLCCA leads and does not."""
    k = 40
    grid = {"sigma": (0.03, 0.1, 0.3, 1.0, 3.0), "reg": (1e-1, 1.0, 10.0)}
    found = []
    for solver in (own.mlcca(k), own.mvmlcca("label", k), own.mvmlcca("sample", k)):
        pairs = solver.name == "MLCCA"

        def build(setting: Setting, seed: int, solver=solver, pairs=pairs) -> Any:
            return Vocabularies(solver.build(setting, seed), pairs)

        first = {**solver.first, "reg": 1.0, "sigma": 1.0}
        found.append(Solver(solver.name, build, first, grid, note=solver.note))
    return found


_VOCABULARIES = Table(
    "p4",
    "table 6",
    "Views whose labels have different vocabularies: weighted mAP",
    [VOCABULARIES],
    _different,
    ("wmap@50", "wmap@50:weighted"),
    "wmap@50",
    rankings=("cosine",),
    n_trials=12,
    n_seeds=5,
    reference="MVMLCCA",
    published={"MLCCA": ".7794", "MVMLCCA": ".7845"},
    remark="Two captions have every other label of MS-COCO, two the others, and no training image "
    "is in both kinds of views. Both readings of eq. (8).",
)
TABLES = [_TWO_VIEWS, _PAIRS, _JOINED, _WITHIN, _VOCABULARIES]


def _seconds(records: Mapping[str, list[Any]]) -> dict[str, float] | None:
    """CPU seconds of a fit, by solver."""
    found = {name: np.median([r["cpu_seconds"] for r in own]) for name, own in records.items()}
    return {name: float(seconds) for name, seconds in found.items()} or None


def _times(seconds: Mapping[str, float]) -> str:
    lines = ["| method | CPU s |", "|---|---|"]
    return "\n".join([*lines, *(f"| {name} | {own:.2f} |" for name, own in seconds.items())])


FIGURES = [Figure("p4", "table 3", "Time of training", _TWO_VIEWS, _seconds, _times)]
MISSING: list[Missing] = []
