"""Base of the deep estimators: train one network per view, then map their outputs to scores.

Subclasses define the networks (`_networks`), the loss (`_objective`) and the ending
(`_ending`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import field, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, Self, TypeAlias, cast, dataclass_transform

import numpy as np
import torch
from sklearn.utils._param_validation import Interval
from torch import Generator, nn

from mvcca.base import MultiViewEstimator, Requirements, all_or_nothing
from mvcca.base.inputs import open_fit, open_views, repeated_views
from mvcca.base.label_checks import check_labels
from mvcca.base.parameters import (
    NOT_NEGATIVE,
    POSITIVE,
    at_least,
    constraints,
    one_of,
    parameter,
    with_constructor,
)
from mvcca.blocks import as_block
from mvcca.blocks.checks import few
from mvcca.deep._training.checkpoint import Checkpoint
from mvcca.deep._training.host import check_memory
from mvcca.deep._training.identity import identity
from mvcca.deep._training.rows import as_array, few_rows, split
from mvcca.deep._training.training import MONITORED, OPTIMIZERS, Training, TrainingState, history_of
from mvcca.deep.auto import auto_setting
from mvcca.deep.callbacks import Callback, ValidationScore, in_double
from mvcca.deep.encoders import Encoders, takes_integers
from mvcca.deep.endings import Ending, as_trained, ending_after, linear_cca
from mvcca.deep.layers import Standardize
from mvcca.deep.samplers import Sample
from mvcca.deep.trainer import Objective, Trainer, encoded
from mvcca.machine.config import block_slices
from mvcca.machine.warnings import warn
from mvcca.problem import Maps
from mvcca.problem.rows import check_rows_vary
from mvcca.statistics import Moments, column_slices
from mvcca.statistics.passes import file_of_next_pass, fingerprint_of, not_kept
from mvcca.views import Labels, Views, as_views, holds_views
from mvcca.views.labels_by_view import LabelsByView, is_per_view

_FLOATS = (np.float64, np.float32)

Widths = Mapping[str, int]  # of the networks' outputs, by view
LearningRate: TypeAlias = float | str | Mapping[str, float]


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(field,))
@with_constructor
class DeepEstimator(MultiViewEstimator):
    """Base of the deep estimators: one network per view, and an ending that gives the scores.

    Methods define networks, an objective and an ending, and may have other defaults than those
    given here; their signatures show them. Networks train on the device that
    `mvcca.config_context` names, or else on a GPU if torch finds one.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the shared space, and width of the networks' outputs.
    batch_size : int or "auto", default="auto"
        Rows per batch; all rows if there are fewer. "auto" is 128 for fewer than 10,000 training
        rows and 750 for more, and at least 8 rows per component.
    max_epochs : int or "auto", default="auto"
        Maximum number of passes over the rows. "auto" is 40 for fewer than 10,000 training rows and
        100 for more.
    optimizer : {"rmsprop", "adam", "sgd"} or callable, default="rmsprop"
        Name of an optimizer, a class of `torch.optim`, or a callable with the same signature. "sgd"
        has Nesterov momentum 0.9.
    learning_rate : float, mapping of str to float or "auto", default=1e-3
        Learning rate of the optimizer, for all views or by view. In a mapping, parameters of the
        loss have the lowest rate. "auto" is 3e-3 for fewer than 10,000 training rows and 1e-3 for
        more.
    weight_decay : float, default=1e-5
        Weight decay of the optimizer.
    standardize : bool, "view" or "auto", default="auto"
        Subtract the mean of each feature and divide by its standard deviation, so that networks
        learn from features of any scale; for features with rare large values, by a tenth of the
        largest deviation if that is more. With "view", divide all features of a view by the root of
        their mean variance, so that those with more variance keep it, as in principal components.
        Means and scales are those of the training rows, are part of the model, and apply to the
        rows in the loss, too. Sparse rows are standardized batch by batch. "auto" standardizes the
        rows of default networks and leaves those of custom `encoders` as they are. Words are never
        standardized.
    validation_fraction : float, optional
        Share of the rows held out for validation, unless `fit` is given `X_val`. With validation
        rows, the model keeps the weights of the best epoch according to `monitor`.
    patience : int, optional
        Stop after this many epochs without improvement of `monitor`. Requires validation rows.
    monitor : str or callable, default="valid_loss"
        Quantity compared across epochs on the validation rows: "valid_loss" (lower is better);
        "valid_mrr" or "valid_map", the mean reciprocal rank of pairs or the mean average precision
        of labels, over all ordered pairs of views; "valid_correlation", their total correlation
        under linear CCA of the training rows; or ``monitor(scores, labels) -> float``, larger is
        better, of the scores as `Views` and their labels by view (None without labels).
    callbacks : sequence of `mvcca.deep.callbacks.Callback`, default=()
        Called during training; `fit` uses copies.
    mixed_precision : bool, default=False
        Run the networks in bfloat16 wherever torch considers it safe. This is faster only on
        hardware with instructions for bfloat16, such as recent GPUs and processors with AMX; other
        processors emulate it, and take two to three times as long as in float32.
    random_state : int, RandomState or None, default=None
        Seed of the initial weights, the batches and the validation split. The global generators of
        torch and NumPy are left unchanged.

    Attributes
    ----------
    encoders_ : dict of str to Module
        The trained networks by view, on the CPU. They begin with a
        `mvcca.deep.layers.Standardize` if the rows are standardized.
    history_ : dict of str to ndarray, shape (n_epochs,)
        Training history as columns, ready for ``pandas.DataFrame(model.history_)``: epoch, loss,
        learning_rate, skipped (steps whose loss or gradient was not finite), seconds, and what
        callbacks measure; with validation rows also valid_loss and what is monitored, such as
        valid_total_correlation or valid_mrr. Losses of several terms have a column for each, such
        as loss_reconstruction and valid_loss_reconstruction.
    best_epoch_ : int
        Epoch whose weights the model has.
    n_components_ : int
        Number of components.
    view_names_ : tuple of str
        Names of the views, in order.
    n_features_in_ : int
        Number of features of X, summed over its views.
    n_words_ : dict of str to int
        Size of the vocabulary of each view of words, with padding and unknown words.
    """

    n_components: int = field(default=2, kw_only=False, metadata=constraints(at_least(1)))
    batch_size: int | str = parameter("auto", at_least(2), one_of("auto"))
    max_epochs: int | str = parameter("auto", at_least(1), one_of("auto"))
    optimizer: str | Callable[..., torch.optim.Optimizer] = parameter(
        "rmsprop", one_of(*OPTIMIZERS), callable
    )
    learning_rate: float | str | Mapping[str, float] = parameter(
        1e-3, POSITIVE, Mapping, one_of("auto")
    )
    weight_decay: float = parameter(1e-5, NOT_NEGATIVE)
    standardize: bool | str = parameter("auto", "boolean", one_of("auto", "view"))
    validation_fraction: float | None = parameter(
        None, Interval(Real, 0, 1, closed="neither"), None
    )
    patience: int | None = parameter(None, at_least(1), None)
    monitor: Any = parameter("valid_loss", one_of(*MONITORED), callable)
    callbacks: Sequence[Callback] = parameter((), "array-like")
    mixed_precision: bool = parameter(False, "boolean")
    random_state: Any = parameter(None, "random_state")

    # Not annotated: annotated attributes are parameters of the constructor.
    _labels = cast("Labels | None", None)  # distinct ones of the rows, if the training uses labels
    _n_rows = cast("int", None)  # of the first fit; they decide what "auto" is
    _n_words = cast("dict[str, int]", None)  # sizes of the vocabularies of its views of words
    _probe_rows = cast("dict[str, Any]", None)  # by which loading compares networks of the user
    requires = Requirements(host=True, integers=True)
    encoders = cast("Any", None)  # networks of the user, where a method takes some
    _within_rows = False  # whether outputs must be fewer than rows; the ending warns of the others
    _is_scheduled = False  # whether an epoch depends on how many there are to be
    _collapse_advice = "training has collapsed: lower learning_rate"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        with_constructor(cls)

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
    ) -> Self:
        """Train the networks, then find the map from their outputs to the scores.

        If `mvcca.config_context` names a checkpoint directory, an interrupted fit resumes from it:
        on a CPU it ends with the same model, bit for bit. With ``random_state=None`` it resumes
        with the seeds of the interrupted fit.

        Parameters
        ----------
        X : Views, mapping, list of matrices, or matrix of shape (n_rows, n_features)
            The views, paired. A lone matrix is the first of two views. `SAM`, `ACMR`, `DeepSM`,
            `CCL` and `TwoBranch` also take unpaired views with labels: each epoch pairs rows with
            equal labels at random, see `mvcca.deep.samplers.ShuffledBatches`.
        y : matrix or labels, optional
            The second view, if X is a lone matrix. For other X labels: a class vector, an indicator
            matrix, label sets or `Labels`, one per object; for unpaired views also a list or
            mapping with the labels of each view. Methods that learn from labels require them;
            others use them if `monitor` does.
        sample_weight : array-like of int, shape (n_objects,), optional
            How often each object counts: its rows are repeated, and copied unless they are in
            files. `validation_fraction` keeps the copies of an object together.
        X_val : Views, mapping or list of matrices, optional
            Validation rows, used instead of `validation_fraction`. The loss of unpaired ones is
            that of the same pairs in every epoch.
        y_val : labels, optional
            Labels of the validation rows, in the form of y.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a view holds NaN or infinity, never varies, or differs in rows from the others; if an
            object is missing from a view; if a label of unpaired views does not occur in all of
            them; if a batch has no more rows than there are components; if
            a callback or `patience` needs validation rows and there are none; if labels are needed
            and missing; if both `encoders` and parameters of the default networks are given; if
            weights are not whole numbers; or if the loss is never finite.
        """
        self._validate_params()
        sample = self._open_sample(X, y, sample_weight, reset=True)
        check_rows_vary(sample.views)
        validation = None
        if X_val is not None or y_val is not None:
            validation = self._open_validation(X_val, y_val, sample.views.names)
        trainer, sample, validation = self._trained(sample, validation)
        self._finish(trainer, sample.views)
        self._conclude(trainer, validation)
        return self

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train for one more epoch, continuing from the state that `fit` or `partial_fit` left.

        There are no validation rows, so `patience` and callbacks that need them are ignored. A
        final linear CCA is that of the given rows only. Parameters changed between calls take
        effect, except those that define the networks or the optimizer. A model saved with
        ``statistic=False`` starts over, with a warning. Labels must be among those of the first
        call.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As in `fit`; also if the views differ from those of earlier calls, or if changed
            parameters ask for other networks or another optimizer.
        """
        self._validate_params()
        first = self._is_first_batch()
        sample = self._open_sample(X, y, sample_weight, reset=first)
        self._begin_partial(first)
        training = Training.of(self, None if first else [0] * 4)  # resuming replaces what is drawn
        training = replace(training, patience=None)  # which needs validation rows
        callbacks = [c for c in self._callbacks(training, False) if not c.needs_validation]
        trainer = self._new_trainer(training, sample.views, callbacks, is_first=first)
        if first:
            self._pretrain(trainer, training, sample, None)
        else:  # which restores means and scales, too
            self._statistic.resume(trainer, self._decisive_params())
        trainer.train(sample, 1)
        return self._finish(trainer, sample.views)

    def _encode_of(self, views: Views) -> dict[str, Any]:
        """Outputs of the networks for checked views, which ``project(views, "encode")`` returns."""
        return {name: encoded(self.encoders_[name], name, X) for name, X in views.items()}

    @property
    def retrieval_ranking(self) -> tuple[str, str]:  # type: ignore[override]
        """Method and similarity that rank rows: those of the ending."""
        return self._ending().retrieval_ranking

    def _setting(self, name: str) -> Any:
        """Value of a parameter, with "auto" replaced by what suits the number of training rows."""
        value = getattr(self, name)
        is_auto = isinstance(value, str) and value == "auto"
        return auto_setting(name, self._n_rows or 0, self.n_components) if is_auto else value

    # ---- for subclasses --------------------------------------------------------------------------

    def _begin_partial(self, is_first: bool) -> None:
        """Decide what the first rows of `partial_fit` do not tell, and forget what was chosen."""

    def _pretrain(
        self, trainer: Trainer, training: Training, sample: Sample, validation: Sample | None
    ) -> None:
        """Train layers of the networks before the trainer does."""

    def _conclude(self, trainer: Trainer, validation: Sample | None) -> None:
        """Check what `fit` trained, and learn from the validation rows if there are any."""

    def _networks(self, generator: Generator) -> Encoders:
        """The networks to train.

        They follow from parameters and from what `fit` notes of its rows: `_widths`, `_n_rows`,
        `_labels` and `_n_words`. A file holds these, and the networks are made anew from them.
        """
        raise NotImplementedError

    def _views_of_words(self) -> list[str]:
        """Views whose networks need to know the size of their vocabulary."""
        return []

    def _objective(self, encoders: Encoders, widths: Widths, generator: Generator) -> Objective:
        """The loss to minimize."""
        raise NotImplementedError

    def _standardizes(self, name: str) -> bool:
        """Whether the rows of a view are standardized."""
        return self.encoders is None if self.standardize == "auto" else bool(self.standardize)

    def _has_one_scale(self) -> bool:
        """Whether standardized features of a view are divided by the same number."""
        return self.standardize == "view"

    def _depends_on_units(self, name: str) -> bool:
        return not self._standardizes(name)

    def _ending(self) -> Ending:
        """How outputs of the networks become scores: by default as they are, ranked by cosine."""
        return as_trained()

    def _n_scores(self) -> int:
        """Width of the networks' outputs, if there is memory for their covariances."""
        width = self.n_components
        if self._within_rows:
            width = min(width, self._n_rows - 1)
        check_memory(
            8 * (len(self._widths) * width) ** 2,
            f"n_components={self.n_components}",
            "the covariances of the networks' outputs",
            "Lower n_components.",
        )
        return width

    def _callbacks(self, training: Training, validated: bool) -> list[Callback]:
        """Copies of the user's callbacks, and the one that measures what is monitored."""
        callbacks = deepcopy(list(self.callbacks))
        measured = {c.column for c in callbacks if isinstance(c, ValidationScore)}
        if validated and training.monitor not in measured | {"valid_loss"}:
            callbacks.append(self._score_callback(training.monitor))
        return callbacks

    def _score_callback(self, column: str) -> ValidationScore:
        if column == "valid_total_correlation":
            ending = linear_cca(self.n_components, getattr(self, "reg", 1e-4))
            return ValidationScore("total_correlation", ending)
        if column == "valid_map" and self._labels is None:
            raise ValueError('monitor="valid_map" needs labels: pass y to fit.')
        score = self.monitor if callable(self.monitor) else column.removeprefix("valid_")
        return ValidationScore(score, self._ending(), self._labels, column)

    # ---- the parts of fit ------------------------------------------------------------------------

    def _trained(
        self, sample: Sample, validation: Sample | None
    ) -> tuple[Trainer, Sample, Sample | None]:
        """The trainer after training, and its training and validation rows."""
        return self._trained_once(Training.of(self), sample, validation)

    def _trained_once(
        self, training: Training, sample: Sample, validation: Sample | None
    ) -> tuple[Trainer, Sample, Sample | None]:
        training, checkpoint = self._resumed(training, sample, validation)
        sample, validation = self._divided(sample, validation, training)
        return self._train(training, sample, validation, checkpoint), sample, validation

    def _divided(
        self, sample: Sample, validation: Sample | None, training: Training
    ) -> tuple[Sample, Sample | None]:
        """Training and validation rows, if the user wants some held out."""
        if validation is not None or self.validation_fraction is None:
            return sample, validation
        return split(sample, self.validation_fraction, training.seeds[3])

    def _train(
        self,
        training: Training,
        sample: Sample,
        validation: Sample | None,
        checkpoint: Checkpoint | None,
        callbacks: Sequence[Callback] = (),
        **options: Any,
    ) -> Trainer:
        """A trainer of new networks, after training."""
        callbacks = [*callbacks, *self._callbacks(training, validation is not None)]
        trainer = self._new_trainer(training, sample.views, callbacks)
        if checkpoint is None or checkpoint.state is None:
            self._pretrain(trainer, training, sample, validation)
        trainer.train(sample, training.max_epochs, validation, checkpoint, **options)
        return trainer

    def _resumed(
        self, training: Training, sample: Sample, validation: Sample | None
    ) -> tuple[Training, Checkpoint | None]:
        """The training with the seeds of its checkpoint, which is None if none is wanted."""
        file = file_of_next_pass()
        if file is None:
            return training, None
        checkpoint = Checkpoint.open(file, self._fingerprints(sample, validation), training.seeds)
        return replace(training, seeds=checkpoint.seeds), checkpoint

    def _is_first_batch(self) -> bool:
        if hasattr(self, "_statistic"):
            return False
        if hasattr(self, "n_components_"):
            warn(
                "partial_fit starts over with new networks: the model was saved without its "
                "training state (statistic=False)."
            )
        return True

    def _open_sample(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Sample:
        """The user's rows, with the codes of their labels if the training uses them."""
        labels: LabelsByView | None = None
        learns = self.requires.labels or self._may_be_unpaired(X, y)
        if learns:
            rows = open_fit(self, X, y, reset=reset, labelled=True)
            given, labels = rows.views, rows.labels
        else:
            given = open_fit(self, X, y, reset=reset).views
            if y is not None and holds_views(X) and self._reads_labels():
                labels = LabelsByView.of(given, y, is_per_view(X, y))
        views, labels, objects = repeated_views(self, given, labels, sample_weight, reset)
        if learns:
            assert labels is not None
            names = views.names[:1] if views.is_paired else views.names
            check_labels(LabelsByView(labels.distinct, {n: labels.codes[n] for n in names}))
        if self.requires.pairs and not views.is_paired:
            n_paired = int(views.seen.all(axis=1).sum())
            advice = (
                "MLCCA and MVMLCCA, and with networks SAM, ACMR, DeepSM, CCL and TwoBranch, learn "
                "from unpaired views that have labels."
            )
            if n_paired:
                advice = "Fit views[views.seen.all(axis=1)]."
            elif y is not None and not isinstance(X, Views) and is_per_view(X, y):
                advice = "With labels by view, views are unpaired: give one label per object."
            raise ValueError(
                f"{type(self).__name__} learns from objects seen in all views, but "
                f"{len(views) - n_paired} of {len(views)} are seen in some only. {advice}"
            )
        if labels is not None and not views.is_paired:
            self._check_same_labels(labels)
        if not reset and labels is not None and self._labels is not None:
            codes = self._codes_of_fitted_labels(labels)
        else:
            self._labels = None if labels is None else labels.distinct
            codes = {} if labels is None else dict(labels.codes)
        if reset:
            self._n_rows = len(views)
            self._n_words = {n: _vocabulary_size(n, views[n]) for n in self._views_of_words()}
        return Sample(views, codes, {} if objects is None else given.rows_of(objects), objects)

    def _may_be_unpaired(self, X: Any, y: Any) -> bool:
        """Whether rows are unpaired, and have labels by which the method can pair them."""
        if self.requires.pairs or y is None or not holds_views(X):
            return False
        return is_per_view(X, y) or not as_views(X).is_paired

    def _check_same_labels(self, labels: LabelsByView) -> None:
        """Refuse unpaired rows whose label set does not occur in all views."""
        everywhere = np.unique(np.concatenate(list(labels.codes.values())))
        for name, own in labels.codes.items():
            missing = np.setdiff1d(everywhere, own)
            if len(missing):
                known = labels.distinct.are_sets
                sets = labels.distinct[missing[:9]].texts(unnamed="column {}") if known else []
                raise ValueError(
                    f"{type(self).__name__} pairs rows of unpaired views by their labels, but view "
                    f"{name!r} has no row with {len(missing)} of {len(everywhere)} label sets"
                    f"{': ' + few(sets) if known else ''}. Leave out the rows of other views with "
                    "these labels."
                )

    def _reads_labels(self) -> bool:
        """Whether labels that are not required are used if given."""
        return self.monitor == "valid_map" or callable(self.monitor)

    def _codes_of_fitted_labels(self, labels: LabelsByView) -> dict[str, np.ndarray]:
        """Codes of labels among the distinct training labels."""
        assert self._labels is not None
        n_known = len(self._labels)
        merged, codes = self._with_labels(labels)
        if len(merged) > n_known:
            raise ValueError(
                f"{len(merged) - n_known} of {len(labels.distinct)} different labels do not occur "
                "in the rows of the first call. Make them part of it."
            )
        return codes

    def _with_labels(self, labels: LabelsByView) -> tuple[Labels, dict[str, np.ndarray]]:
        """The distinct training labels with those of further rows, and the codes of these rows."""
        assert self._labels is not None
        merged = Labels.concatenate([self._labels, labels.distinct])
        lines = merged.codes[len(self._labels) :]
        return merged.distinct, {name: lines[code] for name, code in labels.codes.items()}

    def _open_validation(self, X_val: Any, y_val: Any, names: tuple[str, ...]) -> Sample:
        """The validation rows, with the codes of their labels if the training rows have some."""
        if X_val is None:
            raise ValueError("y_val are the labels of X_val, which is missing.")
        if not holds_views(X_val):
            raise ValueError("X_val must hold all views: a mapping, a list, or Views.")
        per_view = y_val is not None and is_per_view(X_val, y_val)
        unpaired = per_view and not isinstance(X_val, Views)
        given = as_views(X_val, names, unpaired=unpaired) if unpaired else X_val
        views = open_views(self, given, reset=False)
        pairs_only = self.requires.pairs or self._labels is None
        if set(views.names) != set(names) or (pairs_only and not views.is_paired):
            raise ValueError(
                f"X_val must hold paired rows of the views {list(names)}, got {list(views.names)}."
            )
        views = views.select(names)
        if self._labels is None:
            return Sample(views)
        if y_val is None:
            raise ValueError("X_val needs labels, as the training rows have: pass y_val to fit.")
        self._labels, codes = self._with_labels(LabelsByView.of(views, y_val, per_view))
        return Sample(views, codes)

    def _new_trainer(
        self,
        training: Training,
        views: Views,
        callbacks: list[Callback],
        is_first: bool = True,
    ) -> Trainer:
        """A trainer of new networks, whose first layers standardize the given rows.

        Without `is_first`, a saved state will replace what it would learn from the rows.
        """
        generator = Generator().manual_seed(training.seeds[0])
        encoders = self._new_networks(generator)
        for view, layer in encoders.inputs.items() if is_first else ():
            layer.learn(_arrays(view, views[view], np.float64))
        objective = self._objective(encoders, _output_widths(encoders, views), generator)
        return training.trainer(encoders, objective, callbacks)

    def _new_networks(self, generator: Generator) -> Encoders:
        """Networks with initial weights, behind layers that are to standardize their rows."""
        encoders = self._networks(generator)
        for view, width in self._widths.items():
            if self._standardizes(view) and not takes_integers(encoders[view]):
                encoders.standardize(view, Standardize(width, self._has_one_scale()))
        return encoders

    def _fingerprints(self, sample: Sample, validation: Sample | None) -> dict[str, str]:
        """Texts of everything that decides the course of a training, except its length."""
        held_out = None if validation is None else _digest(validation)
        seed = self.random_state if isinstance(self.random_state, Integral) else None
        return {
            "the method": identity(type(self)),
            **{name: identity(value) for name, value in self._decisive_params().items()},
            "random_state": identity(seed),  # otherwise the seeds in the file decide
            "the rows": identity(_digest(sample)),
            "the validation rows": identity(held_out),
        }

    def _decisive_params(self) -> dict[str, Any]:
        """Parameters that decide the course of a training, with "auto" epochs as a number."""
        free = {"max_epochs", "callbacks", "random_state"}
        params = {n: v for n, v in self.get_params(deep=False).items() if n not in free}
        return params | ({"max_epochs": self._setting("max_epochs")} if self._is_scheduled else {})

    def _finish(self, trainer: Trainer, views: Views) -> Self:
        """Find the map from the networks' outputs to scores, and set the fitted attributes."""
        encoders = trainer.encoders
        widths = _output_widths(encoders, views)
        ending = ending_after(trainer.best_epoch, self._ending(), encoders.solution)
        moments = None if ending.maps is None else self._moments(trainer, views, widths)
        if moments is None:
            self._check_outputs(encoders, views, widths)
        trainer.move_to(torch.device("cpu"))
        self.encoders_ = {name: encoders.whole[name].eval() for name in views.names}
        own = () if self.encoders is None else views.names
        self._probe_rows = {name: few_rows(views[name]) for name in own}
        if ending.maps is None or moments is None:
            self.n_components_ = common_width(widths)
        else:
            self._keep(ending.maps(trainer.objective, views, moments))
        self._statistic = TrainingState.of(trainer, self._decisive_params())
        self.best_epoch_ = trainer.best_epoch
        self.history_ = history_of(trainer)
        return self

    def _moments(self, trainer: Trainer, views: Views, widths: Widths) -> Moments:
        """Moments of the networks' outputs, which vary."""
        with not_kept():  # no checkpoint here: its fingerprint does not cover the networks
            moments = Moments.of_features(
                lambda rows: in_double(trainer.scores(rows)), views, dict(widths)
            )
        means, variances = moments.mean(), np.diag(moments.covariance())
        for name, columns in column_slices(moments.widths).items():
            self._check_spread(name, means[name], variances[columns])
        return moments

    def _check_outputs(self, encoders: Encoders, views: Views, widths: Widths) -> None:
        """Refuse outputs that cannot be scores; rows are read in blocks."""
        common_width(widths)
        for name, block in views.items():
            n_rows, n_features = block.shape
            first: Any = None
            sums: Any = 0.0
            for rows in block_slices(n_rows, 8 * n_features):
                taken = as_block(block).take(rows).matrix
                Z = encoded(encoders.whole[name], name, taken).astype(np.float64)
                first = Z[0].copy() if first is None else first
                Z -= first  # squares of large means would lose the digits of the variance
                sums = sums + np.stack([Z.sum(axis=0), np.square(Z).sum(axis=0)])
            shift, square = sums / n_rows
            self._check_spread(name, first + shift, square - shift**2)

    def _check_spread(self, name: str, mean: np.ndarray, variance: np.ndarray) -> None:
        rounding = (1e-6 * mean) ** 2  # of float32 scores, block by block
        if not np.isfinite(variance).all() or not (variance > rounding).any():
            raise ValueError(
                f"View {name!r} has no variance after its network: all rows have the same scores. "
                f"Either the rows are all the same, or {self._collapse_advice}."
            )

    def _projection(self, name: str, maps: Maps | None) -> Callable[[Any], Any]:
        return partial(_project, self.encoders_[name], name, maps)

    @property
    def n_words_(self) -> dict[str, int]:
        """Size of the vocabulary of each view of words, with padding and unknown words."""
        sizes = {
            name: max(getattr(layer, "n_words", 0) for layer in network.modules())
            for name, network in self.encoders_.items()
        }
        return {name: size for name, size in sizes.items() if size}


def common_width(widths: Widths) -> int:
    """Width of the outputs of all networks, which are compared one by one."""
    if len(set(widths.values())) > 1:
        raise ValueError(
            "The networks of all views must have outputs of the same width, which are compared one "
            f"by one; got {dict(widths)}."
        )
    return next(iter(widths.values()))


def _project(encoder: nn.Module, name: str, maps: Maps | None, block: Any) -> Any:
    """Scores of rows: affine maps of the network's outputs, or these themselves."""
    scores = encoded(encoder, name, block)
    if maps is not None:
        scores = maps.project(name, scores.astype(np.float64))
    dtype = block.dtype if block.dtype in _FLOATS else np.float64
    return scores.astype(dtype, copy=False)


def _vocabulary_size(name: str, block: Any) -> int:
    """Size of the vocabulary of a view of words, with padding and unknown words."""
    return 1 + max([1, *(int(rows.max()) for rows in _arrays(name, block, np.int64))])


def _arrays(name: str, block: Any, dtype: type[np.generic]) -> Iterator[np.ndarray]:
    """All rows of a view in blocks of bounded size."""
    slices = block_slices(block.shape[0], 8 * block.shape[1])
    return (as_array(name, as_block(block).take(rows).matrix, dtype) for rows in slices)


def _digest(sample: Sample) -> str:
    return fingerprint_of(sample.views, "deep", *sample.labels.values())


def _output_widths(encoders: Encoders, views: Views) -> dict[str, int]:
    """Widths of the networks' outputs, found by encoding two rows in evaluation mode."""
    widths = {}
    for name, block in views.items():
        out = encoded(encoders.whole[name], name, as_block(block).take(slice(0, 2)).matrix)
        if out.ndim != 2:
            raise ValueError(
                f"The encoder of view {name!r} must give scores of shape (n_rows, n_scores), got "
                f"shape {out.shape} for 2 rows."
            )
        widths[name] = out.shape[1]
    return widths
