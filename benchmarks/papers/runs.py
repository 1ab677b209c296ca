"""Fit what a table needs, one stored record per fit, so that an interrupted run resumes.

A record holds the figures of validation and test rows by every ranking, the setting, the epochs,
CPU seconds, versions and warnings. What a table shows is derived from records alone.
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn

import mvcca
from benchmarks.papers.protocol import Problem, Solver, Split, Table, Training, figures, mean

RESULTS = Path(__file__).parents[1] / "results" / "papers"
Record = dict[str, Any]


@dataclass(frozen=True)
class Effort:
    """How much of a table is run: seeds, trials, epochs and rows."""

    n_seeds: int
    n_trials: int
    max_epochs: int | None = None  # fewer than published, for a trial
    n_rows: int | None = None
    device: str = "cpu"

    @classmethod
    def of(cls, table: Table) -> Effort:
        """All seeds and trials of a table."""
        return cls(table.n_seeds, table.n_trials)

    def training(self, table: Table) -> Training:
        """The training of a table, cut short in a trial."""
        if self.max_epochs is None:
            return table.training
        return replace(table.training, max_epochs=self.max_epochs, refinements=0)


_GUESS = 2.0  # CPU seconds of a fit without networks
QUICK = Effort(n_seeds=1, n_trials=1, max_epochs=2, n_rows=200)


class Store:
    """Records of a table in a folder, a file of JSON lines per problem."""

    def __init__(self, folder: Path, table: Table) -> None:
        self.folder = folder / (table.shares or table.key)

    def records(self, problem: Problem) -> dict[str, Record]:
        """Records of a problem by key; of two with the same key the later one."""
        path = self._path(problem)
        return _read(path, path.stat().st_size) if path.exists() else {}

    def add(self, problem: Problem, record: Record) -> None:
        """Append a record."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._path(problem).open("a", encoding="utf-8") as file:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")

    def _path(self, problem: Problem) -> Path:
        return self.folder / f"{problem.name}.jsonl"


@lru_cache(maxsize=32)  # pages ask for the same records again and again
def _read(path: Path, _: int) -> dict[str, Record]:
    """Records of a file that has a number of bytes: it only grows."""
    return {r["key"]: r for r in map(json.loads, path.read_text("utf-8").splitlines())}


@dataclass(frozen=True)
class Fit:
    """A solver with one setting on the rows of one seed."""

    table: Table
    problem: Problem
    solver: Solver
    setting: dict[str, Any]
    seed: int
    effort: Effort

    @property
    def key(self) -> str:
        """Digest of everything that decides the figures."""
        training = str(self.effort.training(self.table)) if self.solver.is_deep else ""
        parts = [self.problem.name, self.solver.name, self.setting, self.seed, training]
        parts += [self.effort.n_rows, self.table.rankings]
        text = json.dumps(parts, sort_keys=True, default=str)
        return hashlib.sha1(text.encode()).hexdigest()[:16]

    def run(self, split: Split) -> Record:
        """Fit and measure."""
        model = self.solver.build(self.setting, self.seed)
        train, valid = (p.reading(self.solver.words) for p in (split.train, split.valid))
        given: dict[str, Any] = {}
        if self.solver.is_deep:
            training = self.effort.training(self.table)
            model.set_params(**training.params())
            given = {"X_val": valid, "y_val": split.valid.labels}
        wall, cpu = time.perf_counter(), time.process_time()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with mvcca.config_context(device=self.effort.device if self.solver.is_deep else None):
                model.fit(train, split.train.labels, **given)
            seconds = time.process_time() - cpu, time.perf_counter() - wall
            measured = {
                name: figures(self.table, model, getattr(split, name), self.solver.words)
                for name in ("valid", "test")
            }
            kept = self.solver.keep(model, split) if self.solver.keep else None
        history = getattr(model, "history_", {})
        return {
            "key": self.key,
            "solver": self.solver.name,
            "setting": self.setting,
            "seed": self.seed,
            "training": str(self.effort.training(self.table)) if self.solver.is_deep else None,
            "rankings": self.table.rankings,
            "n_rows": [len(part.views) for part in (split.train, split.valid, split.test)],
            **measured,
            "epochs": len(history["epoch"]) if history else None,
            "best_epoch": getattr(model, "best_epoch_", None),
            "cpu_seconds": round(seconds[0], 2),
            "wall_seconds": round(seconds[1], 2),
            "warnings": sorted({str(one.message) for one in caught}),
            "kept": kept,
            **environment(self.effort.device),
        }


@lru_cache
def environment(device: str) -> dict[str, Any]:
    """Where and with what a record was made."""
    import torch

    return {
        "date": time.strftime("%Y-%m-%d"),
        "device": torch.cuda.get_device_name(device) if device.startswith("cuda") else device,
        "machine": platform.machine(),
        "threads": torch.get_num_threads(),
        "versions": {
            "mvcca": mvcca.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
            "scikit-learn": sklearn.__version__,
            "scipy": scipy.__version__,
            "torch": torch.__version__,
        },
    }


# ---- which fits, and how long they take ----------------------------------------------------------


def chosen(table: Table, records: Iterable[Record], ranking: str) -> Record | None:
    """Of the trials of the first seed, the one that ranks the validation rows best."""
    trials = [record for record in records if record["seed"] == 0]
    return max(trials, key=lambda own: mean(own["valid"], ranking, table.select), default=None)


def trials(table: Table, problem: Problem, solver: Solver, effort: Effort) -> list[Fit]:
    """The fits among which the validation rows of the first seed choose."""
    return [
        Fit(table, problem, solver, setting, 0, effort)
        for setting in solver.settings(effort.n_trials)
    ]


def later(
    table: Table, problem: Problem, solver: Solver, effort: Effort, stored: dict[str, Record]
) -> list[Fit]:
    """The fits of the other seeds, with the settings that were chosen for each ranking."""
    own = [stored[f.key] for f in trials(table, problem, solver, effort) if f.key in stored]
    settings: list[dict[str, Any]] = []
    for ranking in table.rankings:
        best = chosen(table, own, ranking)
        if best is not None and best["setting"] not in settings:
            settings.append(best["setting"])
    return [
        Fit(table, problem, solver, setting, seed, effort)
        for seed in range(1, effort.n_seeds)
        for setting in settings
    ]


def run(
    table: Table,
    problems: Sequence[Problem],
    solvers: Sequence[str] | None,
    effort: Effort,
    folder: Path = RESULTS,
) -> None:
    """Fit what is not stored yet: all trials first, then the other seeds."""
    store = Store(folder, table)
    for problem in problems:
        own = [s for s in table.solvers(problem) if solvers is None or s.name in solvers]
        for stage in ("trials", "seeds"):
            for solver in own:
                fits = trials(table, problem, solver, effort)
                if stage == "seeds":
                    fits = later(table, problem, solver, effort, store.records(problem))
                for fit in fits:
                    if fit.key in store.records(problem):
                        continue
                    record = fit.run(_split(problem, fit.seed, effort.n_rows))
                    store.add(problem, record)
                    _say(table, problem, fit, record)


@lru_cache(maxsize=1)
def _split(problem: Problem, seed: int, n_rows: int | None) -> Split:
    return problem.split(seed, n_rows)


def _say(table: Table, problem: Problem, fit: Fit, record: Record) -> None:
    quality = mean(record["valid"], table.rankings[0], table.select)
    setting = {k: v for k, v in fit.setting.items() if k in fit.solver.grid}
    sys.stderr.write(
        f"{table.key} {problem.name}: {fit.solver.name}, seed {fit.seed}, {setting}: validation "
        f"{table.select} {quality:.3f}, {record['epochs'] or 0} epochs, "
        f"{record['cpu_seconds']:.0f} CPU s\n"
    )
    sys.stderr.flush()


def seconds_left(table: Table, effort: Effort, folder: Path = RESULTS) -> Iterator[Any]:
    """Fits not stored, by problem and solver: how many, CPU seconds of one, if measured."""
    store = Store(folder, table)
    for problem in table.problems:
        stored = store.records(problem)
        for solver in table.solvers(problem):
            first = trials(table, problem, solver, effort)
            # Each ranking may choose different settings.
            n_chosen = min(len(table.rankings), len(first))
            n_left = sum(fit.key not in stored for fit in first)
            done = later(table, problem, solver, effort, stored)
            n_later = len(done) if done else n_chosen * (effort.n_seeds - 1)
            n_left += n_later - sum(fit.key in stored for fit in done)
            known = [
                r["cpu_seconds"]
                for r in stored.values()
                if r["solver"] == solver.name and r["device"] == "cpu"
            ]
            guess = problem.guess if solver.is_deep else _GUESS
            yield problem, solver, n_left, float(np.median(known or [guess])), bool(known)
