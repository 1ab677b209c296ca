"""How often halves of the rows select the same features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby
from numbers import Integral
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from sklearn.base import clone, is_classifier

from mvcca.inspection._rows import views_of
from mvcca.machine.axes import literal, tidy_axes
from mvcca.machine.result import Draw, Result
from mvcca.machine.tables import Table
from mvcca.model_selection.folds import splits_by_object
from mvcca.retrieval.ranking import fitted_steps
from mvcca.views import Labels, holds_views
from mvcca.views.typing import LabelsLike, MatrixLike, ViewsLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHOWN = 20  # bars of a view
_PERCENTILES = (5, 50, 95)

Selected: TypeAlias = dict[tuple[str, Any], float]  # weights of a component, by view and feature


class SelectedFeature(NamedTuple):
    """A feature that all rows or some halves select; see `SelectionStability`."""

    view: str
    component: int
    feature: Any
    weight: float
    frequency: float
    sign_agreement: float
    bound: float


@dataclass(frozen=True, eq=False)
class SelectionStability(Result):
    """How often halves of the rows select the features that all rows select, and others.

    ``to_frame`` has a row per feature that was selected at least once, the most frequent first in
    each view and component; components are numbered from 1. As a page (``save_page``) it is a
    report of a selection: which features, how stable, and how well they do on new rows.

    Attributes
    ----------
    features : tuple of SelectedFeature
        View, component, feature, its weight in the model of all rows (0 if that does not select
        it), the frequency with which halves select it, the share of these whose weight has the sign
        of most, and the bound, an upper limit of the expected number of features without any
        effect among those that are as frequent: q² / ((2π - 1) p) for the frequency π > 0.5, of p
        features of which halves select q on average [1]_. It assumes that such features are
        selected alike often. NaN for lower frequencies.
    scores : ndarray, shape (2 * n_pairs,)
        ``estimator.score`` of each half by the model of the other one: how well selections do on
        new rows. Models of all rows, twice as many, tend to do better.

    References
    ----------
    .. [1] Meinshausen and Bühlmann, "Stability selection", J. Royal Statistical Society B, 2010,
       theorem 1; complementary halves: Shah and Samworth, 2013.
    """

    features: tuple[SelectedFeature, ...]
    scores: np.ndarray

    def tables(self) -> list[Table]:
        """Return the table of features, and that of the scores on new rows."""
        rows = [own._replace(feature=str(own.feature)) for own in self.features]
        low, middle, high = np.percentile(self.scores, _PERCENTILES)
        return [
            Table.of("How often halves select each feature", SelectedFeature._fields, rows),
            Table.of(
                "Score of each half by the model of the other",
                ("measure", "median", "low", "high"),
                [("score", middle, low, high)],
                [f"Median, 5th and 95th percentile of {len(self.scores)} halves."],
                has_title=True,
            ),
        ]

    def sentences(self) -> list[str]:
        """Return how many features of each view are selected, and how many often."""
        found = []
        for (view, component), own in groupby(self.features, itemgetter(0, 1)):
            chosen = [one for one in own if one.weight]
            often = sum(one.frequency > 0.5 for one in chosen)
            found.append(
                f"{view}, component {component}: all rows select {len(chosen)} features, of which "
                f"more than half of the halves select {often}."
            )
        return found

    def figures(self) -> dict[str, Draw]:
        """Return the figures of frequencies, a bar for each feature of a view and component."""
        caption = "Filled: selected from all rows. Right of the line: by more than half."
        found = {}
        for (view, component), features in groupby(self.features, itemgetter(0, 1)):
            own = [*features][:_SHOWN]
            draw = partial(self._draw, view, own)
            found[f"{view}, component {component}"] = Draw(draw, 1 + 0.16 * len(own), caption)
        return found

    def _draw(self, view: str, own: Sequence[SelectedFeature], ax: Axes | None) -> Axes:
        ax, own = tidy_axes(ax, grid="x"), own[::-1]
        bars = ax.barh(range(len(own)), [one.frequency for one in own])
        for bar, one in zip(bars, own, strict=True):
            bar.set(fill=bool(one.weight), edgecolor=bar.get_facecolor())
        ax.axvline(0.5, color="black", linewidth=0.8)
        ax.set_yticks(range(len(own)), [literal(str(one.feature)) for one in own])
        ax.set(xlim=(0, 1), xlabel=f"Share of halves that select it: {literal(view)}")
        return ax


def selection_stability(
    estimator: Any,
    X: ViewsLike | MatrixLike,
    y: LabelsLike | MatrixLike | None = None,
    *,
    n_pairs: int = 25,
    random_state: Any = None,
) -> SelectionStability:
    """Count how often halves of the rows select each feature.

    Clones of the estimator are fitted to complementary halves: both halves of `n_pairs` random
    splits, which keep the shares of classes for a classifier. Use the result as a report. As a
    selector, frequencies lose features that a single fit finds: half of the rows find fewer.
    Numbers of features that are "cv" are chosen anew in each half; pass numbers to keep them.

    Parameters
    ----------
    estimator : estimator
        Any model that can be cloned and has ``selected_`` after `fit`, by view and component the
        names of features, such as `SparseCCA`, `SparseDiscriminant`, or a pipeline that ends with
        one.
    X : Views, mapping, list of matrices, or matrix
        Rows of the views.
    y : labels or matrix, optional
        What `fit` takes: labels, or the second view if X is a single matrix.
    n_pairs : int, default=25
        Number of splits into halves.
    random_state : int, RandomState or None, default=None
        Seed of the splits.

    Returns
    -------
    SelectionStability

    Raises
    ------
    TypeError
        If the fitted estimator has no ``selected_``.
    ValueError
        If `n_pairs` is not a positive integer, or there are fewer than 4 rows.

    See Also
    --------
    stability : Agreement of weights and loadings.

    Examples
    --------
    >>> from mvcca import RGCCA
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.inspection import selection_stability
    >>> views = load_digits_views().views[:300]
    >>> found = selection_stability(RGCCA(n_features=5), views, n_pairs=5, random_state=0)
    >>> first = found.features[0]
    >>> first.view, first.component, first.frequency
    ('left', 1, 0.7)
    """
    if not isinstance(n_pairs, Integral) or n_pairs < 1:
        raise ValueError(f"Expected n_pairs to be a whole number from 1 up, got {n_pairs!r}.")
    is_labelled = y is not None and (holds_views(X) or is_classifier(estimator))
    views = views_of(X, None if is_labelled else y)
    labels = Labels.of(y) if is_labelled else None
    is_lone = not holds_views(X) and (is_labelled or y is None)
    rows: Any = views["X"] if is_lone else views
    codes = labels.codes if labels is not None and is_classifier(estimator) else None
    every = np.arange(len(views))
    splits = [*splits_by_object(every, int(n_pairs), random_state, halves=True, codes=codes)]

    def of(part: Any) -> tuple[Any, Any]:
        return rows[part], None if labels is None else labels[part]

    (whole, widths), halves, scores = _selected(clone(estimator).fit(*of(every))), [], []
    for parts in splits:
        for own, other in (parts, parts[::-1]):
            model = clone(estimator).fit(*of(own))
            halves.append(_selected(model)[0])
            scores.append(model.score(*of(other)))
    features = _features(whole, halves, widths)
    return SelectionStability(tuple(features), np.array(scores, dtype=float))


def _selected(model: Any) -> tuple[list[Selected], dict[str, int]]:
    """Weights of the features that each component selects, and the number of all of a view."""
    steps = [step for step in fitted_steps(model) if hasattr(step, "selected_")]
    if not steps:
        raise TypeError(
            f"selection_stability takes estimators that have selected_ after fit, such as "
            f"SparseCCA; {type(model).__name__} has none."
        )
    weights = getattr(steps[-1], "sparse_weights_", None) or steps[-1].weights_
    found: list[Selected] = [{} for _ in next(iter(weights.values())).T]
    for view, components in steps[-1].selected_.items():
        for own, names, w in zip(found, components, weights[view].T, strict=True):
            keys = [(view, name) for name in np.asarray(names).tolist()]
            own |= zip(keys, w[np.flatnonzero(w)].tolist(), strict=True)
    return found, {view: len(W) for view, W in weights.items()}


def _features(
    whole: Sequence[Selected], halves: Sequence[Sequence[Selected]], widths: Mapping[str, int]
) -> list[SelectedFeature]:
    """The features of each view and component, the most frequent first."""
    rows, n = [], len(halves)
    for k, chosen in enumerate(whole):
        found = [half[k] if k < len(half) else {} for half in halves]  # some may have fewer
        keys = [*dict.fromkeys(chain(chosen, *found))]
        W = np.array([[own.get(key, 0.0) for key in keys] for own in (chosen, *found)])
        # The sign of a component of a half means nothing alone: it is turned to that of all rows.
        signs = np.sign(W[1:]) * np.where(W[1:] @ W[0] < 0, -1, 1)[:, None]
        counts = np.abs(signs).sum(axis=0).tolist()
        q = dict.fromkeys(widths, 0.0)
        for (view, _), count in zip(keys, counts, strict=True):
            q[view] += count / n
        table = zip(keys, W[0].tolist(), counts, np.abs(signs.sum(axis=0)).tolist(), strict=True)
        for (view, name), weight, count, total in table:
            frequency, agreement = count / n, (1 + total / count) / 2 if count else np.nan
            most = (2 * frequency - 1) * widths[view]
            bound = q[view] ** 2 / most if most > 0 else np.nan
            own = view, k + 1, name, weight, frequency, agreement, bound
            rows.append(SelectedFeature(*own))
    place = {view: i for i, view in enumerate(widths)}
    return sorted(rows, key=lambda own: (place[own[0]], own[1], -own.frequency, -abs(own.weight)))
