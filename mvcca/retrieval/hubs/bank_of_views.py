"""Banks of several views: projected training rows for corrections for hubs in any direction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mvcca.retrieval.collection import Collection
from mvcca.retrieval.hubs.corrected import Bank
from mvcca.retrieval.hubs.corrections import HubCorrection, check_bank, checked_correction
from mvcca.retrieval.ranking import Ranking
from mvcca.retrieval.search import checked_rows


@dataclass(frozen=True, eq=False)
class BankOfViews:
    """A correction for hubs, and the rows it compares with."""

    correction: HubCorrection
    rows: Collection

    @classmethod
    def of(cls, hubness: str | HubCorrection | None, bank: Any, ranking: Ranking) -> BankOfViews:
        """Read a bank in the form of the scores of `mvcca.retrieval.evaluate_retrieval`."""
        check_bank(hubness, bank)
        assert hubness is not None
        return cls(checked_correction(hubness), Collection.of(bank, ranking))

    def between(
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
