"""Retrieval between two views by several methods: figures of a model, and a table over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import ttest_rel

from mvcca import Views, evaluate_retrieval

MEASURES = ("r@1", "r@5", "r@10", "mrr")


def figures(model: Any, views: Views) -> list[float]:
    """Measures of both directions, in percent."""
    table = evaluate_retrieval(views, estimator=model, measures=MEASURES)
    first, second = views.names
    return [
        100 * direction[measure]
        for direction in (table[first, second], table[second, first])
        for measure in MEASURES
    ]


def noted(label: str, model: Any, seconds: float, views: Views, output: Path | None) -> list[float]:
    """The figures of a model, printed as a line and appended to the output."""
    row = figures(model, views)
    shown = ", ".join(f"{value:.2f}" for value in row)
    line = f"{label}, {getattr(model, 'best_epoch_', 0)}, {seconds:.0f}, {shown}"
    print(line, flush=True)
    if output:
        with output.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
    return row


def report(
    results: dict[str, list[list[float]]], names: Sequence[str], reference: str = "ccal"
) -> None:
    """Print means and deviations over seeds, and paired t-tests of the mean MRR of both ways."""
    first, second = names
    columns = " | ".join(MEASURES).upper()
    print(f"\n| method | {first} to {second} {columns} | {second} to {first} {columns} |")
    print("|---|---|---|---|---|---|---|---|---|")
    for method, rows in results.items():
        table = np.array(rows)
        spread = table.std(axis=0, ddof=1) if len(table) > 1 else np.zeros(table.shape[1])
        cells = [f"{m:.1f} ± {s:.1f}" for m, s in zip(table.mean(axis=0), spread, strict=True)]
        print("|", " | ".join([method, *cells]), "|")
    mrr = {method: np.array(rows)[:, [3, 7]].mean(axis=1) for method, rows in results.items()}
    theirs = mrr.pop(reference, np.empty(0))
    for method, ours in mrr.items():
        if len(ours) == len(theirs) > 1:
            gain, p = (ours - theirs).mean(), ttest_rel(ours, theirs).pvalue
            print(f"{method} against {reference}, mean MRR: {gain:+.2f}, p = {p:.1e}")
