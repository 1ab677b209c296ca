"""Parameters with one value per row take every container of them, and refuse missing values."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pandas as pd
import pytest

from mvcca import CCA, KCCA, MVMLCCA, PerView, SemanticMatching
from mvcca.compose import Deconfound, MomentPCA, RankGaussian
from mvcca.inspection import (
    correlation_intervals,
    loading_intervals,
    parametric_tests,
    permutation_test,
    stability,
    study,
)
from mvcca.measures import class_means, column_correlations
from mvcca.retrieval import transfer_labels

N = 48
RNG = np.random.default_rng(0)
SHARED = RNG.normal(size=(N, 2))
X = SHARED @ RNG.normal(size=(2, 4)) + RNG.normal(size=(N, 4))
Y = SHARED @ RNG.normal(size=(2, 3)) + RNG.normal(size=(N, 3))
VIEWS = {"a": X, "b": Y}
NAMES = [f"row {i}" for i in RNG.permutation(N)]
FAMILIES = np.array([f"family {i // 4}" for i in range(N)])
CLASSES = np.array(["x", "y", "z"])[np.arange(N) % 3]
WEIGHTS = 1 + np.arange(N) % 3
DRAWN = {"random_state": 0}


def numbers_of(result):
    return result.to_frame().select_dtypes("number").to_numpy()


def scores_of(model):
    return np.hstack([*model.transform(VIEWS).values()])


CALLS = {
    "groups of permutation_test": (
        FAMILIES,
        lambda v: permutation_test(X, Y, groups=v, n_permutations=19, **DRAWN).p_values,
    ),
    "groups of study": (
        FAMILIES,
        lambda v: numbers_of(study(X, Y, groups=v, n_permutations=19, **DRAWN)),
    ),
    "groups of correlation_intervals": (
        FAMILIES,
        lambda v: numbers_of(correlation_intervals(X, Y, groups=v, **DRAWN)),
    ),
    "classes": (CLASSES, lambda v: class_means(X, v)[0]),
    "labels of a reference": (CLASSES, lambda v: transfer_labels(X, v, X + 0.1, k=3)[1]),
    "y": (CLASSES, lambda v: scores_of(MVMLCCA(2).fit(VIEWS, v))),
    "weights of CCA": (WEIGHTS, lambda v: scores_of(CCA(2).fit(VIEWS, sample_weight=v))),
    "weights of a batch": (
        WEIGHTS,
        lambda v: scores_of(CCA(2).partial_fit(VIEWS, sample_weight=v)),
    ),
    "weights of KCCA": (WEIGHTS, lambda v: scores_of(KCCA(2).fit(VIEWS, sample_weight=v))),
    "weights of classifiers": (
        WEIGHTS,
        lambda v: scores_of(SemanticMatching(**DRAWN).fit(VIEWS, CLASSES, sample_weight=v)),
    ),
    "weights of score": (
        WEIGHTS,
        lambda v: CCA(2, reg=0.1).fit(VIEWS).score(VIEWS, sample_weight=v),
    ),
    "weights of Deconfound": (
        WEIGHTS,
        lambda v: Deconfound("b").fit(VIEWS, sample_weight=v).transform(VIEWS)["a"],
    ),
    "weights of MomentPCA": (WEIGHTS, lambda v: MomentPCA(2).fit(X, sample_weight=v).transform(X)),
    "weights of RankGaussian": (
        WEIGHTS,
        lambda v: RankGaussian().fit(X, sample_weight=v).transform(X),
    ),
    "weights of PerView": (
        WEIGHTS,
        lambda v: PerView(MomentPCA(2)).fit(X, sample_weight=v).transform(X),
    ),
    "weights of correlations": (WEIGHTS, lambda v: column_correlations(X[:, :3], Y, v)),
    "weights of a permutation test": (
        WEIGHTS,
        lambda v: permutation_test(X, Y, sample_weight=v, n_permutations=19, **DRAWN).p_values,
    ),
    "weights of parametric tests": (
        WEIGHTS,
        lambda v: numbers_of(parametric_tests(X, Y, sample_weight=v)),
    ),
    "weights of loadings": (
        WEIGHTS,
        lambda v: numbers_of(loading_intervals(X, Y, sample_weight=v, n_resamples=20, **DRAWN)),
    ),
    "weights of stability": (
        WEIGHTS,
        lambda v: numbers_of(stability(CCA(2, reg=0.1), VIEWS, sample_weight=v, cv=3, **DRAWN)),
    ),
}


def containers(values):
    """The same values in every container that users have."""
    pa, pl = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    yield values.tolist()
    yield tuple(values.tolist())
    yield values[:, None]
    yield values.astype(object)
    yield pd.Series(values, index=NAMES)
    yield pd.Series(values, index=np.arange(N)[::-1] + 100)
    yield pd.Series(values, index=NAMES).astype("category")
    yield pd.Series(values).convert_dtypes()
    yield pd.Series(values).convert_dtypes(dtype_backend="pyarrow")
    yield pd.DataFrame({"g": values}, index=NAMES)
    yield pd.DataFrame({"g": values}).convert_dtypes()
    yield pd.Categorical(values)
    yield pd.array(values)
    yield pa.array(values)
    yield pa.chunked_array([values[:9], values[9:]])
    yield pa.table({"g": values})
    yield pl.Series("g", values.tolist())
    yield pl.DataFrame({"g": values.tolist()})
    if values.dtype.kind != "U":
        yield da.from_array(values, chunks=10)
    elif hasattr(np.dtypes, "StringDType"):
        yield values.astype(np.dtypes.StringDType())


def with_missing(values):
    """The same with a missing value in row 3, as each library says it."""
    pa, pl = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    some = values.tolist()
    some[3] = None
    yield some
    yield np.array(some, dtype=object)
    yield pd.Series(some)
    yield pd.Series(some).convert_dtypes()
    yield pd.Series(some).astype("category")
    yield pa.array(some)
    yield pl.Series("g", some)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("values", "call"), CALLS.values(), ids=CALLS)
def test_containers_of_the_same_values_give_the_same_result(values, call):
    expected = call(values)
    for given in containers(values):
        np.testing.assert_allclose(call(given), expected, rtol=1e-9, err_msg=str(type(given)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("values", "call"), CALLS.values(), ids=CALLS)
def test_a_missing_value_is_named(values, call):
    for given in with_missing(values):
        with pytest.raises(ValueError, match=r"missing|NaN|None|<NA>|smallest nan"):
            call(given)


@pytest.mark.parametrize("name", ["within", "sign_flips"])
@pytest.mark.parametrize("values", [pd.Series(CLASSES), CLASSES, CLASSES.tolist(), "x"])
def test_values_of_rows_are_no_switch(name, values):
    says = rf"^{name} must be True or False, got .*\. Values of rows are groups: pass groups="
    with pytest.raises(TypeError, match=says):
        permutation_test(X, Y, **{name: values})
    if name == "within":
        with pytest.raises(TypeError, match=says):
            study(X, Y, within=values)
    found = permutation_test(
        X, Y, groups=FAMILIES, **{name: np.True_}, n_permutations=19, **DRAWN
    ).p_values
    expected = permutation_test(X, Y, groups=FAMILIES, **{name: True}, n_permutations=19, **DRAWN)
    np.testing.assert_array_equal(found, expected.p_values)
