"""
Labels as a third view help if eigenvalues weight the components
================================================================

MVCCA accepts any number of views, so that labels can be one of them: three-view CCA. The first
components are those on which images and labels agree, followed by many on which only the images
agree. Cosine similarity treats all of them equally, unless ``power`` multiplies the scores by a
power of their eigenvalues.
"""

# %%
# ``with_labels_as_view`` adds the digit to the two halves, as ten indicator columns.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from mvcca import MVCCA, evaluate_retrieval
from mvcca.datasets import load_digits_views
from mvcca.linear import with_labels_as_view

data = load_digits_views("halves")
views, views_test, y, y_test = train_test_split(
    data.views, data.labels, test_size=1 / 3, random_state=0
)
three = with_labels_as_view(views, y)
print(three)

# %%
# Test images have no labels; ``transform`` accepts any subset of the views. We compute the mean
# average precision of retrieval between the halves for several numbers of components and powers.

n_components = (3, 6, 9, 12, 16, 24, 32)
powers = (0, 1, 4, 8)
precision = np.zeros((len(powers), len(n_components)))
for j, k in enumerate(n_components):
    model = MVCCA(k, reg=0.01).fit(three)
    for i, power in enumerate(powers):
        scores = model.set_params(power=power).transform(views_test)
        precision[i, j] = evaluate_retrieval(scores, y_test, measures="map").mean()["map"]

# %%
# Without weighting, precision drops with more than nine components, the maximum that ten classes
# determine. With the common power of 4, the number of components no longer matters.

figure, ax = plt.subplots(layout="constrained")
for power, values in zip(powers, precision, strict=True):
    ax.plot(n_components, values, "o-", label=f"power {power}")
ax.axvline(9, color="#777777", linewidth=0.8, linestyle=":")
ax.annotate("10 classes - 1", (9, 0.02), xytext=(4, 0), textcoords="offset points")
ax.set(xlabel="Components", ylabel="mAP, both directions")
ax.set_ylim(bottom=0)
ax.legend(frameon=False)
plt.show()

# %%
# The eigenvalues explain this: they are near 3 for components on which all three views agree, below
# 2 if only the halves agree, and near 1 if no views agree.

figure, ax = plt.subplots(layout="constrained")
ax.plot(np.arange(1, 33), model.eigenvalues_, "o-", color="#777777")
ax.set(xlabel="Component", ylabel="Eigenvalue", ylim=(0.9, 3))
plt.show()
