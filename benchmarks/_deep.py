"""Deep methods with labels: settings chosen by validation rows, then figures of several seeds."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import ttest_rel

from mvcca import CCA, MLCCA, Views, evaluate_retrieval
from mvcca.deep import (
    ACMR,
    CCAL,
    CCL,
    CMDN,
    DCCA,
    MSDS,
    SAM,
    CorrAE,
    DeepSM,
    DeViSE,
    LearnedRanking,
    TwoBranch,
)

Rows = tuple[Views, Any]  # and their labels, by view if the views are unpaired


@dataclass(frozen=True)
class Split:
    """Rows of one seed: pairs to learn from and to validate with, and the rows of the figures."""

    train: Rows
    valid: Rows
    test: Rows


@dataclass(frozen=True)
class Method:
    """An estimator, its settings, and the settings among which validation rows choose."""

    estimator: type
    settings: dict[str, Any] = field(default_factory=dict)
    grid: tuple[dict[str, Any], ...] = ({},)

    def fit(self, setting: dict[str, Any], seed: int, split: Split) -> Any:
        """A model of the training rows; the validation rows choose its epoch."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # more components than labels, small batches
            if self.estimator in (CCA, MLCCA):
                return self.estimator(**self.settings, **setting).fit(*split.train)
            model = self.estimator(
                **_TRAINED | self.settings | setting, device="cpu", random_state=seed
            )
            return model.fit(*split.train, X_val=split.valid[0], y_val=split.valid[1])


_TRAINED = {"monitor": "valid_map", "standardize": False}
_NETWORK = {"hidden_layer_sizes": (256,), "max_epochs": 40, "patience": 10}
_SCORES = {**_NETWORK, "n_components": 64}
_AUTOENCODER = {"optimizer": "rmsprop", "learning_rate": 1e-3}


def labelled_methods(sam: dict[str, Any], n_correlated: int = 9) -> dict[str, Method]:
    """Methods to compare, the linear reference first, with the settings of SAM's networks.

    Canonical variates have `n_correlated` components.
    """
    variates = {**_SCORES, "n_components": n_correlated, "batch_size": 1000}
    sam = {"optimizer": "sgd", "learning_rate": 5e-3, **sam}  # as published
    ranked = {**_SCORES, "batch_size": 1000}
    return {
        "MLCCA": Method(
            MLCCA,
            {"n_components": 9, "label_similarity": "equal"},
            tuple({"reg": reg, "power": p} for reg in (1e-3, 1e-2, 1e-1, 1.0) for p in (0, 1)),
        ),
        "SAM": Method(SAM, sam, ({"midpoint": 0.4}, {"midpoint": 0.8})),
        "SAM, fixed margin": Method(SAM, {"margins": "fixed", **sam}),
        "SAM, α = 1, λ = 1": Method(SAM, {"margins": "adaptive", "sample_share": 1.0, **sam}),
        "DeepSM": Method(DeepSM, {**_NETWORK}, ({"weight_decay": 1e-5}, {"weight_decay": 1e-3})),
        "ACMR": Method(
            ACMR, {**_SCORES, "n_components": 40}, ({"label_weight": 1.0}, {"label_weight": 10.0})
        ),
        "CMDN": Method(
            CMDN,
            {"n_components": 64, "max_epochs": 40, "patience": 10},
            ({"label_weight": 1.0}, {"label_weight": 10.0}),
        ),
        "CCL": Method(CCL, _SCORES, ({"learning_rate": 1e-3}, {"learning_rate": 3e-3})),
        "TwoBranch": Method(
            TwoBranch, {**_SCORES, "batch_size": 100}, ({"margin": 0.1}, {"margin": 0.5})
        ),
        "MSDS": Method(MSDS, {**_SCORES, "optimizer": "adam"}, ({"gamma": 1.0}, {"gamma": 10.0})),
        "LearnedRanking": Method(LearnedRanking, ranked, ({"margin": 0.2}, {"margin": 0.5})),
        "CCAL": Method(CCAL, variates, ({"margin": 0.2}, {"margin": 0.5})),
        "DCCA": Method(DCCA, {**variates, "batch_size": "auto"}, ({"reg": 1e-4}, {"reg": 1e-2})),
        "Corr-AE": Method(
            CorrAE,
            {**_SCORES, **_AUTOENCODER, "hidden_layer_sizes": (1024,)},
            ({"correspondence": 0.8}, {"correspondence": 0.95}),
        ),
        "DeViSE": Method(
            DeViSE,
            {"max_epochs": 40, "patience": 10, "batch_size": 200, "learning_rate": 1e-3},
            ({"margin": 0.1}, {"margin": 0.5}),
        ),
    }


def qualities(model: Any, rows: Rows, measures: tuple[str, ...]) -> np.ndarray:
    """Each measure by the ranking of the model, first view to second and back."""
    table = evaluate_retrieval(*rows, estimator=model, measures=measures)
    return np.array([[row.values[name] for row in table] for name in measures])


def measure(
    method: Method,
    splits: Callable[[int], Split],
    seeds: Iterable[int],
    measures: tuple[str, ...] = ("map",),
) -> tuple[np.ndarray, dict[str, Any], list[int]]:
    """Figures, shape (n_seeds, n_measures, 2), the setting and best epochs by seed.

    The setting is the best by the first measure for the validation rows of the first seed.
    """
    first, *others = seeds
    split = splits(first)
    models = [method.fit(setting, first, split) for setting in method.grid]
    valid = [qualities(model, split.valid, measures[:1]).mean() for model in models]
    best = int(np.argmax(valid))
    figures, epochs = [qualities(models[best], split.test, measures)], []
    epochs.append(getattr(models[best], "best_epoch_", 0))
    for seed in others:
        split = splits(seed)
        model = method.fit(method.grid[best], seed, split)
        figures.append(qualities(model, split.test, measures))
        epochs.append(getattr(model, "best_epoch_", 0))
    return np.array(figures), method.grid[best], epochs


def report(
    title: str,
    methods: dict[str, Method],
    splits: Callable[[int], Split],
    n_seeds: int,
    references: tuple[str, ...],
    measures: tuple[str, ...] = ("map",),
) -> None:
    """Print a row per method, then paired t-tests of the first measure, mean of both directions."""
    more = [f"{name} {way}" for name in measures[1:] for way in ("forth", "back")]
    columns = ["forth", "back", "mean", *more, "setting", "best epochs", "mean by seed", "minutes"]
    print(f"\n| {title} | {' | '.join(columns)} |")
    print("|---" * (1 + len(columns)) + "|", flush=True)
    means = {}
    for name, method in methods.items():
        start = time.perf_counter()
        figures, setting, epochs = measure(method, splits, range(n_seeds), measures)
        minutes = (time.perf_counter() - start) / 60
        means[name] = figures[:, 0].mean(axis=1)
        values = (*figures[:, 0].T, means[name], *figures[:, 1:].reshape(n_seeds, -1).T)
        cells = [f"{c.mean():.3f} ± {c.std(ddof=1):.3f}" for c in values]
        shown = ", ".join(f"{key} {value:g}" for key, value in setting.items())
        by_seed = " ".join(f"{value:.4f}" for value in means[name])
        row = (name, *cells, shown, ", ".join(map(str, epochs)), by_seed, f"{minutes:.1f}")
        print(f"| {' | '.join(row)} |", flush=True)
    for reference in references:
        for name in means:
            if reference in means and name != reference:
                gain = means[name] - means[reference]
                p = ttest_rel(means[name], means[reference]).pvalue
                print(f"{name} against {reference}: {gain.mean():+.3f}, p = {p:.1e}", flush=True)
