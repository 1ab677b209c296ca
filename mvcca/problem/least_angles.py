"""The best weights of few features under a constraint on variance, compiled.

Features enter a support one at a time, and the Cholesky factor of M of these grows by a row.
Importing this module loads numba, so it is imported inside the functions that need it.
"""

from __future__ import annotations

import numpy as np

from mvcca.machine.jit import jit

_COLLINEAR = 1e-10  # share of the variance of a feature that others do not explain


@jit
def enter(i, k, tau, row, chosen, L):
    """Add feature i to the k chosen ones, unless these explain it; their new number.

    `row` is that of S, of which M = τ I + (1 - τ) S, and L Lᵀ is M of the chosen ones.
    """
    rest = (1 - tau) * row[i] + tau
    least = _COLLINEAR * rest
    for a in range(k):
        product = (1 - tau) * row[chosen[a]]
        for b in range(a):
            product -= L[k, b] * L[a, b]
        L[k, a] = product / L[a, a]
        rest -= L[k, a] ** 2
    if rest <= least:
        return k
    chosen[k], L[k, k] = i, np.sqrt(rest)
    return k + 1


@jit
def solve(L, k, v):
    """Solve L Lᵀ x = v in place, of the first k entries."""
    for a in range(k):
        for b in range(a):
            v[a] -= L[a, b] * v[b]
        v[a] /= L[a, a]
    for a in range(k - 1, -1, -1):
        v[a] /= L[a, a]
        for b in range(a):
            v[b] -= L[a, b] * v[a]


@jit
def least_angles(z, count, tau, held, place, chosen, L):
    """Enter the first `count` features of least-angle regression of M on z; their number.

    Row place[i] of `held` is that of feature i of S. If it is -1 for a feature that enters, its
    row is missing: -1 - i is returned.
    """
    left, is_free = z.copy(), z != 0  # constant columns have none
    slopes, along = np.empty(len(z)), np.empty(count)
    k = 0
    while True:
        i, size = -1, 0.0
        for j in range(len(z)):
            if is_free[j] and abs(left[j]) > size:
                i, size = j, abs(left[j])
        if i < 0:
            return k
        if place[i] < 0:
            return -1 - i
        is_free[i] = False
        before, k = k, enter(i, k, tau, held[place[i]], chosen, L)
        if k == count:
            return k
        if k == before:
            continue
        for a in range(k):
            along[a] = np.sign(left[chosen[a]])
        solve(L, k, along)
        slopes[:] = 0.0
        for a in range(k):
            slopes += (1 - tau) * along[a] * held[place[chosen[a]]]
            slopes[chosen[a]] += tau * along[a]
        step = size
        for j in range(len(z)):
            if is_free[j]:
                for sign in (-1, 1):  # until what is left of it is as large as of the chosen ones
                    gap, closing = size + sign * left[j], 1 + sign * slopes[j]
                    if 0 < gap < step * closing:
                        step = gap / closing
        left -= step * slopes


@jit
def fill_best_of_few(Z, counts, old, fixed, tau, held, place, first, W):
    """W[b] = argmax z_bᵀw, wᵀMw = 1, over at most counts[b] features, for the rows b from `first`.

    The features are those of least-angle regression, or of old[b] if these are better, or if these
    are `fixed`. Returns a row and a feature whose row of `held` is missing, or -1 and -1.
    """
    most = counts.max()
    chosen, along, L = np.empty(most, np.int64), np.empty(most), np.empty((most, most))
    for b in range(first, len(Z)):
        z, best = Z[b], 0.0
        W[b] = 0.0
        for is_new in range(2):
            k = 0
            if is_new:
                if fixed and best > 0:
                    continue
                k = least_angles(z, counts[b], tau, held, place, chosen, L)
                if k < 0:
                    return b, -1 - k
            elif np.count_nonzero(old[b]) <= counts[b]:
                for i in np.flatnonzero(old[b]):
                    if place[i] < 0:
                        return b, i
                    k = enter(i, k, tau, held[place[i]], chosen, L)
            for a in range(k):
                along[a] = z[chosen[a]]
            solve(L, k, along)
            size = 0.0
            for a in range(k):
                size += along[a] * z[chosen[a]]
            if size > best:
                best = size
                W[b] = 0.0
                for a in range(k):
                    W[b, chosen[a]] = along[a] / np.sqrt(size)
    return -1, -1
