"""Modality-specific deep structures, trained to find one match among more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Generator, Tensor, nn

from mvcca.base.parameters import POSITIVE, at_least, parameter
from mvcca.deep._bases.estimator import Widths
from mvcca.deep._bases.started import StartedNetworks
from mvcca.deep._losses.batch import Batch
from mvcca.deep._networks.weights import drawn_seed
from mvcca.deep.encoders import WCNN, Encoders
from mvcca.deep.functional import one_versus_more, other_rows
from mvcca.deep.layers import linear
from mvcca.deep.trainer import Objective


class MSDS(StartedNetworks):
    r"""Modality-specific deep structures for retrieval of one view by another [1]_.

    Trains a network f of the queries and a network g of the items to find the match x_i of query
    t_i among c other items of the batch, which are drawn anew in every step,

    .. math::

        \min \; -\frac{1}{n} \sum_i \log \frac{\exp(γ s_{ii})}
            {\exp(γ s_{ii}) + \sum_{j=1}^{c} \exp(γ s_{i n_{ij}})}, \qquad
        s_{ij} = \cos(f(t_i), g(x_j)).

    With γ = 1, the published loss, it cannot fall below log(1 + c exp(-2)): 0.43 for c = 4. The
    scores are the networks' outputs, ranked by cosine.

    The networks fit their view: multilayer perceptrons for features (variant v1 of [1]_), and with
    `tokens` a convolutional network of words for texts (variant v2). For images themselves, the
    full method, pass `encoders` with a convolutional network, and learning rates by view.

    Parameters and attributes that are not listed here are those of
    `mvcca.deep.bases.StartedNetworks`.

    Parameters
    ----------
    query : str, optional
        View of the queries, such as the texts; by default the last one.
    tokens : str or sequence of str, optional
        View or views whose rows are sequences of words: positions in a vocabulary, with 0 for
        padding at the end and 1 for unknown words. Their default network is
        `mvcca.deep.encoders.WCNN` with the widths of [1]_, and a linear layer to `n_components`
        outputs. Words beyond those of the training rows count as unknown.
    n_negatives : int, default=4
        Number c of other items per query.
    gamma : float, default=1.0
        Scale γ of the cosines. With the published 1, the loss has little left to gain once the
        cosines of matches are high; on translated sentences, 10 with 50 negatives retrieves better.
    hidden_layer_sizes : sequence of int, or mapping of str to sequence, default=(512,)
        Widths of the hidden layers, for all views or by view: linear → ReLU. Views of `tokens`
        have none.
    batch_size : int, default=100
        Rows per batch; all rows if there are fewer. Not published.
    max_epochs : int or "auto", default=100
        Maximum number of passes over the rows.
    optimizer : {"rmsprop", "adam", "sgd"} or callable, default="sgd"
        Name of an optimizer, a class of `torch.optim`, or a callable with the same signature. "sgd"
        has Nesterov momentum 0.9; [1]_ does not publish the momentum.
    learning_rate : float or mapping of str to float, default=1e-3
        Learning rate of the optimizer, for all views or by view. [1]_ uses 0.01 for networks of
        words and 0.001 for the others.
    weight_decay : float, default=5e-4
        Weight decay of the optimizer. Not published.
    monitor : str or callable, default="valid_mrr"
        Quantity compared across epochs on the validation rows.

    References
    ----------
    .. [1] Wang, He, Kang, Xiang and Pan, "Image-Text Cross-Modal Retrieval via Modality-Specific
       Feature Learning", ICMR 2015, eqs. (3) to (5). Its variant v2 compares 300 outputs with 512;
       here both networks have `n_components` outputs.

    Examples
    --------
    >>> from mvcca.datasets import make_gaussian_views
    >>> from mvcca.deep import MSDS
    >>> views = make_gaussian_views(500, random_state=0).views
    >>> model = MSDS(8, max_epochs=2, start="random")
    >>> model = model.set_params(random_state=0).fit(views)
    >>> {name: scores.shape for name, scores in model.transform(views).items()}
    {'view0': (500, 8), 'view1': (500, 8)}
    """

    query: str | None = parameter(None, str, None)
    tokens: str | Sequence[str] | None = parameter(None, str, "array-like", None)
    n_negatives: int = parameter(4, at_least(1))
    gamma: float = parameter(1.0, POSITIVE)
    hidden_layer_sizes: Sequence[int] | Mapping[str, Sequence[int]] = (512,)
    batch_size: int | str = 100
    max_epochs: int | str = 100
    optimizer: Any = "sgd"
    learning_rate: float | Mapping[str, float] = 1e-3
    weight_decay: float = 5e-4
    monitor: Any = "valid_mrr"

    requires = replace(StartedNetworks.requires, views=(2, 2))
    _network_parameters = ("hidden_layer_sizes", "tokens")

    def _views_of_words(self) -> list[str]:
        tokens = [] if self.tokens is None else self.tokens
        of_words = [tokens] if isinstance(tokens, str) else list(tokens)
        for name in of_words:
            _check_view("tokens", name, self.view_names_)
        return [*super()._views_of_words(), *of_words]

    def _networks(self, generator: Generator) -> Encoders:
        networks = super()._networks(generator)
        of_words = {}
        for name in self._views_of_words() if self.encoders is None else ():
            words = WCNN(self._n_words[name], generator=generator)
            n_outputs = words.n_filters * len(words.widths)
            last = linear(n_outputs, self._n_scores(), generator)
            of_words[name] = nn.Sequential(words, last)
        return Encoders({name: of_words.get(name, networks[name]) for name in networks.names})

    def _mlp_options(self) -> dict[str, Any]:
        return {"batch_norm": False, "normalize_output": False}

    def _objective(self, encoders: Encoders, widths: Widths, generator: Generator) -> Objective:
        query = encoders.names[-1] if self.query is None else self.query
        _check_view("query", query, encoders.names)
        return OneVersusMoreLoss(query, self.n_negatives, self.gamma, drawn_seed(generator))


class OneVersusMoreLoss(nn.Module):
    """Negative log probability of a query's match among `n_negatives` other rows of the batch."""

    # The other rows of step t depend on the seed and t only, so that a resumed training draws the
    # same; in evaluation mode they are the same in every epoch. `gamma` scales the cosines.

    def __init__(self, query: str, n_negatives: int, gamma: float, seed: int) -> None:
        super().__init__()
        self.query, self.n_negatives, self.gamma = query, n_negatives, gamma
        self.seed, self.n_drawn = seed, 0

    def forward(self, scores: Mapping[str, Tensor], batch: Batch) -> Tensor:
        """The loss of a batch of two paired views."""
        queries = scores[self.query]
        items = next(F for name, F in scores.items() if name != self.query)
        self.n_drawn += self.training
        step = self.n_drawn if self.training else 0
        generator = torch.Generator().manual_seed(self.seed + step)
        others = other_rows(len(items), self.n_negatives, generator).to(items.device)
        return one_versus_more(queries, items, others, self.gamma)

    def get_extra_state(self) -> dict[str, int]:
        """Position in the sequence of draws; part of `state_dict`."""
        return {"seed": self.seed, "n_drawn": self.n_drawn}

    def set_extra_state(self, state: dict[str, int]) -> None:
        """Restore the position in the sequence of draws."""
        self.seed, self.n_drawn = state["seed"], state["n_drawn"]


def _check_view(parameter: str, name: str, names: tuple[str, ...]) -> None:
    if name not in names:
        raise ValueError(f"{parameter}={name!r} is not among the views {list(names)}.")
