"""
A deep model is judged by what it retrieves, not by its loss
============================================================

Correlation and ranking losses train the same networks towards different goals. Their losses cannot
be compared, but retrieval can, and validation rows show the epoch to stop at.
"""

# %%
# Halves of digits: 1,000 images for training, 300 to choose the epoch, the rest for testing. Every
# model has one hidden layer and 16 outputs per view.

import matplotlib.pyplot as plt

from mvcca import CCA, evaluate_retrieval
from mvcca.datasets import load_digits_views
from mvcca.deep import CCAL, DCCA, SAM, LearnedRanking
from mvcca.plotting import RecallCurveDisplay

digits = load_digits_views()
train, validation, test = digits.views[:1000], digits.views[1000:1300], digits.views[1300:]
labels, labels_validation, labels_test = (
    digits.labels[:1000],
    digits.labels[1000:1300],
    digits.labels[1300:],
)

# %%
# :class:`~mvcca.deep.DCCA` maximizes the correlation of both networks.
# :class:`~mvcca.deep.LearnedRanking` asks that the other half of an image is nearer than those of
# other images, by a margin. :class:`~mvcca.deep.CCAL` uses the same loss after a layer that makes
# the outputs canonical variates.

settings = {
    "hidden_layer_sizes": (64,),
    "batch_size": 250,
    "max_epochs": 15,
    "random_state": 0,
}
models = {
    "CCA": CCA(16, reg=0.1).fit(train),
    "DCCA": DCCA(16, **settings).fit(train, X_val=validation),
    "LearnedRanking": LearnedRanking(16, **settings).fit(train, X_val=validation),
    "CCAL": CCAL(16, **settings).fit(train, X_val=validation),
}
for name, model in models.items():
    table = evaluate_retrieval(test, labels_test, estimator=model, measures=["r@10", "mrr", "map"])
    print(f"{name:15}", {measure: round(value, 2) for measure, value in table.mean().items()})

# %%
# Recall of the other half of the image, in both directions.

RecallCurveDisplay.from_estimator(models, test, k=50)
plt.show()

# %%
# The ranking models are monitored by the mean reciprocal rank (MRR) of the validation rows.

figure, ax = plt.subplots(layout="constrained")
for name in ("LearnedRanking", "CCAL"):
    ax.plot(models[name].history_["epoch"], models[name].history_["valid_mrr"], label=name)
ax.set(xlabel="Epoch", ylabel="MRR of validation rows")
ax.legend(frameon=False)
plt.show()

# %%
# :class:`~mvcca.deep.SAM` learns from labels, with margins that move from a fixed value to
# distances of categories as training proceeds. In the history, ``adaptation`` is the share of the
# distances in the margins.

sam = SAM(
    16,
    hidden_layer_sizes=(64,),
    optimizer="adam",
    learning_rate=2e-3,
    batch_size=100,
    max_epochs=15,
    steepness=0.4,
    random_state=0,
)
sam.fit(train, labels, X_val=validation, y_val=labels_validation)
table = evaluate_retrieval(test, labels_test, estimator=sam, measures=["r@10", "map"])
print("SAM", {measure: round(value, 2) for measure, value in table.mean().items()})
figure, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
for ax, column in zip(axes, ("margin", "adaptation"), strict=True):
    ax.plot(sam.history_["epoch"], sam.history_[column])
    ax.set(xlabel="Epoch", ylabel=column.capitalize())
plt.show()

# %%
# Digits that the networks place close to each other have small margins.

figure, ax = plt.subplots(layout="constrained")
figure.colorbar(ax.imshow(sam.category_margins_), label="Margin")
ax.set_xticks(range(len(sam.categories_)), sam.categories_)
ax.set_yticks(range(len(sam.categories_)), sam.categories_)
plt.show()
