"""
Not every object has to be seen in every view
=============================================

:class:`~mvcca.views.Views` hold several matrices, and know which rows belong to the same object.
They may be paired, partly paired or unpaired.
"""

# %%
# Paired views: row i of every matrix is object i. Views are indexed by object, like one matrix.

import matplotlib.pyplot as plt
import numpy as np

from mvcca import MVCCA, MVMLCCA, Views, evaluate_retrieval
from mvcca.datasets import load_digits_views

data = load_digits_views("quadrants")
paired = data.views.select(["top_left", "top_right", "bottom_left"])
print(paired)
print(paired[:10])
print(paired["top_left"].shape)

# %%
# Partly paired views: an index says where an object's row is in each view, with -1 if there is
# none. Here every object lacks one view in turn.

rng = np.random.default_rng(0)
lacking = rng.integers(0, 3, size=len(paired))
seen = np.arange(3) != lacking[:, None]
index = np.where(seen, np.cumsum(seen, axis=0) - 1, -1)
partly = Views(
    {name: paired[name][own] for name, own in zip(paired.names, seen.T, strict=True)}, index
)
patterns, counts = np.unique(partly.pattern, return_counts=True)
print(dict(zip(patterns.tolist(), counts.tolist(), strict=True)))

# %%
# Unpaired views: no object is in two views. Only labels connect them.

thirds = np.array_split(rng.permutation(len(paired)), 3)
unpaired = Views.unpaired(
    {name: paired[name][rows] for name, rows in zip(paired.names, thirds, strict=True)}
)
labels = np.concatenate([data.labels[rows] for rows in thirds])
print(unpaired)

# %%
# MVCCA estimates each covariance from the objects that have both views, so that partly paired views
# are sufficient. MVMLCCA compares labels instead, and needs no pairs.

held_out = paired[1200:]
models = {
    "all pairs": MVCCA(8, reg=0.1).fit(paired[:1200]),
    "a third lacking": MVCCA(8, reg=0.1).fit(partly[:1200]),
    "labels, no pairs": MVMLCCA(8, reg=0.1).fit(unpaired, labels),
}
tables = {
    name: evaluate_retrieval(
        held_out, data.labels[1200:], estimator=model, measures=["r@10", "map"]
    ).mean()
    for name, model in models.items()
}
figure, axes = plt.subplots(1, 2, figsize=(8, 2.6), layout="constrained", sharey=True)
for ax, measure in zip(axes, ("r@10", "map"), strict=True):
    ax.barh(list(tables), [values[measure] for values in tables.values()], color="#3f90da")
    ax.set_xlabel(measure)
axes[0].invert_yaxis()
plt.show()
