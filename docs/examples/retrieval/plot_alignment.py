"""
A few hundred pairs bring two encoders together
===============================================

Stored vectors of an old embedding model cannot be compared with queries of a new one, since their
spaces are unrelated. If both models have embedded some items, a linear map between the spaces can
be learned, and nothing needs to be embedded again.
"""

# %%
# Two "encoders" of the same images of digits stand for two embedding models: principal components,
# and features of a kernel, each computed from images with independent noise. In practice these are
# arrays of embeddings.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import Nystroem

from mvcca import CCA, AffineMap, Procrustes, Views, evaluate_retrieval
from mvcca.retrieval import top_k

rng = np.random.default_rng(0)
images = load_digits().data / 16
noise = 0.1 * rng.standard_normal((2, *images.shape))
old = PCA(32, random_state=0).fit_transform(images + noise[0])
kernel = Nystroem(gamma=0.02, n_components=100, random_state=0)
new = kernel.fit_transform(images + noise[1])
order = rng.permutation(len(images))
views = Views({"old": old, "new": new})[order]
pairs, stored = views[:800], views[800:]

# %%
# A map is fitted to a few pairs. ``predict`` returns the old vectors in the space of the new model,
# where a query of the new model finds its own item by cosine.

model = AffineMap(reg=1e-3).fit(pairs)
migrated = model.predict({"old": stored["old"]}, target="new")
scores, items = top_k(stored["new"], migrated, k=1)
print(f"own item first: {np.mean(items[:, 0] == np.arange(len(stored))):.3f}")

# %%
# How many pairs are needed? Rotations (Procrustes) have the fewest parameters. CCA maps both models
# into one shared space, in which components count by the correlation to expect on new rows.

numbers = [40, 80, 150, 300, 800]
methods = {
    "CCA": lambda: CCA(30, reg=0.3),
    "AffineMap": lambda: AffineMap(reg=1e-2),
    "AffineMap, rank 15": lambda: AffineMap(15, reg=1e-2),
    "Procrustes": lambda: Procrustes(),
}
figure, ax = plt.subplots(layout="constrained")
for name, make in methods.items():
    recalls = [
        evaluate_retrieval(stored, estimator=make().fit(pairs[:n]), measures="r@1").mean()["r@1"]
        for n in numbers
    ]
    ax.plot(numbers, recalls, marker="o", label=name)
ax.set(xscale="log", xticks=numbers, xticklabels=numbers, xlabel="Pairs", ylabel="R@1")
ax.minorticks_off()
ax.legend()
plt.show()

# %%
# The command ``mvcca migrate`` does the second step for files of any size, and prints the recall
# among all stored rows, by leave-one-out. Figures on text encoders are in the user guide.
