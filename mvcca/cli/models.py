"""Load and describe model files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from mvcca._archive import read_archive
from mvcca.cli.errors import CommandError, in_one_line
from mvcca.persistence import load
from mvcca.retrieval import RetrievalIndex

_SPECTRA = ("canonical_correlations_", "eigenvalues_")


def load_model(name: str) -> Any:
    """Load a model that can project rows."""
    model = _load(name)
    if not hasattr(model, "transform"):
        raise CommandError(
            f"{name}: contains a {type(model).__name__}; expected a model written by `mvcca fit`"
        )
    return model


def _load(name: str) -> Any:
    path = Path(name)
    if not path.is_file():
        raise CommandError(f"{path}: no such file" if not path.exists() else f"{path}: not a file")
    with in_one_line():
        return load(path)


def facts(name: str) -> dict[str, Any]:
    """Content of a model file in JSON-compatible values, without what the model lacks."""
    model = _load(name)
    _, content = read_archive(name)
    found = {
        "file": name,
        "bytes": Path(name).stat().st_size,
        "written_by": content.get("written by", {}),
        "method": type(model).__name__,
    }
    if isinstance(model, RetrievalIndex):
        made_with = {"similarity": model.similarity, "backend": model.backend}
        rows = {view: len(held) for view, held in model._contents.views.items()}
        return found | {"parameters": made_with, "estimator": repr(model.estimator), "rows": rows}
    params = model.get_params(deep=False)
    found["parameters"] = {key: _plain(value) for key, value in params.items()}
    if hasattr(model, "best_estimator_"):
        found["best_estimator"] = repr(model.best_estimator_)
        model = model.best_estimator_
    if isinstance(model, Pipeline):
        found["steps"] = {name: type(step).__name__ for name, step in model.steps}
        model = next((step for _, step in model.steps if hasattr(step, "n_components_")), model)
    found["fitted"] = _is_fitted(model)
    if hasattr(model, "view_names_") and hasattr(model, "n_components_"):
        found["views"] = {name: model._fitted_width(name) for name in model.view_names_}
        found["n_components"] = model.n_components_
    if hasattr(model, "best_epoch_"):
        found["epochs"] = len(model.history_["epoch"])
        found["best_epoch"] = model.best_epoch_
    for spectrum in _SPECTRA:
        if hasattr(model, spectrum):
            found[spectrum.rstrip("_")] = _plain(getattr(model, spectrum))
    return found


def describe(found: dict[str, Any]) -> str:
    """Format facts as lines of text."""
    lines = {"file": found["file"], "method": found["method"]}
    lines["parameters"] = ", ".join(f"{k}={v!r}" for k, v in found["parameters"].items())
    if "steps" in found:
        lines["steps"] = ", ".join(f"{name} ({kind})" for name, kind in found["steps"].items())
    if "best_estimator" in found:
        lines["best estimator"] = " ".join(found["best_estimator"].split())
    if "rows" in found:
        lines["estimator"] = " ".join(found["estimator"].split())
        held = ", ".join(f"{name} ({n:,} rows)" for name, n in found["rows"].items())
        lines["gallery"] = held or "empty"
    elif "views" in found:
        lines["views"] = ", ".join(f"{name} ({width})" for name, width in found["views"].items())
        lines["components"] = str(found["n_components"])
    elif not found["fitted"]:
        lines["views"] = "not fitted"
    if "epochs" in found:
        lines["epochs"] = f"{found['epochs']}, weights of epoch {found['best_epoch']}"
    spectrum = next((s.rstrip("_") for s in _SPECTRA if s.rstrip("_") in found), None)
    if spectrum is not None:
        lines[spectrum.replace("_", " ")] = _numbers(found[spectrum])
    lines["size"] = f"{found['bytes']:,} bytes"
    lines["written by"] = ", ".join(f"{name} {v}" for name, v in found["written_by"].items())
    width = max(map(len, lines))
    return "\n".join(f"{name.ljust(width)}  {text}" for name, text in lines.items())


def _is_fitted(model: Any) -> bool:
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    return True


def _numbers(values: list[float]) -> str:
    first = " ".join(f"{value:.3f}" for value in values[:8])
    return first if len(values) <= 8 else f"{first} ... {values[-1]:.3f}"


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, bool | int | float | str | None) else repr(value)
