"""Aligning frozen text encoders with few known pairs or none: pseudo-pairs and starts.

English MiniLM and German e5 embed sentences of Multi30K. R@1 on the 1,000 test sentences, mean of
both directions.

- Few pairs: m known pairs, drawn at random from the 10,000 training sentences. Half of the others
  are seen in English only, half in German only. "pairs only" is the CCA of the known pairs with
  ``reg="cv"``, and "pseudo-pairs" `align_unpaired` with them in any case; "auto" says what
  ``pseudo_pairs="auto"`` would do, with the gain that its folds measured. Beside each R@1 stands
  that with CSLS against training rows.
- No pairs: the same 5,000 sentences in both languages, shuffled, or disjoint halves. "failed" is
  what the function itself says, from the share of matches that a second fit retraces.
- Rules: what choosing by the gain of folds costs in mean reciprocal rank on planted items, against
  the better of both models: 12 to 150 pairs, 200 other rows in each set, 400 new items.

    python -m benchmarks.alignment.unpaired --pairs --draws --rules [--seeds 0 1 3 4]
    MVCCA_DATA=../shared/data python -m benchmarks.alignment.unpaired [--pairs 20 50 200 500 1000]
        [--draws same disjoint] [--seeds 1]
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, nargs="*", default=[20, 50, 200, 500, 1000])
    parser.add_argument("--draws", nargs="*", default=["same", "disjoint"])
    parser.add_argument("--rules", action="store_true", help="what rules of pseudo-pairs cost")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--rows", type=int, default=10_000, help="training sentences to use")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np

from benchmarks._measure import machine
from benchmarks.real import fetch_multi30k_encoders
from mvcca import CCA, Views, evaluate_retrieval
from mvcca.interop.alignment import align_unpaired

ENCODERS = ("en_minilm", "de_e5")


def recall(model: Any, test: Views, bank: Views) -> tuple[float, float]:
    """R@1, mean of both directions, plain and with CSLS."""
    tables = [
        evaluate_retrieval(test, estimator=model, measures="r@1", **options)
        for options in ({}, {"weighting": "profile-likelihood", "hubness": "csls", "bank": bank})
    ]
    return tuple(float(table.mean()["r@1"]) for table in tables)  # type: ignore[return-value]


def few_pairs(train: Views, test: Views, m: int, seed: int) -> None:
    """One row of the table of few pairs."""
    order = np.random.default_rng(seed).permutation(len(train))
    known, rest = order[:m], order[m:]
    half = len(rest) // 2
    x, y = (
        np.asarray(train[name])[np.concatenate([known, part])]
        for name, part in zip(train.names, (rest[:half], rest[half:]), strict=True)
    )
    pairs = np.tile(np.arange(m)[:, None], 2)
    bank = Views.unpaired({"x": x, "y": y})
    alone = recall(CCA(None, reg="cv").fit({"x": x[:m], "y": y[:m]}), test, bank)
    start = time.process_time()
    found = align_unpaired(x, y, pairs=pairs, pseudo_pairs="always")
    seconds = time.process_time() - start
    with_pairs = recall(found.model, test, bank)
    uses = "on" if found.gain > -found.gain_error else "off"
    print(
        f"| {m:,} | {seed} | {alone[0]:.3f} ({alone[1]:.3f}) | {with_pairs[0]:.3f} "
        f"({with_pairs[1]:.3f}) | {uses} ({found.gain:+.3f} ± {found.gain_error:.3f}) | "
        f"{found.found_first:.3f} ± {found.found_first_error:.3f} | {seconds:.0f} s |",
        flush=True,
    )


def no_pairs(train: Views, test: Views, draw: str, seed: int) -> None:
    """One row of the table without pairs."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(train))
    half = len(train) // 2
    of_y = rng.permutation(order[:half]) if draw == "same" else order[half:]
    x, y = (
        np.asarray(train[n])[own] for n, own in zip(train.names, (order[:half], of_y), strict=True)
    )
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = align_unpaired(x, y, random_state=seed)
    seconds = time.process_time() - start
    first, with_csls = recall(found.model, test, Views.unpaired({"x": x, "y": y}))
    counts = " ".join(str(step.n_pairs) for step in found.steps if step.stage == "rotation")
    print(
        f"| {draw} | {seed} | {first:.3f} ({with_csls:.3f}) | {found.has_failed} "
        f"({found.retraced:.3f}) | {counts.split()[-1]} | "
        f"{len(found.pairs)} | {seconds:.0f} s |",
        flush=True,
    )


def planted(kind: str, noise: float, seed: int) -> list[np.ndarray]:
    """900 items in two spaces: of heavy tails, or in clusters."""
    rng = np.random.default_rng(seed)
    if kind == "heavy tails":
        items = rng.standard_normal((900, 12)) ** 3
    else:
        centres, shares = 2 * rng.standard_normal((25, 12)), rng.dirichlet(np.ones(25))
        items = centres[rng.choice(25, 900, p=shares)] + 0.7 * rng.standard_normal((900, 12))
    return [
        items @ np.linalg.qr(rng.standard_normal((width, 12)))[0].T
        + noise * rng.standard_normal((900, width))
        for width in (30, 35)
    ]


def rules(seeds: list[int]) -> None:
    """Regret of rules that choose pseudo-pairs by the gain that folds measure."""
    cells = []
    cases = [("heavy tails", 0.3), ("heavy tails", 0.6), ("clusters", 0.35), ("clusters", 0.8)]
    for kind, noise in cases:
        for m in (12, 20, 50, 150):
            for seed in seeds:
                x, y = planted(kind, noise, seed)
                own = x[: m + 200], np.concatenate([y[:m], y[m + 100 : m + 300]])
                pairs = np.tile(np.arange(m)[:, None], 2)
                found = align_unpaired(*own, pairs=pairs, pseudo_pairs="always")
                alone = CCA(None, reg="cv").fit({"x": x[:m], "y": y[:m]})
                new = {"x": x[500:], "y": y[500:]}
                cells.append(
                    [
                        *(
                            evaluate_retrieval(new, estimator=model, measures="mrr").mean()["mrr"]
                            for model in (found.model, alone)
                        ),
                        found.gain / found.gain_error,
                    ]
                )
    on, off, gain = np.array(cells).T
    print("| pseudo-pairs if the gain is above | mean regret | largest |\n|---|---|---|")
    for name, least in (
        ("its error", 1.0),
        ("0", 0.0),
        ("minus its error", -1.0),
        ("minus twice its error", -2.0),
        ("always", -np.inf),
        ("never", np.inf),
    ):
        regret = np.maximum(on, off) - np.where(gain > least, on, off)
        print(f"| {name} | {regret.mean():.4f} | {regret.max():.3f} |")


def main(options: argparse.Namespace) -> None:
    print(machine(1), "\n")
    if options.rules:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rules(options.seeds)
    if not options.pairs and not options.draws:
        return
    data = fetch_multi30k_encoders()
    train, test = (data[part].views.select(ENCODERS) for part in ("train", "test"))
    train = train[: options.rows]
    test = Views({name: np.asarray(test[own]) for name, own in zip("xy", ENCODERS, strict=True)})
    if options.pairs:
        print("| pairs | seed | pairs only | pseudo-pairs | auto | left-out pairs | CPU |")
        print(f"|{'---|' * 7}")
    for m in options.pairs:
        for seed in options.seeds:
            few_pairs(train, test, m, seed)
    if options.draws:
        print("\n| rows | seed | R@1 | failed | rotation: pairs | pseudo-pairs | CPU |")
        print(f"|{'---|' * 7}")
    for draw in options.draws:
        for seed in options.seeds:
            no_pairs(train, test, draw, seed)


if __name__ == "__main__":
    main(OPTIONS)
