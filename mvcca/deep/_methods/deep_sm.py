"""Deep semantic matching."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

from torch import Generator, nn

from mvcca.deep._bases.constructor import estimator
from mvcca.deep._bases.estimator import Widths
from mvcca.deep._bases.labelled import LabelledEstimator
from mvcca.deep.encoders import Encoders
from mvcca.deep.objectives import LabelLoss, PosteriorLoss
from mvcca.deep.trainer import Objective
from mvcca.views import Views


@estimator
class DeepSM(LabelledEstimator):
    r"""Deep semantic matching: a classifier per view, whose posteriors are compared [1]_.

    Trains one classifier f_p per view to predict the labels,

    .. math:: \min \; -\sum_p \frac{1}{n} \sum_i \log f_p(x_{pi})_{y_i}.

    The scores of a row are the probabilities of the labels given its features: softmax for classes,
    sigmoids, with the sum of binary cross entropies, for label sets. Networks of different views
    are trained independently, so that views may be unpaired. Rows are ranked by the cosine of their
    posteriors. There is a component for each label.

    Parameters
    ----------
    batch_size : int, default=100
        Rows per batch; all rows if there are fewer.
    hidden_layer_sizes : sequence of int, mapping of str to sequence, or "auto", default="auto"
        Widths of the hidden layers, for all views or by view, as in `DCCA`. Each hidden
        layer is linear → batch norm → ReLU; the output is a softmax or sigmoids.
    encoders : mapping of str to Module, or sequence of Module, optional
        Custom networks, by view or in the order of the views: any `torch.nn.Module` that maps rows
        to posteriors of shape (n_rows, n_labels). `fit` trains copies. They replace the networks of
        `hidden_layer_sizes`, which must then be left at its default.

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

    _needs_pairs = False

    def _n_scores(self, views: Views) -> int:
        return self._targets().shape[1]

    def _mlp_options(self) -> dict[str, Any]:
        are_classes = LabelLoss(self._targets()).are_classes
        posterior = partial(nn.Softmax, dim=1) if are_classes else nn.Sigmoid
        return {"normalize_output": False, "output_activation": posterior}

    def _objective(self, encoders: Encoders, widths: Widths, generator: Generator) -> Objective:
        targets = self._targets()
        if set(widths.values()) != {targets.shape[1]}:
            raise ValueError(
                f"The networks of DeepSM must have an output per label, {targets.shape[1]}, got "
                f"{dict(widths)}."
            )
        return PosteriorLoss(targets)
