"""Retrieval between MNIST halves by deep methods: R@1, R@5, R@10 and MRR both ways, seed by seed.

    python benchmarks/deep_retrieval.py [--seeds 5] [--methods dcca learned ccal ds-ranking-zx]
        [--rows 15000] [--epochs 30] [--reference ccal] [--output results.csv]

Trains on the first 15,000 training images, keeps the weights of the epoch with the best mean
reciprocal rank on the first 2,000 validation images, and ranks the halves of the first 2,000 test
images by each other. On the first seed, the validation images also choose the learning rate, and
the margin of methods with a ranking loss. A line per method and seed is printed, and appended to
--output; then the mean and standard deviation over the seeds, and paired t-tests against one of the
methods; last, the canonical correlations of the test scores of the first seed, figure 6 of Dorfer
et al. (2018). All networks have one hidden layer of 256 and are trained by Adam. Needs mnist.npz in
the directory MVCCA_DATA.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--methods", nargs="+", help="all by default")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=15_000)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--components", type=int, default=50)
    parser.add_argument("--reference", default="ccal")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--output", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import torch
from _arguments import names_in
from _measure import machine
from _retrieval import noted, report
from real import fetch_mnist_halves

from mvcca import CCA, evaluate_retrieval
from mvcca.deep import CCAL, DCCA, DSRankingCCA, LearnedRanking

SHARED = {
    "optimizer": "adam",
    "hidden_layer_sizes": (256,),
    "monitor": "valid_mrr",
    "batch_size": 750,
    "standardize": False,
}
MEMORY = {**SHARED, "batch_size": 1024, "memory": 0.9}
DYNAMIC = {**MEMORY, "scaling_layer_sizes": (64,)}
RATES = [{"learning_rate": rate} for rate in (1e-3, 3e-3, 1e-2)]
RATES_AND_MARGINS = [rate | {"margin": margin} for rate in RATES[1:] for margin in (0.5, 0.7)]
# Estimator, settings, and the settings among which validation rows choose.
METHODS = {
    "cca": (CCA, {}, [{"reg": reg} for reg in (1e-3, 1e-2, 1e-1, 1.0)]),
    "dcca": (DCCA, SHARED, RATES),
    "learned": (LearnedRanking, SHARED, RATES_AND_MARGINS),
    "ccal": (CCAL, SHARED, RATES_AND_MARGINS),
    "ranking-cca": (CCAL, MEMORY, RATES_AND_MARGINS),
    **{
        f"ds-ranking-{sees}": (DSRankingCCA, {**DYNAMIC, "sees": sees}, RATES_AND_MARGINS[2:])
        for sees in ("z", "x", "zx")
    },
}


def fitted(method, setting, train, valid, options, seed):
    cls, settings, _ = METHODS[method]
    settings = settings | setting
    if cls is CCA:
        return CCA(options.components, **settings).fit(train)
    if cls is DSRankingCCA:  # the same share of the epochs as 50 of 100
        settings["warm_up"] = options.epochs // 2
    model = cls(
        options.components,
        max_epochs=options.epochs,
        device=options.device,
        random_state=seed,
        **settings,
    )
    return model.fit(train, X_val=valid)


def chosen(method, train, valid, options):
    """The setting with the best mean reciprocal rank on the validation rows, for the first seed."""

    def quality(setting):
        model = fitted(method, setting, train, valid, options, 0)
        return evaluate_retrieval(valid, estimator=model, measures="mrr").mean()["mrr"]

    return max(METHODS[method][2], key=quality)


def report_coefficients(coefficients, n_components):
    """Print some canonical correlations of each method, and their sum."""
    shown = sorted({1, *range(10, n_components + 1, 10)})
    print(f"\n| method | {' | '.join(f'ρ{i}' for i in shown)} | sum |")
    print("|---|" + "---|" * (len(shown) + 1))
    for method, rho in coefficients.items():
        cells = [*(f"{rho[i - 1]:.3f}" for i in shown), f"{rho.sum():.2f}"]
        print("|", " | ".join([method, *cells]), "|")


def main(options: argparse.Namespace) -> None:
    options.methods = names_in(options.methods, METHODS)
    data = fetch_mnist_halves()
    train, valid, test = (
        data.train.views[: options.rows],
        data.valid.views[:2000],
        data.test.views[:2000],
    )
    print(f"{machine(torch.get_num_threads())}, torch {torch.__version__}", end="\n\n")
    settings = {name: chosen(name, train, valid, options) for name in options.methods}
    for name, setting in settings.items():
        print(name, ", ".join(f"{key} {value:g}" for key, value in setting.items()), flush=True)
    print("method, seed, best epoch, seconds, left to right r@1 r@5 r@10 mrr, right to left ...")
    results, coefficients = {method: [] for method in options.methods}, {}
    for seed in range(options.seeds):
        for method in options.methods:
            start = time.perf_counter()
            model = fitted(method, settings[method], train, valid, options, seed)
            seconds = time.perf_counter() - start
            row = noted(f"{method}, {seed}", model, seconds, test, options.output)
            results[method].append(row)
            if seed == 0:
                scores = model.transform(test)
                coefficients[method] = CCA(options.components).fit(scores).canonical_correlations_
    report(results, test.names, options.reference)
    report_coefficients(coefficients, options.components)


if __name__ == "__main__":
    main(OPTIONS)
