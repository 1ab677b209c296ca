"""Agreement of projected views, which `score` of the linear estimators measures."""

from __future__ import annotations

from itertools import combinations, permutations
from typing import Any

import numpy as np

from mvcca.config import block_slices
from mvcca.labels import indicator_matrices
from mvcca.measures import average_precision, column_correlations, merge_parallel, unit_rows
from mvcca.validation import encode_views, read_labels
from mvcca.views import Views


def mean_correlation(scores: Views) -> float | None:
    """Mean over components and pairs of views that share objects; None if no two views do."""
    correlations = []
    for pair in combinations(scores.names, 2):
        both = scores.select(pair)
        both = both[both.seen.all(axis=1)]
        if len(both) > 1:
            correlations.append(column_correlations(*(block for _, block in both.items())))
    return float(np.mean(correlations)) if correlations else None


def mean_average_precision(scores: Views, y: Any, per_view: bool) -> float:
    """Mean average precision of cosine ranking, over the queries of all ordered pairs of views.

    Rows are relevant to each other if they share a label. Within a single view the query
    itself ranks last.
    """
    table, codes = encode_views(scores, read_labels(y), per_view)
    indicators = indicator_matrices(table.vectors)[0]
    names = scores.names
    unit = {
        name: merge_parallel(unit_rows(np.asarray(scores[name], dtype=float))) for name in names
    }
    values = []
    for p, q in permutations(names, 2) if len(names) > 1 else [(names[0], names[0])]:
        gallery = indicators[codes[q]].astype(np.int32)
        for rows in block_slices(len(unit[p]), 8 * len(unit[q])):
            similarity = unit[p][rows] @ unit[q].T
            relevant = (indicators[codes[p][rows]].astype(np.int32) @ gallery.T).toarray() > 0
            if p == q:
                own = np.arange(rows.start, rows.stop)
                similarity[own - rows.start, own] = -2  # below every cosine
                relevant[own - rows.start, own] = False
            values.append(average_precision(similarity, relevant))
    return float(np.mean(np.concatenate(values)))
