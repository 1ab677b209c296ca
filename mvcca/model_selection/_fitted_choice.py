"""The settings that a fit chose, read from its fitted attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mvcca.model_selection._tuning import Choice, at_edge

_OF_VARIANTS = ("n_components", "ranking")  # which every search chooses beside its parameters


def choice_of(estimator: Any) -> Choice | None:
    """The settings that a tuned estimator chose; None if it was not tuned.

    Parameters
    ----------
    estimator : fitted estimator

    Returns
    -------
    Choice or None
        With the number of components as it was fitted.
    """
    results = getattr(estimator, "cv_results_", None)
    if results is None or not hasattr(estimator, "ranking_"):  # of a search of scikit-learn
        return None
    names = [name.removeprefix("param_") for name in results if name.startswith("param_")]
    params = {name: getattr(estimator, f"{name}_") for name in names if name not in _OF_VARIANTS}
    chosen = params | {"ranking": estimator.ranking_, "n_components": estimator.n_components_}
    found = [i for i, own in enumerate(results["params"]) if _is_chosen(own, chosen)]
    if not found:
        return None
    best = max(found, key=lambda i: results["mean_test_score"][i])
    return Choice(
        params,
        estimator.ranking_,
        estimator.n_components_,
        float(results["mean_test_score"][best]),
        results,
        tuple(name for name, value in params.items() if at_edge(value, results[f"param_{name}"])),
    )


def _is_chosen(tried: Mapping[str, Any], chosen: Mapping[str, Any]) -> bool:
    """Whether a variant is the chosen one, whose number of components may be that of all."""
    return tried in (chosen, {**chosen, "n_components": None})
