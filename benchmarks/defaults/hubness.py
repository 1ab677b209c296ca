"""Corrections for hubs in plain NumPy, on real data: CSLS and what else is published.

    MVCCA_DATA=../shared/data python -m benchmarks.defaults.hubness [digits wikipedia ...]
        [--splits 5]

CCA chooses its ridge by folds. Corrections compare with at most 2,000 training rows, and their
parameters are those with the best mean reciprocal rank in three folds of these rows. Figures of
test rows are means over both directions: of pairs, and by labels (mAP) where there are any. The
table has the mean over random splits, and for each correction the difference to CSLS ± twice its
standard error over the splits. An asterisk marks a correction that is ahead of both CSLS and no
correction by more than that.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, NamedTuple


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=[], metavar="CASE", help="words of their names")
    parser.add_argument("--splits", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np
from scipy.special import log_ndtr, logsumexp
from sklearn.model_selection import KFold

from benchmarks._measure import machine
from benchmarks.defaults.ranking_quality import CASES
from mvcca import CCA, Views
from mvcca.retrieval import retrieval_vectors

SETS = ("digits", "mfeat fou-kar", "Wikipedia", "MiniLM-e5, 1,000 pairs", "captions 0-1")
BANK_ROWS = 2_000
WEIGHTINGS = (None, "profile-likelihood")  # None is the cosine
MEASURES = ("R@1", "R@10", "MRR", "mAP")


class Scores(NamedTuple):
    """Similarities of queries, items, and rows of the bank of either view."""

    queries: np.ndarray  # (n_queries, n_items)
    of_items: np.ndarray  # (n_bank, n_items), to queries of the bank
    of_queries: np.ndarray  # (n_queries, n_bank), to items of the bank


# ---- corrections: scores from similarities and a parameter ---------------------------------------


def csls(s: Scores, n_neighbors: int) -> np.ndarray:
    nearest = np.partition(s.of_items, -n_neighbors, axis=0)[-n_neighbors:]
    return s.queries - nearest.mean(axis=0) / 2


def inverted_softmax(s: Scores, beta: float) -> np.ndarray:
    return s.queries - logsumexp(beta * s.of_items, axis=0) / beta


def qb_norm(s: Scores, parameters: tuple[float, int]) -> np.ndarray:
    """The inverted softmax of queries whose best item is one of the k best of a bank query."""
    beta, k = parameters
    active = np.zeros(s.queries.shape[1], dtype=bool)
    active[np.argpartition(-s.of_items, k - 1, axis=1)[:, :k]] = True
    is_hub = active[s.queries.argmax(axis=1)]
    return np.where(is_hub[:, None], inverted_softmax(s, beta), s.queries)


def mutual_proximity(s: Scores, _: None) -> np.ndarray:
    of_queries = (s.queries - s.of_queries.mean(1, keepdims=True)) / s.of_queries.std(
        axis=1, keepdims=True
    )
    of_items = (s.queries - s.of_items.mean(axis=0)) / s.of_items.std(axis=0)
    return np.asarray(log_ndtr(of_queries) + log_ndtr(of_items))


BETAS = (3.0, 10.0, 20.0, 30.0, 50.0, 100.0, 300.0)
CORRECTIONS: dict[str, tuple[Callable[[Scores, Any], np.ndarray], tuple[Any, ...]]] = {
    "none": (lambda s, _: s.queries, (None,)),
    "CSLS": (csls, (5, 10, 20, 50)),
    "inverted softmax": (inverted_softmax, BETAS),
    "QB-Norm": (qb_norm, tuple(product(BETAS, (1, 3)))),
    "mutual proximity": (mutual_proximity, (None,)),
}


# ---- measures ------------------------------------------------------------------------------------


def measured(found: np.ndarray, labels: np.ndarray | None) -> dict[str, float]:
    """Measures of the paired items, ties averaged, and of items with a label in common."""
    own = np.diag(found)[:, None]
    ranks = (found > own).sum(axis=1) + ((found == own).sum(axis=1) + 1) / 2
    figures = {"R@1": (ranks < 2).mean(), "R@10": (ranks < 11).mean(), "MRR": (1 / ranks).mean()}
    if labels is not None:
        alike = labels[:, None] == labels if labels.ndim == 1 else labels @ labels.T > 0
        hits = np.take_along_axis(alike, np.argsort(-found, axis=1), axis=1)
        precision = np.cumsum(hits, axis=1) / np.arange(1, len(hits) + 1)
        figures["mAP"] = np.mean((precision * hits).sum(axis=1) / hits.sum(axis=1).clip(1))
    return {name: float(value) for name, value in figures.items()}


def scores_of(model: CCA, test: Views, bank: Views, weighting: str | None) -> Iterator[Scores]:
    """Similarities in both directions."""
    for query, target in (test.names, test.names[::-1]):

        def vectors(rows: Views, name: str, role: Any, target: str = target) -> np.ndarray:
            own = Views({name: rows[name]})
            found = retrieval_vectors(model, own, role=role, target=target, weighting=weighting)
            return np.asarray(found[name], dtype=np.float64)

        asked, items = vectors(test, query, "query"), vectors(test, target, "gallery")
        of_bank = vectors(bank, query, "query"), vectors(bank, target, "gallery")
        yield Scores(asked @ items.T, of_bank[0] @ items.T, asked @ of_bank[1].T)


def chosen(train: Views, reg: float, weighting: str | None) -> dict[str, Any]:
    """The parameter of each correction with the best mean reciprocal rank in three folds."""
    found: dict[str, np.ndarray] = {n: np.zeros(len(ps)) for n, (_, ps) in CORRECTIONS.items()}
    for rows, held_out in KFold(3, shuffle=True, random_state=0).split(np.arange(len(train))):
        model = CCA(None, reg=reg).fit(train[rows])
        for scores in scores_of(model, train[held_out], train[rows], weighting):
            for name, (function, parameters) in CORRECTIONS.items():
                values = [measured(function(scores, own), None)["MRR"] for own in parameters]
                found[name] += values
    return {name: CORRECTIONS[name][1][values.argmax()] for name, values in found.items()}


def figures(case: Any, rng: np.random.Generator) -> dict[tuple[str, str, str], float]:
    """Test figures by ranking, correction and measure."""
    model = CCA(None, reg="cv").fit(case.train)
    bank = case.train[np.sort(rng.permutation(len(case.train))[:BANK_ROWS])]
    labels = case.labels.get("test")
    found = {}
    for weighting in WEIGHTINGS:
        parameters = chosen(bank, model.reg_, weighting)
        both = list(scores_of(model, case.test, bank, weighting))
        for name, (function, _) in CORRECTIONS.items():
            ways = [measured(function(scores, parameters[name]), labels) for scores in both]
            for measure in ways[0]:
                found[weighting or "cosine", name, measure] = np.mean([w[measure] for w in ways])
    return found


def gain(values: np.ndarray, others: np.ndarray) -> tuple[float, float]:
    """The mean difference over the splits, and twice its standard error."""
    differences = values - others
    return differences.mean(), 2 * np.std(differences, ddof=1) / np.sqrt(len(differences))


def cell(found: dict[str, np.ndarray], name: str) -> str:
    """The mean of a correction, and what it gains over CSLS."""
    values = found[name]
    if name == "CSLS":
        return f"{values.mean():.3f}"
    mean, error = gain(values, found["CSLS"])
    differences = [gain(values, found[other]) for other in ("none", "CSLS")]
    mark = "*" if all(own > noise for own, noise in differences) else ""
    return f"{values.mean():.3f} ({mean:+.3f} ± {error:.3f}){mark}"


def main(options: argparse.Namespace) -> None:
    words = [word.lower() for word in options.cases]
    print(machine(1), "\n")
    print(f"| data | ranking | measure | {' | '.join(CORRECTIONS)} |")
    print("|---" * (3 + len(CORRECTIONS)) + "|", flush=True)
    warnings.simplefilter("ignore")
    for title in SETS:
        if words and not any(word in title.lower() for word in words):
            continue
        cases = (CASES[title](np.random.default_rng(seed)) for seed in range(options.splits))
        found = [figures(case, np.random.default_rng(seed)) for seed, case in enumerate(cases)]
        for ranking, measure in product([w or "cosine" for w in WEIGHTINGS], MEASURES):
            if (ranking, "CSLS", measure) in found[0]:
                values = {n: np.array([f[ranking, n, measure] for f in found]) for n in CORRECTIONS}
                cells = [cell(values, name) for name in values]
                print(f"| {title} | {ranking} | {measure} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(OPTIONS)
