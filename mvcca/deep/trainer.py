"""The training loop: epochs of batches, validation, best weights, checkpoints and recovery.

Networks, objectives, samplers and callbacks are passed to it. It does not depend on estimators.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from itertools import chain
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor, nn

from mvcca.deep._losses.batch import Batch
from mvcca.deep._training.checkpoint import Checkpoint
from mvcca.deep._training.host import IsolatedGenerator, evaluating, without_denormals
from mvcca.deep._training.rows import Batches, as_array
from mvcca.deep.encoders import Encoders, row_dtype, scores_of
from mvcca.deep.objectives import Loss
from mvcca.deep.samplers import Sample, Sampler
from mvcca.deep.steps import (
    Optimizer,
    descend,
    figures_of,
    mean_figures,
    parameter_groups,
    total,
)
from mvcca.machine.config import block_slices, get_config
from mvcca.machine.deadline import tick
from mvcca.machine.warnings import warn
from mvcca.views import Views

__all__ = ["Trainer"]

_SECONDS = 20.0  # between two checkpoints
_MAX_SKIPPED = 5  # steps per epoch with a loss or gradient that is not finite
_MAX_RETREATS = 3  # repetitions of epochs with more such steps
_ROW_BYTES = 2**14  # approximate memory of the activations of a row, at least
_ACTIVATIONS = 16  # per feature, such as the channels of an image

Objective = Callable[[dict[str, Tensor], Batch], Loss]


class Callback:
    """Base class whose methods do nothing; override those you need.

    Attributes
    ----------
    needs_validation : bool
        Whether training without validation rows raises an error.
    """

    needs_validation: ClassVar[bool] = False

    def on_train_begin(self, trainer: Trainer) -> None:
        """Before the first epoch of a training, or of a resumed one."""

    def on_epoch_begin(self, trainer: Trainer) -> None:
        """Before the first batch of an epoch; ``trainer.epoch`` is its number, from 1."""

    def on_batch_end(self, trainer: Trainer) -> None:
        """After the optimization step of a batch."""

    def measure(self, trainer: Trainer) -> dict[str, float]:
        """Values to add to the history of this epoch, by column; the same columns every epoch."""
        return {}

    def on_epoch_end(self, trainer: Trainer) -> None:
        """After validation; ``trainer.history[-1]`` holds the values of the epoch."""

    def on_train_end(self, trainer: Trainer) -> None:
        """After the last epoch."""

    def state_dict(self) -> dict[str, Any]:
        """State to store in checkpoints: numbers, strings and tensors."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state returned by `state_dict`."""


class Trainer:
    """Train one network per view with an objective of the scores of all views.

    Parameters
    ----------
    encoders : Encoders
        The networks; trained in place.
    objective : callable ``(scores, batch) -> loss``
        Loss to minimize: a tensor, or a mapping of named terms that are summed. If it is a module,
        its parameters are trained, too.
    optimizer : callable
        Factory of an optimizer from a list of parameter groups, such as
        ``partial(torch.optim.RMSprop, lr=1e-3)``.
    sampler : callable ``(sample, rng) -> iterator of {view: positions}``
        Batches of an epoch; see `mvcca.deep.samplers`.
    learning_rates : mapping of str to float, optional
        Learning rate of the network of each view, instead of the one of the optimizer.
    callbacks : sequence of Callback, default=()
        Called during training; see `mvcca.deep.callbacks`.
    device : torch.device or str, default="cpu"
        Device to train on.
    seed : int, default=0
        Seed of the sampler.
    torch_seed : int, optional
        Seed for modules that use torch's global generator, such as dropout; its state is restored
        afterwards. By default they use it as it is.
    mixed_precision : bool, default=False
        Run the networks, but not the objective, in bfloat16 wherever torch considers it safe. This
        is faster only on hardware with instructions for bfloat16.
    monitor : str, default="valid_loss"
        Column of the history that decides the best epoch if there are validation rows: the lowest
        "valid_loss", or the highest value of a column measured by a callback, such as the
        "valid_mrr" of `mvcca.deep.callbacks.ValidationScore`.
    patience : int, optional
        Stop after this many epochs without a better one.
    n_epochs : int, optional
        Number of epochs that schedules refer to, in `mvcca.deep.objectives.Batch`; by default the
        last epoch of each training.
    title : str, default=""
        What is trained. If `mvcca.config_context` asks for progress, each epoch writes a line to
        standard error that begins with it.

    Attributes
    ----------
    epoch : int
        Number of completed epochs; in an epoch, its number.
    planned_epochs : int
        Number of epochs that schedules refer to in the present epoch.
    history : list of dict
        One per epoch: epoch, loss (mean over batches), valid_loss with validation rows, the same
        for each named term of the loss (loss_reconstruction, valid_loss_reconstruction), what
        callbacks measure, learning_rate, skipped (steps omitted because loss or gradient was not
        finite), seconds.
    best_epoch : int
        Best epoch according to `monitor`; without validation rows the last one.
    """

    def __init__(
        self,
        encoders: Encoders,
        objective: Objective,
        optimizer: Optimizer,
        *,
        sampler: Sampler,
        learning_rates: Mapping[str, float] | None = None,
        callbacks: Sequence[Callback] = (),
        device: torch.device | str = "cpu",
        seed: int = 0,
        torch_seed: int | None = None,
        mixed_precision: bool = False,
        monitor: str = "valid_loss",
        patience: int | None = None,
        n_epochs: int | None = None,
        title: str = "",
    ) -> None:
        self.encoders, self.objective, self.sampler = encoders, objective, sampler
        self.monitor, self.patience, self.n_epochs = monitor, patience, n_epochs
        self.title = title
        self.callbacks, self.mixed_precision = list(callbacks), mixed_precision
        self.modules: list[nn.Module] = [encoders]
        if isinstance(objective, nn.Module):
            self.modules.append(objective)
        self.device = torch.device(device)
        for module in self.modules:
            module.to(self.device)
        self.optimizer = optimizer(parameter_groups(self.modules, learning_rates))
        self.rng = np.random.default_rng(seed)
        self.torch_generator = IsolatedGenerator(torch_seed)
        self.epoch = self.last_epoch = self.best_epoch = 0
        self.history: list[dict[str, float]] = []
        self._best: dict[str, Any] | None = None
        self._stopped = False

    def best_figures(self) -> dict[str, float]:
        """The history of the best epoch; empty if no epoch could be compared."""
        figures = (f for f in self.history if f["epoch"] == self.best_epoch)
        return {} if self._best is None else next(figures, {})

    # ---- for callbacks ---------------------------------------------------------------------------

    def stop(self) -> None:
        """End the training after this epoch."""
        self._stopped = True

    def load_best(self) -> None:
        """Restore the networks and the optimizer as they were after the best epoch."""
        if self._best is not None:
            self._load_weights(self._best)

    def learning_rates(self) -> list[float]:
        """Learning rate of every parameter group."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def set_learning_rates(self, rates: Sequence[float]) -> None:
        """Set the learning rate of every parameter group."""
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate

    def scores(self, views: Views) -> Views:
        """Outputs of the networks in evaluation mode, as NumPy arrays."""
        return views.replace({n: encoded(self.encoders.whole[n], n, X) for n, X in views.items()})

    # ---- the loop --------------------------------------------------------------------------------

    def train(
        self,
        sample: Sample | Views,
        n_epochs: int,
        validation: Sample | Views | None = None,
        checkpoint: Checkpoint | None = None,
        *,
        counts_start: bool = False,
    ) -> None:
        """Train for more epochs, and restore the best weights if there are validation rows.

        Parameters
        ----------
        sample : Sample or Views
            Training rows, with labels if the objective uses them.
        n_epochs : int
            Maximum number of epochs.
        validation : Sample or Views, optional
            Validation rows, evaluated after every epoch.
        checkpoint : Checkpoint, optional
            Where to resume from, and to save the state: every 20 seconds, at the end, and on
            interruption if an epoch was completed.
        counts_start : bool, default=False
            With validation rows, evaluate the weights before the first epoch, too, as epoch 0.

        Raises
        ------
        ValueError
            If a callback or `patience` needs validation rows and there are none, or if the loss is
            never finite.
        """
        if validation is None:
            refuse_without_validation(self.callbacks, self.patience)
        self.last_epoch, self._stopped = self.epoch + n_epochs, False
        self.rows = Batches(sample, self.device, self.encoders)
        self.validation = None
        if validation is not None:
            self.validation = Batches(validation, self.device, self.encoders)
        if checkpoint is not None and checkpoint.state is not None:
            self.load_state_dict(checkpoint.state)
        for callback in self.callbacks:
            callback.on_train_begin(self)
        if counts_start and not self.epoch and self.validation is not None:
            self._note_start(self.validation)
        last_good, written = self._weights(), time.monotonic()
        snapshot = self.state_dict() if checkpoint is not None else None
        retreats = 0
        try:
            with without_denormals():
                while self.epoch < self.last_epoch and not self._stopped:
                    tick()
                    with self.torch_generator.active(self.device):
                        succeeded = self._train_epoch()
                    if not succeeded:
                        retreats += 1
                        self._retreat(last_good, retreats)
                        continue
                    last_good = self._weights()
                    if checkpoint is not None:
                        snapshot = self.state_dict()
                        if time.monotonic() - written > _SECONDS:
                            checkpoint.write(snapshot)
                            written = time.monotonic()
        except BaseException:
            # Before the end of the first epoch there is nothing to resume from.
            if checkpoint is not None and snapshot and snapshot["epoch"]:
                checkpoint.write(snapshot)
            raise
        if checkpoint is not None:  # the rest of the fit may be interrupted, too
            checkpoint.write(self.state_dict())
        if self.validation is not None:
            self.load_best()
        for callback in self.callbacks:
            callback.on_train_end(self)
        for module in self.modules:
            module.eval()
        del self.rows, self.validation

    def _train_epoch(self) -> bool:
        """Make one pass over the rows, and return whether the loss was finite."""
        start = time.perf_counter()
        self.epoch += 1
        self.planned_epochs = max(self.n_epochs or self.last_epoch, self.epoch)
        for module in self.modules:
            module.train()
        for callback in self.callbacks:
            callback.on_epoch_begin(self)
        means, n_steps, n_finite = mean_figures(self._steps())
        figures = {"epoch": self.epoch, "loss": 0.0} | means
        succeeded = n_finite > 0 and n_steps - n_finite <= _MAX_SKIPPED
        if succeeded and self.validation is not None:
            figures |= self._evaluate(self.validation)
            succeeded = math.isfinite(figures["valid_loss"])
        if not succeeded:
            self.epoch -= 1
            return False
        for callback in self.callbacks:
            figures |= callback.measure(self)
        figures["learning_rate"] = self.learning_rates()[0]
        figures["skipped"] = n_steps - n_finite
        figures["seconds"] = time.perf_counter() - start
        self.history.append(figures)
        if self.validation is None:
            self.best_epoch = self.epoch
        else:
            self._note_best(figures)
        for callback in self.callbacks:
            callback.on_epoch_end(self)
        if self.patience is not None and self.epoch - self.best_epoch >= self.patience:
            self.stop()
        if get_config().progress:
            self._write_line(figures)
        return True

    def _write_line(self, figures: Mapping[str, float]) -> None:
        """Write the values of an epoch to standard error."""
        values = [f"{name} {value:.4g}" for name, value in figures.items() if name != "epoch"]
        title = f"{self.title}: " if self.title else ""
        line = f"{title}epoch {self.epoch}/{self.last_epoch}  {'  '.join(values)}\n"
        sys.stderr.write(line)

    def _steps(self) -> Iterator[tuple[Tensor, dict[str, Tensor]]]:
        """Step once per batch, and yield whether it was finite, and the figures of its loss."""
        chosen = self.sampler(self.rows.sample, self.rng)
        for batch in self.rows.batches(chosen, self.epoch, self.planned_epochs):
            loss = self._loss(batch)
            step = descend(self.optimizer, total(loss), self.device), figures_of(loss)
            for callback in self.callbacks:
                callback.on_batch_end(self)
            yield step

    def _loss(self, batch: Batch) -> Loss:
        """The loss of a batch with the present networks."""
        is_mixed = self.mixed_precision
        with torch.autocast(self.device.type, torch.bfloat16) if is_mixed else nullcontext():
            scores = self.encoders(batch.views)
        return self.objective({name: F.float() for name, F in scores.items()}, batch)

    def _evaluate(self, rows: Batches) -> dict[str, float]:
        """The loss of all rows as one batch, in evaluation mode."""
        with torch.no_grad(), evaluating(*self.modules):
            batch = rows.batch(rows.all(), self.epoch, self.planned_epochs)
            scores = {
                name: _in_blocks(self.encoders.trained[name], name, X).float()
                for name, X in batch.views.items()
            }
            figures = figures_of(self.objective(scores, batch))
        return {f"valid_{name}": float(value) for name, value in figures.items()}

    def _note_best(self, figures: dict[str, float]) -> None:
        """Keep the weights if the epoch is the best so far."""
        if self.monitor not in figures:
            raise ValueError(
                f"monitor={self.monitor!r} is not in the history, whose columns are "
                f"{list(figures)}. Add a callback that measures it."
            )
        quality = figures[self.monitor] * (-1 if self.monitor.startswith("valid_loss") else 1)
        if math.isnan(quality):  # collapsed networks
            return
        if self._best is None or quality > self._best["quality"]:
            self.best_epoch = self.epoch
            self._best = self._weights() | {"quality": quality}

    def _note_start(self, validation: Batches) -> None:
        """Keep the initial weights as those of epoch 0."""
        self.planned_epochs = self.n_epochs or self.last_epoch
        figures = {"epoch": 0, "loss": math.nan}
        if self.monitor.startswith("valid_loss"):  # a CCA layer has no statistics to evaluate yet
            figures |= self._evaluate(validation)
        for callback in self.callbacks:
            figures |= callback.measure(self)
        self.history.append(figures)
        self._note_best(figures)

    def _retreat(self, last_good: dict[str, Any], times: int) -> None:
        """Restore the weights before the epoch and halve the learning rate; in the end give up."""
        rates = self.learning_rates()
        self._load_weights(last_good)
        self.set_learning_rates([rate / 2 for rate in rates])
        if times < _MAX_RETREATS:
            return
        if not self.epoch:
            raise ValueError(
                "The loss is not finite from the first epoch on, even at smaller learning rates. "
                "Rescale the views (with a StandardScaler, for example), raise reg, or lower "
                "learning_rate."
            )
        warn(
            f"The loss is not finite after epoch {self.epoch}, even at smaller learning rates: "
            "training stops. Raise reg, or lower learning_rate.",
            ConvergenceWarning,
        )
        self.stop()

    # ---- state -----------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """State from which training resumes, as tensors and plain values."""
        return {
            **self._weights(),
            "epoch": self.epoch,
            "best_epoch": self.best_epoch,
            "best": self._best,
            "stopped": self._stopped,
            "history": [dict(figures) for figures in self.history],
            "sampler": self.rng.bit_generator.state,
            "draws": self.torch_generator.states,
            "callbacks": [[type(c).__name__, c.state_dict()] for c in self.callbacks],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state returned by `state_dict`."""
        self._load_weights(state)
        self.epoch, self.best_epoch = state["epoch"], state["best_epoch"]
        self._best, self._stopped = state["best"], state["stopped"]
        self.history = [dict(figures) for figures in state["history"]]
        self.rng.bit_generator.state = state["sampler"]
        self.torch_generator.states = state["draws"]
        saved = list(state["callbacks"])
        for callback in self.callbacks:  # matched by class, in order; unmatched ones start anew
            names = [name for name, _ in saved]
            if type(callback).__name__ in names:
                callback_state = saved.pop(names.index(type(callback).__name__))[1]
                callback.load_state_dict(copied(callback_state))

    def move_to(self, device: torch.device) -> None:
        """Move networks, objective and the optimizer's state to a device."""
        self.device = device
        for module in self.modules:
            module.to(device)
        # which moves the state to its parameters
        self.optimizer.load_state_dict(self.optimizer.state_dict())

    def _weights(self) -> dict[str, Any]:
        """A copy of the states of networks, objective and optimizer."""
        modules = [copied(module.state_dict()) for module in self.modules]
        return {"modules": modules, "optimizer": copied(self.optimizer.state_dict())}

    def _load_weights(self, state: dict[str, Any]) -> None:
        # Older files have an empty state of an objective that is a function now.
        for module, module_state in zip(self.modules, state["modules"], strict=False):
            module.load_state_dict(module_state)
        self.optimizer.load_state_dict(copied(state["optimizer"]))


def refuse_without_validation(callbacks: Iterable[Callback], patience: int | None = None) -> None:
    """Refuse what needs validation rows."""
    needing = [type(c).__name__ for c in callbacks if c.needs_validation]
    needing += [] if patience is None else ["patience"]
    if needing:
        raise ValueError(
            f"{needing[0]} needs validation rows, and there are none. Pass X_val to fit, or set "
            "validation_fraction."
        )


def copied(tree: Any) -> Any:
    """Copy the tensors of a state, each on its device."""
    if isinstance(tree, Tensor):
        return tree.detach().clone()
    if isinstance(tree, dict):
        return {name: copied(part) for name, part in tree.items()}
    if isinstance(tree, list | tuple):
        return [copied(part) for part in tree]
    return tree


def encoded(encoder: nn.Module, name: str, block: Any) -> np.ndarray:
    """Output of a network for the rows of a view, in evaluation mode: (n_rows, n_scores)."""
    like = next(chain(encoder.parameters(), encoder.buffers()), torch.empty(0))
    dtype = row_dtype(encoder)
    if like.device.type == "mps" and dtype is np.float64:
        dtype = np.float32  # Apple's devices have no float64
    parts = []
    with torch.no_grad(), evaluating(encoder), without_denormals():
        for rows in list(_blocks(*block.shape)) or [slice(0, 0)]:
            X = torch.from_numpy(as_array(name, block[rows], dtype)).to(like.device)
            parts.append(scores_of(encoder, name, X).float().cpu().numpy())
    return np.concatenate(parts)


def _in_blocks(encoder: Callable[[Tensor], Tensor], name: str, X: Tensor) -> Tensor:
    return torch.cat([scores_of(encoder, name, X[rows]) for rows in _blocks(*X.shape)])


def _blocks(n_rows: int, n_features: int) -> Iterator[slice]:
    """Blocks of rows whose activations fit in little memory."""
    row_bytes = max(_ROW_BYTES, 4 * _ACTIVATIONS * n_features)
    return block_slices(n_rows, row_bytes, at_least=64)
