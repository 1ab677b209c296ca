"""Time limits: a deadline that long work checks at its progress ticks.

Nothing here predicts seconds. Work ends at the first tick after the deadline, so that it is missed
by one tick at most; compiled code without ticks runs to its end.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from math import inf, isnan
from numbers import Real
from typing import Self

_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}


class OutOfTime(BaseException):
    """The deadline has passed. Like an interrupt, it is no error that a search may skip."""


@dataclass(frozen=True)
class Deadline:
    """A time after which no further step begins; infinite without a limit.

    Attributes
    ----------
    ends : float
        Seconds on `clock`.
    clock : callable, default=time.time
        All processes share the default.
    """

    ends: float = inf
    clock: Callable[[], float] = time.time

    @classmethod
    def after(cls, budget: str | float | None) -> Self:
        """The deadline of work that begins now; None sets no limit."""
        return cls() if budget is None else cls(time.time() + seconds_of(budget))

    def left(self) -> float:
        """Seconds left."""
        return self.ends - self.clock()

    def allows(self, seconds: float) -> bool:
        """Whether work of so many seconds would end in time."""
        return seconds <= self.left()

    def check(self) -> None:
        """Raise OutOfTime if no time is left."""
        if self.left() < 0:
            raise OutOfTime

    @contextmanager
    def enforced(self) -> Iterator[None]:
        """Check this deadline at every tick of the body, in this thread."""
        token = _enforced.set(self)
        try:
            yield
        finally:
            _enforced.reset(token)


NO_DEADLINE = Deadline()
_enforced: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


def tick() -> None:
    """Raise OutOfTime if the work that runs here has a deadline, and it has passed."""
    deadline = _enforced.get()
    if deadline is not None:
        deadline.check()


def seconds_of(budget: str | float) -> float:
    """Return seconds from a number of seconds or a text such as "30s", "10min" or "2h".

    Raises
    ------
    ValueError
        If the text has another form, or the time is not positive.
    TypeError
        If `budget` is neither a number nor a text.
    """
    expected = 'Expected budget to be seconds or a time such as "30s", "10min" or "2h"'
    if isinstance(budget, str):
        found = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*(s|min|h)\s*", budget)
        if found is None:
            raise ValueError(f"{expected}, got {budget!r}.")
        seconds = float(found[1]) * _UNITS[found[2]]
    elif isinstance(budget, Real) and not isinstance(budget, bool):
        seconds = float(budget)
    else:
        raise TypeError(f"{expected}, got {budget!r}.")
    if isnan(seconds) or seconds <= 0:
        raise ValueError(f"{expected}, more than 0, got {budget!r}.")
    return seconds


def in_words(seconds: float) -> str:
    """Time in seconds, minutes or hours."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
