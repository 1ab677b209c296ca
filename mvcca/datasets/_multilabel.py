"""Synthetic views generated from labels, paired, partly paired or unpaired.

Label sets determine latent vectors, and latent vectors determine the views: data with a known
solution for label-supervised methods.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import Bunch, check_random_state

from mvcca.model_selection.folds import share_of
from mvcca.views import Views

__all__ = ["make_multilabel_views"]


def make_multilabel_views(
    n_samples: int = 300,
    *,
    n_features: Sequence[int] = (20, 15),
    n_classes: int = 6,
    max_labels: int = 3,
    n_latent: int = 6,
    paired: float = 0.0,
    noise: float = 0.1,
    random_state: Any = None,
) -> Bunch:
    r"""Views that have only labels in common.

    Object i has one to `max_labels` labels with 0/1 vector :math:`z_i`; their number and then the
    labels are drawn uniformly. Its latent vector is the sum of its labels' vectors,
    :math:`h_i = C^\top z_i`, and its row in view p is

    .. math:: x_{pi} = A_p^\top h_i + \mu_p + \sigma e_{pi}, \qquad A_p A_p^\top = I,

    so that :math:`A_p (x_{pi} - \mu_p)` recovers the latent vector up to noise of standard
    deviation :math:`\sigma` per coordinate: objects of all views are comparable in that space.

    Parameters
    ----------
    n_samples : int, default=300
        Number of objects.
    n_features : sequence of int, default=(20, 15)
        Number of features of each view.
    n_classes : int, default=6
        Number of labels.
    max_labels : int, default=3
        Maximum number of labels of an object.
    n_latent : int, default=6
        Dimension of the latent vectors; the labels' vectors are random unit vectors.
    paired : float in [0, 1], default=0.0
        Fraction of the objects that are seen in every view. The others are seen in one view each,
        in equal numbers. 0 gives unpaired views, 1 paired views.
    noise : float, default=0.1
        Standard deviation :math:`\sigma`.
    random_state : int, RandomState or None, default=None
        Seed for the labels, the mixing and the noise.

    Returns
    -------
    Bunch
        With the attributes:

        - views : Views of float64, ``view0``, ``view1``, ...:
          Paired objects first, then the other objects of each view in turn.
        - labels : list of frozenset of int
        - indicator : ndarray of int, shape (n_samples, n_classes):
          The labels as a 0/1 matrix.
        - latent : ndarray, shape (n_samples, n_latent)
        - class_vectors : ndarray, shape (n_classes, n_latent):
          The matrix C.
        - mixing : dict of str to ndarray of shape (n_latent, n_features):
          The matrices A.
        - means : dict of str to ndarray of shape (n_features,)
        - DESCR : str

    Raises
    ------
    ValueError
        If a parameter is out of range, a view has fewer than `n_latent` features, or a view would
        have no objects.

    Examples
    --------
    >>> from mvcca.datasets import make_multilabel_views
    >>> data = make_multilabel_views(10, paired=0.4)
    >>> data.views.pattern.tolist()
    ... # doctest: +NORMALIZE_WHITESPACE
    ['view0+view1', 'view0+view1', 'view0+view1', 'view0+view1',
     'view0', 'view0', 'view0', 'view1', 'view1', 'view1']
    """
    if not 1 <= max_labels <= n_classes:
        raise ValueError(
            f"max_labels must lie between 1 and n_classes={n_classes}, got {max_labels}."
        )
    if not 0 <= paired <= 1:
        raise ValueError(f"paired must lie between 0 and 1, got {paired}.")
    if noise < 0:
        raise ValueError(f"noise is a standard deviation and cannot be negative, got {noise}.")
    if min(n_features) < n_latent:
        raise ValueError(
            f"Every view needs at least n_latent={n_latent} features, got n_features "
            f"{tuple(n_features)}."
        )
    index = _index(n_samples, len(n_features), paired)
    rng = check_random_state(random_state)
    sizes = rng.randint(1, max_labels + 1, size=(n_samples, 1))
    order = rng.uniform(size=(n_samples, n_classes)).argsort(axis=1).argsort(axis=1)
    indicator = (order < sizes).astype(int)
    class_vectors = rng.standard_normal((n_classes, n_latent))
    class_vectors /= np.linalg.norm(class_vectors, axis=1, keepdims=True)
    latent = indicator @ class_vectors
    blocks, mixing, means = {}, {}, {}
    for number, width in enumerate(n_features):
        name = f"view{number}"
        mixing[name] = np.linalg.qr(rng.standard_normal((width, n_latent)))[0].T
        means[name] = rng.standard_normal(width)
        seen = latent[index[:, number] >= 0]
        blocks[name] = seen @ mixing[name] + means[name]
        blocks[name] += noise * rng.standard_normal(blocks[name].shape)
    return Bunch(
        views=Views(blocks, index),
        labels=[frozenset(np.flatnonzero(row).tolist()) for row in indicator],
        indicator=indicator,
        latent=latent,
        class_vectors=class_vectors,
        mixing=mixing,
        means=means,
        DESCR=f"Views generated from {n_classes} labels; {paired:.0%} of the objects are paired.",
    )


def _index(n_samples: int, n_views: int, paired: float) -> np.ndarray:
    """Row of every object in each view: paired objects first, then equally many per view."""
    n_paired = round(share_of(paired, n_samples))
    seen = np.zeros((n_samples, n_views), dtype=bool)
    seen[:n_paired] = True
    for view, alone in enumerate(np.array_split(np.arange(n_paired, n_samples), n_views)):
        seen[alone, view] = True
    if not seen.any(axis=0).all():
        raise ValueError(
            f"{n_samples} objects, {n_paired} of them paired, leave a view empty: increase "
            f"n_samples or paired for {n_views} views."
        )
    return np.where(seen, np.cumsum(seen, axis=0) - 1, -1)
