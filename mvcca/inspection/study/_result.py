"""Result of a study: tables, sentences, a figure and an HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.pipeline import Pipeline

from mvcca.inspection._intervals import CHAIN, NEAR_EDGE, NOISE, CorrelationIntervals
from mvcca.inspection._rows import of_confounds
from mvcca.inspection.permutation import PermutationTest
from mvcca.inspection.study._page import (
    component_tables,
    draw_correlations,
    draw_loadings,
    draw_needed,
    loading_table,
    most_lines,
    stability_table,
)
from mvcca.machine.result import Draw, Result, frame_of
from mvcca.machine.tables import TERMINAL_WIDTH, Table
from mvcca.model_selection import required_correlation, sample_size

if TYPE_CHECKING:
    from pandas import DataFrame

_ALPHA = 0.05
_SAME = 1e-6  # difference up to which correlations are of the same rows
_REFERENCES = (
    "Bao, Hu, Pan and Zhou, Annals of Statistics 47(1), 2019.",
    "Winkler, Renaud, Smith and Nichols, NeuroImage 220, 2020.",
    "Helmer et al., Communications Biology 7, 2024.",
)
_PACKAGES = ("mvcca", "numpy", "scipy", "scikit-learn")
_DEPENDENT = 0.05  # share of the variance of a variate that confounds must not predict
_LISTED = 8  # variables of each view, in its table
_DRAWN = 20  # loadings of each view, in its figure
_SOURCES = {
    "pairwise": "of pairs of variables, from the rows that have both",
    "em": "by maximum likelihood (EM)",
}
_LOADINGS = ("view", "variable", "loading", "low", "high", "p_value", "cross_loading")


@dataclass(frozen=True, eq=False)
class Study(Result):
    """What two sets of variables share: correlations, how certain they are, what drives them.

    ``print`` shows it as tables and sentences, and ``save_page`` writes a page with figures.
    ``to_frame`` has a row per component: its number from 1, correlation in these rows, 95th
    percentile of permuted rows, p-value, estimate for the population with its interval, correlation
    of held-out rows, the redundancy of each view, and a note, as in `CorrelationIntervals`. With
    groups there is a column "tested" if the correlations that the test compares with permuted rows
    are not those of all rows: see `tests_these_rows`.

    Attributes
    ----------
    model : Pipeline
        All steps, fitted to all rows. It projects new rows, and can be cross-validated.
    variables : dict of str to tuple of str
        Names of the variables of both views.
    missing : str
        How missing cells were treated: "error", "pairwise" or "em".
    n_missing : dict of str to int
        Number of missing cells of each view.
    n_rows : int
        Number of rows. How many independent rows they are worth is ``intervals.n_effective``.
    n_components : dict of str to int
        Principal components of each view; of a view that is not reduced, its variables.
    explained : dict of str to float
        Share of each view's variance in its principal components.
    test : PermutationTest
        P-values of the components, and the correlations of permuted rows.
    intervals : CorrelationIntervals
        Estimates for the population, and the noise edge. Its ``held_out`` are the correlations of
        rows that were left out of every step, pooled over folds.
    loadings : dict of str to ndarray, shape (n_variables, k)
        Correlations of the variables, after ranks and confounds, with their own view's variates.
    loading_ends : dict of str to ndarray, shape (2, n_variables, k)
        Intervals of the loadings in the population: -1 to 1 for components in the noise.
    cross_loadings : dict of str to ndarray, shape (n_variables, k)
        Their correlations with the other view's variates.
    residual_dependence : dict of str to float
        Share of the variance of each view's first variate that a smooth regression on the confounds
        (Gaussian kernel) predicts in held-out rows; empty without confounds.
    decay : dict of str to float or None
        Exponent of each view's principal variances, on which the rows that a study needs depend;
        None for a view with one independent variable.
    exchanged : str
        What permutations exchange: "rows", "rows within 40 groups", "whole groups ...".
    stability : dict of str to ndarray, shape (n_splits, k)
        Absolute correlation over the variables of the loadings that two halves of the rows, or of
        the groups, give; without views of one or two variables, and empty if halves have too few
        rows.
    settings : dict
        For `methods`: "folds" of held-out rows, "seed" as given, and "limits", what the number of
        principal components of a view was limited by, in words.
    left_out : tuple of str
        Which rows were left out before the study, and why.
    """

    model: Pipeline
    variables: Mapping[str, tuple[str, ...]]
    missing: str
    n_missing: Mapping[str, int]
    n_rows: int
    n_components: Mapping[str, int]
    explained: Mapping[str, float]
    test: PermutationTest
    intervals: CorrelationIntervals
    loadings: Mapping[str, np.ndarray]
    loading_ends: Mapping[str, np.ndarray]
    cross_loadings: Mapping[str, np.ndarray]
    residual_dependence: Mapping[str, float]
    decay: Mapping[str, float | None]
    exchanged: str = "rows"
    stability: Mapping[str, np.ndarray] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    _text_width: ClassVar[int] = TERMINAL_WIDTH

    # ---- numbers ---------------------------------------------------------------------------------

    @property
    def in_sample(self) -> np.ndarray:
        """Correlations of the rows, which are too large, (k,)."""
        return self.intervals.correlations

    @property
    def n_confounds(self) -> int:
        """Rank of the confounds that were removed, with squares and products."""
        return self.n_rows - self.intervals.n_rows

    @property
    def coding(self) -> tuple[str, ...]:
        """How each column of the confounds was used, such as "age and its square"."""
        return self.test.coding

    @property
    def within(self) -> bool:
        """Whether the test is of correlations within groups."""
        return self.exchanged.startswith("rows within")

    @property
    def held_out(self) -> np.ndarray:
        """Correlations of rows that were left out of every step, (k,)."""
        return self.intervals.held_out

    @property
    def significant(self) -> np.ndarray:
        """Whether the p-value of each component is below 0.05."""
        return self.test.p_values < _ALPHA

    @property
    def chance(self) -> np.ndarray:
        """95th percentile of the correlations of permuted rows, by component."""
        return np.percentile(self.test.permuted, 100 * (1 - _ALPHA), axis=0)

    @property
    def tests_these_rows(self) -> bool:
        """Whether `test` compares the correlations `in_sample` with those of permuted rows.

        If not, it compares its own ``correlations``: within groups, or without the groups that were
        dropped to remove confounds.
        """
        return not self.within and bool(
            np.allclose(self.test.correlations, self.in_sample, rtol=0, atol=_SAME)
        )

    @property
    def redundancy(self) -> dict[str, np.ndarray]:
        """Share of each view's standardized variance that the other view's variates explain."""
        return {name: (found**2).mean(axis=0) for name, found in self.cross_loadings.items()}

    def rows_needed(self, correlation: float) -> int:
        """Rows with which views like these would show a correlation reliably.

        See `mvcca.model_selection.sample_size`.

        Raises
        ------
        ValueError
            If a view has one independent variable; the linear model of `sample_size` needs two.
        """
        return sample_size(correlation, self._sizes, decay=self._decays)

    @property
    def smallest_correlation(self) -> float:
        """Population correlation that these rows show reliably; 1 or more if none.

        Raises
        ------
        ValueError
            As `rows_needed`.
        """
        return required_correlation(
            int(self.intervals.n_effective), self._sizes, decay=self._decays
        )

    @property
    def _sizes(self) -> tuple[int, int]:
        first, second = self.n_components.values()
        return first, second

    @property
    def _decays(self) -> tuple[float, float]:
        first, second = self.decay.values()
        if first is None or second is None:
            raise ValueError(self._unplanned)
        return first, second

    @property
    def _unplanned(self) -> str:
        """Why the rows that a study needs are not known; empty if they are."""
        single = [name for name, decay in self.decay.items() if decay is None]
        if not single:
            return ""
        have = "have" if len(single) > 1 else "has"
        return (
            "The number of rows that such a study needs is left out: its formula takes two or more "
            f"independent variables of each view, and {' and '.join(single)} {have} one."
        )

    # ---- tables ----------------------------------------------------------------------------------

    def loadings_frame(self, component: int = 1) -> DataFrame:
        """Table of the variables of both views.

        Parameters
        ----------
        component : int, default=1
            Number of the component, from 1.

        Returns
        -------
        pandas.DataFrame
            One row per variable: view, name, loading with its interval, p-value, and cross-loading,
            those of each view in decreasing order of the loading's absolute value. P-values are of
            cross-loadings, corrected for the variables of the view and for components; NaN with
            missing cells.
        """
        return frame_of(Table.of("", _LOADINGS, self.sorted_loadings(component)))

    def columns(self) -> dict[str, np.ndarray]:
        """The columns of `to_frame`."""
        found = self.intervals
        return {
            "component": np.arange(1, len(self.held_out) + 1),
            "in_sample": self.in_sample,
            **({} if self.tests_these_rows else {"tested": self.test.correlations}),
            "chance_95": self.chance,
            "p_value": self.test.p_values,
            "population": found.estimate,
            "low": found.low,
            "high": found.high,
            "held_out": self.held_out,
            **{f"redundancy_{name}": values for name, values in self.redundancy.items()},
        }

    def table(self) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        """Header and lines of `to_frame`."""
        columns = self.columns()
        lines = zip(*columns.values(), self.intervals.flags, strict=True)
        return (*columns, "note"), [
            (int(line[0]), *map(float, line[1:-1]), line[-1]) for line in lines
        ]

    def sorted_loadings(self, component: int = 1) -> Iterator[tuple[Any, ...]]:
        """Lines of `loadings_frame`."""
        i, tested = component - 1, self.test.loading_p_values
        for view, names in self.variables.items():
            own, cross = self.loadings[view][:, i], self.cross_loadings[view][:, i]
            for j in np.argsort(-np.abs(own), kind="stable"):
                low, high = self.loading_ends[view][:, j, i]
                p = np.nan if tested is None else tested[view][j, i]
                yield view, names[j], *map(float, (own[j], low, high, p, cross[j]))

    # ---- words -----------------------------------------------------------------------------------

    def sentences(self) -> list[str]:
        """Return what the study found, in words."""
        return [self._verdict(), self._generalization(), self._power()]

    @property
    def _tested_rows(self) -> str:
        """The rows that the test shuffles."""
        if self.tests_these_rows or self.within:
            return f"in these {self.n_rows} rows"
        if "outer" in self.exchanged:
            return f"in {self.test.n_rows} rows less the means of outer groups"
        return f"in the {self.test.n_rows} rows that are shuffled"

    def _verdict(self) -> str:
        p, count = self.test.p_values, int(self.significant.sum())
        r = self.in_sample[0] if self.tests_these_rows else self.test.correlations[0]
        tested = (
            f"{'within groups ' * self.within}is {r:.2f} {self._tested_rows}, and shuffled pairs "
            f"exceed {self.chance[0]:.2f} in 5 % of cases"
        )
        if count == 0:
            first, second = self.variables
            return (
                f"No correlation between {first} and {second} can be told from chance: the first "
                f"{tested} (p = {p[0]:.3g})."
            )
        what, equal = ("One component is", "=") if count == 1 else (f"{count} components are", "≤")
        found = (
            f"{what} significant (p {equal} {p[count - 1]:.3g}, corrected for {len(p)} tested). The"
        )
        if self.tests_these_rows:
            return (
                f"{found} first correlation is {r:.2f} in these {self.n_rows} rows and "
                f"{self._population()}."
            )
        return f"{found} first correlation {tested}."

    def _population(self) -> str:
        found = self.intervals
        rho, low, high = found.estimate[0], found.low[0], found.high[0]
        unknown = "of unknown size" if self.significant[0] else "not distinguishable from 0"
        value = f"about {rho:.2f}" if rho else unknown
        if CHAIN in found.flags[0]:
            value += f", as the {found.flags[0].removeprefix(f'{NEAR_EDGE}; ')},"
        return f"{value} in the population ({found.level:.0%} interval {low:.2f} to {high:.2f})"

    def _generalization(self) -> str:
        edge, held_out, r = self.intervals.edge, self.held_out[0], self.in_sample[0]
        where = "above" if r > edge else "below"
        begin = ""
        if not self.tests_these_rows:
            begin = (
                f"In all {self.n_rows} rows{', groups ignored,' * self.within} the first "
                f"correlation is {r:.3f}, and {self._population()}. "
            )
        return (
            f"{begin}Views of this size that share nothing correlate at {edge:.3f} (the noise "
            f"edge); the first correlation, {r:.3f}, lies {where} it. In rows that were left out "
            f"of every step it is {held_out:.2f}."
        )

    def _power(self) -> str:
        if self._unplanned:
            return self._unplanned
        least = self.smallest_correlation
        estimate = float(self.intervals.estimate[0]) or 0.3
        what = "the estimated" if self.intervals.estimate[0] else "a"
        n, rows = self.rows_needed(estimate), "rows"
        these = "These rows"
        if self._is_dependent:
            rows, these = "independent rows", f"{self.intervals.n_effective:.0f} independent rows"
        needed = f"{what} correlation of {estimate:.2f} needs {n:,} {rows}"
        if least >= 1:
            few = f"only {these}" if rows != "rows" else "so few rows"
            return f"No correlation could be estimated reliably from {few}: {needed}."
        return (
            f"{these} estimate correlations from {least:.2f} reliably (90 % power, errors of at "
            f"most 10 %): {needed}."
        )

    def tables(self) -> list[Table]:
        """Return the correlations of all components, and loadings of those that are significant."""
        options: dict[str, Any] = {"shown": ("text", "notebook"), "has_title": True}
        shown, note = self._shown_components, [self._of_p_values()]
        of_page = component_tables(*self.table(), self.significant, self.intervals.level)
        listed = [
            Table.of(f"Largest loadings of component {i}", _LOADINGS, self._listed(i), **options)
            for i in shown
        ]
        return [
            Table.of("Correlations by component", *self.table(), shown=("text", "notebook")),
            *listed[:-1],
            replace(listed[-1], notes=note),
            *of_page,
            *([stability_table(self.stability, shown)] if self.stability else []),
            *(loading_table(self.sorted_loadings(i), i, note) for i in shown),
            Table.of(
                "Methods", ("section", "to paste"), [("methods", self.methods())], shown=("folded",)
            ),
        ]

    @property
    def _shown_components(self) -> range:
        """Numbers of the components whose loadings are listed: significant ones, or the first."""
        return range(1, max(int(self.significant.sum()), 1) + 1)

    def _of_p_values(self) -> str:
        """What p-values of loadings are of."""
        if self.test.loading_p_values is None:
            return "P-values of loadings are left out: cells are missing."
        what = "of all variables"
        if any(k < len(self.variables[name]) for name, k in self.n_components.items()):
            what = "of what principal components explain of a variable"
        return (
            f"P-values are those of cross-loadings {what}, corrected for the variables of a view "
            "and for components."
        )

    def _title(self) -> str:
        first, second = self.variables
        return f"Is {first} correlated with {second}?"

    def _listed(self, component: int) -> Iterator[tuple[Any, ...]]:
        """The largest loadings of each view."""
        counts = dict.fromkeys(self.variables, 0)
        for line in self.sorted_loadings(component):
            counts[line[0]] += 1
            if counts[line[0]] <= _LISTED:
                yield line

    def remarks(self) -> list[str]:
        """Return what was done with the rows, in words."""
        sizes = ", ".join(
            f"{name}: {len(self.variables[name])} variables"
            + (
                f", {k} principal component{'s' * (k > 1)} with {self.explained[name]:.0%} of the "
                f"variance ({self.settings['limits'][name]})"
                if k < len(self.variables[name])
                else ""
            )
            for name, k in self.n_components.items()
        )
        lost = f"{self.n_confounds} independent confounds removed; " if self.n_confounds else ""
        found = [f"{self.n_rows} rows; {lost}{sizes}; {len(self.test.permuted)} permutations."]
        found += self.left_out
        found += of_confounds(self.coding)
        found += self._of_confounds()
        found += self._sets_of_rows() + self._of_unknown_size()
        if any(self.n_missing.values()):
            found.append(self._treatment())
        for i in self._shown_components if self.stability else ():
            shares = ", ".join(
                f"{np.median(of_splits[:, i - 1]):.2f} ({name})"
                for name, of_splits in self.stability.items()
                if i <= of_splits.shape[1]
            )
            found.append(f"Loadings of component {i} of two halves correlate at {shares}.")
        return found

    def methods(self) -> str:
        """Return a paragraph for the methods section of a paper."""
        ranked = any(name == "rank" for name, _ in self.model.steps)
        parts = [
            f"We studied {' and '.join(self.variables)} of {self.n_rows} subjects by canonical "
            "correlation analysis (CCA).",
            *self.left_out,
        ]
        if ranked:
            parts.append(
                "Variables and confounds were transformed to normal scores by their ranks."
            )
        if self.coding:
            parts.append(
                f"Confounds ({'; '.join(self.coding)}; rank {self.n_confounds}) were removed by "
                "linear regression."
            )
        for name, k in self.n_components.items():
            n = len(self.variables[name])
            if k < n:
                parts.append(
                    f"The {n} variables of {name} were reduced to {k} principal "
                    f"component{'s' * (k > 1)} with {self.explained[name]:.0%} of their variance "
                    f"({self.settings['limits'][name]})."
                )
        if any(self.n_missing.values()):
            parts.append(self._treatment())
        parts.append(
            f"Components were tested one after the other by {len(self.test.permuted)} permutations "
            f"of {self.exchanged} (largest root; Winkler et al., 2020), seed "
            f"{self.settings['seed']}. P-values are corrected for {len(self.test.p_values)} "
            "components by closure: a component is significant only if all before it are. "
            f"{int(self.significant.sum())} had p < {_ALPHA}."
        )
        parts.append(
            "Correlations in the population were estimated by inverting the limit of sample "
            f"correlations (Bao et al., 2019), with {self.intervals.level:.0%} intervals from "
            f"{self.intervals.n_rows} degrees of freedom, worth {self.intervals.n_effective:.0f} "
            f"independent rows. Held-out correlations pool {self.settings['folds']} folds, in "
            "which all steps were fitted to the other rows."
        )
        parts.append(
            "Loadings, the correlations of variables with the canonical variates of their set, "
            f"have {self.intervals.level:.0%} intervals from resamples. {self._of_p_values()} The "
            "number of rows that a study needs follows Helmer et al. (2024)."
        )
        used = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
        parts.append(f"We used {used}.")
        parts.append(" ".join(_REFERENCES))
        return " ".join(parts)

    def _of_confounds(self) -> list[str]:
        """What confounds predict after they were removed."""
        if not self.residual_dependence:
            return []
        shares = " and ".join(
            f"{share:.0%} ({name})" for name, share in self.residual_dependence.items()
        )
        found = f"A smooth regression on the confounds predicts {shares} of the first variates"
        found += " in held-out rows"
        if min(self.residual_dependence.values()) < _DEPENDENT:
            return [f"{found}: nothing that both views share is left of them."]
        return [
            f"{found}: the first correlation may be due to confounds whose effect is not of the "
            "form that was removed. Pass such terms as further confounds."
        ]

    @property
    def _is_dependent(self) -> bool:
        """Whether rows are worth fewer independent ones."""
        return round(self.intervals.n_effective) < self.intervals.n_rows

    def _sets_of_rows(self) -> list[str]:
        """What rows are worth, and which figures are of the rows that are shuffled."""
        found = []
        if self._is_dependent:
            why = "since rows resemble each other"
            if self.exchanged == "rows" or self.within:
                why = (
                    "since rows that are large in one view are large in the other, which p-values "
                    "take for a relation"
                )
            found.append(
                "The population estimates, their intervals and the noise edge count "
                f"{self.intervals.n_rows} rows as {self.intervals.n_effective:.0f} independent "
                f"ones, {why}."
            )
        if not self.tests_these_rows:
            found.append(
                'P-values and 95 % of shuffled pairs belong to the correlations "tested"'
                f"{' within groups' * self.within}, {self._tested_rows}."
            )
        return found

    def _of_unknown_size(self) -> list[str]:
        """Which significant components are too weak to say how large they are."""
        unknown = [
            str(i + 1)
            for i, flag in enumerate(self.intervals.flags[: len(self.significant)])
            if self.significant[i] and flag == NOISE
        ]
        if not unknown:
            return []
        what = "Component" if len(unknown) == 1 else "Components"
        return [
            f"{what} {', '.join(unknown)}: significant, but below the noise edge, so that nothing "
            "but the upper end of the interval is known of the correlation in the population."
        ]

    def _treatment(self) -> str:
        """How many cells were missing, and what was done about it."""
        shares = ", ".join(
            f"{count:,} of {self.n_rows * len(self.variables[name]):,} cells of {name} "
            f"({count / (self.n_rows * len(self.variables[name])):.1%})"
            for name, count in self.n_missing.items()
        )
        return (
            f"Missing: {shares}. Principal components are of covariances {_SOURCES[self.missing]}; "
            "cells of a row were replaced by their expectation given its others, and loadings are "
            "of the rows that have a variable. P-values are valid if cells are missing completely "
            "at random."
        )

    def as_dict(self) -> dict[str, Any]:
        """Everything that `print` shows, in JSON-compatible values."""
        header, lines = self.table()
        return {
            "conclusions": self.sentences(),
            "steps": self.remarks(),
            "confounds": list(self.coding),
            "components": [dict(zip(header, line, strict=True)) for line in lines],
            "loadings": [
                {"component": i, **dict(zip(_LOADINGS, line, strict=True))}
                for i in self._shown_components
                for line in self.sorted_loadings(i)
            ],
            "methods": self.methods(),
            "noise_edge": self.intervals.edge,
        }

    # ---- figures ---------------------------------------------------------------------------------

    def figures(self) -> dict[str, Draw]:
        """Return the correlations of each component, and the largest loadings of each view."""
        rows = f"{self.n_rows:,} rows"
        shown, label = self.test.correlations, "rows that are shuffled"
        if self.tests_these_rows:
            shown, label = self.in_sample, "these rows"
        correlations = Draw(
            partial(draw_correlations, self.intervals, self.chance, shown, label),
            caption="Read components from the left, up to the first whose correlation (line) does "
            "not lie above those of shuffled pairs: each is tested given those before it. "
            "Correlations of fitted rows are too large; the interval is of the population.",
            source=f"{rows}, and {len(self.test.permuted):,} permutations of them; held-out rows "
            "were left out of every step",
        )
        needed = {} if self._unplanned else {"Rows needed": self._needed_figure()}
        return (
            {"Correlations": correlations}
            | needed
            | {
                f"Loadings of {view}{f', component {i}' * (i > 1)}": self._loadings_figure(
                    view, i, rows
                )
                for i in self._shown_components
                for view in self.variables
            }
        )

    def _needed_figure(self) -> Draw:
        grid = np.linspace(0.1, 0.9, 33)
        curve = grid, np.array([self.rows_needed(float(one)) for one in grid])
        here = float(self.intervals.estimate[0]), self.intervals.n_effective
        return Draw(
            partial(draw_needed, curve, here),
            caption="Rows that show a correlation reliably: 90 % power, and errors of at most "
            "10 %. A study below the line is too small for the correlation that it estimates.",
            source=f"power law of views with {self._sizes[0]} and {self._sizes[1]} features whose "
            "variances decay like these",
        )

    def _loadings_figure(self, view: str, component: int, rows: str) -> Draw:
        lines = [line for line in self.sorted_loadings(component) if line[0] == view][:_DRAWN]
        known = self.intervals.estimate[component - 1] > 0
        interval = f"{self.intervals.level:.0%} interval" if known else ""
        n = len(self.variables[view])
        few = f"; the {len(lines)} largest of {n} loadings" * (len(lines) < n)
        return Draw(
            partial(draw_loadings, lines, component, interval),
            0.7 + 0.2 * len(lines) * most_lines(lines),
            "Bars show how each variable correlates with the canonical variate of its own view, "
            "and circles how it correlates with that of the other view. Do not interpret "
            "components that are not significant.",
            f"{rows}{few}",
        )
