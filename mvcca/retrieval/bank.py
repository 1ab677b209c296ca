"""The bank that a tuned model stores: projections of training rows, to correct for hubs."""

from __future__ import annotations

from typing import Any

import numpy as np

from mvcca.retrieval.ranking import Ranking, chosen_ranking, fitted_steps
from mvcca.retrieval.search import checked_rows
from mvcca.retrieval.similarity import InnerProduct
from mvcca.views import Views

BANK_ROWS = 5000  # of each view


def bank_rows(views: Views, random_state: int = 0) -> Views:
    """At most 5,000 random rows of each view.

    Objects that are seen in most views come first, so that rows of a joint query have a bank, too.
    """
    seen = views.seen
    order = np.random.default_rng(random_state).permutation(len(views))
    order = order[np.argsort(-seen[order].sum(axis=1), kind="stable")]
    drawn = np.zeros_like(seen)
    drawn[order] = seen[order] & (np.cumsum(seen[order], axis=0) <= BANK_ROWS)
    index = np.where(drawn, np.cumsum(seen, axis=0) - 1, -1)[drawn.any(axis=1)]
    return Views(dict(views.items()), index)


def bank_of(estimator: Any, views: Views, random_state: int = 0) -> Views:
    """Project random training rows for ``bank_``, the bank of a ranking that ends in "+csls".

    Parameters
    ----------
    estimator : fitted estimator
        With its ``ranking_``, which says what is projected: scores before any weighting.
    views : Views
        Training rows.
    random_state : int, default=0
        Seed of the draw.

    Returns
    -------
    Views
        Those of `bank_rows`, in host memory and in the precision of the rows.
    """
    steps = tuple(fitted_steps(estimator))
    method, _ = chosen_ranking(steps[-1])
    plain = Ranking(similarity=InnerProduct(), steps=steps, method=method)
    scores = plain.project(bank_rows(views, random_state)).scores.in_memory()
    return scores.replace({n: checked_rows(own, f"view {n!r}") for n, own in scores.items()})
