"""Rows reduced to their label vectors, where these are few: counts, means, and the space of these.

Matrices made of label sums vanish outside the span of these sums, so that solutions lie in it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mvcca.machine.config import get_config
from mvcca.machine.memory import WIDE, available_bytes
from mvcca.problem import Rows
from mvcca.problem.ridge import Shrinkage
from mvcca.statistics import LabelSums, column_slices
from mvcca.views import Views
from mvcca.views.labels_by_view import LabelsByView

_LABEL_SHARE = 0.5  # of dimensions, below which the space of label sums saves more than it costs


def label_space_is_small(rows: Rows) -> bool:
    """Whether label vectors are far fewer than both rows and features of wide views in memory.

    Their sums must fit into memory, too.
    """
    blocks, U = rows.views.blocks, len(rows.labels.distinct)
    if rows.n_components is None or rows.reading.bases or not all(rows.reg.values()):
        return False
    if any(X.is_lazy or X.on_device for X in blocks.values()) or get_config().rows_device:
        return False
    dimensions = [min(X.shape) for X in blocks.values()]
    least = sum(min(U, d) for d in dimensions)
    if max(rows.views.widths.values()) < WIDE or least >= _LABEL_SHARE * sum(dimensions):
        return False
    return 4 * 8 * U * rows.views.shape[1] <= available_bytes() / 2


def label_counts(rows: Rows) -> LabelSums:
    """Label sums of rows without their features."""
    counts = [
        np.bincount(code, weights=rows.sample_weight_of(name), minlength=len(rows.labels.distinct))
        for name, code in rows.labels.codes.items()
    ]
    nothing = np.empty((len(rows.labels.distinct), 0))
    dtype = np.result_type(*(block.dtype for block in rows.views.blocks.values()))
    widths = dict.fromkeys(rows.labels.codes, 0)
    return LabelSums(rows.labels.distinct, widths, np.column_stack(counts), nothing, dtype)


def label_means(sums: LabelSums, rows: Rows) -> Rows:
    """Each view's mean row per label vector, unpaired, in place of the rows."""
    blocks, codes = {}, {}
    for p, (name, columns) in enumerate(column_slices(sums.widths).items()):
        codes[name] = np.flatnonzero(sums.counts[:, p])
        blocks[name] = sums.sums[codes[name], columns]
    labels = LabelsByView(sums.labels, codes)
    return replace(rows, views=Views.unpaired(blocks), labels=labels, sample_weight=None)


def in_label_space(rows: Rows, sums: LabelSums) -> tuple[Rows, LabelSums]:
    """Rows with bases of their means by label, where these are fewer than features; sums in them.

    Matrices made of label sums vanish outside the span of these means. Of C label vectors, they
    are C x C in it.
    """
    means = label_means(sums.averaged(), rows).in_row_space()
    parts = []
    for p, (name, columns) in enumerate(column_slices(sums.widths).items()):
        own = sums.sums[:, columns]
        if name in means.reading.bases:
            present, Z = means.labels.codes[name], means.views[name]
            own = np.zeros((len(sums.counts), Z.shape[1]))
            own[present] = sums.counts[present, p, None] * Z
        parts.append(own)
    widths = {name: part.shape[1] for name, part in zip(sums.widths, parts, strict=True)}
    turned = replace(sums, widths=widths, sums=np.hstack(parts), dtype=np.dtype(np.float64))
    return rows.read(bases=means.reading.bases), turned


def solving_is_cheap(rows: Rows) -> bool:
    """Whether `in_solved_label_space` takes less than a basis of the rows, and fits into memory.

    For dense rows it would take as long. Shrinkage scales all views by their largest eigenvalue,
    which few directions do not tell.
    """
    blocks, U = rows.views.blocks, len(rows.labels.distinct)
    if any(isinstance(reg, Shrinkage) for reg in rows.reg.values()):
        return False
    if not all(X.is_sparse for X in blocks.values() if X.shape[1] >= WIDE):
        return False
    factored = max(min(X.shape) ** 2 for X in blocks.values())
    turned = U * sum(X.shape[0] for X in blocks.values())
    return 2 * 8 * (factored + turned) < available_bytes() / 2


def in_solved_label_space(rows: Rows) -> Rows:
    """Rows of wide views in (Σ + r I)⁻¹ of their sums by label, where constraints are covariances.

    Matrices between views are made of these sums, of which there are few.
    """
    combinations = {}
    for name, X in rows.views.blocks.items():
        present, codes = np.unique(rows.labels.codes[name], return_inverse=True)
        if len(present) < min(X.shape):
            combinations[name] = np.eye(len(present))[codes]
    return rows.in_directions_of(combinations)
