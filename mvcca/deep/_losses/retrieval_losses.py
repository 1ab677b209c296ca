"""Objectives of cross-modal retrieval, made of the functions of `functional`."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import torch
from torch import Tensor, nn

from mvcca.deep import functional
from mvcca.deep._losses.batch import Batch
from mvcca.deep._networks.cca_layer import CCALayer


class RankingLoss(nn.Module):
    """Pairwise ranking loss over all pairs of views, optionally through a CCA layer.

    Parameters
    ----------
    margin : float, default=0.5
        Margin of `mvcca.deep.functional.pairwise_ranking`.
    symmetric : bool, default=True
        Rank both ways; otherwise earlier views are queries of later ones.
    reduction : {"mean", "sum"}, default="mean"
        Mean over the mismatches of a batch, or sum.
    layer : CCALayer, optional
        Projects the scores of two views before they are ranked.
    """

    def __init__(
        self,
        margin: float = 0.5,
        *,
        symmetric: bool = True,
        reduction: str = "mean",
        layer: CCALayer | None = None,
    ) -> None:
        super().__init__()
        self.margin, self.symmetric, self.reduction = margin, symmetric, reduction
        self.layer = layer

    def forward(self, scores: Mapping[str, Tensor], batch: Batch) -> Tensor:
        """The loss of a batch."""
        tensors = list(scores.values())
        if self.layer is not None:
            tensors = list(self.layer(*tensors))
        losses = [
            functional.pairwise_ranking(
                F, G, self.margin, symmetric=self.symmetric, reduction=self.reduction
            )
            for F, G in combinations(tensors, 2)
        ]
        return torch.stack(losses).sum()


class StructureLoss(nn.Module):
    """`mvcca.deep.functional.structure_preserving` of two views.

    Neighbours are rows of the same label; without labels, a row and its counterpart only.

    Parameters
    ----------
    margin : float, default=0.1
        Margin of all hinges.
    weights : tuple of 3 floats, default=(2.0, 0.1, 0.2)
        Weights of the second direction and of both views' own neighbourhoods.
    """

    def __init__(
        self, margin: float = 0.1, weights: tuple[float, float, float] = (2.0, 0.1, 0.2)
    ) -> None:
        super().__init__()
        self.margin, self.weights = margin, weights

    def forward(self, scores: Mapping[str, Tensor], batch: Batch) -> Tensor:
        """The loss of a batch."""
        F, G = scores.values()
        codes = next(iter(batch.labels.values()), torch.arange(len(F), device=F.device))
        return functional.structure_preserving(
            F, G, functional.same_label(codes), margin=self.margin, weights=self.weights
        )


class DeViSELoss(nn.Module):
    """`mvcca.deep.functional.devise` of mapped rows of one view against the target view.

    Parameters
    ----------
    target : str
        Name of the view whose rows are the targets.
    margin : float, default=0.1
        Margin of the hinge.
    """

    def __init__(self, target: str, margin: float = 0.1) -> None:
        super().__init__()
        self.target, self.margin = target, margin

    def forward(self, scores: Mapping[str, Tensor], batch: Batch) -> Tensor:
        """The loss of a batch, as a mean over the mismatches."""
        mapped = next(F for name, F in scores.items() if name != self.target)
        return functional.devise(mapped, scores[self.target], self.margin, "mean")


class LabelLoss(nn.Module):
    """Cross entropy of labels: of the softmax for classes, of sigmoids for label sets.

    Parameters
    ----------
    targets : Tensor, shape (n_codes, n_labels)
        Label vector of every code of `Batch.labels`.
    """

    targets: Tensor

    def __init__(self, targets: Tensor) -> None:
        super().__init__()
        self.register_buffer("targets", targets, persistent=False)
        indicators = ((targets == 0) | (targets == 1)).all()
        self.are_classes = bool(indicators and (targets.sum(dim=1) == 1).all())

    def forward(self, logits: Tensor, codes: Tensor) -> Tensor:
        """Mean cross entropy of rows with the given codes."""
        if self.are_classes:
            return nn.functional.cross_entropy(logits, self.targets[codes])
        return nn.functional.binary_cross_entropy_with_logits(logits, self.targets[codes])


class PosteriorLoss(nn.Module):
    """Cross entropy of labels, from the logits of each view.

    Parameters
    ----------
    targets : Tensor, shape (n_codes, n_labels)
        Label vector of every code of `Batch.labels`.
    """

    def __init__(self, targets: Tensor) -> None:
        super().__init__()
        self.labels = LabelLoss(targets)

    def forward(self, scores: Mapping[str, Tensor], batch: Batch) -> Tensor:
        """The loss of a batch, summed over the views."""
        losses = [self.labels(logits, batch.labels[name]) for name, logits in scores.items()]
        return torch.stack(losses).sum()


class ACMRLoss(nn.Module):
    """Triplets, labels and an adversary behind a gradient reversal, the loss of `mvcca.deep.ACMR`.

    Parameters
    ----------
    targets : Tensor, shape (n_codes, n_labels)
        Label vector of every code of `Batch.labels`.
    classifier : Module
        Predicts labels from the scores of any view.
    adversary : Module
        Predicts the view from scores.
    weights : tuple of 3 floats
        Weights of triplets, labels and adversary.
    margin : float
        Margin of the triplets.
    """

    def __init__(
        self,
        targets: Tensor,
        classifier: nn.Module,
        adversary: nn.Module,
        weights: tuple[float, float, float],
        margin: float,
    ) -> None:
        super().__init__()
        self.labels, self.classifier, self.adversary = LabelLoss(targets), classifier, adversary
        self.weights, self.margin = weights, margin

    def forward(self, scores: Mapping[str, Tensor], batch: Batch) -> dict[str, Tensor]:
        """The terms of the loss of a batch."""
        by_triplets, by_labels, by_adversary = self.weights
        codes = next(iter(batch.labels.values()))
        different = ~functional.same_label(codes)
        triplets = [
            self._triplets(scores[p], scores[q], batch.views[q], different)
            for p in scores
            for q in scores
            if p != q
        ]
        labels = [self.labels(self.classifier(F), codes) for F in scores.values()]
        factor = functional.reversal_factor(batch.epoch / batch.n_epochs)
        judged = [self.adversary(functional.reverse_gradient(F, factor)) for F in scores.values()]
        views = [torch.full_like(codes, i) for i in range(len(scores))]
        adversary = nn.functional.cross_entropy(torch.cat(judged), torch.cat(views))
        return {
            "triplet": by_triplets * torch.stack(triplets).sum(),
            "label": by_labels * torch.stack(labels).sum(),
            "adversary": by_adversary * adversary,
        }

    def _triplets(self, F: Tensor, G: Tensor, X: Tensor, different: Tensor) -> Tensor:
        """Anchors in F, counterparts in G, and the rows of G with the most similar features."""
        similarity = functional.cosines(X, X).masked_fill(~different, -torch.inf)
        hardest = similarity.argmax(dim=1)
        usable = different.any(dim=1)
        if not usable.any():
            return F.new_zeros(())
        rows = usable.nonzero()[:, 0]
        return functional.triplet(F[rows], G[rows], G[hardest[rows]], self.margin)


class CMDNLoss(nn.Module):
    """Reconstructions, distance of codes and labels, the loss of `mvcca.deep.CMDN`.

    Parameters
    ----------
    targets : Tensor, shape (n_codes, n_labels)
        Label vector of every code of `Batch.labels`.
    classifier : Module
        Predicts labels from the scores of any view.
    decoders : mapping of (str, str) to Module
        Network from the scores of the first view to the rows of the second.
    weights : tuple of 4 floats
        Weights of own and other reconstructions, of the distance, and of the labels.
    """

    def __init__(
        self,
        targets: Tensor,
        classifier: nn.Module,
        decoders: Mapping[tuple[str, str], nn.Module],
        weights: tuple[float, float, float, float],
    ) -> None:
        super().__init__()
        self.labels, self.classifier = LabelLoss(targets), classifier
        self.pairs, self.decoders = tuple(decoders), nn.ModuleList(decoders.values())
        self.weights = weights

    def forward(self, scores: Mapping[str, Tensor], batch: Batch) -> dict[str, Tensor]:
        """The terms of the loss of a batch; errors are in units of a view's mean variance."""
        errors: dict[bool, list[Tensor]] = {True: [], False: []}
        for (source, target), decoder in zip(self.pairs, self.decoders, strict=True):
            rows = batch.views[target]
            least = 1e-6 * rows.square().mean()  # of a constant view, whose variance is rounding
            variance = torch.maximum(rows.var(dim=0).mean(), least)
            error = (rows - decoder(scores[source])).square().mean()
            error = error / torch.where(variance > 0, variance, 1)
            errors[source == target].append(error)
        distances = [
            functional.squared_distance(F, G) / F.shape[1]
            for F, G in combinations(scores.values(), 2)
        ]
        labels = [self.labels(self.classifier(F), batch.labels[n]) for n, F in scores.items()]
        parts = (errors[True], errors[False], distances, labels)
        names = ("own", "other", "distance", "label")
        return {
            name: weight * torch.stack(part).sum()
            for name, weight, part in zip(names, self.weights, parts, strict=True)
        }


class CCLLoss(nn.Module):
    """Contrast of pairs by label and labels of each view, the loss of `mvcca.deep.CCL`.

    Parameters
    ----------
    targets : Tensor, shape (n_codes, n_labels)
        Label vector of every code of `Batch.labels`.
    classifiers : Encoders
        Predict the labels from the scores of each view.
    weights : tuple of 2 floats
        Weights of the contrast between views and of the labels within views.
    margin : float
        Margin of the squared distance of rows without a common label.
    """

    def __init__(
        self, targets: Tensor, classifiers: nn.Module, weights: tuple[float, float], margin: float
    ) -> None:
        super().__init__()
        self.labels, self.classifiers = LabelLoss(targets), classifiers
        self.weights, self.margin = weights, margin

    def forward(self, scores: Mapping[str, Tensor], batch: Batch) -> dict[str, Tensor]:
        """The terms of the loss of a batch."""
        targets, codes = self.labels.targets, batch.labels
        contrasts = [
            functional.contrastive(
                scores[p],
                scores[q],
                functional.same_label(targets[codes[p]], targets[codes[q]]),
                self.margin,
                hinge="linear",
            )
            for p, q in combinations(scores, 2)
        ]
        logits = self.classifiers(scores)
        labels = [self.labels(logits[name], codes[name]) for name in scores]
        return {
            "inter": self.weights[0] * torch.stack(contrasts).sum(),
            "intra": self.weights[1] * torch.stack(labels).sum(),
        }
