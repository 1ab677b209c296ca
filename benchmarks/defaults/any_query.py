"""Several views as a query: the shared space of MVCCA against questions solved by themselves.

Mean reciprocal rank of the row of the same object among held-out rows, for query views and a
target: by the shared space, by CCA of the query views side by side, by the sum of what each of them
tells, by the better one of the latter two on the folds of the training rows, and by the best one of
all three, which is the default. All are tuned by folds of the same training rows, and all but the
last two with every query view. With --noise, each query has one more view, of standard normal
numbers. With --missing, objects lack each view with this probability, but have two at least. Emoji
names need the package `emoji`.

With --labels: mAP@50 by class of MVMLCCA: by the space that all views share, by each kind of
evidence, and by what folds choose, which is the default; against MLCCA of the query views side by
side and the target. "single views" are means over all pairs of views.

    MVCCA_DATA=../shared/data python -m benchmarks.defaults.any_query
        [emoji multi30k mfeat scene coco] [--rows 300 800] [--seeds 1] [--noise] [--missing .3]
        [--labels]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*", help="all by default")
    parser.add_argument("--rows", type=int, nargs="*", help="of training; by default by data")
    parser.add_argument("--seeds", type=int, default=1, help="splits of the rows")
    parser.add_argument("--noise", action="store_true", help="one more query view")
    parser.add_argument("--missing", type=float, default=0.0, help="probability")
    parser.add_argument("--labels", action="store_true", help="of mfeat and scene, by class")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer
from sklearn.pipeline import make_pipeline

from benchmarks._arguments import names_in
from benchmarks._measure import machine
from benchmarks.real import fetch_coco_captions, fetch_mfeat, fetch_multi30k, fetch_scene
from mvcca import MLCCA, MVCCA, MVMLCCA, Labels, Views, evaluate_retrieval

HELD_OUT = 500
WIDTH = 100  # of texts
KINDS = ("shared", "joint", "pairs")
Question = tuple[tuple[str, ...], str]


def emoji() -> Views:
    from emoji import EMOJI_DATA, config

    languages = ("de", "es", "fr", "it")
    config.load_language(list(languages))
    known = [
        own
        for own in EMOJI_DATA.values()
        if all(name in own for name in languages) and "skin_tone" not in own["en"]
    ]
    names = {n: [own[n].strip(":").replace("_", " ") for own in known] for n in languages}
    words = {n: TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4)) for n in languages}
    tables = {n: words[n].fit_transform(texts) for n, texts in names.items()}
    return Views(
        {n: TruncatedSVD(WIDTH, random_state=0).fit_transform(X) for n, X in tables.items()}
    )


def of_words(views: Views) -> Views:
    """Sparse counts of words as a few directions of their tf-idf."""
    steps = {
        n: make_pipeline(TfidfTransformer(), TruncatedSVD(WIDTH, random_state=0))
        for n in views.names
    }
    return Views({name: step.fit_transform(views[name]) for name, step in steps.items()})


def multi30k() -> Views:
    return of_words(fetch_multi30k().train.views[:3000])


def coco() -> Views:
    return of_words(fetch_coco_captions().train.views)


def mfeat() -> Views:
    views = fetch_mfeat().views
    return Views({name: views[name].astype(float) for name in views.names})


def scene() -> Views:
    views = fetch_scene().train.views
    return Views({name: views[name].astype(float) for name in views.names})


# Views, numbers of training rows, and questions; the target is the last view if there are none.
DATA: dict[str, tuple[Callable[[], Views], tuple[int, ...], tuple[str, ...]]] = {
    "emoji": (emoji, (300, 800), ("it",)),
    "multi30k": (multi30k, (300, 1000), ("cs",)),
    "mfeat": (mfeat, (300, 700), ("zer", "mor")),
    "scene": (scene, (300, 800), ("v",)),
    "coco": (coco, (300, 1000), ("cap4",)),
}


def split(views: Views, n_rows: int, seed: int) -> tuple[Views, Views]:
    order = np.random.RandomState(seed).permutation(len(views))
    n_held_out = min(HELD_OUT, len(views) - n_rows)
    return views[np.sort(order[:n_rows])], views[np.sort(order[n_rows : n_rows + n_held_out])]


def with_holes(views: Views, share: float, seed: int) -> Views:
    """Objects that lack each view with this probability, but have two."""
    rng = np.random.RandomState(seed)
    seen = rng.uniform(size=(len(views), len(views.names))) > share
    for row in seen:
        if row.sum() < 2:
            row[rng.permutation(len(row))[:2]] = True
    index = np.where(seen, np.arange(len(views))[:, None], -1)
    blocks = {n: views[n][seen[:, i]] for i, n in enumerate(views.names)}
    index = np.where(seen, np.cumsum(seen, axis=0) - 1, -1)
    return Views(blocks, index)


def mrr(model: MVCCA, test: Views, query: tuple[str, ...], target: str) -> float:
    table = evaluate_retrieval(test, estimator=model, directions=[(query, target)], measures="mrr")
    return float(table.mean()["mrr"])


def measured(train: Views, test: Views, query: tuple[str, ...], target: str) -> dict[str, object]:
    """MRR by kind of evidence, of what folds choose among two and three kinds, and views used."""
    found: dict[str, object] = {}
    start = time.process_time()
    model = MVCCA(None, reg="cv").fit(train)
    found["fit"] = time.process_time() - start
    start = time.process_time()
    found["all three"] = mrr(model, test, query, target)
    found["question"] = time.process_time() - start
    found["used"] = "+".join(model.query_views_used_[query, target])
    questions = model.questions_
    key = query, (target,), ""
    best = {own.kind: own for own in questions.best_of_each_kind(query, (target,))}
    for kind in KINDS:
        if kind in best:
            model.questions_ = replace(questions, chosen={key: best[kind]})
            found[kind] = mrr(model, test, query, target)
    model.questions_ = replace(questions, is_given=True, chosen={})
    found["joint or pairs"] = mrr(model, test, query, target)
    return found


def in_line(found: list[dict[str, object]]) -> str:
    columns = (*KINDS, "joint or pairs", "all three")
    means = [
        np.mean([own[name] for own in found]) if name in found[0] else np.nan for name in columns
    ]
    seconds = [np.mean([own[name] for own in found]) for name in ("fit", "question")]
    used = ", ".join(dict.fromkeys(str(own["used"]) for own in found))
    numbers = " | ".join(f"{value:.3f}".replace("0.", ".") for value in means)
    return f"{numbers} | {used} | {seconds[0]:.1f} + {seconds[1]:.1f}"


def side_by_side(views: Views, query: tuple[str, ...], target: str) -> Views:
    return Views({"query": np.hstack([views[name] for name in query]), "target": views[target]})


def map50(model: Any, part: tuple[Views, Labels], query: tuple[str, ...], target: str) -> float:
    table = evaluate_retrieval(
        *part, estimator=model, directions=[(query, target)], measures="map@50"
    )
    return float(table.mean()["map@50"])


def of_labels(
    model: MVMLCCA,
    parts: tuple[tuple[Views, Labels], tuple[Views, Labels]],
    query: tuple[str, ...],
    target: str,
) -> dict[str, float]:
    """mAP@50 by kind of evidence, of what folds choose, of MLCCA, and CPU s of the question."""
    start = time.process_time()
    found = {"chosen": map50(model, parts[1], query, target)}
    found["CPU s"] = time.process_time() - start
    questions = model.questions_
    for own in questions.best_of_each_kind(query, (target,)):
        model.questions_ = replace(questions, chosen={(query, (target,), ""): own})
        found[own.kind] = map50(model, parts[1], query, target)
    model.questions_ = questions
    if len(query) > 1:
        train, test = ((side_by_side(own, query, target), labels) for own, labels in parts)
        pair = MLCCA(None, reg="cv", cv_goal="class").fit(*train)
        found["MLCCA"] = map50(pair, test, ("query",), "target")
    return found


def print_labels() -> None:
    """A line per joint question of mfeat and scene, and one of all single query views."""
    columns = ("shared", "joint", "pairs", "chosen", "MLCCA", "CPU s")
    print("| question | rows | shared | joint | pairs | chosen | MLCCA, side by side | CPU s |")
    print("|---|---|---|---|---|---|---|---|")
    for name, data in (("mfeat", fetch_mfeat()), ("scene", fetch_scene().train)):
        if OPTIONS.data and name not in OPTIONS.data:
            continue
        views, labels = DATA[name][0](), Labels.of(data.labels)
        for n_rows in OPTIONS.rows or (300, 800):
            found: dict[str, list[dict[str, float]]] = {}
            for seed in range(OPTIONS.seeds):
                order = np.random.RandomState(seed).permutation(len(views))
                train, test = order[:n_rows], order[n_rows : n_rows + HELD_OUT]
                parts = (views[train], labels[train]), (views[test], labels[test])
                model = MVMLCCA(None, reg="cv", cv_goal="class").fit(*parts[0])
                for target in views.names:
                    query = tuple(own for own in views.names if own != target)
                    title = f"{name} {'+'.join(query)} -> {target}"
                    found.setdefault(title, []).append(of_labels(model, parts, query, target))
                    single = found.setdefault(f"{name}, single views", [])
                    single += [of_labels(model, parts, (own,), target) for own in query]
            for title, own in found.items():
                means = [np.mean([each.get(c, np.nan) for each in own]) for c in columns]
                values = " | ".join("" if np.isnan(v) else f"{v:.3f}" for v in means)
                print(f"| {title} | {n_rows} | {values} |", flush=True)


def main() -> None:
    print(machine(1))
    if OPTIONS.labels:
        print_labels()
        return
    print(
        "| question | rows | shared | joint | pairs | joint or pairs | all three | used | CPU s |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name in names_in(OPTIONS.data, DATA):
        load, sizes, targets = DATA[name]
        try:
            views = load()
        except ImportError as error:
            print(f"| {name}: skipped, {error} |")
            continue
        for target in targets:
            query = tuple(own for own in views.names if own != target)
            for n_rows in OPTIONS.rows or sizes:
                found = []
                for seed in range(OPTIONS.seeds):
                    own = views
                    if OPTIONS.noise:
                        noise = np.random.RandomState(seed).standard_normal((len(views), WIDTH))
                        own = Views({**dict(views.items()), "noise": noise})
                    train, test = split(own, n_rows, seed)
                    if OPTIONS.missing:
                        train = with_holes(train, OPTIONS.missing, seed)
                    asked = (*query, "noise") if OPTIONS.noise else query
                    found.append(measured(train, test, asked, target))
                title = f"{name} {'+'.join(query)}{' + noise' * OPTIONS.noise} -> {target}"
                print(f"| {title} | {n_rows} | {in_line(found)} |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
