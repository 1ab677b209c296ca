"""Compare methods on one's own data: `compare`, its result, and the registry of methods.

`registry` names the methods, `budget` says which of them the time allows, `tuning` chooses their
settings, `fits` fits and measures one method on one fold, `significance` compares methods, `result`
holds what was measured, and `verdict`, `summary`, `against_defaults`, `export` and `report` show
it. Names are imported on first access, since ``mvcca --help`` reads the registry.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mvcca.comparison.cases import Case as Case
    from mvcca.comparison.cases import example_data as example_data
    from mvcca.comparison.data import Presentation as Presentation
    from mvcca.comparison.measurements import Difference as Difference
    from mvcca.comparison.pipeline import compare as compare
    from mvcca.comparison.registry import Method as Method
    from mvcca.comparison.registry import methods as methods
    from mvcca.comparison.result import ComparisonResult as ComparisonResult

_MODULE_OF = {
    "Case": "cases",
    "ComparisonResult": "result",
    "Difference": "measurements",
    "Method": "registry",
    "Presentation": "data",
    "compare": "pipeline",
    "example_data": "cases",
    "methods": "registry",
}
__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'mvcca.comparison' has no attribute {name!r}")
    return getattr(import_module(f"mvcca.comparison.{_MODULE_OF[name]}"), name)
