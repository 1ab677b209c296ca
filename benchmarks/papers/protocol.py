"""What a table of a paper consists of: problems, solvers, and one way to train, rank and choose.

A *problem* is a data set with its split. A *solver* is a method with the settings among which
validation rows choose. All solvers of a table have the same rows, the same number of trials, the
same training and the same rankings, so that no difference between two rows is one of protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from mvcca import Views, evaluate_retrieval
from mvcca.measures import total_correlation

Setting = dict[str, Any]
DEFAULT = "default"  # the ranking that an estimator has by itself; others are similarities
NOT_RUN = "Not run yet."  # instead of a table or a figure without records
Figures = dict[str, dict[str, dict[str, float]]]  # by ranking, measure and direction


@dataclass(frozen=True)
class Part:
    """Rows and their labels; where texts are at hand, also the rows as sequences of words."""

    views: Views
    labels: Any = None
    words: Views | None = None

    def reading(self, words: Sequence[str]) -> Views:
        """The views, some of them as words."""
        if not words:
            return self.views
        assert self.words is not None
        views = {n: (self.words if n in words else self.views)[n] for n in self.views.names}
        return Views(views)


@dataclass(frozen=True)
class Split:
    """Rows to learn from, rows that choose, and rows of the figures."""

    train: Part
    valid: Part
    test: Part


@dataclass(frozen=True)
class Problem:
    """A data set with a split for every seed."""

    name: str
    title: str
    load: Callable[[int, int | None], Split]  # of a seed and, for trials, a number of rows
    files: tuple[str, ...] = ()  # in the directory MVCCA_DATA
    guess: float = 20.0  # CPU seconds of a deep fit, until one is measured

    def split(self, seed: int, n_rows: int | None = None) -> Split:
        """The rows of a seed; n_rows is the largest number of each part."""
        return self.load(seed, n_rows)


@dataclass(frozen=True)
class Training:
    """How all deep methods of a table are trained."""

    max_epochs: int = 100
    patience: int = 15  # epochs without improvement before the first refinement, or the end
    refinements: int = 0  # returns to the best weights with a tenth of the learning rate
    monitor: str = "mrr"  # measure of the validation rows, or "correlation" or "loss"
    ranking: str = "cosine"  # by which it is measured

    def params(self) -> dict[str, Any]:
        """Parameters of a deep estimator."""
        from mvcca.deep.callbacks import Refinement

        monitor: Any = f"valid_{self.monitor}"
        if self.monitor not in ("correlation", "loss"):
            monitor = Monitored(self.monitor, self.ranking)
        own: dict[str, Any] = {"max_epochs": self.max_epochs, "monitor": monitor}
        if self.refinements:
            return own | {"callbacks": [Refinement(self.patience, 10, self.refinements)]}
        return own | {"patience": self.patience if self.patience < self.max_epochs else None}

    def __str__(self) -> str:
        refined = f", {self.refinements} refinements" if self.refinements else ""
        by = "" if self.monitor in ("correlation", "loss") else f" by {self.ranking}"
        return (
            f"at most {self.max_epochs} epochs, patience {self.patience}{refined}, weights of the "
            f"best epoch by the {self.monitor}{by} of the validation rows"
        )


class Monitored:
    """A measure of the validation scores; the same ranking for all methods."""

    def __init__(self, measure: str, ranking: str) -> None:
        self.measure, self.ranking = measure, ranking

    def __call__(self, scores: Views, labels: Any) -> float:
        table = evaluate_retrieval(scores, labels, measures=self.measure, similarity=self.ranking)
        return float(table.mean()[self.measure])


@dataclass(frozen=True)
class Solver:
    """A method and the settings among which validation rows choose."""

    name: str
    build: Callable[[Setting, int], Any]  # an estimator of a setting and a seed
    first: Setting = field(default_factory=dict)  # setting of the first trial
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # the others are drawn from it
    is_deep: bool = False
    words: tuple[str, ...] = ()  # views that it reads as sequences of words
    note: str = ""  # departures from the publication
    keep: Callable[[Any, Split], Any] | None = None  # what a figure draws, for the chosen setting

    def settings(self, n_trials: int) -> list[Setting]:
        """The settings of the trials: the first, and as many different ones at random.

        What the first does not set is the default of the estimator, which is no other setting.
        """
        return [self.first, *self._others[: n_trials - 1]]

    @cached_property
    def _others(self) -> list[Setting]:
        """All other settings, in random order."""
        names = list(self.grid)
        others = [dict(zip(names, v, strict=True)) for v in product(*self.grid.values())]
        others = [self.first | own for own in others if names and self.first | own != self.first]
        order = np.random.default_rng(0).permutation(len(others))
        model = self.build(self.first, 0)
        first = model.get_params() if hasattr(model, "get_params") else {}
        return [
            others[i]
            for i in order
            if any(_plain(first.get(n, self.first.get(n))) != _plain(others[i][n]) for n in names)
        ]


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


@dataclass(frozen=True)
class Table:
    """A table or figure of a paper: every solver on every problem, by every ranking."""

    paper: str
    number: str  # "table 2"
    title: str
    problems: Sequence[Problem]
    solvers: Callable[[Problem], Sequence[Solver]]
    measures: tuple[str, ...]
    select: str  # measure of the validation rows that chooses
    rankings: tuple[str, ...] = ("cosine", DEFAULT)  # the paper's first
    training: Training = Training()
    n_seeds: int = 5
    n_trials: int = 8
    directions: Any = "cross"  # or a function of the names of the views
    reference: str = ""  # solver of the t-tests
    published: Mapping[str, str] = field(default_factory=dict)
    remark: str = ""  # what differs from the publication
    shares: str = ""  # key of a table whose records it shares

    @property
    def key(self) -> str:
        """Such as p0-table-2."""
        return f"{self.paper}-{self.number.replace(' ', '-')}"


@dataclass(frozen=True)
class Missing:
    """A table or figure that cannot be had here, with the reason."""

    paper: str
    number: str
    reason: str


def figures(table: Table, model: Any, part: Part, words: Sequence[str]) -> Figures:
    """Measures of the rows of a part by every ranking of a table."""
    if hasattr(model, "figures"):  # several models behind one face
        return dict(model.figures(table, part))
    views = part.reading(words)
    scores = model.transform(views)
    ways = table.directions(views.names) if callable(table.directions) else table.directions
    retrieved = [name for name in table.measures if name != "correlation"]
    found: Figures = {}
    for ranking in table.rankings if retrieved else ():
        rows, options = scores, {"similarity": ranking}
        if ranking == DEFAULT:
            rows, options = views, {"estimator": model}
        measured = evaluate_retrieval(
            rows, part.labels, measures=retrieved, directions=ways, **options
        )
        found[ranking] = {
            name: {f"{row.query} to {row.target}": float(row.values[name]) for row in measured}
            for name in retrieved
        }
    if "correlation" in table.measures:
        first, second = (scores[name] for name in part.views.names)
        found["none"] = {"correlation": {"": total_correlation(first, second)}}
    return found


def mean(of: Figures, ranking: str, measure: str) -> float:
    """Mean of a measure over the directions."""
    if measure == "correlation":
        ranking = "none"
    return float(np.mean(list(of[ranking][measure].values())))


@dataclass(frozen=True)
class Figure:
    """A figure of a paper, drawn from the records of a table."""

    paper: str
    number: str  # "figure 6"
    title: str
    table: Table
    find: Callable[[Mapping[str, list[Any]]], Any]  # what it shows, of records by solver, or None
    show: Callable[[Any], str]  # Markdown
    draw: Callable[[Any, Any], None] | None = None  # on Axes


def kept_by(solver: str) -> Callable[[Mapping[str, list[Any]]], Any]:
    """What the first run of a solver kept."""
    return lambda records: records[solver][0]["kept"] if records.get(solver) else None
