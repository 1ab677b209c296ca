"""The maps and the ranking of a model in a file, without its estimator.

Commands project rows and rank them. Importing scikit-learn, of which all estimators are, would take
most of their time.
"""

from __future__ import annotations

import operator
import os
from typing import Any

import numpy as np

from mvcca.base.projecting import ProjectsRows
from mvcca.blocks import as_block
from mvcca.machine.archive import read_archive
from mvcca.persistence._values import ClassOf, Reader
from mvcca.retrieval.ranking import Ranking
from mvcca.views import Views

FORMAT = 3  # of models: which classes and attributes they have; other formats are refused
_ATTRIBUTES = (  # which projection and rankings read
    "view_names_ n_components_ weights_ means_ eigenvalues_ power precisions_ missing confounds "
    "confound_coefficients_ ranks_ ranking_ bank_ expected_correlations_ expected_deviations_ "
    "expected_correlations_by_pair_ canonical_correlations_ _widths _column_names _coding"
)


def _parts_of_views(views: Views) -> dict[str, Any]:
    return {"blocks": dict(views.items()), "seen": views.seen}


def _make_views(parts: dict[str, Any]) -> Views:
    blocks, seen = parts["blocks"], parts["seen"]
    for (name, block), column in zip(blocks.items(), seen.T, strict=True):
        if column.dtype != bool or block.shape[0] != column.sum():
            raise ValueError(f"view {name!r} does not have one row per object that is seen in it")
    return Views.of({name: as_block(block) for name, block in blocks.items()}, seen)


VIEWS = ClassOf(Views, _parts_of_views, _make_views)


def ranking_of_maps(model: Any) -> str | None:
    """The ranking that the class of a model declares, if `load_maps` can stand in for the model.

    None if scores are not made by affine maps alone, or ranked by more than their correlations.
    """
    own = type(model)
    has_maps = isinstance(model, ProjectsRows) and getattr(model, "maps_", None) is not None
    if not has_maps or hasattr(model, "questions_") or model.requires.dense:
        return None
    if own._projection is not ProjectsRows._projection:
        return None
    method, ranking = model.retrieval_ranking
    return ranking if method == "transform" else None


def load_maps(path: str | os.PathLike[str]) -> ProjectsRows | None:
    """Load what projects and ranks rows as the model in a file does.

    None if only the model itself can, or if the parts do not fit together, of which `load` says
    what is wrong. Raises ModelFileError if the file is damaged or was not written by mvcca.
    """
    arrays, content = read_archive(path)
    ranking = content.get("ranking of maps")
    if ranking is None or content.get("format") != FORMAT:
        return None
    reader = Reader({"Views": VIEWS}, arrays)
    try:
        name, parts = content["model"]["is"], content["model"]["parts"]
        ranked = {"retrieval_ranking": ("transform", ranking)}
        maps: ProjectsRows = type(name, (ProjectsRows,), ranked)()  # errors name the estimator
        for attribute in parts.keys() & set(_ATTRIBUTES.split()):
            setattr(maps, attribute, reader.decode(parts[attribute]))
        check_attributes(maps)
        maps.project(Views({view: np.ones((1, width)) for view, width in maps._widths.items()}))
    except Exception:  # the parts of a forged model raise anything
        return None
    return maps


def check_attributes(model: Any) -> None:
    """Check that the arrays of a fitted model fit together, before products that may be huge."""
    names, k = model.view_names_, operator.index(model.n_components_)
    if type(names) is not tuple or not names or not all(type(name) is str for name in names):
        raise TypeError(f"view_names_ is {names!r}")
    for name in names:
        if not hasattr(model, "weights_") and (
            hasattr(model, "encoders_") or hasattr(model, "predictors_")
        ):
            continue  # outputs of networks or predictors are the scores
        n_in = len(model.weights_[name])
        check_floats(f"weights_[{name!r}]", model.weights_[name], (n_in, k))
        if hasattr(model, "means_"):
            check_floats(f"means_[{name!r}]", model.means_[name], (n_in,))
        if hasattr(model, "precisions_"):
            check_floats(f"precisions_[{name!r}]", model.precisions_[name], (n_in, n_in))
    if (z := model.confounds) is not None:
        n_confounds = len(model.means_[z])
        check_floats(f"means_[{z!r}]", model.means_[z], (n_confounds,))
        for name in names:
            what = f"confound_coefficients_[{name!r}]"
            shape = (n_confounds, len(model.means_[name]))
            check_floats(what, model.confound_coefficients_[name], shape)
    if hasattr(model, "history_"):
        if len({np.shape(model.history_["epoch"]), *map(np.shape, model.history_.values())}) > 1:
            raise ValueError("columns of history_ differ in length")
        operator.index(model.best_epoch_)
    for spectrum in ("eigenvalues_", "canonical_correlations_"):
        if hasattr(model, spectrum):
            values = getattr(model, spectrum)
            check_floats(spectrum, values, (len(values),))
    if hasattr(model, "questions_"):
        model.questions_.check({name: len(model.means_[name]) for name in names})
    if hasattr(model, "ranking_"):
        Ranking.of(model)


def check_floats(what: str, array: Any, shape: tuple[int, ...]) -> None:
    """Raise ValueError if something is not an array of floats of this shape."""
    if not isinstance(array, np.ndarray) or array.dtype.kind != "f" or array.shape != shape:
        found = f"{array.dtype} {array.shape}" if hasattr(array, "shape") else repr(type(array))
        raise ValueError(f"{what} is {found} where numbers of shape {shape} belong")
