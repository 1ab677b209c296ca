"""Scheduled adaptive margins: the loss of `mvcca.deep.SAM`, and what it needs of the training rows.

The margin of an anchor and a negative grows with their distance in the features of the views and
with the distance of their categories in the shared space. A callback measures the former scale
before training, and the latter at the start of every epoch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from mvcca.deep._losses.batch import Batch, summed
from mvcca.deep.functional import cosines, margin_ranking, squared_distances
from mvcca.deep.trainer import Callback, Trainer

_ROWS = 2000  # of which the largest distance is measured


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
            n_rows = trainer.rows.objects.sizes[name]
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
