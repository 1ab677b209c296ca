"""Notes on the time and memory that a command is about to take, if it is long."""

from __future__ import annotations

from typing import Any

from mvcca.cli.console import note
from mvcca.comparison.costs import Shapes, Work, costs_of
from mvcca.comparison.progress import ExpectedTime
from mvcca.machine.memory import available_bytes
from mvcca.views import Labels, Views

_N_COMPONENTS = 100  # of a model that does not tell


def note_work(work: Work | None, n_processes: int = 1) -> None:
    """Print a note if the work takes long, or more memory than there is."""
    if work is not None:
        cost = costs_of({"": work})[""]
        note_estimate(ExpectedTime(cost.seconds / n_processes, cost.n_bytes))


def note_estimate(estimate: ExpectedTime) -> None:
    """Print the estimate if it is long, or of more memory than there is."""
    available = available_bytes()
    is_much = estimate.n_bytes > available
    if estimate.is_long or is_much:
        more = f"; only {available / 1e9:.1f} GB of memory are free" if is_much else ""
        note(f"{estimate}{more}")


def note_fit(estimator: Any, views: Views, labels: Labels | None, n_processes: int = 1) -> None:
    """Print a note if a fit takes long, its search of settings included."""
    from mvcca.comparison.costs import fit_work  # with scikit-learn, which takes a second

    note_work(fit_work(estimator, Shapes.of_views(views, labels)), n_processes)


def n_components_of(model: Any) -> int:
    """Dimension of the space that a fitted model maps to, or that of its last step."""
    last = model[-1] if hasattr(model, "steps") else model
    return int(getattr(last, "n_components_", _N_COMPONENTS))
