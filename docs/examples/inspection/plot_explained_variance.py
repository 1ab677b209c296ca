"""
A correlation of 0.78 may explain seven percent of a view
=========================================================

A canonical correlation says how well two components agree, not how much of the views they stand
for. The variance that a component explains says this.
"""

# %%
# CCA of the left and right halves of handwritten digits. The first component has a correlation of
# 0.78 on new digits.

import matplotlib.pyplot as plt
import pandas as pd

from mvcca import CCA, PLS
from mvcca.datasets import load_digits_views
from mvcca.inspection import explained_variance
from mvcca.plotting import CorrelationDisplay

views = load_digits_views().views
train, test = views[:1200], views[1200:]
model = CCA(8, reg=0.1).fit(train)
CorrelationDisplay.from_estimator(model, train, X_test=test)
plt.show()

# %%
# Each half is more than its first component, which explains 7 and 11 % of the variance of the
# pixels.

pd.DataFrame(explained_variance(model, test)).plot.bar(xlabel="Component", ylabel="Share")
plt.show()

# %%
# How much of the right half can be predicted from the left one? That is the redundancy: the
# variance of a view that the components of another view explain.

redundancy = pd.DataFrame(explained_variance(model, test, variates="left"))
redundancy.plot.bar(xlabel="Component", ylabel="Share")
plt.show()

# %%
# PLS looks for covariance instead: its components explain more, and agree less.

pls = PLS(8).fit(train)
figure, axes = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
pd.DataFrame(explained_variance(pls, test)).plot.bar(xlabel="Component", ax=axes[0])
CorrelationDisplay.from_estimator({"CCA": model, "PLS": pls}, test, ax=axes[1])
plt.show()
