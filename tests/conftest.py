"""What all tests share: how a test says which data file it needs, and that Ctrl-C interrupts."""

from __future__ import annotations

import gc
import os
import signal

import pytest
from hypothesis import settings

from mvcca.machine.config import set_config

# No test fails because the machine is busy, and two runs try the same examples.
settings.register_profile("patient", deadline=None, derandomize=True)
settings.load_profile("patient")


def pytest_configure(config):
    config.addinivalue_line(
        "markers",
        "needs_data(filename): reads a file of the directory MVCCA_DATA, and is slow; skipped by "
        "name where it is absent",
    )
    if home := os.environ.get("MVCCA_DATA"):  # tests change the working directory
        os.environ["MVCCA_DATA"] = os.path.abspath(home)
    set_config(device="cpu")  # networks train there even if there is a GPU, and repeat bit for bit
    # Shells start background jobs with SIGINT ignored, and processes inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Keep the garbage collector from the items: looking at all, again and again, takes seconds."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by marker
def pytest_collection_modifyitems(items):
    for item in items:
        on_cluster = "cluster" in getattr(item, "fixturenames", ())  # of processes
        if on_cluster or item.get_closest_marker("needs_data") or item.get_closest_marker("long"):
            item.add_marker(pytest.mark.slow)


def pytest_runtest_setup(item):
    for marker in item.iter_markers("needs_data"):
        from benchmarks.real import data_home

        (filename,) = marker.args
        if not (data_home() / filename).exists():
            pytest.skip(
                f"{item.name} needs {filename}, which is not in {data_home()}: set MVCCA_DATA "
                "to the folder that holds it"
            )
