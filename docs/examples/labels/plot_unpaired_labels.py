"""
Labels are enough to learn from unpaired views
==============================================

Images from one source and texts from another may have no object in common. MLCCA and MVMLCCA
compare every row of one view with every row of the other by the similarity of their labels, and
therefore need no pairs.
"""

# %%
# We take left halves from some images and right halves from others, so that no image is in both
# views. ``Views.unpaired`` represents such data.

import matplotlib.pyplot as plt
import numpy as np

from mvcca import CCA, MLCCA, MVMLCCA, Views, evaluate_retrieval
from mvcca.datasets import load_digits_views
from mvcca.plotting import EmbeddingDisplay

data = load_digits_views("halves")
order = np.random.RandomState(0).permutation(len(data.views))
lefts, rights, held_out = np.split(order, [600, 1200])

views = Views.unpaired({"left": data.views["left"][lefts], "right": data.views["right"][rights]})
labels = np.concatenate([data.labels[lefts], data.labels[rights]])
print(views, sorted(set(views.pattern)))

# %%
# Both methods learn from the digits as labels.

models = {
    "MLCCA": MLCCA(9, reg=0.01),
    "MVMLCCA": MVMLCCA(9, reg=0.01),
}
for model in models.values():
    model.fit(views, labels)


def report(model):
    test = data.views[held_out], data.labels[held_out]
    return evaluate_retrieval(*test, estimator=model, measures="map").mean()["map"]


for name, model in models.items():
    print(f"{name:10} mAP {report(model):.3f}")

# %%
# The order of the rows in a view has no effect on them. After shuffling one view of a paired data
# set, MLCCA gives the same model up to rounding, while CCA, which relies on pairs, fails.

left, right = data.views["left"][lefts], data.views["right"][lefts]
shuffle = np.random.RandomState(1).permutation(len(lefts))
digits = data.labels[lefts]

paired = MLCCA(9, reg=0.01).fit([left, right], [digits, digits])
shuffled = MLCCA(9, reg=0.01).fit([left, right[shuffle]], [digits, digits[shuffle]])
largest = np.abs(paired.weights_["view1"] - shuffled.weights_["view1"]).max()
print(f"MLCCA: weights differ by {largest:.0e}")

for name, rows in (("paired", right), ("shuffled", right[shuffle])):
    model = CCA(9, reg=0.01).fit({"left": left, "right": rows})
    print(f"CCA, {name:8}: mAP {report(model):.3f}")

# %%
# In the shared space, halves of the same digit are close, although no pair was used in training.

some = held_out[:400]
EmbeddingDisplay.from_estimator(
    models["MLCCA"], data.views[some], groups=data.labels[some], method="tsne", random_state=0
)
plt.show()
