"""
Calibrated scores tell whether the item is there at all
=======================================================

A search always returns something. Calibrated on held-out pairs, its scores become the probability
that an item is the one that was meant, also if the gallery may not hold it.
"""

# %%
# Planted views with known correlations: 1,000 objects for the fit, 500 for the calibration, and the
# others for testing. Rows are ranked by their likelihood ratio, whose scale is almost that of a
# probability. Probabilities of the default ranking, which ignores the lengths of rows, are too low
# for good matches.

import matplotlib.pyplot as plt
import numpy as np

from mvcca import CCA, RetrievalIndex
from mvcca.datasets import make_gaussian_views
from mvcca.plotting.style import GREY, color
from mvcca.retrieval import calibrate_matches

correlations = np.linspace(0.98, 0.85, 8)
data = make_gaussian_views(3500, n_features=(30, 30), correlations=correlations, random_state=0)
views = data.views
train, held_out, test = views[:1000], views[1000:1500], views[1500:]
model = CCA(8, reg=0.1).fit(train)
calibration = calibrate_matches(held_out, "view0", "view1", estimator=model, weighting="likelihood")

# %%
# The gallery holds every second test object in the other view. No search can find the rest.

gallery = test["view1"][::2]
index = RetrievalIndex(model, weighting="likelihood").add({"view1": gallery})
scores, ids = index.search({"view0": test["view0"]}, target="view1", k=10)
probabilities = calibration.probability(scores, n_items=len(gallery))[:, 0]
is_right = (np.arange(len(test)) == 2 * ids[:, 0]) & (np.arange(len(test)) % 2 == 0)

# %%
# Left: searches grouped by the predicted probability of their best item. On average, as many best
# items are right as predicted. Right: what a threshold of the scores accepts, the share of matching
# pairs against that of the others.

edges = np.quantile(probabilities, np.linspace(0, 1, 6))
group = np.clip(np.searchsorted(edges, probabilities, side="right") - 1, 0, 4)
predicted = [probabilities[group == g].mean() for g in range(5)]
observed = [is_right[group == g].mean() for g in range(5)]
figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
axes[0].plot([0, 1], [0, 1], linestyle="--", color=GREY)
axes[0].plot(predicted, observed, marker="o", color=color(0))
axes[0].set(xlabel="predicted probability", ylabel="share of right items", aspect="equal")
axes[0].set_title("As many items are right as predicted")
roc = calibration.false_positive_rates, calibration.true_positive_rates
axes[1].semilogx(*roc, color=color(0))
axes[1].set(xlabel="share of other pairs accepted", ylabel="share of matches accepted")
axes[1].set_title("What a threshold accepts")
plt.show()
