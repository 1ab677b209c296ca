"""
CCA finds what two halves of a digit share
==========================================

The left and the right half of an image have no pixel in common. Canonical correlation analysis
finds linear maps under which they correlate, and thus a space in which one half retrieves the
other.
"""

# %%
# Each half is a view of 32 pixels. Two thirds of the images are training data. A small ridge is
# needed because some pixels are black in every image.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from mvcca import CCA, evaluate_retrieval
from mvcca.datasets import load_digits_views
from mvcca.inspection import loadings, permutation_test
from mvcca.plotting import CorrelationDisplay, EmbeddingDisplay

data = load_digits_views("halves")
views, views_test, digits, digits_test = train_test_split(
    data.views, data.labels, test_size=1 / 3, random_state=0
)
cca = CCA(n_components=20, reg=0.01).fit(views)
print(views)

# %%
# Correlations on the training rows are optimistic; those on held-out rows are not. Here most of the
# components hold on new data.

CorrelationDisplay.from_estimator(cca, views, X_test=views_test)
plt.show()

# %%
# How many components are significant? The permutation test counts how often shuffled halves have
# correlations as large. It warns of pixels that are black in every image, which do not change it.

test = permutation_test(views, n_permutations=199, random_state=0)
print(f"{(test.p_values < 0.05).sum()} of {len(test.p_values)} components with p < 0.05")

# %%
# A loading is the correlation of a pixel with a component. Drawn as images, the loadings of both
# halves show what a component responds to: red pixels increase its score if they are inked.

pixel_loadings = loadings(cca, views)
figure, axes = plt.subplots(1, 5, figsize=(9, 2.2), layout="constrained")
for i, ax in enumerate(axes):
    halves = [pixel_loadings[side][:, i].reshape(8, 4) for side in ("left", "right")]
    ax.imshow(np.hstack(halves), cmap="RdBu_r", vmin=-1, vmax=1)
    ax.axvline(3.5, color="black", linewidth=0.8)
    ax.set(title=f"{i + 1}", xticks=[], yticks=[])
plt.show()

# %%
# Halves of the same digit are neighbors, although CCA uses no labels.

EmbeddingDisplay.from_estimator(cca, views_test, digits_test, method="tsne", random_state=0)
plt.show()

# %%
# In retrieval, one half is the query, and the opposite halves of all 599 test images are the
# gallery. ``r@k`` counts the other half of the same image as relevant, ``map`` halves of the same
# digit.

print(evaluate_retrieval(cca.transform(views_test), digits_test, measures=["r@1", "r@10", "map"]))
