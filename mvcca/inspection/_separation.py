"""How well single components separate labels."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import roc_auc_score

from mvcca.blocks.checks import to_array
from mvcca.views import Labels, as_views
from mvcca.views.labels_by_view import LabelsByView, is_per_view
from mvcca.views.typing import LabelsLike, ViewsLike


def label_auroc(scores: ViewsLike, y: LabelsLike) -> dict[str, dict[str, np.ndarray]]:
    """Area under the ROC curve of each component of each view, each label against the rest.

    Which labels does a component separate? The area is the probability that a row with the label
    has a larger score than a row without it, ties counting one half. It is 0.5 for a component that
    does not know the label, and close to 0 or 1 for one that separates it: the sign of a component
    has no meaning.

    Parameters
    ----------
    scores : Views, mapping or list of matrices of shape (n_rows, n_components)
        Projected rows, as returned by ``transform``. Those of the training rows of a method that
        learns from labels are optimistic.
    y : labels
        One class or label set per object, or the labels of each view's rows by view name.

    Returns
    -------
    dict of str to dict of str to ndarray, shape (n_components,)
        By view and by name of the label; NaN if all rows of a view have the label, or none.

    Raises
    ------
    ValueError
        If labels are real label vectors, or not one per object.

    See Also
    --------
    mvcca.plotting.AurocDisplay : Draw the areas as a heat map.

    Examples
    --------
    >>> from mvcca import CCA
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.inspection import label_auroc
    >>> data = load_digits_views()
    >>> model = CCA(3, reg=0.1).fit(data.views[:1200])
    >>> found = label_auroc(model.transform(data.views[1200:]), data.labels[1200:])
    >>> found["left"]["0"].round(2)
    array([0.03, 0.2 , 0.3 ])
    """
    rows = as_views(scores).in_memory()
    labels = LabelsByView.of(rows, y, is_per_view(rows, y))
    return {name: _of_view(to_array(Z), labels[name]) for name, Z in rows.items()}


def _of_view(Z: np.ndarray, labels: Labels) -> dict[str, np.ndarray]:
    """Area of each label for each column of Z."""
    has_label = labels.require_sets().matrix.toarray().astype(bool)
    found = {}
    for name, mask in zip(labels.names, has_label.T, strict=True):
        areas = np.full(Z.shape[1], np.nan)
        if mask.any() and not mask.all():
            areas = np.array([roc_auc_score(mask, z) for z in Z.T])
        found[str(name)] = areas
    return found
