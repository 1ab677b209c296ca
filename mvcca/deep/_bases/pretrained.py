"""The part of deep estimators whose layers are trained in stages before the networks are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import cast

import torch
from torch import Tensor, nn

from mvcca.base.parameters import at_least, one_of, parameter
from mvcca.deep._bases.estimator import DeepEstimator
from mvcca.deep._losses.batch import Batch, summed
from mvcca.deep._networks.rbm import RBM
from mvcca.deep._training.training import Training
from mvcca.deep.encoders import Encoders
from mvcca.deep.layers import Standardize
from mvcca.deep.objectives import BoundLoss
from mvcca.deep.samplers import Sample
from mvcca.deep.trainer import Objective, encoded
from mvcca.views.by_view import value_by_view


class Pretrained(DeepEstimator):
    """Base of the deep estimators whose layers are trained in stages before the training itself.

    Parameters and attributes that are not listed here are those of
    `mvcca.deep.bases.DeepEstimator`.

    Parameters
    ----------
    likelihood : {"gaussian", "replicated_softmax"}, or mapping of str to these, default="gaussian"
        Reconstruction loss, for all views or by view: the squared error, or for word counts the
        negative log likelihood -Σ_w x_w log softmax_w(h), a multinomial with the length of the
        document. Word counts are not standardized.
    pretraining_epochs : int, default=50
        Number of passes over the rows in each stage of the pre-training. It is not resumed: a fit
        that is interrupted there starts over.
    """

    likelihood: str | Mapping[str, str] = parameter(
        "gaussian", one_of("gaussian", "replicated_softmax"), Mapping
    )
    pretraining_epochs: int = parameter(50, at_least(1))

    def _standardizes(self, name: str) -> bool:
        standardizes = super()._standardizes(name)
        if value_by_view("likelihood", self.likelihood, self.view_names_)[name] == "gaussian":
            return standardizes
        if self.standardize not in ("auto", False):
            raise ValueError(
                f"likelihood='replicated_softmax' of view {name!r} is for word counts, which "
                f"standardize={self.standardize!r} would replace. Use standardize='auto'."
            )
        return False

    def _stage(self, training: Training) -> Training:
        """The training of each stage."""
        n_epochs = int(self.pretraining_epochs)
        return replace(training, max_epochs=n_epochs, monitor="valid_loss", patience=None)


def train_stage(
    title: str,
    objective: Objective,
    rows: StageRows,
    stage: Training,
    networks: Mapping[str, nn.Module] | None = None,
) -> None:
    """Train networks of some rows with an objective; without networks, it sees the rows."""
    encoders = Encoders(networks or {name: nn.Identity() for name in rows.train.views.names})
    for name, layer in rows.inputs.items():
        encoders.standardize(name, layer)
    trainer = replace(stage, title=title).trainer(encoders, objective)
    trainer.train(rows.train, stage.max_epochs, rows.valid)


@dataclass(frozen=True, eq=False)
class StageRows:
    """Training and validation rows of a stage, in memory if earlier stages computed them."""

    train: Sample
    valid: Sample | None
    inputs: Mapping[str, nn.Module] = field(default_factory=dict)  # which standardize them

    def through(self, networks: Mapping[str, nn.Module]) -> StageRows:
        """Outputs of a network for each view."""
        whole = {
            name: nn.Sequential(self.inputs[name], network) if name in self.inputs else network
            for name, network in networks.items()
        }
        valid = None if self.valid is None else _represented(self.valid, whole)
        return StageRows(_represented(self.train, whole), valid)

    def standardized(self, layers: Mapping[str, Standardize]) -> StageRows:
        """Rows standardized by a layer for each view, which learns from the training rows."""
        for name, layer in layers.items():
            layer.learn([self.train.views[name]])
        return self.through(layers)

    def without_validation(self) -> StageRows:
        """Training rows only, for losses that are not comparable between epochs."""
        return replace(self, valid=None)


def _represented(sample: Sample, networks: Mapping[str, nn.Module]) -> Sample:
    outputs = {name: encoded(networks[name], name, X) for name, X in sample.views.items()}
    return replace(sample, views=sample.views.replace(outputs))


def divergence_of(machines: Mapping[str, RBM] | RBM) -> BoundLoss:
    """The contrastive divergence of a machine for each view, or of one for all views."""
    parts = machines if isinstance(machines, RBM) else Encoders(machines)
    return BoundLoss(_divergence, machines=parts)


def _divergence(scores: Mapping[str, Tensor], _: Batch, machines: RBM | Encoders) -> Tensor:
    if isinstance(machines, RBM):
        return machines.contrastive_divergence(torch.cat(list(scores.values()), dim=1))
    of_views = {name: cast("RBM", machines[name]) for name in machines.names}
    return summed(M.contrastive_divergence(scores[name]) for name, M in of_views.items())
