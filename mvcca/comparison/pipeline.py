"""`compare`: the same folds and measures for every method."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from functools import partial
from numbers import Integral
from typing import Any

from joblib import Parallel, delayed
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from mvcca.comparison.data import Data
from mvcca.comparison.folds import Fold
from mvcca.comparison.labels import Labels
from mvcca.comparison.one_fold import Candidate, Outcome, Settings, by_chance, run_fold
from mvcca.comparison.registry import METHODS, Method, did_you_mean, selected
from mvcca.comparison.result import ComparisonResult
from mvcca.comparison.texts import text_views
from mvcca.machine.warnings import warn
from mvcca.retrieval import Measure
from mvcca.retrieval.evaluate import DEFAULT_MEASURES, Directions
from mvcca.retrieval.relevance import RelevanceBy
from mvcca.views.typing import LabelsLike, ViewsLike

REG = 0.1
N_COMPONENTS = 10


def compare(
    methods: Mapping[str, Any] | Sequence[str] | str,
    X: ViewsLike,
    y: LabelsLike | Labels | None = None,
    *,
    cv: Any = 5,
    groups: Any = None,
    search: Mapping[str, Sequence[Any]] | None = None,
    measures: str | Sequence[str] = DEFAULT_MEASURES,
    relevance: RelevanceBy | None = None,
    directions: Directions = "cross",
    label_vectors: Any = None,
    params: Mapping[str, Any] | None = None,
    fit_labels: LabelsLike | Labels | None = None,
    n_jobs: int | None = None,
    random_state: int = 0,
    progress: Callable[[str], None] | None = None,
) -> ComparisonResult:
    """Compare how well methods retrieve across views, on held-out objects.

    All methods are fitted to the same training parts and measured on the same held-out parts, each
    by the similarity that it declares. All rows of an object are in one part, and folds are
    stratified by the views in which objects are seen and, if every object has one label, by class.

    Parameters
    ----------
    methods : mapping of str to estimator, or str or sequence of str
        Estimators by the names to show, pipelines and searches included; or names of methods, see
        `mvcca.methods`, or of groups: ``"default"``, ``"all"`` (without networks), ``"deep"``,
        ``"deep-retrieval"``.
    X : Views, mapping or list of matrices
        The views. Texts in a single column are turned into numbers for methods selected by name,
        in each fold by the training texts: into sequences of words for ``"msds"``, and into 100
        TF-IDF features reduced by truncated SVD for others.
    y : array-like, or one array-like per view, optional
        Labels, which define relevant items and which supervised methods learn from. Labels per
        view, in a mapping or a list, mean that the views are unpaired. `Labels` of
        `mvcca.comparison` have names to show.
    cv : int, float, splitter or iterable of (train, test), default=5
        Number of folds; fraction of objects in a single held-out part; a scikit-learn splitter; or
        positions of training and held-out objects.
    groups : array-like, or one array-like per view, optional
        Group of each object, such as the image of a caption or the person in a photograph; in a
        mapping by view name for unpaired views. All objects of a group are in one part of a split.
        By default, objects that have equal rows in a view are a group, unless the largest group
        is larger than a held-out part; rows of zeros, and a view with one row per label set, do
        not count. A note says how many there are. ``np.arange(n_objects)`` splits every object by
        itself.
    search : mapping of str to sequence, optional
        Values of hyper-parameters, such as ``{"reg": [0.01, 0.1, 1]}``. For each fold, each method
        that has some of them uses the best combination by 3-fold cross-validation within the
        training part. A method that cannot be fitted with one of them is a row with the reason.
    measures : str or sequence of str, default=("map@50", "r@1", "r@10", "mrr")
        Names of measures, see `mvcca.evaluate_retrieval`. The first one determines the best method.
    relevance : {"pairs", "labels"}, optional
        Relevance for all measures; by default that of each measure.
    directions : {"cross", "within", "all"} or iterable of (query, target), default="cross"
        Between different views, within each view, or both; or the directions themselves.
    label_vectors : mapping of str to array-like, or array-like, optional
        Word vectors of the labels, by name or one row per column, for ``wmap@50``. Methods that are
        to learn from them take their sums as `fit_labels`, see `mvcca.views.labels.label_vectors`.
    params : mapping of str to object, optional
        Parameters of methods selected by name, where they have them. By default 10 components, and
        ``reg=0.1`` for methods without networks.
    fit_labels : array-like, optional
        Labels to learn from, if they are not those that define relevant items.
    n_jobs : int, optional
        Number of processes; -1 uses all processors.
    random_state : int, default=0
        Seed of the folds, of methods selected by name, and of bootstrap intervals.
    progress : callable, optional
        Called with a line of text about what is being fitted.

    Returns
    -------
    ComparisonResult
        Printing it shows the best method for each kind of right items, and the table. A method
        that cannot be fitted is a row with the reason. After Ctrl-C, or if a process is killed, it
        contains what was measured until then, with a warning.

    Raises
    ------
    ValueError
        If a name is unknown, `cv` or `search` do not fit the data, or nothing can be relevant.
    TypeError
        If `methods` are neither names nor estimators by name, or X is a single matrix.

    Notes
    -----
    Each method is compared with the best one by a paired test at the 5 % level, with Holm's
    correction for the number of methods. A difference that it does not find significant is
    undecided: it is smaller than what the test can detect. With several folds it is the corrected
    resampled t-test of Nadeau and Bengio [1]_, which assumes normal differences between folds; with
    one split it is a paired t-test over held-out objects, which compares the fitted models and not
    the methods.

    Chance is the exact expectation of each measure if every query ranks all items in a random
    order.

    References
    ----------
    .. [1] Nadeau and Bengio, "Inference for the Generalization Error", Machine Learning 52, 2003.

    Examples
    --------
    >>> import mvcca
    >>> from mvcca import CCA, MLCCA
    >>> from mvcca.datasets import load_digits_views
    >>> data = load_digits_views()
    >>> result = mvcca.compare(
    ...     {"CCA": CCA(9, reg=0.1), "MLCCA": MLCCA(9, reg=0.1)}, data.views, data.labels, cv=3
    ... )
    >>> result.best
    'MLCCA'
    """
    if not isinstance(random_state, Integral) or random_state < 0:
        raise ValueError(f"Expected random_state to be a seed of at least 0, got {random_state!r}.")
    if not isinstance(search or {}, Mapping):
        raise TypeError(
            "Expected search to map parameters to their values, such as {'reg': [0.01, 1]}, got "
            f"{search!r}."
        )
    data = Data.of(X, y, fit_labels)
    data.check_relevance(relevance)
    wanted = (measures,) if isinstance(measures, str) else tuple(measures)
    if not wanted:
        raise ValueError("Expected at least one measure, got none.")
    for name in wanted:
        Measure.parse(name)
    by_labels = any(data.relevance_is_by_labels(name, relevance) for name in wanted)
    if by_labels and isinstance(directions, str) and directions != "within":
        data.check_shared_labels()
    given = dict(params or {})
    if not isinstance(methods, Mapping):
        given = {"n_components": N_COMPONENTS, "reg": REG} | given
    elif given:
        raise ValueError(
            "params are those of methods selected by name; set the parameters of estimators in "
            "their constructors."
        )
    settings = Settings(
        wanted,
        relevance,
        dict(search or {}),
        given,
        random_state,
        directions if isinstance(directions, str) else tuple(directions),
        data.word_vectors(label_vectors),
    )
    candidates = _candidates(methods, data, dict(params or {}), random_state)
    _check_search(settings.search, candidates)
    data = data.with_groups(groups)
    folds = data.folds(cv, random_state)
    chance = [by_chance(data, fold, settings, settings.measures) for fold in folds]
    outcomes: dict[tuple[str, int], Outcome] = {}
    try:
        _run(candidates, data, folds, settings, n_jobs, progress, outcomes)
    except (KeyboardInterrupt, BrokenProcessPool) as error:
        if not outcomes:
            raise
        reason = "Interrupted" if isinstance(error, KeyboardInterrupt) else "A process was killed"
        n_tasks = len(candidates) * len(folds)
        warn(f"{reason}: the result contains {len(outcomes)} of {n_tasks} fits.")
    return ComparisonResult(candidates, data, settings, folds, outcomes, chance)


def _run(
    candidates: Sequence[Candidate],
    data: Data,
    folds: Sequence[Fold],
    settings: Settings,
    n_jobs: int | None,
    progress: Callable[[str], None] | None,
    outcomes: dict[tuple[str, int], Outcome],
) -> None:
    """Run all fits, fold by fold, and add each outcome as soon as it is there."""
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", pre_dispatch="n_jobs")
    in_process = n_jobs in (None, 1)

    def report(candidate: Candidate, fold: Fold, message: str = "") -> None:
        assert progress is not None
        where = f"{candidate.name}, fold {fold.number + 1} of {len(folds)}"
        progress(f"{where}, {message}" if message else where)

    def tasks() -> Any:
        for fold in folds:
            for candidate in candidates:
                epochs = None
                if progress is not None:
                    report(candidate, fold)
                    if in_process:
                        epochs = partial(report, candidate, fold)
                yield delayed(_tagged)(candidate, data, fold, settings, epochs)

    with closing(parallel(tasks())) as done:
        for name, number, outcome in done:
            outcomes[name, number] = outcome


def _tagged(
    candidate: Candidate, data: Data, fold: Fold, settings: Settings, report: Any
) -> tuple[str, int, Outcome]:
    return candidate.name, fold.number, run_fold(candidate, data, fold, settings, report)


def _candidates(
    methods: Any, data: Data, params: dict[str, Any], random_state: int
) -> list[Candidate]:
    if isinstance(methods, Mapping):
        found = [Candidate(str(k), v, _learns_from(v, data)) for k, v in methods.items()]
    else:
        names = [methods] if isinstance(methods, str | BaseEstimator) else list(methods)
        if not all(isinstance(name, str) for name in names):
            raise TypeError(
                "Expected names of methods (see mvcca.methods()), or a mapping of names to "
                f"estimators such as {{'CCA': CCA(2)}}, got {methods!r}."
            )
        chosen = [METHODS[name] for name in selected(names)]
        if "default" in names:
            chosen = [m for m in chosen if m.name in names or _is_worthwhile(m, data)]
        known: set[str] = set().union(*(method.takes() for method in chosen))
        for name in params.keys() - known:
            titles = ", ".join(method.name for method in chosen)
            hint = did_you_mean(name, known) or "."
            raise ValueError(f"{name!r} is not a parameter of {titles}{hint}")
        found = [_named(method, params, random_state, data) for method in chosen]
    if not found:
        raise ValueError("Expected at least one method to compare, got none.")
    return found


def _is_worthwhile(method: Method, data: Data) -> bool:
    """Whether a method of the default group applies to the data and duplicates no other."""
    if method.name in ("cca", "ncca"):  # of two views
        return len(data.views.names) == 2 and data.has_pairs
    if method.name == "mvcca":  # on two views it is CCA
        return len(data.views.names) > 2 and data.has_pairs
    if method.learns_from == "pairs":
        return data.has_pairs
    return data.y is not None


def _named(method: Method, params: dict[str, Any], random_state: int, data: Data) -> Candidate:
    defaults: dict[str, Any] = {"n_components": N_COMPONENTS, "random_state": random_state}
    if not method.is_deep:
        defaults["reg"] = REG
    if method.reads_words and (texts := text_views(data.views)):
        defaults["tokens"] = texts
    learns_from = "pairs" if method.learns_from == "pairs" else "labels"
    if method.learns_from == "labels as a view" and data.has_pairs:
        learns_from = "pairs, labels"
    return Candidate(method.title, method.build({**defaults, **params}), learns_from, method)


def _learns_from(estimator: Any, data: Data) -> str:
    for name in ("fit", "transform"):
        if not hasattr(estimator, name):
            raise TypeError(f"Expected estimators with {name}, got {estimator!r}.")
    last = estimator
    while isinstance(last, Pipeline) or hasattr(last, "estimator"):  # or a search
        last = last[-1] if isinstance(last, Pipeline) else last.estimator
    required = get_tags(last).target_tags.required  # by ours too, as the second of two matrices
    if getattr(last, "_supervised", required):
        return "labels"
    # without pairs, some that do not require labels learn from them
    return "pairs" if data.has_pairs or getattr(last, "_needs_pairs", True) else "labels"


def _check_search(search: Mapping[str, Sequence[Any]], candidates: Sequence[Candidate]) -> None:
    known: set[str] = set().union(*(one.estimator.get_params() for one in candidates))
    for name, values in search.items():
        if isinstance(values, str) or not hasattr(values, "__len__") or not len(values):
            raise ValueError(f"search: expected a sequence of values of {name}, got {values!r}.")
        if name not in known:
            hint = did_you_mean(name, known) or "."
            raise ValueError(f"search: {name!r} is not a parameter of any of the methods{hint}")
