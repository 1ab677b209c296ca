"""Measure methods fold by fold, until a deadline.

Nothing is predicted. All methods are measured on the first fold, then on the second, and so on.
After the second, methods of a group that cannot be the best ones for any goal are dropped. At the
deadline, the fit at hand is finished and no other begins.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from joblib import cpu_count
from threadpoolctl import threadpool_limits

from mvcca.comparison.candidates import Candidate
from mvcca.comparison.data import Data
from mvcca.comparison.fits import Conditions, MethodRun
from mvcca.comparison.progress import Report, Tell, told
from mvcca.machine.deadline import Deadline, seconds_of
from mvcca.machine.memory import WIDE
from mvcca.machine.processes import processes
from mvcca.machine.warnings import warn

LEAST_FOLDS = 2  # that tell anything of a method; one, if there is only one split


@dataclass
class Schedule:
    """What was measured so far, and what is still to be measured."""

    conditions: Conditions
    candidates: Sequence[Candidate]
    n_processes: int
    tell: Tell | None = None
    runs: dict[str, MethodRun] = field(default_factory=dict)
    n_done: int = 0

    def __post_init__(self) -> None:
        self.runs = {own.name: MethodRun() for own in self.candidates}
        budget = self.conditions.settings.budget
        self.deadline = Deadline.after(budget)
        if budget is not None:  # a fit may take the same time again
            limit = replace(self.deadline, ends=self.deadline.ends + seconds_of(budget))
            self.conditions = replace(self.conditions, limit=limit)

    def measure(self, progress: Report | None = None) -> tuple[dict[str, MethodRun], bool]:
        """Measure all methods on one fold after the other.

        Returns the methods on all folds, by name, and whether this was not interrupted.
        """
        n_folds, is_complete = len(self.conditions.folds), True
        n_fits, n_threads = len(self.candidates) * n_folds, self._n_threads()
        here = self.n_processes == 1  # where the limit is set once, which takes milliseconds
        try:
            with (
                threadpool_limits(n_threads) if here else nullcontext(),
                told(progress, n_fits) as self.tell,
                processes(self.n_processes, self.conditions.data) as submit,
            ):
                for number in range(1, n_folds + 1):
                    self._advance(number, submit, None if here else n_threads)
                    if number == LEAST_FOLDS < n_folds:
                        self._drop()
        except (KeyboardInterrupt, BrokenProcessPool) as error:
            if not self.n_done:
                raise
            was_killed = isinstance(error, BrokenProcessPool)
            reason = "A process was killed" if was_killed else "Interrupted"
            warn(f"{reason}: the result contains {self.n_done} of {n_fits} fits.")
            is_complete = False
        return self.finished(is_complete), is_complete

    def _goes_on(self, candidate: Candidate, n_folds: int) -> bool:
        run = self.runs[candidate.name]
        is_fitted = not run.failure and not run.is_dropped
        return is_fitted and len(run.folds) == n_folds - 1

    def _advance(self, n_folds: int, submit: Any, n_threads: int | None) -> None:
        """Measure methods on a fold; none begins after the deadline."""
        waiting = deque(own for own in self.candidates if self._goes_on(own, n_folds))
        running, report = dict[Future[Any], str](), None
        if self.n_processes == 1 and self.tell is not None:
            report = self._report  # of epochs, too
        conditions = replace(self.conditions, data=None)  # each process has them
        while waiting or running:
            while waiting and len(running) < self.n_processes and self.deadline.allows(0):
                own = waiting.popleft()
                self._report(f"{own.name}, fold {n_folds} of {len(self.conditions.folds)}")
                task = own, self.runs[own.name], n_folds, report
                running[submit(_advanced, conditions, n_threads, task)] = own.name
            if not running:
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                self.runs[running.pop(future)] = future.result()
                self.n_done += 1

    def _n_threads(self) -> int | None:
        """Threads of each process; None for as many as there are."""
        blocks = self.conditions.data.views.blocks.values()
        if sum(X.shape[0] * X.shape[1] for X in blocks) < WIDE**2:
            return 1
        return None if self.n_processes == 1 else max(1, cpu_count() // self.n_processes)

    def _drop(self) -> None:
        """Drop methods that are clearly behind another one for all of their goals."""
        conditions, last = self.conditions, {}
        for goal in conditions.asked.goals:
            of_methods = {
                own.name: conditions.standing(self.runs[own.name], goal)
                for own in self.candidates
                if len(self.runs[own.name].folds) == LEAST_FOLDS
                and goal in self.runs[own.name].trials
            }
            if of_methods:
                best = max(of_methods.values(), key=lambda own: own.value)
                last[goal] = {n: own.cannot_win(best) for n, own in of_methods.items()}
        for own in self.candidates:
            behind = [found[own.name] for found in last.values() if own.name in found]
            self.runs[own.name].is_dropped = own.may_be_dropped and bool(behind) and all(behind)

    def finished(self, is_complete: bool) -> dict[str, MethodRun]:
        """Methods as they were measured, with the reason of those that were not."""
        least = min(LEAST_FOLDS, len(self.conditions.folds)) if is_complete else 1
        for run in self.runs.values():
            if not run.failure and len(run.folds) < least:
                run.failure = self._left_out(run) if is_complete else "interrupted"
        return {name: run.finished() for name, run in self.runs.items()}

    def _left_out(self, run: MethodRun) -> str:
        budget = f"budget={self.conditions.settings.budget!r}"
        measured = "on one fold only" if run.folds else "not"
        return (
            f"left out: no time of {budget} was left for it, and it was measured {measured}. "
            "Pass a larger budget, or budget=None, to include it"
        )

    def _report(self, message: str) -> None:
        if self.tell is not None:
            self.tell(message, self.n_done)


def _advanced(
    data: Data, conditions: Conditions, n_threads: int | None, task: tuple[Any, ...]
) -> MethodRun:
    with nullcontext() if n_threads is None else threadpool_limits(n_threads):
        return replace(conditions, data=data).advance(*task)
