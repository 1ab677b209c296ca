"""Endings: how the outputs of trained networks become the scores of a model.

An ending may fit an affine map per view to the outputs for all training rows, or leave the outputs
as they are. The same map, fitted to a sample of the rows, lets callbacks measure during training
what the model would give if training ended there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from torch import Tensor, nn

from mvcca.deep.layers import CCALayer
from mvcca.linear import MVCCA
from mvcca.problem import Rows, held_out_moments, reg_of_names
from mvcca.statistics import Moments
from mvcca.statistics.passes import not_kept
from mvcca.views import Views

if TYPE_CHECKING:
    from mvcca.deep.trainer import Trainer

__all__ = ["AsTrained", "Ending", "LinearCCA", "StoredCCA"]


class Ending(Protocol):
    """How representations, the outputs of networks, become scores.

    Attributes
    ----------
    learns : bool
        Whether `model` depends on the values of the representations.
    retrieval_ranking : tuple of str
        Method and similarity that rank rows, which estimators with this ending declare.
    """

    learns: ClassVar[bool]

    @property
    def retrieval_ranking(self) -> tuple[str, str]:
        """Method and similarity."""

    def model(self, trainer: Trainer, representations: Views) -> Any:
        """A transformer of representations, fitted to those of some training rows if it `learns`.

        It has `transform`, and declares the same ``retrieval_ranking``.
        """

    def attributes(self, trainer: Trainer, views: Views, moments: Moments) -> dict[str, Any]:
        """Fitted attributes of a model, from the moments of the representations of all rows.

        ``n_components_`` and ``view_names_``; with ``weights_`` and ``means_`` by view, scores are
        the affine map (representation - mean) @ weights, otherwise the representations.
        """


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

    def model(self, trainer: Trainer, representations: Views) -> MVCCA:
        """Linear CCA of representations."""
        return MVCCA(self._k(representations.widths), reg=self.reg).fit(representations)

    def attributes(self, trainer: Trainer, views: Views, moments: Moments) -> dict[str, Any]:
        """The fitted attributes of `mvcca.MVCCA`."""
        model = MVCCA(self._k(moments.widths), reg=self.reg)
        precision = np.dtype(np.float32)  # of networks
        rows = Rows(views, reg=reg_of_names(self.reg, views.names), dtype=precision)
        model._learn_problem(rows, moments)
        return _fitted(model)

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

    def model(self, trainer: Trainer, representations: Views) -> AsTrained:
        """This object, which transforms nothing."""
        return self

    def transform(self, representations: Views) -> Views:
        """The representations."""
        return representations

    def attributes(self, trainer: Trainer, views: Views, moments: Moments) -> dict[str, Any]:
        """The number of components, which is the width of all networks' outputs."""
        widths = set(moments.widths.values())
        if len(widths) > 1:
            raise ValueError(
                "The networks of all views must have outputs of the same width, which are compared "
                f"as they are; got {dict(moments.widths)}."
            )
        return {"n_components_": widths.pop(), "view_names_": views.names}


@dataclass(frozen=True)
class StoredCCA:
    """Scores are the projection that a `CCALayer` in the objective stored.

    The training rows, of which the layer has seen few at a time, give the correlations to expect.
    """

    learns: ClassVar[bool] = True
    retrieval_ranking: ClassVar[tuple[str, str]] = MVCCA.retrieval_ranking

    def model(self, trainer: Trainer, representations: Views) -> MVCCA:
        """The projection, with the correlations of these representations."""
        with not_kept():  # the checkpoint is that of the training
            moments = Moments.of(representations)
        return self._model(trainer, representations.names, moments)

    def attributes(self, trainer: Trainer, views: Views, moments: Moments) -> dict[str, Any]:
        """Those fitted attributes of `mvcca.MVCCA` that do not need its eigenvalues."""
        return _fitted(self._model(trainer, views.names, moments))

    def _model(self, trainer: Trainer, names: tuple[str, ...], moments: Moments) -> MVCCA:
        layer = stored_layer(trainer.objective)
        assert layer is not None
        model = MVCCA(layer.weights_f.shape[1])
        model.means_ = _by_name(names, layer.mean_f, layer.mean_g)
        model.weights_ = _by_name(names, layer.weights_f, layer.weights_g)
        model.n_components_, model.view_names_ = model.n_components, names
        model._column_names = dict.fromkeys(names)
        expected = held_out_moments(model.weights_, moments)
        assert expected is not None  # CCA layers take pairs
        model._expect(expected)
        return model


def stored_layer(objective: Any) -> CCALayer | None:
    """The first CCA layer in an objective, if there is one."""
    layers = objective.modules() if isinstance(objective, nn.Module) else ()
    return next((layer for layer in layers if isinstance(layer, CCALayer)), None)


def _by_name(names: tuple[str, ...], *tensors: Tensor) -> dict[str, np.ndarray]:
    return {n: t.double().cpu().numpy() for n, t in zip(names, tensors, strict=True)}


def _fitted(model: MVCCA) -> dict[str, Any]:
    return {name: value for name, value in vars(model).items() if name.endswith("_")}
