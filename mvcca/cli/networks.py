"""Default training settings of methods with networks, and progress reports of their epochs.

The published settings are meant for tens of thousands of rows. Those for fewer rows were tuned on a
fifth of the training rows of digits, by label mAP and total correlation. Beyond 60 epochs, up to
400, mAP gained at most 0.03 and never dropped, with 200 as with 1,150 rows, so no rows are set
aside for early stopping.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mvcca.cli.methods import Method

_MANY_ROWS = 10_000  # use the published settings from this number of rows
_ROWS_PER_COMPONENT = 8  # minimum in a batch
_VALIDATION_FRACTION = 0.1  # if only patience is given
_FOR_FEW_ROWS = {
    "batch_size": 128,
    "hidden_layer_sizes": (256, 256),
    "max_epochs": 60,
    "decorrelation": 1.0,
    "scaling_start": "one",
}
_FOR_MANY_ROWS = {"batch_size": 750, "hidden_layer_sizes": (800, 800), "max_epochs": 100}


def defaults(method: Method, chosen: Mapping[str, Any], n_rows: int) -> dict[str, Any]:
    """Default parameters for a number of training rows, given the parameters that the user chose.

    Empty for methods without networks. May contain parameters that the method does not have.
    """
    if not method.is_deep:
        return {}
    found: dict[str, Any] = {"reg": 1e-4}
    if "patience" in chosen:
        found["validation_fraction"] = _VALIDATION_FRACTION
    if "hidden_layer_sizes" not in method.takes():  # small by design
        return found
    found |= _FOR_FEW_ROWS if n_rows < _MANY_ROWS else _FOR_MANY_ROWS
    n_components = chosen.get("n_components", 2)
    if isinstance(n_components, int):  # the estimator rejects other types
        found["batch_size"] = max(found["batch_size"], _ROWS_PER_COMPONENT * n_components)
    n_epochs = chosen.get("max_epochs", found["max_epochs"])
    if isinstance(n_epochs, int):
        found["warm_up"] = n_epochs // 2
    return found


@contextmanager
def epochs_reported(estimator: Any, report: Callable[[str], None]) -> Iterator[None]:
    """Report every epoch if the estimator, fitted in the body, trains networks."""
    if not hasattr(estimator, "callbacks"):
        yield
        return
    from mvcca.deep.callbacks import Callback

    class Epochs(Callback):
        def on_epoch_end(self, trainer: Any) -> None:
            figures = trainer.history[-1]
            names = ("loss", "valid_loss", "valid_total_correlation")
            measured = [name for name in names if name in figures]
            text = ", ".join(f"{name.replace('_', ' ')} {figures[name]:.4g}" for name in measured)
            report(f"epoch {trainer.epoch} of {trainer.last_epoch}, {text}")

    given = estimator.callbacks
    estimator.callbacks = (*given, Epochs())
    try:
        yield
    finally:
        estimator.callbacks = given
