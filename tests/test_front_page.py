"""What a visitor sees runs: README, landing page, getting started, how-to pages and guide.

`run_page.py` runs all code of a page in one process, from the wheel, in an empty folder and without
any data but what the package and scikit-learn ship.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
import run_page

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text(encoding="utf-8")
RUNNER = ROOT / "tests" / "run_page.py"

FOLDERS = [DOCS, DOCS / "how_to", DOCS / "user_guide"]
PAGES = sorted(path.relative_to(ROOT).as_posix() for f in FOLDERS for path in f.glob("*.rst"))
PAGES = ["README.md", *PAGES]
QUICK = "docs/getting_started.rst"  # which make test runs; CI runs all


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """The package as it is installed: the unpacked wheel, built once for all workers of pytest."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "wheel"
    try:
        folder.mkdir()
    except FileExistsError:  # another process builds it
        end = time.monotonic() + 300
        while not (folder / "done").exists():
            assert time.monotonic() < end, f"the wheel is not built after 5 minutes, in {folder}"
            time.sleep(0.1)
    else:
        _build(folder)
    problem = (folder / "done").read_text(encoding="utf-8")
    if problem.startswith("hatchling"):
        pytest.skip(problem)
    assert not problem, problem
    return folder / "installed"


def _build(folder: Path) -> None:
    """Build and unpack the wheel; write what went wrong, if anything, into the file ``done``."""
    isolated = [] if importlib.util.find_spec("hatchling") is None else ["--no-build-isolation"]
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "-q", *isolated, "-w"]
    try:
        built = subprocess.run(
            [*command, str(folder), str(ROOT)], capture_output=True, text=True, check=False
        )
        problem = built.stderr if built.returncode else ""
        if "hatchling" in problem:
            problem = "hatchling is missing, and pip cannot get it: pip install hatchling"
        if not problem:
            with zipfile.ZipFile(next(folder.glob("mvcca-*.whl"))) as file:
                file.extractall(folder / "installed")
    except BaseException as error:
        problem = repr(error)
        raise
    finally:
        (folder / "done").write_text(problem, encoding="utf-8")


def on_wheel(arguments, wheel):
    """What to give to a process of Python on the unpacked wheel."""
    known = {name: value for name, value in os.environ.items() if name != "MVCCA_DATA"}
    return {
        "args": [sys.executable, "-P", "-W", "error", *map(str, arguments)],
        "env": known | {"PYTHONPATH": str(wheel), "MPLBACKEND": "Agg", "PYTHONIOENCODING": "utf-8"},
        "encoding": "utf-8",
    }


def run(arguments, wheel, folder):
    """Run Python on the unpacked wheel, in a folder."""
    return subprocess.run(
        **on_wheel(arguments, wheel), cwd=folder, capture_output=True, check=False
    )


@pytest.fixture(scope="module")
def server(wheel):
    """A process that forks one for each page, so that large libraries are imported once."""
    if not hasattr(os, "fork"):
        pytest.skip("there is no fork")
    pipe = subprocess.PIPE
    with subprocess.Popen(**on_wheel([RUNNER, "--serve"], wheel), stdin=pipe, stdout=pipe) as own:
        yield own


def write_files_of_readers(folder: Path) -> None:
    """Files under the names of README and guide, where these stand for files of the reader."""
    rng = np.random.default_rng(0)
    image = rng.standard_normal((300, 30))
    text = image[:, :20] + rng.standard_normal((300, 20))
    for name in ("img", "image", "old", "english"):
        np.save(folder / f"{name}.npy", image)
    np.save(folder / "text.npy", text)
    np.savez(folder / "txt.npz", text)
    np.save(folder / "train_image.npy", image[:50])
    np.save(folder / "train_text.npy", text[:50])
    np.save(folder / "captions.npy", text[:12])
    np.save(folder / "new.npy", image[:200, :10])
    np.save(folder / "rows.npy", np.arange(200))
    np.save(folder / "german.npy", image @ rng.standard_normal((30, 10)))
    np.save(folder / "labels.npy", rng.integers(0, 2, (300, 8)))
    np.savez(folder / "y.npz", np.arange(300) % 3)
    (folder / "pairs.csv").write_text("".join(f"{i},{i}\n" for i in range(50)), "utf-8")
    (folder / "captions.txt").write_text("a red dog\na dog\nred and blue\n" * 100, "utf-8")
    (folder / "queries.txt").write_text("a blue dog\n", "utf-8")
    if importlib.util.find_spec("zarr") is not None:
        import zarr

        array = zarr.create_array(folder / "text.zarr", shape=text.shape, dtype=text.dtype)
        array[:] = text
    if importlib.util.find_spec("pyarrow") is not None:
        import pyarrow as pa
        from pyarrow import parquet

        for name, vectors in (("store", image), ("sample", image[:200, :10])):
            keys = [f"item {i}" for i in range(len(vectors))]
            table = pa.table({"key": keys, "vector": [*vectors]})
            parquet.write_table(table, folder / f"{name}.parquet")
    for network in ("first_network", "second_network"):
        (folder / network).mkdir()
        for layer in range(2):
            np.save(folder / network / f"{layer}.npy", image @ rng.standard_normal((30, 8)))
    for name, first, width, n in (
        ("brain", "subject", 4, 300),
        ("behaviour", "subject", 4, 300),
        ("confounds", "subject,family", 2, 300),
        ("thickness", "", 30, 139),
        ("toolbox", "", 4, 139),
    ):
        rows = rng.standard_normal((n, width))
        lines = [",".join([first] * bool(first) + [f"{name} {i}" for i in range(width)])]
        for i, row in enumerate(rows):
            own = [[], [f"s{i}"], [f"s{i}", f"{i // 3}"]][len(first.split(",")) if first else 0]
            lines.append(",".join([*own, *map(str, row)]))
        (folder / f"{name}.csv").write_text("\n".join(lines), "utf-8")
    tracks = np.arange(300)
    for name, kept in (("audio", tracks[:250]), ("lyrics", tracks[50:][::-1])):
        lines = [f"track {i},{','.join(map(str, image[i, :8] + rng.random(8)))}" for i in kept]
        header = ",".join(["track", *(f"{name} {j}" for j in range(8))])
        (folder / f"{name}.csv").write_text("\n".join([header, *lines]), "utf-8")
    (folder / "lyrics_texts").mkdir()
    for i in tracks[50:]:
        words = " ".join(f"word{j}" for j in np.flatnonzero(image[i, :8] > 0))
        path = folder / "lyrics_texts" / f"track {i}.txt"
        path.write_text(f"{words} la\nla la\n", "utf-8")


def test_the_code_of_a_page_runs_from_the_wheel(wheel, tmp_path):
    write_files_of_readers(tmp_path)
    ran = run([RUNNER, ROOT / QUICK], wheel, tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted({*PAGES} - {QUICK}))
def test_so_does_the_code_of_the_other_pages(page, server, tmp_path):
    write_files_of_readers(tmp_path)
    server.stdin.write(f"{ROOT / page}\t{tmp_path}\n")
    server.stdin.flush()
    status = server.stdout.readline()
    printed = (tmp_path / "printed").read_text(encoding="utf-8")
    assert status == "0\n", printed
    if missing := re.findall(r"^missing, (.*)$", printed, re.MULTILINE):
        pytest.skip(f"{page}, {'; '.join(missing)}")


@pytest.mark.slow
@pytest.mark.long  # more than half a minute of CPU time each
@pytest.mark.parametrize(
    "page",
    [
        page
        for page in PAGES
        if re.search(r" long: |\$ mvcca (compare|test) ", (ROOT / page).read_text("utf-8"))
    ],
)
def test_a_page_runs_whole_as_it_shows_its_commands(page, wheel, tmp_path):
    write_files_of_readers(tmp_path)
    ran = run([RUNNER, ROOT / page, "--long"], wheel, tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_pages_run_on_the_wheel_and_not_on_the_source(wheel, tmp_path):
    code = "import mvcca, os; print(os.path.dirname(mvcca.__file__), 'MVCCA_DATA' in os.environ)"
    ran = run(["-c", code], wheel, tmp_path)
    assert ran.stdout == f"{wheel / 'mvcca'} False\n", ran.stderr


def test_the_wheel_ships_its_data_with_their_licence(wheel):
    data = wheel / "mvcca" / "datasets" / "data"
    assert {path.name for path in data.iterdir()} == {"spoken_digits.npz", "spoken_digits.txt"}
    assert "CC BY-SA 4.0" in (data / "spoken_digits.txt").read_text()
    assert sum(path.stat().st_size for path in data.iterdir()) < 500_000


@pytest.mark.slow
@pytest.mark.long
def test_the_picture_is_as_right_as_its_caption_says(wheel, tmp_path):
    copy = tmp_path / "docs" / "picture.py"
    (tmp_path / "docs" / "_static").mkdir(parents=True)
    copy.write_text((DOCS / "spoken_digits_picture.py").read_text("utf-8"), "utf-8")
    printed = run([copy], wheel, tmp_path).stdout
    shown, share = re.search(r"(\d+) of the 100 .*?\n(0\.\d+) over all 300", printed).groups()
    assert f"{shown} are right" in README
    assert f"the share is {share.removeprefix('0')}" in README
    landing = (DOCS / "index.rst").read_text("utf-8")
    assert f"{100 - int(shown)} of 100 here" in landing
    assert f"{100 - round(100 * float(share))} % over all" in landing


def test_every_extra_that_a_page_names_exists():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for page in PAGES:
        for names in re.findall(r"mvcca\[([\w,-]+)\]", (ROOT / page).read_text(encoding="utf-8")):
            assert set(names.split(",")) <= project["optional-dependencies"].keys(), page


# ---- the runner ----------------------------------------------------------------------------------

PAGE = """
>>> x = 2
>>> x + {added}
4

.. code-block:: python

   print(x, {name})

.. code-block:: text

   {shown}

{comment}

.. code-block:: console

   $ mvcca {command}
"""
RIGHT = {
    "added": 2,
    "name": "'a'",
    "shown": "2 ...",
    "command": "--version",
    "comment": "",
}


@pytest.fixture
def run_here(tmp_path, monkeypatch, capsys):
    """Write a page, run it in this process, and return the exit status and what was printed."""

    def run_text(name, text, *options):
        (tmp_path / name).write_text(text, "utf-8")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["run_page.py", name, *options])
        return run_page.main(), capsys.readouterr().out

    return run_text


@pytest.mark.parametrize(
    ("changed", "status", "printed"),
    [
        ({}, 0, ""),
        ({"added": 3}, 1, "Expected:"),
        ({"name": "missing"}, 1, "NameError"),
        ({"shown": "3 a"}, 1, "The page shows:"),
        ({"command": "compare --views x.npy"}, 1, "mvcca compare --views x.npy"),
        ({"command": "nothing", "comment": ".. not run: it is broken"}, 0, "left out, line 18: it"),
        ({"command": "nothing", "comment": ".. long: it takes a day"}, 0, "left out, line 18: it"),
        ({"name": "__import__('no_library')"}, 0, "missing, line 8: needs no_library: pip install"),
    ],
)
def test_the_runner_finds_what_does_not_run(changed, status, printed, run_here):
    found, out = run_here("page.rst", PAGE.format(**(RIGHT | changed)))
    assert (found, bool(out)) == (status, bool(printed)), out
    assert printed in out


def test_the_runner_reads_markdown(run_here):
    found, out = run_here("page.md", "```python\nprint(1)\n```\n\n```text\n2\n```\n")
    assert found == 1
    assert "The page shows:\n2" in out


def test_commands_are_cheap_unless_their_output_is_compared_or_all_is_asked_for(
    run_here, monkeypatch
):
    ran = []
    monkeypatch.setattr(
        "mvcca.cli.main", lambda words: ran.append(words) or sys.stdout.write("one\n") - 4
    )
    text = "```console\n$ mvcca compare x\n```\n\n{}```console\n$ mvcca test y\n```\n"
    shown = "```text\none\n```\n\n"
    assert run_here("page.md", text.format("")) == (0, "")
    assert run_here("page.md", text.format(shown)) == (0, "")
    assert run_here("page.md", text.format(""), "--long") == (0, "")
    compare, test = (["compare", "x"], ["test", "y"])
    quick = [*test, *run_page.QUICK["test"]]
    assert ran == [[*compare, *run_page.QUICK["compare"]], quick, compare, quick, compare, test]
