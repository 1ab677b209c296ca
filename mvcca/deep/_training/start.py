"""Starts of networks: which rows judge them, and the linear CCA that one of them begins with.

What a start is, and which one a network gets, is decided in `mvcca.deep._bases.started`.
"""

from __future__ import annotations

import warnings

import numpy as np

from mvcca.deep._training.rows import split
from mvcca.deep._training.training import Training
from mvcca.deep.samplers import Sample
from mvcca.linear import CCA, MVCCA
from mvcca.model_selection.folds import make_folds
from mvcca.model_selection.groups import Groups
from mvcca.problem import Maps
from mvcca.problem.expected import component_weights
from mvcca.statistics.passes import not_kept
from mvcca.views import Views

FEWEST_OBJECTS = 200  # with fewer, no rows are held out: not measured
PATIENCE, MAX_EPOCHS = 20, 120  # of a candidate
LINEAR_RATE = 5e-4  # highest learning rate of a linear start, which faster training undoes
_SHARE, _MOST = 0.2, 1000  # of the objects that are held out, and their number
_CLEAR = 2.0  # standard errors: the best of many epochs looks better than it is


Affine = tuple[np.ndarray, np.ndarray]  # W and b, (n_features, width) and (width,)


def held_out(
    sample: Sample, validation: Sample | None, training: Training
) -> tuple[Sample, Sample]:
    """Training and validation rows; objects that share a row stay together."""
    assert validation is None  # it has the arguments of the division that users ask for
    seed, fraction = training.seeds[3], min(_SHARE, _MOST / len(sample.views))
    groups = None if sample.views.is_lazy else Groups.found_in(sample.views)
    if groups is None:
        return split(sample, fraction, seed)
    (fold,) = make_folds(sample.views, None, fraction, seed, groups.codes, are_given=False)
    return sample.take(fold.train), sample.take(fold.test)


def are_clearly_larger(values: np.ndarray, others: np.ndarray) -> bool:
    """Whether values of the same objects are larger by two standard errors of the mean."""
    gains = values - others
    error = gains.std(ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else 0.0
    return bool(gains.mean() > _CLEAR * error)


def linear_start(views: Views, width: int) -> tuple[dict[str, Affine], Maps]:
    """The leading components of tuned CCA: affine maps of rows to outputs, and maps of outputs.

    Component i is multiplied by √(r_i / (1 - r_i²)), with its expected correlation r_i, so that
    cosines weight it as the likelihood of a pair does; then each view has a mean square of 1.
    Outputs beyond the components that the rows have are zero.
    """
    with not_kept(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what concerns the networks is said of them
        try:
            linear = (CCA if len(views.names) == 2 else MVCCA)(None, reg="cv").fit(views)
        except ValueError as error:
            cause = error.__cause__  # of a fold, such as a view that varies in few rows
            raise ValueError(
                "The linear start of networks is CCA tuned by folds, and fails: "
                f'{error if cause is None else f"without one fold, {cause}"} Set start="random".'
            ) from error
    maps = linear.maps_.leading(min(width, linear.n_components_))
    assert maps.expected is not None
    factors = component_weights(np.clip(maps.expected.mean, 0, None))
    affine, back = {}, {}
    for name, weights in maps.weights.items():
        spread = np.square(factors * maps.expected.deviations[name]).mean()
        scale = factors / (np.sqrt(spread) or 1.0)
        W = np.zeros((len(weights), width))
        W[:, : len(scale)] = weights * scale
        affine[name] = (W, -maps.means[name] @ W)
        inverse = np.divide(1, scale, out=np.zeros_like(scale), where=scale > 0)
        back[name] = np.eye(width, len(scale)) * inverse
    means = {name: np.zeros(width) for name in back}
    values = getattr(linear, "canonical_correlations_", None)  # of two views
    values = None if values is None else values[: len(factors)]
    ranks = {name: len(factors) for name in back}
    solution = Maps(
        back, means, maps.eigenvalues, values=values, expected=maps.expected, ranks=ranks
    )
    return affine, solution
