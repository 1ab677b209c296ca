"""Progress of a fit that trains networks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def epochs_reported(estimator: Any, report: Callable[[str], None] | None) -> Iterator[None]:
    """Report every epoch if the estimator, fitted in the body, trains networks."""
    if report is None or not hasattr(estimator, "callbacks"):
        yield
        return
    from mvcca.deep.callbacks import Callback

    show = report

    class Epochs(Callback):
        def on_epoch_end(self, trainer: Any) -> None:
            figures = trainer.history[-1]
            names = ("loss", "valid_loss", "valid_total_correlation")
            measured = [name for name in names if name in figures]
            text = ", ".join(f"{name.replace('_', ' ')} {figures[name]:.4g}" for name in measured)
            show(f"epoch {trainer.epoch} of {trainer.last_epoch}, {text}")

    given = estimator.callbacks
    estimator.callbacks = (*given, Epochs())
    try:
        yield
    finally:
        estimator.callbacks = given
