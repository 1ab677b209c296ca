"""Whether the sizes of rows make permutations find too much: a common scale, or long tails."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

import numpy as np

from mvcca.inspection._rows import common_scale, explained_by
from mvcca.inspection.permutation._design import Design
from mvcca.inspection.permutation._nuisance import Strata, groups_by_size

_N_DRAWS = 20  # rearrangements that tell what chance makes of Σ r²
_TOGETHER = 0.4  # product over two views of the correlation of lengths between and within groups
_FEWEST = 3  # groups of a size
_ERRORS = 2.0  # standard errors of a correlation
_LEFT = 1e-3  # share of the length of a row, below which nothing is left of it


def has_common_scale(design: Design, arrays: Mapping[str, np.ndarray]) -> bool:
    """Whether large rows of the first two views belong together, more than by chance.

    Rows are compared with those that may take their place: with groups of the same size, in the
    same outer group.
    """
    first, second = design.sides[:2]
    complement = first.complement
    if complement is not second.complement:  # rows have different confounds
        return False
    views = [side.variables(arrays[side.name]) for side in (first, second)]
    rows = [complement.lift(view) for view in views]
    alike = [np.arange(len(rows[0]))]
    if design.groups is not None:
        alike = [own.ravel() for own in chain(*groups_by_size(design.groups, design.outer))]
    h, k = ((U**2).sum(axis=1) for U in rows)
    rng = np.random.RandomState(0)
    moved = (design.exchanges[0].apply(views[0], rng) for _ in range(_N_DRAWS))
    by_chance = np.mean([((U.T @ views[1]) ** 2).sum() for U in moved])
    # A common scale adds to Σ r², too: what it adds to the products of leverages.
    by_scale = h @ k - sum(h[own].sum() * k[own].sum() / len(own) for own in alike)
    shared = ((rows[0].T @ rows[1]) ** 2).sum() - by_chance - by_scale
    explained = explained_by(shared, *rows)
    if isinstance(complement, Strata):  # confounds leave less of some rows, in both views
        left = np.sqrt(complement.shares)[:, None]
        rows = [np.divide(U, left, out=np.zeros_like(U), where=left > _LEFT) for U in rows]
    U, V = (_per_kind(own, alike) for own in rows)
    return common_scale(U, V, explained) > 1


def has_long_tails(design: Design, arrays: Mapping[str, np.ndarray]) -> bool:
    """Whether groups with a large mean are those whose rows differ most, in two views.

    Strata of normal errors are independent of each other. With long tails, one large row makes its
    group large in both, which is lost where rows of each stratum are exchanged by themselves.
    """
    if design.groups is None or not isinstance(design.sides[0].complement, Strata):
        return False
    alike = [*chain(*groups_by_size(design.groups, design.outer))]
    rows = (side.complement.lift(side.variables(arrays[side.name])) for side in design.sides)
    *_, second, first = sorted(_shared_by_strata(own, alike) for own in rows)
    return second > 0 and first * second > _TOGETHER


def _shared_by_strata(rows: np.ndarray, alike: list[np.ndarray]) -> float:
    """Correlation over groups of the lengths of their mean and of what is left without it.

    0 if chance may explain it.
    """
    lengths = [np.ones((2, 0))]
    for places in alike:
        if len(places) < _FEWEST:
            continue
        members = rows[places]
        means = members.mean(axis=1, keepdims=True)
        own = np.sqrt([(part**2).sum(axis=(1, 2)) for part in (means, members - means)])
        if own.all():  # else, groups of one row
            lengths.append(own / own.mean(axis=1, keepdims=True))
    between, within = np.hstack(lengths)
    if len(between) < _FEWEST or not np.ptp(between) or not np.ptp(within):
        return 0.0
    r = float(np.corrcoef(between, within)[0, 1])
    return r if r * np.sqrt(len(between)) > _ERRORS else 0.0


def _per_kind(U: np.ndarray, alike: list[np.ndarray]) -> np.ndarray:
    """Rows in units of the root mean square length of those that may take their place."""
    squares, scales = (U**2).sum(axis=1), np.ones((len(U), 1))
    for rows in alike:
        scales[rows] = np.sqrt(squares[rows].mean()) or 1.0
    return U / scales
