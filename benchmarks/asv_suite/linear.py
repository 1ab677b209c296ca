"""Whole fits of the linear family."""

from __future__ import annotations

import numpy as np

from mvcca import CCA, MVMLCCA, Views
from mvcca.datasets import make_multilabel_views

SHAPES = {"tall": (20_000, (512, 300)), "wide": (400, (2000, 1500))}


def latent_views(n: int, widths: tuple[int, int]) -> Views:
    rng = np.random.default_rng(0)
    latent = rng.standard_normal((n, 32))
    blocks = [latent @ rng.standard_normal((32, d)) for d in widths]
    return Views([block + 5 * rng.standard_normal(block.shape) for block in blocks])


class CorrelatedViews:
    """CCA of many rows, and of more features than rows."""

    params = ("tall", "wide")
    param_names = ("shape",)

    def setup(self, shape: str) -> None:
        self.views = latent_views(*SHAPES[shape])
        self.model = CCA(32, reg=1e-2)
        self.model.fit(latent_views(100, (40, 40)))  # imports

    def time_fit(self, shape: str) -> None:
        self.model.fit(self.views)

    def peakmem_fit(self, shape: str) -> None:
        self.model.fit(self.views)


class LabelledViews:
    """MVMLCCA of label sets that mostly differ, with either constraint."""

    params = ("label", "sample")
    param_names = ("within",)

    def setup(self, within: str) -> None:
        options = {"n_features": (256, 100), "n_classes": 40, "max_labels": 6, "random_state": 0}
        data, few = (make_multilabel_views(n, **options) for n in (8_000, 500))
        self.views, self.labels = data.views, data.indicator
        self.model = MVMLCCA(32, within=within, reg=1e-2)
        self.model.fit(few.views, few.indicator)  # compiles the kernels

    def time_fit(self, within: str) -> None:
        self.model.fit(self.views, self.labels)

    def peakmem_fit(self, within: str) -> None:
        self.model.fit(self.views, self.labels)
