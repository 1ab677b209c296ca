"""Base classes of all estimators: what they are fitted to, how they project, and their score.

`mvcca.base.inputs` checks their input, and `mvcca.base.projection` returns results in the container
of the input. The statistic of each method and its problem are defined in `mvcca.linear`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from numbers import Integral, Real
from typing import Any, ClassVar, TypeVar, get_args

import numpy as np
import sklearn
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin
from sklearn.utils._param_validation import Interval, StrOptions

from mvcca.base.projecting import ProjectsRows
from mvcca.base.projection import projected
from mvcca.base.scores import score_of
from mvcca.machine.config import get_config
from mvcca.machine.devices import working_on
from mvcca.machine.documentation import Documented
from mvcca.model_selection.goals import Goal
from mvcca.problem import Maps
from mvcca.statistics.passes import checkpoint_of_fit
from mvcca.views import Views, holds_views
from mvcca.views.output import OutputContainerMixin

Fit = TypeVar("Fit", bound=Callable[..., Any])


def all_or_nothing(fit: Fit) -> Fit:
    """Restore the estimator if `fit` fails or is interrupted.

    If `mvcca.config_context` names a checkpoint, sums over rows are saved there.
    """

    @wraps(fit)
    def whole(self: Any, *args: Any, **kwargs: Any) -> Any:
        before, config = dict(self.__dict__), get_config()
        try:
            if config.checkpoint is None and config.rows_device is None:
                return fit(self, *args, **kwargs)
            with checkpoint_of_fit(), working_on(config.rows_device):
                return fit(self, *args, **kwargs)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    return whole  # type: ignore[return-value]


class MultiViewEstimator(
    ProjectsRows, ClassNamePrefixFeaturesOutMixin, OutputContainerMixin, Documented, BaseEstimator
):
    """Base of all estimators that map several views into one space.

    Subclasses define `fit` and `_projection`, and declare in ``requires`` what they ask of views
    and labels.
    """

    # Of parameters that several methods have.
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "reg": [Interval(Real, 0, None, closed="left"), StrOptions({"auto", "oas", "cv"}), Mapping],
        "reg_unit": [StrOptions({"relative", "absolute"})],
        "scale": ["boolean", StrOptions({"auto", "cv"}), Mapping],
        "center": ["boolean"],
        "cv_goal": [StrOptions(set(get_args(Goal))), None],
        "power": [Interval(Real, 0, None, closed="left")],
    }

    # What "auto" stands for where folds choose nothing; beside a parameter that is "cv", they
    # choose it, too, so that a fit searches what `mvcca.compare` does.
    automatic: ClassVar[Mapping[str, Any]] = {}

    # What to do about columns in unlike units, where these are not standardized.
    if_units_are_unlike: ClassVar[str] = "Standardize its columns"

    cv_goal: Goal | None = None  # of parameters that are "cv"
    scale: Any = False  # which views are standardized
    reg_unit: str = "relative"
    n_components: Any  # a number; None for all that the data support; for some methods "cv"
    ranking_: str  # chosen by folds
    cv_results_: dict[str, Any]
    _y_is_vector: bool | None = None  # whether the second of two lone matrices was a vector

    def transform(self, X: Any, y: Any = None) -> Any:
        """Project rows of any of the fitted views into the shared space.

        Parameters
        ----------
        X : Views, mapping, list of matrices, or matrix
            A mapping or `Views` may hold any subset of the fitted views, by name; a list holds all
            of them, in order. A lone matrix is the first view, if the estimator was fitted on one.
            Rows need no pairing here: views may differ in their number of rows.
        y : matrix, optional
            The second view, if the estimator was fitted on two lone matrices.

        Returns
        -------
        scores : same container as X
            Matrices of shape (n_rows, n_components); two lone matrices give a tuple. Scores of rows
            on a device are on that device.

        Raises
        ------
        ValueError
            If a view is unknown, or its number of features is not the fitted one.
        """
        return projected(self, X, y, "transform")

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit to X (and y), then project the views.

        Parameters
        ----------
        X, y
            As in `fit`.
        **fit_params
            Further arguments of `fit`.

        Returns
        -------
        scores : same container as X
            As `transform` returns them. Two lone matrices give a tuple, as in scikit-learn's
            ``cross_decomposition``; labels are not projected.
        """
        is_second_view = not self.requires.labels and not holds_views(X)
        return self.fit(X, y, **fit_params).transform(X, y if is_second_view else None)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean correlation of the projected views, or mean average precision without pairs.

        The correlation is averaged over components and over pairs of views that share objects. If
        no two views do (unpaired views, or a single one), label-supervised estimators return
        ``retrieval_scorer("map")(self, X, y)`` instead: the mean average precision of the ranking
        that the estimator declares, averaged over all ordered pairs of views. For other measures
        see `mvcca.retrieval_scorer`.

        Parameters
        ----------
        X : Views, mapping, list of matrices, or matrix
            Rows to project.
        y : matrix or labels, optional
            Labels; or the second view, for an unsupervised estimator and a lone matrix X.
        sample_weight : array-like, shape (n_objects,), optional
            How often each object counts; whole numbers where rows are ranked, which then count as
            so many equal rows.

        Returns
        -------
        float
            Larger is better; at most 1.

        Raises
        ------
        ValueError
            If no object is seen in two views and no labels are given, or if only one object is, of
            which there is no correlation: a cross-validation must leave out several at a time.
        """
        return score_of(self, X, y, sample_weight)

    @property
    def _n_features_out(self) -> int:
        """Number of scores of every view, for `get_feature_names_out`."""
        return self.n_components_

    def _depends_on_units(self, name: str) -> bool:
        """Whether the columns of a view count by their variance: in a ridge, or in distances."""
        if "reg" not in getattr(self, "_parameter_constraints", {}):
            return True
        reg = self.reg.get(name) if isinstance(self.reg, Mapping) else self.reg
        return reg != 0

    def _accepted(self, views: Views, reset: bool) -> Views:
        """What the method learns from: checked views, which it may refuse or rescale."""
        return views

    def _keep(self, maps: Maps) -> None:
        """Set the fitted attributes."""
        self.__dict__.update(maps.attributes())
        if self.power:
            # Refused here, not at the first scores.
            replace(maps, power=self.power).factors(np.dtype(np.float64))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing != "error"
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = self.requires.labels  # else y is a matrix, the second view
        tags.transformer_tags = sklearn.utils.TransformerTags(
            preserves_dtype=["float64", "float32"]
        )
        return tags
