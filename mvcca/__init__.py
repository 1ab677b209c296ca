"""Multi-view canonical correlation analysis and cross-modal retrieval.

This module only says where the public names live. Each is imported when it is first asked for, so
`import mvcca` costs milliseconds and loads none of the libraries that do the work.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same names again, for type checkers and editors
    from mvcca import compose as compose
    from mvcca import datasets as datasets
    from mvcca import inspection as inspection
    from mvcca import labels as labels
    from mvcca import linalg as linalg
    from mvcca import measures as measures
    from mvcca import plotting as plotting
    from mvcca import retrieval as retrieval
    from mvcca import scoring as scoring
    from mvcca import similarity as similarity
    from mvcca import sources as sources
    from mvcca import statistics as statistics
    from mvcca import typing as typing
    from mvcca.compose import JoinViews as JoinViews
    from mvcca.compose import PerView as PerView
    from mvcca.compose import SplitViews as SplitViews
    from mvcca.config import config_context as config_context
    from mvcca.config import get_config as get_config
    from mvcca.config import set_config as set_config
    from mvcca.kernel import KCCA as KCCA
    from mvcca.kernel import NCCA as NCCA
    from mvcca.linear import CCA as CCA
    from mvcca.linear import CFA as CFA
    from mvcca.linear import CMOLRS as CMOLRS
    from mvcca.linear import JRL as JRL
    from mvcca.linear import LGCFL as LGCFL
    from mvcca.linear import MLCCA as MLCCA
    from mvcca.linear import MVCCA as MVCCA
    from mvcca.linear import MVMLCCA as MVMLCCA
    from mvcca.linear import PLS as PLS
    from mvcca.persistence import ModelFileError as ModelFileError
    from mvcca.persistence import load as load
    from mvcca.persistence import save as save
    from mvcca.retrieval import RetrievalIndex as RetrievalIndex
    from mvcca.retrieval import evaluate_retrieval as evaluate_retrieval
    from mvcca.scoring import retrieval_scorer as retrieval_scorer
    from mvcca.sources import RowSource as RowSource
    from mvcca.sources import open_matrix as open_matrix
    from mvcca.views import Views as Views

    __version__: str

_HOME = {
    "Views": "mvcca.views",
    "CCA": "mvcca.linear",
    "MVCCA": "mvcca.linear",
    "MLCCA": "mvcca.linear",
    "MVMLCCA": "mvcca.linear",
    "PLS": "mvcca.linear",
    "CFA": "mvcca.linear",
    "LGCFL": "mvcca.linear",
    "JRL": "mvcca.linear",
    "CMOLRS": "mvcca.linear",
    "KCCA": "mvcca.kernel",
    "NCCA": "mvcca.kernel",
    "PerView": "mvcca.compose",
    "SplitViews": "mvcca.compose",
    "JoinViews": "mvcca.compose",
    "RetrievalIndex": "mvcca.retrieval",
    "evaluate_retrieval": "mvcca.retrieval",
    "retrieval_scorer": "mvcca.scoring",
    "save": "mvcca.persistence",
    "load": "mvcca.persistence",
    "ModelFileError": "mvcca.persistence",
    "RowSource": "mvcca.sources",
    "open_matrix": "mvcca.sources",
    "config_context": "mvcca.config",
    "get_config": "mvcca.config",
    "set_config": "mvcca.config",
}
_MODULES = (
    "compose",
    "datasets",
    "inspection",
    "labels",
    "linalg",
    "measures",
    "plotting",
    "retrieval",
    "scoring",
    "similarity",
    "sources",
    "statistics",
    "typing",
)
__all__ = [*_HOME, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    elif name in _MODULES:
        value = import_module(f"mvcca.{name}")
    elif name == "__version__":
        from importlib.metadata import version

        value = version("mvcca")
    else:
        raise AttributeError(f"module 'mvcca' has no attribute {name!r}")
    globals()[name] = value  # found at once the next time
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
