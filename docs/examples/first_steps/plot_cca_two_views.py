"""
CCA finds what two halves of a digit share
==========================================

The left and the right half of an image have no pixel in common. Canonical correlation analysis
finds linear maps under which they correlate, and thus a space in which one half retrieves the
other.
"""

# %%
# Each half is a view of 32 pixels, and two thirds of the images are training data. With
# ``reg="cv"``, folds of these choose the ridge, and how rows are ranked; ``n_components=None``
# keeps all components.

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
cca = CCA(n_components=None, reg="cv").fit(views)
print(views)
print(f"ridge {cca.reg_}, ranked by {cca.ranking_}")

# %%
# Correlations on the training rows are too large; those on held-out rows are not. Here most of the
# components hold on new data.

CorrelationDisplay.from_estimator(cca, views, X_test=views_test)
plt.show()

# %%
# How many components are real? The permutation test counts how often shuffled halves correlate as
# much. It warns of pixels that are black in every image, which do not change it.

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
# Halves of the same digit are near to each other, although CCA uses no labels.

EmbeddingDisplay.from_estimator(cca, views_test, groups=digits_test, method="tsne", random_state=0)
plt.show()

# %%
# Now search: one half is the query, and the opposite halves of all 599 test images are the
# gallery. ``r@k`` counts the other half of the same image as relevant, ``map`` halves of the same
# digit. Pass the model as ``estimator``, so that rows are ranked as it ranks them.

measures = ["r@1", "r@10", "map"]
print(evaluate_retrieval(views_test, digits_test, estimator=cca, measures=measures))

# %%
# The cosine of the scores, which is what comes to mind first, finds less: it counts every component
# alike, even those on which the halves hardly agree.

print(evaluate_retrieval(cca.transform(views_test), digits_test, measures=measures))
