"""Kernel CCA on explicit features."""

from __future__ import annotations

import numpy as np

from mvcca import KCCA


class KernelFeatures:
    """KCCA of 5,000 rows on 500 landmarks (NKCCA) or Fourier features (FKCCA)."""

    params = ("nystroem", "fourier")
    param_names = ("approximation",)

    def setup(self, approximation: str) -> None:
        rng = np.random.default_rng(0)
        latent = rng.standard_normal((5_000, 8))
        self.views = [np.tanh(latent @ rng.standard_normal((8, d))) for d in (64, 48)]
        self.model = KCCA(
            16, reg=1e-2, gamma=0.05, approximation=approximation, n_landmarks=500, random_state=0
        )
        self.model.fit([view[:600] for view in self.views])  # imports

    def time_fit(self, approximation: str) -> None:
        self.model.fit(self.views)

    def peakmem_fit(self, approximation: str) -> None:
        self.model.fit(self.views)
