"""Views of texts as numbers: words for networks that take them, latent semantics for all others."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

from mvcca.comparison.data import text_views
from mvcca.compose import PerView, Tokens
from mvcca.views import Views

MIN_COUNT = 2
TEXT_COMPONENTS = 100


def text_step(
    views: Views,
    words: Collection[str] = (),
    names: Collection[str] | None = None,
    *,
    min_count: int = MIN_COUNT,
    text_components: int = TEXT_COMPONENTS,
) -> PerView:
    """A step of a pipeline that turns texts into numbers, and leaves other views as they are.

    Views of texts may be given by `names`; by default, those that hold texts.
    """
    # Views in `words` become sequences for networks by `Tokens`. TF-IDF and truncated SVD turn
    # other texts into `text_components` features, or as many as there are words.
    steps: dict[str, Any] = dict.fromkeys(views.names, "passthrough")
    for name in text_views(views) if names is None else names:
        if name in words:
            steps[name] = Tokens(min_count=min_count)
            continue
        n_words = _n_words(name, np.asarray(views[name])[:, 0], min_count)
        svd = TruncatedSVD(min(text_components, n_words), random_state=0)
        steps[name] = make_pipeline(TfidfVectorizer(min_df=min_count), svd)
    return PerView(steps)


def _n_words(name: str, texts: Any, min_count: int) -> int:
    try:
        return len(TfidfVectorizer(min_df=min_count).fit(texts).vocabulary_)
    except ValueError as error:
        raise ValueError(
            f"View {name!r}: no word is left, since none occurs in min_count={min_count} of "
            f"{len(texts):,} texts. Lower min_count."
        ) from error
