"""The matrices of CCA of several views as operators: products with centred rows, and a ridge.

With A_pq = Σ_pq between different views and B_p = s_p Σ_pp + r_p I within each, no matrix over the
features is formed. Weights of all views are stacked, (D, k), and so are scores, (T, k). Of paired
views, Σ are covariances of all objects. Of partly paired ones, each pair of views is a `Group` with
covariances of the objects that both share, and Σ_pp is the mean over the pairs of view p.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import NamedTuple, Self

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from mvcca.machine.config import config_context
from mvcca.problem.centred_rows import CentredRows
from mvcca.problem.ridge import Shrinkage, ridge_in
from mvcca.problem.rows import Rows, check_variance
from mvcca.statistics.passes import accumulate, not_kept
from mvcca.views import Views

_PROBES = 16  # of a stochastic trace
_TRACE_TOLERANCE = 1e-2  # of the solutions that it takes, whose error counts squared
_MOST_TRACE_STEPS = 200
_NUMBERS = 2**18  # of a block of rows in which vectors are updated


class Mix(NamedTuple):
    """What to multiply back: own_p S_p + total Σ_q S_q of the scores S_p of every view."""

    own: Mapping[str, float]
    total: float


@dataclass(frozen=True, eq=False)
class Group:
    """Objects that are seen in the same views, and how their covariances count.

    Attributes
    ----------
    views : Views
        Their rows, paired.
    weights : ndarray or None
        How often each object counts.
    rows : dict of str to CentredRows
        Centred rows of each view.
    share : dict of str to float
        Of the covariance of these rows in that of the view.
    """

    views: Views
    weights: np.ndarray | None
    rows: dict[str, CentredRows]
    share: dict[str, float]

    def divided(self, units: Mapping[str, float]) -> Group:
        """The same objects with the rows of each view divided by its unit."""
        rows = {
            name: replace(
                own, factor=own.factor / units[name], variances=own.variances / units[name] ** 2
            )
            for name, own in self.rows.items()
        }
        return replace(self, rows=rows)

    @property
    def n_scores(self) -> int:
        """Rows of the stacked scores."""
        return len(self.views) * len(self.rows)

    @property
    def is_lazy(self) -> bool:
        """Whether rows are read for each product."""
        return any(rows.block.is_lazy for rows in self.rows.values())


@dataclass(frozen=True, eq=False)
class Pencil:
    """A and B of the problem A w = ρ B w, of which products are taken.

    Each view is divided by its mean deviation: conjugate gradients depend on the sizes of views,
    solutions do not.

    Attributes
    ----------
    columns : dict of str to slice
        Where the weights of each view are.
    groups : list of Group
        The rows, once for all paired views, or for each pair of views.
    units : dict of str to float
        What the rows of each view are divided by.
    slopes, ridges : dict of str to float
        s_p and r_p, of the divided rows.
    shift : float
        σ such that σ B - A is positive definite.
    """

    columns: dict[str, slice]
    groups: list[Group]
    units: dict[str, float]
    slopes: dict[str, float]
    ridges: dict[str, float]
    shift: float

    @classmethod
    def of(cls, rows: Rows) -> Self:
        """The matrices of `rows.views` with the ridges `rows.reg`, which must not be 0."""
        groups = _groups(rows)
        ends = np.cumsum([0, *rows.views.widths.values()])
        columns = {n: slice(*ends[i : i + 2]) for i, n in enumerate(rows.views.names)}
        pairs_of = {n: round(1 / g.share[n]) for g in groups for n in g.rows}
        most = len(columns) - 1 if len(groups) == 1 else max(pairs_of.values())
        ones = dict.fromkeys(columns, 1.0)
        pencil = cls(columns, groups, ones, ones, dict.fromkeys(columns, 0.0), float(most))
        for name in columns:
            check_variance(name, pencil.variances(name))
        units = {name: float(np.sqrt(rows.unit(name, pencil.variances(name)))) for name in columns}
        pencil = replace(pencil, groups=[group.divided(units) for group in groups], units=units)
        slopes, ridges = dict(ones), {}
        for name, unit in units.items():
            reg = rows.reg[name]
            ridges[name] = ridge_in(reg, unit**2) / unit**2
            if isinstance(reg, Shrinkage):
                slopes[name] = 1 - reg
        if any(isinstance(reg, Shrinkage) for reg in rows.reg.values()):
            # A common factor keeps variances of scores, and so all correlations, at most 1, as in
            # `Problem`; it also makes the shift that of a ridge.
            top = {name: pencil._largest_eigenvalue(name) for name in columns}
            largest = max(top[n] / (slopes[n] * top[n] + ridges[n]) for n in columns)
            slopes, ridges = (
                {name: largest * own for name, own in found.items()} for found in (slopes, ridges)
            )
        return replace(pencil, slopes=slopes, ridges=ridges)

    # ---- description -----------------------------------------------------------------------------

    @property
    def n_features(self) -> int:
        """D."""
        return sum(own.stop - own.start for own in self.columns.values())

    @property
    def n_scores(self) -> int:
        """T."""
        return sum(group.n_scores for group in self.groups)

    @property
    def is_lazy(self) -> bool:
        """Whether rows are read for each product."""
        return any(group.is_lazy for group in self.groups)

    def in_float32(self) -> Pencil:
        """The same problem for float32 products of sparse rows in memory, with half the memory."""
        groups = [
            replace(group, rows={name: rows.in_float32() for name, rows in group.rows.items()})
            for group in self.groups
        ]
        return replace(self, groups=groups)

    def ridge(self) -> np.ndarray:
        """Ridge r of every feature, (D, 1)."""
        ridge = np.empty((self.n_features, 1))
        for name, own in self.columns.items():
            ridge[own] = self.ridges[name]
        return ridge

    def variances(self, name: str) -> np.ndarray:
        """Diagonal of Σ_pp."""
        own = [(g.share[name], g.rows[name].variances) for g in self.groups if name in g.rows]
        return np.sum([share * variances for share, variances in own], axis=0)

    def means(self) -> dict[str, np.ndarray]:
        """Mean of each view over its groups, in which an object counts once for each."""
        found = {}
        for name in self.columns:
            own = [group.rows[name] for group in self.groups if name in group.rows]
            counts = [rows.count for rows in own]
            found[name] = np.average([rows.mean for rows in own], axis=0, weights=counts)
        return found

    # ---- products --------------------------------------------------------------------------------

    def of_A(self) -> Mix:
        """Products with A."""
        return Mix(dict.fromkeys(self.columns, -1.0), 1.0)

    def of_B(self) -> Mix:
        """Products with B less its ridge."""
        return Mix(self.slopes, 0.0)

    def images(self, W: np.ndarray, *mixes: Mix) -> list[np.ndarray]:
        """X̄ᵀ of each mix of the scores X̄W, (D, k) each; rows in files are read once."""
        if self.is_lazy:
            return self._images_in_one_pass(W, mixes)
        S = self.forward(W)
        found = [self.backward(self.mixed(S, mix)) for mix in mixes[:-1]]
        return [*found, self.backward(self.mixed(S, mixes[-1], in_place=True))]

    def times_B(self, W: np.ndarray) -> np.ndarray:
        """B W."""
        (image,) = self.images(W, self.of_B())
        image += self.ridge() * W
        return image

    def times_shifted(self, W: np.ndarray) -> np.ndarray:
        """(σ B - A) W."""
        own = {name: self.shift * slope + 1 for name, slope in self.slopes.items()}
        (image,) = self.images(W, Mix(own, -1.0))
        for name, place in self.columns.items():
            image[place] += (self.shift * self.ridges[name]) * W[place]
        return image

    def forward(self, W: np.ndarray) -> np.ndarray:
        """Scores X̄W of every view in every group, (T, k)."""
        S = np.empty((self.n_scores, W.shape[1]), W.dtype)
        for name, rows, place in self._parts():
            S[place] = rows.forward(np.ascontiguousarray(W[self.columns[name]]))
        return S

    def backward(self, S: np.ndarray) -> np.ndarray:
        """X̄ᵀS, (D, k), with the share of each group in B."""
        image = np.zeros((self.n_features, S.shape[1]), S.dtype)
        for name, rows, place in self._parts():
            image[self.columns[name]] += rows.backward(S[place])
        return image

    def mixed(self, S: np.ndarray, mix: Mix, *, in_place: bool = False) -> np.ndarray:
        """Scores to multiply back; shares of groups apply to their own scores."""
        result = S if in_place else S.copy()
        start = 0
        for group in self.groups:
            shape = (len(group.rows), len(group.views), S.shape[1])
            of_views = result[start : start + group.n_scores].reshape(shape)
            total = mix.total * of_views.sum(axis=0) if mix.total else 0.0
            for name, own in zip(group.rows, of_views, strict=True):
                own *= self._own(group, name, mix)
                own += total
            start += group.n_scores
        return result

    def _own(self, group: Group, name: str, mix: Mix) -> float:
        """Factor of a view's own scores: B, but not A, is a mean over groups."""
        of_A = -mix.total
        return (mix.own[name] - of_A) * group.share[name] + of_A

    def _parts(self) -> Iterator[tuple[str, CentredRows, slice]]:
        """Every view of every group, and where its scores are."""
        start = 0
        for group in self.groups:
            for name, rows in group.rows.items():
                yield name, rows, slice(start, start + len(group.views))
                start += len(group.views)

    def _images_in_one_pass(self, W: np.ndarray, mixes: tuple[Mix, ...]) -> list[np.ndarray]:
        """`images` of rows that are read, or computed by the workers of a cluster."""
        found = np.zeros((len(mixes), *W.shape))
        for group in self.groups:
            parts = {
                name: _Factors(rows.mean, rows.factor, rows.variances == 0, W[self.columns[name]],
                            tuple(self._own(group, name, mix) for mix in mixes))
                for name, rows in group.rows.items()
            }  # fmt: skip
            width = sum(len(part.mean) for part in parts.values())
            start = np.zeros((len(mixes), width, W.shape[1]))
            totals = tuple(mix.total for mix in mixes)
            with config_context(progress=False), not_kept():
                image = accumulate(
                    partial(_images_of_block, parts=parts, totals=totals),
                    start, group.views, group.weights,
                    row_bytes=sum(X.row_bytes for X in group.views.blocks.values())
                    + 16 * W.shape[1] * len(parts),
                )  # fmt: skip
            begin = 0
            for name, part in parts.items():
                end = begin + len(part.mean)
                found[:, self.columns[name]] += image[:, begin:end]
                begin = end
        return list(found)

    # ---- what is known of B ----------------------------------------------------------------------

    def traces(self) -> tuple[dict[str, float], tuple[float, float] | None]:
        """Traces of H_p of each view, H_p = X̄_p B_p⁻¹ X̄_pᵀ; of two paired views Σ ρ² and Σ ρ⁴, too.

        By random signs z, since E zᵀHz = tr H and ρ² are the eigenvalues of H_x H_y. The solution
        of (s X̄X̄ᵀ + r I) u = z gives Hz = (z - r u) / s. Of groups of rows, it is found among the
        features.
        """
        rng = np.random.default_rng(0)
        if len(self.groups) > 1:
            z = rng.choice([-1.0, 1.0], (self.n_features, _PROBES))
            u = self.ridge() * conjugate_gradients(
                self.times_B, z, _MOST_TRACE_STEPS, _TRACE_TOLERANCE
            )
            found = {
                name: float(np.sum(z[own] * (z[own] - u[own])) / _PROBES / self.slopes[name])
                for name, own in self.columns.items()
            }
            return found, None
        z = rng.choice([-1.0, 1.0], (len(self.groups[0].views), _PROBES))
        smooth = {name: self._smoothed(name, z) for name in self.columns}
        freedom = {name: float(np.sum(z * own) / _PROBES) for name, own in smooth.items()}
        if len(smooth) != 2:
            return freedom, None
        (p, of_p), (q, of_q) = smooth.items()
        fourth = np.sum(self._smoothed(p, of_q) * self._smoothed(q, of_p))
        return freedom, (float(np.sum(of_p * of_q)) / _PROBES, float(fourth) / _PROBES)

    def _smoothed(self, name: str, z: np.ndarray) -> np.ndarray:
        """H_p z of the only group of rows."""
        rows, slope, ridge = self.groups[0].rows[name], self.slopes[name], self.ridges[name]
        if not slope:  # shrunk entirely, to a constraint that is the ridge
            return rows.forward(rows.backward(z)) / ridge

        def product(U: np.ndarray) -> np.ndarray:
            image = rows.forward(rows.backward(U))
            image *= slope
            image += ridge * U
            return image

        u = conjugate_gradients(product, z, _MOST_TRACE_STEPS, _TRACE_TOLERANCE)
        return (z - ridge * u) / slope

    def _largest_eigenvalue(self, name: str) -> float:
        """Of Σ_pp."""
        width = self.variances(name).size

        def product(v: np.ndarray) -> np.ndarray:
            v = v.reshape(-1, 1)
            image = np.zeros_like(v)
            for group in self.groups:
                if name in group.rows:
                    X = group.rows[name]
                    image += group.share[name] * X.backward(X.forward(v))
            return image.reshape(-1)

        operator = LinearOperator((width, width), matvec=product, dtype=np.float64)
        start = np.random.default_rng(0).standard_normal(width)
        if width < 3:
            return float(np.linalg.eigvalsh(operator @ np.eye(width))[-1])
        return float(eigsh(operator, 1, v0=start, tol=1e-10, return_eigenvectors=False)[0])


def conjugate_gradients(
    product: Callable[[np.ndarray], np.ndarray], b: np.ndarray, most: int, tolerance: float
) -> np.ndarray:
    """Solve for all columns of b at once, until the residual is `tolerance` of b in the mean."""
    x, r, p = np.zeros_like(b), b.copy(), b.copy()
    sizes = first = np.einsum("ij,ij->j", r, r)
    step = max(1, _NUMBERS // b.shape[1])
    blocks = [slice(start, start + step) for start in range(0, len(b), step)]
    for _ in range(most):
        if np.sqrt(np.mean(sizes / np.maximum(first, 1e-300))) <= tolerance:
            break
        q = product(p)
        a = _ratio(sizes, np.einsum("ij,ij->j", p, q))
        after = np.zeros_like(sizes)
        for rows in blocks:  # of a size that stays in the cache
            x[rows] += a * p[rows]
            r[rows] -= a * q[rows]
            after += np.einsum("ij,ij->j", r[rows], r[rows])
        for rows in blocks:
            p[rows] *= _ratio(after, sizes)
            p[rows] += r[rows]
        sizes = after
    return x


def _ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.divide(a, b, out=np.zeros_like(b), where=b > 0)


def _groups(rows: Rows) -> list[Group]:
    """The views by themselves if they are paired, else each pair that shares objects."""
    views, weights = rows.views, rows.sample_weight
    if views.is_paired:
        return [_group(views, weights, rows.reading.center, dict.fromkeys(views.names, 1.0))]
    found = []
    for pair in combinations(views.names, 2):
        both = views.select(pair).seen.all(axis=1)
        counts = both if weights is None else both * weights
        if counts.sum() > 1:
            found.append((pair, np.flatnonzero(both)))
    n_pairs = {name: sum(name in pair for pair, _ in found) for name in views.names}
    return [
        _group(
            views.select(pair)[both],
            None if weights is None else weights[both],
            rows.reading.center,
            {name: 1 / n_pairs[name] for name in pair},
        )
        for pair, both in found
    ]


def _group(
    views: Views, weights: np.ndarray | None, center: bool, share: dict[str, float]
) -> Group:
    rows = {n: CentredRows.of(X, weights, center=center) for n, X in views.blocks.items()}
    return Group(views, weights, rows, share)


class _Factors(NamedTuple):
    """What a block of rows of a view needs to be multiplied."""

    mean: np.ndarray
    factor: float
    is_constant: np.ndarray
    weights: np.ndarray  # (d, k)
    own: tuple[float, ...]  # of each mix


def _images_of_block(
    views: Views,
    weights: np.ndarray | None,
    *,
    parts: dict[str, _Factors],
    totals: tuple[float, ...],
) -> np.ndarray:
    """X̄ᵀ of each mix of the scores of these rows, (n_mixes, D, k)."""
    scale = None if weights is None else weights[:, None]
    rows, scores = {}, {}
    for name, part in parts.items():
        X, left = views.block(name).centred(part.mean)
        rows[name] = X, left
        scores[name] = part.factor * (X @ part.weights - left @ part.weights)
        if scale is not None:
            scores[name] *= scale
    total = sum(scores.values())
    found = []
    for i, of_total in enumerate(totals):
        images = []
        for name, part in parts.items():
            X, left = rows[name]
            U = part.own[i] * scores[name] + of_total * total
            image = X.cross(U)
            image -= np.multiply.outer(left, U.sum(axis=0))
            image[part.is_constant] = 0
            images.append(part.factor * image)
        found.append(np.concatenate(images))
    return np.stack(found)
