"""Progress of a comparison, and of a fit that trains networks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from mvcca.machine.config import config_context

Report = Callable[[str], None]  # shows a line of progress
_LONG = 20.0  # seconds, from which on an estimate is worth a line
_KNOWN = 0.05  # share that is done, from which on its time tells how long the rest takes


@dataclass
class TimeLeft:
    """Share of a comparison that is done, and the time that is left.

    Attributes
    ----------
    total : float
        Estimated seconds of all tasks.
    done : float
        Those of the tasks that are done.
    """

    total: float
    done: float = 0.0
    start: float = field(default_factory=perf_counter)

    @property
    def share(self) -> float:
        """Share of the estimated seconds that is done."""
        return self.done / self.total if self.total else 0.0

    def __str__(self) -> str:
        share = self.share
        left = self.total - self.done
        if share > _KNOWN:
            left = (perf_counter() - self.start) * (1 - share) / share
        return f"{share:.0%} done, about {time_in_words(left)} left"


class ExpectedTime(str):
    """Estimated time and memory in words, as in "estimated: 3 min of CPU time and 1.2 GB".

    Attributes
    ----------
    seconds, n_bytes : float
        The same as numbers.
    """

    seconds: float
    n_bytes: float

    def __new__(cls, seconds: float, n_bytes: float) -> ExpectedTime:
        """Write the numbers in words."""
        text = f"estimated: {time_in_words(seconds)} of CPU time and {n_bytes / 1e9:.1f} GB"
        found = super().__new__(cls, f"{text} of memory beside the data")
        found.seconds, found.n_bytes = seconds, n_bytes
        return found

    @property
    def is_long(self) -> bool:
        """Whether users should know before the work begins."""
        return self.seconds > _LONG


@contextmanager
def bar(left: TimeLeft) -> Iterator[Report]:
    """A progress bar of the whole comparison, whose fits show none."""
    from tqdm.auto import tqdm

    with (
        config_context(progress=False),
        tqdm(total=1.0, bar_format="{bar} {desc}", dynamic_ncols=True) as shown,
    ):

        def draw(text: str) -> None:
            shown.n = min(left.share, 1.0)
            shown.set_description_str(text)

        yield draw
        left.done = left.total
        draw("compared")


def time_in_words(seconds: float) -> str:
    """Time in seconds, minutes or hours."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@contextmanager
def epochs_reported(estimator: Any, report: Report | None) -> Iterator[None]:
    """Report every epoch if the estimator, fitted in the body, trains networks."""
    if report is None or not hasattr(estimator, "callbacks"):
        yield
        return
    from mvcca.deep.callbacks import Callback

    show, start = report, perf_counter()

    class Epochs(Callback):
        before: int | None = None  # epochs of the checkpoint that it resumes from

        def on_epoch_end(self, trainer: Any) -> None:
            figures = trainer.history[-1]
            names = ("loss", "valid_loss", "valid_total_correlation")
            measured = [name for name in names if name in figures]
            text = ", ".join(f"{name.replace('_', ' ')} {figures[name]:.4g}" for name in measured)
            self.before = trainer.epoch - 1 if self.before is None else self.before
            per_epoch = (perf_counter() - start) / (trainer.epoch - self.before)
            left = (trainer.last_epoch - trainer.epoch) * per_epoch
            more = f", about {time_in_words(left)} left" if left >= 1 else ""
            show(f"epoch {trainer.epoch} of {trainer.last_epoch}, {text}{more}")

    given = estimator.callbacks
    estimator.callbacks = (*given, Epochs())
    try:
        yield
    finally:
        estimator.callbacks = given
