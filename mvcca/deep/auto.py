"""Values of parameters that are ``"auto"``: they depend on the number of training rows.

Published settings are meant for tens of thousands of rows. Those for fewer rows were tuned on
digits, halves of MNIST, captions and Wikipedia (``benchmarks/defaults/deep_training.py``). After 40
epochs halves of MNIST gain little, and methods that learn to retrieve short texts lose, as they do
without a second set of rows to stop them. To set a tenth of the rows aside gains more often than
it loses, but is left to the user, who may have too few.
"""

from __future__ import annotations

from typing import Any

MANY_ROWS = 10_000  # use the published settings from this number of rows
ROWS_PER_COMPONENT = 8  # minimum in a batch
_AUTO = {  # values for fewer rows than that, and for more
    "batch_size": (128, 750),
    "hidden_layer_sizes": ((256, 256), (800, 800)),
    "width": (256, 1024),
    "max_epochs": (40, 100),
    "learning_rate": (3e-3, 1e-3),
    "decorrelation": (1.0, 10.0),
    "scaling_start": ("one", "default"),
}


def auto_setting(name: str, n_rows: int, n_components: int | None) -> Any:
    """Value of a parameter for a number of training rows."""
    value: Any = _AUTO[name][n_rows >= MANY_ROWS]
    least = ROWS_PER_COMPONENT * (n_components or 0)
    return max(value, least) if name == "batch_size" else value
