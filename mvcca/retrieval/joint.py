"""Joint queries and joint targets: sums of an object's projections from several views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mvcca.measures import unit_rows
from mvcca.retrieval.collection import Collection
from mvcca.views.typing import ViewsLike


def summed(
    rows: Mapping[str, np.ndarray],
    places: Mapping[str, np.ndarray] | None = None,
    n_objects: int | None = None,
    normalize: bool = False,
) -> np.ndarray:
    """Sum the rows of each object over the views that show it.

    Parameters
    ----------
    rows : mapping of str to ndarray, shape (n_rows, n_components)
        Checked rows of each view.
    places : mapping of str to ndarray, optional
        Object of each row. By default row i of every view shows object i.
    n_objects : int, optional
        Number of sums, with `places`; of objects that no view shows they are 0.
    normalize : bool, default=False
        Scale rows to length 1 first.

    Returns
    -------
    ndarray, shape (n_objects, n_components)
        In the highest precision of the views.
    """
    widths = {name: block.shape[1] for name, block in rows.items()}
    if len(set(widths.values())) > 1:
        raise ValueError(f"Views must be projected into one space, got widths {widths}.")
    first = next(iter(rows.values()))
    n_objects = len(first) if places is None else n_objects
    total = np.zeros((n_objects or 0, first.shape[1]), np.result_type(*rows.values()))
    for name, block in rows.items():
        seen = slice(None) if places is None else places[name]
        total[seen] += unit_rows(block) if normalize else block
    return total


def joint_scores(scores: ViewsLike, names: Sequence[str], normalize: bool = False) -> np.ndarray:
    """Sum the projections of each object from several views, for joint queries.

    Parameters
    ----------
    scores : Views, mapping or list
        Projected rows of each view. Objects that are not seen in all `names` are left out.
    names : sequence of str
        The views to join.
    normalize : bool, default=False
        Scale each view's rows to length 1 first, so that all views have the same weight.

    Returns
    -------
    ndarray, shape (n_objects, n_components)
        One row per object seen in all the views, in their order.

    Raises
    ------
    ValueError
        If no view is named, one is unknown, or a value is not finite.
    """
    if isinstance(names, str) or not names or len(set(names)) < len(names):
        raise ValueError(f"Expected names of one or more different views, got {names!r}.")
    return summed(Collection.of(scores).joint(names).rows, normalize=normalize)
