"""Correlations to expect on new rows, estimated from those of the training rows.

Training correlations are optimistic: weights fit the noise of the rows that they were found from,
the more so the fewer rows there are per feature. What a ranking needs is how well components of new
rows agree.
"""

from __future__ import annotations

import numpy as np


def expected_correlation(
    correlation: np.ndarray, degrees_of_freedom: tuple[float, float], n_rows: float
) -> np.ndarray:
    """Leave-one-out estimate of the correlation of two views' scores on new rows.

    Regress the scores v of one view on the rows of the other, with hat matrix H and fitted values
    û. Left out of the regression, row j has the fitted value (û_j - H_jj v_j) / (1 - H_jj). With
    the mean leverage h = tr H / n in place of H_jj, it correlates with v, where û correlates at r,
    at

        r_h = (r² - h) / √(r² - 2 h r² + h²).

    Both views are fitted, so that r becomes r_x r_y / r. A component at noise level, r² ≤ h, gets
    1 / √n, the standard error of a correlation of zero. So do all components if there are as many
    degrees of freedom as rows, because training correlations are then 1 by construction.

    Parameters
    ----------
    correlation : ndarray, shape (k,)
        Correlations of the training scores, r.
    degrees_of_freedom : tuple of float
        tr H of either view: its rank, or less with a ridge.
    n_rows : float
        Rows that both views share, n.

    Returns
    -------
    ndarray, shape (k,)
        Values in [1 / √n, 1].
    """
    least = np.full_like(correlation, 1 / np.sqrt(n_rows))
    if sum(degrees_of_freedom) >= n_rows:
        return least
    r = np.clip(correlation, least, 1)
    estimate = 1 / r
    for freedom in degrees_of_freedom:
        h = freedom / n_rows
        excess = np.maximum(r**2 - h, 0)
        estimate = estimate * excess / np.sqrt(r**2 - 2 * h * r**2 + h**2)
    return np.maximum(estimate, least)
