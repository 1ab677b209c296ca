"""Ranking a gallery."""

from __future__ import annotations

import numpy as np

from mvcca.measures import unit_rows
from mvcca.retrieval import top_k


class Ranking:
    """The top 50 of 10,000 gallery rows for 10,000 queries of 128 dimensions."""

    def setup(self) -> None:
        rng = np.random.default_rng(0)
        self.queries, self.gallery = (
            unit_rows(rng.standard_normal((10_000, 128), dtype=np.float32)) for _ in range(2)
        )
        top_k(self.queries[:100], self.gallery, 50)  # compiles the kernels

    def time_top_k(self) -> None:
        top_k(self.queries, self.gallery, 50)

    def peakmem_top_k(self) -> None:
        top_k(self.queries, self.gallery, 50)
