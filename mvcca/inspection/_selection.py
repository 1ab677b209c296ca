"""How often halves of the rows select the same features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral
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

# By view and component: weights of the features that are selected, and of how many these are.
Selected: TypeAlias = Mapping[tuple[str, int], tuple[dict[Any, float], int]]


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
        for (view, component), own in self._by_component().items():
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
        return {
            f"{view}, component {component}": Draw(
                partial(self._draw, view, own[:_SHOWN]), 1 + 0.16 * min(_SHOWN, len(own)), caption
            )
            for (view, component), own in self._by_component().items()
        }

    def _by_component(self) -> dict[tuple[str, int], list[SelectedFeature]]:
        found: dict[tuple[str, int], list[SelectedFeature]] = {}
        for one in self.features:
            found.setdefault((one.view, one.component), []).append(one)
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
    if len(views) < 4:
        raise ValueError(f"Halves need 4 rows or more, got {len(views)}.")
    labels = Labels.of(y) if is_labelled else None
    is_lone = not holds_views(X) and (is_labelled or y is None)
    rows: Any = views["X"] if is_lone else views
    codes = labels.codes if labels is not None and is_classifier(estimator) else None
    every = np.arange(len(views))
    splits = splits_by_object(every, int(n_pairs), random_state, halves=True, codes=codes)

    def fitted(part: Any) -> Any:
        return clone(estimator).fit(rows[part], None if labels is None else labels[part])

    whole = _selected(fitted(every))
    halves, scores = [], []
    for parts in splits:
        for own, other in (parts, parts[::-1]):
            model = fitted(own)
            halves.append(_selected(model))
            scores.append(model.score(rows[other], None if labels is None else labels[other]))
    return SelectionStability(tuple(_features(whole, halves)), np.array(scores, dtype=float))


def _selected(model: Any) -> Selected:
    """What a fitted model selects, by view and component, numbered from 1."""
    steps = [step for step in fitted_steps(model) if hasattr(step, "selected_")]
    if not steps:
        raise TypeError(
            f"selection_stability takes estimators that have selected_ after fit, such as "
            f"SparseCCA; {type(model).__name__} has none."
        )
    weights, found = getattr(steps[-1], "sparse_weights_", None) or steps[-1].weights_, {}
    for view, components in steps[-1].selected_.items():
        for k, names in enumerate(components):
            W = weights[view][:, k]
            own = dict(zip(np.asarray(names).tolist(), W[np.flatnonzero(W)].tolist(), strict=True))
            found[view, k + 1] = own, len(W)
    return found


def _features(whole: Selected, halves: Sequence[Selected]) -> Iterator[SelectedFeature]:
    """The features of each view and component, the most frequent first."""
    for (view, component), (chosen, p) in whole.items():
        signs: dict[Any, list[float]] = {name: [] for name in chosen}
        for half in halves:  # which may support fewer components
            sign = _sign(whole, half, component)
            for name, weight in half.get((view, component), ({}, p))[0].items():
                signs.setdefault(name, []).append(sign * np.sign(weight))
        q, rows = sum(map(len, signs.values())) / len(halves), []
        for name, found in signs.items():
            frequency = len(found) / len(halves)
            agreement = (1 + abs(float(np.mean(found)))) / 2 if found else np.nan
            bound = q**2 / ((2 * frequency - 1) * p) if frequency > 0.5 else np.nan
            weight = chosen.get(name, 0.0)
            rows.append(SelectedFeature(view, component, name, weight, frequency, agreement, bound))
        yield from sorted(rows, key=lambda row: (-row.frequency, -abs(row.weight)))


def _sign(whole: Selected, half: Selected, component: int) -> float:
    """1 or -1 for a component of a half, whose sign means nothing alone: as in all rows."""
    shared = [
        weight * whole[key][0].get(name, 0.0)
        for key, (own, _) in half.items()
        if key[1] == component and key in whole
        for name, weight in own.items()
    ]
    return -1.0 if sum(shared) < 0 else 1.0
