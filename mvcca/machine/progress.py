"""Progress bars: the share that is done and the time left.

Only the outermost loop shows one: the loops within are its steps. Every step of every loop is a
tick at which a deadline is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from mvcca.machine.config import get_config
from mvcca.machine.deadline import tick

__all__ = ["counting", "passing_bars", "steps"]

_DELAY = 1.0  # seconds that a loop takes before a passing bar appears
_is_shown = False  # a bar, of this process
_is_passing = False


@contextmanager
def passing_bars() -> Iterator[None]:
    """Bars of the body appear for loops that take longer than a moment, and disappear at the end.

    A command has many loops: the lines of all of them would hide its results.
    """
    global _is_passing
    before, _is_passing = _is_passing, True
    try:
        yield
    finally:
        _is_passing = before


@contextmanager
def counting(
    total: int | None, title: str, unit: str = " steps", *, done: int = 0, scale: bool = False
) -> Iterator[Callable[..., None]]:
    """A function ``count(n=1, note="")`` of what is done, on a progress bar if one is configured.

    Parameters
    ----------
    total : int or None
        What there is to do; None if that is not known.
    title : str
        What is done.
    unit : str, default=" steps"
        What is counted.
    done : int, default=0
        What was done before.
    scale : bool, default=False
        Whether large numbers are written as 1.5k.
    """
    global _is_shown
    tick()
    if _is_shown or not get_config().progress:
        yield partial(_count, None)
        return
    from tqdm.auto import tqdm

    _is_shown = True
    try:
        with tqdm(
            total=total,
            desc=title,
            unit=unit,
            initial=done,
            unit_scale=scale,
            dynamic_ncols=True,
            leave=not _is_passing,
            delay=_DELAY if _is_passing else 0,
        ) as bar:
            yield partial(_count, bar)
    finally:
        _is_shown = False


def _count(bar: Any, n: int = 1, note: str = "") -> None:
    """Add to what is done, and show a note beside it, if there is a bar."""
    tick()
    if bar is not None:
        if note:
            bar.set_postfix_str(note, refresh=False)
        bar.update(n)


def steps(most: int, title: str, *, is_exact: bool = True) -> Generator[int]:
    """Count steps, at most so many, with a progress bar if one is configured.

    If the number is not exact, since a loop ends when it has converged, no time left is shown.
    """
    with counting(most if is_exact else None, title) as count:
        for number in range(most):
            yield number
            count()
