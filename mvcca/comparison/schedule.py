"""Measure methods cheapest first, until a deadline.

Seconds are measured, not predicted. A search may take an equal share of the time that is left, and
its method is measured at default settings if that does not suffice. A method goes on after the
first fold if the other folds, each as long as this one, fit into the time that is left. Else it is
left out, with the reason.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from joblib import cpu_count, effective_n_jobs
from threadpoolctl import threadpool_limits

from mvcca.comparison.candidates import Candidate, cheapest_first
from mvcca.comparison.data import Data
from mvcca.comparison.fits import Begun, Conditions, Omitted, Outcomes
from mvcca.comparison.progress import Report, Tell, told
from mvcca.machine.deadline import budget_of, in_words
from mvcca.machine.processes import processes
from mvcca.machine.warnings import warn
from mvcca.model_selection.folds import Fold

_FEW_NUMBERS = 10**6  # for which threads cost more time than they save
_MARGIN = 1.2  # of seconds that are expected or advised, since they vary from fold to fold


def outcomes_of(
    candidates: Sequence[Candidate],
    conditions: Conditions,
    n_jobs: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> tuple[list[Candidate], Outcomes]:
    """Methods as they were measured, and their outcomes on all folds or until an interruption."""
    schedule = Schedule(conditions, effective_n_jobs(n_jobs))
    n_fits = len(candidates) * len(conditions.folds)
    try:
        with told(progress, n_fits) as schedule.tell:
            schedule.run(cheapest_first(candidates))
    except (KeyboardInterrupt, BrokenProcessPool) as error:
        if not schedule.found:
            raise
        reason = "A process was killed" if isinstance(error, BrokenProcessPool) else "Interrupted"
        warn(f"{reason}: the result contains {len(schedule.found)} of {n_fits} fits.")
    return [schedule.settled.get(own.name, own) for own in candidates], schedule.outcomes()


@dataclass
class Schedule:
    """What was found so far, and what is still to be measured."""

    conditions: Conditions
    n_processes: int
    tell: Tell | None = None
    found: Outcomes = field(default_factory=dict)
    begun: deque[tuple[Begun, Fold]] = field(default_factory=deque)  # other folds, which fit
    settled: dict[str, Candidate] = field(default_factory=dict)  # some of them at default settings

    def run(self, candidates: Sequence[Candidate]) -> None:
        """Measure methods in this order; other folds of methods that have begun come first."""
        waiting, running = deque(candidates), set[Future[Any]]()
        self.start = self.conditions.deadline.clock()
        n_threads = self._n_threads()
        here = threadpool_limits(n_threads) if self.n_processes == 1 else nullcontext()
        with here, processes(self.n_processes, self.conditions.data) as submit:
            while waiting or self.begun or running:
                while len(running) < self.n_processes and (self.begun or waiting):
                    task = self._next(waiting)
                    self._report(task[1].name)
                    running.add(submit(*self._call(task, n_threads)))
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    self._take(future.result())

    def outcomes(self) -> Outcomes:
        """What was found; a method that was stopped on one fold is left out on all."""
        omitted = {n: own for (n, _), own in self.found.items() if isinstance(own, Omitted)}
        return self.found | {
            (name, fold.number): own
            for name, own in omitted.items()
            for fold in self.conditions.folds
        }

    def _n_threads(self) -> int | None:
        """Threads of each process; None for as many as there are."""
        blocks = self.conditions.data.views.blocks.values()
        if sum(X.shape[0] * X.shape[1] for X in blocks) < _FEW_NUMBERS:
            return 1
        return None if self.n_processes == 1 else max(1, cpu_count() // self.n_processes)

    def _next(self, waiting: deque[Candidate]) -> tuple[Any, ...]:
        """The method of `Conditions` to call, and its arguments."""
        if self.begun:
            own, fold = self.begun.popleft()
            return "measure", own.candidate, fold, own.chosen
        # An equal share for each method that waits, and for what runs at default settings.
        share = min(0.5, self.n_processes / (len(waiting) + 1))
        return "begin", waiting.popleft(), self.conditions.deadline.part(share)

    def _call(self, task: tuple[Any, ...], n_threads: int | None) -> tuple[Any, ...]:
        """A call for `processes`; epochs are reported where the process is this one."""
        if self.n_processes == 1:
            report = None if self.tell is None else self._report
            return _measured_here, self.conditions, report, task
        return _measured_there, replace(self.conditions, data=None), n_threads, task

    def _take(self, result: Begun | Outcomes) -> None:
        if not isinstance(result, Begun):
            self.found.update(result)
            return
        self.found.update(result.outcomes)
        self.settled[result.candidate.name] = result.candidate
        others = self.conditions.folds[1:]
        is_done = len(result.outcomes) > 1 or any(
            isinstance(own, Omitted) for own in result.outcomes.values()
        )
        if not is_done and others and self._fits(result, len(others)):
            self.begun.extend((result, fold) for fold in others)

    def _fits(self, begun: Begun, n_others: int) -> bool:
        """Whether there is time for a method's other folds; else it is left out."""
        deadline = self.conditions.deadline
        promised = n_others * begun.seconds + sum(own.seconds for own, _ in self.begun)
        needed = _MARGIN * max(promised / self.n_processes, begun.seconds)
        if deadline.allows(needed):
            return True
        needed += _MARGIN * (deadline.clock() - self.start)
        why = (
            f"left out: the first of {n_others + 1} folds took {in_words(begun.seconds)}, and the "
            f"others do not fit into budget={self.conditions.settings.budget!r}. Pass "
            f"budget={budget_of(needed)!r}, or budget=None, to include it"
        )
        number = self.conditions.folds[0].number
        self.found[begun.candidate.name, number] = Omitted(why, needed)
        return False

    def _report(self, message: str) -> None:
        if self.tell is not None:
            self.tell(message, len(self.found))


def _measured_here(
    _: Data, conditions: Conditions, report: Report | None, task: tuple[Any, ...]
) -> Any:
    name, *args = task
    return getattr(conditions, name)(*args, report=report)


def _measured_there(
    data: Data, conditions: Conditions, n_threads: int | None, task: tuple[Any, ...]
) -> Any:
    name, *args = task
    with threadpool_limits(n_threads):
        return getattr(replace(conditions, data=data), name)(*args)
