"""Cross-media multiple deep networks, simplified."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval
from torch import Generator

from mvcca.deep._bases.constructor import estimator
from mvcca.deep._bases.estimator import Widths
from mvcca.deep._bases.labelled import LabelledEstimator
from mvcca.deep.encoders import Encoders, mlp
from mvcca.deep.layers import linear
from mvcca.deep.objectives import CMDNLoss
from mvcca.deep.trainer import Objective


@estimator
class CMDN(LabelledEstimator):
    r"""Cross-media multiple deep networks, simplified: autoencoders with shared codes and labels.

    .. math::

        \min \; α \sum_p R_{pp} + β \sum_{p≠q} R_{pq}
            + γ \sum_{p<q} \frac{1}{2kn} \sum_i \lVert f_{pi} - f_{qi} \rVert^2 + δ L_{label},

    where R_pq is the mean squared error of the rows of view q reconstructed from the scores of view
    p, in units of the mean variance of the features of view q, and L_label the cross entropy of
    labels that one linear classifier predicts from the scores of any view.

    What [1]_ has and this estimator leaves out: restricted Boltzmann machines, which autoencoders
    replace; the missing modality's representation by Gibbs sampling, which the reconstruction of
    the other view replaces; training stage by stage with four stacked bimodal autoencoders, instead
    of which all terms are trained together; and the normalization of test rows by their own mean
    and variance. Published figures are therefore no target for it.

    Parameters
    ----------
    own_weight : float, default=1.0
        Weight α of the reconstruction of the own view.
    other_weight : float, default=1.0
        Weight β of the reconstruction of the other views.
    distance_weight : float, default=1.0
        Weight γ of the distance of codes.
    label_weight : float, default=1.0
        Weight δ of the labels.
    batch_size : int, default=100
        Rows per batch; all rows if there are fewer.
    hidden_layer_sizes : sequence of int, mapping of str to sequence, or "auto", default="auto"
        Widths of the hidden layers, for all views or by view, as in `DCCA`. Each hidden
        layer is linear → batch norm → ReLU; the output is batch-normalized too. The decoders have
        the hidden layers in reverse order, also if `encoders` are given.

    References
    ----------
    .. [1] Peng, Huang and Qi, "Cross-Media Shared Representation by Hierarchical Learning with
       Multiple Deep Networks", IJCAI 2016.

    Examples
    --------
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.deep import CMDN
    >>> data = load_digits_views()
    >>> model = CMDN(8, hidden_layer_sizes=(32,), max_epochs=3, random_state=0)
    >>> model = model.fit(data.views, data.labels)
    >>> {name: scores.shape for name, scores in model.transform(data.views).items()}
    {'left': (1797, 8), 'right': (1797, 8)}
    """

    own_weight: float = 1.0
    other_weight: float = 1.0
    distance_weight: float = 1.0
    label_weight: float = 1.0
    batch_size: int = 100

    _network_parameters = ()  # the decoders use hidden_layer_sizes even if encoders are given
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        f"{name}_weight": [Interval(Real, 0, None, closed="left")]
        for name in ("own", "other", "distance", "label")
    }

    def _objective(self, encoders: Encoders, widths: Widths, generator: Generator) -> Objective:
        targets, k = self._targets(), self._common_width(widths)
        hidden = self._hidden_sizes(encoders.names)
        decoders = {
            (source, target): mlp(
                k,
                hidden[target][::-1],
                self._widths[target],
                normalize_output=False,
                generator=generator,
            )
            for source in encoders.names
            for target in encoders.names
        }
        classifier = linear(k, targets.shape[1], generator)
        weights = (self.own_weight, self.other_weight, self.distance_weight, self.label_weight)
        return CMDNLoss(targets, classifier, decoders, weights)
