"""Train one epoch of cca-zoo's DCCA per input line, and print its CPU seconds.

    python -m benchmarks.peers.deep_epoch FILE.npz N_EPOCHS

Run by `benchmarks.scale.deep_epoch --peer` in the environment of cca-zoo. Network, batches and
ridge are those of mvcca; the objective, a sum of squared correlations, and the optimizer, Adam,
are those of cca-zoo.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from itertools import pairwise
from typing import Any


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", help="the views, as .npz")
    parser.add_argument("n_epochs", type=int)
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import lightning.pytorch as pl
import numpy as np
import torch
from cca_zoo.deep import DCCA, MultiviewDataset
from torch.utils.data import DataLoader

N_COMPONENTS = 50


class OnRequest(pl.Callback):
    """Wait for a line before every epoch."""

    def on_train_epoch_start(self, *_: Any) -> None:
        sys.stdin.readline()
        self.start = time.process_time()

    def on_train_epoch_end(self, *_: Any) -> None:
        print(time.process_time() - self.start, flush=True)


def network(n_features: int) -> torch.nn.Sequential:
    layers: list[torch.nn.Module] = []
    for n_in, n_out in pairwise((n_features, 800, 800)):
        layers += [torch.nn.Linear(n_in, n_out), torch.nn.BatchNorm1d(n_out, affine=False)]
        layers.append(torch.nn.ReLU())
    layers += [torch.nn.Linear(800, N_COMPONENTS), torch.nn.BatchNorm1d(N_COMPONENTS, affine=False)]
    return torch.nn.Sequential(*layers)


def main(path: str, n_epochs: int) -> None:
    warnings.simplefilter("ignore")
    torch.set_flush_denormal(True)
    views = list(np.load(path).values())
    batches = DataLoader(MultiviewDataset(views), batch_size=750, shuffle=True, drop_last=True)
    model = DCCA(N_COMPONENTS, [network(X.shape[1]) for X in views], reg_covar=1e-4)
    trainer = pl.Trainer(
        max_epochs=n_epochs,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_checkpointing=False,
        enable_model_summary=False,
        callbacks=[OnRequest()],
    )
    trainer.fit(model, batches)


if __name__ == "__main__":
    main(OPTIONS.path, OPTIONS.n_epochs)
