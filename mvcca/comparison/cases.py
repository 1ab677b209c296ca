"""Example data sets, ready to compare methods on.

A data set is a function here, an entry of `EXAMPLES`, and a line of help in `mvcca.cli.options`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mvcca import datasets
from mvcca.comparison.data import Data, Presentation
from mvcca.comparison.labels import Labels
from mvcca.comparison.pipeline import compare
from mvcca.comparison.result import ComparisonResult
from mvcca.views import Views

_DIGIT = ("the same digit", "the same image")
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
    splits : list of (train, test) or None
        Published positions of training and test objects, for `cv`.
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
    splits: Any = None
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
            Other options of `mvcca.compare`. A published split takes the place of `cv`.

        Returns
        -------
        ComparisonResult
        """
        if self.splits is not None:
            options["cv"] = self.splits
        if not isinstance(methods, Mapping):
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
        assert words is not None
        assert self.labels is not None
        names = [f"dimension {j}" for j in range(words.shape[1])]
        sums = Labels(self.labels.vectors @ words, names)
        return replace(self, label_vectors=words, fit_labels=sums)


def example_data(name: str, **options: Any) -> list[Case]:
    """Load an example data set as cases for `mvcca.compare`.

    Parameters
    ----------
    name : {"digits", "mnist", "wikipedia", "coco-captions", "scene", "mfeat", "multi30k", \
"nutrimouse"}
        The data set; all but the digits are read from files, see `mvcca.datasets`.
    **options
        ``parts``: "halves" or "quadrants" of the digits; by default, one case of each. ``labels``:
        labels to learn from, "digit" or "segments"; of nutrimouse "diet" or "genotype". ``views``:
        names of at least two views, and ``data_home``: directory of the files; of other data sets.

    Returns
    -------
    list of Case

    Raises
    ------
    ValueError
        If the name is unknown, or an option has a value that the data set does not offer.
    OSError
        If a file is missing; the message says how to make it.

    Examples
    --------
    >>> from mvcca.comparison import example_data
    >>> (case,) = example_data("digits", parts="halves")
    >>> case.compare(["cca", "mlcca"], cv=0.2).best
    'MLCCA'
    """
    _check_known("data set", [name], EXAMPLES)
    load, offered = EXAMPLES[name]
    for option in options:
        if option not in offered:
            raise ValueError(f"{option} is not available with data set {name}")
    if len(options.get("views", "ab")) < 2:
        raise ValueError("views must name at least two views")
    return list(load(**options))


def _digits(parts: str | None = None, labels: str = "digit") -> Iterable[Case]:
    _check_known("labels", [labels], ("digit", "segments"))
    for layout in _LAYOUTS if parts is None else [parts]:
        data = datasets.load_digits_views(layout)
        views = data.views.replace({name: X / _MAX_PIXEL for name, X in data.views.items()})
        fit_labels = None
        if labels != "digit":
            fit_labels = Labels.of(datasets.load_digits_views(layout, labels).labels)
        shown = Presentation(
            f"handwritten digits, {layout}",
            *_DIGIT,
            layout=_LAYOUTS[layout],
            image_shapes=data.image_shapes,
        )
        yield Case(views, Labels.of(data.labels), shown, fit_labels, n_components=9)


def _mnist(data_home: Any = None) -> Iterable[Case]:
    data = datasets.fetch_mnist_halves(data_home=data_home)
    shown = Presentation(
        "MNIST, halves", *_DIGIT, layout=_LAYOUTS["halves"], image_shapes=data.image_shapes
    )
    yield _presplit(data, None, shown, 9)


def _wikipedia(views: Sequence[str] = ("sift", "lda"), data_home: Any = None) -> Iterable[Case]:
    data = datasets.fetch_wikipedia(views, data_home=data_home)
    right = ("an article of the same class", "the same article")
    yield _presplit(data, views, Presentation("Wikipedia articles", *right), 9)


def _coco_captions(
    views: Sequence[str] = ("cap0", "cap1"), data_home: Any = None
) -> Iterable[Case]:
    data = datasets.fetch_coco_captions(data_home=data_home)
    right = ("an object in common", "the same image")
    words = _words_of(data, dict.fromkeys(data.test.views.names, data.vocabulary))
    yield _presplit(data, views, Presentation("MS-COCO captions", *right, words=words), 32)


def _multi30k(views: Sequence[str] = ("en", "de"), data_home: Any = None) -> Iterable[Case]:
    data = datasets.fetch_multi30k(data_home=data_home)
    right = ("a label in common", "the same picture")
    words = _words_of(data, data.vocabularies)
    yield _presplit(data, views, Presentation("Multi30K captions", *right, words=words), 64)


def _scene(views: Sequence[str] | None = None, data_home: Any = None) -> Iterable[Case]:
    data = datasets.fetch_scene(data_home=data_home)
    right = ("a kind of scene in common", "the same photograph")
    yield _presplit(data, views, Presentation("scene photographs", *right), 5)


def _mfeat(views: Sequence[str] | None = None, data_home: Any = None) -> Iterable[Case]:
    data = datasets.fetch_mfeat(data_home=data_home)
    names = views or data.views.names
    _check_known("views", names, data.views.names)
    shown = Presentation("features of digits", *_DIGIT)
    yield Case(data.views.select(names), Labels.of(data.labels), shown, n_components=9)


def _nutrimouse(labels: str = "diet", data_home: Any = None) -> Iterable[Case]:
    _check_known("labels", [labels], ("diet", "genotype"))
    data = datasets.fetch_nutrimouse(labels, data_home=data_home)
    shown = Presentation("mice", f"the same {labels}", "the same mouse")
    yield Case(data.views, Labels.of(data.labels), shown, n_components=4)


# Function that loads, and its options.
EXAMPLES: dict[str, tuple[Callable[..., Iterable[Case]], tuple[str, ...]]] = {
    "digits": (_digits, ("parts", "labels")),
    "mnist": (_mnist, ("data_home",)),
    "wikipedia": (_wikipedia, ("data_home", "views")),
    "coco-captions": (_coco_captions, ("data_home", "views")),
    "scene": (_scene, ("data_home", "views")),
    "mfeat": (_mfeat, ("data_home", "views")),
    "multi30k": (_multi30k, ("data_home", "views")),
    "nutrimouse": (_nutrimouse, ("data_home", "labels")),
}


def _presplit(
    data: Any, views: Sequence[str] | None, shown: Presentation, n_components: int
) -> Case:
    """The case of data with a published training and test part."""
    names = views or data.train.views.names
    _check_known("views", names, data.train.views.names)
    parts = [data.train, data.test]
    labels = None
    if data.train.labels is not None:
        labels = Labels.of(*(part.labels for part in parts), names=data.get("label_names"))
    stacked = Views.concatenate([part.views.select(names) for part in parts])
    n_train = len(data.train.views)
    splits = [(np.arange(n_train), np.arange(n_train, len(stacked)))]
    return Case(stacked, labels, shown, splits=splits, n_components=n_components)


def _words_of(data: Any, vocabularies: Any) -> Callable[[str, int], str]:
    """Function from a view and a row to the words that it counts."""
    counts = Views.concatenate([data.train.views, data.test.views])
    return lambda name, row: " ".join(vocabularies[name][counts[name][[row]].indices])


def _check_known(what: str, names: Sequence[str], known: Iterable[str]) -> None:
    for name in names:
        if name not in known:
            raise ValueError(f"{what} must be one of {', '.join(known)}, got {name!r}")
