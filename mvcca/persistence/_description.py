"""Description of model files."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from mvcca.machine.archive import read_archive
from mvcca.machine.printable import in_one_line
from mvcca.model_selection import MEASURES, Choice, choice_of, goal_of
from mvcca.persistence._models import load
from mvcca.retrieval import RetrievalIndex
from mvcca.retrieval.ranking import Ranking

_SPECTRA = ("canonical_correlations_", "eigenvalues_")


class Description(dict[str, Any]):
    """Content of a model file in JSON-compatible values; printing it shows lines of text."""

    def __str__(self) -> str:
        lines = {"file": self["file"], "method": self["method"]}
        if "steps" not in self:  # whose parameters are estimators
            lines["parameters"] = ", ".join(f"{k}={v!r}" for k, v in self["parameters"].items())
        if "steps" in self:
            lines["steps"] = ", ".join(f"{name} ({kind})" for name, kind in self["steps"].items())
        if "best_estimator" in self:
            lines["best estimator"] = " ".join(self["best_estimator"].split())
        if "rows" in self:
            lines["estimator"] = " ".join(self["estimator"].split())
            held = ", ".join(f"{name} ({n:,} rows)" for name, n in self["rows"].items())
            lines["gallery"] = held or "empty"
        elif "views" in self:
            lines["views"] = ", ".join(f"{name} ({width})" for name, width in self["views"].items())
            lines["components"] = str(self["n_components"])
        elif not self["fitted"]:
            lines["views"] = "not fitted"
        if "ranking" in self:
            lines["ranking"] = self["ranking"]
        if "tuned" in self:
            lines["tuned"] = _in_words(self["tuned"])
        if "epochs" in self:
            lines["epochs"] = f"{self['epochs']}, weights of epoch {self['best_epoch']}"
        spectrum = next((s.rstrip("_") for s in _SPECTRA if s.rstrip("_") in self), None)
        if spectrum is not None:
            lines[spectrum.replace("_", " ")] = _numbers(self[spectrum])
        lines["size"] = f"{self['bytes']:,} bytes"
        lines["written by"] = ", ".join(f"{name} {v}" for name, v in self["written_by"].items())
        width = max(map(len, lines))
        return "\n".join(
            f"{name.ljust(width)}  {in_one_line(text)}" for name, text in lines.items()
        )


def describe(path: str | os.PathLike[str]) -> Description:
    """Describe a model file.

    Parameters
    ----------
    path : path
        A file written by `save`.

    Returns
    -------
    dict of str to object
        File, size, class, parameters and what it was written by; and, if the model has them, views,
        number of components, ranking, spectrum and epochs. Printing it shows lines of text.

    Raises
    ------
    ModelFileError
        If it is not a model file, or damaged.

    Examples
    --------
    >>> import tempfile
    >>> import mvcca
    >>> from mvcca.persistence import describe
    >>> path = f"{tempfile.mkdtemp()}/model.mvcca"
    >>> mvcca.save(mvcca.CCA(2), path)
    >>> describe(path)["method"]
    'CCA'
    """
    model = load(path)
    _, content = read_archive(path)
    found = Description(
        file=os.fspath(path),
        bytes=os.path.getsize(path),
        written_by=content.get("written by", {}),
        method=type(model).__name__,
    )
    if isinstance(model, RetrievalIndex):
        made_with = {"similarity": model.similarity, "backend": model.backend}
        rows = {view: held.n_ranked for view, held in model._contents.views.items()}
        found |= {"parameters": made_with, "estimator": repr(model.estimator), "rows": rows}
        found["ranking"] = str(model._ranking)
        return found
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
        found["views"] = {name: model._widths[name] for name in model.view_names_}
        found["n_components"] = model.n_components_
        found["ranking"] = str(Ranking.of(model))
        choice = choice_of(model)
        if choice is not None:
            found["tuned"] = _tuned(model, choice)
    if hasattr(model, "best_epoch_"):
        found["epochs"] = len(model.history_["epoch"])
        found["best_epoch"] = model.best_epoch_
    for spectrum in _SPECTRA:
        if hasattr(model, spectrum):
            found[spectrum.rstrip("_")] = _plain(getattr(model, spectrum))
    return found


def _tuned(model: Any, choice: Choice) -> dict[str, Any]:
    """The settings that folds chose, and how good they were on held-out rows."""
    return {
        "chosen": _plain({**choice.params, "n_components": choice.n_components}),
        "ranking": choice.ranking,
        "at_edge": list(choice.at_edge),
        "n_folds": choice.n_folds,
        "measure": MEASURES[goal_of(model)],
        "value": choice.value,
    }


def _in_words(tuned: dict[str, Any]) -> str:
    chosen = dict(tuned["chosen"])
    settings = [f"{chosen.pop('n_components')} components"]
    for name, value in chosen.items():
        edge = " (at the edge of the searched values)" if name in tuned["at_edge"] else ""
        shown = f"{value:g}" if isinstance(value, float) else value
        settings.insert(0, f"{'ridge' if name == 'reg' else name} {shown}{edge}")
    value = f"{tuned['value']:.3f}"
    return f"{', '.join(settings)}, chosen by {tuned['n_folds']} folds: {tuned['measure']} {value}"


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
