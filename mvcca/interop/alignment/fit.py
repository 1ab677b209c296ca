"""Align two sets of vectors by few known pairs or none, and say how well that went."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from mvcca.blocks.checks import finite_floats, to_array
from mvcca.interop.alignment.pseudo_pairs import (
    METHODS,
    TwoSets,
    X,
    Y,
    fitted,
    matched,
    refits,
    same_matches,
)
from mvcca.interop.alignment.result import LEAST_RETRACED, Alignment, AlignmentStep
from mvcca.interop.alignment.starts import centred, refined, relative_start
from mvcca.machine.progress import steps
from mvcca.machine.threads import threads_to_factorise
from mvcca.machine.warnings import warn
from mvcca.problem.rows import mean_and_variance
from mvcca.retrieval import ranks, retrieval_vectors

_FEWEST_SEEDS = 10  # to start from, and for folds
_LEAST_ROWS = 500  # of each set, to align them without pairs
_N_FOLDS, _FOLD_REFITS = 5, 3
_ROTATIONS, _REFITS = 10, 6
_STARTS = 3
_MOST_ANCHORS = 100  # known pairs that similarities within each set may outdo as a start
_MOST_ROWS = 5_000  # of each set among which pseudo-pairs are searched
_TESTED_PAIRS, _TESTED_ONE_IN, _TESTS = 200, 15, 3  # more would pin down any model


def align_unpaired(
    x: Any,
    y: Any,
    *,
    pairs: Any = None,
    method: Literal["cca", "procrustes"] = "cca",
    pseudo_pairs: Literal["auto", "always"] = "auto",
    reg: float = 3.0,
    random_state: int = 0,
) -> Alignment:
    r"""Align two sets of vectors of which few rows, or none, are known to belong together.

    A model is fitted to the known pairs. Under it, rows that belong to no known pair and are each
    other's nearest by cross-domain similarity local scaling become pseudo-pairs. The next model is
    fitted to both, with half of the weight on each [1]_, and so on: 10 rotations, then 6 times CCA.
    Up to 100 known pairs may say less than the similarities within each set: with 500 rows or more,
    another model starts as without known pairs, below, and is kept if it finds more of them than
    the first finds of left-out ones.

    Without known pairs, or with fewer than 10, the first model is a rotation by relative
    representations: 30 times, both sets are clustered, and centres are matched so that their
    similarities :math:`C_{ij}` agree, by quadratic assignment

    .. math:: \max_P \operatorname{tr}(C_x P C_y P^⊤).

    Rows are compared by their similarities to all matched centres. The rotation is refined by
    means of nearest rows [2]_, then by 10 rounds of pseudo-pairs. Of 3 such starts the one with
    most pseudo-pairs is kept.

    Parameters
    ----------
    x, y : array-like, shape (n_x, n_x_features) and (n_y, n_y_features)
        Vectors, one set per model, such as embeddings. Their rows may show different items.
    pairs : array-like of int, shape (n_pairs, 2), optional
        Rows of x and y that are known to belong together, from 0. Of partly paired
        ``views``, these are ``views.index[views.seen.all(axis=1)]``. A row may be in several pairs,
        as a word with several translations: a pair then weighs one over the number of pairs that
        its row is in, and any of them is right. Repeated pairs count once.
    method : {"cca", "procrustes"}, default="cca"
        `mvcca.CCA`, or rotations only.
    pseudo_pairs : {"auto", "always"}, default="auto"
        Use pseudo-pairs unless folds of the known pairs say that they harm, or in any case. They
        harm if they lower the mean reciprocal rank of known pairs that five folds leave out by more
        than its standard error. With fewer than 10 known pairs they are always used. Expect a gain
        up to about 500 known pairs.
    reg : positive float, default=3.0
        Ridge of CCA in units of the mean variance. Pseudo-pairs need a large one. A model of known
        pairs alone has ``reg="cv"``.
    random_state : int, default=0
        Seed of folds, starts, and of the 5,000 rows drawn from each larger set.

    Returns
    -------
    Alignment

    Raises
    ------
    ValueError
        If values are not finite, row numbers of pairs are out of range, a parameter is
        unknown, or a set has too few rows.

    Warns
    -----
    UserWarning
        If the alignment failed as far as can be told: known pairs that were left out do not find
        each other; or, without known pairs, the model does not come back to the same matches when
        it starts again from a new sample.

    See Also
    --------
    mvcca.CCA : With many pairs.
    mvcca.interop.migration.fit_migration : Maps from one space to the other.

    References
    ----------
    .. [1] Artetxe, Labaka and Agirre, "A robust self-learning method for fully unsupervised
       cross-lingual mappings of word embeddings", ACL 2018, of which this is a variant.
    .. [2] Dar, "mini-vec2vec: Scaling Universal Geometry Alignment with Linear Transformations",
       2025.

    Examples
    --------
    >>> import numpy as np
    >>> from mvcca.interop.alignment import align_unpaired
    >>> rng = np.random.default_rng(0)
    >>> items = rng.standard_normal((900, 12)) ** 3
    >>> x = items[:600] @ rng.standard_normal((12, 30)) + 0.3 * rng.standard_normal((600, 30))
    >>> y = items[300:] @ rng.standard_normal((12, 28)) + 0.3 * rng.standard_normal((600, 28))
    >>> pairs = [(300 + i, i) for i in range(20)]  # row i of y is row 300 + i of x
    >>> alignment = align_unpaired(x, y, pairs=pairs)
    >>> alignment.used_pseudo_pairs
    True
    >>> alignment.model.transform({"x": x[:2]})["x"].shape[0]
    2
    """
    if method not in METHODS:
        raise ValueError(f"Expected method to be 'cca' or 'procrustes', got {method!r}.")
    if pseudo_pairs not in ("auto", "always"):
        raise ValueError(f"Expected pseudo_pairs to be 'auto' or 'always', got {pseudo_pairs!r}.")
    if not 0 < reg < np.inf:
        raise ValueError(f"Expected reg to be a positive number, got {reg!r}.")
    x, y = finite_floats("x", x), finite_floats("y", y)
    for name, rows in ((X, x), (Y, y)):
        mean_and_variance(name, rows)  # raises if it never varies
    seeds = _seeds(pairs, len(x), len(y))
    rng = np.random.default_rng(random_state)
    free_x, free_y = (_free(len(rows), seeds[:, j], rng) for j, rows in enumerate((x, y)))
    sets = TwoSets(x, y, seeds, free_x, free_y, method, reg)
    with threads_to_factorise(max(x.shape[1], y.shape[1])):
        if len(seeds) < _FEWEST_SEEDS:
            found = _without_known_pairs(sets, rng)
        else:
            found = _with_known_pairs(sets, pseudo_pairs, rng)
    if found.has_failed:
        warn(_failure(found, len(seeds)))
    return found


# ---- known pairs --------------------------------------------------------------------------------


def _with_known_pairs(sets: TwoSets, pseudo_pairs: str, rng: np.random.Generator) -> Alignment:
    """The model of known pairs, with pseudo-pairs unless folds say that they harm."""
    can_match = min(len(sets.free_x), len(sets.free_y)) > 0
    folds = _folds(sets.seeds, rng)
    reciprocal, first = zip(
        *(_of_fold(sets, folds[k], can_match) for k in steps(_N_FOLDS, "Folds of known pairs")),
        strict=True,
    )
    (alone, ranked), (first_alone, first_ranked) = (
        np.concatenate(parts, axis=1) for parts in (reciprocal, first)
    )
    gain, error = _mean_and_error(ranked - alone)
    # The gain that folds of few pairs measure is noisy; pseudo-pairs are the safer choice there.
    uses = can_match and (pseudo_pairs == "always" or gain > -error)
    share, share_error = _mean_and_error(first_ranked if uses else first_alone)
    stages, gallery_size = [AlignmentStep("known pairs", len(sets.seeds))], len(sets.free_x)
    if uses and len(sets.seeds) <= _MOST_ANCHORS and min(map(len, sets.free)) >= _LEAST_ROWS:
        # The known pairs are in no fit here, which tells how many pairs are found.
        model, matches, own = _by_similarities(sets, rng)
        found = _reciprocal_ranks(sets, sets.seeds, model)
        if found.mean() > ranked.mean():
            change = found.mean(axis=0)[np.concatenate(folds)] - alone
            first_found = np.equal(found, 1).mean(axis=0)
            return Alignment(
                model,
                matches,
                tuple(own),
                True,
                *_mean_and_error(change),
                *_mean_and_error(first_found),
                gallery_size + len(np.unique(sets.seeds[:, 0])),
            )
    model, matches = fitted(sets, tuned=not uses), np.empty((0, 2), dtype=np.intp)
    if uses:
        # Rotations find more pseudo-pairs by few pairs than CCA, which then makes more of them.
        rotating = sets.with_method("procrustes")
        model, matches = _refitted(rotating, sets.vectors(model), _ROTATIONS, stages)
        if sets.method == "cca":
            model, matches = _refitted(sets, rotating.vectors(model), _REFITS, stages)
    return Alignment(
        model,
        matches,
        tuple(stages),
        uses,
        gain,
        error,
        share,
        share_error,
        gallery_size + len(np.unique(sets.seeds[folds[0], 0])),
    )


def _of_fold(sets: TwoSets, fold: np.ndarray, can_match: bool) -> tuple[np.ndarray, np.ndarray]:
    """Reciprocal ranks of left-out pairs, and whether they are first: (2, n_pairs) each.

    The first row is without pseudo-pairs. Left-out pairs search all rows that are free.
    """
    kept = sets.without(fold)
    models = [fitted(kept, tuned=True)]
    last = fitted(kept)
    if can_match:
        last, _ = refits(kept, *kept.vectors(last), _FOLD_REFITS)[-1]
    models.append(last)
    found = np.array([_reciprocal_ranks(kept, sets.seeds[fold], model) for model in models])
    return found.mean(axis=1), np.equal(found, 1).mean(axis=1)


def _reciprocal_ranks(sets: TwoSets, known: np.ndarray, model: Any) -> np.ndarray:
    """Reciprocal ranks of known pairs, which search all free rows: (2 directions, n_pairs)."""
    rows, places = zip(*(np.unique(own, return_inverse=True) for own in known.T), strict=True)
    found = []
    for j, (name, other) in enumerate(((X, Y), (Y, X))):  # all partners of a row are right
        gallery = np.concatenate([rows[1 - j], sets.free[1 - j]])
        queries = {name: sets.rows(name)[rows[j]]}
        [asked] = retrieval_vectors(model, queries, role="query", target=other).values()
        [items] = retrieval_vectors(model, {other: sets.rows(other)[gallery]}, query=name).values()
        shape = len(rows[j]), len(gallery)
        partners = csr_array((np.ones(len(known), bool), (places[j], places[1 - j])), shape=shape)
        found.append(ranks(asked[places[j]], items, partners[places[j]], similarity="inner"))
    return 1 / np.array(found)


def _mean_and_error(values: np.ndarray) -> tuple[float, float]:
    """Mean and its standard error."""
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


# ---- no known pairs -----------------------------------------------------------------------------


def _without_known_pairs(sets: TwoSets, rng: np.random.Generator) -> Alignment:
    """The model of the start that finds most pseudo-pairs, and whether it is found again."""
    for name, free in ((X, sets.free_x), (Y, sets.free_y)):
        if len(free) < _LEAST_ROWS:
            raise ValueError(
                f"Expected at least {_LEAST_ROWS} rows of {name} to align without "
                f"{_FEWEST_SEEDS} known pairs, got {len(free)}."
            )
    model, matches, stages = _by_similarities(sets, rng, _STARTS)
    n_tested = min(_TESTED_PAIRS, max(len(matches) // _TESTED_ONE_IN, 1))
    draws = [rng.choice(len(matches), n_tested, replace=False) for _ in range(_TESTS)]
    retraced = float(np.mean([_retraced(sets, model, matches[draw]) for draw in draws]))
    return Alignment(model, matches, tuple(stages), True, retraced=retraced)


def _by_similarities(
    sets: TwoSets, rng: np.random.Generator, n_starts: int = 1
) -> tuple[Any, np.ndarray, list[AlignmentStep]]:
    """The model of the start that finds most pseudo-pairs, these pairs, and the steps to it.

    Known pairs are anchors for the first rotation, and in no fit.
    """
    free = sets.without(np.arange(len(sets.seeds)))
    starts = [_from_rotation(sets, free, rng) for _ in range(n_starts)]
    model, stages = max(starts, key=lambda start: start[1][-1].n_pairs)
    if free.method == "procrustes":
        return model, matched(free, *free.vectors(model)), stages
    return *_refitted(free, free.vectors(model), _REFITS, stages), stages


def _from_rotation(
    sets: TwoSets, free: TwoSets, rng: np.random.Generator
) -> tuple[Any, list[AlignmentStep]]:
    """The model of one start, and its steps."""
    rows_x, rows_y = (np.concatenate([sets.seeds[:, j], free]) for j, free in enumerate(sets.free))
    x, y = centred(sets.x[rows_x]), centred(sets.y[rows_y])
    anchors = np.tile(np.arange(len(sets.seeds))[:, None], 2)
    rotation = refined(relative_start(x, y, anchors, rng), x, y, rng)
    of_x, of_y = (
        np.zeros((len(sets.x), y.shape[1]), "f4"),
        np.zeros((len(sets.y), y.shape[1]), "f4"),
    )
    of_x[rows_x], of_y[rows_y] = centred(x @ rotation), y
    stages: list[AlignmentStep] = []
    model, _ = _refitted(free.with_method("procrustes"), (of_x, of_y), _ROTATIONS, stages)
    return model, stages


def _refitted(
    sets: TwoSets, of_both: tuple[np.ndarray, np.ndarray], n: int, stages: list[AlignmentStep]
) -> tuple[Any, np.ndarray]:
    """The last of n models and its pseudo-pairs; all are added to the stages."""
    name = "cca" if sets.method == "cca" else "rotation"
    models = refits(sets, *of_both, n)
    stages += [AlignmentStep(name, len(sets.seeds) + len(pairs)) for _, pairs in models]
    return models[-1]


def _retraced(sets: TwoSets, model: Any, start: np.ndarray) -> float:
    """Share of rows whose nearest row is the same again under a model that starts from pairs."""
    again = fitted(sets, start)
    again, _ = refits(sets, *sets.vectors(again), _FOLD_REFITS)[-1]
    return same_matches(sets, model, again)


def _failure(found: Alignment, n_seeds: int) -> str:
    if found.retraced is not None:
        return (
            f"The alignment failed: started again from some of the pairs that it found, "
            f"only {found.retraced:.2f} of the rows keep their nearest row (expected at least "
            f"{LEAST_RETRACED:.2f}). Do not use the maps. Pass 20 known pairs, or try another "
            "random_state."
        )
    return (
        f"The alignment failed: of {n_seeds} known pairs, each left out once, only "
        f"{found.found_first:.3f} find each other first. Check that they belong together, or pass "
        "more."
    )


# ---- input --------------------------------------------------------------------------------------


def _seeds(pairs: Any, n_x: int, n_y: int) -> np.ndarray:
    """Row numbers of known pairs, (n_pairs, 2)."""
    if pairs is None:
        return np.empty((0, 2), dtype=np.intp)
    seeds = to_array(pairs)
    if not seeds.size:
        return np.empty((0, 2), dtype=np.intp)
    is_numbers = seeds.dtype.kind in "iuf" and (seeds == np.floor(seeds)).all()  # of NaN, too
    if seeds.ndim != 2 or seeds.shape[1] != 2 or not is_numbers:
        raise ValueError(
            "Expected pairs to be row numbers of x and y, integers of shape (n_pairs, 2), got "
            f"{seeds.dtype} of shape {seeds.shape}{', not all whole numbers' * (not is_numbers)}."
        )
    for j, (name, n_rows) in enumerate(((X, n_x), (Y, n_y))):
        if seeds[:, j].min() < 0 or seeds[:, j].max() >= n_rows:
            raise ValueError(
                f"Expected pairs to hold row numbers of {name} from 0 to {n_rows - 1}, got "
                f"{seeds[:, j].min():g} to {seeds[:, j].max():g}."
            )
    _, first = np.unique(seeds, axis=0, return_index=True)
    return seeds[np.sort(first)].astype(np.intp)


def _folds(seeds: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Pairs to leave out at a time; pairs that share a row stay together."""
    if len(np.unique(seeds[:, 0])) == len(np.unique(seeds[:, 1])) == len(seeds):
        return np.array_split(rng.permutation(len(seeds)), _N_FOLDS)
    x, y = (np.unique(own, return_inverse=True)[1] for own in seeds.T)
    edges = csr_array(
        (np.ones(len(seeds)), (x, y + x.max() + 1)), shape=2 * (x.max() + y.max() + 2,)
    )
    of_rows = connected_components(edges, directed=False)[1]
    _, groups = np.unique(of_rows[x], return_inverse=True)
    n_groups = groups.max() + 1
    if n_groups < _N_FOLDS:
        raise ValueError(
            f"The pairs form {n_groups} groups that share rows; expected at least {_N_FOLDS}, of "
            "which each is left out once."
        )
    fold = np.empty(n_groups, dtype=int)
    fold[rng.permutation(n_groups)] = np.arange(n_groups) % _N_FOLDS
    return [np.flatnonzero(fold[groups] == k) for k in range(_N_FOLDS)]


def _free(n_rows: int, used: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Row numbers of no known pair, at most 5,000, in order."""
    rest = np.setdiff1d(np.arange(n_rows), used)
    return np.sort(rng.permutation(rest)[:_MOST_ROWS])
