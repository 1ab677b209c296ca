"""Banks of several views: projected training rows to correct for hubs in any direction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from mvcca.machine.warnings import warn
from mvcca.retrieval.collection import Collection
from mvcca.retrieval.hubs.csls import CSLS, checked_correction
from mvcca.retrieval.search import checked_rows


@dataclass(frozen=True, eq=False)
class BankOfViews:
    """A correction for hubs, and the rows it compares with."""

    correction: CSLS
    rows: Collection  # as the ranking compares them
    is_asked: bool = True  # by a user, to whom a direction without bank rows is an error

    def suffices(self, query: tuple[str, ...], target: tuple[str, ...]) -> bool:
        """Whether there are rows enough to correct a direction.

        The bank of a tuned model may hold too few objects that are seen in all views of a joint
        query or target. These are ranked without the correction, which a warning says.
        """
        needed = self.correction.n_neighbors
        if self.is_asked or (n := min(map(self._n_shared, (query, target)))) >= needed:
            return True
        warn(
            f"{'+'.join(query)} -> {'+'.join(target)}: ranked without {self.correction}, which "
            f"needs {needed} stored training objects seen in all of these views; there are {n}"
        )
        return False

    def _n_shared(self, names: tuple[str, ...]) -> int:
        """Number of the bank's objects that are seen in all of the views."""
        objects = self.rows.objects
        return len(reduce(np.intersect1d, (objects.get(name, ()) for name in names)))

    def rows_between(
        self, query: tuple[str, ...], target: tuple[str, ...]
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Rows of the query and of the target views."""
        for name in (*query, *target):
            if name not in self.rows.rows:
                raise ValueError(
                    f"hubness={self.correction.name!r} from {'+'.join(query)} to "
                    f"{'+'.join(target)} needs bank rows of view {name!r}; the bank holds "
                    f"{list(self.rows.rows)}."
                )
        return self.rows.joint(query).rows, self.rows.joint(target).rows

    def state(self) -> dict[str, Any]:
        """Plain values from which `of_state` restores the bank."""
        return {
            "name": self.correction.name,
            "parameters": dict(vars(self.correction)),
            "rows": self.rows.rows,
            "objects": self.rows.objects,
        }

    @classmethod
    def of_state(cls, state: dict[str, Any]) -> BankOfViews:
        """Restore a bank and its correction."""
        correction = replace(checked_correction(state["name"]), **state["parameters"])
        rows = {name: checked_rows(part, f"bank {name!r}") for name, part in state["rows"].items()}
        bank = Collection(rows, state["objects"])
        return cls(correction, bank)
