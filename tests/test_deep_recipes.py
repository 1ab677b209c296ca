"""The recipes of docs/user_guide/deep.rst, run as they stand there, against our own trainer.

What the page prints is checked with all pages, in tests/test_front_page.py. Here a loop of one's
own gets our first weights and our batches, and must take our steps.
"""

from __future__ import annotations

import doctest
import re
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install mvcca[deep]")

from mvcca import CCA, Views  # noqa: E402
from mvcca.datasets import make_nonlinear_views  # noqa: E402
from mvcca.deep import DCCA  # noqa: E402
from mvcca.deep.encoders import mlp  # noqa: E402
from mvcca.deep.samplers import Sample, ShuffledBatches  # noqa: E402

PAGE = Path(__file__).parents[1] / "docs" / "user_guide" / "deep.rst"
SECTION = PAGE.read_text(encoding="utf-8").partition("Other training loops\n")[2]
SECTION = SECTION.partition("\nSpeed\n")[0]

TRAIN = make_nonlinear_views(900, random_state=0).views[:600]  # as on the page


def names_on_the_page() -> dict[str, Any]:
    """What the page has brought up by the time it comes to other loops."""
    from torch import nn

    return {"torch": torch, "nn": nn, "CCA": CCA, "mlp": mlp, "train": TRAIN}


def bare_loop() -> dict[str, Any]:
    names = names_on_the_page()
    for example in doctest.DocTestParser().get_examples(SECTION):
        exec(compile(example.source, str(PAGE), "single"), names)
    return names


def lightning_module() -> dict[str, Any]:
    (block,) = re.findall(r"code-block:: python\n\n((?:   .*\n|\n)+)", SECTION)
    names = bare_loop()  # which imports what this one uses
    torch.manual_seed(0)
    exec(compile(textwrap.dedent(block), str(PAGE), "exec"), names)
    return names


def first_weights() -> list[Any]:
    """The networks that the page makes, under the same seed in the same order."""
    torch.manual_seed(0)
    return [mlp(1, (16,), 1) for _ in range(2)]


def our_training(n_epochs: int, monkeypatch: Any) -> tuple[DCCA, list[np.ndarray]]:
    """A fit that starts where the page's loops start, and the order of objects in every epoch."""
    orders: list[np.ndarray] = []

    def noted(sampler: ShuffledBatches, sample: Sample, rng: np.random.Generator) -> Any:
        batches = list(batches_of(sampler, sample, rng))
        orders.append(np.concatenate([next(iter(rows.values())) for rows in batches]))
        return iter(batches)

    batches_of = ShuffledBatches.__call__
    with monkeypatch.context() as patched:
        patched.setattr(ShuffledBatches, "__call__", noted)
        model = DCCA(
            1,
            encoders=first_weights(),
            batch_size=100,
            max_epochs=n_epochs,
            optimizer="adam",
            weight_decay=0.0,
            random_state=0,
        ).fit(TRAIN)
    assert len(orders) == n_epochs
    return model, orders


def assert_same_networks(found: Any, model: DCCA) -> None:
    """Equal parameters, which have moved, and equal running statistics of batch norm."""
    for network, expected, first in zip(
        found, model.encoders_.values(), first_weights(), strict=True
    ):
        state, start = network.state_dict(), first.state_dict()
        for name, wanted in expected.state_dict().items():
            torch.testing.assert_close(state[name], wanted, rtol=0, atol=1e-6)
            assert not torch.equal(state[name], start[name])


def assert_same_ending(cca: CCA, encoded: Any, model: DCCA) -> None:
    found, expected = cca.canonical_correlations_, model.canonical_correlations_
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    scores = Views(cca.transform(encoded))
    for (_, block), (_, wanted) in zip(scores.items(), model.transform(TRAIN).items(), strict=True):
        np.testing.assert_allclose(block, wanted, atol=1e-4)


def test_the_bare_loop_of_the_page_takes_the_steps_of_fit(monkeypatch):
    model, (order,) = our_training(1, monkeypatch)
    monkeypatch.setattr(torch, "randperm", lambda n: torch.from_numpy(order[:n]))
    torch.manual_seed(0)
    loop = bare_loop()
    assert_same_networks([loop["f"], loop["g"]], model)
    assert_same_ending(loop["cca"], loop["encoded"], model)


# Warnings of Lightning itself: of workers, of logging, of what it deprecates.
@pytest.mark.filterwarnings("ignore")
def test_the_lightning_module_of_the_page_takes_the_steps_of_fit(monkeypatch, tmp_path):
    pytest.importorskip("lightning", reason="needs Lightning: pip install lightning")
    from torch.utils.data import RandomSampler

    model, orders = our_training(2, monkeypatch)
    epochs = iter(orders)
    monkeypatch.setattr(RandomSampler, "__iter__", lambda _: iter(next(epochs).tolist()))
    monkeypatch.chdir(tmp_path)  # where it writes its logs and checkpoints
    found = lightning_module()
    assert_same_networks(found["module"].encoders.modules_of_views, model)
    assert_same_ending(found["cca"], found["encoded"], model)
