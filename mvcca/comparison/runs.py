"""Run all fits of a comparison, in this process or in several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, nullcontext
from functools import partial
from typing import Any

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from mvcca.comparison.candidates import Candidate, Settings
from mvcca.comparison.data import Data
from mvcca.comparison.folds import Fold
from mvcca.comparison.one_fold import Outcome, run_fold
from mvcca.machine.warnings import warn

Outcomes = dict[tuple[str, int], Outcome]


def outcomes_of(
    candidates: Sequence[Candidate],
    data: Data,
    folds: Sequence[Fold],
    settings: Settings,
    n_jobs: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> Outcomes:
    """Outcome of every method on every fold, or those that were there before an interruption."""
    found: Outcomes = {}
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", pre_dispatch="n_jobs")
    in_process = n_jobs in (None, 1)
    run = _tagged_with_one_thread if data.is_small and not in_process else _tagged

    def tasks() -> Iterator[Any]:
        for fold in folds:
            for candidate in candidates:
                epochs = None
                if progress is not None:
                    where = f"{candidate.name}, fold {fold.number + 1} of {len(folds)}"
                    progress(where)
                    epochs = partial(_report, progress, where) if in_process else None
                yield delayed(run)(candidate, data, fold, settings, epochs)

    try:
        limited = threadpool_limits(1) if data.is_small and in_process else nullcontext()
        with limited, closing(parallel(tasks())) as done:
            for name, number, outcome in done:
                found[name, number] = outcome
    except (KeyboardInterrupt, BrokenProcessPool) as error:
        if not found:
            raise
        reason = "Interrupted" if isinstance(error, KeyboardInterrupt) else "A process was killed"
        n_tasks = len(candidates) * len(folds)
        warn(f"{reason}: the result contains {len(found)} of {n_tasks} fits.")
    return found


def _report(progress: Callable[[str], None], where: str, message: str) -> None:
    progress(f"{where}, {message}")


def _tagged(
    candidate: Candidate, data: Data, fold: Fold, settings: Settings, report: Any
) -> tuple[str, int, Outcome]:
    return candidate.name, fold.number, run_fold(candidate, data, fold, settings, report)


def _tagged_with_one_thread(*task: Any) -> tuple[str, int, Outcome]:
    with threadpool_limits(1):
        return _tagged(*task)
