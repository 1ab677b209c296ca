"""`mvcca demo`: compare methods on example data.

A data set is a function here, an entry of `_LOADERS`, and a line of help in `mvcca.cli.options`.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from mvcca import datasets
from mvcca.cli.compare import Case, run_cases
from mvcca.cli.errors import CommandError, UsageError
from mvcca.comparison import Presentation
from mvcca.comparison.labels import Labels
from mvcca.comparison.registry import METHODS, selected
from mvcca.views import Views

_DIGIT = ("the same digit", "the same image")
_MAX_PIXEL = 16  # networks need pixels between 0 and 1
_NEXT_STEP = "mvcca compare --view NAME=FILE --view NAME=FILE --labels FILE"
_LAYOUTS = {
    "halves": (("left", "right"),),
    "quadrants": (("top_left", "top_right"), ("bottom_left", "bottom_right")),
}


def run(options: Namespace) -> None:
    """Run the command."""
    load, n_components, offered = _LOADERS[options.data]
    for name in ("parts", "labels", "views", "data_home"):
        if getattr(options, name) is not None and name not in offered:
            flag = "--" + name.replace("_", "-")
            raise UsageError(f"{flag} is not available with --data {options.data}")
    if options.views is not None and len(options.views) < 2:
        raise UsageError("--views must name at least two views")
    try:
        cases = list(load(options))
    except OSError as error:
        raise CommandError(str(error)) from error
    run_cases(cases, options, options.n_components or n_components, lambda _: _NEXT_STEP)


def _digits(options: Namespace) -> Iterable[Case]:
    (kind,) = _kinds(options.labels or "digit", ("digit", "segments"))
    # Quadrants would take long with networks: four of them, and six pairs.
    is_deep = any(METHODS[name].is_deep for name in selected(options.methods))
    for parts in [options.parts] if options.parts else ["halves"] if is_deep else _LAYOUTS:
        data = datasets.load_digits_views(parts)
        views = data.views.replace({name: X / _MAX_PIXEL for name, X in data.views.items()})
        fit_labels = None
        if kind != "digit":
            fit_labels = Labels.of(datasets.load_digits_views(parts, kind).labels)
        shown = Presentation(
            f"handwritten digits, {parts}",
            *_DIGIT,
            layout=_LAYOUTS[parts],
            image_shapes=data.image_shapes,
        )
        yield Case(views, Labels.of(data.labels), shown, fit_labels)


def _mnist(options: Namespace) -> Iterable[Case]:
    data = datasets.fetch_mnist_halves(data_home=options.data_home)
    drawing = {"layout": _LAYOUTS["halves"], "image_shapes": data.image_shapes}
    yield _presplit("MNIST, halves", data, *_DIGIT, **drawing)


def _wikipedia(options: Namespace) -> Iterable[Case]:
    views = options.views or ("sift", "lda")
    try:
        data = datasets.fetch_wikipedia(views, data_home=options.data_home)
    except ValueError as error:
        raise UsageError(f"--{error}") from error
    right = ("an article of the same class", "the same article")
    yield _presplit("Wikipedia articles", data, *right)


def _coco_captions(options: Namespace) -> Iterable[Case]:
    data = datasets.fetch_coco_captions(data_home=options.data_home)
    views = _known(options.views or ("cap0", "cap1"), data.test.views.names)
    words = data.vocabulary
    captions = Views.concatenate([data.train.views, data.test.views])

    def text(name: str, row: int) -> str:
        return " ".join(words[captions[name][[row]].indices])

    right = ("an object in common", "the same image")
    yield _presplit("MS-COCO captions", data, *right, views=views, words=text)


def _multi30k(options: Namespace) -> Iterable[Case]:
    data = datasets.fetch_multi30k(data_home=options.data_home)
    views = _known(options.views or ("en", "de"), data.test.views.names)
    captions = Views.concatenate([data.train.views, data.test.views])
    vocabularies = data.vocabularies

    def text(name: str, row: int) -> str:
        return " ".join(vocabularies[name][captions[name][[row]].indices])

    right = ("a label in common", "the same picture")
    yield _presplit("Multi30K captions", data, *right, views=views, words=text)


def _scene(options: Namespace) -> Iterable[Case]:
    data = datasets.fetch_scene(data_home=options.data_home)
    views = _known(options.views or data.test.views.names, data.test.views.names)
    right = ("a kind of scene in common", "the same photograph")
    yield _presplit("scene photographs", data, *right, views=views)


def _mfeat(options: Namespace) -> Iterable[Case]:
    data = datasets.fetch_mfeat(data_home=options.data_home)
    views = data.views.select(_known(options.views or data.views.names, data.views.names))
    yield Case(views, Labels.of(data.labels), Presentation("features of digits", *_DIGIT))


def _nutrimouse(options: Namespace) -> Iterable[Case]:
    (kind,) = _kinds(options.labels or "diet", ("diet", "genotype"))
    data = datasets.fetch_nutrimouse(kind, data_home=options.data_home)
    right = (f"the same {kind}", "the same mouse")
    yield Case(data.views, Labels.of(data.labels), Presentation("mice", *right))


Loader = Callable[[Namespace], Iterable[Case]]

# Function that loads, number of components, and options that apply.
_LOADERS: dict[str, tuple[Loader, int, set[str]]] = {
    "digits": (_digits, 9, {"parts", "labels"}),
    "mnist": (_mnist, 9, {"data_home"}),
    "wikipedia": (_wikipedia, 9, {"data_home", "views"}),
    "coco-captions": (_coco_captions, 32, {"data_home", "views"}),
    "scene": (_scene, 5, {"data_home", "views"}),
    "mfeat": (_mfeat, 9, {"data_home", "views"}),
    "multi30k": (_multi30k, 64, {"data_home", "views"}),
    "nutrimouse": (_nutrimouse, 4, {"data_home", "labels"}),
}


def _presplit(
    title: str,
    data: Any,
    like: str,
    same: str,
    views: tuple[str, ...] | None = None,
    **drawing: Any,
) -> Case:
    """The case of data with a published training and test part."""
    names = views or data.train.views.names
    parts = [data.train, data.test]
    labels = None
    if data.train.labels is not None:
        labels = Labels.of(*(part.labels for part in parts), names=data.get("label_names"))
    stacked = Views.concatenate([part.views.select(names) for part in parts])
    n_train = len(data.train.views)
    splits = [(np.arange(n_train), np.arange(n_train, len(stacked)))]
    return Case(stacked, labels, Presentation(title, like, same, **drawing), splits=splits)


def _kinds(chosen: str | None, known: tuple[str, ...]) -> tuple[str, ...]:
    if chosen is None:
        return known
    if chosen not in known:
        raise UsageError(f"--labels must be one of {', '.join(known)}, got {chosen!r}")
    return (chosen,)


def _known(names: tuple[str, ...], known: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if name not in known:
            raise UsageError(f"--views: no view {name!r}; the views are {', '.join(known)}")
    return names
