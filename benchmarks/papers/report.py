"""Pages made from stored records: nobody types a figure."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from scipy.stats import t as student
from scipy.stats import ttest_rel

from benchmarks.papers import plots
from benchmarks.papers.protocol import (
    DEFAULT,
    NOT_RUN,
    Figure,
    Missing,
    Problem,
    Solver,
    Table,
    mean,
)
from benchmarks.papers.runs import (
    RESULTS,
    Effort,
    Record,
    Store,
    chosen,
    later,
    seconds_left,
    trials,
)

_PERCENT = ("r@", "mrr")


def rows_of(
    table: Table,
    problem: Problem,
    effort: Effort,
    folder: Path = RESULTS,
    names: Container[str] | None = None,
) -> dict[str, dict[str, list[Record]]]:
    """Records of each solver by ranking: one per seed, with the setting chosen for the ranking.

    Only solvers with all trials and seeds of the effort are there, and only those asked for.
    """
    stored, solvers = Store(folder, table).records(problem), _solvers(table, problem, names)
    return _rows_of(table, problem, solvers, effort, stored)


def _solvers(table: Table, problem: Problem, names: Container[str] | None) -> list[Solver]:
    return [solver for solver in table.solvers(problem) if names is None or solver.name in names]


def _rows_of(
    table: Table,
    problem: Problem,
    solvers: Sequence[Solver],
    effort: Effort,
    stored: dict[str, Record],
) -> dict[str, dict[str, list[Record]]]:
    found: dict[str, dict[str, list[Record]]] = {}
    for solver in solvers:
        first = [stored.get(fit.key) for fit in trials(table, problem, solver, effort)]
        others = [stored.get(f.key) for f in later(table, problem, solver, effort, stored)]
        if any(record is None for record in (*first, *others)):
            continue
        found[solver.name] = {}
        for ranking in table.rankings:
            best = chosen(table, [r for r in first if r], ranking)
            assert best is not None
            own = [r for r in others if r and r["setting"] == best["setting"]]
            found[solver.name][ranking] = [best, *own]
    return found


def effort_stored(
    table: Table,
    problem: Problem,
    folder: Path = RESULTS,
    names: Container[str] | None = None,
) -> Effort | None:
    """The effort that most solvers, or most of those asked for, have in full.

    A few solvers that lack seeds or trials do not hide those of all others: the square of the
    number of solvers counts as much as the number of fits of each.
    """
    efforts = [
        Effort(n_seeds, n_trials)
        for n_seeds in range(table.n_seeds, 0, -1)
        for n_trials in range(table.n_trials, 0, -1)
    ]
    stored, solvers = Store(folder, table).records(problem), _solvers(table, problem, names)
    counts = [len(_rows_of(table, problem, solvers, effort, stored)) for effort in efforts]
    fits = [effort.n_trials + effort.n_seeds - 1 for effort in efforts]
    best = int(np.argmax(np.square(counts) * fits))
    return efforts[best] if counts[best] else None


def page_of(table: Table, effort: Effort | None = None, folder: Path = RESULTS) -> str:
    """Markdown of a table, problem by problem."""
    lines = [f"## {table.paper.upper()}, {table.number}: {table.title}", ""]
    if table.remark:
        lines += [table.remark, ""]
    for problem in table.problems:
        lines += _of_problem(table, problem, effort, folder)
    if table.published and not _is_correlation(table):
        lines += ["Published:", ""]
        lines += [f"- {name}: {text}" for name, text in table.published.items()] + [""]
    return "\n".join(lines)


def _of_problem(table: Table, problem: Problem, effort: Effort | None, folder: Path) -> list[str]:
    own = effort or effort_stored(table, problem, folder)
    rows = rows_of(table, problem, own, folder) if own else {}
    if not own or not rows:
        return [f"### {problem.title}", "", NOT_RUN, ""]
    lines = [f"### {problem.title}", "", _how(table, own, rows), ""]
    for ranking in table.rankings:
        lines += [] if ranking == "none" else [f"Ranked by {_name_of(ranking)}:", ""]
        lines += [*_table(table, problem, ranking, rows), ""]
    missing = [s.name for s in table.solvers(problem) if s.name not in rows]
    if missing:
        lines += [f"Not run with this effort: {', '.join(missing)}.", ""]
    return lines


def _name_of(ranking: str) -> str:
    return {
        DEFAULT: "the default of each method in the package",
        "cosine": "cosine, as published",
        "euclidean": "Euclidean distance",
    }.get(ranking, ranking)


def _how(table: Table, effort: Effort, rows: dict[str, dict[str, list[Record]]]) -> str:
    """One sentence on protocol, machine and date."""
    records = [r for by_ranking in rows.values() for own in by_ranking.values() for r in own]
    dates = sorted({record["date"] for record in records})
    versions = ", ".join(
        f"{name} {_and(record['versions'][name] for record in records)}"
        for name in records[0]["versions"]
    )
    devices = _and(record["device"] for record in records)
    if devices != "cpu":
        devices += " (CPU seconds are those of the host)"
    deep = [record["training"] for record in records if record["training"]]
    training = f" Deep methods: {deep[0]}." if deep else ""
    chosen_by = (
        f", of which the {table.select} of the validation rows of seed 0 chose by the ranking of "
        "the table"
    )
    return (
        f"{_count(effort.n_seeds, 'seed')}; {_count(effort.n_trials, 'setting')} of each method"
        f"{chosen_by if effort.n_trials > 1 else ''}.{training} {devices}, "
        f"{_and(str(record['threads']) for record in records)} thread, {versions}, "
        f"{' to '.join(dict.fromkeys((dates[0], dates[-1])))}."
    )


def _and(values: Iterable[str]) -> str:
    """Distinct values in order."""
    return " and ".join(sorted(set(values)))


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'s' if n > 1 else ''}"


def _table(
    table: Table, problem: Problem, ranking: str, rows: dict[str, dict[str, list[Record]]]
) -> list[str]:
    """Rows of the solvers: measures by direction, mean over seeds, t-test, setting, costs."""
    solvers = {solver.name: solver for solver in table.solvers(problem)}
    alone, title = _is_correlation(table), _title(table.select)
    columns = ["published", title] if alone else [*map(_title, table.measures), f"mean {title}"]
    header = ["method", *columns, "p", "setting", "epochs", "CPU s"]
    lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
    for name, by_ranking in rows.items():
        own = by_ranking[ranking]
        cells = [table.published.get(name, "")]
        if not alone:
            cells = [_cell(own, ranking, measure) for measure in table.measures]
        values = np.array([mean(r["test"], ranking, table.select) for r in own])
        spread = f" ± {_shown(values.std(ddof=1), table.select)}" if len(own) > 1 else ""
        p = p_value(rows, name, table, ranking)
        epochs = ", ".join(str(r["best_epoch"]) for r in own if r["best_epoch"])
        cells += [
            f"{_shown(values.mean(), table.select)}{spread}",
            "" if p is None else f"{p:.1g}",
            _setting(solvers[name], own[0]),
            epochs,
            f"{np.median([r['cpu_seconds'] for r in own]):.0f}",
        ]
        label = f"{name}, {solvers[name].note}" if solvers[name].note else name
        lines.append(f"| {' | '.join([label, *cells])} |")
    if table.reference in rows:
        lines += ["", f"p: paired t-test over seeds of the mean against {table.reference}."]
    return lines


def _is_correlation(table: Table) -> bool:
    """Whether a table has but one figure, so that the published one stands beside it."""
    return table.measures == ("correlation",)


def _title(measure: str) -> str:
    return {"mr": "MR", "mrr": "MRR", "correlation": "total correlation"}.get(
        measure, measure.replace("r@", "R@").replace("map", "mAP")
    )


def _shown(value: float, measure: str) -> str:
    if measure == "correlation":
        return f"{value:.2f}"
    if measure.startswith(_PERCENT):
        return f"{100 * value:.1f}"
    return f"{value:.1f}" if measure == "mr" else f"{value:.3f}"


def _cell(records: Sequence[Record], ranking: str, measure: str) -> str:
    """Mean over seeds, of each direction if there are two."""
    values = np.array([list(r["test"][ranking][measure].values()) for r in records]).mean(axis=0)
    if len(values) > 2:
        values = values.mean(keepdims=True)
    return " / ".join(_shown(value, measure) for value in values)


def _setting(solver: Solver, record: Record) -> str:
    setting = {name: record["setting"].get(name) for name in solver.grid}
    return ", ".join(f"{name} {value}" for name, value in setting.items() if value is not None)


# ---- differences ---------------------------------------------------------------------------------


def differences(
    rows: dict[str, dict[str, list[Record]]],
    better: str,
    worse: str,
    ranking: str,
    measure: str,
) -> np.ndarray:
    """Differences of the test figures of two solvers, one per seed."""
    one, other = (
        {r["seed"]: mean(r["test"], ranking, measure) for r in rows[name][ranking]}
        for name in (better, worse)
    )
    return np.array([one[seed] - other[seed] for seed in sorted(one.keys() & other.keys())])


def interval(gains: np.ndarray) -> tuple[float, float]:
    """Mean and half of the 95 % interval by Student's t."""
    half = student.ppf(0.975, len(gains) - 1) * gains.std(ddof=1) / np.sqrt(len(gains))
    return float(gains.mean()), float(half)


def p_value(
    rows: dict[str, dict[str, list[Record]]], name: str, table: Table, ranking: str
) -> float | None:
    """Of the paired t-test against the reference of a table."""
    if table.reference not in rows or name == table.reference:
        return None
    return p_of(differences(rows, name, table.reference, ranking, table.select))


def p_of(gains: np.ndarray) -> float | None:
    """Of the paired t-test, or None where all seeds have the same rows and nothing is drawn."""
    if len(gains) < 2 or not np.ptp(gains):
        return None
    return float(ttest_rel(gains, np.zeros_like(gains)).pvalue)


# ---- pages ---------------------------------------------------------------------------------------


def time_left(table: Table, effort: Effort, folder: Path = RESULTS) -> str:
    """CPU hours of what is not stored, with what they are based on."""
    total, lines = 0.0, []
    for problem, solver, n_left, seconds, is_known in seconds_left(table, effort, folder):
        if n_left:
            total += n_left * seconds
            how = "measured" if is_known else "a guess"
            lines.append(
                f"  {problem.name}: {solver.name}, {n_left} fits, {seconds:.0f} s each, {how}"
            )
    return "\n".join([f"{table.key}: {total / 3600:.1f} CPU hours left", *lines])


def not_run(folder: Path = RESULTS) -> Iterator[str]:
    """What is not stored of all tables, problem by problem, with its CPU hours."""
    from benchmarks.papers import catalogue

    for table in catalogue.tables():
        hours: dict[str, float] = {}
        for problem, _, n_left, seconds, _ in seconds_left(table, Effort.of(table), folder):
            hours[problem.name] = hours.get(problem.name, 0.0) + n_left * seconds / 3600
        for problem in table.problems:
            stored = effort_stored(table, problem, folder)
            if not hours[problem.name]:
                continue
            part = "not run"
            if stored is not None:
                part = f"{stored.n_seeds} of {table.n_seeds} seeds, {stored.n_trials} of "
                part += f"{table.n_trials} trials"
            kind, _, number = table.number.partition(" ")
            yield (
                f"{table.paper.upper()} {table.number}, {problem.name}: {part}; "
                f"{hours[problem.name]:.1f} CPU hours are left of `python -m benchmarks.papers "
                f"{table.paper} --{kind} {number} --problems {problem.name}`"
            )


def write_pages(folder: Path = RESULTS) -> None:
    """Write a page per paper, and the verdicts."""
    from benchmarks.papers import catalogue, claims, settings

    pages = folder.parent
    pages.mkdir(parents=True, exist_ok=True)
    for plot in (pages / "plots").glob("*.svg"):  # of what is no longer shown
        plot.unlink()
    for paper in catalogue.PAPERS:
        parts = []
        for entry in catalogue.entries(paper):
            if isinstance(entry, Table):
                parts.append(page_of(entry, None, folder))
            elif isinstance(entry, Figure):
                parts.append(figure_of(entry, folder))
        reasons = [e for e in catalogue.entries(paper) if isinstance(e, Missing)]
        lines = [f"- {entry.number}: {entry.reason}." for entry in reasons]
        parts.append("\n".join(["## What cannot be had here", "", *lines, ""]))
        (pages / f"{paper}.md").write_text("\n".join(parts), "utf-8")
    (pages / "claims.md").write_text(claims.page(folder), "utf-8")
    (pages / "settings.md").write_text(settings.page(folder), "utf-8")


def figure_of(figure: Figure, folder: Path = RESULTS, effort: Effort | None = None) -> str:
    """Markdown of a figure, problem by problem; its plots are drawn into the folder of pages."""
    lines = [f"## {figure.paper.upper()}, {figure.number}: {figure.title}", ""]
    for problem in figure.table.problems:
        own = effort or effort_stored(figure.table, problem, folder)
        rows = rows_of(figure.table, problem, own, folder) if own else {}
        first = figure.table.rankings[0]
        found = figure.find({name: by_ranking[first] for name, by_ranking in rows.items()})
        lines += [f"### {problem.title}", ""]
        if found is None:
            lines += [NOT_RUN, ""]
            continue
        if figure.draw is not None:
            where = f"{figure.table.key}-{figure.number.replace(' ', '-')}-{problem.name}.svg"
            text = f"{figure.title}, {problem.name}"
            plots.save(figure.draw, found, text, folder.parent / "plots" / where)
            lines += [f"![{text}: the table below has its values.](plots/{where})", ""]
        lines += [figure.show(found), ""]
    return "\n".join(lines)
