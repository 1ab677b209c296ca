"""What deep estimators share: networks are trained with an objective, and linear CCA ends the fit.

What is trained is each estimator's own business: `_encoder`, `_objective`, `_own_callbacks`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted
from torch import nn

from mvcca._memory import memory_bytes
from mvcca._warnings import warn
from mvcca.base import all_or_nothing
from mvcca.config import get_config
from mvcca.deep._checkpoint import Checkpoint
from mvcca.deep._host import device_named
from mvcca.deep._identity import identity
from mvcca.deep._trace_norm import check_enough_rows
from mvcca.deep._training_state import TrainingState
from mvcca.deep.callbacks import Callback, EarlyStopping, ProgressLines, TotalCorrelation
from mvcca.deep.encoders import Encoders, mlp
from mvcca.deep.samplers import ShuffledBatches
from mvcca.deep.trainer import Objective, Trainer, encoded
from mvcca.kernel._parameters import by_view
from mvcca.linear import MVCCA
from mvcca.passes import file_of_next_pass, fingerprint_of, not_kept
from mvcca.problem import Rows, reg_of_names
from mvcca.statistics import Moments, column_slices
from mvcca.views import Views, holds_views

_OPTIMIZERS = {"rmsprop": torch.optim.RMSprop, "adam": torch.optim.Adam}
_MONITORED = {"correlation": "valid_total_correlation", "loss": "valid_loss"}
_SEED_BOUND = 2**31 - 1
_SINGLE = float(np.finfo(np.float32).eps)  # networks compute in float32


class DeepEstimator(MVCCA):
    """One network per view, and linear CCA of what they make of the training rows."""

    _computes_on_devices = False
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": MVCCA._parameter_constraints["n_components"],
        "hidden_layer_sizes": ["array-like", Mapping],
        "encoders": ["array-like", Mapping, None],
        "reg": [Interval(Real, 0, None, closed="left"), Mapping],
        "batch_size": [Interval(Integral, 2, None, closed="left")],
        "max_epochs": [Interval(Integral, 1, None, closed="left")],
        "optimizer": [StrOptions(set(_OPTIMIZERS)), callable],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither"), None],
        "patience": [Interval(Integral, 1, None, closed="left"), None],
        "monitor": [StrOptions(set(_MONITORED))],
        "callbacks": ["array-like"],
        "mixed_precision": ["boolean"],
        "device": [str],
        "random_state": ["random_state"],
    }
    power = 0.0  # a parameter of MVCCA, not of deep estimators
    monitor = "loss"  # of models in files from before there was a choice
    _network_parameters: tuple[str, ...] = ("hidden_layer_sizes",)  # without a use for `encoders`
    _collapses_by = "training has collapsed: lower learning_rate"
    _whitens_batches = False  # needs more rows in a batch than components
    _last_batch = "drop"  # what a loss of batch covariances wants

    encoders_: dict[str, nn.Module]
    history_: dict[str, np.ndarray]
    best_epoch_: int
    _statistic: TrainingState  # what partial_fit goes on from

    def __init__(
        self,
        n_components: int = 2,
        *,
        hidden_layer_sizes: Sequence[int] | Mapping[str, Sequence[int]] = (800, 800),
        encoders: Mapping[str, nn.Module] | Sequence[nn.Module] | None = None,
        reg: float | Mapping[str, float] = 1e-4,
        batch_size: int = 750,
        max_epochs: int = 100,
        optimizer: str | Callable[..., torch.optim.Optimizer] = "rmsprop",
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-5,
        validation_fraction: float | None = None,
        patience: int | None = None,
        monitor: str = "correlation",
        callbacks: Sequence[Callback] = (),
        mixed_precision: bool = False,
        device: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.hidden_layer_sizes = hidden_layer_sizes
        self.encoders = encoders
        self.reg = reg
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.monitor = monitor
        self.callbacks = callbacks
        self.mixed_precision = mixed_precision
        self.device = device
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, X_val: Any = None) -> Self:
        """Train the networks, and fit linear CCA to what they make of all training rows.

        Where `mvcca.config_context` names a checkpoint, an interrupted training resumes from it the
        next time, exactly as if it had not been interrupted (on a CPU). With ``random_state=None``
        it resumes with the seeds that the interrupted training drew.

        Parameters
        ----------
        X : Views, mapping, list of matrices, or matrix of shape (n_rows, n_features)
            The views, paired. A lone matrix is the first of two views.
        y : matrix, optional
            The second view, if X is a lone matrix; ignored otherwise (labels in a pipeline).
        X_val : Views, mapping or list of matrices, optional
            Validation rows, in place of `validation_fraction`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a view holds NaN or infinity, never varies, or differs in rows from the others; if an
            object is seen in some views only; if batches have no more rows than components; if a
            callback or `patience` needs validation rows and there are none; if both `encoders` and
            parameters of the networks in their place are given; or if the loss is never finite.
        """
        self._validate_params()
        views = self._open_pairs(X, y, reset=True)
        validation = self._open_validation(X_val, views.names)
        seeds = check_random_state(self.random_state).randint(_SEED_BOUND, size=4).tolist()
        checkpoint, file = None, file_of_next_pass()
        if file is not None:
            checkpoint = Checkpoint.open(file, self._fingerprint(views, validation), seeds)
            seeds = checkpoint.seeds
        *seeds, of_split = seeds
        positions = None
        if validation is None and self.validation_fraction is not None:
            positions = _split(len(views), self.validation_fraction, of_split)
            views, validation = (views[rows] for rows in positions)
        trainer = self._new_trainer(views, seeds, self._callbacks(validation is not None))
        trainer.train(views, self.max_epochs, validation, checkpoint, positions)
        return self._finish(trainer, views)

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None) -> Self:  # type: ignore[override]
        """Train for one epoch more, with the optimiser as it was left, also by `fit`.

        There are no validation rows: `patience`, and callbacks that need them, play no part. The
        linear CCA at the end is that of these rows: those of earlier calls are gone. Parameters
        that were changed in between take effect, but for those that shape networks or optimiser.
        A model that was saved with ``statistic=False`` starts over, with a warning.

        Parameters
        ----------
        X, y
            As in `fit`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As in `fit`; also for other views than before, or if parameters ask for other networks
            or another optimiser than there are.
        """
        self._validate_params()
        first = self._is_first_batch()
        views = self._open_pairs(X, y, reset=first)
        if first:
            seeds = check_random_state(self.random_state).randint(_SEED_BOUND, size=4).tolist()
        else:
            seeds = [0, 0, 0]  # what is drawn is replaced
        callbacks = [c for c in self._callbacks(validated=False) if not c.needs_validation]
        trainer = self._new_trainer(views, seeds[:3], callbacks)
        if not first:
            self._statistic.resume(trainer, self._decisive_params())
        trainer.train(views, 1)
        return self._finish(trainer, views)

    def encode(self, X: Any, y: Any = None) -> Any:
        """What the networks make of rows, before the linear CCA.

        Parameters
        ----------
        X, y
            As in `transform`.

        Returns
        -------
        representations : same container as came in
            Matrices of shape (n_rows, width of the network's output), in float32.
        """
        check_is_fitted(self)
        came = self._open(X, y, reset=False, unpaired=True, allow_empty=True)
        return came.wrap({n: encoded(self.encoders_[n], n, X) for n, X in came.views.items()})

    # ---- for subclasses --------------------------------------------------------------------------

    def _encoder(
        self, n_features: int, hidden: tuple[int, ...], n_scores: int, generator: torch.Generator
    ) -> nn.Module:
        """The network of a view, where none is given."""
        return mlp(n_features, hidden, n_scores, generator=generator)

    def _objective(
        self, encoders: Encoders, widths: Mapping[str, int], generator: torch.Generator
    ) -> Objective:
        """The loss; `widths` are those of the networks' outputs."""
        raise NotImplementedError

    def _own_callbacks(self) -> list[Callback]:
        """What belongs to the method."""
        return []

    def _learn_from(self, encoders: Encoders) -> None:
        """Attributes that say something of the networks."""

    # ---- the parts of fit ------------------------------------------------------------------------

    def _is_first_batch(self) -> bool:
        if hasattr(self, "_statistic"):
            return False
        if hasattr(self, "weights_"):
            warn(
                "partial_fit starts over, with new networks: the model was saved without the state "
                "of its training (statistic=False)."
            )
        return True

    def _open_pairs(self, X: Any, y: Any, *, reset: bool) -> Views:
        views = self._open_fit(X, y, None, reset=reset)[0]
        if not views.is_paired:
            n_paired = int(views.seen.all(axis=1).sum())
            raise ValueError(
                f"{type(self).__name__} learns from objects seen in all views, but "
                f"{len(views) - n_paired} of {len(views)} are seen in some only. "
                + (
                    "Fit views[views.seen.all(axis=1)]."
                    if n_paired
                    else "MLCCA and MVMLCCA learn from unpaired views that have labels."
                )
            )
        self.view_names_, self._widths = views.names, views.widths
        return views

    def _open_validation(self, X_val: Any, names: tuple[str, ...]) -> Views | None:
        if X_val is None:
            return None
        if not holds_views(X_val):
            raise ValueError("X_val must hold all views: a mapping, a list, or Views.")
        validation = self._open(X_val, reset=False).views
        if set(validation.names) != set(names) or not validation.is_paired:
            raise ValueError(
                f"X_val must hold paired rows of the views {list(names)}, got "
                f"{list(validation.names)}."
            )
        return validation.select(names)

    def _new_trainer(
        self, views: Views, seeds: list[int], callbacks: Sequence[Callback] = ()
    ) -> Trainer:
        for_weights, for_batches, for_torch = seeds
        generator = torch.Generator().manual_seed(for_weights)
        encoders = self._new_encoders(views, generator)
        objective = self._objective(encoders, _output_widths(encoders, views), generator)
        named = self.optimizer
        optimizer = _OPTIMIZERS[named] if isinstance(named, str) else named
        return Trainer(
            encoders,
            objective,
            partial(optimizer, lr=self.learning_rate, weight_decay=self.weight_decay),
            sampler=ShuffledBatches(self.batch_size, self._last_batch),
            callbacks=callbacks,
            device=device_named(self.device),
            seed=for_batches,
            # Ours draw from generators of their own; what others draw from, they cannot say.
            torch_seed=None if self.encoders is None else for_torch,
            mixed_precision=self.mixed_precision,
            monitor=_MONITORED[self.monitor],
        )

    def _new_encoders(self, views: Views, generator: torch.Generator) -> Encoders:
        if self.encoders is None:
            hidden = by_view(self, "hidden_layer_sizes", views.names)
            if self._whitens_batches:
                check_enough_rows(min(self.batch_size, len(views)), self.n_components)
            n_scores = _width(self.n_components, len(views), len(views.names))
            return Encoders(
                {
                    name: self._encoder(width, _sizes(name, hidden[name]), n_scores, generator)
                    for name, width in views.widths.items()
                }
            )
        self._refuse_parameters_of_other_networks()
        given = self.encoders
        if not isinstance(given, Mapping):
            if len(given) != len(views.names):
                raise ValueError(f"Expected {len(views.names)} encoders, got {len(given)}.")
            given = dict(zip(views.names, given, strict=True))
        if set(given) != set(views.names):
            raise ValueError(
                f"encoders names the views {list(given)}, expected {list(views.names)}."
            )
        for name, encoder in given.items():
            if not isinstance(encoder, nn.Module):
                raise TypeError(
                    f"The encoder of view {name!r} must be a torch.nn.Module, got {encoder!r}."
                )
        # Copies, so that fitting again starts where this fit started.
        return Encoders({name: deepcopy(given[name]) for name in views.names})

    def _refuse_parameters_of_other_networks(self) -> None:
        """With `encoders`, what shapes the networks in their place would change nothing."""
        defaults = inspect.signature(type(self)).parameters
        for name in self._network_parameters:
            value = getattr(self, name)
            if identity(value) != identity(defaults[name].default):
                raise ValueError(
                    f"{name}={value!r} is for networks that {type(self).__name__} makes itself, "
                    f"but encoders are given. Leave out {name}, or encoders."
                )

    def _callbacks(self, validated: bool) -> list[Callback]:
        """Those of the method, of the user, and of parameters; `validated`: there are rows for it.

        A `TotalCorrelation` of the user's is the one that is monitored.
        """
        callbacks = [*self._own_callbacks(), *deepcopy(list(self.callbacks))]
        reg = self.reg if isinstance(self.reg, Mapping) else float(self.reg)
        measured = any(isinstance(callback, TotalCorrelation) for callback in callbacks)
        if validated and self.monitor == "correlation" and not measured:
            callbacks.append(TotalCorrelation(self.n_components, reg))
        if self.patience is not None:
            callbacks.append(EarlyStopping(self.patience))
        if get_config().progress:
            callbacks.append(ProgressLines())
        return callbacks

    def _fingerprint(self, views: Views, validation: Views | None) -> str:
        """Of all that decides how a training goes on, but for how long."""
        params = self._decisive_params()
        if isinstance(self.random_state, Integral):  # others draw anew, and the file has the seeds
            params["random_state"] = self.random_state
        held_out = None if validation is None else fingerprint_of(validation, "validation")
        return fingerprint_of(views, identity((type(self), params, held_out)))

    def _decisive_params(self) -> dict[str, Any]:
        free = {"max_epochs", "callbacks", "device", "random_state"}
        return {n: v for n, v in self.get_params(deep=False).items() if n not in free}

    def _finish(self, trainer: Trainer, views: Views) -> Self:
        """Linear CCA of what the networks make of all rows, and the attributes."""
        encoders = trainer.encoders
        widths = _output_widths(encoders, views)
        with not_kept():  # the networks that make them are not told apart
            moments = Moments.of_features(partial(_representations, encoders), views, widths)
        self._check_spread(moments)
        reg = reg_of_names(self.reg, views.names)
        trainer.move_to(torch.device("cpu"))
        self.encoders_ = {name: encoders[name].eval() for name in views.names}
        float32 = np.dtype(np.float32)  # the precision of networks
        self._learn_problem(Rows(views, reg=reg, dtype=float32), moments)
        self._statistic = TrainingState.of(trainer, self._decisive_params())
        self.best_epoch_ = trainer.best_epoch
        columns = {name: None for figures in trainer.history for name in figures}
        self.history_ = {
            name: np.array([figures.get(name, np.nan) for figures in trainer.history])
            for name in columns
        }
        self._learn_from(encoders)
        return self

    def _check_spread(self, moments: Moments) -> None:
        Sigma = moments.covariance()
        for name, columns in column_slices(moments.widths).items():
            covariance = Sigma[columns, columns]
            if not np.isfinite(covariance).all() or not np.diag(covariance).any():
                raise ValueError(
                    f"View {name!r} has no variance once it is through its network: all rows get "
                    f"the same scores. Either they are all the same, or {self._collapses_by}."
                )

    def _project(self, name: str, block: Any) -> Any:
        representation = encoded(self.encoders_[name], name, block).astype(np.float64)
        return super()._project(name, representation).astype(block.dtype, copy=False)

    def _fitted_width(self, name: str) -> int:
        return self._widths[name]


def _split(n_rows: int, fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions of training and of validation rows."""
    order = np.random.default_rng(seed).permutation(n_rows)
    n_valid = round(fraction * n_rows)
    if not 2 <= n_valid <= n_rows - 2:
        raise ValueError(
            f"validation_fraction={fraction} of {n_rows} rows leaves too few for training or for "
            "validation. Give X_val to fit."
        )
    return np.sort(order[n_valid:]), np.sort(order[:n_valid])


def _width(n_components: int, n_rows: int, n_views: int) -> int:
    """Of the networks' outputs: no more than rows can tell apart, and than memory can hold.

    The linear CCA at the end warns of components that the rows cannot give.
    """
    width = min(n_components, n_rows - 1)
    needed, available = 8 * (n_views * width) ** 2, memory_bytes()
    if needed > available:
        raise MemoryError(
            f"n_components={n_components} needs about {needed:,} bytes ({needed / 1e9:.1f} GB) for "
            f"the covariances of the networks' outputs, and this machine has "
            f"{available / 1e9:.1f} GB. Lower n_components."
        )
    return width


def _sizes(name: str, sizes: Any) -> tuple[int, ...]:
    sizes = tuple(sizes)
    if not all(isinstance(size, int | np.integer) and size > 0 for size in sizes):
        raise ValueError(
            f"hidden_layer_sizes must be numbers of units, got {sizes} for view {name!r}."
        )
    return tuple(int(size) for size in sizes)


def _representations(encoders: Encoders, views: Views) -> Views:
    blocks = {n: encoded(encoders[n], n, X).astype(np.float64) for n, X in views.items()}
    return views.replace(blocks)


def _output_widths(encoders: Encoders, views: Views) -> dict[str, int]:
    """Found by sending two rows through, which changes nothing in evaluation."""
    widths = {}
    for name, block in views[:2].items():
        out = encoded(encoders[name], name, block)
        if out.ndim != 2:
            raise ValueError(
                f"The encoder of view {name!r} must give scores of shape (n_rows, n_scores), got "
                f"shape {out.shape} for {block.shape[0]} rows."
            )
        widths[name] = out.shape[1]
    return widths
