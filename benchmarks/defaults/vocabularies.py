"""Weighted mAP between views with different label vocabularies: table 6 of [1].

    MVCCA_DATA=../shared/data python -m benchmarks.defaults.vocabularies [--vectors word2vec]

The 80 labels of MS-COCO are split into two vocabularies, every other label in each. Two captions
(cap0, cap1) have the labels of the first vocabulary, two (cap2, cap3) those of the second, and no
training image is seen in both kinds of views. Only word vectors relate the vocabularies: the
methods learn from their sums, and eq. (8) measures with them, in both readings of P(k). Images
without a label of the vocabulary are left out. The bandwidth and the ridge are the best of a grid
on a fifth of the training rows. Random scores show the level of chance, and ranking by h itself the
largest possible values. Like the paper, MLCCA is fitted to each pair of views and MVMLCCA to all
views at once.

[1] Sanghavi and Verma, "Multi-view Multi-label Canonical Correlation Analysis for Cross-modal
Matching and Retrieval", CVPRW 2022.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from typing import Any


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = ("word2vec", "glove_mlgcn", "glove_zsd", "fasttext")
    parser.add_argument("--vectors", choices=kinds, default="word2vec")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.pipeline import make_pipeline

from benchmarks._measure import machine
from benchmarks.real import fetch_coco_captions, fetch_coco_label_vectors
from mvcca import MLCCA, MVMLCCA, Labels, PerView, Views, evaluate_retrieval
from mvcca.measures import label_set_similarity, weighted_average_precision

MEASURES = ("wmap@50", "wmap@50:weighted")
GRID = {"sigma": (0.03, 0.1, 0.3, 1.0, 3.0), "reg": (1e-1, 1.0, 10.0)}
METHODS = {
    "MLCCA": MLCCA(40),
    "MVMLCCA": MVMLCCA(40, within="label"),
    'MVMLCCA "sample"': MVMLCCA(40, within="sample"),
}


@dataclass
class Rows:
    """Unpaired rows of several views, and the label set of each row."""

    blocks: dict[str, np.ndarray]
    tags: dict[str, list[set[str]]]

    def of(self, names: Sequence[str]) -> Rows:
        return Rows({n: self.blocks[n] for n in names}, {n: self.tags[n] for n in names})

    def take(self, rows: dict[str, np.ndarray]) -> Rows:
        return Rows(
            {name: self.blocks[name][own] for name, own in rows.items()},
            {name: [self.tags[name][i] for i in own] for name, own in rows.items()},
        )


def rows_of(part: Any, views: Views, names: np.ndarray, images: dict[str, np.ndarray]) -> Rows:
    """Captions of some images per view, with labels of the view's vocabulary."""
    blocks, tags = {}, {}
    for number, (view, own) in enumerate(images.items()):
        allowed = np.arange(len(names)) % 2 == number // 2
        labels = part.labels.astype(bool) & allowed
        own = own[labels[own].any(axis=1)]
        blocks[view] = views[view][own]
        tags[view] = [set(names[labels[i]]) for i in own]
    return Rows(blocks, tags)


def load() -> tuple[Rows, Rows]:
    data = fetch_coco_captions()
    words = PerView(make_pipeline(TfidfTransformer(), TruncatedSVD(200, random_state=0)))
    names = [f"cap{number}" for number in range(4)]
    train, test = data.train.views.select(names), data.test.views.select(names)
    train, test = words.fit_transform(train), words.transform(test)
    halves = np.array_split(np.random.default_rng(0).permutation(len(train)), 2)
    seen = {name: halves[number // 2] for number, name in enumerate(names)}
    every = dict.fromkeys(names, np.arange(len(test)))
    return (
        rows_of(data.train, train, data.label_names, seen),
        rows_of(data.test, test, data.label_names, every),
    )


def fitted(model: Any, rows: Rows, words: dict[str, np.ndarray]) -> Any:
    y = {name: Labels.of(tags).word_sums(words) for name, tags in rows.tags.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(Views.unpaired(rows.blocks), y)


def measured(model: Any, rows: Rows, words: dict[str, np.ndarray], directions: Any) -> Any:
    views = Views.unpaired(rows.blocks)
    return evaluate_retrieval(
        views if model is not None else rows.blocks,
        rows.tags,
        label_vectors=words,
        measures=MEASURES,
        directions=directions,
        estimator=model,
    )


def chosen(model: Any, train: Rows, words: dict[str, np.ndarray]) -> Any:
    """The model with the parameters of the grid that are best on a fifth of the rows."""
    rng = np.random.default_rng(0)
    orders = {name: rng.permutation(len(block)) for name, block in train.blocks.items()}
    held_out = train.take({name: order[: len(order) // 5] for name, order in orders.items()})
    rest = train.take({name: order[len(order) // 5 :] for name, order in orders.items()})

    def goodness(parameters: dict[str, float]) -> float:
        candidate = fitted(clone(model).set_params(**parameters), rest, words)
        return measured(candidate, held_out, words, "all").mean()[MEASURES[0]]

    grid = [dict(zip(GRID, values, strict=True)) for values in product(*GRID.values())]
    return clone(model).set_params(**max(grid, key=goodness))


def largest(test: Rows, words: dict[str, np.ndarray]) -> dict[Any, dict[str, float]]:
    """The measures of rankings by the label similarity h of eq. (8)."""
    names, vectors = list(words), np.stack(list(words.values()))
    sets = {
        view: np.array([[name in tags for name in names] for tags in rows])
        for view, rows in test.tags.items()
    }
    values = {}
    for query, target in product(sets, sets):
        h = label_set_similarity(sets[query], sets[target], vectors, vectors)
        if query == target:  # a query does not find itself
            others = ~np.eye(len(h), dtype=bool)
            h = h[others].reshape(len(h), -1)
        of_readings = [
            weighted_average_precision(h, h, 50, precision).mean()
            for precision in ("binary", "weighted")
        ]
        values[query, target] = dict(zip(MEASURES, of_readings, strict=True))
    return values


def pair_by_pair(model: Any, train: Rows, test: Rows, words: Any) -> tuple[dict[Any, Any], float]:
    values, total = {}, 0.0
    for p, q in combinations_with_replacement(train.blocks, 2):
        own, held_out = train.of([p, q]), test.of([p, q])
        if p == q:  # the same view on both sides
            own, held_out = (
                Rows({p: r.blocks[p], "": r.blocks[p]}, {p: r.tags[p], "": r.tags[p]})
                for r in (own, held_out)
            )
        start = time.perf_counter()
        pair = fitted(clone(model), own, words)
        total += time.perf_counter() - start
        table = measured(pair, held_out, words, [(p, q)] if p == q else "cross")
        values |= {(row.query, row.target): row.values for row in table}
    return values, total


def main(options: argparse.Namespace) -> None:
    given = fetch_coco_label_vectors()
    words = dict(zip(given.label_names, given.vectors[options.vectors], strict=True))
    train, test = load()
    sizes = ", ".join(f"{name} {len(rows)}" for name, rows in train.blocks.items())
    print(machine(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count()))))
    print(f"\n{options.vectors}; training rows: {sizes}; k = 40, seed 0\n")

    noise = np.random.default_rng(0)
    chance = {name: noise.normal(size=(len(rows), 8)) for name, rows in test.blocks.items()}
    table = measured(None, Rows(chance, test.tags), words, "all")
    columns = {"chance": {(row.query, row.target): row.values for row in table}}
    columns["ranked by h"] = largest(test, words)
    settings, seconds = [], {"chance": 0.0, "ranked by h": 0.0}
    for name, model in METHODS.items():
        best = chosen(model, train, words)
        settings.append(f"{name}: sigma = {best.sigma:g}, reg = {best.reg:g}")
        if name == "MLCCA":
            columns[name], seconds[name] = pair_by_pair(best, train, test, words)
            continue
        start = time.perf_counter()
        fitted(best, train, words)
        seconds[name] = time.perf_counter() - start
        table = measured(best, test, words, "all")
        columns[name] = {(row.query, row.target): row.values for row in table}
    print("\n".join(settings), end="\n\n")
    print(f"| query → target | {' | '.join(columns)} |")
    print(f"|---|{'---|' * len(columns)}")
    directions = [(query, target) for query in train.blocks for target in train.blocks]

    def line(text: str, of: list[tuple[str, str]]) -> None:
        cells = [
            " / ".join(f"{np.mean([values[d][m] for d in of]):.3f}" for m in MEASURES)
            for values in columns.values()
        ]
        print(f"| {text} | {' | '.join(cells)} |")

    for query, target in directions:
        line(f"{query} → {target}", [(query, target)])
    first = ("cap0", "cap1")
    line("**average**", directions)
    line("**between vocabularies**", [d for d in directions if (d[0] in first) != (d[1] in first)])
    line("**within a vocabulary**", [d for d in directions if (d[0] in first) == (d[1] in first)])
    print(f"| seconds | {' | '.join(f'{value:.2f}' for value in seconds.values())} |")


if __name__ == "__main__":
    main(OPTIONS)
