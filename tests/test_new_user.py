"""From the front page to a search on own files, by the commands that it shows and no others."""

from __future__ import annotations

import csv
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
SESSION = next(
    block for block in re.findall(r"```console\n(.*?)```", README, re.DOTALL) if "--id" in block
)
COMMANDS = [shlex.split(line.removeprefix("$ ")) for line in SESSION.splitlines()]
MINUTES = 5


@pytest.fixture
def folder(tmp_path):
    """Two tables with a column of names, of 400 songs; 40 have no sound and 60 no lyrics."""
    rng = np.random.default_rng(0)
    mood = rng.standard_normal((400, 4))
    names = np.array([f"TR{number:04d}" for number in range(400)])
    for view, width, n_missing in (("audio", 10, 40), ("lyrics", 8, 60)):
        rows = mood @ rng.standard_normal((4, width)) + 0.4 * rng.standard_normal((400, width))
        kept = rng.permutation(400)[n_missing:]
        with open(tmp_path / f"{view}.csv", "w", newline="") as file:
            lines = csv.writer(file)
            lines.writerow(["track", *(f"{view}_{column}" for column in range(width))])
            lines.writerows(
                [name, *row.round(4)] for name, row in zip(names[kept], rows[kept], strict=True)
            )
    return tmp_path


def run(command, folder):
    """What a command prints; its errors, if it fails."""
    assert command[0] == "mvcca"
    found = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60 * MINUTES,
        check=False,
    )
    return found.returncode, found.stdout, found.stderr


@pytest.mark.slow
def test_three_commands_of_the_front_page_end_in_hits_with_names(folder):
    assert [command[1] for command in COMMANDS] == ["compare", "fit", "search"]
    code, compared, notes = run(COMMANDS[0], folder)
    assert code == 0, notes
    assert re.search(
        r"^mvcca: \d+ objects by 'track': 3\d\d in both views \(audio 360, lyrics 340\)", notes
    )
    assert re.search(r"^Best for the same object: \w+", compared)
    (following,) = re.findall(r"^Next: (mvcca fit .*)$", compared, re.MULTILINE)
    for command in (shlex.split(following), COMMANDS[1]):  # what it suggests, and what README does
        code, fitted, notes = run(command, folder)
        assert code == 0, notes
        (following,) = re.findall(r"^Next: (mvcca search .*)$", fitted, re.MULTILINE)
    assert shlex.split(following) == COMMANDS[2][:-2]  # all but -k 3
    code, found, notes = run(COMMANDS[2], folder)
    assert (code, notes) == (0, "")
    hits = list(csv.DictReader(found.splitlines()))
    audio, lyrics = (
        {
            line["track"]
            for line in csv.DictReader((folder / f"{view}.csv").read_text().splitlines())
        }
        for view in ("audio", "lyrics")
    )
    assert len(hits) == 3 * len(lyrics)
    assert {hit["query"] for hit in hits} == lyrics
    assert {hit["item"] for hit in hits} <= audio
    right = {hit["query"] for hit in hits if hit["item"] == hit["query"]}
    assert len(right) > 0.8 * len(audio & lyrics)  # chance: .01


@pytest.mark.slow
def test_who_forgets_the_names_is_told_the_option(folder):
    words = [word for word in COMMANDS[0] if word not in ("--id", "track")]
    code, out, error = run(words, folder)
    assert (code, out, error.count("\n")) == (1, "", 1)
    assert "column 'track'" in error
    assert "give --id track if it names the rows" in error
