"""Deep semantic matching."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Generator, Tensor, nn

from mvcca.deep._bases.estimator import Widths
from mvcca.deep._bases.mlp_estimator import NetworkEstimator
from mvcca.deep.encoders import Encoders
from mvcca.deep.objectives import LabelLoss, targets_of
from mvcca.deep.trainer import Objective


class DeepSM(NetworkEstimator):
    r"""Deep semantic matching: a classifier per view, whose posteriors are compared [1]_.

    Use it to find items with the same label; pairs are not needed.

    Trains one classifier f_p per view to predict the labels,

    .. math:: \min \; -\sum_p \frac{1}{n} \sum_i \log f_p(x_{pi})_{y_i}.

    The scores of a row are the probabilities of the labels given its features: softmax for classes,
    sigmoids, with the sum of binary cross entropies, for label sets. Networks of different views
    are trained independently, so that views may be unpaired. Rows are ranked by the cosine of their
    posteriors. There is a component for each label.

    Parameters and attributes that are not listed here are those of
    `mvcca.deep.bases.NetworkEstimator`.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int, mapping of str to sequence, or "auto", default="auto"
        Widths of the hidden layers, for all views or by view. "auto" is (256, 256) for fewer than
        10,000 training rows and (800, 800) for more. Each hidden layer is linear → batch
        norm → ReLU; the output is a softmax or sigmoids.
    encoders : mapping of str to Module, or sequence of Module, optional
        Custom networks, by view or in the order of the views: any `torch.nn.Module` that maps rows
        to posteriors of shape (n_rows, n_labels). The loss is that of the logits, the inputs of the
        last layer, if the network is a `torch.nn.Sequential` that ends in `torch.nn.Softmax` for
        classes or `torch.nn.Sigmoid` for label sets: it keeps its gradient where a posterior rounds
        to 0 or 1. `fit` trains copies. They replace the networks of `hidden_layer_sizes`, which
        must then be left at its default.
    batch_size : int, default=100
        Rows per batch; all rows if there are fewer.
    optimizer : {"rmsprop", "adam", "sgd"} or callable, default="adam"
        Name of an optimizer, a class of `torch.optim`, or a callable with the same signature.
    monitor : str or callable, default="valid_map"
        Quantity compared across epochs on the validation rows.

    References
    ----------
    .. [1] Wei et al., "Cross-Modal Retrieval with CNN Visual Features: A New Baseline", IEEE
       Transactions on Cybernetics 2017.

    Examples
    --------
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.deep import DeepSM
    >>> data = load_digits_views()
    >>> model = DeepSM(hidden_layer_sizes=(32,), max_epochs=3, random_state=0)
    >>> scores = model.fit(data.views, data.labels).transform(data.views)
    >>> scores["left"].shape, bool((scores["left"].sum(axis=1).round(4) == 1).all())
    ((1797, 10), True)
    """

    n_components: ClassVar[None] = None  # type: ignore[assignment, misc]  # one per label
    batch_size: int = 100
    optimizer: Any = "adam"
    monitor: Any = "valid_map"

    requires = replace(NetworkEstimator.requires, labels=True, pairs=False)

    def _n_scores(self) -> int:
        return targets_of(self._labels).shape[1]

    def _are_classes(self) -> bool:
        return LabelLoss(targets_of(self._labels)).are_classes

    def _mlp_options(self) -> dict[str, Any]:
        posterior = partial(nn.Softmax, dim=1) if self._are_classes() else nn.Sigmoid
        return {"normalize_output": False, "output_activation": posterior}

    def _networks(self, generator: Generator) -> Encoders:
        encoders, are_classes = super()._networks(generator), self._are_classes()
        encoders.trained = {n: logits_of(encoders[n], are_classes) for n in encoders.names}
        return encoders

    def _objective(self, encoders: Encoders, widths: Widths, generator: Generator) -> Objective:
        targets = targets_of(self._labels)
        if set(widths.values()) != {targets.shape[1]}:
            raise ValueError(
                f"The networks of DeepSM must have an output per label, {targets.shape[1]}, got "
                f"{dict(widths)}."
            )
        return LabelLoss(targets)


def logits_of(network: nn.Module, are_classes: bool) -> Callable[[Tensor], Tensor]:
    """A network without the activation that gives its posteriors, or followed by its inverse."""
    activation = nn.Softmax if are_classes else nn.Sigmoid
    if isinstance(network, nn.Sequential) and isinstance(network[-1], activation):
        return network[:-1]

    def logits(X: Tensor) -> Tensor:
        """Those of classes up to a constant; no gradient where a posterior rounds to 0 or 1."""
        posteriors = network(X)
        p = posteriors.clamp(min=torch.finfo(posteriors.dtype).tiny)
        return p.log() if are_classes else p.log() - torch.log1p(-p + 1e-7)

    return logits
