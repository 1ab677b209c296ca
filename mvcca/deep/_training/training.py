"""How networks are trained, as one value, and the state from which training resumes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from sklearn.utils import check_random_state
from torch import Tensor

from mvcca.base.tuned_fits import setting_by_view
from mvcca.deep._training.host import device_of_networks
from mvcca.deep._training.identity import identity
from mvcca.deep.encoders import Encoders
from mvcca.deep.samplers import ShuffledBatches
from mvcca.deep.steps import Optimizer
from mvcca.deep.trainer import Callback, Objective, Trainer

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "rmsprop": torch.optim.RMSprop,
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "sgd": partial(torch.optim.SGD, momentum=0.9, nesterov=True),
}
MONITORED = {  # columns of the history
    "valid_loss": "valid_loss",
    "valid_correlation": "valid_total_correlation",
    "valid_mrr": "valid_mrr",
    "valid_map": "valid_map",
}
_COLUMNS = ("epoch", "loss", "learning_rate", "skipped", "seconds")  # of any history
_SEED_BOUND = 2**31 - 1
_GROUP_KEYS = {"learning_rate": "lr", "weight_decay": "weight_decay"}  # parameter: torch's name


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
    patience: int | None  # epochs without improvement, after which training stops
    mixed_precision: bool
    device: torch.device
    seeds: list[int]  # of initial weights, batches, torch's global generator, validation split
    title: str = ""  # what is trained, if a fit has several trainings

    @classmethod
    def of(cls, estimator: Any, seeds: list[int] | None = None) -> Self:
        """The parameters of an estimator for the rows that it opened; without seeds, draw them.

        Learning rates by view and the device are validated here: they depend on the views and on
        the configuration.
        """
        name, monitor = estimator.optimizer, estimator._setting("monitor")
        rate, by_view = estimator._setting("learning_rate"), None
        if isinstance(rate, Mapping):
            by_view = setting_by_view(estimator, "learning_rate", estimator.view_names_)
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
            patience=estimator.patience,
            mixed_precision=estimator.mixed_precision,
            device=device_of_networks(),
            seeds=seeds,
        )

    def trainer(
        self,
        encoders: Encoders,
        objective: Objective,
        callbacks: Sequence[Callback] = (),
    ) -> Trainer:
        """A trainer of networks."""
        return Trainer(
            encoders,
            objective,
            self.optimizer,
            sampler=ShuffledBatches(self.batch_size),
            learning_rates=self.learning_rates,
            callbacks=callbacks,
            device=self.device,
            seed=self.seeds[1],
            torch_seed=self.seeds[2],
            mixed_precision=self.mixed_precision,
            monitor=self.monitor,
            patience=self.patience,
            n_epochs=self.max_epochs,
            title=self.title,
        )


@dataclass(frozen=True, eq=False)
class TrainingState:
    """State from which `partial_fit` resumes."""

    parameters: dict[str, str]  # at the end of training, as `identity` texts
    optimizer: str  # name of its class
    tree: dict[str, Any]  # the trainer's `state_dict`, on the CPU

    @classmethod
    def of(cls, trainer: Trainer, parameters: Mapping[str, Any]) -> Self:
        """The state of a trainer after training."""
        return cls(
            {name: identity(value) for name, value in parameters.items()},
            type(trainer.optimizer).__name__,
            # partial_fit has no validation rows, and so no best epoch to return to.
            {**trainer.state_dict(), "best": None},
        )

    def resume(self, trainer: Trainer, parameters: Mapping[str, Any]) -> None:
        """Load the state into a new trainer, except learning rate and weight decay if changed."""
        texts = {name: identity(value) for name, value in parameters.items()}
        changed = [name for name, text in texts.items() if text != self.parameters.get(name)]
        here, saved = (
            [shapes for state in states if (shapes := _shapes(state))]
            for states in ([m.state_dict() for m in trainer.modules], self.tree["modules"])
        )
        if here != saved or type(trainer.optimizer).__name__ != self.optimizer:
            raise ValueError(
                "partial_fit continues with the trained networks and their optimizer, which no "
                f"longer match the parameters: {', '.join(changed) or 'encoders'} changed. Restore "
                "the earlier values, or start over with fit."
            )
        groups = [dict(group) for group in trainer.optimizer.param_groups]
        trainer.load_state_dict(self.tree)
        for group, new in zip(trainer.optimizer.param_groups, groups, strict=True):
            group |= {key: new[key] for name, key in _GROUP_KEYS.items() if name in changed}


def history_of(trainer: Trainer) -> dict[str, np.ndarray]:
    """Columns of a trainer's history; NaN where an epoch has no value."""
    columns = {name: None for figures in trainer.history for name in figures}
    if not columns:  # no epoch was trained
        return {name: np.empty(0) for name in _COLUMNS}
    return {
        name: np.array([figures.get(name, np.nan) for figures in trainer.history])
        for name in columns
    }


def _shapes(state: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(part.shape) for name, part in state.items() if isinstance(part, Tensor)}
