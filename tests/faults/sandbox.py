"""Running a function in a forked process, and what became of it."""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SECONDS = 120
FORBIDDEN = {  # events of the interpreter that a file must never cause
    "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.system", "pickle.find_class",
    "shutil.rmtree", "socket.bind", "socket.connect", "subprocess.Popen",
}  # fmt: skip


@dataclass
class Outcome:
    """What a process left: an answer, and how much memory it took beyond what it began with."""

    answer: Any = None
    growth: int = 0  # bytes
    events: list[str] = field(default_factory=list)
    out: str = ""
    err: str = ""
    crash: str = ""  # the signal that ended it, or that it did not answer


class Meter:
    """Peak memory of this process since it was forked, in bytes."""

    def __init__(self) -> None:
        self.start = self.peak()

    @staticmethod
    def peak() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    def growth(self) -> int:
        return self.peak() - self.start


def in_fork(function: Callable[[Meter], tuple[Any, int]]) -> Outcome:
    """Answer and memory of `function`, which no crash and no `sys.exit` of its own gets past."""
    folder = Path(tempfile.mkdtemp())
    files = {name: folder / name for name in ("answer", "out", "err")}
    gc.freeze()  # which a collection in the child then leaves alone
    child = os.fork()
    if not child:
        _answer(function, files)
    _, status = os.waitpid(child, 0)
    outcome = Outcome()
    texts = {n: f.read_text(errors="replace") if f.exists() else "" for n, f in files.items()}
    outcome.out, outcome.err = texts["out"], texts["err"]
    if os.WIFSIGNALED(status):
        outcome.crash = signal.Signals(os.WTERMSIG(status)).name
    elif not texts["answer"]:
        outcome.crash = f"no answer, exit code {os.waitstatus_to_exitcode(status)}"
    else:
        outcome.answer, outcome.growth, outcome.events = json.loads(texts["answer"])
    for file in files.values():
        file.unlink(missing_ok=True)
    folder.rmdir()
    return outcome


def _answer(function: Callable[[Meter], tuple[Any, int]], files: dict[str, Path]) -> None:
    code = 1
    try:
        for number, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(files[name], os.O_WRONLY | os.O_CREAT), number)
        sys.stdout, sys.stderr = (open(n, "w", closefd=False) for n in (1, 2))  # noqa: SIM115
        signal.alarm(SECONDS)
        events: list[str] = []
        sys.addaudithook(lambda event, _: events.append(event) if event in FORBIDDEN else None)
        answer, growth = function(Meter())
        files["answer"].write_text(json.dumps([answer, growth, events]))
        sys.stdout.flush()
        sys.stderr.flush()
        code = 0
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)
