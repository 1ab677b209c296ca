"""Run and report the tables and figures of the five papers.

    python -m benchmarks.papers --list                what there is, and what cannot be had here
    python -m benchmarks.papers p0 --table 2          fit what is missing, then print the table
    python -m benchmarks.papers p0 --table 2 --time   how long that will take
    python -m benchmarks.papers --report              write all pages from the stored records
    python -m benchmarks.papers --quick               everything with 2 epochs and few rows

Every fit is stored in benchmarks/results as it ends: an interrupted run resumes, and pages are made
from what is stored. Real data are read from the directory MVCCA_DATA.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("paper", nargs="?", choices=["p0", "p1", "p2", "p3", "p4"])
    parser.add_argument("--table", metavar="N", help="number of a table")
    parser.add_argument("--figure", metavar="N", help="number of a figure")
    parser.add_argument("--list", action="store_true", help="name all tables and figures")
    parser.add_argument("--time", action="store_true", help="estimate the CPU time, do not run")
    parser.add_argument("--report", action="store_true", help="write pages from stored records")
    parser.add_argument("--quick", action="store_true", help="2 epochs, few rows, nothing stored")
    parser.add_argument("--problems", nargs="+", metavar="NAME", help="all by default")
    parser.add_argument("--solvers", nargs="+", metavar="NAME", help="all by default")
    parser.add_argument("--seeds", type=int, help="as published by default")
    parser.add_argument("--trials", type=int, help="settings of each solver")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args(argv)


def main(options: argparse.Namespace) -> None:
    os.environ.setdefault("OMP_NUM_THREADS", str(options.threads))
    os.environ.setdefault("OPENBLAS_NUM_THREADS", str(options.threads))
    from benchmarks.papers import catalogue, report, runs

    if options.list:
        print(catalogue.listing())
        return
    if options.report:
        report.write_pages()
        return
    import torch

    torch.set_num_threads(options.threads)
    wanted = catalogue.selected(options.paper, options.table, options.figure)
    for table in _with_problems(catalogue.records_of(wanted), options.problems):
        effort = runs.Effort(
            options.seeds or table.n_seeds, options.trials or table.n_trials, device=options.device
        )
        if options.time:
            print(report.time_left(table, effort))
            continue
        if options.quick:
            with tempfile.TemporaryDirectory() as folder:
                _run(table, wanted, runs.QUICK, options, Path(folder) / "papers")
            continue
        _run(table, wanted, effort, options, runs.RESULTS)


def _chosen(table, names):
    """The problems of a table that were asked for."""
    return [problem for problem in table.problems if not names or problem.name in names]


def _with_problems(tables, names):
    """The tables that have such problems: a figure may be drawn from several."""
    if found := [table for table in tables if _chosen(table, names)]:
        return found
    known = ", ".join(dict.fromkeys(p.name for table in tables for p in table.problems))
    sys.exit(f"no such problem; there are {known}")


def _run(table, wanted, effort, options, folder: Path) -> None:
    """Fit what a table lacks; print it, or the figures that were asked for."""
    from benchmarks.papers import report, runs
    from benchmarks.papers.protocol import Figure
    from benchmarks.real import data_home

    problems = _chosen(table, options.problems)
    for problem in problems:
        if missing := [f for f in problem.files if not (data_home() / f).is_file()]:
            sys.exit(f"{problem.name} needs {', '.join(missing)} in MVCCA_DATA, {data_home()}")
    runs.run(table, problems, options.solvers, effort, folder)
    for entry in wanted:
        if entry is table:
            print(report.page_of(table, effort, folder))
        elif isinstance(entry, Figure) and entry.table is table:
            print(report.figure_of(entry, folder, effort))


if __name__ == "__main__":
    main(arguments())
