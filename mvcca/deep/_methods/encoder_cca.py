"""Deep CCA with a custom objective."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import field

from torch import Generator

from mvcca.base.parameters import constraints, one_of, parameter
from mvcca.deep._bases.cca_scores import CCAScores
from mvcca.deep._bases.estimator import Widths
from mvcca.deep._bases.started import StartedNetworks
from mvcca.deep.encoders import Encoders
from mvcca.deep.endings import STORED_CCA, Ending, as_trained, stored_layer
from mvcca.deep.trainer import Objective


class EncoderCCA(CCAScores, StartedNetworks):
    r"""Networks trained with a custom objective, followed by linear CCA of their outputs.

    Trains one network f_p per view, with weights θ_p, to minimize a loss L,

    .. math:: \min_θ \; L\big(f_1(x_1; θ_1), …, f_V(x_V; θ_V)\big).

    `DCCA`, `SoftCCA` and the others are this estimator with a built-in objective. With `ending`,
    the scores are the networks' outputs as trained, or what a CCA layer stored.

    Parameters and attributes that are not listed here are those of `mvcca.deep.bases.CCAScores` and
    `mvcca.deep.bases.StartedNetworks`.

    Parameters
    ----------
    objective : callable ``(scores, batch) -> loss``
        The loss to minimize, a scalar tensor. Scores are tensors by view, and the batch is the
        `mvcca.deep.objectives.Batch` that they were computed from. `fit` uses a copy; if it is a
        module, its parameters are trained.
    ending : {"linear_cca", "as_trained", "cca_layer"}, default="linear_cca"
        How the networks' outputs become scores: by linear CCA of the training rows; as they are; or
        by the projection that a `mvcca.deep.layers.CCALayer` in the objective stored in its last
        step. The last two do not use `reg`. Retrieval ranks scores as trained by their cosine, and
        the others by the profile likelihood, as `mvcca.CCA` does.
    start : {"random", "auto", "linear"}, default="random"
        Initial networks; see `mvcca.deep.bases.StartedNetworks`. An objective may want anything, so
        that by default they do not start from linear CCA.

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

    objective: Objective = field(metadata=constraints(callable))
    ending: str = parameter("linear_cca", one_of("linear_cca", "as_trained", "cca_layer"))
    start: str = "random"

    def _objective(self, encoders: Encoders, widths: Widths, generator: Generator) -> Objective:
        if self.ending == "cca_layer" and stored_layer(self.objective) is None:
            raise ValueError(
                'ending="cca_layer" takes the projection that a mvcca.deep.layers.CCALayer stored, '
                f"but {self.objective!r} is not a module that holds one. Use another ending, or "
                "mvcca.deep.objectives.BoundLoss(ranking_loss, layer=CCALayer(n_components))."
            )
        return deepcopy(self.objective)

    def _ending(self) -> Ending:
        if self.ending == "linear_cca":
            return super()._ending()
        return as_trained() if self.ending == "as_trained" else STORED_CCA
