"""Endings: how the outputs of trained networks become the scores of a model.

An ending may fit an affine map per view to the outputs for all training rows, or leave the outputs
as they are. The same map, fitted to a sample of the rows, lets callbacks measure during training
what the model would give if training ended there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor, nn

from mvcca.deep.layers import CCALayer
from mvcca.linear import MVCCA
from mvcca.machine.on_access import on_access
from mvcca.problem import Estimate, Maps, Problem, Reading, Rows
from mvcca.problem.expected import expected_moments
from mvcca.problem.maps import warn_of_fewer_components
from mvcca.problem.ridge import reg_of_names
from mvcca.statistics import Moments
from mvcca.statistics.passes import not_kept
from mvcca.views import Views

__all__ = ["STORED_CCA", "Ending", "as_trained", "linear_cca"]

if not TYPE_CHECKING:  # it would hide misspelt names
    __getattr__ = on_access(__name__)


@dataclass(frozen=True)
class Ending:
    """How representations, the outputs of networks, become scores.

    Attributes
    ----------
    retrieval_ranking : tuple of str
        Method and similarity that rank rows, which estimators with this ending declare.
    maps : callable, optional
        ``maps(objective, views, moments) -> Maps``, the maps of the representations to scores, from
        the moments of those of all training rows. None if the representations are the scores.
    maps_of_sample : callable, optional
        ``maps_of_sample(objective, representations) -> Maps``, the same from representations of
        some training rows, for callbacks.
    """

    retrieval_ranking: tuple[str, str]
    maps: Callable[[Any, Views, Moments], Maps] | None = None
    maps_of_sample: Callable[[Any, Views], Maps] | None = None


def as_trained(similarity: str = "cosine") -> Ending:
    """Scores are the representations.

    Parameters
    ----------
    similarity : {"cosine", "euclidean", "inner"}, default="cosine"
        Similarity that ranks them.
    """
    return Ending(("transform", similarity))


def linear_cca(n_components: int | None, reg: float | Mapping[str, float]) -> Ending:
    """Scores are those of linear CCA of the representations, in float64.

    Parameters
    ----------
    n_components : int or None
        Number of components; None is the width of the narrowest representation.
    reg : float or mapping of str to float
        Ridge, as in `mvcca.MVCCA`.
    """
    return Ending(
        MVCCA.retrieval_ranking,
        partial(_linear_maps, n_components=n_components, reg=reg),
        partial(_linear_maps_of_sample, n_components=n_components, reg=reg),
    )


def _linear_maps(
    _: Any, views: Views, moments: Moments, n_components: int | None, reg: Any
) -> Maps:
    precision = np.dtype(np.float32)  # of networks
    rows = Rows(views, reg=reg_of_names(reg, views.names), reading=Reading(dtype=precision))
    k = n_components or min(moments.widths.values())
    return Problem(rows, Estimate.of(moments)).solve(k).checked(k)


def _linear_maps_of_sample(
    _: Any, representations: Views, n_components: int | None, reg: Any
) -> Maps:
    k = n_components or min(representations.widths.values())
    return MVCCA(k, reg=reg).fit(representations).maps_


def _stored_maps(objective: Any, views: Views, moments: Moments) -> Maps:
    layer = stored_layer(objective)
    assert layer is not None
    means = _by_name(views.names, layer.mean_f, layer.mean_g)
    weights = _by_name(views.names, layer.weights_f, layer.weights_g)
    expected = expected_moments(weights, moments.by_pair())
    assert expected is not None  # CCA layers take pairs
    return Maps(weights, means, expected=expected)


def _stored_maps_of_sample(objective: Any, representations: Views) -> Maps:
    with not_kept():  # the checkpoint is that of the training
        moments = Moments.of(representations)
    return _stored_maps(objective, representations, moments)


# Scores are the projection that a `CCALayer` in the objective stored. The training rows, of which
# the layer has seen few at a time, give the correlations to expect.
STORED_CCA = Ending(MVCCA.retrieval_ranking, _stored_maps, _stored_maps_of_sample)


def ending_after(n_epochs: int, ending: Ending, solution: Maps | None) -> Ending:
    """The ending of networks that were trained, or of those that stay at their linear start.

    Scores of the latter are those of the linear CCA with which they begin, by the maps `solution`.
    """
    if n_epochs or solution is None:
        return ending

    def maps(_: Any, __: Views, moments: Moments) -> Maps:
        k, width = next(W.shape[1] for W in solution.weights.values()), min(moments.widths.values())
        if k < width:
            warn_of_fewer_components(width, k)
        return solution

    return Ending(MVCCA.retrieval_ranking, maps, lambda *_: solution)


def stored_layer(objective: Any) -> CCALayer | None:
    """The first CCA layer in an objective, if there is one."""
    layers = objective.modules() if isinstance(objective, nn.Module) else ()
    return next((layer for layer in layers if isinstance(layer, CCALayer)), None)


def _by_name(names: tuple[str, ...], *tensors: Tensor) -> dict[str, np.ndarray]:
    return {n: t.double().cpu().numpy() for n, t in zip(names, tensors, strict=True)}
