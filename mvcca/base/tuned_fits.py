"""Fits with settings that folds choose, and parameters whose values they may choose."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from sklearn.base import clone
from sklearn.utils._param_validation import make_constraint

from mvcca.base.inputs import open_again, open_fit
from mvcca.model_selection import searched
from mvcca.model_selection.spaces import SEARCHED, plain_value
from mvcca.model_selection.tuning import chosen
from mvcca.retrieval.bank import bank_of
from mvcca.retrieval.ranking import CORRECTED
from mvcca.views.by_view import value_by_view


def fit_searched(estimator: Any, X: Any, y: Any, sample_weight: Any = None, **options: Any) -> Any:
    """Fit an estimator with the settings that folds choose for its parameters that are "cv"."""
    labelled = True if estimator.cv_goal == "class" else None
    rows = open_fit(estimator, X, y, sample_weight, labelled=labelled, judged=False)
    choice = chosen(estimator, rows, options)
    if sample_weight is not None:
        options["sample_weight"] = sample_weight
    model = clone(estimator).set_params(**choice.parameters)
    with warnings.catch_warnings():
        if "scale" in choice.params:  # folds know better
            warnings.filterwarnings("ignore", "Unlike units")
        model.fit(X, y, **options)
    given = estimator.get_params(deep=False)
    own = {name: value for name, value in vars(model).items() if name not in given}
    estimator.__dict__.update(own)
    for name in {*searched(estimator)} - {"n_components", "scale"}:  # set by the fit itself
        setattr(estimator, f"{name}_", choice.params[name])
    estimator.ranking_, estimator.cv_results_ = choice.ranking, choice.cv_results
    keep_bank(estimator, X, y)
    return estimator


def keep_bank(estimator: Any, X: Any, y: Any) -> None:
    """Keep projected training rows if the chosen ranking corrects for hubs."""
    if getattr(estimator, "ranking_", "").endswith(CORRECTED):  # not all searches choose one
        estimator.bank_ = bank_of(estimator, open_again(estimator, X, y))


def setting_by_view(estimator: Any, parameter: str, names: Iterable[str]) -> dict[str, Any]:
    """The value of a parameter for each view, validated as a single value is."""
    given = getattr(estimator, parameter)
    if not isinstance(given, Mapping):
        return dict.fromkeys(names, plain_value(estimator, parameter, given))
    values = value_by_view(parameter, given, names)
    allowed = [c for c in estimator._parameter_constraints[parameter] if c is not Mapping]
    constraints = [make_constraint(c) for c in allowed]
    for name, value in values.items():
        if not any(constraint.is_satisfied_by(value) for constraint in constraints):
            expected = ", or ".join(map(str, constraints))
            raise ValueError(f"{parameter} of view {name!r} must be {expected}, got {value!r}.")
        if isinstance(value, str) and value == SEARCHED:
            raise ValueError(
                f'{parameter}="{SEARCHED}" chooses one value for all views, got it for view '
                f'{name!r}: give {parameter}="{SEARCHED}" alone, or a value for each view.'
            )
    return {name: plain_value(estimator, parameter, value) for name, value in values.items()}
