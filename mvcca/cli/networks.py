"""How networks are trained where the user does not say, and what is said of it while they are.

The published settings are for tens of thousands of rows. Those for fewer were chosen on a fifth of
the training rows of digits, by label mAP and total correlation. After 60 epochs more of them, up to
400, gained at most 0.03 of mAP there, of 200 rows as of 1,150, and none was lost: no rows are set
aside to stop early.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mvcca.cli.methods import Method

__all__ = ["told", "usual"]

_MANY = 10_000  # rows, from which on the published settings are the usual ones
_PER_COMPONENT = 8  # rows of a batch, at least
_VALIDATION = 0.1  # of the rows, where patience alone is asked for
_OF_FEW = {
    "batch_size": 128,
    "hidden_layer_sizes": (256, 256),
    "max_epochs": 60,
    "decorrelation": 1.0,
    "scaling_start": "one",
}
_OF_MANY = {"batch_size": 750, "hidden_layer_sizes": (800, 800), "max_epochs": 100}


def usual(method: Method, chosen: Mapping[str, Any], n_rows: int) -> dict[str, Any]:
    """Parameters by the number of rows, to be replaced by those that the user chose.

    Parameters
    ----------
    method : Method
    chosen : mapping
        What the user chose: for how many components, and how many epochs.
    n_rows : int
        To train with.

    Returns
    -------
    dict
        Empty for methods without networks; some are parameters of other methods with them.
    """
    if not method.is_deep:
        return {}
    found: dict[str, Any] = {"reg": 1e-4}
    if "patience" in chosen:
        found["validation_fraction"] = _VALIDATION
    if "hidden_layer_sizes" not in method.takes():  # small as published, for few rows
        return found
    found |= _OF_FEW if n_rows < _MANY else _OF_MANY
    n_components = chosen.get("n_components", 2)
    if isinstance(n_components, int):  # what else it is, the estimator will refuse
        found["batch_size"] = max(found["batch_size"], _PER_COMPONENT * n_components)
    n_epochs = chosen.get("max_epochs", found["max_epochs"])
    if isinstance(n_epochs, int):
        found["warm_up"] = n_epochs // 2
    return found


@contextmanager
def told(estimator: Any, say: Callable[[str], None]) -> Iterator[None]:
    """Say after every epoch of the training in the body how it went, if it is one of networks."""
    if not hasattr(estimator, "callbacks"):
        yield
        return
    from mvcca.deep.callbacks import Callback

    class Epochs(Callback):
        def on_epoch_end(self, trainer: Any) -> None:
            figures = trainer.history[-1]
            names = ("loss", "valid_loss", "valid_total_correlation")
            measured = [name for name in names if name in figures]
            how = ", ".join(f"{name.replace('_', ' ')} {figures[name]:.4g}" for name in measured)
            say(f"epoch {trainer.epoch} of {trainer.last_epoch}, {how}")

    given = estimator.callbacks
    estimator.callbacks = (*given, Epochs())
    try:
        yield
    finally:
        estimator.callbacks = given
