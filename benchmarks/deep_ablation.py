"""Ablations of DS-DCCA on MNIST halves: what dynamic scaling adds to DCCA at equal capacity.

    python benchmarks/deep_ablation.py [--rows 20000] [--epochs 16] [--seeds 5] [--start default]

The variants of table 2 of Friedlander and Wolf (2022), each trained with the same seeds. Prints for
RESULTS.md the total test correlation of 50 components, the share of the gap between DCCA and the
upper bound 50 that each variant closes, and paired t-tests over the seeds. The weights are those of
the epoch with the lowest validation loss. Figures of each fit go to the standard error. Needs
mnist.npz in the directory MVCCA_DATA.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
import torch
from _measure import machine
from scipy.stats import ttest_rel

from mvcca.datasets import fetch_mnist_halves
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
        return DCCA(hidden_layer_sizes=widened(N_PIXELS, sizes, K, total, layers))

    def scaled(scaling="parameters", scaling_sizes=scaling_sizes, warm_up=epochs // 2):
        return DSDCCA(
            hidden_layer_sizes=sizes,
            scaling_layer_sizes=scaling_sizes,
            scaling=scaling,
            scaling_start=start,
            warm_up=warm_up,
        )

    return {
        "DCCA": DCCA(hidden_layer_sizes=sizes),
        "Wide 2": wide(last),
        "Wide 1&2": wide(all_layers),
        "Global Scale": scaled("global"),
        "scaling outputs": scaled("outputs", of_outputs),
        "without θᶜ": scaled("generated"),
        "no warm-up": scaled(warm_up=0),
        "DS-DCCA": scaled(),
    }


def fit(model, data, options, seed):
    """Total test correlation, best epoch, parameters of a view's network, and CPU seconds."""
    model.set_params(
        n_components=K,
        batch_size=750,
        max_epochs=options.epochs,
        reg=1e-4,
        monitor="valid_loss",
        mixed_precision=options.mixed_precision,
        device=options.device,
        random_state=seed,
    )
    start = time.process_time()
    model.fit(data.train.views[: options.rows], X_val=data.valid.views[: options.valid_rows])
    seconds = time.process_time() - start
    scores = model.transform(data.test.views)
    size = sum(p.numel() for p in model.encoders_["left"].parameters())
    return total_correlation(scores["left"], scores["right"]), model.best_epoch_, size, seconds


def p_value(figures, reference):
    return "" if figures is reference else f"{ttest_rel(figures, reference).pvalue:.1e}"


def report(runs):
    """Print a row per variant from its runs, one per seed."""
    print(
        "| variant | parameters | best epochs | test | gap closed, % | p, DCCA | p, DS-DCCA "
        "| published | published gap closed, % | CPU of a fit, s |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    test = {name: np.array([run[0] for run in rows]) for name, rows in runs.items()}
    plain, full = test["DCCA"], test["DS-DCCA"]
    for name, figures in test.items():
        closed = 100 * (figures - plain).mean() / (K - plain.mean())
        published = 100 * (PUBLISHED[name] - PUBLISHED["DCCA"]) / (K - PUBLISHED["DCCA"])
        epochs = ", ".join(str(run[1]) for run in runs[name])
        print(
            f"| {name} | {runs[name][0][2]:,} | {epochs} | {figures.mean():.2f} "
            f"± {figures.std(ddof=1):.3f} | {closed:.1f} | {p_value(figures, plain)} "
            f"| {p_value(figures, full)} | {PUBLISHED[name]:.2f} | {published:.1f} "
            f"| {np.mean([run[3] for run in runs[name]]):.0f} |"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000, help="training images")
    parser.add_argument("--valid-rows", type=int, default=5_000)
    parser.add_argument("--hidden", nargs="+", type=int, default=[128, 128])
    parser.add_argument("--scaling-hidden", nargs="+", type=int, default=[48])
    parser.add_argument("--start", default="one", help="initial scales; default: the published")
    parser.add_argument("--epochs", type=int, default=16, help="half of them to warm up")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--mixed-precision", action="store_true", help="networks in bfloat16")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    torch.set_num_threads(1)
    data = fetch_mnist_halves()
    sizes, scaling_sizes = tuple(options.hidden), tuple(options.scaling_hidden)
    models = variants(sizes, scaling_sizes, options.epochs, options.start)
    print(f"{machine(1)}, torch {torch.__version__}, {vars(options)}", end="\n\n", flush=True)
    runs = {name: [] for name in models}
    for seed in range(options.seeds):
        for name, model in models.items():
            runs[name].append(fit(model, data, options, seed))
            test, epoch, size, seconds = runs[name][-1]
            line = f"seed {seed}, {name}: test {test:.4f}, best epoch {epoch}, {size:,} parameters"
            print(f"{line}, {seconds:.0f} s CPU", file=sys.stderr, flush=True)
    report(runs)


if __name__ == "__main__":
    main()
