"""
A query with several views finds more than one with a single view
=================================================================

In the shared space a query may have any of the views; if it has several, their projections are
summed. An index holds the gallery and answers all these queries.
"""

# %%
# Four quadrants of a digit are four views. The other three quadrants are used to retrieve the
# bottom right quadrants of test images.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from mvcca import MVCCA, RetrievalIndex, evaluate_retrieval
from mvcca.datasets import load_digits_views

data = load_digits_views("quadrants")
views, views_test, _, images, _, digits = train_test_split(
    data.views, data.images, data.labels, test_size=1 / 3, random_state=0
)
model = MVCCA(12, reg=0.1, power=1).fit(views)

# %%
# A direction with several query views is a joint query. Here an item is relevant if it shows the
# same digit. Every query with two views is better than both of its views alone, and the query with
# all three is best.

queries = [
    ("top_left",),
    ("top_right",),
    ("bottom_left",),
    ("top_left", "top_right"),
    ("top_left", "bottom_left"),
    ("top_right", "bottom_left"),
    ("top_left", "top_right", "bottom_left"),
]
table = evaluate_retrieval(
    model.transform(views_test),
    digits,
    measures="map",
    directions=[(query, "bottom_right") for query in queries],
)
print(table)

# %%
# In an application, an index projects and stores the gallery. ``search`` accepts any of the views
# by name, and sums the projections of several.

index = RetrievalIndex(model).add(views_test.select(["bottom_right"]))


def search(image, names):
    rows = {name: views_test[name][[image]] for name in names}
    _, found = index.search(rows, target="bottom_right", k=6)
    return found[0]


print(search(199, ("top_right",)))

# %%
# The quadrants of a query, and the images with the best matching bottom right quadrants, for
# queries with one, two and three quadrants.

CORNERS = {"top_left": (0, 0), "top_right": (0, 4), "bottom_left": (4, 0)}


def draw(ax, image):
    ax.imshow(image, cmap="gray_r", vmin=0, vmax=16)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_color("#dddddd")


figure, axes = plt.subplots(3, 7, figsize=(8, 3.6), layout="constrained")
for row, names in zip(axes, (queries[1], queries[5], queries[6]), strict=True):
    query = np.full((8, 8), np.nan)
    for name in names:
        i, j = CORNERS[name]
        query[i : i + 4, j : j + 4] = views_test[name][199].reshape(4, 4)
    draw(row[0], query)
    for ax, found in zip(row[1:], search(199, names), strict=True):
        draw(ax, images[found])
axes[0, 0].set_title("query", fontsize="medium")
axes[0, 1].set_title("answers", fontsize="medium")
plt.show()
