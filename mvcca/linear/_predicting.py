"""Prediction of one view from another, through the space that both are mapped to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mvcca.base import StatisticEstimator
from mvcca.base.inputs import open_views
from mvcca.blocks import Block, as_block
from mvcca.problem import Maps
from mvcca.views.typing import MatrixLike, ViewsLike


class PredictingEstimator(StatisticEstimator):
    """Base of the linear methods that predict the features of one view from another."""

    def predict(self, X: ViewsLike | MatrixLike, target: str | None = None) -> Any:
        """Predict rows of one view from rows of another.

        Parameters
        ----------
        X : mapping, Views or matrix
            Rows of one view, as in ``{"old": X}``, and of its confounds if the estimator was fitted
            with some; a lone matrix is the first view, if the estimator was fitted on two.
        target : str, optional
            The view to predict; may be left out if there is only one that can be.

        Returns
        -------
        rows : array, shape (n_rows, n_features of the target)
            In the space of the target's own rows: their mean is added. Rows of a Dask array or on a
            device give an array of the same kind. If y was fitted as a vector, so is its
            prediction.

        Raises
        ------
        ValueError
            If X holds several views, or the target is unknown, ambiguous or the view itself.
        """
        check_is_fitted(self)
        views = open_views(self, X, reset=False, unpaired=True, allow_empty=True)
        sources = views.without(self.confounds)
        if len(sources.names) != 1:
            raise ValueError(
                f"predict takes rows of one view, got {list(sources.names)}. Call it once per view."
            )
        ((source, block),) = sources.blocks.items()
        rows = self._predictor(source, target)(block)
        if self.confounds is None:
            return rows
        confounds = views.rows_beside(self.confounds, source)
        explained = self._explained(source, self._checked_target(source, target))
        return rows + confounds.mapped(explained, rows.shape[1])

    def predictor(self, source: str, target: str | None = None) -> Callable[[MatrixLike], Any]:
        """Return the function that `predict` applies to rows of a view, for many calls.

        The map is multiplied out once, which takes as long as predicting a few hundred rows.

        Parameters
        ----------
        source : str
            The view whose rows the function takes.
        target : str, optional
            The view to predict, as in `predict`.

        Returns
        -------
        function
            Takes a matrix of shape (n_rows, n_features), and returns what `predict` does.

        Raises
        ------
        ValueError
            If a view is unknown, or the target ambiguous or the source itself.
        """
        check_is_fitted(self)
        if self.confounds is not None:
            raise ValueError(
                f"The function takes rows of one view, and those of the confounds "
                f"{self.confounds!r} are needed, too. Use predict."
            )
        if source not in self.view_names_:
            raise ValueError(f"source must be one of {list(self.view_names_)}, got {source!r}.")
        predicted = self._predictor(source, target)

        def function(rows: MatrixLike) -> Any:
            views = open_views(self, {source: rows}, reset=False, unpaired=True, allow_empty=True)
            return predicted(views.block(source))

        return function

    def _predictor(self, source: str, target: str | None) -> Callable[[Block], Any]:
        """The same, for rows that have been checked."""
        target = self._checked_target(source, target)
        mean, maps = self.means_[target], self.maps_.select([source])
        product = maps.weights[source] @ self._coefficients(source, target)
        is_vector = target == "y" and self._y_is_vector
        project = partial(replace(maps, weights={source: product}).project, source)

        def predicted(block: Block) -> Any:
            rows = block.mapped(project, len(mean))
            rows += as_block(rows).placed(mean)
            return rows[:, 0] if is_vector else rows

        return predicted

    def _explained(self, source: str, target: str) -> Callable[[Any], Any]:
        """What confounds add to a prediction from uncorrected rows, z (B_target - B_source P)."""
        z, B = self.confounds, self.confound_coefficients_
        assert z is not None
        product = self.weights_[source] @ self._coefficients(source, target)
        maps = Maps({z: B[target] - B[source] @ product}, {z: self.means_[z]})
        return partial(maps.project, z)

    def _coefficients(self, source: str, target: str) -> np.ndarray:
        """Coefficients of the centred target on the scores of the source, (k, n_features)."""
        raise NotImplementedError

    def _targets(self, source: str) -> list[str]:
        """Views that can be predicted from a view."""
        return [name for name in self.view_names_ if name != source]

    def _checked_target(self, source: str, target: str | None) -> str:
        known = self._targets(source)
        if target is None and len(known) == 1:
            return known[0]
        if target not in known:
            name = type(self).__name__
            if not known:
                raise ValueError(f"{name} predicts view {source!r} from others, not from itself.")
            raise ValueError(
                f"{name} predicts from {source!r} the views {known}; got target={target!r}."
            )
        return target
