"""Networks trained to rank the other view's row of the same object first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any, ClassVar

import torch
from torch import Generator, Tensor, nn

from mvcca.base.parameters import BELOW_1, NOT_NEGATIVE, POSITIVE, at_least, parameter
from mvcca.deep._bases.estimator import DeepEstimator, Widths
from mvcca.deep._bases.started import StartedNetworks
from mvcca.deep._losses.batch import Batch, summed
from mvcca.deep.encoders import Encoders
from mvcca.deep.functional import devise, info_nce, same_label, structure_preserving
from mvcca.deep.layers import linear
from mvcca.deep.objectives import BoundLoss, ranking_loss
from mvcca.deep.trainer import Objective

_LARGEST_LOG_SCALE = math.log(100)  # of the cosines, as published


class LearnedRanking(StartedNetworks):
    r"""Networks whose scores rank the other view's row of the same object first [1]_.

    .. math::

        \min \; \sum_{p<q} \frac{1}{n(n-1)} \sum_i \sum_{j≠i} \max\big(0, \;
            m - \cos(f_{pi}, f_{qi}) + \cos(f_{pi}, f_{qj})\big),

    plus the same with the views exchanged. Each network ends in a linear layer of the normalized
    outputs, where `CCAL` has the CCA layer instead. Scores are used as trained and ranked by their
    cosine.

    Parameters and attributes that are not listed here are those of
    `mvcca.deep.bases.StartedNetworks`.

    Parameters
    ----------
    margin : float, default=0.7
        Margin m of the loss, in units of the cosine.
    symmetric : bool, default=True
        Rank both ways; otherwise rows of earlier views rank those of later ones.
    optimizer : {"rmsprop", "adam", "sgd"} or callable, default="adam"
        Name of an optimizer, a class of `torch.optim`, or a callable with the same signature.
    learning_rate : float, mapping of str to float or "auto", default="auto"
        Learning rate of the optimizer, for all views or by view. "auto" is 3e-3 for fewer than
        10,000 training rows and 1e-3 for more.
    monitor : str or callable, default="valid_mrr"
        Quantity compared across epochs on the validation rows.

    See Also
    --------
    CCAL : The same loss of canonical variates.

    Notes
    -----
    Settings of [1]_ for 17,000 to 30,000 images with texts, where they differ from the defaults:

    ========================  =====================================================
    ``n_components``          128
    ``batch_size``            1000, the last one filled up with random rows
    ``hidden_layer_sizes``    none for images, (1024, 1024) with ELU for texts
    ``learning_rate``         1e-3
    ``weight_decay``          2e-4
    ``margin``                0.5; 0.7 for audio, 0.2 for zero-shot retrieval
    ``max_epochs``            at most 1000, with `mvcca.deep.callbacks.Refinement`
    ========================  =====================================================

    References
    ----------
    .. [1] Dorfer, Schlüter, Vall, Korzeniowski and Widmer, "End-to-End Cross-Modality Retrieval
       with CCA Projections and Pairwise Ranking Loss", 2018, section 4 ("Learned projections").

    Examples
    --------
    >>> from mvcca import evaluate_retrieval
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.deep import LearnedRanking
    >>> views = load_digits_views().views
    >>> train, test = views[:1500], views[1500:]
    >>> model = LearnedRanking(
    ...     16, hidden_layer_sizes=(64,), batch_size=300, max_epochs=20, random_state=0
    ... ).fit(train)
    >>> evaluate_retrieval(test, estimator=model, measures="r@10").mean()["r@10"] > 0.3
    True
    """

    margin: float = parameter(0.7, POSITIVE)
    symmetric: bool = parameter(True, "boolean")
    optimizer: Any = "adam"
    learning_rate: float | str | Mapping[str, float] = "auto"
    monitor: Any = "valid_mrr"

    def _new_network(
        self, n_in: int, hidden: tuple[int, ...], n_out: int, generator: Generator
    ) -> nn.Module:
        network = super()._new_network(n_in, hidden, n_out, generator)
        return nn.Sequential(*network, linear(n_out, n_out, generator))

    def _objective(self, encoders: Encoders, widths: Widths, generator: Generator) -> Objective:
        return partial(ranking_loss, margin=self.margin, symmetric=self.symmetric)


class CLIP(StartedNetworks):
    r"""Networks that find each row's counterpart among the batch, with the loss of CLIP [1]_.

    .. math::

        \min \; -\frac12 \sum_{p<q} \frac1n \sum_i \left(
            \log \frac{\exp(s_{ii} / τ)}{\sum_j \exp(s_{ij} / τ)}
            + \log \frac{\exp(s_{ii} / τ)}{\sum_j \exp(s_{ji} / τ)} \right), \qquad
        s_{ij} = \cos(f_{pi}, f_{qj}),

    the symmetric InfoNCE loss, whose temperature τ is trained with the networks. Here the networks
    take features; no pretrained model is loaded. Scores are used as trained and ranked by their
    cosine.

    Parameters and attributes that are not listed here are those of
    `mvcca.deep.bases.StartedNetworks`.

    Parameters
    ----------
    temperature : float, default=0.07
        Initial temperature τ. It does not fall below 0.01.
    dropout : float, default=0.2
        Dropout after each hidden layer. Not published.
    batch_size : int or "auto", default="auto"
        Rows per batch; all rows if there are fewer. Each row is compared with all others of its
        batch. "auto" is 128 for fewer than 10,000 training rows and 750 for more, and at least 8
        rows per component.
    optimizer : {"rmsprop", "adam", "adamw", "sgd"} or callable, default="adamw"
        Name of an optimizer, a class of `torch.optim`, or a callable with the same signature.
    learning_rate : float, mapping of str to float or "auto", default=1e-3
        Learning rate of the optimizer, for all views or by view. "auto" is 3e-3 for fewer than
        10,000 training rows and 1e-3 for more.
    weight_decay : float, default=0.1
        Weight decay of the optimizer; of the networks, not of the temperature.
    monitor : str or callable, default="valid_mrr"
        Quantity compared across epochs on the validation rows.

    See Also
    --------
    CCAL : A ranking loss of canonical variates.
    mvcca.deep.functional.info_nce : The loss as a function.

    References
    ----------
    .. [1] Radford et al., "Learning Transferable Visual Models From Natural Language Supervision",
       ICML 2021, figure 3.

    Examples
    --------
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.deep import CLIP
    >>> views = load_digits_views().views
    >>> model = CLIP(8, hidden_layer_sizes=(32,), start="random", max_epochs=3, random_state=0)
    >>> {name: scores.shape for name, scores in model.fit_transform(views).items()}
    {'left': (1797, 8), 'right': (1797, 8)}
    """

    temperature: float = parameter(0.07, POSITIVE)
    dropout: float = parameter(0.2, BELOW_1)
    optimizer: Any = "adamw"
    learning_rate: float | str | Mapping[str, float] = 1e-3
    weight_decay: float = 0.1
    monitor: Any = "valid_mrr"

    _network_parameters = ("hidden_layer_sizes", "dropout")

    def _mlp_options(self) -> dict[str, Any]:
        return {"dropout": self.dropout, "normalize_output": False}

    def _objective(self, encoders: Encoders, widths: Widths, generator: Generator) -> Objective:
        log_scale = torch.tensor(-math.log(self.temperature))
        return BoundLoss(clip_loss, log_scale=nn.Parameter(log_scale))


def clip_loss(scores: Mapping[str, Tensor], _: Batch, log_scale: Tensor) -> Tensor:
    """InfoNCE loss over all pairs of views, whose temperature is trained on a logarithmic scale."""
    temperature = log_scale.clamp(max=_LARGEST_LOG_SCALE).neg().exp()
    return summed(info_nce(F, G, temperature) for F, G in combinations(scores.values(), 2))


class TwoBranch(StartedNetworks):
    r"""Two-branch networks that rank both ways and keep neighbourhoods together [1]_.

    .. math::

        \min \; & H(d(f, g)) + λ_1 H(d(g, f)) + λ_2 H(d(f, f)) + λ_3 H(d(g, g)), \\
        & H(D) = \operatorname*{mean}_{i, \; j ∈ N(i), \; k ∉ N(i)}
            \max(0, \; m + D_{ij} - D_{ik}),

    with Euclidean distances d of outputs scaled to length 1. Neighbours N(i) are rows with the same
    label if `fit` is given labels; otherwise the row of the same object only, and the last two
    terms vanish. Views with labels may be unpaired.

    Parameters and attributes that are not listed here are those of
    `mvcca.deep.bases.StartedNetworks`.

    Parameters
    ----------
    margin : float, default=0.1
        Margin m.
    backward : float, default=2.0
        Weight λ₁ of ranking rows of the first view for rows of the second.
    structure : pair of float, default=(0.1, 0.2)
        Weights λ₂ and λ₃ of the neighbourhoods within each view.
    mining : int, optional
        Number of rows k that count for each pair of neighbours i, j in each term: those of the
        batch with the largest violations, as in [1]_. By default all rows count.
    dropout : float, default=0.5
        Dropout after each hidden layer.
    hidden_layer_sizes : sequence of int, or mapping of str to sequence, default=(2048,)
        Widths of the hidden layers, for all views or by view. Each hidden layer is linear → ReLU →
        dropout; the output is batch-normalized.
    batch_size : int, default=200
        Rows per batch; all rows if there are fewer. With labels, memory is proportional to the
        number of neighbours in a batch times its rows.
    optimizer : {"rmsprop", "adam", "sgd"} or callable, default="adam"
        Name of an optimizer, a class of `torch.optim`, or a callable with the same signature.
    monitor : str or callable, default="valid_mrr"
        Quantity compared across epochs on the validation rows.

    References
    ----------
    .. [1] Wang, Li and Lazebnik, "Learning Deep Structure-Preserving Image-Text Embeddings", CVPR
       2016.

    Examples
    --------
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.deep import TwoBranch
    >>> views = load_digits_views().views
    >>> model = TwoBranch(8, hidden_layer_sizes=(64,), max_epochs=3, start="random")
    >>> model = model.set_params(random_state=0).fit(views)
    >>> {name: scores.shape for name, scores in model.transform(views).items()}
    {'left': (1797, 8), 'right': (1797, 8)}
    """

    margin: float = parameter(0.1, POSITIVE)
    backward: float = parameter(2.0, NOT_NEGATIVE)
    structure: Sequence[float] = parameter((0.1, 0.2), "array-like")
    mining: int | None = parameter(None, at_least(1), None)
    dropout: float = parameter(0.5, BELOW_1)
    hidden_layer_sizes: Sequence[int] | Mapping[str, Sequence[int]] = (2048,)
    batch_size: int = 200
    optimizer: Any = "adam"
    monitor: Any = "valid_mrr"

    requires = replace(StartedNetworks.requires, views=(2, 2), pairs=False)
    _network_parameters = ("hidden_layer_sizes", "dropout")

    def _reads_labels(self) -> bool:
        return True

    def _can_choose(self) -> bool:
        return self._labels is None and super()._can_choose()

    def _mlp_options(self) -> dict[str, Any]:
        return {"batch_norm": False, "dropout": self.dropout}

    def _objective(self, encoders: Encoders, widths: Widths, generator: Generator) -> Objective:
        in_first, in_second = self.structure
        weights = (self.backward, in_first, in_second)
        return partial(_structure_loss, margin=self.margin, weights=weights, mining=self.mining)


def _structure_loss(scores: Mapping[str, Tensor], batch: Batch, **options: Any) -> Tensor:
    """The loss of a batch; without labels, only the rows of an object are neighbours."""
    F, G = scores.values()
    codes = next(iter(batch.labels.values()), torch.arange(len(F), device=F.device))
    return structure_preserving(F, G, same_label(codes), **options)


class DeViSE(DeepEstimator):
    r"""DeViSE: a linear map of one view into the space of another, such as word vectors [1]_.

    .. math::

        \min \; \frac{1}{n(n-1)} \sum_i \sum_{j≠i}
            \max\big(0, \; m - t_i^⊤ (M x_i + b) + t_j^⊤ (M x_i + b)\big), \qquad
        t = y / \lVert y \rVert.

    Rows y of the target view have no network, and there are as many components as features. Both
    views are standardized by default. Rows are ranked by their cosine. In [1]_ the targets are
    vectors of labels, which several rows share, and the network below M is fine-tuned; here the
    features x are given.

    Parameters and attributes that are not listed here are those of
    `mvcca.deep.bases.DeepEstimator`.

    Parameters
    ----------
    target : str, optional
        Name of the target view; by default the last one.
    margin : float, default=0.1
        Margin m.
    max_epochs : int or "auto", default=100
        Maximum number of passes over the rows.
    optimizer : {"rmsprop", "adam", "sgd"} or callable, default="adam"
        Name of an optimizer, a class of `torch.optim`, or a callable with the same signature.
    learning_rate : float or mapping of str to float, default=3e-2
        Learning rate of the optimizer, for all views or by view.
    monitor : str or callable, default="valid_mrr"
        Quantity compared across epochs on the validation rows.

    References
    ----------
    .. [1] Frome et al., "DeViSE: A Deep Visual-Semantic Embedding Model", NIPS 2013.

    Examples
    --------
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.deep import DeViSE
    >>> views = load_digits_views().views
    >>> model = DeViSE(target="right", max_epochs=3, random_state=0).fit(views)
    >>> {name: scores.shape for name, scores in model.transform(views).items()}
    {'left': (1797, 32), 'right': (1797, 32)}
    """

    n_components: ClassVar[None] = None  # type: ignore[assignment, misc]  # those of the target
    target: str | None = parameter(None, str, None)
    margin: float = parameter(0.1, POSITIVE)
    max_epochs: int | str = 100
    optimizer: Any = "adam"
    learning_rate: float | Mapping[str, float] = 3e-2
    monitor: Any = "valid_mrr"

    requires = replace(DeepEstimator.requires, views=(2, 2))

    def _target(self, names: tuple[str, ...]) -> str:
        if self.target is not None and self.target not in names:
            raise ValueError(f"target must be one of the views {list(names)}, got {self.target!r}.")
        return self.target or names[-1]

    def _networks(self, generator: Generator) -> Encoders:
        target = self._target(self.view_names_)
        networks = {
            name: nn.Identity() if name == target else linear(n, self._widths[target], generator)
            for name, n in self._widths.items()
        }
        return Encoders(networks)

    def _objective(self, encoders: Encoders, widths: Widths, generator: Generator) -> Objective:
        return partial(_devise_loss, target=self._target(encoders.names), margin=self.margin)


def _devise_loss(scores: Mapping[str, Tensor], _: Batch, *, target: str, margin: float) -> Tensor:
    """The loss of a batch, as a mean over the mismatches."""
    mapped = next(F for name, F in scores.items() if name != target)
    return devise(mapped, scores[target], margin, "mean")
