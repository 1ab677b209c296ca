"""The sums over rows that every fit starts with."""

from __future__ import annotations

import numpy as np

from mvcca import Views
from mvcca.datasets import make_multilabel_views
from mvcca.similarity import LabelGram
from mvcca.statistics import LabelSums, Moments
from mvcca.views import Labels


class PlainMoments:
    """Means and scatter of 20,000 rows of 512 + 300 features."""

    params = ("float32", "float64")
    param_names = ("dtype",)

    def setup(self, dtype: str) -> None:
        rng = np.random.default_rng(0)
        widths = {"image": 512, "text": 300}
        self.views = Views(
            {name: rng.standard_normal((20_000, d), dtype=dtype) for name, d in widths.items()}
        )
        Moments.of(self.views[:100])

    def time_of(self, dtype: str) -> None:
        Moments.of(self.views)

    def peakmem_of(self, dtype: str) -> None:
        Moments.of(self.views)


class LabelCovariance:
    """Covariance weighted by the similarity of 5,868 distinct label sets."""

    def setup(self) -> None:
        data = make_multilabel_views(
            8_000, n_features=(256, 100), n_classes=40, max_labels=6, random_state=0
        )
        self.labels = Labels.of(data.indicator)
        self.sums = LabelSums.of(data.views, self.labels)
        self.sums.covariance(LabelGram(self.labels), dtype=self.sums.dtype)  # compiles the kernels

    def time_covariance(self) -> None:
        self.sums.covariance(LabelGram(self.labels), dtype=self.sums.dtype)

    def peakmem_covariance(self) -> None:
        self.sums.covariance(LabelGram(self.labels), dtype=self.sums.dtype)
