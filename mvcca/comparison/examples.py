"""Example queries and the items they retrieve, for visual inspection."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mvcca.comparison.data import Data
from mvcca.comparison.measurements import Measurements
from mvcca.retrieval.collection import Projected
from mvcca.retrieval.ranking import Ranking
from mvcca.retrieval.search import checked_rows, search
from mvcca.views import Views


@dataclass(frozen=True, eq=False)
class Shown:
    """Held-out rows of the first fold under the best method, and how they are ranked."""

    projected: Projected
    ranking: Ranking  # of projected rows

    @classmethod
    def of(cls, result: Measurements) -> Shown:
        """Fit the best method to the first training part."""
        fold, name, fits = result.folds[0], result.best, result.conditions_of_fits
        goal = result.first_goal
        choice = result.choice(name, goal)
        model = fits.model(result.candidate(name), fold.train, choice, goal=goal)
        ranking = Ranking.of(model)
        projected = ranking.project(result.data.views[fold.test])
        return cls(projected, replace(ranking, steps=()))

    @property
    def in_one_space(self) -> Views:
        """Rows to draw together; query and item vectors of the likelihood are not comparable."""
        return self.projected.scores if self.ranking.is_by_target else self.projected.rows

    @property
    def n_columns(self) -> int:
        """Width of the narrowest view in this space."""
        return min(self.in_one_space.widths.values())


@dataclass(frozen=True)
class Item:
    """A row of a view, as a query or as a retrieved item."""

    view: str
    row: int
    object: int  # position in the data
    labels: str  # their names
    is_right: bool = True  # whether it is relevant to the query
    is_same: bool = True  # whether it shows the query's object
    text: str = ""  # that a report shows
    image: str = ""  # that a report shows, a data URL


def examples(
    data: Data,
    objects: np.ndarray,
    shown: Shown,
    n_queries: int,
    n_items: int,
    seed: int,
) -> list[tuple[Item, list[Item]]]:
    """Queries of the first view, preferably with different labels, and their nearest items.

    Items are rows of the second view, best first. The rows shown are of some `objects` of the data,
    and those of the examples are rows of its views.
    """
    ranking, rows = shown.ranking, shown.projected.rows
    source, target, *_ = rows.names
    queries, gallery = (objects[rows.objects(name)] for name in (source, target))
    texts = data.label_texts or [""] * len(data.views)
    chosen = _varied([texts[i] for i in queries], n_queries, seed)
    n_items = min(n_items, len(gallery))
    asked, items = (checked_rows(rows[name], f"view {name!r}") for name in (source, target))
    ranked = ranking.gallery({target: items}, (source,), (target,))
    of_queries = ranking.queries({source: asked[chosen]}, (target,))
    _, found = search(ranked, ranked.queries(of_queries), n_items)
    shared = _shared_labels(data, queries[chosen], gallery)
    return [
        (
            _item(data, source, query, texts),
            [
                _item(
                    data,
                    target,
                    gallery[item],
                    texts,
                    is_right=bool(right[item]),
                    is_same=bool(query == gallery[item]),
                )
                for item in items
            ],
        )
        for query, items, right in zip(queries[chosen], found, shared, strict=True)
    ]


def _item(
    data: Data,
    view: str,
    place: int,
    texts: list[str],
    is_right: bool = True,
    is_same: bool = True,
) -> Item:
    """The row of an object in a view."""
    row = int(np.searchsorted(data.views.objects(view), place))
    return Item(view, row, int(place), texts[place], is_right, is_same)


def _varied(texts: list[str], n: int, seed: int) -> list[int]:
    """Random rows, preferably with labels that differ from those of the rows before."""
    order = np.random.default_rng(seed).permutation(len(texts)).tolist()
    seen: dict[str, int] = {}
    for row in order:
        seen.setdefault(texts[row], row)
    fresh = dict.fromkeys(row for text, row in seen.items() if text)  # with right items
    rows = [*fresh, *(row for row in order if row not in fresh)]
    return sorted(rows[:n], key=lambda row: texts[row])


def _shared_labels(data: Data, queries: np.ndarray, gallery: np.ndarray) -> np.ndarray:
    """Whether items share a label with queries or, without labels, show the same object."""
    labels = data.relevant_labels
    if labels is None:
        return queries[:, None] == gallery
    vectors = labels.matrix.astype(int)  # sums of uint8 would overflow
    return (vectors[queries] @ vectors[gallery].T).toarray() > 0
