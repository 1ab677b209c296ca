"""Every documented value of every string parameter works where all others have their defaults."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from estimators import LONG
from every_option import estimators, names_of_values

import mvcca
from mvcca import CCA, KCCA, Views
from mvcca.compose import Deconfound, Tokens, WithinSubject
from mvcca.model_selection.fold_statistics import InnerFolds

pytestmark = pytest.mark.filterwarnings("ignore")  # of few rows and of one epoch
N = 60
Y = np.arange(N) % 3
RNG = np.random.default_rng(0)
Z = RNG.normal(size=(3, 4))[Y] + 0.3 * RNG.normal(size=(N, 4))
VIEWS = Views(
    {name: Z @ RNG.normal(size=(4, 6)) + RNG.normal(size=(N, 6)) for name in ("image", "text")}
)
A, B = VIEWS["image"], VIEWS["text"]
GRAMS = Views({name: X @ X.T for name, X in VIEWS.items()})

# ---- estimators ----------------------------------------------------------------------------------


def given(cls: type) -> dict[str, Any]:
    """Parameters without a default, and those that make networks train quickly."""
    known = inspect.signature(cls).parameters
    found: dict[str, Any] = dict.fromkeys({"max_epochs", "pretraining_epochs"} & set(known), 1)
    if "random_state" in known:  # else ReLUs of an unlucky network may all be off after a step
        found["random_state"] = 3
    if "objective" in known and known["objective"].default is inspect.Parameter.empty:
        from mvcca.deep.layers import CCALayer
        from mvcca.deep.objectives import BoundLoss, ranking_loss

        found["objective"] = BoundLoss(ranking_loss, layer=CCALayer(2))
        found["n_components"] = 2
    needed = {Deconfound: {"confounds": "text"}, WithinSubject: {"subjects": "text"}}
    return found | needed.get(cls, {})


def rows_for(cls: type, value: Any) -> Any:
    if cls is Tokens:
        return [f"a text of {label} words" for label in Y]
    if cls.__name__ in ("MomentPCA", "SplitViews"):
        return A
    if cls is WithinSubject:
        return Views({"image": A, "text": np.arange(len(A))[:, None] // 2})
    return GRAMS if cls is KCCA and value == "precomputed" else VIEWS


def values() -> Iterator[Any]:
    """Parameters and values; those that networks inherit are tried on deep CCA and one other."""
    quickly: set[str] = set()
    networks = [cls for cls in estimators().values() if cls.__module__.startswith("mvcca.deep")]
    for name, cls in sorted(estimators().items(), key=lambda own: own[0] != "DCCA"):
        for parameter, value in names_of_values(cls):
            turn = crc32(f"{parameter}={value}".encode()) % max(len(networks), 1)
            is_spared = cls in networks and cls is not networks[turn] and parameter in quickly
            marks = LONG if is_spared and name != "DCCA" else ()
            yield pytest.param(cls, parameter, value, id=f"{name}-{parameter}-{value}", marks=marks)
        if name == "DCCA":
            quickly |= set(cls._parameter_constraints)


@pytest.mark.slow  # half a minute for all
@pytest.mark.parametrize(("cls", "parameter", "value"), [*values()])
def test_every_value_of_an_estimator_works_with_all_other_defaults(cls, parameter, value):
    X = rows_for(cls, value)
    y = None if cls.__module__.startswith("mvcca.compose") else Y
    has_ridge = (parameter, value) == ("scale", "cv") and "reg" in cls._get_param_names()
    ridge = {"reg": "cv"} if has_ridge else {}  # which the scale is for
    scores = cls(**{**given(cls), **ridge, parameter: value}).fit(X, y).transform(X)
    matrices = [own for _, own in scores.items()] if hasattr(scores, "items") else [scores]
    if cls is not Tokens:
        assert all(np.isfinite(np.asarray(own)).all() for own in matrices)


# ---- functions -----------------------------------------------------------------------------------


MODULES = (
    *("comparison", "datasets", "inspection", "interop.migration", "interop.alignment", "measures"),
    *("model_selection", "retrieval"),
)
_ENTRY = re.compile(r'^(\w[\w, ]*) : [^\n]*?\{([^\n{}]*"[^\n{}]*)\}', re.M)


def documented(function: Callable[..., Any]) -> Iterator[tuple[str, str]]:
    """Parameters and values that a docstring names in braces."""
    for parameters, values in _ENTRY.findall(inspect.getdoc(function) or ""):
        for parameter in set(parameters.split(", ")) & {*inspect.signature(function).parameters}:
            yield from ((parameter, value) for value in re.findall(r'"([^"]+)"', values))


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Public functions with documented names of values."""
    for module in (import_module(f"mvcca.{name}") for name in MODULES):
        for name in module.__all__:
            function = getattr(module, name)
            if inspect.isfunction(function) and any(documented(function)):
                yield name, function


S = RNG.normal(size=(8, 8))
RELEVANT = S > 0.3
RELEVANT[:, 0] = True
MODEL = CCA(2, reg=0.1).fit(VIEWS)
SCORES = MODEL.transform(VIEWS)
MANY = RNG.normal(size=(700, 6))
FOLDS = InnerFolds(np.arange(N) % 3)
# Arguments without a default, or that take less time.
ARGUMENTS: Mapping[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "compare": ((["cca"], VIEWS, Y), {"cv": 3, "tune": False}),
    "example_data": ((), {}),
    "load_digits_views": ((), {}),
    "make_sparse_views": ((30,), {}),
    "correlation_intervals": ((MANY[:, :3], MANY[:, 3:]), {"random_state": 0}),
    "parametric_tests": ((A, B), {}),
    "permutation_test": ((A, B), {"n_permutations": 9, "random_state": 0}),
    "study": ((A, B), {"n_permutations": 19, "random_state": 0}),
    "fit_migration": ((A, B), {}),
    "align_unpaired": ((A, B), {"pairs": np.c_[:12, :12]}),
    "average_precision": ((S, RELEVANT), {}),
    "ndcg": ((S, RELEVANT), {}),
    "relevant_ranks": ((S, RELEVANT), {}),
    "weighted_average_precision": ((S, abs(S)), {}),
    "choices": (
        (CCA(reg="cv"), VIEWS.with_ids(np.arange(1, N + 1)), None, FOLDS),
        {"goal": "object", "labels": mvcca.Labels.of(Y)},
    ),
    "retrieval_scorer": (("mrr",), {}),
    "sample_size": ((0.5, (5, 5)), {"decay": (-1.0, -1.0)}),
    "evaluate_retrieval": ((VIEWS, Y), {"estimator": MODEL}),
    "mutual_neighbors": ((A, B), {}),
    "per_query": ((A, B), {}),
    "ranks": ((A, B), {}),
    "retrieval_vectors": ((MODEL, VIEWS), {}),
    "top_k": ((A[:8], B, 5), {}),
    "transfer_labels": ((A, Y.astype(str), A[:8]), {}),
}
# Values that say how to use data, which have no default: the error names the argument.
NEEDED: Mapping[tuple[str, ...], str] = {
    ("hubness", "csls"): "bank",
    ("mutual_neighbors", "hubness", "csls"): "",  # its own rows are the bank
    **{("projection", name): "confounds" for name in ("huh-jhun", "theil")},
    ("retrieval_scorer", "relevance", "labels"): "labels",
    ("relevance", "gains"): "gains",
    ("fit_migration", "method", "cca"): "direction='queries' or direction",
}


@pytest.mark.parametrize(
    ("name", "parameter", "value"),
    [(name, *own) for name, function in functions() for own in documented(function)],
)
def test_every_value_of_a_function_works_or_names_the_argument_it_needs(name, parameter, value):
    function = dict(functions())[name]
    positional, keywords = ARGUMENTS[name]

    def use() -> None:
        found = function(*positional, **{**keywords, parameter: value})
        if name == "retrieval_scorer":
            found(MODEL, VIEWS)

    if needed := NEEDED.get((name, parameter, value), NEEDED.get((parameter, value))):
        with pytest.raises(ValueError, match=needed):
            use()
    else:
        use()
