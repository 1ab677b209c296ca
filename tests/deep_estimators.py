"""Every public deep estimator with tiny networks, read from `mvcca.deep`: none is forgotten."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mvcca.deep


@dataclass(frozen=True)
class Alike:
    """Scores of the views are alike; batch norm keeps their variance at 1."""

    def __call__(self, scores, batch):
        first, *others = scores.values()
        return sum((first - other).square().mean() for other in others)


_SMALL = {
    "batch_size": 45,
    "max_epochs": 2,
    "device": "cpu",
    "random_state": 0,
    "hidden_layer_sizes": (16,),
    "width": 16,
    "pretraining_epochs": 1,
    "scaling_layer_sizes": (3,),
    "warm_up": 1,
    "objective": Alike(),
}


def small(name: str, **parameters: Any) -> Any:
    """An estimator that trains in no time, by name."""
    cls = getattr(mvcca.deep, name)
    known = cls._get_param_names()
    return cls(**{n: value for n, value in _SMALL.items() if n in known} | parameters)


# Deep CCA is the first: it stands for all where forms of rows are tried.
DEEP = [small(name) for name in sorted(mvcca.deep.__all__, key=lambda name: name != "DCCA")]
