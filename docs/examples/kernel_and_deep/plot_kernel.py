"""
Kernels find what linear CCA cannot see
=======================================

One view is a number, the other its square. They are uncorrelated although the second is a function
of the first. Kernel CCA finds nonlinear functions of the views that correlate.
"""

# %%
# On held-out rows, the correlation of linear CCA is about 0. Kernel CCA comes close to 0.99, the
# maximum given the noise.

import matplotlib.pyplot as plt
import numpy as np

from mvcca import CCA, KCCA
from mvcca.datasets import load_digits_views, make_nonlinear_views

views = make_nonlinear_views(600, noise=0.05, random_state=0).views
train, test = views[:400], views[400:]
for estimator in (CCA(1), KCCA(1)):
    score = estimator.fit(train).score(test)
    print(f"{type(estimator).__name__}: held-out correlation {score:.2f}")

# %%
# The function f of the first view is symmetric, like the square, and the function g of the second
# is monotone, so that the two scores of an object agree.

kcca = KCCA(1).fit(train)
figure, axes = plt.subplots(1, 2, figsize=(7, 2.6), layout="constrained")
for ax, (name, X), function in zip(axes, train.items(), "fg", strict=True):
    grid = np.linspace(X.min(), X.max(), 200)[:, None]
    ax.plot(grid, kcca.transform({name: grid})[name])
    ax.set(xlabel=name, title=f"{function}({name})")
plt.show()

# %%
# Exact kernel CCA needs matrices of size n × n. Nyström landmarks, the pivots of an incomplete
# Cholesky decomposition and random Fourier features need only as many columns as chosen. On the
# halves of digits, 400 landmarks come close to the exact method with 1200 rows.

halves = load_digits_views("halves").views
train, test = halves[:1200], halves[1200:]
ranks = [25, 50, 100, 200, 400]
figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
for approximation in ("nystroem", "cholesky", "fourier"):
    model = KCCA(10, approximation=approximation, random_state=0)
    scores = [model.set_params(n_landmarks=m).fit(train).score(test) for m in ranks]
    ax.plot(ranks, scores, marker="o", label=approximation)
ax.axhline(KCCA(10).fit(train).score(test), color="black", linewidth=0.8, label="exact")
ax.axhline(CCA(10, reg=0.1).fit(train).score(test), color="grey", linestyle="--", label="linear")
ax.set(xscale="log", xticks=ranks, xticklabels=ranks, xlabel="landmarks or features")
ax.set(ylabel="mean held-out correlation")
ax.minorticks_off()
ax.legend()
plt.show()
