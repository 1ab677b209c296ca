"""Cross-media multiple deep networks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from typing import Any, cast

import torch
from torch import Generator, Tensor, nn

from mvcca.base.parameters import NOT_NEGATIVE, at_least, one_of, parameter
from mvcca.base.tuned_fits import setting_by_view
from mvcca.deep._bases.estimator import Widths
from mvcca.deep._bases.pretrained import Pretrained, StageRows, divergence_of, train_stage
from mvcca.deep._losses.batch import Batch, summed
from mvcca.deep._methods.corr_ae import correspondence_loss
from mvcca.deep._networks.rbm import RBM
from mvcca.deep._training.host import check_memory
from mvcca.deep._training.training import Training
from mvcca.deep.encoders import Encoders
from mvcca.deep.functional import reconstruction_error
from mvcca.deep.layers import Standardize, linear
from mvcca.deep.objectives import BoundLoss, LabelLoss, targets_of
from mvcca.deep.samplers import Sample
from mvcca.deep.trainer import Objective, Trainer

Networks = Mapping[str, Any]  # sequences of layers, by view


class CMDN(Pretrained):
    r"""Cross-media multiple deep networks, which are trained in stages [1]_.

    The network of each view is trained in stages; each one takes the layers before it as they are.

    1. An autoencoder of two ReLU layers represents the view by itself.
    2. A deep belief network, two restricted Boltzmann machines, feeds a joint machine of all views.
       Its hidden units represent what the views have in common. For one view, the units of the
       others are inferred by mean-field.
    3. A machine for each view fuses both representations.
    4. Three ReLU layers for each view learn to predict the labels.
    5. Bimodal autoencoders are stacked: each level maps the views to codes σ(W_p z_p + c), from
       which decoders reconstruct the rows z_q of all views, and a classifier predicts the labels,

       .. math::

           \min \; \sum_h \Big( \frac{1}{d} \sum_q \frac{1}{n} \sum_i
               \lVert z_{qi} - g_q(h_i) \rVert^2 + γ L_{label}(h) \Big),

       where d is the number of features of all z_q. The first sum is over the codes h of each view
       alone and of all views together, σ(Σ_p W_p z_p + c).

    The scores are the codes of the last level, ranked by cosine. `history_`, `monitor` and
    `best_epoch_` are those of the last level; with validation rows, the others keep the epoch with
    the lowest loss.

    Parameters and attributes that are not listed here are those of `mvcca.deep.bases.Pretrained`.

    Parameters
    ----------
    width : int or "auto", default="auto"
        Number of units w of most layers. The autoencoder has w and w / 2, the machines 2 w and w (w
        and w for word counts), the joint machine 2 w, and levels begin with w / 2 and halve down to
        `n_components`. "auto" is 256 for fewer than 10,000 training rows and 1,024, as published,
        for more.
    n_levels : int, default=4
        Number of stacked bimodal autoencoders.
    label_weight : float, default=1.0
        Weight γ of the labels in each level.
    batch_size : int, default=100
        Rows per batch; all rows if there are fewer.
    optimizer : {"rmsprop", "adam", "sgd"} or callable, default="adam"
        Name of an optimizer, a class of `torch.optim`, or a callable with the same signature.
    learning_rate : float or mapping of str to float, default=3e-3
        Learning rate of the optimizer in all stages, for all views or by view.
    monitor : str or callable, default="valid_map"
        Quantity compared across epochs on the validation rows.

    Notes
    -----
    The released implementation of [1]_ trains machines and autoencoders for 100,000 steps by SGD.
    Its machines are also made sparse, and rows are standardized between stages by the mean and
    variance of the set they belong to; here by those of the training rows. It standardizes the
    scores in this way, too, which is left out here. The outputs of stages are held in memory.

    References
    ----------
    .. [1] Peng, Huang and Qi, "Cross-Media Shared Representation by Hierarchical Learning with
       Multiple Deep Networks", IJCAI 2016.

    Examples
    --------
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.deep import CMDN
    >>> data = load_digits_views()
    >>> model = CMDN(8, width=32, pretraining_epochs=2, max_epochs=3, random_state=0)
    >>> model = model.fit(data.views, data.labels)
    >>> {name: scores.shape for name, scores in model.transform(data.views).items()}
    {'left': (1797, 8), 'right': (1797, 8)}
    """

    width: int | str = parameter("auto", at_least(2), one_of("auto"))
    n_levels: int = parameter(4, at_least(1))
    label_weight: float = parameter(1.0, NOT_NEGATIVE)
    batch_size: int = 100
    optimizer: Any = "adam"
    learning_rate: float | Mapping[str, float] = 3e-3
    monitor: Any = "valid_map"

    requires = replace(Pretrained.requires, labels=True)

    def _code_sizes(self) -> list[int]:
        """Widths of the codes of each level."""
        k, w = self._n_scores(), self._setting("width")
        return [max(k, w >> level) for level in range(1, int(self.n_levels))] + [k]

    def _networks(self, generator: Generator) -> Encoders:
        w = self._setting("width")
        likelihood = setting_by_view(self, "likelihood", self.view_names_)
        joint = RBM(w * len(self._widths), 2 * w, generator=generator)
        biases = [linear(1, size, generator).bias for size in self._code_sizes()]
        networks = {}
        for position, (name, n_features) in enumerate(self._widths.items()):
            lowest = w if likelihood[name] == "replicated_softmax" else 2 * w
            machines = (
                RBM(n_features, lowest, likelihood[name], generator),
                RBM(lowest, w, generator=generator),
            )
            networks[name] = nn.Sequential(
                SeparateRepresentations(
                    _relu_layers((n_features, w, w // 2), generator),
                    nn.Sequential(*machines),
                    joint,
                    slice(position * w, (position + 1) * w),
                ),
                Standardize(w // 2 + 2 * w),
                RBM(w // 2 + 2 * w, w, "gaussian", generator),
                Standardize(w),
                _relu_layers((w, w, w, w), generator),
                Standardize(w),
                *_levels(w, biases, generator),
            )
        encoders = Encoders(networks)
        # The objective sees the rows of the last level, which is a part of it.
        encoders.trained = {name: _fixed(network[:-1]) for name, network in networks.items()}
        return encoders

    def _objective(self, encoders: Encoders, widths: Widths, generator: Generator) -> Objective:
        return self._level_loss(encoders, -1, generator)

    def _level_loss(self, encoders: Encoders, position: int, generator: Generator) -> Objective:
        """The loss of the level at a position of the networks."""
        layers = {name: encoders[name][position][0] for name in encoders.names}
        size, targets = next(iter(layers.values())).out_features, targets_of(self._labels)
        decoders = {name: linear(size, L.in_features, generator) for name, L in layers.items()}
        classifier = linear(size, targets.shape[1], generator)
        return BoundLoss(
            bimodal_loss,
            labels=LabelLoss(targets),
            classifier=classifier,
            decoders=Encoders(decoders),
            layers=Encoders(layers),
            weight=self.label_weight,
        )

    def _pretrain(
        self, trainer: Trainer, training: Training, sample: Sample, validation: Sample | None
    ) -> None:
        self._check_memory(sample)
        stage = self._stage(training)
        encoders, generator = trainer.encoders, Generator().manual_seed(training.seeds[0])
        networks = {name: encoders[name] for name in encoders.names}
        rows = StageRows(sample, validation, encoders.inputs)
        self._train_beliefs(networks, rows.without_validation(), stage)
        self._train_autoencoders(networks, rows, stage, generator)
        rows = rows.through(_layers(networks, 0)).standardized(_layers(networks, 1))
        fusion = divergence_of(_layers(networks, 2))
        train_stage("fusion", fusion, rows.without_validation(), stage)
        rows = rows.through(_layers(networks, 2)).standardized(_layers(networks, 3))
        w, targets = self._setting("width"), targets_of(self._labels)
        classifiers = {
            name: nn.Sequential(layers, linear(w, targets.shape[1], generator))
            for name, layers in _layers(networks, 4).items()
        }
        train_stage("classifiers", LabelLoss(targets), rows, stage, classifiers)
        rows = rows.through(_layers(networks, 4)).standardized(_layers(networks, 5))
        for level in range(1, int(self.n_levels)):
            loss = self._level_loss(encoders, 5 + level, generator)
            train_stage(f"level {level}", loss, rows, stage)
            rows = rows.through(_layers(networks, 5 + level))

    def _train_beliefs(self, networks: Networks, rows: StageRows, stage: Training) -> None:
        """Train the machines of each view, then that of all views."""
        separate = _layers(networks, 0)
        for depth in range(2):
            machines = {name: parts.machines[depth] for name, parts in separate.items()}
            title = f"machines of layer {depth + 1}"
            train_stage(title, divergence_of(machines), rows, stage)
            rows = rows.through(machines)
        joint = next(iter(separate.values())).inference["machine"]
        train_stage("joint machine", divergence_of(joint), rows, stage)

    def _train_autoencoders(
        self, networks: Networks, rows: StageRows, stage: Training, generator: Generator
    ) -> None:
        """Train one layer of the autoencoder of each view, then both."""
        w = self._setting("width")
        encoders = {name: parts.autoencoder for name, parts in _layers(networks, 0).items()}
        likelihood = setting_by_view(self, "likelihood", tuple(networks))
        decoders = {name: linear(w, self._widths[name], generator) for name in networks}
        inner = {name: _relu_layers((w // 2, w), generator) for name in networks}
        for depth in (1, 2):
            layers = {name: encoder[: 2 * depth] for name, encoder in encoders.items()}
            loss = BoundLoss(
                correspondence_loss,
                ways=[(name, name) for name in decoders],
                decoders=nn.ModuleList(decoders.values()),
                likelihood=likelihood,
                weight=0.0,
            )
            train_stage(f"autoencoders of depth {depth}", loss, rows, stage, layers)
            decoders = {name: nn.Sequential(inner[name], D) for name, D in decoders.items()}

    def _check_memory(self, sample: Sample) -> None:
        """Refuse rows whose representations do not fit in memory."""
        width = 6 * self._setting("width") * len(self._widths)  # of two stages
        needed = 4 * len(sample.views) * width
        check_memory(needed, "CMDN", "the outputs of its stages", "Lower width.")


class SeparateRepresentations(nn.Module):
    """Representation of a view by itself, beside what it says of all views.

    The joint machine has the units of the view in some of its columns.
    """

    def __init__(
        self, autoencoder: nn.Sequential, machines: nn.Sequential, joint: RBM, columns: slice
    ) -> None:
        super().__init__()
        self.autoencoder, self.machines, self.columns = autoencoder, machines, columns
        self.inference = nn.ModuleDict({"machine": joint})  # as its tensors are named in files

    def forward(self, X: Tensor) -> Tensor:
        """Both representations, side by side."""
        joint = cast("RBM", self.inference["machine"])
        shared = joint.inferred(self.machines(X), self.columns)
        return torch.cat([self.autoencoder(X), shared], dim=1)


def _fixed(layers: nn.Sequential) -> Callable[[Tensor], Tensor]:
    """Layers through which no gradient flows."""

    def outputs(X: Tensor) -> Tensor:
        with torch.no_grad():
            return layers(X)

    return outputs


def _layers(networks: Networks, position: int) -> dict[str, Any]:
    return {name: network[position] for name, network in networks.items()}


def _relu_layers(sizes: Sequence[int], generator: Generator) -> nn.Sequential:
    pairs = [(linear(*widths, generator), nn.ReLU()) for widths in pairwise(sizes)]
    return nn.Sequential(*chain.from_iterable(pairs))


def _levels(
    n_features: int, biases: Sequence[nn.Parameter], generator: Generator
) -> list[nn.Sequential]:
    """Sigmoid layers with the biases that all views share."""
    widths = [n_features, *(len(bias) for bias in biases)]
    layers = [linear(*sizes, generator) for sizes in pairwise(widths)]
    for layer, bias in zip(layers, biases, strict=True):
        layer.bias = bias
    return [nn.Sequential(layer, nn.Sigmoid()) for layer in layers]


def bimodal_loss(
    scores: Mapping[str, Tensor],
    batch: Batch,
    labels: LabelLoss,
    classifier: nn.Module,
    decoders: Encoders,
    layers: Encoders,
    weight: float,
) -> dict[str, Tensor]:
    """Reconstructions and labels of the codes of all views, in a level whose rows are the scores.

    The codes of a batch are those of each view alone, σ(W_p z_p + c), and of all of them together,
    σ(Σ_p W_p z_p + c), by linear `layers` with one bias c. From each code, decoders reconstruct all
    views, and a classifier predicts the labels, with weight γ beside the squared error per feature.
    """
    rows = {name: Z.detach() for name, Z in scores.items()}
    alone = layers(rows)
    bias = layers[layers.names[0]].bias
    together = sum(alone.values()) - (len(alone) - 1) * bias
    codes = [torch.sigmoid(part) for part in (*alone.values(), together)]
    n_features = sum(Z.shape[1] for Z in rows.values())
    errors = [
        reconstruction_error(rows[name], Z) / n_features
        for code in codes
        for name, Z in decoders(dict.fromkeys(rows, code)).items()
    ]
    y = next(iter(batch.labels.values()))
    entropies = [labels.of(classifier(code), y) for code in codes]
    return {"reconstruction": summed(errors), "label": weight * summed(entropies)}
