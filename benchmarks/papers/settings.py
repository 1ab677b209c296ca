"""What the trials teach: the published setting of each deep method against the best one tried."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.papers import catalogue
from benchmarks.papers.protocol import Problem, Solver, Table, mean
from benchmarks.papers.runs import RESULTS, Effort, Record, Store, chosen, trials


def _tried(
    table: Table, problem: Problem, solver: Solver, stored: dict[str, Record]
) -> list[Record] | None:
    """Records of the trials of the first seed, the published setting first; None without it."""
    keys = [fit.key for fit in trials(table, problem, solver, Effort.of(table))]
    found = [stored[key] for key in keys if key in stored]
    return found if found and found[0]["key"] == keys[0] else None


def page(folder: Path = RESULTS) -> str:
    """Markdown table of all deep methods with two trials or more."""
    lines = [
        "# Published settings, and the best of those tried",
        "",
        "The measure by which a table chooses, of the validation rows of seed 0 and by the "
        "paper's ranking. The first trial has the settings that the paper states, as far as it "
        "does; its epochs, too, are those at which the validation rows were best. The last columns "
        "name what the best setting changes, and its epoch.",
        "",
        "| table | data | method | trials | published | best | gain | changes | best epoch |",
        "|---" * 9 + "|",
    ]
    for table in catalogue.tables():
        if table.shares:
            continue
        for problem in table.problems:
            lines += _lines(table, problem, folder)
    return "\n".join(lines) + "\n"


def _lines(table: Table, problem: Problem, folder: Path) -> Iterator[str]:
    stored = Store(folder, table).records(problem)
    for solver in table.solvers(problem):
        found = _tried(table, problem, solver, stored) if solver.is_deep else None
        if found is None or len(found) < 2:
            continue
        ranking = table.rankings[0]
        best = chosen(table, found, ranking)
        assert best is not None
        figures = [mean(record["valid"], ranking, table.select) for record in (found[0], best)]
        changed = {
            name: value
            for name, value in best["setting"].items()
            if found[0]["setting"].get(name) != value
        }
        cells = [
            f"{table.paper.upper()} {table.number}",
            problem.name,
            solver.name,
            str(len(found)),
            *(f"{value:.3f}" for value in figures),
            f"{figures[1] - figures[0]:+.3f}",
            ", ".join(f"{name} {value}" for name, value in changed.items()) or "nothing",
            str(best["best_epoch"] or ""),
        ]
        yield f"| {' | '.join(cells)} |"
