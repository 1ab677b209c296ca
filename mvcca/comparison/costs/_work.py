"""Operations by kind, and the seconds that they take on this machine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from time import perf_counter, thread_time
from typing import Any

import numpy as np
from scipy import linalg
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

# The time of other processes does not count, where a clock that leaves it out is fine enough.
_clock = perf_counter if sys.platform == "win32" else thread_time
_ROUNDS = 10  # of measuring the machine
# Machines up to five times as slow as one core of a server (AMD EPYC with AVX-512) are not measured
# for little work.
_TYPICAL = (2e-11, 3e-10, 9e-10, 1e-8, 2.4e-10, 1.7e-6)
_SLOW = 5
_NEGLIGIBLE = 1.0  # seconds of all works together for which the machine is not measured


@dataclass(frozen=True)
class Rates:
    """Seconds per operation of each kind of `Work`, on one thread."""

    products: float
    factors: float
    passes: float
    sorts: float
    sparse: float
    calls: float


_KINDS = [kind.name for kind in fields(Rates)]


@dataclass(frozen=True)
class Work:
    """Operations by kind, and peak memory beside the data.

    Steps add: operations are summed, and memory is that of the largest step, since each frees its
    own. ``work * n`` is the same step n times.

    Attributes
    ----------
    products : float
        Floating-point operations of float64 matrix products and Cholesky factors; those of float32
        count half.
    factors : float
        Σ n³ of complete eigendecompositions of n x n matrices.
    passes : float
        Numbers that elementwise functions read.
    sorts : float
        Numbers among which the smallest are searched.
    sparse : float
        Multiply-adds of a sparse matrix with a dense one.
    calls : float
        Calls of NumPy functions on small arrays.
    n_bytes : float
        Peak memory in bytes.
    """

    products: float = 0.0
    factors: float = 0.0
    passes: float = 0.0
    sorts: float = 0.0
    sparse: float = 0.0
    calls: float = 0.0
    n_bytes: float = 0.0

    def __add__(self, other: Work) -> Work:
        sums = {kind: getattr(self, kind) + getattr(other, kind) for kind in _KINDS}
        return Work(**sums, n_bytes=max(self.n_bytes, other.n_bytes))

    def __mul__(self, times: float) -> Work:
        products = {kind: times * getattr(self, kind) for kind in _KINDS}
        return Work(**products, n_bytes=self.n_bytes)

    __rmul__ = __mul__

    def seconds(self, rates: Rates) -> float:
        """CPU seconds on a machine with these rates."""
        return sum(getattr(self, kind) * getattr(rates, kind) for kind in _KINDS)


@dataclass(frozen=True)
class Cost:
    """CPU seconds on one thread, and peak memory beside the data.

    Costs of consecutive steps add: seconds are summed, and memory is that of the largest step.
    """

    seconds: float
    n_bytes: float

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.seconds + other.seconds, max(self.n_bytes, other.n_bytes))

    def __mul__(self, times: float) -> Cost:
        return Cost(times * self.seconds, self.n_bytes)

    __rmul__ = __mul__


def costs_of(works: Mapping[str, Work]) -> dict[str, Cost]:
    """Costs of works by name; the machine is not measured where all of them are surely small."""
    typical = Rates(*_TYPICAL)
    most = _SLOW * sum(work.seconds(typical) for work in works.values())
    rates = typical if most < _NEGLIGIBLE else measured_rates()
    return {name: Cost(work.seconds(rates), work.n_bytes) for name, work in works.items()}


@cache
def measured_rates() -> Rates:
    """Rates of this machine, measured once per process."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((300, 300))
    S, V, few = A @ A.T, np.ascontiguousarray(A[:, :50]), np.ones(10)
    numbers = rng.standard_normal((200, 1000))
    starts, places = np.arange(0, 40_001, 20), rng.integers(0, 300, 40_000)
    X = csr_array((np.ones(40_000), places, starts), shape=(2000, 300))
    samples: dict[str, tuple[float, Callable[[], Any]]] = {
        "products": (2 * 300**3, lambda: A @ A),
        "factors": (300**3, lambda: linalg.eigh(S)),
        "passes": (numbers.size, lambda: np.exp(numbers)),
        "sorts": (numbers.size, lambda: np.argpartition(numbers, 50)),
        "sparse": (40_000 * 50, lambda: X @ V),
        "calls": (500, lambda: [np.einsum("i,i->", few, few) for _ in range(500)]),
    }
    # Other processes interrupt some of the rounds, so that the fastest one counts.
    seconds: dict[str, list[float]] = {kind: [] for kind in samples}
    with threadpool_limits(1):
        for _ in range(_ROUNDS):
            for kind, (_, sample) in samples.items():
                start = _clock()
                sample()
                seconds[kind].append(_clock() - start)
    return Rates(**{kind: min(seconds[kind]) / count for kind, (count, _) in samples.items()})
