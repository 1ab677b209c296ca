"""The command that fits the best method of a comparison."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Mapping
from typing import Any

from mvcca.comparison.result import ComparisonResult


def fit_command(
    result: ComparisonResult,
    views: Mapping[str, str],
    labels: str | Mapping[str, str] | None = None,
    header: str | None = None,
) -> str:
    """The ``mvcca fit`` command for the best method, with its most frequent setting.

    `views` and `labels` name the files, and `header` is the option ``--header``. Without a method
    that could be fitted, it is empty.
    """
    if not result.successes:
        return ""
    best = next(one for one in result.candidates if one.name == result.best)
    assert best.method is not None
    estimators = [found.estimator for found in result.fits(result.best)]
    usual = Counter(map(repr, estimators)).most_common(1)[0][0]
    estimator = next(one for one in estimators if repr(one) == usual)
    default = type(estimator)()
    words = ["mvcca", "fit"]
    for name, file in views.items():
        words += ["--view", f"{name}={file}"]
    if labels is not None and best.learns_from != "pairs":
        files = [labels] if isinstance(labels, str) else [f"{k}={v}" for k, v in labels.items()]
        for file in files:
            words += ["--labels", file]
    if header is not None:
        words += ["--header", header]
    words += ["--method", best.method.name]
    for name in sorted(best.method.takes()):
        value = getattr(estimator, name)
        if name == "tokens":  # which `mvcca fit` finds in the files
            continue
        if value != getattr(default, name):
            words += ["--param", f"{name}={written(value)}"]
    return shlex.join([*words, "-o", "model.mvcca"])


def written(value: Any) -> str:
    """A value of a parameter as ``--param`` reads it: text as it is, other values as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=lambda scalar: scalar.item())
