"""Compare methods on one's own data: `compare`, its result, and the registry of methods.

`registry` names the methods, `schedule` measures them within a time limit, `fits` fits and measures
one method on one fold, `protocol` says what the values of held-out objects mean, `result` holds
them, and `verdict`, `export` and `report` show them. `cases` holds data with all that a comparison
takes of them. Names are imported on first access, since ``mvcca --help`` reads the registry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mvcca.machine.on_access import on_access

if TYPE_CHECKING:
    from mvcca.comparison.pipeline import compare as compare
    from mvcca.comparison.registry import Method as Method
    from mvcca.comparison.registry import methods as methods
    from mvcca.comparison.result import ComparisonResult as ComparisonResult

__all__ = [
    "ComparisonResult",
    "Method",
    "compare",
    "methods",
]

__getattr__ = on_access(
    __name__,
    {
        "pipeline": ["compare"],
        "registry": ["Method", "methods"],
        "result": ["ComparisonResult"],
    },
)
