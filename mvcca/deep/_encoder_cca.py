"""Deep CCA with a custom objective."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, ClassVar

from torch import Generator

from mvcca.deep._cca_scores import CCAScores
from mvcca.deep._constructor import estimator
from mvcca.deep._estimator import Widths
from mvcca.deep._networks import NetworkEstimator
from mvcca.deep.encoders import Encoders
from mvcca.deep.trainer import Objective


@estimator
class EncoderCCA(CCAScores, NetworkEstimator):
    r"""Networks trained with a custom objective, followed by linear CCA of their outputs.

    Trains one network f_p per view, with weights θ_p, to minimize a loss L,

    .. math:: \min_θ \; L\big(f_1(x_1; θ_1), …, f_V(x_V; θ_V)\big).

    `DCCA`, `SoftCCA` and the others are this estimator with a built-in objective.

    Parameters
    ----------
    objective : callable ``(scores, batch) -> loss``
        The loss to minimize, a scalar tensor. Scores are tensors by view, and the batch is the
        `mvcca.deep.objectives.Batch` that they were computed from. `fit` uses a copy; if it is a
        module, its parameters are trained.

    Examples
    --------
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.deep import EncoderCCA
    >>> def distance(scores, batch):
    ...     left, right = scores.values()
    ...     return (left - right).square().mean()
    >>> model = EncoderCCA(4, objective=distance, hidden_layer_sizes=(32,), max_epochs=2)
    >>> model.fit(load_digits_views().views).n_components_
    4
    """

    objective: Objective

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "objective": [callable],
    }

    def _objective(self, encoders: Encoders, widths: Widths, generator: Generator) -> Objective:
        return deepcopy(self.objective)
