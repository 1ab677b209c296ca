"""Time of an epoch of the trainer beside a bare loop that takes the same steps.

    python benchmarks/deep_epoch.py [--rows 9000] [--repeats 4] [--scaled]

Two networks 392-800-800-50 and the loss of deep CCA, in batches of 750 rows, on one thread. Prints
the CPU seconds of both, in turn. Both flush denormal numbers, and end with the same loss.

With --scaled, the trainer's epoch beside that of DS-DCCA, whose last layers are scaled for each row
by networks with one hidden layer of 128. The floor is the epoch of DCCA and the three products of
each batch and view that the definition asks for: (750, 800) × (800, 50 · 128) and its gradients.
"""

from __future__ import annotations

import argparse
import time
from functools import partial

import numpy as np
import torch

from mvcca import Views
from mvcca.deep.encoders import Encoders, mlp
from mvcca.deep.layers import DynamicallyScaledLinear
from mvcca.deep.objectives import Batch, TraceNormLoss
from mvcca.deep.samplers import Objects, ShuffledBatches
from mvcca.deep.trainer import Trainer

_OPTIMIZER = partial(torch.optim.RMSprop, lr=1e-3, weight_decay=1e-5)
_BATCHES = ShuffledBatches(750)


def networks(*, scaled: bool = False) -> Encoders:
    generator = torch.Generator().manual_seed(0)
    last = partial(scaled_layer, generator) if scaled else None
    return Encoders(
        {name: mlp(392, (800, 800), 50, last=last, generator=generator) for name in "ab"}
    )


def scaled_layer(generator: torch.Generator, n_in: int, n_out: int) -> DynamicallyScaledLinear:
    layer = DynamicallyScaledLinear(n_in, n_out, (128,), generator=generator)
    layer.scaled = True
    return layer


def bare(X: dict[str, np.ndarray]) -> tuple[float, float]:
    """Seconds of an epoch in a loop of torch, and its mean loss."""
    encoders, objective, losses = networks().train(), TraceNormLoss(), []
    optimizer = _OPTIMIZER(encoders.parameters())
    n_rows = len(X["a"])
    torch.set_flush_denormal(True)
    start = time.process_time()
    for rows in _BATCHES(Objects({"a": n_rows, "b": n_rows}), np.random.default_rng(0)):
        views = {name: torch.from_numpy(X[name][rows[name]]) for name in X}
        optimizer.zero_grad()
        loss = objective(encoders(views), Batch(views, rows["a"], 1))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    seconds = time.process_time() - start
    torch.set_flush_denormal(False)
    return seconds, float(np.mean(losses))


def ours(X: dict[str, np.ndarray], *, scaled: bool = False) -> tuple[float, float]:
    """The same of the trainer."""
    trainer = Trainer(
        networks(scaled=scaled), TraceNormLoss(), _OPTIMIZER, sampler=_BATCHES, seed=0
    )
    start = time.process_time()
    trainer.train(Views(X), 1)
    return time.process_time() - start, trainer.history[0]["loss"]


def products(n_rows: int) -> float:
    """Seconds of the products of an epoch of DS-DCCA."""
    Z, M, G = torch.rand(750, 800), torch.rand(800, 6400), torch.rand(750, 6400)
    start = time.process_time()
    for _ in range(2 * (n_rows // 750)):
        _ = Z @ M, Z.T @ G, G @ M.T
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=9000)
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--scaled", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    X = {name: rng.random((options.rows, 392), dtype=np.float32) for name in "ab"}
    for _ in range(options.repeats if options.scaled else 0):
        (dcca, _), (scaled, _), more = ours(X), ours(X, scaled=True), products(options.rows)
        print(
            f"DCCA {dcca:.2f} s, DS-DCCA {scaled:.2f} s, ratio {scaled / dcca:.2f}, "
            f"floor {(dcca + more) / dcca:.2f}"
        )
    for _ in range(0 if options.scaled else options.repeats):
        (floor, one), (trainer, other) = bare(X), ours(X)
        assert abs(one - other) < 1e-6 * abs(one)
        print(f"bare loop {floor:.2f} s, trainer {trainer:.2f} s, ratio {trainer / floor:.2f}")


if __name__ == "__main__":
    main()
