"""Scheduled adaptive margins: the method, its loss, and what the loss needs of the training rows.

The margin of an anchor and a negative grows with their distance in the features of the views and
with the distance of their categories in the shared space. A callback measures the former scale
before training, and the latter at the start of every epoch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, Self

import numpy as np
import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import normalize

from mvcca.base.parameters import BELOW_1, NOT_NEGATIVE, POSITIVE, SHARE, one_of, parameter
from mvcca.deep._bases.estimator import Widths
from mvcca.deep._bases.mlp_estimator import TANH, NetworkEstimator
from mvcca.deep._losses.batch import Batch, summed
from mvcca.deep._training.training import Training
from mvcca.deep.encoders import Encoders
from mvcca.deep.functional import cosines, margin_ranking, squared_distances
from mvcca.deep.trainer import Callback, Objective, Trainer
from mvcca.views import Views

_ROWS = 2000  # of which the largest distance is measured


class SAM(NetworkEstimator):
    r"""Cross-modal subspace with scheduled adaptive margins, learned from class labels [1]_.

    Trains one network f_p per view to rank the counterpart of a row above all rows n of the batch
    that share no label with it, by a margin. Each pair of views p, q contributes, in both
    directions,

    .. math::

        \min \; \frac{1}{b} \sum_a \sum_n \max\big(0, \; m_{an}(t)
            - \cos(f_{pa}, f_{qa}) + \cos(f_{pa}, f_{qn})\big),

    where b is the batch size. In epoch t = 0, ..., T - 1 the margin moves from a fixed one to one
    that adapts to the rows and to their categories,

    .. math::

        m_{an}(t) &= α_t \big(λ d_{an} + (1 - λ) c_{an}\big) + (1 - α_t) \, m, \\
        α_t &= 1 / \big(1 + \exp(-k (t - φ T))\big).

    Here d is the distance of the features of a and n, as a share of the largest one of the training
    rows, and c = (1 - cosine) / 2 of the centroids of their categories under the present networks;
    both are means over the two views. No gradient flows through margins. Rows with several labels
    are negatives if they share none, and c is then the mean over their pairs of labels.

    In unpaired views the counterpart of a row is one with equal labels, another one in every epoch.

    The scores are the networks' outputs, ranked by cosine.

    Parameters and attributes that are not listed here are those of
    `mvcca.deep.bases.NetworkEstimator`.

    Parameters
    ----------
    margin : float, default=1.0
        Fixed margin m.
    margins : {"scheduled", "adaptive", "fixed"}, default="scheduled"
        "fixed" and "adaptive" are the ablations α = 0, a fixed margin, and α = 1.
    sample_share : float, default=0.05
        Share λ of the distance of rows in the adaptive margin. [1]_ uses 0.05
        for Wikipedia and NUS-WIDE-10k, and 0.25 for Pascal Sentences.
    midpoint : float, default=0.4
        Share φ of the epochs after which α is 1/2.
    steepness : float, default=0.1
        Steepness k of the schedule, per epoch.
    dropout : float, default=0.1
        Share of hidden units that are zero in each training step.
    hidden_layer_sizes : sequence of int, or mapping of str to sequence, default=(1024,)
        Widths of the hidden layers, for all views or by view. Each hidden layer is linear → tanh →
        dropout; the output is linear → tanh.
    batch_size : int, default=200
        Rows per batch; all rows if there are fewer.
    max_epochs : int or "auto", default=100
        Maximum number of passes over the rows.
    optimizer : {"rmsprop", "adam", "sgd"} or callable, default="adam"
        Name of an optimizer, a class of `torch.optim`, or a callable with the same signature.
    weight_decay : float, default=0.0
        Weight decay of the optimizer.
    monitor : str or callable, default="valid_map"
        Quantity compared across epochs on the validation rows; "valid_loss" is the loss with the
        fixed margin.

    Attributes
    ----------
    history_ : dict of str to ndarray, shape (n_epochs,)
        Training history, with the mean margin of the negatives (margin) and the share α of the
        adaptive margin (adaptation) beside the columns of other methods.
    category_margins_ : ndarray, shape (n_labels, n_labels)
        Distance c of the centroids of two categories at the start of the best epoch, in the order
        of ``categories_``, averaged over the views; 0 with ``margins="fixed"``.
    category_margins_by_epoch_ : ndarray, shape (n_epochs, n_labels, n_labels)
        The same at the start of every epoch; ``category_margins_`` is that of ``best_epoch_``. The
        margin of an epoch between two categories is ``adaptation`` times λ d + (1 - λ) c plus
        (1 - ``adaptation``) m. float32; NaN for epochs of a model saved by an earlier version.
    categories_ : ndarray, shape (n_labels,)
        The categories: sorted classes or labels, or column numbers of an indicator matrix.

    Notes
    -----
    Settings of [1]_ for up to ten thousand rows, where they differ from the defaults:

    =================  ======
    ``n_components``   200
    ``optimizer``      "sgd"
    ``learning_rate``  5e-3
    =================  ======

    References
    ----------
    .. [1] Semedo and Magalhães, "Cross-Modal Subspace Learning with Scheduled Adaptive Margin
       Constraints", ACM MM 2019, eqs. (5) to (10), with f_a for φ. It leaves open how d is scaled,
       and decays the learning rate by 1e-6 per step, which is left out here.

    Examples
    --------
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.deep import SAM
    >>> data = load_digits_views()
    >>> model = SAM(16, hidden_layer_sizes=(64,), max_epochs=5, random_state=0)
    >>> model.fit(data.views, data.labels).category_margins_.shape
    (10, 10)
    """

    margin: float = parameter(1.0, POSITIVE)
    margins: str = parameter("scheduled", one_of("scheduled", "adaptive", "fixed"))
    sample_share: float = parameter(0.05, SHARE)
    midpoint: float = parameter(0.4, SHARE)
    steepness: float = parameter(0.1, NOT_NEGATIVE)
    dropout: float = parameter(0.1, BELOW_1)
    hidden_layer_sizes: Sequence[int] | Mapping[str, Sequence[int]] = (1024,)
    batch_size: int | str = 200
    max_epochs: int | str = 100
    optimizer: Any = "adam"
    weight_decay: float = 0.0
    monitor: Any = "valid_map"

    requires = replace(NetworkEstimator.requires, labels=True, pairs=False)
    _gain = 4.0
    _is_scheduled = True  # the margins
    _network_parameters = ("hidden_layer_sizes", "dropout")

    def _mlp_options(self) -> dict[str, Any]:
        return TANH | {"dropout": self.dropout}

    def _objective(self, encoders: Encoders, widths: Widths, generator: Generator) -> Objective:
        assert self._labels is not None
        if not self._labels.are_sets:
            raise ValueError(
                "SAM learns from classes or label sets, got real label vectors. Pass the names of "
                "the labels."
            )
        vectors = torch.from_numpy(self._labels.dense().astype(np.float32))
        if bool((vectors @ vectors.T > 0).all()):
            raise ValueError(
                "All rows share labels with all others, so there are no negatives. SAM needs rows "
                "of different classes."
            )
        return ScheduledMarginLoss(
            vectors,
            encoders.names,
            self.margin,
            self.margins,
            self.sample_share,
            self.midpoint,
            self.steepness,
        )

    def _callbacks(self, training: Training, validated: bool) -> list[Callback]:
        return [Centroids(), *super()._callbacks(training, validated)]

    def _finish(self, trainer: Trainer, views: Views) -> Self:
        super()._finish(trainer, views)
        assert self._labels is not None
        (centroids,) = (c for c in trainer.callbacks if isinstance(c, Centroids))
        self.category_margins_by_epoch_ = torch.stack(centroids.by_epoch).numpy()
        self.category_margins_ = self.category_margins_by_epoch_[self.best_epoch_ - 1]
        self.categories_ = self._labels.names
        return self


class ScheduledMarginLoss(nn.Module):
    """Bidirectional hinge whose margins change from fixed to adaptive; see `mvcca.deep.SAM`."""

    # `label_vectors` (n_codes, n_labels) are those of each code of `Batch.labels`; `sample_share`
    # is the λ of rows in the adaptive margin, `midpoint` and `steepness` the f_a and k of the
    # schedule. In evaluation mode all margins are the fixed one, so that losses of epochs are
    # comparable.

    label_vectors: Tensor
    label_distances: Tensor  # (n_views, n_labels, n_labels)
    largest: Tensor  # (n_views,), largest distance of training rows

    def __init__(
        self,
        label_vectors: Tensor,
        names: tuple[str, ...],
        margin: float,
        margins: str,
        sample_share: float,
        midpoint: float,
        steepness: float,
    ) -> None:
        super().__init__()
        self.names, self.margin, self.margins = names, margin, margins
        self.sample_share, self.midpoint, self.steepness = sample_share, midpoint, steepness
        n_labels = label_vectors.shape[1]
        self.register_buffer("label_vectors", label_vectors, persistent=False)
        self.register_buffer("label_distances", torch.zeros(len(names), n_labels, n_labels))
        self.register_buffer("largest", torch.ones(len(names)))
        self.margin_sum, self.n_margins = torch.zeros(()), torch.zeros(())

    def forward(self, scores: Mapping[str, Tensor], batch: Batch) -> Tensor:
        """The loss of a batch of paired rows with labels."""
        vectors = self.label_vectors[next(iter(batch.labels.values()))]
        different = vectors @ vectors.T == 0
        losses = []
        for p, q in combinations(self.names, 2):
            margins = self.margins_of(p, q, vectors, batch)
            losses.append(margin_ranking(scores[p], scores[q], margins, different))
            if self.training:
                self.margin_sum = self.margin_sum.to(margins) + (margins * different).sum()
                self.n_margins = self.n_margins.to(margins) + different.sum()
        return summed(losses)

    def margins_of(self, p: str, q: str, vectors: Tensor, batch: Batch) -> Tensor:
        """Margins f_m of all pairs of rows for two views, eqs. (6) and (7): (n_rows, n_rows)."""
        fixed = torch.full((len(vectors), len(vectors)), self.margin, device=vectors.device)
        alpha = self.adaptation(batch.epoch, batch.n_epochs) if self.training else 0.0
        if not alpha:
            return fixed
        share = self.sample_share
        with torch.no_grad():
            adaptive = (1 - share) * self.category_margins(p, q, vectors)
            if share:
                adaptive = adaptive + share * self.sample_margins(p, q, batch)
        return alpha * adaptive + (1 - alpha) * fixed

    def adaptation(self, epoch: int, n_epochs: int) -> float:
        """Share α of the adaptive margin in an epoch, counted from 1; t of eq. (6) is epoch - 1."""
        if self.margins != "scheduled":
            return float(self.margins == "adaptive")
        return 1 / (1 + math.exp(-self.steepness * (epoch - 1 - self.midpoint * n_epochs)))

    def sample_margins(self, p: str, q: str, batch: Batch) -> Tensor:
        """f_ms of eq. (8): mean distance of features, each as a share of the largest one."""
        shares = []
        for name in (p, q):
            X = batch.views[name].float()
            largest = self.largest[self.names.index(name)]
            shares.append((squared_distances(X, X).sqrt() / largest).clamp(max=1))
        return (shares[0] + shares[1]) / 2

    def category_margins(self, p: str, q: str, vectors: Tensor) -> Tensor:
        """f_mc of eq. (10): mean distance of the centroids of the rows' labels."""
        own = [self.label_distances[self.names.index(name)] for name in (p, q)]
        share = vectors / vectors.sum(dim=1, keepdim=True).clamp(min=1)
        return share @ ((own[0] + own[1]) / 2) @ share.T


class Centroids(Callback):
    """Measure distances of rows before training, and of categories at the start of each epoch.

    Attributes
    ----------
    by_epoch : list of Tensor, shape (n_labels, n_labels)
        Distances of categories at the start of each epoch, averaged over the views.
    """

    def __init__(self) -> None:
        self.by_epoch: list[Tensor] = []

    def on_train_begin(self, trainer: Trainer) -> None:
        """Set the largest distance of the training rows in each view."""
        loss = trainer.objective
        assert isinstance(loss, ScheduledMarginLoss)
        if loss.margins == "fixed" or not loss.sample_share:
            return
        for number, name in enumerate(loss.names):
            n_rows = trainer.rows.sample.sizes[name]
            chosen = np.linspace(0, n_rows - 1, min(n_rows, _ROWS)).astype(int)
            X = trainer.rows.take({name: chosen})[name].float()
            largest = squared_distances(X, X).max().sqrt()
            loss.largest[number] = torch.where(largest > 0, largest, 1)

    def on_epoch_begin(self, trainer: Trainer) -> None:
        """Set the distances of label centroids, eq. (9), with the present networks."""
        loss = trainer.objective
        assert isinstance(loss, ScheduledMarginLoss)
        loss.margin_sum, loss.n_margins = torch.zeros(()), torch.zeros(())
        if loss.margins != "fixed" and loss.sample_share < 1:
            self._measure_categories(loss, trainer)
        margins = loss.label_distances.mean(dim=0).cpu()
        known = self.by_epoch[: trainer.epoch - 1]  # without an epoch that is repeated
        unknown = [torch.full_like(margins, torch.nan)] * (trainer.epoch - 1 - len(known))
        self.by_epoch = [*known, *unknown, margins]

    def _measure_categories(self, loss: ScheduledMarginLoss, trainer: Trainer) -> None:
        scores = trainer.scores(trainer.rows.views)
        for number, name in enumerate(loss.names):
            F = normalize(torch.from_numpy(scores[name]).to(loss.largest))
            codes = torch.from_numpy(trainer.rows.labels[name]).to(F.device)
            members = loss.label_vectors[codes]
            counts = members.sum(dim=0).clamp(min=1)
            centroids = members.T @ F / counts[:, None]
            loss.label_distances[number] = (1 - cosines(centroids, centroids)) / 2

    def measure(self, trainer: Trainer) -> dict[str, float]:
        """Mean margin of the negatives of the epoch, and the share of the adaptive margin."""
        loss = trainer.objective
        assert isinstance(loss, ScheduledMarginLoss)
        return {
            "margin": float(loss.margin_sum / loss.n_margins.clamp(min=1)),
            "adaptation": loss.adaptation(trainer.epoch, trainer.planned_epochs),
        }

    def state_dict(self) -> dict[str, Any]:
        """Distances of categories by epoch."""
        return {"by_epoch": list(self.by_epoch)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the distances; those of a model of an earlier version are unknown."""
        self.by_epoch = state.get("by_epoch", [])
