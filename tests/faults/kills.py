"""Commands on files, killed at random moments: python -m faults.kills [NUMBER] [SEED]

After `kill -9` of fit, fit --resume, save, transform or search, what was whole is still whole, the
command run again gives the same bits (or says in one line what to do), and nothing else is touched.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
from commands import without_reads

import mvcca
from mvcca.cli import main as command
from mvcca.statistics.passes import _checkpoint

N = 1_000
FIT = ["fit", "--view", "image=image.npy", "--view", "text=text.npy", "--block-rows", "100",
       "-o", "model.mvcca"]  # fmt: skip
FITS = {
    "cca": [*FIT, "--method", "cca"],
    "mvmlcca": [*FIT, "--method", "mvmlcca", "--labels", "y.npy"],
}
MINE = ("passport_model.mvcca", ".model.mvcca.part", "pass0.mvcca", "notes.part", ".tmpAbCdEf")


def prepare() -> None:
    """Views and labels, and files of a user whose names are nearly ours."""
    rng = np.random.default_rng(0)
    image = rng.standard_normal((N, 60))
    np.save("image.npy", image)
    np.save("text.npy", image[:, :40] + rng.standard_normal((N, 40)))
    np.save("y.npy", np.arange(N) % 7)
    for name in MINE:
        Path(name).write_text(f"mine: {name}")


def quietly(arguments: list[str]) -> tuple[int, str]:
    """Exit code and standard error of a command, in this process."""
    err = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(err):
        code = command(arguments)
    return code, err.getvalue()


def killed(action: Callable[[], object], after: float) -> bool:
    """Run something in a forked process that is killed after some seconds; whether it was."""
    child = os.fork()
    if not child:
        try:
            with contextlib.suppress(BaseException):
                action()
        finally:
            os._exit(0)
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def snapshot() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file()}


class Trial:
    """A folder with what undisturbed commands make, to hold against what killed ones leave."""

    def __init__(self) -> None:
        prepare()
        self.inputs = snapshot()
        self.whole: dict[str, bytes] = {}
        self.seconds: dict[str, float] = {}
        self.commands: dict[str, tuple[list[str], str]] = {}
        for name, arguments in FITS.items():
            self._time(f"fit {name}", arguments, "model.mvcca")
            Path("model.mvcca").rename(f"{name}.mvcca")
        self._time(
            "transform",
            ["transform", "cca.mvcca", "--view", "image=image.npy", "-o", "scores.npy"],
            "scores.npy",
        )
        self._time(
            "search",
            ["search", "cca.mvcca", "--query", "text=text.npy", "--gallery", "image=image.npy",
             "-k", "3", "-o", "hits.npz"],
            "hits.npz",
        )  # fmt: skip
        for output in ("scores.npy", "hits.npz"):
            Path(output).unlink()
        self.model = mvcca.load("mvmlcca.mvcca")
        start = time.perf_counter()
        mvcca.save(self.model, "saved.mvcca")
        self.seconds["save"] = time.perf_counter() - start
        self.whole["save"] = Path("saved.mvcca").read_bytes()
        Path("saved.mvcca").unlink()
        self.before = snapshot()

    def _time(self, name: str, arguments: list[str], output: str) -> None:
        for _ in range(2):  # the first time imports and compiles
            start = time.perf_counter()
            code, err = quietly(arguments)
            assert code == 0, err
            self.seconds[name] = time.perf_counter() - start
        self.whole[name] = Path(output).read_bytes()
        self.commands[name] = arguments, output

    def once(self, name: str, rng: np.random.Generator) -> tuple[list[str], str]:
        """Kill one command, perhaps its resumed self too, then run it to its end."""
        after = float(rng.uniform(0, 1.1 * self.seconds[name]))
        if name == "save":
            was = killed(lambda: mvcca.save(self.model, "saved.mvcca"), after)
            faults = self._after_kill("save", "saved.mvcca")
            mvcca.save(self.model, "saved.mvcca")
            return faults + self._finished(name, "saved.mvcca"), f"{name} {was}"
        arguments, output = self.commands[name]
        if old := rng.integers(2):  # what was there before must stay
            Path(output).write_bytes(b"old")
        was = killed(lambda: quietly(arguments), after)
        faults = self._after_kill(name, output, b"old" if old else None)
        if name.startswith("fit"):
            while rng.integers(2):
                again = float(rng.uniform(0, 1.1 * self.seconds[name]))
                killed(lambda: quietly([*arguments, "--resume"]), again)
                faults += self._after_kill(name, output, b"old" if old else None)
            arguments = [*arguments, "--resume"] if rng.integers(4) else arguments
        code, err = quietly(arguments)
        if code:
            faults.append(f"{arguments[-1]}: exit code {code}: {err}")
        expected = ("mvcca: nothing to resume in", "mvcca: warning: ")
        lines = without_reads(err).splitlines()
        lines = [line for line in lines if not line.startswith(expected)]
        if lines:
            faults.append(f"said {lines}")
        return faults + self._finished(name, output), f"{name} {was}"

    def _after_kill(self, name: str, output: str, old: bytes | None = None) -> list[str]:
        """The output is whole or what it was, and all else is there."""
        now = Path(output).read_bytes() if Path(output).exists() else None
        faults = [] if now in (old, self.whole[name]) else [f"{output} is neither old nor whole"]
        after = snapshot()
        faults += [
            f"{file} changed" for file in self.before if after.get(file) != self.before[file]
        ]
        return faults

    def _finished(self, name: str, output: str) -> list[str]:
        """The same bits, and nothing left over."""
        faults = []
        if Path(output).read_bytes() != self.whole[name]:
            faults.append(f"{output} has other bits")
        Path(output).unlink()
        after = snapshot()
        for file in after.keys() | self.before.keys():
            if after.get(file) != self.before.get(file):
                faults.append(f"{file} is left over or changed")
                if file not in self.before:
                    Path(file).unlink()
        return faults


def run(n: int, seed: int) -> tuple[list[str], Counter[str]]:
    """Faults found, and how many processes of each kind were killed in time."""
    faults, counts = [], Counter()
    here, seconds = Path.cwd(), _checkpoint._SECONDS
    _checkpoint._SECONDS = 0  # a checkpoint after every block, so that it is often cut short
    try:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            trial = Trial()
            names = list(trial.seconds)
            for number in range(n):
                rng = np.random.default_rng([seed, number])
                name = names[number % len(names)]
                found, what = trial.once(name, rng)
                counts[what.replace("True", "killed").replace("False", "done before")] += 1
                faults += [f"{number} (seed {seed}), {name}: {fault}" for fault in found]
            os.chdir(here)
    finally:
        os.chdir(here)
        _checkpoint._SECONDS = seconds
    return faults, counts


if __name__ == "__main__":
    n, seed = [*map(int, sys.argv[1:]), *(100, 0)[len(sys.argv) - 1 :]]
    faults, counts = run(n, seed)
    print(*faults, dict(sorted(counts.items())), f"{len(faults)} faults", sep="\n")
    sys.exit(bool(faults))
