"""Regret of tuning by folds: the best test figure of the searched grid minus that of the choice.

    MVCCA_DATA=../shared/data python -m benchmarks.defaults.tuning_regret [--data digits scene ...]
        [--methods CCA MLCCA PLS] [--goals object class]

The grid is searched on the test rows by brute force, in plain NumPy (`tuning_oracle.py`): ridges x
rankings, for the goal "class" also numbers of components. The object goal is the mean reciprocal
rank of the paired row, the class goal mAP@50 by shared labels, both averaged over ordered pairs of
views. Also shown: the regret of the defaults of CCA or MVCCA, of 10 components with ridge .1, and
of all components with Ledoit-Wolf's ridge. "By another one" is how much the test figure would gain
if the ridge, the ranking or the number of components alone were the best one.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

NAMES = (
    "digits",
    "mfeat",
    "mfeat-4",
    "scene",
    "scene-3",
    "wikipedia",
    "mnist",
    "multi30k",
    "captions",
    "captions-5",
    "encoders-200",
    "encoders-1000",
)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=NAMES, default=NAMES)
    methods = ("CCA", "MLCCA", "PLS")
    parser.add_argument("--methods", nargs="+", choices=methods, default=methods)
    goals = ("object", "class")
    parser.add_argument("--goals", nargs="+", choices=goals, default=goals)
    parser.add_argument("--rows", type=int, help="training rows, at most")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks._measure import machine
from benchmarks.defaults import tuning_oracle as oracle
from benchmarks.real import (
    fetch_coco_captions,
    fetch_mfeat,
    fetch_mnist_halves,
    fetch_multi30k,
    fetch_multi30k_encoders,
    fetch_scene,
    fetch_wikipedia,
)
from mvcca import CCA, MLCCA, MVCCA, PLS, PerView, Views, evaluate_retrieval

MEASURES = {"object": "mrr", "class": "map@50"}
BANK_ROWS = 5_000
PROFILE, RATIO = "profile-likelihood", "likelihood"


@dataclass
class Case:
    """Training and test rows, with labels if there are any: classes or indicators."""

    train: Views
    test: Views
    labels: tuple[np.ndarray, np.ndarray] | None = None

    def relevant(self) -> np.ndarray:
        """Which test rows share a label, (n, n)."""
        assert self.labels is not None
        labels = self.labels[1]
        return labels[:, None] == labels if labels.ndim == 1 else labels @ labels.T > 0

    def first(self, n_rows: int | None) -> Case:
        labels = self.labels and (self.labels[0][:n_rows], self.labels[1])
        return Case(self.train[:n_rows], self.test, labels)


# ---- data sets -----------------------------------------------------------------------------------


def digits() -> Case:
    """Left and right halves of digits without constant columns."""
    images, classes = load_digits(return_X_y=True)
    order = np.random.RandomState(0).permutation(len(classes))
    test, train = order[:450], order[450:]
    halves = np.split(images.reshape(-1, 8, 8), 2, axis=2)
    flat = [half.reshape(len(classes), -1) for half in halves]
    views = Views(
        {
            name: X[:, X[train].std(axis=0) > 0]
            for name, X in zip(("left", "right"), flat, strict=True)
        }
    )
    return Case(views[train], views[test], (classes[train], classes[test]))


def mfeat(*names: str) -> Callable[[], Case]:
    def case() -> Case:
        data = fetch_mfeat()
        order = np.random.RandomState(0).permutation(len(data.labels))
        test, train = order[:500], order[500:]
        views = standardized(data.views.select(names)[train], data.views.select(names)[test])
        return Case(*views, (data.labels[train], data.labels[test]))

    return case


def scene(*names: str) -> Callable[[], Case]:
    def case() -> Case:
        data = fetch_scene()
        views = standardized(*(data[part].views.select(names) for part in ("train", "test")))
        return Case(*views, (data.train.labels, data.test.labels))

    return case


def wikipedia() -> Case:
    data = fetch_wikipedia(("deep", "w2v"))
    return Case(data.train.views, data.test.views, (data.train.labels, data.test.labels))


def mnist() -> Case:
    """5,000 training images and 2,000 test images."""
    data = fetch_mnist_halves()
    train, test = data.train, data.test
    rows = np.random.RandomState(0).permutation(len(train.views))[:5_000]
    return Case(train.views[rows], test.views[:2_000], (train.labels[rows], test.labels[:2_000]))


def multi30k() -> Case:
    """English and German texts, 300 dimensions of latent semantic analysis."""
    data = fetch_multi30k()
    return Case(*texts(300, *(data[part].views.select(("en", "de")) for part in ("train", "test"))))


def captions(*names: str) -> Callable[[], Case]:
    """Captions of the same images, 200 dimensions of latent semantic analysis."""

    def case() -> Case:
        data = fetch_coco_captions()
        views = texts(200, *(data[part].views.select(names) for part in ("train", "test")))
        return Case(*views, (data.train.labels, data.test.labels))

    return case


def encoders(n_pairs: int) -> Callable[[], Case]:
    def case() -> Case:
        data = fetch_multi30k_encoders()
        train, test = (
            data[part].views.select(("en_minilm", "de_e5")) for part in ("train", "test")
        )
        return Case(train[np.random.RandomState(0).permutation(len(train))[:n_pairs]], test)

    return case


def standardized(train: Views, test: Views) -> tuple[Views, Views]:
    scale = PerView(StandardScaler()).fit(train)
    return scale.transform(train), scale.transform(test)


def texts(n_dimensions: int, train: Views, test: Views) -> tuple[Views, Views]:
    words = make_pipeline(TfidfTransformer(), TruncatedSVD(n_dimensions, random_state=0))
    per_view = PerView(words).fit(train)
    return per_view.transform(train), per_view.transform(test)


CASES: dict[str, Callable[[], Case]] = {
    "digits": digits,
    "mfeat": mfeat("fou", "kar"),
    "mfeat-4": mfeat("fou", "kar", "pix", "zer"),
    "scene": scene("u", "v"),
    "scene-3": scene("L", "u", "v"),
    "wikipedia": wikipedia,
    "mnist": mnist,
    "multi30k": multi30k,
    "captions": captions("cap0", "cap1"),
    "captions-5": captions("cap0", "cap1", "cap2", "cap3", "cap4"),
    "encoders-200": encoders(200),
    "encoders-1000": encoders(1_000),
}
assert tuple(CASES) == NAMES


def applies(case: Case, method: str, goal: str) -> bool:
    """Whether a method is tuned for a goal on these data: MLCCA by classes, PLS of two views."""
    if method == "PLS" and len(case.train.names) > 2:
        return False
    needs_labels = goal == "class" or method == "MLCCA"
    if needs_labels and case.labels is None:
        return False
    return method != "MLCCA" or goal == "class"


# ---- brute force on test rows --------------------------------------------------------------------


def brute_force(case: Case, method: str, goal: str) -> dict[oracle.Setting, float]:
    """Test figures of every setting that is searched."""
    train, test = (
        [np.asarray(X, float) for _, X in part.items()] for part in (case.train, case.test)
    )
    bank = np.random.RandomState(1).permutation(len(train[0]))[:BANK_ROWS]
    models: Iterable[tuple[float, oracle.Model]]
    if method == "PLS":
        models = [(0.0, oracle.pls(train))]
    elif method == "MLCCA":
        assert case.labels is not None
        models = oracle.ridge_mlcca(train, label_similarities(case.labels[0]))
    else:
        models = oracle.ridge_cca(train)
    rankings = ["cosine"] if method == "PLS" else [PROFILE, RATIO]
    measure = oracle.mean_reciprocal_rank
    if goal == "object":
        rankings += [f"{name}+csls" for name in rankings]
    else:
        relevant = case.relevant()

        def measure(found: np.ndarray) -> float:
            return oracle.mean_average_precision(found, relevant)

    by_number = method == "PLS" or goal == "class"
    return oracle.grid_of(models, test, [X[bank] for X in train], rankings, measure, by_number)


def label_similarities(labels: np.ndarray) -> np.ndarray:
    """1 for the same class; of label sets, exp(-‖z - z'‖² / 2), the default of MLCCA."""
    if labels.ndim == 1:
        return (labels[:, None] == labels).astype(float)
    Z = labels.astype(float)
    squares = (Z**2).sum(axis=1)
    return np.exp(Z @ Z.T - squares[:, None] / 2 - squares / 2)


# ---- what is chosen, and what is not -------------------------------------------------------------


def fitted(case: Case, method: str, **params: Any) -> tuple[Any, float]:
    """A fitted model with these parameters, and CPU seconds of the fit."""
    if method == "MLCCA":
        assert case.labels is not None
        params["label_similarity"] = "equal" if case.labels[0].ndim == 1 else "sqexp"
    kinds = {"MLCCA": MLCCA, "PLS": PLS, "CCA": CCA if len(case.train.names) == 2 else MVCCA}
    takes_labels = method == "MLCCA" or params.get("cv_goal") == "class"
    labels = case.labels[0] if case.labels and takes_labels else None
    start = time.process_time()
    model = kinds[method](**params).fit(case.train, labels)
    return model, time.process_time() - start


def figure(case: Case, model: Any, goal: str) -> float:
    """Test figure, averaged over ordered pairs of views."""
    labels = case.labels[1] if goal == "class" and case.labels else None
    name = MEASURES[goal]
    return float(
        evaluate_retrieval(case.test, labels, estimator=model, measures=[name]).mean()[name]
    )


@dataclass
class Result:
    """Figures of one data set, method and goal."""

    grid: dict[oracle.Setting, float]
    choice: oracle.Setting
    tuned: float
    others: dict[str, float]
    seconds: float  # of tuning, over a plain fit

    @property
    def best(self) -> oracle.Setting:
        return max(self.grid, key=lambda key: self.grid[key])

    def regret(self, value: float) -> float:
        return self.grid[self.best] - value

    def by_another(self, place: int) -> float | None:
        """Gain if only the ridge (0), the ranking (1) or the number (2) were the best one."""
        if self.choice not in self.grid:  # a number between those of the brute force
            return None
        same = [i for i in range(3) if i != place]
        values = [v for key, v in self.grid.items() if all(key[i] == self.choice[i] for i in same)]
        return max(values) - self.grid[self.choice]


def measured(case: Case, method: str, goal: str) -> Result:
    """Search by brute force, tune, and fit without tuning."""
    grid = brute_force(case, method, goal)
    has_ridge = method != "PLS"
    searched = {"n_components": None, "reg": "cv"} if has_ridge else {"n_components": "cv"}
    model, seconds = fitted(case, method, cv_goal=goal, **searched)
    reg = {"reg": model.reg_} if has_ridge else {}
    whole, plain = fitted(case, method, n_components=None, **reg)
    is_all = model.n_components_ >= whole.n_components_
    others: dict[str, dict[str, Any]] = {"defaults": {}, "10": {"n_components": 10}}
    if has_ridge:
        others["10"]["reg"] = 0.1
        others["all, auto"] = {"n_components": None, "reg": "auto"}
    figures = {
        name: figure(case, fitted(case, method, **params)[0], goal)
        for name, params in others.items()
    }
    choice = (reg.get("reg", 0.0), model.ranking_, 0 if is_all else model.n_components_)
    return Result(grid, choice, figure(case, model, goal), figures, seconds - plain)


def shown(setting: oracle.Setting) -> str:
    ridge, ranking, number = setting
    short = ranking.replace("profile-likelihood", "profile").replace("likelihood", "ratio")
    return ", ".join([*([f"{ridge:g}"] if ridge else []), short, str(number or "all")])


def main(options: argparse.Namespace) -> None:
    """Print one table, with means and largest regrets per method and goal."""
    warnings.simplefilter("ignore")
    print(machine(1), "\n")
    columns = ["chosen", "defaults", "10", "all, auto"]
    head = ["data", "method", "goal", "best", "figure", "choice", *columns]
    head += ["another ridge", "ranking", "number", "CPU s"]
    print("|", " | ".join(head), "|\n" + "|---" * len(head) + "|", flush=True)
    regrets: dict[tuple[str, str], list[list[float]]] = {}
    for name in options.data:
        case = CASES[name]().first(options.rows)
        for method in options.methods:
            for goal in options.goals:
                if not applies(case, method, goal):
                    continue
                result = measured(case, method, goal)
                values = {"chosen": result.tuned, **result.others}
                row = [result.regret(values[c]) if c in values else np.nan for c in columns]
                regrets.setdefault((method, goal), []).append(row)
                gains = [result.by_another(place) for place in range(3)]
                cells = [name, method, goal, shown(result.best)]
                cells += [f"{result.grid[result.best]:.3f}", shown(result.choice)]
                cells += ["-" if np.isnan(value) else f"{value:.3f}" for value in row]
                cells += ["" if gain is None else f"{gain:.3f}" for gain in gains]
                print("|", " | ".join([*cells, f"{result.seconds:.2f}"]), "|", flush=True)
    print(f"\n| method | goal | {' | '.join(f'{c}: mean, largest' for c in columns)} |")
    print("|---" * (2 + len(columns)) + "|")
    for (method, goal), rows in regrets.items():
        mean, most = np.mean(rows, axis=0), np.max(rows, axis=0)
        cells = [
            "-" if np.isnan(m) else f"{m:.3f}, {n:.3f}" for m, n in zip(mean, most, strict=True)
        ]
        print("|", " | ".join([method, goal, *cells]), "|")


if __name__ == "__main__":
    main(OPTIONS)
