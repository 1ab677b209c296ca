"""How networks are trained: the parameters that deep estimators share, as one value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import torch
from sklearn.utils import check_random_state

from mvcca.deep._training.host import device_named
from mvcca.deep.encoders import Encoders
from mvcca.deep.samplers import LabelPairs, ShuffledBatches
from mvcca.deep.steps import Optimizer, Step
from mvcca.deep.trainer import Callback, Objective, Trainer

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "rmsprop": torch.optim.RMSprop,
    "adam": torch.optim.Adam,
    "sgd": partial(torch.optim.SGD, momentum=0.9, nesterov=True),
}
MONITORED = {  # columns of the history
    "valid_loss": "valid_loss",
    "valid_correlation": "valid_total_correlation",
    "valid_mrr": "valid_mrr",
    "valid_map": "valid_map",
}
_SEED_BOUND = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Training:
    """Training parameters, with "auto" and names replaced by what they stand for.

    The trainer gets these, networks and an objective; it sees no estimator.
    """

    batch_size: int
    max_epochs: int
    optimizer: Optimizer  # factory, with weight decay and the lowest learning rate
    learning_rates: Mapping[str, float] | None  # by view; None is one rate for all views
    monitor: str  # column of the history that decides the best epoch
    mixed_precision: bool
    device: torch.device
    seeds: list[int]  # of initial weights, batches, torch's global generator, validation split

    @classmethod
    def of(cls, estimator: Any, seeds: list[int] | None = None) -> Self:
        """The parameters of an estimator for the rows that it opened; without seeds, draw them.

        Learning rates by view and the device are validated here: they depend on the views and on
        the machine.
        """
        name, monitor = estimator.optimizer, estimator.monitor
        rate, by_view = estimator._setting("learning_rate"), None
        if isinstance(rate, Mapping):
            by_view = estimator._by_view("learning_rate", estimator.view_names_)
            rate = min(by_view.values())
        if seeds is None:
            rng = check_random_state(estimator.random_state)
            seeds = rng.randint(_SEED_BOUND, size=4).tolist()
        return cls(
            batch_size=estimator._setting("batch_size"),
            max_epochs=estimator._setting("max_epochs"),
            optimizer=partial(
                OPTIMIZERS[name] if isinstance(name, str) else name,
                lr=rate,
                weight_decay=estimator.weight_decay,
            ),
            learning_rates=by_view,
            monitor=MONITORED[monitor] if isinstance(monitor, str) else "valid_monitor",
            mixed_precision=estimator.mixed_precision,
            device=device_named(estimator.device),
            seeds=seeds,
        )

    def trainer(
        self,
        encoders: Encoders,
        objective: Objective,
        callbacks: Sequence[Callback] = (),
        *,
        is_paired: bool = True,
    ) -> Trainer:
        """A trainer of networks; batches of unpaired rows pair those with equal labels."""
        batches = ShuffledBatches if is_paired else LabelPairs
        return Trainer(
            encoders,
            objective,
            Step(self.optimizer, self.learning_rates),
            sampler=batches(self.batch_size),
            callbacks=callbacks,
            device=self.device,
            seed=self.seeds[1],
            torch_seed=self.seeds[2],
            mixed_precision=self.mixed_precision,
            monitor=self.monitor,
            n_epochs=self.max_epochs,
        )
