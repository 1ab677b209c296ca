"""Multi-view canonical correlation analysis and cross-modal retrieval.

Public names and submodules are imported on first access, so that `import mvcca` takes milliseconds
and loads neither scikit-learn nor torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same names, for type checkers and editors
    from mvcca import blocks as blocks
    from mvcca import comparison as comparison
    from mvcca import compose as compose
    from mvcca import datasets as datasets
    from mvcca import deep as deep
    from mvcca import inspection as inspection
    from mvcca import interop as interop
    from mvcca import kernel as kernel
    from mvcca import linear as linear
    from mvcca import machine as machine
    from mvcca import measures as measures
    from mvcca import model_selection as model_selection
    from mvcca import persistence as persistence
    from mvcca import plotting as plotting
    from mvcca import problem as problem
    from mvcca import retrieval as retrieval
    from mvcca import similarity as similarity
    from mvcca import statistics as statistics
    from mvcca import views as views
    from mvcca.blocks import RowSource as RowSource
    from mvcca.blocks import open_matrix as open_matrix
    from mvcca.comparison import ComparisonResult as ComparisonResult
    from mvcca.comparison import compare as compare
    from mvcca.comparison import methods as methods
    from mvcca.compose import Encode as Encode
    from mvcca.compose import JoinViews as JoinViews
    from mvcca.compose import PerView as PerView
    from mvcca.compose import SplitViews as SplitViews
    from mvcca.compose import Tokens as Tokens
    from mvcca.kernel import KCCA as KCCA
    from mvcca.kernel import NCCA as NCCA
    from mvcca.kernel import LabelRegression as LabelRegression
    from mvcca.kernel import SemanticMatching as SemanticMatching
    from mvcca.linear import CCA as CCA
    from mvcca.linear import CFA as CFA
    from mvcca.linear import CMOLRS as CMOLRS
    from mvcca.linear import GCCA as GCCA
    from mvcca.linear import JRL as JRL
    from mvcca.linear import LGCFL as LGCFL
    from mvcca.linear import MLCCA as MLCCA
    from mvcca.linear import MVCCA as MVCCA
    from mvcca.linear import MVMLCCA as MVMLCCA
    from mvcca.linear import PLS as PLS
    from mvcca.linear import RGCCA as RGCCA
    from mvcca.linear import AffineMap as AffineMap
    from mvcca.linear import Procrustes as Procrustes
    from mvcca.linear import SparseCCA as SparseCCA
    from mvcca.linear import SparseDiscriminant as SparseDiscriminant
    from mvcca.machine import config_context as config_context
    from mvcca.machine import get_config as get_config
    from mvcca.machine import set_config as set_config
    from mvcca.model_selection import FoldSearchCV as FoldSearchCV
    from mvcca.model_selection import retrieval_scorer as retrieval_scorer
    from mvcca.persistence import ModelFileError as ModelFileError
    from mvcca.persistence import load as load
    from mvcca.persistence import save as save
    from mvcca.retrieval import RetrievalIndex as RetrievalIndex
    from mvcca.retrieval import evaluate_retrieval as evaluate_retrieval
    from mvcca.views import Labels as Labels
    from mvcca.views import Views as Views

    __version__: str

# Submodules, and the names that each offers here.
_MODULES = {
    "blocks": ("RowSource", "open_matrix"),
    "comparison": ("ComparisonResult", "compare", "methods"),
    "compose": ("Encode", "JoinViews", "PerView", "SplitViews", "Tokens"),
    "datasets": (),
    "deep": (),
    "inspection": (),
    "interop": (),
    "kernel": ("KCCA", "NCCA", "LabelRegression", "SemanticMatching"),
    "linear": (
        "AffineMap",
        "CCA",
        "CFA",
        "CMOLRS",
        "GCCA",
        "JRL",
        "LGCFL",
        "MLCCA",
        "MVCCA",
        "MVMLCCA",
        "PLS",
        "RGCCA",
        "Procrustes",
        "SparseDiscriminant",
        "SparseCCA",
    ),
    "machine": ("config_context", "get_config", "set_config"),
    "measures": (),
    "model_selection": ("FoldSearchCV", "retrieval_scorer"),
    "persistence": ("ModelFileError", "load", "save"),
    "plotting": (),
    "problem": (),
    "retrieval": ("RetrievalIndex", "evaluate_retrieval"),
    "similarity": (),
    "statistics": (),
    "views": ("Labels", "Views"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}
__all__ = [*_MODULE_OF, *sorted(_MODULES.keys() - {"deep"})]  # `from mvcca import *` needs no torch


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        value = getattr(import_module(f"mvcca.{_MODULE_OF[name]}"), name)
    elif name in _MODULES:
        value = import_module(f"mvcca.{name}")
    elif name == "__version__":
        from importlib.metadata import version

        value = version("mvcca")
    else:
        raise AttributeError(f"module 'mvcca' has no attribute {name!r}")
    globals()[name] = value  # later accesses skip this function
    return value


def __dir__() -> list[str]:
    return sorted([*_MODULE_OF, *_MODULES, "__version__"])
