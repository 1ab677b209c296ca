"""Run the code of a page of the documentation as its reader would.

    python -P tests/run_page.py PAGE [--long]
    python -P tests/run_page.py --serve

In the order of the page, and in one namespace: examples with prompts must print what the page
shows, blocks of Python must run, and lines ``$ mvcca ...`` of console blocks must end without an
error. A block of text below Python or a command is what that prints, where ``...`` stands for
anything.

Commands whose output is not compared run on files of random numbers. So `QUICK` makes the expensive
ones cheap, by a word of the command, and with ``--long`` they run as the page shows them.

A comment above a block makes an exception and gives the reason:

- ``not run: REASON``: for example a download, or a cluster;
- ``long: REASON``: run with ``--long`` only;
- ``other output: REASON``: the output that is shown is not compared.

Failures are printed, then what is left out, as ``left out, line N: REASON``, and what lacks an
optional library, as ``missing, line N: ...``. The exit status is 1 after a failure.

With ``--serve``, every line of standard input is a page, a tab and the folder to run it in. Each
page has a process of its own, which is forked once large libraries are imported, and prints into
the file ``printed`` of its folder. A line of standard output is its exit status.
"""

from __future__ import annotations

import doctest
import gc
import io
import os
import re
import shlex
import sys
import tomllib
import traceback
import warnings
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from typing import Any

BLOCK_OF = {
    ".rst": re.compile(
        r"^(?P<indent> *)\.\. code-block:: (?P<kind>python|console|text)\n"
        r"(?:(?P=indent)   :.*\n)*\n(?P<source>(?:(?P=indent)   .*\n|\n)+)",
        re.MULTILINE,
    ),
    ".md": re.compile(
        r"^(?P<indent>)```(?P<kind>python|console|text)\n(?P<source>.*?)^```$",
        re.MULTILINE | re.DOTALL,
    ),
}
EXCEPTION = re.compile(
    r"(?:<!--|\.\.) (?P<kind>not run|long|other output): (?P<reason>[^\n]+?)(?: -->)?\n\s*\Z"
)

QUICK = {
    "compare": ["--no-tune", "--cv", "2"],
    "test": ["--permutations", "20"],
    "--epochs": ["--epochs", "2"],
}

LIBRARIES = ("dask.array", "matplotlib.pyplot", "numba", "pandas", "sklearn.pipeline")
LIBRARIES += ("torch._dynamo",)  # which optimizers import


@dataclass
class Block:
    """A piece of code, and the text that the page shows below it."""

    line: int
    kind: str  # "prompts", "python" or "console"
    source: Any
    expected: str | None = None
    exception: str = ""
    reason: str = ""
    is_quick: bool = True


@dataclass
class Outcome:
    """What a page did: failures in words, and what did not run."""

    failures: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def blocks_of(page: Path) -> list[Block]:
    """All code of a page, in order."""
    text = page.read_text(encoding="utf-8")
    blocks, end = [], -1
    for found in BLOCK_OF[page.suffix].finditer(text):
        source = dedent(found["source"]).strip("\n") + "\n"
        if found["kind"] == "text":
            if blocks and not text[end : found.start()].strip():
                blocks[-1].expected = source
            continue
        line = text.count("\n", 0, found.start("source")) + 1
        exception = EXCEPTION.search(text[: found.start()])
        kind, reason = (exception["kind"], exception["reason"]) if exception else ("", "")
        blocks.append(Block(line, found["kind"], source, exception=kind, reason=reason))
        end = found.end()
    fenced = [(b.line, b.line + b.source.count("\n")) for b in blocks]
    for example in doctest.DocTestParser().get_examples(text, str(page)):
        if not any(start <= example.lineno + 1 < stop for start, stop in fenced):
            blocks.append(Block(example.lineno + 1, "prompts", example))
    return sorted(blocks, key=lambda block: block.line)


def commands_of(source: str) -> Iterator[tuple[list[str], str]]:
    """Arguments of every ``mvcca`` command of a console block, and the lines shown below it."""
    for part in re.split(r"^\$ ", source.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
        line, _, shown = part.partition("\n")
        name, *arguments = shlex.split(line, comments=True)
        if ">" in arguments:  # what is printed goes to a file of the reader
            arguments = arguments[: arguments.index(">")]
        if name == "mvcca":
            yield arguments, shown


class Prompts(doctest.DocTestRunner):
    """Examples with prompts, which stop at a missing library."""

    def report_unexpected_exception(self, out: Any, test: Any, example: Any, exc_info: Any) -> None:
        if isinstance(exc_info[1], ImportError):
            raise exc_info[1]
        super().report_unexpected_exception(out, test, example, exc_info)


def difference(expected: str, printed: str) -> str:
    """What differs, in words; empty if nothing does."""
    if doctest.OutputChecker().check_output(expected, printed, doctest.ELLIPSIS):
        return ""
    return f"The page shows:\n{expected}\nbut the code prints:\n{printed}"


def run_prompts(block: Block, names: dict[str, Any], page: Path) -> str:
    test = doctest.DocTest([block.source], {}, str(page), str(page), 0, None)
    test.globs = names  # the constructor copies its own
    printed = io.StringIO()
    Prompts(verbose=False).run(test, out=printed.write, clear_globs=False)
    return printed.getvalue()


def run_python(block: Block, names: dict[str, Any], page: Path) -> str:
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile("\n" * (block.line - 1) + block.source, str(page), "exec"), names)
    return difference(block.expected, printed.getvalue()) if block.expected else ""


def run_console(block: Block, *_: Any) -> str:
    from mvcca.cli import main

    for arguments, shown in commands_of(block.source):
        expected = shown if shown.strip() else block.expected
        is_compared = bool(expected) and block.exception != "other output"
        if block.is_quick and not is_compared:
            arguments = [*arguments, *(own for word in arguments for own in QUICK.get(word, ()))]
        printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")  # hits are written as bytes
        errors = io.StringIO()
        with redirect_stdout(printed), redirect_stderr(errors):
            try:
                status = main(arguments)
            except SystemExit as end:
                status = end.code
        if status:
            return f"mvcca {shlex.join(arguments)}\n{errors.getvalue()}"
        if expected and is_compared:
            printed.flush()
            found = difference(expected, printed.buffer.getvalue().decode())
            if found:
                return f"mvcca {shlex.join(arguments)}\n{found}"
    return ""


def remedy(error: ImportError) -> str:
    """What to install."""
    if "pip install" in str(error) or error.name is None:
        return str(error)
    project = Path(__file__).parents[1] / "pyproject.toml"
    extras = tomllib.loads(project.read_text("utf-8"))["project"]["optional-dependencies"]
    for extra, requirements in extras.items():
        if any(re.split(r"[^\w-]", one)[0].replace("-", "_") == error.name for one in requirements):
            return f"needs {error.name}: pip install 'mvcca[{extra}]'"
    return f"needs {error.name}: pip install {error.name}"


RUN = {"prompts": run_prompts, "python": run_python, "console": run_console}


def run_page(page: Path, *, long: bool = False) -> Outcome:
    """Run all code of a page, and continue after a failure."""
    outcome = Outcome()
    names: dict[str, Any] = {"__name__": "__page__"}
    for block in blocks_of(page):
        place = f"line {block.line}"
        if block.exception == "not run" or (block.exception == "long" and not long):
            outcome.left_out.append(f"{place}: {block.reason}")
            continue
        block.is_quick = not long
        try:
            failure = RUN[block.kind](block, names, page)
        except ImportError as error:
            outcome.missing.append(f"{place}: {remedy(error)}")
            if block.kind == "prompts":  # what follows builds on it
                break
        except Exception:
            outcome.failures.append(f"{place}:\n{traceback.format_exc()}")
        else:
            if failure:
                outcome.failures.append(f"{place}:\n{failure}")
    return outcome


def serve() -> int:
    """Fork a process for each page; in that process, run it and return its exit status."""
    for name in LIBRARIES:
        with suppress(ImportError):
            import_module(name)
    gc.freeze()  # a fork then leaves these alone until its end, which saves a second
    for line in sys.stdin:
        page, folder = line.rstrip("\n").split("\t")
        if not os.fork():
            os.chdir(folder)
            printed = os.open("printed", os.O_CREAT | os.O_WRONLY)
            os.dup2(printed, 1)
            os.dup2(printed, 2)
            return report(Path(page))
        _, status = os.wait()
        print(os.waitstatus_to_exitcode(status), flush=True)
    return 0


def report(page: Path, *, long: bool = False) -> int:
    """Print what did not run or was wrong, and return the exit status."""
    outcome = run_page(page, long=long)
    for failure in outcome.failures:
        print(failure)
    for line in outcome.left_out:
        print(f"left out, {line}")
    for line in outcome.missing:
        print(f"missing, {line}")
    return bool(outcome.failures)


def main() -> int:
    warnings.simplefilter("ignore")  # of other libraries; ours, and those of the page, are errors
    warnings.filterwarnings("error", module=r"__page__|mvcca\b")
    if sys.argv[1] == "--serve":
        return serve()
    page, *options = sys.argv[1:]
    return report(Path(page), long="--long" in options)


if __name__ == "__main__":
    sys.exit(main())
