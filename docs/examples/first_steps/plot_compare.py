"""
The best method depends on what a query should find
===================================================

``mvcca.compare`` fits every method to the same training objects, and measures retrieval on the same
held-out objects. On halves of digits, one method is best at finding the same image, and another at
finding the same digit.
"""

# %%
# The views are the left and right halves of 1,797 digits. CCA, kernel CCA and nonparametric CCA
# learn from pairs, cluster-CCA learns from labels.

import matplotlib.pyplot as plt

import mvcca
from mvcca import CCA, KCCA, MLCCA, NCCA
from mvcca.datasets import load_digits_views

digits = load_digits_views()
methods = {
    "CCA": CCA(9, reg=0.1),
    "kernel CCA": KCCA(9, approximation="nystroem", reg=0.1, random_state=0),
    "nonparametric CCA": NCCA(9),
    "cluster-CCA": MLCCA(9, label_similarity="equal", power=1, reg=0.1),
}

# %%
# ``map`` counts all items of the query's digit, and ``r@10`` only the other half of its image. Both
# halves of an image are always in the same one of five folds.

result = mvcca.compare(methods, digits.views, digits.labels, measures=["map", "r@10"])
print(result)

# %%
# Intervals are those of new objects and models of all rows. Nonparametric CCA is best
# at finding the same digit, and kernel CCA at finding the same image. Cluster-CCA is better than
# CCA at the first and worse at the second, because labels do not distinguish two images of a digit.

figure, axes = plt.subplots(1, 2, figsize=(10, 3), layout="constrained")
result.plot(axes[0], figure="map")
result.plot(axes[1], figure="r@10")
plt.show()

# %%
# Which methods does the corrected resampled t-test over folds find worse than the winner?

for measure in result.measures:
    print(measure, {name: result.is_worse(name, measure) for name in result.methods})

# %%
# The mean hides queries that a method cannot answer. Every query's value shows for how many images
# kernel CCA finds the other half and nonparametric CCA does not, and the reverse.

hits = result.per_query("r@10").pivot_table(
    index=["direction", "object"], columns="method", values="value"
)
kernel, nonparametric = hits["kernel CCA"] > 0, hits["nonparametric CCA"] > 0
print(f"only kernel CCA: {(kernel & ~nonparametric).mean():.0%} of all queries")
print(f"only nonparametric CCA: {(nonparametric & ~kernel).mean():.0%}")
