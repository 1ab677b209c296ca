r"""Block ascent on covariances, by which RGCCA, sparse PLS, sparse CCA and DIABLO find components.

Maximizes Σ_{j≠k} c_jk g(w_jᵀ S_jk w_k), with the design c and the scheme g, over weights with
w_jᵀ M_j w_j = 1, M_j = τ_j I + (1 - τ_j) S_jj, and few features. One block at a time,

    z_j = Σ_k c_jk g′(w_jᵀ S_jk w_k) S_jk w_k,    w_j = argmax z_jᵀ w  under its `Limit`.

g is convex, so that the objective climbs wherever that maximum is exact. Only covariances are
needed: nothing here knows of rows. The best of several starts is kept, since few starts lead to the
best maximum; `Ascent.starts` says which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from mvcca.machine import lapack
from mvcca.problem.block_covariances import BlockCovariances, Vectors
from mvcca.problem.directions import canonical_directions
from mvcca.problem.whitener import Scaling, Whitener

Links = Mapping[tuple[str, str], float]

# g and its derivative.
SCHEMES: dict[str, tuple[Callable[[float], float], Callable[[float], float]]] = {
    "horst": (lambda x: x, lambda _: 1.0),
    "factorial": (lambda x: x * x, lambda x: 2 * x),
    "centroid": (abs, lambda x: -1.0 if x < 0 else 1.0),
}
_RACE_STEPS = 3  # of every start
_RACERS = 3  # that go on
_NEAR_STEPS, _NEAR = 30, 1e-8  # until the best of them is known
_MOST_STEPS = 1000
_MANY = 150  # features, above which there are fewer starts
_COLLINEAR = 1e-10  # share of the variance of a feature that others do not explain
_LEAST_SHARE = 1e-10  # of the covariance of the first component, above which there is another
_ROUNDING = 1e-20  # squared relative change of weights


# ---- one block -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Limit:
    """What the weights of one block may be.

    Attributes
    ----------
    tau : float
        τ: 1 maximizes covariance, 0 correlation.
    count : int or None
        Largest number of features with weights.
    radius : float or None
        Largest sum of absolute weights, with τ = 1.
    shrink : bool
        Whether a count is reached by a soft threshold, the largest |z| that is left out.
    positive : bool
        Whether no weight is negative, with τ = 1.
    """

    tau: float = 1.0
    count: int | None = None
    radius: float | None = None
    shrink: bool = False
    positive: bool = False

    def dense(self, size: int) -> bool:
        """Whether all features of a block may have weights."""
        return self.radius is None and (self.count is None or self.count >= size)

    def features(self, size: int) -> int:
        """About how many features have weights."""
        if self.radius is not None:
            return min(size, max(1, round(self.radius**2)))
        return size if self.count is None else min(size, self.count)


def largest(z: np.ndarray, count: int) -> np.ndarray:
    """Positions of the largest |z|, in order; of equal ones, the first."""
    if count >= len(z):
        return np.arange(len(z))
    sizes = np.abs(z)
    least = np.partition(sizes, len(z) - count)[len(z) - count]
    above = np.flatnonzero(sizes > least)
    return np.sort(np.append(above, np.flatnonzero(sizes == least)[: count - len(above)]))


def softened(z: np.ndarray, least: float) -> np.ndarray:
    """Soft threshold, sign(z) (|z| - least)₊."""
    return np.sign(z) * np.maximum(np.abs(z) - least, 0)


def threshold_of(z: np.ndarray, radius: float) -> float:
    """The threshold λ ≥ 0 at which ‖s‖₁ = radius ‖s‖₂ of the softened s; 0 if z has less.

    With k entries above λ, their sum A and sum of squares B, (A - kλ)² = radius² (B - 2Aλ + kλ²).

    Raises
    ------
    ValueError
        If no threshold does, since so many entries share the maximum.
    """
    sizes = -np.sort(-np.abs(z))
    A, B, k = np.cumsum(sizes), np.cumsum(sizes**2), np.arange(1, len(z) + 1)
    lower = np.append(sizes[1:], 0.0)  # thresholds that leave k entries
    left = np.maximum(B - 2 * A * lower + k * lower**2, 0)
    enough = np.flatnonzero((A - k * lower) ** 2 >= radius**2 * left * (1 - 1e-15))
    enough = enough[left[enough] > 0]
    if not len(enough):
        return 0.0
    if A[-1] ** 2 <= radius**2 * B[-1]:
        return 0.0
    n_ties = int(np.sum(sizes >= sizes[0] * (1 - 1e-12)))
    if radius**2 < n_ties * (1 - 1e-12):
        raise ValueError(
            f"{n_ties} features share the largest covariance, so that the sum of absolute weights "
            f"is at least {np.sqrt(n_ties):.4g}, above {radius:.4g}"
        )
    i = enough[0]
    a, b, m = A[i], B[i], k[i]
    if m <= radius**2:  # as many entries as the radius leaves, all alike
        return float(lower[i])
    return float((a - radius * np.sqrt(max(m * b - a * a, 0) / (m - radius**2))) / m)


def least_angle_support(
    z: np.ndarray, column: Callable[[int], np.ndarray], count: int
) -> np.ndarray:
    """The first features that enter least-angle regression of the matrix M on z, in order.

    `column` returns columns of M, of which only those of entering features are asked for.
    """
    left, is_free = z.copy(), z != 0  # constant columns have none
    chosen, columns = np.empty(count, dtype=int), np.empty((count, len(z)))
    inverse, k = np.zeros((count, count)), 0  # of M of the chosen features
    while is_free.any():
        i = int((np.abs(left) * is_free).argmax())
        is_free[i], new = False, column(i)
        along = np.ones(k + 1)
        along[:k] = -inverse[:k, :k] @ new[chosen[:k]]
        rest = float(along @ new[np.append(chosen[:k], i)])
        if rest <= _COLLINEAR * new[i]:
            continue
        chosen[k], columns[k], k = i, new, k + 1
        inverse[:k, :k] += along[:, None] * (along / rest)
        if k == count:
            break
        slopes = (inverse[:k, :k] @ np.sign(left[chosen[:k]])) @ columns[:k]
        size = abs(left[i])
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.array([(size - left) / (1 - slopes), (size + left) / (1 + slopes)])
        ahead = (steps > 0) & is_free
        left -= steps[ahead].min(initial=size) * slopes
    return np.sort(chosen[:k])


class Blocks:
    """The best weights of each block for given z, with what is known of their constraints."""

    def __init__(self, covariances: BlockCovariances, limits: Mapping[str, Limit]) -> None:
        self.covariances = covariances
        self.limits = limits

    def best(
        self, name: str, z: np.ndarray, old: np.ndarray | None, fixed: bool = False
    ) -> np.ndarray:
        """The largest zᵀw under the limit of a block; no less than of `old`, where one is given.

        Where it is not found exactly, `fixed` keeps the features of `old`.
        """
        limit = self.limits[name]
        if limit.positive:
            z = np.maximum(z, 0)
            if not z.any():
                raise NothingShared(name, "positive ")
        if limit.radius is not None:
            w = softened(z, threshold_of(z, limit.radius))
        elif limit.tau == 1 and limit.shrink and not limit.dense(len(z)):
            assert limit.count is not None
            rest = np.delete(np.abs(z), largest(z, limit.count))
            w = softened(z, rest.max(initial=0))
        elif limit.tau == 1:
            w, chosen = np.zeros(len(z)), largest(z, limit.features(len(z)))
            w[chosen] = z[chosen]
        elif limit.dense(len(z)):
            white = self.whitener(name)
            coordinates = white.project(z[:, None])
            return np.asarray(white.lift(coordinates / np.linalg.norm(coordinates))[:, 0])
        else:
            return self._few(name, z, old, fixed)
        return w / np.linalg.norm(w)

    def whitener(self, name: str) -> Any:
        """W with WᵀMW = I."""
        tau, known = self.limits[name].tau, self.covariances.known
        size = self.covariances.base.sizes[name]
        if tau == 1:
            return Scaling(np.ones(size))
        if ("whitener", name, tau) not in known:
            M = (1 - tau) * self.covariances.matrix(name, name)
            if not M.diagonal().any():  # earlier components took all of a view
                raise NothingShared(name)
            M[np.diag_indices(size)] += tau * (M.diagonal() > 0)
            known["whitener", name, tau] = Whitener.of(M)
        return known["whitener", name, tau]

    def _few(self, name: str, z: np.ndarray, old: np.ndarray | None, fixed: bool) -> np.ndarray:
        """The better one of the support by least angles and the old one; the latter if `fixed`."""
        limit, supports = self.limits[name], []
        assert limit.count is not None

        def column(i: int) -> np.ndarray:
            found = (1 - limit.tau) * self.covariances.column(name, i)
            found[i] += limit.tau
            return found

        if old is not None and 0 < np.count_nonzero(old) <= limit.count:
            supports.append(np.flatnonzero(old))
        if not (fixed and supports):
            supports.append(least_angle_support(z, column, limit.count))
        found = []
        for chosen in supports:
            key = ("inverse", name, limit.tau, chosen.tobytes())
            if key not in self.covariances.known:
                M = np.array([column(int(i))[chosen] for i in chosen])
                self.covariances.known[key] = np.linalg.pinv(M, hermitian=True)
            v = self.covariances.known[key] @ z[chosen]
            size = float(z[chosen] @ v)
            w = np.zeros(len(z))
            w[chosen] = v / np.sqrt(size) if size > 0 else 0.0
            found.append((size, w))
        return max(found, key=lambda own: own[0])[1]


# ---- all blocks ----------------------------------------------------------------------------------


class Solution(NamedTuple):
    """Weights at which an ascent ended.

    Attributes
    ----------
    weights : dict of str to ndarray, shape (n_features,)
        w_j of each block.
    values : tuple of float
        The objective after every step.
    covariances : dict of (str, str) to float
        w_jᵀ S_jk w_k of linked blocks.
    """

    weights: dict[str, np.ndarray]
    values: tuple[float, ...]
    covariances: dict[tuple[str, str], float]

    @property
    def value(self) -> float:
        """The objective."""
        return self.values[-1]

    def is_near(self, other: Solution) -> bool:
        """Whether the features with weights are the same, and the objective nearly so."""
        return abs(self.value - other.value) <= 1e-3 * abs(other.value) and all(
            np.array_equal(w != 0, other.weights[name] != 0) for name, w in self.weights.items()
        )

    def size(self) -> float:
        """Root of the sum of squared covariances."""
        return float(np.sqrt(sum(x * x for x in self.covariances.values())))


class NothingShared(ValueError):
    """A block has no covariance, or no positive one, with those that it is linked to."""

    def __init__(self, name: str, kind: str = "") -> None:
        self.name = name
        super().__init__(
            f"View {name!r} has no {kind}covariance with the views that it is linked to: nothing "
            "can be selected from it. Check that rows correspond, or drop the view."
        )


@dataclass(frozen=True, eq=False)
class BlockMethod:
    """What is maximized over which blocks, and how one component is removed before the next.

    Attributes
    ----------
    links : mapping of (str, str) to float
        c_jk, in both orders, of linked blocks.
    scheme : {"horst", "factorial", "centroid"}
        g(x) = x, x² or \\|x\\|.
    deflation : {"scores", "weights", "pmd"}
        As of `BlockCovariances.without`.
    start : {"columns", "svd", "own"}
        As of `Ascent.starts`.
    n_starts : int
        Number of columns of each pair of linked blocks; fewer for more than 150 features.
    response : str, optional
        Block that is deflated by the scores of the others.
    superblock : str, optional
        Block of the features of all others, which is then the only one to be deflated, so that its
        scores are uncorrelated and the others as close to them as all of their features allow.
    tol : float
        Squared relative change of the weights of all blocks in one turn, below which it is the
        last. Below 1e-20, a turn that changes no less than the one before is the last, too.
    """

    links: Links
    scheme: str = "factorial"
    deflation: str = "scores"
    start: str = "columns"
    n_starts: int = 20
    response: str | None = None
    superblock: str | None = None
    tol: float = 1e-26

    def solve(
        self,
        covariances: BlockCovariances,
        limits: Mapping[str, Limit],
        number: int = 0,
        known: Iterable[Vectors] = (),
    ) -> list[Solution]:
        """The best end of all starts and up to two others, the best one first.

        Parameters
        ----------
        covariances : BlockCovariances
            Without the components before.
        limits : mapping of str to Limit
            Constraint of each block, in the order in which they are updated.
        number : int
            Number of the component, from 0.
        known : iterable of mapping
            Weights to start from, in place of other starts.

        Raises
        ------
        NothingShared
            If no start leads anywhere.
        """
        ascent, known = Ascent(covariances, limits, self), list(known)
        sizes, tau = covariances.base.sizes, {j: own.tau for j, own in limits.items()}
        if not known and any(
            tau[j] < 1 and not own.dense(sizes[j]) for j, own in limits.items()
        ):  # which columns have the largest covariances says little of correlations
            of_covariances = {j: replace(own, tau=1.0) for j, own in limits.items()}
            known = [own.weights for own in self.solve(covariances, of_covariances, number)]
        found = ascent.best_of(known or ascent.starts(number))
        if any(own.positive for own in limits.values()):
            return found
        return [self._signed(covariances, own) for own in found]

    def components(
        self,
        covariances: BlockCovariances,
        limits_of: Callable[[int], Mapping[str, Limit]],
        most: int,
        known: Sequence[Vectors] = (),
    ) -> Iterator[tuple[Solution, BlockCovariances]]:
        """One component after the other, with what those before left of the covariances.

        Ends when views share nothing any more. `limits_of` tells the constraints by the number of a
        component, from 0; `known` are weights to start each from.
        """
        first = None
        for number in range(most):
            try:
                found = self.solve(covariances, limits_of(number), number, known)[0]
            except NothingShared:
                if first is None:
                    raise
                return
            if first is not None and found.size() <= _LEAST_SHARE * first.size():
                return
            first = first or found
            yield found, covariances
            covariances = self.without(covariances, found)

    def without(self, covariances: BlockCovariances, solution: Solution) -> BlockCovariances:
        """Covariances of what is left when a component is removed."""
        weights = solution.weights
        if self.superblock is not None:
            weights = {self.superblock: weights[self.superblock]}
        return covariances.without(weights, self.deflation, self.response)

    def _signed(self, covariances: BlockCovariances, solution: Solution) -> Solution:
        """Covariances of all blocks with the first one positive, and the largest weight of all.

        Signs of single blocks count under g(x) = x, so that all change together.
        """
        (_, own), *others = solution.weights.items()
        signs = dict.fromkeys(solution.weights, 1.0)
        first, *_ = signs
        for name, w in others if self.scheme != "horst" else ():
            signs[name] = -1.0 if own @ covariances.image(first, name, w) < 0 else 1.0
        largest_of = {n: signs[n] * w[np.argmax(np.abs(w))] for n, w in solution.weights.items()}
        if max(largest_of.values(), key=abs) < 0:
            signs = {name: -sign for name, sign in signs.items()}
        return Solution(
            {name: signs[name] * w for name, w in solution.weights.items()},
            solution.values,
            {(j, k): signs[j] * signs[k] * x for (j, k), x in solution.covariances.items()},
        )


@dataclass(frozen=True, eq=False)
class Ascent:
    """The problem of one component.

    Attributes
    ----------
    covariances : BlockCovariances
        S_jk of all blocks.
    limits : mapping of str to Limit
        Constraint of each block, in the order in which they are updated.
    method : BlockMethod
        The objective, and where to start.
    """

    covariances: BlockCovariances
    limits: Mapping[str, Limit]
    method: BlockMethod

    def best_of(self, starts: Iterable[Vectors]) -> list[Solution]:
        """Run a few steps from every start, and the best of them to the end; the best one first."""
        runs, failure = [], None
        for weights in starts:
            try:
                runs.append(self.run(Solution(dict(weights), (), {}), _RACE_STEPS, self.method.tol))
            except NothingShared as error:
                failure = error
        if not runs:
            raise failure or NothingShared(next(iter(self.limits)))
        runs.sort(key=lambda own: -own.value)
        apart: list[Solution] = []
        for own in runs:
            if len(apart) < _RACERS and not any(own.is_near(other) for other in apart):
                apart.append(own)
        tol, is_rough = self.method.tol, self.method.tol > _NEAR
        steps = _MOST_STEPS if is_rough else _NEAR_STEPS
        ends = [self.run(own, steps, max(tol, _NEAR)) for own in apart]
        ends.sort(key=lambda own: -own.value)
        return ends if is_rough else [self.run(ends[0], _MOST_STEPS, tol, fixed=True), *ends[1:]]

    def run(self, start: Solution, most_steps: int, tol: float, *, fixed: bool = False) -> Solution:
        """Update every block in turn until weights do not change any more.

        Parameters
        ----------
        start : Solution
            Weights to start from; without values, they need not obey their limits, and blocks
            without weights follow from those with some.
        most_steps : int
            Number of turns.
        tol : float
            As of `BlockMethod`.
        fixed : bool, default=False
            Whether features that least angles chose stay the same.
        """
        links, (g, slope) = self.method.links, SCHEMES[self.method.scheme]
        blocks, w = Blocks(self.covariances, self.limits), dict(start.weights)
        image, linked = self.covariances.image, self._linked()
        images = {(j, k): image(j, k, w[k]) for j, k in links if k in w}
        for j in self._in_reach(w):
            z = self._sum(j, {k: 1.0 for k in linked[j] if k in w}, images)
            w[j] = blocks.best(j, z, None)
            images |= {(k, j): image(k, j, w[j]) for k in linked[j]}
        shared = {(j, k): float(w[j] @ images[j, k]) for j, k in links}
        trace, change = list(start.values), np.inf
        for _ in range(most_steps):
            before, change = change, 0.0
            for j in self.limits:
                z = self._sum(j, {k: slope(shared[j, k]) for k in linked[j]}, images)
                new = blocks.best(j, z, w[j] if trace else None, fixed)
                change = max(change, float(np.sum((new - w[j]) ** 2) / (new @ new)))
                w[j] = new
                for k in linked[j]:
                    images[k, j] = image(k, j, w[j])
                    shared[j, k] = shared[k, j] = float(w[j] @ images[j, k])
            trace.append(sum(c * g(shared[pair]) for pair, c in links.items()))
            if change < tol or before <= change < _ROUNDING:
                break
        return Solution({j: w[j] for j in self.limits}, tuple(trace), shared)

    def _sum(self, j: str, factors: Mapping[str, float], images: Mapping[Any, Any]) -> np.ndarray:
        """z_j, of which something must be left."""
        z = sum(self.method.links[j, k] * factor * images[j, k] for k, factor in factors.items())
        if not np.any(z):
            raise NothingShared(j)
        return np.asarray(z)

    def _linked(self) -> dict[str, list[str]]:
        return {j: [k for k in self.limits if (j, k) in self.method.links] for j in self.limits}

    def _in_reach(self, weights: Vectors) -> Iterator[str]:
        """Blocks without weights, each linked to one before or to one with weights."""
        known, linked = set(weights), self._linked()
        while missing := [j for j in self.limits if j not in known]:
            found = [j for j in missing if known.intersection(linked[j])]
            if not found:
                raise ValueError(f"The design links no other view to {missing}.")
            yield found[0]
            known.add(found[0])

    # ---- where to start --------------------------------------------------------------------------

    def starts(self, number: int = 0) -> Iterator[dict[str, np.ndarray]]:
        """Weights to start from.

        "columns" are, for each two linked blocks, the features of the second whose covariances with
        the first are the largest: the sum of as many squares as features may be selected. If all
        features may, it is the solution of the problem of `mvcca.linear.MVCCA` besides. "svd" are
        singular vectors of the covariance between blocks, and "own" first principal components.
        """
        start, sizes = self.method.start, self.covariances.base.sizes
        if start == "own":
            within = {j: self.covariances.matrix(j, j) for j in self.limits}
            yield {j: lapack.top_eigenpairs(S, 1)[1][:, 0] for j, S in within.items()}
            return
        dense = all(own.dense(sizes[j]) and not own.positive for j, own in self.limits.items())
        if start == "svd" or dense:
            yield from self._directions(number, whiten=start != "svd")
        if start == "svd" or (dense and len(self.limits) == 2):
            return
        for j, k in combinations(self.limits, 2):
            if (j, k) not in self.method.links:
                continue
            count = self.limits[j].features(sizes[j])
            # The more features, the fewer ends there are.
            n_starts = max(
                min(3, self.method.n_starts), self.method.n_starts * min(1, _MANY / count)
            )
            both_signs = self.limits[j].positive and not self.limits[k].positive
            for i in self.covariances.largest_columns(j, k, count, round(n_starts)):
                own = np.zeros(sizes[k])
                own[i] = 1.0
                yield {k: own}
                if both_signs:
                    yield {k: -own}

    def _directions(self, number: int, whiten: bool) -> Iterator[dict[str, np.ndarray]]:
        """The solution of the problem with g(x) = x and one constraint on all blocks together."""
        blocks, covariances = Blocks(self.covariances, self.limits), self.covariances
        if self.method.deflation == "pmd":  # later starts are singular vectors of the whole
            covariances = BlockCovariances(covariances.base)
        else:
            number = 0
        units = {
            j: blocks.whitener(j) if whiten else Scaling(np.ones(self.covariances.base.sizes[j]))
            for j in self.limits
        }
        between = {
            (j, k): self.method.links.get((j, k), 0.0) * covariances.matrix(j, k)
            for j, k in combinations(self.limits, 2)
        }
        found = canonical_directions(between, units, number + 1, is_joint=False)
        if found.values.size > number:
            yield {j: W[:, number] for j, W in found.weights.items()}
