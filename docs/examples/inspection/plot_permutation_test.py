"""
A permutation test counts the components that are real
======================================================

CCA finds correlations in any data, also between views that share nothing. Fitted to shuffled pairs,
it shows how large they are by chance.
"""

# %%
# The planted data have three correlations, 0.8, 0.6 and 0.4, among twelve and ten features. With
# 150 objects, all ten correlations of the training rows look respectable.

import matplotlib.pyplot as plt
import numpy as np

from mvcca import CCA
from mvcca.datasets import make_gaussian_views
from mvcca.inspection import permutation_test
from mvcca.plotting import CorrelationDisplay

planted = (0.8, 0.6, 0.4)
data = make_gaussian_views(1150, n_features=(12, 10), correlations=planted, random_state=0)
views, new = data.views[:150], data.views[150:]
model = CCA(10).fit(views)
print("training correlations", model.canonical_correlations_.round(2))

# %%
# On new objects, only the planted ones remain. But new objects are not always at hand.

CorrelationDisplay.from_estimator(model, views, X_test=new)
plt.show()

# %%
# The permutation test needs the training rows only. It permutes the variates that remain after
# removing the components before, and the band holds 90 % of the permutations. Open circles are
# components with p-values of 0.05 or more.

test = permutation_test(views, statistic="roy", n_permutations=499, random_state=0)
test.plot(figure="Components")
plt.show()
print("p-values", test.p_values.round(3))
print(f"{(test.p_values < 0.05).sum()} components are significant")

# %%
# Is the test right? Over 40 samples with three planted correlations, it should rarely find a fourth
# one, at most in about 5 % of them.

counts = []
for seed in range(40):
    sample = make_gaussian_views(150, n_features=(12, 10), correlations=planted, random_state=seed)
    p_values = permutation_test(sample.views, n_permutations=99, random_state=seed).p_values
    counts.append(int((p_values < 0.05).sum()))
numbers, times = np.unique(counts, return_counts=True)
print(dict(zip(numbers.tolist(), times.tolist(), strict=True)), "samples by number of components")

# %%
# The test takes confounds, families of related subjects (``groups``), a ridge and more than two
# views as well, and draws the null distribution of its statistic. Here, ages explain a part of both
# views, and the rows of the test are residuals that may be permuted.

rng = np.random.default_rng(0)
age = rng.normal(size=(150, 1))
aged = {name: block + age for name, block in views.items()}
test = permutation_test(aged, confounds=age, n_components=4, random_state=0)
print(test)
test.plot(component=4)
plt.show()
