"""Objectives of cross-modal retrieval, made of the functions of `functional`."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from itertools import combinations

import torch
from torch import Tensor, nn

from mvcca.deep import functional
from mvcca.deep._losses.batch import Batch
from mvcca.deep._networks.cca_layer import CCALayer
from mvcca.deep.encoders import Encoders

_LARGEST_LOG_SCALE = math.log(100)  # of the cosines, as published


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


class CLIPLoss(nn.Module):
    """`mvcca.deep.functional.info_nce` over all pairs of views, with a trained temperature.

    Parameters
    ----------
    temperature : float, default=0.07
        Initial temperature; it does not fall below 0.01.
    """

    no_weight_decay = ("log_scale",)

    def __init__(self, temperature: float = 0.07) -> None:
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(-math.log(temperature)))

    def forward(self, scores: Mapping[str, Tensor], batch: Batch) -> Tensor:
        """The loss of a batch."""
        temperature = self.log_scale.clamp(max=_LARGEST_LOG_SCALE).neg().exp()
        pairs = combinations(scores.values(), 2)
        losses = [functional.info_nce(F, G, temperature) for F, G in pairs]
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
    mining : int, optional
        Number of largest violations that count for each pair of neighbours; by default all.
    """

    def __init__(
        self,
        margin: float = 0.1,
        weights: tuple[float, float, float] = (2.0, 0.1, 0.2),
        mining: int | None = None,
    ) -> None:
        super().__init__()
        self.margin, self.weights, self.mining = margin, weights, mining

    def forward(self, scores: Mapping[str, Tensor], batch: Batch) -> Tensor:
        """The loss of a batch."""
        F, G = scores.values()
        codes = next(iter(batch.labels.values()), torch.arange(len(F), device=F.device))
        return functional.structure_preserving(
            F,
            G,
            functional.same_label(codes),
            margin=self.margin,
            weights=self.weights,
            mining=self.mining,
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
        X = X if X.is_floating_point() else _word_counts(X)
        similarity = functional.cosines(X, X).masked_fill(~different, -torch.inf)
        hardest = similarity.argmax(dim=1)
        usable = different.any(dim=1)
        if not usable.any():
            return F.new_zeros(())
        rows = usable.nonzero()[:, 0]
        return functional.triplet(F[rows], G[rows], G[hardest[rows]], self.margin)


def _word_counts(X: Tensor) -> Tensor:
    """Counts of the known words of texts, (n_rows, n_words), from their positions."""
    counts = torch.zeros(len(X), 2 + int(X.max()), device=X.device)
    counts.scatter_add_(1, X, torch.ones_like(X, dtype=counts.dtype))
    counts[:, :2] = 0  # 0 pads, 1 is unknown
    return counts


class BimodalLoss(nn.Module):
    """Reconstructions and labels of codes of all views, the loss of a level of `mvcca.deep.CMDN`.

    The codes of a batch are those of each view alone, σ(W_p z_p + c), and of all of them together,
    σ(Σ_p W_p z_p + c). From each code, decoders reconstruct all views, and a classifier predicts
    the labels.

    Parameters
    ----------
    targets : Tensor, shape (n_codes, n_labels)
        Label vector of every code of `Batch.labels`.
    layers : mapping of str to Linear
        Layers with weights W_p by view, and one shared bias c.
    decoders : Encoders
        Networks from codes to the rows z_p of each view.
    classifier : Module
        Predicts labels from codes.
    label_weight : float, default=1.0
        Weight of the labels, beside the squared error per feature.
    """

    def __init__(
        self,
        targets: Tensor,
        layers: Mapping[str, nn.Linear],
        decoders: Encoders,
        classifier: nn.Module,
        label_weight: float = 1.0,
    ) -> None:
        super().__init__()
        self.labels, self.classifier, self.decoders = LabelLoss(targets), classifier, decoders
        self.layers, self.label_weight = Encoders(layers), label_weight

    def forward(self, scores: Mapping[str, Tensor], batch: Batch) -> dict[str, Tensor]:
        """The terms of the loss of a batch, whose scores are the rows z_p: constants."""
        rows = {name: Z.detach() for name, Z in scores.items()}
        alone = self.layers(rows)
        bias = self.layers[self.layers.names[0]].bias
        together = sum(alone.values()) - (len(alone) - 1) * bias
        codes = [torch.sigmoid(part) for part in (*alone.values(), together)]
        n_features = sum(Z.shape[1] for Z in rows.values())
        errors = [
            functional.reconstruction_error(rows[name], Z) / n_features
            for code in codes
            for name, Z in self.decoders(dict.fromkeys(rows, code)).items()
        ]
        y = next(iter(batch.labels.values()))
        labels = [self.labels(self.classifier(code), y) for code in codes]
        return {
            "reconstruction": torch.stack(errors).sum(),
            "label": self.label_weight * torch.stack(labels).sum(),
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
        Margin of the distance of rows without a common label.
    activated : collection of str, default=()
        Views whose scores are contrasted after a sigmoid; classifiers see them before it.
    """

    def __init__(
        self,
        targets: Tensor,
        classifiers: nn.Module,
        weights: tuple[float, float],
        margin: float,
        activated: Collection[str] = (),
    ) -> None:
        super().__init__()
        self.labels, self.classifiers = LabelLoss(targets), classifiers
        self.weights, self.margin, self.activated = weights, margin, frozenset(activated)

    def forward(self, scores: Mapping[str, Tensor], batch: Batch) -> dict[str, Tensor]:
        """The terms of the loss of a batch."""
        targets, codes = self.labels.targets, batch.labels
        contrasted = {n: torch.sigmoid(F) if n in self.activated else F for n, F in scores.items()}
        contrasts = [
            functional.contrastive(
                contrasted[p],
                contrasted[q],
                functional.same_label(targets[codes[p]], targets[codes[q]]),
                self.margin,
            )
            for p, q in combinations(scores, 2)
        ]
        logits = self.classifiers(scores)
        labels = [self.labels(logits[name], codes[name]) for name in scores]
        return {
            "inter": self.weights[0] * torch.stack(contrasts).sum(),
            "intra": self.weights[1] * torch.stack(labels).sum(),
        }
