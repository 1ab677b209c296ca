"""Rows with holes: cells that are missing, and what is left of a row without them.

A cell is missing if it is NaN, or if its object is not seen in the view. Stored NaN of sparse rows
are missing, zeros are not. Statistics of such rows are in `_cell_moments` and `_patterns`; here is
what both have in common, up to the moments that a problem is posed with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mvcca.blocks import as_block
from mvcca.statistics.moments import Moments, column_slices
from mvcca.views import Views

_BATCH = 2**22  # numbers in the matrices that are inverted at once


@dataclass(frozen=True, eq=False)
class Recovered:
    """Moments as of complete rows, estimated from rows with holes.

    Attributes
    ----------
    moments : Moments
        Of as many complete rows as would tell the covariances as well: the harmonic mean of the
        numbers of rows in which two features are seen.
    notes : tuple of str
        What users are to know of the estimate.
    """

    moments: Moments
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        widths: Mapping[str, int],
        mean: np.ndarray,
        Sigma: np.ndarray,
        counts: np.ndarray,
        notes: Sequence[str] = (),
    ) -> Recovered:
        """Moments with this mean (D,), covariance (D, D) and number of rows by pair (D, D)."""
        n, n_views = complete_rows(counts), len(widths)
        scatter = Sigma * (n - 1)
        means = np.tile(mean, (n_views, 1))
        of_views = np.full((n_views, n_views), n)
        moments = Moments(dict(widths), of_views, means, np.zeros_like(means), scatter)
        return cls(moments, tuple(notes))

    @cached_property
    def precisions(self) -> dict[str, np.ndarray]:
        """Inverse covariance of each view's features, by which `filled` fills the holes of rows.

        It has a ridge of the number of features per row, in units of their variances: regressions
        on d features from n rows fit as much noise, and explain about half of the variance [1]_.

        References
        ----------
        .. [1] Hoerl, Kennard and Baldwin, "Ridge regression: some simulations", 1975.
        """
        Sigma, n = self.moments.covariance(), self.moments.counts[0, 0]
        return {
            name: precision(Sigma[own, own], self.moments.widths[name] / n)
            for name, own in column_slices(self.moments.widths).items()
        }

    def filled(self, name: str, block: Any) -> np.ndarray:
        """Rows of a view in float64 with their holes filled."""
        return filled(block, self.moments.mean()[name], self.precisions[name])


def complete_rows(counts: np.ndarray) -> float:
    """Number of complete rows whose covariances would be as exact on average, from (D, D) counts.

    The variance of a covariance of two features is inverse to the number of rows that have both.
    """
    others = ~np.eye(len(counts), dtype=bool) & (counts > 1)
    return float(1 / np.mean(1 / counts[others])) if others.any() else float(counts.max())


def table_of(views: Views) -> np.ndarray:
    """All views side by side in float64, (n_objects, D); NaN where a cell is missing."""
    table = np.full(views.shape, np.nan)
    for name, columns in column_slices(views.widths).items():
        table[views.objects(name), columns] = views.blocks[name].dense().matrix
    return table


def precision(Sigma: np.ndarray, ridge: float) -> np.ndarray:
    """Inverse of a covariance, (d, d), with a ridge in units of the variances."""
    variances = np.diag(Sigma)
    variances = np.where(variances > 0, variances, 1)  # a constant tells of no other feature
    scale = np.sqrt(variances)
    correlation = Sigma / scale / scale[:, None]
    np.fill_diagonal(correlation, 1 + ridge)
    inverse: np.ndarray = np.linalg.inv(correlation) / scale / scale[:, None]
    return inverse


def filled(block: Any, mean: np.ndarray, precision: np.ndarray) -> np.ndarray:
    """Rows in float64 with their holes filled by what the rest of the row tells, (n, d).

    With the precision P of the features, the expectation of the missing cells m given the others o
    is

        x_m = mean_m - P_mm⁻¹ P_mo (x_o - mean_o).
    """
    rows = as_block(block).dense().matrix.astype(np.float64)
    seen = ~np.isnan(rows)
    centred = np.where(seen, rows - mean, 0)
    products = centred @ precision
    for members, cells in alike(seen):
        place = members[:, None], cells
        rows[place] = mean[cells] - np.einsum(
            "bij,bj->bi", inverses(precision, cells), products[place]
        )
    return rows


def alike(seen: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Batches of rows with as many missing cells: rows (b,), and their missing cells (b, m)."""
    n_missing = np.count_nonzero(~seen, axis=1)
    for m in np.unique(n_missing[n_missing > 0]):
        rows = np.flatnonzero(n_missing == m)
        for members in np.array_split(rows, -(-len(rows) * m**2 // _BATCH)):
            yield members, np.nonzero(~seen[members])[1].reshape(-1, m)


def inverses(precision: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """P_mm⁻¹ of each row of missing cells (b, m): their covariance given all others, (b, m, m)."""
    found: np.ndarray = np.linalg.inv(precision[cells[:, :, None], cells[:, None, :]])
    return found


# ---- what a fit says of its holes ----------------------------------------------------------------


def naming(
    widths: Mapping[str, int], columns: Mapping[str, Sequence[Any] | None]
) -> Callable[[int], str]:
    """Function that names the view and the column of a feature, by its position among all."""

    def name_of(feature: int) -> str:
        slices = column_slices(dict(widths)).items()
        name, own = next((name, own) for name, own in slices if feature < own.stop)
        column: Any = feature - own.start
        labels = columns.get(name)
        if labels is not None and list(labels) != list(range(len(labels))):
            column = repr(labels[column])
        return f"column {column} of view {name!r}"

    return name_of


def check_seen(counts: np.ndarray, name_of: Callable[[int], str]) -> None:
    """Refuse features that are seen in fewer than two rows."""
    lost = np.flatnonzero(~(np.diag(counts) > 1))
    if len(lost):
        which = name_of(lost[0]) + (f" and {len(lost) - 1} more" if len(lost) > 1 else "")
        raise ValueError(
            f"Missing cells: expected every feature to be seen in at least two rows, but {which} "
            f"{'are' if len(lost) > 1 else 'is'} missing in all rows but {counts[lost[0]].max():g}."
            " Drop such columns, or fit to more rows."
        )


def notes_of_pairs(counts: np.ndarray, name_of: Callable[[int], str], what: str) -> list[str]:
    """A note on features that are never seen together; `what` is said of their covariance."""
    i, j = np.nonzero(np.triu(~(counts > 1), 1))
    if not len(i):
        return []
    pairs = f"{len(i)} pairs of features are" if len(i) > 1 else "A pair of features is"
    first = f"{name_of(i[0])} and {name_of(j[0])}"
    return [f"{pairs} seen together in fewer than two rows ({first}): {what}"]
