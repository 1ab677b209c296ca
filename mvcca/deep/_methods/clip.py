"""Networks trained with the symmetric cross entropy of CLIP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Generator

from mvcca.deep._bases.estimator import Widths
from mvcca.deep._bases.parameters import BELOW_1, POSITIVE, parameter
from mvcca.deep._bases.started import StartedNetworks
from mvcca.deep.encoders import Encoders
from mvcca.deep.objectives import CLIPLoss
from mvcca.deep.trainer import Objective


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
        return CLIPLoss(self.temperature)
