"""Types of the data that public functions take, to annotate code that calls them.

`MatrixLike`
    Rows of one view, shape (n_rows, n_features): an array, a sparse matrix or array, a DataFrame, a
    memory map, a Dask array, a `RowSource` from `open_matrix`, or an array on a device.
`ViewsLike`
    Several views: `Views`, a mapping of view names to matrices, or a sequence of matrices, whose
    names are view0, view1, ...
`TableLike`
    Confounds of rows: a matrix, or a mapping of names to columns. Text and categories are encoded.
`LabelsLike`
    Labels of the rows: a class vector, an indicator matrix (dense or sparse), a sequence of label
    sets, real-valued label vectors, or `mvcca.Labels`, which hold any of these encoded; for rows
    that are not paired, a mapping of view names to these, or a sequence of one per view.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from numpy.typing import ArrayLike

from mvcca.views import Labels, Views

__all__ = ["LabelsLike", "MatrixLike", "TableLike", "ViewsLike"]


class _Selectable(Protocol):
    """What sparse matrices, DataFrames, Dask arrays, row sources and device arrays share."""

    @property
    def shape(self) -> Any: ...

    def __getitem__(self, rows: Any, /) -> Any: ...


MatrixLike: TypeAlias = ArrayLike | _Selectable
TableLike: TypeAlias = MatrixLike | Mapping[str, ArrayLike]
ViewsLike: TypeAlias = Views | Mapping[str, MatrixLike] | Sequence[MatrixLike]

_LabelsOfRows: TypeAlias = Labels | MatrixLike | Sequence[Collection[Hashable]]
LabelsLike: TypeAlias = _LabelsOfRows | Mapping[str, _LabelsOfRows] | Sequence[_LabelsOfRows]
