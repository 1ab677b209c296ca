"""Work of methods that train networks."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from mvcca.comparison.costs._shapes import Shapes, ViewShape
from mvcca.comparison.costs._steps import class_among, moments, product
from mvcca.comparison.costs._work import Work

_BATCH_CALLS = 700.0  # per batch and network, by which small networks take their time
_UPDATE = 7.0  # numbers that an optimizer reads, per weight
# Networks that are trained, per view.
_NETWORKS = {"DCCAE": 2.0, "CorrAE": 2.0, "CorrNet": 2.0, "DeViSE": 0.5}
_STAGES = 9  # of CMDN, each of which trains a part of its networks
_MEAN_FIELD = 20  # products with the weights of its joint machine, for each row


def _setting(estimator: Any, name: str, n_rows: int) -> Any:
    """A parameter, or what "auto" stands for with so many rows."""
    from mvcca.deep.auto import auto_setting  # the package imports torch

    value = getattr(estimator, name)
    return auto_setting(name, n_rows, estimator.n_components) if value == "auto" else value


def _layers(estimator: Any, shapes: Shapes) -> list[list[int]]:
    """Widths of the layers of each view's network."""
    hidden: Any = ()
    if hasattr(estimator, "hidden_layer_sizes"):
        hidden = _setting(estimator, "hidden_layer_sizes", shapes.n_rows)
    elif hasattr(estimator, "width"):  # CMDN, with its autoencoder beside its lowest machine
        w = _setting(estimator, "width", shapes.n_rows)
        hidden = (3 * w, w, 2 * w, w, w, w, w, w // 2, w // 4)
    by_view = list(hidden.values()) if isinstance(hidden, Mapping) else [hidden] * len(shapes.views)
    n_out = estimator.n_components  # None: a score per label, or the space of the last view
    if n_out is None:
        n_out = shapes.n_labels if estimator.requires.labels else shapes.views[-1].width
    return [[view.width, *own, n_out] for view, own in zip(shapes.views, by_view, strict=True)]


def _n_weights(estimator: Any, layers: list[list[int]]) -> float:
    """Number of weights of the networks of all views."""
    total = 0.0
    for widths in layers:
        total += sum(a * b for a, b in pairwise(widths))
        if scaling := getattr(estimator, "scaling_layer_sizes", None):
            # A network whose outputs scale the weights of the last layer.
            total += widths[-2] * scaling[0] + scaling[-1] * widths[-1] * (widths[-2] + 1)
    return total


def networks(estimator: Any, shapes: Shapes) -> Work:
    n, layers = shapes.n_rows, _layers(estimator, shapes)
    share = _NETWORKS.get(class_among(estimator, _NETWORKS) or "", 1.0)
    n_weights, units = share * _n_weights(estimator, layers), sum(map(sum, layers))
    batch = min(n, _setting(estimator, "batch_size", n))
    # Forward, and backward with respect to weights and inputs, in float32.
    step = 1.5 * product(batch, n_weights, 1) + Work(passes=_UPDATE * n_weights)
    activations = 30 if getattr(estimator, "dropout", 0) else 8
    step += Work(passes=activations * batch * units, calls=share * _BATCH_CALLS * len(layers))
    n_batches = max(1, n // batch)
    training = _setting(estimator, "max_epochs", n) * n_batches * step
    if hasattr(estimator, "width"):
        training += _stages(estimator, shapes, n_batches, batch, step)
    ending = moments(tuple(ViewShape(n, widths[-1], widths[-1]) for widths in layers))
    memory = 4 * n * shapes.width + 16 * n_weights + 20 * batch * units
    return training + ending + Work(calls=20_000, n_bytes=memory)


def _stages(estimator: Any, shapes: Shapes, n_batches: int, batch: int, step: Work) -> Work:
    """Work of the stages before the last, and of inference in the last."""
    calls = (_STAGES - 1) * _BATCH_CALLS * len(shapes.views)
    inference = 0.5 * product(batch, _inferred_weights(estimator, shapes), 1)
    epochs = _setting(estimator, "max_epochs", shapes.n_rows)
    stages = estimator.pretraining_epochs * n_batches * (step + Work(calls=calls))
    return stages + epochs * n_batches * inference


def _inferred_weights(estimator: Any, shapes: Shapes) -> float:
    """Weights that rows are multiplied by to infer views from each other."""
    w, n_views = _setting(estimator, "width", shapes.n_rows), len(shapes.views)
    return float(_MEAN_FIELD * 2 * w * w * (n_views - 1) * n_views)


def project_by_networks(estimator: Any, shapes: Shapes, n_rows: int, _: int) -> Work:
    layers = _layers(estimator, shapes)
    n_weights = _n_weights(estimator, layers)
    if hasattr(estimator, "width"):
        n_weights += _inferred_weights(estimator, shapes)
    work = 0.5 * product(n_rows, n_weights, 1)
    return work + Work(passes=5 * n_rows * sum(map(sum, layers)), calls=2000)
