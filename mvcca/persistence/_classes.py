"""The table of classes that a model file may name, and how each is taken apart and made again.

Estimators are their parameters and attributes, so that a new one in `mvcca.linear`, `mvcca.kernel`,
`mvcca.deep` or `mvcca.compose` is here by being public there. Other things that they hold have a
line each; those of deep models have theirs in `mvcca.deep.storage`, and are here on demand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import partial
from inspect import isclass
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    RobustScaler,
    StandardScaler,
)

from mvcca import compose, kernel, linear
from mvcca.kernel import _features, _kernels, _ncca
from mvcca.labels import LabelTable
from mvcca.linear import _label_weighted, _mlcca
from mvcca.persistence._trial import tried
from mvcca.persistence._values import ClassOf, NotStorable
from mvcca.problem import _label_statistic
from mvcca.retrieval import RetrievalIndex
from mvcca.similarity import FourierLabelFeatures, LandmarkLabelFeatures
from mvcca.statistics import LabelFeatureSums, LabelSums, Moments
from mvcca.views import Views

_OUTPUT = "_sklearn_output_config"  # what set_output was told


# ---- estimators: parameters and attributes -------------------------------------------------------


def _estimator(cls: type[BaseEstimator]) -> ClassOf:
    return ClassOf(cls, _parts_of_estimator, partial(_make_estimator, cls))


def _parts_of_estimator(estimator: BaseEstimator) -> dict[str, Any]:
    params = estimator.get_params(deep=False)
    attributes = {n: value for n, value in vars(estimator).items() if n not in params}
    if not _is_ours(type(estimator)):  # of theirs the public ones say all that transform asks for
        attributes = {n: v for n, v in attributes.items() if _is_learned(n) or n == _OUTPUT}
    for name in attributes:
        if not _may_be_set(type(estimator), name):
            raise NotStorable(
                f"{type(estimator).__name__}.{name} is neither a parameter nor a learned attribute "
                "(those end with an underscore), so that a file has no place for it. Delete it "
                "before saving."
            )
    return {**params, **attributes}


def _make_estimator(cls: type[BaseEstimator], parts: dict[str, Any]) -> BaseEstimator:
    known = cls._get_param_names()
    params = {name: value for name, value in parts.items() if name in known}
    attributes = {name: value for name, value in parts.items() if name not in known}
    for name in attributes:
        if not _may_be_set(cls, name):
            raise ValueError(f"{cls.__name__} has no parameter or attribute {name!r}")
    estimator = cls(**params)
    vars(estimator).update(attributes)
    return tried(estimator)


def _is_ours(cls: type) -> bool:
    return cls.__module__.split(".")[0] == "mvcca"


def _is_learned(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_")


def _may_be_set(cls: type, name: str) -> bool:
    """Whether a file may set an attribute: a learned or private one that hides nothing of cls."""
    proper = name.isidentifier() and not name.startswith("__")
    return proper and "_" in (name[0], name[-1]) and getattr(cls, name, None) is None


def _parts_of_pipeline(pipeline: Pipeline) -> dict[str, Any]:
    return {**_parts_of_estimator(pipeline), "memory": None}


def _make_pipeline(parts: dict[str, Any]) -> Pipeline:
    """A pipeline without a cache: a cache is pickles, and a file may name any folder of them."""
    return _make_estimator(Pipeline, {**parts, "memory": None})


# ---- other things, a line each -------------------------------------------------------------------


def _of_fields(cls: Any) -> ClassOf:
    """A dataclass is its fields."""
    names = [field.name for field in fields(cls)]
    return ClassOf(
        cls, lambda value: {name: getattr(value, name) for name in names}, lambda p: cls(**p)
    )


def _parts_of_views(views: Views) -> dict[str, Any]:
    return {"blocks": dict(views.items()), "seen": views.seen}


def _make_views(parts: dict[str, Any]) -> Views:
    blocks, seen = parts["blocks"], parts["seen"]
    for (name, block), column in zip(blocks.items(), seen.T, strict=True):
        if column.dtype != bool or block.shape[0] != column.sum():
            raise ValueError(f"view {name!r} has not one row for each object that is seen in it")
    return Views._of(blocks, seen)


def _make_labelled_rows(parts: dict[str, Any]) -> Any:
    rows = _mlcca.LabelledRows(**parts)
    for name, block in rows.views.items():  # compiled loops follow codes wherever they point
        codes = rows.codes[name]
        if codes.shape != (block.shape[0],) or not 0 <= codes.min() <= codes.max() < len(
            rows.table
        ):
            raise ValueError(f"codes of view {name!r} are no lines of the table of labels")
    return rows


def _parts_of_search(search: NearestNeighbors) -> dict[str, Any]:
    return {**search.get_params(deep=False), "rows": search._fit_X}


def _make_search(parts: dict[str, Any]) -> NearestNeighbors:
    """The tree, if there is one, is grown again from the rows it was grown from."""
    rows = parts.pop("rows")
    return NearestNeighbors(**parts).fit(rows)


def _parts_of_index(index: RetrievalIndex) -> dict[str, Any]:
    return index.__getstate__()


def _make_index(parts: dict[str, Any]) -> RetrievalIndex:
    index = RetrievalIndex.__new__(RetrievalIndex)
    index.__setstate__(parts)
    return index


# ---- the table -----------------------------------------------------------------------------------


def _estimators_of(*modules: Any) -> list[type[BaseEstimator]]:
    public = [getattr(module, name) for module in modules for name in module.__all__]
    return [thing for thing in public if isclass(thing) and issubclass(thing, BaseEstimator)]


_OURS = _estimators_of(compose, kernel, linear)
_THEIRS = [
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PCA,
    RobustScaler,
    StandardScaler,
    TfidfTransformer,
    TruncatedSVD,
]

CLASSES: Mapping[str, ClassOf] = {
    **{cls.__name__: _estimator(cls) for cls in [*_OURS, *_THEIRS]},
    "Pipeline": ClassOf(Pipeline, _parts_of_pipeline, _make_pipeline),
    "RetrievalIndex": ClassOf(RetrievalIndex, _parts_of_index, _make_index),
    "Views": ClassOf(Views, _parts_of_views, _make_views),
    "LabelTable": _of_fields(LabelTable),
    "LabelSums": _of_fields(LabelSums),
    "LabelFeatureSums": _of_fields(LabelFeatureSums),
    "Moments": _of_fields(Moments),
    "LabelledRows": replace(_of_fields(_mlcca.LabelledRows), make=_make_labelled_rows),
    "MVMLCCAStatistic": _of_fields(_label_statistic.LabelStatistic),
    "DrawnLabelFeatures": _of_fields(_label_weighted.DrawnLabelFeatures),
    "FourierLabelFeatures": _of_fields(FourierLabelFeatures),
    "LandmarkLabelFeatures": _of_fields(LandmarkLabelFeatures),
    "Kernel": _of_fields(_kernels.Kernel),
    "FourierFeatures": _of_fields(_features.FourierFeatures),
    "LandmarkFeatures": _of_fields(_features.LandmarkFeatures),
    "Smoother": _of_fields(_ncca.Smoother),
    "NearestNeighbors": ClassOf(NearestNeighbors, _parts_of_search, _make_search),
}


def with_deep() -> dict[str, ClassOf]:
    """The table with deep models, which need torch."""
    from mvcca import deep
    from mvcca.deep.storage import STORED

    estimators = {cls.__name__: _estimator(cls) for cls in _estimators_of(deep)}
    return {**CLASSES, **estimators, **{name: ClassOf(*row) for name, row in STORED.items()}}


def models_in(classes: Mapping[str, ClassOf]) -> dict[type, str]:
    """What `save` takes, and what it is called in files."""
    return {
        known.type: name
        for name, known in classes.items()
        if known.type in (Pipeline, RetrievalIndex)
        or (issubclass(known.type, BaseEstimator) and _is_ours(known.type))
    }
