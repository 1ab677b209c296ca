"""Tests of canonical correlations by the distributions of normal rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from mvcca.inspection._pair import Pair
from mvcca.inspection._rows import of_confounds
from mvcca.machine.result import Result
from mvcca.machine.tables import Table
from mvcca.views.typing import MatrixLike, TableLike, ViewsLike

_HEADER = ("test", "components", "value", "approximation", "statistic", "df1", "df2", "p_value")


@dataclass(frozen=True, eq=False)
class ParametricTest:
    """One statistic and its approximate distribution.

    Attributes
    ----------
    approximation : str
        The distribution under the null, and whose approximation it is.
    value : ndarray
        Values of the statistic: one per component for Wilks' Λ, otherwise a single one.
    statistic, df1, df2, p_value : ndarray
        F or χ², degrees of freedom (df2 is infinite for χ²), and the probability of as large a
        value under the null.
    """

    approximation: str
    value: np.ndarray
    statistic: np.ndarray
    df1: np.ndarray
    df2: np.ndarray
    p_value: np.ndarray


@dataclass(frozen=True, eq=False)
class ParametricTests(Result):
    """Parametric tests of the canonical correlations of two views; printed as a table.

    ``to_frame`` has a row per test and step: test, components, value, approximation, statistic,
    df1, df2 and p_value.

    Attributes
    ----------
    correlations : ndarray, shape (k,)
        Sample canonical correlations.
    n_rows : int
        Number of rows less the rank of the confounds.
    ranks : (int, int)
        Numbers p and q of independent features.
    wilks, bartlett : ParametricTest
        Tests that components i, i + 1, ..., k are all zero, by F and χ² of Wilks' Λ_i.
    pillai, hotelling_lawley, roy : ParametricTest
        Tests that all components are zero. The p-value of Roy's largest root is a lower bound.
    coding : tuple of str
        How each confound was encoded, such as "site: 3 columns, reference A".
    """

    correlations: np.ndarray
    n_rows: int
    ranks: tuple[int, int]
    wilks: ParametricTest
    bartlett: ParametricTest
    pillai: ParametricTest
    hotelling_lawley: ParametricTest
    roy: ParametricTest
    coding: tuple[str, ...] = ()

    def tables(self) -> list[Table]:
        """Return the table of all tests."""
        notes = ["The p-value of Roy's largest root is a lower bound.", *of_confounds(self.coding)]
        return [Table.of("Parametric tests", _HEADER, self._rows(), notes)]

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        k = len(self.correlations)
        tests = {
            "Wilks": self.wilks,
            "Wilks (Bartlett)": self.bartlett,
            "Pillai": self.pillai,
            "Hotelling-Lawley": self.hotelling_lawley,
            "Roy": self.roy,
        }
        for name, test in tests.items():
            columns = (test.statistic, test.df1, test.df2, test.p_value)
            for i, value in enumerate(test.value):
                numbers = (float(column[i]) for column in columns)
                components = f"{i + 1} to {k}" if i + 1 < k else f"{k}"
                yield (name, components, float(value), test.approximation, *numbers)


def parametric_tests(
    X: ViewsLike | MatrixLike,
    y: MatrixLike | None = None,
    *,
    confounds: str | TableLike | None = None,
    approximation: str = "r",
    sample_weight: ArrayLike | None = None,
) -> ParametricTests:
    r"""Test canonical correlations by the distributions of Wilks, Pillai, Hotelling-Lawley and Roy.

    With canonical correlations r_1 ≥ ... ≥ r_k of p and q independent features,

    .. math::

        \Lambda_i = \prod_{j \ge i} (1 - r_j^2), \quad V = \sum_j r_j^2, \quad
        T = \sum_j \frac{r_j^2}{1 - r_j^2}, \quad \theta = \frac{r_1^2}{1 - r_1^2}.

    Λ_i tests that components i to k are zero, by Rao's F [1]_ and Bartlett's χ² [2]_. The others
    test that all are: V and T by an F approximation, and θ by an upper bound of F, so that its
    p-value is a lower bound. The p-values hold for independent rows, of which one view is normal.

    CCA with a ridge or with sparse weights has other null distributions: use `permutation_test`,
    also for groups of dependent rows.

    Parameters
    ----------
    X : Views, mapping, list of matrices, or matrix of shape (n_rows, n_features)
        Two paired views, or the first of them. Sparse views are converted to dense.
    y : matrix, optional
        The second view, if X is a single matrix.
    confounds : str, matrix of shape (n_rows, n_confounds), or table, optional
        A view of X, by name, or a matrix. Removed from both views by regression. Their rank counts
        as so many rows less.
    approximation : {"r", "mckeon"}, default="r"
        F approximation of T: that of R's ``summary.manova``, or McKeon's [3]_, which SAS and
        statsmodels use. They differ.
    sample_weight : array of int, shape (n_rows,), optional
        How often each row occurs.

    Returns
    -------
    ParametricTests

    Raises
    ------
    ValueError
        If there are not two paired views, or no more than p + q + 1 rows, less the rank of the
        confounds.
    TypeError
        If X is an estimator.

    Warns
    -----
    UserWarning
        If columns are constant or depend on each other.

    References
    ----------
    .. [1] Rao, "An asymptotic expansion of the distribution of Wilks's criterion", Bulletin of the
       International Statistical Institute 33, 1951.
    .. [2] Bartlett, "The statistical significance of canonical correlations", Biometrika 32, 1941.
    .. [3] McKeon, "F approximations to the distribution of Hotelling's T0²", Biometrika 61, 1974.

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from mvcca.inspection import parametric_tests
    >>> exercise, physiology = load_linnerud(return_X_y=True)
    >>> tests = parametric_tests(exercise, physiology)
    >>> tests.wilks.p_value.round(3)
    array([0.064, 0.949, 0.775])
    """
    if approximation not in _HOTELLING_LAWLEY:
        raise ValueError(f"Expected approximation to be 'r' or 'mckeon', got {approximation!r}.")
    pair = Pair.of(X, y, confounds, "The parametric test", sample_weight=sample_weight)
    correlations, (p, q) = pair.components.correlations, pair.ranks
    squares, n = correlations**2, pair.n_rows
    with np.errstate(divide="ignore"):  # correlations of 1
        ratios = squares / (1 - squares)
        wilks, bartlett = _wilks(squares, n, p, q)
        pillai = _pillai(squares.sum(), n, p, q)
    return ParametricTests(
        correlations,
        n,
        (p, q),
        wilks,
        bartlett,
        pillai,
        _HOTELLING_LAWLEY[approximation](ratios.sum(), n, p, q),
        _roy(ratios[0], n, p, q),
        pair.coding,
    )


def _f_test(approximation: str, value: Any, statistic: Any, df1: Any, df2: Any) -> ParametricTest:
    columns = (np.atleast_1d(np.asarray(x, float)) for x in (value, statistic, df1, df2))
    value, statistic, df1, df2 = np.broadcast_arrays(*columns)
    p_value = stats.f.sf(statistic, df1, df2)
    return ParametricTest(approximation, value, statistic, df1, df2, p_value)


def _wilks(squares: np.ndarray, n: int, p: int, q: int) -> tuple[ParametricTest, ParametricTest]:
    """Rao's F and Bartlett's χ² of every step."""
    steps = np.arange(len(squares))
    a, b = p - steps, q - steps
    log = np.cumsum(np.log1p(-squares)[::-1])[::-1]
    m, df1 = n - 1 - (p + q + 1) / 2, (a * b).astype(float)
    few = a**2 + b**2 <= 5
    t = np.sqrt(np.where(few, 1, (a * b) ** 2 - 4) / np.where(few, 1, a**2 + b**2 - 5))
    df2 = m * t - df1 / 2 + 1
    rao = _f_test("F (Rao)", np.exp(log), np.expm1(-log / t) * df2 / df1, df1, df2)
    chi2 = -m * log
    infinite = np.full(len(steps), np.inf)
    return rao, ParametricTest(
        "chi2 (Bartlett)", np.exp(log), chi2, df1, infinite, stats.chi2.sf(chi2, df1)
    )


def _sizes(n: int, p: int, q: int) -> tuple[int, float, float]:
    """s, M and N of the tables of MANOVA."""
    return min(p, q), (abs(p - q) - 1) / 2, (n - 2 - p - q) / 2


def _pillai(V: float, n: int, p: int, q: int) -> ParametricTest:
    s, M, N = _sizes(n, p, q)
    left, right = 2 * M + s + 1, 2 * N + s + 1
    return _f_test("F", V, right * V / (left * (s - V)), s * left, s * right)


def _hotelling_lawley_of_r(T: float, n: int, p: int, q: int) -> ParametricTest:
    s, M, N = _sizes(n, p, q)
    df1, df2 = s * (2 * M + s + 1), 2 * (s * N + 1)
    return _f_test("F (R)", T, df2 * T / (s * df1), df1, df2)


def _hotelling_lawley_of_mckeon(T: float, n: int, p: int, q: int) -> ParametricTest:
    N = _sizes(n, p, q)[2]
    if N <= 1:
        raise ValueError(
            f"McKeon's approximation needs more rows than p + q + 4 = {p + q + 4}, got {n}. Use "
            "approximation='r'."
        )
    B = (p + 2 * N) * (q + 2 * N) / (2 * (2 * N + 1) * (N - 1))
    excess = (p * q + 2) / (B - 1)
    c = (2 + excess) / (2 * N)
    return _f_test("F (McKeon)", T, T * (4 + excess) / (c * p * q), p * q, 4 + excess)


def _roy(theta: float, n: int, p: int, q: int) -> ParametricTest:
    d = max(p, q)
    return _f_test("F (upper bound)", theta, theta * (n - 1 - d) / d, d, n - 1 - d)


_HOTELLING_LAWLEY = {"r": _hotelling_lawley_of_r, "mckeon": _hotelling_lawley_of_mckeon}
