"""How many rows a study needs, before it is done."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array

from mvcca.blocks.checks import only_numbers
from mvcca.machine import lapack
from mvcca.problem.bias import SampleBias

# gemmr, December 2023: intercept and factors of -ln r, ln(p + q) and |a_x + a_y|, fitted to
# simulations with 90 % power and errors of at most 10 %.
_LINEAR_MODELS = {
    "cca": (0.10586406527885206, 2.184483594563847, 1.176845388717882, 0.5603206934294441),
    "pls": (0.039414154832281056, 1.6694142324680488, 1.432951030468326, 0.8235967870469673),
}


def sample_size(
    correlation: float,
    n_features: tuple[int, int],
    *,
    decay: tuple[float, float],
    method: str = "cca",
) -> int:
    r"""Number of rows that estimate a component of two views reliably.

    With this many rows a test of the first component has 90 % power, and its correlation, weights,
    scores and loadings have errors of at most 10 %. The number comes from a linear model fitted to
    simulations [1]_,

    .. math:: \ln n = b_0 - b_1 \ln \rho + b_2 \ln(p + q) + b_3 |a_x + a_y|.

    Parameters
    ----------
    correlation : float
        Population correlation ρ of the first component, in (0, 1).
    n_features : (int, int)
        Numbers of features p and q: of principal components, if the views are reduced by PCA.
    decay : (float, float)
        Exponents a_x and a_y of the principal variances of each view, which fall as i^a with their
        number i; at most 0. `spectrum_decay` estimates them from rows.
    method : {"cca", "pls"}, default="cca"
        Method that is to be fitted; the correlation of PLS is that of its first pair of scores.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If an argument is outside its range.

    See Also
    --------
    required_correlation : The inverse: ρ that a given number of rows can find.
    held_out_sample_size : Rows for variates that correlate on new rows nearly as they could.

    References
    ----------
    .. [1] Helmer et al., "On the stability of canonical correlation analysis and partial least
       squares with application to brain-behavior associations", Communications Biology 7, 2024;
       coefficients of their package gemmr.

    Examples
    --------
    >>> from mvcca.model_selection import sample_size
    >>> sample_size(0.3, (5, 10), decay=(-0.8, -1.2))
    1145
    """
    correlation = _checked_correlation(correlation)
    start, slope = _line(n_features, decay, method)
    return int(np.exp(start - slope * np.log(correlation)))


def required_correlation(
    n_rows: float,
    n_features: tuple[int, int],
    *,
    decay: tuple[float, float],
    method: str = "cca",
) -> float:
    """Smallest correlation that a number of rows estimates reliably: inverse of `sample_size`.

    Parameters
    ----------
    n_rows : float
        Number of rows.
    n_features, decay, method
        As for `sample_size`.

    Returns
    -------
    float
        Population correlation of the first component; 1 or more if no correlation is large enough.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Examples
    --------
    >>> from mvcca.model_selection import required_correlation
    >>> round(required_correlation(1000, (5, 10), decay=(-0.8, -1.2)), 3)
    0.319
    """
    if not n_rows > 0:
        raise ValueError(f"Expected a positive number of rows, got n_rows={n_rows}.")
    start, slope = _line(n_features, decay, method)
    return float(np.exp((start - np.log(n_rows)) / slope))


def held_out_sample_size(
    correlation: float, n_features: tuple[int, int], *, share: float = 0.9
) -> int:
    """Number of rows from which fitted variates correlate on new rows at a share of ρ.

    The smallest n at which the limit ρ_out of the correlation of fitted variates on new rows
    (`mvcca.problem.SampleBias`) is at least share · ρ, for CCA of Gaussian views without a ridge.

    Parameters
    ----------
    correlation : float
        Population correlation ρ of the component, in (0, 1).
    n_features : (int, int)
        Numbers of features p and q.
    share : float, default=0.9
        Share of ρ, in (0, 1).

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Examples
    --------
    >>> from mvcca.model_selection import held_out_sample_size
    >>> held_out_sample_size(0.3, (5, 10))
    764
    """
    correlation = _checked_correlation(correlation)
    widths = _checked_widths(n_features)
    if not 0 < share < 1:
        raise ValueError(f"Expected a share between 0 and 1, got share={share}.")

    def suffices(n_rows: int) -> bool:
        return bool(SampleBias(n_rows, widths).held_out(correlation) >= share * correlation)

    low = sum(widths) + 1  # too few: maps of so few rows fit them perfectly
    high = 2 * low
    while not suffices(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def spectrum_decay(X: Any, *, explained: float = 0.3) -> float:
    """Exponent of the principal variances of a view, which `sample_size` asks for.

    Slope of ln(variance) on ln(i) over the first principal components that explain more than a
    share of the variance, at least two of them.

    Parameters
    ----------
    X : matrix of shape (n_rows, n_features), or ndarray of shape (n_components,)
        Rows of the view; or its principal variances, above 0 and decreasing.
    explained : float, default=0.3
        Share of the variance, in (0, 1).

    Returns
    -------
    float
        At most 0.

    Raises
    ------
    ValueError
        If the view has fewer than two independent features.

    Examples
    --------
    >>> import numpy as np
    >>> from mvcca.model_selection import spectrum_decay
    >>> X = np.linalg.qr(np.random.default_rng(0).normal(size=(50, 8)))[0]
    >>> X = (X - X.mean(axis=0)) * np.arange(1.0, 9) ** -0.6
    >>> abs(spectrum_decay(X, explained=0.9) + 1.2) < 0.1
    True
    """
    if not 0 < explained < 1:
        raise ValueError(f"Expected a share of variance in (0, 1), got explained={explained}.")
    if np.ndim(X) == 1:
        variances = np.asarray(X, dtype=float)
    else:
        X = check_array(only_numbers(X), dtype=float, ensure_min_samples=3)
        variances = lapack.singular_values(X - X.mean(axis=0)) ** 2
        variances = variances[variances > len(X) * np.finfo(float).eps * variances[0]]
    if len(variances) < 2:
        raise ValueError(
            "The decay of principal variances needs two independent features, got columns of rank "
            f"{len(variances)}."
        )
    shares = np.cumsum(variances) / variances.sum()
    k = max(int(np.argmax(shares > explained)) + 1, 2)
    return float(np.polyfit(np.log(np.arange(1, k + 1)), np.log(variances[:k]), 1)[0])


def _line(
    n_features: tuple[int, int], decay: tuple[float, float], method: str
) -> tuple[float, float]:
    """Logarithm of the number of rows at ρ = 1, and its fall with ln ρ."""
    if method not in _LINEAR_MODELS:
        raise ValueError(f"Expected method to be 'cca' or 'pls', got {method!r}.")
    if len(decay) != 2 or not max(decay) <= 0:
        raise ValueError(
            "Expected the exponents of two principal spectra, each at most 0, got "
            f"decay={decay}. Estimate them with mvcca.model_selection.spectrum_decay."
        )
    start, slope, of_widths, of_decay = _LINEAR_MODELS[method]
    start += of_widths * np.log(sum(_checked_widths(n_features))) + of_decay * abs(sum(decay))
    return start, slope


def _checked_widths(n_features: tuple[int, int]) -> tuple[int, int]:
    """Numbers of features of two views."""
    widths = tuple(n_features) if np.ndim(n_features) == 1 else ()
    if len(widths) != 2 or any(width < 1 or width != int(width) for width in widths):
        raise ValueError(
            f"Expected n_features=(p, q), two positive whole numbers, got {n_features}."
        )
    return int(widths[0]), int(widths[1])


def _checked_correlation(correlation: float) -> float:
    if not 0 < correlation < 1:
        raise ValueError(f"Expected a correlation between 0 and 1, got {correlation}.")
    return float(correlation)
