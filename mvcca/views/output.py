"""`set_output`: transformers return NumPy arrays or DataFrames, as the user chooses."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import sklearn
from sklearn.base import TransformerMixin

from mvcca.blocks import as_block, beside, kind_of


class OutputContainerMixin(TransformerMixin):
    """`set_output` for transformers whose output is one matrix, or several in a container."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        # scikit-learn's own wrapping of outputs knows one matrix only.
        super().__init_subclass__(auto_wrap_output_keys=None, **kwargs)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose the type of output matrices: "default" (NumPy), "pandas" or "polars".

        Parameters
        ----------
        transform : {"default", "pandas", "polars"} or None, default=None
            None leaves the choice as it is.
        """
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}
        return self

    def _output_container(self) -> str:
        local = getattr(self, "_sklearn_output_config", {})
        return local.get("transform", sklearn.get_config()["transform_output"])

    def _frame(self, block: Any, columns: np.ndarray, source: Any) -> Any:
        """A matrix in the chosen container, with the row index of `source`, its input."""
        kind = self._output_container()
        if kind == "default":
            moves = kind_of(source).on_device and isinstance(block, np.ndarray)
            return beside(block, source) if moves else block
        stored = as_block(block).in_memory().on_host()
        block = stored.matrix
        if type(block).__module__.split(".")[0] == kind:  # a DataFrame of that kind already
            return block
        if kind not in ("pandas", "polars"):
            raise ValueError(f'output must be "default", "pandas" or "polars", got {kind!r}.')
        if stored.is_sparse:
            raise ValueError(
                f"{kind.capitalize()} output does not support sparse data. Choose dense output, or "
                'set_output(transform="default").'
            )
        if kind == "polars":
            import polars as pl

            return pl.DataFrame(np.asarray(block), schema=list(columns), orient="row")
        import pandas as pd

        # The `index` of a tensor or a list is no row index.
        index = source.index if hasattr(source, "iloc") else None
        return pd.DataFrame(block, columns=columns, index=index)
