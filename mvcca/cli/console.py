"""Messages on standard error: notes, warnings and progress."""

from __future__ import annotations

import os
import re
import sys
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from shutil import get_terminal_size
from textwrap import wrap
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any, Self

from mvcca.machine.printable import in_one_line, printable, printable_json


def is_colored() -> bool:
    """Whether standard output is a terminal that shows bold text, and NO_COLOR is not set."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return sys.stdout.isatty()


def show(options: Namespace, text: str, facts: Any) -> None:
    """Print a result: as text, or with ``--json`` as one JSON value.

    A mapping of facts also has what files were read as.
    """
    if isinstance(facts, dict) and (read := getattr(options, "read", None)):
        facts = {**facts, "read": read}
    print(
        printable_json(facts) if options.json else printable(fitted_to_terminal(text)), flush=True
    )


def fitted_to_terminal(text: str) -> str:
    """Text whose long lines are wrapped at the width of the terminal; as it is in a pipe.

    Lines of columns, which are separated by two spaces, stay; only the last one of two is wrapped.
    """
    if not sys.stdout.isatty():
        return text
    width = get_terminal_size().columns
    lines = []
    for line in text.splitlines():
        first, *others = re.split(r"(?<=\S)(  +)(?=\S)", line)
        if len(line) <= width or len(others) > 2:
            lines.append(line)
        else:
            indent = " " * len(first + others[0]) if others else ""
            lines += wrap(line, width, subsequent_indent=indent, break_on_hyphens=False)
    return "\n".join(lines)


_is_quiet = False


def set_quiet(is_quiet: bool) -> None:
    """Choose whether notes, warnings and progress are left out."""
    global _is_quiet
    _is_quiet = is_quiet


def note(message: str) -> None:
    """Print a note on one line."""
    if _is_quiet:
        return
    print(f"mvcca: {printable(' '.join(message.split()))}", file=sys.stderr, flush=True)


@contextmanager
def warnings_as_notes(words: Callable[[str], str]) -> Iterator[None]:
    """Print each distinct warning once, in the words of the command line, without its location."""

    def show(message: Any, *_: Any, **__: Any) -> None:
        note(f"warning: {words(str(message))}")

    with warnings.catch_warnings():
        warnings.simplefilter("once", UserWarning)
        warnings.showwarning = show
        yield


class Progress:
    """Progress messages with the time since the first, shown only if standard error is a terminal.

    The line is drawn again every second, so that users see that a long step goes on.
    """

    def __init__(self) -> None:
        self._is_shown = sys.stderr.isatty() and not _is_quiet
        self._message, self._start = "", monotonic()
        self._lock, self._ended = Lock(), Event()

    def __enter__(self) -> Self:
        if self._is_shown:
            Thread(target=self._draw_again, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.clear()

    def update(self, message: str) -> None:
        """Replace the progress line."""
        with self._lock:
            self._message = message
            self._draw()

    def log(self, message: str) -> None:
        """Replace the progress line by a permanent line."""
        self.clear()
        if self._is_shown:
            print(in_one_line(message), file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Erase the progress line."""
        with self._lock:
            self._message = ""
            if self._is_shown:
                print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def _draw_again(self) -> None:
        while not self._ended.wait(1):
            with self._lock:
                if self._message and not self._ended.is_set():
                    self._draw()

    def _draw(self) -> None:
        if self._is_shown:
            seconds = round(monotonic() - self._start)
            end = f" ... {seconds} s" if seconds else " ..."
            room = max(get_terminal_size().columns - len(end) - 1, 0)
            line = f"{in_one_line(self._message)[:room]}{end}"
            print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
