"""Networks and an objective of one's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, ClassVar

import torch
from torch import nn

from mvcca.deep._estimator import DeepEstimator
from mvcca.deep.callbacks import Callback
from mvcca.deep.encoders import Encoders
from mvcca.deep.trainer import Objective


class EncoderCCA(DeepEstimator):
    """Networks trained with an objective of your own, and linear CCA of what they make of rows.

    The estimators of methods are this one with an objective of theirs.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the shared space, and width of the networks' output unless they are your own.
    objective : callable ``(scores, batch) -> loss``
        Of scores, tensors by view, and the `mvcca.deep.objectives.Batch` that they are of: a scalar
        tensor. A copy of it is used; if it is a module, its parameters are trained.
    hidden_layer_sizes, encoders, reg, batch_size, max_epochs, optimizer, learning_rate, \
    weight_decay, validation_fraction, patience, monitor, callbacks, mixed_precision, device, \
    random_state
        As in `DCCA`; reg is that of the linear CCA alone.

    Attributes
    ----------
    encoders_, history_, best_epoch_, weights_, means_, canonical_correlations_, eigenvalues_, \
    n_components_, view_names_, n_features_in_
        As in `DCCA`.

    Examples
    --------
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.deep import EncoderCCA
    >>> def apart(scores, batch):
    ...     left, right = scores.values()
    ...     return (left - right).square().mean()
    >>> model = EncoderCCA(4, objective=apart, hidden_layer_sizes=(32,), max_epochs=2)
    >>> model.fit(load_digits_views().views).n_components_
    4
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **DeepEstimator._parameter_constraints,
        "objective": [callable],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        objective: Objective,
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
        super().__init__(
            n_components,
            hidden_layer_sizes=hidden_layer_sizes,
            encoders=encoders,
            reg=reg,
            batch_size=batch_size,
            max_epochs=max_epochs,
            optimizer=optimizer,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            validation_fraction=validation_fraction,
            patience=patience,
            monitor=monitor,
            callbacks=callbacks,
            mixed_precision=mixed_precision,
            device=device,
            random_state=random_state,
        )
        self.objective = objective

    def _objective(
        self, encoders: Encoders, widths: Mapping[str, int], generator: torch.Generator
    ) -> Objective:
        return deepcopy(self.objective)
