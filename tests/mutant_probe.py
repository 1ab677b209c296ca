"""What a run of tests under `mutants.py` loads: which tests reach a line, how long they take.

It imports nothing of the package, because lines with a probe call it in every process of a test.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

FOLDER, SECONDS = "MVCCA_MUTANTS_FOLDER", "MVCCA_MUTANTS_SECONDS"
KILLER = "killed by "
VARIANTS = 3  # of a test with many parameters, in the run that finds what reaches a line

_reached: set[tuple[int, str]] = set()


def hit(number: int, value: Any) -> Any:
    """The value; notes that a test reaches it."""
    found = (number, os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0])
    if found not in _reached:
        _reached.add(found)
        _append("hits", found)
    return value


def _append(name: str, values: Iterable[Any]) -> None:
    with open(Path(os.environ[FOLDER], name), "a") as file:
        file.write(json.dumps(values) + "\n")


@pytest.hookimpl(trylast=True)  # of those that a marker leaves
def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Keep some variants of each test, the same ones in every process."""
    if SECONDS not in os.environ:
        variants = defaultdict(list)
        for item in items:
            digest = hashlib.sha256(item.nodeid.encode()).hexdigest()
            variants[item.nodeid.partition("[")[0]].append((digest, item.nodeid))
        kept = {name for own in variants.values() for _, name in sorted(own)[:VARIANTS]}
        items[:] = [item for item in items if item.nodeid in kept]


def pytest_runtest_logreport(report: Any) -> None:
    is_worker = "PYTEST_XDIST_WORKER" in os.environ  # its reports come again, to the first process
    if SECONDS not in os.environ and report.when == "call" and report.passed and not is_worker:
        _append("durations", (report.nodeid, report.duration))


def pytest_runtest_setup(item: Any) -> None:
    """Stop when the time is over; the system ends a test that computes for ever."""
    if SECONDS in os.environ:
        spent = time.process_time()
        if spent > float(os.environ[SECONDS]):
            pytest.exit("no time left", returncode=0)
        most = int(spent) + (600 if item.get_closest_marker("slow") else 100)
        resource.setrlimit(resource.RLIMIT_CPU, (most, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for outcome in ("failed", "error"):
        for report in terminalreporter.stats.get(outcome, []):
            terminalreporter.write_line(KILLER + report.nodeid)
