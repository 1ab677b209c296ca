"""Base of the deep estimators: train one network per view, then fit linear CCA to their outputs.

Subclasses define the networks (`_new_encoders`) and the loss (`_objective`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import field
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted
from torch import Generator

from mvcca._memory import memory_bytes
from mvcca._warnings import warn
from mvcca.base import all_or_nothing
from mvcca.config import get_config
from mvcca.deep._checkpoint import Checkpoint
from mvcca.deep._constructor import estimator
from mvcca.deep._host import device_named
from mvcca.deep._identity import identity
from mvcca.deep._training_state import TrainingState
from mvcca.deep.callbacks import Callback, EarlyStopping, ProgressLines, TotalCorrelation
from mvcca.deep.encoders import Encoders
from mvcca.deep.samplers import ShuffledBatches
from mvcca.deep.trainer import Objective, Trainer, encoded
from mvcca.linear import MVCCA
from mvcca.passes import file_of_next_pass, fingerprint_of, not_kept
from mvcca.problem import Rows, reg_of_names
from mvcca.statistics import Moments, column_slices
from mvcca.views import Views, holds_views

_OPTIMIZERS = {"rmsprop": torch.optim.RMSprop, "adam": torch.optim.Adam}
_MONITORED = {"correlation": "valid_total_correlation", "loss": "valid_loss"}
_SEED_BOUND = 2**31 - 1

Widths = Mapping[str, int]  # of the networks' outputs, by view


@estimator
class DeepEstimator(MVCCA):
    """Base of the deep estimators: one network per view, and linear CCA of their outputs.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the shared space, and width of the networks' outputs.
    reg : float or mapping of str to float, default=1e-4
        Ridge of the linear CCA that ends the fit, in units of the mean variance of each view's
        network outputs; one number, or one per view. The loss does not use it.
    batch_size : int, default=750
        Rows per batch; all rows if there are fewer.
    max_epochs : int, default=100
        Maximum number of passes over the rows.
    optimizer : {"rmsprop", "adam"} or callable, default="rmsprop"
        Name of an optimizer, a class of `torch.optim`, or a callable with the same signature.
    learning_rate : float, default=1e-3
        Learning rate of the optimizer.
    weight_decay : float, default=1e-5
        Weight decay of the optimizer.
    validation_fraction : float, optional
        Share of the rows held out for validation, unless `fit` is given `X_val`. With validation
        rows, the model keeps the weights of the best epoch according to `monitor`.
    patience : int, optional
        Stop after this many epochs without improvement of `monitor`. Requires validation rows.
    monitor : {"correlation", "loss"}, default="correlation"
        Quantity compared across epochs on the validation rows: their total correlation under the
        linear CCA of the training rows (higher is better), or the loss (lower is better). The scale
        of a loss may drift in training, so that the first epoch has the lowest value.
    callbacks : sequence of `mvcca.deep.callbacks.Callback`, default=()
        Called during training; `fit` uses copies.
    mixed_precision : bool, default=False
        Run the networks in bfloat16 wherever torch considers it safe.
    device : str, default="auto"
        Device to train on: "cpu", "cuda", "cuda:1" or "mps"; "auto" uses a GPU if torch finds one.
    random_state : int, RandomState or None, default=None
        Seed of the initial weights, the batches and the validation split. The global generators of
        torch and NumPy are left unchanged.

    Attributes
    ----------
    encoders_ : dict of str to Module
        The trained networks by view, on the CPU.
    history_ : dict of str to ndarray, shape (n_epochs,)
        Training history as columns, ready for ``pandas.DataFrame(model.history_)``: epoch, loss,
        learning_rate, skipped (steps whose loss or gradient was not finite), seconds, and what
        callbacks measure; with validation rows also valid_loss and, for ``monitor="correlation"``,
        valid_total_correlation.
    best_epoch_ : int
        Epoch whose weights the model has.
    weights_ : dict of str to ndarray, shape (n_scores, n_components_)
        Weights of the linear CCA by view. Unpack them with ``weights_.values()``: iterating over a
        dict gives its keys.
    means_ : dict of str to ndarray, shape (n_scores,)
        Means of the networks' outputs on the training rows.
    canonical_correlations_ : ndarray, shape (n_components_,)
        Canonical correlations ρ of the training rows, decreasing; only for two views. Optimistic:
        use `score` on held-out data.
    expected_correlations_ : ndarray, shape (n_components_,)
        Correlations of the scores to expect on new rows; see `MVCCA`.
    eigenvalues_ : ndarray, shape (n_components_,)
        Eigenvalues λ = 1 + ρ, as in `mvcca.MVCCA`.
    n_components_ : int
        Number of components found.
    ranks_ : dict of str to int
        Rank of each view's network outputs.
    view_names_ : tuple of str
        Names of the views, in order.
    n_features_in_ : int
        Number of features of X, summed over its views.
    """

    n_components: int = field(default=2, kw_only=False)
    reg: float | Mapping[str, float] = 1e-4
    batch_size: int = 750
    max_epochs: int = 100
    optimizer: str | Callable[..., torch.optim.Optimizer] = "rmsprop"
    learning_rate: float = 1e-3
    weight_decay: float = 1e-5
    validation_fraction: float | None = None
    patience: int | None = None
    monitor: str = "correlation"
    callbacks: Sequence[Callback] = ()
    mixed_precision: bool = False
    device: str = "auto"
    random_state: Any = None

    power = 0.0  # a parameter of MVCCA, not of deep estimators
    _computes_on_devices = False
    _collapse_advice = "training has collapsed: lower learning_rate"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": MVCCA._parameter_constraints["n_components"],
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

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, X_val: Any = None) -> Self:
        """Train the networks, then fit linear CCA to their outputs for all training rows.

        If `mvcca.config_context` names a checkpoint directory, an interrupted fit resumes from it:
        on a CPU it ends with the same model, bit for bit. With ``random_state=None`` it resumes
        with the seeds of the interrupted fit.

        Parameters
        ----------
        X : Views, mapping, list of matrices, or matrix of shape (n_rows, n_features)
            The views, paired. A lone matrix is the first of two views.
        y : matrix, optional
            The second view, if X is a lone matrix; ignored otherwise (labels in a pipeline).
        X_val : Views, mapping or list of matrices, optional
            Validation rows, used instead of `validation_fraction`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a view holds NaN or infinity, never varies, or differs in rows from the others; if an
            object is missing from a view; if a batch has no more rows than there are components; if
            a callback or `patience` needs validation rows and there are none; if both `encoders`
            and parameters of the default networks are given; or if the loss is never finite.
        """
        self._validate_params()
        views = self._open_pairs(X, y, reset=True)
        validation = self._open_validation(X_val, views.names)
        seeds = self._draw_seeds()
        checkpoint, file = None, file_of_next_pass()
        if file is not None:
            checkpoint = Checkpoint.open(file, self._fingerprint(views, validation), seeds)
            seeds = checkpoint.seeds
        positions = None
        if validation is None and self.validation_fraction is not None:
            positions = _split(len(views), self.validation_fraction, seeds[3])
            views, validation = (views[rows] for rows in positions)
        trainer = self._new_trainer(views, seeds, self._callbacks(validation is not None))
        trainer.train(views, self.max_epochs, validation, checkpoint, positions)
        return self._finish(trainer, views)

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None) -> Self:  # type: ignore[override]
        """Train for one more epoch, continuing from the state that `fit` or `partial_fit` left.

        There are no validation rows, so `patience` and callbacks that need them are ignored. The
        final linear CCA is that of the given rows only. Parameters changed between calls take
        effect, except those that define the networks or the optimizer. A model saved with
        ``statistic=False`` starts over, with a warning.

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
            As in `fit`; also if the views differ from those of earlier calls, or if changed
            parameters ask for other networks or another optimizer.
        """
        self._validate_params()
        first = self._is_first_batch()
        views = self._open_pairs(X, y, reset=first)
        seeds = self._draw_seeds() if first else [0] * 4  # resuming replaces everything drawn
        callbacks = [c for c in self._callbacks(validated=False) if not c.needs_validation]
        trainer = self._new_trainer(views, seeds, callbacks)
        if not first:
            self._statistic.resume(trainer, self._decisive_params())
        trainer.train(views, 1)
        return self._finish(trainer, views)

    def encode(self, X: Any, y: Any = None) -> Any:
        """Apply the networks without the final linear CCA.

        Parameters
        ----------
        X, y
            As in `transform`.

        Returns
        -------
        representations : same container as X
            float32 matrices of shape (n_rows, n_scores), the outputs of each view's network.
        """
        check_is_fitted(self)
        data = self._open(X, y, reset=False, unpaired=True, allow_empty=True)
        return data.wrap({n: encoded(self.encoders_[n], n, X) for n, X in data.views.items()})

    # ---- for subclasses --------------------------------------------------------------------------

    def _new_encoders(self, views: Views, generator: Generator) -> Encoders:
        """The networks to train."""
        raise NotImplementedError

    def _objective(self, encoders: Encoders, widths: Widths, generator: Generator) -> Objective:
        """The loss to minimize."""
        raise NotImplementedError

    def _n_scores(self, views: Views) -> int:
        """Width of the networks' outputs, limited by the number of rows and by memory.

        The final linear CCA warns of components that the rows cannot give.
        """
        width = min(self.n_components, len(views) - 1)
        needed, available = 8 * (len(views.names) * width) ** 2, memory_bytes()
        if needed > available:
            raise MemoryError(
                f"n_components={self.n_components} needs about {needed:,} bytes "
                f"({needed / 1e9:.1f} GB) for the covariances of the networks' outputs, and this "
                f"machine has {available / 1e9:.1f} GB. Lower n_components."
            )
        return width

    def _callbacks(self, validated: bool) -> list[Callback]:
        """Copies of the user's callbacks, and those that parameters and configuration ask for."""
        callbacks = deepcopy(list(self.callbacks))
        measured = any(isinstance(callback, TotalCorrelation) for callback in callbacks)
        if validated and self.monitor == "correlation" and not measured:
            reg = self.reg if isinstance(self.reg, Mapping) else float(self.reg)
            callbacks.append(TotalCorrelation(self.n_components, reg))
        if self.patience is not None:
            callbacks.append(EarlyStopping(self.patience))
        if get_config().progress:
            callbacks.append(ProgressLines())
        return callbacks

    # ---- the parts of fit ------------------------------------------------------------------------

    def _is_first_batch(self) -> bool:
        if hasattr(self, "_statistic"):
            return False
        if hasattr(self, "weights_"):
            warn(
                "partial_fit starts over with new networks: the model was saved without its "
                "training state (statistic=False)."
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

    def _draw_seeds(self) -> list[int]:
        """Seeds of initial weights, batches, torch's global generator and validation split."""
        return check_random_state(self.random_state).randint(_SEED_BOUND, size=4).tolist()

    def _new_trainer(self, views: Views, seeds: list[int], callbacks: list[Callback]) -> Trainer:
        generator = Generator().manual_seed(seeds[0])
        encoders = self._new_encoders(views, generator)
        objective = self._objective(encoders, _output_widths(encoders, views), generator)
        name = self.optimizer
        optimizer = _OPTIMIZERS[name] if isinstance(name, str) else name
        return Trainer(
            encoders,
            objective,
            partial(optimizer, lr=self.learning_rate, weight_decay=self.weight_decay),
            sampler=ShuffledBatches(self.batch_size),
            callbacks=callbacks,
            device=device_named(self.device),
            seed=seeds[1],
            torch_seed=seeds[2],
            mixed_precision=self.mixed_precision,
            monitor=_MONITORED[self.monitor],
        )

    def _fingerprint(self, views: Views, validation: Views | None) -> str:
        """Digest of everything that decides the course of a training, except its length."""
        params = self._decisive_params()
        if isinstance(self.random_state, Integral):  # otherwise the seeds in the file decide
            params["random_state"] = self.random_state
        held_out = None if validation is None else fingerprint_of(validation, "validation")
        return fingerprint_of(views, identity((type(self), params, held_out)))

    def _decisive_params(self) -> dict[str, Any]:
        free = {"max_epochs", "callbacks", "device", "random_state"}
        return {n: v for n, v in self.get_params(deep=False).items() if n not in free}

    def _finish(self, trainer: Trainer, views: Views) -> Self:
        """Fit linear CCA to the networks' outputs for all rows, and set the fitted attributes."""
        encoders = trainer.encoders
        widths = _output_widths(encoders, views)
        with not_kept():  # no checkpoint here: its fingerprint does not cover the networks
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
        return self

    def _check_spread(self, moments: Moments) -> None:
        variances = np.diag(moments.covariance())
        for name, columns in column_slices(moments.widths).items():
            rounding = (1e-6 * moments.mean()[name]) ** 2  # of float32 scores, block by block
            found = variances[columns]
            if not np.isfinite(found).all() or not (found > rounding).any():
                raise ValueError(
                    f"View {name!r} has no variance after its network: all rows have the same "
                    f"scores. Either the rows are all the same, or {self._collapse_advice}."
                )

    def _project(self, name: str, block: Any) -> Any:
        representation = encoded(self.encoders_[name], name, block).astype(np.float64)
        return super()._project(name, representation).astype(block.dtype, copy=False)

    def _fitted_width(self, name: str) -> int:
        return self._widths[name]


def _split(n_rows: int, fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the training and of the validation rows."""
    order = np.random.default_rng(seed).permutation(n_rows)
    n_valid = round(fraction * n_rows)
    if not 2 <= n_valid <= n_rows - 2:
        raise ValueError(
            f"validation_fraction={fraction} of {n_rows} rows leaves too few rows for training or "
            "for validation. Pass X_val to fit."
        )
    return np.sort(order[n_valid:]), np.sort(order[:n_valid])


def _representations(encoders: Encoders, views: Views) -> Views:
    blocks = {n: encoded(encoders[n], n, X).astype(np.float64) for n, X in views.items()}
    return views.replace(blocks)


def _output_widths(encoders: Encoders, views: Views) -> dict[str, int]:
    """Widths of the networks' outputs, found by encoding two rows in evaluation mode."""
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
