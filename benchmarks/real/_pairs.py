"""Two views each of real objects, in memory and ready to compare, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.pipeline import make_pipeline

from mvcca import PerView, Views
from mvcca.datasets import load_digits_views

from ._coco import fetch_coco_captions
from ._sets import (
    fetch_mfeat,
    fetch_mnist_halves,
    fetch_multi30k,
    fetch_multi30k_encoders,
    fetch_scene,
    fetch_wikipedia,
)
from ._texts import fetch_emoji_names, fetch_glyphs, fetch_spelling_and_sound


class Pair(NamedTuple):
    """Two paired views, and classes, indicators of label sets, or no labels."""

    views: Views
    labels: np.ndarray | None


def _whole(data: Any, *names: str) -> Pair:
    labels = None if data.labels is None else np.asarray(data.labels)
    return Pair(data.views.select(names) if names else data.views, labels)


def _together(data: Any, *names: str) -> Pair:
    parts = [data[part] for part in ("train", "test")]
    views = Views({n: np.vstack([part.views[n] for part in parts]) for n in names})
    return Pair(views, np.concatenate([np.asarray(part.labels) for part in parts]))


def _captions() -> Pair:
    data = fetch_coco_captions()
    views = data["train"].views.select(("cap0", "cap1"))
    views = PerView(TruncatedSVD(100, random_state=0)).fit_transform(views)
    return Pair(views, data["train"].labels)


def _mnist() -> Pair:
    data = fetch_mnist_halves()["train"]
    return Pair(data.views[:5_000], data.labels[:5_000])


def _cancer() -> Pair:
    data = load_breast_cancer()
    means, worst = data.data[:, :10], data.data[:, 20:]
    return Pair(Views({"mean": means, "worst": worst}), data.target)


def _translations(*languages: str) -> Pair:
    views = fetch_multi30k()["train"].views.select(languages)[:3_000]
    words = make_pipeline(TfidfTransformer(), TruncatedSVD(200, random_state=0))
    return Pair(PerView(words).fit_transform(views), None)


def _encoders(*names: str) -> Pair:
    return Pair(fetch_multi30k_encoders()["train"].views[:3_000].select(names), None)


PAIRS: dict[str, Callable[[], Pair]] = {
    "digits": lambda: _whole(load_digits_views()),
    "cancer": _cancer,
    "mnist": _mnist,
    "mfeat-fou-kar": lambda: _whole(fetch_mfeat(), "fou", "kar"),
    "mfeat-mor-zer": lambda: _whole(fetch_mfeat(), "mor", "zer"),
    "mfeat-pix-fac": lambda: _whole(fetch_mfeat(), "pix", "fac"),
    "scene": lambda: _together(fetch_scene(), "L", "u"),
    "wikipedia": lambda: _together(fetch_wikipedia(), "sift", "lda"),
    "wikipedia-deep": lambda: _together(fetch_wikipedia(("deep", "w2v")), "deep", "w2v"),
    "captions": _captions,
    "translations": lambda: _translations("en", "de"),
    "encoders": lambda: _encoders("en_minilm", "de_e5"),
    "emoji": lambda: _whole(fetch_emoji_names()),
    "words": lambda: _whole(fetch_spelling_and_sound()),
    "glyphs": lambda: _whole(fetch_glyphs(), "sans", "name"),
    "fonts": lambda: _whole(fetch_glyphs(), "sans", "serif"),
}
