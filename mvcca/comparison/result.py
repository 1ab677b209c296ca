"""`ComparisonResult`: measurements with their table, plot and report, and the best estimator."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mvcca.blocks.containers import few
from mvcca.comparison.export import write
from mvcca.comparison.measurements import Measurements
from mvcca.comparison.one_fold import searching
from mvcca.comparison.summary import Summary


@dataclass(frozen=True, eq=False, repr=False)
class ComparisonResult(Measurements):
    """Result of `mvcca.compare`. Printing it shows the table.

    Attributes
    ----------
    methods : tuple of str
        Names of all methods.
    measures : tuple of str
        Names of the measures; the first one determines the best method.
    best : str
        The method with the best mean of the first measure over the folds. With pairs and labels
        there may be another one by another measure: see `questions` and `best_by`.
    failures : dict of str to str
        Methods without a result, with the reason.
    is_complete : bool
        Whether every method was run on every fold; False after Ctrl-C.
    best_estimator_ : estimator
        The best method, fitted to all objects, after the search if there is one. It is fitted when
        it is first accessed.
    """

    @cached_property
    def best_estimator_(self) -> Any:
        """The best method, fitted to all objects."""
        return self.refit(self.best)

    def refit(self, method: str) -> Any:
        """Fit one of the methods to all objects.

        Parameters
        ----------
        method : str
            Its name, such as ``result.best_by("r@1")``.

        Returns
        -------
        estimator
            Fitted, after the search if there is one.

        Raises
        ------
        ValueError
            If there is no such method.
        """
        if method not in self.methods:
            raise ValueError(f"There is no {method!r}: the methods are {few(self.methods)}.")
        candidate = next(one for one in self.candidates if one.name == method)
        everything = np.arange(len(self.data.views))
        estimator = searching(candidate, self.data, everything, self.settings)
        estimator.fit(self.data.views, self.data.labels_to_learn_from(everything))
        fitted = getattr(estimator, "best_estimator_", estimator)
        return fitted.as_mvcca() if hasattr(fitted, "as_mvcca") else fitted

    def __str__(self) -> str:
        return Summary.of(self).as_text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return Summary.of(self).as_html()

    def plot(self, measure: str | None = None, ax: Any = None) -> Any:
        """Draw the mean of a measure for each method, with its 95 % confidence interval.

        Parameters
        ----------
        measure : str, optional
            By default the first one.
        ax : matplotlib Axes, optional
            By default new axes.

        Returns
        -------
        matplotlib Axes
        """
        from mvcca.comparison.figures import intervals

        return intervals(self, measure or self.measures[0], ax)

    def report(self, path: str | Path) -> None:
        """Write the result to a file.

        Parameters
        ----------
        path : str or Path
            ``.html`` is a report with pictures, if matplotlib is installed; ``.md`` the table;
            ``.csv`` all values as in `to_frame`; ``.json`` values, intervals and settings.

        Raises
        ------
        ValueError
            If the name ends differently.
        """
        write(Path(path), [self])
