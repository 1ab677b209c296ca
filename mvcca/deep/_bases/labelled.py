"""Deep estimators that learn from labels: what they predict, and how their features are scaled."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mvcca.deep._bases.estimator import Widths
from mvcca.deep._bases.mlp_estimator import NetworkEstimator
from mvcca.deep._training.rows import Sample
from mvcca.deep._training.start import FEWEST_OBJECTS, held_out
from mvcca.deep._training.training import Training
from mvcca.deep.trainer import Trainer
from mvcca.retrieval import evaluate_retrieval
from mvcca.views import Labels

_SCALES: tuple[bool | str, ...] = (True, "view")  # of equally good ones, the first


class LabelNetworks(NetworkEstimator):
    """Base of the deep estimators that learn from labels, whose scales held-out rows choose.

    Parameters and attributes that are not listed here are those of
    `mvcca.deep.bases.NetworkEstimator`.

    Parameters
    ----------
    standardize : bool, "view" or "auto", default="auto"
        How rows are scaled, as in `mvcca.deep.bases.DeepEstimator`. "auto" trains on four fifths of
        the objects once with True and once with "view", and then on all of them with what has the
        larger mAP@50 on the other fifth, at most 1,000 objects; with validation rows of your own,
        these judge, and the better networks are kept as they are. It is True, without a
        choice, for fewer than 200 objects, unpaired views, `partial_fit`, and where labels hardly
        repeat. Custom `encoders` get rows as they are.

    Attributes
    ----------
    standardize_ : bool or "view"
        How "auto" scales the rows.
    """

    def _trained(
        self, sample: Sample, validation: Sample | None
    ) -> tuple[Trainer, Sample, Sample | None]:
        self.__dict__.pop("standardize_", None)
        if not self._chooses_scale(sample):
            return super()._trained(sample, validation)
        is_given = validation is not None or self.validation_fraction is not None
        divides = self._divided if is_given else held_out
        seeds, found = Training.of(self).seeds, []
        for number, scale in enumerate(_SCALES, 1):
            self.standardize_ = scale
            trial = replace(Training.of(self, seeds), title=f"scale {number} of {len(_SCALES)}")
            training, checkpoint = self._resumed(trial, sample, validation)
            seeds[:] = training.seeds  # those of the checkpoint, for the fits that follow, too
            train, held = divides(sample, validation, training)
            assert held is not None
            trainer = self._train(training, train, held if is_given else None, checkpoint)
            found.append((self._precision(trainer, train, held), scale, trainer))
        _, self.standardize_, trainer = max(found, key=lambda own: own[0])
        if is_given:
            return trainer, train, held
        training, checkpoint = self._resumed(Training.of(self, seeds), sample, None)
        return self._train(training, sample, None, checkpoint), sample, None

    def _chooses_scale(self, sample: Sample) -> bool:
        """Whether held-out rows choose how rows are scaled."""
        if self.standardize != "auto" or self.encoders is not None or not sample.views.is_paired:
            return False
        n_objects, labels = len(sample.views), self._labels
        return n_objects >= FEWEST_OBJECTS and labels is not None and 2 * len(labels) < n_objects

    def _precision(self, trainer: Trainer, train: Sample, held: Sample) -> float:
        """mAP@50 of held-out rows."""
        assert self._labels is not None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the final model gives the same warnings
            self._finish(trainer, train.views)
            labels = self._labels[held.labels[held.views.names[0]]]
            table = evaluate_retrieval(held.views, labels, estimator=self, measures="map@50")
        return float(np.mean(list(table.mean().values())))

    def _begin_partial(self, is_first: bool) -> None:
        if is_first:
            self.__dict__.pop("standardize_", None)

    def _has_one_scale(self) -> bool:
        if self.standardize != "auto":
            return super()._has_one_scale()
        return getattr(self, "standardize_", True) == "view"

    def _decisive_params(self) -> dict[str, Any]:
        return super()._decisive_params() | {"scale": getattr(self, "standardize_", None)}


def targets_of(labels: Labels | None) -> Tensor:
    """Labels to predict for every code, shape (n_codes, n_labels).

    Indicators of classes or label sets; each distinct real label vector is a class.
    """
    assert labels is not None  # the estimators require them
    if not labels.are_sets:
        return torch.eye(len(labels))
    return torch.from_numpy(labels.vectors.toarray()).float()


def common_width(widths: Widths) -> int:
    """Width of the outputs of all networks."""
    if len(set(widths.values())) > 1:
        raise ValueError(
            f"The networks of all views must have outputs of the same width, got {dict(widths)}."
        )
    return next(iter(widths.values()))
