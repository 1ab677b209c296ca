"""Callbacks of the trainer: refinement and measurement.

The methods have skorch's names, and each is called with the trainer. A callback with state that
checkpoints must hold returns it from `state_dict`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from mvcca.deep.endings import Ending, as_trained, ending_after, linear_cca
from mvcca.deep.trainer import Callback, Trainer
from mvcca.machine.on_access import on_access
from mvcca.measures import total_correlation
from mvcca.problem.expected import profile_vectors
from mvcca.retrieval import evaluate_retrieval
from mvcca.views import Labels, Views

__all__ = [
    "Callback",
    "Refinement",
    "ValidationScore",
]

if not TYPE_CHECKING:  # it would hide misspelt names
    __getattr__ = on_access(__name__)

_ROWS = 10_000  # training rows used at most by a figure computed every epoch
_CORRELATION = "total_correlation"


class Refinement(Callback):
    """Return to the best weights with a smaller learning rate, several times, then stop [1]_.

    The state of the optimizer is restored, too.

    Parameters
    ----------
    patience : int, default=50
        Number of epochs without improvement before the first refinement.
    later_patience : int, default=10
        Number of epochs without improvement before each later one, and before stopping.
    times : int, default=3
        Number of refinements.
    factor : float, default=0.1
        Factor of the learning rate at each refinement.

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
        """Refine or stop if the patience is exhausted."""
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
        """Number of refinements, and the epoch of the last one."""
        return {"done": self._done, "since": self._since}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the number of refinements and the epoch of the last one."""
        self._done, self._since = state["done"], state["since"]


class ValidationScore(Callback):
    """Record a score of the validation rows after every epoch.

    The scores are those that the model would give if training ended there: an ending that learns is
    fitted to the outputs for the training rows (10,000 evenly spaced ones, if there are more). Deep
    estimators add this callback themselves for what they monitor.

    Parameters
    ----------
    score : str or callable
        Name of a measure of `mvcca.retrieval.evaluate_retrieval`, such as "mrr" or "map", averaged
        over all ordered pairs of views; "total_correlation", averaged over all pairs; or
        ``score(scores, labels) -> float``, larger is better, of the scores as `Views` and the label
        vectors by view (None without labels).
    ending : Ending, optional
        See `mvcca.deep.endings`; by default linear CCA with all components for the total
        correlation, and otherwise outputs as they are, compared by cosine.
    labels : Labels, optional
        What the codes of the rows stand for; by default equal codes are equal labels.
    column : str, optional
        Column of the history; by default "valid_mrr" for the measure "mrr".
    """

    needs_validation = True

    def __init__(
        self,
        score: str | Callable[[Views, Any], float],
        ending: Ending | None = None,
        labels: Labels | None = None,
        column: str | None = None,
    ) -> None:
        self.score, self.ending, self.labels = score, ending, labels
        self.column = column or f"valid_{score if isinstance(score, str) else 'monitor'}"

    def on_train_begin(self, trainer: Trainer) -> None:
        """Refuse unpaired rows if a correlation is measured, which they do not have."""
        assert trainer.validation is not None
        is_paired = trainer.rows.views.is_paired and trainer.validation.views.is_paired
        if self.score == _CORRELATION and not is_paired:
            raise ValueError(
                "The total correlation is that of paired rows, and these are unpaired. Monitor "
                '"valid_map" instead, or pass paired X_val and X.'
            )

    def measure(self, trainer: Trainer) -> dict[str, float]:
        """The score; NaN for collapsed networks."""
        assert trainer.validation is not None
        return {self.column: self._of(trainer, trainer.rows, trainer.validation)}

    def _of(self, trainer: Trainer, rows: Any, validation: Any) -> float:
        """The score of validation rows, given training rows, with the present networks."""
        is_correlation = self.score == _CORRELATION
        default = linear_cca(None, 1e-4) if is_correlation else as_trained()
        ending = ending_after(trainer.epoch, self.ending or default, trainer.encoders.solution)
        valid = in_double(trainer.scores(validation.views))
        train = valid
        if ending.maps is not None:
            n_rows = len(rows.views)
            sample = np.linspace(0, n_rows - 1, min(n_rows, _ROWS)).astype(int)
            train = in_double(trainer.scores(rows.views[sample]))
        blocks = [F for views in (train, valid) for _, F in views.items()]
        if not all(np.isfinite(F).all() and np.ptp(F, axis=0).any() for F in blocks):
            return np.nan
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the final fit gives the same warnings, once
            maps = ending.maps_of_sample and ending.maps_of_sample(trainer.objective, train)
        scores = valid if maps is None else maps.transform(valid)
        if is_correlation:
            pairs = combinations((scores[name] for name in scores.names), 2)
            return float(np.mean([total_correlation(*pair) for pair in pairs]))
        labels: Any = validation.labels or None
        if labels is not None and self.labels is not None:
            # Functions of users get a vector for each row.
            found = self.labels if isinstance(self.score, str) else self.labels.vectors
            labels = {name: found[codes] for name, codes in labels.items()}
        if not isinstance(self.score, str):
            return float(self.score(scores, labels))
        similarity: Any = (self.ending or default).retrieval_ranking[1]
        if maps is not None and maps.expected is not None:
            rho, similarity = maps.expected.mean, "inner"
            scores = scores.replace({n: profile_vectors(U, rho) for n, U in scores.items()})
        table = evaluate_retrieval(scores, labels, measures=self.score, similarity=similarity)
        return float(table.mean()[self.score])


def in_double(scores: Views) -> Views:
    """Scores in float64."""
    return scores.replace({name: F.astype(np.float64) for name, F in scores.items()})
