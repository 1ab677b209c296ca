"""Deep estimators whose networks are multilayer perceptrons, or modules given by the user."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, ClassVar, TypeAlias, cast

import numpy as np
import torch
from torch import Generator, nn

from mvcca.base.parameters import one_of, parameter
from mvcca.base.tuned_fits import setting_by_view
from mvcca.deep._bases.estimator import DeepEstimator
from mvcca.deep._training.checkpoint import Checkpoint
from mvcca.deep._training.identity import identity
from mvcca.deep._training.start import FEWEST_OBJECTS, held_out
from mvcca.deep._training.training import Training
from mvcca.deep.callbacks import ValidationScore
from mvcca.deep.encoders import Encoders, mlp
from mvcca.deep.samplers import Sample
from mvcca.deep.trainer import Trainer
from mvcca.views.by_view import value_by_view

LayerSizes: TypeAlias = Sequence[int] | Mapping[str, Sequence[int]] | str
Modules: TypeAlias = Mapping[str, nn.Module] | Sequence[nn.Module] | None

# Options of `mlp` for layers, the last one too, that end in an activation and have no batch norm.
_NO_NORMS: dict[str, Any] = {"batch_norm": False, "normalize_output": False}
TANH = _NO_NORMS | {"activation": nn.Tanh, "output_activation": nn.Tanh}
SIGMOID = _NO_NORMS | {"activation": nn.Sigmoid, "output_activation": nn.Sigmoid}

_SCALES: tuple[bool | str, ...] = (True, "view")  # of equally good ones, the first


class NetworkEstimator(DeepEstimator):
    """Base of the deep estimators whose networks are multilayer perceptrons or custom modules.

    Parameters and attributes that are not listed here are those of
    `mvcca.deep.bases.DeepEstimator`.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int, mapping of str to sequence, or "auto", default="auto"
        Widths of the hidden layers, for all views or by view. "auto" is (256, 256) for fewer than
        10,000 training rows and (800, 800) for more. Each hidden layer is linear → batch
        norm → ReLU; the output is batch-normalized too. Without hidden layers the network is
        linear.
    encoders : mapping of str to Module, or sequence of Module, optional
        Custom networks, by view or in the order of the views: any `torch.nn.Module` that maps rows
        to scores of shape (n_rows, n_scores). `fit` trains copies. They replace the networks of
        `hidden_layer_sizes`, which must then be left at its default.
    standardize : bool, "view" or "auto", default="auto"
        How rows are scaled, as in `mvcca.deep.bases.DeepEstimator`. "auto" is True, but where a
        method requires labels it trains on four fifths of the objects with True and with "view",
        and on all of them with what has the larger mAP@50 on the other fifth, at most 1,000
        objects. Validation rows of your own judge instead, and the better networks are kept as
        they are. Nothing is chosen for fewer than 200 objects, unpaired views, `partial_fit`, and
        labels that hardly repeat. Custom `encoders` get rows as they are.

    Attributes
    ----------
    standardize_ : bool or "view"
        How "auto" scales the rows; only if there was a choice.
    """

    hidden_layer_sizes: Sequence[int] | Mapping[str, Sequence[int]] | str = parameter(
        "auto", "array-like", Mapping, one_of("auto")
    )
    encoders: Mapping[str, nn.Module] | Sequence[nn.Module] | None = parameter(
        None, "array-like", Mapping, None
    )

    # Of the first layer's initial weights; torch's leave tanh almost linear on standardized rows.
    _gain: ClassVar[float] = 1.0
    _network_parameters: ClassVar[tuple[str, ...]] = ("hidden_layer_sizes",)  # not for encoders

    def _new_network(
        self, n_in: int, hidden: tuple[int, ...], n_out: int, generator: Generator
    ) -> nn.Module:
        """A default network."""
        return mlp(n_in, hidden, n_out, generator=generator, **self._mlp_options())

    def _mlp_options(self) -> dict[str, Any]:
        """Options of `mvcca.deep.encoders.mlp` for the default networks."""
        return {}

    def _hidden_sizes(self, names: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
        """Widths of the hidden layers by view."""
        if isinstance(self.hidden_layer_sizes, Mapping):
            sizes = setting_by_view(self, "hidden_layer_sizes", names)
        else:
            sizes = dict.fromkeys(names, self._setting("hidden_layer_sizes"))
        for name, given in sizes.items():
            if not all(isinstance(size, int | np.integer) and size > 0 for size in given):
                raise ValueError(
                    f"hidden_layer_sizes must be numbers of units, got {tuple(given)} for view "
                    f"{name!r}."
                )
        return {name: tuple(int(size) for size in sizes[name]) for name in names}

    def _networks(self, generator: Generator) -> Encoders:
        if self.encoders is not None:
            return self._copied_encoders(generator)
        hidden, n_scores = self._hidden_sizes(self.view_names_), self._n_scores()
        networks = {
            n: self._new_network(width, hidden[n], n_scores, generator)
            for n, width in self._widths.items()
        }
        for name, network in networks.items():
            if self._gain != 1 and self._standardizes(name):
                with torch.no_grad():
                    next(network.parameters()).mul_(self._gain)  # weights of the first layer
        return Encoders(networks)

    def _trained(
        self, sample: Sample, validation: Sample | None
    ) -> tuple[Trainer, Sample, Sample | None]:
        self.__dict__.pop("standardize_", None)
        if not self._chooses_scale(sample):
            return super()._trained(sample, validation)
        is_given, found = self._is_given(validation), []
        precision = ValidationScore("map@50", self._ending(), self._labels)
        trials = self._trials("standardize_", _SCALES, "scale {} of {}", sample, validation)
        for scale, (training, checkpoint, train, held) in zip(_SCALES, trials, strict=True):
            trainer = self._train(training, train, held if is_given else None, checkpoint)
            value = precision._of(trainer, train, held)
            found.append((-np.inf if np.isnan(value) else value, scale, trainer))
        _, self.standardize_, trainer = max(found, key=lambda own: own[0])
        if is_given:
            return trainer, train, held
        return self._trained_once(Training.of(self, training.seeds), sample, None)

    def _is_given(self, validation: Sample | None) -> bool:
        """Whether the user gave rows to validate on, or a share of the rows to hold out."""
        return validation is not None or self.validation_fraction is not None

    def _trials(
        self,
        attribute: str,
        choices: Sequence[Any],
        title: str,
        sample: Sample,
        validation: Sample | None,
    ) -> Iterator[tuple[Training, Checkpoint | None, Sample, Sample]]:
        """Make each choice, and yield its training and the rows that train and that judge it."""
        divides, seeds = self._divided if self._is_given(validation) else held_out, None
        for number, choice in enumerate(choices, 1):
            setattr(self, attribute, choice)
            trial = replace(self._trial(seeds), title=title.format(number, len(choices), choice))
            training, checkpoint = self._resumed(trial, sample, validation)
            seeds = training.seeds  # those of the checkpoint, for the trials that follow, too
            train, held = divides(sample, validation, training)
            assert held is not None
            yield training, checkpoint, train, held

    def _trial(self, seeds: list[int] | None) -> Training:
        """The training of a choice that held-out rows judge."""
        return Training.of(self, seeds)

    def _chooses_scale(self, sample: Sample) -> bool:
        """Whether held-out rows choose how rows are scaled."""
        if not self.requires.labels or not sample.views.is_paired:
            return False
        if self.standardize != "auto" or self.encoders is not None:
            return False
        n_objects, labels = len(sample.views), self._labels
        return n_objects >= FEWEST_OBJECTS and labels is not None and 2 * len(labels) < n_objects

    def _begin_partial(self, is_first: bool) -> None:
        if is_first:
            self.__dict__.pop("standardize_", None)

    def _has_one_scale(self) -> bool:
        if self.standardize != "auto":
            return super()._has_one_scale()
        return getattr(self, "standardize_", True) == "view"

    def _decisive_params(self) -> dict[str, Any]:
        chosen = {"scale": self.standardize_} if hasattr(self, "standardize_") else {}
        return super()._decisive_params() | chosen

    def _views_of_words(self) -> list[str]:
        """Views whose networks need to know the size of their vocabulary."""
        given = {} if self.encoders is None else self._given_encoders()
        return [
            name for name, encoder in given.items() if any(map(_counts_words, encoder.modules()))
        ]

    def _copied_encoders(self, generator: Generator) -> Encoders:
        """Copies of the user's networks, so that another fit starts from the same weights."""
        copies = Encoders({name: deepcopy(E) for name, E in self._given_encoders().items()})
        for name in copies.names:
            for layer in filter(_counts_words, copies[name].modules()):
                layer.set_n_words(self._n_words[name], generator)
        return copies

    def _given_encoders(self) -> dict[str, nn.Module]:
        """The user's networks by view, checked."""
        names, encoders = self.view_names_, cast("Any", self.encoders)
        defaults = inspect.signature(type(self)).parameters
        for name in self._network_parameters:
            value = getattr(self, name)
            if identity(value) != identity(defaults[name].default):
                raise ValueError(
                    f"{name}={value!r} is for the default networks of {type(self).__name__}, but "
                    f"encoders are given. Leave out {name}, or encoders."
                )
        if not isinstance(encoders, Mapping):
            if len(encoders) != len(names):
                raise ValueError(f"Expected {len(names)} encoders, got {len(encoders)}.")
            encoders = dict(zip(names, encoders, strict=True))
        encoders = value_by_view("encoders", encoders, names)
        for name, encoder in encoders.items():
            if not isinstance(encoder, nn.Module):
                raise TypeError(
                    f"The encoder of view {name!r} must be a torch.nn.Module, got {encoder!r}."
                )
        return dict(encoders)


def _counts_words(layer: nn.Module) -> Any:
    """Whether a layer has no size of its vocabulary yet."""
    return getattr(layer, "n_words", 0) is None
