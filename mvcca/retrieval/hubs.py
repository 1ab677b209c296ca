"""A bank of projected training rows of several views, for corrections of hubs between them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from mvcca.measures import unit_rows
from mvcca.retrieval._corrected_gallery import HubBank
from mvcca.retrieval.collection import Collection
from mvcca.retrieval.declared import Ranking
from mvcca.retrieval.hubness import HubCorrection, checked_correction
from mvcca.retrieval.similarity import checked_rows


@dataclass(frozen=True, eq=False)
class Hubs:
    """A correction for hubs, and the rows it compares with."""

    correction: HubCorrection
    bank: Collection

    @classmethod
    def of(cls, hubness: str | HubCorrection, bank: Any) -> Hubs:
        """Read a bank in the form of the scores of `mvcca.retrieval.evaluate_retrieval`."""
        return cls(checked_correction(hubness), Collection.of(bank))

    def bank_of(
        self,
        query: tuple[str, ...],
        target: tuple[str, ...],
        ranking: Ranking,
        normalize_query: bool = False,
        normalize_target: bool = False,
    ) -> HubBank:
        """The bank of one direction; `normalize_*` scales each view's rows to length 1."""
        needed = {*query, *target} if self.correction.needs_items else {*query}
        for name in needed:
            if name not in self.bank.rows:
                raise ValueError(
                    f"hubness={self.correction.name!r} from {'+'.join(query)} to "
                    f"{'+'.join(target)} needs bank rows of view {name!r}; the bank holds "
                    f"{list(self.bank.rows)}."
                )
        queries = self._rows(query, normalize_query)
        known = all(name in self.bank.rows for name in target)
        items = self._rows(target, normalize_target) if known else {}
        rows = ranking.queries(queries, target)
        return HubBank(self.correction, rows, ranking.items(items) if known else None)

    def _rows(self, names: tuple[str, ...], normalize: bool) -> dict[str, np.ndarray]:
        rows = self.bank.joint(names).rows
        return {name: unit_rows(part) for name, part in rows.items()} if normalize else rows

    def state(self) -> dict[str, Any]:
        """Plain values from which `of_state` restores the bank."""
        return {
            "name": self.correction.name,
            "parameters": asdict(self.correction),
            "rows": self.bank.rows,
            "objects": self.bank.objects,
        }

    @classmethod
    def of_state(cls, state: dict[str, Any]) -> Hubs:
        """Restore a bank and its correction."""
        correction = checked_correction(state["name"])
        rows = {name: checked_rows(part, f"bank {name!r}") for name, part in state["rows"].items()}
        bank = Collection(rows, state["objects"], {})
        return cls(replace(correction, **state["parameters"]), bank)
