"""How many mutants of the package the tests notice.

`make mutants` draws lines of functions, of each room in proportion to how many it has, changes a
sign, comparison, index or constant of each, and runs the tests that reach it, cheapest first. The
share of mutants that die says how strong the tests are. The same mutants are tried on another
checkout by `python tests/mutants.py --tree CHECKOUT --lines FILE.json`, but for those whose
statement has changed there. Everything happens in copies, in a temporary folder.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from queue import SimpleQueue

import mutant_probe
from mutations import Mutant, all_mutants, drawn, found_again

ROOT = Path(__file__).resolve().parent.parent
MOST_TESTS = 60  # that try a mutant first
NO_FAILURE = (0, 4, 5)  # exit codes of pytest: all passed, a test is not there, no tests
TestSet = tuple[str, list[str]]  # a marker, and tests or files
# Files of tests for what no quick test notices, by patterns; by default, the name of the room.
FILES_OF_ROOM = {
    "base": "contract|hard_inputs|every_value|few_rows",
    "blocks": "blocks|sources|large_data|files|dask|hard_inputs",
    "comparison": "compar|tuned_methods|significance",
    "compose": "compose|confounds|tokens|encode|contract",
    "inspection": "inspection|permutation|intervals|parametric|study|sample_size",
    "interop": "migration|alignment|align_unpaired|representations|interop|vocabularies",
    "kernel": "kernel|ncca|contract",
    "linear": "linear|contract|oracle|papers|pls|label|supervised_baselines",
    "machine": "threads|lapack|config|archive|results|deadline",
    "measures": "measures|retrieval_scores|oracle|chance",
    "model_selection": "model_selection|tun|fold_search|sample_size|scoring",
    "persistence": "persistence|frozen_models|archive",
    "plotting": "plotting|displays|pictures|one_figure",
    "problem": "precision|oracle|units|wide|hard_inputs|whitened|contract",
    "retrieval": "retriev|ranking|gallery|index|hubness|matches|evaluate",
    "statistics": "statistics|missing|confounds|checkpoint|large_data|label_features",
    "views": "views|labels|tables|ids",
}


class Trials:
    """A folder with copies of a checkout, in which tests try mutants."""

    def __init__(self, tree: Path, folder: Path, n_jobs: int) -> None:
        self.tree, self.folder, self.n_jobs = tree, folder, n_jobs
        (folder / "probe").mkdir(parents=True, exist_ok=True)
        shutil.copy(mutant_probe.__file__, folder / "probe")
        self.times = count(10**9)
        self.copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(n_jobs):
            self.copies.put(self.copied(str(number)))

    def copied(self, name: str) -> Path:
        """A copy of what git knows of the checkout, or would add to it."""
        copy = self.folder / name
        shutil.rmtree(copy, ignore_errors=True)
        command = ["git", "-C", str(self.tree), "ls-files", "-z", "-c", "-o", "--exclude-standard"]
        listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        for file in listed.split("\0")[:-1]:
            if (self.tree / file).is_file():
                (copy / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(self.tree / file, copy / file)
        return copy

    def tested(self, copy: Path, *arguments: str, seconds: float | None = None) -> tuple[int, str]:
        """Exit code and output of pytest; without seconds, it notes what is reached."""
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        env = os.environ | threads | {mutant_probe.FOLDER: str(self.folder)}
        env |= {} if seconds is None else {mutant_probe.SECONDS: str(seconds)}
        env["PYTHONPATH"] = f"{copy}{os.pathsep}{self.folder / 'probe'}"
        options = ["-q", "--tb=no", "-p", "no:cacheprovider", "-p", "mutant_probe", *arguments]
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options],
            cwd=copy,
            env=env,
            text=True,
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        try:
            output, _ = process.communicate(timeout=None if seconds is None else 30 * seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return -1, ""
        return process.returncode, output

    def write(self, file: Path, code: bytes) -> None:
        """Write a file that no compiled one is taken for: Python and numba go by size and time."""
        file.write_bytes(code)
        os.utime(file, (next(self.times),) * 2)

    def tests_by_mutant(self, mutants: list[Mutant]) -> dict[Mutant, dict[str, float]]:
        """Quick tests that reach each mutant and pass, with their seconds."""
        if mutants:
            copy = self.copied("probed")
            numbered = sorted(enumerate(mutants), key=lambda own: own[1].segment)
            for number, own in reversed(numbered):  # so that positions stay true
                file = copy / "mvcca" / own.file
                file.write_bytes(own.written(file.read_bytes(), probe=number))
            code, output = self.tested(copy, "-n", str(self.n_jobs), "-m", "not slow")
            if code not in (0, 1):
                raise RuntimeError(f"The tests did not run:\n{output[-2000:]}")
        return reached_in(self.folder, mutants)

    def killer(self, own: Mutant, sets: list[TestSet], seconds: float) -> str:
        """The first test that fails with a mutant; "" if it survives."""
        copy = self.copies.get()
        file = copy / "mvcca" / own.file
        source = file.read_bytes()
        self.write(file, own.written(source))
        try:
            for marker, chosen in sets:
                if chosen:
                    code, output = self.tested(copy, "-x", "-m", marker, *chosen, seconds=seconds)
                    if code not in NO_FAILURE:
                        failed = re.search(f"(?m)^{mutant_probe.KILLER}(.*)$", output)
                        return failed[1] if failed else f"the end of the process ({code})"
            return ""
        finally:
            self.write(file, source)
            self.copies.put(copy)


def reached_in(folder: Path, mutants: list[Mutant]) -> dict[Mutant, dict[str, float]]:
    """What the probes have written."""
    files = [folder / name for name in ("durations", "hits")]
    durations, hits = (
        [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        for file in files
    )
    seconds = dict(durations)
    found: dict[Mutant, dict[str, float]] = {own: {} for own in mutants}
    for number, test in hits:
        if test in seconds:
            found[mutants[number]][test] = seconds[test]
    return found


def sets_of(own: Mutant, reached: dict[str, float], tree: Path) -> list[TestSet]:
    """Quick tests that reach a mutant, cheapest first; all their parameters; files of its room.

    Other parameters of a test come after the first ones of all.
    """
    variants: dict[str, int] = defaultdict(int)
    places = {}
    for test in sorted(reached, key=lambda test: reached[test]):
        name = test.partition("[")[0]
        variants[name] += 1
        places[test] = variants[name]
    pattern = FILES_OF_ROOM.get(own.room, own.room)
    files = [file for file in tree.glob("tests/test_*.py") if re.search(pattern, file.stem)]
    return [
        ("not slow", sorted(places, key=lambda test: places[test])[:MOST_TESTS]),
        ("not slow", list(variants)),
        (
            "slow and not long" if reached else "not long",
            sorted(f"tests/{file.name}" for file in files),
        ),
    ]


def table_of(
    killed_by: dict[Mutant, str], reached: dict[Mutant, dict[str, float]], n_gone: int
) -> str:
    lines = []
    for own, killer in killed_by.items():
        fate = f"killed by {killer}" if killer else f"SURVIVED; {len(reached[own])} tests reach it"
        lines.append(f"{own.file}:{own.line} {own.function}\n    {own.change}\n    {fate}\n")
    died = sum(map(bool, killed_by.values()))
    gone = f"; {n_gone} statements have changed" if n_gone else ""
    share = died / max(len(killed_by), 1)
    return "".join(lines) + f"{died} of {len(killed_by)} mutants died ({share:.0%}){gone}\n"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tree", type=Path, default=ROOT, help="the checkout to try")
    parser.add_argument("--lines", type=Path, help="try the mutants of this .json of --output")
    parser.add_argument("--number", type=int, default=60, help="lines to draw (60)")
    parser.add_argument("--seed", type=int, default=0, help="of the draw (0)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    parser.add_argument(
        "--seconds", type=float, default=120, help="CPU time of a set of tests (120)"
    )
    parser.add_argument("--output", type=Path, help="write this table, and the mutants as .json")
    options = parser.parse_args(arguments)
    n_gone, sets = 0, {}
    if options.lines:
        known = json.loads(options.lines.read_text())
        found = found_again([Mutant(*own["mutant"]) for own in known], all_mutants(options.tree))
        n_gone, mutants = len(known) - len(found), list(found)
        # The test that killed a mutant elsewhere is tried first.
        killers = {own: known[place]["killer"] for own, place in found.items()}
        sets = {own: [("not long", [test])] for own, test in killers.items() if "::" in test}
    else:
        mutants = drawn(all_mutants(options.tree), options.number, options.seed)
    with (
        tempfile.TemporaryDirectory() as folder,
        ThreadPoolExecutor(options.jobs) as pool,
    ):
        trials = Trials(options.tree, Path(folder), options.jobs)

        def tried(own: Mutant) -> str:
            killer = trials.killer(own, sets[own], options.seconds)
            sys.stderr.write(f"{own.file}:{own.line} {killer or 'alive'}\n")
            return killer

        killed_by = dict(zip(sets, pool.map(tried, sets), strict=True))
        rest = [own for own in mutants if not killed_by.get(own)]
        reached = trials.tests_by_mutant(rest)
        sets |= {own: sets_of(own, reached[own], options.tree) for own in rest}
        killed_by |= zip(rest, pool.map(tried, rest), strict=True)
    table = table_of({own: killed_by[own] for own in mutants}, reached, n_gone)
    sys.stdout.write(table)
    if options.output:
        options.output.write_text(table)
        results = [{"mutant": own, "killer": killed_by[own]} for own in mutants]
        options.output.with_suffix(".json").write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
