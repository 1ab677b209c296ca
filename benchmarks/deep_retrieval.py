"""Retrieval between MNIST halves by deep methods: R@1, R@5, R@10 and MRR both ways, seed by seed.

    python benchmarks/deep_retrieval.py [--seeds 5] [--methods dcca learned ccal ds-ranking-zx]
        [--rows 15000] [--epochs 25] [--output results.csv]

Trains on the first 15,000 training images, keeps the weights of the epoch with the best mean
reciprocal rank on the first 2,000 validation images, and ranks the halves of the first 2,000 test
images by each other. A line per method and seed is printed, and appended to --output; then the mean
and standard deviation over the seeds, and paired t-tests against CCAL. DCCA, LearnedRanking and
CCAL share the networks (one hidden layer of 256), the optimizer and its settings. Needs mnist.npz
in the directory MVCCA_DATA.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
from _measure import machine
from _retrieval import figures, report

from mvcca import CCA
from mvcca.datasets import fetch_mnist_halves
from mvcca.deep import CCAL, DCCA, DSRankingCCA, LearnedRanking

SHARED = {
    "optimizer": "adam",
    "learning_rate": 1e-3,
    "hidden_layer_sizes": (256,),
    "monitor": "valid_mrr",
}
METHODS = {
    "cca": (CCA, {"reg": 0.1}),
    "dcca": (DCCA, {**SHARED, "batch_size": 750}),
    "learned": (LearnedRanking, {**SHARED, "batch_size": 750}),
    "ccal": (CCAL, {**SHARED, "batch_size": 750}),
    "ranking-cca": (CCAL, {**SHARED, "batch_size": 1024, "margin": 0.7, "memory": 0.9}),
    **{
        f"ds-ranking-{sees}": (
            DSRankingCCA,
            {**SHARED, "batch_size": 1024, "sees": sees, "scaling_layer_sizes": (64,)},
        )
        for sees in ("z", "x", "zx")
    },
}


def fitted(method, train, valid, options, seed):
    cls, settings = METHODS[method]
    if cls is CCA:
        return CCA(options.components, **settings).fit(train)
    if cls is DSRankingCCA:  # the same share of the epochs as 50 of 100
        settings = {**settings, "warm_up": options.epochs // 2}
    model = cls(
        options.components,
        max_epochs=options.epochs,
        device=options.device,
        random_state=seed,
        **settings,
    )
    return model.fit(train, X_val=valid)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=15_000)
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--components", type=int, default=50)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    data = fetch_mnist_halves()
    train, valid, test = (
        data.train.views[: options.rows],
        data.valid.views[:2000],
        data.test.views[:2000],
    )
    print(f"{machine(torch.get_num_threads())}, torch {torch.__version__}", end="\n\n")
    print("method, seed, best epoch, seconds, left to right r@1 r@5 r@10 mrr, right to left ...")
    results = {method: [] for method in options.methods}
    for seed in range(options.seeds):
        for method in options.methods:
            start = time.perf_counter()
            model = fitted(method, train, valid, options, seed)
            seconds = time.perf_counter() - start
            row = figures(model, test)
            results[method].append(row)
            shown = ", ".join(f"{value:.2f}" for value in row)
            best = getattr(model, "best_epoch_", 0)
            line = f"{method}, {seed}, {best}, {seconds:.0f}, {shown}"
            print(line, flush=True)
            if options.output:
                with options.output.open("a", encoding="utf-8") as file:
                    file.write(line + "\n")
    report(results, test.names)


if __name__ == "__main__":
    main()
