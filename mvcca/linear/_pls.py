"""Partial least squares: directions of maximal covariance, where CCA maximizes correlation.

The three algorithms differ in how a component is removed before the next one is found. They work on
covariance matrices only, so that rows are read once. Where these are large, singular vectors are
found by products of the rows with a few vectors instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from scipy import linalg
from sklearn.utils import RegressorTags
from sklearn.utils._param_validation import StrOptions

from mvcca.linear._cca import CCA
from mvcca.linear._rescaled import RescaledEstimator
from mvcca.linear._two_matrices import TwoMatrixEstimator
from mvcca.machine.lapack import top_singular
from mvcca.machine.memory import WIDE
from mvcca.machine.threads import threads_to_factorise
from mvcca.machine.warnings import warn
from mvcca.model_selection import Space
from mvcca.model_selection.goals import Goal
from mvcca.model_selection.spaces import SEARCHED
from mvcca.problem import Estimate, Maps, Rows, climb
from mvcca.problem.centred_rows import CentredRows
from mvcca.problem.cross_covariance import CrossCovariance
from mvcca.problem.directions import Directions, canonical_directions
from mvcca.problem.route import steps_of_products
from mvcca.problem.rows import check_variance
from mvcca.problem.whitener import Scaling
from mvcca.statistics import PairMoments, column_slices
from mvcca.views import Views
from mvcca.views.powers_of_two import Exponents, exponents_of, means_back, scaled


class PLS(TwoMatrixEstimator, RescaledEstimator):
    r"""Partial least squares, by one decomposition or by deflation.

    Use it to predict one view from the other, or if features far outnumber rows and no ridge can be
    chosen. For retrieval, `CCA` with a ridge finds more.

    Finds the directions of two views with the largest covariance [1]_,

    .. math:: \max \; w^⊤ Σ_{xy} v \quad \text{subject to} \quad w^⊤ w = v^⊤ v = 1,

    the leading singular vectors of the cross-covariance. Further components are

    - "svd": the next singular vectors; the weights of a view are orthonormal;
    - "canonical": the solution for the residuals of both views after regression on their own
      scores t = X̄w and u = Ȳv; the scores of a view are uncorrelated (mode A of [1]_);
    - "regression": the solution for the residuals of both views after regression on t, the scores
      of the first view, which predicts the second (PLS2 [2]_).

    Deflation operates on covariances. With σ = wᵀ Σ_xy v and p = Σ_xx w / wᵀΣ_xx w, the
    coefficients of X on t (and q those of Y on u), the residual covariances are

    .. math::

        & Σ_{xx} - (w^⊤ Σ_{xx} w) \, p p^⊤, \\
        & Σ_{xy} - σ p v^⊤ \quad \text{("regression")}, \\
        & Σ_{xy} - σ (p v^⊤ + w q^⊤ - p q^⊤) \quad \text{("canonical")}.

    All three therefore accept batches, sparse rows and sample weights. For more than two views,
    supported by "svd" only, the problem is

    .. math::

        \max \; ∑_{p≠q} w_p^⊤ Σ_{pq} w_q \quad \text{subject to} \quad ∑_p w_p^⊤ w_p = n_{views},

    whose solutions are the leading eigenvectors of the covariance matrix with zero diagonal blocks:
    the stacked weights of all views are orthogonal, those of a single view are not.

    Parameters
    ----------
    n_components : int, None or "cv", default=2
        Dimension of the shared space. None is all that the data support, "cv" chooses by 5 folds.
    algorithm : {"svd", "canonical", "regression"}, default="svd"
        scikit-learn's `PLSSVD`, `PLSCanonical` and `PLSRegression`. The last two predict a constant
        second view by its mean, with a warning, even if the first view is constant, too.
    scale : bool, default=False
        Divide columns by their standard deviations first, as scikit-learn does by default.
        Covariance depends on the units of the columns, correlation does not.
    center : bool, default=True
        Subtract the means of the training rows. False takes moments about zero, E[x yᵀ], in place
        of covariances, and `means_` are zero; columns are then scaled by their root mean squares.
    cv_goal : {"object", "class", "correlation"} or None, default=None
        What "cv" maximizes on held-out folds: the mean reciprocal rank of the row of the same
        object, mAP@50 over rows that share a label, or the mean correlation of the scores. None is
        "object"; a class goal needs labels as y.
    missing : {"error", "pairwise", "em"}, default="error"
        What to do with missing cells (NaN): refuse them, estimate each covariance from the rows
        that have both features, or estimate all by maximum likelihood. Holes of rows to project are
        filled with their expectation given the rest of the row. See Notes of `MVCCA`.

    Attributes
    ----------
    weights_ : dict of str to ndarray, shape (n_features, n_components_)
        Map centred rows to scores, scaling included. With deflation they are the *rotations*
        W (PᵀW)⁺ of the literature; for the second view under "regression" they are Q (QᵀQ)⁺, whose
        scores are the least squares solution T of Ȳ ≈ T Qᵀ.
        A dict: unpack it with ``weights_.values()``, since iterating over it gives names.
    means_ : dict of str to ndarray, shape (n_features,)
        Training means; zeros with ``center=False``.
    eigenvalues_ : ndarray, shape (n_components_,)
        σ, the singular values of the residuals of Σ_xy; for more than two views, eigenvalues.
    patterns_, own_patterns_ : dict of str to ndarray, shape (n_features, n_components_)
        Coefficients by which `predict` and `inverse_transform` work, for two views; see `CCA`.
    scales_ : dict of str to ndarray, shape (n_features,)
        Standard deviations of the columns; with ``scale=True`` only.
    x_weights_, y_weights_, x_loadings_, y_loadings_, x_rotations_, y_rotations_, coef_, intercept_
        As in :mod:`sklearn.cross_decomposition`, after a fit to two lone matrices; see
        :doc:`/migration`. With algorithm="regression" also ``x_scores_`` and ``y_scores_``, of the
        rows in memory that `fit` learned from.
    precisions_ : dict of str to ndarray, shape (n_features, n_features)
        Inverse covariance of each view's features, by which holes are filled; only if `missing`
        allows them.
    ranking_ : str
        The chosen ranking, as in `CCA`; with ``n_components="cv"`` only, as is the next one.
    cv_results_ : dict of str to array
        Values of all settings on the folds, as in scikit-learn's searches.
    n_components_ : int
        Number of components, fewer than requested if the data have no more.
    ranks_ : dict of str to int
        Number of features that vary, or the rank for a view with more features than rows; where
        these are only multiplied (see the notes), the rank that so many rows can have.
    view_names_ : tuple of str
        The views, in order.
    n_features_in_ : int
        Number of features of X, over all its views.

    See Also
    --------
    CFA : The same weights by another name.
    CCA : Correlation in place of covariance.

    Notes
    -----
    With algorithm="svd" and a number of components, `fit` needs no matrix over all features or over
    all rows if views are wide: it multiplies X̄ᵀ(ȲV) for a few vectors V, by ARPACK for sparse rows
    in memory, and in a block Krylov space for dense rows and rows in files, which are read twice in
    each of about 5 to 25 steps. It does so where that takes less time or memory than the
    covariance. Zeros of sparse rows stay zeros. Deflation, batches, partly paired views and
    ``n_components=None`` take the covariance, or n x n products of the rows if all views have more
    features than rows.

    References
    ----------
    .. [1] Wegelin, "A Survey of Partial Least Squares (PLS) Methods, with Emphasis on the Two-Block
       Case", 2000, section 4.1.
    .. [2] Rosipal and Krämer, "Overview and Recent Advances in Partial Least Squares", 2006.

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from mvcca import PLS
    >>> X, Y = load_linnerud(return_X_y=True)
    >>> model = PLS(n_components=2, algorithm="canonical", scale=True).fit(X, Y)
    >>> model.eigenvalues_.round(3)
    array([1.128, 0.102])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [
            *RescaledEstimator._parameter_constraints["n_components"],
            StrOptions({SEARCHED}),
        ],
        "algorithm": [StrOptions({"svd", "canonical", "regression"})],
        "scale": ["boolean"],
        "center": ["boolean"],
        "cv_goal": RescaledEstimator._parameter_constraints["cv_goal"],
        "missing": CCA._parameter_constraints["missing"],
    }

    def __init__(
        self,
        n_components: int | str | None = 2,
        *,
        algorithm: str = "svd",
        scale: bool = False,
        center: bool = True,
        cv_goal: Goal | None = None,
        missing: str = "error",
    ) -> None:
        self.n_components = n_components
        self.algorithm = algorithm
        self.scale = scale
        self.center = center
        self.cv_goal = cv_goal
        self.missing = missing

    if_units_are_unlike = "Set scale=True"

    def _depends_on_units(self, name: str) -> bool:
        return not self.scale

    def search_space(self, rows: Rows) -> Space:
        """Numbers of components."""
        if self.algorithm != "regression":
            return Space(has_prefixes=True)
        most = min(len(rows.views) - 1, next(iter(rows.views.widths.values())))
        return Space({"n_components": tuple(Space.numbers_of_components(most))})

    def _open_rows(self, X: Any, y: Any, sample_weight: Any, *, batch: bool = False) -> Rows:
        rows = super()._open_rows(X, y, sample_weight, batch=batch)
        if self.missing != "error":
            return rows
        return rows.read(
            # Deflation divides by the variances of scores, which need float64; the SVD does not.
            float32=self.algorithm == "svd",
            decompose=False,
            in_row_space=rows.views.is_paired or not self.scale,  # else pairs have own variances
            # Scaling moves the weights out of the span of the rows, into that of equilibrated rows.
            equilibrate=self.scale,
        )

    def _learn_rows(self, rows: Rows) -> None:
        if not self._learn_by_products(rows):
            climb(rows, self._learn_narrow_or_wide)
        if self._deflated_by("y") == "X" and rows.views.names == ("X", "y"):
            self._keep_training_scores(rows.views)

    def _keep_training_scores(self, views: Views) -> None:
        """Keep scikit-learn's ``x_scores_`` and ``y_scores_``, unless rows are in files."""
        if views.is_lazy or views.on_device:
            return
        views = scaled(views, {name: -own for name, own in self._exponents.items()})
        T, Q = self.maps_.project("X", views["X"]), self.y_loadings_
        # (ȳ - Σ_{j<k} t_j q_jᵀ) q_k / q_kᵀq_k, from the residuals that component k is found from;
        # squares of q_k could leave the range of floats.
        sizes = np.abs(Q).max(axis=0)
        sizes[sizes == 0] = 1  # of a constant y
        unit = Q / sizes
        to_loadings = {"y": unit / np.where(self._scale("y") > 0, self._scale("y"), 1)}
        of_y = replace(self.maps_.select(["y"]), weights=to_loadings).project("y", views["y"])
        residual = of_y - T @ np.triu(Q.T @ unit, 1)
        lengths = (unit**2).sum(axis=0)
        lengths[lengths == 0] = 1
        self._training = {"x_scores_": T, "y_scores_": residual / lengths / sizes}

    def _training_scores(self, name: str) -> np.ndarray:
        if hasattr(self, "_training"):
            return self._training[name]
        return super()._training_scores(name)

    def _deflated_by(self, name: str) -> str:
        """The view whose scores are regressed out of a view."""
        by_first = self.algorithm == "regression" and len(self.view_names_) == 2
        return self.view_names_[0] if by_first else name

    def _learn_narrow_or_wide(self, rows: Rows) -> None:
        all_wide = len(rows.reading.bases) == len(rows.views.names)
        if self.algorithm == "svd" and rows.views.is_paired and all_wide:
            self._learn_wide(rows)
        else:
            self._learn(rows, self.statistic_of(rows))

    @property
    def nests_components(self) -> bool:  # type: ignore[override]
        """A regression predicts by all of its components."""
        return self.algorithm != "regression"

    def _learn(self, rows: Rows, statistic: Any) -> None:
        about = Estimate.of(statistic, rows, center=self.center, columns=self._column_names)
        assert about.covariance is not None
        assert isinstance(about.covariance[0], np.ndarray)
        covariance, columns = about.covariance[0], column_slices(statistic.widths)
        within = {name: covariance[c, c] for name, c in columns.items()}
        if self._predicts_a_constant(within):
            self._learn_constant(rows, about, within)
            return
        for name, B in within.items():
            check_variance(name, B)
        pairs = list(combinations(columns, 2))
        between = {(p, q): covariance[columns[p], columns[q]] for p, q in pairs}
        of_rows = not isinstance(statistic, PairMoments)
        variances = {n: rows.variances(n, B, of_rows) for n, B in within.items()}
        self._solve(rows, about, variances, between, within, lambda name, W: within[name] @ W)

    def _predicts_a_constant(self, within: Mapping[str, np.ndarray]) -> bool:
        """Whether the second of two views never varies, which can be predicted: it is its mean."""
        if self.algorithm == "svd" or len(within) != 2:
            return False
        x, y = (np.diag(B) for B in within.values())
        return bool(np.isfinite(x).all() and (y == 0).all())

    def _learn_constant(
        self, rows: Rows, about: Estimate, within: Mapping[str, np.ndarray]
    ) -> None:
        """Keep components without weights, as scikit-learn does."""
        *_, y = within
        warn(f"View {y!r} is constant: all weights are 0, and its mean is what is predicted.")
        k, means = rows.n_components or 1, about.means
        weights = {name: np.zeros((len(mean), k)) for name, mean in means.items()}
        ranks = {name: int((np.diag(B) > 0).sum()) for name, B in within.items()}
        variances = {name: rows.variances(name, B, True) for name, B in within.items()}
        images = {name: np.zeros((len(mean), 2 * k)) for name, mean in means.items()}
        found = Directions(np.zeros(k), weights, k, ranks)
        self._learn_directions(rows, found, about, variances, images)

    def _learn_by_products(self, rows: Rows) -> bool:
        """Solve by products of the rows with few vectors, if that takes least time or memory."""
        is_posed = self.algorithm == "svd" and self.missing == "error"
        is_posed = is_posed and rows.views.is_paired and not rows.views.on_device
        is_narrow = sum(rows.views.widths.values()) < WIDE
        if not is_posed or rows.n_components is None or is_narrow:
            return False
        most_steps = steps_of_products(rows.views, rows.n_components)
        if most_steps == 0:
            return False
        centred = {
            name: CentredRows.of(X, rows.sample_weight, center=self.center)
            for name, X in rows.views.blocks.items()
        }
        variances = {name: own.variances for name, own in centred.items()}
        for name, variance in variances.items():
            check_variance(name, variance)
        units = {name: self._units(own, None, len(own)) for name, own in variances.items()}
        most = len(rows.views) - self.center
        ranks = {name: min(unit.rank, most) for name, unit in units.items()}
        covariance = CrossCovariance(centred, units)
        found = covariance.directions(rows.n_components, ranks, most_steps)
        if found is None:
            return False
        images = {}
        if found.bound and len(centred) == 2:
            scores = np.hstack([own.forward(found.weights[n]) for n, own in centred.items()])
            images = {name: own.backward(scores) for name, own in centred.items()}
        about = Estimate({name: own.mean for name, own in centred.items()})
        self._learn_directions(rows, found, about, variances, images)
        return True

    def _learn_wide(self, rows: Rows) -> None:
        """Solve views that are all in bases of their row spaces, by n x n products.

        For n rows of d and e features, the bases take n² (d + e) / 2 + n³ / 3 multiply-adds, the
        product and its Gram matrix 3/2 n³, and the leading eigenvectors 2/3 n³.
        """
        blocks = dict(rows.views.items())
        n_rows = len(rows.views) if rows.sample_weight is None else rows.sample_weight.sum()
        between = {}
        for p, q in combinations(blocks, 2):
            X = blocks[p] if rows.sample_weight is None else rows.sample_weight[:, None] * blocks[p]
            between[p, q] = X.T @ blocks[q]
            between[p, q] /= n_rows - 1 if self.center else n_rows
        variances = {
            name: rows.variances(name, block, of_rows=True) for name, block in blocks.items()
        }
        for name, variance in variances.items():
            check_variance(name, variance)
        about = Estimate({name: np.zeros(block.shape[1]) for name, block in blocks.items()})

        def image(name: str, W: np.ndarray) -> np.ndarray:
            scores = blocks[name] @ W
            if rows.sample_weight is not None:
                scores *= rows.sample_weight[:, None]
            return blocks[name].T @ scores / (n_rows - 1 if self.center else n_rows)

        self._solve(rows, about, variances, between, {}, image)

    def _solve(
        self,
        rows: Rows,
        about: Estimate,
        variances: Mapping[str, np.ndarray],
        between: Mapping[tuple[str, str], np.ndarray],
        within: Mapping[str, np.ndarray],
        image: Callable[[str, np.ndarray], np.ndarray],
    ) -> None:
        """Find the maps; `image` returns Σ_pp W of a view."""
        means = about.means
        units = {
            name: self._units(variances[name], rows.reading.bases.get(name), len(mean))
            for name, mean in means.items()
        }
        n_components = rows.n_components or sum(unit.rank for unit in units.values())
        with threads_to_factorise(max(map(len, means.values()))):
            if self.algorithm == "svd":
                found = canonical_directions(
                    between, units, n_components, rows.reading.products, is_joint=False
                )
            else:
                found = _by_deflation(
                    within, between, units, n_components, self.algorithm, rows.reading.products
                )
        images, W = {}, found.weights
        if found.bound and len(means) == 2:
            (((p, q), C),) = between.items()
            images = {
                p: np.hstack([image(p, W[p]), C @ W[q]]),
                q: np.hstack([C.T @ W[p], image(q, W[q])]),
            }
        self._learn_directions(rows, found, about, variances, images)

    def _learn_directions(
        self,
        rows: Rows,
        found: Directions,
        about: Estimate,
        variances: Mapping[str, np.ndarray],
        images: Mapping[str, np.ndarray],
    ) -> None:
        """Set the fitted attributes.

        `images` are the covariances of the columns of each of two views with scores of the first
        and of the second, (n_features, 2 k).
        """
        if self._exponents and not self.scale:  # signs depend on the relative sizes of views
            powers = {name: self._power(name) for name in variances}
            with np.errstate(under="ignore"):  # a view that decides no sign
                variances = {
                    name: np.ldexp(own, 2 * (powers[name] - max(powers.values())))
                    for name, own in variances.items()
                }
        maps = Maps(
            weights=found.weights,
            means={name: about.means[name] for name in found.weights},
            eigenvalues=found.values,
            ranks=found.ranks,
            variances=dict(variances),
            bound=found.bound,
            precisions=None if about.recovered is None else about.recovered.precisions,
        )
        for note in () if about.recovered is None else about.recovered.notes:
            warn(note)
        if images:
            (p, of_p), (q, of_q) = images.items()
            k = len(found.values)
            own = {p: of_p[:, :k], q: of_q[:, k:]}
            maps = maps.with_patterns(own, {p: of_p[:, k:], q: of_q[:, :k]})
        self._keep(maps.lifted(rows.reading.bases).checked(rows.n_components))

    def _keep(self, maps: Maps) -> None:
        if not self.scale and getattr(self, "_exponents", {}):  # weights have a length of 1
            super(RescaledEstimator, self)._keep(self._in_given_units(maps))
            return
        super()._keep(maps)
        if self.scale:
            assert maps.variances is not None
            self.scales_ = means_back(
                {name: np.sqrt(own) for name, own in maps.variances.items()}, self._exponents
            )

    def _exponents_of(self, views: Views) -> Exponents:
        if self.missing != "error":
            return {}
        if self.scale:
            return exponents_of(views, views.names)
        found = exponents_of(views)
        if found and len(views.names) > 2:  # their relative sizes matter
            largest = max(int(exponents.max()) for exponents in found.values())
            return {name: np.full(width, largest) for name, width in views.widths.items()}
        return found

    def _in_given_units(self, maps: Maps) -> Maps:
        """Maps of the features as the user gave them, from those of scaled views."""
        weights, (x, y) = dict(maps.weights), maps.names[:2]
        powers = {name: self._power(name) for name in maps.names}  # of their scores
        if self.algorithm == "regression":
            weights[y] = np.ldexp(weights[y], self._power(x) - self._power(y))
            powers[y] = self._power(x)
        if maps.patterns is not None and maps.own_patterns is not None:
            with np.errstate(over="ignore"):
                patterns = {
                    name: np.ldexp(maps.patterns[name], self._power(name) - powers[other])
                    for name, other in ((x, y), (y, x))
                }
                own_patterns = {
                    name: np.ldexp(maps.own_patterns[name], self._power(name) - powers[name])
                    for name in (x, y)
                }
            maps = replace(maps, patterns=patterns, own_patterns=own_patterns)
        assert maps.eigenvalues is not None
        with np.errstate(over="ignore"):
            eigenvalues = np.ldexp(maps.eigenvalues, self._power(x) + self._power(y))
        if not np.isfinite(eigenvalues).all():
            raise ValueError(
                f"Covariances of the views {x!r} and {y!r} exceed the largest float. Rescale them."
            )
        means = means_back(maps.means, self._exponents)
        return replace(maps, weights=weights, means=means, eigenvalues=eigenvalues)

    def _power(self, name: str) -> int:
        """Binary exponent of a view, where its columns have the same."""
        return int(self._exponents[name][0]) if name in self._exponents else 0

    def _units(self, variances: np.ndarray, basis: Any, rank: int) -> Scaling:
        """Weights with wᵀBw = 1; B is the identity, or the variances if columns are scaled.

        Constant columns get zero. The basis of a wide view is orthogonal under B.
        """
        diagonal = variances if self.scale else (variances > 0).astype(float)
        if basis is not None:
            diagonal = np.full(rank, diagonal @ basis.lift(np.eye(rank, 1))[:, 0] ** 2)
        return Scaling.of(diagonal)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.algorithm == "regression":
            tags.estimator_type = "regressor"
            tags.regressor_tags = RegressorTags(poor_score=True)
        return tags

    def _accepted(self, views: Views, reset: bool) -> Views:
        if self.algorithm != "svd" and len(views.names) > 2:
            raise ValueError(
                f"PLS with algorithm={self.algorithm!r} takes 2 views, got {len(views.names)}: "
                f'{list(views.names)}. Use algorithm="svd" for more.'
            )
        return super()._accepted(views, reset)


class CFA(PLS):
    r"""Cross-modal factor analysis: orthonormal maps that minimize distances within pairs.

    Finds the orthonormal maps of two views with the smallest distances within pairs [1]_,

    .. math::

        \min \; ‖\bar X A - \bar Y B‖_F^2 \quad \text{subject to} \quad A^⊤ A = B^⊤ B = I.

    Rotations preserve lengths, so that this maximizes tr(Aᵀ X̄ᵀȲ B): A and B are the leading
    `n_components` left and right singular vectors of X̄ᵀȲ, the weights of `PLS` with
    algorithm="svd". CFA differs in its interpretation: scores of both views are compared in one
    space, by distance or by cosine.

    Parameters
    ----------
    n_components : int, None or "cv", default=2
        Dimension of the shared space. None is all that the data support, "cv" chooses by 5 folds.
    cv_goal : {"object", "class", "correlation"} or None, default=None
        What "cv" maximizes on held-out folds: the mean reciprocal rank of the row of the same
        object, mAP@50 over rows that share a label, or the mean correlation of the scores. None is
        "object"; a class goal needs labels as y.

    Attributes
    ----------
    weights_ : dict of str to ndarray, shape (n_features, n_components_)
        A and B, by view name ("X" and "y" where two lone matrices were fitted); more views are
        joined as in `PLS`.
        A dict: unpack it with ``weights_.values()``, since iterating over it gives names.
    means_ : dict of str to ndarray, shape (n_features,)
        Training means.
    eigenvalues_ : ndarray, shape (n_components_,)
        Singular values of X̄ᵀȲ / (n - 1), decreasing.
    patterns_, own_patterns_ : dict of str to ndarray, shape (n_features, n_components_)
        As in `PLS`.
    ranking_ : str
        The chosen ranking, as in `CCA`; with ``n_components="cv"`` only, as is the next one.
    cv_results_ : dict of str to array
        Values of all settings on the folds, as in scikit-learn's searches.
    n_components_ : int
        Number of components, fewer than requested if the data have no more.
    ranks_ : dict of str to int
        As in `PLS`.
    view_names_ : tuple of str
        The views, in order.
    n_features_in_ : int
        Number of features of X, over all its views.

    See Also
    --------
    PLS : With deflation, and with scaled columns.

    References
    ----------
    .. [1] Li, Dimitrova, Li and Sethi, "Multimedia Content Processing through Cross-Modal
       Association", ACM Multimedia 2003, section 3.2.

    Examples
    --------
    >>> from mvcca import CFA
    >>> from mvcca.datasets import load_digits_views
    >>> views = load_digits_views().views
    >>> CFA(n_components=3).fit(views).weights_["left"].shape
    (32, 3)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        name: PLS._parameter_constraints[name] for name in ("n_components", "cv_goal")
    }
    if_units_are_unlike = "Standardize its columns"
    algorithm = "svd"  # parameters of PLS, not of CFA
    scale = False

    def __init__(self, n_components: int | str | None = 2, *, cv_goal: Goal | None = None) -> None:
        self.n_components = n_components
        self.cv_goal = cv_goal


def _by_deflation(
    within: Mapping[str, np.ndarray],
    between: Mapping[tuple[str, str], np.ndarray],
    units: Mapping[str, Scaling],
    n_components: int,
    algorithm: str,
    precision: np.dtype,
) -> Directions:
    """Leading singular vectors of a cross-covariance that is deflated after each component.

    Not by `mvcca.problem.ascent`: every component is exact and needs no starts, and one matrix is
    deflated in place, where covariances that are never held keep a factor for each component.
    """
    x, y = units
    C_xx, C_yy = (_in_units(within[name], units[name], units[name]) for name in units)
    C_xy = _in_units(between[x, y], units[x], units[y])
    ranks = {name: unit.rank for name, unit in units.items()}
    limit = ranks[x] if algorithm == "regression" else min(ranks.values())
    eps = np.finfo(precision).eps
    values: list[float] = []
    columns: list[tuple[np.ndarray, ...]] = []
    for _ in range(min(n_components, limit)):
        left, sizes, right = top_singular(C_xy, 1)
        sigma, w, v = sizes[0], left[:, 0], right[:, 0]
        if sigma <= 10 * max(ranks.values()) * eps * (values[0] if values else 0):
            break
        p, variance = _coefficients(C_xx, w)
        if algorithm == "regression":
            C_xy = C_xy - sigma * np.outer(p, v)
            v = q = sigma / variance * v  # coefficients of Y on t, used as weights
        else:
            q, variance_y = _coefficients(C_yy, v)
            C_xy = C_xy - sigma * (np.outer(p, v) + np.outer(w - p, q))
            C_yy = C_yy - variance_y * np.outer(q, q)
        C_xx = C_xx - variance * np.outer(p, p)
        values.append(sigma)
        columns.append((w, p, v, q))
    bound = len(values) if len(values) < n_components else limit
    if not values:
        return Directions(np.empty(0), {}, 0, ranks)
    W, P, V, Q = (np.column_stack(vectors) for vectors in zip(*columns, strict=True))
    weights = {x: units[x].lift(_rotations(W, P)), y: units[y].lift(_rotations(V, Q))}
    return Directions(np.array(values), weights, bound, ranks)


def _in_units(C: np.ndarray, of_rows: Scaling, of_columns: Scaling) -> np.ndarray:
    return of_columns.project(of_rows.project(C).T).T


def _coefficients(C: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, float]:
    """Coefficients of features with covariance C on the scores of w, and the scores' variance."""
    image = C @ w
    variance = float(w @ image)
    return image / variance, variance


def _rotations(W: np.ndarray, P: np.ndarray) -> np.ndarray:
    """W (PᵀW)⁺: weights on the original rows that give the scores of the deflated ones."""
    return W @ linalg.pinv(P.T @ W)
