"""The methods that `mvcca.compare` and the command line know by name.

The table names classes instead of importing them, so that ``mvcca --help`` imports nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

LearnsFrom = Literal["pairs", "labels"]
_OBJECTS = {"callbacks", "encoders"}  # parameters that text cannot express


@dataclass(frozen=True)
class Method:
    """A method: an estimator with some of its parameters fixed.

    Attributes
    ----------
    name : str
        Name to select it by, in `mvcca.compare` and on the command line.
    title : str
        Name in results.
    summary : str
        One-line description.
    path : str
        ``module:class`` of the estimator.
    learns_from : {"pairs", "labels"}
        Training data.
    fixed : mapping
        Parameters that define this method; the user cannot change them.
    is_deep : bool
        Whether it trains networks, which needs torch.
    """

    name: str
    title: str
    summary: str
    path: str
    learns_from: LearnsFrom
    fixed: Mapping[str, Any] = field(default_factory=dict)
    is_deep: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_deep", self.path.startswith("mvcca.deep"))

    @property
    def reads_words(self) -> bool:
        """Whether it has a network for views whose rows are sequences of words, ``tokens``."""
        return self.is_deep and "tokens" in self.takes()

    def takes(self) -> set[str]:
        """Names of the parameters that the user can set."""
        return set(inspect.signature(self._class()).parameters) - set(self.fixed) - _OBJECTS

    def build(self, parameters: Mapping[str, Any]) -> BaseEstimator:
        """Make the estimator, with those parameters that it has."""
        known = {name: parameters[name] for name in self.takes() & set(parameters)}
        return self._class()(**known, **self.fixed)

    def goal(self, are_sets: bool) -> Literal["object", "class"]:
        """What tuning maximizes by default; `are_sets`, if labels are classes or label sets."""
        return "class" if self.learns_from != "pairs" and are_sets else "object"

    def _class(self) -> Any:
        module, name = self.path.split(":")
        try:
            return getattr(import_module(module), name)
        except ImportError as error:  # of an extra
            raise ImportError(f"{self.name}: {error}") from error


def _of(
    name: str,
    title: str,
    path: str,
    summary: str,
    learns_from: LearnsFrom = "pairs",
    **fixed: Any,
) -> Method:
    """An entry of the table; `path` is that of the class in the package."""
    return Method(name, title, summary, f"mvcca.{path}", learns_from, fixed)


_TABLE = (
    _of("cca", "CCA", "linear:CCA", "canonical correlation analysis of two views"),
    _of("mvcca", "MVCCA", "linear:MVCCA", "CCA of two or more views"),
    _of("gcca", "GCCA", "linear:GCCA", "ridge regressions on all views that agree (MAXVAR)"),
    _of("kcca", "KCCA", "kernel:KCCA", "kernel CCA with n x n kernel matrices"),
    _of(
        "fkcca",
        "FKCCA",
        "kernel:KCCA",
        "kernel CCA with 500 random Fourier features",
        approximation="fourier",
    ),
    _of(
        "nkcca",
        "NKCCA",
        "kernel:KCCA",
        "kernel CCA with 500 Nyström landmarks",
        approximation="nystroem",
    ),
    _of("ncca", "NCCA", "kernel:NCCA", "nonparametric CCA from nearest neighbours"),
    _of("pls", "PLS", "linear:PLS", "maximal covariance instead of correlation"),
    _of(
        "sparse-cca",
        "Sparse CCA",
        "linear:SparseCCA",
        "the few features of each view that vary together, as many as folds choose",
    ),
    _of("cfa", "CFA", "linear:CFA", "cross-modal factor analysis: rotations of two views"),
    _of("procrustes", "Procrustes", "linear:Procrustes", "rotations under which views are closest"),
    _of(
        "affine",
        "Affine map",
        "linear:AffineMap",
        "ridge regression of the last view on the others",
    ),
    _of(
        "mlcca",
        "MLCCA",
        "linear:MLCCA",
        "all pairs of rows, weighted by label similarity",
        "labels",
    ),
    _of(
        "fast-mlcca",
        "Fast MLCCA",
        "linear:MLCCA",
        "MLCCA with the 50 nearest rows by label",
        "labels",
        n_neighbors=50,
    ),
    _of(
        "cluster-cca",
        "cluster-CCA",
        "linear:MLCCA",
        "MLCCA with all pairs of rows with equal labels",
        "labels",
        label_similarity="equal",
    ),
    _of(
        "mean-cca",
        "mean-CCA",
        "linear:MLCCA",
        "CCA of the means of classes or label sets",
        "labels",
        label_similarity="equal",
        weighting="means",
        n_neighbors=None,
    ),
    _of("mvmlcca", "MVMLCCA", "linear:MVMLCCA", "labels that may differ between views", "labels"),
    _of(
        "mvmlcca-label",
        "MVMLCCA label",
        "linear:MVMLCCA",
        'MVMLCCA as published, with within="label"',
        "labels",
        within="label",
    ),
    _of(
        "lgcfl", "LGCFL", "linear:LGCFL", "regression of labels on few features per view", "labels"
    ),
    _of("jrl", "JRL", "linear:JRL", "LGCFL with pairs and nearest neighbours", "labels"),
    _of(
        "sm",
        "semantic matching",
        "kernel:SemanticMatching",
        "class probabilities of every view, by logistic regression",
        "labels",
    ),
    _of(
        "klr",
        "label regression",
        "kernel:LabelRegression",
        "ridge regression of labels on kernel features of every view",
        "labels",
    ),
    _of(
        "sparse-discriminant",
        "Sparse discriminant",
        "linear:SparseDiscriminant",
        "few features of each view that tell classes apart (DIABLO)",
        "labels",
    ),
    _of("cmolrs", "CMOLRS", "linear:CMOLRS", "low-rank similarity learned from triplets", "labels"),
    _of("dcca", "DCCA", "deep:DCCA", "networks with correlated outputs"),
    _of("ds-dcca", "DS-DCCA", "deep:DSDCCA", "DCCA with a last layer scaled for every row"),
    _of("dccae", "DCCAE", "deep:DCCAE", "DCCA with autoencoders"),
    _of("soft-cca", "Soft-CCA", "deep:SoftCCA", "DCCA with a decorrelation loss"),
    _of("soft-hgr", "Soft-HGR", "deep:SoftHGR", "DCCA with a trace objective"),
    _of("l0-cca", "L0-CCA", "deep:L0CCA", "DCCA with feature selection"),
    _of("corrnet", "CorrNet", "deep:CorrNet", "one autoencoder of two views"),
    _of(
        "learned", "Learned ranking", "deep:LearnedRanking", "networks with a pairwise ranking loss"
    ),
    _of("ccal", "CCAL", "deep:CCAL", "ranking loss through a CCA layer"),
    _of("clip", "CLIP", "deep:CLIP", "networks with the symmetric cross entropy of CLIP"),
    _of(
        "ds-ranking-cca",
        "DS-Ranking-CCA",
        "deep:DSRankingCCA",
        "CCAL with a last layer scaled for every row",
    ),
    _of("two-branch", "Two-branch", "deep:TwoBranch", "networks with a structure-preserving loss"),
    _of("devise", "DeViSE", "deep:DeViSE", "linear map into the last view's space"),
    _of("acmr", "ACMR", "deep:ACMR", "adversarial networks of labels", "labels"),
    _of("deep-sm", "Deep-SM", "deep:DeepSM", "classifiers of each view", "labels"),
    _of("cmdn", "CMDN", "deep:CMDN", "machines and autoencoders in stages", "labels"),
    _of("ccl", "CCL", "deep:CCL", "contrastive networks of labels, simplified", "labels"),
    _of("sam", "SAM", "deep:SAM", "margins that adapt to the labels", "labels"),
    _of("msds", "MSDS", "deep:MSDS", "networks that find one match among more"),
    _of("corr-ae", "Corr-AE", "deep:CorrAE", "autoencoders with similar codes"),
    _of(
        "cross-corr-ae",
        "Cross-Corr-AE",
        "deep:CrossCorrAE",
        "Corr-AE that reconstructs the other view",
    ),
)
METHODS = {method.name: method for method in _TABLE}
_SELECTION = ("sparse-cca", "sparse-discriminant")  # of features, not for retrieval
_DEEP = [name for name, method in METHODS.items() if method.is_deep]
GROUPS = {
    "default": ("cca", "mvcca", "nkcca", "sm", "jrl"),
    "all": tuple(
        name for name, method in METHODS.items() if not (method.is_deep or name in _SELECTION)
    ),
    "selection": _SELECTION,
    "deep": tuple(_DEEP[: _DEEP.index("corrnet") + 1]),
    "deep-retrieval": tuple(_DEEP[_DEEP.index("corrnet") + 1 :]),
}
_PEERS = {  # names in mixOmics, RGCCA, PMA and cca-zoo
    **dict.fromkeys(("diablo", "block.splsda", "splsda", "spls-da"), "sparse-discriminant"),
    **dict.fromkeys(("spls", "sgcca", "rgcca", "pmd", "scca", "block.spls"), "sparse-cca"),
    **dict.fromkeys(("rcc", "rcca"), "cca"),
}
_GONE = {"three-view-cca": "use MVCCA with the labels as one more view (with_labels_as_view)"}
DEFAULT_DEEP = ("cca", "nkcca", *GROUPS["deep"])


class MethodTable(dict[str, Method]):
    """Methods by name, printed as a table."""

    def __repr__(self) -> str:
        return listing()


def methods() -> MethodTable:
    """List the methods that `mvcca.compare` and ``mvcca fit`` know by name.

    Returns
    -------
    dict of str to Method
        Each method with its title, what it learns from, and ``build(parameters)``, which makes the
        estimator. Printing it shows a table.

    Examples
    --------
    >>> import mvcca
    >>> mvcca.methods()["nkcca"].build({"n_components": 9})
    KCCA(approximation='nystroem', n_components=9)
    """
    return MethodTable(METHODS)


def selected(names: Iterable[str]) -> list[str]:
    """Names of methods, in any case, with groups (such as "default") replaced by their members."""
    found: dict[str, None] = {}
    for given in names:
        name = given.lower().replace("_", "-")
        if name not in GROUPS and name not in METHODS:
            raise ValueError(unknown(given, [*METHODS, *GROUPS]))
        found |= dict.fromkeys(GROUPS.get(name, (name,)))
    return list(found)


def unknown(name: str, known: Sequence[str]) -> str:
    """Error message about an unknown method, with similar names or else all of them."""
    if name in _GONE:
        return f"{name!r} is no method any more: {_GONE[name]}"
    if name.lower() in _PEERS:
        return (
            f'unknown method {name!r}; here it is {_PEERS[name.lower()]!r}: see "Coming from '
            'mixOmics, RGCCA and PMA" in the user guide'
        )
    for method in _TABLE:
        _, _, of_class = method.path.partition(":")
        if _letters(name) in (_letters(method.title), _letters(of_class)):
            return f"unknown method {name!r}; here it is {method.name!r}"
    hint = did_you_mean(name, known) or f"; known: {', '.join(known)}"
    return f"unknown method {name!r}{hint}"


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of an error message: similar names, if there are any."""
    similar = get_close_matches(name.lower(), sorted(known), n=3)
    return f"; did you mean {' or '.join(map(repr, similar))}?" if similar else ""


def listing() -> str:
    """All methods with what they learn from, one per line."""
    width = max(map(len, METHODS)) + 2
    lines = {
        name: f"  {name.ljust(width)}{method.summary} [{method.learns_from}]"
        for name, method in METHODS.items()
    }
    return "\n".join(
        [
            *(lines[name] for name in (*GROUPS["all"], *GROUPS["selection"])),
            "with networks, which need torch (pip install mvcca[deep]):",
            *(lines[name] for name in _DEEP),
        ]
    )
