"""What projects rows: a fitted estimator, or what a model file says of one.

This module does not import scikit-learn, which takes a second.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from mvcca.base.fitted_views import as_fitted_views, checked_views
from mvcca.base.requirements import Requirements
from mvcca.problem import Maps
from mvcca.problem.expected import Expected
from mvcca.statistics import Regression
from mvcca.views import Views
from mvcca.views.coding import Coding


class ProjectsRows:
    """Base of what maps rows of several views into one space, by affine maps if it has any."""

    # Method whose rows retrieval compares, and their similarity; see `mvcca.retrieval.ranking`.
    retrieval_ranking: ClassVar[tuple[str, str]] = ("transform", "cosine")
    requires: ClassVar[Requirements] = Requirements()

    confounds: str | None = None  # the view that is removed from the others
    missing: str = "error"  # what to do with missing cells
    power: float = 0.0  # of the eigenvalues that scores are multiplied by
    n_components_: int
    weights_: dict[str, Any]
    means_: dict[str, Any]
    ranks_: dict[str, int]
    confound_coefficients_: dict[str, Any]
    expected_correlations_by_pair_: Any
    expected_deviations_: Any
    view_names_: tuple[str, ...]  # that have scores
    _widths: dict[str, int]  # of the fitted views, confounds included
    _coding: Coding  # of the confounds

    @property
    def maps_(self) -> Maps | None:
        """The fitted affine maps as a value; None if scores are not made by such maps."""
        if not hasattr(self, "means_"):
            return None
        rho, expected = getattr(self, "expected_correlations_", None), None
        if rho is not None:
            expected = Expected(rho, self.expected_correlations_by_pair_, self.expected_deviations_)
        regression, z = None, self.confounds
        if z is not None:
            regression = Regression(z, self.means_[z], self.confound_coefficients_, self.ranks_[z])
        return Maps(
            self.weights_,
            self.means_,
            eigenvalues=getattr(self, "eigenvalues_", None),
            power=self.power,
            expected=expected,
            regression=regression,
            precisions=getattr(self, "precisions_", None),
        )

    def _projection(self, name: str, maps: Maps | None) -> Callable[[Any], Any]:
        """The function that projects checked rows of a view, which must not hold the estimator."""
        assert maps is not None
        return partial(maps.project, name)

    def project(self, views: Any, method: str = "transform") -> dict[str, Any]:
        """Project the rows of `Views` and return the scores by view.

        Code that holds `Views`, such as rankings and comparisons, calls this instead of
        `transform`, which also reads and returns other containers. Rows are checked against the
        fitted views once, and ``views.replace(scores)`` makes `Views` of the scores again.

        Parameters
        ----------
        views : Views or mapping
            Any of the fitted views, paired or not; a view in which no object is seen may be empty.
        method : str, default="transform"
            What to compute: "transform"; "variates", the scores of "transform" without the factors
            λ^power; of networks also "encode", their outputs without a final linear CCA, float32;
            or the method that `retrieval_ranking` declares.

        Returns
        -------
        dict of str to matrix of shape (n_rows, n_components)
            In the precision of the rows, and where the method computes with them: arrays, arrays on
            a device, or lazy Dask arrays; never DataFrames.

        Raises
        ------
        ValueError
            If a view is unknown or does not have the fitted features, or a value is not finite.
        """
        if not hasattr(self, "view_names_"):
            from sklearn.utils.validation import check_is_fitted

            check_is_fitted(self)  # raises; it takes longer than to project a query
        if not isinstance(views, Views):
            views = as_fitted_views(self, views)
        return scores_by_view(self, checked_views(self, views, allow_empty=True), method)


def scores_of(estimator: Any, views: Views, maps: Maps | None) -> dict[str, Any]:
    """Scores of checked views of an estimator, by its maps or by others to end in."""
    bytes_of_features = 8 if estimator.requires.dense else 0
    scores = {}
    for name, block in views.blocks.items():
        if name == estimator.confounds:
            continue
        # Lazy tasks carry the maps to workers: only those of their view.
        own = maps.select([name]) if block.is_lazy and maps is not None else maps
        # Raises where batches do not suffice, before a projection is asked for.
        width = estimator.n_components_ if own is None else own.weights[name].shape[1]
        project = estimator._projection(name, own)
        scores[name] = block.mapped(project, width, bytes_of_features * block.shape[1])
        if maps is not None and maps.regression is not None:
            z = maps.regression.name
            of_confounds = partial(maps.of_confounds(name).project, z)
            scores[name] = scores[name] - views.rows_beside(z, name).mapped(of_confounds, width)
    return scores


def scores_by_view(estimator: Any, views: Views, method: str) -> dict[str, Any]:
    """What a public method of this name returns for checked views, by view.

    Any method but "transform" and "variates" computes it in ``_NAME_of``, or takes and returns
    `Views`.
    """
    if method in ("transform", "variates"):
        maps = estimator.maps_
        if method == "variates" and maps is not None and maps.power:
            maps = replace(maps, power=0.0)
        return scores_of(estimator, views, maps)
    of_views = getattr(estimator, f"_{method}_of", None)
    if of_views is None:
        return dict(getattr(estimator, method)(views).items())
    return of_views(views)
