"""The contract that every estimator keeps, as one table of estimators and one of each thing asked.

A new estimator adds itself to `ESTIMATORS` (or `STEPS`) and is held to all of it, in every storage.
`make test` tries the first case of a product on every estimator but those that are alike, and all
cases on one estimator per family; the rest is slow.
"""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import date, timedelta
from functools import partial
from importlib.util import find_spec
from inspect import signature
from io import BytesIO
from itertools import pairwise, permutations
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import Any

import dask.array as da
import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from given_matrices import GivenMatrices
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

import mvcca
from mvcca import (
    CCA,
    CFA,
    CMOLRS,
    GCCA,
    JRL,
    KCCA,
    LGCFL,
    MLCCA,
    MVCCA,
    MVMLCCA,
    NCCA,
    PLS,
    AffineMap,
    JoinViews,
    PerView,
    Procrustes,
    RetrievalIndex,
    SplitViews,
    Views,
    config_context,
)
from mvcca.compose import MomentPCA, RankGaussian
from mvcca.plotting import CorrelationDisplay
from mvcca.retrieval.ranking import Ranking

# Estimators whose maps are linear, so that scaling, moving and repeating columns change no score.
LINEAR = [CCA(), MVCCA(), MLCCA(), MVMLCCA(within="label"), GCCA()]
KERNEL = [
    KCCA(),
    KCCA(approximation="fourier", n_landmarks=20, random_state=0),
    KCCA(approximation="nystroem", n_landmarks=20, random_state=0),
    KCCA(approximation="cholesky", n_landmarks=20),
]
COVARYING = [
    PLS(),
    CFA(),
    Procrustes(),
    AffineMap(),
]  # linear too, but the units of columns matter to them
# Linear as well, but the first two have a component per label, and no eigenvalues.
BASELINES = [LGCFL(), JRL(n_neighbors=5), CMOLRS(n_epochs=2, random_state=0)]

# Networks. Not held to what linear maps keep (scale, position and copies of columns), for units of
# features matter to gradients; nor to what follows from sums over rows, for the first weights are
# drawn view by view, batches by position, and a batch is a step, not a summand: they mind the order
# of rows and views, and their partial_fit is one epoch more. Views must be paired.
DEEP: list[Any] = []
if find_spec("torch"):
    from deep_estimators import DEEP
SHALLOW = [*LINEAR, *KERNEL, *COVARYING, *BASELINES]
ESTIMATORS = [*SHALLOW, *DEEP]
# Operators of the user's own, and scores of new rows by neighbours rather than weights.
OTHERS = [GivenMatrices(), NCCA()]
# Deep estimators have one `fit`, and rows come in by one door: deep CCA stands for all of them
# where every form of rows is tried.
DOORS = [*SHALLOW, *DEEP[:1]]

# The same where a choice of parameters takes another way through the code.
LINEAR_VARIANTS = [
    *LINEAR,
    CCA(reg=0.1),
    CCA(reg="auto"),
    MVCCA(power=2.0),
    CCA(missing="pairwise"),
    MVCCA(missing="em"),
    MLCCA(label_similarity="cosine"),
    MLCCA(label_similarity="equal"),
    MLCCA(label_similarity="equal", weighting="means"),
    MLCCA(n_neighbors=5, random_state=0),
    MVMLCCA(label_similarity="exp", within="label"),
    MVMLCCA(within="sample"),
    MLCCA(label_features="fourier", random_state=0),
    MLCCA(label_features="nystroem", n_label_features=20, random_state=0),
    MVMLCCA(label_features="fourier", random_state=0, within="label"),
    MVMLCCA(label_features="nystroem", n_label_features=20, within="sample", random_state=0),
]
SHALLOW_VARIANTS = [
    *SHALLOW,
    *LINEAR_VARIANTS[len(LINEAR) :],
    KCCA(gamma=0.005, reg=0.1),
    KCCA(gamma=0.005, approximation="fourier", n_landmarks=20, random_state=0),
    KCCA(kernel="linear"),
    PLS(scale=True),
    Procrustes(2, scale=False),
    AffineMap(2, reg=0.0),
]
VARIANTS = [*SHALLOW_VARIANTS, *DEEP]

# scikit-learn knows by name which estimators take a second matrix and project it too.
estimator_checks.CROSS_DECOMPOSITION += sorted(
    {type(est).__name__ for est in [*ESTIMATORS, NCCA()] if not est.requires.labels} - {"CCA"}
)

STEPS = [
    SplitViews(),
    JoinViews(),
    JoinViews("mean"),
    PerView(),
    PerView(StandardScaler()),
    PerView({"X": StandardScaler(with_std=False)}),  # which takes sample_weight; PCA does not
]
_SETTINGS = [*SHALLOW, NCCA(), *STEPS, RankGaussian(), MomentPCA()]
_SETTINGS += [clone(est).set_params(max_epochs=1, batch_size=750) for est in DEEP[:1]]
CHECKED = list({type(est): est for est in reversed(_SETTINGS)}.values())  # one of each class
CHECKED_SLOWLY = [est for est in _SETTINGS if est not in CHECKED]


SLOW = pytest.mark.slow


# Kernel CCA from landmarks is fitted as from random features, and all networks have one `fit`: what
# every estimator keeps is tried quickly on the first of them.
ALIKE = [*KERNEL[2:], *DEEP[1:]]


def over(estimators: list[Any]) -> Any:
    params = [
        pytest.param(
            estimator,
            id=" ".join(repr(estimator).split()),
            marks=SLOW if estimator in ALIKE else (),
        )
        for estimator in estimators
    ]
    return pytest.mark.parametrize("estimator", params)


# One estimator per family, on which every case of a product is tried; the first case is tried on
# every estimator. What is left of the product is marked slow; networks share a door for rows and
# labels, so that the first one stands for the others.
FAMILIES = [LINEAR[0], LINEAR[3], KERNEL[0], BASELINES[1], *DEEP[:1]]


def crossed(
    argument: str, cases: Mapping[str, Any], estimators: list[Any], *, widely: bool = True
) -> Any:
    """Parametrise over estimators and named cases; `argument` may name several, of tuples.

    Unless `widely`, only one estimator per family is tried on the first case quickly.
    """
    first = next(iter(cases))
    _, *other_networks = [estimator for estimator in estimators if estimator in DEEP] or [None]
    params = []
    for estimator in estimators:
        for name, case in cases.items():
            if name != first and estimator in other_networks:
                continue
            values = case if "," in argument else (case,)
            is_first = widely and name == first and estimator not in ALIKE
            marks = () if is_first or estimator in FAMILIES else SLOW
            label = f"{name}-{' '.join(repr(estimator).split())}"
            params.append(pytest.param(estimator, *values, id=label, marks=marks))
    names = ["estimator", *(part.strip() for part in argument.split(","))]
    return pytest.mark.parametrize(names, params)


# Where rows are held. In a test with `form`, the first is tried on every estimator.
FOLDER = TemporaryDirectory()


def in_file(X: np.ndarray) -> np.ndarray:
    """The rows in a file that is mapped into memory."""
    with NamedTemporaryFile(suffix=".npy", dir=FOLDER.name, delete=False) as file:
        np.save(file, X)
    return np.load(file.name, mmap_mode="r")


def in_chunks(X: Any) -> Any:
    """A Dask array of several chunks that hold what a matrix stores, as it stores it."""
    parts = [X[start : start + 37] for start in range(0, max(1, X.shape[0]), 37)]
    return da.concatenate([da.from_array(part, chunks=part.shape, asarray=False) for part in parts])


STORAGES = {
    "dense": np.asarray,
    "csr": sp.csr_array,
    "float32": np.float32,
    "Dask": in_chunks,
    "file": in_file,
}


def asks(estimator: Any, name: str) -> Any:
    return estimator.get_params().get(name)


def ridged(estimator: Any, reg: float) -> Any:
    """A fresh estimator, with that ridge if it takes one."""
    return clone(estimator).set_params(**{"reg": reg} if "reg" in vars(estimator) else {})


LABELLED = [est for est in VARIANTS if est.requires.labels]
# Networks pair rows at random, see tests/test_deep_unpaired.py.
UNPAIRED = [est for est in LABELLED if est not in DEEP]
# The number of components is bounded by the data, not only by the networks.
BOUNDED = [est for est in VARIANTS if est not in DEEP or asks(est, "reg")]
# Weights are counts of rows in sums: not where ties or landmarks are drawn by position, or rows are
# neighbours. Of methods without sums over rows, weights repeat the rows.
REPEATING = [*BASELINES[1:], OTHERS[1], *DEEP]
SIZED = [est for est in VARIANTS if asks(est, "n_components")]
# Ties among neighbours are drawn by the position of a row, and a row counts once as a neighbour;
# landmarks are rows, and so are triplets.
POSITION_BLIND = [
    est
    for est in SHALLOW_VARIANTS
    if not asks(est, "n_neighbors")
    and not asks(est, "n_triplets")
    and asks(est, "approximation") not in ("nystroem", "cholesky")
]
ORDER_BLIND = [*POSITION_BLIND, *(est for est in BASELINES if isinstance(est, JRL))]
RIDGED = [est for est in ESTIMATORS if "reg" in vars(est) and not isinstance(est, AffineMap)]
ADDING = [
    est
    for est in SHALLOW_VARIANTS
    if hasattr(est, "partial_fit")
    # The median distance, and landmarks, are of the first batch.
    and (not asks(est, "approximation") or asks(est, "gamma") != "auto")
]

# Holes are allowed, so that objects that are seen in one view count.
WITH_HOLES = [est for est in LINEAR_VARIANTS if asks(est, "missing") in ("pairwise", "em")]
COMPLETE = [est for est in LINEAR_VARIANTS if est not in WITH_HOLES]

every_estimator = over(ESTIMATORS)
every_door = over(DOORS)
every_variant = over(VARIANTS)
every_door_variant = over([*SHALLOW_VARIANTS, *DEEP[:1]])
every_shallow_variant = over(SHALLOW_VARIANTS)
every_linear = over(LINEAR)
every_linear_variant = over(LINEAR_VARIANTS)

NAMES = ("image", "text", "sound")
WIDTHS = (6, 5, 4)
N = 90


# ---- data and comparisons ------------------------------------------------------------------------


def blocks_for(estimator: Any, *, whole: bool = False, seed: int = 0) -> dict[str, np.ndarray]:
    """Views that share what their labels say and more; `whole` numbers fit every dtype."""
    rng = np.random.default_rng(seed)
    latent = LABELS @ np.diag([4.0, 3.0, 2.0, 1.5]) + rng.standard_normal((N, 4))
    blocks = {
        name: latent @ rng.standard_normal((4, d)) + rng.standard_normal((N, d)) + 1
        for name, d in zip(NAMES, WIDTHS, strict=True)
    }
    if whole:
        blocks = {name: np.round(4 * X) for name, X in blocks.items()}
    return dict(list(blocks.items())[: estimator.requires.views[1]])


# Every non-empty set of four labels, six times over.
LABELS = np.array([[code >> bit & 1 for bit in range(4)] for code in range(1, 16)] * (N // 15))


_FITTED: dict[int, Any] = {}


def fitted(estimator: Any) -> Any:
    """The model of `blocks_for(estimator)`, fitted once, for tests that only read it."""
    if id(estimator) not in _FITTED:
        _FITTED[id(estimator)] = clone(estimator).fit(blocks_for(estimator), LABELS)
    return _FITTED[id(estimator)]


def rounding(estimator: Any) -> float:
    """Of the scores of a row among others: networks compute in float32, whose last digits depend on
    how many rows are multiplied at once."""
    return 1e-5 if estimator in DEEP else 1e-12


def strengths(model: Any) -> np.ndarray:
    """Eigenvalues; where components stand for labels, the lengths of their weights."""
    if hasattr(model, "eigenvalues_"):
        return model.eigenvalues_
    if not hasattr(model, "weights_"):  # outputs of networks, compared as scores
        return np.ones(model.n_components_)
    return np.linalg.norm(np.concatenate(list(model.weights_.values())), axis=0)


def assert_same_model(
    model: Any, expected: Any, tol: float = 1e-8, probe: Any = None, same_pairs: bool = True
) -> None:
    """Equal strengths, and equal scores of the same rows, in units of the largest of a view.

    So are the rows that retrieval compares, which may be weighted scores or shares of labels.
    Weights come from the correlations of pairs, and differ unless both fits saw the same ones.
    """
    assert model.n_components_ == expected.n_components_
    np.testing.assert_allclose(strengths(model), strengths(expected), rtol=tol, atol=tol)
    assert set(model.view_names_) == set(expected.view_names_)
    rows = blocks_for(expected, seed=9) if probe is None else probe
    rows = {name: rows[name] for name in expected.view_names_}
    for method in projections(expected) - (set() if same_pairs else {"retrieval_scores"}):
        scores = getattr(model, method)(rows)
        for name, wanted in getattr(expected, method)(rows).items():
            assert_same_scores(scores[name], wanted, tol)
    if same_pairs and hasattr(expected, "expected_deviations_"):
        assert_same_ratios(model, expected, rows, tol)


def assert_same_ratios(model: Any, expected: Any, rows: dict[str, Any], tol: float) -> None:
    """Equal log-likelihood ratios of all rows, from every view to every other one."""

    def ratios(model: Any, p: str, q: str) -> np.ndarray:
        ranking = Ranking.of(model, weighting="likelihood")
        projected = ranking.project({p: rows[p], q: rows[q]}, unpaired=True).rows
        queries = ranking.queries({p: projected[p]}, (q,))
        items = ranking.items({q: projected[q]})
        return queries @ items.T

    for p, q in permutations(rows, 2):
        assert_same_scores(ratios(model, p, q), ratios(expected, p, q), 10 * tol)


def projections(model: Any) -> set[str]:
    """`transform`, and the method whose rows retrieval compares."""
    return {"transform", model.retrieval_ranking[0]}


def assert_same_scores(scores: Any, expected: Any, tol: float = 1e-8) -> None:
    np.testing.assert_allclose(scores, expected, rtol=0, atol=tol * np.abs(expected).max())


@contextmanager
def untouched(*things: Any) -> Iterator[None]:
    """What was passed in is the same to the last byte when the block ends."""
    before = [fingerprint(thing) for thing in things]
    yield
    assert [fingerprint(thing) for thing in things] == before


def fingerprint(thing: Any) -> Any:
    if isinstance(thing, da.Array):
        return thing.name
    if isinstance(thing, Views):
        return fingerprint(dict(thing.items())), thing.seen.tobytes()
    if sp.issparse(thing):
        return type(thing), thing.shape, sorted(sparse_entries(thing))
    if isinstance(thing, Mapping):
        return {name: fingerprint(part) for name, part in thing.items()}
    if isinstance(thing, list | tuple):
        return [fingerprint(part) for part in thing]
    if isinstance(thing, np.ma.MaskedArray):
        return thing.data.tobytes(), thing.mask.tobytes()
    if isinstance(thing, np.ndarray) and thing.dtype.kind != "O":
        return thing.dtype, thing.shape, thing.strides, thing.tobytes()
    return pickle.dumps(thing)


def sparse_entries(matrix: Any) -> Iterator[tuple[str, bytes]]:
    """The arrays that a sparse matrix is made of; of a DOK matrix, a dictionary, its items."""
    if matrix.format == "dok":
        yield "items", repr(list(matrix.items())).encode()
    for name, part in vars(matrix).items():
        if isinstance(part, np.ndarray):
            yield name, repr(part.tolist()).encode() if part.dtype.kind == "O" else part.tobytes()


def freeze(thing: Any) -> Any:
    """The same with every array marked as not to be written."""
    parts = [getattr(thing, part, None) for part in ("data", "indices", "indptr", "row", "col")]
    for part in [thing, *parts] if sp.issparse(thing) else [thing]:
        if isinstance(part, np.ndarray):
            part.flags.writeable = False
    return thing


def test_every_public_estimator_is_in_the_table():
    modules = [mvcca.linear, mvcca.kernel, *([mvcca.deep] if find_spec("torch") else [])]
    public = {
        value
        for module in modules
        for value in (getattr(module, name) for name in module.__all__)
        if isinstance(value, type) and hasattr(value, "fit")
    }
    assert public <= {type(estimator) for estimator in [*ESTIMATORS, *OTHERS]}


# ---- scikit-learn's own contract -----------------------------------------------------------------

ROUNDING = {  # 1e-7 is asked for
    "check_methods_subset_invariance": "networks compute in float32, whose rounding depends on "
    "how many rows are multiplied at once"
}
# The check changes the order of rows, by which batches, triplets and ties of neighbours are drawn.
BY_ORDER = dict.fromkeys(
    (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ),
    "the order of rows decides what is drawn, or which of equal rows are neighbours",
)


def expected_failures(estimator: Any) -> dict[str, str]:
    if type(estimator) in map(type, DEEP):
        return ROUNDING | BY_ORDER
    return BY_ORDER if isinstance(estimator, CMOLRS | NCCA) else {}


# The rounding may be the same. scikit-learn has the option from 1.8 on, and the oldest versions are
# tested without networks.
_options = signature(parametrize_with_checks).parameters
NOT_STRICT = {"xfail_strict": False} if "xfail_strict" in _options else {}


@pytest.mark.filterwarnings("ignore::UserWarning")  # of clipped components and rank in tiny data
@parametrize_with_checks(
    CHECKED,
    expected_failed_checks=expected_failures,
    **NOT_STRICT,
)
def test_scikit_learn_estimator_checks_pass(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks(CHECKED_SLOWLY)
def test_scikit_learn_estimator_checks_pass_with_other_parameters(estimator, check):
    check(estimator)


@over(DEEP[1:])  # whose constructors are their own, and whose fit is not
def test_checks_of_constructors_pass(estimator):
    for check in (
        estimator_checks.check_no_attributes_set_in_init,
        estimator_checks.check_get_params_invariance,
        estimator_checks.check_set_params,
        estimator_checks.check_estimator_cloneable,
        estimator_checks.check_estimator_repr,
    ):
        check(type(estimator).__name__, estimator)


@pytest.mark.slow
def test_no_check_is_skipped_where_scipy_speaks_the_array_api():
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-k", "check_array_api_input", __file__],
        capture_output=True,
        text=True,
        env=os.environ | {"SCIPY_ARRAY_API": "1"},
        cwd=Path(__file__).parents[1],
    )
    assert f"{len(CHECKED) + len(CHECKED_SLOWLY)} passed" in answer.stdout
    assert "skipped" not in answer.stdout


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "estimator",
    [
        pytest.param(est, id=" ".join(repr(est).split()), marks=() if est in CHECKED else SLOW)
        for est in [*CHECKED, *CHECKED_SLOWLY]
    ],
)
def test_checks_that_scikit_learn_keeps_for_its_own_pass_too(estimator):
    for check in (
        estimator_checks.check_set_output_transform,
        estimator_checks.check_set_output_transform_pandas,
        estimator_checks.check_set_output_transform_polars,
        estimator_checks.check_global_output_transform_pandas,
        estimator_checks.check_global_set_output_transform_polars,
        estimator_checks.check_transformer_get_feature_names_out,
        estimator_checks.check_transformer_get_feature_names_out_pandas,
        estimator_checks.check_dataframe_column_names_consistency,
        estimator_checks.check_param_validation,
    ):
        check(type(estimator).__name__, estimator)


# ---- bad matrices: one clear error that names the view -------------------------------------------


def with_entry(value: Any, dtype: Any = float) -> Callable[[np.ndarray], np.ndarray]:
    def change(X: np.ndarray) -> np.ndarray:
        X = X.astype(dtype)
        X[3, 1] = value
        return X

    return change


def sparse_with_nan(X: np.ndarray) -> Any:
    return sp.csr_array(with_entry(np.nan)(X))


BAD_MATRICES = {
    "NaN": (with_entry(np.nan), "View 'text': Input contains NaN."),
    "NaN in float32": (with_entry(np.nan, np.float32), "View 'text': Input contains NaN."),
    "NaN in sparse": (sparse_with_nan, "View 'text': Input contains NaN."),
    "NaN in a file": (
        lambda X: in_file(with_entry(np.nan)(X)),
        "View 'text'.*NaN",
    ),
    "infinity in a file": (
        lambda X: in_file(with_entry(np.inf)(X)),
        "View 'text'.*infinity",
    ),
    "NaN in Dask chunks": (
        lambda X: in_chunks(with_entry(np.nan)(X)),
        "View 'text'.*NaN",
    ),
    "NaN in DataFrame": (
        lambda X: pd.DataFrame(with_entry(np.nan)(X)),
        "View 'text': Input contains NaN.",
    ),
    "NA in DataFrame": (
        lambda X: pd.DataFrame(with_entry(pd.NA, object)(X)).convert_dtypes(),
        "View 'text': Input contains NaN.",
    ),
    "infinity": (with_entry(np.inf), "View 'text': Input contains infinity"),
    "minus infinity": (with_entry(-np.inf), "View 'text': Input contains infinity"),
    "a string among objects": (with_entry("1.5", object), "View 'text': Expected numbers, got str"),
    "numeric strings": (lambda X: X.astype(str), "View 'text': Expected numbers, got strings"),
    "bytes": (lambda X: X.astype("S"), "View 'text': Expected numbers, got strings"),
    "strings in lists": (
        lambda X: X.astype(str).tolist(),
        "View 'text': Expected numbers, got strings",
    ),
    "strings in a DataFrame": (
        lambda X: pd.DataFrame(X.astype(str)),
        "View 'text': Expected numbers, got strings",
    ),
    "dates": (
        lambda X: pd.DataFrame(X).rename(columns=str).assign(**{"1": pd.to_datetime("2020-01-01")}),
        "View 'text': Expected numbers, got dates in column '1'",
    ),
    "dates only": (
        lambda X: (1e6 * X).astype("M8[s]"),
        "View 'text': Expected numbers, got dates in columns 0, 1, 2",
    ),
    "dates in polars": (
        lambda X: pl.DataFrame(X).with_columns(column_1=date(2020, 1, 1)),
        "View 'text': Expected numbers, got dates in column 'column_1'",
    ),
    "dates among objects": (
        with_entry(date(2020, 1, 1), object),
        "View 'text': Expected numbers, got dates in column",
    ),
    "durations": (
        lambda X: pd.DataFrame((1e6 * X).astype("m8[s]")),
        "View 'text': Expected numbers, got durations in columns 0, 1, 2",
    ),
    "durations in polars": (
        lambda X: pl.DataFrame(X).with_columns(column_1=timedelta(1)),
        "View 'text': Expected numbers, got durations in column 'column_1'",
    ),
    "periods": (
        lambda X: pd.DataFrame(
            {j: pd.period_range("2020", periods=len(X)) for j in range(X.shape[1])}
        ),
        "View 'text': Expected numbers, got dates in columns 0, 1, 2",
    ),
    "a category": (
        lambda X: pd.DataFrame(X.astype(str)).astype("category"),
        "View 'text': Expected numbers, got strings in columns 0, 1, 2",
    ),
    "complex in a DataFrame": (
        lambda X: pd.DataFrame(X + 1j),
        "View 'text': Complex data not supported in columns 0, 1, 2",
    ),
    "lists in polars": (
        lambda X: pl.DataFrame(X).with_columns(column_1=pl.Series(X[:, :2].tolist())),
        "View 'text': Expected numbers, got lists in column 'column_1'",
    ),
    "names of two types": (
        lambda X: pd.DataFrame(X, columns=["a", *range(X.shape[1] - 1)]),
        "View 'text': Expected column names of one type, got the string 'a' beside 0",
    ),
    "a dict among objects": (with_entry({"a": 1}, object), "View 'text': .*number"),
    "complex": (lambda X: X + 1j, "View 'text': Complex data not supported"),
    "complex sparse": (lambda X: sp.csr_array(X + 1j), "View 'text': Complex data not supported"),
    "np.matrix": (np.asmatrix, "View 'text': np.matrix is not supported"),
    "masked": (
        lambda X: np.ma.masked_where(X > 3, X),
        "View 'text': Masked arrays are not supported.*Fill or drop",
    ),
    "masked nowhere": (np.ma.array, "View 'text': Masked arrays are not supported"),
    "3-D": (lambda X: X[None], "2-D matrix, got shape .* for 'text'"),
    "1-D": (lambda X: X[:, 0], "2-D matrix, got shape .* for 'text'.*Reshape"),
    "1-D sparse": (lambda X: sp.coo_array(X[:, 0]), "2-D matrix, got shape .* for 'text'"),
    "0-D": (lambda _: 3.0, "2-D matrix, got shape .* for 'text'"),
    "no columns": (lambda X: X[:, :0], r"View 'text': Found array with 0 feature\(s\)"),
    "no columns, sparse": (
        lambda X: sp.csr_array(X[:, :0]),
        r"View 'text': Found array with 0 feature\(s\)",
    ),
}


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@crossed("change, message", BAD_MATRICES, [*DOORS, *WITH_HOLES])
def test_a_bad_matrix_is_one_clear_error_that_names_the_view(estimator, change, message):
    if "NaN" in message and estimator in WITH_HOLES:
        pytest.skip("missing cells are allowed: see test_missing.py")
    good = blocks_for(estimator)
    bad = {**good, "text": change(good["text"])}
    model = fitted(estimator)
    known = message
    if "no columns" in message or "0 feature" in message:
        known = "View 'text' has 0 features, but .* is expecting 5 features as input"
    calls = {
        "fit": (partial(clone(estimator).fit, y=LABELS), message),
        "transform": (lambda bad: list(map(np.asarray, model.transform(bad).values())), known),
        "score": (partial(model.score, y=LABELS), known),
    }
    if hasattr(estimator, "partial_fit"):
        calls["partial_fit"] = (partial(clone(estimator).partial_fit, y=LABELS), message)
    for call, words in calls.values():
        with untouched(bad, LABELS), pytest.raises((ValueError, TypeError), match=words):
            call(bad)


@crossed("form", STORAGES | {"DataFrame": pd.DataFrame}, DOORS)
def test_too_few_rows_are_refused_in_scikit_learns_words(estimator, form):
    for rows in (0, 1):
        few = {name: form(X[:rows]) for name, X in blocks_for(estimator).items()}
        message = (
            rf"View 'image': Found array with {rows} sample\(s\) \(shape=\({rows}, 6\)\) while a "
            f"minimum of 2 is required by {type(estimator).__name__}."
        )
        with pytest.raises(ValueError, match=message):
            clone(estimator).fit(few, LABELS[:rows])


BAD_QUERIES = {
    "of another width": (
        lambda X: {"text": X["text"][:, :4]},
        "View 'text' has 4 features, but .* is expecting 5",
    ),
    "of a view that was not fitted": (
        lambda X: {"smell": X["text"]},
        r"Unknown view 'smell'.*fitted on the views \['image'",
    ),
    "without rows": (
        lambda X: {"text": X["text"][:0]},
        r"View 'text': Found array with 0 sample\(s\)",
    ),
    "a list of another length": (
        lambda X: [X["image"]],
        r"list of \d views .* got 1\. .* use a mapping by name",
    ),
    "a lone matrix": (lambda X: X["image"], r"name the view of a lone matrix: {'image': X}"),
    "a lone row": (
        lambda X: {"text": X["text"][0]},
        r"a single row with x\.reshape\(1, -1\)",
    ),
}


@crossed("form", STORAGES, ESTIMATORS)
def test_a_bad_query_is_one_clear_error(estimator, form):
    blocks = {name: form(X) for name, X in blocks_for(estimator).items()}
    for query, message in BAD_QUERIES.values():
        if query is BAD_QUERIES["a lone row"][0] and form not in (np.asarray, np.float32):
            continue
        with pytest.raises(ValueError, match=message):
            fitted(estimator).transform(query(blocks))
    with pytest.raises(ValueError, match="takes y only as the second view"):
        fitted(estimator).transform(blocks, LABELS)


@over([*ESTIMATORS, *OTHERS])
def test_two_rows_give_numbers_or_an_error_but_never_nan(estimator):
    two = {name: X[:2] for name, X in blocks_for(estimator).items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = clone(estimator).fit(two, LABELS[:2])
        except ValueError:
            pass
        else:
            assert all(np.isfinite(scores).all() for scores in model.transform(two).values())


@crossed("form", STORAGES, ESTIMATORS)
def test_views_of_different_heights_are_named_with_their_rows(estimator, form):
    blocks = {name: form(X) for name, X in blocks_for(estimator).items()}
    blocks["text"] = blocks["text"][:10]
    with pytest.raises(ValueError, match=r"image: 90, text: 10.*Use Views\.unpaired"):
        clone(estimator).fit(blocks, LABELS)


@over(LABELLED)
def test_labels_of_another_number_of_objects_are_refused(estimator):
    blocks = blocks_for(estimator)
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[90, 80\]"):
        clone(estimator).fit(blocks, LABELS[:80])


@over(LABELLED)
def test_labels_of_a_view_that_has_another_number_of_rows_name_the_view(estimator):
    blocks = blocks_for(estimator)
    labels = dict.fromkeys(blocks, LABELS) | {"text": LABELS[:80]}
    with pytest.raises(ValueError, match="View 'text' has 90 rows but 80 labels"):
        clone(estimator).fit(blocks, labels)
    with pytest.raises(ValueError, match="View 'view1' has 90 rows but 80 labels"):
        clone(estimator).fit(list(blocks.values()), list(labels.values()))


BAD_WEIGHTS = {
    "too few": (np.ones(N - 1), "sample_weight.shape"),
    "two-dimensional": (np.ones((N, 2)), "1D array"),
    "negative": (np.r_[-1.0, np.ones(N - 1)], "Negative values"),
    "NaN": (np.r_[np.nan, np.ones(N - 1)], "contains NaN"),
    "all zero": (np.zeros(N), "zero|more than 1, got 0"),
    "that add up to one": (np.full(N, 1 / N), "must sum to more than 1, got 1"),
    "masked": (
        np.ma.array(np.ones(N), mask=np.arange(N) < 3),
        "Masked arrays are not supported",
    ),
}


@crossed("weights, message", BAD_WEIGHTS, ESTIMATORS)
def test_bad_sample_weights_are_refused(estimator, weights, message):
    with untouched(weights), pytest.raises(ValueError, match=message):
        clone(estimator).fit(blocks_for(estimator), LABELS, sample_weight=weights)


@over([est for est in ESTIMATORS if est not in DEEP])  # which take paired views only
def test_weights_that_leave_a_view_without_objects_name_it(estimator):
    blocks = blocks_for(estimator)
    index = np.tile(np.arange(N)[:, None], len(blocks))
    index[:40, 1] = -1
    weights = (np.arange(N) < 40).astype(float)
    with pytest.raises(
        ValueError, match="the weights of view 'text' must sum to more than 1, got 0"
    ):
        clone(estimator).fit(Views(blocks, index), LABELS, sample_weight=weights)


CHANGED_COLUMNS = {
    "names of pandas": (
        lambda X: pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])]),
        lambda frame: frame.iloc[:, ::-1],
        "column 0 is 'c4', not 'c0'",
    ),
    "names of polars": (
        lambda X: pl.DataFrame(X, schema=[f"c{j}" for j in range(X.shape[1])], orient="row"),
        lambda frame: frame[:, ::-1],
        "column 0 is 'c4', not 'c0'",
    ),
    "default numbers": (
        pd.DataFrame,
        lambda frame: frame[[1, 0, 2, 3, 4]],
        "column 0 is 1, not 0",
    ),
    "other names": (
        lambda X: pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])]),
        lambda frame: frame.rename(columns=lambda name: f"new_{name}"),
        r"missing: 'c0', 'c1', 'c2', \.\.\. \(5 in all\); unknown: 'new_c0', 'new_c1'",
    ),
}


@crossed("form, change, message", CHANGED_COLUMNS, DOORS)
def test_columns_are_those_of_the_fit_in_later_batches_and_rows(estimator, form, change, message):
    frames = {name: form(X) for name, X in blocks_for(estimator).items()}
    changed = {**frames, "text": change(frames["text"])}
    message = f"View 'text': the feature names should match.*{message}"
    model = clone(estimator).fit(frames, LABELS)
    with pytest.raises(ValueError, match=message):
        model.transform({"text": changed["text"]})
    if hasattr(estimator, "partial_fit"):
        model = clone(estimator).partial_fit(frames, LABELS)
        with pytest.raises(ValueError, match=message):
            model.partial_fit(changed, LABELS)
    if not estimator.requires.labels:  # the second of two lone matrices
        model = clone(estimator).fit(frames["image"], frames["text"])
        with pytest.raises(ValueError, match=message.replace("'text'", "'y'")):
            model.transform(frames["image"], changed["text"])


# ---- rows that say which objects they are of -----------------------------------------------------

IDS = np.array([f"id{i:02}" for i in range(N)], dtype=object)


def labelled_rows(X: Any, order: Any = slice(None), ids: Any = IDS) -> pd.DataFrame:
    return pd.DataFrame(X, index=ids).iloc[order]


@crossed("ids", {"names": IDS, "default numbers": np.arange(N)}, DOORS)
def test_frames_with_the_same_row_labels_in_another_order_are_refused_or_aligned(estimator, ids):
    blocks = blocks_for(estimator)
    order = np.random.default_rng(0).permutation(N)
    frames = {name: labelled_rows(X, ids=ids) for name, X in blocks.items()}
    frames["text"] = frames["text"].iloc[order]
    message = (
        "view 'image' and view 'text' have the same labels in a different order.*Views.aligned"
    )
    with pytest.raises(ValueError, match=message):
        clone(estimator).fit(frames, LABELS)
    if not estimator.requires.labels:
        with pytest.raises(ValueError, match="X and y have the same labels in a different order"):
            clone(estimator).fit(frames["image"], frames["text"])
    model = clone(estimator).fit(Views.aligned(frames), LABELS)
    assert_same_model(model, fitted(estimator))
    scores = model.transform(frames)  # by view, so that the order of rows is each view's own
    wanted = fitted(estimator).transform(blocks)["text"][order]
    assert_same_scores(scores["text"], wanted, rounding(estimator))


@every_door
def test_frames_with_other_row_labels_are_refused_unless_those_are_default(estimator):
    blocks = blocks_for(estimator)
    frames = {name: labelled_rows(X) for name, X in blocks.items()}
    other = {**frames, "text": frames["text"].rename(lambda label: f"other {label}")}
    with pytest.raises(ValueError, match="have different labels: row 0 is 'id00' and 'other id00'"):
        clone(estimator).fit(other, LABELS)
    default = {**frames, "text": pd.DataFrame(blocks["text"])}
    assert_same_model(clone(estimator).fit(default, LABELS), fitted(estimator))


LABELS_WITH_ROWS = {
    "Series": lambda ids: pd.Series(LABELS @ [1, 2, 4, 8], index=ids),
    "DataFrame": lambda ids: pd.DataFrame(LABELS, index=ids),
}


@crossed("form", LABELS_WITH_ROWS, LABELLED)
def test_labels_of_other_rows_are_refused(estimator, form):
    frames = {name: labelled_rows(X) for name, X in blocks_for(estimator).items()}
    expected = clone(estimator).fit(frames, form(IDS))
    turned = form(IDS[::-1])
    for X, y in (
        (frames, turned),
        (Views(frames)[5:80], turned.iloc[5:80]),
        (frames["image"], turned),
        (frames, dict.fromkeys(frames, form(IDS)) | {"text": turned}),
        (Views.unpaired(frames), dict.fromkeys(frames, form(IDS)) | {"text": turned}),
    ):
        with pytest.raises(ValueError, match=r"Rows are paired by position, but .* different"):
            clone(estimator).fit(X, y)
        if hasattr(estimator, "partial_fit"):
            with pytest.raises(ValueError, match="Rows are paired by position, but"):
                clone(estimator).partial_fit(X, y)
    assert_same_model(clone(estimator).fit(frames, form(range(N))), expected, 1e-12)


@every_estimator
def test_weights_of_other_rows_are_refused(estimator):
    frames = {name: labelled_rows(X) for name, X in blocks_for(estimator).items()}
    weights = pd.Series(np.arange(N) % 2 + 1, index=IDS[::-1])
    with pytest.raises(ValueError, match="sample_weight and the views have the same labels"):
        clone(estimator).fit(frames, LABELS, sample_weight=weights)
    model = clone(estimator).fit(frames, LABELS, sample_weight=weights.loc[IDS[::-1]].iloc[::-1])
    assert model.n_components_


@over(UNPAIRED)
def test_named_label_columns_are_matched_by_name(estimator):
    blocks = blocks_for(estimator)
    y = pd.DataFrame(LABELS, columns=["sea", "sky", "sun", "sand"])
    expected = clone(estimator).fit(blocks, dict.fromkeys(blocks, y))
    turned = dict.fromkeys(blocks, y) | {"text": y[["sand", "sea", "sun", "sky"]]}
    assert_same_model(clone(estimator).fit(blocks, turned), expected, 1e-12)
    with pytest.raises(ValueError, match=r"Got labels with names \('sand', 'sea', 'sky'"):
        clone(estimator).fit(blocks, turned | {"text": LABELS})


UNLINKED = {
    "label sets": [
        [{f"{word}{j}" for j in np.flatnonzero(row)} for row in LABELS] for word in "ab"
    ],
    "classes": [[f"{word}{row.sum()}" for row in LABELS] for word in "ab"],
    "columns": [pd.DataFrame(LABELS, columns=[f"{w}{j}" for j in range(4)]) for w in "ab"],
    "positions": [np.c_[LABELS, 0 * LABELS], np.c_[0 * LABELS, LABELS]],
}


@crossed("labels", UNLINKED, LABELLED)
def test_views_without_a_label_in_common_are_refused_by_name(estimator, labels):
    blocks = dict(list(blocks_for(estimator).items())[:2])
    y = dict(zip(blocks, labels, strict=True))
    message = r"labels of view 'image' \('(a|column )\d', .* nothing in common .*'(b|column )\d', "
    with pytest.raises(ValueError, match=message):
        clone(estimator).fit(blocks, y)


@pytest.mark.filterwarnings("ignore:View .* distinct label sets")
@over([MLCCA(), MVMLCCA(within="sample"), LGCFL()])
def test_batches_without_a_label_in_common_warn_until_one_comes(estimator):
    blocks = dict(list(blocks_for(estimator).items())[:2])
    apart = {"image": LABELS.sum(axis=1), "text": LABELS.sum(axis=1) + 9}
    with pytest.warns(UserWarning, match="labels of view 'image' .* nothing in common"):
        model = clone(estimator).partial_fit(blocks, apart)
    model.partial_fit(blocks, LABELS.sum(axis=1))
    assert model.n_label_vectors_ == 8


@over(LABELLED)
def test_masked_labels_are_refused(estimator):
    blocks = blocks_for(estimator)
    for masked in (
        np.ma.masked_equal(LABELS[:, 0], 0),
        np.ma.masked_equal(LABELS, 1),
        dict.fromkeys(blocks, LABELS) | {"text": np.ma.array(LABELS)},
    ):
        with pytest.raises(ValueError, match="Masked arrays are not supported"):
            clone(estimator).fit(blocks, masked)


@every_door
def test_masked_chunks_of_dask_arrays_are_refused(estimator):
    blocks = blocks_for(estimator)
    whole = da.from_array(np.ma.masked_greater(blocks["text"], 3), chunks=(30, -1))
    hidden = da.from_array(blocks["text"], chunks=(30, -1)).map_blocks(
        lambda X: np.ma.masked_greater(X, 3), meta=np.empty((0, 0))
    )
    for masked in (whole, hidden):
        with pytest.raises(ValueError, match="Masked arrays are not supported"):
            clone(estimator).fit({**blocks, "text": masked}, LABELS)


def test_a_masked_index_is_refused():
    index = np.ma.array(np.zeros((3, 2), dtype=int), mask=[[0, 1]] * 3)
    with pytest.raises(ValueError, match="Masked arrays are not supported"):
        Views({"image": np.ones((3, 2)), "text": np.ones((3, 2))}, index)


# ---- errors that say where and what to do --------------------------------------------------------


@crossed("form", {name: STORAGES[name] for name in ("dense", "csr", "float32")}, DOORS)
def test_missing_values_are_located_and_the_remedy_named(estimator, form):
    blocks = blocks_for(estimator)
    text = blocks["text"].copy()
    text[7, 2] = text[7, 4] = text[50, 0] = np.nan
    message = (
        r"View 'text': Input contains NaN: first in row 7, column 2; 3 such values in 2 of 90 rows"
        r"\. Fill in missing values with mvcca\.PerView\(SimpleImputer\(\)\)"
    )
    with pytest.raises(ValueError, match=message):
        clone(estimator).fit({**blocks, "text": form(text)}, LABELS)
    text[[50, 51]] = np.nan
    with pytest.raises(ValueError, match=r"2 rows contain only NaN: .*Views\(blocks, index="):
        clone(estimator).fit({**blocks, "text": form(text)}, LABELS)
    named = pd.DataFrame(text, columns=list("abcde"))
    with pytest.raises(ValueError, match="contains NaN: first in row 7, column 'c'"):
        clone(estimator).fit({**blocks, "text": named}, LABELS)
    with pytest.raises(ValueError, match="contains NaN: first in row 7, column 'c'"):
        clone(estimator).fit(named, LABELS)


@every_door
def test_strings_are_located_by_column(estimator):
    blocks = blocks_for(estimator)
    text = pd.DataFrame(blocks["text"], columns=list("abcde")).astype({"b": str, "e": str})
    with pytest.raises(ValueError, match=r"View 'text': .*got strings in columns 'b', 'e'"):
        clone(estimator).fit({**blocks, "text": text}, LABELS)
    with pytest.raises(ValueError, match="got strings in columns 1, 4"):
        clone(estimator).fit({**blocks, "text": text.to_numpy()}, LABELS)


@over([est for est in [*ESTIMATORS, NCCA()] if not est.requires.labels])
def test_learning_from_pairs_says_so_if_there_are_none(estimator):
    blocks = dict(list(blocks_for(estimator).items())[:2])
    with pytest.raises(ValueError, match=r"no object is in two views.*MLCCA .* take labels"):
        clone(estimator).fit(Views.unpaired(blocks))


@over([est for est in [*ESTIMATORS, NCCA()] if not est.requires.labels])
def test_fit_transform_of_two_lone_matrices_projects_both(estimator):
    X, Y = list(blocks_for(estimator).values())[:2]
    found = clone(estimator).fit_transform(X, Y)
    assert isinstance(found, tuple)
    for scores, wanted in zip(found, clone(estimator).fit(X, Y).transform(X, Y), strict=True):
        assert_same_scores(scores, wanted, 1e-12)


@every_estimator
def test_projecting_views_gives_what_their_containers_get(estimator):
    model, views = fitted(estimator), Views(blocks_for(estimator, seed=9))
    for method in projections(model):
        found, expected = model.project(views, method), getattr(model, method)(views)
        assert list(found) == list(expected.names)
        for name, scores in expected.items():
            np.testing.assert_array_equal(found[name], scores)
    with pytest.raises(ValueError, match="Unknown view 'other'"):
        model.project(Views({"other": np.ones((3, 2))}))


@every_estimator
def test_no_views_at_all_are_refused(estimator):
    with pytest.raises(ValueError, match=r"Expected at least one view"):
        clone(estimator).fit({}, LABELS)


# ---- matrices in every form that holds the same numbers ------------------------------------------


def strided(X: np.ndarray) -> np.ndarray:
    wide = np.zeros((2 * X.shape[0], 2 * X.shape[1]))
    wide[::2, ::2] = X
    return wide[::2, ::2]


def repeated_entries(X: np.ndarray, parts: tuple[float, ...] = (3, -2)) -> Any:
    """A CSR matrix that stores every entry in several parts, not sorted by column."""
    once = sp.csr_array(X, dtype=np.result_type(X, np.int8))
    lines = [slice(*ends) for ends in pairwise(once.indptr)]
    indices = [np.tile(once.indices[line][::-1], len(parts)) for line in lines]
    data = [np.outer(parts, once.data[line][::-1]).ravel() for line in lines]
    matrix = sp.csr_array(
        (np.concatenate(data), np.concatenate(indices), len(parts) * once.indptr), X.shape
    )
    assert not matrix.has_canonical_format
    return matrix


def unsorted(X: np.ndarray) -> Any:
    matrix = sp.csr_array(X)
    for start, stop in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        matrix.indices[start:stop] = matrix.indices[start:stop][::-1].copy()
        matrix.data[start:stop] = matrix.data[start:stop][::-1].copy()
    matrix.has_sorted_indices = False
    return matrix


def with_long_indices(X: np.ndarray) -> Any:
    matrix = sp.csr_array(X)
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return matrix


DENSE_FORMS = {
    "float16": lambda X: X.astype(np.float16),
    "float32": lambda X: X.astype(np.float32),
    "longdouble": lambda X: X.astype(np.longdouble),
    "big-endian": lambda X: X.astype(">f8"),
    "big-endian float32": lambda X: X.astype(">f4"),
    "int8": lambda X: X.astype(np.int8),
    "int64": lambda X: X.astype(np.int64),
    "object numbers": lambda X: X.astype(object),
    "list": lambda X: X.tolist(),
    "Fortran order": np.asfortranarray,
    "strided": strided,
    "negative strides": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "DataFrame": pd.DataFrame,
    "nullable DataFrame": lambda X: pd.DataFrame(X).convert_dtypes(),
    "polars": lambda X: pl.DataFrame(X, orient="row"),
    "file": in_file,
    "Dask": in_chunks,
}
SPARSE_FORMS = {
    f"{form}_{kind}": getattr(sp, f"{form}_{kind}")
    for form in ("csr", "csc", "coo", "bsr", "lil", "dok", "dia")
    for kind in ("array", "matrix")
} | {
    "float32 csr": lambda X: sp.csr_array(X.astype(np.float32)),
    "int csr": lambda X: sp.csr_array(X.astype(np.int64)),
    "repeated entries": repeated_entries,
    "repeated entries coo": lambda X: repeated_entries(X).tocoo(),
    "repeated entries csc": lambda X: sp.csc_array(repeated_entries(X.T).T),
    "unsorted indices": unsorted,
    "64-bit indices": with_long_indices,
}
FORMS = DENSE_FORMS | SPARSE_FORMS


def tolerance(blocks: Mapping[str, Any]) -> float:
    """Of weights: scatter of float32 rows is multiplied in float32."""
    single = any(np.dtype(getattr(X, "dtype", np.float64)).itemsize == 4 for X in blocks.values())
    return 1e-4 if single else 1e-8


@crossed("form", FORMS, [*DOORS, *OTHERS])
def test_every_form_of_the_same_numbers_gives_the_same_model(estimator, form):
    dense = blocks_for(estimator, whole=True)
    dense = {name: np.where(np.abs(X) < 6, 0, X) for name, X in dense.items()}  # sparse enough
    expected = clone(estimator).fit(dense, LABELS)
    blocks = {name: freeze(form(X)) for name, X in dense.items()}
    with untouched(blocks):
        model = clone(estimator).fit(blocks, LABELS)
        scores = model.transform(blocks)
    tol = tolerance(blocks)
    assert_same_model(model, expected, tol)
    np.testing.assert_allclose(strengths(model), strengths(expected), atol=tol / 10)
    for name, wanted in expected.transform(dense).items():
        assert_same_scores(scores[name], wanted, 10 * tol)


@crossed("where", {where: where for where in ("memory", "file", "Dask")}, [*DOORS, NCCA()])
def test_repeated_entries_of_sparse_rows_add_up(estimator, where, tmp_path):
    dense = blocks_for(estimator, whole=True)
    blocks: dict[str, Any] = {name: freeze(repeated_entries(X)) for name, X in dense.items()}
    rows = blocks
    if where == "file":
        for name, block in blocks.items():
            sp.save_npz(tmp_path / f"{name}.npz", block, compressed=False)
        rows = {name: mvcca.open_matrix(tmp_path / f"{name}.npz") for name in blocks}
    elif where == "Dask":
        rows = {name: in_chunks(block) for name, block in blocks.items()}
    with untouched(blocks):
        model = clone(estimator).fit(rows, LABELS)
        scores = model.transform(rows)
    once = {name: sp.csr_array(X) for name, X in dense.items()}
    expected = clone(estimator).fit(once, LABELS)
    np.testing.assert_allclose(strengths(model), strengths(expected), rtol=1e-8)
    for name, wanted in expected.transform(once).items():
        assert_same_scores(np.asarray(scores[name]), wanted, max(1e-8, rounding(estimator)))


@over([est for est in [*DOORS, NCCA()] if not est.requires.labels])
def test_repeated_entries_of_two_lone_matrices_add_up(estimator):
    dense = list(blocks_for(estimator, whole=True).values())[:2]
    pair = [freeze(repeated_entries(X)) for X in dense]
    with untouched(pair):
        scores = clone(estimator).fit(*pair).transform(*pair)
    once = [sp.csr_array(X) for X in dense]
    for found, wanted in zip(scores, clone(estimator).fit(*once).transform(*once), strict=True):
        assert_same_scores(found, wanted)


MIXED = {form: SPARSE_FORMS[form] for form in ("csr_array", "coo_matrix", "repeated entries")}


@crossed("form", MIXED, DOORS)
def test_one_sparse_view_among_dense_ones_gives_the_same_model(estimator, form):
    dense = blocks_for(estimator, whole=True)
    expected = clone(estimator).fit(dense, LABELS)
    mixed = {**dense, "text": freeze(form(dense["text"]))}
    with untouched(mixed):
        model = clone(estimator).fit(mixed, LABELS)
    assert_same_model(model, expected, tolerance(mixed))


@over([est for est in DOORS if not asks(est, "n_neighbors")])  # rows of flags are often equal
def test_a_boolean_matrix_is_zeros_and_ones(estimator):
    flags = {name: X.mean() < X for name, X in blocks_for(estimator).items()}
    expected = clone(estimator).fit({n: X.astype(float) for n, X in flags.items()}, LABELS)
    for form in (np.asarray, sp.csr_array):
        blocks = {name: form(X) for name, X in flags.items()}
        assert_same_model(clone(estimator).fit(blocks, LABELS), expected)


@over([*LINEAR_VARIANTS, *DEEP[:1]])
def test_scores_have_the_precision_of_their_rows(estimator):
    for dtype in (np.float32, np.float64):
        blocks = {name: X.astype(dtype) for name, X in blocks_for(estimator).items()}
        blocks["text"] = sp.csr_array(blocks["text"])
        model = clone(estimator).fit(blocks, LABELS)
        scores = model.transform(blocks)
        assert {X.dtype for X in scores.values()} == {np.dtype(dtype)}
        assert all(w.dtype == np.float64 for w in model.weights_.values())


# ---- degenerate and extreme numbers --------------------------------------------------------------


def widened(X: np.ndarray) -> np.ndarray:
    """25 rows of 30 features."""
    rng = np.random.default_rng(2)
    turned = X[:25] @ rng.standard_normal((X.shape[1], 30))
    return turned + 0.1 * rng.standard_normal(turned.shape)


HARD_ROWS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "a constant column": lambda X: np.insert(X, 2, 0.1, axis=1),
    "every column twice": lambda X: np.tile(X, (1, 2)),
    "fewer rows than features": widened,
    "every row twice": lambda X: np.tile(X, (2, 1)),
    "far from zero": lambda X: X + 1e5,
    "of size 1e150": lambda X: X * 1e150,
    "of size 1e-150": lambda X: X * 1e-150,
    "of size 1e300": lambda X: X * 1e300,
}


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
@crossed("form", STORAGES, [*ESTIMATORS, *OTHERS], widely=False)
def test_hard_rows_give_numbers_and_where_they_cannot_an_error(estimator, form):
    for kind, change in HARD_ROWS.items():
        with np.errstate(all="ignore"):
            blocks = {name: form(change(X)) for name, X in blocks_for(estimator).items()}
            labels = np.resize(LABELS, (blocks["text"].shape[0], LABELS.shape[1]))
            try:
                scores = clone(estimator).fit(blocks, labels).transform(blocks)
            except (ValueError, ArithmeticError):
                # Units matter to gradients, and squares of 1e300 overflow.
                assert "of size" in kind or estimator in DEEP, kind
            else:
                assert all(np.isfinite(rows).all() for rows in scores.values()), kind


@pytest.mark.filterwarnings("ignore::UserWarning")
@over([est for est in [*ESTIMATORS, *OTHERS] if est.requires.labels])
def test_as_many_classes_as_rows_give_numbers_or_an_error(estimator):
    blocks = blocks_for(estimator)
    try:
        scores = clone(estimator).fit(blocks, np.arange(N)).transform(blocks)
    except ValueError:
        pass
    else:
        assert all(np.isfinite(rows).all() for rows in scores.values())


@pytest.mark.filterwarnings("ignore::UserWarning")
@over([*(est for est in ESTIMATORS if est in SIZED), *OTHERS])
def test_more_components_than_there_are_become_fewer_or_an_error(estimator):
    try:
        model = clone(estimator).set_params(n_components=80).fit(blocks_for(estimator), LABELS)
    except ValueError:
        pass  # of neighbours: as many as there are rows
    else:
        assert model.n_components_ <= 80


@crossed("form", STORAGES, [*LINEAR, *COVARYING, *BASELINES])
def test_a_constant_column_weighs_exactly_nothing(estimator, form):
    for rows in (N, 5) if estimator in LINEAR else (N,):  # five rows are fewer than features
        for value in (0.0, 0.1, -1e6 / 3):
            blocks = {name: X[:rows] for name, X in blocks_for(estimator).items()}
            blocks["text"] = form(np.insert(blocks["text"], 2, value, axis=1))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # five rows are too few for all components
                model = clone(estimator).fit(blocks, LABELS[:rows])
            assert (model.weights_["text"][2] == 0).all()
            assert all(np.isfinite(scores).all() for scores in model.transform(blocks).values())


@over([est for est in ADDING if est in LINEAR_VARIANTS])
def test_a_constant_column_in_batches_weighs_exactly_nothing(estimator):
    blocks = blocks_for(estimator)
    blocks["text"] = np.insert(blocks["text"], 2, 0.1, axis=1)
    model = clone(estimator)
    for rows in (slice(0, 40), slice(40, N)):
        model.partial_fit(Views(blocks)[rows], LABELS[rows])
    assert (model.weights_["text"][2] == 0).all()


@pytest.mark.filterwarnings("ignore:The loss is not finite after")  # decoders of 1e15
@crossed("form", STORAGES, [*VARIANTS, *OTHERS])
def test_a_view_that_never_varies_is_refused_by_name(estimator, form):
    for value in (0.0, 0.1, 1e15):
        blocks = blocks_for(estimator)
        blocks["text"] = form(np.full((N, 5), value))
        with pytest.raises(ValueError, match=r"[Vv]iew 'text' has no variance"):
            clone(estimator).fit(blocks, LABELS)


@crossed("form", STORAGES, [*SHALLOW_VARIANTS, *OTHERS])
def test_a_wide_view_that_never_varies_is_refused_by_name(estimator, form):
    blocks = {name: block[:20] for name, block in blocks_for(estimator).items()}
    blocks["text"] = form(np.full((20, 30), 0.1))
    for block_rows in (None, 7):
        with (
            config_context(block_rows=block_rows),
            pytest.raises(ValueError, match=r"[Vv]iew 'text' has no variance"),
        ):
            clone(estimator).fit(blocks, LABELS[:20])


@pytest.mark.filterwarnings("ignore:Few rows")  # means of label sets
@over(COMPLETE)
def test_a_column_twice_changes_no_score(estimator):
    blocks = blocks_for(estimator)
    clean = ridged(estimator, 0.0).fit(blocks, LABELS)
    twice = {**blocks, "text": np.c_[blocks["text"], blocks["text"][:, :1]]}
    model = ridged(estimator, 0.0).fit(twice, LABELS)
    assert model.ranks_["text"] == clean.ranks_["text"] == 5
    np.testing.assert_allclose(model.eigenvalues_, clean.eigenvalues_, atol=1e-9)
    for name, scores in model.transform(twice).items():
        assert_same_scores(scores, clean.transform(blocks)[name], 1e-7)


@pytest.mark.filterwarnings("ignore:Few rows")  # means of label sets
@over(COMPLETE)
def test_fewer_dimensions_than_components_clip_with_a_warning_that_names_the_bound(estimator):
    blocks = blocks_for(estimator)
    blocks = {"image": blocks["image"], "text": np.outer(blocks["text"][:, 0], np.ones(5))}
    with pytest.warns(UserWarning, match=r"n_components=4 is more .* fitted 1\."):
        model = ridged(estimator, 0.0).set_params(n_components=4).fit(blocks, LABELS)
    assert model.n_components_ == 1
    assert model.ranks_ == {"image": 6, "text": 1}
    assert model.transform(blocks)["image"].shape == (N, 1)


@pytest.mark.parametrize("estimator", [CCA(), MVCCA(reg=0.0)], ids=repr)
def test_fewer_rows_than_features_are_said_to_correlate_by_construction(estimator):
    blocks = {name: X[:9] for name, X in blocks_for(estimator).items()}
    with pytest.warns(UserWarning, match=r"n <= p \+ q and reg=0.*by construction"):
        model = clone(estimator).fit(blocks)
    assert model.eigenvalues_[0] > 1.9


@crossed("form", {"dense": np.asarray, "sparse": sp.csr_array}, LINEAR_VARIANTS)
def test_numbers_of_size_1e150_give_the_model_of_unit_size(estimator, form):
    blocks = {name: form(X) for name, X in blocks_for(estimator).items()}
    expected = clone(estimator).fit(blocks, LABELS)
    for scale in (1e150, 1e-150):
        scaled = {name: X * scale for name, X in blocks.items()}
        model = clone(estimator).fit(scaled, LABELS)
        np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_, rtol=1e-8)
        for name, scores in model.transform(scaled).items():
            assert_same_scores(scores, expected.transform(blocks)[name])


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
@every_linear_variant
def test_numbers_of_size_1e300_give_the_model_of_unit_size_or_an_error_that_says_why(estimator):
    for scale in (1e300, 1e-300):
        scaled = {n: X * scale for n, X in blocks_for(estimator).items()}
        try:
            model = clone(estimator).fit(scaled, LABELS)
        except ValueError as error:
            assert re.search(r"[Vv]iew 'image'.*([Rr]escale)", str(error))  # noqa: PT017
        else:
            expected = fitted(estimator).eigenvalues_
            np.testing.assert_allclose(model.eigenvalues_, expected, rtol=1e-8)


@pytest.mark.parametrize(("dtype", "tol"), [(np.float64, 1e-10), (np.float32, 1e-4)])
@every_linear_variant
def test_a_mean_far_from_zero_costs_no_more_than_its_digits(estimator, dtype, tol):
    blocks = {n: (X - X.mean(axis=0)) / X.std(axis=0) for n, X in blocks_for(estimator).items()}
    offset = {name: (X + 1e5).astype(dtype) for name, X in blocks.items()}
    model = clone(estimator).fit(offset, LABELS)
    rest = {name: X.astype(float) - 1e5 for name, X in offset.items()}  # what rounding left of X
    expected = clone(estimator).fit(rest, LABELS)
    np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_, atol=tol)


# ---- parameters ----------------------------------------------------------------------------------

BAD_VALUES = [
    *(("n_components", value) for value in (0, -1, 2.0, np.nan, "2", None)),
    *(("reg", value) for value in (-1e-9, np.nan, np.inf, "Auto", None)),
    *(("power", value) for value in (-1.0, np.nan, np.inf)),
    *(("sigma", value) for value in (0, 0.0, -1.0, np.nan, np.inf, "1")),
    *(("similarity", value) for value in ("euclid", None)),
    *(("within", value) for value in ("labels", None)),
    *(("weighting", value) for value in ("rows", None)),
    *(("n_neighbors", value) for value in (0, -3, 2.5)),
    *(("hidden_layer_sizes", value) for value in (16, None)),
    *(("encoders", value) for value in (3, "mlp")),
    *(("batch_size", value) for value in (0, 2.5, None)),
    *(("max_epochs", value) for value in (0, 1.5, None)),
    *(("optimizer", value) for value in ("newton", None)),
    *(("learning_rate", value) for value in (0, -1e-3, np.nan, np.inf)),
    *(("weight_decay", value) for value in (-1e-3, np.nan)),
    *(("validation_fraction", value) for value in (0.0, 1.0, np.nan)),
    *(("patience", value) for value in (0, 1.5)),
    *(("callbacks", value) for value in (None, 3)),
    *(("mixed_precision", value) for value in (None, "yes")),
    *(("device", value) for value in (None, 0)),
    *(("objective", value) for value in (None, "mse")),
    *(("reconstruction", value) for value in (-1.0, np.nan)),
    *(("correlation", value) for value in (-1.0, np.nan)),
    *(("gate_penalty", value) for value in (-1.0, np.nan)),
    *(("warm_up", value) for value in (-1, 1.5)),
    *(("decorrelation", value) for value in (-1.0, np.nan)),
]


@every_estimator
def test_a_parameter_out_of_its_range_is_an_invalid_parameter(estimator):
    blocks, constraints = blocks_for(estimator), estimator._parameter_constraints
    for name, value in BAD_VALUES:
        if name not in vars(estimator) or (value is None and None in constraints[name]):
            continue
        model = clone(estimator).set_params(**{name: value})
        for fit in (model.fit, getattr(model, "partial_fit", model.fit)):
            with pytest.raises(InvalidParameterError, match=f"The '{name}' parameter"):
                fit(blocks, LABELS)


BAD_RIDGES = [
    ({"image": 0.1}, r"reg names the views \['image'\], expected \['image', 'text'"),
    (
        {"image": 0.1, "text": -1, "sound": 0},
        "reg of view 'text' must be a number >= 0, got -1",
    ),
    ({"image": 0.1, "text": "a", "sound": 0}, "reg of view 'text' must be a number >= 0"),
    ({"image": 0.1, "text": np.nan, "sound": 0}, "reg of view 'text' must be a number >= 0"),
]


@over(RIDGED)
def test_a_ridge_for_other_views_or_out_of_range_names_the_view(estimator):
    blocks = blocks_for(estimator)
    for reg, message in BAD_RIDGES:
        known = {name: reg[name] for name in blocks} if "text" in reg else reg
        with pytest.raises(ValueError, match=message):
            clone(estimator).set_params(reg=known).fit(blocks, LABELS)


@over(RIDGED)
def test_one_ridge_for_all_equals_the_same_ridge_by_name(estimator):
    blocks = blocks_for(estimator)
    by_name = clone(estimator).set_params(reg=dict.fromkeys(blocks, 0.05)).fit(blocks, LABELS)
    assert_same_model(by_name, clone(estimator).set_params(reg=0.05).fit(blocks, LABELS), 1e-14)


@pytest.mark.parametrize("similarity", ["sqexp", "exp"])
@pytest.mark.parametrize("estimator", [MLCCA(), MVMLCCA(within="label")], ids=repr)
def test_a_bandwidth_of_almost_nothing_tells_equal_labels_from_all_others(estimator, similarity):
    blocks = blocks_for(estimator)
    for labels in (LABELS, LABELS * 1.5):  # sets, and real label vectors
        equal = clone(estimator).set_params(label_similarity="equal").fit(blocks, labels)
        for sigma in (1e-3, 1e-100, 1e-320):
            model = clone(estimator).set_params(label_similarity=similarity, sigma=sigma)
            assert_same_model(model.fit(blocks, labels), equal)


@over([est for est in LABELLED if est in SIZED and est in BOUNDED])
def test_too_many_neighbours_or_too_many_components_say_how_many_there_are(estimator):
    with pytest.warns(UserWarning, match="n_components=50 is more than these data have"):
        model = clone(estimator).set_params(n_components=50).fit(blocks_for(estimator), LABELS)
    assert model.n_components_ == len(model.eigenvalues_) < 50


# ---- labels --------------------------------------------------------------------------------------

BAD_LABELS = {
    "none": (None, "requires y to be passed, but the target y is None"),
    "all the same": (np.zeros(N, int), "All rows have the same labels"),
    "an indicator without ones": (np.zeros((N, 4)), "All rows have the same labels"),
    "a sparse indicator without ones": (sp.csr_array((N, 4)), "All rows have the same labels"),
    "no labels in any set": ([set()] * N, "All rows have the same labels"),
    "the same class everywhere": (np.ones(N, int), "All rows have the same labels"),
    "NaN in a class vector": (np.r_[np.nan, np.ones(N - 1)], "Labels contain NaN or infinity"),
    "infinity in a matrix": (with_entry(np.inf)(LABELS), "Labels contain NaN or infinity"),
    "NaN in a sparse matrix": (
        sp.csr_array(with_entry(np.nan)(LABELS)),
        "Labels contain NaN or infinity",
    ),
    "None among names": (["a", None] * (N // 2), "Labels contain None"),
    "complex": (np.arange(N) * 1j, "Complex data not supported"),
    "three-dimensional": (LABELS[None], r"Labels must be .* got an array of shape \(1, 90, 4\)"),
    "a number": (3, "Labels must be .* got an array of shape"),
    "a name": ("cat", "Labels must be .* got an array of shape"),
    "a matrix of names": (np.full((N, 2), "cat"), "must hold numbers"),
}


@crossed("labels, message", BAD_LABELS, LABELLED)
def test_bad_labels_are_one_clear_error(estimator, labels, message):
    with untouched(labels), pytest.raises(ValueError, match=message):
        clone(estimator).fit(blocks_for(estimator), labels)


@over(LABELLED)
def test_bad_labels_of_one_view_name_the_view(estimator):
    blocks = blocks_for(estimator)
    labels = dict.fromkeys(blocks, LABELS) | {"text": with_entry(np.nan)(LABELS)}
    with pytest.raises(ValueError, match="View 'text': Labels contain NaN"):
        clone(estimator).fit(blocks, labels)


@over(LABELLED)
def test_labels_of_a_view_that_is_not_there_are_refused(estimator):
    blocks = blocks_for(estimator)
    labels = dict.fromkeys((*blocks, "smell"), LABELS)
    with pytest.raises(ValueError, match=r"Expected labels of the views \['image'"):
        clone(estimator).fit(blocks, labels)


@pytest.mark.filterwarnings("ignore:View 'view0' has 6 features but only 3 distinct label sets")
@pytest.mark.parametrize(
    "estimator",
    [MLCCA(label_similarity=s) for s in ("cosine", "equal")]
    + [MLCCA(label_similarity="cosine", n_neighbors=5)]
    + [
        MVMLCCA(label_similarity=s, within=w)
        for s in ("cosine", "equal")
        for w in ("label", "sample")
    ],
    ids=repr,
)
def test_labels_without_any_similarity_between_views_are_refused(estimator):
    blocks = list(blocks_for(estimator).values())[:2]
    labels = [np.repeat(["cat", "dog", "cow"], N // 3), np.repeat(["red", "blue", "pink"], N // 3)]
    with pytest.raises(ValueError, match="nothing in common"):
        clone(estimator).fit(blocks, labels)


@pytest.mark.filterwarnings("ignore:The labels of 7 rows .* are like none")  # under cosine
@over(LABELLED)
def test_rows_without_labels_are_counted_in_a_warning(estimator):
    labels = LABELS.copy()
    labels[:7] = 0
    blocks = list(blocks_for(estimator).values())[: estimator.requires.views[0]]
    with pytest.warns(UserWarning, match="7 rows have no labels"):
        clone(estimator).fit(blocks, labels)


@pytest.mark.parametrize(
    "estimator",
    [
        MLCCA(),
        MLCCA(n_neighbors=5, random_state=0),
        MVMLCCA(within="label"),
        MVMLCCA(within="sample"),
    ],
    ids=repr,
)
def test_label_vectors_far_from_zero_in_float32_keep_their_distances(estimator):
    vectors = LABELS @ np.random.default_rng(1).standard_normal((4, 3)) * 4
    vectors = np.round(vectors * 1024) / 1024  # float32 holds them exactly with the offset
    expected = clone(estimator).fit(blocks_for(estimator), vectors)
    blocks = {name: X.astype(np.float32) for name, X in blocks_for(estimator).items()}
    model = clone(estimator).fit(blocks, (vectors + 1e3).astype(np.float32))
    np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_, atol=1e-4)


LABEL_FORMS = {
    "list of lists": lambda Z: Z.tolist(),
    "bool": lambda Z: Z.astype(bool),
    "float32": lambda Z: Z.astype(np.float32),
    "csr": sp.csr_array,
    "csc matrix": sp.csc_matrix,
    "coo": sp.coo_array,
    "lil": sp.lil_array,
    "dok": sp.dok_array,
    "dia": sp.dia_array,
    "repeated entries": lambda Z: repeated_entries(Z),
    "explicit zeros": lambda Z: explicit_zeros(Z),
    "DataFrame": pd.DataFrame,
    "polars": lambda Z: pl.DataFrame(Z, orient="row"),
    "Fortran order": np.asfortranarray,
    "sets of names": lambda Z: [{"abcd"[j] for j in np.flatnonzero(row)} for row in Z],
    "lists of names": lambda Z: [["abcd"[j] for j in np.flatnonzero(row)] for row in Z],
    "sets of numbers": lambda Z: [set(np.flatnonzero(row)) for row in Z],
    "Series of sets": lambda Z: pd.Series([set(np.flatnonzero(row)) for row in Z]),
    "array of sets": lambda Z: np.array([set(np.flatnonzero(row)) for row in Z], dtype=object),
}


def explicit_zeros(Z: np.ndarray) -> Any:
    """A sparse matrix that stores every entry."""
    n, m = Z.shape
    return sp.csr_array((Z.ravel(), np.tile(np.arange(m), n), np.arange(0, n * m + 1, m)), Z.shape)


@crossed("form", LABEL_FORMS, LABELLED)
def test_every_form_of_the_same_labels_gives_the_same_model(estimator, form):
    blocks = blocks_for(estimator)
    labels = freeze(form(LABELS))
    with untouched(labels):
        model = clone(estimator).fit(blocks, labels)
    assert_same_model(model, fitted(estimator), 1e-12)


def test_labels_of_objects_that_count_for_nothing_are_not_there():
    blocks = blocks_for(MLCCA())
    index = np.tile(np.arange(N)[:, None], len(blocks))
    index[0] = -1  # an object that is seen in no view
    labels = np.array(["a", "b", "c"])[np.arange(N) % 3]
    labels[0] = "d"
    model = MLCCA().fit(Views(blocks, index), labels)
    assert model.n_label_vectors_ == 3
    one_class = np.where(np.arange(N) == 0, "d", "a")
    with pytest.raises(ValueError, match="All rows have the same labels"):
        MLCCA().fit(Views(blocks, index), one_class)


# ---- what must not change the model --------------------------------------------------------------


@over(ORDER_BLIND)
def test_row_order_does_not_change_the_model(estimator):
    blocks = blocks_for(estimator)
    order = np.random.default_rng(3).permutation(N)
    model = clone(estimator).fit({name: X[order] for name, X in blocks.items()}, LABELS[order])
    assert_same_model(model, fitted(estimator), 1e-10)


@every_door_variant
def test_a_subset_of_views_equals_the_matrices_of_the_subset(estimator):
    blocks = blocks_for(estimator)
    rows = np.random.default_rng(4).permutation(N)[:70]
    model = clone(estimator).fit(Views(blocks)[rows], LABELS[rows])
    by_hand = {name: X[rows] for name, X in blocks.items()}
    assert_same_model(model, clone(estimator).fit(by_hand, LABELS[rows]), 1e-12)


@every_door_variant
def test_list_tuple_mapping_and_views_give_the_same_model(estimator):
    blocks = blocks_for(estimator)
    expected = fitted(estimator)
    index = np.tile(np.arange(N)[:, None], len(blocks))
    assert_same_model(clone(estimator).fit(Views(blocks, index), LABELS), expected, 1e-12)
    kinds = [list, tuple, lambda values: Views(list(values))]
    for kind in kinds if estimator in FAMILIES else kinds[:1]:
        model = clone(estimator).fit(kind(blocks.values()), LABELS)
        np.testing.assert_allclose(strengths(model), strengths(expected), rtol=1e-12)
        scores = model.transform(list(blocks.values()))
        for found, wanted in zip(scores, expected.transform(blocks).values(), strict=True):
            assert_same_scores(found, wanted)


@over([est for est in ORDER_BLIND if not isinstance(est, AffineMap)])  # to the last view
def test_the_order_of_views_does_not_change_the_model(estimator):
    blocks = blocks_for(estimator)
    turned = dict(reversed(blocks.items()))
    model = clone(estimator).fit(turned, LABELS)
    assert model.view_names_ == tuple(turned)
    assert_same_model(model, fitted(estimator))


@every_linear_variant
def test_scaling_a_view_changes_no_score(estimator):
    blocks, expected = blocks_for(estimator), fitted(estimator)
    for factor in (1e6, 1e-6):
        scaled = {**blocks, "text": blocks["text"] * factor}
        model = clone(estimator).fit(scaled, LABELS)
        np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_, atol=1e-8)
        for name, scores in model.transform(scaled).items():
            assert_same_scores(scores, expected.transform(blocks)[name])


@pytest.mark.filterwarnings("ignore:Few rows")  # means of label sets
@every_linear_variant
def test_scaling_a_column_changes_no_score_without_a_ridge(estimator):
    blocks = blocks_for(estimator)
    expected = ridged(estimator, 0.0).fit(blocks, LABELS)
    for factor in (1e6, 1e-6):
        scaled = {**blocks, "text": blocks["text"] * np.where(np.arange(5) == 2, factor, 1)}
        model = ridged(estimator, 0.0).fit(scaled, LABELS)
        np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_, atol=1e-8)
        for name, scores in model.transform(scaled).items():
            assert_same_scores(scores, expected.transform(blocks)[name])


@every_linear_variant
def test_moving_a_view_changes_no_score(estimator):
    blocks = blocks_for(estimator)
    expected = fitted(estimator)
    moved = {name: X + 10 for name, X in blocks.items()}
    model = clone(estimator).fit(moved, LABELS)
    for name, scores in model.transform(moved).items():
        assert_same_scores(scores, expected.transform(blocks)[name])


@over([est for est in LABELLED if est in POSITION_BLIND])
def test_shuffling_a_view_with_its_labels_changes_nothing(estimator):
    blocks = blocks_for(estimator)
    expected = fitted(estimator)
    order = np.random.default_rng(5).permutation(N)
    shuffled = {**blocks, "text": blocks["text"][order]}
    labels = dict.fromkeys(blocks, LABELS) | {"text": LABELS[order]}
    for views in (shuffled, Views(shuffled), Views.unpaired(shuffled)):
        assert_same_model(clone(estimator).fit(views, labels), expected, 1e-10, same_pairs=False)
    stacked = np.concatenate(list(labels.values()))
    assert_same_model(
        clone(estimator).fit(Views.unpaired(shuffled), stacked), expected, 1e-10, same_pairs=False
    )


@over(UNPAIRED)
def test_lists_of_different_heights_are_unpaired_views(estimator):
    blocks = {name: X[: N - 9 * i] for i, (name, X) in enumerate(blocks_for(estimator).items())}
    labels = {name: LABELS[: len(X)] for name, X in blocks.items()}
    expected = clone(estimator).fit(Views.unpaired(blocks), np.concatenate(list(labels.values())))
    assert_same_model(clone(estimator).fit(blocks, labels), expected, 1e-12)
    listed = clone(estimator).fit(list(blocks.values()), list(labels.values()))
    np.testing.assert_allclose(strengths(listed), strengths(expected), rtol=1e-12)
    scores = listed.transform(list(blocks.values()))
    assert [len(S) for S in scores] == [len(X) for X in blocks.values()]
    assert 0 < listed.score(list(blocks.values()), list(labels.values())) <= 1


@crossed(
    "form",
    {"dense": np.asarray, "sparse": sp.csr_array},
    [*POSITION_BLIND, OTHERS[0], *REPEATING],
)
def test_integer_weights_are_repetitions(estimator, form):
    weights = np.random.default_rng(6).integers(0, 4, N)
    blocks = {name: form(X) for name, X in blocks_for(estimator).items()}
    repeated = {n: form(X.repeat(weights, axis=0)) for n, X in blocks_for(estimator).items()}
    with untouched(blocks, weights):
        model = clone(estimator).fit(blocks, LABELS, sample_weight=weights)
    expected = clone(estimator).fit(repeated, LABELS.repeat(weights, axis=0))
    assert_same_model(model, expected, 1e-10)


@over([*ESTIMATORS, *OTHERS])
def test_weights_of_scores_are_repetitions(estimator):
    blocks, weights = blocks_for(estimator), np.random.default_rng(6).integers(0, 4, N)
    model = clone(estimator).fit(blocks, LABELS)
    repeated = {name: X.repeat(weights, axis=0) for name, X in blocks.items()}
    labels = LABELS.repeat(weights, axis=0)
    with untouched(weights):
        found = model.score(blocks, LABELS, sample_weight=weights)
    atol = 1e-5 if estimator in DEEP else 1e-9  # networks compute in float32
    assert found == pytest.approx(model.score(repeated, labels), abs=atol)
    with pytest.raises(ValueError, match="Negative values"):
        model.score(blocks, LABELS, sample_weight=-weights)


@over([est for est in UNPAIRED if est in ESTIMATORS])
def test_weights_of_ranked_rows_are_repetitions(estimator):
    views = Views.unpaired(blocks_for(estimator))
    labels = np.tile(LABELS, (len(views.names), 1))
    weights = np.random.default_rng(6).integers(0, 3, len(views))
    model, objects = clone(estimator).fit(views, labels), np.repeat(np.arange(len(views)), weights)
    found = model.score(views, labels, sample_weight=weights)
    assert found == pytest.approx(model.score(views[objects], labels[objects]), abs=1e-9)
    with pytest.raises(ValueError, match="must be whole numbers"):
        model.score(views, labels, sample_weight=weights + 0.5)


@over(REPEATING)
def test_methods_without_a_weighted_form_refuse_fractions(estimator):
    weights = np.full(N, 1.5)
    message = f"whole numbers, got 1.5: {type(estimator).__name__} learns from whole rows. Round"
    with pytest.raises(ValueError, match=message):
        clone(estimator).fit(blocks_for(estimator), LABELS, sample_weight=weights)


@pytest.mark.filterwarnings("ignore:n <= p")
@pytest.mark.filterwarnings("ignore:View .* distinct label sets")
@over([est for est in POSITION_BLIND if est in SIZED])
def test_repeated_rows_that_are_fewer_than_features_are_weights(estimator):
    weights = np.r_[1, 3, 1, 2, 1]  # 5 rows are fewer than the 6 features of a view, 8 are more
    blocks = {name: X[:5] for name, X in blocks_for(estimator).items()}
    repeated = {name: X.repeat(weights, axis=0) for name, X in blocks.items()}
    ridge = ridged(estimator, 0.1).set_params(n_components=1)
    expected = clone(ridge).fit(repeated, LABELS[:5].repeat(weights, axis=0))
    assert_same_model(clone(ridge).fit(blocks, LABELS[:5], sample_weight=weights), expected)


@pytest.mark.filterwarnings("ignore:Few rows")
@pytest.mark.filterwarnings("ignore:n <= p")
@pytest.mark.parametrize("estimator", [CCA(1), MVCCA(1, reg=0.0)], ids=repr)
def test_repeated_rows_that_are_fewer_than_features_are_weights_without_a_ridge(estimator):
    rng = np.random.default_rng(0)
    weights = np.r_[1, 3, 1, 2, 1, 1]
    for n_features in (40, 7):  # fewer than the 9 repeated rows, and more
        X, Y = rng.standard_normal((6, n_features)), rng.standard_normal((6, 1))
        expected = clone(estimator).fit([X.repeat(weights, axis=0), Y.repeat(weights, axis=0)])
        model = clone(estimator).fit([X, Y], sample_weight=weights)
        assert_same_model(model, expected, probe={"view0": X, "view1": Y})


@pytest.mark.filterwarnings("ignore:Few rows")
@over([*VARIANTS, *OTHERS])
def test_a_weight_of_zero_is_an_object_that_is_not_there(estimator):
    blocks = blocks_for(estimator)
    present = LABELS[:, 0] == 0  # no row with the first label is left
    model = clone(estimator).fit(blocks, LABELS, sample_weight=present.astype(float))
    expected = clone(estimator).fit(Views(blocks)[present], LABELS[present])
    assert_same_model(model, expected, 1e-10)
    if estimator in UNPAIRED and not asks(estimator, "label_features"):
        assert model.n_label_vectors_ == 7


# There is less shrinkage of more rows; and eigenvalues of PLS and AffineMap are no correlations.
@over(
    [
        est
        for est in POSITION_BLIND
        if est in SIZED
        and asks(est, "reg") not in ("auto", None)
        and not isinstance(est, AffineMap)
    ]
)
def test_every_row_twice_is_the_same_model_up_to_counts(estimator):
    blocks = blocks_for(estimator)
    twice = {name: np.r_[X, X] for name, X in blocks.items()}
    rho = clone(estimator).fit(twice, np.r_[LABELS, LABELS]).eigenvalues_ - 1
    expected = fitted(estimator).eigenvalues_ - 1
    # The ordinary covariance divides by n - 1, the label-weighted one by n.
    np.testing.assert_allclose(rho / rho[0], expected / expected[0], rtol=1e-10)


@crossed("dtype", {"float64": np.float64, "float32": np.float32}, SHALLOW_VARIANTS)
def test_block_size_does_not_change_the_model(estimator, dtype):
    # Of networks: tests/test_deep_estimators.py.
    blocks = {name: X.astype(dtype) for name, X in blocks_for(estimator).items()}
    blocks["text"] = sp.csr_array(blocks["text"])
    expected = clone(estimator).fit(blocks, LABELS)
    tol = 1e-10 if dtype == np.float64 else 1e-5
    for block_rows in (1, 7, N - 1) if estimator in FAMILIES else (7,):
        with config_context(block_rows=block_rows):
            model = clone(estimator).fit(blocks, LABELS)
        np.testing.assert_allclose(strengths(model), strengths(expected), atol=tol)


@pytest.mark.filterwarnings("ignore:Few rows")  # means of label sets
@every_linear_variant
def test_signs_are_fixed_by_the_largest_weight_and_components_are_in_order(estimator):
    for seed in range(2):
        blocks = blocks_for(estimator, seed=seed)
        model = ridged(estimator, 0.0).fit(blocks, LABELS)
        assert (np.diff(model.eigenvalues_) <= 0).all()
        flipped = {name: -X for name, X in blocks.items()}
        turned = ridged(estimator, 0.0).fit(flipped, LABELS)
        for name in blocks:  # weights, not scores, keep their sign
            np.testing.assert_allclose(turned.weights_[name], model.weights_[name], atol=1e-9)


def test_the_largest_weight_in_deviations_is_positive():
    blocks = blocks_for(CCA())
    model = CCA(n_components=4).fit(blocks)
    stacked = np.concatenate(
        [model.weights_[n] * X.std(axis=0)[:, None] for n, X in blocks.items()]
    )
    assert (stacked[np.abs(stacked).argmax(axis=0), np.arange(4)] > 0).all()


# ---- batches -------------------------------------------------------------------------------------


def in_batches(estimator: Any, views: Views, batches: list[Any], weights: Any = None) -> Any:
    model = clone(estimator)
    for rows in batches:
        model.partial_fit(views[rows], LABELS[rows], None if weights is None else weights[rows])
    return model


CUTS = [slice(0, 30), slice(30, 31), slice(31, 70), slice(70, N)]


# Rows as they may come in a stream: what is wrong with a part is right of the whole.
STREAM_WEIGHTS = np.r_[np.zeros(10), np.arange(20) % 3, 0, np.ones(29), np.zeros(15), np.ones(15)]
_TURNED = np.random.default_rng(5).permutation(N)
STREAMS: dict[str, tuple[list[Any], Any]] = {
    "rows one by one": ([slice(i, i + 1) for i in range(N)], None),
    "rows one by one in another order": ([_TURNED[i : i + 1] for i in range(N)], None),
    "batches of one class": (
        np.split(np.argsort(LABELS @ [1, 2, 4, 8], kind="stable"), N // 6),
        None,
    ),
    "batches of zero weight, first and late": (
        [slice(0, 10), slice(10, 30), slice(30, 31), slice(31, 60), slice(60, 75), slice(75, N)],
        STREAM_WEIGHTS,
    ),
    "fewer rows than features": ([slice(i, i + 3) for i in range(0, N, 3)], None),
}
STREAMED = [
    *[est for est in ADDING if asks(est, "label_features") != "nystroem"],  # of the first labels
    *[
        model(2, confounds="sound", missing=missing)
        for model in (CCA, MVCCA, GCCA)
        for missing in ("error", "pairwise", "em")
    ],
]


def streamed(estimator: Any) -> Views:
    named = MVCCA() if asks(estimator, "confounds") else estimator
    return Views(blocks_for(named))


def assert_streamed(model: Any, whole: Any, rows: Views) -> None:
    blocks = dict(rows.items())
    if not asks(whole, "confounds"):
        assert_same_model(model, whole, probe=blocks)
        return
    np.testing.assert_allclose(strengths(model), strengths(whole), rtol=1e-8, atol=1e-8)
    for name, wanted in whole.transform(blocks).items():
        assert_same_scores(model.transform(blocks)[name], wanted, 1e-8)


@pytest.mark.filterwarnings("ignore::UserWarning")  # of so few rows as the first batches have
@crossed("batches, weights", STREAMS, STREAMED)
def test_any_batches_give_what_fit_gives(estimator, batches, weights):
    if estimator not in ORDER_BLIND and isinstance(batches[0], np.ndarray):
        batches = [slice(i, i + 1) for i in range(N)]
    views = streamed(estimator)
    model = in_batches(estimator, views, batches, weights)
    whole = clone(estimator).fit(views, LABELS, sample_weight=weights)
    assert_streamed(model, whole, views)


@pytest.mark.filterwarnings("ignore::UserWarning")
@over(STREAMED)
def test_batches_in_which_a_view_is_constant_give_what_fit_gives(estimator):
    views = streamed(estimator)
    blocks = {name: X.copy() for name, X in views.items()}
    for name, start in zip(blocks, (0, 20, 40), strict=False):
        blocks[name][start : start + 20] = blocks[name][start]
    parts = [slice(start, start + 10) for start in range(0, N, 10)]
    model = in_batches(estimator, Views(blocks), parts)
    assert_streamed(model, clone(estimator).fit(blocks, LABELS), Views(blocks))


@pytest.mark.filterwarnings("ignore::UserWarning")
@over([*STREAMED, *KERNEL[1:]])
def test_batches_that_do_not_suffice_say_so_where_components_are_asked_for(estimator, tmp_path):
    views = streamed(estimator)
    for weights in (None, np.zeros(1)):
        model = clone(estimator).partial_fit(views[:1], LABELS[:1], weights)
        message = "has no components after the batches so far: "
        for ask in (model.transform, model.project, model.score, partial(getattr, model)):
            with pytest.raises(NotFittedError, match=message):
                ask("n_components_" if isinstance(ask, partial) else views)
        with pytest.raises(NotFittedError, match=message):
            RetrievalIndex(model).add(views)
        with pytest.raises(AttributeError, match="no attribute 'weights'"):
            model.weights  # noqa: B018
        assert "partial_fit" in dir(model)
        mvcca.save(model, tmp_path / "stream.mvcca")
        model = mvcca.load(tmp_path / "stream.mvcca")
        with pytest.raises(NotFittedError, match=message):
            model.transform(views)
        model.partial_fit(views[1:], LABELS[1:])
        assert np.isfinite(next(iter(model.transform(dict(views.items())).values()))).all()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_confounds_that_explain_all_rows_so_far_wait_for_more():
    views = Views(blocks_for(MVCCA()))
    model = CCA(1, confounds="sound")
    for rows in (slice(0, 1), slice(1, 4), slice(4, 5)):  # four confounds
        model.partial_fit(views[rows])
        with pytest.raises(NotFittedError, match="no components after the batches so far"):
            model.transform(views)
    model.partial_fit(views[5:])
    assert_streamed(model, CCA(1, confounds="sound").fit(views), views)


@crossed("form", {name: STORAGES[name] for name in ("dense", "csr", "Dask", "file")}, ADDING)
def test_batches_give_what_fit_gives(estimator, form):
    model = clone(estimator)
    for rows in CUTS:
        batch = {name: form(X[rows]) for name, X in blocks_for(estimator).items()}
        model.partial_fit(batch, LABELS[rows])
    assert_same_model(model, fitted(estimator))


@over(ADDING)
def test_batches_with_repeated_entries_give_what_fit_gives(estimator):
    dense = Views(blocks_for(estimator, whole=True))
    views = {name: freeze(repeated_entries(X)) for name, X in dense.items()}
    with untouched(views):
        model = clone(estimator)
        for rows in CUTS:
            batch = {name: repeated_entries(X[rows]) for name, X in dense.items()}
            model.partial_fit(batch, repeated_entries(LABELS[rows]))
        whole = clone(estimator).fit(views, LABELS)
    assert_same_model(model, clone(estimator).fit(dense, LABELS))
    assert_same_model(whole, clone(estimator).fit(dense, LABELS))


@pytest.mark.filterwarnings("ignore:View .* distinct label sets")
@over(ADDING)
def test_batches_of_fewer_rows_than_features_give_what_fit_gives(estimator):
    rng = np.random.default_rng(8)
    blocks = {n: X @ rng.random((X.shape[1], 120)) for n, X in blocks_for(estimator).items()}
    views = Views({n: X + rng.standard_normal(X.shape) for n, X in blocks.items()})
    ridge = ridged(estimator, 0.1)
    expected = clone(ridge).fit(views, LABELS)
    assert_same_model(in_batches(ridge, views, CUTS), expected, probe=dict(views.items()))


@over([est for est in ADDING if est in POSITION_BLIND])
def test_the_order_of_batches_does_not_change_the_model(estimator):
    views = Views(blocks_for(estimator))
    model = in_batches(estimator, views, [CUTS[3], CUTS[0], CUTS[2], CUTS[1]])
    assert_same_model(model, in_batches(estimator, views, CUTS), 1e-10)


@over(ADDING)
def test_weighted_batches_give_what_a_weighted_fit_gives(estimator):
    views = Views(blocks_for(estimator))
    weights = np.random.default_rng(7).integers(0, 4, N).astype(float)
    weights[30] = 2  # the batch of one row
    expected = clone(estimator).fit(views, LABELS, sample_weight=weights)
    assert_same_model(in_batches(estimator, views, CUTS, weights), expected)


@pytest.mark.filterwarnings("ignore:Few rows", "ignore:The correlations of pairs of features")
@over(ADDING)
def test_later_batches_may_lack_a_view(estimator):
    blocks = blocks_for(estimator)
    index = np.tile(np.arange(N)[:, None], len(blocks))
    index[40:60, 1:] = -1  # images only, then all but images
    index[60:80, 0] = -1
    batches = [slice(0, 40), slice(40, 60), slice(60, 80), slice(80, N)]
    for form in (np.asarray, sp.csr_array):
        views = Views({name: form(X) for name, X in blocks.items()}, index)
        assert_same_model(
            in_batches(estimator, views, batches), clone(estimator).fit(views, LABELS)
        )


@over(ADDING)
def test_batches_may_name_their_views_in_another_order(estimator):
    views = Views(blocks_for(estimator))
    model = clone(estimator).partial_fit(views[:40], LABELS[:40])
    turned = views[40:].select(views.names[::-1])
    labels = dict.fromkeys(turned.names, LABELS[40:]) if estimator.requires.labels else None
    model.partial_fit(turned, labels)
    assert_same_model(model, fitted(estimator))


@over([est for est in ADDING if not asks(est, "label_features")])  # of the first batch's classes
def test_batches_of_labels_with_other_classes_add_up(estimator):
    views = Views(blocks_for(estimator))
    names = np.array(["abcdefghijklmno"[i] for i in LABELS @ [1, 2, 4, 8] - 1])
    order = np.argsort(names, kind="stable")
    model = clone(estimator)
    for rows in (order[:40], order[40:]):
        model.partial_fit(views[rows], names[rows])
    assert_same_model(model, clone(estimator).fit(views[order], names[order]))


@over(ADDING)
def test_a_batch_with_other_features_is_refused_in_scikit_learns_words(estimator):
    blocks = blocks_for(estimator)
    model = clone(estimator).partial_fit(blocks, LABELS)
    before = model.transform(blocks)
    narrow = {**blocks, "text": blocks["text"][:, :4]}
    with pytest.raises(ValueError, match=r"View 'text' has 4 features, but .* is expecting 5"):
        model.partial_fit(narrow, LABELS)
    with pytest.raises(ValueError, match="Unknown view 'smell'"):
        model.partial_fit({**blocks, "smell": blocks["text"]}, LABELS)
    with pytest.raises(ValueError, match=r"Every batch must hold the views .*missing: \['text'\]"):
        model.partial_fit({n: X for n, X in blocks.items() if n != "text"}, LABELS)
    np.testing.assert_equal(model.transform(blocks), before)


@over(ADDING)
def test_an_empty_batch_is_refused_and_forgotten(estimator):
    views = Views(blocks_for(estimator))
    model = clone(estimator).partial_fit(views[:50], LABELS[:50])
    with pytest.raises(ValueError, match=r"View 'image': Found array with 0 sample\(s\)"):
        model.partial_fit(views[:0], LABELS[:0])
    model.partial_fit(views[50:], LABELS[50:])
    assert_same_model(model, fitted(estimator))


@pytest.mark.filterwarnings("ignore:Few rows")
@over(ADDING)
def test_partial_fit_after_fit_says_that_it_starts_over(estimator):
    views = Views(blocks_for(estimator))
    model = clone(estimator).fit(views[:30], LABELS[:30])
    with pytest.warns(UserWarning, match="partial_fit starts over: fit keeps no statistic"):
        model.partial_fit(views[:60], LABELS[:60])
    model.partial_fit(views[60:], LABELS[60:])
    assert_same_model(model, fitted(estimator))


@over(ADDING)
def test_fit_after_partial_fit_forgets_the_batches(estimator):
    views = Views(blocks_for(estimator))
    model = clone(estimator).partial_fit(views[:50], LABELS[:50]).fit(views, LABELS)
    assert_same_model(model, fitted(estimator), 1e-14)


def test_a_search_that_looks_at_all_rows_at_once_is_refused_in_batches():
    with pytest.raises(ValueError, match=r'reg="cv".*use fit, or give partial_fit a number'):
        CCA(reg="cv").partial_fit(blocks_for(CCA()))


# ---- containers: what comes in goes out ----------------------------------------------------------


@every_variant
def test_the_container_that_comes_in_goes_out(estimator):
    blocks = blocks_for(estimator)
    model = fitted(estimator)
    expected = model.transform(blocks)
    assert type(expected) is dict
    assert list(expected) == list(blocks)
    as_views = model.transform(Views(blocks))
    assert isinstance(as_views, Views)
    assert as_views.names == tuple(blocks)
    for kind in (list, tuple):
        scores = model.transform(kind(blocks.values()))
        assert type(scores) is kind
        for found, wanted in zip(scores, expected.values(), strict=True):
            np.testing.assert_array_equal(found, wanted)
    for name in blocks:
        np.testing.assert_array_equal(as_views[name], expected[name])
        assert expected[name].shape == (N, model.n_components_)


@every_variant
def test_any_subset_of_the_views_is_projected_as_with_all(estimator):
    blocks = blocks_for(estimator)
    model = fitted(estimator)
    expected = model.transform(blocks)
    for container in (dict, Views):
        alone = model.transform(container({"text": blocks["text"][:7]}))
        np.testing.assert_allclose(alone["text"], expected["text"][:7], atol=rounding(estimator))


@every_variant
def test_views_of_different_heights_are_projected(estimator):
    blocks = blocks_for(estimator)
    model = fitted(estimator)
    expected = model.transform(blocks)
    uneven = {name: X[: 10 + i] for i, (name, X) in enumerate(blocks.items())}
    for i, scores in enumerate(model.transform(list(uneven.values()))):
        wanted = list(expected.values())[i][: 10 + i]
        np.testing.assert_allclose(scores, wanted, atol=rounding(estimator))
    for name, scores in model.transform(uneven).items():
        assert scores.shape == (len(uneven[name]), model.n_components_)


@every_variant
def test_objects_that_are_not_seen_in_a_view_have_no_scores_in_it(estimator):
    blocks = blocks_for(estimator)
    model = fitted(estimator)
    for views in (
        Views.unpaired(blocks),
        Views.unpaired({n: sp.csr_array(X) for n, X in blocks.items()}),
    ):
        scores = model.transform(views[:5])
        assert scores["image"].shape == (5, model.n_components_)
        assert scores["text"].shape == (0, model.n_components_)
        np.testing.assert_array_equal(scores.seen, views.seen[:5])


@over(SHALLOW_VARIANTS)
def test_partly_paired_views_keep_their_pairing(estimator):
    blocks = blocks_for(estimator)
    index = np.tile(np.arange(N)[:, None], len(blocks))
    index[:10, 0] = -1
    index[10:30, 1] = -1
    views = Views(blocks, index)
    model = clone(estimator).fit(views, LABELS)
    scores = model.transform(views)
    np.testing.assert_array_equal(scores.seen, views.seen)
    whole = model.transform(blocks)
    np.testing.assert_allclose(scores["text"], np.delete(whole["text"], np.s_[10:30], 0), atol=1e-9)


LEARNING_FROM_PAIRS = [
    est for est in SHALLOW_VARIANTS if not est.requires.labels and est not in WITH_HOLES
]


@pytest.mark.filterwarnings("ignore:Few rows")
@over(LEARNING_FROM_PAIRS)
def test_of_two_partly_paired_views_their_pairs_are_learned(estimator):
    blocks = dict(list(blocks_for(estimator).items())[:2])
    index = np.tile(np.arange(N)[:, None], 2)
    index[:10, 0] = index[60:, 1] = -1
    views, weights = Views(blocks, index), np.linspace(1, 2, N)
    weights[20:23] = 0
    weighted = {"sample_weight": weights}, {"sample_weight": weights[10:60]}
    for options, of_pairs in (({}, {}), weighted):
        model = clone(estimator).fit(views, **options)
        expected = clone(estimator).fit(views[10:60], **of_pairs)
        assert_same_model(model, expected, 1e-12)


@over([est for est in LEARNING_FROM_PAIRS if est.requires.views[1] is None])
def test_objects_that_are_seen_in_one_view_teach_nothing(estimator):
    blocks = blocks_for(estimator)
    index = np.tile(np.arange(N)[:, None], 3)
    index[:10, 0] = index[10:30, 1] = index[20:30, 2] = index[80:, :2] = -1
    views = Views(blocks, index)
    assert sorted(set(views.seen.sum(axis=1))) == [1, 2, 3]
    expected = clone(estimator).fit(views[views.seen.sum(axis=1) > 1])
    assert_same_model(clone(estimator).fit(views), expected, 1e-12)


@over([MVCCA(), MVCCA(power=2.0), KERNEL[1], *COVARYING, PLS(scale=True)])
def test_integer_weights_are_repetitions_of_partly_paired_objects(estimator):
    views = Views(blocks_for(estimator, whole=True))
    index = np.tile(np.arange(N)[:, None], 3)
    index[:10, 0] = index[10:30, 1] = index[40:50, 2] = -1
    views, weights = Views(dict(views.items()), index), np.arange(N) % 3 + 1
    repeated = views[np.repeat(np.arange(N), weights)]
    model = ridged(estimator, 0.1).fit(views, sample_weight=weights)
    assert_same_model(model, ridged(estimator, 0.1).fit(repeated))


@every_estimator
def test_set_output_makes_a_frame_of_every_view(estimator):
    index = [f"object {i}" for i in range(N)]
    blocks = blocks_for(estimator)
    frames = {n: pd.DataFrame(X, index=index) for n, X in blocks.items()}
    model = copy.deepcopy(fitted(estimator))
    plain = model.transform(frames)
    prefix = type(estimator).__name__.lower()
    for kind in ("pandas", "polars"):
        for name, frame in model.set_output(transform=kind).transform(frames).items():
            assert type(frame).__module__.startswith(kind)
            assert list(frame.columns) == [f"{prefix}{i}" for i in range(model.n_components_)]
            np.testing.assert_array_equal(np.asarray(frame), plain[name])
            if kind == "pandas":
                assert list(frame.index) == index
    # As many rows as components are not turned on their side by polars.
    square = {"text": blocks["text"][: model.n_components_]}
    expected = fitted(estimator).transform(square)["text"]
    np.testing.assert_array_equal(np.asarray(model.transform(square)["text"]), expected)


@over([CCA(), MVCCA(), *DEEP[:1]])
def test_two_lone_matrices_are_two_views(estimator):
    X, Y = list(blocks_for(estimator).values())[:2]
    model = clone(estimator).fit(X, Y)
    assert model.view_names_ == ("X", "y")
    expected = clone(estimator).fit([X, Y])
    both = model.transform(X, Y)
    assert type(both) is tuple
    for found, wanted in zip(both, expected.transform([X, Y]), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-12)
    np.testing.assert_allclose(model.transform(X), both[0], atol=1e-14)
    np.testing.assert_allclose(model.transform({"y": Y})["y"], both[1], atol=1e-14)


@over([CCA(), MVCCA(), *DEEP[:1]])
def test_two_lone_matrices_of_different_heights_are_refused(estimator):
    X, Y = list(blocks_for(estimator).values())[:2]
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[90, 80\]"):
        clone(estimator).fit(X, Y[:80])
    model = clone(estimator).fit(X, Y)
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[80, 90\]"):
        model.transform(X[:80], Y)


@over([CCA(), MVCCA(), *DEEP])
def test_a_single_view_is_too_few_for_methods_that_learn_from_pairs(estimator):
    X = blocks_for(estimator)["image"]
    with pytest.raises(ValueError, match="takes at least 2 views, got 1"):
        clone(estimator).fit({"image": X}, LABELS)
    expected = "learns from labels" if estimator.requires.labels else "second view"
    with pytest.raises(ValueError, match=rf"requires y to be passed.*{expected}"):
        clone(estimator).fit(X)


def test_cca_of_three_views_points_to_mvcca():
    with pytest.raises(ValueError, match=r"CCA takes 2 views, got 3.*Use MVCCA"):
        CCA().fit(blocks_for(MVCCA()))


# ---- networks in pipelines (in other tools: tests/test_deep_contract.py) -------------------------


@over(DEEP[::7])
def test_a_pipeline_trains_networks_on_what_its_first_steps_give(estimator):
    views = Views(blocks_for(estimator))
    scaler = PerView(StandardScaler())
    pipeline = make_pipeline(scaler, clone(estimator)).fit(views, LABELS)
    scaled = clone(scaler).fit_transform(views)
    by_hand = clone(estimator).fit(scaled, LABELS)
    assert pipeline.score(views) == pytest.approx(by_hand.score(scaled), rel=1e-6)
    scores = pipeline.transform(views)
    for name, wanted in by_hand.transform(scaled).items():
        assert_same_scores(scores[name], wanted, 1e-6)
    index = RetrievalIndex(pipeline).add(views)
    _, found = index.search({"image": views["image"][:3]}, target="text", k=4)
    expected = RetrievalIndex(by_hand).add(scaled)
    _, wanted = expected.search({"image": scaled["image"][:3]}, target="text", k=4)
    np.testing.assert_array_equal(found, wanted)


# ---- running: threads, processes, copies ---------------------------------------------------------


@every_variant
def test_fit_changes_no_parameter_and_clone_copies_nothing_else(estimator):
    model = clone(estimator)
    before = copy.deepcopy(model.get_params())
    model.fit(blocks_for(estimator), LABELS)
    assert model.get_params() == before
    copied = clone(model)
    assert copied.get_params() == estimator.get_params()
    assert not [name for name in vars(copied) if name.endswith("_")]


@over(SIZED)
def test_a_parameter_set_later_is_as_good_as_one_given_at_first(estimator):
    blocks = blocks_for(estimator)
    parameters = estimator.get_params(deep=False) | {"n_components": 1}
    expected = type(estimator)(**parameters).fit(blocks, LABELS)
    model = copy.deepcopy(fitted(estimator)).set_params(n_components=1).fit(blocks, LABELS)
    assert_same_model(model, expected, 1e-12)


@every_variant
def test_pickle_joblib_and_deepcopy_project_the_same(estimator):
    blocks = blocks_for(estimator)
    model = fitted(estimator)
    expected = model.transform(blocks)
    file = BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    for copied in (pickle.loads(pickle.dumps(model)), joblib.load(file), copy.deepcopy(model)):
        for name, scores in copied.transform(blocks).items():
            np.testing.assert_array_equal(scores, expected[name])


@over(ADDING)
def test_a_pickle_takes_further_batches(estimator):
    views = Views(blocks_for(estimator))
    model = clone(estimator).partial_fit(views[:50], LABELS[:50])
    model = pickle.loads(pickle.dumps(model)).partial_fit(views[50:], LABELS[50:])
    assert_same_model(model, fitted(estimator))


@every_variant
def test_fitting_twice_gives_the_same_bits(estimator):
    blocks = blocks_for(estimator)
    again = clone(estimator).fit(blocks, LABELS)
    np.testing.assert_equal(again.transform(blocks), fitted(estimator).transform(blocks))


def _fit_all(seed: int, estimators: list[Any] = SHALLOW_VARIANTS) -> list[dict[str, np.ndarray]]:
    """Module level, so that a process can be asked for it."""
    return [clone(est).fit_transform(blocks_for(est, seed=seed), LABELS) for est in estimators]


@pytest.mark.parametrize("estimators", [SHALLOW, DEEP[::4]], ids=["shallow", "deep"])
def test_four_fits_at_once_give_what_one_after_the_other_gives(estimators):
    fit_all = partial(_fit_all, estimators=estimators)
    serial = [fit_all(seed) for seed in range(2)]
    with ThreadPoolExecutor(4) as pool:
        at_once = list(pool.map(fit_all, [0, 1, 0, 1]))
    # The last bits may depend on where a thread has its memory: BLAS aligns what it multiplies.
    for found, expected in zip(at_once, 2 * serial, strict=True):
        for one, other in zip(found, expected, strict=True):
            for name, scores in other.items():
                np.testing.assert_allclose(one[name], scores, rtol=1e-9, atol=1e-10)


@over([*VARIANTS, NCCA()])
@pytest.mark.filterwarnings("ignore::UserWarning")  # of partial_fit after fit
def test_a_second_fit_leaves_nothing_of_the_first(estimator):
    """Neither a fit to fewer views nor one to a named lone matrix, nor one that found more."""
    blocks = blocks_for(estimator)
    fresh = fitted(estimator)
    frame = pd.DataFrame(blocks["image"], columns=list("abcdef"))
    second = blocks["text"] if not estimator.requires.labels else LABELS
    if estimator.requires.labels and estimator.requires.views[0] == 2:
        frame, second = [frame, blocks["text"]], LABELS
    two = {name: blocks[name] for name in ("image", "text")}
    for first in ((frame, second), (two, LABELS)):
        model = clone(estimator).fit(*first)
        model.left_over_ = "by a fit that set what this one does not"
        model.fit(blocks, LABELS)
        assert vars(model).keys() == vars(fresh).keys()
        assert_same_model(model, fresh, 1e-14)
    if hasattr(estimator, "partial_fit") and estimator in ADDING:
        model = clone(estimator).fit(two, LABELS).partial_fit(blocks, LABELS)
        assert vars(model).keys() == vars(fresh).keys()


@over(STEPS)
def test_a_second_fit_of_a_step_leaves_nothing_of_the_first(estimator):
    X = np.random.default_rng(0).standard_normal((20, 3))
    frame = pd.DataFrame(X, columns=list("abc"))
    inputs = [frame, X] if isinstance(estimator, SplitViews) else [frame, X, {"X": frame}]
    for first in inputs:
        for second in inputs:
            model = clone(estimator).fit(first).fit(second)
            assert vars(model).keys() == vars(clone(estimator).fit(second)).keys()


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
# Without networks: torch refuses to differentiate in a fork where it has found a GPU.
def test_fork_after_the_kernels_have_run_gives_the_same():
    expected = _fit_all(0)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        np.testing.assert_equal(pool.apply_async(_fit_all, (0,)).get(timeout=240), expected)


@pytest.mark.parametrize(
    "estimator",
    [
        pytest.param(est, id=" ".join(repr(est).split()), marks=() if est in FAMILIES else SLOW)
        for est in SHALLOW_VARIANTS  # the last digit of float32 may differ, and grows with steps
    ],
)
def test_the_number_of_blas_threads_changes_no_correlation(estimator):
    blocks = blocks_for(estimator)
    found = []
    for threads in (1, 2, 4):
        with threadpool_limits(threads):
            found.append(strengths(clone(estimator).fit(blocks, LABELS)))
    for values in found[1:]:
        np.testing.assert_allclose(values, found[0], rtol=1e-13)


def test_without_a_home_or_a_folder_to_write_to_fits_run_uncached(tmp_path):
    package = tmp_path / "mvcca"
    shutil.copytree(
        Path(mvcca.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    for folder in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").write_text("a file, so that no cache folder can be made")
    program = (
        "import numpy as np, mvcca; rng = np.random.default_rng(0); "
        "X, Y = rng.random((2, 40, 3)); y = np.arange(40) % 8; "
        "print(mvcca.__file__, mvcca.MVMLCCA().fit([X, Y], y).n_components_)"
    )
    nowhere = os.devnull + "/nowhere"
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("NUMBA", "XDG")) and name != "PYTHONPATH"
    } | {"HOME": nowhere, "XDG_CACHE_HOME": nowhere, "PYTHONPATH": str(tmp_path)}
    answer = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        check=True,
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
    )
    assert answer.stdout.split() == [str(package / "__init__.py"), "2"]


MISSING = {
    "matplotlib.pyplot": (
        "plot",
        lambda model, views: CorrelationDisplay.from_estimator(model, views),
    ),
    "faiss": ("index", lambda model, views: RetrievalIndex(model, backend="faiss").add(views)),
}


@pytest.mark.parametrize(
    ("library", "extra", "call"), [(name, *rest) for name, rest in MISSING.items()], ids=MISSING
)
def test_a_library_that_is_missing_is_named_with_the_extra_to_install(
    monkeypatch, library, extra, call
):
    blocks = blocks_for(CCA())
    model = CCA().fit(blocks)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=rf"pip install mvcca\[{extra}\]"):
        call(model, blocks)
