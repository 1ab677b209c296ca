"""
CCA finds what two halves of a digit share
==========================================

The left and the right half of an image have no pixel in common. Canonical correlation analysis
finds linear maps under which they agree, and so a space in which one half finds the other.
"""

# %%
# Each half is a view of 32 pixels. Two thirds of the images are for the fit. A little ridge is
# wanted because some pixels are black in every image.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from mvcca import CCA, evaluate_retrieval
from mvcca.datasets import load_digits_views
from mvcca.inspection import loadings, permutation_test
from mvcca.plotting import plot_correlations, plot_embedding

data = load_digits_views("halves")
views, views_test, digits, digits_test = train_test_split(
    data.views, data.labels, test_size=1 / 3, random_state=0
)
cca = CCA(n_components=20, reg=0.01).fit(views)
print(views)

# %%
# Correlations on the rows of the fit flatter, those on held-out rows do not. Here most of what was
# found is real.

plot_correlations(cca, views, X_test=views_test)
plt.show()

# %%
# How many components are more than chance? The permutation test says how often an image with its
# halves shuffled correlates as much.

test = permutation_test(views, n_permutations=199, random_state=0)
print(f"{(test.p_values < 0.05).sum()} of {len(test.p_values)} components with p < 0.05")

# %%
# A loading is the correlation of a pixel with a component. Drawn as images, the loadings of both
# halves show what a component responds to: dark ink that makes it large is red.

of_pixels = loadings(cca, views)
figure, axes = plt.subplots(1, 5, figsize=(9, 2.2), layout="constrained")
for i, ax in enumerate(axes):
    halves = [of_pixels[side][:, i].reshape(8, 4) for side in ("left", "right")]
    ax.imshow(np.hstack(halves), cmap="RdBu_r", vmin=-1, vmax=1)
    ax.axvline(3.5, color="black", linewidth=0.8)
    ax.set(title=f"{i + 1}", xticks=[], yticks=[])
plt.show()

# %%
# Halves are neighbours when they are of the same digit, although CCA never saw a label.

plot_embedding(cca, views_test, digits_test, method="tsne", random_state=0)
plt.show()

# %%
# As a search engine: a half is the query, and all 599 other halves are the gallery. ``r@k`` asks
# for the very same image, ``map`` for the same digit.

print(evaluate_retrieval(cca.transform(views_test), digits_test, measures=["r@1", "r@10", "map"]))
