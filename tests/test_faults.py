"""Seeded faults: hostile model files, malformed inputs of commands, processes that are killed.

`python -m faults.model_files`, `faults.command_inputs` and `faults.kills`, from this folder, make
more of them and print what they find.
"""

from __future__ import annotations

import os

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="faults are made in forked processes"),
    pytest.mark.filterwarnings("ignore"),  # of odd models that are put to use
]


def test_damaged_and_hostile_model_files_are_loaded_as_they_were_or_refused_in_a_line():
    from faults.model_files import run

    faults, counts = run(1_000, seed=0)
    assert not faults
    assert counts["forgery refused"] > 200
    assert counts["forgery loaded"] > 50


def test_malformed_inputs_of_commands_are_a_line():
    from faults.command_inputs import run

    faults, counts = run(100, seed=0)
    assert not faults
    assert sum(counts[f"{name} ended with 1"] for name in ("fit", "compare", "transform")) > 40


def test_a_command_that_is_killed_leaves_what_was_whole_and_can_be_repeated():
    from faults.kills import run

    faults, counts = run(20, seed=0)
    assert not faults
    assert sum(number for what, number in counts.items() if what.endswith("killed")) > 5
