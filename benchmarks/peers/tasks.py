"""The tasks and their data, the same for every package: written once to a folder of .npy files.

Synthetic views share k latent variables and have features of about unit variance; held-out rows are
from the same model.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Task:
    """What to fit: k components of views of some widths, with a ridge in mean variances."""

    title: str
    n: int
    widths: tuple[int, ...]
    k: int
    reg: float = 0.0
    dtype: str = "float64"
    source: str = "latent"
    signal: float = 4.0  # over noise, in the narrowest view
    is_pls: bool = False  # maximize covariance rather than correlation

    @property
    def is_wide(self) -> bool:
        return self.n < max(self.widths)

    def shrunk(self) -> Task:
        """A task with a tenth of the rows and features, to check that everything runs."""
        if self.source != "latent":
            return replace(self, n=self.n // 10)
        widths = tuple(width // 10 for width in self.widths)
        return replace(self, n=self.n // 10, widths=widths, k=min(self.k, 8))


TASKS = {
    "a": Task("n = 10,000, d = (512, 300), k = 64", 10_000, (512, 300), 64),
    "b": Task(
        "n = 60,000, d = (2048, 300), k = 128, float32", 60_000, (2048, 300), 128, dtype="float32"
    ),
    "c": Task("n = 1,000, d = (5000, 4000), k = 10, ridge 1", 1_000, (5000, 4000), 10, reg=1.0),
    "c'": Task("PLS, n = 2,000, d = (5000, 5000), k = 20", 2_000, (5000, 5000), 20, is_pls=True),
    "d": Task("four views of 300, n = 10,000, k = 16", 10_000, (300,) * 4, 16),
    "f": Task(
        "MNIST halves, n = 50,000, d = (392, 392), k = 50, ridge 1e-5",
        *(50_000, (392, 392), 50),
        reg=1e-5,
        source="mnist",
    ),
    "g": Task(
        "as (c), each factor 100 times the noise of a feature",
        *(1_000, (5000, 4000), 10),
        reg=1.0,
        signal=100**2 * 4000,
    ),
}


def write(task: Task, folder: Path) -> None:
    """Write the task, its views and held-out rows to a directory."""
    for part, views in zip(("train", "test"), views_of(task), strict=True):
        for i, view in enumerate(views):
            np.save(folder / f"{part}{i}.npy", view)
    (folder / "task.json").write_text(json.dumps(asdict(task)))


def views_of(task: Task) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The views of the task, and held-out rows."""
    return _mnist(task) if task.source == "mnist" else _latent(task)


def read_task(folder: Path) -> Task:
    fields = json.loads((folder / "task.json").read_text())
    return Task(**fields | {"widths": tuple(fields["widths"])})


def read_views(folder: Path, part: str) -> list[np.ndarray]:
    return [np.load(path) for path in sorted(folder.glob(f"{part}*.npy"))]


def _latent(task: Task) -> tuple[list[np.ndarray], list[np.ndarray]]:
    rng = np.random.default_rng(0)
    n = task.n + task.n // 5
    latent = rng.standard_normal((n, task.k), dtype=task.dtype)
    noise = np.sqrt(min(task.widths) / task.signal)
    views = []
    for width in task.widths:
        view = latent @ rng.standard_normal((task.k, width), dtype=task.dtype)
        view += noise * rng.standard_normal((n, width), dtype=task.dtype)
        view /= np.sqrt(task.k + noise**2)
        views.append(view.astype(task.dtype))
    return [view[: task.n] for view in views], [view[task.n :] for view in views]


def _mnist(task: Task) -> tuple[list[np.ndarray], list[np.ndarray]]:
    with np.load(Path(os.environ.get("MVCCA_DATA", ".")) / "mnist.npz") as arrays:
        parts = arrays["X_train"][: task.n], arrays["X_test"]
    halves = [[images[:, :, :14], images[:, :, 14:]] for images in parts]
    train, test = ([half.reshape(len(half), -1) / 255 for half in pair] for pair in halves)
    return train, test
