"""
A correlation of 0.54 between brain and cognition is within the noise
=====================================================================

Cortical thickness of 68 regions and four tests of cognition, in 139 people: the first canonical
correlation is 0.54. Is it real, how large is it in people who were not in the study, and how many
people would it have taken?
"""

# %%
# The data are those of a public tutorial of CCA. They are not part of the package: where the file
# is missing, the example goes on with views of the same size that share nothing, which shows much
# the same.

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from mvcca.datasets import make_gaussian_views
from mvcca.inspection import parametric_tests, permutation_test, study

file = Path(os.environ.get("MVCCA_DATA", ".")) / "brain_cognition.npz"
if file.exists():
    stored = np.load(file)
    views = {
        name: pd.DataFrame(stored[name], columns=stored[f"{name}_names"])
        for name in ("thickness", "toolbox")
    }
    views["thickness"] = views["thickness"].filter(regex="^(?!.*MeanThickness)")
else:
    views = make_gaussian_views(139, n_features=(68, 4), correlations=(), random_state=0).views

# %%
# As it was published: 25 principal components of thickness explain 90 % of its variance. CCA of
# them and the four scores finds a correlation of 0.54, which looks like a strong effect.

published = study(views, rank_gaussian=False, n_components=25, n_permutations=1999, random_state=0)
print(published)

# %%
# It is not. Shuffled pairs, which share nothing, show correlations up to the grey band, and the
# first correlation lies within it. In people who were left out of all steps, it all but disappears.

published.plot()
plt.show()

# %%
# The permutation test says so for each component, and the classical tests for all of them together.

published.test.plot()
plt.show()
components = published.model[:-1].transform(views)
print(parametric_tests(components))

# %%
# Unless told otherwise, a study takes variables by their ranks, so that single people with unusual
# values do not decide, and fewer principal components, so that effects stand out of the noise.
# There is still none to be seen, and the last sentence says what it would have taken.

print("\n".join(study(views, random_state=0).sentences()))

# %%
# With a real effect, the same steps find it. Two of the five correlations of these 400 rows are
# planted, 0.8 and 0.5, and the intervals of the population contain them.

planted = make_gaussian_views(400, n_features=(30, 12), correlations=(0.8, 0.5), random_state=0)
found = study(planted.views, random_state=0)
found.plot()
plt.show()
print("\n".join(found.sentences()))

# %%
# What drives a component? Loadings are correlations of the variables with the component; their
# intervals account for the noise in the weights.

print(found.loadings_frame().head())

# %%
# Every p-value depends on what may be exchanged. With families, whole families are shuffled; with
# confounds such as age, what they explain is removed in a way that keeps rows exchangeable.

rng = np.random.default_rng(0)
age = rng.standard_normal((200, 1))
both = [age + rng.standard_normal((200, 5)) for _ in range(2)]
print("ages ignored: p =", permutation_test(*both, n_permutations=999, random_state=0).p_values[0])
test = permutation_test(*both, confounds=age, n_permutations=999, random_state=0)
print("ages removed: p =", test.p_values[0])
