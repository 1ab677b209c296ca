"""`mvcca demo`: compare methods on example data.

A data set is a function here, an entry of `_LOADERS`, and a line of help in `mvcca.cli.options`.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterable
from typing import Any

from mvcca import datasets
from mvcca.cli.compare import run_cases
from mvcca.cli.comparison.case import Case, split
from mvcca.cli.errors import CommandError, UsageError
from mvcca.cli.labels import Labels
from mvcca.cli.methods import METHODS
from mvcca.views import Views

_DIGIT = ("the same digit", "the same image")
_MAX_PIXEL = 16  # networks need pixels between 0 and 1
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
    run_cases(cases, options, options.n_components or n_components)


def _digits(options: Namespace) -> Iterable[Case]:
    kinds = _kinds(options.labels, ("digit", "segments"))
    # Quadrants would take long with networks: four of them, and six pairs.
    is_deep = any(METHODS[name].is_deep for name in options.methods)
    for parts in [options.parts] if options.parts else ["halves"] if is_deep else _LAYOUTS:
        data = datasets.load_digits_views(parts)
        views = data.views.replace({name: X / _MAX_PIXEL for name, X in data.views.items()})
        train, test = split(views, 0.2, options.seed)
        learn = {
            kind: Labels.of(datasets.load_digits_views(parts, kind).labels)[train] for kind in kinds
        }
        digits = Labels.of(data.labels)
        yield Case(
            f"handwritten digits, {parts}",
            views[train],
            views[test],
            learn,
            digits[train],
            digits[test],
            *_DIGIT,
            layout=_LAYOUTS[parts],
            image_shapes=data.image_shapes,
        )


def _mnist(options: Namespace) -> Iterable[Case]:
    data = datasets.fetch_mnist_halves(data_home=options.data_home)
    drawing = {"layout": _LAYOUTS["halves"], "image_shapes": data.image_shapes}
    yield _presplit("MNIST, halves", data, "digit", *_DIGIT, **drawing)


def _wikipedia(options: Namespace) -> Iterable[Case]:
    views = options.views or ("sift", "lda")
    try:
        data = datasets.fetch_wikipedia(views, data_home=options.data_home)
    except ValueError as error:
        raise UsageError(f"--{error}") from error
    right = ("an article of the same class", "the same article")
    yield _presplit("Wikipedia articles", data, "class", *right)


def _coco_captions(options: Namespace) -> Iterable[Case]:
    data = datasets.fetch_coco_captions(data_home=options.data_home)
    views = _known(options.views or ("cap0", "cap1"), data.test.views.names)
    captions, words = data.test.views, data.vocabulary

    def text(name: str, row: int) -> str:
        return " ".join(words[captions[name][[row]].indices])

    right = ("an object in common", "the same image")
    yield _presplit("MS-COCO captions", data, "objects", *right, views=views, words=text)


def _multi30k(options: Namespace) -> Iterable[Case]:
    data = datasets.fetch_multi30k(data_home=options.data_home)
    views = _known(options.views or ("en", "de"), data.test.views.names)
    captions, vocabularies = data.test.views, data.vocabularies

    def text(name: str, row: int) -> str:
        return " ".join(vocabularies[name][captions[name][[row]].indices])

    right = ("a label in common", "the same picture")
    yield _presplit("Multi30K captions", data, "", *right, views=views, words=text)


def _scene(options: Namespace) -> Iterable[Case]:
    data = datasets.fetch_scene(data_home=options.data_home)
    views = _known(options.views or data.test.views.names, data.test.views.names)
    right = ("a kind of scene in common", "the same photograph")
    yield _presplit("scene photographs", data, "scene", *right, views=views)


def _mfeat(options: Namespace) -> Iterable[Case]:
    data = datasets.fetch_mfeat(data_home=options.data_home)
    views = data.views.select(_known(options.views or data.views.names, data.views.names))
    yield _whole("features of digits", views, data.labels, "digit", *_DIGIT, options.seed)


def _nutrimouse(options: Namespace) -> Iterable[Case]:
    (kind,) = _kinds(options.labels or "diet", ("diet", "genotype"))
    data = datasets.fetch_nutrimouse(kind, data_home=options.data_home)
    right = (f"the same {kind}", "the same mouse")
    yield _whole("mice", data.views, data.labels, kind, *right, options.seed)


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
    kind: str,
    like: str,
    same: str,
    views: tuple[str, ...] | None = None,
    **drawing: Any,
) -> Case:
    """The case of data with a published training and test part."""
    names = data.get("label_names")
    train, test = (
        None if part.labels is None else Labels.of(part.labels, names=names)
        for part in (data.train, data.test)
    )
    views = views or data.train.views.names
    return Case(
        title,
        data.train.views.select(views),
        data.test.views.select(views),
        {} if train is None else {kind: train},
        train,
        test,
        like,
        same,
        **drawing,
    )


def _whole(title: str, views: Views, y: Any, kind: str, like: str, same: str, seed: int) -> Case:
    """The case of data without a published split."""
    train, test = split(views, 0.2, seed)
    labels = Labels.of(y)
    known = labels[train]
    return Case(title, views[train], views[test], {kind: known}, known, labels[test], like, same)


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
