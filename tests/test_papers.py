"""Tables of the papers: one protocol for all rows, resumable, and pages made from records alone."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.papers import catalogue, claims, report, runs
from benchmarks.papers.__main__ import arguments, main
from benchmarks.papers.protocol import (
    DEFAULT,
    Missing,
    Part,
    Problem,
    Solver,
    Split,
    Table,
    Training,
    mean,
)
from benchmarks.papers.runs import Effort, Fit, Store
from mvcca import CCA, PLS
from mvcca.datasets import make_gaussian_views

TABLES = catalogue.tables()
CELLS = [(table, problem) for table in TABLES for problem in table.problems]
STORED = [(t, p) for t, p in CELLS if Store(runs.RESULTS, t).records(p)]


def planted(seed, n_rows):
    views = make_gaussian_views(
        300, n_features=(8, 6), correlations=(0.9, 0.7), random_state=seed
    ).views
    parts = (views[:150], views[150:200], views[200:])
    return Split(*(Part(part[:n_rows]) for part in parts))


def small(**others):
    solvers = [
        Solver("CCA", lambda s, _: CCA(**s), {"n_components": 2, "reg": 0.1}, {"reg": (0.1, 1.0)}),
        Solver("PLS", lambda s, _: PLS(**s), {"n_components": 2}, {"n_components": (2, 1)}),
    ]
    given = {"n_seeds": 3, "n_trials": 2, "reference": "CCA"} | others
    return Table(
        "p0",
        "table 99",
        "Planted",
        [Problem("planted", "planted", planted)],
        lambda _: solvers,
        ("r@1", "mrr"),
        "mrr",
        **given,
    )


# ---- the catalogue -------------------------------------------------------------------------------


def test_every_table_has_a_command_or_a_reason():
    listed = catalogue.listing()
    for entry in catalogue.entries():
        assert f"{entry.paper} {entry.number}" in listed
        if isinstance(entry, Missing):
            assert entry.reason in listed
            continue
        kind, _, number = entry.number.partition(" ")
        command = f"python -m benchmarks.papers {entry.paper} --{kind} {number}"
        assert command in listed
        options = arguments(command.split()[3:])
        assert catalogue.selected(options.paper, options.table, options.figure)


@pytest.mark.parametrize("paper", catalogue.PAPERS)
def test_papers_have_the_tables_that_the_data_allow(paper):
    expected = {
        "p0": {*(f"table {n}" for n in (2, 3, 4, 5, "memory", "rates")), "figure 6"},
        "p1": {"table 1", "table grid", "figure 4", "figure 5", "figure 6", "figure 7"},
        "p2": {"table a"},
        "p3": {*(f"table {n}" for n in (1, 2, 3, 5, 9, 10)), "figure 2"},
        "p4": {*(f"table {n}" for n in (2, 3, 4, "4b", 5, 6))},
    }
    runnable = {e.number for e in catalogue.entries(paper) if not isinstance(e, Missing)}
    assert runnable == expected[paper]


def test_what_cannot_be_had_is_said_with_its_reason(capsys):
    with pytest.raises(SystemExit, match="CUB"):
        catalogue.selected("p0", "6", None)
    main(arguments(["--list"]))
    assert "XRMB" in capsys.readouterr().out


@pytest.mark.parametrize(("table", "problem"), CELLS, ids=lambda own: getattr(own, "name", own))
def test_all_methods_of_a_table_have_as_many_trials(table, problem):
    names = [solver.name for solver in table.solvers(problem)]
    assert len(set(names)) == len(names)
    for solver in table.solvers(problem):
        settings = solver.settings(table.n_trials)
        unique = {json.dumps(setting, sort_keys=True) for setting in settings}
        assert len(settings) == len(unique) == table.n_trials, solver.name
        assert settings[:1] == solver.settings(1)  # fewer trials are the first ones
        models = [solver.build(setting, 0) for setting in settings]
        models = {repr(getattr(model, "model", model)) for model in models}
        assert len(models) == table.n_trials, solver.name  # no setting is another one in words


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.key)
def test_the_paper_ranks_first_and_the_package_beside_it(table):
    assert table.select in table.measures
    if table.rankings != ("none",):
        assert table.rankings[0] in ("cosine", "euclidean")
        # A figure of one method, and word vectors, have the ranking of the paper alone.
        assert DEFAULT in table.rankings or table.number in ("table grid", "table 6")


def test_claims_name_rows_of_their_tables():
    for claim in claims.CLAIMS:
        known = {s.name for p in claim.table.problems for s in claim.table.solvers(p)}
        assert {claim.better, claim.worse} <= known, claim.words


# ---- runs ----------------------------------------------------------------------------------------


def test_an_interrupted_run_goes_on_and_stores_nothing_twice(tmp_path, monkeypatch):
    table, effort = small(), Effort(3, 2)
    fitted, fit = [], Fit.run

    def stopping(self, split):
        if len(fitted) == 3:
            raise KeyboardInterrupt
        fitted.append(self.key)
        return fit(self, split)

    monkeypatch.setattr(Fit, "run", stopping)
    with pytest.raises(KeyboardInterrupt):
        runs.run(table, table.problems, None, effort, tmp_path)
    monkeypatch.setattr(Fit, "run", fit)
    runs.run(table, table.problems, None, effort, tmp_path)
    path = tmp_path / table.key / "planted.jsonl"
    keys = [json.loads(line)["key"] for line in path.read_text("utf-8").splitlines()]
    assert keys[:3] == fitted
    assert len(set(keys)) == len(keys)
    # Two trials of each method; one or two settings, by ranking, with each of two other seeds.
    assert 8 <= len(keys) <= 12


def test_a_record_says_what_it_was_measured_with(tmp_path):
    table = small()
    runs.run(table, table.problems, None, Effort(1, 1), tmp_path)
    record = next(iter(Store(tmp_path, table).records(table.problems[0]).values()))
    assert record["n_rows"] == [150, 50, 100]
    assert {"numpy", "torch", "mvcca", "scikit-learn"} <= record["versions"].keys()
    assert record["device"] == "cpu"
    assert record["cpu_seconds"] >= 0
    assert record["test"]["cosine"]["mrr"].keys() == {"view0 to view1", "view1 to view0"}


def test_warnings_of_the_package_are_kept(tmp_path):
    table = small()
    solver = Solver("CCA", lambda s, _: CCA(**s), {"n_components": 50, "reg": 0.1})
    table = replace(table, solvers=lambda _: [solver])
    runs.run(table, table.problems, None, Effort(1, 1), tmp_path)
    (record,) = Store(tmp_path, table).records(table.problems[0]).values()
    assert any("n_components=50" in text for text in record["warnings"])


def test_the_setting_is_chosen_by_validation_rows_and_by_the_ranking_of_the_column():
    def record(reg, cosine, default):
        figures = {
            name: {"mrr": {"a to b": value, "b to a": value}}
            for name, value in (("cosine", cosine), (DEFAULT, default))
        }
        return {"seed": 0, "setting": {"reg": reg}, "valid": figures, "test": {}}

    records = [record(0.1, 0.4, 0.9), record(1.0, 0.5, 0.8)]
    assert runs.chosen(small(), records, "cosine")["setting"] == {"reg": 1.0}
    assert runs.chosen(small(), records, DEFAULT)["setting"] == {"reg": 0.1}


def test_another_training_is_another_record():
    table = small()
    solver = replace(table.solvers(table.problems[0])[0], is_deep=True)
    keys = {
        Fit(own, table.problems[0], solver, {}, 0, Effort(1, 1)).key
        for own in (table, replace(table, training=Training(max_epochs=7)))
    }
    assert len(keys) == 2


# ---- pages ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    folder, table = tmp_path_factory.mktemp("results") / "papers", small()
    runs.run(table, table.problems, None, Effort(3, 2), folder)
    return folder, table


def test_a_page_holds_the_figures_of_the_records(stored):
    folder, table = stored
    page = report.page_of(table, None, folder)
    rows = report.rows_of(table, table.problems[0], Effort(3, 2), folder)
    for ranking in table.rankings:
        own = rows["PLS"][ranking]
        assert sorted(r["seed"] for r in own) == [0, 1, 2]
        value = 100 * np.mean([mean(r["test"], ranking, "mrr") for r in own])
        assert f"| {value:.1f} ± " in page
    assert "3 seeds; 2 settings of each method" in page


def test_a_row_with_less_effort_is_not_in_the_table(stored):
    folder, table = stored
    other = Solver("PLS of one", lambda s, _: PLS(**s), {"n_components": 1}, {"scale": (True,)})
    wider = replace(table, solvers=lambda p: [*table.solvers(p), other])
    page = report.page_of(wider, None, folder)
    assert "Not run with this effort: PLS of one." in page


def test_two_methods_are_compared_on_what_both_have_whatever_others_lack(stored):
    folder, table = stored
    others = [Solver(f"lacks all {i}", lambda s, _: CCA(**s), {"reg": 0.5 + i}) for i in range(9)]
    wider = replace(table, solvers=lambda p: [*table.solvers(p), *others])
    assert report.effort_stored(wider, table.problems[0], folder, {"CCA", "PLS"}) == Effort(3, 2)
    assert report.effort_stored(wider, table.problems[0], folder, {"lacks all 0"}) is None


def test_a_page_names_all_devices_and_versions(stored, tmp_path):
    folder, table = stored
    problem = table.problems[0]
    store = Store(tmp_path / "papers", table)
    for record in Store(folder, table).records(problem).values():
        if record["solver"] == "PLS":
            record = record | {"device": "a GPU"}
            record["versions"] = record["versions"] | {"torch": "0.1"}
        store.add(problem, record)
    page = report.page_of(table, None, tmp_path / "papers")
    assert "a GPU and cpu (CPU seconds are those of the host)" in page
    assert "torch 0.1 and " in page
    assert "measured" in report.time_left(table, Effort(4, 2), tmp_path / "papers")
    assert "PLS, 1 fits, 2 s each, a guess" in report.time_left(
        table, Effort(4, 2), tmp_path / "papers"
    )


def test_differences_pair_the_seeds(stored):
    folder, table = stored
    rows = report.rows_of(table, table.problems[0], Effort(3, 2), folder)
    gains = report.differences(rows, "CCA", "PLS", "cosine", "mrr")
    by_seed = [
        {r["seed"]: mean(r["test"], "cosine", "mrr") for r in rows[name]["cosine"]}
        for name in ("CCA", "PLS")
    ]
    np.testing.assert_allclose(gains, [by_seed[0][s] - by_seed[1][s] for s in range(3)])


def test_time_left_is_known_from_fits_that_are_stored(stored):
    folder, table = stored
    assert report.time_left(table, Effort(3, 2), folder) == "p0-table-99: 0.0 CPU hours left"
    assert "measured" in report.time_left(table, Effort(5, 2), folder)


@pytest.mark.parametrize(
    ("gains", "says"),
    [
        ([0.03, 0.02, 0.04], "agrees"),
        ([-0.03, -0.02, -0.04], "disagrees"),
        ([0.1, -0.1, 0], "undecided"),
        ([0.03, 0.03, 0.03], "agrees on one split"),
        ([-0.03, -0.03, -0.03], "disagrees on one split"),
        ([0.03, 0.03], "undecided"),
    ],
)
def test_verdicts_are_intervals_of_paired_differences(gains, says):
    def records(values):
        one = [{"mrr": {"": v}} for v in values]
        return {"cosine": [{"seed": s, "test": {"cosine": own}} for s, own in enumerate(one)]}

    rows = {"CCAL": records([0.5 + g for g in gains]), "DCCA": records([0.5] * 3)}
    claim = claims.Claim("p0-table-3", "is better", "CCAL", "DCCA")
    assert claims._verdict(claim, claim.table.problems[0], "cosine", rows).says == says


# ---- what is stored in the repository ------------------------------------------------------------


@pytest.mark.parametrize(("table", "problem"), STORED, ids=lambda own: getattr(own, "name", own))
def test_rows_that_are_compared_share_split_ranking_budget_and_training(table, problem):
    effort = report.effort_stored(table, problem)
    assert effort is not None
    rows = report.rows_of(table, problem, effort)
    records = [r for own in rows.values() for found in own.values() for r in found]
    assert {tuple(r["rankings"]) for r in records} == {table.rankings}
    splits = {(r["seed"], tuple(r["n_rows"])) for r in records}
    assert len(splits) == effort.n_seeds  # the same rows for all methods
    assert len({r["training"] for r in records} - {None}) <= 1
    for name, by_ranking in rows.items():
        for ranking in table.rankings:
            assert sorted(r["seed"] for r in by_ranking[ranking]) == list(range(effort.n_seeds)), (
                name
            )


@pytest.mark.slow
def test_pages_are_those_of_the_stored_records(tmp_path):
    """Nobody types a figure: ``python -m benchmarks.papers --report`` writes these pages."""
    (tmp_path / "papers").symlink_to(runs.RESULTS)
    report.write_pages(tmp_path / "papers")
    for path in sorted(tmp_path.glob("*.md")):
        assert path.read_text("utf-8") == (runs.RESULTS.parent / path.name).read_text("utf-8")
    plots = {path.name for path in (tmp_path / "plots").iterdir()}
    assert plots == {path.name for path in (runs.RESULTS.parent / "plots").iterdir()}
    linked = "".join(path.read_text("utf-8") for path in tmp_path.glob("*.md"))
    assert all(f"](plots/{name})" in linked for name in plots)


# ---- everything, quickly -------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(  # the table of one paper stands for all in CI
    "paper",
    [pytest.param(p, marks=() if p == "p2" else pytest.mark.long) for p in catalogue.PAPERS],
)
def test_everything_runs_in_its_quick_form(paper, capsys):
    from benchmarks.real import data_home

    files = {f for t in catalogue.tables(paper) for p in t.problems for f in p.files}
    missing = sorted(f for f in files if not (data_home() / f).is_file())
    if missing:
        pytest.skip(f"needs {', '.join(missing)} in MVCCA_DATA")
    main(arguments([paper, "--quick"]))
    printed = capsys.readouterr().out
    for entry in catalogue.entries(paper):
        if isinstance(entry, Missing):
            continue
        assert f"{entry.number}: {entry.title}" in printed
        for problem in getattr(entry, "table", entry).problems:
            assert problem.title in printed
    assert "Not run" not in printed
