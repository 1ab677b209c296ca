"""
A cut-off leaves the variables that matter among 140
====================================================

The correlation circle shows the correlation of each variable with two components. Variables near
the outer circle are explained by the two; those near the centre are not, and hide the others.
"""

# %%
# 300 objects with 100 variables in one view and 40 in the other. Six of the first and five of the
# second depend on two factors that the views share; the others are noise.

import matplotlib.pyplot as plt
import numpy as np

from mvcca import CCA
from mvcca.plotting import LoadingsDisplay

rng = np.random.default_rng(0)
factors = rng.normal(size=(300, 2))
views, names = {}, {}
for view, n_variables, n_planted in (("gene", 100, 6), ("lipid", 40, 5)):
    angles = rng.uniform(0, 2 * np.pi, n_planted)
    rows = rng.normal(size=(300, n_variables))
    rows[:, :n_planted] = factors @ [np.cos(angles), np.sin(angles)] + 0.5 * rows[:, :n_planted]
    views[view] = rows
    planted = [f"planted {view} {i + 1}" for i in range(n_planted)]
    names[view] = planted + [f"{view} {i + 1}" for i in range(n_planted, n_variables)]
model = CCA(2, reg=1.0).fit(views)

# %%
# Names stand where there is space, those of the largest correlations first. The note in the corner
# counts the others.

LoadingsDisplay.from_estimator(model, views, kind="circle", n_top=140, feature_names=names)
plt.show()

# %%
# With a cut-off, only variables at that distance from the centre or further are drawn: here, the
# planted ones and no others.

LoadingsDisplay.from_estimator(model, views, kind="circle", cutoff=0.6, feature_names=names)
plt.show()

# %%
# The same as bars, for the first component alone.

LoadingsDisplay.from_estimator(model, views, cutoff=0.3, feature_names=names)
plt.show()
