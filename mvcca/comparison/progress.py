"""Progress of a comparison, and of a fit that trains networks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from mvcca.machine.config import config_context, get_config
from mvcca.machine.deadline import in_words

Report = Callable[[str], None]  # shows a line of progress
Tell = Callable[[str, int], None]  # shows a line of progress, and how many fits are done


@contextmanager
def told(progress: Report | None, n_fits: int) -> Iterator[Tell | None]:
    """Tell the progress of a comparison to the user's function, or on a bar if one is configured.

    The bar is that of the whole comparison, whose fits show none.
    """
    if progress is not None:
        yield lambda message, done: progress(f"{message} ({done} of {n_fits} fits done)")
        return
    if not get_config().progress:
        yield None
        return
    from tqdm.auto import tqdm

    with (
        config_context(progress=False),
        tqdm(total=n_fits, bar_format="{bar} {desc}", dynamic_ncols=True) as shown,
    ):

        def draw(message: str, done: int) -> None:
            shown.n = done
            shown.set_description_str(f"{message} ({done} of {n_fits} fits done)")

        yield draw
        draw("compared", n_fits)


@contextmanager
def epochs_reported(estimator: Any, report: Report | None) -> Iterator[None]:
    """Report every epoch if the estimator, fitted in the body, trains networks."""
    if report is None or not hasattr(estimator, "callbacks"):
        yield
        return
    from mvcca.deep.callbacks import Callback

    show = report

    class Epochs(Callback):
        begun: float  # when the training, one of several of a fit, began or was resumed
        before: int  # its epochs until then

        def on_train_begin(self, trainer: Any) -> None:
            self.begun, self.before = perf_counter(), trainer.epoch

        def on_epoch_end(self, trainer: Any) -> None:
            figures = trainer.history[-1]
            names = ("loss", "valid_loss", "valid_total_correlation")
            measured = [name for name in names if name in figures]
            text = ", ".join(f"{name.replace('_', ' ')} {figures[name]:.4g}" for name in measured)
            per_epoch = (perf_counter() - self.begun) / (trainer.epoch - self.before)
            left = (trainer.last_epoch - trainer.epoch) * per_epoch
            more = f", about {in_words(left)} left" if left >= 1 else ""
            title = f"{trainer.title}, " if trainer.title else ""
            show(f"{title}epoch {trainer.epoch} of {trainer.last_epoch}, {text}{more}")

    given = estimator.callbacks
    estimator.callbacks = (*given, Epochs())
    try:
        yield
    finally:
        estimator.callbacks = given
