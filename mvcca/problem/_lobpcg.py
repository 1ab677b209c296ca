"""The leading eigenvectors of a `Pencil` by products only: preconditioned block LOBPCG.

Each step adds to the current maps W and the last directions P a block H that solves
(σ B - A) H ≈ R for the residuals R = A W - ρ B W by a few steps of conjugate gradients, and finds
the best maps in the span of [W, P, H] (Knyazev, "Toward the Optimal Preconditioned Eigensolver",
SIAM Journal on Scientific Computing 2001). What the matrices make of W and P travels with them, so
that the Rayleigh-Ritz step takes no product with rows: scores if there are fewer of them than
features, or else A W and B W.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from mvcca.machine.progress import counting
from mvcca.problem._pencil import Mix, Pencil, conjugate_gradients

_LARGEST_ERROR = 1e-6  # of ρ, bounded by the square of the residual over the gap
_RESIDUALS = (3e-5, 3e-4)  # least and largest residual that may be asked for
_LARGEST_CHANGE = 1e-7  # of any ρ in each of the last steps
_QUIET_STEPS = 2
_MOST_STEPS = 100
_MOST_INNER_STEPS, _INNER_TOLERANCE = 10, 0.1  # of conjugate gradients
_SETTLED = 1 / 3  # of the largest residual, below which a map gets no new direction
_INDEPENDENT = 1e-10  # least eigenvalue of the Gram matrix of a basis with unit columns
_BLOCK_NUMBERS = 2**18  # of rows that are rotated at a time


@dataclass(frozen=True, eq=False)
class Leading:
    """Leading solutions of A w = ρ B w.

    Attributes
    ----------
    weights : ndarray, shape (D, k)
        With WᵀBW = I.
    values : ndarray, shape (k,)
        ρ, decreasing.
    residual : float
        √(Σ_p ‖R_p‖² / r_p) of the worst component, a bound of ‖R‖ in the norm of B⁻¹.
    error : float
        Bound of the errors of ρ: the residual, or its square over the gap to the next value.
    n_steps : int
        Steps taken.
    has_converged : bool
        Whether residual and changes are below their limits.
    """

    weights: np.ndarray
    values: np.ndarray
    residual: float
    error: float
    n_steps: int
    has_converged: bool


@dataclass(frozen=True, eq=False)
class Steps:
    """State after a number of steps, from which to go on; of shape 0 before the first.

    Attributes
    ----------
    columns : ndarray, shape (D, n)
        Maps W, and the directions P in which they moved.
    values : ndarray, shape (2, n_maps)
        ρ after the last step and after the one before.
    counts : ndarray, shape (2,)
        Of steps in which ρ hardly changed, and whether the images are those of W, or travelled.
    """

    columns: np.ndarray
    values: np.ndarray
    counts: np.ndarray

    @classmethod
    def none(cls) -> Steps:
        """Before the first step."""
        return cls(np.empty((0, 0)), np.empty((2, 0)), np.zeros(2, int))


Keeper = AbstractContextManager[tuple[Steps, int, Callable[[Steps, int], None]]]


class _Images:
    """A W and B W, stacked to (2 D, k)."""

    def __init__(self, pencil: Pencil) -> None:
        self.pencil, self.height = pencil, 2 * pencil.n_features
        self.ridge = pencil.ridge()

    def of(self, W: np.ndarray) -> np.ndarray:
        AW, BW = self.pencil.images(W, self.pencil.of_A(), self.pencil.of_B())
        BW += self.ridge * W
        return np.concatenate([AW, BW])

    def products(
        self, Z: np.ndarray, _: np.ndarray, H: np.ndarray, image: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """ZᵀAH and ZᵀBH."""
        n = len(H)
        return Z.T @ image[:n], Z.T @ image[n:]

    def residual(self, W: np.ndarray, image: np.ndarray, values: np.ndarray) -> np.ndarray:
        """A W - B W diag(ρ)."""
        n = len(W)
        return image[:n] - values * image[n:]


class _Scores(_Images):
    """Scores X̄W, (T, k)."""

    def __init__(self, pencil: Pencil) -> None:
        super().__init__(pencil)
        self.height = pencil.n_scores

    def of(self, W: np.ndarray) -> np.ndarray:
        return self.pencil.forward(W)

    def products(
        self, Z: np.ndarray, scores: np.ndarray, H: np.ndarray, image: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        pencil = self.pencil
        of_A = scores.T @ pencil.mixed(image, pencil.of_A())
        of_B = scores.T @ pencil.mixed(image, pencil.of_B())
        for name, own in pencil.columns.items():
            of_B += pencil.ridges[name] * (Z[own].T @ H[own])
        return of_A, of_B

    def residual(self, W: np.ndarray, image: np.ndarray, values: np.ndarray) -> np.ndarray:
        pencil = self.pencil
        U = pencil.mixed(image, pencil.of_A())
        U -= values * pencil.mixed(image, pencil.of_B())
        R = pencil.backward(U)
        del U
        for name, own in pencil.columns.items():
            R[own] -= (pencil.ridges[name] * values) * W[own]
        return R


def leading(
    pencil: Pencil, n_components: int, *, preconditioned: bool = True, kept: Keeper | None = None
) -> Leading:
    """Find the leading `n_components` solutions.

    Parameters
    ----------
    pencil : Pencil
        The problem.
    n_components : int
        k; a few more are kept in the block.
    preconditioned : bool, default=True
        Whether to solve for new directions, which takes up to 10 more products a step, and fewer
        steps.
    kept : context manager, optional
        Gives the state to go on from, its number of steps, and a function that saves later ones.
    """
    # Scores of three blocks take 3 T, and the matrices' images of them 6 D.
    carried = (_Images if pencil.is_lazy or pencil.n_scores > 2 * pencil.n_features else _Scores)(
        pencil
    )
    size = min(n_components + max(4, n_components // 4), pencil.n_features)
    in_float32 = pencil.in_float32() if preconditioned else pencil
    residual = error = np.inf
    has_converged = False
    nothing = nullcontext((Steps.none(), 0, lambda *_: None))
    with kept or nothing as (state, done, keep), _counted(done) as show:
        if done:
            basis = _SearchSubspace(carried, state.columns, size, 3 * size)
            (values, last), (n_quiet, is_exact) = state.values, state.counts
        else:
            start = _of_unit_length(_start(pencil, size))
            basis = _SearchSubspace(carried, start, size, 3 * size)
            values, n_quiet, is_exact = basis.rotate(size), 0, True
            last = np.full(len(values), np.inf)
        while True:
            done += 1
            size = len(values)  # fewer if the rows span fewer directions
            W, image = basis.current(size)
            R = carried.residual(W, image, values)
            sizes = np.sqrt(np.einsum("ij,ij->j", R / carried.ridge, R))
            k = min(n_components, size)
            change = np.abs(values[:k] - last[:k]).max()
            last, residual = values, float(sizes[:k].max())
            gap = values[k - 1] - values[-1]
            error = min(residual, residual**2 / gap) if gap > 0 else residual
            enough = np.clip(np.sqrt(_LARGEST_ERROR * max(gap, 0)), *_RESIDUALS)
            show(residual)
            n_quiet = n_quiet + 1 if change <= _LARGEST_CHANGE else 0
            has_converged = bool(residual <= enough and n_quiet >= _QUIET_STEPS)
            if done >= _MOST_STEPS or (has_converged and is_exact):
                break
            is_exact = has_converged
            if has_converged:
                # What travelled with the maps is computed anew, which settles the last digits.
                del R
                basis.start_over(W.copy(), size)
            else:
                moving = sizes > _SETTLED * enough
                H = R[:, moving] if moving.any() and not moving.all() else R
                if preconditioned:
                    H = H.astype(np.float32)  # a direction needs few digits
                    del R
                    H = conjugate_gradients(
                        in_float32.times_shifted, H, _MOST_INNER_STEPS, _INNER_TOLERANCE
                    ).astype(np.float64)
                basis.add(_of_unit_length(H))
            values = basis.rotate(size)
            counts = np.array([n_quiet, is_exact])
            pair = np.stack([values, last[: len(values)]])  # fewer where rows span fewer directions
            keep(Steps(basis.all_columns(), pair, counts), done)
    W = basis.current(k)[0].copy()
    return Leading(W, values[:k], residual, error, done, has_converged)


def _start(pencil: Pencil, size: int) -> np.ndarray:
    """A start in the span of the rows, the same for every fit."""
    start = np.random.default_rng(0).standard_normal((pencil.n_features, size))
    for name, own in pencil.columns.items():
        start[own] /= np.sqrt(pencil.variances(name).mean())
    return pencil.images(start, Mix(dict.fromkeys(pencil.columns, 0.0), 1.0))[0]


class _SearchSubspace:
    """Columns [W, P, H] with what the pencil makes of them, and the matrices between them."""

    def __init__(self, carried: _Images, columns: np.ndarray, n_maps: int, most: int) -> None:
        self.carried = carried
        self.columns = np.empty((carried.pencil.n_features, most))
        self.images = np.empty((carried.height, most))
        self.start_over(columns, n_maps)

    def start_over(self, columns: np.ndarray, n_maps: int) -> None:
        """Keep these columns only, the first of which are maps."""
        self.n, self.A, self.B = 0, np.zeros((0, 0)), np.zeros((0, 0))
        self.add(columns)
        self.n_maps = min(n_maps, self.n)

    def all_columns(self) -> np.ndarray:
        """Maps and directions."""
        return self.columns[:, : self.n]

    def current(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The first k maps and their images."""
        return self.columns[:, :k], self.images[:, :k]

    def add(self, H: np.ndarray) -> None:
        """Append columns."""
        image = self.carried.of(H)
        start, self.n = self.n, self.n + H.shape[1]
        self.columns[:, start : self.n], self.images[:, start : self.n] = H, image
        Z, of_Z = self.current(self.n)
        for name, product in zip("AB", self.carried.products(Z, of_Z, H, image), strict=True):
            whole = np.empty((self.n, self.n))
            whole[:start, :start] = getattr(self, name)
            whole[:, start:] = product
            whole[start:, :start] = product[:start].T
            setattr(self, name, (whole + whole.T) / 2)

    def rotate(self, size: int) -> np.ndarray:
        """The best maps in the span, (ρ), and the directions they moved in, in place of all."""
        white = _whitener(self.B)
        values, vectors = linalg.eigh(white.T @ self.A @ white)
        C = (white @ vectors)[:, ::-1][:, :size]
        turn = C
        if self.n > self.n_maps:
            D = C.copy()
            D[: self.n_maps] = 0  # what is new in the maps
            for _ in range(2):
                D -= C @ (C.T @ (self.B @ D))
            turn = np.hstack([C, D @ _whitener(D.T @ self.B @ D)])
        for array in (self.columns, self.images):
            step = max(1, _BLOCK_NUMBERS // array.shape[1])
            for start in range(0, len(array), step):
                block = array[start : start + step]
                block[:, : turn.shape[1]] = block[:, : self.n] @ turn
        self.A, self.B = turn.T @ self.A @ turn, turn.T @ self.B @ turn
        self.n, self.n_maps = turn.shape[1], C.shape[1]
        return values[::-1][:size]


def _of_unit_length(H: np.ndarray) -> np.ndarray:
    """Columns divided by their lengths, in place."""
    lengths = np.sqrt(np.einsum("ij,ij->j", H, H))
    return np.divide(H, lengths, out=H, where=lengths > 0)


def _whitener(gram: np.ndarray) -> np.ndarray:
    """T with TᵀGT = I, without directions that depend on others."""
    scale = np.sqrt(np.maximum(np.diag(gram), 0))
    scale = np.divide(1, scale, out=np.zeros_like(scale), where=scale > 0)
    values, vectors = linalg.eigh(gram * scale * scale[:, None])
    real = values > _INDEPENDENT
    return scale[:, None] * (vectors[:, real] / np.sqrt(values[real]))


@contextmanager
def _counted(done: int) -> Iterator[Callable[[float], None]]:
    """A function that counts steps on a progress bar, if one is configured."""
    with counting(None, "LOBPCG", done=done) as count:  # it ends when it has converged
        yield lambda residual: count(1, f"residual={residual:.1e}")
