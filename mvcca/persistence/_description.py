"""Description of model files, which `save` writes and `describe` reads."""

from __future__ import annotations

import json
import os
from typing import Any

from mvcca.machine.archive import not_ours, read_archive
from mvcca.machine.printable import in_one_line

_OF = {"canonical_correlations": " (of the fitted rows; smaller on new rows)", "eigenvalues": ""}


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
        spectrum = next((name for name in _OF if name in self), None)
        if spectrum is not None:
            lines[spectrum.replace("_", " ")] = f"{_numbers(self[spectrum])}{_OF[spectrum]}"
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
    _, content = read_archive(path)
    found = Description(
        file=os.fspath(path), bytes=os.path.getsize(path), written_by=content.get("written by")
    )
    if "description" not in content:  # of an earlier version, or no model
        from mvcca.persistence._described import described
        from mvcca.persistence._models import load

        found |= described(load(path))
        return found
    try:
        found |= json.loads(content["description"])
        str(found)
    except (AttributeError, KeyError, TypeError, ValueError):
        not_ours(path, "does not say what it holds")
    return found


def _in_words(tuned: dict[str, Any]) -> str:
    chosen = dict(tuned["chosen"])
    n = chosen.pop("n_components")
    settings = [f"{n} component{'s' * (n != 1)}"]
    for name, value in chosen.items():
        edge = " (at the edge of the searched values)" if name in tuned["at_edge"] else ""
        shown = f"{value:g}" if isinstance(value, float) else value
        settings.insert(0, f"{'ridge' if name == 'reg' else name} {shown}{edge}")
    value = f"{tuned['measure']} {tuned['value']:.3f} of held-out objects"
    return f"{', '.join(settings)}, chosen by {tuned['n_folds']} folds: {value}"


def _numbers(values: list[float]) -> str:
    first = " ".join(f"{value:.3f}" for value in values[:8])
    return first if len(values) <= 8 else f"{first} ... {values[-1]:.3f}"
