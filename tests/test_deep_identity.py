"""The text that checkpoints compare parameters by: the same in every process, and no other's."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from mvcca.deep._training.identity import identity  # noqa: E402
from mvcca.deep.objectives import BoundLoss, TraceNormLoss, ranking_loss  # noqa: E402

FACTOR = 2.0
middle = np.zeros(3000)
middle[1500] = 1.0


class Weighing:
    def __init__(self, weight):
        self.weight = weight

    def __call__(self, x):
        return self.weight * x

    def other(self, x):
        return x


def times(weight):
    def product(x):
        return [weight * part * FACTOR for part in x]

    return product


def with_default(x, weight=1.0):
    return weight * x


def held_by_itself():
    module = nn.Linear(2, 2)
    module.around = [module]
    return module


MAKERS = {  # each gives the same thing whenever it is called, and another than all others
    "number": lambda: 1,
    "real number": lambda: 1.0,
    "truth": lambda: True,
    "text": lambda: "1",
    "nothing": lambda: None,
    "tuple": lambda: (1, 2),
    "list": lambda: [1, 2],
    "mapping": lambda: {"a": 1, "b": 2},
    "set of texts": lambda: {"a", "b", "c", "d"},
    "array": lambda: np.zeros(3000),
    "array that differs in the middle": lambda: middle.copy(),
    "array of another type": lambda: np.zeros(3000, np.float32),
    "tensor": lambda: torch.ones(2),
    "class": lambda: torch.optim.Adam,
    "another class": lambda: torch.optim.SGD,
    "builtin": lambda: torch.tanh,
    "ufunc": lambda: np.exp,
    "function": lambda: times(1.0),
    "function of another value": lambda: times(2.0),
    "function with defaults": lambda: with_default,
    "lambda": lambda: lambda x: x + 1,
    "another lambda": lambda: lambda x: x + 2,
    "partial": lambda: partial(with_default, weight=2.0),
    "another partial": lambda: partial(with_default, weight=3.0),
    "object": lambda: Weighing(1.0),
    "another object": lambda: Weighing(2.0),
    "method": lambda: Weighing(1.0).other,
    "bare object without attributes": object,
    "loss": lambda: TraceNormLoss(1e-4),
    "loss of another ridge": lambda: TraceNormLoss(10.0),
    "loss with parts": lambda: BoundLoss(ranking_loss, margin=0.5, layer=nn.Linear(2, 2)),
    "loss with another margin": lambda: BoundLoss(ranking_loss, margin=0.7, layer=nn.Linear(2, 2)),
    "loss with another layer": lambda: BoundLoss(ranking_loss, margin=0.5, layer=nn.Linear(3, 2)),
    "layer": lambda: nn.Linear(2, 2),  # whose random numbers checkpoints hold
    "wider layer": lambda: nn.Linear(3, 2),
    "frozen layer": lambda: nn.Linear(2, 2).requires_grad_(False),
    "dropout": lambda: nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.1)),
    "more dropout": lambda: nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.2)),
    "module that holds itself": held_by_itself,
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_the_same_thing_made_twice_has_one_identity(make):
    assert identity(make()) == identity(make())


def test_no_two_things_have_the_same_identity():
    found = {}
    for name, make in MAKERS.items():
        assert found.setdefault(identity(make()), name) == name


def test_numbers_of_numpy_and_the_order_of_a_mapping_do_not_matter():
    assert identity({"a": np.int64(3), "b": 2}) == identity({"b": 2, "a": 3})


def test_a_plain_value_of_the_module_that_a_function_names_counts(monkeypatch):
    before = identity(times(1.0))
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    assert identity(times(1.0)) != before


@pytest.mark.slow
def test_identities_are_the_same_in_a_new_process():
    program = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from test_deep_identity import MAKERS, identity\n"
        "print(*[identity(make()) for make in MAKERS.values()], sep='\\n')"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert answer.stdout.splitlines() == [identity(make()) for make in MAKERS.values()]
