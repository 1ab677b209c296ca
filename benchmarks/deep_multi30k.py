"""Sentences of Multi30k find their translations: MSDS, autoencoders, and four languages at once.

    MVCCA_DATA=../shared/data python benchmarks/deep_multi30k.py [--four-way]
        [--methods ...] [--seeds 5] [--rows 29000] [--epochs 20] [--patience 2]

Trains on the first rows of the 29,000 training sentences, chooses the epoch by the mean reciprocal
rank of 1,014 validation sentences, and prints the recall at k of the 1,000 test sentences, as mean
and standard deviation over seeds. Two languages: German queries and English items, and back. With
--four-way: English, German, French and Czech, as the mean over the twelve directions. Features are
TF-IDF vectors reduced to 300 dimensions, or sequences of words, cut after 25, which get a
convolutional network. The linear methods are references, with t-tests of R@1 over seeds against
their figure. Needs multi30k.npz and multi30k_tokens.npz in the directory MVCCA_DATA.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass, field
from typing import Any


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--four-way", action="store_true")
    parser.add_argument("--methods", nargs="+", help="names of rows; by default all")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=29_000)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--patience", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np
import torch
from _arguments import names_in
from _measure import machine
from real import data_home, fetch_multi30k
from scipy.stats import ttest_1samp
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mvcca import CCA, MVCCA, PerView, Views, evaluate_retrieval
from mvcca.deep import DCCA, MSDS, CorrAE, CrossCorrAE, LearnedRanking, SoftHGR
from mvcca.deep.encoders import WCNN

_RANKS = (1, 2, 4, 10, 20, 40, 100, 200, 500)  # of the published tables
_MAX_WORDS = 25  # 99 % of the sentences are not longer


@dataclass(frozen=True)
class Method:
    """An estimator, its settings, and the languages that it reads as sequences of words."""

    estimator: type
    settings: dict[str, Any] = field(default_factory=dict)
    words: tuple[str, ...] = ()

    @property
    def is_linear(self) -> bool:
        return self.estimator in (CCA, MVCCA)

    def fit(self, train: Views, valid: Views, seed: int, training: dict[str, Any]) -> Any:
        """A model of the training rows; the validation rows choose its epoch."""
        if self.is_linear:
            return self.estimator(**self.settings).fit(train)
        settings = {"n_components": 300, "device": "cpu", "standardize": False}
        settings |= {**training, **self.settings}
        if len(self.words) > 1:  # MSDS has a network for one view of words
            torch.manual_seed(seed)
            settings["encoders"] = {
                name: torch.nn.Sequential(WCNN(), torch.nn.Linear(300, settings["n_components"]))
                for name in train.names
            }
        return self.estimator(random_state=seed, **settings).fit(train, X_val=valid)


_MSDS = {"query": "de", "optimizer": "adam", "weight_decay": 0.0}
_MORE = {"gamma": 10.0, "n_negatives": 50, **_MSDS}
_AUTOENCODER = {"hidden_layer_sizes": (512,), "optimizer": "rmsprop", "learning_rate": 1e-3}
TWO_WAY = {
    "CCA": Method(CCA, {"n_components": 200, "reg": 1e-2}),
    "MSDS-v1, published loss": Method(MSDS, _MSDS),
    "MSDS-v1, published loss, learning rate 1e-4": Method(MSDS, {"learning_rate": 1e-4, **_MSDS}),
    "MSDS-v1, γ = 10, 50 other items": Method(MSDS, _MORE),
    "MSDS-v2, published loss": Method(MSDS, {"tokens": "en", **_MSDS}, ("en",)),
    "MSDS-v2, γ = 10, 50 other items": Method(MSDS, {"tokens": "en", **_MORE}, ("en",)),
    "MSDS, words of both, γ = 10, 50 other items": Method(MSDS, _MORE, ("en", "de")),
    "Corr-AE": Method(CorrAE, {"correspondence": 0.95, **_AUTOENCODER}),
    "Cross-Corr-AE": Method(CrossCorrAE, {"correspondence": 0.5, **_AUTOENCODER}),
}
_FOUR = ("en", "de", "fr", "cs")
_DEEP = {"n_components": 100, "hidden_layer_sizes": (256,), "monitor": "valid_mrr"}
_RANKED = {"n_components": 100, "margin": 0.2, "batch_size": 500}
FOUR_WAY = {
    "MVCCA": Method(MVCCA, {"n_components": 200, "reg": 1e-2}),
    "DCCA": Method(DCCA, {"reg": 1e-2, **_DEEP}),
    "SoftHGR": Method(SoftHGR, _DEEP),
    "LearnedRanking": Method(LearnedRanking, {**_RANKED, **_DEEP}),
    "LearnedRanking, words": Method(LearnedRanking, _RANKED, _FOUR),
}


def sentences(languages: tuple[str, ...], n_rows: int) -> tuple[dict[str, Views], dict[str, Views]]:
    """Features and words of the languages, by part."""
    data = fetch_multi30k()
    to_features = PerView(
        make_pipeline(
            TfidfTransformer(sublinear_tf=True), TruncatedSVD(300, random_state=0), StandardScaler()
        )
    )
    parts = {name: data[name].views.select(languages) for name in ("train", "valid", "test")}
    parts["train"] = parts["train"][:n_rows]
    to_features.fit(parts["train"])
    features = {name: to_features.transform(views) for name, views in parts.items()}
    with np.load(data_home() / "multi30k_tokens.npz") as file:
        words = {
            name: Views(
                {n: padded(file[f"{n}_{key}_tokens"], file[f"{n}_{key}_length"]) for n in languages}
            )
            for name, key in (("train", "train"), ("valid", "val"), ("test", "test"))
        }
    words["train"] = words["train"][:n_rows]
    return features, words


def padded(tokens: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Sequences that are concatenated, as rows of `_MAX_WORDS` positions; 0 is padding."""
    rows = np.zeros((len(lengths), max(lengths.max(), _MAX_WORDS)), dtype=np.int32)
    rows[np.arange(rows.shape[1]) < lengths[:, None]] = tokens
    return rows[:, :_MAX_WORDS]


def measure(
    method: Method,
    parts: tuple[dict[str, Views], dict[str, Views]],
    seed: int,
    training: dict[str, Any],
) -> tuple[np.ndarray, int]:
    """Recall at each rank in each direction of the test rows, and the chosen epoch."""
    features, words = parts
    train, valid, test = (
        Views(
            {n: (words if n in method.words else features)[part][n] for n in features[part].names}
        )
        for part in ("train", "valid", "test")
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # more components than the rank, small batches
        model = method.fit(train, valid, seed, training)
    table = evaluate_retrieval(test, estimator=model, measures=[f"r@{k}" for k in _RANKS])
    figures = np.array([[row.values[f"r@{k}"] for k in _RANKS] for row in table])
    return figures, getattr(model, "best_epoch_", 0)


def main(options: argparse.Namespace) -> None:
    methods, languages = (FOUR_WAY, _FOUR) if options.four_way else (TWO_WAY, ("de", "en"))
    titles = ["mean of 12 directions"] if options.four_way else ["de to en", "en to de"]
    training = {"max_epochs": options.epochs, "patience": options.patience}
    torch.set_num_threads(1)
    parts = sentences(languages, options.rows)
    print(f"{machine(1)}, torch {torch.__version__}, CPU; {options.seeds} seeds", end="\n\n")
    print(f"| method | direction | {' | '.join(f'R@{k}' for k in _RANKS)} | epochs | CPU minutes |")
    print(f"|{'---|' * (len(_RANKS) + 4)}", flush=True)
    reference = None
    for name in names_in(options.methods, methods):
        start, method = time.process_time(), methods[name]
        seeds = range(1 if method.is_linear else options.seeds)
        found = [measure(method, parts, seed, training) for seed in seeds]
        minutes = (time.process_time() - start) / 60
        figures = np.array([table for table, _ in found])  # seeds, directions, ranks
        if options.four_way:
            figures = figures.mean(axis=1, keepdims=True)
        epochs = ", ".join(str(epoch) for _, epoch in found)
        for title, values in zip(titles, figures.transpose(1, 0, 2), strict=True):
            cells = [f"{m:.3f}" for m in values.mean(axis=0)]
            if len(values) > 1:
                spread = values.std(axis=0, ddof=1)
                cells = [f"{c} ± {s:.3f}" for c, s in zip(cells, spread, strict=True)]
            row = (name, title, *cells, epochs, f"{minutes:.1f}")
            print(f"| {' | '.join(row)} |", flush=True)
        first = figures[:, :, 0].mean(axis=1)
        if method.is_linear:
            reference = name, first[0]
        elif reference is not None and len(first) > 1:
            p = ttest_1samp(first, reference[1]).pvalue
            gain = (first - reference[1]).mean()
            print(f"R@1 against {reference[0]}: {gain:+.3f}, p = {p:.1e}", flush=True)


if __name__ == "__main__":
    main(OPTIONS)
