"""
Deep methods with labels find more images of a digit than linear ones
=====================================================================

Labels define what is alike: all images of a digit, not only the two halves of one image. The deep
methods of the literature use them in different ways, and are compared here with a linear one.
"""

# %%
# 1,200 digits for training, the others for testing. Pixels are standardized.

import matplotlib.pyplot as plt
from sklearn.preprocessing import StandardScaler

from mvcca import MLCCA, PerView, evaluate_retrieval
from mvcca.datasets import load_digits_views
from mvcca.deep import ACMR, CCL, CMDN, SAM, DeepSM, TwoBranch

digits = load_digits_views()
views = PerView(StandardScaler()).fit(digits.views[:1200]).transform(digits.views)
train, test = views[:1200], views[1200:]
labels, labels_test = digits.labels[:1200], digits.labels[1200:]

# %%
# :class:`~mvcca.deep.DeepSM` classifies each view and compares the posteriors.
# :class:`~mvcca.deep.ACMR` adds a loss of triplets, and an adversary that must not recognize the
# view. :class:`~mvcca.deep.CMDN` trains restricted Boltzmann machines, autoencoders and classifiers
# in stages.
# :class:`~mvcca.deep.CCL` contrasts rows of equal and of different labels.
# :class:`~mvcca.deep.SAM` ranks rows of the same label first, by margins that adapt to the labels.
# :class:`~mvcca.deep.TwoBranch` ranks both ways, and keeps rows of a label together within a view.
# Settings are small versions of the defaults, with learning rates that suit few epochs.

settings = {"hidden_layer_sizes": (64,), "max_epochs": 20, "random_state": 0}
methods = {
    "DeepSM": DeepSM(**settings),
    "ACMR": ACMR(16, learning_rate=3e-3, **settings),
    "CMDN": CMDN(16, width=64, pretraining_epochs=40, max_epochs=20, random_state=0),
    "CCL": CCL(16, learning_rate=1e-2, **settings),
    "SAM": SAM(16, **(settings | {"hidden_layer_sizes": (256,), "max_epochs": 60})),
    "TwoBranch": TwoBranch(16, dropout=0.1, **settings),
}
models = {"MLCCA": MLCCA(9, reg=0.1).fit(train, labels)}
models |= {name: method.fit(train, labels) for name, method in methods.items()}

# %%
# The mean average precision counts all images of the same digit as right answers. Every model ranks
# by the similarity that its loss uses: cosine, or Euclidean distance for ACMR.

precision = {
    name: evaluate_retrieval(test, labels_test, estimator=model, measures="map").mean()["map"]
    for name, model in models.items()
}
for name, value in precision.items():
    print(f"{name:10} {value:.2f}")

# %%
# These are small networks after few epochs, and the order depends on the data:
# :func:`mvcca.compare` answers the question for yours, with error bars.

names = sorted(precision, key=precision.get)
figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
axes.barh(names, [precision[name] for name in names])
axes.set(xlabel="mean average precision", xlim=(0, 1))
plt.show()
