"""
Both views of a wine tell its grower
====================================

A sample plot shows the objects on two components, a panel for each view. Groups that lie apart in
all panels are what the views share; a group that lies apart in one panel only is not.
"""

# %%
# 178 wines of three growers, standardized. One view holds what they taste of, the other what gives
# them colour. CCA sees no grower: it looks for what the two views have in common.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.neighbors import NearestCentroid

from mvcca import CCA, MLCCA, Views
from mvcca.datasets import load_spoken_digits
from mvcca.plotting import SamplesDisplay

wine = load_wine(as_frame=True)
columns = ["alcohol", "malic_acid", "ash", "alcalinity_of_ash", "magnesium", "proline"]
table = (wine.data - wine.data.mean()) / wine.data.std()
frames = Views({"taste": table[columns], "colour": table.drop(columns=columns)})
growers = np.array(["first grower", "second grower", "third grower"])[wine.target]
train, test, of_train, of_test = train_test_split(frames, growers, test_size=0.5, random_state=0)
model = CCA(4, reg=0.01).fit(train)

# %%
# Wines that were left out of the fit lie in three groups, in the same places in both views. An
# ellipse holds 95 % of a normal distribution with the mean and covariance of its group.

SamplesDisplay.from_estimator(model, test, groups=of_test)
plt.show()

# %%
# How well can a grower be told from these two components alone? The nearest mean of a group is
# right for most of the wines, in either view.

scores, of_new = (model.transform(rows) for rows in (train, test))
for name in frames.names:
    means = NearestCentroid().fit(scores[name][:, :2], of_train)
    print(f"{name}: {means.score(of_new[name][:, :2], of_test):.0%} of the growers are right")

# %%
# The third and fourth components have correlations, too, but they do not come from the growers.

SamplesDisplay.from_estimator(model, test, groups=of_test, components=(2, 3))
plt.show()

# %%
# Views may share no object: each row has its own label then. Here, components of spoken digits and
# of handwritten ones separate the same digits, although no recording belongs to an image.

digits = load_spoken_digits()
supervised = MLCCA(9, reg=0.1).fit(digits.train.views, digits.train.labels)
SamplesDisplay.from_estimator(supervised, digits.test.views, groups=digits.test.labels, level=None)
plt.show()
