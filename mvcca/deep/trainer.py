"""The training loop: epochs of batches, validation, the best weights, and what survives a fault.

Networks, objectives and samplers come from outside, and so does all that only some trainings do,
as `mvcca.deep.callbacks`. Nothing here knows of estimators.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor, nn

from mvcca._warnings import warn
from mvcca.config import block_slices
from mvcca.deep import _trees
from mvcca.deep._checkpoint import Checkpoint
from mvcca.deep._host import Draws, evaluating, without_denormals
from mvcca.deep._rows import Rows, as_float32
from mvcca.deep.callbacks import Callback
from mvcca.deep.encoders import Encoders
from mvcca.deep.objectives import Batch
from mvcca.views import Views

__all__ = ["Trainer"]

_SECONDS = 20.0  # between two writings of the checkpoint
_SKIPPED = 5  # steps of an epoch that may come to nothing
_RETREATS = 3  # times that an epoch may be given up
_ROW_BYTES = 2**14  # of a row on its way through a network, about

Optimizer = Callable[[list[dict[str, Any]]], torch.optim.Optimizer]
Objective = Callable[[dict[str, Tensor], Batch], Tensor]


class Trainer:
    """Trains one network per view with an objective of the scores of all of them.

    Parameters
    ----------
    encoders : Encoders
        The networks; trained in place.
    objective : callable ``(scores, batch) -> loss``
        If it is a module its parameters are trained, too.
    optimizer : callable
        Makes an optimizer of a list of parameter groups, such as
        ``partial(torch.optim.RMSprop, lr=1e-3)``.
    sampler : callable ``(n_rows, rng) -> iterator of positions``
        Batches of an epoch; see `mvcca.deep.samplers`.
    callbacks : sequence of Callback, default=()
    device : torch.device or str, default="cpu"
    seed : int, default=0
        Of the sampler.
    torch_seed : int, optional
        Of what networks draw from torch's global generator (dropout), which is left as it was. If
        None they draw from that itself, if they do.
    mixed_precision : bool, default=False
        Run networks in bfloat16 where torch deems it safe; the objective is not.
    monitor : str, default="valid_loss"
        The column of the history that decides which epoch is best, where there are validation rows:
        the lowest "valid_loss", or the highest value of a column that a callback measures, such as
        the "valid_total_correlation" of `mvcca.deep.callbacks.TotalCorrelation`.

    Attributes
    ----------
    epoch : int
        Epochs so far.
    history : list of dict
        Figures of every epoch: epoch, loss (mean over its batches), valid_loss where there are
        validation rows, what callbacks measure, learning_rate, skipped (steps whose loss or
        gradient was not finite, and which were not taken), seconds.
    best_epoch : int
        The best by what is monitored; the last one without validation.
    """

    def __init__(
        self,
        encoders: Encoders,
        objective: Objective,
        optimizer: Optimizer,
        *,
        sampler: Callable[[int, np.random.Generator], Iterable[np.ndarray]],
        callbacks: Sequence[Callback] = (),
        device: torch.device | str = "cpu",
        seed: int = 0,
        torch_seed: int | None = None,
        mixed_precision: bool = False,
        monitor: str = "valid_loss",
    ) -> None:
        self.encoders, self.objective, self.sampler = encoders, objective, sampler
        self.monitor = monitor
        self.callbacks, self.mixed_precision = list(callbacks), mixed_precision
        self.modules: list[nn.Module] = [encoders]
        if isinstance(objective, nn.Module):
            self.modules.append(objective)
        self.move_to(torch.device(device))
        self.optimizer = optimizer(parameter_groups(self.modules))
        self.rng = np.random.default_rng(seed)
        self.draws = Draws(torch_seed)
        self.epoch = self.last_epoch = self.best_epoch = 0
        self.history: list[dict[str, float]] = []
        self._best: dict[str, Any] | None = None
        self._stopped = False

    # ---- what callbacks may do -------------------------------------------------------------------

    def stop(self) -> None:
        """End the training after this epoch."""
        self._stopped = True

    def load_best(self) -> None:
        """Go back to the weights of the best epoch, and to the optimiser's state then."""
        if self._best is not None:
            self._load_weights(self._best)

    def learning_rates(self) -> list[float]:
        """Of every parameter group."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def set_learning_rates(self, rates: Sequence[float]) -> None:
        """Of every parameter group."""
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate

    def scores(self, views: Views) -> Views:
        """What the networks make of rows, in evaluation, as NumPy arrays."""
        return views.replace({n: encoded(self.encoders[n], n, X) for n, X in views.items()})

    # ---- the loop --------------------------------------------------------------------------------

    def train(
        self,
        views: Views,
        n_epochs: int,
        validation: Views | None = None,
        checkpoint: Checkpoint | None = None,
        positions: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        """Train for some more epochs, and end with the best weights if there is validation.

        Parameters
        ----------
        views : Views
            Paired rows.
        n_epochs : int
            At most.
        validation : Views, optional
            Rows to take the loss of after every epoch.
        checkpoint : Checkpoint, optional
            Keeps the state, every 20 seconds, when interrupted after an epoch or more, and at the
            end. Training resumes from the state that it holds.
        positions : pair of ndarray, optional
            Which of the user's rows the training and the validation rows are, for `Batch.rows`;
            all of them, in order, by default.

        Raises
        ------
        ValueError
            If a callback needs validation rows and there are none, or if the loss is never finite.
        """
        if validation is None:
            _refuse_validation_of_nothing(self.callbacks)
        self.last_epoch, self._stopped = self.epoch + n_epochs, False
        of_training, of_validation = positions or (None, None)
        self.rows = Rows(views, self.device, of_training)
        self.validation = None
        if validation is not None:
            self.validation = Rows(validation, self.device, of_validation)
        if checkpoint is not None and checkpoint.state is not None:
            self.load_state_dict(checkpoint.state)
        self._call("on_train_begin")
        kept, written = self._weights(), time.monotonic()
        snapshot = self.state_dict() if checkpoint is not None else None
        retreats = 0
        try:
            with without_denormals():
                while self.epoch < self.last_epoch and not self._stopped:
                    with self.draws.on_loan(self.device):
                        sound = self._train_epoch()
                    if not sound:
                        retreats += 1
                        self._retreat(kept, retreats)
                        continue
                    kept = self._weights()
                    if checkpoint is not None:
                        snapshot = self.state_dict()
                        if time.monotonic() - written > _SECONDS:
                            checkpoint.write(snapshot)
                            written = time.monotonic()
        except BaseException:
            # Before the end of the first epoch there is nothing to go on from.
            if checkpoint is not None and snapshot and snapshot["epoch"]:
                checkpoint.write(snapshot)
            raise
        if checkpoint is not None:  # what follows may be interrupted, too
            checkpoint.write(self.state_dict())
        if self.validation is not None:
            self.load_best()
        self._call("on_train_end")
        self._train_mode(False)
        del self.rows, self.validation

    def _train_epoch(self) -> bool:
        """One pass over the rows; whether it came to anything."""
        start = time.perf_counter()
        self.epoch += 1
        self._train_mode(True)
        self._call("on_epoch_begin")
        total = torch.zeros((), dtype=torch.float64)
        if self.device.type != "mps":  # which has no float64
            total = total.to(self.device)
        taken, n_steps = total.clone(), 0
        for rows, batch in self.rows.batches(self.sampler(len(self.rows), self.rng)):
            loss, sound = self._step(batch, rows)
            total += torch.where(sound, loss, 0).to(total)
            taken += sound.to(taken)
            n_steps += 1
            self._call("on_batch_end")
        n_taken = int(taken)
        loss_of_epoch = float(total) / max(n_taken, 1)
        figures: dict[str, float] = {"epoch": self.epoch, "loss": loss_of_epoch}
        sound_epoch = n_taken > 0 and n_steps - n_taken <= _SKIPPED
        if sound_epoch and self.validation is not None:
            figures["valid_loss"] = self._loss_of(self.validation)
            sound_epoch = math.isfinite(figures["valid_loss"])
        if not sound_epoch:
            self.epoch -= 1
            return False
        for callback in self.callbacks:
            figures |= callback.measure(self)
        figures["learning_rate"] = self.learning_rates()[0]
        figures["skipped"] = n_steps - n_taken
        figures["seconds"] = time.perf_counter() - start
        self.history.append(figures)
        self._note_best(figures)
        self._call("on_epoch_end")
        return True

    def _step(self, batch: dict[str, Tensor], rows: np.ndarray) -> tuple[Tensor, Tensor]:
        """One step, not taken where loss or gradient is not finite; the loss, and whether it was.

        A GPU works on while the host goes on: there a step that is not taken is one along zero.
        """
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.mixed_precision):
            scores = self.encoders(batch)
        scores = {name: F.float() for name, F in scores.items()}
        loss = self.objective(scores, Batch(batch, self.rows.positions[rows], self.epoch))
        loss.backward()
        gradients = [
            p.grad for g in self.optimizer.param_groups for p in g["params"] if p.grad is not None
        ]
        loss = loss.detach()
        sound = torch.isfinite(loss)
        if gradients:
            norms = torch._foreach_norm(gradients, 2)  # the one that torch is fast at
            sound = sound & torch.isfinite(torch.stack(norms)).all()
        if self.device.type == "cpu":
            if sound:
                self.optimizer.step()
            return loss, sound
        for gradient in gradients:
            gradient.copy_(torch.where(sound, gradient, 0))
        self.optimizer.step()
        return loss, sound

    def _loss_of(self, rows: Rows) -> float:
        """The loss of all rows as one batch, in evaluation."""
        with torch.no_grad(), evaluating(*self.modules):
            batch = rows.take(np.arange(len(rows)))
            scores = {n: _in_blocks(self.encoders[n], X).float() for n, X in batch.items()}
            return float(self.objective(scores, Batch(batch, rows.positions, self.epoch)))

    def _note_best(self, figures: dict[str, float]) -> None:
        if self.validation is None:
            self.best_epoch = self.epoch
            return
        quality = figures[self.monitor] * (-1 if self.monitor == "valid_loss" else 1)
        if math.isnan(quality):  # of networks that have collapsed
            return
        if self._best is None or quality > self._best["quality"]:
            self.best_epoch = self.epoch
            self._best = self._weights() | {"quality": quality}

    def _retreat(self, kept: dict[str, Any], times: int) -> None:
        """Back to the weights before the epoch, with half the learning rate; or give up."""
        rates = self.learning_rates()
        self._load_weights(kept)
        self.set_learning_rates([rate / 2 for rate in rates])
        if times < _RETREATS:
            return
        if not self.epoch:
            raise ValueError(
                "The loss is not finite from the first epoch on, at smaller learning rates "
                "neither. Rescale the views (scores of a StandardScaler, say), raise reg, or "
                "lower learning_rate."
            )
        warn(
            f"The loss stopped being finite after epoch {self.epoch}, and at smaller learning "
            "rates again: training ends there. Raise reg, or lower learning_rate.",
            ConvergenceWarning,
        )
        self.stop()

    # ---- state -----------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """All that decides how training goes on, as tensors and plain values."""
        return {
            **self._weights(),
            "epoch": self.epoch,
            "best_epoch": self.best_epoch,
            "best": self._best,
            "stopped": self._stopped,
            "history": [dict(figures) for figures in self.history],
            "sampler": self.rng.bit_generator.state,
            "draws": self.draws.states,
            "callbacks": [[type(c).__name__, c.state_dict()] for c in self.callbacks],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._load_weights(state)
        self.epoch, self.best_epoch = state["epoch"], state["best_epoch"]
        self._best, self._stopped = state["best"], state["stopped"]
        self.history = [dict(figures) for figures in state["history"]]
        self.rng.bit_generator.state = state["sampler"]
        self.draws.states = state["draws"]
        memories = list(state["callbacks"])
        for callback in self.callbacks:  # of each class in order; others start afresh
            names = [name for name, _ in memories]
            if type(callback).__name__ in names:
                memory = memories.pop(names.index(type(callback).__name__))[1]
                callback.load_state_dict(_trees.copied(memory))

    def move_to(self, device: torch.device) -> None:
        """Networks, objective and the optimiser's state to a device."""
        self.device = device
        for module in self.modules:
            module.to(device)
        if hasattr(self, "optimizer"):  # load_state_dict moves what it loads beside parameters
            self.optimizer.load_state_dict(self.optimizer.state_dict())

    def _weights(self) -> dict[str, Any]:
        """A copy of networks, objective and optimiser."""
        modules = [_trees.copied(module.state_dict()) for module in self.modules]
        return {"modules": modules, "optimizer": _trees.copied(self.optimizer.state_dict())}

    def _load_weights(self, state: dict[str, Any]) -> None:
        for module, its_state in zip(self.modules, state["modules"], strict=True):
            module.load_state_dict(its_state)
        self.optimizer.load_state_dict(_trees.copied(state["optimizer"]))

    def _train_mode(self, training: bool) -> None:
        for module in self.modules:
            module.train(training)

    def _call(self, occasion: str) -> None:
        for callback in self.callbacks:
            getattr(callback, occasion)(self)


def _refuse_validation_of_nothing(callbacks: Iterable[Callback]) -> None:
    for callback in callbacks:
        if callback.needs_validation:
            raise ValueError(
                f"{type(callback).__name__} needs validation rows, and there are none. Give fit "
                "X_val, or set validation_fraction."
            )


def parameter_groups(modules: Sequence[nn.Module]) -> list[dict[str, Any]]:
    """All parameters; those that a module names in `no_weight_decay`, in a group of their own."""
    spared = {
        id(module.get_parameter(name))
        for root in modules
        for module in root.modules()
        for name in getattr(module, "no_weight_decay", ())
    }
    parameters = list({id(p): p for module in modules for p in module.parameters()}.values())
    plain: dict[str, Any] = {"params": [p for p in parameters if id(p) not in spared]}
    if not spared:
        return [plain]
    others = [p for p in parameters if id(p) in spared]
    return [plain, {"params": others, "weight_decay": 0.0}]


def encoded(encoder: nn.Module, name: str, block: Any) -> np.ndarray:
    """What a network makes of the rows of a view, in evaluation, shape (n_rows, n_scores)."""
    like = next(encoder.parameters(), torch.empty(0))
    parts = []
    with torch.no_grad(), evaluating(encoder), without_denormals():
        for rows in list(block_slices(block.shape[0], _ROW_BYTES)) or [slice(0, 0)]:
            X = torch.from_numpy(as_float32(name, block[rows])).to(like.device)
            parts.append(encoder(X).float().cpu().numpy())
    return np.concatenate(parts)


def _in_blocks(encoder: nn.Module, X: Tensor) -> Tensor:
    return torch.cat([encoder(X[rows]) for rows in block_slices(len(X), _ROW_BYTES)])
