"""Ranking through a CCA layer, with plain and with dynamically scaled networks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from torch import Generator

from mvcca.base.parameters import BELOW_1, NOT_NEGATIVE, POSITIVE, one_of, parameter
from mvcca.deep._bases.cca_scores import CCAScores
from mvcca.deep._bases.estimator import Widths
from mvcca.deep._bases.started import StartedNetworks
from mvcca.deep.encoders import Encoders
from mvcca.deep.endings import STORED_CCA, Ending
from mvcca.deep.layers import CCALayer
from mvcca.deep.objectives import BoundLoss, ranking_loss
from mvcca.deep.trainer import Objective
from mvcca.problem.ridge import reg_of_names


class CCAL(StartedNetworks, CCAScores):
    r"""Ranking loss of canonical variates: networks that end in a CCA layer [1]_.

    .. math::

        \min \; \frac{1}{n(n-1)} \sum_i \sum_{j≠i} \max\big(0, \;
            m - \cos(x^*_i, y^*_i) + \cos(x^*_i, y^*_j)\big),

    plus the same with the views exchanged if `symmetric`, where x* and y* are the canonical
    variates of the networks' outputs in the batch (see `mvcca.deep.layers.CCALayer`), so that
    training adapts the networks to a projection that is always optimal for the batch. The papers
    rank by the cosine of scores, ``weighting=None``; the profile likelihood, the default as of all
    estimators that end in CCA, finds more: on MNIST halves, 2 to 12 points of mean reciprocal rank.

    Parameters and attributes that are not listed here are those of `mvcca.deep.bases.CCAScores` and
    `mvcca.deep.bases.StartedNetworks`.

    Parameters
    ----------
    memory : float, default=0.9
        Weight of earlier batches in the running means and covariances of the layer; see
        `mvcca.deep.layers.CCALayer`. [2]_ tunes it between 0.85 and 0.97. With 0, the layer sees
        each batch alone, as in [1]_.
    projection : {"refit", "stored"}, default="refit"
        Projection of the model: linear CCA of the networks' outputs for all training rows, as in
        the published implementation, or the statistics that the layer has at the end of training.
        The latter have no ``canonical_correlations_``, ``eigenvalues_`` and ``ranks_``.
    margin : float, default=0.7
        Margin m of the loss, in units of the cosine.
    symmetric : bool, default=True
        Rank both ways; otherwise rows of earlier views rank those of later ones.
    optimizer : {"rmsprop", "adam", "sgd"} or callable, default="adam"
        Name of an optimizer, a class of `torch.optim`, or a callable with the same signature.
    learning_rate : float or mapping of str to float, default=5e-3
        Learning rate of the optimizer, for all views or by view.
    monitor : str or callable, default="valid_mrr"
        Quantity compared across epochs on the validation rows.
    reg : float or mapping of str to float, default=1e-3
        Ridge of the CCA layer and of its final projection, in units of the mean variance of each
        view's network outputs; one number, or one per view.

    Attributes
    ----------
    weights_ : dict of str to ndarray, shape (n_scores, n_components_)
        Projection of the networks' outputs by view.
    means_ : dict of str to ndarray, shape (n_scores,)
        Means of the networks' outputs.

    See Also
    --------
    LearnedRanking : The same loss with trained projections.
    DSRankingCCA : The same with dynamically scaled networks.

    Notes
    -----
    Settings of [1]_ for 17,000 to 30,000 images with texts, where they differ from the defaults:

    ========================  =======================================================
    ``n_components``          128
    ``batch_size``            1000, the last one filled up with random rows
    ``hidden_layer_sizes``    none for images, (1024, 1024) with ELU for texts
    ``margin``                0.5
    ``learning_rate``         1e-3 or 2e-3
    ``memory``                0
    ``weight_decay``          2e-4
    ``symmetric``             False, in the released implementation
    ``max_epochs``            at most 1000, with `mvcca.deep.callbacks.Refinement`
    ========================  =======================================================

    References
    ----------
    .. [1] Dorfer, Schlüter, Vall, Korzeniowski and Widmer, "End-to-End Cross-Modality Retrieval
       with CCA Projections and Pairwise Ranking Loss", 2018.
    .. [2] Friedlander and Wolf, "Dynamically-Scaled Deep Canonical Correlation Analysis", 2022.

    Examples
    --------
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.deep import CCAL
    >>> views = load_digits_views().views
    >>> model = CCAL(8, hidden_layer_sizes=(32,), batch_size=300, max_epochs=3, start="random")
    >>> model = model.set_params(random_state=0)
    >>> model = model.fit(views)
    >>> {name: scores.shape for name, scores in model.transform(views).items()}
    {'left': (1797, 8), 'right': (1797, 8)}
    """

    reg: float | Mapping[str, float] = parameter(1e-3, NOT_NEGATIVE, Mapping)
    memory: float = parameter(0.9, BELOW_1)
    projection: str = parameter("refit", one_of("refit", "stored"))
    margin: float = parameter(0.7, POSITIVE)
    symmetric: bool = parameter(True, "boolean")
    optimizer: Any = "adam"
    learning_rate: float | Mapping[str, float] = 5e-3
    monitor: Any = "valid_mrr"

    requires = replace(CCAScores.requires, views=(2, 2))
    _whitens_batches = True

    def _objective(self, encoders: Encoders, widths: Widths, generator: Generator) -> Objective:
        k_f, k_g = widths.values()
        k = min(k_f, k_g, self.n_components)
        reg_f, reg_g = reg_of_names(self.reg, encoders.names).values()
        layer = CCALayer((k_f, k_g), k, reg=(reg_f, reg_g), memory=self.memory)
        return BoundLoss(
            ranking_loss,
            margin=self.margin,
            symmetric=self.symmetric,
            layer=layer,
        )

    def _ending(self) -> Ending:
        return STORED_CCA if self.projection == "stored" else super()._ending()
