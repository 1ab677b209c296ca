"""Multi-label CCA, and Fast MLCCA, cluster-CCA and mean-CCA as choices of how labels weigh."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from mvcca._backend import precision
from mvcca._warnings import warn
from mvcca.base import all_or_nothing
from mvcca.linalg import Rotation, canonical_directions
from mvcca.linear._blocks import blocks_between
from mvcca.linear._constraint import variances_within, whiten
from mvcca.linear._label_checks import check_shared_labels
from mvcca.linear._label_weighted import (
    DrawnLabelFeatures,
    LabelledViews,
    LabelWeightedEstimator,
)
from mvcca.linear._neighbors import nearest_label_pairs
from mvcca.linear._precision import Precision, solve_precisely
from mvcca.linear._reg import reg_of_rows
from mvcca.linear._rows import weighted_cross
from mvcca.similarity import Similarity, similarity_function
from mvcca.statistics import LabelFeatureSums, LabelSums, Moments
from mvcca.statistics._moments import _ROUNDING, column_slices
from mvcca.views import Views

Between = dict[tuple[str, str], np.ndarray]

_NEVER_NEGATIVE = ("sqexp", "exp", "equal")


@dataclass(frozen=True, eq=False)
class _LabelledRows(LabelledViews):
    """Rows with their labels. They add, but are as large as the data."""

    def __add__(self, other: _LabelledRows) -> _LabelledRows:
        table, lines = self.table.merge(other.table)
        mine, theirs = lines[: len(self.table)], lines[len(self.table) :]
        codes = {
            name: np.concatenate([mine[self.codes[name]], theirs[other.codes[name]]])
            for name in self.views.names
        }
        weights = None
        if self.weights is not None or other.weights is not None:
            weights = np.concatenate([self.object_weights(), other.object_weights()])
        return _LabelledRows(Views.concatenate([self.views, other.views]), table, codes, weights)


class MLCCA(LabelWeightedEstimator):
    """Multi-label canonical correlation analysis.

    CCA over all pairs of rows of two views, each weighted by how alike its labels are [1]_:

        C_xy = 1/N Σ_i Σ_j f(z_i, z_j) x_i y_jᵀ,
        C_xx = 1/N Σ_i Σ_j f(z_i, z_j) x_i x_iᵀ,  C_yy = 1/N Σ_i Σ_j f(z_i, z_j) y_j y_jᵀ,

    with centred rows and N = n_x n_y, so that views need no pairing. More than two views share one
    space through all pairs of views, each C_pp averaged over them. The sums over pairs are exact:
    they are taken over distinct label vectors, of which there are few.

    Special cases: ``label_similarity="equal"`` is cluster-CCA [2]_ (all pairs within a class), with
    ``weighting="means"`` mean-CCA (CCA of the class means); ``n_neighbors=50`` is Fast MLCCA.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the shared space.
    label_similarity : {"sqexp", "exp", "cosine", "equal"} or callable, default="sqexp"
        Label similarity f: see `mvcca.similarity`. The paper's dot-product similarity is "cosine";
        its squared exponential exp(-‖·‖²/σ) is "sqexp" with half its σ, and the official code's
        is "exp".
    sigma : float, default=1.0
        Bandwidth of the exponentials.
    weighting : {"pairs", "means"}, default="pairs"
        Whether every pair of rows counts, or every pair of label sets once, by its mean rows.
    n_neighbors : int or None, default=None
        Restrict the sums to pairs of a row and its nearest rows of the other view in label space
        (itself among them where rows are paired). Neighbours of the rows of x among those of y, and
        of y among x, count half each, so that the order of views does not matter; the official
        code takes the former only. Ties, common among label sets, are broken by a random
        permutation drawn with `random_state`, each row from its own place in it.
    reg : float, mapping of str to float, or "auto", default=1e-4
        Ridge on each view's C_pp in units of its mean diagonal (0.25 in the official code); "auto"
        shrinks it by what Ledoit and Wolf estimate for the covariance of the rows, see `MVCCA`.
    power : float, default=0.0
        Scores are multiplied by λ^power = (1 + ρ)^power.
    label_features : {None, "fourier", "nystroem"}, default=None
        None is exact, by pairs of distinct label vectors. Where these hardly repeat (real-valued
        labels), pairs are n² and sums as large as the data: features Φ of label vectors with
        Φ(z)ᵀΦ(z') ≈ f(z, z') then take memory by their number only. "fourier" are random features
        of "sqexp" and "exp", with an error of order 1 / √n_label_features; "nystroem" are
        similarities to landmark label vectors, for any positive semi-definite similarity, exact
        if all distinct label vectors are landmarks.
    n_label_features : int, default=500
        Fourier features (an even number), or landmarks; used with `label_features` only.
    random_state : int, RandomState or None, default=None
        Order of ties; seed of label features and of the rows of `covariance_error_`. Used with
        `n_neighbors` and `label_features` only.

    Attributes
    ----------
    weights_ : dict of str to ndarray, shape (n_features, n_components_)
        One map per view, by name.
        A dict: unpack it with ``weights_.values()``, since iterating over it gives names.
    means_ : dict of str to ndarray, shape (n_features,)
        Training means (plain, not weighted).
    eigenvalues_ : ndarray, shape (n_components_,)
        λ = 1 + ρ in decreasing order.
    n_components_ : int
        Components found: fewer than asked for where the data cannot give them; with c classes and
        "equal", c - 1.
    n_label_vectors_ : int
        Number of distinct label vectors; without `label_features` only.
    label_feature_map_ : FourierLabelFeatures or LandmarkLabelFeatures
        Φ, as drawn from the first batch; with `label_features` only, as the next two.
    n_label_features_ : int
        Number of features: fewer than landmarks where some landmarks add nothing to the others.
    covariance_error_ : float
        How far off Φ is: ‖Ψ̃ - Ψ‖ / ‖Ψ‖ in the Frobenius norm, of all blocks of the
        label-weighted covariance made by features (Ψ̃) and by pairs (Ψ), both over the same rows: up
        to 2000 of each view, drawn from the first batch by `random_state`. Each view is scaled to
        ‖Ψ_pp‖ = 1, so that its units do not matter.
    ranks_ : dict of str to int
        Rank of each view.
    view_names_ : tuple of str
        The views, in order.
    n_features_in_ : int
        Number of features of X, over all its views.

    See Also
    --------
    MVMLCCA : Label-weighted sums in the constraint too.

    References
    ----------
    .. [1] Ranjan, Rasiwasia and Jawahar, "Multi-label Cross-modal Retrieval", ICCV 2015.
    .. [2] Rasiwasia, Mahajan, Mahadevan and Aggarwal, "Cluster Canonical Correlation Analysis",
       AISTATS 2014.

    Examples
    --------
    >>> from mvcca import MLCCA
    >>> from mvcca.datasets import load_digits_views
    >>> data = load_digits_views()
    >>> cluster_cca = MLCCA(9, label_similarity="equal").fit(data.views, data.labels)
    >>> cluster_cca.n_components_
    9
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LabelWeightedEstimator._parameter_constraints,
        "weighting": [StrOptions({"pairs", "means"})],
        "n_neighbors": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        label_similarity: Similarity = "sqexp",
        sigma: float = 1.0,
        weighting: str = "pairs",
        n_neighbors: int | None = None,
        reg: float | str | Mapping[str, float] = 1e-4,
        power: float = 0.0,
        label_features: str | None = None,
        n_label_features: int = 500,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.label_similarity = label_similarity
        self.sigma = sigma
        self.weighting = weighting
        self.n_neighbors = n_neighbors
        self.reg = reg
        self.power = power
        self.label_features = label_features
        self.n_label_features = n_label_features
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the maps from labelled views, paired or not.

        Parameters
        ----------
        X : Views, mapping, list of matrices, or matrix of shape (n_rows, n_features)
            The views. Their pairing is not used. A lone matrix is a single view, compared with
            itself.
        y : labels
            A class vector, indicator matrix, list of label sets, or real label vectors, one per
            object; or a list or mapping with the labels of each view, whose heights may differ.
        sample_weight : array-like, shape (n_objects,), optional
            How often each object counts.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If labels are missing or all the same, or a view holds NaN, infinity or no variance.
        """
        self._validate_params()
        rows = _LabelledRows(*self._open_supervised_fit(X, y, sample_weight))
        check_shared_labels(rows.table, rows.codes)
        self._fit(rows)
        self._statistic = None
        return self

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add a batch of rows and fit again; batches give what `fit` gives.

        The weight of a row in C_pp depends on the labels of *all* rows, so that all rows are kept.
        After `fit`, which keeps none, batches start over, with a warning.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As in `fit`; also for other views than before.
        """
        self._validate_params()
        first = self._is_first_batch()
        batch = _LabelledRows(*self._open_supervised_fit(X, y, sample_weight, reset=first))
        rows = self._with_earlier(batch)
        self._fit(rows, None if first else self._drawn)
        self._statistic = rows
        return self

    def _fit(self, data: _LabelledRows, drawn: DrawnLabelFeatures | None = None) -> None:
        """Fit to rows, with the label features that an earlier batch drew, if there was one."""
        self._check_choices()
        self._check_labels(data.counts())
        reg = reg_of_rows(self.reg, data.views, data.weights)
        data, rotations = data.in_row_space(reg)
        drawn = drawn or self._draw_label_features(data)

        def solve(
            views: Views, rotations: Mapping[str, Rotation], precision: Precision
        ) -> LabelSums | LabelFeatureSums:
            rows, dtype = replace(data, views=views), precision.products
            sums = self._sums_of(rows, drawn, dtype)
            mean = sums.mean()
            if isinstance(sums, LabelSums) and self.weighting == "means":
                sums = sums.averaged()
                rows = _label_means(sums)
            between, row_weights = self._compare(rows, sums, mean, drawn, dtype)
            within = {
                name: _scatter_about(block, row_weights[name], mean[name], dtype)
                for name, block in rows.views.items()
            }
            variances = variances_within(within, rotations)
            solution = canonical_directions(
                between,
                whiten(within, reg, rotations, variances, precision),
                self.n_components,
                precision.eps,
                None if self.n_neighbors else self._ranks_between(sums),
                is_joint=self.label_similarity in _NEVER_NEGATIVE and drawn is None,
            )
            if isinstance(sums, LabelSums):
                for name, weights in row_weights.items():
                    _warn_of_rows_without_likes(name, weights)
            self._learn(solution, mean, rotations, variances)
            return sums

        sums = solve_precisely(solve, data.views, reg, data.weights, rotations)
        self._learn_labels(sums, drawn)

    def _check_choices(self) -> None:
        if self.n_neighbors is not None and self.weighting == "means":
            raise ValueError('n_neighbors chooses among rows: it needs weighting="pairs".')
        if self.label_features is None:
            return
        if self.n_neighbors is not None or self.weighting == "means":
            raise ValueError(
                "label_features are for sums over all pairs of rows: they need n_neighbors=None "
                'and weighting="pairs".'
            )

    def _sums_of(
        self, rows: _LabelledRows, drawn: DrawnLabelFeatures | None, dtype: np.dtype
    ) -> LabelSums | LabelFeatureSums:
        if drawn is not None:
            return drawn.sums(rows, dtype)
        return LabelSums.of(rows.views, rows.table, rows.codes, rows.weights)

    def _compare(
        self,
        rows: _LabelledRows,
        sums: LabelSums | LabelFeatureSums,
        mean: Mapping[str, np.ndarray],
        drawn: DrawnLabelFeatures | None,
        dtype: np.dtype,
    ) -> tuple[Between, dict[str, np.ndarray]]:
        """C_pq of every pair of views, and what each row weighs in its view's C_pp."""
        if isinstance(sums, LabelFeatureSums):
            assert drawn is not None
            between, row_weights = self._all_pairs_by_features(sums, drawn, rows)
        elif self.n_neighbors is None:
            between, row_weights = self._all_pairs(sums, mean, rows, dtype)
        else:
            between, row_weights = self._nearest_pairs(mean, rows)
        for name, weights in row_weights.items():
            _check_weights(name, weights)
        return between, row_weights

    def _all_pairs(
        self,
        sums: LabelSums,
        mean: Mapping[str, np.ndarray],
        rows: _LabelledRows,
        dtype: np.dtype,
    ) -> tuple[Between, dict[str, np.ndarray]]:
        """Over all pairs of rows, exactly: by pairs of distinct label vectors."""
        gram = self._gram(sums.table)
        between = blocks_between(sums.covariance(gram, mean, dtype), sums.widths)
        return between, _row_weights(sums.row_weights(gram, dtype), rows)

    def _all_pairs_by_features(
        self, sums: LabelFeatureSums, drawn: DrawnLabelFeatures, rows: _LabelledRows
    ) -> tuple[Between, dict[str, np.ndarray]]:
        """Over all pairs of rows by label features, whose error may make weights negative."""
        between = blocks_between(sums.covariance(), sums.widths)
        row_weights = _row_weights(drawn.row_weights(sums, rows.table), rows)
        if self.label_similarity in _NEVER_NEGATIVE:
            row_weights = _cut_at_zero(row_weights)
        return between, row_weights

    def _nearest_pairs(
        self, mean: Mapping[str, np.ndarray], data: _LabelledRows
    ) -> tuple[Between, dict[str, np.ndarray]]:
        """Over the pairs of a row and its nearest rows in label space."""
        views = data.views
        order = check_random_state(self.random_state).permutation(len(views))
        names = views.names
        pairs = list(combinations(names, 2)) or [(names[0], names[0])]
        between = {}
        row_weights = {name: np.zeros(views[name].shape[0]) for name in names}
        for p, q in pairs:
            F = (self._shares(data, p, q, order) + self._shares(data, q, p, order).T) / 2
            between[p, q] = weighted_cross(views[p], F, views[q], mean[p], mean[q])
            share = max(1, len(names) - 1)
            row_weights[p] += F.sum(axis=1) / share
            if p != q:
                row_weights[q] += F.sum(axis=0) / share
        return between, row_weights

    def _shares(self, data: _LabelledRows, p: str, q: str, order: np.ndarray) -> csr_array:
        """What pairs of a row of p and its nearest rows of q count in the mean, (n_p, n_q)."""
        assert self.n_neighbors is not None
        ranks = {name: order[data.views.objects(name)] for name in (p, q)}
        F = nearest_label_pairs(
            data.table.dense(),
            (data.codes[p], ranks[p]),
            (data.codes[q], ranks[q]),
            self.n_neighbors,
            similarity_function(self.label_similarity, self.sigma),
        )
        weighted = F.multiply(data.weights_of(p)[:, None]).multiply(data.weights_of(q)[None, :])
        return csr_array(weighted) / F.nnz


def _row_weights(likeness: np.ndarray, rows: _LabelledRows) -> dict[str, np.ndarray]:
    """Each row's share of its view times the mean likeness of its labels to the other views."""
    row_weights = {}
    for p, name in enumerate(rows.views.names):
        others = [q for q in range(likeness.shape[1]) if q != p] or [p]
        label_weight, own = likeness[:, others].mean(axis=1), rows.weights_of(name)
        row_weights[name] = label_weight[rows.codes[name]] * own / own.sum()
    return row_weights


def _cut_at_zero(row_weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Weights without the negative ones that the error of label features has made."""
    cut = {}
    for name, weights in row_weights.items():
        negative = weights < -1e-12 * weights.max()  # what is less is rounding
        if negative.any():
            share = -weights[negative].sum() / weights.sum()
            cut[name] = f"{np.count_nonzero(negative)} of {name!r} ({share:.1e} of all weight)"
    if cut:
        warn(
            f"Label features give rows a negative weight: {', '.join(cut.values())}. They count "
            "for nothing in the constraint; raise n_label_features to have them count."
        )
    return {name: np.maximum(weights, 0) for name, weights in row_weights.items()}


def _label_means(sums: LabelSums) -> _LabelledRows:
    """Each view's mean row per label vector as rows, unpaired."""
    blocks, codes = {}, {}
    for p, (name, columns) in enumerate(column_slices(sums.widths).items()):
        codes[name] = np.flatnonzero(sums.counts[:, p])
        blocks[name] = sums.sums[codes[name], columns]
    return _LabelledRows(Views.unpaired(blocks), sums.table, codes, None)


def _check_weights(name: str, weights: np.ndarray) -> None:
    if (weights < 0).any():
        raise ValueError(
            f"Rows of view {name!r} get negative weights: the similarity is negative on average. "
            "Use one in [0, 1], such as sqexp."
        )
    if not weights.any():
        raise ValueError(
            f"The views have nothing in common: no labels of view {name!r} are like any of the "
            "other views. Check that labels mean the same in all views."
        )


def _warn_of_rows_without_likes(name: str, weights: np.ndarray) -> None:
    if n_rows := int(np.count_nonzero(weights == 0)):
        warn(
            f"The labels of {n_rows} rows of view {name!r} are like none of the other views: these "
            "rows count for nothing."
        )


def _scatter_about(X: Any, weights: np.ndarray, mean: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Σ_i weight_i (x_i - mean)(x_i - mean)ᵀ; weights are in the row weights' own units."""
    moments = Moments.of(Views({"": X}), weights, dtype)
    shift = moments.means[0] - mean
    rounding = max(_ROUNDING, 4 * len(weights) * np.finfo(precision(X)).eps ** 2)  # of a mean
    shift[np.abs(shift) <= rounding * np.abs(mean)] = 0  # a constant column has not moved
    return moments.scatter + moments.counts[0, 0] * np.outer(shift, shift)
