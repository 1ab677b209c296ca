"""Endings: how the outputs of trained networks become the scores of a model.

An ending may fit an affine map per view to the outputs for all training rows, or leave the outputs
as they are. The same map, fitted to a sample of the rows, lets callbacks measure during training
what the model would give if training ended there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from torch import Tensor, nn

from mvcca.deep.layers import CCALayer
from mvcca.linear import MVCCA
from mvcca.problem import (
    Estimate,
    Maps,
    Problem,
    Reading,
    Rows,
    reg_of_names,
    warn_of_fewer_components,
)
from mvcca.problem.expected import expected_moments
from mvcca.statistics import Moments
from mvcca.statistics.passes import not_kept
from mvcca.views import Views

__all__ = ["AsTrained", "Ending", "LinearCCA", "LinearSolution", "StoredCCA"]


class Ending(Protocol):
    """How representations, the outputs of networks, become scores.

    Attributes
    ----------
    learns : bool
        Whether `maps` depend on the values of the representations.
    retrieval_ranking : tuple of str
        Method and similarity that rank rows, which estimators with this ending declare.
    """

    learns: ClassVar[bool]

    @property
    def retrieval_ranking(self) -> tuple[str, str]:
        """Method and similarity."""

    def maps(self, objective: Any, views: Views, moments: Moments) -> Maps | None:
        """Maps of the representations to scores, from the moments of those of all training rows.

        None if the representations are the scores. Called if the ending `learns`.
        """

    def maps_of_sample(self, objective: Any, representations: Views) -> Maps | None:
        """The same from representations of some training rows, for callbacks."""


@dataclass(frozen=True)
class LinearCCA:
    """Scores are those of linear CCA of the representations, in float64.

    Parameters
    ----------
    n_components : int or None
        Number of components; None is the width of the narrowest representation.
    reg : float or mapping of str to float
        Ridge, as in `mvcca.MVCCA`.
    """

    n_components: int | None
    reg: float | Mapping[str, float]

    learns: ClassVar[bool] = True
    retrieval_ranking: ClassVar[tuple[str, str]] = MVCCA.retrieval_ranking

    def maps(self, objective: Any, views: Views, moments: Moments) -> Maps:
        """Maps of `mvcca.MVCCA`."""
        precision = np.dtype(np.float32)  # of networks
        rows = Rows(
            views, reg=reg_of_names(self.reg, views.names), reading=Reading(dtype=precision)
        )
        k = self._k(moments.widths)
        return Problem(rows, Estimate.of(moments)).solve(k).checked(k)

    def maps_of_sample(self, objective: Any, representations: Views) -> Maps:
        """Maps of `mvcca.MVCCA` fitted to the representations."""
        return MVCCA(self._k(representations.widths), reg=self.reg).fit(representations).maps_

    def _k(self, widths: Mapping[str, int]) -> int:
        return min(widths.values()) if self.n_components is None else self.n_components


@dataclass(frozen=True)
class AsTrained:
    """Scores are the representations.

    Parameters
    ----------
    similarity : {"cosine", "euclidean", "inner"}, default="cosine"
        Similarity that ranks them.
    """

    similarity: str = "cosine"

    learns: ClassVar[bool] = False

    @property
    def retrieval_ranking(self) -> tuple[str, str]:
        """Method and similarity that rank rows, as estimators declare them."""
        return "transform", self.similarity

    def maps(self, objective: Any, views: Views, moments: Moments) -> None:
        """None: the outputs of the networks are compared as they are."""

    def maps_of_sample(self, objective: Any, representations: Views) -> None:
        """None, too."""


@dataclass(frozen=True)
class StoredCCA:
    """Scores are the projection that a `CCALayer` in the objective stored.

    The training rows, of which the layer has seen few at a time, give the correlations to expect.
    """

    learns: ClassVar[bool] = True
    retrieval_ranking: ClassVar[tuple[str, str]] = MVCCA.retrieval_ranking

    def maps(self, objective: Any, views: Views, moments: Moments) -> Maps:
        """The projection, with the correlations of these moments."""
        layer = stored_layer(objective)
        assert layer is not None
        means = _by_name(views.names, layer.mean_f, layer.mean_g)
        weights = _by_name(views.names, layer.weights_f, layer.weights_g)
        expected = expected_moments(weights, moments.by_pair())
        assert expected is not None  # CCA layers take pairs
        return Maps(weights, means, expected=expected)

    def maps_of_sample(self, objective: Any, representations: Views) -> Maps:
        """The projection, with the correlations of these representations."""
        with not_kept():  # the checkpoint is that of the training
            moments = Moments.of(representations)
        return self.maps(objective, representations, moments)


@dataclass(frozen=True)
class LinearSolution:
    """Scores are those of the linear CCA with which untrained networks begin.

    Parameters
    ----------
    solution : Maps
        Maps of the networks' outputs to the canonical variates.
    """

    solution: Maps

    learns: ClassVar[bool] = True
    retrieval_ranking: ClassVar[tuple[str, str]] = MVCCA.retrieval_ranking

    def maps(self, objective: Any, views: Views, moments: Moments) -> Maps:
        """The maps; fewer components than the networks have outputs cause a warning."""
        k = next(W.shape[1] for W in self.solution.weights.values())
        width = min(moments.widths.values())
        if k < width:
            warn_of_fewer_components(width, k)
        return self.solution

    def maps_of_sample(self, objective: Any, representations: Views) -> Maps:
        """The maps."""
        return self.solution


def ending_after(n_epochs: int, ending: Ending, solution: Maps | None) -> Ending:
    """The ending of networks that were trained, or of those that stay at their linear start."""
    return ending if n_epochs or solution is None else LinearSolution(solution)


def stored_layer(objective: Any) -> CCALayer | None:
    """The first CCA layer in an objective, if there is one."""
    layers = objective.modules() if isinstance(objective, nn.Module) else ()
    return next((layer for layer in layers if isinstance(layer, CCALayer)), None)


def _by_name(names: tuple[str, ...], *tensors: Tensor) -> dict[str, np.ndarray]:
    return {n: t.double().cpu().numpy() for n, t in zip(names, tensors, strict=True)}
