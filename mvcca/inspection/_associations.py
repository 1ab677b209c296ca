"""Associations between variables of different views that components explain."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from mvcca.blocks.checks import to_array
from mvcca.inspection._correlations import loadings, projected
from mvcca.measures.correlation import standard_columns
from mvcca.views import Views
from mvcca.views.typing import MatrixLike, ViewsLike


def associations(
    estimator: Any,
    X: ViewsLike | MatrixLike,
    y: MatrixLike | None = None,
    *,
    components: Sequence[int] | None = None,
) -> dict[tuple[str, str], np.ndarray]:
    r"""Associations between the variables of every pair of views.

    Which gene goes with which lipid? The plain correlation of two variables contains all noise; the
    association [1]_ keeps what the components explain. For variable j of view p and variable k of
    view q it is

    .. math:: m_{jk} = \sum_i \mathrm{corr}(x_{pj}, s_i) \, \mathrm{corr}(x_{qk}, s_i),
              \qquad s_i = z_{pi} + z_{qi},

    where :math:`z_{pi}` and :math:`z_{qi}` are the standardized scores of component i, and the sum
    :math:`s_i` lies halfway between them. In the correlation circle of :math:`s_1` and :math:`s_2`
    it is the inner product of two variables: large if both are near the outer circle, and negative
    if they lie opposite each other. Relevance networks, clustered heat maps and circos plots draw
    this matrix.

    Parameters
    ----------
    estimator : fitted estimator, or Views, mapping or list of matrices
        Any model whose ``transform`` maps `mvcca.views.Views` to `Views`; or the scores of X, where
        they were computed otherwise.
    X : Views, mapping, list of matrices, or matrix
        Rows of the fitted views. Held-out rows show whether an association is more than chance.
    y : matrix, optional
        The second view, if the estimator was fitted on two matrices.
    components : sequence of int, optional
        Components to add up, from 0; by default all.

    Returns
    -------
    dict of (str, str) to ndarray, shape (n_features_p, n_features_q)
        For every pair of views, over the objects seen in both; in [-1, 1] if components are
        uncorrelated. 0 for constant variables and components.

    Raises
    ------
    ValueError
        If a component does not exist, or two views have fewer than two common objects.

    See Also
    --------
    mvcca.plotting.AssociationsDisplay : Draw them.

    References
    ----------
    .. [1] González, Lê Cao, Davis and Déjean, "Visualising associations between paired 'omics' data
       sets", BioData Mining 5:19, 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from mvcca import CCA
    >>> from mvcca.inspection import associations
    >>> data = load_linnerud(as_frame=True)
    >>> views = {"exercise": data.data, "body": data.target}
    >>> found = associations(CCA(2, reg=0.1).fit(views), views)["exercise", "body"]
    >>> found.shape
    (3, 3)
    """
    views, scores = projected(estimator, X, y)
    views = views.select(scores.names)
    if len(scores.names) < 2:
        raise ValueError(f"Associations need at least two views, got {list(scores.names)}.")
    n_components = min(scores.widths.values())
    chosen = list(range(n_components) if components is None else components)
    if not chosen or not set(chosen) <= set(range(n_components)):
        raise ValueError(f"Components are numbered from 0 to {n_components - 1}, got {chosen}.")
    return {
        (p, q): _association(views.select((p, q)), scores.select((p, q)), chosen)
        for p, q in combinations(scores.names, 2)
    }


def _association(views: Views, scores: Views, components: list[int]) -> np.ndarray:
    """Associations of two views, over their common objects."""
    common = scores.seen.all(axis=1)
    if common.sum() < 2:
        first, second = scores.names
        raise ValueError(f"Views {first!r} and {second!r} have fewer than two common objects.")
    halfway = sum(standard_columns(to_array(Z)[:, components]) for _, Z in scores[common].items())
    of_p, of_q = loadings(dict.fromkeys(scores.names, halfway), views[common]).values()
    return of_p @ of_q.T
