"""The table of the classes that a model file may name, and how each is stored.

Estimators are stored as their parameters and attributes, so that a new one in `mvcca.linear`,
`mvcca.kernel`, `mvcca.deep` or `mvcca.compose` is here by being public there. Classes of
scikit-learn are looked up by `_sklearn`, those of deep models by `mvcca.deep.storage`; each of the
others has a line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import partial
from inspect import isclass
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline

from mvcca import compose, kernel, linear
from mvcca.kernel.classifiers import GivenClassifiers, LogisticModel
from mvcca.kernel.held_out import HeldOut, HeldOutFeatures
from mvcca.kernel.kernels import Kernel
from mvcca.kernel.label_space import AffineModel
from mvcca.kernel.smoothing import Smoother
from mvcca.linear.class_moments import ClassMoments
from mvcca.linear.features import FourierFeatures, LandmarkFeatures
from mvcca.linear.label_features import DrawnLabelFeatures
from mvcca.linear.label_statistic import LabelledRows, LabelStatistic
from mvcca.model_selection import (
    ClassDisjointSplit,
    FoldSearchCV,
    RetrievalScorer,
    retrieval_scorer,
)
from mvcca.model_selection.questions import Evidence, Questions, TrainingCovariance
from mvcca.persistence._estimators import make_estimator, parts_of_estimator, stored_estimator
from mvcca.persistence._given import GIVEN, Code, Given
from mvcca.persistence._sklearn import HELD, arguments_of, stored_search
from mvcca.persistence._values import ClassOf
from mvcca.persistence.maps import VIEWS
from mvcca.problem.question import JointGaussian, SharedSpace
from mvcca.problem.shrinkage import Shrunk
from mvcca.retrieval import RetrievalIndex
from mvcca.similarity import LabelKernel
from mvcca.statistics import CellMoments, LabelSums, Moments, PairMoments, PatternMoments
from mvcca.statistics.label_sums_by_feature import LabelFeatureSums
from mvcca.views import Labels
from mvcca.views.labels_by_view import LabelsByView


def _stored_fields(cls: Any) -> ClassOf:
    """Row of the table for a dataclass."""
    names = [field.name for field in fields(cls) if field.init]
    return ClassOf(
        cls, lambda value: {name: getattr(value, name) for name in names}, lambda p: cls(**p)
    )


def _parts_of_distinct(labels: Labels) -> dict[str, Any]:
    """Statistics keep distinct label vectors, one row each."""
    return {"vectors": labels.vectors, "vocabulary": labels.vocabulary}


def _make_labelled_rows(parts: dict[str, Any]) -> Any:
    rows = LabelledRows(**parts)
    n_distinct = len(rows.labels.distinct)
    for name, block in rows.views.items():  # compiled loops follow the codes
        codes, n_rows = rows.labels.codes[name], block.shape[0]
        if codes.shape != (n_rows,) or not 0 <= codes.min() <= codes.max() < n_distinct:
            raise ValueError(f"codes of view {name!r} do not point into the table of labels")
    return rows


def _make_index(parts: dict[str, Any]) -> RetrievalIndex:
    index = RetrievalIndex.__new__(RetrievalIndex)
    index.__setstate__(parts)
    return index


def _estimators_of(*modules: Any) -> list[type[BaseEstimator]]:
    public = [getattr(module, name) for module in modules for name in module.__all__]
    return [thing for thing in public if isclass(thing) and issubclass(thing, BaseEstimator)]


_SCORER = _stored_fields(RetrievalScorer)

CLASSES: Mapping[str, ClassOf] = {
    **{cls.__name__: stored_estimator(cls) for cls in _estimators_of(compose, kernel, linear)},
    **HELD,
    "RetrievalIndex": ClassOf(RetrievalIndex, lambda i: i.__getstate__(), _make_index),
    "RetrievalScorer": replace(_SCORER, make=lambda parts: retrieval_scorer(**parts)),
    "FoldSearchCV": stored_search(FoldSearchCV),
    "ClassDisjointSplit": ClassOf(
        ClassDisjointSplit,
        arguments_of,
        lambda parts: ClassDisjointSplit(**parts),
    ),
    "Views": VIEWS,
    "Labels": ClassOf(Labels, _parts_of_distinct, lambda parts: Labels(**parts)),
    "LabelsByView": _stored_fields(LabelsByView),
    "LabelledRows": replace(_stored_fields(LabelledRows), make=_make_labelled_rows),
    "ClassMoments": _stored_fields(ClassMoments),
    "MVMLCCAStatistic": _stored_fields(LabelStatistic),
    "Sample": _stored_fields(HeldOutFeatures),  # files keep the name that the class once had
    **{
        cls.__name__: _stored_fields(cls)
        for cls in (
            LabelSums, LabelFeatureSums, Moments, PairMoments, CellMoments, PatternMoments, Shrunk,
            DrawnLabelFeatures, LabelKernel, FourierFeatures, LandmarkFeatures, Kernel, HeldOut,
            Smoother, LogisticModel, GivenClassifiers, AffineModel,
            Questions, TrainingCovariance, Evidence, JointGaussian, SharedSpace,
        )
    },
}  # fmt: skip


def with_deep(given: Given) -> dict[str, ClassOf]:
    """The table with deep models, which need torch; `given` is what `load` was given for them."""
    from mvcca import deep
    from mvcca.deep import storage

    plain = tuple(row[0] for row in storage.STORED.values())

    def parts_of_deep(estimator: BaseEstimator) -> dict[str, Any]:
        parts = storage.parts_of_deep(estimator, parts_of_estimator(estimator))
        values = {name: parts[name] for name in GIVEN if parts.get(name) is not None}
        own = {n: Code.of(n, value) for n, value in values.items() if not isinstance(value, plain)}
        return parts | own

    def make_deep(cls: type[BaseEstimator], parts: dict[str, Any]) -> BaseEstimator:
        networks, probes = parts.pop("networks", None), parts.pop("probes", {})
        if networks is None:
            return make_estimator(cls, parts)
        put = partial(storage.put_networks, networks=networks, probes=probes)
        return make_estimator(cls, parts, put)

    return {
        **CLASSES,
        **{
            cls.__name__: ClassOf(cls, parts_of_deep, partial(make_deep, cls))
            for cls in _estimators_of(deep)
        },
        **{name: ClassOf(*row) for name, row in storage.STORED.items()},
        "Code": ClassOf(Code, lambda code: dict(vars(code)), given.take),
    }


def models_in(table: Mapping[str, ClassOf]) -> set[type]:
    """Classes that `save` takes."""
    ours = {
        known.type
        for known in table.values()
        if known.type.__module__.startswith("mvcca.") and issubclass(known.type, BaseEstimator)
    }
    return ours | {GridSearchCV, Pipeline, RandomizedSearchCV, RetrievalIndex}
