"""Objectives, the losses of deep multi-view methods.

An objective is any callable ``(scores, batch) -> loss``, where scores are tensors by view and the
`Batch` holds the rows that they were computed from. The loss is a tensor, or a mapping of named
terms that are summed. An objective with trained parts is a `BoundLoss` of a function, and one with
state is a module. They are usable with any training loop; what a single method minimizes is in the
file of the method.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch import Tensor, nn

from mvcca.deep import functional
from mvcca.deep._losses.batch import Batch, summed
from mvcca.machine.on_access import on_access
from mvcca.machine.warnings import warn
from mvcca.views import Labels

__all__ = [
    "Batch",
    "BoundLoss",
    "LabelLoss",
    "TraceNormLoss",
    "ranking_loss",
]

if not TYPE_CHECKING:  # it would hide misspelt names
    __getattr__ = on_access(__name__)

Loss: TypeAlias = Tensor | Mapping[str, Tensor]

_ENOUGH, _FEW = 8, 5  # rows per score: enough, and so few that training may be useless


class TraceNormLoss(nn.Module):
    """Negative sum of canonical correlations over all pairs of views, the loss of deep CCA.

    Parameters
    ----------
    reg : float or mapping of str to float, default=1e-4
        Ridge of each view's covariance, in units of its mean variance.

    Raises
    ------
    ValueError
        If a batch has no more rows than scores. Fewer than 8 rows per score cause a warning, once.
    """

    def __init__(self, reg: float | Mapping[str, float] = 1e-4) -> None:
        super().__init__()
        self.reg = reg
        self._warned = False

    def forward(self, scores: Mapping[str, Tensor], batch: Batch) -> Tensor:
        """The loss of a batch."""
        reg = self.reg if isinstance(self.reg, Mapping) else dict.fromkeys(scores, self.reg)
        total = summed(
            functional.trace_norm(scores[p], scores[q], (reg[p], reg[q]))
            for p, q in combinations(scores, 2)
        )
        if self.training and not self._warned:
            self._warned = _warn_of_small_batch(scores)
        return -total


class BoundLoss(nn.Module):
    """A loss with what it needs beside scores and batch: a partial function with trained parts.

    Modules and parameters among its parts are trained with the networks and are in their
    checkpoints; parameters alone, such as a temperature, do not decay. Tensors follow the networks
    to their device. Parts are attributes.

    Parameters
    ----------
    loss : callable ``(scores, batch, **parts) -> loss``
        Computes the loss, such as `ranking_loss`.
    **parts : any
        Its keyword arguments.

    Examples
    --------
    >>> from mvcca.deep.layers import CCALayer
    >>> from mvcca.deep.objectives import BoundLoss, ranking_loss
    >>> loss = BoundLoss(ranking_loss, margin=0.7, layer=CCALayer(4))
    >>> loss.margin, loss.layer.n_components
    (0.7, 4)
    """

    def __init__(self, loss: Callable[..., Loss], **parts: Any) -> None:
        super().__init__()
        self.loss, self.names = loss, tuple(parts)
        alone = [name for name, part in parts.items() if isinstance(part, nn.Parameter)]
        self.no_weight_decay = tuple(alone)
        for name, part in parts.items():
            if isinstance(part, Tensor) and name not in alone:
                self.register_buffer(name, part, persistent=False)
            else:
                setattr(self, name, part)

    def forward(self, scores: Mapping[str, Tensor], batch: Batch) -> Loss:
        """The loss of a batch."""
        return self.loss(scores, batch, **{name: getattr(self, name) for name in self.names})


def ranking_loss(
    scores: Mapping[str, Tensor],
    batch: Batch,  # noqa: ARG001, the signature of objectives
    margin: float = 0.5,
    *,
    symmetric: bool = True,
    reduction: str = "mean",
    layer: nn.Module | None = None,
) -> Tensor:
    """Pairwise ranking loss over all pairs of views, optionally through a CCA layer.

    Parameters
    ----------
    scores : mapping of str to Tensor
    batch : Batch
    margin : float, default=0.5
        Margin of `mvcca.deep.functional.pairwise_ranking`.
    symmetric : bool, default=True
        Rank both ways; otherwise earlier views are queries of later ones.
    reduction : {"mean", "sum"}, default="mean"
        Mean over the mismatches of a batch, or sum.
    layer : CCALayer, optional
        Projects the scores of two views before they are ranked; it belongs in a `BoundLoss`.

    Returns
    -------
    Tensor, scalar
    """
    tensors = list(scores.values()) if layer is None else list(layer(*scores.values()))
    return summed(
        functional.pairwise_ranking(F, G, margin, symmetric=symmetric, reduction=reduction)
        for F, G in combinations(tensors, 2)
    )


class LabelLoss(nn.Module):
    """Cross entropy of labels: of the softmax for classes, of sigmoids for label sets.

    Parameters
    ----------
    targets : Tensor, shape (n_codes, n_labels)
        Label vector of each code. They are classes if each is the indicator of one label, and label
        sets otherwise.
    """

    targets: Tensor

    def __init__(self, targets: Tensor) -> None:
        super().__init__()
        self.register_buffer("targets", targets, persistent=False)
        indicators = ((targets == 0) | (targets == 1)).all()
        self.are_classes = bool(indicators and (targets.sum(dim=1) == 1).all())

    def forward(self, scores: Mapping[str, Tensor], batch: Batch) -> Tensor:
        """The loss of a batch whose scores are logits, summed over the views."""
        return summed(self.of(logits, batch.labels[name]) for name, logits in scores.items())

    def of(self, logits: Tensor, codes: Tensor) -> Tensor:
        """Mean cross entropy of rows with the given codes."""
        if self.are_classes:
            return nn.functional.cross_entropy(logits, self.targets[codes])
        return nn.functional.binary_cross_entropy_with_logits(logits, self.targets[codes])


def targets_of(labels: Labels | None) -> Tensor:
    """Labels to predict for every code, shape (n_codes, n_labels).

    Indicators of classes or label sets; each distinct real label vector is a class.
    """
    assert labels is not None  # the estimators require them
    if not labels.are_sets:
        return torch.eye(len(labels))
    return torch.from_numpy(labels.vectors.toarray()).float()


def _warn_of_small_batch(scores: Mapping[str, Tensor]) -> bool:
    """Warn if the batch has too few rows per score, and return whether it has."""
    n_rows = len(next(iter(scores.values())))
    width = max(F.shape[1] for F in scores.values())
    if n_rows >= _ENOUGH * width:
        return False
    danger = (
        "mostly due to chance, and the model may be useless on held-out rows"
        if n_rows < _FEW * width
        else "much higher than those of all rows"
    )
    warn(
        f"Batches of {n_rows} rows are small for {width} components: with fewer than {_ENOUGH} "
        f"rows per component, the correlations of a batch are {danger}. Raise batch_size to "
        f"{_ENOUGH * width} or more, or lower n_components."
    )
    return True
