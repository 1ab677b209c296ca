"""Ablations of DS-DCCA on MNIST halves: what dynamic scaling adds to DCCA at equal capacity.

    python benchmarks/deep_ablation.py [--rows 20000] [--epochs 16] [--seeds 5] [--start default]
        [--variants DCCA DS-DCCA ...] [--regs 1e-4 1e-2]

The variants of table 2 of Friedlander and Wolf (2022), each trained with the same seeds. Prints for
RESULTS.md the total test correlation of 50 components, the share of the gap between DCCA and the
upper bound 50 that each variant closes, and paired t-tests over the seeds. The weights are those of
the epoch with the lowest validation loss; the ridge is the one of --regs with the highest total
correlation of the validation images for the first seed. Figures of each fit go to the standard
error. Needs mnist.npz in the directory MVCCA_DATA.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from itertools import product


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000, help="training images")
    parser.add_argument("--valid-rows", type=int, default=5_000)
    parser.add_argument("--hidden", nargs="+", type=int, default=[128, 128])
    parser.add_argument("--scaling-hidden", nargs="+", type=int, default=[48])
    parser.add_argument("--start", default="one", help="initial scales; default: the published")
    parser.add_argument("--epochs", type=int, default=16, help="half of them to warm up")
    parser.add_argument("--variants", nargs="+", help="all by default")
    parser.add_argument("--regs", nargs="+", type=float, default=[1e-4, 1e-2])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--mixed-precision", action="store_true", help="networks in bfloat16")
    parser.add_argument("--device", default="cpu")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np
import torch
from _arguments import names_in
from _measure import machine
from real import fetch_mnist_halves
from scipy.stats import ttest_rel

from mvcca.deep import DCCA, DSDCCA
from mvcca.deep.encoders import n_parameters, widened
from mvcca.measures import total_correlation

N_PIXELS, K = 392, 50
PUBLISHED = {
    "DCCA": 46.71,
    "Wide 2": 46.90,
    "Wide 1&2": 46.86,
    "Global Scale": 46.70,
    "scaling outputs": 47.22,
    "without θᶜ": 47.42,
    "no warm-up": 47.36,
    "DS-DCCA": 47.56,
}


def variants(sizes, scaling_sizes, epochs, start):
    """The estimators by name; all but DCCA and Global Scale have about as many parameters."""
    added = n_parameters(sizes[-1], scaling_sizes, K * (sizes[-1] + 1))
    total = n_parameters(N_PIXELS, sizes, K) + added
    of_outputs = widened(sizes[-1], scaling_sizes, K, added)
    last, all_layers = (-1,), range(len(sizes))

    def wide(layers):
        sizes_of_both = widened(N_PIXELS, sizes, K, total, layers)
        return DCCA(hidden_layer_sizes=sizes_of_both, standardize=False)

    def scaled(scaling="parameters", scaling_sizes=scaling_sizes, warm_up=epochs // 2):
        return DSDCCA(
            hidden_layer_sizes=sizes,
            scaling_layer_sizes=scaling_sizes,
            scaling=scaling,
            scaling_start=start,
            warm_up=warm_up,
            standardize=False,
        )

    return {
        "DCCA": DCCA(hidden_layer_sizes=sizes, standardize=False),
        "Wide 2": wide(last),
        "Wide 1&2": wide(all_layers),
        "Global Scale": scaled("global"),
        "scaling outputs": scaled("outputs", of_outputs),
        "without θᶜ": scaled("generated"),
        "no warm-up": scaled(warm_up=0),
        "DS-DCCA": scaled(),
    }


@dataclass
class Fit:
    """Figures of a fitted variant."""

    reg: float
    valid: float
    test: float
    best_epoch: int
    n_parameters: int
    seconds: float


def fit(model, data, options, seed, reg):
    """Total correlations, best epoch, parameters of a view's network, and CPU seconds."""
    model.set_params(
        n_components=K,
        batch_size=750,
        max_epochs=options.epochs,
        reg=reg,
        monitor="valid_loss",
        mixed_precision=options.mixed_precision,
        device=options.device,
        random_state=seed,
    )
    valid = data.valid.views[: options.valid_rows]
    start = time.process_time()
    model.fit(data.train.views[: options.rows], X_val=valid)
    seconds = time.process_time() - start
    scores = [model.transform(views) for views in (valid, data.test.views)]
    found = [total_correlation(F["left"], F["right"]) for F in scores]
    size = sum(p.numel() for p in model.encoders_["left"].parameters())
    return Fit(reg, *found, model.best_epoch_, size, seconds)


def p_value(figures, reference):
    if figures is reference or len(figures) != len(reference):
        return ""
    return f"{ttest_rel(figures, reference).pvalue:.1e}"


def report(runs):
    """Print a row per variant from its fits, one per seed."""
    print(
        "| variant | parameters | reg | best epochs | test | gap closed, % | p, DCCA | p, DS-DCCA "
        "| published | published gap closed, % | CPU of a fit, s |"
    )
    print(f"|{'---|' * 11}")
    test = {name: np.array([run.test for run in fits]) for name, fits in runs.items()}
    none = np.full(1, np.nan)
    plain, full = test.get("DCCA", none), test.get("DS-DCCA", none)
    for name, figures in test.items():
        closed = 100 * (figures.mean() - plain.mean()) / (K - plain.mean())
        published = 100 * (PUBLISHED[name] - PUBLISHED["DCCA"]) / (K - PUBLISHED["DCCA"])
        epochs = ", ".join(str(run.best_epoch) for run in runs[name])
        first = runs[name][0]
        print(
            f"| {name} | {first.n_parameters:,} | {first.reg:g} | {epochs} | {figures.mean():.2f} "
            f"± {figures.std(ddof=1):.3f} | {closed:.1f} | {p_value(figures, plain)} "
            f"| {p_value(figures, full)} | {PUBLISHED[name]:.2f} | {published:.1f} "
            f"| {np.mean([run.seconds for run in runs[name]]):.0f} |"
        )


def main(options: argparse.Namespace) -> None:
    options.variants = names_in(options.variants, PUBLISHED)
    torch.set_num_threads(1)
    data = fetch_mnist_halves()
    sizes, scaling_sizes = tuple(options.hidden), tuple(options.scaling_hidden)
    models = variants(sizes, scaling_sizes, options.epochs, options.start)
    print(f"{machine(1)}, torch {torch.__version__}, {vars(options)}", end="\n\n", flush=True)
    runs = {name: [] for name in options.variants}
    for seed, name in product(range(options.seeds), options.variants):
        regs = options.regs if seed == 0 else [runs[name][0].reg]
        fits = [fit(models[name], data, options, seed, reg) for reg in regs]
        runs[name].append(max(fits, key=lambda found: found.valid))
        for found in fits:
            print(f"seed {seed}, {name}: {found}", file=sys.stderr, flush=True)
    report(runs)


if __name__ == "__main__":
    main(OPTIONS)
