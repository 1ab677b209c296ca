"""Compiled loops over the label subsets that at least two label sets share.

`mvcca.similarity.LabelGram` calls them; their plain twins, of ten lines, are in its tests. They
are serial and release the GIL. Importing this module loads numba, so it is imported inside the
functions that need it.
"""

from __future__ import annotations

import numpy as np

from mvcca.machine.jit import jit


@jit
def walk_shared_subsets(labels, owners, odds, lists, spans, shares, depth, members, ends, weights):
    """Write members[ends[k-1]:ends[k]] and weights[k] of the next subsets of a depth-first search.

    The labels of every set ascend and end with -1; owners[i] is the set of labels[i]. Lists of
    positions, one per subset still to be visited, are on a stack: lists[spans[d, 0]:spans[d, 1]]
    are where the sets that contain subset d go on behind its last label, shares[d] is its weight,
    odds^size. The search stops when the next subset does not fit into `members` or `ends`.

    A label that all sets of a subset contain adds no subset: it multiplies the weight of the
    subset, and of subsets by labels behind it, by 1 + odds.

    Returns
    -------
    lists, spans, shares : ndarray
        The stack, perhaps enlarged.
    depth, n_subsets : int
        Subsets still to be visited, and subsets written.
    """
    n_labels = labels.max() + 1
    counts, places = np.zeros(n_labels, np.int64), np.full(n_labels, -1)
    seen, common = np.empty(n_labels, np.int64), np.empty(n_labels, np.int64)
    n_members, n_subsets = 0, 0
    while depth > 0 and n_subsets < len(ends):
        start, stop, weight = spans[depth - 1, 0], spans[depth - 1, 1], shares[depth - 1]
        if n_members + stop - start > len(members):
            break
        depth -= 1
        n_seen = 0
        for i in range(start, stop):
            at = lists[i]
            members[n_members + i - start] = owners[at]
            while labels[at] >= 0:
                label = labels[at]
                if counts[label] == 0:
                    seen[n_seen] = label
                    n_seen += 1
                counts[label] += 1
                at += 1
        n_members += stop - start
        n_children, n_common, top = 0, 0, stop
        for i in range(n_seen):
            label = seen[i]
            if counts[label] == stop - start:
                common[n_common] = label
                n_common += 1
            elif counts[label] > 1:
                places[label] = top
                top += counts[label]
                seen[n_children] = label
                n_children += 1
            counts[label] = 0
        if top > len(lists):
            larger = np.empty(2 * top, lists.dtype)
            larger[:stop] = lists[:stop]
            lists = larger
        if depth + n_children > len(shares):
            more_spans = np.empty((2 * (depth + n_children), 2), spans.dtype)
            more_shares = np.empty(len(more_spans), shares.dtype)
            more_spans[:depth], more_shares[:depth] = spans[:depth], shares[:depth]
            spans, shares = more_spans, more_shares
        for i in range(n_children):
            label = seen[i]
            share = weight * odds
            for j in range(n_common):
                if common[j] < label:
                    share *= 1 + odds
            spans[depth + i, 0], shares[depth + i] = places[label], share
        if n_children > 0:
            for i in range(start, stop):
                at = lists[i]
                while labels[at] >= 0:
                    place = places[labels[at]]
                    at += 1
                    if place >= 0:
                        lists[place] = at
                        places[labels[at - 1]] += 1
        for i in range(n_children):
            spans[depth + i, 1] = places[seen[i]]
            places[seen[i]] = -1
        depth += n_children
        for _ in range(n_common):
            weight *= 1 + odds
        ends[n_subsets], weights[n_subsets] = n_members, weight
        n_subsets += 1
    return lists, spans, shares, depth, n_subsets


@jit
def add_sums_of_subsets(members, ends, weights, S, out):
    """out[z] += weights[k] Σ_y S[y] for every subset k and all its members y and z."""
    total = np.empty(S.shape[1])
    start = 0
    for k in range(len(ends)):
        total[:] = 0
        for i in range(start, ends[k]):
            row = members[i]
            for j in range(len(total)):
                total[j] += S[row, j]
        for j in range(len(total)):
            total[j] *= weights[k]
        for i in range(start, ends[k]):
            row = members[i]
            for j in range(len(total)):
                out[row, j] += total[j]
        start = ends[k]
