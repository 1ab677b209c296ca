"""Views at the edges of the range of floats: fits, scores and predictions are those at scale 1."""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any

import numpy as np
import pytest
from estimators import LONG
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from sklearn.base import clone

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
    FoldSearchCV,
    Procrustes,
    evaluate_retrieval,
)
from mvcca.inspection import permutation_test
from mvcca.kernel.kernels import median_gamma
from mvcca.problem.whitener import Tridiagonal, extreme_eigenvalues

ESTIMATORS: dict[str, Any] = {
    **{cls.__name__: cls() for cls in (AffineMap, CCA, CFA, GCCA, LGCFL, MLCCA, MVCCA, MVMLCCA)},
    **{cls.__name__: cls() for cls in (NCCA, PLS, Procrustes)},
    "CMOLRS": CMOLRS(n_epochs=2, random_state=0),
    "JRL": JRL(n_neighbors=10),
    "KCCA": KCCA(random_state=0),
    "KCCA linear": KCCA(kernel="linear", random_state=0),
    "KCCA cosine": KCCA(kernel="cosine", random_state=0),
    "CCA cv": CCA(reg="cv"),
    "CCA auto": CCA(reg="auto"),
    "CCA without ridge": CCA(reg=0),
    "MVCCA oas": MVCCA(reg="oas"),
    "MVMLCCA of samples": MVMLCCA(within="sample"),
    "PLS scaled": PLS(scale=True),
}
# Their maps depend on the relative units of views or columns.
HAVE_UNITS = ("AffineMap", "CFA", "PLS", "Procrustes")
SIGNS_VARY = (*HAVE_UNITS, "KCCA linear")  # with the view that has the largest weight
SCALES = {np.float64: (1e120, 1e-150), np.float32: (1e30, 1e-30)}
PAIRS = [(0, None), (0, 0), (1, None), (1, 1), (0, 1), (1, 0)]  # which scale each view has
FORMS = ("dense", "with constants", "sparse")

every_estimator = pytest.mark.parametrize("name", ESTIMATORS)
every_precision = pytest.mark.parametrize("dtype", SCALES)


def two_views(form: str, dtype: Any, n: int = 60) -> tuple[list[np.ndarray], np.ndarray]:
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(n, 2)) * [2, 1]
    blocks = [Z @ rng.normal(size=(2, d)) + rng.normal(size=(n, d)) + 1 for d in (6, 5)]
    if form == "with constants":
        blocks[0][:, 2], blocks[1][:, 0] = blocks[0][0, 2], 0
    if form == "sparse":
        blocks = [np.where(rng.random(X.shape) < 0.5, X, 0) for X in blocks]
    return [X.astype(dtype) for X in blocks], np.digitize(Z[:, 0], [-1, 1])


def scaled(blocks: list[np.ndarray], pair: tuple[int | None, ...], form: str) -> list[Any]:
    """Views times powers of two near the scales, which rounding does not change."""
    scales = [2.0 ** round(np.log2(scale)) for scale in SCALES[blocks[0].dtype.type]]
    factors = [1.0 if i is None else scales[i] for i in pair]
    blocks = [X * X.dtype.type(factor) for X, factor in zip(blocks, factors, strict=True)]
    return [csr_array(X) for X in blocks] if form == "sparse" else blocks


def figures(model: Any, views: list[Any], y: np.ndarray) -> list[Any]:
    """What does not depend on units: quality, and scores in units of their deviations."""
    table = evaluate_retrieval(views, estimator=model, measures=["mean_rank"])
    scores = [np.asarray(T, float) for T in model.transform(views)]
    with np.errstate(under="ignore"):
        scores = [T / np.abs(T).max() for T in scores]
        return [model.score(views, y), [row.values["mean_rank"] for row in table.rows], *scores]


def cells():
    """Each estimator in two forms and precisions, which move on; some in all of them."""
    for position, name in enumerate(ESTIMATORS):
        for number, (form, dtype) in enumerate(product(FORMS, SCALES)):
            is_tried = name in ("CCA", "MVMLCCA", "KCCA") or (number - position) % 3 == 0
            yield pytest.param(name, form, dtype, marks=() if is_tried else LONG)


@pytest.mark.parametrize(("name", "form", "dtype"), [*cells()])
def test_fits_at_any_scale_are_those_at_scale_1(name, form, dtype):
    blocks, y = two_views(form, dtype)
    views = scaled(blocks, (None, None), form)
    expected = figures(clone(ESTIMATORS[name]).fit(views, y), views, y)
    tolerance = 1e-8 if dtype is np.float64 else 2e-4
    for pair in PAIRS[::2] if "cv" in name or "KCCA" in name else PAIRS:
        views = scaled(blocks, pair, form)
        with np.errstate(all="raise"):
            found = figures(clone(ESTIMATORS[name]).fit(views, y), views, y)
        assert_allclose(found[0], expected[0], rtol=tolerance, err_msg=str(pair))
        # Folds of KCCA, whose correlations weight its ranking, are drawn by hashes of rows.
        if name not in HAVE_UNITS and "KCCA" not in name and form != "sparse":
            assert_allclose(found[1], expected[1], atol=0.2)
        signs = np.sign(np.einsum("ij,ij->j", found[2], expected[2]))
        assert name in SIGNS_VARY or (signs == 1).all()
        for own, before in zip(found[2:], expected[2:], strict=True):
            assert_allclose(own * signs, before, atol=100 * tolerance, err_msg=str(pair))


@every_precision
@every_estimator
def test_columns_of_extreme_scales_raise_no_error_but_of_underflow(name, dtype):
    blocks, y = two_views("dense", dtype)
    blocks[0] = (blocks[0] * np.geomspace(*SCALES[dtype], 6)).astype(dtype)
    with np.errstate(all="raise", under="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of lost rank
        model = clone(ESTIMATORS[name]).fit(blocks, y)
        assert all(np.isfinite(T).all() for T in model.transform(blocks))


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("estimator", [CCA(), CCA(3, reg=0), PLS(), AffineMap(), Procrustes()])
def test_predictions_scale_with_the_views(estimator, pair):
    blocks, _ = two_views("dense", np.float64)
    X, Y = scaled(blocks, pair, "dense")
    factor = Y[0, 0] / blocks[1][0, 0]
    expected = clone(estimator).fit(*blocks).predict(blocks[0])
    with np.errstate(all="raise"):
        found = clone(estimator).fit(X, Y).predict(X)
    assert_allclose(found / factor, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize(
    "estimator", [CCA(), MVCCA(), MVCCA(reg_unit="absolute", reg=0.5), GCCA(), CCA(reg=0)], ids=str
)
def test_batches_and_absolute_ridges_at_any_scale(estimator, pair):
    blocks, _ = two_views("dense", np.float64)
    views, parameters = scaled(blocks, pair, "dense"), {}
    if getattr(estimator, "reg_unit", "") == "absolute":
        factors = [X[0, 0] / Z[0, 0] for X, Z in zip(views, blocks, strict=True)]
        parameters["reg"] = {f"view{i}": 0.5 * own**2 for i, own in enumerate(factors)}
    expected = clone(estimator).fit(blocks)
    whole = clone(estimator).set_params(**parameters).fit(views)
    parts = clone(estimator).set_params(**parameters)
    for rows in (slice(0, 25), slice(25, None)):
        parts.partial_fit([X[rows] for X in views])
    for model in (whole, parts):
        assert_allclose(model.eigenvalues_, expected.eigenvalues_, rtol=1e-8)
        for own, before in zip(model.transform(views), expected.transform(blocks), strict=True):
            assert_allclose(own, before, atol=1e-7)


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("estimator", [CCA(), MVCCA(), MLCCA(), MVMLCCA()], ids=str)
def test_fold_search_at_any_scale(estimator, pair):
    blocks, y = two_views("dense", np.float64)

    def search(views: list[np.ndarray]) -> Any:
        return FoldSearchCV(clone(estimator), {"reg": [1e-3, 0.1]}).fit(views, y)

    expected, found = search(blocks), search(scaled(blocks, pair, "dense"))
    assert_allclose(
        found.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"], rtol=1e-7
    )


@pytest.mark.parametrize("pair", PAIRS)
def test_a_permutation_test_at_any_scale(pair):
    blocks, _ = two_views("dense", np.float64)
    expected = permutation_test(*blocks, n_permutations=19, random_state=0)
    with np.errstate(all="raise"):
        found = permutation_test(*scaled(blocks, pair, "dense"), n_permutations=19, random_state=0)
    assert_allclose(found.observed, expected.observed, rtol=1e-8)
    assert_allclose(found.p_values, expected.p_values)


@pytest.mark.parametrize("power", [-900, -400, 0, 400, 900])
def test_eigenvalues_of_tridiagonal_matrices_at_any_scale(power):
    T = Tridiagonal(np.array([3.0, 2, 1]), np.array([0.5, 0.25]))
    at_scale = Tridiagonal(np.ldexp(T.diagonal, power), np.ldexp(T.beside, power))
    assert_allclose(np.ldexp(at_scale.extremes, -power), T.extremes, rtol=1e-14)


@pytest.mark.parametrize("scale", [1e-120, 1.0, 1e120])
def test_extreme_eigenvalues_at_any_scale(scale):
    factor = np.linalg.cholesky(np.cov(np.random.default_rng(0).normal(size=(4, 50))))
    expected = np.array(extreme_eigenvalues(factor))
    with np.errstate(all="raise"):
        assert_allclose(extreme_eigenvalues(factor * scale), expected * scale**2, rtol=1e-12)


def test_distances_that_underflow_are_an_error():
    X = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(ValueError, match="underflow"):
        median_gamma(X * 1e-170, np.random.RandomState(0))
    assert median_gamma(np.ones((20, 3)) * 1e-170, np.random.RandomState(0)) == 1
