"""Banks of several views: projected training rows for corrections for hubs in any direction."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from mvcca.machine.warnings import warn
from mvcca.retrieval.collection import Collection
from mvcca.retrieval.hubs.corrected import Bank, corrected
from mvcca.retrieval.hubs.corrections import HubCorrection, checked_correction
from mvcca.retrieval.search import Gallery, checked_rows

if TYPE_CHECKING:
    from mvcca.retrieval.ranking import Ranking  # which imports this module


@dataclass(frozen=True, eq=False)
class BankOfViews:
    """A correction for hubs, and the rows it compares with."""

    correction: HubCorrection
    rows: Collection  # as the ranking compares them
    is_asked: bool = True  # by a user, to whom a direction without bank rows is an error

    @classmethod
    def of(cls, hubness: str | HubCorrection, bank: Any, ranking: Ranking) -> BankOfViews:
        """Read a bank in the form of the scores of `mvcca.retrieval.evaluate_retrieval`."""
        if isinstance(bank, cls):  # of an index that was stored
            return bank
        return cls(checked_correction(hubness), Collection.of(bank, ranking))

    def corrected(
        self,
        gallery: Gallery,
        query: tuple[str, ...],
        target: tuple[str, ...],
        ranking: Ranking,
        normalize_query: bool = False,
        normalize_target: bool = False,
        before: Any = None,
    ) -> Gallery:
        """The gallery of one direction with the correction; `before` is an earlier one to extend.

        The bank of a tuned model may hold too few objects that are seen in all views of a joint
        query or target. These are ranked without the correction, which a warning says.
        """
        needed: int = getattr(self.correction, "n_neighbors", 1)
        if not self.is_asked and (n := min(map(self._n_shared, (query, target)))) < needed:
            warn(
                f"{'+'.join(query)} -> {'+'.join(target)}: ranked without {self.correction}, which "
                f"needs {needed} stored training objects seen in all of these views; there are {n}"
            )
            return gallery
        bank = self._between(query, target, ranking, normalize_query, normalize_target)
        return corrected(gallery, bank, before)

    def _n_shared(self, names: tuple[str, ...]) -> int:
        """Number of the bank's objects that are seen in all of the views."""
        objects = self.rows.objects
        return len(reduce(np.intersect1d, (objects.get(name, ()) for name in names)))

    def _between(
        self,
        query: tuple[str, ...],
        target: tuple[str, ...],
        ranking: Ranking,
        normalize_query: bool = False,
        normalize_target: bool = False,
    ) -> Bank:
        """The bank of one direction; `normalize_*` scales each view's rows to length 1."""
        needed = {*query, *target} if self.correction.needs_items else {*query}
        for name in needed:
            if name not in self.rows.rows:
                raise ValueError(
                    f"hubness={self.correction.name!r} from {'+'.join(query)} to "
                    f"{'+'.join(target)} needs bank rows of view {name!r}; the bank holds "
                    f"{list(self.rows.rows)}."
                )
        rows = ranking.queries(self.rows.joint(query).rows, target, normalize=normalize_query)
        if not all(name in self.rows.rows for name in target):
            return Bank(self.correction, rows)
        items = ranking.items(self.rows.joint(target).rows, normalize_target)
        return Bank(self.correction, rows, items)

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
        correction = type(checked_correction(state["name"]))(**state["parameters"])
        rows = {name: checked_rows(part, f"bank {name!r}") for name, part in state["rows"].items()}
        bank = Collection(rows, state["objects"])
        return cls(correction, bank)
