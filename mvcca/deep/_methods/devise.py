"""DeViSE: a linear map into the space of another view."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from torch import Generator, Tensor, nn

from mvcca.deep._bases.estimator import DeepEstimator, Widths
from mvcca.deep._bases.parameters import POSITIVE, parameter
from mvcca.deep._losses.batch import Batch
from mvcca.deep.encoders import Encoders
from mvcca.deep.functional import devise
from mvcca.deep.layers import linear
from mvcca.deep.trainer import Objective


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
        return partial(_loss, target=self._target(encoders.names), margin=self.margin)


def _loss(scores: Mapping[str, Tensor], _: Batch, *, target: str, margin: float) -> Tensor:
    """The loss of a batch, as a mean over the mismatches."""
    mapped = next(F for name, F in scores.items() if name != target)
    return devise(mapped, scores[target], margin, "mean")
