"""Subtract the mean of each subject from its rows, for repeated measurements."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mvcca.base.fitted_views import check_fitted_views
from mvcca.blocks import Block, grouping, to_host
from mvcca.blocks.checks import column_labels, few
from mvcca.compose._deconfound import LessExplained, dense_views
from mvcca.model_selection.groups import Groups
from mvcca.problem.confounds import least_left
from mvcca.views import Views, as_views
from mvcca.views.typing import ViewsLike


class WithinSubject(LessExplained):
    r"""Differences within subjects: rows less the mean of their subject.

    Use it before any method if subjects are measured several times, such as before and after a
    treatment, and differences between subjects are of no interest. Row i of subject s becomes

    .. math:: x_i - \frac{1}{n_s} \sum_{j \in s} x_j

    in every view: the within-subject part of a multilevel analysis [1]_. Nothing is learned from
    the training rows, so that subjects that were not fitted are transformed alike, by the mean of
    their own rows. Rows of a subject therefore belong together: cross-validate with
    ``GroupKFold(...)`` and ``groups=subjects``, so that no fold divides a subject. Missing cells
    (NaN) stay missing; the mean is that of the others.

    Parameters
    ----------
    subjects : str
        Name of the view with a single column, the subject of each row, as numbers or text.
    drop : bool, default=True
        Whether to leave the subjects out of the result.

    Attributes
    ----------
    view_names_ : tuple of str
        The fitted views, subjects included.
    n_features_in_ : int
        Total number of features of all views.

    See Also
    --------
    Deconfound : Removes what varies between rows by linear regression.

    References
    ----------
    .. [1] Liquet, Lê Cao, Hocini and Thiébaut, "A novel approach for biomarker selection and the
       integration of repeated measures experiments from two assays", BMC Bioinformatics 13:325,
       2012; ``multilevel`` of R's mixOmics.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from mvcca import CCA, Views
    >>> from mvcca.compose import WithinSubject
    >>> rng = np.random.default_rng(0)
    >>> subjects = np.repeat(np.arange(50), 4)
    >>> own = rng.normal(size=(50, 2))[subjects]  # the same in all rows of a subject
    >>> effect = rng.normal(size=(200, 1))
    >>> genes = 3 * own[:, :1] + effect + rng.normal(size=(200, 5))
    >>> lipids = 3 * own[:, 1:] + effect + rng.normal(size=(200, 4))
    >>> views = Views({"genes": genes, "lipids": lipids, "subject": subjects[:, None]})
    >>> model = make_pipeline(WithinSubject("subject"), CCA(1)).fit(views[:120])
    >>> round(model.score(views[120:]), 1)
    0.8
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"subjects": [str], "drop": ["boolean"]}

    def __init__(self, subjects: str, *, drop: bool = True) -> None:
        self.subjects = subjects
        self.drop = drop

    def fit(self, X: ViewsLike, y: Any = None) -> Self:
        """Note names and widths of the views; nothing else is learned.

        Parameters
        ----------
        X : Views, mapping or list of matrices
            Views of the same objects, the subjects among them. Objects may be missing from other
            views.
        y : None
            Ignored.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If there are no such subjects, one is missing, or has a single row in a view; if a view
            is sparse or holds infinity.
        """
        self._validate_params()
        views = as_views(X)
        self._codes_of(views)
        self._checked(views)
        self._note(views, {name: column_labels(block) for name, block in views.items()})
        return self

    def transform(self, X: ViewsLike) -> Views:
        """Rows of any of the fitted views less the means of their subjects.

        Parameters
        ----------
        X : Views, mapping or list of matrices
            A mapping or `Views` holds the subjects and any of the other fitted views, of any
            subjects; a list holds all of them, in order.

        Returns
        -------
        Views
            Dense differences, in memory; without the subjects if `drop`. `Views.removed` tells the
            next step the degrees of freedom that they lack.

        Raises
        ------
        ValueError
            As for `fit`, or if views or widths differ from the fitted ones.
        """
        check_is_fitted(self)
        given = as_views(X, self.view_names_)
        codes = self._codes_of(given)
        check_fitted_views(self, given)
        views, removed = self._checked(given), dict(given.removed)
        found: dict[str, Any] = {} if self.drop else dict(given.items())
        for name, block in views.blocks.items():
            subjects, own = np.unique(codes[views.objects(name)], return_inverse=True)
            rows, n_rows = _less_means(name, block, own, len(subjects)), float(len(own))
            names = self._columns[name] or [f"x{i}" for i in range(block.shape[1])]
            found[name] = self._frame(rows, np.array(names), given[name])
            before, n_before = given.removed.get(name, (0, 1))
            removed[name] = before * n_rows / n_before + len(subjects) - 1, n_rows
        left = given.replace(found)
        return Views.of(left.blocks, left.seen, left.ids, removed)

    def _codes_of(self, views: Views) -> np.ndarray:
        """The number of the subject of each object."""
        self._check_given("subjects", views)
        s, column = self.subjects, views[self.subjects]
        if column.shape[1] != 1 or len(views.objects(s)) < len(views):
            raise ValueError(
                f"Expected one column of subjects for all {len(views)} objects in view {s!r}, got "
                f"shape {tuple(column.shape)}."
            )
        return Groups.given_by(column, views, views.ids).codes

    def _checked(self, views: Views) -> Views:
        """The views other than the subjects, as blocks of numbers."""
        what = "differences within subjects"
        advice = "Reduce it first, as by PerView(TruncatedSVD(100))"
        return dense_views(self, views.without(self.subjects), what, advice)


def _less_means(name: str, block: Block, codes: np.ndarray, n_subjects: int) -> Any:
    """Rows less the means of their subjects, over the cells that are not missing."""
    alone = np.flatnonzero(np.bincount(codes) < 2)
    if len(alone):
        rows = np.flatnonzero(np.isin(codes, alone))
        raise ValueError(
            f"View {name!r} has a single row of {len(alone)} of {n_subjects} subjects (rows "
            f"{few(rows.tolist())}), of which nothing varies within the subject. Keep all rows of "
            "a subject together, as folds of GroupKFold do, and leave out subjects that were "
            "measured once."
        )
    dense = block.in_memory().dense()
    X = to_host(dense.matrix).astype(np.float64)
    seen = ~np.isnan(X)
    origin = np.where(seen.any(axis=0), X[seen.argmax(axis=0), np.arange(X.shape[1])], 0)
    X = X - origin  # sums about a row keep their digits
    add = grouping(codes, n_subjects, np.ones(len(codes)))
    counts = np.maximum(add @ seen, 1)
    spread = np.where(seen, np.abs(X), 0).max(axis=0)
    X -= (add @ np.where(seen, X, 0) / counts)[codes]
    # What varies between subjects only leaves rounding, which later steps would scale up.
    X[np.abs(X) <= least_left(spread, origin, block.dtype)] = 0
    return dense.placed(X)
