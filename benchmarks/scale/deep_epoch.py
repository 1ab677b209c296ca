"""Time of an epoch of the trainer beside a bare loop that takes the same steps.

    python -m benchmarks.scale.deep_epoch [--methods dcca ranking ...] [--rows 9000] [--repeats 4]
    python -m benchmarks.scale.deep_epoch --scaled
    python -m benchmarks.scale.deep_epoch --peer
    python -m benchmarks.scale.deep_epoch --device cuda --rows 50000 [--methods dcca msds ...]

Networks, losses, optimizers and batches are like those of `DCCA`, `LearnedRanking`, `CCAL`, `MSDS`
and `SAM`, for views of 392 features and 50 components, on one thread. Prints the CPU seconds of
both loops, in turn. Both flush denormal numbers, and end with the same loss.

With --scaled, the trainer's epoch of DCCA beside that of DS-DCCA, whose last layers are scaled for
each row by networks with one hidden layer of 128, in float32 and with mixed_precision, and two
parts of the former: the three products of each batch and view that the definition asks for, (750,
800) × (800, 50 · 128) and its gradients, and the steps of the optimizer. The floor is the epoch of
DCCA and the products.

With --device, wall seconds of an epoch on a GPU: the least of several in turn. The bare loop has
rows on the device, copies positions once per epoch, and never waits within it.

With --peer, the trainer's epoch of DCCA beside that of cca-zoo's DCCA in its own environment, which
`make bench-peers` installs: the same network and batches, Adam, squared correlations as objective.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="+", default=["dcca"])
    parser.add_argument("--rows", type=int, default=9000)
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--scaled", action="store_true", help="beside dynamically scaled layers")
    parser.add_argument("--device", help="a GPU, such as cuda, for epochs there")
    parser.add_argument("--peer", action="store_true", help="beside cca-zoo")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from benchmarks._arguments import names_in
from benchmarks.peers.environments import interpreter
from mvcca import Views
from mvcca.deep._methods.msds import OneVersusMoreLoss
from mvcca.deep._methods.sam import Centroids, ScheduledMarginLoss
from mvcca.deep.encoders import Encoders, mlp
from mvcca.deep.functional import cosines
from mvcca.deep.layers import CCALayer, DynamicallyScaledLinear, linear
from mvcca.deep.objectives import Batch, BoundLoss, TraceNormLoss, ranking_loss
from mvcca.deep.samplers import Sample, ShuffledBatches
from mvcca.deep.trainer import Trainer

_ADAM = partial(torch.optim.Adam, lr=1e-3, weight_decay=1e-5)
_RMSPROP = partial(torch.optim.RMSprop, lr=1e-3, weight_decay=1e-5)
_SGD = partial(torch.optim.SGD, lr=1e-3, momentum=0.9, nesterov=True)
_CLASSES = 10


@dataclass(frozen=True)
class Method:
    """A network of a view, a loss, and how steps are made."""

    network: Callable[[torch.Generator], nn.Module]
    objective: Callable[[], nn.Module]
    optimizer: Callable[..., torch.optim.Optimizer] = _ADAM
    batch_size: int = 1000

    def new(self) -> tuple[Encoders, nn.Module]:
        generator = torch.Generator().manual_seed(0)
        torch.manual_seed(0)  # of dropout
        return Encoders({name: self.network(generator) for name in "ab"}), self.objective()


def deep(generator: torch.Generator, **options: Any) -> nn.Sequential:
    return mlp(392, (800, 800), 50, generator=generator, **options)


def projected(generator: torch.Generator) -> nn.Module:
    return nn.Sequential(*deep(generator), linear(50, 50, generator))


def wide(generator: torch.Generator) -> nn.Module:
    return mlp(392, (512,), 50, batch_norm=False, normalize_output=False, generator=generator)


def bounded(generator: torch.Generator) -> nn.Module:
    return mlp(
        392,
        (1024,),
        50,
        batch_norm=False,
        normalize_output=False,
        activation=nn.Tanh,
        output_activation=nn.Tanh,
        dropout=0.1,
        generator=generator,
    )


def scaled(generator: torch.Generator) -> nn.Module:
    def last(n_in: int, n_out: int) -> nn.Module:
        layer = DynamicallyScaledLinear(n_in, n_out, (128,), generator=generator)
        layer.scaled = True
        return layer

    return deep(generator, last=last)


METHODS = {
    "dcca": Method(deep, TraceNormLoss, _RMSPROP, 750),
    "ranking": Method(projected, lambda: BoundLoss(ranking_loss)),
    "ccal": Method(deep, lambda: BoundLoss(ranking_loss, layer=CCALayer(50))),
    "msds": Method(wide, lambda: OneVersusMoreLoss("b", 4, 1.0, 0), _SGD, 100),
    "sam": Method(
        bounded,
        lambda: ScheduledMarginLoss(
            torch.eye(_CLASSES), ("a", "b"), 1.0, "scheduled", 0.05, 0.4, 0.1
        ),
        _SGD,
        200,
    ),
}
SCALED = Method(scaled, TraceNormLoss, _RMSPROP, 750)


def bare(method: Method, X: dict[str, np.ndarray], codes: np.ndarray) -> tuple[float, float]:
    """Seconds of an epoch in a loop of torch, and its mean loss."""
    encoders, objective = method.new()
    optimizer, losses = method.optimizer([*encoders.parameters(), *objective.parameters()]), []
    torch.set_flush_denormal(True)
    start = time.process_time()
    if isinstance(objective, ScheduledMarginLoss):
        with torch.no_grad():
            measure(objective, encoders.eval(), X, torch.from_numpy(codes))
    encoders.train()
    batches = ShuffledBatches(method.batch_size)
    for rows in batches(Sample(Views(X)), np.random.default_rng(0)):
        views = {name: torch.from_numpy(X[name][rows[name]]) for name in X}
        labels = {name: torch.from_numpy(codes[rows[name]]) for name in X}
        optimizer.zero_grad()
        loss = objective(encoders(views), Batch(views, rows["a"], 1, 1, labels))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    seconds = time.process_time() - start
    torch.set_flush_denormal(False)
    return seconds, float(np.mean(losses))


def measure(
    loss: ScheduledMarginLoss, encoders: Encoders, X: dict[str, np.ndarray], codes: Tensor
) -> None:
    """The distances of rows and of centroids of classes that margins adapt to."""
    for number, (name, block) in enumerate(X.items()):
        some = torch.from_numpy(block[np.linspace(0, len(block) - 1, 2000).astype(int)])
        loss.largest[number] = torch.cdist(some, some).max()
        members = nn.functional.one_hot(codes, _CLASSES).float()
        F = normalize(encoders[name](torch.from_numpy(block)))
        centroids = members.T @ F / members.sum(dim=0)[:, None]
        loss.label_distances[number] = (1 - cosines(centroids, centroids)) / 2


def ours(
    method: Method, X: dict[str, np.ndarray], codes: np.ndarray, mixed_precision: bool = False
) -> tuple[float, float]:
    """The same of the trainer."""
    encoders, objective = method.new()
    callbacks = [Centroids()] if isinstance(objective, ScheduledMarginLoss) else []
    batches = ShuffledBatches(method.batch_size)
    trainer = Trainer(
        encoders,
        objective,
        method.optimizer,
        sampler=batches,
        callbacks=callbacks,
        mixed_precision=mixed_precision,
        seed=0,
    )
    sample = Sample(Views(X), dict.fromkeys(X, codes))
    start = time.process_time()
    trainer.train(sample, 1)
    return time.process_time() - start, trainer.history[0]["loss"]


def on_device(method: Method, X: dict[str, np.ndarray], device: str, n: int) -> tuple[float, float]:
    """Least seconds of n epochs on a GPU in a bare loop and in the trainer, in turn."""
    bare_epochs, our_epochs = _bare_there(method, X, device), _ours_there(method, X, device)
    seconds = [(next(bare_epochs), next(our_epochs)) for _ in range(1 + n)]
    least = np.min(seconds[1:], axis=0)  # the first ones load kernels
    return float(least[0]), float(least[1])


def _bare_there(method: Method, X: dict[str, np.ndarray], device: str) -> Iterator[float]:
    encoders, objective = (module.to(device) for module in method.new())
    optimizer = method.optimizer([*encoders.parameters(), *objective.parameters()])
    there = {name: torch.from_numpy(block).to(device) for name, block in X.items()}
    sample = Sample(Views(X))
    sampler, rng, epoch = ShuffledBatches(method.batch_size), np.random.default_rng(0), 0
    while True:
        torch.cuda.synchronize()
        start, losses, epoch = time.perf_counter(), [], epoch + 1
        batches = [rows["a"] for rows in sampler(sample, rng)]
        moved = torch.from_numpy(np.concatenate(batches)).to(device).split(method.batch_size)
        for rows, places in zip(batches, moved, strict=True):
            views = {name: block.index_select(0, places) for name, block in there.items()}
            optimizer.zero_grad()
            loss = objective(encoders(views), Batch(views, rows, epoch, epoch))
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        torch.stack(losses).mean().item()
        yield time.perf_counter() - start


def _ours_there(method: Method, X: dict[str, np.ndarray], device: str) -> Iterator[float]:
    encoders, objective = method.new()
    sampler = ShuffledBatches(method.batch_size)
    trainer = Trainer(encoders, objective, method.optimizer, sampler=sampler, device=device)
    while True:
        trainer.train(Views(X), 1)
        yield trainer.history[-1]["seconds"]


def products(n_rows: int) -> float:
    """Seconds of the products of an epoch of DS-DCCA."""
    Z, M, G = torch.rand(750, 800), torch.rand(800, 6400), torch.rand(750, 6400)
    start = time.process_time()
    for _ in range(2 * (n_rows // 750)):
        _ = Z @ M, Z.T @ G, G @ M.T
    return time.process_time() - start


def steps(n_rows: int) -> float:
    """Seconds of the optimizer's steps of an epoch of DS-DCCA."""
    encoders, _ = SCALED.new()
    optimizer = SCALED.optimizer(encoders.parameters())
    for p in encoders.parameters():
        p.grad = torch.rand_like(p)
    optimizer.step()  # which makes its state
    start = time.process_time()
    for _ in range(n_rows // 750):
        optimizer.step()
    return time.process_time() - start


@contextmanager
def peer_epochs(
    python: Path, X: dict[str, np.ndarray], n_epochs: int
) -> Iterator[Callable[[], float]]:
    """A function that trains another epoch of cca-zoo's DCCA and returns its CPU seconds."""
    with tempfile.TemporaryDirectory() as folder:
        np.savez(f"{folder}/views.npz", **X)
        command = [str(python), "-m", "benchmarks.peers.deep_epoch", f"{folder}/views.npz"]
        with subprocess.Popen(
            [*command, str(n_epochs)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        ) as peer:
            assert peer.stdin is not None
            assert peer.stdout is not None

            def epoch() -> float:
                peer.stdin.write("\n")
                peer.stdin.flush()
                return float(peer.stdout.readline())

            yield epoch


def beside_peer(X: dict[str, np.ndarray], codes: np.ndarray, repeats: int) -> None:
    """Print CPU seconds of an epoch of cca-zoo and of the trainer, in turn."""
    python = interpreter("cca-zoo")
    if python is None:
        print("cca-zoo is not installed: make bench-peers")
        return
    with peer_epochs(python, X, repeats + 1) as epoch:
        epoch()  # which starts everything
        for _ in range(repeats):
            theirs = epoch()
            trainer, _ = ours(METHODS["dcca"], X, codes)
            print(
                f"cca-zoo {theirs:.2f} s, trainer {trainer:.2f} s, ratio {trainer / theirs:.2f}",
                flush=True,
            )


def main(options: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    X = {name: rng.random((options.rows, 392), dtype=np.float32) for name in "ab"}
    codes = np.arange(options.rows) % _CLASSES
    for name in names_in(options.methods, METHODS) if options.device else ():
        floor, trainer = on_device(METHODS[name], X, options.device, options.repeats)
        print(
            f"{name}: bare loop {floor:.3f} s, trainer {trainer:.3f} s, ratio {trainer / floor:.2f}"
        )
    if options.device:
        return
    if options.peer:
        beside_peer(X, codes, options.repeats)
        return
    for _ in range(options.repeats if options.scaled else 0):
        (dcca, _), (all_of_it, _) = (ours(m, X, codes) for m in (METHODS["dcca"], SCALED))
        mixed, _ = ours(SCALED, X, codes, mixed_precision=True)
        more, updates = products(options.rows), steps(options.rows)
        print(
            f"DCCA {dcca:.2f} s, DS-DCCA {all_of_it:.2f} s (products {more:.2f}, optimizer "
            f"{updates:.2f}), ratio {all_of_it / dcca:.2f}, floor {(dcca + more) / dcca:.2f}; "
            f"DS-DCCA in bfloat16 {mixed:.2f} s, ratio {mixed / dcca:.2f}"
        )
    for _ in range(0 if options.scaled else options.repeats):
        for name in names_in(options.methods, METHODS):
            floor, one = bare(METHODS[name], X, codes)
            trainer, other = ours(METHODS[name], X, codes)
            assert abs(one - other) < 1e-6 * abs(one), (one, other)
            print(
                f"{name}: bare loop {floor:.2f} s, trainer {trainer:.2f} s, "
                f"ratio {trainer / floor:.2f}"
            )


if __name__ == "__main__":
    main(OPTIONS)
