"""Data with all that a comparison takes of them, and handwritten digits as an example."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mvcca.comparison.data import Data, Presentation
from mvcca.comparison.pipeline import compare
from mvcca.comparison.result import ComparisonResult
from mvcca.datasets import load_digits_views
from mvcca.views import Labels, Views

_MAX_PIXEL = 16  # networks need pixels between 0 and 1
_LAYOUTS = {
    "halves": (("left", "right"),),
    "quadrants": (("top_left", "top_right"), ("bottom_left", "bottom_right")),
}


@dataclass(frozen=True, eq=False)
class Case:
    """Data to compare methods on, with all that `mvcca.compare` takes of them.

    Attributes
    ----------
    views : Views
    labels : Labels or None
        They define relevant items.
    presentation : Presentation
        How a report names and shows objects.
    fit_labels : Labels or None
        Labels to learn from, if they are others.
    label_vectors : mapping or array, or None
        Word vectors of the labels.
    n_components : int
        Number of components that suits the data.
    groups : array-like or None
        Groups of objects, as for `mvcca.compare`.
    """

    views: Views
    labels: Labels | None
    presentation: Presentation = field(default_factory=Presentation)
    fit_labels: Labels | None = None
    label_vectors: Any = None
    n_components: int = 10
    groups: Any = None

    def compare(self, methods: Any, **options: Any) -> ComparisonResult:
        """Compare methods on these data.

        Parameters
        ----------
        methods : mapping of str to estimator, or str or sequence of str
            As for `mvcca.compare`.
        **options
            Other options of `mvcca.compare`.

        Returns
        -------
        ComparisonResult
        """
        if not isinstance(methods, Mapping) and not options.get("tune", True):
            given = options.get("params") or {}
            options["params"] = {"n_components": self.n_components} | given
        data = {
            "fit_labels": self.fit_labels,
            "label_vectors": self.label_vectors,
            "groups": self.groups,
        }
        result = compare(methods, self.views, self.labels, **data, **options)
        return replace(result, presentation=self.presentation)

    def with_label_vectors(self, label_vectors: Any) -> Case:
        """The same data with word vectors to measure with, and their sums to learn from.

        Parameters
        ----------
        label_vectors : mapping or array
            As for `mvcca.compare`.

        Returns
        -------
        Case
        """
        words = Data.of(self.views, self.labels).word_vectors(label_vectors)
        assert self.labels is not None
        return replace(self, label_vectors=words, fit_labels=self.labels.word_sums(words))


def example_data(parts: str | None = None, labels: str = "digit") -> list[Case]:
    """Handwritten digits cut into views, as cases for `mvcca.compare`.

    Parameters
    ----------
    parts : {"halves", "quadrants"}, optional
        The views; by default, one case of each.
    labels : {"digit", "segments"}, default="digit"
        Labels to learn from; relevant items show the same digit. See
        `mvcca.datasets.load_digits_views`.

    Returns
    -------
    list of Case

    Raises
    ------
    ValueError
        If `parts` or `labels` is unknown.

    Examples
    --------
    >>> from mvcca.comparison.cases import example_data
    >>> (case,) = example_data("halves")
    >>> case.compare(["cca", "mlcca"], cv=0.2, tune=False).best
    'MLCCA'
    """
    return [_digits(layout, labels) for layout in (_LAYOUTS if parts is None else [parts])]


def _digits(parts: str, labels: str) -> Case:
    """One layout of the digits."""
    data = load_digits_views(parts)
    learned = load_digits_views(parts, labels).labels
    return Case(
        data.views.replace({name: X / _MAX_PIXEL for name, X in data.views.items()}),
        Labels.of(data.labels),
        Presentation(
            f"handwritten digits, {parts}",
            "the same digit",
            "the same image",
            layout=_LAYOUTS[parts],
            image_shapes=data.image_shapes,
        ),
        None if labels == "digit" else Labels.of(learned),
        n_components=9,
    )
