"""What results say of confounds."""

from __future__ import annotations

from collections.abc import Sequence

from mvcca.machine.printable import in_one_line


def of_confounds(coding: Sequence[str]) -> list[str]:
    """The note that says how confounds were encoded; none without confounds."""
    return [in_one_line(f"Confounds: {'; '.join(coding)}.")] if coding else []
