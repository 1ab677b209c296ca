"""Correspondence autoencoders: of the own view, of the other view, or of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, product
from typing import Any

from torch import Generator, Tensor, nn
from torch.nn.functional import log_softmax

from mvcca.base.parameters import SHARE, one_of, parameter
from mvcca.base.tuned_fits import setting_by_view
from mvcca.deep._bases.estimator import Widths
from mvcca.deep._bases.mlp_estimator import SIGMOID, NetworkEstimator
from mvcca.deep._bases.pretrained import Pretrained, StageRows, divergence_of, train_stage
from mvcca.deep._losses.batch import Batch, summed
from mvcca.deep._networks.rbm import RBM
from mvcca.deep._training.training import Training
from mvcca.deep.encoders import Encoders, mlp
from mvcca.deep.endings import Ending, as_trained
from mvcca.deep.functional import reconstruction_error
from mvcca.deep.objectives import BoundLoss
from mvcca.deep.samplers import Sample
from mvcca.deep.trainer import Objective, Trainer


class CorrAE(Pretrained, NetworkEstimator):
    r"""Correspondence autoencoder: one autoencoder per view, with similar codes [1]_.

    With codes f_p, and decoders h_p that mirror the networks, each pair of views p, q has the loss

    .. math::

        \min \; (1 - α) \, \frac{1}{n} \sum_i \Big( \lVert x_{pi} - h_p(f_{pi}) \rVert^2
            + \lVert x_{qi} - h_q(f_{qi}) \rVert^2 \Big)
            + α \, \frac{1}{n} \sum_i \lVert f_{pi} - f_{qi} \rVert^2.

    The scores are the codes, ranked by Euclidean distance.

    Parameters and attributes that are not listed here are those of `mvcca.deep.bases.Pretrained`
    and `mvcca.deep.bases.NetworkEstimator`.

    Parameters
    ----------
    correspondence : float, default=0.8
        Weight α of the distance of codes.
    pretraining : {"rbm"}, optional
        "rbm" starts from restricted Boltzmann machines, as published: one per layer of each
        network, trained on the outputs of the one below. Their transposed weights start the
        decoders. The lowest one has Gaussian visible units, or the replicated softmax for word
        counts. By default all layers start from random weights.
    pretraining_epochs : int, default=50
        Number of passes over the rows for each layer; see `pretraining`. It is not resumed: a fit
        that is interrupted there starts over.
    batch_size : int, default=100
        Rows per batch; all rows if there are fewer.
    max_epochs : int or "auto", default=200
        Maximum number of passes over the rows.
    optimizer : {"rmsprop", "adam", "sgd"} or callable, default="adam"
        Name of an optimizer, a class of `torch.optim`, or a callable with the same signature.
    learning_rate : float or mapping of str to float, default=3e-3
        Learning rate of the optimizer, for all views or by view.
    weight_decay : float, default=1e-4
        Weight decay of the optimizer.
    monitor : str or callable, default="valid_mrr"
        Quantity compared across epochs on the validation rows.
    hidden_layer_sizes : sequence of int, or mapping of str to sequence, default=(256,)
        Widths of the hidden layers, for all views or by view. Hidden layers and codes are linear →
        sigmoid. The decoders have the hidden layers in reverse order, also if `encoders` are given,
        and end in a linear layer.

    See Also
    --------
    CrossCorrAE : Codes reconstruct the other view, or both.
    CorrNet : An autoencoder with one hidden layer for both views.

    Notes
    -----
    Published settings, where they differ from the defaults:

    ========================  =======================================================
    ``hidden_layer_sizes``    (1024,)
    ``correspondence``        0.8; for `CrossCorrAE` 0.2, or 0.8 with ``full=True``
    ``pretraining``           "rbm"
    ========================  =======================================================

    The weight α depends on the scale of the rows and on their number of features: of standardized
    rows, the codes of `CrossCorrAE` with α = 0.2 reconstruct the other view but are not alike.

    References
    ----------
    .. [1] Feng, Wang and Li, "Cross-modal Retrieval with Correspondence Autoencoder", MM 2014.

    Examples
    --------
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.deep import CorrAE
    >>> views = load_digits_views().views
    >>> model = CorrAE(8, hidden_layer_sizes=(32,), max_epochs=3, random_state=0).fit(views)
    >>> {name: scores.shape for name, scores in model.transform(views).items()}
    {'left': (1797, 8), 'right': (1797, 8)}
    """

    correspondence: float = parameter(0.8, SHARE)
    pretraining: str | None = parameter(None, one_of("rbm"), None)
    hidden_layer_sizes: Sequence[int] | Mapping[str, Sequence[int]] = (256,)
    batch_size: int | str = 100
    max_epochs: int | str = 200
    optimizer: Any = "adam"
    learning_rate: float | Mapping[str, float] = 3e-3
    weight_decay: float = 1e-4
    monitor: Any = "valid_mrr"

    # The decoders use hidden_layer_sizes even if encoders are given.
    _network_parameters = ("pretraining",)

    def _ending(self) -> Ending:
        return as_trained("euclidean")

    def _mlp_options(self) -> dict[str, Any]:
        return SIGMOID

    def _reconstructed(self, names: tuple[str, ...]) -> list[tuple[str, str]]:
        """Pairs of the view of a code and the view that it reconstructs."""
        return [(name, name) for name in names]

    def _objective(self, encoders: Encoders, widths: Widths, generator: Generator) -> Objective:
        hidden = self._hidden_sizes(encoders.names)
        options = self._mlp_options() | {"output_activation": None}
        decoders = {
            (source, target): mlp(
                widths[source],
                hidden[target][::-1],
                self._widths[target],
                generator=generator,
                **options,
            )
            for source, target in self._reconstructed(encoders.names)
        }
        return BoundLoss(
            correspondence_loss,
            ways=tuple(decoders),
            decoders=nn.ModuleList(decoders.values()),
            likelihood=setting_by_view(self, "likelihood", encoders.names),
            weight=self.correspondence,
        )

    def _pretrain(
        self, trainer: Trainer, training: Training, sample: Sample, validation: Sample | None
    ) -> None:
        if self.pretraining is None:
            return
        loss: Any = trainer.objective
        layers = {name: _linear_layers(trainer.encoders[name]) for name in trainer.encoders.names}
        mirrors: dict[str, list[list[nn.Linear]]] = {name: [] for name in layers}
        for (_, target), decoder in zip(loss.ways, loss.decoders, strict=True):
            mirrors[target].append(_linear_layers(decoder)[::-1])
        generator = Generator().manual_seed(training.seeds[0])
        rows, stage = StageRows(sample, None, trainer.encoders.inputs), self._stage(training)
        for depth in range(max(map(len, layers.values()))):
            machines = {}
            for name, own in layers.items():
                if depth < len(own):
                    visible = "bernoulli" if depth else loss.likelihood[name]
                    shape = own[depth].in_features, own[depth].out_features
                    machines[name] = RBM(*shape, visible, generator)
            title = f"machines of layer {depth + 1}"
            train_stage(title, divergence_of(machines), rows, stage)
            for name, machine in machines.items():
                machine.start(layers[name][depth], [mirror[depth] for mirror in mirrors[name]])
            rows = rows.through({name: machines.get(name, nn.Identity()) for name in layers})


class CrossCorrAE(CorrAE):
    r"""Correspondence autoencoder whose codes reconstruct the other view, or both views [1]_.

    The loss is that of `CorrAE` with other reconstructions: for two views p, q

    .. math::

        \lVert x_{pi} - h_{qp}(f_{qi}) \rVert^2 + \lVert x_{qi} - h_{pq}(f_{pi}) \rVert^2,

    and with ``full=True`` also those of the own view, as in `CorrAE`.

    Parameters and attributes that are not listed here are those of `CorrAE`.

    Parameters
    ----------
    full : bool, default=False
        Whether each code reconstructs its own view, too: the full correspondence autoencoder.

    Notes
    -----
    For published settings see `CorrAE`.

    References
    ----------
    .. [1] Feng, Wang and Li, "Cross-modal Retrieval with Correspondence Autoencoder", MM 2014.

    Examples
    --------
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.deep import CrossCorrAE
    >>> views = load_digits_views().views
    >>> model = CrossCorrAE(8, hidden_layer_sizes=(32,), max_epochs=3, random_state=0).fit(views)
    >>> {name: scores.shape for name, scores in model.transform(views).items()}
    {'left': (1797, 8), 'right': (1797, 8)}
    """

    full: bool = parameter(False, "boolean")

    def _reconstructed(self, names: tuple[str, ...]) -> list[tuple[str, str]]:
        return [(p, q) for p, q in product(names, names) if self.full or p != q]


def correspondence_loss(
    scores: Mapping[str, Tensor],
    batch: Batch,
    ways: Sequence[tuple[str, str]],
    decoders: nn.ModuleList,
    likelihood: Mapping[str, str],
    weight: float,
) -> dict[str, Tensor]:
    """Reconstruction of views from codes, and distance of the codes with weight α.

    Each decoder has a way (p, q): it maps the codes of view p to rows of view q.
    """
    errors = [
        _error(likelihood[target], batch.views[target].float(), decoder(scores[source]))
        for (source, target), decoder in zip(ways, decoders, strict=True)
    ]
    distances = [reconstruction_error(F, G) for F, G in combinations(scores.values(), 2)]
    return {
        "reconstruction": (1 - weight) * summed(errors),
        "correspondence": weight * summed(distances),
    }


def _linear_layers(network: nn.Module) -> list[nn.Linear]:
    return [layer for layer in network.modules() if isinstance(layer, nn.Linear)]


def _error(likelihood: str, X: Tensor, decoded: Tensor) -> Tensor:
    if likelihood == "gaussian":
        return reconstruction_error(X, decoded)
    return -(X * log_softmax(decoded, dim=1)).sum(dim=1).mean()
