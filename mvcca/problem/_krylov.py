"""Leading singular vectors and eigenvectors of an operator, in a block Krylov space.

Multiplying a block of vectors takes one pass over the rows behind an operator, however many vectors
there are, and general matrix products, which are faster than those with a vector. Nothing here
knows of rows.

The space of B is spanned by V, BᵀB V, (BᵀB)² V, …, and that of a symmetric A by V, A V, A² V, ….
Blocks are orthonormal and their images are kept, so that approximations in the space take no
further product. A space that grows too large is cut down to the leading approximations, which with
the next block span a Krylov space again (thick restart).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import linalg

from mvcca.machine import lapack

EXTRA = 10  # vectors of a block beyond the components that are wanted
_SETTLED = 1e-9  # change of a value in a step, relative to the largest
_RESIDUAL = 1e-6  # of a component, relative to the largest value; the error of values is its square
_BLOCKS = 6  # that are kept before a restart

Product = Callable[[np.ndarray], np.ndarray]


class Krylov:
    """The block Krylov space of an operator B, or of a symmetric A.

    Parameters
    ----------
    product : callable
        Maps V, (n, b), to B V, (m, b), or to A V, (n, b).
    adjoint : callable or None
        Maps U, (m, b), to BᵀU, (n, b); None if the operator is symmetric.
    n : int
        Length of the vectors that `product` takes.
    k : int
        Number of components.

    Attributes
    ----------
    residual : float
        Largest ‖Bᵀu - σv‖, or ‖A v - λv‖, of the components, relative to the largest value.
    """

    def __init__(self, product: Product, adjoint: Product | None, n: int, k: int) -> None:
        self.product, self.adjoint, self.n, self.k = product, adjoint, n, k
        self.residual = np.inf
        self._basis: list[np.ndarray] = []
        self._images: list[np.ndarray] = []
        self._gram = np.zeros((0, 0))  # of the images; VᵀAV of a symmetric A

    def grow(self, most_steps: int) -> bool:
        """Add blocks until the components have converged; False if `most_steps` do not suffice."""
        width = min(self.k + EXTRA, self.n)
        # A fixed start makes fits reproducible; a random one is orthogonal to no component.
        block, _ = self._next(np.random.RandomState(0).standard_normal((self.n, width)))
        before = np.full(self.k, np.inf)
        for _ in range(most_steps):
            self._append(block)
            values, Z = self._approximations(self.k)
            top = abs(values[0]) or 1.0
            change, before = np.abs(values - before).max(initial=0), values
            filled = sum(own.shape[1] for own in self._basis)
            image = self._images[-1]
            block, R = self._next(image if self.adjoint is None else self.adjoint(image))
            if filled + block.shape[1] > self.n:  # as good as the whole space
                block = block[:, : self.n - filled]
            residuals = np.linalg.norm(R @ Z[-R.shape[1] :], axis=0)
            if self.adjoint is not None:
                residuals /= np.maximum(values, np.finfo(float).eps * top)
            self.residual = float(residuals.max(initial=0) / top) if block.shape[1] else 0.0
            if not block.shape[1] or (change <= _SETTLED * top and self.residual <= _RESIDUAL):
                return True
            if len(self._basis) >= _BLOCKS:
                self._restart(width)
        return False

    def singular(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """U, (m, k), σ, decreasing, and V, (n, k)."""
        _, Z = self._approximations(min(self.k + EXTRA, len(self._gram)))
        Q, R = linalg.qr(_combined(self._images, Z), mode="economic", check_finite=False)
        left, values, right = lapack.svd(R)  # Gram matrices lose small values
        V = _combined(self._basis, Z @ right[: self.k].T)
        return Q @ left[:, : self.k], values[: self.k], V

    def eigen(self) -> tuple[np.ndarray, np.ndarray]:
        """The largest eigenvalues, decreasing, and their eigenvectors, (n, k)."""
        values, Z = self._approximations(self.k)
        return values, _combined(self._basis, Z)

    def _append(self, block: np.ndarray) -> None:
        image = self.product(block)
        self._basis.append(block)
        self._images.append(image)
        others = self._basis if self.adjoint is None else self._images
        column = np.vstack([own.T @ image for own in others])
        old, size = len(self._gram), len(column)
        gram = np.empty((size, size))
        gram[:old, :old] = self._gram
        gram[:, old:] = column
        gram[old:, :old] = column[:old].T
        self._gram = gram

    def _approximations(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The largest values in the space, decreasing, and the coordinates of their vectors."""
        size = len(self._gram)
        symmetric = (self._gram + self._gram.T) / 2
        values, Z = linalg.eigh(symmetric, subset_by_index=[size - k, size - 1])
        values, Z = values[::-1], Z[:, ::-1]
        return values if self.adjoint is None else np.sqrt(np.maximum(values, 0)), Z

    def _next(self, block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """An orthonormal basis Q of what of a block lies outside the space, and R with QR = that.

        By two passes of Gram-Schmidt, of which the second makes up for the rounding of the first.
        """
        R = np.eye(block.shape[1])
        for _ in range(2):
            for own in self._basis:
                block = block - own @ (own.T @ block)
            block, factor = linalg.qr(block, mode="economic", check_finite=False)
            R = factor @ R
        return block, R

    def _restart(self, width: int) -> None:
        """Cut the space down to its leading approximations."""
        values, Z = self._approximations(width)
        self._basis, self._images = [_combined(self._basis, Z)], [_combined(self._images, Z)]
        self._gram = np.diag(values if self.adjoint is None else values**2)


def _combined(blocks: list[np.ndarray], Z: np.ndarray) -> np.ndarray:
    """Linear combinations of the vectors of blocks."""
    ends = np.cumsum([0, *(own.shape[1] for own in blocks)])
    total = blocks[0] @ Z[: ends[1]]
    for own, start, stop in zip(blocks[1:], ends[1:-1], ends[2:], strict=True):
        total += own @ Z[start:stop]
    return total
