"""Networks of the user's classes in files: tensors and a few scores there, layers in the program.

`mvcca.load` gets the layers as `encoders`, or from classes passed to `register_layer`. The loaded
networks are compared with the scores that the saved ones gave to a few training rows.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from mvcca.blocks.containers import few
from mvcca.deep._networks.probe import MOST_ROWS, Probe, check_network, probe_rows
from mvcca.deep.encoders import preceded
from mvcca.deep.layers import Standardize
from mvcca.deep.storage import holds_other_classes, runs_user_code, tensors_of, with_tensors
from mvcca.machine.archive import ModelFileError
from mvcca.machine.warnings import warn
from mvcca.views import Views

_ROWS = "_probe_rows"  # attribute of estimators


def rows_to_probe(encoders: Mapping[str, nn.Module], views: Views) -> dict[str, Any] | None:
    """A few rows of every view whose network has layers of the user's classes."""
    rows = {n: probe_rows(X) for n, X in views.items() if runs_user_code(encoders[n])}
    return rows or None


# ---- saving --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CustomNetwork:
    """A network whose tensors are in a file, and whose layers are in the program that loads it.

    Attributes
    ----------
    view : str or None
        Name of its view, if known.
    position : int
        Position of the view.
    network : Module
    standardized : int or None
        Number of features, if the first layer of the network is a `Standardize`.
    """

    view: str | None
    position: int
    network: nn.Module
    standardized: int | None = None

    def parts(self) -> dict[str, Any]:
        """What a file holds of it."""
        cls = type(self.network)
        name = f"{cls.__module__}.{cls.__qualname__}"
        return {
            "view": self.view,
            "position": self.position,
            "class": name,
            "standardized": self.standardized,
            **tensors_of(self.network),
        }


def parts_of_deep(estimator: Any, parts: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters and attributes of an estimator, whose networks may be of any classes."""
    parts, names = dict(parts), parts.get("view_names_", ())
    for key in ("encoders", "encoders_"):
        networks = parts.get(key)
        if isinstance(networks, Mapping):
            order = [*names, *(name for name in networks if name not in names)]
            parts[key] = {n: _or_custom(N, n, order.index(n)) for n, N in networks.items()}
        elif isinstance(networks, list | tuple):
            known = dict(enumerate(names))
            parts[key] = type(networks)(
                _or_custom(network, known.get(i), i) for i, network in enumerate(networks)
            )
    networks = getattr(estimator, "encoders_", {})
    probes = {name: _probe(estimator, name) for name, N in networks.items() if runs_user_code(N)}
    return {**parts, "probes": probes} if probes else parts


def _or_custom(network: Any, view: str | None, position: int) -> Any:
    if not (isinstance(network, nn.Module) and holds_other_classes(network)):
        return network
    n_features = network[0].n_features if _standardizes(network) else None
    return CustomNetwork(view, position, network, n_features)


def _standardizes(network: nn.Module) -> bool:
    return isinstance(network, nn.Sequential) and isinstance(next(iter(network), None), Standardize)


def _probe(estimator: Any, name: str) -> Probe | None:
    """What the network of a view computes; None, with a warning, if that says nothing."""
    if name not in (getattr(estimator, _ROWS, None) or {}):
        warn(
            f"The network of view {name!r} has layers of your own classes but was not trained by "
            "fit: there are no rows whose scores tell on loading whether the layers are the same."
        )
        return None
    first, second = (Probe.of(estimator.encoders_[name], _scores(estimator, name)) for _ in "12")
    if first.agrees(second):
        return first
    warn(
        f"The network of view {name!r} gives other scores each time it is applied to the same "
        "rows, so that loading cannot tell whether its layers are the same."
    )
    return None


def _scores(estimator: Any, name: str) -> Callable[[], Any]:
    return lambda: estimator.encode({name: getattr(estimator, _ROWS)[name]})[name]


# ---- loading -------------------------------------------------------------------------------------


@dataclass(eq=False)
class GivenNetworks:
    """The networks that were given to `mvcca.load`, and what the file says of them.

    Attributes
    ----------
    encoders : mapping of str to Module, sequence of Module, or None
        As given.
    needed : set of (str or None, int)
        Views and positions of the networks that the file needs.
    whole : dict of (str, int) to Module
        Networks that the file holds, by view and position.
    """

    encoders: Mapping[str, nn.Module] | list[nn.Module] | tuple[nn.Module, ...] | None = None
    needed: set[tuple[str | None, int]] = field(default_factory=set)
    whole: dict[tuple[str | None, int], nn.Module] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.encoders, Mapping | list | tuple | None):
            raise TypeError(
                "encoders must be a mapping of views to networks, or a list of networks in the "
                f"order of the views, got {type(self.encoders).__name__}."
            )

    def make(self, parts: dict[str, Any]) -> nn.Module:
        """A copy of the network that was given for a view, with the tensors of a file."""
        view, position = parts["view"], operator.index(parts["position"])
        if not isinstance(view, str | None) or position < 0:
            raise TypeError(f"a network is that of view {view!r} at position {position}")
        what = f"view {view!r}" if view is not None else f"view number {position}"
        self.needed.add((view, position))
        given = self._given(view, position)
        if given is None:
            raise ModelFileError(
                f"the network of {what} is a {parts['class']}, and files hold no code. Pass a "
                f"network of the same layers: load(path, encoders={{{view or 'name'!r}: network}})"
            )
        if not isinstance(given, nn.Module):
            raise TypeError(f"the encoder of {what} must be a torch.nn.Module, got {given!r}")
        network, n_features = deepcopy(given), parts["standardized"]
        if n_features is not None and not _standardizes(network):  # but `fit` put a layer before it
            with torch.device("meta"):
                network = preceded(network, Standardize(n_features))
        return with_tensors(network, parts, f"the network given for {what}")

    def make_estimator(self, make: Callable[[dict[str, Any]], Any], parts: dict[str, Any]) -> Any:
        """An estimator, whose networks compute what the file says, or ModelFileError."""
        probes = parts.pop("probes", {})
        estimator = make(parts)
        self._note_whole(estimator)
        rows = getattr(estimator, _ROWS, None) or {}
        for name, network in getattr(estimator, "encoders_", {}).items():
            if not runs_user_code(network):
                continue
            if name not in probes:
                raise ModelFileError(
                    f"the network of view {name!r} has layers of your own classes, and the file "
                    "has no scores to compare them with: a version of mvcca before these were "
                    "stored wrote it. Save the model again from the program that fitted it, or fit "
                    "it again"
                )
            what, probe = f"The network of view {name!r}", probes[name]
            if probe is not None and not 0 < rows[name].shape[0] <= MOST_ROWS:
                raise ValueError(f"there are {rows[name].shape[0]} rows to compare networks with")
            reason = check_network(what, network, probe, _scores(estimator, name))
            if reason is not None:
                raise ModelFileError(
                    f"the network of view {name!r} is not the one that was saved: {reason} Pass "
                    "or register networks of the same layers"
                )
        return estimator

    def refuse_extra(self, path: str) -> None:
        """Raise ValueError if networks were given for views that do not need them."""
        if self.encoders is None:
            return
        if not self.needed:
            raise ValueError(f"{path} holds whole networks. Leave out encoders.")
        known = self.needed | self.whole.keys()
        names = {view: None for view, _ in sorted(known, key=lambda place: place[1])}
        n_views = 1 + max(position for _, position in known)
        if isinstance(self.encoders, Mapping) and None not in names:
            if unknown := [name for name in self.encoders if name not in names]:
                raise ValueError(
                    f"{path} has networks of the views {few(names)}, and encoders name others too: "
                    f"{few(unknown)}. Leave them out."
                )
        elif len(self.encoders) > n_views:
            raise ValueError(f"{path} has networks of {n_views} views, got {len(self.encoders)}.")
        for (view, position), network in self.whole.items():
            given = self._given(view, position)
            if given is not None and repr(given) != repr(network):
                raise ValueError(
                    f"{path} holds the network of view {view or position!r} whole, and encoders "
                    "have another one for it. Leave it out."
                )

    def _given(self, view: str | None, position: int) -> Any:
        encoders = self.encoders or ()
        if isinstance(encoders, Mapping):
            if view is not None:
                return encoders.get(view)
            encoders = [*encoders.values()]
        return encoders[position] if position < len(encoders) else None

    def _note_whole(self, estimator: Any) -> None:
        """Remember networks that the file holds, as they were passed to the estimator."""
        names = getattr(estimator, "view_names_", ())
        networks = getattr(estimator, "encoders", None) or getattr(estimator, "encoders_", {})
        if isinstance(networks, Mapping):
            order = [*names, *(name for name in networks if name not in names)]
            by_place = {(name, order.index(name)): N for name, N in networks.items()}
        else:
            known = dict(enumerate(names))
            by_place = {(known.get(i), i): network for i, network in enumerate(networks)}
        for place, network in by_place.items():
            if place not in self.needed:
                self.whole.setdefault(place, network)
