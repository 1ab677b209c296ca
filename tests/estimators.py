"""One table of estimators with small settings, what each needs, and its excuses with reasons.

A new estimator adds itself here and is held to the whole contract: tests/test_contract.py and its
parts, tests/test_contract_*.py. CI tries every case of a product on one estimator per family, and
one case on every other, which moves on from one to the next; `make test` tries every case on the
linear families, `make test-long` all.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from given_matrices import GivenMatrices
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

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
    RGCCA,
    AffineMap,
    JoinViews,
    LabelRegression,
    PerView,
    Procrustes,
    SemanticMatching,
    SparseCCA,
    SparseDiscriminant,
    SplitViews,
    Views,
)
from mvcca.base import RankedByCorrelation
from mvcca.model_selection.sources import FromRefits
from mvcca.model_selection.space_search import SpaceSearch
from mvcca.problem import Rows
from mvcca.problem.expected import profile_vectors
from mvcca.retrieval.ranking import Ranking
from mvcca.views.labels_by_view import LabelsByView

# ---- the table -----------------------------------------------------------------------------------

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
    RGCCA(2, n_features=3),
]  # linear, but units of columns matter
CLASSIFIERS = [SparseDiscriminant(2, n_features=3)]
BASELINES = [LGCFL(), JRL(n_neighbors=5), CMOLRS(n_epochs=2, random_state=0)]
# Deep CCA is the first: all networks have one `fit`, and it stands for them.
DEEP: list[Any] = []
if find_spec("torch"):
    from deep_estimators import DEEP
SHALLOW = [*LINEAR, *KERNEL, *COVARYING, *CLASSIFIERS, *BASELINES]
ESTIMATORS = [*SHALLOW, *DEEP]
# Operators of the user's own, and scores of new rows by neighbours or classifiers, not weights.
OTHERS = [
    GivenMatrices(),
    NCCA(),
    SemanticMatching(random_state=0),
    LabelRegression(random_state=0),
]
DOORS = [*SHALLOW, *DEEP[:1]]  # rows come in by one door

# The same where a choice of parameters takes another way through the code.
LINEAR_VARIANTS = [
    *LINEAR,
    CCA(reg=0.1),
    CCA(reg="auto"),
    GCCA(reg="oas"),
    CCA(reg=0.5, reg_unit="absolute"),
    MVCCA(reg=0.1, center=False),
    MVCCA(power=2.0),
    MVCCA(reg=0.1, solve="conditional"),
    CCA(missing="pairwise"),
    MVCCA(missing="em"),
    CCA(reg=0.1, scale=True),
    CCA(reg=0.1, confounds="given"),
    MVCCA(confounds="given", missing="em"),
    GCCA(confounds="given", missing="pairwise"),
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
    PLS(missing="pairwise"),
    PLS(algorithm="canonical"),
    PLS(algorithm="regression", scale=True),
    RGCCA(2, tau=0.3),
    SparseCCA(2, n_features=3, tau=0.5),
    Procrustes(2, scale=False),
    AffineMap(2, reg=0.0),
]
DOOR_VARIANTS = [*SHALLOW_VARIANTS, *DEEP[:1]]
VARIANTS = [*SHALLOW_VARIANTS, *DEEP]
EVERYTHING = [*VARIANTS, *OTHERS]
STEPS = [
    SplitViews(),
    JoinViews(),
    JoinViews("mean"),
    PerView(),
    PerView(StandardScaler()),
    PerView({"X": StandardScaler(with_std=False)}),  # which takes sample_weight; PCA does not
]

# One estimator per family, on which every case of a product is tried.
FAMILIES = [LINEAR[0], LINEAR[3], KERNEL[0], BASELINES[1], *DEEP[:1]]


def asks(estimator: Any, name: str) -> Any:
    """The value of a parameter, None if there is none of that name."""
    return estimator.get_params().get(name)


def most_views(estimator: Any) -> int | None:
    """The largest number of views that an estimator takes, None if any."""
    deflates = asks(estimator, "algorithm") in ("canonical", "regression")
    return 2 if deflates else estimator.requires.views[1]


class Trait(NamedTuple):
    """What some estimators need, or are excused by, and why."""

    reason: str
    holds: Callable[[Any], bool]


# Needs, without which a property means nothing.
LABELS_NEEDED = Trait("learns from labels", lambda est: est.requires.labels)
PAIRS_NEEDED = Trait("learns from pairs", lambda est: not est.requires.labels)
MANY_VIEWS = Trait("takes three views", lambda est: most_views(est) is None)
COMPONENTS = Trait("has a number of components", lambda est: bool(asks(est, "n_components")))
RIDGE = Trait(
    "has a ridge per view", lambda est: "reg" in vars(est) and not isinstance(est, AffineMap)
)
BATCHES = Trait(
    "learns from sums over rows",
    lambda est: (
        hasattr(est, "partial_fit")
        and est not in DEEP
        and (not asks(est, "approximation") or asks(est, "gamma") != "auto")  # of the first batch
    ),
)
# Excuses.
NETWORK = Trait(
    "weights and batches are drawn by position, and units of features matter to gradients",
    lambda est: est in DEEP,
)
PAIRED_NETWORK = Trait(
    "networks pair rows at random, see tests/test_deep_unpaired.py", lambda est: est in DEEP
)
DRAWN = Trait(
    "ties, triplets and landmarks are drawn by the position of a row",
    lambda est: (
        (bool(asks(est, "n_neighbors")) and not isinstance(est, JRL))
        or bool(asks(est, "n_triplets"))
        or asks(est, "approximation") in ("nystroem", "cholesky")
    ),
)
ITERATED = Trait(
    "classifiers are fitted by iterations that end when they change little",
    lambda est: isinstance(est, SemanticMatching),
)
NEIGHBOURS = Trait("a row counts once as a neighbour", lambda est: isinstance(est, JRL))
NO_EIGENVALUES = Trait(
    "networks without a linear end have as many components as they have outputs",
    lambda est: est in DEEP and not asks(est, "reg"),
)
HOLES = Trait(
    "missing cells are allowed, see tests/test_missing.py",
    lambda est: asks(est, "missing") in ("pairwise", "em"),
)
GIVEN = Trait(
    "confounds are a view by name, which is not projected, see tests/test_confounds.py",
    lambda est: bool(asks(est, "confounds")),
)
TO_THE_LAST = Trait(
    "maps to the last view",
    lambda est: isinstance(est, AffineMap) or asks(est, "algorithm") == "regression",
)
OF_CONSTANTS = Trait(
    "predicts a constant view by its mean, as scikit-learn does, see tests/test_pls.py",
    lambda est: asks(est, "algorithm") in ("canonical", "regression"),
)
SHRINKS = Trait(
    "there is less shrinkage of more rows", lambda est: asks(est, "reg") in ("auto", "oas")
)
HAS_UNITS = Trait("the ridge has units", lambda est: asks(est, "reg_unit") == "absolute")
HAS_ORIGIN = Trait(
    "moments are about zero, and constants have some", lambda est: asks(est, "center") is False
)
COVARIANCES = Trait("eigenvalues are covariances", lambda est: asks(est, "reg") is None)
FIRST_LABELS = Trait(
    "features are of the labels of the first batch", lambda est: bool(asks(est, "label_features"))
)
FIRST_LANDMARKS = Trait(
    "landmarks are labels of the first batch", lambda est: asks(est, "label_features") == "nystroem"
)
CLASSIFIES = Trait(
    "an object has one class, and the score is the share of right ones",
    lambda est: isinstance(est, SparseDiscriminant),
)
RANDOM_REGULAR = Trait("flags are often equal", lambda est: bool(asks(est, "n_neighbors")))
TRAITS = {name: value for name, value in vars().copy().items() if isinstance(value, Trait)}

# Ridge-less fits compare what does not depend on units.
COMPLETE = [est for est in LINEAR_VARIANTS if not HOLES.holds(est)]
# Of methods without sums over rows, weights repeat the rows.
REPEATING = [*BASELINES[1:], *OTHERS[1:], *DEEP]

LONG = (pytest.mark.slow, pytest.mark.long)


def chosen(estimators: Iterable[Any], needs: Iterable[Trait], but: Iterable[Trait]) -> list[Any]:
    """Estimators that have all that is needed, and none of the excuses."""
    kept = [est for est in estimators if all(need.holds(est) for need in needs)]
    return [est for est in kept if not any(excuse.holds(est) for excuse in but)]


def name_of(estimator: Any) -> str:
    return " ".join(repr(estimator).split())


def over(
    estimators: Iterable[Any], *, needs: Iterable[Trait] = (), but: Iterable[Trait] = ()
) -> Any:
    """Parametrise over estimators; of networks, which share `fit`, the first and one other.

    Of variants, which share a class with another estimator, `make test` tries one in three.
    """
    own = chosen(estimators, needs, but)
    others = [est for est in own if est in DEEP[1:]]
    variants = [est for est in own if est in SHALLOW_VARIANTS[len(SHALLOW) :]]

    def decorate(test: Any) -> Any:
        turn = crc32(test.__name__.encode())
        spared = [est for number, est in enumerate(others) if number != turn % len(others)]
        later = [est for number, est in enumerate(variants) if (number - turn) % 3]
        params = [
            pytest.param(
                est, id=name_of(est), marks=LONG if est in spared else LONG[: est in later]
            )
            for est in own
        ]
        return pytest.mark.parametrize("estimator", params)(test)

    return decorate


def same_model(
    estimators: Iterable[Any],
    *,
    needs: Iterable[Trait] = (),
    but: Iterable[Trait] = (),
    tol: float = 1e-8,
    same_pairs: bool = True,
) -> Any:
    """Make a test of a generator of models, which must be that of `blocks_for` or one they name."""

    def decorate(models: Any) -> Any:
        def test(estimator: Any) -> None:
            for found in models(estimator):
                model, expected = found if type(found) is tuple else (found, fitted(estimator))
                assert_same_model(model, expected, tol, same_pairs=same_pairs)

        test.__name__, test.__doc__, test.__module__ = (
            models.__name__, models.__doc__, models.__module__,
        )  # fmt: skip
        test.pytestmark = getattr(models, "pytestmark", [])
        return over(estimators, needs=needs, but=but)(test)

    return decorate


def crossed(
    argument: str,
    cases: Mapping[str, Any],
    estimators: Iterable[Any],
    *,
    needs: Iterable[Trait] = (),
    but: Iterable[Trait] = (),
) -> Any:
    """Parametrise over estimators and named cases; `argument` may name several, of tuples.

    All cases are tried on one estimator per family, and one case on every other but the networks,
    of which every fifth is tried.
    """
    own = chosen(estimators, needs, but)
    names = ["estimator", *(part.strip() for part in argument.split(","))]
    networks = tuple(type(est) for est in DEEP)

    def decorate(test: Any) -> Any:
        turn, params = crc32(test.__name__.encode()) % 5, []
        for position, estimator in enumerate(own):
            is_spared = isinstance(estimator, networks) and position % 5 != turn
            for number, (name, case) in enumerate(cases.items()):
                is_next = number == position % len(cases) and not is_spared
                values = case if "," in argument else (case,)
                is_quick = is_next or estimator in FAMILIES[:2]
                marks = () if is_quick else LONG[: 1 if estimator in FAMILIES else 2]
                label = f"{name}-{name_of(estimator)}"
                params.append(pytest.param(estimator, *values, id=label, marks=marks))
        return pytest.mark.parametrize(names, params)(test)

    return decorate


# ---- data ----------------------------------------------------------------------------------------

NAMES = ("image", "text", "sound")
WIDTHS = (6, 5, 4)
N = 90
# Every non-empty set of four labels, six times over.
LABELS = np.array([[code >> bit & 1 for bit in range(4)] for code in range(1, 16)] * (N // 15))


@cache
def _blocks(whole: bool, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    latent = LABELS @ np.diag([4.0, 3.0, 2.0, 1.5]) + rng.standard_normal((N, 4))
    blocks = {
        name: latent @ rng.standard_normal((4, d)) + rng.standard_normal((N, d)) + 1
        for name, d in zip(NAMES, WIDTHS, strict=True)
    }
    return {name: np.round(4 * X) if whole else X for name, X in blocks.items()}


def blocks_for(estimator: Any, *, whole: bool = False, seed: int = 0) -> dict[str, np.ndarray]:
    """Views that share what their labels say and more, with holes where an estimator fills them.

    `whole` numbers fit every dtype, and have none.
    """
    found = {name: X.copy() for name, X in _blocks(whole, seed).items()}
    found = dict(list(found.items())[: most_views(estimator)])
    rng = np.random.default_rng(seed + 10)
    if HOLES.holds(estimator) and not whole:
        for X in found.values():
            X[rng.random(X.shape) < 0.03] = np.nan
    if asks(estimator, "confounds"):
        given = rng.integers(-2, 3, (N, 2)) + 0.0
        found = {name: X + given @ np.ones((2, X.shape[1])) for name, X in found.items()}
        found["given"] = given
    return found


def partly_seen(blocks: Mapping[str, Any], **unseen: Any) -> Views:
    """Paired views but for the rows that are given by name of view as not seen."""
    index = np.tile(np.arange(N)[:, None], len(blocks))
    for name, rows in unseen.items():
        if name in blocks:
            index[rows, list(blocks).index(name)] = -1
    return Views(dict(blocks), index)


_FITTED: dict[int, Any] = {}


def fitted(estimator: Any) -> Any:
    """The model of `blocks_for(estimator)`, fitted once, for tests that only read it."""
    if id(estimator) not in _FITTED:
        with warnings.catch_warnings(action="ignore"):  # whichever test is the first
            _FITTED[id(estimator)] = clone(estimator).fit(blocks_for(estimator), LABELS)
    return _FITTED[id(estimator)]


def ridged(estimator: Any, reg: float) -> Any:
    """A fresh estimator, with that ridge if it takes one."""
    return clone(estimator).set_params(**{"reg": reg} if "reg" in vars(estimator) else {})


# ---- comparisons ---------------------------------------------------------------------------------


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
    Views are told by name, or by position if the model was fitted to a list.
    """
    assert model.n_components_ == expected.n_components_
    np.testing.assert_allclose(strengths(model), strengths(expected), rtol=tol, atol=tol)
    rows = blocks_for(expected, seed=9) if probe is None else probe
    rows = {name: rows[name] for name in (*expected.view_names_, *confounds_of(expected))}
    if set(model.view_names_) != set(expected.view_names_):
        scores = model.transform(list(rows.values()))
        for found, wanted in zip(scores, expected.transform(rows).values(), strict=True):
            assert_same_scores(found, wanted, tol)
        return
    for method in projections(expected):
        scores = getattr(model, method)(rows)
        for name, wanted in getattr(expected, method)(rows).items():
            assert_same_scores(scores[name], wanted, tol)
    if same_pairs and isinstance(expected, RankedByCorrelation):
        scores = rows_to_compare(model, rows)
        for name, wanted in rows_to_compare(expected, rows).items():
            assert_same_scores(scores[name], wanted, tol)
    if same_pairs and hasattr(expected, "expected_deviations_"):
        assert_same_ratios(model, expected, rows, tol)


def rows_to_compare(model: Any, rows: dict[str, Any]) -> dict[str, Any]:
    """Scores as the profile likelihood weights them, if the model has correlations."""
    scores = dict(model.transform(rows).items())
    if getattr(model, "power", 0) or not hasattr(model, "expected_correlations_"):
        return scores
    return {name: profile_vectors(Z, model.expected_correlations_) for name, Z in scores.items()}


def confounds_of(estimator: Any) -> tuple[str, ...]:
    name = asks(estimator, "confounds")
    return (name,) if name else ()


def assert_same_ratios(model: Any, expected: Any, rows: dict[str, Any], tol: float) -> None:
    """Equal log-likelihood ratios of all rows, to each view from every other one and from all."""

    def ratios(model: Any, query: tuple[str, ...], q: str) -> np.ndarray:
        ranking = Ranking.of(model, weighting="likelihood")
        asked = {name: rows[name] for name in (*query, q, *confounds_of(expected))}
        projected = ranking.project(asked, unpaired=True).rows
        items = ranking.gallery({q: projected[q]}, query, (q,)).rows.parts
        queries = ranking.queries({name: projected[name] for name in query}, (q,))
        return queries @ np.concatenate(items).T

    for q in expected.view_names_:
        others = tuple(name for name in expected.view_names_ if name != q)
        for query in {others, *((name,) for name in others)}:
            assert_same_scores(ratios(model, query, q), ratios(expected, query, q), 10 * tol)


def projections(model: Any) -> set[str]:
    """`transform`, and the method whose rows retrieval compares."""
    return {"transform", model.retrieval_ranking[0]}


def assert_same_scores(scores: Any, expected: Any, tol: float = 1e-8) -> None:
    np.testing.assert_allclose(scores, expected, rtol=0, atol=tol * np.abs(expected).max())


def tolerance(blocks: Mapping[str, Any]) -> float:
    """Of weights: scatter of float32 rows is multiplied in float32."""
    single = any(np.dtype(getattr(X, "dtype", np.float64)).itemsize == 4 for X in blocks.values())
    return 1e-4 if single else 1e-8


@contextmanager
def untouched(*things: Any) -> Iterator[None]:
    """What was passed in is the same to the last byte when the block ends."""
    before = [fingerprint(thing) for thing in things]
    yield
    assert [fingerprint(thing) for thing in things] == before


def fingerprint(thing: Any) -> Any:
    if hasattr(thing, "dask"):
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


# ---- forms that hold the same numbers ------------------------------------------------------------

FOLDER = TemporaryDirectory()


def in_file(X: np.ndarray) -> np.ndarray:
    """The rows in a file that is mapped into memory."""
    with NamedTemporaryFile(suffix=".npy", dir=FOLDER.name, delete=False) as file:
        np.save(file, X)
    return np.load(file.name, mmap_mode="r")


def in_chunks(X: Any) -> Any:
    """A Dask array of several chunks that hold what a matrix stores, as it stores it."""
    import dask.array as da

    parts = [X[start : start + 37] for start in range(0, max(1, X.shape[0]), 37)]
    return da.concatenate([da.from_array(part, chunks=part.shape, asarray=False) for part in parts])


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
    for start, stop in pairwise(matrix.indptr):
        matrix.indices[start:stop] = matrix.indices[start:stop][::-1].copy()
        matrix.data[start:stop] = matrix.data[start:stop][::-1].copy()
    matrix.has_sorted_indices = False
    return matrix


def with_long_indices(X: np.ndarray) -> Any:
    matrix = sp.csr_array(X)
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return matrix


def explicit_zeros(Z: np.ndarray) -> Any:
    """A sparse matrix that stores every entry."""
    n, m = Z.shape
    return sp.csr_array((Z.ravel(), np.tile(np.arange(m), n), np.arange(0, n * m + 1, m)), Z.shape)


STORAGES: dict[str, Callable[[Any], Any]] = {
    "dense": np.asarray,
    "csr": sp.csr_array,
    "float32": np.float32,
    "Dask": in_chunks,
    "file": in_file,
}
DENSE_FORMS: dict[str, Callable[[Any], Any]] = {
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
SPARSE_FORMS: dict[str, Callable[[Any], Any]] = {
    f"{form}_{kind}": getattr(sp, f"{form}_{kind}")
    for form in ("csr", "csc", "coo", "bsr", "lil", "dok", "dia")
    for kind in ("array", "matrix")
} | {
    "float32 csr": lambda X: sp.csr_array(X.astype(np.float32)),
    "int csr": lambda X: sp.csr_array(X.astype(np.int64)),
    "repeated entries": repeated_entries,
    "repeated entries coo": lambda X: repeated_entries(X).tocoo(),
    "repeated entries csc": lambda X: sp.csc_array(repeated_entries(X.T).T),
    "repeated entries in Dask": lambda X: in_chunks(repeated_entries(X)),
    "unsorted indices": unsorted,
    "64-bit indices": with_long_indices,
}
FORMS = DENSE_FORMS | SPARSE_FORMS
LABEL_FORMS: dict[str, Callable[[Any], Any]] = {
    "list of lists": lambda Z: Z.tolist(),
    "bool": lambda Z: Z.astype(bool),
    "float32": lambda Z: Z.astype(np.float32),
    "csr": sp.csr_array,
    "csc matrix": sp.csc_matrix,
    "coo": sp.coo_array,
    "lil": sp.lil_array,
    "dok": sp.dok_array,
    "dia": sp.dia_array,
    "repeated entries": repeated_entries,
    "explicit zeros": explicit_zeros,
    "DataFrame": pd.DataFrame,
    "polars": lambda Z: pl.DataFrame(Z, orient="row"),
    "Fortran order": np.asfortranarray,
    "sets of names": lambda Z: [{"abcd"[j] for j in np.flatnonzero(row)} for row in Z],
    "lists of names": lambda Z: [["abcd"[j] for j in np.flatnonzero(row)] for row in Z],
    "sets of numbers": lambda Z: [set(np.flatnonzero(row)) for row in Z],
    "Series of sets": lambda Z: pd.Series([set(np.flatnonzero(row)) for row in Z]),
    "array of sets": lambda Z: np.array([set(np.flatnonzero(row)) for row in Z], dtype=object),
}


def choice_on_folds(estimator, views, y, folds, goal, labels=None):
    """The settings that are best on these folds, by labels that may be others than those of y."""
    learned = LabelsByView.of(views, y) if estimator.requires.labels else None
    judged = None if labels is None else LabelsByView.of(views, labels)
    source = FromRefits(estimator, Rows(views, labels=learned), folds, goal, judged)
    [trials] = SpaceSearch((source,), by_heads=False).choices().values()
    return source.space.choice(trials, estimator)
