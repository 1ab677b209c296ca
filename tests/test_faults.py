"""Seeded faults: hostile model files, malformed inputs of commands, processes that are killed.

`python -m faults.model_files`, `faults.command_inputs` and `faults.kills`, from this folder, make
more of them and print what they find. Here each runs in a process of its own, since it forks, which
threads of earlier tests do not survive.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="faults are made in forked processes"),
]


def found_by(script: str, n: int) -> tuple[list[str], dict[str, int]]:
    """Faults, and what became of the n tries, by kind."""
    tests = Path(__file__).parent
    path = os.pathsep.join([str(tests.parent), os.environ.get("PYTHONPATH", "")])
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", f"faults.{script}", str(n), "0"],
        cwd=tests, env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode in (0, 1), result.stderr
    *lines, counts, total = result.stdout.splitlines()  # commands print, too
    n_faults = int(total.split()[0])
    return lines[len(lines) - n_faults :], ast.literal_eval(counts)


@pytest.mark.parametrize("n", [60, pytest.param(1_000, marks=pytest.mark.long)])
def test_damaged_and_hostile_model_files_are_loaded_as_they_were_or_refused_in_a_line(n):
    faults, counts = found_by("model_files", n)
    assert not faults
    assert counts["forgery refused"] > n / 5
    assert counts["forgery loaded"] > n / 20


def test_malformed_inputs_of_commands_are_a_line():
    faults, counts = found_by("command_inputs", 50)
    assert not faults
    assert (
        sum(counts[f"{name} ended with 1"] for name in ("fit", "compare", "migrate", "transform"))
        > 25
    )


@pytest.mark.parametrize("n", [2, pytest.param(20, marks=pytest.mark.long)])
def test_a_command_that_is_killed_leaves_what_was_whole_and_can_be_repeated(n):
    faults, counts = found_by("kills", n)
    assert not faults
    assert sum(number for what, number in counts.items() if what.endswith("killed")) > n / 4
