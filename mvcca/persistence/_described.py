"""What a model says of itself: method, parameters, views, how it ranks, and its spectrum."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from mvcca.model_selection import Choice
from mvcca.retrieval import RetrievalIndex
from mvcca.retrieval.ranking import Ranking

_MOST_CHARACTERS = 1_000  # of a parameter; longer ones are named by their kind and length


def described(model: Any) -> dict[str, Any]:
    """What `describe` says of a model, in JSON-compatible values."""
    found: dict[str, Any] = {"method": type(model).__name__}
    if isinstance(model, RetrievalIndex):
        made_with = {"similarity": model.similarity, "backend": model.backend}
        rows = {view: held.n_ranked for view, held in model._contents.views.items()}
        found |= {"parameters": made_with, "estimator": repr(model.estimator), "rows": rows}
        found["ranking"] = str(model._ranking)
        return found
    params = model.get_params(deep=False)
    found["parameters"] = {key: _short(value) for key, value in params.items()}
    if hasattr(model, "best_estimator_"):
        found["best_estimator"] = repr(model.best_estimator_)
        model = model.best_estimator_
    if isinstance(model, Pipeline):
        found["steps"] = {name: type(step).__name__ for name, step in model.steps}
        model = next((step for _, step in model.steps if hasattr(step, "n_components_")), model)
    found["fitted"] = _is_fitted(model)
    if hasattr(model, "view_names_") and hasattr(model, "n_components_"):
        widths = model._widths
        found["views"] = {name: widths.get(name) for name in model.view_names_}
        found["n_components"] = model.n_components_
        found["ranking"] = str(Ranking.of(model))
        choice = Choice.of(model)
        if choice is not None:
            found["tuned"] = _tuned(choice)
    if hasattr(model, "best_epoch_"):
        found["epochs"] = len(model.history_["epoch"])
        found["best_epoch"] = model.best_epoch_
    for spectrum in ("canonical_correlations", "eigenvalues"):
        if hasattr(model, f"{spectrum}_"):
            found[spectrum] = _plain(getattr(model, f"{spectrum}_"))
    return found


def _tuned(choice: Choice) -> dict[str, Any]:
    """The settings that folds chose, and how good they were on held-out rows."""
    return {
        "chosen": _plain({**choice.params, "n_components": choice.n_components}),
        "ranking": choice.ranking,
        "at_edge": list(choice.at_edge),
        "n_folds": choice.n_folds,
        "measure": choice.measure,
        "value": choice.value,
    }


def _is_fitted(model: Any) -> bool:
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    return True


def _short(value: Any) -> Any:
    """A parameter, or if it is long, such as a vocabulary, what it is."""
    plain = _plain(value)
    if len(json.dumps(plain, default=repr)) <= _MOST_CHARACTERS:
        return plain
    size = "x".join(map(str, getattr(value, "shape", (len(plain),))))
    return f"{type(value).__name__} of {size}"


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, bool | int | float | str | None) else repr(value)
