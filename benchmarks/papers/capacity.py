"""Widths of networks with a given number of parameters, for comparisons at equal capacity."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise


def n_parameters(n_features: int, hidden_layer_sizes: Sequence[int], n_components: int) -> int:
    """Number of weights and biases of `mlp` with batch norms without parameters."""
    widths = (n_features, *hidden_layer_sizes, n_components)
    return sum(n_in * n_out + n_out for n_in, n_out in pairwise(widths))


def widened(
    n_features: int,
    hidden_layer_sizes: Sequence[int],
    n_components: int,
    target: int,
    layers: Collection[int] = (-1,),
) -> tuple[int, ...]:
    """Widths of hidden layers with which `mlp` has about a given number of parameters.

    The widths of the chosen layers are multiplied by a common factor. With the parameters of a
    dynamically scaled network as the target, this gives the networks "Wide 2" (the second hidden
    layer) and "Wide 1&2" (both) of [1]_, and the scaling network of "scaling outputs".

    Parameters
    ----------
    n_features, n_components : int
        Width of the input and of the output.
    hidden_layer_sizes : sequence of int
        Widths to start from.
    target : int
        Number of weights and biases wanted.
    layers : collection of int, default=(-1,)
        Positions of the hidden layers to widen.

    Returns
    -------
    tuple of int
        The widths whose number of parameters is closest to the target.

    References
    ----------
    .. [1] Friedlander and Wolf, "Dynamically-Scaled Deep Canonical Correlation Analysis", 2022,
       table 2.

    Examples
    --------
    >>> from mvcca.deep.encoders import n_parameters, widened
    >>> sizes = widened(392, (800, 800), 50, target=6_000_000, layers=(0, 1))
    >>> sizes, n_parameters(392, sizes, 50)
    ((2238, 2238), 6002366)
    """
    chosen = {range(len(hidden_layer_sizes))[layer] for layer in layers}

    def sizes(thousandths: int) -> tuple[int, ...]:
        return tuple(
            max(1, size * thousandths // 1_000) if i in chosen else size
            for i, size in enumerate(hidden_layer_sizes)
        )

    def count(thousandths: int) -> int:
        return n_parameters(n_features, sizes(thousandths), n_components)

    low, high = 0, 1_000
    while count(high) < target:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if count(middle) < target else (low, middle)
    return sizes(min(low, high, key=lambda thousandths: abs(count(thousandths) - target)))
