"""
Batches give the model that all rows at once would give
=======================================================

The linear methods ask of the rows only sums, and sums of batches add. ``partial_fit`` is therefore
exact, and not an approximation that depends on the order or on the size of the batches.
"""

# %%
# A planted model with correlations of 0.9, 0.7 and 0.5, in 20,000 rows, and a mean far from zero in
# single precision, where careless sums lose their digits.

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
# The same rows in batches of very different sizes give the same weights, to the rounding of single
# precision.


def in_batches(size):
    model = CCA(3)
    for start in range(0, len(views), size):
        model.partial_fit(views[start : start + size])
    return model


for size in (20_000, 5_000, 700, 64):
    model = in_batches(size)
    off = max(np.abs(model.weights_[name] - whole.weights_[name]).max() for name in views.names)
    print(
        f"batches of {size:6,}: correlations {model.canonical_correlations_.round(4)}, "
        f"weights differ by {off:.0e}"
    )

# %%
# While the batches come in, the estimate settles on the planted correlations.

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
# MVCCA and MVMLCCA keep a statistic of fixed size in the same way. MLCCA weighs each row by all
# other rows' labels: its ``partial_fit`` is exact too, but has to keep the rows.
