"""The commands that fit the best methods of a comparison."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from sklearn.base import clone

from mvcca.comparison.registry import Method
from mvcca.comparison.result import ComparisonResult
from mvcca.model_selection.goals import Goal
from mvcca.model_selection.tuning import tunable


def next_steps(
    result: ComparisonResult,
    views: Mapping[str, str],
    labels: str | Mapping[str, str] | None = None,
    reading: Sequence[str] = (),
) -> dict[str, str]:
    """The ``mvcca fit`` commands for the best method of each question, by description.

    They tune the method for the right items of the question, on all objects. Values of parameters
    that the user gave, or a grid of the user chose, are given. `views` and `labels` name the files,
    and `reading` are the options that say how these are read, such as ``--id COLUMN``.
    Without methods that could be fitted there are none.
    """
    single = len(result.goals) == 1
    found = {}
    for goal in result.goals:
        name = result.best_for(goal)
        if name is not None:
            what = result.right_items(goal)
            output = "model.mvcca" if single else f"{goal}.mvcca"
            found[what] = _fit_command(result, name, goal, views, labels, reading, output)
    return found


def in_words(steps: Mapping[str, str]) -> list[str]:
    """Lines of text, one for each command."""
    if len(steps) == 1:
        return [f"Next: {command}" for command in steps.values()]
    return [f"Next, for {what}: {command}" for what, command in steps.items()]


def _fit_command(
    result: ComparisonResult,
    name: str,
    goal: Goal,
    views: Mapping[str, str],
    labels: str | Mapping[str, str] | None,
    reading: Sequence[str],
    output: str,
) -> str:
    best = result.candidate(name)
    assert best.method is not None
    choice, estimator = result.choice(name, goal), clone(best.estimator)
    if choice is not None and not best.is_tuned:
        estimator.set_params(**choice.params)
    searched = _searched(estimator)
    words = ["mvcca", "fit"]
    for view, file in views.items():
        words += ["--view", f"{view}={file}"]
    if labels is not None and (best.learns_from != "pairs" or goal == "class"):
        files = [labels] if isinstance(labels, str) else [f"{k}={v}" for k, v in labels.items()]
        for file in files:
            words += ["--labels", file]
    words += reading
    words += ["--method", best.method.name]
    if searched:
        words += ["--goal", goal]
    given = _given_parameters(best.method, estimator, searched)
    if not searched and tunable(estimator, given):
        words.append("--no-tune")
    for parameter, value in given.items():
        words += ["--param", f"{parameter}={written(value)}"]
    return shlex.join([*words, "-o", output])


def _searched(estimator: Any) -> dict[str, Any]:
    """Parameters that a fit of the estimator searches, with the values that say so."""
    found = {k: v for k, v in (tunable(estimator) or {}).items() if getattr(estimator, k) == v}
    return found if any(value is not None for value in found.values()) else {}


def _given_parameters(
    method: Method, estimator: Any, searched: Mapping[str, Any]
) -> dict[str, Any]:
    """Parameters that are not those of `mvcca fit`, which tunes what it can unless it is given."""
    default = method.build({"random_state": 0})  # which `mvcca fit` sets
    own = {name: getattr(default, name) for name in method.takes()}
    own |= tunable(default) or {} if searched else {}
    names = sorted(own.keys() - {"cv_goal", "tokens"})  # tokens are found in the files
    found = {name: getattr(estimator, name) for name in names}
    return {name: value for name, value in found.items() if value != own[name]}


def written(value: Any) -> str:
    """A value of a parameter as ``--param`` reads it: text as it is, other values as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=lambda scalar: scalar.item())
