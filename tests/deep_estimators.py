"""Every public deep estimator with tiny networks, read from `mvcca.deep`: none is forgotten."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

import mvcca.deep
import mvcca.deep.bases
from mvcca.deep.callbacks import Callback


@dataclass(frozen=True)
class Alike:
    """Scores of the views are alike; batch norm keeps their variance at 1."""

    def __call__(self, scores, batch):
        first, *others = scores.values()
        return sum((first - other).square().mean() for other in others)


_SMALL = {
    "batch_size": 45,
    "max_epochs": 2,
    "random_state": 0,
    "hidden_layer_sizes": (16,),
    "width": 16,
    "pretraining_epochs": 1,
    "scaling_layer_sizes": (3,),
    "warm_up": 1,
    "objective": Alike(),
    "start": "random",  # others are tested in tests/test_deep_start.py
}


def small(name: str, **parameters: Any) -> Any:
    """An estimator that trains in no time, by name."""
    cls = getattr(mvcca.deep, name)
    known = cls._get_param_names()
    return cls(**{n: value for n, value in _SMALL.items() if n in known} | parameters)


def blocks(
    n: int = 80, seed: int = 0, names: tuple[str, ...] = ("image", "text")
) -> dict[str, np.ndarray]:
    """Views of two latent variables through another squashed map each, with noise."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, 2))
    return {
        name: np.tanh(Z @ rng.standard_normal((2, d))) + 0.3 * rng.standard_normal((n, d))
        for name, d in zip(names, (6, 5, 4), strict=False)
    }


class Interrupt(Callback):
    """Ctrl-C after some batches of an epoch."""

    def __init__(self, epoch: int, steps: int = 1) -> None:
        self.epoch, self.steps = epoch, steps

    def on_batch_end(self, trainer: Any) -> None:
        if trainer.epoch == self.epoch:
            self.steps -= 1
            if not self.steps:
                raise KeyboardInterrupt


def assert_equal_scores(one: Any, other: Any, rows: Any) -> None:
    """Bitwise the same scores of some rows."""
    for name, scores in one.transform(rows).items():
        np.testing.assert_array_equal(other.transform(rows)[name], scores)


def own_entries(cls: type, section: str) -> dict[str, str]:
    """Entries of a section of a class's docstring, by name."""
    doc = inspect.cleandoc(vars(cls)["__doc__"])
    found = re.search(rf"^{section}\n-+\n(.+?)(\n\n|\Z)", doc, re.DOTALL | re.MULTILINE)
    entries = re.split(r"\n(?=\S)", found[1]) if found else []
    return {entry.partition(" : ")[0]: entry for entry in entries}


def linked_bases(cls: type) -> list[type]:
    """Base classes to which a docstring refers for the parameters that it does not list."""
    doc = " ".join(vars(cls)["__doc__"].split())
    sentence = re.search(
        "Parameters and attributes that are not listed here are those of (`.+?)\\. ", doc
    )
    names = re.findall("`(.+?)`", sentence[1]) if sentence else []
    prefix = "mvcca.deep.bases."
    return [
        getattr(
            mvcca.deep.bases if name.startswith(prefix) else mvcca.deep, name.removeprefix(prefix)
        )
        for name in names
    ]


def documented(cls: type, section: str) -> dict[str, str]:
    """Entries of a section of a class's docstring and of the base classes that it links to."""
    entries = own_entries(cls, section)
    for base in linked_bases(cls):
        assert issubclass(cls, base), (cls, base)
        entries = documented(base, section) | entries
    return entries


# Deep CCA is the first: it stands for all where forms of rows are tried.
DEEP = [small(name) for name in sorted(mvcca.deep.__all__, key=lambda name: name != "DCCA")]
