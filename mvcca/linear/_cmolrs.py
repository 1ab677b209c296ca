"""Cross-modal online low-rank similarity: a bilinear form learned from triplets of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import permutations
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy import linalg
from scipy.sparse import csr_array
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from mvcca.base import MultiViewEstimator, Requirements, all_or_nothing
from mvcca.base.inputs import open_repeated
from mvcca.base.label_checks import check_labels
from mvcca.base.standardizing import STANDARDIZED, with_units
from mvcca.base.tuned_fits import fit_searched
from mvcca.blocks import as_block
from mvcca.linear.shifted_rows import ShiftedRows
from mvcca.machine.threads import threads_to_factorise
from mvcca.model_selection import Space, searched
from mvcca.model_selection.goals import Goal
from mvcca.model_selection.spaces import AUTOMATIC, SEARCHED, plain_value
from mvcca.problem import Maps, Rows
from mvcca.problem.rows import mean_and_variance
from mvcca.statistics import column_slices
from mvcca.views import Labels
from mvcca.views.powers_of_two import exponents_of, scaled

_START = 1e-3  # eigenvalues of W before the first step, against margins of about 1
_DENSE_BYTES = 64 * 2**20  # of label vectors
_N_DRAWS = 20  # attempts to draw a negative, before a triplet is dropped


class CMOLRS(MultiViewEstimator):
    r"""Cross-modal online low-rank similarity.

    Learns a bilinear similarity of low rank between rows of two views,

    .. math::

        s(x, y) = \bar x^⊤ W_{pq} \, \bar y, \qquad W_{pq} = A_p A_q^⊤, \qquad
        \text{rank} ≤ n_{components},

    from triplets of a row x of view p and rows y⁺, y⁻ of view q with and without a label in common
    with x, by stochastic gradient steps on the hinge loss

    .. math::

        & \max(0, \, m - s(x, y^+) + s(x, y^-)), \\
        & m = (1 - \cos(z^+, z^-)) \, ‖y^+ - y^-‖ / c_q,

    averaged over a batch. The margin grows with the distance between the two in labels z (m = 0 for
    equal label vectors) and in features; c_q is twice the length of the longest row, so that m ≤ 1.
    A step follows the gradient in the tangent space of the matrices of that rank, and a 2k x 2k
    eigendecomposition retracts it. All W_pq are blocks of one positive semi-definite W = A Aᵀ,
    where A stacks the maps of the views. For two views this includes every W_pq of that rank; it
    is symmetric in the directions and gives any number of views one space. A single view is
    compared with itself.

    **This is a reconstruction.** Only the abstracts of [1]_ and [2]_ were available. The bilinear
    form, fixed rank, triplets with a margin from distances of features and labels, Riemannian
    steps with a retraction, and the average over several triplets per query come from them. The
    formula of the margin, the symmetric W and batches of queries are our own choices. Results may
    differ from those published.

    The similarity is the inner product of the projections. Retrieval with this estimator uses
    it; functions that take scores only need ``similarity="inner"``.

    Parameters
    ----------
    n_components : int, None or "cv", default=2
        Rank of the similarity. None is the largest that the features give, "cv" chooses among 10,
        30 and that by 3 folds.
    learning_rate : float, "auto" or "cv", default="auto"
        Step size of the first epoch; it is divided by √t in epoch t. Rows are centred and divided
        by their root mean square length, so that rescaling a view changes nothing. "cv" chooses by
        3 folds. "auto" is "cv" if ``n_components="cv"``, else 3.
    scale : bool, mapping of str to bool, "auto" or "cv", default="auto"
        Which views to standardize, as in `CCA`; `weights_` stay in the units of the features.
    n_epochs : int, default=10
        Number of epochs; every row is a query once per epoch.
    batch_size : int, default=32
        Queries per step.
    n_triplets : int, default=5
        Triplets per query.
    random_state : int, RandomState or None, default=None
        Start, order of queries, and triplets.
    cv_goal : {"object", "class", "correlation"} or None, default=None
        What "cv" maximizes on held-out folds: the mean reciprocal rank of the row of the same
        object, mAP@50 over rows that share a label, or the mean correlation of the scores. None is
        "class".

    Attributes
    ----------
    weights_ : dict of str to ndarray, shape (n_features, n_components_)
        A_p in the units of the features, by view name.
        A dict: unpack it with ``weights_.values()``, since iterating over it gives names.
    means_ : dict of str to ndarray, shape (n_features,)
        Training means.
    eigenvalues_ : ndarray, shape (n_components_,)
        Eigenvalues of W on the divided rows, decreasing.
    learning_rate_ : float
        The chosen step size; only if folds choose it.
    ranking_ : str
        The chosen ranking, "inner" or "inner+csls"; if a parameter is "cv", as is the next one.
    cv_results_ : dict of str to array
        Values of all settings on the folds, as in scikit-learn's searches.
    n_components_ : int
        Components found: fewer than asked for where the features cannot give them.
    n_label_vectors_ : int
        Number of distinct label vectors.
    scale_ : dict of str to bool
        Which views were standardized.
    losses_ : ndarray, shape (n_epochs,)
        Mean hinge over the triplets of each epoch, each before its step.
    view_names_ : tuple of str
        The views, in order.
    n_features_in_ : int
        Number of features of X, over all its views.

    See Also
    --------
    MLCCA : Learns from all pairs of rows instead of sampled triplets.

    References
    ----------
    .. [1] Wu, Wang and Huang, "Cross-modal Retrieval via Online Low-rank Similarity Learning",
       ICME 2017.
    .. [2] Wu, Wang and Huang, "Online Low-rank Similarity Function Learning with Adaptive Relative
       Margin for Cross-modal Retrieval", IEEE Transactions on Multimedia 2020.

    Examples
    --------
    >>> from mvcca import CMOLRS
    >>> from mvcca.datasets import load_digits_views
    >>> data = load_digits_views()
    >>> model = CMOLRS(5, random_state=0).fit(data.views, data.labels)
    >>> bool(model.losses_[-1] < model.losses_[0])
    True
    """

    retrieval_ranking = ("transform", "inner")
    requires = Requirements(views=(1, None), labels=True, host=True)
    automatic: ClassVar[Mapping[str, Any]] = {"learning_rate": 3.0, **STANDARDIZED}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [
            *MultiViewEstimator._parameter_constraints["n_components"],
            StrOptions({SEARCHED}),
        ],
        "learning_rate": [
            Interval(Real, 0, None, closed="neither"),
            StrOptions({SEARCHED, AUTOMATIC}),
        ],
        "scale": MultiViewEstimator._parameter_constraints["scale"],
        "n_epochs": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "n_triplets": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "cv_goal": MultiViewEstimator._parameter_constraints["cv_goal"],
    }

    def __init__(
        self,
        n_components: int | str | None = 2,
        *,
        learning_rate: float | str = AUTOMATIC,
        scale: bool | str | Mapping[str, bool] = AUTOMATIC,
        n_epochs: int = 10,
        batch_size: int = 32,
        n_triplets: int = 5,
        random_state: Any = None,
        cv_goal: Goal | None = None,
    ) -> None:
        self.n_components = n_components
        self.learning_rate = learning_rate
        self.scale = scale
        self.n_epochs = n_epochs
        self.batch_size = batch_size
        self.n_triplets = n_triplets
        self.random_state = random_state
        self.cv_goal = cv_goal

    def search_space(self, rows: Rows) -> Space:
        """Step sizes, and ranks up to the largest."""
        views, widths = rows.views, rows.views.widths.values()
        most = max(sum(widths) - max(widths), 1)
        ranks = (*(rank for rank in (10, 30) if rank < most), None)
        values = {"learning_rate": (0.3, 1.0, 3.0, 10.0), "n_components": ranks}
        return Space(values, n_folds=3, scales=views.names)

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the similarity from labelled views, paired or not.

        Parameters
        ----------
        X : Views, mapping, list of matrices, or matrix of shape (n_rows, n_features)
            The views. Their pairing is not used. A lone matrix is a single view, compared with
            itself.
        y : labels
            A class vector, indicator matrix, list of label sets or `Labels`, one per object; or a
            list or mapping with the labels of each view, whose heights may differ.
        sample_weight : array-like of int, shape (n_objects,), optional
            How often each object counts: its rows are repeated.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If labels are missing, all the same or real-valued, no query has rows with and without
            a label in common, a view holds NaN, infinity or no variance, or weights are not whole
            numbers.
        """
        self._validate_params()
        if searched(self):
            return fit_searched(self, X, y, sample_weight)
        opened = open_repeated(self, X, y, sample_weight)
        views, labels = opened.views.in_memory(), opened.labels
        learned = with_units(self, Rows(views)).standardized()
        exponents = exponents_of(learned.views)
        views = scaled(learned.views, exponents)
        check_labels(labels)
        if not labels.distinct.are_sets:
            raise ValueError(
                "CMOLRS needs classes, label sets or an indicator matrix, to tell what has a label "
                "in common; got real-valued label vectors. Threshold them."
            )
        rng = check_random_state(self.random_state)
        learning_rate = plain_value(self, "learning_rate", self.learning_rate)
        rows = {name: _Scaled.of(name, block) for name, block in views.items()}
        gallery = {name: _TripletSampler(labels[name], rows[name].radius()) for name in views.names}
        varies = np.concatenate([view.variance > 0 for view in rows.values()])
        sizes = [int(np.count_nonzero(view.variance)) for view in rows.values()]
        bound = sizes[0] if len(sizes) == 1 else sum(sizes) - max(sizes)
        rank = bound if self.n_components is None else min(bound, self.n_components)
        W = _LowRank.random(views.widths, rank, rng).within(varies)
        self.losses_ = np.empty(self.n_epochs)
        for epoch in range(self.n_epochs):
            step = learning_rate / np.sqrt(epoch + 1)
            try:
                with np.errstate(over="raise", invalid="raise"):
                    W, self.losses_[epoch] = self._epoch(W, step, rows, gallery, labels.codes, rng)
            except FloatingPointError as error:
                raise ValueError(
                    f"learning_rate={learning_rate:g} is too large: the similarity exceeds "
                    "the largest float. Lower it; 3 is usual."
                ) from error
        maps = Maps(
            weights={
                name: A / rows[name].unit * (rows[name].variance > 0)[:, None]
                for name, A in W.factors().items()
            },
            means={name: view.mean for name, view in rows.items()},
            eigenvalues=W.values,
            variances={name: view.variance for name, view in rows.items()},
            bound=bound,
        )
        maps = maps.checked(self.n_components).rescaled(exponents)
        self._keep(maps.lifted(learned.reading.bases))
        self.n_label_vectors_ = len(labels.distinct)
        return self

    def _epoch(
        self,
        W: _LowRank,
        step: float,
        rows: Mapping[str, _Scaled],
        gallery: Mapping[str, _TripletSampler],
        codes: Mapping[str, np.ndarray],
        rng: np.random.RandomState,
    ) -> tuple[_LowRank, float]:
        """The similarity after every row has been a query, and the mean loss of the triplets."""
        total, n_drawn = 0.0, 0
        for p, q, queries in self._batches(codes, rng):
            query, plus, minus = gallery[q].draw(codes[p][queries], self.n_triplets, rng)
            if not len(query):
                continue
            difference = rows[q].take(plus) - rows[q].take(minus)
            margin = gallery[q].margins(plus, minus, difference.lengths())
            x = rows[p].take(queries)
            losses, gradient = _losses_and_gradient(W, (p, q), x, query, difference, margin)
            W = W.stepped(gradient, step)
            total, n_drawn = total + losses.sum(), n_drawn + len(losses)
        if not n_drawn:
            raise ValueError(
                "The views have nothing in common: no row has rows with and without a label in "
                "common with it in another view. Check that labels mean the same in all views."
            )
        return W, total / n_drawn

    def _batches(
        self, codes: Mapping[str, np.ndarray], rng: np.random.RandomState
    ) -> Iterator[tuple[str, str, np.ndarray]]:
        """Every row once as a query to every other view, in batches, in random order."""
        names = list(codes)
        batches = []
        for p, q in permutations(names, 2) if len(names) > 1 else [(names[0], names[0])]:
            order = rng.permutation(len(codes[p]))
            starts = range(0, len(order), self.batch_size)
            batches += [(p, q, order[start : start + self.batch_size]) for start in starts]
        return (batches[number] for number in rng.permutation(len(batches)))


@dataclass(frozen=True, eq=False)
class _Scaled:
    """Rows of a view; read centred and divided by their root mean square length."""

    block: Any
    mean: np.ndarray
    variance: np.ndarray

    @classmethod
    def of(cls, name: str, block: Any) -> _Scaled:
        return cls(block, *mean_and_variance(name, block))

    @property
    def unit(self) -> float:
        return float(np.sqrt(self.variance.sum()))

    def take(self, rows: Any) -> ShiftedRows:
        # Columns that do not vary are 0 exactly, in place of the rounding of the mean.
        scale = (self.variance > 0) / self.unit
        centred, left = as_block(self.block).take(rows).centred(self.mean)
        return ShiftedRows(centred.scaled(scale), left * scale)

    def radius(self) -> float:
        """Length of the longest row."""
        rows = range(0, self.block.shape[0], 1024)
        ends = [slice(start, start + 1024) for start in rows]
        return max(float(self.take(part).lengths().max()) for part in ends)


class _TripletSampler:
    """Rows of a view as positives and negatives of queries."""

    def __init__(self, labels: Labels, radius: float) -> None:
        size = 8 * labels.n_distinct * labels.n_labels
        self._dense = labels.dense() if size <= _DENSE_BYTES else None  # faster to look up
        self.codes = labels.codes
        self.radius = radius
        self._labels = csr_array(labels.vectors)
        self._rows = csr_array(labels.matrix.T)  # of each label

    def draw(
        self, codes: np.ndarray, n_each: int, rng: np.random.RandomState
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Positions of queries among these label vectors, and of positives and negatives of each.

        Queries with nothing to draw have no triplets.
        """
        query = np.repeat(np.arange(len(codes)), n_each)
        labels, has_label = _draw_from(self._labels, codes[query], rng)
        query, labels = query[has_label], labels[has_label]
        positive, is_there = _draw_from(self._rows, labels, rng)
        query, positive = query[is_there], positive[is_there]
        negative = rng.randint(len(self.codes), size=len(query))
        for _ in range(_N_DRAWS):
            wrong = np.flatnonzero(self._alike(codes[query], self.codes[negative]) > 0)
            if not len(wrong):
                break
            negative[wrong] = rng.randint(len(self.codes), size=len(wrong))
        apart = self._alike(codes[query], self.codes[negative]) == 0
        return query[apart], positive[apart], negative[apart]

    def margins(
        self, positive: np.ndarray, negative: np.ndarray, distances: np.ndarray
    ) -> np.ndarray:
        """(1 - cos(z⁺, z⁻)) ‖y⁺ - y⁻‖ / 2 radius."""
        plus, minus = self.codes[positive], self.codes[negative]
        lengths = np.sqrt(self._alike(plus, plus) * self._alike(minus, minus))
        cosines = np.divide(
            self._alike(plus, minus), lengths, out=np.zeros_like(lengths), where=lengths > 0
        )
        return (1 - cosines) * distances / (2 * self.radius)

    def _alike(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """How many labels two label vectors share."""
        if self._dense is not None:
            return np.einsum("ij,ij->i", self._dense[left], self._dense[right])
        both = self._labels[left].multiply(self._labels[right])
        return np.asarray(both.sum(axis=1), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class _LowRank:
    """W = U diag(values) Uᵀ over the features of all views, with UᵀU = I and values ≥ 0."""

    columns: Mapping[str, slice]
    basis: np.ndarray  # U, (D, k)
    values: np.ndarray  # (k,), decreasing

    @classmethod
    def random(cls, widths: Mapping[str, int], k: int, rng: np.random.RandomState) -> _LowRank:
        columns = column_slices(dict(widths))
        basis, _ = linalg.qr(rng.standard_normal((sum(widths.values()), k)), mode="economic")
        return cls(columns, basis, np.full(k, _START))

    def within(self, features: np.ndarray) -> _LowRank:
        """The same rank on some of the features; the weights of all others stay 0."""
        if features.all():
            return self
        basis = np.zeros_like(self.basis)
        basis[features], _ = linalg.qr(self.basis[features], mode="economic")
        return replace(self, basis=basis)

    def block(self, name: str) -> np.ndarray:
        return self.basis[self.columns[name]]

    def factors(self) -> dict[str, np.ndarray]:
        """A_p with W_pq = A_p A_qᵀ."""
        return {name: self.block(name) * np.sqrt(self.values) for name in self.columns}

    def stepped(self, gradient: np.ndarray, step: float) -> _LowRank:
        """The nearest matrix of the same rank to a step against the tangent part of the gradient.

        That part of G is GUUᵀ + UUᵀG - UUᵀGUUᵀ, all of it in the span of U and GU.
        """
        k = len(self.values)
        with threads_to_factorise(2 * k):
            span, triangle = linalg.qr(np.hstack([self.basis, gradient]), mode="economic")
            U, GU = triangle[:, :k], triangle[:, k:]
            sided = (GU - U @ (U.T @ GU) / 2) @ U.T
            values, vectors = linalg.eigh(U * self.values @ U.T - step * (sided + sided.T))
        top = slice(None, -k - 1, -1)
        return _LowRank(self.columns, span @ vectors[:, top], np.maximum(values[top], 0))


def _losses_and_gradient(
    W: _LowRank,
    views: tuple[str, str],
    x: ShiftedRows,
    query: np.ndarray,
    difference: ShiftedRows,
    margin: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Hinge of every triplet; and GU, (D, k), for the symmetric gradient G of their mean.

    `x` are the rows of a batch of queries; `query` is the position there of each triplet's x, and
    `difference` its y⁺ - y⁻.
    """
    p, q = views
    scores, change = x.times(W.block(p)), difference.times(W.block(q))
    gains = np.einsum("ij,ij->i", scores[query] * W.values, change)
    losses = np.maximum(0, margin - gains)
    counts = (losses > 0) / len(losses)
    gradient = np.zeros_like(W.basis)
    of_query = np.zeros_like(scores)
    np.add.at(of_query, query, counts[:, None] * change)
    gradient[W.columns[p]] -= x.cross(of_query) / 2
    gradient[W.columns[q]] -= difference.cross(counts[:, None] * scores[query]) / 2
    return losses, gradient


def _draw_from(
    sets: csr_array, chosen: np.ndarray, rng: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """A random member of each chosen row of a 0/1 matrix, and whether the row has any."""
    starts = sets.indptr[chosen]
    sizes = sets.indptr[chosen + 1] - starts
    places = starts + (rng.random_sample(len(chosen)) * sizes).astype(starts.dtype)
    some = sizes > 0
    return sets.indices[np.where(some, places, 0)], some
