"""scikit-learn's own `test_pls.py` runs against mvcca: what fails is documented, by name.

The module is executed from where scikit-learn is installed, with its four classes replaced by
`CCA` and `PLS` under scikit-learn's names and defaults. Every case in DIFFERENT must fail, every
other case must pass. docs/migration.rst says what to write instead.
"""

from __future__ import annotations

import importlib.util
import inspect
import itertools
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import sklearn.cross_decomposition as sk

import mvcca


class _Named:
    """scikit-learn's signatures, where what they ask for is how mvcca works anyway."""

    def fit(self, X: Any, y: Any = None) -> Any:
        super().fit(X, y)
        self._x_scores, self._y_scores = self.transform(X, y)
        return self

    def transform(self, X: Any, y: Any = None, copy: bool = True) -> Any:
        _check_options(copy)
        return super().transform(X, y)

    def predict(self, X: Any, copy: bool = True) -> Any:
        _check_options(copy)
        return super().predict(X)


def _check_options(copy: bool) -> None:
    if not copy:
        raise TypeError("mvcca never writes into the rows that it is given")


class CCA(_Named, mvcca.CCA):
    def __init__(self, n_components=2, *, scale=True, max_iter=500, copy=True):
        _check_options(copy)
        super().__init__(n_components)
        self.scale, self.max_iter, self.copy = scale, max_iter, copy


class _PLS(_Named, mvcca.PLS):
    def __init__(self, n_components=2, *, scale=True, max_iter=500, copy=True):
        _check_options(copy)
        super().__init__(n_components, algorithm=self._algorithm, scale=scale)
        self.max_iter, self.copy = max_iter, copy


class PLSSVD(_PLS):
    _algorithm = "svd"


class PLSCanonical(_PLS):
    _algorithm = "canonical"


class PLSRegression(_PLS):
    _algorithm = "regression"


_DIGITS = "scikit-learn stops its iterations early; the expected digits are those of that stop"
_COPY = "rows are never changed, so that copy=False does not exist"
_CLIPS = "more components than there are warn and are clipped: folds may have fewer than all rows"
_FRAMES = "set_output makes data frames of the scores of both views"
_STOPPED_EARLY = (
    "test_sanity_check_pls_regression",
    "test_sanity_check_pls_regression_constant_column_y",
    "test_sanity_check_pls_canonical",
    "test_sanity_check_pls_canonical_random",
)
_ALL_FOUR = ("CCA", "PLSSVD", "PLSRegression", "PLSCanonical")
DIFFERENT = {
    **dict.fromkeys(_STOPPED_EARLY, _DIGITS),
    "test_convergence_fail": "nothing iterates, so that max_iter limits nothing",
    **{f"test_copy[{name}]": _COPY for name in _ALL_FOUR},
    **{f"test_n_components_upper_bounds[{name}]": _CLIPS for name in _ALL_FOUR},
    "test_n_components_upper_PLSRegression": _CLIPS,
    "test_pls_constant_y": "a constant y is told in other words",
    **{f"test_pls_set_output[{name}]": _FRAMES for name in _ALL_FOUR},
}


def _module_with(classes: dict[str, Any]) -> ModuleType | None:
    """scikit-learn's test module with other classes, or None if it is not installed."""
    spec = importlib.util.find_spec("sklearn.cross_decomposition.tests.test_pls")
    if spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:  # parametrize marks hold the classes, too
        for name, own in classes.items():
            patch.setattr(sk, name, own)
        spec.loader.exec_module(module)
    return module


def _cases() -> Iterator[tuple[str, Callable[..., None], dict[str, Any]]]:
    """Every case with its name."""
    ours = (CCA, PLSSVD, PLSCanonical, PLSRegression)
    module = _module_with({own.__name__: own for own in ours})
    for name, test in () if module is None else vars(module).items():
        if name.startswith("test_"):
            for arguments in _arguments(test):
                values = [_named(value) for key, value in arguments.items() if key != "y"]
                yield f"{name}[{'-'.join(values)}]" if values else name, test, arguments


def _arguments(test: Callable[..., None]) -> Iterator[dict[str, Any]]:
    """What pytest would call a test with: every combination of its parametrize marks."""
    sets = []
    for mark in getattr(test, "pytestmark", []):
        names = [name.strip() for name in mark.args[0].split(",")]
        cases = list(mark.args[1])
        sets.append([dict(zip(names, c if len(names) > 1 else (c,), strict=True)) for c in cases])
    if "global_random_seed" in inspect.signature(test).parameters:
        sets.append([{"global_random_seed": seed} for seed in (0, 42, 99)])
    for chosen in itertools.product(*sets):
        yield {key: value for some in chosen for key, value in some.items()}


def _named(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.shape[0]}x{value.shape[1]}, {value[0, 0]:.3g}"
    return getattr(value, "__name__", str(value))


CASES = list(_cases())


def _marked(name: str, test: Callable[..., None], arguments: dict[str, Any]) -> Any:
    reason = DIFFERENT.get(name)
    marks = [pytest.mark.xfail(strict=True, reason=reason)] if reason else []
    return pytest.param(test, arguments, id=name, marks=marks)


ships_tests = pytest.mark.skipif(not CASES, reason="scikit-learn is installed without its tests")


@ships_tests
@pytest.mark.filterwarnings("ignore")  # of few rows, which many of the cases have
@pytest.mark.parametrize(("test", "arguments"), [_marked(*case) for case in CASES])
def test_a_case_of_scikit_learn_passes_or_is_listed(test, arguments):
    test(**arguments)


@ships_tests
def test_no_listed_case_is_gone():
    assert DIFFERENT.keys() <= {name for name, _, _ in CASES}


@ships_tests
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", _STOPPED_EARLY)
def test_scikit_learn_fails_its_case_too_once_its_iterations_converge(name):
    options = {"tol": 1e-30, "max_iter": 10**5}
    names = ("PLSRegression", "PLSCanonical")
    module = _module_with({own: partial(getattr(sk, own), **options) for own in names})
    with pytest.raises(AssertionError, match="not almost equal to 6 decimals"):
        getattr(module, name)()
