"""Vectors for other libraries: rows whose inner product ranks as the package does.

Weights and similarity are folded into the vectors, so that any vector store can search them.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from mvcca.machine.warnings import warn
from mvcca.retrieval.empty_rows import note_on
from mvcca.retrieval.ranking import Ranking, Weighting
from mvcca.retrieval.search import Gallery, checked_rows
from mvcca.retrieval.search.gallery import ChunkedRows
from mvcca.retrieval.similarity import Similarity
from mvcca.views import as_views, in_same_container
from mvcca.views.typing import ViewsLike

Role = Literal["query", "gallery"]


def retrieval_vectors(
    estimator: Any,
    views: ViewsLike,
    *,
    role: Role = "gallery",
    query: str | None = None,
    target: str | None = None,
    similarity: Similarity | None = None,
    weighting: Weighting | None = "auto",
) -> Any:
    """Project rows to vectors whose inner product ranks as `RetrievalIndex` does.

    A vector store that knows nothing of the model then finds the same items, if it searches by
    inner product ("ip", "dot"). Vectors of rankings by cosine, such as
    ``weighting="likelihood-cosine"``, have length 1, so that the store's "cosine" finds them, too.
    Euclidean distances take one more component: ‖q - g‖² orders a gallery as the inner product of
    (q, 1) and (g, -‖g‖²/2).

    Parameters
    ----------
    estimator : fitted estimator
        As for `RetrievalIndex`.
    views : Views, mapping or list
        Rows of any of the fitted views.
    role : {"gallery", "query"}, default="gallery"
        What the vectors are for. Vectors of both roles are equal, unless the ranking is by
        "euclidean" or ``weighting="likelihood"``, or corrects for hubs.
    query : str, optional
        View of the queries, which a gallery needs to know if the model corrects for hubs. It is
        compared with training rows of that view.
    target : str, optional
        View that the queries search, which the likelihood needs to know.
    similarity : {"cosine", "euclidean", "inner"}, optional
        Similarity of projected rows. By default that of the method: as for `RetrievalIndex`.
    weighting : str or None, default="auto"
        As for `RetrievalIndex`.

    Returns
    -------
    vectors : same container as `views`
        Matrices of shape (n_rows, n_components) in the precision of the scores; "euclidean",
        "likelihood" and the correction for hubs take some more components.

    Raises
    ------
    ValueError
        If the role is unknown, queries lack the target that they need, a gallery lacks the view of
        its queries, or a projected row is not finite.

    Examples
    --------
    >>> from mvcca import CCA, RetrievalIndex
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.retrieval import retrieval_vectors
    >>> views = load_digits_views().views
    >>> model = CCA(n_components=None, reg="cv").fit(views[:1200])
    >>> gallery, query = {"right": views["right"][1200:]}, {"left": views["left"][1200:1201]}
    >>> items = retrieval_vectors(model, gallery, query="left")["right"]
    >>> [asked] = retrieval_vectors(model, query, role="query", target="right")["left"]
    >>> best = (items @ asked).argsort()[::-1][:10]
    >>> _, found = RetrievalIndex(model).add(gallery).search(query, "right", k=10)
    >>> bool((found[0] == best).all())
    True
    """
    if role not in ("query", "gallery"):
        raise ValueError(f"Expected role to be 'query' or 'gallery', got {role!r}.")
    as_views(views, unpaired=True)  # refuses a single matrix, even if a pipeline could split it
    ranking = Ranking.of(estimator, similarity, weighting)
    projected = ranking.project(views, unpaired=True)
    as_compared = projected.rows.in_memory()
    rows = {name: checked_rows(block, f"view {name!r}") for name, block in as_compared.items()}
    if role == "gallery":
        vectors = {name: _of_items(ranking, name, own, query) for name, own in rows.items()}
        return in_same_container(views, as_compared, vectors)
    vectors = {name: _of_queries(ranking, name, own, target) for name, own in rows.items()}
    for name, are_empty in projected.empty.items():
        note = note_on(int(are_empty.sum()), len(are_empty))
        warn(f"View {name!r}: {note}: their vectors are 0")
        vectors[name][are_empty] = 0
    return in_same_container(views, as_compared, vectors)


def _of_items(ranking: Ranking, name: str, rows: np.ndarray, query: str | None) -> np.ndarray:
    """Item vectors of rows of a view."""
    vectors = ranking.similarity.items(rows)
    if ranking.hubs is None and not ranking.is_by_question:
        return vectors
    if query is None:
        raise ValueError(
            f"Ranked by {ranking}, vectors of a gallery depend on the view of the queries: pass it "
            "as query, or choose a weighting without '+csls' in the shared space."
        )
    gallery = Gallery(ranking.similarity, ChunkedRows((vectors,), len(vectors)))
    corrected = ranking.corrected(gallery, (query,), (name,))
    return np.concatenate(corrected.rows.parts)


def _of_queries(ranking: Ranking, name: str, rows: np.ndarray, target: str | None) -> np.ndarray:
    """Query vectors of rows of a view."""
    if ranking.is_by_target:
        if target is None:
            raise ValueError(
                f"Ranked by {ranking}, queries depend on the view that they search: pass it as "
                "target."
            )
        rows = ranking.queries({name: rows}, (target,))
    vectors = ranking.similarity.queries(rows)
    if ranking.hubs is None or ranking.is_by_question:
        return vectors
    return np.column_stack([vectors, np.ones(len(vectors), vectors.dtype)])  # times -r(g) / 2
