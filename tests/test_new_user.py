"""From the front page to a search on own files, by the commands that it shows and no others."""

from __future__ import annotations

import csv
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from commands import fail, run, succeed

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
SESSION = next(
    one for one in re.findall(r"```console\n(.*?)```", README, re.DOTALL) if "--id track" in one
)
COMMANDS = [shlex.split(line.removeprefix("$ ")) for line in SESSION.splitlines()]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Two tables with a column of names, of 200 songs; 20 have no sound and 30 no lyrics."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    mood = rng.standard_normal((200, 4))
    names = np.array([f"TR{number:04d}" for number in range(200)])
    for view, width, n_missing in (("audio", 10, 20), ("lyrics", 8, 30)):
        rows = mood @ rng.standard_normal((4, width)) + 0.4 * rng.standard_normal((200, width))
        kept = rng.permutation(200)[n_missing:]
        with open(f"{view}.csv", "w", newline="") as file:
            lines = csv.writer(file)
            lines.writerow(["track", *(f"{view}_{column}" for column in range(width))])
            lines.writerows(
                [name, *row.round(4)] for name, row in zip(names[kept], rows[kept], strict=True)
            )


def tracks_of(lines, column):
    return [line[column] for line in csv.DictReader(lines)]


@pytest.mark.slow
def test_three_commands_of_the_front_page_end_in_hits_with_names(capsys):
    assert [words[:2] for words in COMMANDS] == [
        ["mvcca", name] for name in ("compare", "fit", "search")
    ]
    code, compared, notes = run(capsys, *COMMANDS[0][1:])
    assert code == 0, notes
    assert re.search(
        r"^mvcca: \d+ objects by 'track': 1\d\d in both views \(audio 180, lyrics 170\)", notes
    )
    assert re.search(r"^Same object: \w+", compared)
    (following,) = re.findall(r"^Next: mvcca (fit .*)$", compared, re.MULTILINE)
    for words in (
        shlex.split(following),
        COMMANDS[1][1:],
    ):  # what it suggests, and what README does
        code, fitted, notes = run(capsys, *words)
        assert code == 0, notes
        (following,) = re.findall(r"^Next: (mvcca search .*)$", fitted, re.MULTILINE)
    assert shlex.split(following) == COMMANDS[2][:-2]  # all but -k 3
    out = succeed(capsys, *COMMANDS[2][1:]).splitlines()
    files = (Path(f"{view}.csv").read_text().splitlines() for view in ("audio", "lyrics"))
    audio, lyrics = ({*tracks_of(lines, "track")} for lines in files)
    queries, items = tracks_of(out, "query"), tracks_of(out, "item")
    assert len(queries) == 3 * len(lyrics)
    assert {*queries} == lyrics
    assert {*items} <= audio
    right = sum(query == item for query, item in zip(queries, items, strict=True))
    assert right > 0.8 * len(audio & lyrics)  # chance: .02


@pytest.mark.slow
def test_who_forgets_the_names_is_told_the_option(capsys):
    error = fail(capsys, *(word for word in COMMANDS[0][1:] if word not in ("--id", "track")))
    assert "If a column names the rows, give --id COLUMN" in error
