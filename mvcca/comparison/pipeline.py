"""`compare`: the same folds and measures for every method."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mvcca.comparison.candidates import Settings, Tune, candidates_of
from mvcca.comparison.data import Data
from mvcca.comparison.fits import by_chance
from mvcca.comparison.result import ComparisonResult
from mvcca.model_selection.groups import Groups
from mvcca.retrieval.evaluate import DEFAULT_MEASURES, Directions
from mvcca.retrieval.relevance import RelevanceBy
from mvcca.retrieval.table import check_several_items
from mvcca.views.typing import LabelsLike, ViewsLike


def compare(
    methods: Mapping[str, Any] | Sequence[str] | str,
    X: ViewsLike,
    y: LabelsLike | None = None,
    *,
    cv: Any = 5,
    groups: Any = None,
    tune: Tune = True,
    budget: str | float | None = "10min",
    gallery_size: int | None = None,
    search: Mapping[str, Sequence[Any]] | None = None,
    measures: str | Sequence[str] | None = None,
    relevance: RelevanceBy | None = None,
    directions: Directions = "cross",
    label_vectors: Any = None,
    params: Mapping[str, Any] | None = None,
    fit_labels: LabelsLike | None = None,
    n_jobs: int | None = None,
    random_state: int = 0,
    progress: Callable[[str], None] | None = None,
) -> ComparisonResult:
    """Compare how well methods retrieve across views, on held-out objects.

    All methods are fitted to the same training parts and ranked on the same held-out parts, and
    each setting is fitted once for all goals. With pairs and labels there are two goals: to find
    the same object, and to find objects of the same class. Each has its own settings and its own
    best method. All rows of an object are in one part, and folds are stratified by the views in
    which objects are seen and, if every object has one label, by class.

    Parameters
    ----------
    methods : mapping of str to estimator, or str or sequence of str
        Estimators by the names to show, pipelines and searches included; or names of methods, see
        `mvcca.methods`, or of groups: ``"default"``, ``"all"`` (without networks), ``"deep"``,
        ``"deep-retrieval"``. Methods of a group that two folds show not to be the best ones for any
        goal are not measured on the others.
    X : Views, mapping or list of matrices
        The views. Texts in a single column are turned into numbers for methods selected by name,
        in each fold by the training texts: into sequences of words for ``"msds"``, and into 100
        TF-IDF features reduced by truncated SVD for others.
    y : array-like, or one array-like per view, optional
        Labels, which define relevant items and which supervised methods learn from. Labels per
        view, in a mapping or a list, mean that the views are unpaired. ``Labels.of(y, names)``
        gives classes names to show.
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
    tune : bool or "all", default=True
        Choose ridge, ranking, number of components and other parameters of each method selected by
        name, except those given in `params`, for each goal: the best mean over the folds of the
        reciprocal rank of the same object, or of the average precision. "all" also tunes estimators
        that you pass; False compares at 10 components and ``reg=0.1``.
    budget : str, float or None, default="10min"
        Time for all methods, in seconds or as "30s", "10min" or "2h"; None sets no limit. All
        methods are measured on the first fold, then on the second, and so on. When the time is up,
        the fit at hand is finished, unless it takes as long again. Methods with values on two
        folds are in the result; `failures` names the others. Nothing else depends on the time.
    gallery_size : int, optional
        Number of items that you will search; by default the number of objects. Figures are stated
        for a gallery of this size.
    search : mapping of str to sequence, optional
        Values of hyper-parameters, such as ``{"reg": [0.01, 0.1, 1]}``. Each method that has some
        of them is fitted with all combinations on every fold, and has the best one for each goal. A
        method that cannot be fitted with one of them is a row with the reason.
    measures : str or sequence of str, optional
        Names of measures to show beside the figures of each goal, see `mvcca.evaluate_retrieval`;
        the goals are those of their right items. By default "map@50", "r@1", "r@10" and "mrr",
        which reports show.
    relevance : {"pairs", "labels"}, optional
        Right items show the same object, or share a label with the query. By default labels for
        map and p, pairs for other measures, if available.
    directions : {"cross", "within", "all"} or iterable of (query, target), default="cross"
        Queries for other views, for the view itself, or both. The directions themselves can be
        named, too.
    label_vectors : mapping of str to array-like, or array-like, optional
        Word vectors of the labels, by name or one row per column, for ``wmap@50``. Methods that are
        to learn from them take their sums as `fit_labels`, see `mvcca.Labels.word_sums`.
    params : mapping of str to object, optional
        Parameters of methods selected by name, where they have them; those are not tuned.
    fit_labels : array-like, optional
        Labels to learn from, if they are not those that define relevant items.
    n_jobs : int, optional
        Number of processes; by default 1. -1 uses all processors.
    random_state : int, default=0
        Seed of the folds, of methods selected by name, and of bootstrap intervals.
    progress : callable, optional
        Called with a line of text about what is being fitted. By default, a progress bar is shown
        if `mvcca.config_context` asks for it.

    Returns
    -------
    ComparisonResult
        Printing it shows the best method for each goal, and the table. A method
        that cannot be fitted is a row with the reason. After Ctrl-C, or if a process is killed, it
        contains what was measured until then, with a warning. ``result.add`` measures further
        methods on the same folds, and ``result | other`` joins two results.

    Raises
    ------
    ValueError
        If a name is unknown, `cv` or `search` do not fit the data, or nothing can be relevant.
    TypeError
        If `methods` are neither names nor estimators by name, or X is a single matrix.
    TimeoutError
        If the budget does not suffice for any method.

    Notes
    -----
    **The same object.** Settings are chosen by the mean reciprocal rank in the gallery of each
    fold, of at most 500 objects (fewer of more than two views); equal scores share their rank.
    R@1 and MRR in the gallery of `gallery_size` N are continued from those in the gallery of the
    fold, g: from the ranks r, the exact expectation in a gallery of h = g // 4 items is R(h) = mean
    of C(g - r, h - 1) / C(g - 1, h - 1), and logit R(N) = logit R(g) + (logit R(g) - logit R(h))
    ln(N/g) / ln(g/h). On 27 problems the mean absolute error of R@1 was .014, for .132 of the value
    in the fold.

    **The same class.** Average precision of the first max(1, round(50 g / N)) items, without the
    query's own object: what mAP@50 is in a gallery of N.

    ± is twice 1.96 standard errors over objects, or over groups of them. On new objects, with
    models of all rows, it covered 91 to 96 % of differences between methods. "May be as good"
    means that the corrected resampled t-test of Nadeau and Bengio [1]_ over folds does not find a
    difference at the 5 % level; with one split, that a paired t-test over held-out objects does
    not. Methods are compared by other measures with Holm's correction for their number.

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
    given = dict(params or {})
    if given and isinstance(methods, Mapping):
        raise ValueError(
            "params are those of methods selected by name; set the parameters of estimators in "
            "their constructors."
        )
    are_default = measures is None
    asks_for_measures = not (are_default and relevance is None and directions == "cross")
    measures = DEFAULT_MEASURES if measures is None else measures
    settings = Settings(
        (measures,) if isinstance(measures, str) else tuple(measures),
        relevance,
        search or {},
        given,
        random_state,
        directions if isinstance(directions, str) else tuple(directions),
        tune=tune,
        budget=budget,
        gallery_size=gallery_size,
        are_default=are_default,
    )
    settings.check()
    data = Data.of(X, y, fit_labels)
    data.check_relevance(relevance, settings.measures, directions)
    if label_vectors is not None:
        settings = replace(settings, label_vectors=data.word_vectors(label_vectors))
    candidates_of(methods, data, settings)  # before the objects are split
    if groups is None:
        data = replace(data, groups=Groups.found_in(data.views, data.labels))
    else:
        data = replace(data, groups=Groups.given_by(groups, data.views, data.ids))
    folds = data.folds(cv, random_state)
    data = replace(data, galleries=[fold.test for fold in folds])
    chance, sizes = [], [data.views.seen[fold.test].sum(axis=0) for fold in folds]
    if asks_for_measures or len(data.views.names) < 2 or settings.by_measure(data):
        # Refuses measures and directions that the rows cannot tell, before anything is fitted.
        chance = [by_chance(data, fold, settings, settings.measures) for fold in folds]
        sizes = [[row.n_gallery for row in table] for table in chance]
    for own in sizes:
        check_several_items(own)
    nothing = ComparisonResult((), data, settings, folds, {}, chance)
    return nothing.add(methods, n_jobs=n_jobs, progress=progress)
