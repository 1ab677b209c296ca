"""Networks trained with a pairwise ranking loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Generator, nn

from mvcca.deep._bases.estimator import Widths
from mvcca.deep._bases.parameters import POSITIVE, one_of, parameter
from mvcca.deep._bases.started import StartedNetworks
from mvcca.deep.encoders import Encoders
from mvcca.deep.layers import linear
from mvcca.deep.objectives import RankingLoss
from mvcca.deep.trainer import Objective


class LearnedRanking(StartedNetworks):
    r"""Networks whose scores rank the other view's row of the same object first [1]_.

    .. math::

        \min \; \sum_{p<q} \sum_i \sum_{j≠i} \max\big(0, \;
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
    reduction : {"mean", "sum"}, default="mean"
        Mean over the mismatches of a batch, or sum. It decides how strong weight decay is.
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
    reduction: str = parameter("mean", one_of("mean", "sum"))
    optimizer: Any = "adam"
    learning_rate: float | str | Mapping[str, float] = "auto"
    monitor: Any = "valid_mrr"

    def _new_network(
        self, n_in: int, hidden: tuple[int, ...], n_out: int, generator: Generator
    ) -> nn.Module:
        network = super()._new_network(n_in, hidden, n_out, generator)
        return nn.Sequential(*network, linear(n_out, n_out, generator))

    def _objective(self, encoders: Encoders, widths: Widths, generator: Generator) -> Objective:
        return RankingLoss(self.margin, symmetric=self.symmetric, reduction=self.reduction)
