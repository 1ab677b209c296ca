"""Deep CCA of 50,000 MNIST halves: total test correlation of 50 components, method by method.

    python benchmarks/deep_mnist.py --methods dcca ds-dcca --epochs 30 [--device auto] [--every 5]
    python benchmarks/deep_mnist.py --methods soft-cca --set decorrelation=15 decay=0.97
    python benchmarks/deep_mnist.py --floor [--rounds 5]

The first command prints a row per method for RESULTS.md, with the published result (100 epochs);
--every adds results of intermediate epochs, from linear CCA of the networks' outputs for all
training images. The weights are those of the best epoch on the 10,000 validation images according
to the default `monitor` of the method. --set changes parameters of the methods, and --rows takes
the first training images only. The last command compares the time of an epoch of DCCA with a plain
torch loop that takes the same steps, and with cca-zoo's DCCA if installed by `python
benchmarks/peers --install`. Needs mnist.npz in the directory MVCCA_DATA.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path


def setting(text):
    """Name and value of "name=value"; what is no Python literal is a string."""
    name, value = text.split("=")
    try:
        return name, ast.literal_eval(value)
    except ValueError:
        return name, value


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--methods", nargs="+", default=["dcca"])
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--set", nargs="+", type=setting, default=[], metavar="NAME=VALUE")
    parser.add_argument("--rows", type=int, help="training images; all if not given")
    parser.add_argument("--warm-up", type=int, help="of DS-DCCA; half the epochs if not given")
    parser.add_argument("--components", type=int, default=50)
    parser.add_argument("--every", type=int, default=0, help="epochs between figures on the way")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--floor", action="store_true", help="compare an epoch with a plain loop")
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np
import torch
from _arguments import names_in
from _measure import in_turns, machine, ratio
from real import fetch_mnist_halves

from mvcca import MVCCA
from mvcca.deep import DCCA, DCCAE, DSDCCA, L0CCA, CorrNet, SoftCCA, SoftHGR
from mvcca.deep.callbacks import Callback
from mvcca.deep.functional import trace_norm
from mvcca.measures import total_correlation

PEERS = Path(__file__).with_name("peers")
sys.path.append(str(PEERS))

# Settings for MNIST from the supplement of Friedlander and Wolf (2022), or from our measurements if
# those do not reach the published results.
METHODS = {
    "dcca": (DCCA, {"reg": 1e-4}, "46.76"),
    "dccae": (DCCAE, {"reg": 1e-4, "reconstruction": 1e-3}, "46.75"),
    "soft-hgr": (SoftHGR, {}, "46.86"),
    "l0-cca": (L0CCA, {"gate_penalty": 0.01, "gate_sigma": 0.1}, "47.17"),
    "soft-cca": (SoftCCA, {"decorrelation": 2.5, "decay": 0.9}, "44.55"),
    "corrnet": (
        CorrNet,
        {
            "output_activation": "sigmoid",
            "correlation": 4.0,
            "optimizer": "rmsprop",
            "learning_rate": 1e-2,
        },
        "42.57",
    ),
    "ds-dcca": (DSDCCA, {"reg": 1e-4, "warm_up": None}, "47.50"),
}


def correlation(scores):
    return total_correlation(scores["left"], scores["right"])


class OnTheWay(Callback):
    """Record the total test correlation every few epochs."""

    def __init__(self, every, test, n_components):
        self.every, self.test, self.n_components = every, test, n_components

    def on_epoch_end(self, trainer):
        figures = trainer.history[-1]
        line = f"  epoch {trainer.epoch}: loss {figures['loss']:.2f}"
        line += f", validation loss {figures['valid_loss']:.2f}, {figures['seconds']:.1f} s"
        if self.every and trainer.epoch % self.every == 0:
            model = MVCCA(self.n_components).fit(trainer.scores(trainer.rows.views))
            figure = correlation(model.transform(trainer.scores(self.test)))
            line += f", total test correlation {figure:.2f}"
        print(line, file=sys.stderr, flush=True)


def estimator(method, options):
    cls, settings, _ = METHODS[method]
    settings = dict(settings)
    if "warm_up" in settings:  # the same share as 50 of 100
        settings["warm_up"] = options.warm_up or options.epochs // 2
    return cls(
        options.components,
        max_epochs=options.epochs,
        device=options.device,
        random_state=options.seed,
        **{"standardize": False} | settings | dict(options.set),
    )


def measure(data, method, options):
    train = data.train.views[: options.rows]
    model = estimator(method, options)
    model.set_params(callbacks=[OnTheWay(options.every, data.test.views, options.components)])
    start, cpu = time.perf_counter(), time.process_time()
    model.fit(train, X_val=data.valid.views)
    fitted, used = time.perf_counter() - start, time.process_time() - cpu
    seconds = np.median(model.history_["seconds"])
    test = correlation(model.transform(data.test.views))
    valid = correlation(model.transform(data.valid.views))
    raw = correlation(model.encode(data.test.views))
    print(
        f"| {method} | {options.epochs} | {model.best_epoch_} | {valid:.2f} | {test:.2f} "
        f"| {raw:.2f} | {METHODS[method][2]} | {seconds:.1f} | {fitted:.0f} | {used:.0f} "
        f"| {options.device} | {options.seed} |",
        flush=True,
    )


# ---- the floor -----------------------------------------------------------------------------------


def bare_network(n_features, n_components):
    sizes, layers = (n_features, 800, 800), []
    for n_in, n_out in pairwise(sizes):
        layers += [torch.nn.Linear(n_in, n_out), torch.nn.BatchNorm1d(n_out, affine=False)]
        layers.append(torch.nn.ReLU())
    layers += [torch.nn.Linear(sizes[-1], n_components)]
    return torch.nn.Sequential(*layers, torch.nn.BatchNorm1d(n_components, affine=False))


def bare_epoch(views, n_components, device):
    """One epoch written without the trainer."""
    left, right = (torch.tensor(views[name], device=device) for name in views.names)
    f, g = (bare_network(X.shape[1], n_components).to(device) for X in (left, right))
    parameters = [*f.parameters(), *g.parameters()]
    optimizer = torch.optim.RMSprop(parameters, lr=1e-3, weight_decay=1e-5)
    order = torch.randperm(len(left), device=device)
    torch.set_flush_denormal(True)
    for start in range(0, len(left) - 749, 750):
        rows = order[start : start + 750]
        optimizer.zero_grad(set_to_none=True)
        loss = -trace_norm(f(left[rows]), g(right[rows]), 1e-4)
        loss.backward()
        optimizer.step()
    return loss.item()


@contextmanager
def peer_epochs(views, n_epochs) -> Iterator[Callable[[], float] | None]:
    """CPU seconds of an epoch of cca-zoo's DCCA, as a function; None if not installed."""
    from environments import interpreter

    python = interpreter("cca-zoo")
    if python is None:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        np.savez(f"{folder}/views.npz", **dict(views.items()))
        command = [python, PEERS / "deep_epoch.py", f"{folder}/views.npz", str(n_epochs)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, **pipes, stderr=subprocess.DEVNULL) as peer:

            def epoch():
                peer.stdin.write("\n")
                peer.stdin.flush()
                return float(peer.stdout.readline())

            yield epoch


def compare(data, options):
    views = data.train.views
    trainer = DCCA(options.components, device=options.device)._new_trainer(views, [0, 1, 2])
    contestants = {
        "trainer": lambda: trainer.train(views, 1),
        "bare torch loop": lambda: bare_epoch(views, options.components, options.device),
    }
    with peer_epochs(views, options.rounds + 1) as epoch:
        used = []
        if epoch is not None:
            epoch()  # which starts everything
            contestants["cca-zoo's DCCA"] = lambda: used.append(epoch())
        timings = in_turns(contestants, options.rounds)
    for name, timing in timings.items():
        timing.cpu = used if name.startswith("cca-zoo") else timing.cpu
        print(f"{name:16} {timing}")
    ours = timings.pop("trainer")
    for name, timing in timings.items():
        print(f"trainer / {name}: {ratio(ours, timing)}")


def main(options: argparse.Namespace) -> None:
    if options.device == "auto":
        options.device = "cuda" if torch.cuda.is_available() else "cpu"
    data = fetch_mnist_halves()
    print(f"{machine(torch.get_num_threads())}, torch {torch.__version__}", end="\n\n")
    if options.floor:
        compare(data, options)
        return
    print(
        "| method | epochs | best | validation | test | test without CCA | published "
        "| s per epoch | fit, s | CPU, s | device | seed |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for method in names_in(options.methods, METHODS):
        measure(data, method, options)


if __name__ == "__main__":
    main(OPTIONS)
