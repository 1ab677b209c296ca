"""
Labels of some classes do not help to find others
=================================================

In zero-shot retrieval, the classes of the queries do not occur in training. Methods that learn from
labels separate the classes that they have seen, and may lose what distinguishes others. A random
split does not show this.
"""

# %%
# `mvcca.model_selection.ClassDisjointSplit` holds out whole classes, here three of the ten digits.
# A usual split holds out images of all digits.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import ShuffleSplit

from mvcca import CCA, JRL, MLCCA, evaluate_retrieval
from mvcca.datasets import load_digits_views
from mvcca.model_selection import ClassDisjointSplit

digits = load_digits_views()
splits = {
    "seen": ShuffleSplit(5, test_size=0.3, random_state=0),
    "unseen": ClassDisjointSplit(5, test_size=3, random_state=0),
}
for train, test in splits["unseen"].split(digits.views, digits.labels):
    print(
        "trained on", np.unique(digits.labels[train]), "tested on", np.unique(digits.labels[test])
    )

# %%
# CCA learns from pairs of halves, MLCCA and JRL from their labels. ``r@10`` asks for the other half
# of the same image, ``map`` for halves of the same digit.

models = {"CCA": CCA(9, reg=0.1), "MLCCA": MLCCA(6, reg=0.1), "JRL": JRL()}
measures = ["r@10", "map"]
found = {
    (kind, name): np.array(
        [
            list(
                evaluate_retrieval(
                    digits.views[test],
                    digits.labels[test],
                    estimator=model.fit(digits.views[train], digits.labels[train])
                    if name != "CCA"
                    else model.fit(digits.views[train]),
                    measures=measures,
                )
                .mean()
                .values()
            )
            for train, test in split.split(digits.views, digits.labels)
        ]
    )
    for kind, split in splits.items()
    for name, model in models.items()
}

# %%
# The two splits have different numbers of classes and of rows in the gallery, so that only methods
# within a panel can be compared. Dots are splits. With classes that were seen, both methods with
# labels find the digit more often than CCA. With new classes, they are behind.

figure, axes = plt.subplots(2, 2, figsize=(7, 4.4), layout="constrained", sharey="row")
for column, kind in zip(axes.T, splits, strict=True):
    for ax, measure, number in zip(column, measures, range(2), strict=True):
        for place, name in enumerate(models):
            values = found[kind, name][:, number]
            ax.plot(np.full(len(values), place), values, "o", color="#3f90da", markersize=4)
            ax.plot([place - 0.2, place + 0.2], [values.mean()] * 2, color="#333333")
        ax.set_xticks(range(len(models)), list(models))
        ax.set_ylim(0, 0.85 if measure == "map" else 0.45)
    column[0].set_title(f"{kind} classes")
for ax, measure in zip(axes[:, 0], measures, strict=True):
    ax.set_ylabel(measure)
plt.show()

for (kind, name), values in found.items():
    print(f"{kind:6} {name:6} r@10 {values[:, 0].mean():.2f}, map {values[:, 1].mean():.2f}")

# %%
# Both splitters work in scikit-learn's searches and in ``mvcca.compare(cv=...)``. If new classes
# are expected, choose the method and its settings on unseen classes.
