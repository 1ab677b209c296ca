"""
Fitting in batches gives the same model as fitting all rows at once
===================================================================

The linear methods need only sums over rows, and sums of batches add up. ``partial_fit`` is
therefore exact: its result does not depend on the order or the size of the batches.
"""

# %%
# The data are 20,000 rows of a model with known correlations 0.9, 0.7 and 0.5. In single precision
# and with means far from zero, naive sums would lose their digits.

import matplotlib.pyplot as plt
import numpy as np

from mvcca import CCA
from mvcca.datasets import make_gaussian_views

data = make_gaussian_views(
    20_000, n_features=(30, 20), correlations=(0.9, 0.7, 0.5), random_state=0
)
views = data.views.replace(
    {name: (block + 1000).astype(np.float32) for name, block in data.views.items()}
)
whole = CCA(3).fit(views)

# %%
# Batches of very different sizes give the same weights, up to single-precision rounding.


def in_batches(size):
    model = CCA(3)
    for start in range(0, len(views), size):
        model.partial_fit(views[start : start + size])
    return model


for size in (20_000, 5_000, 700, 64):
    model = in_batches(size)
    error = max(np.abs(model.weights_[name] - whole.weights_[name]).max() for name in views.names)
    print(
        f"batches of {size:6,}: correlations {model.canonical_correlations_.round(4)}, "
        f"weights differ by {error:.0e}"
    )

# %%
# With more batches, the estimates converge to the true correlations.

model, seen, path = CCA(3), [], []
for start in range(0, 10_000, 250):
    model.partial_fit(views[start : start + 250])
    seen.append(start + 250)
    path.append(model.canonical_correlations_)

figure, ax = plt.subplots(layout="constrained")
ax.plot(seen, path, linewidth=1.6)
for planted in data.correlations:
    ax.axhline(planted, color="#777777", linewidth=0.8, linestyle=":")
ax.set(xscale="log", xlabel="Rows seen", ylabel="Canonical correlation", ylim=(0.4, 1))
plt.show()

# %%
# MVCCA and MVMLCCA keep a statistic of fixed size in the same way. MLCCA weights each row by the
# labels of all other rows: its ``partial_fit`` is exact, too, but must keep the rows.
