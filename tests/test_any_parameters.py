"""Any settings on any data: finite scores, or an error that the package raises on purpose."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from estimators import LONG
from every_option import drawn, estimators
from test_every_value import given

import mvcca

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # of few rows, for example
]
OF_ONE_MATRIX = {"Encode", "Tokens", "SplitViews", "MomentPCA", "RankGaussian"}
N_QUICK, N_LONG = 6, 60


def rows(rng: Any, n: int, *widths: int) -> dict[str, Any]:
    z = rng.normal(size=(n, 3))
    return {
        name: z @ rng.normal(size=(3, p)) + rng.normal(size=(n, p))
        for name, p in zip("abc", widths, strict=False)
    }


def tables(rng: Any) -> dict[str, dict[str, Any]]:
    """Views as people have them, and as few and as strange as they may be."""
    found = {
        "two": rows(rng, 60, 6, 5),
        "three": rows(rng, 60, 6, 5, 4),
        "wide": rows(rng, 20, 50, 30),
        "one column": rows(rng, 40, 1, 4),
        "one column each": rows(rng, 40, 1, 1),
        "six rows": rows(rng, 6, 3, 2),
        "three rows": rows(rng, 3, 3, 2),
        "integers": {name: (10 * own).astype(int) for name, own in rows(rng, 60, 5, 4).items()},
        "float32": {name: own.astype("f") for name, own in rows(rng, 60, 5, 4).items()},
        "noise": {"a": rng.normal(size=(30, 5)), "b": rng.normal(size=(30, 4))},
        "repeated": {name: np.repeat(own, 3, axis=0) for name, own in rows(rng, 20, 5, 4).items()},
    }
    found["sparse"] = {
        name: sp.csr_array(own * (own > 0)) for name, own in rows(rng, 60, 5, 4).items()
    }
    strange = rows(rng, 60, 5, 4)
    strange["a"][:, 2], strange["b"][:, 1] = 1.0, strange["b"][:, 0]
    equal = rows(rng, 60, 5, 4)
    equal["a"][:] = equal["a"][0]
    return {**found, "a constant and a copy": strange, "equal rows": equal}


def cases() -> Iterator[Any]:
    for name, cls in estimators().items():
        if name not in OF_ONE_MATRIX:
            is_network = cls.__module__.startswith("mvcca.deep")
            yield pytest.param(cls, N_QUICK, id=name, marks=LONG[: 2 * is_network])
            yield pytest.param(cls, N_LONG, id=f"{name}-long", marks=LONG)


def is_on_purpose(error: Exception) -> bool:
    """Whether the package raised it, not a library that it handed something impossible."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    by_package = mvcca.__path__[0] in last.filename or "_param_validation" in last.filename
    return by_package and (last.line or "").lstrip().startswith("raise")


@pytest.mark.parametrize(("cls", "n_draws"), [*cases()])
def test_any_settings_on_any_rows_give_finite_scores_or_an_error_of_the_package(cls, n_draws):
    rng = np.random.default_rng(n_draws)
    for _ in range(n_draws):
        settings, own = {**drawn(cls, rng), **given(cls)}, tables(rng)
        table = [*own][rng.integers(len(own))]
        X = own[table]
        y = rng.integers(0, 3, next(iter(X.values())).shape[0])
        case = f"{cls.__name__}(**{settings}) of {table}"
        try:
            scores = cls(**settings).fit(X, y).transform(X)
        except Exception as error:
            if isinstance(error, ValueError | TypeError) and is_on_purpose(error):
                continue
            raise AssertionError(case) from error
        for matrix in [own for _, own in scores.items()] if hasattr(scores, "items") else [scores]:
            found = matrix.toarray() if sp.issparse(matrix) else np.asarray(matrix)
            assert np.isfinite(found).all(), case
