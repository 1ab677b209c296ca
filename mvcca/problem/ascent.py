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

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from mvcca.machine import lapack
from mvcca.problem.block_covariances import BlockCovariances, Vectors
from mvcca.problem.directions import canonical_directions
from mvcca.problem.whitener import RowSpace, Scaling, Whitener

Links = Mapping[tuple[str, str], float]
Limits = Mapping[str, "Limit"]  # by block

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
_SMALL = 100_000  # covariances of two blocks, up to which all numbers have separate starts
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
    values : tuple of float
        The objective after every step.
    covariances : dict of (str, str) to float
        w_jᵀ S_jk w_k of linked blocks.
    problem : int
        Number of the problem, of those that are solved together.
    rotated : dict of str to ndarray, shape (n_features,)
        Weights of the rows that give the scores; of `BlockMethod.components` only.
    variances : dict of str to float
        w_jᵀ S_jj w_j of each block; of `BlockMethod.components` only.
    """

    weights: dict[str, np.ndarray]
    values: tuple[float, ...] = ()
    covariances: Mapping[tuple[str, str], float] = {}
    problem: int = 0
    rotated: Mapping[str, np.ndarray] = {}
    variances: Mapping[str, float] = {}

    @property
    def value(self) -> float:
        """The objective."""
        return self.values[-1]

    def correlation(self, j: str, k: str) -> float:
        """Correlation of the scores of two linked blocks; 0 if one does not vary."""
        size = np.sqrt(max(self.variances[j], 0) * max(self.variances[k], 0))
        return self.covariances[j, k] / size if size else 0.0

    def is_near(self, other: Solution) -> bool:
        """Whether the features with weights are the same, and the objective nearly so."""
        return abs(self.value - other.value) <= 1e-3 * abs(other.value) and all(
            np.array_equal(w != 0, other.weights[name] != 0) for name, w in self.weights.items()
        )

    def least(self) -> float:
        """The largest covariance of the block for which that is smallest."""
        linked = self.covariances.items()
        return min(max(abs(x) for pair, x in linked if name in pair) for name in self.weights)


class NothingShared(ValueError):
    """A block has no covariance, or no positive one, with those that it is linked to."""

    def __init__(self, name: str, kind: str = "") -> None:
        self.name = name
        super().__init__(
            f"View {name!r} has no {kind}covariance with the views that it is linked to: nothing "
            "can be selected from it. Check that rows correspond, or drop the view."
        )


def _apart(runs: Sequence[Solution]) -> list[Solution]:
    """Up to three runs that are not near each other."""
    apart: list[Solution] = []
    for own in runs:
        if len(apart) < _RACERS and not any(own.is_near(other) for other in apart):
            apart.append(own)
    return apart


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
        problems: Sequence[Limits],
        number: int = 0,
        known: Sequence[Vectors] = (),
    ) -> list[list[Solution]]:
        """The best end of all starts and up to two others, the best one first, of each problem.

        Solutions for τ = 1 are kept with the covariances. The ends of one number of features of
        large blocks start the next one.

        Parameters
        ----------
        covariances : BlockCovariances
            Without the components before.
        problems : sequence of mapping of str to Limit
            Constraint of each block, in the order in which they are updated. Problems may differ
            in numbers of features.
        number : int
            Number of the component, from 0.
        known : sequence of mapping
            Weights to start from, in place of other starts.

        Raises
        ------
        NothingShared
            If no start of any problem leads anywhere.
        """
        if known:
            return self._climbed(covariances, problems, [known] * len(problems))
        sizes = covariances.base.sizes
        keys = [tuple(own.values()) for own in problems]
        is_covariance = all(own.tau == 1 for own in keys[0])
        ends = covariances.known.setdefault(("ends",), {}) if is_covariance else {}
        new = {key: own for key, own in zip(keys, problems, strict=True) if key not in ends}
        few_first = sorted(new, key=lambda key: sum(_counts(key, sizes)))
        is_large = is_covariance and np.prod(sorted(sizes.values())[-2:]) > _SMALL
        for batch in [[key] for key in few_first] if is_large else [few_first] if new else []:
            starts = [
                (_nearest(key, ends, sizes) if is_large else [])
                or self._starts(covariances, new[key], number)
                for key in batch
            ]
            climbed = self._climbed(covariances, [new[key] for key in batch], starts)
            ends |= dict(zip(batch, climbed, strict=True))
        return [ends[key] for key in keys]

    def _starts(self, covariances: BlockCovariances, problem: Limits, number: int) -> list[Vectors]:
        """Starts of one problem; of few features with τ < 1, where those with τ = 1 ended.

        The largest covariances say little of correlations.
        """
        sizes = covariances.base.sizes
        if not any(own.tau < 1 and not own.dense(sizes[j]) for j, own in problem.items()):
            return list(Ascent(covariances, [problem], self).starts(number))
        relaxed = {j: replace(own, tau=1.0) for j, own in problem.items()}
        return [own.weights for own in self.solve(covariances, [relaxed], number)[0]]

    def _climbed(
        self,
        covariances: BlockCovariances,
        problems: Sequence[Limits],
        starts: Sequence[Sequence[Vectors]],
    ) -> list[list[Solution]]:
        found = Ascent(covariances, problems, self).best_of(starts)
        if any(own.positive for own in problems[0].values()):
            return found
        return [[self._signed(covariances, own) for own in ends] for ends in found]

    def components(
        self,
        covariances: BlockCovariances,
        limits: Sequence[Limits],
        known: Sequence[Vectors] = (),
    ) -> Iterator[Solution]:
        """One component after the other.

        Ends when views share nothing any more. `limits` are the constraints of each component;
        `known` are weights to start each from.
        """
        least = 0.0
        for number, own in enumerate(limits):
            try:
                found = self.solve(covariances, [own], number, known)[0][0]
            except NothingShared:
                if not number:
                    raise
                return
            if found.least() <= least:
                return  # of a block, only rounding is left
            least = least or _LEAST_SHARE * float(np.linalg.norm([*found.covariances.values()]))
            weights = found.weights.items()
            yield found._replace(
                rotated={name: covariances.rotated(name, w) for name, w in weights},
                variances={
                    name: float(w @ covariances.image(name, name, w)) for name, w in weights
                },
            )
            covariances = self.without(covariances, found)

    def without(self, covariances: BlockCovariances, solution: Solution) -> BlockCovariances:
        """Covariances of what is left when a component is removed."""
        weights = solution.weights
        if self.superblock is not None:
            weights = {self.superblock: weights[self.superblock]}
        if self.deflation == "weights":  # what they have along weights before explains nothing
            weights = {name: covariances.rotated(name, w) for name, w in weights.items()}
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
        shared = solution.covariances.items()
        return solution._replace(
            weights={name: signs[name] * w for name, w in solution.weights.items()},
            covariances={(j, k): signs[j] * signs[k] * x for (j, k), x in shared},
        )


def _counts(limits: Iterable[Limit], sizes: Mapping[str, int]) -> list[int]:
    return [own.features(size) for own, size in zip(limits, sizes.values(), strict=True)]


def _nearest(
    key: tuple[Limit, ...],
    ends: Mapping[tuple[Limit, ...], Sequence[Solution]],
    sizes: Mapping[str, int],
) -> list[Vectors]:
    """Where the nearest numbers of features that are solved ended, if they are near enough."""
    counts, apart = np.array(_counts(key, sizes)), {}
    for own in ends:
        ratios = counts / _counts(own, sizes)
        apart[own] = max(ratios.max(), 1 / ratios.min())
    nearest = min(apart, key=apart.__getitem__, default=None)
    if nearest is None or apart[nearest] > _NEAR_COUNTS:
        return []
    return [own.weights for own in ends[nearest]]


@dataclass(frozen=True, eq=False)
class Ascent:
    """Problems of one component.

    Attributes
    ----------
    covariances : BlockCovariances
        S_jk of all blocks.
    problems : sequence of mapping of str to Limit
        Constraint of each block, in the order in which they are updated. All have those of the
        first, but for numbers of features.
    method : BlockMethod
        The objective, and where to start.
    """

    covariances: BlockCovariances
    problems: Sequence[Limits]
    method: BlockMethod

    @property
    def limits(self) -> Limits:
        """Constraints of the first problem."""
        return self.problems[0]

    @cached_property
    def counts(self) -> dict[str, np.ndarray]:
        """Numbers of features of each block, by problem."""
        sizes = self.covariances.base.sizes
        return {j: np.array([own[j].features(sizes[j]) for own in self.problems]) for j in sizes}

    # ---- one block -------------------------------------------------------------------------------

    def best(
        self,
        name: str,
        Z: np.ndarray,
        problem: np.ndarray,
        old: np.ndarray | None = None,
        fixed: bool = False,
    ) -> np.ndarray:
        """The largest zᵀw under the limit of a block, for each row z; 0 for z = 0.

        Least angles need not find it: then the features of `old` count, too, and alone if `fixed`.
        """
        limit, counts, size = self.limits[name], self.counts[name][problem], Z.shape[1]
        if limit.positive:
            Z = np.maximum(Z, 0)
        if limit.radius is not None:
            return _normalized(np.array([softened(z, threshold_of(z, limit.radius)) for z in Z]))
        if limit.tau == 1 and limit.shrink and counts.max() < size:
            least = np.partition(np.abs(Z), size - counts[0] - 1, axis=1)
            return _normalized(softened(Z, least[:, [size - counts[0] - 1]]))
        if limit.tau == 1:
            return _normalized(np.where(largest(Z, counts), Z, 0))
        W, whole = np.zeros_like(Z), counts >= size
        if whole.any():
            white = self.whitener(name)
            W[whole] = white.lift(_normalized(white.project(Z[whole].T).T).T).T
        if not whole.all():
            few, old = ~whole, np.zeros_like(Z) if old is None else old
            W[few] = self._few(name, Z[few], counts[few], old[few], fixed)
        return W

    def whitener(self, name: str, tau: float | None = None) -> Any:
        """W with WᵀMW = I, for the τ of the limit or another."""
        tau, known = self.limits[name].tau if tau is None else tau, self.covariances.known
        if ("whitener", name, tau) not in known:
            known["whitener", name, tau] = self._whitened(name, tau)
        return known["whitener", name, tau]

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

    def _few(
        self, name: str, Z: np.ndarray, counts: np.ndarray, old: np.ndarray, fixed: bool
    ) -> np.ndarray:
        from mvcca.problem.least_angles import fill_best_of_few

        W, tau, row = np.empty_like(Z), self.limits[name].tau, 0
        wanted = np.flatnonzero(np.any(largest(Z, 2 * counts), axis=0))
        while row >= 0:
            held, place = self.covariances.held_columns(name, name, wanted)
            row, missing = fill_best_of_few(Z, counts, old, fixed, tau, held, place, row, W)
            wanted = np.array([missing])
        return W

    # ---- all blocks ------------------------------------------------------------------------------

    def best_of(self, starts: Sequence[Sequence[Vectors]]) -> list[list[Solution]]:
        """Run a few steps from every start of each problem, and the best of them to the end.

        Returns
        -------
        ends : list of list of Solution
            The best one first, of each problem; none if its starts lead nowhere.

        Raises
        ------
        NothingShared
            If no start of any problem leads anywhere.
        """
        together: dict[tuple[str, ...], list[Solution]] = {}
        for problem, own in enumerate(starts):
            for weights in own:
                one = Solution({**weights}, problem=problem)
                together.setdefault(tuple(weights), []).append(one)
        runs, failure = [], None
        for batch in together.values():
            try:
                runs += self.run(batch, _RACE_STEPS, self.method.tol)
            except NothingShared as error:
                failure = error
        if not runs:
            raise failure or NothingShared(next(iter(self.limits)))
        tol, is_rough = self.method.tol, self.method.tol > _NEAR
        steps = _MOST_STEPS if is_rough else _NEAR_STEPS
        apart = [one for ends in self._by_value(runs) for one in _apart(ends)]
        found = self._by_value(self.run(apart, steps, max(tol, _NEAR)))
        if not is_rough:
            best = [ends[0] for ends in found if ends]
            for one in self.run(best, _MOST_STEPS, tol, fixed=True):
                found[one.problem][0] = one
        return found

    def _by_value(self, runs: Sequence[Solution]) -> list[list[Solution]]:
        """Those of each problem, the best one first."""
        ordered = sorted(runs, key=lambda own: -own.value)
        return [[own for own in ordered if own.problem == i] for i in range(len(self.problems))]

    def run(
        self,
        starts: Sequence[Solution],
        most_steps: int,
        tol: float,
        *,
        fixed: bool = False,
    ) -> list[Solution]:
        """Update every block in turn until weights do not change any more.

        Parameters
        ----------
        starts : sequence of Solution
            Weights of the same blocks; without values, they need not obey their limits, and blocks
            without weights follow from those with some.
        most_steps : int
            Number of turns.
        tol : float
            As of `BlockMethod`.
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
        links, (g, slope) = self.method.links, SCHEMES[self.method.scheme]
        image, linked = self.covariances.image, self._linked()
        problem = np.array([own.problem for own in starts])
        w = {j: np.array([own.weights[j] for own in starts]) for j in starts[0].weights}
        images = {(j, k): image(j, k, w[k]) for j, k in links if k in w}
        for j in self._in_reach(w):
            z = sum(links[j, k] * images[j, k] for k in linked[j] if k in w)
            w[j] = self.best(j, np.asarray(z), problem)
            images |= {(k, j): image(k, j, w[j]) for k in linked[j]}
        shared = {(j, k): np.sum(w[j] * images[j, k], axis=1) for j, k in links}
        traces = [list(own.values) for own in starts]
        ends: dict[Any, Solution] = {}
        rows, change, obeys = np.arange(len(starts)), np.full(len(starts), np.inf), bool(traces[0])
        for step in range(most_steps):
            before, change = change, np.zeros(len(rows))
            for j in self.limits:
                z = sum(
                    links[j, k] * slope(shared[j, k])[:, None] * images[j, k] for k in linked[j]
                )
                old = w[j] if obeys or step else None
                new = self.best(j, np.asarray(z), problem, old, fixed)
                norms = np.sum(new**2, axis=1)
                moved = np.sum((new - w[j]) ** 2, axis=1) / np.where(norms > 0, norms, 1)
                change, w[j] = np.maximum(change, moved), new
                for k in linked[j]:
                    images[k, j] = image(k, j, new)
                    shared[j, k] = shared[k, j] = np.sum(new * images[j, k], axis=1)
            values = sum(c * g(shared[pair]) for pair, c in links.items())
            for row, value in zip(rows, np.asarray(values).tolist(), strict=True):
                traces[row].append(value)
            still = (change < tol) | ((before <= change) & (change < _ROUNDING))
            lost = {j: ~w[j].any(axis=1) for j in self.limits}
            is_lost = np.any([*lost.values()], axis=0)
            done = still | is_lost | (step == most_steps - 1)
            for i in np.flatnonzero(done & ~is_lost).tolist():
                row, own = rows[i], {j: w[j][i] for j in self.limits}
                reached = {pair: float(x[i]) for pair, x in shared.items()}
                ends[row] = Solution(own, tuple(traces[row]), reached, int(problem[i]))
            if done.all():
                break
            if done.any():
                left = ~done
                rows, problem, change = rows[left], problem[left], change[left]
                w = {j: W[left] for j, W in w.items()}
                images = {pair: own[left] for pair, own in images.items()}
                shared = {pair: own[left] for pair, own in shared.items()}
        if not ends:
            name = next(j for j, rows_lost in lost.items() if rows_lost.any())
            raise NothingShared(name, "positive " if self.limits[name].positive else "")
        return [ends[row] for row in sorted(ends)]

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
        dense = all(own.dense(sizes[j]) and not own.positive for j, own in self.limits.items())
        of_whole = self._first_components() if start == "own" else ()
        if start == "svd" or (start == "columns" and dense):
            of_whole = self._directions(number, 1.0 if start == "svd" else None)
        # Which of a vector and its opposite is found is chance, and signs matter to some blocks.
        signs = (1.0, -1.0) if any(own.positive for own in self.limits.values()) else (1.0,)
        for weights in of_whole:
            yield from ({j: sign * w for j, w in weights.items()} for sign in signs)
        if start != "columns" or (dense and len(self.limits) == 2):
            return
        for j, k in combinations(self.limits, 2):
            if (j, k) not in self.method.links:
                continue
            count, most = self.limits[j].features(sizes[j]), self.method.n_starts
            # The more features, the fewer ends there are.
            n_starts = max(min(3, most), most * min(1, _MANY / count))
            both_signs = self.limits[j].positive and not self.limits[k].positive
            for i in self.covariances.largest_columns(j, k, count, round(n_starts)):
                for sign in signs if both_signs else (1.0,):
                    yield {k: sign * np.eye(1, sizes[k], i)[0]}

    def _first_components(self) -> Iterator[dict[str, np.ndarray]]:
        within = {j: self.covariances.matrix(j, j) for j in self.limits}
        yield {j: lapack.top_eigenpairs(S, 1)[1][:, 0] for j, S in within.items()}

    def _directions(self, number: int, tau: float | None) -> Iterator[dict[str, np.ndarray]]:
        """The solution of the problem with g(x) = x and one constraint on all blocks together."""
        covariances = self.covariances
        if self.method.deflation == "pmd":  # later starts are singular vectors of the whole
            covariances = BlockCovariances(covariances.base)
        else:
            number = 0
        units = {j: self.whitener(j, tau) for j in self.limits}
        # Row spaces have few dimensions, in which covariances of wide blocks are small.
        W = {j: own.weights for j, own in units.items() if isinstance(own, RowSpace)}
        between = {}
        for j, k in combinations(self.limits, 2):
            S = covariances.image(j, k, W[k].T).T if k in W else covariances.matrix(j, k)
            between[j, k] = self.method.links.get((j, k), 0.0) * (W[j].T @ S if j in W else S)
        units |= {j: Scaling(np.ones(own.shape[1])) for j, own in W.items()}
        found = canonical_directions(between, units, number + 1, is_joint=False)
        if found.values.size > number:
            top = {j: V[:, number] for j, V in found.weights.items()}
            yield {j: W[j] @ v if j in W else v for j, v in top.items()}
