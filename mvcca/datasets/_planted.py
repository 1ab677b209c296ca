"""Paired views sampled from models with known canonical correlations.

Each function also returns the solution that a method should approach as the sample grows: the
population's canonical correlations and the weights that attain them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.linalg import block_diag, toeplitz
from sklearn.utils import Bunch, check_random_state

from mvcca.views import Views

__all__ = ["make_gaussian_views", "make_nonlinear_views", "make_sparse_views"]


def make_gaussian_views(
    n_samples: int = 1000,
    *,
    n_features: Sequence[int] = (6, 5),
    correlations: Sequence[float] = (0.9, 0.7, 0.5),
    random_state: Any = None,
) -> Bunch:
    r"""Gaussian views with given canonical correlations.

    Latent variables :math:`z_1, \dots, z_k` are shared by all views. View p observes each with
    independent noise,

    .. math:: h_{pi} = \sqrt{\rho_i}\, z_i + \sqrt{1 - \rho_i}\, e_{pi},

    pads them with noise to its number of features, and mixes them,
    :math:`x_p = A_p^\top h_p + \mu_p`, with a random invertible :math:`A_p` of condition number at
    most 4 and a random mean. All variables are independent standard normals, so any two views have
    the canonical correlations :math:`\rho_1, \dots, \rho_k`. In the multi-view problem
    :math:`\Sigma w = \lambda B w`, with B the diagonal blocks of the joint covariance
    :math:`\Sigma`, the k largest eigenvalues for V views are :math:`1 + (V - 1) \rho_i`.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of objects.
    n_features : sequence of int, default=(6, 5)
        Number of features of each view; at least two views.
    correlations : sequence of float in [0, 1], default=(0.9, 0.7, 0.5)
        The canonical correlations. If some are equal, only the subspace spanned by their weights is
        determined.
    random_state : int, RandomState or None, default=None
        Seed for the mixing and the samples.

    Returns
    -------
    Bunch
        With the attributes:

        - views : Views of float64, ``view0``, ``view1``, ...
        - correlations : ndarray, shape (k,):
          Descending.
        - eigenvalues : ndarray, shape (k,)
        - weights : dict of str to ndarray of shape (n_features, k):
          ``(views[name] - means[name]) @ weights[name]`` are the canonical variates, of unit
          variance.
        - means : dict of str to ndarray of shape (n_features,)
        - DESCR : str

    Raises
    ------
    ValueError
        If there are fewer than two views, a correlation is outside [0, 1], or there are more
        correlations than features in some view.

    Examples
    --------
    >>> from mvcca.datasets import make_gaussian_views
    >>> data = make_gaussian_views(100, n_features=(4, 3, 2), correlations=(0.8, 0.8))
    >>> data.views
    Views(100 objects, view0: 4, view1: 3, view2: 2)
    >>> data.eigenvalues
    array([2.6, 2.6])
    """
    rho = np.sort(np.asarray(correlations, dtype=float))[::-1]
    if len(n_features) < 2:
        raise ValueError(f"n_features must have at least two views, got {tuple(n_features)}.")
    if not np.all((rho >= 0) & (rho <= 1)):
        raise ValueError(f"correlations must lie between 0 and 1, got {tuple(correlations)}.")
    if len(rho) > min(n_features):
        raise ValueError(
            f"{len(rho)} correlations need views of at least {len(rho)} features, got n_features "
            f"{tuple(n_features)}."
        )
    rng = check_random_state(random_state)
    shared = rng.standard_normal((n_samples, len(rho)))
    blocks, weights, means = {}, {}, {}
    for number, width in enumerate(n_features):
        name = f"view{number}"
        mixing, means[name] = _invertible(rng, width), rng.standard_normal(width)
        latent = rng.standard_normal((n_samples, width))
        latent[:, : len(rho)] *= np.sqrt(1 - rho)
        latent[:, : len(rho)] += np.sqrt(rho) * shared
        blocks[name] = latent @ mixing + means[name]
        weights[name] = np.linalg.inv(mixing)[:, : len(rho)]
    return Bunch(
        views=Views(blocks),
        correlations=rho,
        eigenvalues=1 + (len(n_features) - 1) * rho,
        weights=weights,
        means=means,
        DESCR=f"Gaussian views with canonical correlations {rho.tolist()}.",
    )


def make_sparse_views(
    n_samples: int = 400,
    *,
    n_features: tuple[int, int] = (800, 800),
    n_nonzero: int = 5,
    correlation: float = 0.9,
    covariance: str = "identity",
    random_state: Any = None,
) -> Bunch:
    r"""Two wide views in which only a few features are correlated.

    The views are jointly Gaussian with zero mean, given covariances within the views, and the
    covariance between them

    .. math:: \Sigma_{xy} = \rho\, \Sigma_x \phi \eta^\top \Sigma_y, \qquad
              \phi^\top \Sigma_x \phi = \eta^\top \Sigma_y \eta = 1,

    where :math:`\phi` and :math:`\eta` have `n_nonzero` equal entries at random positions and zeros
    elsewhere. The only canonical correlation is :math:`\rho`, attained by :math:`\phi` and
    :math:`\eta`. With fewer objects than features, plain CCA finds correlations of 1 everywhere;
    a sparse method finds the support.

    Parameters
    ----------
    n_samples : int, default=400
        Number of objects.
    n_features : (int, int), default=(800, 800)
        Number of features of each view.
    n_nonzero : int, default=5
        Number of correlated features of each view.
    correlation : float in [0, 1], default=0.9
        The canonical correlation.
    covariance : {"identity", "toeplitz", "sparse_inverse"}, default="identity"
        Covariance within each view: I; :math:`0.9^{|i-j|}`; or the inverse, scaled to unit
        diagonal, of the band matrix with 1 on the diagonal and 0.5 and 0.4 next to it.
    random_state : int, RandomState or None, default=None
        Seed for the support and the samples.

    Returns
    -------
    Bunch
        With the attributes:

        - views : Views of float64, ``view0`` and ``view1``
        - correlations : ndarray, shape (1,)
        - weights : dict of str to ndarray of shape (n_features, 1)
        - support : dict of str to ndarray of int, shape (n_nonzero,):
          The correlated features, ascending.
        - covariance : ndarray, shape (sum of n_features, sum of n_features):
          Joint population covariance.
        - DESCR : str

    Raises
    ------
    ValueError
        If there are not two views, or another parameter is out of range.

    References
    ----------
    O. Lindenbaum, M. Salhov, A. Averbuch, Y. Kluger, "L0-sparse canonical correlation analysis",
    ICLR 2022 (arXiv 2010.05620), synthetic data; the three covariances are those of C. Gao, Z. Ma,
    H. Zhou, "Sparse CCA: adaptive estimation and computational barriers", Annals of Statistics
    45(5), 2017.
    """
    if len(n_features) != 2:
        raise ValueError(f"n_features must have two views, got {tuple(n_features)}.")
    if not 1 <= n_nonzero <= min(n_features):
        raise ValueError(
            f"n_nonzero must lie between 1 and {min(n_features)}, the smaller number of features, "
            f"got {n_nonzero}."
        )
    if not 0 <= correlation <= 1:
        raise ValueError(f"correlation must lie between 0 and 1, got {correlation}.")
    if covariance not in _COVARIANCES:
        raise ValueError(f"covariance must be one of {list(_COVARIANCES)}, got {covariance!r}.")
    rng = check_random_state(random_state)
    within, support, weights, blocks = {}, {}, {}, {}
    for number, width in enumerate(n_features):
        name = f"view{number}"
        within[name] = sigma = _COVARIANCES[covariance](width)
        support[name] = np.sort(rng.permutation(width)[:n_nonzero])
        phi = np.zeros((width, 1))
        phi[support[name]] = 1
        weights[name] = phi / np.sqrt(phi.T @ sigma @ phi)
        blocks[name] = rng.standard_normal((n_samples, width)) @ np.linalg.cholesky(sigma).T
    joint = block_diag(*within.values())
    x, y = (within[name] @ weights[name] for name in within)  # covariance with the variate
    joint[: n_features[0], n_features[0] :] = correlation * x @ y.T
    joint[n_features[0] :, : n_features[0]] = correlation * y @ x.T
    # Change the variate of view1, along y, until it correlates with that of view0.
    a, b = (blocks[name] @ weights[name] for name in blocks)
    blocks["view1"] += (correlation * a + np.sqrt(1 - correlation**2) * b - b) @ y.T
    return Bunch(
        views=Views(blocks),
        correlations=np.array([correlation], dtype=float),
        weights=weights,
        support=support,
        covariance=joint,
        DESCR=f"Two views with one canonical correlation, {correlation}, of {n_nonzero} features.",
    )


def make_nonlinear_views(
    n_samples: int = 1000, *, noise: float = 0.0, random_state: Any = None
) -> Bunch:
    r"""A variable and its square: dependent but linearly uncorrelated.

    ``view0`` is x, uniform on [-1, 1]; ``view1`` is :math:`x^2 + \sigma e` with standard normal e.
    Linear CCA finds nothing, since :math:`\mathrm{cov}(x, x^2) = E x^3 = 0`; a method that can
    square its input finds

    .. math:: \mathrm{corr}(x^2, x^2 + \sigma e) = (1 + \sigma^2 / \tfrac{4}{45})^{-1/2}.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of objects.
    noise : float, default=0.0
        Standard deviation :math:`\sigma` of the noise on ``view1``.
    random_state : int, RandomState or None, default=None
        Seed for the samples.

    Returns
    -------
    Bunch
        With the attributes:

        - views : Views of float64, ``view0`` and ``view1``, one feature each
        - correlations : ndarray, shape (1,):
          The linear canonical correlation, 0.
        - nonlinear_correlation : float:
          The correlation of :math:`x^2` with ``view1``: 1 without noise.
        - DESCR : str

    Raises
    ------
    ValueError
        If `noise` is negative.
    """
    if noise < 0:
        raise ValueError(f"noise is a standard deviation and cannot be negative, got {noise}.")
    rng = check_random_state(random_state)
    x = rng.uniform(-1, 1, size=(n_samples, 1))
    return Bunch(
        views=Views([x, x**2 + noise * rng.standard_normal((n_samples, 1))]),
        correlations=np.zeros(1),
        nonlinear_correlation=float(1 / np.sqrt(1 + noise**2 / (4 / 45))),
        DESCR="A variable and its square: dependent but linearly uncorrelated.",
    )


def _invertible(rng: np.random.RandomState, width: int) -> np.ndarray:
    """A random matrix with singular values between 1/2 and 2."""
    left, right = (np.linalg.qr(rng.standard_normal((width, width)))[0] for _ in range(2))
    return left * rng.uniform(0.5, 2, size=width) @ right


def _sparse_inverse(width: int) -> np.ndarray:
    """Covariance with unit diagonal whose inverse has five nonzero diagonals."""
    band = toeplitz(np.concatenate([[1, 0.5, 0.4], np.zeros(width)])[:width])
    dense = np.linalg.inv(band)
    scale = np.sqrt(np.diag(dense))
    return dense / np.outer(scale, scale)


_COVARIANCES: dict[str, Callable[[int], np.ndarray]] = {
    "identity": np.eye,
    "toeplitz": lambda width: toeplitz(0.9 ** np.arange(width)),
    "sparse_inverse": _sparse_inverse,
}
