"""`ComparisonResult`: measurements that grow, how they are shown, and fitted models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from joblib import effective_n_jobs
from joblib import hash as hash_of

from mvcca.blocks.checks import few
from mvcca.comparison.candidates import candidates_of
from mvcca.comparison.export import as_json, write
from mvcca.comparison.measurements import RECORD, Measurements
from mvcca.comparison.schedule import Schedule
from mvcca.comparison.verdict import as_text, details, sentences, table
from mvcca.comparison.wording import listed
from mvcca.machine.optional import optional
from mvcca.machine.result import Draw, Result
from mvcca.machine.tables import Table
from mvcca.model_selection.goals import Goal
from mvcca.retrieval.measure import Measure

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False, repr=False)
class ComparisonResult(Measurements, Result):
    """Result of `mvcca.compare`. Printing it shows the table.

    ``to_frame`` has all values, in the columns method, fold, direction, measure and value: the
    measures that the user names or, without them, those of the goals. Rows without a direction are
    seconds, bytes of memory, and chosen settings that are numbers. ``plot(figure="object")`` draws
    what the table shows of a goal, or a measure that the user names.

    Attributes
    ----------
    methods : tuple of str
        Names of all methods.
    measures : tuple of str
        Names of the measures; the first one determines the best method.
    best : str
        The best method for the goal of the first measure. With pairs and labels there may be
        another one for the other goal: see `best_for`.
    failures : dict of str to str
        Methods without a result, with the reason.
    is_complete : bool
        Whether nothing was interrupted; False after Ctrl-C.
    best_estimator_ : estimator
        The best method, fitted to all objects, after the search if there is one. It is fitted when
        it is first accessed.
    """

    def add(
        self,
        methods: Any,
        *,
        n_jobs: int | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> Self:
        """Measure more methods on the same folds, as if they had been compared in the same call.

        Data, folds, measures, searched hyper-parameters, ``params`` and seeds are those of this
        result, which is not changed.

        Parameters
        ----------
        methods : mapping of str to estimator, or str or sequence of str
            As for `mvcca.compare`.
        n_jobs : int, optional
            Number of processes; -1 uses all processors.
        progress : callable, optional
            Called with a line of text about what is being fitted. By default, a progress bar is
            shown if `mvcca.config_context` asks for it.

        Returns
        -------
        ComparisonResult
            With the methods of this result, followed by the new ones.

        Raises
        ------
        ValueError
            If a name is unknown, or one of the result's methods has it.
        TypeError
            If `methods` are neither names nor estimators by name.
        TimeoutError
            If this result is empty and the budget does not suffice for any method.

        Examples
        --------
        >>> import mvcca
        >>> from mvcca.datasets import load_digits_views
        >>> data = load_digits_views()
        >>> views, labels = data.views[:200], data.labels[:200]
        >>> result = mvcca.compare(["cca", "mlcca"], views, labels, cv=2, tune=False)
        >>> result.add({"mine": mvcca.CCA(9, reg=1.0)}).methods
        ('CCA', 'MLCCA', 'mine')
        """
        added = candidates_of(methods, self.data, self.settings, self.candidates)
        schedule = Schedule(self.conditions_of_fits, added, effective_n_jobs(n_jobs))
        runs, is_complete = schedule.measure(progress)
        result = replace(
            self,
            candidates=(*self.candidates, *added),
            runs={**self.runs, **runs},
            is_complete=self.is_complete and is_complete,
        )
        if is_complete and not result.successes:
            result._check_budget()
        return result

    def _check_budget(self) -> None:
        """Raise TimeoutError if the budget did not suffice for any method."""
        if any("no time of budget" in reason for reason in self.failures.values()):
            raise TimeoutError(
                f"No method could be measured within budget={self.settings.budget!r}. Pass a "
                "larger one, or budget=None, which sets no limit."
            )

    def __or__(self, other: Any) -> Self:
        """The methods of both results, if these were measured in the same way.

        Raises
        ------
        ValueError
            If data, folds or settings differ, or a method is in both results.
        """
        if not isinstance(other, ComparisonResult):
            return NotImplemented
        ours, theirs = self.conditions, other.conditions
        if not (self.has_named and other.has_named):
            ours["params"] = theirs["params"]  # which estimators do not take
        if differing := [what for what in ours if hash_of(ours[what]) != hash_of(theirs[what])]:
            raise ValueError(
                f"The results cannot be joined: they differ in {listed(differing)}. Compare the "
                "methods in one call, or pass those of one result to the other's `add`."
            )
        if shared := [name for name in self.methods if name in other.methods]:
            raise ValueError(f"Both results have a method {shared[0]!r}; give one another name.")
        return replace(
            self,
            candidates=(*self.candidates, *other.candidates),
            settings=self.settings if self.has_named else other.settings,
            runs={**self.runs, **other.runs},
            is_complete=self.is_complete and other.is_complete,
        )

    @cached_property
    def best_estimator_(self) -> Any:
        """The best method, fitted to all objects."""
        return self.refit(self.best, self.first_goal)

    def refit(self, method: str, goal: Goal | None = None) -> Any:
        """Fit one of the methods to all objects, with the settings that the folds chose.

        Parameters
        ----------
        method : str
            Its name, such as ``result.best_for("object")``.
        goal : {"object", "class"}, optional
            Goal whose settings it gets; by default the first one that it is best for, or measured
            for.

        Returns
        -------
        estimator
            Fitted; it ranks as the folds chose. For views of texts, a pipeline that begins with
            the step that turns them into numbers.

        Raises
        ------
        ValueError
            If there is no such method, or it was not measured for the goal.
        """
        candidate, run = self.candidate(method), self.runs[method]
        if run.failure:
            raise ValueError(f"{method} was not measured: {run.failure}")
        if goal is not None and goal not in run.trials:
            raise ValueError(f"{method} was measured for {few(run.trials)}, not for {goal!r}.")
        goal, rows = goal or self._goal(method), np.arange(len(self.data.views))
        choice = self.choice(method, goal)
        return self.conditions_of_fits.model(candidate, rows, choice, goal=goal)

    # ---- tables ---------------------------------------------------------------------------------

    def per_query(self, measure: str) -> Any:
        """Value of a measure for every query.

        Parameters
        ----------
        measure : str
            One of the measures that were compared.

        Returns
        -------
        pandas.DataFrame
            Columns method, fold, direction, object (its position in the data) and value.

        Raises
        ------
        ValueError
            If the measure was not compared, or has no values of queries.
        ImportError
            If pandas is not installed.
        """
        tables = {name: self._tables(name, measure) for name in self.successes}
        if Measure.parse(measure).is_of_gallery:
            raise ValueError(f"{measure!r} describes all items and has no values of queries.")
        pd = optional("pandas", "per_query", "pandas")
        parts = [
            pd.DataFrame(
                {
                    "method": name,
                    "fold": number,
                    "direction": f"{row.query} -> {row.target}",
                    "object": self.folds[number].test[row.query_objects[measure]],
                    "value": row.per_query[measure],
                }
            )
            for name, by_fold in tables.items()
            for number, found in by_fold.items()
            for row in found
        ]
        return pd.concat(parts, ignore_index=True)

    def tables(self) -> list[Table]:
        """Return all values, which only frames show; the goals and measures; settings and costs."""
        values = [list(record.values()) for record in self.records()]
        of_values = Table.of("Values by method, fold and direction", RECORD, values, shown=())
        return [of_values, table(self), replace(details(self), shown=("page",))]

    def figures(self) -> dict[str, Draw]:
        """Return the figures by goal, and by measure if the user names them."""
        measures = [] if self.settings.are_default else self.measures
        return {what: Draw(partial(_intervals, self, what)) for what in (*self.goals, *measures)}

    def sentences(self) -> list[str]:
        """Return the best method for each goal, and the next one."""
        return sentences(self)

    def as_dict(self) -> dict[str, Any]:
        """Return values, intervals and settings, in JSON-compatible values."""
        return as_json(self)

    def save_page(self, path: str | Path, *, command: str = "") -> None:
        """Write the result to a file, as a page or in another format.

        Parameters
        ----------
        path : str or Path
            ``.html`` is a report with pictures, if matplotlib is installed; ``.md`` the table;
            ``.csv`` all values as in `to_frame`; ``.json`` values, intervals and settings.
        command : str, optional
            The command that made it, to be named.

        Raises
        ------
        ValueError
            If the name ends differently.
        """
        write(Path(path), [self], command)

    def __str__(self) -> str:
        return as_text(self)

    def _of_notebook(self) -> list[Table]:
        return [table(self)]

    __repr__ = __str__


def _intervals(result: ComparisonResult, what: str, ax: Axes | None) -> Axes:
    from mvcca.comparison.figures import intervals

    return intervals(result, what, ax)
