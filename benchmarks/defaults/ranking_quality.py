"""How well each ranking of `weighting` and `hubness` finds the right item, on all real data.

Five random splits into training, validation and test rows. For each ranking, the ridge is the one
with the best figure on the validation rows; nothing else is tuned. Recall at 1 of pairs, or mean
average precision by labels, of the test rows; mean of both directions, ± standard deviation over
the splits. Asterisks mark rankings below the cosine by more than the standard error of their
difference.

    MVCCA_DATA=../shared/data python -m benchmarks.defaults.ranking_quality [mnist captions ...]
        [--splits 5] [--hubs]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=[], metavar="CASE", help="words of their names")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--hubs", action="store_true", help="rankings corrected for hubs")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np
from scipy.sparse import vstack
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks._measure import machine
from benchmarks.real import (
    data_home,
    fetch_coco_captions,
    fetch_mfeat,
    fetch_mnist_halves,
    fetch_multi30k,
    fetch_scene,
    fetch_wikipedia,
)
from mvcca import CCA, PerView, Views, evaluate_retrieval
from mvcca.datasets import load_digits_views

RIDGES = (1e-3, 1e-2, 1e-1, 1.0)
BANK_ROWS = 5_000  # of the training rows, at most

# Options of `evaluate_retrieval`; with hubness, training rows are the bank.
RANKINGS: dict[str, dict[str, Any]] = {
    "cosine": {"weighting": None},
    "ρ": {"weighting": "correlation"},
    "ρ⁴": {"weighting": "correlation^4"},
    "likelihood": {"weighting": "likelihood"},
    "likelihood-cosine": {"weighting": "likelihood-cosine"},
    "profile-likelihood": {"weighting": "profile-likelihood"},
}
# With --hubs: two of them with and without CSLS.
HUB_RANKINGS: dict[str, dict[str, Any]] = {
    "cosine": RANKINGS["cosine"],
    "cosine, CSLS": {"weighting": None, "hubness": "csls"},
    "profile-likelihood": RANKINGS["profile-likelihood"],
    "profile-likelihood, CSLS": {"weighting": "profile-likelihood", "hubness": "csls"},
    "likelihood-cosine": RANKINGS["likelihood-cosine"],
    "likelihood-cosine, CSLS": {"weighting": "likelihood-cosine", "hubness": "csls"},
}


@dataclass
class Case:
    """Rows of one split, and how retrieval is measured."""

    train: Views
    valid: Views
    test: Views
    n_components: int
    measures: tuple[str, ...] = ("r@1",)
    labels: dict[str, Any] = field(default_factory=dict)  # of "valid" and "test"


def mnist(rng: np.random.Generator) -> Case:
    data = fetch_mnist_halves()
    sizes = {"train": 10_000, "valid": 3_000, "test": 3_000}
    parts = {}
    for name, size in sizes.items():
        views = data[name].views
        parts[name] = views[np.sort(rng.permutation(len(views))[:size])]
    return Case(**parts, n_components=50)


def texts(
    parts: Sequence[Views], sizes: Sequence[int], n: int, k: int, rng: np.random.Generator
) -> Case:
    """Latent semantic analysis of word counts, of all rows in a new split."""
    names = parts[0].names
    pooled = Views({name: vstack([part[name] for part in parts]).tocsr() for name in names})
    order = rng.permutation(len(pooled))
    ends = np.cumsum(sizes)
    train, valid, test = (pooled[np.sort(rows)] for rows in np.split(order[: ends[-1]], ends[:-1]))
    words = PerView(make_pipeline(TfidfTransformer(), TruncatedSVD(n, random_state=0)))
    return Case(words.fit_transform(train), words.transform(valid), words.transform(test), k)


def multi30k(language: str, k: int) -> Callable[[np.random.Generator], Case]:
    def case(rng: np.random.Generator) -> Case:
        data = fetch_multi30k()
        parts = [data[part].views.select(("en", language)) for part in ("train", "valid", "test")]
        return texts(parts, (29_000, 1_014, 1_000), 300, k, rng)

    return case


def published(language: str, k: int) -> Callable[[np.random.Generator], Case]:
    """The published validation and test sentences, with 25,000 of the training sentences."""

    def case(rng: np.random.Generator) -> Case:
        data = fetch_multi30k()
        parts = [data[part].views.select(("en", language)) for part in ("train", "valid", "test")]
        rows = np.sort(rng.permutation(len(parts[0]))[:25_000])
        words = PerView(make_pipeline(TfidfTransformer(), TruncatedSVD(300, random_state=0)))
        train = words.fit_transform(parts[0][rows])
        return Case(train, words.transform(parts[1]), words.transform(parts[2]), k)

    return case


def captions(rng: np.random.Generator) -> Case:
    data = fetch_coco_captions()
    parts = [data[part].views.select(("cap0", "cap1")) for part in ("train", "test")]
    return texts(parts, (3_500, 500, 1_000), 200, 150, rng)


def encoders(n_pairs: int) -> Callable[[np.random.Generator], Case]:
    def case(rng: np.random.Generator) -> Case:
        with np.load(data_home() / "multi30k_encoders.npz") as stored:
            part = stored["part"]
            blocks = {n: stored[n] * stored[f"{n}_scale"] for n in ("en_minilm", "de_e5")}
        views = Views(blocks)
        train = rng.permutation(np.flatnonzero(part == 0))[:n_pairs]
        rows = [np.sort(train), np.flatnonzero(part == 1), np.flatnonzero(part == 2)]
        return Case(*(views[r] for r in rows), n_components=200)

    return case


def standardized(parts: Sequence[Views]) -> list[Views]:
    scale = PerView(StandardScaler()).fit(parts[0])
    return [scale.transform(part) for part in parts]


def labelled(
    views: Views, labels: Any, sizes: Sequence[int], k: int, rng: np.random.Generator
) -> Case:
    """Standardized views in a new split, with both measures."""
    ends = np.cumsum(sizes)
    rows = [np.sort(r) for r in np.split(rng.permutation(len(views))[: ends[-1]], ends[:-1])]
    labels = np.asarray(labels)
    of_parts = {"valid": labels[rows[1]], "test": labels[rows[2]]}
    parts = standardized([views[r] for r in rows])
    return Case(*parts, n_components=k, measures=("map", "r@1"), labels=of_parts)


def pooled(data: Any, names: tuple[str, ...]) -> tuple[Views, np.ndarray]:
    blocks = {n: np.vstack([data[p].views[n] for p in ("train", "test")]) for n in names}
    return Views(blocks), np.concatenate([np.asarray(data[p].labels) for p in ("train", "test")])


def wikipedia(rng: np.random.Generator) -> Case:
    names = ("deep", "w2v")
    return labelled(*pooled(fetch_wikipedia(names), names), (1_673, 500, 693), 40, rng)


def scene(rng: np.random.Generator) -> Case:
    return labelled(*pooled(fetch_scene(), ("u", "v")), (969, 242, 1_196), 60, rng)


def mfeat(*names: str, k: int) -> Callable[[np.random.Generator], Case]:
    def case(rng: np.random.Generator) -> Case:
        data = fetch_mfeat()
        return labelled(data.views.select(names), data.labels, (1_200, 300, 500), k, rng)

    return case


def digits(rng: np.random.Generator) -> Case:
    data = load_digits_views()
    return labelled(data.views, data.labels, (1_000, 300, 497), 20, rng)


CASES: dict[str, Callable[[np.random.Generator], Case]] = {
    "MNIST halves": mnist,
    "Multi30k en-de": multi30k("de", 200),
    "Multi30k en-cs": multi30k("cs", 300),
    "Multi30k en-de, published test": published("de", 200),
    "Multi30k en-cs, published test": published("cs", 300),
    "captions 0-1": captions,
    "MiniLM-e5, 1,000 pairs": encoders(1_000),
    "MiniLM-e5, 10,000 pairs": encoders(10_000),
    "Wikipedia": wikipedia,
    "scene u-v": scene,
    "mfeat fou-kar": mfeat("fou", "kar", k=40),
    "mfeat zer-mor": mfeat("zer", "mor", k=6),
    "digits": digits,
}


def figures(
    case: Case, rankings: dict[str, dict[str, Any]], rng: np.random.Generator
) -> dict[tuple[str, str], float]:
    """Test figure of each measure and ranking, with the ridge chosen on the validation rows."""
    bank = case.train[np.sort(rng.permutation(len(case.train))[:BANK_ROWS])]
    best: dict[tuple[str, str], tuple[float, float]] = {}
    for reg in RIDGES:
        model = CCA(case.n_components, reg=reg).fit(case.train)
        for name, options in rankings.items():
            options = {"estimator": model, "measures": list(case.measures), **options}
            if "hubness" in options:
                options["bank"] = bank
            labels = case.labels.get("valid")
            found = evaluate_retrieval(case.valid, labels, **options).mean()
            better = [m for m in case.measures if found[m] > best.get((m, name), (-np.inf, 0.0))[0]]
            if better:
                test = evaluate_retrieval(case.test, case.labels.get("test"), **options).mean()
                best.update({(m, name): (found[m], test[m]) for m in better})
    return {key: test for key, (_, test) in best.items()}


def main(options: argparse.Namespace) -> None:
    rankings = HUB_RANKINGS if options.hubs else RANKINGS
    words = [word.lower() for word in options.cases]
    print(machine(1), "\n")
    print(f"| data | measure | {' | '.join(rankings)} | seconds |")
    print("|---" * (3 + len(rankings)) + "|", flush=True)
    warnings.simplefilter("ignore")
    for title, case_of in CASES.items():
        if words and not any(word in title.lower() for word in words):
            continue
        start = time.perf_counter()
        found = []
        for seed in range(options.splits):
            case = case_of(np.random.default_rng(seed))
            found.append(figures(case, rankings, np.random.default_rng(seed)))
        seconds = time.perf_counter() - start
        for measure in case.measures:
            values = {n: np.array([f[measure, n] for f in found]) for n in rankings}
            cells = []
            for value in values.values():
                difference = value - values["cosine"]
                error = np.std(difference, ddof=1) / np.sqrt(len(value)) if len(value) > 1 else 0
                mark = "*" if difference.mean() < -error else ""
                deviation = np.std(value, ddof=1) if len(value) > 1 else np.nan
                cells.append(f"{value.mean():.3f} ± {deviation:.3f}{mark}")
            print(f"| {title} | {measure} | {' | '.join(cells)} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main(OPTIONS)
