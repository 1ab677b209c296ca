"""
Curved maps retrieve better than straight ones, without a single label
======================================================================

Half of a handwritten digit asks for the other halves of its like. Neither CCA nor kernel CCA is
told which digit a half is from; both learn from the pairs of halves alone.
"""

# %%
# A right answer shows the same digit as the query. Kernel CCA finds functions of the pixels, from
# 400 landmarks of the 1,200 training images, and nonparametric CCA from nearest neighbours.

import matplotlib.pyplot as plt

from mvcca import CCA, KCCA, NCCA, evaluate_retrieval
from mvcca.datasets import load_digits_views

data = load_digits_views("halves")
train, test, labels = data.views[:1200], data.views[1200:], data.labels[1200:]
models = {
    "CCA": CCA(30, reg=0.1),
    "KCCA": KCCA(30, approximation="nystroem", n_landmarks=400, reg=0.01, random_state=0),
    "NCCA": NCCA(30, random_state=0),
}
scores = {title: model.fit(train).transform(test) for title, model in models.items()}

# %%
# Components are found in order, so that the first few columns are the smaller model. Past eight or
# so, more of them add noise to all three; no number of them brings CCA near the other two.

sizes = [2, 4, 6, 8, 10, 15, 20, 30]
figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
for title, projected in scores.items():
    found = []
    for size in sizes:
        first = {name: block[:, :size] for name, block in projected.items()}
        found.append(evaluate_retrieval(first, labels, measures="map").mean()["map"])
    ax.plot(sizes, found, marker="o", label=title)
    print(f"{title}: mAP {found[sizes.index(10)]:.2f} with 10 components")
ax.set(xlabel="components", ylabel="mAP, mean of both directions", ylim=(0, 1))
ax.legend()
