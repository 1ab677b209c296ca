"""Deep estimators that learn from pairs, whose networks may start where linear CCA ends."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np
from torch import Generator, nn

from mvcca.base.parameters import one_of, parameter
from mvcca.deep._bases.mlp_estimator import NetworkEstimator
from mvcca.deep._training.start import (
    FEWEST_OBJECTS,
    LINEAR_RATE,
    MAX_EPOCHS,
    PATIENCE,
    are_clearly_larger,
    linear_start,
)
from mvcca.deep._training.training import Training, history_of
from mvcca.deep.callbacks import Callback
from mvcca.deep.encoders import Encoders, LinearPlus
from mvcca.deep.endings import STORED_CCA
from mvcca.deep.samplers import Sample
from mvcca.deep.trainer import Trainer, refuse_without_validation
from mvcca.linear import MVCCA
from mvcca.machine.warnings import warn
from mvcca.retrieval import evaluate_retrieval
from mvcca.retrieval.bank import bank_of, bank_rows
from mvcca.retrieval.ranking import CORRECTED, WEIGHTINGS
from mvcca.views import Views

_STARTS = ("linear", "view", "features")  # in order of trial
_CHOSEN = ("start_history_", "ranking_", "bank_")
_OF_SOLUTION = (  # attributes of an untrained linear start, which trained networks may lack
    "weights_",
    "means_",
    "eigenvalues_",
    "ranks_",
    "canonical_correlations_",
    "expected_correlations_",
    "expected_correlations_by_pair_",
    "expected_deviations_",
)
_RETRIEVAL = ("valid_mrr", "valid_map", "valid_monitor")  # monitored, that decide between starts


class StartedNetworks(NetworkEstimator):
    """Base of the deep estimators that learn from pairs.

    Parameters and attributes that are not listed here are those of
    `mvcca.deep.bases.NetworkEstimator`.

    Parameters
    ----------
    start : {"auto", "linear", "random"}, default="auto"
        Initial networks. "random" has random weights. "linear" is f(x) = W x + b + g(x), where
        W x + b are the scores of ``CCA(None, reg="cv")``, each component times √(r / (1 - r²)) with
        its expected correlation r, and g is the network of "random" with a last layer of zeros; all
        of it is trained, with a learning rate of at most 5e-4.

        "auto" trains three candidates on four fifths of the objects: the linear start, random
        weights with ``standardize="view"``, and random weights with features divided by their
        standard deviations. Each is trained for at most 120
        epochs, or `max_epochs`, until `monitor` has not improved for 20, or `patience`, epochs on
        the other fifth, at most 1,000 objects. The untrained linear start stands unless a candidate
        ranks these better by two standard errors of the difference. What stands is trained again on
        all rows, for as many epochs as were best. With validation rows of your own, these judge,
        and the best candidate is kept as it is. Fewer than 200 objects are not divided: the result
        is the linear start, untrained.

        Only candidates that agree with `standardize` take part; if it is a bool, and for custom
        `encoders`, "auto" is "random".

    Attributes
    ----------
    start_ : {"features", "view", "linear", "random"}
        Start of the networks: random weights for features divided by their standard deviations,
        or for views divided by the root of their mean variance; the linear start; or random weights
        for rows as they are.
    ranking_ : str
        Ranking that "auto" found better on held-out rows than that of the method: with a correction
        for hubs, such as "cosine+csls", or for scores that are those of a CCA, "likelihood"; only
        if there is one.
    bank_ : Views
        Scores of at most 5,000 training rows that correct for hubs; if ``ranking_`` ends in
        "+csls".
    start_history_ : dict of str to dict of str to ndarray
        Training history of each candidate, as in `history_`; only if several were tried.
    best_epoch_ : int
        Epoch whose weights the model has; 0 for an untrained linear start, whose scores and ranking
        are those of CCA with as many components, ``weights_`` and ``expected_correlations_``
        included.
    """

    start: str = parameter("auto", one_of("auto", "linear", "random"))

    @property
    def retrieval_ranking(self) -> tuple[str, str]:  # type: ignore[override]
        """Method and similarity that rank rows: those of linear CCA if nothing was trained."""
        is_linear = self._begins("linear") and getattr(self, "best_epoch_", None) == 0
        if is_linear and hasattr(self, "expected_correlations_"):
            return MVCCA.retrieval_ranking
        return super().retrieval_ranking

    def _trained(
        self, sample: Sample, validation: Sample | None
    ) -> tuple[Trainer, Sample, Sample | None]:
        starts = self._starts()
        self._note(starts[0])
        if len(starts) == 1:
            return super()._trained(sample, validation)
        is_given, seeds, n_epochs = self._is_given(validation), None, 0
        if is_given or len(sample.views) >= FEWEST_OBJECTS:
            trainer, seeds, train, held = self._best(starts, sample, validation)
            self._choose_ranking(trainer, train, held)
            n_epochs = trainer.best_epoch
        else:
            self.start_ = "linear"
        if not n_epochs:
            warn(self._reason(is_given, len(sample.views)))
        if is_given:
            return trainer, train, held
        training = replace(Training.of(self, seeds), max_epochs=n_epochs, patience=None)
        return self._trained_once(training, sample, None)

    def _best(
        self, starts: Sequence[str], sample: Sample, validation: Sample | None
    ) -> tuple[Trainer, list[int], Sample, Sample]:
        """The best candidate, the seeds of all, and the rows that trained and judged them."""
        if not self._is_given(validation):
            refuse_without_validation(self.callbacks)
        best, values, histories = None, np.array([]), {}
        trials = self._trials("start_", starts, "start {} of {} ({})", sample, validation)
        for start, (training, checkpoint, train, held) in zip(starts, trials, strict=True):
            column = training.monitor if training.monitor in _RETRIEVAL else "valid_mrr"
            scores = [] if column == training.monitor else [self._score_callback(column)]
            untrained = replace(training, max_epochs=0)
            for own, file in [(untrained, None)] * (best is None) + [(training, checkpoint)]:
                counts_start = start == "linear"
                trainer = self._train(own, train, held, file, scores, counts_start=counts_start)
                found = self._values(trainer, train, held, column)
                if best is None or are_clearly_larger(found, values):
                    best, values = (start, trainer), found
            histories[start] = history_of(trainer)
        assert best is not None
        self.start_history_, (self.start_, trainer) = histories, best
        return trainer, training.seeds, train, held

    def _values(self, trainer: Trainer, train: Sample, held: Sample, column: str) -> np.ndarray:
        """Reciprocal ranks of the held-out objects; one number if something else is monitored."""
        value = trainer.best_figures().get(column, -np.inf)
        if column != "valid_mrr" or not np.isfinite(value):
            return np.array([value])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the final model gives the same warnings
            self._finish(trainer, train.views)
            table = evaluate_retrieval(held.views, estimator=self, measures="mrr")
        return np.mean([direction.per_query["mrr"] for direction in table], axis=0)

    def _choose_ranking(self, trainer: Trainer, train: Sample, held: Sample) -> None:
        """Keep another ranking than the declared one if it ranks held-out rows better."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the final model gives the same warnings
            self._finish(trainer, train.views)
            declared, bank = self.retrieval_ranking[1], bank_rows(train.views)
            weightings = ["auto", *(["likelihood"] if declared in WEIGHTINGS else [])]
            values: dict[str, float] = {}
            plain: dict[str, Any] = {}
            for weighting in weightings:
                name = declared if weighting == "auto" else weighting
                for end, of_hubs in (("", plain), (CORRECTED, {"hubness": "csls", "bank": bank})):
                    table = evaluate_retrieval(
                        held.views, estimator=self, measures="mrr", weighting=weighting, **of_hubs
                    )
                    values[name + end] = table.mean()["mrr"]
        best = max(values, key=lambda name: values[name])  # of equal ones the declared
        if best != declared:
            self.ranking_ = best

    def _trial(self, seeds: list[int] | None) -> Training:
        training = super()._trial(seeds)
        return replace(
            training,
            max_epochs=MAX_EPOCHS if self.max_epochs == "auto" else training.max_epochs,
            patience=training.patience or PATIENCE,
            monitor="valid_mrr" if self.monitor == "auto" else training.monitor,
        )

    def _reason(self, is_given: bool, n_objects: int) -> str:
        """Why the networks are not trained."""
        if is_given or n_objects >= FEWEST_OBJECTS:
            return (
                "No network was better than linear CCA on held-out rows: the scores are its own, "
                "and the networks are not trained."
            )
        return (
            f"The scores are those of linear CCA, and the networks are not trained: {n_objects} "
            f"objects are fewer than the {FEWEST_OBJECTS} of which start='auto' holds some out to "
            "choose. Pass X_val, or set start to 'linear' or 'random', to train."
        )

    def _starts(self) -> tuple[str, ...]:
        """The starts that take part; of several, held-out rows choose one."""
        is_own = self.encoders is not None
        if self.start == "linear":
            if is_own or self._views_of_words():
                raise ValueError(
                    "start='linear' is for the default networks of features, but "
                    f"{'encoders' if is_own else 'tokens'} are given. Use start='random'."
                )
            return ("linear",)
        scales = not is_own if self.standardize == "auto" else self.standardize
        alone = "view" if scales == "view" else "features" if scales else "random"
        if self.start == "random" or not self._can_choose():
            return (alone,)
        several = {"auto": _STARTS, "view": _STARTS[:2]}
        return several.get(str(self.standardize), (alone,))

    def _can_choose(self) -> bool:
        """Whether there is a linear start to compare with, which needs no training."""
        has_words = self.encoders is not None or self._views_of_words()
        return not (has_words or self._ending() == STORED_CCA)

    def _note(self, start: str) -> None:
        """Forget what an earlier fit chose."""
        for name in _CHOSEN:
            self.__dict__.pop(name, None)
        self.start_ = start

    def _begin_partial(self, is_first: bool) -> None:
        self._note(self._starts()[-1] if is_first else getattr(self, "start_", ""))

    def _begins(self, start: str) -> bool:
        return getattr(self, "start_", None) == start  # older files do not tell

    def _setting(self, name: str) -> Any:
        value = super()._setting(name)
        if name != "learning_rate" or not self._begins("linear"):
            return value
        if isinstance(value, Mapping):
            return {view: min(rate, LINEAR_RATE) for view, rate in value.items()}
        return min(value, LINEAR_RATE)

    def _has_one_scale(self) -> bool:
        if self.standardize != "auto":
            return super()._has_one_scale()
        return self._begins("view") or self._begins("linear")

    def _decisive_params(self) -> dict[str, Any]:
        return super()._decisive_params() | {"start": getattr(self, "start_", None)}

    def _networks(self, generator: Generator) -> Encoders:
        networks = super()._networks(generator)
        if not self._begins("linear"):
            return networks
        width = self._n_scores()
        return Encoders(
            {
                name: LinearPlus(n, width, cast("nn.Sequential", networks[name]))
                for name, n in self._widths.items()
            }
        )

    def _new_trainer(
        self,
        training: Training,
        views: Views,
        callbacks: list[Callback],
        is_first: bool = True,
    ) -> Trainer:
        trainer = super()._new_trainer(training, views, callbacks, is_first)
        if is_first and self._begins("linear"):
            encoders = trainer.encoders
            affine, encoders.solution = linear_start(views, self._n_scores())
            for name, (weights, offsets) in affine.items():
                network = cast("LinearPlus", encoders[name])
                network.begin(weights, offsets, encoders.inputs.get(name))
        return trainer

    def _finish(self, trainer: Trainer, views: Views) -> Self:
        for name in _OF_SOLUTION:
            self.__dict__.pop(name, None)
        super()._finish(trainer, views)
        if getattr(self, "ranking_", "").endswith(CORRECTED):
            self.bank_ = bank_of(self, views)
        return self
