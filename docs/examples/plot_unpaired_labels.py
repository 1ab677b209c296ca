"""
Where nothing is paired, labels are enough
==========================================

Images from one source and texts from another may have no object in common. MLCCA and MVMLCCA
compare every row of one view with every row of the other, by how much their labels have in common,
and so need no pairs.
"""

# %%
# Take left halves from some digits and right halves from others: no digit is seen twice. ``Views``
# built by ``unpaired`` know that.

import matplotlib.pyplot as plt
import numpy as np

from mvcca import CCA, MLCCA, MVMLCCA, Views, evaluate_retrieval
from mvcca.datasets import load_digits_views
from mvcca.plotting import plot_embedding

data = load_digits_views("halves")
order = np.random.RandomState(0).permutation(len(data.views))
lefts, rights, held_out = np.split(order, [600, 1200])

views = Views.unpaired({"left": data.views["left"][lefts], "right": data.views["right"][rights]})
labels = np.concatenate([data.labels[lefts], data.labels[rights]])
print(views, sorted(set(views.pattern)))

# %%
# Both methods learn from the digits alone.

models = {
    "MLCCA": MLCCA(9, reg=0.01),
    "MVMLCCA": MVMLCCA(9, reg=0.01, within="sample"),
}
for model in models.values():
    model.fit(views, labels)


def report(model):
    scores = model.transform(data.views[held_out])
    return evaluate_retrieval(scores, data.labels[held_out], measures="map").mean()["map"]


for name, model in models.items():
    print(f"{name:10} mAP {report(model):.3f}")

# %%
# The order of the rows of a view means nothing to them. Shuffle one view within a paired set: the
# model stays the same to the last digits, while CCA, which believes that row i is row i, is lost.

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
# In the shared space the halves of digits that never met lie together.

some = held_out[:400]
plot_embedding(models["MLCCA"], data.views[some], data.labels[some], method="tsne", random_state=0)
plt.show()
