"""What a method asks of its input, declared as one value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Requirements:
    """What a method asks of its input; the defaults are those of most methods.

    Attributes
    ----------
    views : tuple of (int, int or None)
        Least and greatest number of views.
    labels : bool
        Whether it learns from labels, so that ``y`` is labels and not a second view.
    pairs : bool
        Whether objects must be seen in two views, unless it learns from labels.
    dense : bool
        Whether sparse rows are made dense, block by block.
    host : bool
        Whether device rows are copied to the host, and scores back.
    float64 : bool
        Whether float32 products of float32 rows never suffice.
    integers : bool
        Whether integers in arrays stay integers, such as pixels and the words of texts.
    features : bool
        Whether views are solved in the basis of their features; else in any.
    many_rows : bool
        Whether `fit` without a ridge inverts covariances of the rows, and warns if these are few.
    """

    views: tuple[int, int | None] = (2, None)
    labels: bool = False
    pairs: bool = True
    dense: bool = False
    host: bool = False
    float64: bool = False
    integers: bool = False
    features: bool = False
    many_rows: bool = False
