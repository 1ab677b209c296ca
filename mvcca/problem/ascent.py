r"""Block ascent on covariances, by which RGCCA, sparse PLS, sparse CCA and DIABLO find components.

Maximizes Σ_{j≠k} c_jk g(w_jᵀ S_jk w_k), with the design c and the scheme g, over weights with
w_jᵀ M_j w_j = 1, M_j = τ_j I + (1 - τ_j) S_jj, and few features. One block at a time,

    z_j = Σ_k c_jk g′(w_jᵀ S_jk w_k) S_jk w_k,    w_j = argmax z_jᵀ w  under its `Limit`.

g is convex, so that the objective climbs wherever that maximum is exact. Only covariances are
needed: nothing here knows of rows. The best of several starts is kept, since few starts lead to the
best maximum; `Ascent.starts` says which. All starts climb together, as rows of one matrix for each
block, and so do those of problems that differ in numbers of features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from mvcca.machine import lapack
from mvcca.problem.block_covariances import LADDER, BlockCovariances, Vectors
from mvcca.problem.directions import canonical_directions
from mvcca.problem.whitener import RowSpace, Scaling, Whitener

Links = Mapping[tuple[str, str], float]
Limits = tuple["Limit", ...]  # of all blocks

# g and its derivative.
SCHEMES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "horst": (lambda x: x, np.ones_like),
    "factorial": (lambda x: x * x, lambda x: 2 * x),
    "centroid": (np.abs, lambda x: np.where(x < 0, -1.0, 1.0)),
}
_RACE_STEPS = 3  # of every start
_RACERS = 3  # that go on
_NEAR_STEPS, _NEAR = 30, 1e-8  # until the best of them is known
_MOST_STEPS = 1000
_MANY = 150  # features, above which there are fewer starts
_NEAR_COUNTS = 2.0  # times as many features, up to which the ends of one number start another
_MOST = 1000  # features that are no longer few; all are tried besides
_MOST_BY_ANGLES = 50  # of τ < 1, whose features enter one at a time
_SMALL = 100_000  # covariances of two blocks, up to which all numbers have separate starts
_LEAST_SHARE = 1e-10  # of the covariance of the first component, above which there is another
_ROUNDING = 1e-20  # squared relative change of weights


# ---- one block -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Limit:
    """What the weights of one block may be.

    Attributes
    ----------
    name : str
        The block.
    size : int
        Its number of features.
    count : int
        Largest number of features with weights; with a radius, about how many have some.
    tau : float
        τ: 1 maximizes covariance, 0 correlation.
    radius : float or None
        Largest sum of absolute weights, with τ = 1.
    shrink : bool
        Whether a count is reached by a soft threshold, the largest |z| that is left out.
    positive : bool
        Whether no weight is negative, with τ = 1.
    """

    name: str
    size: int
    count: int
    tau: float = 1.0
    radius: float | None = None
    shrink: bool = False
    positive: bool = False

    @property
    def is_dense(self) -> bool:
        """Whether all features may have weights."""
        return self.radius is None and self.count == self.size


def counts_to_try(width: int, tau: float) -> list[int]:
    """2, 3, 5, 7, 10, 14, 20, 30, 50, 80, 150, ... up to 1,000, and all.

    Least angles, for τ < 1, take 50 at most.
    """
    counts = [*(n for n in LADDER[1:] if n < min(width, _MOST)), width]
    return [n for n in counts if tau == 1 or n <= _MOST_BY_ANGLES]


def largest(Z: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Whether each |z| is among the largest of its row, so many; of equal ones, the first."""
    sizes, places = np.abs(Z), Z.shape[1] - np.minimum(counts, Z.shape[1])
    ordered = np.partition(sizes, np.unique(places), axis=1)
    least = np.take_along_axis(ordered, places[:, None], axis=1)
    above, ties = sizes > least, sizes == least
    left = counts - above.sum(axis=1)
    return np.asarray(above | (ties & (ties.cumsum(axis=1) <= left[:, None])))


def softened(z: np.ndarray, least: Any) -> np.ndarray:
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
    enough = (A - k * lower) ** 2 >= radius**2 * left * (1 - 1e-15)
    if A[-1] ** 2 <= radius**2 * B[-1]:
        return 0.0
    n_ties = int(np.sum(sizes >= sizes[0] * (1 - 1e-12)))
    if radius**2 < n_ties * (1 - 1e-12):
        raise ValueError(
            f"{n_ties} features share the largest covariance, so that the sum of absolute weights "
            f"is at least {np.sqrt(n_ties):.4g}, above {radius:.4g}"
        )
    i = np.flatnonzero(enough & (left > 0))[0]
    a, b, m = A[i], B[i], k[i]
    if m <= radius**2:  # as many entries as the radius leaves, all alike
        return float(lower[i])
    return float((a - radius * np.sqrt(max(m * b - a * a, 0) / (m - radius**2))) / m)


def _normalized(W: np.ndarray) -> np.ndarray:
    """Rows of length 1, but for those that are 0."""
    norms = np.linalg.norm(W, axis=1, keepdims=True)
    return W / np.where(norms > 0, norms, 1)


# ---- all blocks ----------------------------------------------------------------------------------


class Solution(NamedTuple):
    """Weights at which an ascent ended.

    Attributes
    ----------
    weights : dict of str to ndarray, shape (n_features,)
        w_j of each block, of what the components before leave.
    limits : tuple of Limit
        Constraint of each block.
    value : float
        The objective.
    n_steps : int
        Number of turns in which all blocks were updated.
    covariances : dict of (str, str) to float
        w_jᵀ S_jk w_k of linked blocks.
    rotated : dict of str to ndarray, shape (n_features,)
        Weights of the rows that give the scores.
    variances : dict of str to float
        w_jᵀ S_jj w_j of each block; of `Ascent.components` only.
    """

    weights: Vectors
    limits: Limits
    value: float = 0.0
    n_steps: int = 0
    covariances: Mapping[tuple[str, str], float] = {}
    rotated: Mapping[str, np.ndarray] = {}
    variances: Mapping[str, float] = {}

    def correlation(self, j: str, k: str) -> float:
        """Correlation of the scores of two linked blocks; 0 if one does not vary."""
        size = np.sqrt(max(self.variances[j], 0) * max(self.variances[k], 0))
        return self.covariances[j, k] / size if size else 0.0

    def is_near(self, other: Solution) -> bool:
        """Whether the features with weights are the same, and the objective nearly so."""
        return abs(self.value - other.value) <= 1e-3 * abs(other.value) and all(
            np.array_equal(w != 0, other.weights[name] != 0) for name, w in self.weights.items()
        )


class NothingShared(ValueError):
    """A block has no covariance, or no positive one, with those that it is linked to."""

    def __init__(self, name: str, kind: str = "") -> None:
        super().__init__(
            f"View {name!r} has no {kind}covariance with the views that it is linked to: nothing "
            "can be selected from it. Check that rows correspond, or drop the view."
        )


def _apart(runs: Sequence[Solution]) -> list[Solution]:
    """Up to three runs of each problem that are not near each other, the best ones."""
    apart: list[Solution] = []
    for own in sorted(runs, key=lambda own: -own.value):
        same = [other for other in apart if other.limits == own.limits]
        if len(same) < _RACERS and not any(own.is_near(other) for other in same):
            apart.append(own)
    return apart


def _nearest(limits: Limits, ends: Mapping[Limits, Sequence[Solution]]) -> list[Vectors]:
    """Where the nearest numbers of features that are solved ended, if they are near enough."""
    counts = np.log([own.count for own in limits])
    apart = {own: np.abs(counts - np.log([one.count for one in own])).max() for own in ends}
    nearest = min(apart, key=apart.__getitem__, default=None)
    if nearest is None or apart[nearest] > np.log(_NEAR_COUNTS) + 1e-12:
        return []
    return [own.weights for own in ends[nearest]]


@dataclass(frozen=True, eq=False)
class Ascent:
    """What is maximized over which blocks, and how one component is removed before the next.

    Attributes
    ----------
    covariances : BlockCovariances
        S_jk of all blocks, without the components before; blocks are updated in their order.
    links : mapping of (str, str) to float
        c_jk, in both orders, of linked blocks; each is linked to every other, perhaps by others.
    scheme : {"horst", "factorial", "centroid"}
        g(x) = x, x² or \\|x\\|.
    deflation : {"scores", "weights", "pmd"}
        As of `BlockCovariances.without`.
    start : {"columns", "svd", "own"} or str
        As of `starts`.
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
    least : float
        Covariance up to which a block shares only rounding with others, once a component is gone.
    """

    covariances: BlockCovariances
    links: Links
    scheme: str = "factorial"
    deflation: str = "scores"
    start: str = "columns"
    n_starts: int = 20
    response: str | None = None
    superblock: str | None = None
    tol: float = 1e-26
    least: float = 0.0

    # ---- components ------------------------------------------------------------------------------

    def components(self, limits: Sequence[Limits]) -> Iterator[Solution]:
        """One component after the other, under constraints of each.

        Ends when views share nothing any more.
        """
        ascent = self
        for number, own in enumerate(limits):
            try:
                found = ascent.solve([own], number)[0][0]
            except NothingShared:
                if not number:
                    raise
                return
            image = ascent.covariances.image
            variances = {name: float(w @ image(name, name, w)) for name, w in found.weights.items()}
            yield found._replace(variances=variances)
            ascent = ascent.without(found)

    def without(self, solution: Solution) -> Ascent:
        """The same of what is left when a component is removed."""
        # What rows have along the weights of components before explains nothing.
        weights = solution.rotated if self.deflation == "weights" else solution.weights
        if self.superblock is not None:
            weights = {self.superblock: weights[self.superblock]}
        left = self.covariances.without(weights, self.deflation, self.response)
        least = self.least or _LEAST_SHARE * float(np.linalg.norm([*solution.covariances.values()]))
        return replace(self, covariances=left, least=least)

    def solve(self, problems: Sequence[Limits], number: int = 0) -> list[list[Solution]]:
        """The best end of all starts and up to two others, the best one first, of each problem.

        Solutions for τ = 1 are kept with the covariances. The ends of one number of features of
        large blocks start the next one.

        Parameters
        ----------
        problems : sequence of tuple of Limit
            Constraint of each block. Problems differ in numbers of features only.
        number : int
            Number of the component, from 0.

        Raises
        ------
        NothingShared
            If no start of any problem leads anywhere.
        """
        is_covariance = all(own.tau == 1 for own in problems[0])
        ends = self.covariances.learned.setdefault("ends", {}) if is_covariance else {}
        new = [own for own in dict.fromkeys(problems) if own not in ends]
        new.sort(key=lambda limits: sum(own.count for own in limits))  # the fewest first
        is_large = is_covariance and self.start != self.response
        is_large = is_large and bool(np.prod(sorted(own.size for own in problems[0])[-2:]) > _SMALL)
        for batch in [[own] for own in new] if is_large else [new] if new else []:
            starts = [
                Solution(weights, limits)
                for limits in batch
                for weights in (_nearest(limits, ends) if is_large else [])
                or self.starts(limits, number)
            ]
            found = self.best_of(starts)
            ends |= {limits: [own for own in found if own.limits == limits] for limits in batch}
        return [ends[own] for own in problems]

    # ---- one block -------------------------------------------------------------------------------

    def best(
        self, limit: Limit, Z: np.ndarray, counts: np.ndarray, old: np.ndarray | None, fixed: bool
    ) -> np.ndarray:
        """The largest zᵀw under the limit of a block, with counts of each row z; 0 for z = 0.

        Least angles need not find it: then the features of `old` count, too, and alone if `fixed`.
        """
        if limit.positive:
            Z = np.maximum(Z, 0)
        if limit.radius is not None:
            return _normalized(np.array([softened(z, threshold_of(z, limit.radius)) for z in Z]))
        if limit.tau == 1:
            kept = largest(Z, counts)
            if limit.shrink:
                least = np.abs(Z).max(axis=1, keepdims=True, where=~kept, initial=0)
                Z = softened(Z, least)
            return _normalized(np.where(kept, Z, 0))
        W, whole = np.zeros_like(Z), counts == limit.size
        if whole.any():
            white = self.whitener(limit)
            W[whole] = white.lift(_normalized(white.project(Z[whole].T).T).T).T
        if whole.all():
            return W
        from mvcca.problem.least_angles import fill_best_of_few

        few, tau, row = ~whole, limit.tau, 0
        Z, counts, found = Z[few], counts[few], W[few]
        before = np.zeros_like(Z) if old is None else old[few]
        wanted = np.flatnonzero(np.any(largest(Z, 2 * counts), axis=0))
        while row >= 0:
            held, place = self.covariances.held_columns(limit.name, limit.name, wanted)
            row, missing = fill_best_of_few(Z, counts, before, fixed, tau, held, place, row, found)
            wanted = np.array([missing])
        W[few] = found
        return W

    def whitener(self, limit: Limit) -> Any:
        """W with WᵀMW = I."""
        known, key = self.covariances.known, ("whitener", limit.name, limit.tau)
        if key not in known:
            known[key] = self._whitened(limit.name, limit.tau)
        return known[key]

    def _whitened(self, name: str, tau: float) -> Any:
        if self.covariances.base.n_rows:  # these span what z can be
            own = self.covariances.row_space(name)
            if not own.rank:
                raise NothingShared(name)
            return RowSpace(own.axes / np.sqrt(tau + (1 - tau) * own.values**2))
        size = self.covariances.base.sizes[name]
        if tau == 1:
            return Scaling(np.ones(size))
        M = (1 - tau) * self.covariances.matrix(name, name)
        if not M.diagonal().any():  # earlier components took all of a view
            raise NothingShared(name)
        M[np.diag_indices(size)] += tau * (M.diagonal() > 0)
        return Whitener.of(M)

    # ---- all blocks ------------------------------------------------------------------------------

    def best_of(self, starts: Sequence[Solution]) -> list[Solution]:
        """Run a few steps from every start, and the best of each problem to the end.

        Returns
        -------
        ends : list of Solution
            Up to three of each problem, the best one first.

        Raises
        ------
        NothingShared
            If no start leads anywhere.
        """
        together: dict[tuple[str, ...], list[Solution]] = {}
        for own in starts:
            together.setdefault(tuple(own.weights), []).append(own)
        runs, failure = [], None
        for batch in together.values():
            try:
                runs += self.run(batch, _RACE_STEPS, self.tol)
            except NothingShared as error:
                failure = error
        if not runs:
            raise failure or NothingShared(next(iter(self.covariances.base.sizes)))
        near = sorted(self.run(_apart(runs), _NEAR_STEPS, _NEAR), key=lambda own: -own.value)
        best = {own.limits: own for own in reversed(near)}
        ends = self.run([*best.values()], _MOST_STEPS, self.tol, fixed=True)
        ends += [own for own in near if best[own.limits] is not own]
        return [self._finished(own) for own in ends]

    def _finished(self, solution: Solution) -> Solution:
        """Covariances of all blocks with the first one positive, and the largest weight of all.

        Signs of single blocks count under g(x) = x, so that all change together; none does if
        weights must be positive.
        """
        (first, own), *others = solution.weights.items()
        signs, image = dict.fromkeys(solution.weights, 1.0), self.covariances.image
        if not any(limit.positive for limit in solution.limits):
            for name, w in others if self.scheme != "horst" else ():
                signs[name] = -1.0 if own @ image(first, name, w) < 0 else 1.0
            largest_of = [signs[n] * w[np.argmax(np.abs(w))] for n, w in solution.weights.items()]
            if max(largest_of, key=abs) < 0:
                signs = {name: -sign for name, sign in signs.items()}
        weights = {name: signs[name] * w for name, w in solution.weights.items()}
        shared = solution.covariances.items()
        return solution._replace(
            weights=weights,
            covariances={(j, k): signs[j] * signs[k] * x for (j, k), x in shared},
            rotated={name: self.covariances.rotated(name, w) for name, w in weights.items()},
        )

    def run(
        self, starts: Sequence[Solution], most_steps: int, tol: float, *, fixed: bool = False
    ) -> list[Solution]:
        """Update every block in turn until weights do not change any more.

        Parameters
        ----------
        starts : sequence of Solution
            Weights of the same blocks; before the first turn, they need not obey their limits, and
            blocks without weights follow from those with some.
        most_steps : int
            Number of turns.
        tol : float
            As of the attribute.
        fixed : bool, default=False
            Whether features that least angles chose stay the same.

        Returns
        -------
        ends : list of Solution
            In the order of the starts, without those that lead nowhere.

        Raises
        ------
        NothingShared
            If no start leads anywhere.
        """
        links, (g, slope), image = self.links, SCHEMES[self.scheme], self.covariances.image
        of_blocks = {own.name: own for own in starts[0].limits}
        limits = {name: of_blocks[name] for name in self.covariances.base.sizes}
        linked = {j: [k for k in limits if (j, k) in links] for j in limits}
        many = zip(*(own.limits for own in starts), strict=True)
        counts = {own[0].name: np.array([one.count for one in own]) for own in many}
        w = {j: np.array([own.weights[j] for own in starts]) for j in starts[0].weights}
        while missing := [j for j in limits if j not in w]:
            j = next(j for j in missing if not w.keys().isdisjoint(linked[j]))
            z = sum(links[j, k] * image(j, k, w[k]) for k in linked[j] if k in w)
            w[j] = self.best(limits[j], np.asarray(z), counts[j], None, False)
        ends: dict[int, Solution] = {}
        shared: dict[tuple[str, str], np.ndarray] = {}
        rows, change = np.arange(len(starts)), np.full(len(starts), np.inf)
        obeys = starts[0].n_steps > 0
        for step in range(most_steps):
            before, change = change, np.zeros(len(rows))
            for j in limits:
                images = {k: image(j, k, w[k]) for k in linked[j]}
                z = sum(
                    links[j, k] * slope(np.sum(w[j] * own, axis=1))[:, None] * own
                    for k, own in images.items()
                )
                old = w[j] if obeys or step else None
                new = self.best(limits[j], np.asarray(z), counts[j], old, fixed)
                norms = np.sum(new**2, axis=1)
                moved = np.sum((new - w[j]) ** 2, axis=1) / np.where(norms > 0, norms, 1)
                change, w[j] = np.maximum(change, moved), new
                shared |= {(j, k): np.sum(new * own, axis=1) for k, own in images.items()}
                shared |= {(k, j): shared[j, k] for k in images}
            values = np.asarray(sum(c * g(shared[pair]) for pair, c in links.items()))
            still = (change < tol) | ((before <= change) & (change < _ROUNDING))
            sizes = {j: np.abs([shared[j, k] for k in linked[j]]).max(axis=0) for j in limits}
            lost = {j: own <= self.least for j, own in sizes.items()}
            is_lost = np.any([*lost.values()], axis=0)
            done = still | is_lost | (step == most_steps - 1)
            for i in np.flatnonzero(done & ~is_lost).tolist():
                start, own = starts[rows[i]], {j: w[j][i] for j in limits}
                reached = {pair: float(x[i]) for pair, x in shared.items()}
                n_steps = start.n_steps + step + 1
                ends[rows[i]] = Solution(own, start.limits, float(values[i]), n_steps, reached)
            if done.all():
                break
            if done.any():
                left = ~done
                rows, change = rows[left], change[left]
                w, counts = ({j: own[left] for j, own in each.items()} for each in (w, counts))
        if not ends:
            name = next(j for j, rows_lost in lost.items() if rows_lost.any())
            raise NothingShared(name, "positive " if limits[name].positive else "")
        return [ends[row] for row in sorted(ends)]

    # ---- where to start --------------------------------------------------------------------------

    def starts(self, problem: Limits, number: int = 0) -> Iterator[Vectors]:
        """Weights to start from.

        "columns" are, for each two linked blocks, the features of the second whose covariances with
        the first are the largest: the sum of as many squares as features may be selected. If all
        features may, it is the solution of the problem of `mvcca.linear.MVCCA` besides. "svd" are
        singular vectors of the covariance between blocks, and "own" first principal components. The
        name of the response are each of its features. Where few features are to be selected with
        τ < 1, the starts are the ends with τ = 1: the largest covariances say little of
        correlations.
        """
        start, limits = self.start, {own.name: own for own in problem}
        dense = all(own.is_dense and not own.positive for own in problem)
        if start == self.response:
            yield from ({start: e} for e in np.eye(limits[start].size))
            return
        relaxed = tuple(replace(own, tau=1.0) for own in problem)
        if any(own.tau < 1 and not own.is_dense for own in problem):
            yield from (own.weights for own in self.solve([relaxed], number)[0])
            return
        of_whole: list[Vectors] = []
        if start == "own":
            within = {j: self.covariances.matrix(j, j) for j in limits}
            of_whole = [{j: lapack.top_eigenpairs(S, 1)[1][:, 0] for j, S in within.items()}]
        elif start == "svd" or dense:
            of_whole = self._directions(relaxed if start == "svd" else problem, number)
        # Which of a vector and its opposite is found is chance, and signs matter to some blocks.
        signs = (1.0, -1.0) if any(own.positive for own in problem) else (1.0,)
        for weights in of_whole:
            yield from ({j: sign * w for j, w in weights.items()} for sign in signs)
        if start != "columns" or (dense and len(limits) == 2):
            return
        for k, j in combinations(self.covariances.base.sizes, 2):
            if (j, k) not in self.links:
                continue
            count, most = limits[j].count, self.n_starts
            # The more features, the fewer ends there are.
            n_starts = max(min(3, most), most * min(1, _MANY / count))
            both_signs = limits[j].positive and not limits[k].positive
            for i in self.covariances.largest_columns(j, k, count, round(n_starts)):
                for sign in signs if both_signs else (1.0,):
                    yield {k: sign * np.eye(1, limits[k].size, i)[0]}

    def _directions(self, limits: Limits, number: int) -> list[Vectors]:
        """The solution of the problem with g(x) = x and one constraint on all blocks together."""
        covariances, at = self.covariances, 0
        if self.deflation == "pmd":  # later starts are singular vectors of the whole
            covariances, at = BlockCovariances(covariances.base), number
        units, W = {own.name: self.whitener(own) for own in limits}, {}
        if covariances.base.n_rows:  # covariances of wide blocks are small in their row spaces
            W = {j: own.weights for j, own in units.items()}
            units = {j: Scaling(np.ones(own.shape[1])) for j, own in W.items()}
        between = {}
        for j, k in combinations(units, 2):
            image = covariances.image
            S = W[j].T @ image(j, k, W[k].T).T if W else covariances.matrix(j, k)
            between[j, k] = self.links.get((j, k), 0.0) * S
        found = canonical_directions(between, units, at + 1, is_joint=False)
        if found.values.size <= at:
            return []
        top = {j: V[:, at] for j, V in found.weights.items()}
        return [{j: W[j] @ v if W else v for j, v in top.items()}]
