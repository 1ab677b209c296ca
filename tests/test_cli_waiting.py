"""What commands say while one waits: progress at a terminal, and nothing that stays."""

from __future__ import annotations

import re
import sys
import time

import numpy as np
import pytest
from commands import without_reads

from mvcca.cli import main
from mvcca.cli.console import Progress, fitted_to_terminal
from mvcca.machine import progress
from mvcca.machine.progress import counting, passing_bars

N = 600
VIEWS = ["--view", "a=a.npy", "--view", "b=b.npy"]


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((N, 6)) ** 3
    np.save("a.npy", shared @ rng.standard_normal((6, 10)) + rng.standard_normal((N, 10)))
    np.save("b.npy", shared @ rng.standard_normal((6, 8)) + rng.standard_normal((N, 8)))
    np.savetxt("pairs.csv", np.tile(np.arange(20)[:, None], 2), "%d", ",")


def at_a_terminal(monkeypatch):
    """Let standard error be a terminal of 80 columns."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")


FIT = ["fit", *VIEWS, "--method", "cca", "-o", "m.mvcca"]
BETWEEN = ["--gallery", "a=a.npy", "--query", "b=b.npy", "-k", "1", "-o", "hits.csv"]
COMMANDS = {
    "compare": ["compare", *VIEWS, "--methods", "cca", "--cv", "2"],
    "fit": FIT,
    "search": ["search", "m.mvcca", *BETWEEN],
    "transform": ["transform", "m.mvcca", *VIEWS, "-o", "{view}-s.npy"],
    "test": ["test", "a.npy", "b.npy", "--permutations", "20"],
    "align": ["align", "a.npy", "b.npy", "--pairs", "pairs.csv", "-o", "al.mvcca", "--force"],
    "migrate": ["migrate", "a.npy", "b.npy", "-o", "mapped.npy"],
    "similarity": ["similarity", "a.npy", "b.npy"],
}


# ---- progress -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        "fit",
        "search",
        "transform",
        "test",
        pytest.param("align", marks=pytest.mark.slow),
        "similarity",
    ],
)
def test_a_terminal_sees_the_share_done_and_nothing_that_stays(command, capsys, monkeypatch):
    at_a_terminal(monkeypatch)
    assert main([*FIT, "-q"]) == 0
    monkeypatch.setattr(progress, "_DELAY", 0)
    capsys.readouterr()
    assert main(COMMANDS[command]) == 0
    out, err = capsys.readouterr()
    assert re.search(r"\d+%\|.*\d+/\d+", err)  # the bar of tqdm, with the time left
    assert "\r" not in out
    last = re.split(r"\r", err)[-1]
    assert not last.strip() or "mvcca: " in last  # it was erased; notes stay
    assert max(len(part) for part in re.split(r"[\r\n]", err) if "mvcca: " not in part) <= 80


def test_a_pipe_sees_no_progress(capsys, monkeypatch):
    monkeypatch.setattr(progress, "_DELAY", 0)
    assert main(FIT) == 0
    assert without_reads(capsys.readouterr().err) == ""


def test_short_loops_of_commands_come_and_go_unseen(capsys, monkeypatch):
    at_a_terminal(monkeypatch)
    monkeypatch.setattr(progress, "_DELAY", 600)  # on a busy machine a second is short
    assert main(FIT) == 0
    assert without_reads(capsys.readouterr().err) == ""


def test_loops_within_loops_show_no_bar_of_their_own(capsys):
    from mvcca import config_context

    with config_context(progress=True), counting(2, "outer") as count:
        for _ in range(2):
            with counting(3, "inner") as inner:
                inner(3)
            count()
    err = capsys.readouterr().err
    assert "outer: 100%" in err
    assert "inner" not in err
    with config_context(progress=True), counting(3, "inner") as inner:
        inner(3)
    assert "inner: 100%" in capsys.readouterr().err


def test_passing_bars_are_erased(capsys, monkeypatch):
    from mvcca import config_context

    monkeypatch.setattr(progress, "_DELAY", 0)
    with config_context(progress=True), passing_bars(), counting(3, "passing") as count:
        count(3)
    err = capsys.readouterr().err
    assert "passing: " in err
    assert not re.split(r"\r", err.rstrip("\r"))[-1].strip()


def test_the_progress_line_counts_seconds_and_fits_the_terminal(capsys, monkeypatch):
    at_a_terminal(monkeypatch)
    with Progress() as shown:
        shown.update("NKCCA, choosing settings " * 5)
        time.sleep(1.3)
    lines = re.split(r"\r\x1b\[K", capsys.readouterr().err)
    assert any(re.search(r" \.\.\. [1-9] s$", line) for line in lines)
    assert max(map(len, lines)) < 80
    assert lines[-1] == ""


def test_long_lines_are_wrapped_at_a_terminal_only(monkeypatch):
    text = (
        "One sentence that is long enough to be wrapped.\nname  value that is long as well\na  b  c"
    )
    assert fitted_to_terminal(text) == text
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "24")
    assert fitted_to_terminal(text).splitlines() == [
        "One sentence that is",
        "long enough to be",
        "wrapped.",
        "name  value that is long",
        "      as well",
        "a  b  c",
    ]
