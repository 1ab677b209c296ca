"""What a training does besides steps: stopping, going back to the best weights, measuring.

A callback has skorch's method names, each called with the trainer. What it must remember over an
interruption goes through `state_dict`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mvcca.linear import MVCCA
from mvcca.measures import total_correlation

if TYPE_CHECKING:
    from mvcca.deep.trainer import Trainer
    from mvcca.views import Views

__all__ = ["Callback", "EarlyStopping", "ProgressLines", "Refinement", "TotalCorrelation"]

_ROWS = 10_000  # of the training rows, that a figure of every epoch may look at


class Callback:
    """Does nothing, at every occasion; override what you need.

    Attributes
    ----------
    needs_validation : bool
        Whether training without validation rows is refused.
    """

    needs_validation: ClassVar[bool] = False

    def on_train_begin(self, trainer: Trainer) -> None:
        """Before the first epoch, also of a training that is taken up again."""

    def on_epoch_begin(self, trainer: Trainer) -> None:
        """Before the batches of an epoch; ``trainer.epoch`` is its number, from 1."""

    def on_batch_end(self, trainer: Trainer) -> None:
        """After the step of a batch."""

    def measure(self, trainer: Trainer) -> dict[str, float]:
        """Figures of the epoch for the history, each a column; the same columns every time."""
        return {}

    def on_epoch_end(self, trainer: Trainer) -> None:
        """After validation; ``trainer.history[-1]`` holds the epoch's figures."""

    def on_train_end(self, trainer: Trainer) -> None:
        """After the last epoch."""

    def state_dict(self) -> dict[str, Any]:
        """What to remember: numbers, strings and tensors."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up what was remembered."""


class EarlyStopping(Callback):
    """Stop once the monitored figure of the validation rows has not improved for some epochs.

    Parameters
    ----------
    patience : int
        Epochs without a new best.
    """

    needs_validation = True

    def __init__(self, patience: int) -> None:
        self.patience = patience

    def on_epoch_end(self, trainer: Trainer) -> None:
        """Stop, if it is time."""
        if trainer.epoch - trainer.best_epoch >= self.patience:
            trainer.stop()


class Refinement(Callback):
    """Go back to the best weights with a smaller learning rate, a few times, and then stop [1]_.

    The optimiser's state goes back as well.

    Parameters
    ----------
    patience : int, default=50
        Epochs without a new best before the first time.
    later_patience : int, default=10
        And after it.
    times : int, default=3
        How often.
    factor : float, default=0.1
        By which the learning rate is multiplied.

    References
    ----------
    .. [1] Dorfer et al., "End-to-End Cross-Modality Retrieval with CCA Projections and Pairwise
       Ranking Loss", 2018, section 5.
    """

    needs_validation = True

    def __init__(
        self, patience: int = 50, later_patience: int = 10, times: int = 3, factor: float = 0.1
    ) -> None:
        self.patience, self.later_patience = patience, later_patience
        self.times, self.factor = times, factor
        self._done, self._since = 0, 0

    def on_epoch_end(self, trainer: Trainer) -> None:
        """Go back, or stop, if it is time."""
        waited = trainer.epoch - max(trainer.best_epoch, self._since)
        if waited < (self.later_patience if self._done else self.patience):
            return
        if self._done == self.times:
            trainer.stop()
            return
        rates = trainer.learning_rates()
        trainer.load_best()
        trainer.set_learning_rates([rate * self.factor for rate in rates])
        self._done, self._since = self._done + 1, trainer.epoch

    def state_dict(self) -> dict[str, Any]:
        """How often it went back, and when last."""
        return {"done": self._done, "since": self._since}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        self._done, self._since = state["done"], state["since"]


class TotalCorrelation(Callback):
    """Total correlation of the validation rows after every epoch, in the history.

    Linear CCA is fitted to the scores of the training rows (10,000 evenly spaced ones, if there are
    more) and applied to the validation rows, so that the figure is the one that the model would
    have if training ended here. Deep estimators with ``monitor="correlation"`` add this callback
    themselves.

    Parameters
    ----------
    n_components : int
    reg : float or mapping of str to float, default=1e-4
        Ridge of that CCA.
    """

    needs_validation = True

    def __init__(self, n_components: int, reg: float | Mapping[str, float] = 1e-4) -> None:
        self.n_components, self.reg = n_components, reg

    def measure(self, trainer: Trainer) -> dict[str, float]:
        """Mean over pairs of views, as ``valid_total_correlation``.

        NaN if all rows get the same scores, or scores that are not finite.
        """
        assert trainer.validation is not None
        n_rows = len(trainer.rows)
        sample = np.linspace(0, n_rows - 1, min(n_rows, _ROWS)).astype(int)
        train = _in_double(trainer.scores(trainer.rows.views[sample]))
        if not all(np.isfinite(F).all() and np.ptp(F, axis=0).any() for _, F in train.items()):
            return {"valid_total_correlation": np.nan}
        model = MVCCA(self.n_components, reg=self.reg)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the CCA at the end of the fit gives them, once
            model.fit(train)
        scores = model.transform(_in_double(trainer.scores(trainer.validation.views)))
        pairs = combinations((scores[name] for name in scores.names), 2)
        return {"valid_total_correlation": float(np.mean([total_correlation(*p) for p in pairs]))}


def _in_double(scores: Views) -> Views:
    return scores.replace({name: F.astype(np.float64) for name, F in scores.items()})


class ProgressLines(Callback):
    """A line per epoch on standard error."""

    def on_epoch_end(self, trainer: Trainer) -> None:
        """Write it."""
        figures = "  ".join(
            f"{name} {value:.4g}" for name, value in trainer.history[-1].items() if name != "epoch"
        )
        sys.stderr.write(f"epoch {trainer.epoch}/{trainer.last_epoch}  {figures}\n")
