"""The loss of JRL: fit to the labels, differences between views, and smoothness over neighbours.

Its steps can be solved for the features or for the rows, whichever are fewer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, Self

import numpy as np
from scipy import linalg
from scipy.sparse import coo_array, csr_array, diags_array, eye_array
from sklearn.neighbors import NearestNeighbors

from mvcca.blocks import as_block, stack
from mvcca.linear.group_sparse import Loss, MomentLoss, centred_targets
from mvcca.linear.pairs import weighted_cross
from mvcca.linear.shifted_rows import ShiftedRows
from mvcca.machine.memory import available_bytes
from mvcca.machine.threads import threads_to_factorise
from mvcca.problem.whitener import extreme_eigenvalues
from mvcca.statistics import column_slices
from mvcca.views import Views

_INVERTIBLE = 1e-5  # smallest eigenvalue of the largest
_REAL = 1e-13  # the same, of eigenvalues that are not rounding
_STEPS = 20  # typical of a fit, over which what is computed once is shared out


def learned_rows(X: Any, unlabelled: Any) -> ShiftedRows:
    """Rows Z of a view less the mean of the labelled ones, which come first."""
    n = X.shape[0]
    rows = as_block(X if unlabelled is None else stack([X, unlabelled]))
    rows = rows.promoted(np.dtype(np.float64))
    rows, _ = rows.centred(rows.take(slice(n)).column_means())  # sparse ones stay as they are
    return ShiftedRows(rows, rows.take(slice(n)).column_means())


@dataclass(frozen=True, eq=False)
class Pairs:
    """Objects seen in two views, and how much the difference of their scores counts."""

    views: tuple[str, str]
    rows: tuple[np.ndarray, np.ndarray]  # of the objects in each of the views
    share: float

    @classmethod
    def of(cls, views: Views, pairing: float) -> list[Self]:
        """Pairs of views that share objects."""
        found = []
        for p, q in combinations(views.names, 2) if pairing else ():
            a, b = views.objects(p), views.objects(q)
            _, i, j = np.intersect1d(a, b, assume_unique=True, return_indices=True)
            if len(i):
                found.append(cls((p, q), (i, j), pairing / len(i)))
        return found

    def of_view(self, name: str, n_rows: int) -> np.ndarray:
        """What each row of a view weighs in the squared differences, (n_rows,)."""
        weights = np.zeros(n_rows)
        for view, rows in zip(self.views, self.rows, strict=True):
            if view == name:
                weights[rows] = self.share
        return weights


def jrl_loss(
    views: Views,
    rows: Mapping[str, ShiftedRows],
    labels: Mapping[str, Any],
    *,
    pairing: float,
    smoothness: float,
    n_neighbors: int,
) -> Loss:
    """Half of JRL's objective without the norms, over the weights of all views side by side."""
    pairs, forms = Pairs.of(views, pairing), {}
    heights, widths = zip(*(view.block.shape for view in rows.values()), strict=True)
    is_by_objects = solves_by_objects(heights, widths, len(pairs) > 0)
    for name, view in rows.items():  # of the scores Z̄ P of each view by itself
        n_all, n = view.block.shape[0], labels[name].shape[0]
        diagonal = np.zeros(n_all)
        diagonal[:n] = 1 / n
        diagonal += sum((pair.of_view(name, n_all) for pair in pairs), np.zeros(n_all))
        forms[name] = csr_array(diags_array(diagonal))
        if smoothness:
            k = min(n_neighbors, n_all - 1)
            forms[name] += smoothness / n_all * laplacian(view.block.matrix, k)
    if is_by_objects:
        return ObjectLoss.of(views, rows, forms, labels, pairs)
    return _moment_loss(rows, forms, labels, pairs)


def solves_by_objects(heights: Sequence[int], widths: Sequence[int], is_paired: bool) -> bool:
    """Whether to solve for rows, not features: by operations, among what memory allows.

    Raises
    ------
    MemoryError
        If neither fits.
    """
    by_objects, by_features = bytes_by_objects(heights, is_paired), bytes_by_features(widths)
    available = available_bytes()
    if min(by_objects, by_features) > available:
        raise MemoryError(
            f"JRL of {sum(heights):,} rows and {sum(widths):,} features in all views needs about "
            f"{by_objects / 1e9:.1f} GB to solve for rows, {by_features / 1e9:.1f} GB to solve for "
            f"features, and {available / 1e9:.1f} GB are available. Fit a sample of the rows, or "
            "MLCCA or MVMLCCA, which learn from sums by label."
        )
    if max(by_objects, by_features) > available:
        return by_objects < by_features
    return flops_by_objects(heights, widths, is_paired) < flops_by_features(heights, widths)


def bytes_by_features(widths: Sequence[int]) -> float:
    """Memory of the matrix over all features, of a step's system and of its factors."""
    return 3 * 8 * float(sum(widths)) ** 2


def bytes_by_objects(heights: Sequence[int], is_paired: bool) -> float:
    """Memory of `ObjectLoss`: of each view two matrices, with shared objects four; and a step's."""
    of_views = sum(float(n) ** 2 for n in heights)
    return 8 * ((4 if is_paired else 2) * of_views + 5 * float(max(heights)) ** 2)


def flops_by_features(heights: Sequence[int], widths: Sequence[int]) -> float:
    """Operations of a fit that solves for the weights of all features."""
    return _STEPS * 2 / 3 * sum(widths) ** 3 + max(heights) * sum(widths) ** 2


def flops_by_objects(heights: Sequence[int], widths: Sequence[int], is_paired: bool) -> float:
    """Operations of a fit that solves for the rows of one view after the other."""
    step, before = 0.0, 0.0
    for n, d in zip(heights, widths, strict=True):
        step += n**2 * d + n**3 / 3 + 2 * n**3 * is_paired
        before += n**2 * d + 3 * n**3
    return _STEPS * (step + max(heights) ** 3 / 3 * is_paired) + before


def _moment_loss(
    rows: Mapping[str, ShiftedRows],
    forms: Mapping[str, csr_array],
    labels: Mapping[str, Any],
    pairs: Sequence[Pairs],
) -> MomentLoss:
    """The loss by its matrices over all features."""
    columns = column_slices({name: view.block.shape[1] for name, view in rows.items()})
    targets, constants = zip(*(_targets(rows[n], labels[n]) for n in rows), strict=True)
    M = np.zeros((sum(view.block.shape[1] for view in rows.values()),) * 2)
    for name, view in rows.items():
        own = columns[name]
        X = view.block.matrix
        M[own, own] = weighted_cross(X, forms[name], X, view.shift, view.shift)
    for pair in pairs:
        (p, q), n = pair.views, len(pair.rows[0])
        X, Y = rows[p].block.matrix, rows[q].block.matrix
        F = csr_array((np.full(n, -pair.share), pair.rows), shape=(X.shape[0], Y.shape[0]))
        M[columns[p], columns[q]] = weighted_cross(X, F, Y, rows[p].shift, rows[q].shift)
        M[columns[q], columns[p]] = M[columns[p], columns[q]].T
    return MomentLoss(M, np.concatenate(targets), sum(constants))


def _targets(view: ShiftedRows, labels: Any) -> tuple[np.ndarray, float]:
    """Z̄ᵀȲ / n, and half the mean of ‖ȳ‖², of the labelled rows."""
    n = labels.shape[0]
    B, constant = centred_targets(view.block.matrix[:n], labels, np.full(n, 1 / n))
    return B / n, constant


@dataclass(frozen=True, eq=False)
class _ViewOfObjects:
    """The part of one view in `ObjectLoss`: ½ tr(sᵀFs) - tr(sᵀy) of its scores s = Z̄U."""

    # With F = CCᵀ, s = K α and α = (F K + I)⁻¹ (y + Ec) for the kernel K = Z̄TZ̄ᵀ:
    #
    #     α = C G⁻¹ C⁺(y + Ec),  G = I + CᵀKC,   or   α = A⁻¹ F⁻¹(y + Ec),  A = F⁻¹ + K.
    #
    # The second form saves two products; the first is for singular F, whose range holds y and E.

    rows: ShiftedRows
    form: csr_array  # F, (n, n)
    targets: np.ndarray  # y, (n, m)
    links: csr_array  # E, (n, n_links): places of shared objects, and weights of their scores
    root: np.ndarray | None  # C, (n, r), or None for the second form
    ground: np.ndarray  # I or F⁻¹, (r, r)
    image: np.ndarray  # C⁺E or F⁻¹E, (r, n_links)
    start: np.ndarray  # C⁺y or F⁻¹y, (r, m)

    @classmethod
    def of(cls, rows: ShiftedRows, form: csr_array, targets: np.ndarray, links: csr_array) -> Self:
        F, right = form.toarray(), np.hstack([links.toarray(), targets])
        factor, failed = linalg.lapack.dpotrf(F, lower=1, clean=1)
        if not failed:
            largest, smallest = extreme_eigenvalues(factor)
        if not failed and smallest > _INVERTIBLE * largest:
            root, ground = None, linalg.cho_solve((factor, True), np.eye(len(F)))
            solved = ground @ right
        else:
            values, vectors = linalg.eigh(F)
            real = values > _REAL * values[-1]
            values, vectors = np.sqrt(values[real]), vectors[:, real]
            root, ground = vectors * values, np.eye(len(values))
            solved = vectors.T @ right / values[:, None]
        image, start = np.hsplit(solved, [links.shape[1]])
        return cls(rows, form, targets, links, root, ground, image, start)

    def factored(self, T: np.ndarray) -> np.ndarray:
        """The Cholesky factor of A or G, lower triangular."""
        inner = self.rows.gram(T)
        if self.root is not None:
            inner = self.root.T @ inner @ self.root
        inner += self.ground
        return linalg.cholesky(inner, lower=True, overwrite_a=True, check_finite=False)


@dataclass(frozen=True, eq=False)
class ObjectLoss:
    """The loss by the scores of the rows, of which there are fewer than features.

    With scores s_p of view p it is Σ_p [½ tr(s_pᵀ F_p s_p) - tr(s_pᵀ y_p)] - ½ ‖Σ_p E_pᵀ s_p‖² + c.
    A step first finds the shared part c = Σ_p E_pᵀ s_p from one system over the shared objects,

        (I - Σ_p E_pᵀ H_p E_p) c = Σ_p E_pᵀ H_p y_p,   H_p = K_p (F_p K_p + I)⁻¹,

    then every view by itself: U_p = T_p Z̄_pᵀ (F_p K_p + I)⁻¹ (y_p + E_p c).
    """

    views: Sequence[_ViewOfObjects]
    slopes: np.ndarray  # (d, m) of all views
    curvature: float
    constant: float

    @classmethod
    def of(
        cls,
        views: Views,
        rows: Mapping[str, ShiftedRows],
        forms: Mapping[str, csr_array],
        labels: Mapping[str, Any],
        pairs: Sequence[Pairs],
    ) -> Self:
        """Prepare what all steps share."""
        slopes, constants = zip(*(_targets(rows[n], labels[n]) for n in rows), strict=True)
        links, added = _links(views, {n: view.block.shape[0] for n, view in rows.items()}, pairs)
        parts, curvature = [], 0.0
        for name, view in rows.items():
            gram = view.gram(np.ones(view.block.shape[1]))
            curvature += float(forms[name].multiply(gram).sum())
            n, y = labels[name].shape[0], as_block(labels[name]).dense().matrix
            targets = np.zeros((view.block.shape[0], y.shape[1]))
            targets[:n] = (y - y.mean(axis=0)) / n
            form = csr_array(forms[name] + diags_array(added[name]))
            parts.append(_ViewOfObjects.of(view, form, targets, links[name]))
        return cls(parts, np.concatenate(slopes), curvature, float(sum(constants)))

    @cached_property
    def _ground(self) -> tuple[np.ndarray, np.ndarray]:
        """What is the same in the system of every step: I - Σ Eᵀ F⁺ E, and Σ Eᵀ F⁺ y."""
        matrix, right = np.eye(self.views[0].links.shape[1]), 0.0
        for view in self.views:
            # Eᵀ F⁺ is the image by C twice, or by F⁻¹ once.
            left = view.links if view.root is None else view.image
            matrix -= left.T @ view.image
            right = right + left.T @ view.start
        return matrix, np.asarray(right)

    def minimised(self, T: np.ndarray) -> tuple[np.ndarray, float]:
        """The U that minimises the loss plus ½ tr(UᵀT⁻¹U), T diagonal, and the loss at U."""
        ends = np.cumsum([view.rows.block.shape[1] for view in self.views])[:-1]
        with threads_to_factorise(max(view.rows.block.shape[0] for view in self.views)):
            return self._step(np.split(T, ends))

    def _step(self, of_views: Sequence[np.ndarray]) -> tuple[np.ndarray, float]:
        factors, images, starts = [], [], []
        matrix, right = (part.copy() for part in self._ground)
        for view, T in zip(self.views, of_views, strict=True):
            factors.append(view.factored(T))
            images.append(_solved(factors[-1], view.image))
            starts.append(_solved(factors[-1], view.start))
            matrix += images[-1].T @ images[-1]
            right -= images[-1].T @ starts[-1]
        shared = linalg.solve(matrix, right, assume_a="pos", overwrite_a=True)
        weights, value, linked = [], self.constant, 0.0
        for view, T, *found in zip(self.views, of_views, factors, images, starts, strict=True):
            factor, image, start = found
            alpha = _solved(factor, start + image @ shared, transposed=True)
            alpha = alpha if view.root is None else view.root @ alpha
            weights.append(T[:, None] * view.rows.cross(alpha))
            scores = view.rows.times(weights[-1])
            value += np.sum(scores * (view.form @ scores / 2 - view.targets))
            linked = linked + view.links.T @ scores
        return np.concatenate(weights), float(value - np.sum(np.square(linked)) / 2)


def _solved(factor: np.ndarray, right: np.ndarray, transposed: bool = False) -> np.ndarray:
    """L⁻¹ or L⁻ᵀ of a right-hand side."""
    return linalg.solve_triangular(
        factor, right, lower=True, trans=int(transposed), check_finite=False
    )


def _links(
    views: Views, heights: Mapping[str, int], pairs: Sequence[Pairs]
) -> tuple[dict[str, csr_array], dict[str, np.ndarray]]:
    """E_p of every view, (n_rows, n_links), and what F_p gets on its diagonal for them.

    The differences between views couple the scores s of an object by -½ Σ_{p≠q} w_pq s_pᵀ s_q. With
    λ the lowest eigenvalue of W = (w_pq) over the views that see it, W - λ I = R Rᵀ has fewer
    columns than views: one, if all w_pq are equal or there are two views. Then
    -½ sᵀ W s = -½ ‖Rᵀ s‖² - λ/2 ‖s‖², where E holds R and the second term is added to F.
    """
    names = list(views.names)
    W = np.zeros((len(names),) * 2)
    for pair in pairs:
        p, q = (names.index(name) for name in pair.views)
        W[p, q] = W[q, p] = pair.share
    patterns, codes = np.unique(views.seen, axis=0, return_inverse=True)
    added = {name: np.zeros(n) for name, n in heights.items()}
    entries: dict[str, list[np.ndarray]] = {name: [np.zeros((3, 0))] for name in names}
    n_links = 0
    for code, pattern in enumerate(patterns):
        among, objects = np.flatnonzero(pattern), np.flatnonzero(codes.reshape(-1) == code)
        values, vectors = linalg.eigh(W[np.ix_(among, among)])
        shifted = values - values[0]
        factors = (vectors * np.sqrt(shifted))[:, shifted > _REAL * W.max()]
        places = np.arange(factors.shape[1] * len(objects)).reshape(-1, len(objects)) + n_links
        rows_of = views.rows_of(objects)
        for view, weights in zip(among, factors, strict=True):
            name = names[view]
            rows = rows_of[name]
            added[name][rows] = -values[0]
            for columns, weight in zip(places, weights, strict=True):
                entries[name].append(np.array([rows, columns, np.full(len(rows), weight)]))
        n_links += places.size
    links = {}
    for name, n in heights.items():
        i, j, weights = np.concatenate(entries[name], axis=1)
        found = coo_array((weights, (i.astype(int), j.astype(int))), shape=(n, n_links))
        links[name] = csr_array(found)
    return links, added


def laplacian(X: Any, n_neighbors: int) -> csr_array:
    """I - D^{-1/2} K D^{-1/2} of the rows of X, shape (n, n).

    K_ij = 1 / (1 + exp(‖x_i - x_j‖)) where i is among the nearest of j or j of i; else 0.
    """
    graph = NearestNeighbors(n_neighbors=n_neighbors).fit(X).kneighbors_graph(mode="distance")
    graph = csr_array(graph)
    graph.data = closeness(graph.data, graph.data.min())  # a factor of K cancels in L
    transposed = csr_array(graph.T)  # its columns are in order, which takes no sort
    K = transposed.maximum(csr_array(transposed.T))
    degrees = K.sum(axis=1)
    root = np.divide(1, np.sqrt(degrees), out=np.zeros(len(degrees)), where=degrees > 0)
    K.data *= np.repeat(root, np.diff(K.indptr))
    K.data *= root[K.indices]
    return csr_array(eye_array(len(degrees)) - K)


def closeness(distances: np.ndarray, least: Any) -> np.ndarray:
    """1 / (1 + exp(distance)), divided by exp(-least) to avoid underflow."""
    return np.exp(least - distances) / (1 + np.exp(-distances))
